# SPDX-License-Identifier: Apache-2.0
"""Typed builders of the StableHLO ops that implement NumPy's functions. They do not check their arguments.

broadcast(x, (4, 3))      %1 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<3xf32>) -> tensor<4x3xf32>
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _core
from ..dtypes import dtype_name, integer_range, is_inexact, is_integer, is_signed, numpy_dtype
from ..errors import DTypeError, Error, ShapeError, message, shown, warn
from ..recording.tracing import Trace, Tracer, WeakTracer
from ._unsupported import unsupported_option

__all__ = [
    "bitcast",
    "broadcast",
    "broadcast_dims",
    "broadcast_shape",
    "cast",
    "common_trace",
    "compare",
    "complex_of",
    "convert",
    "expect_real",
    "imag_part",
    "iota",
    "normalize_axes",
    "normalize_axis",
    "operand",
    "prefix",
    "real_part",
    "reduce",
    "reduce_by",
    "refuse",
    "reshape",
    "reverse",
    "select",
    "shape_of",
    "slice_",
    "splat",
    "total_order",
    "transpose",
    "truth",
]

Shape = tuple[int, ...]
DType = np.dtype[Any]

_EnumValue = _core.ir.EnumValue
_DIRECTIONS = {d: _EnumValue("stablehlo", "comparison_direction", d) for d in ("EQ", "NE", "LT", "LE", "GT", "GE")}
_TYPES = {t: _EnumValue("stablehlo", "comparison_type", t) for t in ("FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")}


def refuse(function: str, **options: tuple[Any, Any]) -> None:
    """Raise UnsupportedError for the first option that is not at its default; each is (value, default)."""
    for name, (value, default) in options.items():
        if value is not default and not (isinstance(value, (bool, str, int)) and value == default):
            raise unsupported_option(f"np.{function}", name, value)


def common_trace(values: Sequence[Any]) -> Trace:
    """The trace of the first tracer among ``values``."""
    for value in values:
        if isinstance(value, Tracer):
            return value._trace
    raise AssertionError("a traced call has a tracer among its arguments")


def splat(trace: Trace, value: Any, shape: Shape, dtype: DType) -> Tracer:
    """A constant of one repeated element."""
    try:
        element = np.array(value, dtype)
    except OverflowError as error:
        raise OverflowError(message("constant", f"a number must fit {dtype.name}", value, str(error))) from None
    except TypeError:
        raise DTypeError(message("constant", f"a number must be of {dtype.name}", shown(value))) from None
    try:
        array = np.ndarray(shape, dtype, element, 0, (0,) * len(shape))
    except ValueError:
        raise _too_large(shape, dtype) from None
    return trace.constant(array)


_MOST_DIMS = 64  # of a NumPy array


def _too_large(shape: Shape, dtype: DType) -> ShapeError:
    """NumPy limits the dims and the number of elements of an array, although a constant stores only one."""
    if len(shape) > _MOST_DIMS:
        must_hold = f"a constant must have at most {_MOST_DIMS} dims, NumPy's limit"
        return ShapeError(message("array", must_hold, len(shape), "reshape the array that it broadcasts to"))
    got = f"{dtype.name}{list(shape)}"
    return ShapeError(message("array", "the size in bytes must fit into 63 bits", got, "use a smaller shape"))


def operand(trace: Trace, x: Any, dtype: DType, shape: Shape | None = None) -> Tracer:
    """``x`` as a tracer of ``dtype``, broadcast to ``shape`` if given."""
    kind = type(x)
    if kind is not Tracer:
        if kind is float or kind is int or kind is bool or kind is complex:
            return splat(trace, x, () if shape is None else shape, dtype)
        if isinstance(x, np.generic) or (isinstance(x, np.ndarray) and x.ndim == 0):
            _refuse_imaginary_parts(x.dtype, dtype)
            return splat(trace, x.astype(dtype), () if shape is None else shape, dtype)
        x = trace.lift(x)
    elif x._trace is not trace:
        x = trace.lift(x)
    if x.dtype != dtype:
        if kind is WeakTracer and is_integer(dtype):
            _limit(trace, x, dtype)
        x = convert(x, dtype)
    return x if shape is None or x.shape == shape else broadcast(x, shape)


def _limit(trace: Trace, x: Any, dtype: DType) -> None:
    """A number that the dtype of the array beside it cannot hold is an error, as in NumPy."""
    low, high = integer_range(dtype)
    must_hold = f"a Python int must fit {dtype.name}, the dtype that the program uses it in"
    way_out = "convert the array beside it with astype"
    trace.limit(x, (low, high), OverflowError, must_hold, way_out)


def convert(x: Tracer, dtype: DType) -> Tracer:
    """``x`` in another dtype.

    Raises:
        DTypeError: complex numbers to real ones; :func:`cast` drops the imaginary parts.
    """
    if x.dtype == dtype:
        return x
    if dtype.kind == "b":
        return truth(x)
    _refuse_imaginary_parts(x.dtype, dtype)
    return x._trace.emit("stablehlo.convert", (x,), None, x.shape, dtype)


def _refuse_imaginary_parts(dtype: DType, wanted: DType) -> None:
    if dtype.kind == "c" and wanted.kind not in "bc":
        must_hold = f"complex numbers cannot be used as {wanted.name}, which has no imaginary part"
        raise DTypeError(message("conversion", must_hold, dtype, "use np.real(x)"))


def cast(x: Tracer, dtype: DType) -> Tracer:
    """``x`` in the dtype that the user asked for, as ``ndarray.astype``: warns where it drops imaginary parts."""
    if x.dtype.kind == "c" and dtype.kind not in "bc":
        must_hold = f"a conversion to {dtype.name} drops the imaginary parts"
        warn("astype", must_hold, x.dtype, "use np.real(x)", category=np.exceptions.ComplexWarning)
        x = real_part(x)
    return convert(x, dtype)


def expect_real(function: str, *arrays: Any) -> None:
    """Raise DTypeError for an array of complex numbers. Arrays without a dtype are not looked at."""
    for x in arrays:
        dtype = getattr(x, "dtype", None)
        if dtype is not None and dtype.kind == "c":
            raise DTypeError(message(function, "the array must be of real numbers", dtype, "use np.real(x)"))


def real_part(x: Tracer) -> Tracer:
    """The real parts of a tracer of any dtype."""
    return x._trace.emit("stablehlo.real", (x,)) if x.dtype.kind == "c" else x


def imag_part(x: Tracer) -> Tracer:
    """The imaginary parts of a tracer of any dtype."""
    if x.dtype.kind == "c":
        return x._trace.emit("stablehlo.imag", (x,))
    return splat(x._trace, 0, x.shape, x.dtype)


def complex_of(real: Tracer, imag: Tracer) -> Tracer:
    """The complex numbers with these parts, both float32 or float64."""
    return real._trace.emit("stablehlo.complex", (real, imag))


def bitcast(x: Tracer, dtype: Any) -> Tracer:
    """The bits of ``x`` as another dtype of the same width."""
    return x._trace.emit("stablehlo.bitcast_convert", (x,), None, x.shape, np.dtype(dtype))


def truth(x: Tracer) -> Tracer:
    """The boolean mask of nonzero elements."""
    return x if x.dtype.kind == "b" else compare("NE", x, splat(x._trace, 0, x.shape, x.dtype))


def compare(direction: str, lhs: Tracer, rhs: Tracer) -> Tracer:
    """An elementwise comparison of two tracers of the same shape and dtype."""
    kind = "FLOAT" if is_inexact(lhs.dtype) else "SIGNED" if is_signed(lhs.dtype) else "UNSIGNED"
    attrs = {"comparison_direction": _DIRECTIONS[direction], "compare_type": _TYPES[kind]}
    return lhs._trace.emit("stablehlo.compare", (lhs, rhs), attrs)


def total_order(direction: str, lhs: Tracer, rhs: Tracer) -> Tracer:
    """A comparison of floats by their bits: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN."""
    attrs = {"comparison_direction": _DIRECTIONS[direction], "compare_type": _TYPES["TOTALORDER"]}
    return lhs._trace.emit("stablehlo.compare", (lhs, rhs), attrs)


def select(condition: Tracer, if_true: Tracer, if_false: Tracer) -> Tracer:
    """Elements of ``if_true`` where ``condition`` holds, else of ``if_false``; all of one shape."""
    return condition._trace.emit("stablehlo.select", (condition, if_true, if_false))


def shape_of(x: Any) -> Shape:
    """The shape of a tracer, an array, a number, or a nested list."""
    shape: Shape | None = getattr(x, "shape", None)
    return shape if shape is not None else () if isinstance(x, (int, float, complex)) else np.shape(x)


def broadcast_shape(function: str, shapes: Sequence[Shape]) -> Shape:
    """The common shape by NumPy's rule. Raises ShapeError when there is none."""
    result = shapes[0]
    for shape in shapes[1:]:
        if shape == result:
            continue
        if len(shape) > len(result):
            shape, result = result, shape
        merged = list(result)
        for i in range(1, len(shape) + 1):
            size, other = shape[-i], merged[-i]
            if size != other and size != 1 and other != 1:
                got = " and ".join(map(str, shapes))
                raise ShapeError(message(function, "shapes must broadcast to one", got, "reshape an operand"))
            merged[-i] = other if size == 1 else size
        result = tuple(merged)
    return result


