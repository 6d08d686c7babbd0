# SPDX-License-Identifier: Apache-2.0
"""Constructors: constants with the type of another array, and ``arange(like=x)``, which each device counts itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dtypes import as_dtype
from ..recording.tracing import Tracer, current_trace
from ..user_code.advice import conversion_error
from ._primitives import broadcast, cast, common_trace, iota, operand, refuse, splat
from ._registry import implements

__all__: list[str] = []


def _like(function: str, a: Any, value: Any, dtype: Any, order: Any, subok: Any, shape: Any, device: Any) -> Tracer:
    refuse(function, order=(order, "K"), subok=(subok, True), device=(device, None))
    trace = common_trace((a, value))
    like = a if isinstance(a, Tracer) else np.asarray(a)
    dtype = like.dtype if dtype is None else as_dtype("np.full_like", dtype)
    shape = like.shape if shape is None else (int(shape),) if np.ndim(shape) == 0 else tuple(int(n) for n in shape)
    if isinstance(value, Tracer):
        return broadcast(cast(value, dtype), shape)
    value = np.asarray(value)
    if value.ndim == 0:
        return splat(trace, value.astype(dtype) if value.dtype.kind != "i" else value.item(), shape, dtype)
    return operand(trace, value, dtype, shape)


@implements("zeros_like")
def zeros_like(
    a: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None, *, device: Any = None
) -> Tracer:
    """``numpy.zeros_like``."""
    return _like("zeros_like", a, 0, dtype, order, subok, shape, device)


@implements("ones_like")
def ones_like(
    a: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None, *, device: Any = None
) -> Tracer:
    """``numpy.ones_like``."""
    return _like("ones_like", a, 1, dtype, order, subok, shape, device)


@implements("empty_like")
def empty_like(
    prototype: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None, *, device: Any = None
) -> Tracer:
    """``numpy.empty_like``, filled with zeros, so that every device and every run has the same elements."""
    return _like("empty_like", prototype, 0, dtype, order, subok, shape, device)


@implements("full_like")
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: Any = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Tracer:
    """``numpy.full_like``; ``fill_value`` may be traced."""
    return _like("full_like", a, fill_value, dtype, order, subok, shape, device)


@implements("arange")
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None) -> Any:
    """``numpy.arange(..., like=x)`` for a traced ``x``: each device counts the integers; there is no constant."""
    refuse("arange", device=(device, None))
    trace = current_trace()
    assert trace is not None  # like= is a tracer
    first: Any = 0 if stop is None else start
    end: Any = start if stop is None else stop
    for bound in (first, end, step):
        if isinstance(bound, Tracer):
            raise conversion_error(bound, "index")
    if not all(isinstance(bound, (int, np.integer)) for bound in (first, end, step)) or step < 1:
        numbers: Any = np.arange(first, end, step, dtype)  # type: ignore[call-overload]
        return trace.lift(numbers)
    values = range(int(first), int(end), int(step))
    counted = iota(trace, (len(values),), 0, np.dtype(np.int64 if dtype is None else dtype))
    if values.step != 1:
        counted = counted * values.step
    return counted + values.start if values.start else counted
