# SPDX-License-Identifier: Apache-2.0
"""Lists of integers, and padding by name, for windows.

padtype_to_pads([5], [3], [2], "SAME")      [(1, 1)]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import Error, ShapeError, message, shown
from ..numpy._primitives import static_integer

__all__ = ["Pads", "integers", "pads_of", "padtype_to_pads"]

Pads = list[tuple[int, int]]

_LARGEST = 2**62
_NAMES = ("SAME", "SAME_LOWER", "VALID")


def integers(function: str, name: str, given: Any, count: int, least: int) -> tuple[int, ...]:
    """A list of ``count`` integers of at least ``least``.

    Raises:
        TypeError: it is no list of integers. ShapeError: it has another length, or a smaller number.
    """
    try:
        items = list(given)
    except Error:  # of a traced value, which must be known
        raise
    except TypeError:
        raise TypeError(message(function, f"{name} must be a list of integers", shown(given))) from None
    if len(items) != count:
        raise ShapeError(message(function, f"{name} must have {count} integers, one for each dim", shown(given)))
    return tuple(static_integer(function, f"{name}[{i}]", item, least, _LARGEST) for i, item in enumerate(items))


def _pairs(function: str, padding: Any, count: int) -> Pads:
    rule = f"padding must be 'SAME', 'SAME_LOWER', 'VALID' or {count} pairs (low, high)"
    try:
        pairs = [tuple(pair) for pair in padding]
    except Error:
        raise
    except TypeError:
        raise TypeError(message(function, rule, shown(padding))) from None
    if len(pairs) != count or any(len(pair) != 2 for pair in pairs):
        raise ShapeError(message(function, rule, shown(padding)))
    low, high = (
        [static_integer(function, f"padding[{i}][{side}]", pair[side], -_LARGEST, _LARGEST)
         for i, pair in enumerate(pairs)]
        for side in (0, 1)
    )  # fmt: skip
    return list(zip(low, high))


def pads_of(function: str, padding: Any, sizes: Sequence[int], windows: Sequence[int], strides: Sequence[int]) -> Pads:
    """The zeros before and after each dim, from pairs or a name.

    Raises:
        ShapeError: there is no such name, or not one pair for each dim. TypeError: it is neither.
    """
    name = getattr(padding, "name", padding)  # of jax.lax.PaddingType, too
    if not isinstance(name, str):
        return _pairs(function, padding, len(sizes))
    if name.upper() not in _NAMES:
        raise ShapeError(message(function, f"padding must be one of {', '.join(_NAMES)}, or pairs", shown(padding)))
    if name.upper() == "VALID":
        return [(0, 0)] * len(sizes)
    pads = []
    for size, window, stride in zip(sizes, windows, strides):
        whole = max((-(-size // stride) - 1) * stride + window - size, 0)
        half = whole // 2
        pads.append((half, whole - half) if name.upper() == "SAME" else (whole - half, half))
    return pads


def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: Any
) -> Pads:
    """The elements of padding before and after each dim that a name stands for.

    Args:
        in_shape: the sizes of the input.
        window_shape: the sizes of the window, dilated.
        window_strides: the steps of the window.
        padding: ``"VALID"`` for none; ``"SAME"`` for as many windows as the input has elements, divided by the stride
            and rounded up, with the odd element at the end; ``"SAME_LOWER"``, with the odd element at the start.

    Raises:
        ShapeError: another name, or lists of different lengths.
        TypeError: ``padding`` is no name, or a list is not of integers.

    Source: `jax.lax.padtype_to_pads`.

    >>> padtype_to_pads([5, 6], [3, 3], [2, 2], "SAME")
    [(1, 1), (0, 1)]
    """
    function = "lax.padtype_to_pads"
    if not isinstance(getattr(padding, "name", padding), str):
        raise TypeError(message(function, f"padding must be one of {', '.join(_NAMES)}", shown(padding)))
    try:
        sizes = list(in_shape)
    except TypeError:
        raise TypeError(message(function, "in_shape must be a list of integers", shown(in_shape))) from None
    lists = (("in_shape", sizes, 0), ("window_shape", window_shape, 0), ("window_strides", window_strides, 1))
    return pads_of(function, padding, *(integers(function, name, given, len(sizes), low) for name, given, low in lists))
