# SPDX-License-Identifier: Apache-2.0
"""The table behind test_special_points.py: every NumPy function of the registry where gradients go wrong.

Ufuncs need no row: they are tried on all values (one operand) or all pairs of values (two operands). Any other function
has a row: functions of a NumPy namespace ``n`` and of arrays, so that NumPy, shardwise and ``jax.numpy`` run the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from shardwise.numpy import linalg
from shardwise.numpy._registry import FUNCTIONS
from shardwise.numpy.elementwise import RULES
from shardwise.recording.tracing import Tracer
from tests.conformance.jax.special_arrays import (
    REDUCED,
    ROWS,
    Arrays,
    Function,
    Row,
    constant,
    finite,
    matrices,
    pairs,
    rows,
    size_one,
    tied,
    two_rows,
    values,
    weighted,
)
from tests.conformance.jax.special_rows import NUMERICAL_ROWS
from tests.op.catalogue import CASES

DTYPES = ("float32", "float64")
WIDE = "float32 in float64"  # XLA flushes subnormal numbers to zero; those of float32 are none in float64
RUNS = (*DTYPES, WIDE)


class Points(NamedTuple):
    """A function and the arrays at which its gradient is taken."""

    name: str  # the NumPy function, then the variant: "clip-low"
    function: Function
    arrays: Callable[[str], Arrays]  # of a dtype
    in_jax: bool = True  # whether JAX has a derivative of it
    in_numpy: bool = True


# ---- functions ------------------------------------------------------------------------------------------------------


def _axes(name: str) -> dict[str, Row]:
    """A reduction over rows, over columns of ties, and over everything."""
    return {
        name: (lambda n, x: getattr(n, name)(x), REDUCED),
        f"{name}-rows": (lambda n, x: getattr(n, name)(x, axis=1), ROWS),
        f"{name}-columns": (lambda n, x: getattr(n, name)(x, axis=0, keepdims=True), (tied, size_one)),
    }


def _cumulative(name: str) -> dict[str, Row]:
    return {
        name: (lambda n, x: getattr(n, name)(x), (finite, size_one)),
        f"{name}-rows": (lambda n, x: getattr(n, name)(x, axis=1), ROWS),
    }


def _norms() -> dict[str, Row]:
    orders: dict[str, Any] = {"1": 1, "2": 2, "3": 3, "half": 0.5, "inf": np.inf, "-inf": -np.inf, "0": 0}
    found: dict[str, Row] = {"linalg.norm": (lambda n, x: n.linalg.norm(x), REDUCED)}
    for name, order in orders.items():
        found[f"linalg.norm-{name}"] = (lambda n, x, order=order: n.linalg.norm(x, order, axis=1), ROWS)
    for name in ("1", "inf", "-inf"):
        found[f"linalg.norm-matrix-{name}"] = (lambda n, x, o=orders[name]: n.linalg.norm(x, o), REDUCED)
    return found


# Static exponents, operators with numbers, methods of ufuncs, and updates.
OPERATORS: dict[str, Row] = {
    **{
        f"power-static {e!r}": (lambda n, x, e=e: x**e, (values,))
        for e in (0, 1, 2, 3, 4, -1, -2, 0.0, 0.5, 1.5, 2.0, 3.0, -1.0, -0.5)
    },
    **{f"power-base {b!r}": (lambda n, x, b=b: b**x, (values,)) for b in (0.0, 1.0, 2.0, -1.0)},
    **{f"remainder-by {d!r}": (lambda n, x, d=d: x % d, (values,)) for d in (1, 0.5, -1.5, 0.1)},
    "multiply-self": (lambda n, x: x * x, (values,)),
    "maximum-zero": (lambda n, x: n.maximum(x, 0), (values,)),
    "minimum-self": (lambda n, x: n.minimum(x, x), (values,)),
    "maximum-accumulate": (lambda n, x: n.maximum.accumulate(x, axis=1), ROWS),
    "minimum-accumulate": (lambda n, x: n.minimum.accumulate(x, axis=1), ROWS),
    "add-accumulate": (lambda n, x: n.add.accumulate(x, axis=1), ROWS),
    "multiply-accumulate": (lambda n, x: n.multiply.accumulate(x, axis=1), ROWS),
    "maximum-reduce": (lambda n, x: n.maximum.reduce(x, axis=1), ROWS),
    "multiply-reduce": (lambda n, x: n.multiply.reduce(x, axis=1), ROWS),
    "logaddexp-softplus": (lambda n, x: n.logaddexp(x, 0.0), (values,)),
}


def _op(name: str, *xs: Any, **attrs: Any) -> Any:
    """An op that no NumPy function records; in JAX the function of ``jax.lax`` with its name."""
    if isinstance(xs[0], Tracer):
        return xs[0]._trace.emit(name, xs, {key: np.int32(value) for key, value in attrs.items()} or None)
    return getattr(sys.modules["jax.lax"], name.partition(".")[2])(*xs, **attrs)


def _times(n: Any, x: Any, places: list[int], y: Any) -> Any:
    """Columns of ``x`` multiplied by those of ``y``; JAX has a derivative only one column after the other."""
    if n is np:
        return x.at[:, n.asarray(places)].multiply(y[:, : len(places)])
    for i, place in enumerate(places):
        x = x.at[:, place].multiply(y[:, i], unique_indices=True)
    return x


# Ops and updates that NumPy itself does not have.
OP_ROWS: dict[str, Row] = {
    **{
        name: (lambda n, x, name=name: _op(name, x), (values,))
        for name in (case.name for case in CASES if case.special_points == "values")
    },
    "stablehlo.clamp": (lambda n, x, y: _op("stablehlo.clamp", y, x, y + 1), (pairs,)),
    "stablehlo.clamp-empty": (lambda n, x, y: _op("stablehlo.clamp", y, x, y - 1), (pairs,)),
    "stablehlo.reduce_precision": (
        lambda n, x: _op("stablehlo.reduce_precision", x, exponent_bits=5, mantissa_bits=10), (values,),
    ),
    "at-set": (lambda n, x, y: x.at[:, n.asarray([0, 3])].set(y[:, :2]), (two_rows,)),
    "at-add": (lambda n, x, y: x.at[:, n.asarray([0, 0, 3])].add(y[:, :3]), (two_rows,)),
    "at-multiply": (lambda n, x, y: x.at[:, n.asarray([0, 3])].multiply(y[:, :2], unique_indices=True), (two_rows,)),
    "at-subtract": (lambda n, x, y: x.at[:, n.asarray([0, 0, 3])].subtract(y[:, :3]), (two_rows,)),
    "at-multiply-twice": (lambda n, x, y: _times(n, x, [0, 0, 3], y), (two_rows,)),
    "at-divide": (lambda n, x, y: x.at[:, n.asarray([0, 3])].divide(y[:, :2], unique_indices=True), (weighted,)),
    "at-power": (lambda n, x, y: x.at[:, n.asarray([0, 3])].power(y[:, :2] + 2, unique_indices=True), (weighted,)),
    "at-min": (lambda n, x, y: x.at[:, n.asarray([0, 0, 3])].min(y[:, :3]), (two_rows,)),
    "at-max": (lambda n, x, y: x.at[:, n.asarray([0, 0, 3])].max(y[:, :3]), (two_rows,)),
    "at-mask": (lambda n, x, y: x.at[np.array([True, False] * 11 + [True])].add(y[0, 0]), (two_rows,)),
    "at-box": (lambda n, x, y: x.at[1:3, 2:].set(y[:2, :3]), (two_rows,)),
    "at-row": (lambda n, x, y: x.at[n.argmax(x[4])].set(y[0]), (two_rows,)),
    "row": (lambda n, x: x[n.argmax(x[4])], ROWS),
}  # fmt: skip

FUNCTION_ROWS: dict[str, Row] = {
    **{k: row for name in ("sum", "mean", "prod", "max", "min", "ptp", "var", "std") for k, row in _axes(name).items()},
    **{k: row for name in ("amax", "amin", "argmax", "argmin") for k, row in _axes(name).items()},
    **{k: row for name in ("any", "all", "count_nonzero") for k, row in _axes(name).items()},
    **{k: row for name in ("cumsum", "cumprod") for k, row in _cumulative(name).items()},
    **_norms(),
    "max-initial": (lambda n, x: n.max(x, axis=1, initial=2.0), (finite,)),
    "min-initial": (lambda n, x: n.min(x, axis=1, initial=1.0), (finite,)),
    "prod-initial": (lambda n, x: n.prod(x, axis=1, initial=0.0), (finite,)),
    "var-ddof": (lambda n, x: n.var(x, axis=0, ddof=1), (tied, constant)),
    "std-ddof": (lambda n, x: n.std(x, axis=0, ddof=1), (tied, constant)),
    "cumulative_sum": (lambda n, x: n.cumulative_sum(x, axis=1, include_initial=True), ROWS),
    "cumulative_prod": (lambda n, x: n.cumulative_prod(x, axis=1, include_initial=True), ROWS),
    "clip": (lambda n, x: n.clip(x, -1, 2), (values,)),
    "clip-low": (lambda n, x: n.clip(x, 0, None), (values,)),
    "clip-high": (lambda n, x: n.clip(x, None, 1), (values,)),
    "clip-arrays": (lambda n, x, y: n.clip(x, y, 2 * y), (pairs,)),
    "clip-crossed": (lambda n, x, y: n.clip(x, y, 1.0), (pairs,)),
    "where": (lambda n, x, y: n.where(x > y, x, y), (pairs,)),
    "where-equal": (lambda n, x, y: n.where(x == y, x * y, x + y), (pairs,)),
    "nan_to_num": (lambda n, x: n.nan_to_num(x), (values,)),
    "nan_to_num-given": (lambda n, x: n.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0), (values,)),
    "round": (lambda n, x: n.round(x), (values,)),
    "round-tenths": (lambda n, x: n.round(x, 1), (values,)),
    "around": (lambda n, x: n.around(x, -1), (values,)),
    "diff": (lambda n, x: n.diff(x, axis=1), ROWS),
    "isclose": (lambda n, x, y: n.isclose(x, y), (pairs,)),
    "allclose": (lambda n, x, y: n.allclose(x, y), (two_rows,)),
    "array_equal": (lambda n, x, y: n.array_equal(x, y), (two_rows,)),
    "dot": (lambda n, x, y: n.dot(x, y), (matrices,)),
    "inner": (lambda n, x, y: n.inner(x, y), (matrices,)),
    "outer": (lambda n, x, y: n.outer(x, y), (matrices,)),
    "vdot": (lambda n, x, y: n.vdot(x, y), (matrices,)),
    "kron": (lambda n, x, y: n.kron(x, y), (matrices,)),
    "tensordot": (lambda n, x, y: n.tensordot(x, y, 1), (matrices,)),
    "einsum": (lambda n, x, y: n.einsum("ij,jk->ik", x, y), (matrices,)),
    "einsum-three": (lambda n, x, y: n.einsum("ij,ij,ij->i", x, x, y), (matrices,)),
    "linalg.matmul": (lambda n, x, y: n.linalg.matmul(x, y), (matrices,)),
    "linalg.vecdot": (lambda n, x, y: n.linalg.vecdot(x, y), (matrices,)),
    "linalg.outer": (lambda n, x, y: n.linalg.outer(x[0], y[1]), (matrices,)),
    "linalg.tensordot": (lambda n, x, y: n.linalg.tensordot(x, y, axes=2), (matrices,)),
    "linalg.trace": (lambda n, x: n.linalg.trace(x[:5]), (rows,)),
    "linalg.diagonal": (lambda n, x: n.linalg.diagonal(x[10:15]), (rows,)),
    "linalg.matrix_transpose": (lambda n, x: n.linalg.matrix_transpose(x), ROWS),
    "trace": (lambda n, x: n.trace(x[:5]), ROWS),
    "diagonal": (lambda n, x: n.diagonal(x[10:15]), ROWS),
    "diag": (lambda n, x: n.diag(x[10:15]), ROWS),
    "diag-vector": (lambda n, x: n.diag(x[10]), ROWS),
    "tril": (lambda n, x: n.tril(x), ROWS),
    "triu": (lambda n, x: n.triu(x, -10), ROWS),
    "matrix_transpose": (lambda n, x: n.matrix_transpose(x), ROWS),
    "transpose": (lambda n, x: n.transpose(x), ROWS),
    "swapaxes": (lambda n, x: n.swapaxes(x, 0, 1), ROWS),
    "moveaxis": (lambda n, x: n.moveaxis(x, 0, 1), ROWS),
    "rollaxis": (lambda n, x: n.rollaxis(x, 1), ROWS),
    "reshape": (lambda n, x: n.reshape(x, (5, -1)), ROWS),
    "ravel": (lambda n, x: n.ravel(x), ROWS),
    "squeeze": (lambda n, x: n.squeeze(x[:1]), ROWS),
    "expand_dims": (lambda n, x: n.expand_dims(x, 1), ROWS),
    "atleast_1d": (lambda n, x: n.atleast_1d(x[0, 0]), ROWS),
    "atleast_2d": (lambda n, x: n.atleast_2d(x[0]), ROWS),
    "atleast_3d": (lambda n, x: n.atleast_3d(x), ROWS),
    "broadcast_to": (lambda n, x: n.broadcast_to(x, (2, *x.shape)), ROWS),
    "broadcast_arrays": (lambda n, x: n.broadcast_arrays(x, x[:1]), ROWS),
    "flip": (lambda n, x: n.flip(x), ROWS),
    "fliplr": (lambda n, x: n.fliplr(x), ROWS),
    "flipud": (lambda n, x: n.flipud(x), ROWS),
    "rot90": (lambda n, x: n.rot90(x), ROWS),
    "roll": (lambda n, x: n.roll(x, 2, axis=1), ROWS),
    "tile": (lambda n, x: n.tile(x, (2, 1)), ROWS),
    "repeat": (lambda n, x: n.repeat(x, 2, axis=0), ROWS),
    "pad": (lambda n, x: n.pad(x, 1), ROWS),
    "pad-edge": (lambda n, x: n.pad(x, 1, mode="edge"), ROWS),
    "concatenate": (lambda n, x: n.concatenate([x, x[:2]]), ROWS),
    "stack": (lambda n, x: n.stack([x, x]), ROWS),
    "vstack": (lambda n, x: n.vstack([x, x]), ROWS),
    "hstack": (lambda n, x: n.hstack([x, x]), ROWS),
    "dstack": (lambda n, x: n.dstack([x, x]), ROWS),
    "column_stack": (lambda n, x: n.column_stack([x, x]), ROWS),
    "append": (lambda n, x: n.append(x, x, axis=0), ROWS),
    "split": (lambda n, x: n.split(x, 5, axis=1), ROWS),
    "array_split": (lambda n, x: n.array_split(x, 2, axis=1), ROWS),
    "hsplit": (lambda n, x: n.hsplit(x, 5), ROWS),
    "vsplit": (lambda n, x: n.vsplit(x[:4], 2), ROWS),
    "dsplit": (lambda n, x: n.dsplit(x[None], 5), ROWS),
    "unstack": (lambda n, x: n.unstack(x, axis=1), ROWS),
    "take": (lambda n, x: n.take(x, n.asarray([0, 0, 3]), axis=1), ROWS),
    "take_along_axis": (lambda n, x: n.take_along_axis(x, n.argmax(x, 1, keepdims=True), 1), ROWS),
    "zeros_like": (lambda n, x: n.zeros_like(x), ROWS),
    "ones_like": (lambda n, x: n.ones_like(x), ROWS),
    "empty_like": (lambda n, x: 0 * n.empty_like(x, dtype=np.int32), ROWS),
    "full_like": (lambda n, x: n.full_like(x, x[0, 0]), ROWS),
    "copy": (lambda n, x: n.copy(x), ROWS),
    "sort": (lambda n, x: n.sort(x, axis=1), (finite,)),
    "median": (lambda n, x: n.median(x, axis=1), (finite,)),
    "quantile": (lambda n, x: n.quantile(x, 0.3, axis=1), (finite,)),
    "percentile": (lambda n, x: n.percentile(x, 30, axis=0), (finite,)),
    "real": (lambda n, x: n.real(x), ROWS),
    "imag": (lambda n, x: n.imag(x), ROWS),
    "astype": (lambda n, x: n.astype(n.astype(x, np.float16), np.float64), ROWS),
    "astype-integer": (lambda n, x: n.astype(x, np.int32), (finite,)),
}  # fmt: skip

# Functions that return no array, or none that depends on one.
WITHOUT_ARRAY = {"shape", "ndim", "size", "result_type", "iscomplexobj", "isrealobj", "arange", "argsort", "lexsort"}
# Functions of complex numbers, transforms and factorizations have no special points of this kind. Their values and
# gradients are compared in test_linalg.py here, tests/op/test_fft.py, tests/op/test_complex.py and tests/api.
OTHER_TESTS = {
    "angle", "real_if_close",
    *(f"linalg.{name}" for name in (
        "cholesky", "cond", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matrix_rank", "pinv", "qr",
        "slogdet", "solve", "svd", "svdvals", "tensorinv", "tensorsolve",
    )),
    *(f"fft.{name}" for name in (
        "fft", "fft2", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft", "irfft2",
        "irfftn", "rfft", "rfft2", "rfftn",
    )),
}  # fmt: skip


def weighted_sum(result: Any, dtype: str) -> Any:
    """The loss: all elements of all results, each with another weight."""
    results = result if isinstance(result, (list, tuple)) else [result]
    total: Any = 0.0
    for x in results:
        weights = np.array([1 + (i % 7) / 8 for i in range(x.size)], dtype).reshape(x.shape)
        total = total + (x.astype(dtype) * weights).sum()
    return total


def arrays_of(point: Points, run: str) -> Arrays | None:
    """The arrays of a run; None for a wide one of a function that is not elementwise."""
    if run != WIDE:
        return point.arrays(run)
    return tuple(x.astype("float64") for x in point.arrays("float32")) if is_elementwise(point) else None


def is_elementwise(point: Points) -> bool:
    return point.arrays in (values, pairs)


def registry_name(function: Any) -> str:
    """``linalg.norm`` of ``np.linalg.norm``."""
    module = (getattr(function, "__module__", None) or "numpy").removeprefix("numpy").removeprefix(".")
    return f"{module}.{function.__name__}" if module else str(function.__name__)


def takes_floats(ufunc: np.ufunc) -> bool:
    return any(set(loop.split("->")[0]) <= {"f", "d"} for loop in ufunc.types)


def ufunc_points() -> Iterator[Points]:
    """Every ufunc with a traced form, unless it takes integers alone."""
    for ufunc in (*RULES, *linalg.UFUNCS):
        if takes_floats(ufunc):
            name = ufunc.__name__
            arrays = matrices if ufunc.signature else values if ufunc.nin == 1 else pairs
            yield Points(name, lambda n, *xs, name=name: getattr(n, name)(*xs), arrays, name != "nextafter")


def all_points() -> list[Points]:
    """Every ufunc, and every row at each of its arrays."""
    found = list(ufunc_points())
    for name, (function, inputs) in (FUNCTION_ROWS | NUMERICAL_ROWS | OPERATORS | OP_ROWS).items():
        for arrays in inputs:
            variant = f"{name} {arrays.__name__}" if len(inputs) > 1 else name
            found.append(Points(variant, function, arrays, in_numpy=name not in OP_ROWS))
    return found


def names_without_row() -> set[str]:
    """Functions of the registry that nothing here tries."""
    tried = {name.partition("-")[0] for name in FUNCTION_ROWS | NUMERICAL_ROWS}
    return {registry_name(function) for function in FUNCTIONS} - tried - WITHOUT_ARRAY - OTHER_TESTS
