# SPDX-License-Identifier: Apache-2.0
"""Constants as traced arrays: NumPy's constructors with a tracer as ``like=``, and :mod:`shardwise.numpy`'s.

    np.asarray(table, like=ids)[ids]      gather of a constant, or of a hidden argument if the table is large
    snp.eye(4)[ids]                       gather of select(iota 0 == iota 1, 1, 0)

A traced function may close over NumPy arrays. Only an array with a traced index must be traced itself, because
``ndarray.__getitem__`` does not dispatch on its index. Outside a traced function, both forms return NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..recording.tracing import Trace, Tracer, current_trace
from . import advanced_indexing
from ._primitives import broadcast, cast, compare, convert, iota, operand, refuse, reshape, splat
from ._registry import implements
from .creation import arange
from .joining import nested
from .manipulation import sizes_of

__all__ = ["LIFTING"]

LIFTING: dict[str, Callable[..., Any]] = {}  # the functions of shardwise.numpy by name


def _lifting(name: str, traced: Callable[..., Any]) -> Callable[..., Any]:
    numpy_function = getattr(np, name)

    def function(*args: Any, **kwargs: Any) -> Any:
        if current_trace() is None or kwargs.get("like") is not None:
            return numpy_function(*args, **kwargs)
        kwargs.pop("like", None)
        return traced(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"``numpy.{name}``. In a traced function the result is traced, so that traced arrays can index it."
    )
    return function


def _lifts(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the implementation of these constructors, for ``like=`` and for shardwise.numpy."""

    def register(traced: Callable[..., Any]) -> Callable[..., Any]:
        LIFTING.update({name: _lifting(name, traced) for name in names})
        return implements(*names)(traced)

    return register


def _tracing() -> Trace:
    trace = current_trace()
    assert trace is not None  # like= is a tracer, or the caller has checked
    return trace


# ---- from values ----------------------------------------------------------------------------------------------------


@_lifts("asarray", "asanyarray", "ascontiguousarray")
def asarray(a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None) -> Tracer:
    """``numpy.asarray`` as a traced array: of a tracer, of constants, or of nested lists of both.

    Raises:
        ShapeError: nested arrays of different shapes. DTypeError: a dtype that programs cannot hold.
    """
    refuse("asarray", device=(device, None))
    trace = _tracing()
    x = nested(trace, a)
    if isinstance(x, Tracer):
        return x if dtype is None else cast(x, np.dtype(dtype))
    return trace.lift(x if dtype is None else np.asarray(x, dtype))


@_lifts("array")
def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: Any = "K",
    subok: Any = False,
    ndmin: int = 0,
    ndmax: int = 0,
) -> Tracer:
    """``numpy.array`` as a traced array; see :func:`asarray`."""
    refuse("array", subok=(subok, False), ndmax=(ndmax, 0))
    x = asarray(object, dtype)
    return reshape(x, (1,) * (ndmin - x.ndim) + x.shape)


# ---- from shapes ----------------------------------------------------------------------------------------------------


def _filled(function: str, value: int) -> Callable[..., Tracer]:
    def filled(shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None) -> Tracer:
        refuse(function, device=(device, None))
        return splat(_tracing(), value, sizes_of(shape), np.dtype(dtype))

    filled.__name__ = function
    filled.__doc__ = f"``numpy.{function}`` as a traced array: one stored element."
    return filled


zeros = _lifts("zeros")(_filled("zeros", 0))
ones = _lifts("ones")(_filled("ones", 1))
empty = _lifts("empty")(_filled("empty", 0))


@_lifts("full")
def full(shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None) -> Tracer:
    """``numpy.full`` as a traced array; ``fill_value`` may be traced."""
    refuse("full", device=(device, None))
    trace, sizes = _tracing(), sizes_of(shape)
    value = nested(trace, fill_value)
    wanted = value.dtype if dtype is None else np.dtype(dtype)
    if type(fill_value) is int:  # raises if the dtype cannot hold it
        return splat(trace, fill_value, sizes, wanted)
    if isinstance(value, Tracer):
        return broadcast(cast(value, wanted), sizes)
    return operand(trace, value, wanted, sizes)


@_lifts("tri")
def tri(N: Any, M: Any = None, k: int = 0, dtype: Any = float) -> Tracer:  # noqa: N803
    """``numpy.tri`` as a traced array: each device compares its own row and column numbers."""
    return _diagonals("LE", N, M, k, dtype)


@_lifts("eye")
def eye(
    N: Any,  # noqa: N803
    M: Any = None,  # noqa: N803
    k: int = 0,
    dtype: Any = float,
    order: Any = "C",
    *,
    device: Any = None,
) -> Tracer:
    """``numpy.eye`` as a traced array: each device compares its own row and column numbers."""
    refuse("eye", device=(device, None))
    return _diagonals("EQ", N, M, k, dtype)


@_lifts("identity")
def identity(n: Any, dtype: Any = None) -> Tracer:
    """``numpy.identity`` as a traced array."""
    return _diagonals("EQ", n, None, 0, float if dtype is None else dtype)


def _diagonals(direction: str, rows: Any, columns: Any, k: int, dtype: Any) -> Tracer:
    trace = _tracing()
    shape = sizes_of((rows, rows if columns is None else columns))
    column: Any = iota(trace, shape, 1)
    return convert(compare(direction, column - k if k else column, iota(trace, shape, 0)), np.dtype(dtype))


# ---- computed by NumPy ----------------------------------------------------------------------------------------------


def _by_numpy(name: str) -> Callable[..., Any]:
    numpy_function = getattr(np, name)

    def lifted(*args: Any, **kwargs: Any) -> Any:
        result = numpy_function(*args, **kwargs)
        if isinstance(result, tuple):  # np.linspace with its step
            return _tracing().lift(result[0]), *result[1:]
        return _tracing().lift(result)

    lifted.__name__ = name
    lifted.__doc__ = f"``numpy.{name}`` of constants as a traced array."
    return lifted


for _name in ("frombuffer", "fromfunction", "fromiter"):
    _lifts(_name)(_by_numpy(_name))
LIFTING["arange"] = _lifting("arange", arange)


def _linspace(start: Any, stop: Any, *args: Any, **kwargs: Any) -> Any:
    is_known = not isinstance(start, Tracer) and not isinstance(stop, Tracer)
    return (_by_numpy("linspace") if is_known else np.linspace)(start, stop, *args, **kwargs)


def _take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    return advanced_indexing.take(asarray(a), nested(_tracing(), indices), axis, out, mode)


# np.take does not dispatch on its indices, and np.linspace has no like=.
LIFTING["linspace"] = _lifting("linspace", _linspace)
LIFTING["take"] = _lifting("take", _take)
