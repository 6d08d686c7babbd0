# SPDX-License-Identifier: Apache-2.0
"""Products of arrays and norms. Every product is a contraction of labelled dims (contraction.py).

np.einsum("bm,mh->bh", x, w)      %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

from ..errors import ShapeError, message
from ..recording.tracing import Tracer
from ._primitives import common_trace, convert, normalize_axes, operand, refuse, reshape
from ._promote import is_complex, is_float, loop_dtypes, result_dtype
from ._registry import implements
from .contraction import Term, contract
from .elementwise import with_sign_of_zero
from .matrix_functions import norm_by_singular_values

__all__ = ["UFUNCS"]


def _operands(arrays: Sequence[Any], dtype: Any = None) -> list[Tracer]:
    """Trace all operands in one dtype. In these functions, NumPy treats a Python number as an array, not as weak."""
    first = arrays[0]
    if type(first) is Tracer and (dtype is None or dtype == first.dtype):
        trace, common = first._trace, first.dtype
        if all(type(x) is Tracer and x.dtype == common and x._trace is trace for x in arrays):
            return list(arrays)
    trace = common_trace(arrays)
    arrays = [x if hasattr(x, "dtype") else np.asarray(x) for x in arrays]
    common = result_dtype(*arrays) if dtype is None else np.dtype(dtype)
    return [operand(trace, x, common) for x in arrays]


# ---- einsum ---------------------------------------------------------------------------------------------------------


@implements("einsum")
def einsum(
    *operands: Any, out: Any = None, dtype: Any = None, order: Any = "K", casting: Any = "safe", optimize: Any = False
) -> Any:
    """``numpy.einsum``: implicit output, ellipsis, repeated labels, and operands followed by lists of labels."""
    refuse("einsum", out=(out, None), order=(order, "K"), casting=(casting, "safe"))
    inputs, output, arrays = _parsed(operands)
    tracers = _operands(arrays, dtype)
    labels, result = _labelled(inputs, output, tuple([x.shape for x in tracers]))
    return contract("np.einsum", [Term(x, own) for x, own in zip(tracers, labels)], result)


@lru_cache(maxsize=4096)
def _labelled(
    inputs: tuple[str, ...], output: str | None, shapes: tuple[tuple[int, ...], ...]
) -> tuple[list[tuple[Any, ...]], tuple[Any, ...]]:
    """A label for every dim of the operands and of the result."""
    width = max(
        (len(shape) - len(text.replace("...", "")) for text, shape in zip(inputs, shapes) if "..." in text), default=0
    )
    labels = [_labels(text, shape, width) for text, shape in zip(inputs, shapes)]
    if output is None:
        # NumPy's rule: the dims of the ellipsis, then the labels that occur once, in alphabetical order.
        text = "".join(inputs).replace("...", "")
        output = ("..." if width else "") + "".join(sorted(c for c in set(text) if text.count(c) == 1))
    return labels, _output_labels(output, labels, width)


def _parsed(operands: tuple[Any, ...]) -> tuple[tuple[str, ...], str | None, list[Any]]:
    if not isinstance(operands[0], str):
        pairs = list(zip(operands[::2], operands[1::2]))
        inputs = tuple(_text_of(labels) for _, labels in pairs)
        output = _text_of(operands[-1]) if len(operands) % 2 else None
        return inputs, output, [x for x, _ in pairs]
    inputs, output = _split_text(operands[0])
    if len(inputs) != len(operands) - 1:
        got = f"{len(inputs)} in {operands[0]!r} for {len(operands) - 1} operands"
        raise ShapeError(message("np.einsum", "there must be one list of labels per operand", got))
    return inputs, output, list(operands[1:])


@lru_cache(maxsize=4096)
def _split_text(subscripts: str) -> tuple[tuple[str, ...], str | None]:
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    wrong = set((left + right).replace("...", "").replace(",", "")) - set(string.ascii_letters)
    if wrong:
        raise ShapeError(message("np.einsum", "labels must be letters", repr("".join(sorted(wrong)))))
    return tuple(left.split(",")), right if arrow else None


def _text_of(labels: Sequence[Any]) -> str:
    return "".join("..." if label is Ellipsis else string.ascii_letters[label] for label in labels)


def _labels(text: str, shape: tuple[int, ...], width: int) -> tuple[Any, ...]:
    """One label per dim; those of the ellipsis are numbers, aligned at the right."""
    before, dots, after = text.partition("...")
    hidden = len(shape) - len(before) - len(after)
    if hidden < 0 or (hidden and not dots):
        got = f"shape {shape}"
        raise ShapeError(message("np.einsum", f"{text!r} must label every dim", got, "add labels or an ellipsis"))
    return (*before, *range(width - hidden, width), *after)


def _output_labels(text: str, operands: Sequence[tuple[Any, ...]], width: int) -> tuple[Any, ...]:
    before, dots, after = text.partition("...")
    if width and not dots:
        raise ShapeError(
            message("np.einsum", "the output must hold the ellipsis of the operands", repr(text), "write ...")
        )
    labels: tuple[Any, ...] = (*before, *(range(width) if dots else ()), *after)
    known = {label for own in operands for label in own}
    if not known.issuperset(labels) or len(set(labels)) < len(labels):
        raise ShapeError(
            message("np.einsum", "each label of the output must occur in it once and in an operand", repr(text))
        )
    return labels


# ---- products -------------------------------------------------------------------------------------------------------


def _matmul(function: str, lhs: Any, rhs: Any, dtype: np.dtype[Any]) -> Any:
    a, b = _operands((lhs, rhs), dtype)
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError(message(function, "operands must have at least 1 dim", f"{a.shape} and {b.shape}", "use *"))
    _expect_equal(function, a.shape[-1], b.shape[-min(b.ndim, 2)], a, b)
    a_labels, b_labels, out = _matmul_labels(a.ndim, b.ndim)
    return contract(function, [Term(a, a_labels), Term(b, b_labels)], out)


@cache
def _matmul_labels(a_ndim: int, b_ndim: int) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    width = max(a_ndim, b_ndim, 2) - 2
    a_labels = (*range(width - max(a_ndim - 2, 0), width), *("m", "k")[-min(a_ndim, 2) :])
    b_labels = (*range(width - max(b_ndim - 2, 0), width), *("k", "n")[: min(b_ndim, 2)])
    return a_labels, b_labels, (*range(width), *("m",)[: a_ndim - 1], *("n",)[: b_ndim - 1])


def _expect_equal(function: str, n: int, m: int, a: Tracer, b: Tracer) -> None:
    if n != m:
        got = f"{n} and {m} of shapes {a.shape} and {b.shape}"
        raise ShapeError(message(function, "contracted dims must have one size", got, "transpose an operand"))


def _matmul_ufunc(inputs: tuple[Any, ...], dtype: Any) -> Any:
    return _matmul("np.matmul", inputs[0], inputs[1], loop_dtypes(np.matmul, inputs, dtype)[0])


def _divmod(inputs: tuple[Any, ...], dtype: Any) -> tuple[Any, Any]:
    return np.floor_divide(*inputs, dtype=dtype), np.remainder(*inputs, dtype=dtype)


def _modf(inputs: tuple[Any, ...], dtype: Any) -> tuple[Any, Any]:
    x = convert(inputs[0], loop_dtypes(np.modf, inputs, dtype)[0])
    whole = np.trunc(x)
    return with_sign_of_zero(np.where(np.isinf(x), 0.0, x - whole), np.signbit(x)), whole


def _conjugate(x: Any) -> Any:
    """The conjugates of complex numbers. Unlike np.conjugate, it keeps booleans."""
    return np.conjugate(x) if is_complex(x.dtype) else x


def _product(
    name: str, a_core: str, b_core: str, out: str, conjugates: bool = False
) -> Callable[[tuple[Any, ...], Any], Any]:
    """A ufunc that contracts k, whose last dims are these; leading dims are broadcast.

    With ``conjugates``, the first operand is a vector that NumPy conjugates.
    """

    def product(inputs: tuple[Any, ...], dtype: Any) -> Any:
        a, b = _operands(inputs, dtype)
        a = _conjugate(a) if conjugates else a
        if a.ndim < len(a_core) or b.ndim < len(b_core):
            rule = f"operands must have at least {len(a_core)} and {len(b_core)} dims"
            raise ShapeError(message(name, rule, f"{a.shape} and {b.shape}"))
        _expect_equal(name, a.shape[a_core.index("k") - len(a_core)], b.shape[b_core.index("k") - len(b_core)], a, b)
        width = max(a.ndim - len(a_core), b.ndim - len(b_core))
        terms = [Term(x, (*range(width - x.ndim + len(core), width), *core)) for x, core in ((a, a_core), (b, b_core))]
        return contract(name, terms, (*range(width), *out))

    return product


_vecdot = _product("np.vecdot", "k", "k", "", conjugates=True)


# Ufuncs whose operands are not broadcast elementwise, or that have two results.
UFUNCS: dict[Any, Callable[[tuple[Any, ...], Any], Any]] = {
    np.matmul: _matmul_ufunc,
    np.divmod: _divmod,
    np.modf: _modf,
}
if hasattr(np, "vecdot"):  # NumPy 2.1 and 2.2 added them
    UFUNCS[np.vecdot] = _vecdot
if hasattr(np, "matvec"):
    UFUNCS[np.matvec] = _product("np.matvec", "mk", "k", "m")
    UFUNCS[np.vecmat] = _product("np.vecmat", "k", "kn", "n", conjugates=True)


@implements("dot")
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """``numpy.dot``: over the last dim of ``a`` and the last but one of ``b``."""
    refuse("dot", out=(out, None))
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        a, b = _operands((a, b))
        return a * b
    a, b = _operands((a, b))
    _expect_equal("np.dot", a.shape[-1], b.shape[-min(b.ndim, 2)], a, b)
    a_labels = (*(("a", i) for i in range(a.ndim - 1)), "k")
    b_free = tuple(("b", i) for i in range(b.ndim - 1))
    b_labels = (*b_free[:-1], "k", *b_free[-1:])
    return contract("np.dot", [Term(a, a_labels), Term(b, b_labels)], (*a_labels[:-1], *b_free))


@implements("inner")
def inner(a: Any, b: Any, /) -> Any:
    """``numpy.inner``: over the last dims of both."""
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        a, b = _operands((a, b))
        return a * b
    return tensordot(a, b, (-1, -1))


@implements("vdot")
def vdot(a: Any, b: Any, /) -> Any:
    """``numpy.vdot``: over all elements, with the conjugates of the first operand."""
    a, b = (reshape(x, (x.size,)) for x in _operands((a, b)))
    return dot(_conjugate(a), b)


@implements("outer", "linalg.outer")
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """``numpy.outer``."""
    refuse("outer", out=(out, None))
    a, b = _operands((a, b))
    return reshape(a, (a.size, 1)) * reshape(b, (1, b.size))


@implements("tensordot", "linalg.tensordot")
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """``numpy.tensordot``."""
    a, b = _operands((a, b))
    if np.ndim(axes) == 0:
        count = int(axes)
        pairs: tuple[Any, Any] = (tuple(range(a.ndim - count, a.ndim)), tuple(range(count)))
    else:
        pairs = axes[0], axes[1]
    sides = [p if isinstance(p, (tuple, list)) else (p,) for p in pairs]
    a_dims = normalize_axes("np.tensordot", tuple(sides[0]), a.ndim)
    b_dims = normalize_axes("np.tensordot", tuple(sides[1]), b.ndim)
    if len(a_dims) != len(b_dims):
        raise ShapeError(message("np.tensordot", "axes must be as many on both sides", axes))
    a_labels: list[Any] = [("a", i) for i in range(a.ndim)]
    b_labels: list[Any] = [("b", i) for i in range(b.ndim)]
    for i, j in zip(a_dims, b_dims):
        _expect_equal("np.tensordot", a.shape[i], b.shape[j], a, b)
        b_labels[j] = a_labels[i]
    out = [x for i, x in enumerate(a_labels) if i not in a_dims] + [
        x for j, x in enumerate(b_labels) if j not in b_dims
    ]
    return contract("np.tensordot", [Term(a, tuple(a_labels)), Term(b, tuple(b_labels))], tuple(out))


@implements("kron")
def kron(a: Any, b: Any) -> Any:
    """``numpy.kron``."""
    a, b = _operands((a, b))
    ndim = max(a.ndim, b.ndim)
    a_shape, b_shape = ((1,) * (ndim - x.ndim) + x.shape for x in (a, b))
    left = reshape(a, tuple(n for size in a_shape for n in (size, 1)))
    right = reshape(b, tuple(n for size in b_shape for n in (1, size)))
    return reshape(left * right, tuple(n * m for n, m in zip(a_shape, b_shape)))


@implements("linalg.matmul")
def linalg_matmul(x1: Any, x2: Any, /) -> Any:
    """``numpy.linalg.matmul``."""
    return np.matmul(x1, x2)


@implements("linalg.vecdot")
def linalg_vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """``numpy.linalg.vecdot`` over one axis of both."""
    if axis != -1:
        x1, x2 = np.moveaxis(x1, axis, -1), np.moveaxis(x2, axis, -1)
    return _vecdot((x1, x2), None)


# ---- norms ----------------------------------------------------------------------------------------------------------


@implements("linalg.norm")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """``numpy.linalg.norm``."""
    by_values = ord in (2, -2, "nuc") and (x.ndim if axis is None else np.size(axis)) == 2
    if is_complex(x.dtype) and not by_values:
        x = np.abs(x)  # the other norms depend only on the sizes
    elif not (is_float(x.dtype) or is_complex(x.dtype)):
        x = convert(x, np.dtype(np.float64))
    if axis is None and (ord is None or (ord in ("fro",) and x.ndim == 2) or (ord == 2 and x.ndim == 1)):
        kept: Any = keepdims  # NumPy's stubs take a literal alone
        return np.sqrt(np.sum(np.square(x), keepdims=kept))
    axes = normalize_axes("np.linalg.norm", axis, x.ndim)
    if len(axes) == 1:
        return _vector_norm(x, ord, axes[0], keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, ord, axes, keepdims)
    raise ShapeError(message("np.linalg.norm", "an order needs one axis or two", f"axes {axes}", "give axis="))


def _vector_norm(x: Tracer, order: Any, axis: int, keepdims: bool) -> Any:
    options: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    if order is None or order == 2:
        return np.sqrt(np.sum(np.square(x), **options))
    if order == np.inf:
        return np.max(np.abs(x), initial=0, **options)
    if order == -np.inf:
        return np.min(np.abs(x), **options)
    if order == 0:
        return np.sum((x != 0).astype(x.dtype), **options)
    if order == 1:
        return np.sum(np.abs(x), **options)
    if isinstance(order, str):
        raise ShapeError(message("np.linalg.norm", "a vector's order must be a number", repr(order)))
    return np.power(np.sum(np.power(np.abs(x), float(order)), **options), 1 / float(order))


def _matrix_norm(x: Tracer, order: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if order is None or order == "fro":
        kept: Any = keepdims
        return np.sqrt(np.sum(np.square(x), axis=axes, keepdims=kept))
    if order in (2, -2, "nuc"):
        return norm_by_singular_values(x, order, axes, keepdims)
    if order not in (1, -1, np.inf, -np.inf):
        rule = "a matrix's order must be 1, 2, inf, these negative, 'fro' or 'nuc'"
        raise ValueError(message("np.linalg.norm", rule, repr(order)))
    summed, chosen = axes if order in (1, -1) else axes[::-1]
    sums = np.sum(np.abs(x), axis=summed, keepdims=True)
    options: dict[str, Any] = {"axis": chosen, "keepdims": True}
    result = np.max(sums, initial=0, **options) if order > 0 else np.min(sums, **options)
    return result if keepdims else np.squeeze(result, axis=axes)
