# SPDX-License-Identifier: Apache-2.0
"""Checks gradients by finite differences of the plain function along lines, without derivative rules."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ml_dtypes
import numpy as np

from .dtypes import as_wide, is_complex, is_inexact
from .errors import message
from .trees import flatten, unflatten

__all__ = ["check_gradients", "held_constant", "refuse_differences"]

_DIRECTIONS = 2  # random ones of all leaves together
_ELEMENTS = 8  # of each leaf alone, to check the contribution of single terms
_STEP = 1e-5
_SMOOTH = 1e-4  # relative: how well differences over one and two steps must agree to be used at all


class _Held(threading.local):
    values: list[Any] | None = None  # those of the point, in the order of the calls
    count: int | None = None  # how many values this run has read; None in the run that records them


_held = _Held()


@contextmanager
def _holding(values: list[Any], count: int | None) -> Iterator[None]:
    before = _held.values, _held.count
    _held.values, _held.count = values, count
    try:
        yield
    finally:
        _held.values, _held.count = before


def held_constant(x: Any) -> Any:
    """``x``, a value without a gradient; in a difference, its value at the point where gradients are checked."""
    if _held.values is None:
        return x
    if _held.count is None:
        _held.values.append(x)
        return x
    _held.count += 1
    return _held.values[_held.count - 1] if _held.count <= len(_held.values) else x


class _RuleOfItsOwnError(Exception):
    """The function calls one whose derivative is a rule of the user's."""


def refuse_differences() -> None:
    """End the check of gradients: the function has a derivative that need not be that of its values."""
    if _held.values is not None:
        raise _RuleOfItsOwnError


def check_gradients(
    value: Callable[..., Any], args: tuple[Any, ...], positions: Sequence[int], gradients: Sequence[Any]
) -> None:
    """Compare gradients with central differences of ``value``, a plain NumPy function of ``args``, in float64.

    A direction along which ``value`` is not smooth (a kink, a jump, rounding of narrow dtypes) is ignored, and so is a
    ``value`` that calls a function with a derivative rule of its own.

    Args:
        value: returns a scalar.
        args: trees of arrays.
        positions: the arguments of the gradients.
        gradients: one tree for each position.

    Raises:
        AssertionError: a derivative differs by more than rounding explains: by 1e-6 of the sum of its absolute terms in
            float64, 1e-3 in float32 (and complex numbers of these), and 16 eps in narrower dtypes.
    """
    leaves, tree = flatten(args)
    slopes = _slopes(args, positions, gradients)
    points = [_widened(leaf) for leaf in leaves]
    held: list[Any] = []
    try:
        with _holding(held, None), np.errstate(all="ignore"):
            value(*unflatten(tree, points))
    except _RuleOfItsOwnError:
        return
    for along in _directions(points, slopes):

        def at(step: float, along: dict[int, Any] = along) -> float:
            moved = [x + step * along[i] if i in along else x for i, x in enumerate(points)]
            with _holding(held, 0):
                return float(value(*unflatten(tree, moved)))

        found = _derivative(at)
        if found is None:
            continue
        terms = np.concatenate([np.ravel(np.real(as_wide(slopes[i]) * along[i])) for i in along])
        relative = max(_tolerance(np.asarray(slopes[i]).dtype) for i in along)
        rounding = max(_rounding(slopes[i], along[i]) for i in along)
        if not abs(terms.sum() - found) <= relative * (np.abs(terms).sum() + abs(found)) + rounding + 1e-7:
            rule = "a gradient must agree with finite differences of the plain function"
            got = f"{terms.sum():.6g} along a line where differences give {found:.6g}"
            raise AssertionError(message("grad", rule, got))


def _directions(points: list[Any], slopes: dict[int, Any]) -> Iterator[dict[int, Any]]:
    """Random directions of all leaves, then of each leaf, then some elements of each leaf alone."""
    random = np.random.default_rng(0)
    size = {i: np.maximum(np.abs(points[i]), 1) for i in slopes}
    for wanted in (*[list(slopes)] * _DIRECTIONS, *[[i] for i in slopes]):
        yield {i: _random_like(random, points[i]) * size[i] for i in wanted}
    for i in slopes:
        count = np.size(points[i])
        for k in random.choice(count, min(count, _ELEMENTS), replace=False):
            element = np.zeros(count, points[i].dtype)
            element[k] = 1j if is_complex(element.dtype) and random.random() < 0.5 else 1
            yield {i: element.reshape(np.shape(points[i])) * size[i]}


def _random_like(random: np.random.Generator, point: Any) -> Any:
    real = random.standard_normal(np.shape(point))
    return real + 1j * random.standard_normal(np.shape(point)) if is_complex(np.asarray(point).dtype) else real


def _rounding(slope: Any, along: Any) -> float:
    """The rounding of one element, where cancellation has made it small beside the others."""
    slope = np.asarray(slope)
    eps = float(ml_dtypes.finfo(slope.dtype).eps)  # type: ignore[no-untyped-call]
    return 16 * eps * float(np.max(np.abs(as_wide(slope)), initial=0) * np.max(np.abs(along), initial=0))


def _tolerance(dtype: np.dtype[Any]) -> float:
    """The tolerance relative to the sum of the absolute terms; gradients of many layers round more than once."""
    if is_complex(dtype):
        return 1e-3 if dtype == np.complex64 else 1e-6
    if dtype.itemsize < 4:
        return 16 * float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]
    return 1e-3 if dtype == np.float32 else 1e-6


def _slopes(args: tuple[Any, ...], positions: Sequence[int], gradients: Sequence[Any]) -> dict[int, Any]:
    """The gradient of each differentiated leaf, by the leaf's place among all leaves."""
    counts = [len(flatten(arg)[0]) for arg in args]
    slopes: dict[int, Any] = {}
    for position, gradient in zip(positions, gradients):
        start = sum(counts[: position % len(args)])
        slopes.update(enumerate(flatten(gradient)[0], start))
    return slopes


def _widened(leaf: Any) -> Any:
    array = np.asarray(leaf)
    return as_wide(array) if is_inexact(array.dtype) else leaf


def _derivative(at: Callable[[float], float]) -> float | None:
    """The derivative at 0; None if the function is not smooth there."""
    with np.errstate(all="ignore"):
        middle = at(0.0)
        low, lower, high, higher = (at(k * _STEP) for k in (-1, -2, 1, 2))
    near, far = (high - low) / (2 * _STEP), (higher - lower) / (4 * _STEP)
    bend = abs(high - 2 * middle + low) / _STEP
    size = max(abs(near), abs(far))
    if not np.isfinite([near, far, bend]).all() or abs(near - far) > _SMOOTH * size or bend > 1e-2 * size:
        return None
    return near
