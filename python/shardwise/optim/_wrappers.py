# SPDX-License-Identifier: Apache-2.0
"""Wrappers of optimizers: slow weights, hyperparameters in the state, and steps that are skipped.

The choices between two steps are made by elements, so that the program has no branches.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, NamedTuple

import numpy as np

from ..dtypes import is_float, numpy_dtype
from ..errors import described, is_integer, message, shown
from ..flags import takes_flags
from ..tree import leaves as tree_leaves
from ._base import (
    GradientTransformation,
    as_array,
    call_update,
    checked_dtype,
    checked_number,
    like,
    mapped,
    real_dtype,
    safe_increment,
)
from ._checks import expect_state, wrong_state
from ._masking import check_transformation
from ._moments import first_count

__all__ = [
    "ApplyIfFiniteState",
    "InjectStatefulHyperparamsState",
    "LookaheadParams",
    "LookaheadState",
    "WrappedScheduleState",
    "apply_if_finite",
    "inject_hyperparams",
    "lookahead",
]


class LookaheadState(NamedTuple):
    """The state of the fast optimizer, and the number of its steps since the last synchronization."""

    fast_state: Any
    steps_since_sync: Any


class LookaheadParams(NamedTuple):
    """The fast parameters, of which gradients are computed, and the slow ones, for evaluation.

    >>> LookaheadParams.init_synced(1.0)
    LookaheadParams(fast=1.0, slow=1.0)
    """

    fast: Any
    slow: Any

    @classmethod
    def init_synced(cls, params: Any) -> LookaheadParams:
        """Two equal trees."""
        return cls(params, params)


class ApplyIfFiniteState(NamedTuple):
    """Counters of updates that are not finite, whether the last one was, and the state of the optimizer."""

    notfinite_count: Any
    last_finite: Any
    total_notfinite: Any
    inner_state: Any


class InjectStatefulHyperparamsState(NamedTuple):
    """The number of steps, the hyperparameters by name, those of schedules, and the state of the optimizer."""

    count: Any
    hyperparams: Any
    hyperparams_states: Any
    inner_state: Any


class WrappedScheduleState(NamedTuple):
    """The number of steps of a schedule."""

    count: Any


def _chosen(what: str, condition: Any, new: Any, old: Any) -> Any:
    """The leaves of one of two trees, in the dtypes of the second."""

    def chosen(a: Any, b: Any) -> Any:
        return like(np.where(condition, a, b), b)

    return mapped(what, chosen, new, old, check=None)


@takes_flags("optim")
def lookahead(
    fast_optimizer: GradientTransformation, sync_period: int, slow_step_size: Any, reset_state: bool = False
) -> GradientTransformation:
    """Slow weights that go a part of the way to the fast ones every few steps, and the fast ones then begin there.

    ``init`` and ``update`` take :class:`LookaheadParams`; the gradients are those of ``params.fast``, and the updates
    are a pair, too.

    Args:
        fast_optimizer: the optimizer of the fast weights.
        sync_period: the number of steps from one synchronization to the next.
        slow_step_size: the part of the way.
        reset_state: whether the fast optimizer begins again after each synchronization.

    Raises:
        TypeError: ``fast_optimizer`` is not a transformation, ``slow_step_size`` is not a number, the parameters are
        not a pair, or the state is that of another transformation. ValueError: ``sync_period`` is not a positive
        integer.

    Source: `optax.lookahead`; Zhang et al., "Lookahead optimizer", arXiv 1907.08610.

    >>> import shardwise as sw
    >>> optimizer = lookahead(sw.optim.sgd(1.0), 1, 0.5)
    >>> params = LookaheadParams.init_synced(np.zeros(1))
    >>> updates, _ = optimizer.update(np.ones(1), optimizer.init(params), params)
    >>> sw.optim.apply_updates(params, updates)
    LookaheadParams(fast=array([-0.5]), slow=array([-0.5]))
    """
    what = "optim.lookahead"
    check_transformation(what, fast_optimizer)
    if not is_integer(sync_period, 1):
        raise ValueError(message(what, "sync_period must be an integer of at least 1", shown(sync_period)))
    checked_number(what, "slow_step_size", slow_step_size)

    def pair(params: Any) -> Any:
        if not hasattr(params, "fast") or not hasattr(params, "slow"):
            way_out = "make it with LookaheadParams.init_synced(params)"
            raise TypeError(message(what, "the parameters must be a LookaheadParams", described(params), way_out))
        return params

    def init(params: Any) -> LookaheadState:
        return LookaheadState(fast_optimizer.init(pair(params).fast), first_count())

    def update(updates: Any, state: LookaheadState, params: Any = None) -> tuple[Any, LookaheadState]:
        expect_state(what, LookaheadState, state)
        fast, slow = pair(params).fast, params.slow
        updates, fast_state = fast_optimizer.update(updates, state.fast_state, fast)
        syncs = as_array(state.steps_since_sync) == sync_period - 1
        difference = mapped(what, lambda f, u, s: f + u - s, fast, updates, slow)

        def moved(part: Any, x: Any) -> Any:
            return np.where(syncs, like(part, x) * x, like(0, x))

        to_slow = mapped(what, lambda d: moved(slow_step_size, d), difference)
        to_fast = mapped(what, lambda u, d: u - moved(1 - slow_step_size, d), updates, difference)
        if reset_state:
            fast_state = _chosen(what, syncs, fast_optimizer.init(fast), fast_state)
        count = as_array(state.steps_since_sync)
        steps = np.where(syncs, like(0, count), count + like(1, count))
        return LookaheadParams(to_fast, to_slow), LookaheadState(fast_state, steps)

    return GradientTransformation(init, update)


def apply_if_finite(inner: GradientTransformation, max_consecutive_errors: int) -> GradientTransformation:
    """``inner``, which skips updates with an infinity or a NaN, up to so many in a row.

    The step is computed in each call and dropped if it must not count. A skipped update is zero, and the state of
    ``inner`` stays. On a mesh, devices exchange one bool for each split leaf.

    Args:
        inner: an optimizer.
        max_consecutive_errors: how many updates in a row are skipped; the next one counts, whatever it holds.

    Raises:
        TypeError: ``inner`` is not a transformation, or the update gets the state of another one. ValueError:
        ``max_consecutive_errors`` is not an integer, or negative.

    Source: `optax.apply_if_finite`.

    >>> import shardwise as sw
    >>> careful = apply_if_finite(sw.optim.sgd(1.0), 2)
    >>> updates, state = careful.update(np.array([np.nan]), careful.init(np.zeros(1)))
    >>> updates, int(state.total_notfinite)
    (array([0.]), 1)
    """
    what = "optim.apply_if_finite"
    check_transformation(what, inner)
    if not is_integer(max_consecutive_errors, 0):
        rule = "max_consecutive_errors must be an integer that is not negative"
        raise ValueError(message(what, rule, shown(max_consecutive_errors)))

    def init(params: Any) -> ApplyIfFiniteState:
        return ApplyIfFiniteState(first_count(), np.ones((), bool), first_count(), inner.init(params))

    def update(
        updates: Any, state: ApplyIfFiniteState, params: Any = None, **extra_args: Any
    ) -> tuple[Any, ApplyIfFiniteState]:
        expect_state(what, ApplyIfFiniteState, state)
        is_finite = np.ones((), bool)
        for leaf in tree_leaves(mapped(what, lambda g: np.all(np.isfinite(g)), updates)):
            is_finite = np.logical_and(is_finite, leaf)
        errors, total = as_array(state.notfinite_count), as_array(state.total_notfinite)
        errors = np.where(is_finite, like(0, errors), safe_increment(errors))
        applies = np.logical_or(is_finite, errors > max_consecutive_errors)
        # Dropped updates are zero before they are used: in a gradient, 0 times an infinity would be NaN.
        safe = mapped(what, lambda g: np.where(applies, g, like(0, g)), updates)
        new, inner_state = call_update(inner, safe, state.inner_state, params, extra_args)
        result = mapped(what, lambda u: np.where(applies, u, like(0, u)), new)
        kept = _chosen(what, applies, inner_state, state.inner_state)
        total = np.where(is_finite, total, safe_increment(total))
        return result, ApplyIfFiniteState(errors, is_finite, total, kept)

    return GradientTransformation(init, update)


def inject_hyperparams(
    inner_factory: Callable[..., GradientTransformation],
    static_args: str | Iterable[str] = (),
    hyperparam_dtype: Any = None,
) -> Callable[..., GradientTransformation]:
    """An optimizer whose hyperparameters are leaves of its state: they can be read, and changed between steps.

    Args:
        inner_factory: a function that makes an optimizer, such as :func:`adam`.
        static_args: names of arguments that stay arguments, such as functions that are no schedules.
        hyperparam_dtype: the dtype of hyperparameters of floats; the widest real one of the parameters by default.

    Returns:
        A function of the same arguments. Numbers, arrays and schedules become hyperparameters, and schedules are
        evaluated in each step; bools and other values stay arguments.

    Raises:
        TypeError: ``inner_factory`` is not a function, or the update gets the state of another transformation.
        ValueError: it has no such argument. DTypeError: no such dtype.

    Source: `optax.inject_hyperparams`.

    >>> import shardwise as sw
    >>> optimizer = inject_hyperparams(sw.optim.sgd)(learning_rate=0.5)
    >>> state = optimizer.init(np.zeros(1))
    >>> state.hyperparams["learning_rate"] = np.array(0.25)
    >>> optimizer.update(np.ones(1), state)[0]
    array([-0.25])
    """
    what = "optim.inject_hyperparams"
    if not callable(inner_factory):
        raise TypeError(message(what, "takes a function that makes an optimizer", described(inner_factory)))
    signature = inspect.signature(inner_factory)
    static = {static_args} if isinstance(static_args, str) else _names(what, static_args)
    unknown = sorted(static - {*signature.parameters})
    if unknown:
        rule = f"static_args must be arguments of {getattr(inner_factory, '__name__', 'the function')}"
        raise ValueError(message(what, rule, unknown, f"use some of {', '.join(signature.parameters)}"))
    dtype = checked_dtype(what, hyperparam_dtype)

    @wraps(inner_factory)
    def made(*args: Any, **kwargs: Any) -> GradientTransformation:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # a missing or unknown argument: Python names the function
            return inner_factory(*args, **kwargs)
        bound.apply_defaults()
        return _injected(what, inner_factory, _Hyperparameters.of(bound.arguments, static), dtype)

    return made


def _names(what: str, given: Any) -> set[str]:
    names = list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(name, str) for name in names):
        raise TypeError(message(what, "static_args must be names of arguments", shown(given)))
    return {*names}


class _Hyperparameters(NamedTuple):
    """The arguments of an optimizer, by kind."""

    numbers: dict[str, Any]
    schedules: dict[str, Callable[[Any], Any]]
    rest: dict[str, Any]

    @classmethod
    def of(cls, arguments: dict[str, Any], static: set[str]) -> _Hyperparameters:
        found = cls({}, {}, {})
        for name, value in arguments.items():
            if name in static or isinstance(value, (bool, type, np.dtype)):
                found.rest[name] = value
            elif callable(value):
                found.schedules[name] = value
            elif isinstance(value, (int, float, np.generic)) or (hasattr(value, "dtype") and hasattr(value, "shape")):
                found.numbers[name] = value
            else:
                found.rest[name] = value
        return found


def _injected(what: str, factory: Callable[..., Any], given: _Hyperparameters, dtype: Any) -> GradientTransformation:
    def typed(value: Any, params: Any) -> Any:
        """A float in the dtype of hyperparameters."""
        array = as_array(value)
        if not is_float(array.dtype):
            return array
        return array.astype(_widest(params) if dtype is None else dtype)

    def evaluated(states: Any, params: Any) -> dict[str, Any]:
        return {
            name: typed(checked_number(what, f"the result of {name}", schedule(states[name].count)), params)
            for name, schedule in given.schedules.items()
        }

    def init(params: Any) -> InjectStatefulHyperparamsState:
        states = {name: WrappedScheduleState(first_count()) for name in given.schedules}
        numbers = {name: typed(value, params) for name, value in given.numbers.items()}
        values = {**numbers, **evaluated(states, params)}
        inner = factory(**given.rest, **values)
        check_transformation(what, inner)
        return InjectStatefulHyperparamsState(first_count(), values, states, inner.init(params))

    def update(
        updates: Any, state: InjectStatefulHyperparamsState, params: Any = None, **extra_args: Any
    ) -> tuple[Any, InjectStatefulHyperparamsState]:
        expect_state(what, InjectStatefulHyperparamsState, state)
        expected = [({*given.numbers, *given.schedules}, state.hyperparams)]
        expected.append(({*given.schedules}, state.hyperparams_states))
        for names, part in expected:
            if not isinstance(part, Mapping) or {*part} != names:
                raise wrong_state(what, f"the state of {', '.join(sorted(names))}", part)
        like_params = updates if params is None else params
        values = {
            name: value if hasattr(value, "dtype") else typed(value, like_params)
            for name, value in state.hyperparams.items()
        }
        values |= evaluated(state.hyperparams_states, like_params)
        states = {name: WrappedScheduleState(safe_increment(s.count)) for name, s in state.hyperparams_states.items()}
        inner = factory(**given.rest, **values)
        result, inner_state = call_update(inner, updates, state.inner_state, params, extra_args)
        return result, InjectStatefulHyperparamsState(safe_increment(state.count), values, states, inner_state)

    return GradientTransformation(init, update)


def _widest(params: Any) -> np.dtype[Any]:
    """The dtype of the widest real numbers of a tree; float32 if there are none."""
    dtypes = [real_dtype(as_array(leaf).dtype) for leaf in tree_leaves(params)]
    floats = [dtype for dtype in dtypes if is_float(dtype)]
    return max(floats, key=lambda dtype: dtype.itemsize, default=numpy_dtype("float32"))
