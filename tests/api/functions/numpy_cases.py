# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501, SIM300, SIM905 (a case is read best on one line, as a user writes it)
"""The table behind test_numpy_api.py: every NumPy function with a traced form, in variants of its arguments.


A case is a name, a function of arrays, and its arrays. Plain NumPy is the oracle.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from tests.api.functions import composed_cases

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class Case(NamedTuple):
    name: str
    function: Callable[..., Any]
    arrays: tuple[np.ndarray, ...]


def data(
    shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0, low: float = -4, high: float = 4
) -> np.ndarray:
    """Reproducible numbers in [low, high)."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -9, 10, shape).astype(dtype)
    return rng.uniform(low, high, shape).astype(dtype)


SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.5, np.inf, -np.inf, np.nan, 7.0, -7.0, 1e-3, 100.0, -0.25], np.float64
)
A = np.repeat(SPECIAL, len(SPECIAL)).reshape(16, 16)
B = np.tile(SPECIAL, len(SPECIAL)).reshape(16, 16)


def _unary() -> list[Case]:
    anywhere = "negative positive absolute fabs sign signbit square exp exp2 expm1 sin cos tan arctan sinh cosh tanh arcsinh cbrt floor ceil rint trunc isfinite isinf isnan degrees radians deg2rad rad2deg logical_not conjugate"
    positive = "sqrt log log2 log10 log1p reciprocal"
    inside = "arcsin arccos arctanh"
    cases = []
    for names, low, high in ((anywhere, -4, 4), (positive, 0.1, 9), (inside, -0.95, 0.95), ("arccosh", 1.1, 9)):
        for name in names.split():
            ufunc = getattr(np, name)
            for dtype in (np.float32, np.float64, np.float16, BFLOAT16):
                x = data((9, 7), dtype, 1, low, high)
                if name == "absolute" or dtype != BFLOAT16 or name in "negative exp log tanh sqrt floor isnan sign":
                    cases.append(Case(f"{name}-{np.dtype(dtype).name}", ufunc, (x,)))
            if name in ("fabs", "conjugate"):
                continue
            if (
                name
                in "negative positive absolute sign square floor ceil rint trunc isfinite isinf isnan logical_not exp sqrt tanh"
            ):
                low_int = 0 if name == "sqrt" else -9
                cases.append(
                    Case(f"{name}-int32", ufunc, (np.arange(low_int, low_int + 18, dtype=np.int32).reshape(9, 2),))
                )
                cases.append(Case(f"{name}-uint8", ufunc, (np.arange(18, dtype=np.uint8).reshape(9, 2),)))
            special = name in "absolute sign signbit floor ceil rint trunc isfinite isinf isnan tanh exp square arctan"
            if special:
                cases.append(Case(f"{name}-special", ufunc, (SPECIAL,)))
    for dtype in (np.bool_, np.int8, np.uint16, np.int64):
        cases.append(Case(f"invert-{np.dtype(dtype).name}", np.invert, (data((8, 3), dtype),)))
        cases.append(Case(f"logical_not-{np.dtype(dtype).name}", np.logical_not, (data((8, 3), dtype),)))
    cases += [Case("reciprocal-int64", np.reciprocal, (np.array([1, 2, -1, -3, 5], np.int64),))]
    return cases


def _binary() -> list[Case]:
    cases = []
    arithmetic = "add subtract multiply divide floor_divide remainder fmod power float_power maximum minimum fmax fmin arctan2 hypot copysign logaddexp logaddexp2 heaviside"
    compared = "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor"
    for name in (arithmetic + " " + compared).split():
        ufunc = getattr(np, name)
        positive = 0.1 if "power" in name else -4
        for dtype in (np.float32, np.float64, np.float16):
            x, y = data((9, 7), dtype, 1, positive), data((7,), dtype, 2)
            cases.append(Case(f"{name}-{np.dtype(dtype).name}", ufunc, (x, y)))
        if name not in ("power", "float_power", "logaddexp", "logaddexp2", "hypot"):
            cases.append(Case(f"{name}-special", ufunc, (A, B)))
    integers = (
        "add subtract multiply floor_divide remainder fmod maximum minimum bitwise_and bitwise_or bitwise_xor divide "
        + compared
    )
    for name in integers.split():
        for dtype in (np.int8, np.int32, np.uint8, np.uint64):
            x, y = data((9, 20), dtype, 1), data((9, 20), dtype, 2)
            cases.append(Case(f"{name}-{np.dtype(dtype).name}", getattr(np, name), (x, y)))
    for dtype in (np.int8, np.uint8, np.int64):
        shifts = np.arange(20, dtype=dtype).reshape(1, 20)
        cases += [
            Case(f"{f.__name__}-{np.dtype(dtype).name}", f, (data((9, 1), dtype), shifts))
            for f in (np.left_shift, np.right_shift)
        ]
        cases.append(Case(f"power-{np.dtype(dtype).name}", np.power, (data((9, 1), dtype), np.arange(5, dtype=dtype))))
    extremes = np.array([[np.iinfo(np.int64).min, 7, -7]]), np.array([[-1], [0], [2], [-2]])
    cases += [Case(f"{f.__name__}-extremes", f, extremes) for f in (np.floor_divide, np.remainder, np.fmod)]
    mixed = np.array([-1, 0, 5, 2**62], np.int64), np.array([[0], [5], [2**63]], np.uint64)
    cases += [
        Case(f"{f.__name__}-int64-uint64", f, mixed)
        for f in (np.less, np.equal, np.greater_equal, np.not_equal, np.add)
    ]
    return cases


