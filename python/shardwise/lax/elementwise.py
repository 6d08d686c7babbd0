# SPDX-License-Identifier: Apache-2.0
"""Functions of single elements that NumPy does not have.

erf_inv(x)      %1 = chlo.erf_inv %x
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtypes import as_dtype, dtype_name, is_integer, numpy_dtype
from ..errors import DTypeError, ShapeError, called_as, message, shown
from ..numpy._primitives import broadcast, convert, static_integer
from ..numpy._promote import is_float, is_inexact
from ..recording.tracing import Tracer, WeakTracer
from .calls import lifted, on_arrays, recording, with_dtype
from .slicing import LARGEST

__all__ = [
    "bessel_i1e",
    "bitcast_convert_type",
    "clamp",
    "clz",
    "convert_element_type",
    "digamma",
    "erf",
    "erf_inv",
    "erfc",
    "is_finite",
    "lgamma",
    "logistic",
    "polygamma",
    "population_count",
    "reduce_precision",
    "rem",
    "rsqrt",
    "shift_right_logical",
    "zeta",
]


def _of_floats(function: str, x: Tracer, has_complex: bool = False) -> Tracer:
    if is_float(x.dtype) or (has_complex and is_inexact(x.dtype)):
        return x
    kinds = "floating-point or complex" if has_complex else "floating-point"
    raise DTypeError(message(f"lax.{function}", f"elements must be {kinds}", x.dtype.name, "convert them with astype"))


def _unary(name: str, op: str, doc: str, source: str, has_complex: bool = False) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        (lifted_x,) = lifted(x)
        return recording().emit(op, (_of_floats(name, lifted_x, has_complex),))

    function.__name__ = function.__qualname__ = name
    kinds = "floating-point or complex" if has_complex else "floating-point"
    function.__doc__ = (
        f"{doc}\n\n    Args:\n        x: an array of {kinds} elements.\n\n    Raises:\n"
        f"        DTypeError: other elements.\n\n    Source: `jax.lax.{name}`; {source}.\n    "
    )
    return on_arrays("x")(function)


erf = _unary("erf", "chlo.erf", "The error function of each element.", "CHLO erf")
erfc = _unary("erfc", "chlo.erfc", "The complementary error function, ``1 - erf(x)``.", "CHLO erfc")
erf_inv = _unary("erf_inv", "chlo.erf_inv", "The inverse of the error function; NaN outside -1 to 1.", "CHLO erf_inv")
lgamma = _unary("lgamma", "chlo.lgamma", "The logarithm of the absolute value of the gamma function.", "CHLO lgamma")
digamma = _unary("digamma", "chlo.digamma", "The derivative of the logarithm of the gamma function.", "CHLO digamma")
bessel_i1e = _unary(
    "bessel_i1e", "chlo.bessel_i1e", "The modified Bessel function of order 1, times ``exp(-|x|)``.", "CHLO bessel_i1e"
)
logistic = _unary("logistic", "stablehlo.logistic", "``1 / (1 + exp(-x))``.", "StableHLO logistic", has_complex=True)
rsqrt = _unary("rsqrt", "stablehlo.rsqrt", "``1 / sqrt(x)``.", "StableHLO rsqrt", has_complex=True)
is_finite = _unary("is_finite", "stablehlo.is_finite", "Whether each element is finite.", "StableHLO is_finite")


def _of_integers(function: str, x: Tracer) -> Tracer:
    if is_integer(x.dtype):
        return x
    raise DTypeError(message(f"lax.{function}", "elements must be integers", x.dtype.name))


def _alike(function: str, *arrays: Any) -> list[Tracer]:
    """Arrays of one dtype, broadcast to one shape. Python numbers take the dtype of the arrays."""
    typed = [x.dtype for x in arrays if hasattr(x, "dtype") and not isinstance(x, WeakTracer)]
    rows = lifted(*arrays) if not typed else [with_dtype(function, x, np.dtype(typed[0])) for x in arrays]
    dtypes = {x.dtype for x in rows}
    if len(dtypes) != 1:
        got = shown([x.dtype.name for x in rows])
        raise DTypeError(message(f"lax.{function}", "arguments must have one dtype", got, "convert them with astype"))
    try:
        shape = np.broadcast_shapes(*(x.shape for x in rows))
    except ValueError:
        got = shown([x.shape for x in rows])
        raise ShapeError(message(f"lax.{function}", "shapes must broadcast", got)) from None
    return [broadcast(x, shape) for x in rows]


@on_arrays("m", "x")
def polygamma(m: Any, x: Any) -> Any:
    """The derivative of order ``m`` of :func:`digamma`.

    Args:
        m: orders, not negative whole numbers of the dtype of ``x``.
        x: an array of floating-point elements, which broadcasts with ``m``.

    Raises:
        DTypeError: the dtypes differ, or are not floating-point.
        ShapeError: the shapes do not broadcast.

    Source: `jax.lax.polygamma`; CHLO polygamma.
    """
    rows = _alike("polygamma", m, x)
    return recording().emit("chlo.polygamma", tuple(_of_floats("polygamma", row) for row in rows))


@on_arrays("x", "q")
def zeta(x: Any, q: Any) -> Any:
    """The Hurwitz zeta function: the sum of ``1 / (q + k)**x`` over k from 0.

    Args:
        x: an array of floating-point elements.
        q: an array of the same dtype, which broadcasts with ``x``.

    Raises:
        DTypeError: the dtypes differ, or are not floating-point.
        ShapeError: the shapes do not broadcast.

    Source: `jax.lax.zeta`; CHLO zeta.
    """
    rows = _alike("zeta", x, q)
    return recording().emit("chlo.zeta", tuple(_of_floats("zeta", row) for row in rows))


@on_arrays("x")
def population_count(x: Any) -> Any:
    """The number of bits that are 1, of the dtype of ``x``.

    Args:
        x: an array of integers.

    Raises:
        DTypeError: other elements.

    Source: `jax.lax.population_count`; StableHLO popcnt.
    """
    (row,) = lifted(x)
    return recording().emit("stablehlo.popcnt", (_of_integers("population_count", row),))


@on_arrays("x")
def clz(x: Any) -> Any:
    """The number of leading bits that are 0, of the dtype of ``x``.

    Args:
        x: an array of integers.

    Raises:
        DTypeError: other elements.

    Source: `jax.lax.clz`; StableHLO count_leading_zeros.
    """
    (row,) = lifted(x)
    return recording().emit("stablehlo.count_leading_zeros", (_of_integers("clz", row),))


@on_arrays("x", "y")
def rem(x: Any, y: Any) -> Any:
    """The remainder of ``x / y`` with the sign of ``x``; of integers, ``x`` where ``y`` is 0.

    Args:
        x: an array of numbers.
        y: an array of the same dtype, which broadcasts with ``x``.

    Raises:
        DTypeError: the dtypes differ.
        ShapeError: the shapes do not broadcast.

    Source: `jax.lax.rem`; StableHLO remainder.
    """
    return recording().emit("stablehlo.remainder", tuple(_alike("rem", x, y)))


@on_arrays("x", "y")
def shift_right_logical(x: Any, y: Any) -> Any:
    """The bits of ``x`` moved right by ``y`` places, zeros from the left; 0 for places that do not exist.

    Args:
        x: an array of integers.
        y: an array of the same dtype, which broadcasts with ``x``.

    Raises:
        DTypeError: the dtypes differ, or are no integers.
        ShapeError: the shapes do not broadcast.

    Source: `jax.lax.shift_right_logical`; StableHLO shift_right_logical.
    """
    rows = _alike("shift_right_logical", x, y)
    return recording().emit(
        "stablehlo.shift_right_logical", tuple(_of_integers("shift_right_logical", row) for row in rows)
    )


@on_arrays("min", "x", "max")
def clamp(min: Any, x: Any, max: Any) -> Any:
    """``minimum(maximum(x, min), max)``.

    Args:
        min: a scalar, or an array of the shape of ``x``.
        x: an array.
        max: as ``min``.

    Raises:
        DTypeError: a bound does not have the dtype of ``x``; Python numbers take it.
        ShapeError: a bound has another shape.

    Source: `jax.lax.clamp`; StableHLO clamp.
    """
    (row,) = lifted(x)
    low, high = with_dtype("clamp", min, row.dtype), with_dtype("clamp", max, row.dtype)
    for bound in (low, high):
        if bound.dtype != row.dtype:
            got = f"{bound.dtype.name} for {row.dtype.name}"
            raise DTypeError(message("lax.clamp", "bounds must have the dtype of x", got, "convert them with astype"))
        if bound.shape not in ((), row.shape):
            got = f"{list(bound.shape)} for {list(row.shape)}"
            raise ShapeError(message("lax.clamp", "bounds must be scalars, or have the shape of x", got))
    low, high = (broadcast(bound, row.shape) if bound.shape != row.shape else bound for bound in (low, high))
    return recording().emit("stablehlo.clamp", (low, row, high))


@on_arrays("operand")
def convert_element_type(operand: Any, new_dtype: Any) -> Any:
    """The elements as another dtype; as ``astype``.

    Args:
        operand: an array.
        new_dtype: the dtype.

    Raises:
        DTypeError: no such dtype.

    Source: `jax.lax.convert_element_type`; StableHLO convert.
    """
    (x,) = lifted(operand)
    return convert(x, _dtype_of("convert_element_type", new_dtype))


def _dtype_of(function: str, dtype: Any) -> np.dtype[Any]:
    """A dtype that programs have. Raises DTypeError."""
    with called_as(f"lax.{function}", "dtype"):
        return numpy_dtype(dtype_name(as_dtype(f"lax.{function}", dtype)))


@on_arrays("operand")
def bitcast_convert_type(operand: Any, new_dtype: Any) -> Any:
    """The bits of the elements as another dtype.

    Args:
        operand: an array.
        new_dtype: the dtype. Of a narrower one, a new last dim has the parts of each element, the lowest first; of a
            wider one, the last dim has the parts, and goes.

    Raises:
        ShapeError: the last dim does not have as many parts as a wider element.
        DTypeError: no such dtype.

    Source: `jax.lax.bitcast_convert_type`; StableHLO bitcast_convert.
    """
    (x,) = lifted(operand)
    dtype = _dtype_of("bitcast_convert_type", new_dtype)
    old, new = x.dtype.itemsize, dtype.itemsize
    shape = x.shape if old == new else (*x.shape, old // new) if old > new else x.shape[:-1]
    if old < new and (x.ndim == 0 or x.shape[-1] != new // old):
        got = f"{x.dtype.name}{list(x.shape)}"
        rule = f"the last dim must have the {new // old} parts of a {dtype.name}"
        raise ShapeError(message("lax.bitcast_convert_type", rule, got))
    return recording().emit("stablehlo.bitcast_convert", (x,), None, shape, dtype)


@on_arrays("operand")
def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """The elements rounded to a floating-point format of fewer bits; the dtype stays.

    Args:
        operand: an array of floating-point elements.
        exponent_bits: from 1 to 64.
        mantissa_bits: from 0 to 64.

    Raises:
        DTypeError: other elements.
        ValueError: other numbers of bits.

    Source: `jax.lax.reduce_precision`; StableHLO reduce_precision.
    """
    (x,) = lifted(operand)
    given = {"exponent_bits": exponent_bits, "mantissa_bits": mantissa_bits}
    bits = [static_integer("lax.reduce_precision", name, n, -LARGEST, LARGEST) for name, n in given.items()]
    if not 1 <= bits[0] <= 64 or not 0 <= bits[1] <= 64:
        rule = "exponent_bits must be from 1, and mantissa_bits from 0, to 64"
        raise ValueError(message("lax.reduce_precision", rule, f"{bits[0]} and {bits[1]}"))
    attrs = {"exponent_bits": np.int32(bits[0]), "mantissa_bits": np.int32(bits[1])}
    return recording().emit("stablehlo.reduce_precision", (_of_floats("reduce_precision", x),), attrs)