def broadcast(x: Tracer, shape: Shape) -> Tracer:
    """Broadcast ``x`` to ``shape`` by NumPy's rule."""
    return x if x.shape == shape else broadcast_dims(x, shape, range(len(shape) - len(x.shape), len(shape)))


def broadcast_dims(x: Tracer, shape: Shape, dims: Sequence[int]) -> Tracer:
    """Broadcast ``x`` to ``shape``; dim i becomes dim ``dims[i]``. ``dims`` must increase, for speed."""
    return x._trace.emit("stablehlo.broadcast_in_dim", (x,), {"broadcast_dimensions": tuple(dims)}, shape, x.dtype)


def reshape(x: Tracer, shape: Shape) -> Tracer:
    """The elements of ``x`` in row-major order in another shape."""
    return x if x.shape == shape else x._trace.emit("stablehlo.reshape", (x,), None, shape, x.dtype)


def transpose(x: Tracer, permutation: Sequence[int]) -> Tracer:
    """Dim i of the result is dim ``permutation[i]`` of ``x``."""
    permutation = tuple(permutation)
    if permutation == tuple(range(len(permutation))):
        return x
    return x._trace.emit("stablehlo.transpose", (x,), {"permutation": permutation})


def reverse(x: Tracer, dims: Sequence[int]) -> Tracer:
    """Reverse ``x`` along ``dims``."""
    return x._trace.emit("stablehlo.reverse", (x,), {"dimensions": tuple(dims)}) if dims else x