def _bits() -> list[Case]:
    """Operators on bits, on every integer dtype, over all of its range; shifts up to and beyond its width."""
    cases = []
    operators: dict[str, Callable[..., Any]] = {
        "&": lambda x, y: x & y, "|": lambda x, y: x | y, "^": lambda x, y: x ^ y, "~": lambda x, y: ~x,
        "&number": lambda x, y: x & 5, "number|": lambda x, y: 5 | x, "^number": lambda x, y: x ^ True,
        "&=": lambda x, y: operator.iand(x.copy(), y), "view": lambda x, y: x.view(x.dtype),
    }  # fmt: skip
    shifts: dict[str, Callable[..., Any]] = {
        "<<": lambda x, s: x << s, ">>": lambda x, s: x >> s, "number<<": lambda x, s: 3 << s, "number>>": lambda x, s: 100 >> s,
        "<<number": lambda x, s: x << 7, ">>number": lambda x, s: x >> 7, "<<=": lambda x, s: operator.ilshift(x.copy(), s),
    }  # fmt: skip
    for bits in (8, 16, 32, 64):
        for dtype in (np.dtype(f"int{bits}"), np.dtype(f"uint{bits}")):
            ends, rng = np.iinfo(dtype), np.random.default_rng(bits)
            x, y = rng.integers(ends.min, ends.max, (2, 9, 7), dtype, endpoint=True)
            x[0, :4], y[0, :4] = [ends.min, ends.max, 0, 1], [ends.max, 1, ends.min, ends.max]
            cases += [Case(f"{name}-{dtype.name}", f, (x, y)) for name, f in operators.items()]
            # From 0 to beyond the width, and, where there are such, negative ones: all bits are shifted out.
            amounts = (np.arange(63).reshape(9, 7) * (bits + 9) // 63 - (5 if dtype.kind == "i" else 0)).astype(dtype)
            cases += [Case(f"{name}-{dtype.name}", f, (x, amounts)) for name, f in shifts.items()]
            for other in (f"int{bits}", f"uint{bits}", *(["float" + str(bits)] if bits > 8 else [])):
                cases.append(Case(f"view-{dtype.name}-{other}", lambda x, d=other: x.view(d).view(x.dtype), (x,)))
                cases.append(Case(f"viewed-{dtype.name}-{other}", lambda x, d=other: x.view(d), (x >> 3 & 31,)))
            if hasattr(np, "bitwise_count"):
                cases.append(Case(f"bitwise_count-{dtype.name}", np.bitwise_count, (x,)))
    flags = data((9, 7), np.bool_, 1), data((9, 7), np.bool_, 2)
    cases += [Case(f"{name}-bool", f, flags) for name, f in operators.items() if name != "~"]
    cases += [
        Case("view-bool-uint8", lambda x: x.view(np.uint8), flags[:1]),
        Case("<<-bool", lambda x, y: x << y, flags),
    ]
    mixed = data((9, 7), np.int8, 3), data((9, 7), np.uint16, 4)
    cases += [
        Case(f"{f.__name__}-mixed", f, mixed) for f in (np.bitwise_and, np.bitwise_xor, np.left_shift, np.right_shift)
    ]
    return cases


def _nextafter() -> list[Case]:
    return [
        Case(f"nextafter-{np.dtype(dtype).name}", np.nextafter, (A.astype(dtype), B.astype(dtype)))
        for dtype in (np.float16, np.float32, np.float64)
    ]


def _scalars() -> list[Case]:
    cases = []
    functions: dict[str, Callable[[Any], Any]] = {
        "x+1": lambda x: x + 1, "1-x": lambda x: 1 - x, "x*2.5": lambda x: x * 2.5, "x/3": lambda x: x / 3, "x//2": lambda x: x // 2,
        "x%3": lambda x: x % 3, "-3%x": lambda x: -3 % (x + 20), "x**2": lambda x: x**2, "x**3": lambda x: x**3, "2**x": lambda x: 2.0**x,
        "x<300": lambda x: x < 3, "x==True": lambda x: x == True, "x+float32": lambda x: x + np.float32(1.5),  # noqa: E712
        "x+int64": lambda x: x + np.int64(2), "abs": abs, "-x": lambda x: -x, "x@": lambda x: x @ np.ones((7, 2), np.float32),
        "divmod": lambda x: divmod(x, 3), "maximum": lambda x: np.maximum(x, 0), "where": lambda x: np.where(x > 0, x, 0.5),
        "list": lambda x: np.add(x, [1, 2, 3, 4, 5, 6, 7]), "x+large": lambda x: x + np.arange(63.0).reshape(9, 7),
    }  # fmt: skip
    for name, function in functions.items():
        for dtype in (np.float32, np.int32, np.uint8, np.float16, BFLOAT16, np.bool_):
            # NumPy's own ** makes int8 of booleans, its power int64: the operator of a duck array cannot know.
            if (name in ("-x", "1-x", "x**2") and dtype == np.bool_) or (name == "-3%x" and dtype == np.uint8):
                continue
            cases.append(Case(f"{name}-{np.dtype(dtype).name}", function, (data((9, 7), dtype, 3),)))
    cases.append(Case("x**0.5", lambda x: x**0.5, (data((9,), low=0),)))
    cases.append(Case("x**-1", lambda x: x**-1, (data((9,), low=1),)))
    cases += [
        Case(f"beyond{i}", f, (np.arange(8, dtype=np.uint8),))
        for i, f in enumerate(
            (lambda x: x < 300, lambda x: -1 < x, lambda x: x == 256, lambda x: x >= -5, lambda x: x != 999)
        )
    ]
    cases.append(Case("dtype=", lambda x: np.add(x, 1, dtype=np.float64), (data((9,)),)))
    cases.append(Case("astype", lambda x: [x.astype(d) for d in ("f8", "i4", "?", "u1", "f2")], (data((9,), low=0),)))
    return cases


def _reductions() -> list[Case]:
    cases = []
    for name in "sum prod max min mean var std all any ptp amax amin count_nonzero".split():
        f = getattr(np, name)
        for dtype in (np.float32, np.int32, np.uint8, np.bool_, np.float16):
            if name in ("ptp",) and dtype == np.bool_:
                continue
            x = data((9, 4, 5), dtype, 5, -1.2, 1.2)
            for i, options in enumerate(({}, {"axis": 0}, {"axis": (0, 2)}, {"axis": -1, "keepdims": True})):
                cases.append(Case(f"{name}-{np.dtype(dtype).name}-{i}", _with(f, options), (x,)))
    x = data((9, 4))
    more: dict[str, Callable[[Any], Any]] = {
        "sum-dtype": lambda x: np.sum(x, dtype=np.float64), "sum-initial": lambda x: np.sum(x, axis=0, initial=2.0),
        "max-initial": lambda x: np.max(x, axis=1, initial=1.0), "var-ddof": lambda x: np.var(x, axis=0, ddof=1),
        "std-ddof": lambda x: x.std(axis=1, ddof=1), "method": lambda x: x.sum(axis=0) + x.mean() + x.max(0) - x.min(),
        "add.reduce": lambda x: np.add.reduce(x), "multiply.reduce": lambda x: np.multiply.reduce(x, axis=1, keepdims=True),
        "maximum.reduce": lambda x: np.maximum.reduce(x, axis=None), "logical_or.reduce": lambda x: np.logical_or.reduce(x > 3),
        "sum-none": lambda x: np.sum(x, axis=()), "sum-empty": lambda x: np.sum(x[:0], axis=0), "all-method": lambda x: (x > -9).all(),
        "mean-dtype": lambda x: np.mean(x, dtype=np.float64),
    }  # fmt: skip
    return cases + [Case(name, f, (x,)) for name, f in more.items()]


def _cumulative() -> list[Case]:
    cases = []
    functions: dict[str, Callable[[Any], Any]] = {
        "cumsum": np.cumsum, "cumsum-0": lambda x: np.cumsum(x, 0), "cumsum-last": lambda x: x.cumsum(-1), "cumsum-dtype": lambda x: np.cumsum(x, axis=1, dtype=np.float64),
        "cumprod": np.cumprod, "cumprod-1": lambda x: np.cumprod(x, axis=1), "cumprod-method": lambda x: x.cumprod(0), "cumprod-narrow": lambda x: np.cumprod(x, 0, np.int16) if x.dtype.kind != "f" else x,
        "add.accumulate": np.add.accumulate, "add.accumulate-1": lambda x: np.add.accumulate(x, 1), "multiply.accumulate": lambda x: np.multiply.accumulate(x, axis=-1),
        "maximum.accumulate": np.maximum.accumulate, "maximum.accumulate-1": lambda x: np.maximum.accumulate(x, axis=1), "minimum.accumulate": lambda x: np.minimum.accumulate(x, -1),
    }  # fmt: skip
    for name, f in functions.items():
        for dtype in (np.float32, np.int32, np.uint8, np.int8, np.bool_, np.float16):
            cases.append(Case(f"{name}-{np.dtype(dtype).name}", f, (data((9, 4), dtype, 6, -1.4, 1.4),)))
    x = data((9, 5, 3))
    if hasattr(np, "cumulative_sum"):
        cases += [
            Case("cumulative_sum", lambda x: np.cumulative_sum(x, axis=1), (x,)),
            Case("cumulative_sum-initial", lambda x: np.cumulative_sum(x, axis=0, include_initial=True), (x,)),
            Case("cumulative_sum-flat", lambda x: np.cumulative_sum(x, dtype=np.float64), (x[:, 0, 0],)),
            Case("cumulative_prod", lambda x: np.cumulative_prod(x, axis=-1, include_initial=True), (x,)),
        ]
    empty, one = data((0, 4)), data(())
    cases += [Case(f"cumsum-empty-{axis}", _with(np.cumsum, {"axis": axis}), (empty,)) for axis in (None, 0, 1)]
    cases += [
        Case("cumsum-scalar", np.cumsum, (one,)),
        Case("maximum.accumulate-nan", np.maximum.accumulate, (SPECIAL,)),
    ]
    return cases


def _arguments() -> list[Case]:
    """Where the extremes are: ties, NaN, infinities, both zeros."""
    cases = []
    for name in ("argmax", "argmin"):
        f = getattr(np, name)
        for dtype in (np.float32, np.float64, np.float16, np.int32, np.int8, np.uint8, np.int64, np.bool_):
            x = data((9, 4, 5), dtype, 5, -1.2, 1.2)
            for i, options in enumerate(
                ({}, {"axis": 0}, {"axis": 1}, {"axis": -1, "keepdims": True}, {"keepdims": True})
            ):
                cases.append(Case(f"{name}-{np.dtype(dtype).name}-{i}", _with(f, options), (x,)))
        for i, options in enumerate(({}, {"axis": 0}, {"axis": 1})):
            cases.append(Case(f"{name}-special-{i}", _with(f, options), (A,)))
            cases.append(Case(f"{name}-first-nan-{i}", _with(f, options), (np.where(np.isinf(B), np.nan, B),)))
            cases.append(Case(f"{name}-zeros-{i}", _with(f, options), (np.copysign(np.zeros((5, 4)), data((5, 4))),)))
            cases.append(Case(f"{name}-infinities-{i}", _with(f, options), (np.full((5, 4), -np.inf, np.float32),)))
        cases.append(Case(f"{name}-scalar", f, (np.float32(3),)))
        cases.append(Case(f"{name}-empty", _with(f, {"axis": 0}), (np.zeros((3, 0)),)))
    cases.append(
        Case("argmax-method", lambda x: x.argmax() + x.argmax(axis=1) - x.argmin(0, keepdims=True).T, (data((6, 6)),))
    )
    cases.append(
        Case("other-methods", lambda x: x.trace() + x.diagonal(1).conj().sum() + x.conjugate(), (data((6, 6)),))
    )
    return cases


def _with(f: Callable[..., Any], options: dict[str, Any]) -> Callable[[Any], Any]:
    return lambda x: f(x, **options)


def _products() -> list[Case]:
    cases = []
    subscripts = {
        "bm,mh->bh": ((9, 4), (4, 6)), "bm,mh": ((9, 4), (4, 6)), "ij,ij->": ((9, 4), (9, 4)), "ij,jk->ki": ((9, 4), (4, 3)),
        "bij,bjk->bik": ((3, 4, 5), (3, 5, 2)), "ii": ((6, 6),), "ii->i": ((6, 6),), "iij->j": ((4, 4, 3),), "ij->ji": ((9, 4),), "ij->j": ((9, 4),),
        "i,j->ij": ((9,), (4,)), "...ij,...jk->...ik": ((2, 3, 4, 5), (3, 5, 2)), "...,...": ((9, 4), (4,)), "i...->...": ((9, 4),),
        "ab,bc,cd->ad": ((9, 4), (4, 5), (5, 3)), "ab,bc,cd,d": ((9, 4), (4, 5), (5, 3), (3,)), "bqhd,bkhd->bhqk": ((2, 5, 3, 4), (2, 6, 3, 4)),
        "ij,jk,ik->": ((9, 4), (4, 5), (9, 5)), "i,i,i->i": ((9,), (9,), (9,)), "ij,kj->ik": ((9, 1), (5, 4)), "ijj,jk->ik": ((3, 4, 4), (4, 2)),
        "b i, b i -> b": ((9, 4), (9, 4)), "ba": ((9, 4),), "...i->...": ((2, 9, 4),), "ij,k->ik": ((9, 4), (5,)),
    }  # fmt: skip
    for text, shapes in subscripts.items():
        for dtype in (np.float32, np.int32):
            arrays = tuple(data(shape, dtype, i) for i, shape in enumerate(shapes))
            cases.append(
                Case(f"einsum-{text}-{np.dtype(dtype).name}", lambda *x, text=text: np.einsum(text, *x), arrays)
            )
    cases.append(
        Case("einsum-lists", lambda x, y: np.einsum(x, [0, 1], y, [1, 2], [2, 0]), (data((9, 4)), data((4, 3))))
    )
    cases.append(
        Case("einsum-bool", lambda x, y: np.einsum("ij,jk->ik", x, y), (data((9, 4), bool), data((4, 3), bool, 1)))
    )
    cases.append(
        Case("einsum-mixed", lambda x, y: np.einsum("ij,jk->ik", x, y), (data((9, 4)), data((4, 3), np.int64, 1)))
    )
    shapes_of_two = [
        ((9, 4), (4, 6)),
        ((4,), (4,)),
        ((9, 4), (4,)),
        ((4,), (4, 6)),
        ((2, 3, 4), (2, 4, 5)),
        ((2, 3, 4), (4, 5)),
        ((3, 4), (2, 4, 5)),
        ((7, 1, 3, 4), (2, 4, 5)),
        ((4,), (2, 4, 5)),
        ((2, 3, 4), (4,)),
        ((1, 3, 4), (5, 4, 2)),
    ]
    for i, (a, b) in enumerate(shapes_of_two):
        for dtype in (np.float32, np.int16):
            cases.append(Case(f"matmul-{i}-{np.dtype(dtype).name}", np.matmul, (data(a, dtype), data(b, dtype, 1))))
        cases.append(Case(f"dot-{i}", np.dot, (data(a), data(b, seed=1))))
    cases.append(Case("matmul-mixed", np.matmul, (data((3, 4), np.int32), data((4, 5), np.float32))))
    cases.append(Case("dot-scalar", lambda x: np.dot(x, 2.0) + np.dot(3, x), (data((3, 4)),)))
    pairs: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = {
        "tensordot-2": (np.tensordot, (9, 4, 5), (4, 5, 3)), "tensordot-1": (lambda x, y: np.tensordot(x, y, 1), (9, 4), (4, 3)), "tensordot-0": (lambda x, y: np.tensordot(x, y, 0), (9,), (4,)),
        "tensordot-axes": (lambda x, y: np.tensordot(x, y, axes=([0, 2], [1, 0])), (9, 4, 5), (5, 9, 3)), "inner": (np.inner, (9, 4), (3, 4)),
        "outer": (np.outer, (9, 2), (4,)), "vdot": (np.vdot, (9, 4), (4, 9)), "kron": (np.kron, (3, 4), (2, 5)), "kron-1": (np.kron, (3,), (2, 5)),
    }  # fmt: skip
    cases += [Case(name, f, (data(a), data(b, seed=1))) for name, (f, a, b) in pairs.items()]
    orders: dict[str, dict[str, Any]] = {
        "all": {},
        "axis": {"axis": 0},
        "1": {"ord": 1, "axis": 1},
        "inf": {"ord": np.inf, "axis": 0, "keepdims": True},
        "-inf": {"ord": -np.inf, "axis": 0},
        "0": {"ord": 0, "axis": 1},
        "3": {"ord": 3, "axis": 1},
        "fro": {"ord": "fro"},
        "matrix1": {"ord": 1},
        "matrix-inf": {"ord": np.inf, "axis": (1, 0), "keepdims": True},
        "two": {"axis": (0, 1)},
    }
    for dtype in (np.float32, np.int32):
        cases += [
            Case(f"norm-{name}-{np.dtype(dtype).name}", _with(np.linalg.norm, o), (data((9, 4), dtype),))
            for name, o in orders.items()
        ]
    if hasattr(np, "vecdot"):
        cases.append(Case("vecdot", np.vecdot, (data((9, 4)), data((4,), seed=1))))
    if hasattr(np, "matvec"):
        cases.append(Case("matvec", np.matvec, (data((2, 1, 9, 4)), data((3, 4), seed=1))))
        cases.append(Case("vecmat", np.vecmat, (data((3, 4), seed=1), data((2, 1, 4, 9)))))
    return cases


def _movement() -> list[Case]:
    functions: dict[str, Callable[[Any], Any]] = {
        "reshape": lambda x: np.reshape(x, (6, 12)), "reshape--1": lambda x: x.reshape(-1, 4), "reshape-tuple": lambda x: x.reshape((2, -1)), "ravel": np.ravel, "flatten": lambda x: x.flatten(),
        "T": lambda x: x.T, "transpose": lambda x: np.transpose(x, (1, 0, 2)), "transpose-method": lambda x: x.transpose(2, 0, 1), "swapaxes": lambda x: np.swapaxes(x, 0, -1), "moveaxis": lambda x: np.moveaxis(x, 0, -1), "moveaxis-2": lambda x: np.moveaxis(x, (0, 1), (2, 0)), "rollaxis": lambda x: np.rollaxis(x, 2), "rollaxis-1": lambda x: np.rollaxis(x, 0, 2),
        "expand_dims": lambda x: np.expand_dims(x, 1), "expand_dims-2": lambda x: np.expand_dims(x, (0, -1)), "squeeze": lambda x: np.squeeze(x[:, :1]), "squeeze-axis": lambda x: np.squeeze(x[:, :1], axis=1), "mT": lambda x: x.mT,
        "concatenate": lambda x: np.concatenate([x, x[1:], x]), "concatenate-1": lambda x: np.concatenate((x, x), axis=1), "concatenate-none": lambda x: np.concatenate((x, x), axis=None), "concatenate-mixed": lambda x: np.concatenate((x, np.zeros((1, 3, 4), np.int8))), "stack": lambda x: np.stack([x, x, x]), "stack-1": lambda x: np.stack([x, x], axis=-1),
        "vstack": lambda x: np.vstack([x, x]), "hstack": lambda x: np.hstack([x, x]), "dstack": lambda x: np.dstack([x[0], x[1]]), "column_stack": lambda x: np.column_stack([x[0, 0], x[0, 1]]), "append": lambda x: np.append(x, x, axis=0),
        "split": lambda x: np.split(x, 3), "split-at": lambda x: np.split(x, [1, 3], axis=1), "array_split": lambda x: np.array_split(x, 4), "hsplit": lambda x: np.hsplit(x, 3), "vsplit": lambda x: np.vsplit(x, 2), "dsplit": lambda x: np.dsplit(x, 2),
        "broadcast_to": lambda x: np.broadcast_to(x, (2, 6, 3, 4)), "broadcast_arrays": lambda x: list(np.broadcast_arrays(x, x[0], x[:, :1])), "flip": np.flip, "flip-1": lambda x: np.flip(x, 1), "fliplr": np.fliplr, "flipud": np.flipud, "rot90": np.rot90, "rot90-3": lambda x: np.rot90(x, 3, axes=(1, 2)),
        "roll": lambda x: np.roll(x, 2), "roll-0": lambda x: np.roll(x, 2, axis=0), "roll--1": lambda x: np.roll(x, (1, -1), axis=(0, 1)), "roll-big": lambda x: np.roll(x, 14, axis=0), "tile": lambda x: np.tile(x, 2), "tile-2": lambda x: np.tile(x, (2, 1, 3, 1)), "repeat": lambda x: np.repeat(x, 2), "repeat-1": lambda x: np.repeat(x, 3, axis=1), "repeat-each": lambda x: np.repeat(x, [1, 0, 2], axis=1),
        "pad": lambda x: np.pad(x, 1), "pad-values": lambda x: np.pad(x, ((1, 2), (0, 0), (0, 1)), constant_values=7), "pad-sides": lambda x: np.pad(x, 2, constant_values=(1, 2)), "pad-edge": lambda x: np.pad(x, 2, mode="edge"), "pad-reflect": lambda x: np.pad(x, 2, mode="reflect"), "pad-symmetric": lambda x: np.pad(x, 2, mode="symmetric"), "pad-wrap": lambda x: np.pad(x, 2, mode="wrap"),
        "diagonal": lambda x: np.diagonal(x, 1, 0, 2), "diagonal--1": lambda x: np.diagonal(x, -2), "trace": lambda x: np.trace(x, 1, 2, 1), "tril": np.tril, "triu": lambda x: np.triu(x, -1), "diag": lambda x: np.diag(x[0]), "diag-1": lambda x: np.diag(x[0, 0], 2), "diag--1": lambda x: np.diag(x[0, 0], -1),
        "zeros_like": np.zeros_like, "ones_like": lambda x: np.ones_like(x, dtype=np.int16), "full_like": lambda x: np.full_like(x, 3), "arange": lambda x: np.arange(7, like=x), "arange-step": lambda x: np.arange(2, 9, 3, like=x), "arange-dtype": lambda x: np.arange(1, 6, dtype=np.float32, like=x), "arange-down": lambda x: np.arange(9, 2, -2, like=x), "arange-float": lambda x: np.arange(1.0, 2.5, 0.25, like=x), "arange-empty": lambda x: np.arange(3, 3, like=x), "full_like-shape": lambda x: np.full_like(x, 3, shape=(2, 2)), "copy": np.copy, "real": np.real, "imag": np.imag, "atleast_1d": np.atleast_1d, "atleast_3d": lambda x: np.atleast_3d(x[0]), "atleast_2d": lambda x: np.atleast_2d(x[0, 0]),
        "diff": np.diff, "diff-2": lambda x: np.diff(x, n=2, axis=0), "diff-append": lambda x: np.diff(x, axis=0, prepend=0, append=x[:1]), "sizes": lambda x: (np.shape(x), np.ndim(x), np.size(x), np.size(x, 1)),
        "unstack": lambda x: list(x),
    }  # fmt: skip
    cases = []
    for name, f in functions.items():
        cases += [Case(f"{name}-{np.dtype(d).name}", f, (data((6, 3, 4), d),)) for d in (np.float32, np.int8, np.bool_)]
    return cases


def _indexing() -> list[Case]:
    indices: dict[str, Any] = {
        "1": 1, "-1": -1, "1:": np.s_[1:], "::2": np.s_[::2], "::-1": np.s_[::-1], "5:1:-2": np.s_[5:1:-2], ":, 1": np.s_[:, 1], "..., 0": np.s_[..., 0], "None": None, ":, None, 1:3": np.s_[:, None, 1:3], "2, 1, 3": (2, 1, 3), "...": ..., "()": (), "1:1": np.s_[1:1], "-3:-1, ..., ::-2": np.s_[-3:-1, ..., ::-2], "9:": np.s_[9:], "int64": np.int64(2), "0-d": np.array(1), "None, ..., None": np.s_[None, ..., None], "1:-1, :, -1": np.s_[1:-1, :, -1],
    }  # fmt: skip
    cases = [Case(f"[{name}]", lambda x, i=index: x[i], (data((6, 3, 4)),)) for name, index in indices.items()]
    traced: dict[str, Callable[..., Any]] = {
        "i": lambda x, i: x[i],
        ":, i": lambda x, i: x[:, i],
        "i, 1:, i": lambda x, i: x[i, 1:, i],
        "..., i": lambda x, i: x[..., i],
        "-i": lambda x, i: x[-i],
    }
    for name, f in traced.items():
        cases += [
            Case(f"[traced {name}]-{np.dtype(d).name}", f, (data((6, 3, 4)), np.array(2, d)))
            for d in (np.int32, np.int64)
        ]
    cases.append(Case("[traced uint8]", lambda x, i: x[i], (data((6, 3, 4)), np.array(2, np.uint8))))
    rows, columns = np.array([[1, -1, 0], [5, 5, -6]]), np.array([2, 0, -3])
    arrays: dict[str, Callable[..., Any]] = {
        "[i]": lambda x, i, j: x[i], "[:, j]": lambda x, i, j: x[:, j], "[i, j]": lambda x, i, j: x[i, j], "[i, :, j]": lambda x, i, j: x[i, :, j], "[1:, j, None]": lambda x, i, j: x[1:, j, None], "[2, ..., j]": lambda x, i, j: x[2, ..., j],
        "[list]": lambda x, i, j: x[[0, -1], 1:], "[known]": lambda x, i, j: x[:, np.array([2, 1, 1])], "take": lambda x, i, j: np.take(x, i), "take-axis": lambda x, i, j: np.take(x, j, axis=1), "take-wrap": lambda x, i, j: np.take(x, 4 * j, -1, mode="wrap"), "take-clip": lambda x, i, j: np.take(x, 4 * i, 0, mode="clip"),
        "take_along_axis": lambda x, i, j: np.take_along_axis(x, j[None, :, None], 1), "take_along_axis-none": lambda x, i, j: np.take_along_axis(x, j, None), "take_along_axis-0": lambda x, i, j: np.take_along_axis(x, i[:, :, None], 0),
    }  # fmt: skip
    for name, f in arrays.items():
        cases += [
            Case(f"{name}-{np.dtype(d).name}", f, (data((6, 3, 4), d), rows, columns))
            for d in (np.float32, np.int8, np.bool_)
        ]
    return cases


def _selection() -> list[Case]:
    x = data((9, 4))
    n = np.where(np.arange(36).reshape(9, 4) % 7 == 0, np.nan, x)
    functions: dict[str, Callable[[Any], Any]] = {
        "where": lambda x: np.where(x > 0, x, -x), "where-cond": lambda x: np.where(x, 1, 2), "where-broadcast": lambda x: np.where(x[:, :1] > 0, x, x[0]), "where-known": lambda x: np.where([True, False, True, False], x, 0),
        "clip": lambda x: np.clip(x, -1, 2), "clip-low": lambda x: np.clip(x, 0, None), "clip-method": lambda x: x.clip(None, 1), "clip-array": lambda x: np.clip(x, x[0], 3), "round": np.round, "round-2": lambda x: np.round(x, 2), "around": np.around, "nan_to_num": np.nan_to_num,
        "isclose": lambda x: np.isclose(x, 1.0, rtol=0.5), "allclose": lambda x: np.allclose(x, x + 1e-9), "array_equal": lambda x: np.array_equal(x, x), "array_equal-no": lambda x: np.array_equal(x, x + 1), "array_equal-shape": lambda x: np.array_equal(x, x[:1]), "result_type": lambda x: np.zeros(1, np.result_type(x, np.float64)),
    }  # fmt: skip
    cases = []
    for name, f in functions.items():
        cases += [Case(f"{name}-{np.dtype(d).name}", f, (data((9, 4), d),)) for d in (np.float32, np.int32)]
    cases += [
        Case("nan_to_num-nan", np.nan_to_num, (SPECIAL,)),
        Case("isclose-nan", lambda x: np.isclose(x, x, equal_nan=True), (n,)),
        Case("max-nan", np.max, (n,)),
        Case("clip-uint8", lambda x: np.clip(x, -1, 300), (np.arange(9, dtype=np.uint8),)),
    ]
    return cases


def _composed() -> list[Case]:
    rows = {**composed_cases.DIFFERENTIABLE, **composed_cases.OTHERS}
    return [Case(f"composed-{name}", function, arrays) for name, (function, arrays) in rows.items()]


def _options() -> list[Case]:
    """``where=``, ``mean=`` and ``order=``."""
    functions: dict[str, Callable[..., Any]] = {
        "sum-where": lambda x, m: np.sum(x, where=m), "sum-where-0": lambda x, m: np.sum(x, 0, where=m), "sum-where-row": lambda x, m: x.sum(1, where=m[0], keepdims=True), "sum-where-initial": lambda x, m: np.sum(x, 0, where=m, initial=3), "prod-where": lambda x, m: np.prod(x, 1, where=m),
        "max-where": lambda x, m: np.max(x, 0, where=m, initial=-1), "min-where": lambda x, m: np.min(x, where=m, initial=1), "max-where-initial": lambda x, m: np.max(x, 1, where=m, initial=0), "mean-where": lambda x, m: np.mean(x, where=m), "mean-where-1": lambda x, m: np.mean(x, 1, where=m, keepdims=True),
        "var-where": lambda x, m: np.var(x, 0, where=m), "std-where": lambda x, m: np.std(x, where=m, ddof=1), "std-where-kept": lambda x, m: np.std(x, 1, where=m, keepdims=True), "any-where": lambda x, m: np.any(x > 2, 0, where=m), "all-where": lambda x, m: np.all(x > -3, 1, where=m), "reduce-where": lambda x, m: np.add.reduce(x, where=m), "sum-where-known": lambda x, m: np.sum(x, where=np.arange(4) % 2 == 0),
        "sum-known-where": lambda x, m: np.sum(np.arange(36.0).reshape(9, 4), 0, where=m), "sum-where-true": lambda x, m: np.sum(x, where=True),
        "var-mean": lambda x, m: np.var(x, 0, mean=np.mean(x, 0, keepdims=True)), "std-mean": lambda x, m: np.std(x, 1, mean=np.mean(x, 1, keepdims=True), ddof=1), "var-other-mean": lambda x, m: np.var(x, mean=np.float32(0.5)), "var-mean-wide": lambda x, m: np.var(x, 0, mean=np.full((1, 4), 0.5)),
        "reshape-F": lambda x, m: np.reshape(x, (6, -1), order="F"), "reshape-method-F": lambda x, m: x.reshape(3, 12, order="F"), "ravel-F": lambda x, m: np.ravel(x, "F"), "flatten-F": lambda x, m: x.flatten("F"), "== None": lambda x, m: x == None, "!= None": lambda x, m: x != None, "== text": lambda x, m: x == "a",  # noqa: E711
    }  # fmt: skip
    cases = []
    for name, f in functions.items():
        cases += [
            Case(f"{name}-{np.dtype(d).name}", f, (data((9, 4), d), data((9, 4), bool, 1)))
            for d in (np.float32, np.float16, np.int32)
        ]
    rolls: dict[str, Callable[..., Any]] = {
        "roll-traced": lambda x, n: np.roll(x, n), "roll-traced-0": lambda x, n: np.roll(x, n, axis=0), "roll-traced--1": lambda x, n: np.roll(x, -n, -1),
        "roll-traced-both": lambda x, n: np.roll(x, (n, 2), (0, 1)), "roll-traced-flat": lambda x, n: np.roll(x, (n, 1)), "roll-traced-twice": lambda x, n: np.roll(x, n, (1, 1)),
        "roll-traced-array": lambda x, n: np.roll(x, np.stack([n, -n]), (0, 1)), "unravel_index": lambda x, n: np.unravel_index(np.abs(n), (5, 9)), "unravel_index-F": lambda x, n: np.unravel_index(np.stack([abs(n), n * n % 90]), (5, 9, 2), order="F"),
    }  # fmt: skip
    for name, f in rolls.items():
        cases += [Case(f"{name}-{n}", f, (data((9, 4)), np.array(n))) for n in (0, 2, -3, 40)]
    if hasattr(np.linalg, "vecdot"):
        cases.append(
            Case(
                "linalg.vecdot-axis", lambda a, b: np.linalg.vecdot(a, b, axis=0), (data((9, 4)), data((9, 4), seed=1))
            )
        )
    return cases


def all_cases() -> list[Case]:
    """Every case of the table."""
    kinds = (
        _unary, _binary, _bits, _nextafter, _scalars, _reductions, _arguments, _cumulative, _products, _movement,
        _indexing, _selection, _composed, _options,
    )  # fmt: skip
    return [case for kind in kinds for case in kind()]
