# SPDX-License-Identifier: Apache-2.0
"""Transformations that scale and clip the updates: by numbers, schedules, norms, and the parameters.

A norm of a split leaf is summed on each device and reduced: one number travels, not the leaf.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..dtypes import is_inexact
from ..errors import DTypeError, described, message, shown
from ..tree import leaves as tree_leaves
from ._base import (
    GradientTransformation,
    ScalarOrSchedule,
    abs_sq,
    as_array,
    checked_number,
    checked_numbers,
    checked_rate,
    identity,
    like,
    mapped,
    optimizer,
    params_given,
    real_dtype,
    safe_increment,
    stateless_as,
    wide,
)
from ._checks import expect_real, expect_state
from ._masking import masked
from ._moments import first_count

__all__ = [
    "ScaleByScheduleState",
    "add_decayed_weights",
    "clip",
    "clip_by_block_rms",
    "clip_by_global_norm",
    "global_norm",
    "scale",
    "scale_by_learning_rate",
    "scale_by_param_block_norm",
    "scale_by_param_block_rms",
    "scale_by_schedule",
    "scale_by_sign",
    "scale_by_trust_ratio",
]


class ScaleByScheduleState(NamedTuple):
    """The number of steps."""

    count: Any


def global_norm(updates: Any) -> Any:
    """The Euclidean norm of all leaves of a tree together, in float32 at least.

    Args:
        updates: a tree of arrays.

    Source: `optax.global_norm`.

    >>> float(global_norm({"a": np.array([3.0]), "b": np.array([4.0])}))
    5.0
    """
    arrays = [as_array(leaf) for leaf in tree_leaves(updates)]
    for array in arrays:
        if array.dtype.kind not in "biu" and not is_inexact(array.dtype):
            raise DTypeError(message("optim.global_norm", "leaves must be arrays of numbers", described(array)))
    squares = [np.sum(abs_sq(wide(array))) for array in arrays]
    return np.sqrt(sum(squares[1:], squares[0])) if squares else np.float32(0)


def scale(step_size: Any) -> GradientTransformation:
    """The updates times a number.

    >>> scale(-0.5).update(np.ones(1), ())[0]
    array([-0.5])
    """
    what = "optim.scale"
    checked_number(what, "step_size", step_size)
    return stateless_as(what, lambda updates, params: mapped(what, lambda g: like(step_size, g) * g, updates))


@optimizer
def scale_by_learning_rate(learning_rate: ScalarOrSchedule, *, flip_sign: bool = True) -> GradientTransformation:
    """The updates times the learning rate, and times -1.

    Args:
        learning_rate: a number, a schedule, or None for no scaling.
        flip_sign: whether to multiply by -1.

    Source: `optax.scale_by_learning_rate`.

    >>> scale_by_learning_rate(0.5).update(np.ones(1), ())[0]
    array([-0.5])
    """
    sign = -1 if flip_sign else 1
    if learning_rate is None:
        return identity()
    rate = checked_rate("optim.scale_by_learning_rate", "learning_rate", learning_rate)
    if callable(rate):
        return scale_by_schedule(lambda count: sign * rate(count))
    return scale(sign * rate)


def scale_by_schedule(step_size_fn: Callable[[Any], Any]) -> GradientTransformation:
    """The updates times ``step_size_fn(number of steps so far)``, rounded to the dtype of each leaf.

    >>> by_step = scale_by_schedule(lambda count: count + 1.0)
    >>> by_step.update(np.ones(1), ScaleByScheduleState(np.int32(2)))
    (array([3.]), ScaleByScheduleState(count=array(3, dtype=int32)))
    """
    what = "optim.scale_by_schedule"
    if not callable(step_size_fn):
        raise TypeError(message(what, "takes a function of the number of steps", shown(step_size_fn)))
    rate = checked_rate(what, "step_size_fn", step_size_fn)

    def update(updates: Any, state: ScaleByScheduleState, params: Any = None) -> tuple[Any, ScaleByScheduleState]:
        step_size = rate(expect_state(what, ScaleByScheduleState, state).count)
        result = mapped(what, lambda g: like(step_size, g) * g, updates)
        return result, ScaleByScheduleState(safe_increment(state.count))

    return GradientTransformation(lambda params: ScaleByScheduleState(first_count()), update)


def scale_by_sign() -> GradientTransformation:
    """The signs of the updates.

    >>> scale_by_sign().update(np.array([-2.0, 0.0]), ())[0]
    array([-1.,  0.])
    """
    what = "optim.scale_by_sign"
    return stateless_as(what, lambda updates, params: mapped(what, np.sign, updates))


def _safe_norm(x: Any, smallest: Any, is_mean: bool = False) -> Any:
    """The norm of all elements, or the root of their mean square, at least ``smallest``; with a gradient at zero."""
    reduce = np.mean if is_mean and 0 not in x.shape else np.sum  # of no elements: 0, not NaN
    square = reduce(abs_sq(wide(x)))
    floor = like(smallest, square)
    is_small = square <= floor * floor
    root = np.sqrt(np.where(is_small, like(1, square), square))
    return np.where(is_small, floor, root).astype(real_dtype(x.dtype))


def scale_by_trust_ratio(min_norm: Any = 0.0, trust_coefficient: Any = 1.0, eps: Any = 0.0) -> GradientTransformation:
    """Each leaf times the ratio of the norms of parameter and update; 1 where one of them is zero.

    Args:
        min_norm: the least norm.
        trust_coefficient: a factor.
        eps: added to the norm of the update.

    Raises:
        TypeError: the update is called without parameters.

    Source: `optax.scale_by_trust_ratio`; You et al., "Large batch optimization for deep learning", arXiv 1904.00962.

    >>> scale_by_trust_ratio().update(np.array([0.0, 2.0]), (), np.array([3.0, 4.0]))[0]
    array([0., 5.])
    """
    what = "optim.scale_by_trust_ratio"
    checked_numbers(what, min_norm=min_norm, trust_coefficient=trust_coefficient, eps=eps)

    def scaled(update: Any, param: Any) -> Any:
        of_param, of_update = _safe_norm(param, min_norm), _safe_norm(update, min_norm)
        has_none = (of_param == 0) | (of_update == 0)
        divisor = np.where(has_none, like(1, of_update), of_update + like(eps, of_update))
        ratio = like(trust_coefficient, of_param) * of_param / divisor
        return update * np.where(has_none, like(1, ratio), ratio)

    return stateless_as(what, lambda updates, params: mapped(what, scaled, updates, params_given(what, params)))


def scale_by_param_block_norm(min_scale: Any = 1e-3) -> GradientTransformation:
    """Each leaf times the norm of its parameter, at least ``min_scale``.

    Raises:
        TypeError: the update is called without parameters.

    >>> scale_by_param_block_norm().update(np.ones(2), (), np.array([3.0, 4.0]))[0]
    array([5., 5.])
    """
    what = "optim.scale_by_param_block_norm"
    checked_number(what, "min_scale", min_scale)

    def scaled(update: Any, param: Any) -> Any:
        return update * _safe_norm(param, min_scale)

    return stateless_as(what, lambda updates, params: mapped(what, scaled, updates, params_given(what, params)))


def scale_by_param_block_rms(min_scale: Any = 1e-3) -> GradientTransformation:
    """Each leaf times the root mean square of its parameter, at least ``min_scale``.

    Raises:
        TypeError: the update is called without parameters.

    >>> scale_by_param_block_rms().update(np.ones(2), (), np.array([5.0, 5.0]))[0]
    array([5., 5.])
    """
    what = "optim.scale_by_param_block_rms"
    checked_number(what, "min_scale", min_scale)

    def scaled(update: Any, param: Any) -> Any:
        return update * _safe_norm(param, min_scale, is_mean=True)

    return stateless_as(what, lambda updates, params: mapped(what, scaled, updates, params_given(what, params)))


@optimizer
def add_decayed_weights(weight_decay: ScalarOrSchedule = 0.0, mask: Any = None) -> GradientTransformation:
    """The updates plus ``weight_decay`` times the parameters.

    Args:
        weight_decay: a number or a schedule.
        mask: a tree of bools, or a function of the parameters that makes one: which leaves decay. None: all.

    Raises:
        TypeError: the update is called without parameters.

    Source: `optax.add_decayed_weights`.

    >>> add_decayed_weights(0.5).update(np.ones(1), (), np.array([4.0]))[0]
    array([3.])
    """
    what = "optim.add_decayed_weights"
    decay = checked_rate(what, "weight_decay", weight_decay)

    def added(updates: Any, params: Any, factor: Any) -> Any:
        return mapped(what, lambda g, p: g + like(factor, p) * p, updates, params_given(what, params))

    def update(updates: Any, state: ScaleByScheduleState, params: Any = None) -> tuple[Any, ScaleByScheduleState]:
        new = added(updates, params, decay(expect_state(what, ScaleByScheduleState, state).count))
        return new, ScaleByScheduleState(safe_increment(state.count))

    if callable(weight_decay):
        inner = GradientTransformation(lambda params: ScaleByScheduleState(first_count()), update)
    elif isinstance(weight_decay, (int, float)) and weight_decay == 0:
        inner = identity()
    else:
        inner = stateless_as(what, lambda updates, params: added(updates, params, weight_decay))
    return inner if mask is None else masked(inner, mask)


def clip(max_delta: Any) -> GradientTransformation:
    """Each element, limited to ``-max_delta`` and ``max_delta``.

    Raises:
        TypeError: ``max_delta`` is not a number. DTypeError: complex leaves, which have no order; clip their norm with
        :func:`clip_by_global_norm` or :func:`clip_by_block_rms`.

    >>> clip(1.0).update(np.array([-3.0, 0.5]), ())[0]
    array([-1. ,  0.5])
    """
    what = "optim.clip"
    checked_number(what, "max_delta", max_delta)

    def clipped(g: Any) -> Any:
        return np.clip(g, like(-max_delta, g), like(max_delta, g))

    return stateless_as(what, lambda updates, params: mapped(what, clipped, updates, check=expect_real))


def clip_by_block_rms(threshold: Any) -> GradientTransformation:
    """Each leaf, divided so that its root mean square is at most ``threshold``.

    Source: `optax.clip_by_block_rms`.

    >>> clip_by_block_rms(1.0).update(np.full(2, 4.0), ())[0]
    array([1., 1.])
    """
    what = "optim.clip_by_block_rms"
    checked_number(what, "threshold", threshold)

    def clipped(g: Any) -> Any:
        if 0 in g.shape:  # whose mean is NaN
            return g
        square = np.mean(abs_sq(wide(g)))
        limit = like(threshold, square)
        # A root of zero has no gradient: below the threshold, it is not taken.
        is_large = square > limit * limit
        root = np.sqrt(np.where(is_large, square, like(1, square)))
        return g / np.where(is_large, root / limit, like(1, square)).astype(real_dtype(g.dtype))

    return stateless_as(what, lambda updates, params: mapped(what, clipped, updates))


@optimizer
def clip_by_global_norm(max_norm: Any) -> GradientTransformation:
    """All leaves, scaled so that their common norm is at most ``max_norm``.

    Source: `optax.clip_by_global_norm`; Pascanu et al., "On the difficulty of training recurrent neural networks",
    arXiv 1211.5063.

    >>> clip_by_global_norm(1.0).update({"a": np.array([3.0]), "b": np.array([4.0])}, ())[0]
    {'a': array([0.6]), 'b': array([0.8])}
    """
    what = "optim.clip_by_global_norm"
    checked_number(what, "max_norm", max_norm)

    def clipped(updates: Any, params: Any) -> Any:
        norm = global_norm(updates)
        is_small = norm < max_norm

        def scaled(g: Any) -> Any:
            divisor = np.where(is_small, like(1, norm), norm).astype(real_dtype(g.dtype))
            return np.where(is_small, g, g / divisor * like(max_norm, divisor))

        return mapped(what, scaled, updates)

    return stateless_as(what, clipped)