def slice_(x: Tracer, start: Sequence[int], limit: Sequence[int], strides: Sequence[int] | None = None) -> Tracer:
    """The slice from ``start`` to ``limit`` with ``strides``."""
    strides = (1,) * len(x.shape) if strides is None else tuple(strides)
    if tuple(limit) == x.shape and not any(start) and all(stride == 1 for stride in strides):
        return x
    attrs = {"start_indices": tuple(start), "limit_indices": tuple(limit), "strides": strides}
    return x._trace.emit("stablehlo.slice", (x,), attrs)


def iota(trace: Trace, shape: Shape, dim: int, dtype: Any = np.int64) -> Tracer:
    """The index along ``dim``."""
    return trace.emit("stablehlo.iota", (), {"iota_dimension": dim}, shape, np.dtype(dtype))


def reduce(x: Tracer, op: str, dims: Sequence[int], init: Any, keepdims: bool = False) -> Tracer:
    """Reduce ``x`` along ``dims`` with ``stablehlo.<op>``, starting from ``init``."""
    dims = tuple(sorted(dims))
    result = x
    if dims:
        start = splat(x._trace, init, (), x.dtype)
        result = x._trace.emit("stablehlo.reduce", (x, start), {"dimensions": dims}, None, None, "stablehlo." + op)
    if not keepdims:
        return result
    return reshape(result, tuple(1 if i in dims else size for i, size in enumerate(x.shape)))


