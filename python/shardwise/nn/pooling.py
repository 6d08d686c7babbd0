# SPDX-License-Identifier: Apache-2.0
"""Pooling: the largest, the least or the mean element under a window that moves over the dims before the last.

max_pool(x, (2, 2), strides=(2, 2))      %1 = "stablehlo.reduce_window"(%x, %0) ({…maximum…})
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError, message, shown
from ..lax import reduce_window
from ._arguments import inexact, like, public

__all__ = ["avg_pool", "max_pool", "min_pool"]

_Windows = tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[int, int], ...]]  # sizes, strides, padding of each dim


def _pooled(x: Any, init: float, computation: Any, windows: _Windows) -> Any:
    sizes, strides, padding = windows
    return reduce_window(x, init, computation, sizes, strides, padding)


def _numbers(function: str, name: str, given: Any, count: int | None = None) -> tuple[int, ...]:
    numbers = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    is_good = all(isinstance(n, (int, np.integer)) and n > 0 for n in numbers) and len(numbers) == (
        len(numbers) if count is None else count
    )
    if not is_good:
        rule = f"{name} must be {'' if count is None else f'{count} '}positive integers"
        raise ShapeError(message(function, rule, shown(given), "give a tuple with one for each window dim"))
    return tuple(int(n) for n in numbers)


def _windows(function: str, x: Any, window_shape: Any, strides: Any, padding: Any) -> _Windows:
    """The windows of all dims of ``x``: (batch dims, window dims, features)."""
    window = _numbers(function, "window_shape", window_shape)
    steps = (1,) * len(window) if strides is None else _numbers(function, "strides", strides, len(window))
    batch = len(x.shape) - len(window) - 1
    if batch < 0:
        rule = f"inputs must have at least {len(window) + 1} dims, of the window and of the features"
        raise ShapeError(message(function, rule, f"shape {tuple(x.shape)}", "reshape it"))
    spatial = tuple(int(n) for n in x.shape[batch:-1])
    if isinstance(padding, str) and padding.upper() in ("SAME", "VALID"):
        wanted = [max((-(-n // s) - 1) * s + w - n, 0) for n, s, w in zip(spatial, steps, window)]
        pads = [(p // 2, p - p // 2) if padding.upper() == "SAME" else (0, 0) for p in wanted]
    else:
        pads = _pairs(function, padding, len(window))
    if any(n + sum(p) < w for n, p, w in zip(spatial, pads, window)):
        got = f"{spatial} for a window {window}"
        raise ShapeError(message(function, "a window must fit into the padded dims", got, "pad them, or shrink it"))
    ones, none = (1,) * batch, ((0, 0),)
    return (*ones, *window, 1), (*ones, *steps, 1), (*none * batch, *pads, *none)


def _pairs(function: str, padding: Any, count: int) -> list[tuple[int, int]]:
    try:
        pairs = [(p, p) if isinstance(p, (int, np.integer)) else tuple(p) for p in padding]
        if len(pairs) == count and all(len(p) == 2 and all(int(n) >= 0 for n in p) for p in pairs):
            return [(int(low), int(high)) for low, high in pairs]
    except (TypeError, ValueError):
        pass
    rule = f"padding must be 'SAME', 'VALID', or {count} pairs of integers that are not negative"
    raise ShapeError(message(function, rule, shown(padding)))


@public
def max_pool(inputs: Any, window_shape: Any, strides: Any = None, padding: Any = "VALID") -> Any:
    """The largest element under each window.

    Args:
        inputs: real numbers, (batch dims..., window dims..., features). Integers become float64.
        window_shape: the sizes of the window, one for each window dim.
        strides: how far it moves, as ``window_shape``; None for 1.
        padding: ``"VALID"``: the window stays inside. ``"SAME"``: about the size divided by the stride results, with
            half of the padding on each side. Or ``[(low, high), ...]`` for each window dim; a number stands for both.
            Padding is never the largest.

    Returns:
        An array of the dtype of ``inputs``; a window dim has ``(size + low + high - window) // stride + 1`` elements.

    Raises:
        ShapeError: too few dims, sizes that do not fit, or another padding.
        DTypeError: no real numbers.

    Layout: split batch dims and features need no communication. Along a split window dim, neighbours exchange the
    elements that windows share: none if windows end where shards do.

    Source: `flax.linen.max_pool`; StableHLO reduce_window. The first of equal largest elements has the gradient.

    >>> max_pool(np.array([[1.0], [3.0], [2.0]]), (2,)).ravel()
    array([3., 3.])
    """
    x = inexact("nn.max_pool", inputs, "inputs")
    return _pooled(x, -np.inf, np.maximum, _windows("nn.max_pool", x, window_shape, strides, padding))


@public
def min_pool(inputs: Any, window_shape: Any, strides: Any = None, padding: Any = "VALID") -> Any:
    """The least element under each window; otherwise as :func:`max_pool`.

    Args:
        inputs: real numbers, (batch dims..., window dims..., features). Integers become float64.
        window_shape: the sizes of the window, one for each window dim.
        strides: how far it moves; None for 1.
        padding: ``"VALID"``, ``"SAME"``, or pairs. Padding is never the least.

    Raises:
        ShapeError: too few dims, sizes that do not fit, or another padding.
        DTypeError: no real numbers.

    Layout: split batch dims and features need no communication. Along a split window dim, neighbours exchange the
    elements that windows share: none if windows end where shards do.

    Source: `flax.linen.min_pool`; StableHLO reduce_window. The first of equal least elements has the gradient.

    >>> min_pool(np.array([[1.0], [3.0], [2.0]]), (2,)).ravel()
    array([1., 2.])
    """
    x = inexact("nn.min_pool", inputs, "inputs")
    return _pooled(x, np.inf, np.minimum, _windows("nn.min_pool", x, window_shape, strides, padding))


@public
def avg_pool(
    inputs: Any, window_shape: Any, strides: Any = None, padding: Any = "VALID", count_include_pad: bool = True
) -> Any:
    """The mean of the elements under each window.

    Args:
        inputs: real numbers, (batch dims..., window dims..., features). Integers become float64.
        window_shape: the sizes of the window, one for each window dim.
        strides: how far it moves; None for 1.
        padding: ``"VALID"``, ``"SAME"``, or pairs, as for :func:`max_pool`. Padding is 0.
        count_include_pad: divide by the size of the window, else by the number of elements that are not padding.

    Raises:
        ShapeError: too few dims, sizes that do not fit, or another padding.
        DTypeError: no real numbers.

    Layout: split batch dims and features need no communication. Along a split window dim, neighbours exchange the
    elements that windows share: none if windows end where shards do.

    Source: `flax.linen.avg_pool`; StableHLO reduce_window.

    >>> avg_pool(np.array([[1.0], [3.0]]), (2,), padding="SAME", count_include_pad=False).ravel()
    array([2., 3.])
    """
    x = inexact("nn.avg_pool", inputs, "inputs")
    sizes, strides, padding = windows = _windows("nn.avg_pool", x, window_shape, strides, padding)
    summed = _pooled(x, 0.0, np.add, windows)
    if count_include_pad:
        return summed / like(int(np.prod(sizes)), x)
    counts = np.ones((), np.float64)
    for size, step, pads, n in zip(sizes, strides, padding, x.shape):
        starts = np.arange((n + sum(pads) - size) // step + 1) * step - pads[0]
        inside = np.minimum(starts + size, n) - np.maximum(starts, 0)
        counts = counts[..., None] * np.maximum(inside, 0)
    for dim in (d for d, size in enumerate(sizes) if size == 1 and strides[d] == 1 and padding[d] == (0, 0)):
        counts = np.take(counts, [0], axis=dim) if x.shape[dim] else counts  # the same for each batch and feature
    return summed / counts.astype(x.dtype)