def prefix(
    x: Tracer, op: str | Callable[[Tracer, Tracer], Tracer], dim: int, init: Any, from_end: bool = False
) -> Tracer:
    """The running reduction along ``dim`` with ``stablehlo.<op>``, whose neutral element is ``init``.

    ``op`` may also be an associative function of two scalars. ``from_end``: each element combines itself and those
    after it.
    """
    size = x.shape[dim]
    if size < 2:
        return x
    padding = np.zeros((len(x.shape), 2), np.int64)
    padding[dim, int(from_end)] = size - 1
    ones = (1,) * len(x.shape)
    attrs = {
        "base_dilations": ones,
        "padding": padding,
        "window_dilations": ones,
        "window_dimensions": tuple(size if i == dim else 1 for i in range(len(x.shape))),
        "window_strides": ones,
    }
    start = splat(x._trace, init, (), x.dtype)
    if isinstance(op, str):
        return x._trace.emit("stablehlo.reduce_window", (x, start), attrs, None, None, "stablehlo." + op)
    region = _combiner(x._trace, [x], lambda old, new: [op(old[0], new[0])])
    ((value, shape, name),) = x._trace.core.emit_op(
        "stablehlo.reduce_window", [x._value, start._value], attrs, regions=[region]
    )
    return Tracer(x._trace, value, shape, numpy_dtype(name))


def _combiner(trace: Trace, xs: Sequence[Tracer], combine: Callable[[list[Tracer], list[Tracer]], list[Tracer]]) -> int:
    """Record the region of a reduction of ``xs`` by a function of two rows of scalars."""
    region = trace.core.begin_region()
    results: list[Tracer] = []
    try:
        scalars = [Tracer(trace, trace.core.region_argument((), dtype_name(x.dtype)), (), x.dtype) for x in (*xs, *xs)]
        results = combine(scalars[: len(xs)], scalars[len(xs) :])
    finally:
        trace.core.end_region([x._value for x in results])
    return int(region)


def reduce_by(
    xs: Sequence[Tracer],
    inits: Sequence[Any],
    dims: Sequence[int],
    combine: Callable[[list[Tracer], list[Tracer]], list[Tracer]],
) -> list[Tracer]:
    """Reduce ``xs`` together along ``dims`` by an associative function of two rows of scalars."""
    trace = xs[0]._trace
    starts = [splat(trace, init, (), x.dtype) for x, init in zip(xs, inits)]
    region = _combiner(trace, xs, combine)
    operands = [x._value for x in (*xs, *starts)]
    values = trace.core.emit_op("stablehlo.reduce", operands, {"dimensions": tuple(sorted(dims))}, regions=[region])
    return [Tracer(trace, value, shape, numpy_dtype(name)) for value, shape, name in values]


def static_integer(function: str, name: str, value: Any, least: int, most: int) -> int:
    """Check an integer option. Raises TypeError for another type, ShapeError outside of ``[least, most]``."""
    try:
        index = int(value.__index__())
    except Error:  # of a traced value, which must be known
        raise
    except (AttributeError, TypeError):
        raise TypeError(message(function, f"{name} must be an integer", shown(value))) from None
    if not least <= index <= most:
        raise ShapeError(message(function, f"{name} must be in [{least}, {most}]", index))
    return index


def normalize_axis(function: str, axis: Any, ndim: int) -> int:
    """``axis`` counted from the front. Raises ShapeError outside ``[-ndim, ndim)``."""
    try:
        index = axis.__index__()
    except Error:  # of a traced value, which must be known
        raise
    except (AttributeError, TypeError):
        raise TypeError(message(function, "an axis must be an integer", shown(axis))) from None
    if not -ndim <= index < ndim:
        raise ShapeError(message(function, f"an axis of {ndim} dims must be in [{-ndim}, {ndim})", index))
    return int(index % ndim)


def normalize_axes(function: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """One axis, several, or None for all, counted from the front. Raises ShapeError for a repeated one."""
    if axis is None:
        return tuple(range(ndim))
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    found = tuple(normalize_axis(function, a, ndim) for a in axes)
    if len(set(found)) != len(found):
        raise ShapeError(message(function, "axes must differ", axes))
    return found
