# SPDX-License-Identifier: Apache-2.0
"""Schedules: functions of the number of steps done so far, which may be a Python int or a traced integer.

They compute in float64 and are rounded to the dtype of each update. Optax computes in float32, and with JAX's
64 bits in float64 or still in float32, which depends on the schedule.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from ..errors import described, message, shown
from ..flags import takes_flags
from ._base import as_part_of, checked_number, checked_numbers, checked_step

__all__ = [
    "constant_schedule",
    "cosine_decay_schedule",
    "cosine_onecycle_schedule",
    "exponential_decay",
    "join_schedules",
    "linear_onecycle_schedule",
    "linear_schedule",
    "piecewise_constant_schedule",
    "piecewise_interpolate_schedule",
    "polynomial_schedule",
    "rsqrt_decay_schedule",
    "sgdr_schedule",
    "warmup_constant_schedule",
    "warmup_cosine_decay_schedule",
    "warmup_exponential_decay_schedule",
]

Schedule = Callable[[Any], Any]
_F = TypeVar("_F", bound=Callable[..., Any])


def _schedule(make: _F) -> _F:
    """Decorator: check the numbers and flags of a schedule and its steps, under the name of the function."""
    what, signature = f"optim.{make.__name__}", inspect.signature(make)
    make = takes_flags("optim")(make)

    @wraps(make)
    def made(*args: Any, **kwargs: Any) -> Schedule:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:  # a missing or unknown argument: Python names it
            return make(*args, **kwargs)  # type: ignore[no-any-return]
        for name, value in given.items():
            _check(what, signature.parameters[name], value)
        with as_part_of(what):
            schedule = make(*args, **kwargs)
        return lambda count: schedule(checked_step(what, "the step", count))

    return made  # type: ignore[return-value]


def _check(what: str, parameter: inspect.Parameter, value: Any) -> None:
    """Raise TypeError unless a number is one."""
    if parameter.annotation in ("Any", "int", "float") and not (value is None and parameter.default is None):
        checked_number(what, parameter.name, value)


def _positive(what: str, name: str, value: Any) -> Any:
    if not value > 0:
        raise ValueError(message(what, f"{name} must be positive", value))
    return value


def _not_negative(what: str, name: str, value: Any) -> Any:
    if not value >= 0:
        raise ValueError(message(what, f"{name} must not be negative", value))
    return value


@_schedule
def constant_schedule(value: Any) -> Schedule:
    """``value`` at every step.

    >>> constant_schedule(0.1)(5)
    0.1
    """
    return lambda count: value


@_schedule
def polynomial_schedule(
    init_value: Any, end_value: Any, power: Any, transition_steps: int, transition_begin: int = 0
) -> Schedule:
    """From ``init_value`` to ``end_value`` by the power of the part that is left.

    Args:
        init_value: the value up to step ``transition_begin``.
        end_value: the value ``transition_steps`` later.
        power: 1 for a straight line.
        transition_steps: the length; at 0, the value stays ``init_value``, as in Optax.
        transition_begin: the first step of the transition; a negative one counts as 0.

    Source: `optax.polynomial_schedule`.

    >>> [float(polynomial_schedule(1.0, 0.0, 2, 4)(step)) for step in (0, 2, 4)]
    [1.0, 0.25, 0.0]
    """
    if transition_steps <= 0:
        return constant_schedule(init_value)
    begin = max(transition_begin, 0)

    def schedule(count: Any) -> Any:
        left = 1 - np.clip(count - begin, 0, transition_steps) / transition_steps
        return (init_value - end_value) * left**power + end_value

    return schedule


@_schedule
def linear_schedule(init_value: Any, end_value: Any, transition_steps: int, transition_begin: int = 0) -> Schedule:
    """:func:`polynomial_schedule` of power 1.

    >>> float(linear_schedule(0.0, 1.0, 4)(1))
    0.25
    """
    return polynomial_schedule(init_value, end_value, 1, transition_steps, transition_begin)


@_schedule
def piecewise_constant_schedule(init_value: Any, boundaries_and_scales: Mapping[int, float] | None = None) -> Schedule:
    """``init_value``, multiplied by a scale from each boundary on.

    Args:
        init_value: the first value.
        boundaries_and_scales: step -> scale, not negative.

    Raises:
        ValueError: a negative scale.

    Source: `optax.piecewise_constant_schedule`.

    >>> [float(piecewise_constant_schedule(1.0, {2: 0.5})(step)) for step in (0, 1, 2)]
    [1.0, 1.0, 0.5]
    """
    scales = _scales("optim.piecewise_constant_schedule", boundaries_and_scales)

    def schedule(count: Any) -> Any:
        value = init_value
        for boundary, scale in scales:
            value = np.where(count < boundary, value, value * scale)
        return value

    return schedule


def _scales(what: str, boundaries_and_scales: Any) -> list[tuple[int, float]]:
    if boundaries_and_scales is not None and not isinstance(boundaries_and_scales, Mapping):
        rule = "boundaries_and_scales must be a dict or None"
        raise TypeError(message(what, rule, described(boundaries_and_scales)))
    given = (boundaries_and_scales or {}).items()
    for boundary, scale in given:
        checked_numbers(what, **{"a boundary": boundary, "a scale": scale})
    scales = sorted(given)
    if any(scale < 0 for _, scale in scales):
        raise ValueError(message(what, "scales must not be negative", [scale for _, scale in scales]))
    return scales


@_schedule
def exponential_decay(
    init_value: Any,
    transition_steps: int,
    decay_rate: Any,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: Any = None,
) -> Schedule:
    """``init_value * decay_rate ** (steps / transition_steps)``.

    Args:
        init_value: the value up to step ``transition_begin``.
        transition_steps: the steps that multiply by ``decay_rate`` once; at 0, the value stays ``init_value``.
        decay_rate: the factor; for 0, the value stays ``init_value``, as in Optax.
        transition_begin: the first step of the decay; a negative one counts as 0.
        staircase: whether the exponent is rounded down.
        end_value: the limit of the value, if any.

    Source: `optax.exponential_decay`.

    >>> [float(exponential_decay(1.0, 2, 0.25)(step)) for step in (0, 1, 2)]
    [1.0, 0.5, 0.25]
    """
    if transition_steps <= 0 or decay_rate == 0:
        return constant_schedule(init_value)
    begin = max(transition_begin, 0)

    def schedule(count: Any) -> Any:
        exponent = (count - begin) / transition_steps
        if staircase:
            exponent = np.floor(exponent)
        value = np.where(exponent <= 0, init_value, init_value * np.power(float(decay_rate), exponent))
        if end_value is None:
            return value
        return np.maximum(value, end_value) if decay_rate < 1 else np.minimum(value, end_value)

    return schedule


@_schedule
def cosine_decay_schedule(init_value: Any, decay_steps: int, alpha: Any = 0.0, exponent: Any = 1.0) -> Schedule:
    """Half a period of a cosine, from ``init_value`` down to ``alpha * init_value``.

    Args:
        init_value: the first value.
        decay_steps: the length.
        alpha: the last value over the first.
        exponent: a power of the cosine.

    Raises:
        ValueError: ``decay_steps`` is not positive.

    Source: `optax.cosine_decay_schedule`.

    >>> [round(float(cosine_decay_schedule(1.0, 4)(step)), 3) for step in (0, 2, 4)]
    [1.0, 0.5, 0.0]
    """
    _positive("optim.cosine_decay_schedule", "decay_steps", decay_steps)

    def schedule(count: Any) -> Any:
        cosine = 0.5 * (1 + np.cos(math.pi * np.minimum(count, decay_steps) / decay_steps))
        return init_value * ((1 - alpha) * cosine**exponent + alpha)

    return schedule


@_schedule
def rsqrt_decay_schedule(init_value: Any, transition_steps: int = 10_000) -> Schedule:
    """``init_value`` up to step ``transition_steps``, then falling with the square root of the step.

    Args:
        init_value: the first value.
        transition_steps: the step, counted from 1, at which the decay begins.

    Raises:
        ValueError: ``transition_steps`` is not positive.

    Source: GShard (arXiv 2006.16668), A.2; Optax has no such schedule.

    >>> [float(rsqrt_decay_schedule(1.0)(step - 1)) for step in (1, 10_000, 40_000)]
    [1.0, 1.0, 0.5]
    """
    _positive("optim.rsqrt_decay_schedule", "transition_steps", transition_steps)
    return lambda count: init_value / np.sqrt(np.maximum(1.0, (count + 1) / transition_steps))


def _linear(start: float, end: float, part: Any) -> Any:
    return (end - start) * part + start


def _cosine(start: float, end: float, part: Any) -> Any:
    return end + (start - end) / 2 * (np.cos(math.pi * part) + 1)


@_schedule
def piecewise_interpolate_schedule(
    interpolate_type: str, init_value: Any, boundaries_and_scales: Mapping[int, float] | None = None
) -> Schedule:
    """``init_value``, multiplied by a scale on the way to each boundary.

    Args:
        interpolate_type: ``"linear"`` or ``"cosine"``.
        init_value: the first value.
        boundaries_and_scales: step -> scale, not negative.

    Raises:
        ValueError: another type, or a negative scale.

    Source: `optax.piecewise_interpolate_schedule`.

    >>> [float(piecewise_interpolate_schedule("linear", 1.0, {4: 3.0})(step)) for step in (0, 2, 4, 9)]
    [1.0, 2.0, 3.0, 3.0]
    """
    what = "optim.piecewise_interpolate_schedule"
    if interpolate_type not in ("linear", "cosine"):
        raise ValueError(message(what, "interpolate_type must be 'linear' or 'cosine'", shown(interpolate_type)))
    interpolate = _linear if interpolate_type == "linear" else _cosine
    pieces, start, first = [], 0, init_value
    for boundary, scale in _scales(what, boundaries_and_scales):
        pieces.append((start, boundary, first, first * scale))
        start, first = boundary, first * scale

    def schedule(count: Any) -> Any:
        value = first + 0.0 * count
        for begin, end, low, high in reversed(pieces):
            part = (count - begin) / max(end - begin, 1)
            value = np.where(count < end, interpolate(low, high, part), value)
        return np.where(count < 0, 0.0, value)

    return schedule


@_schedule
def linear_onecycle_schedule(
    transition_steps: int,
    peak_value: Any,
    pct_start: float = 0.3,
    pct_final: float = 0.85,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:
    """A straight line up to ``peak_value``, down to the first value, and on to almost zero.

    Args:
        transition_steps: the length.
        peak_value: the largest value.
        pct_start: the part of the steps that rises.
        pct_final: the part of the steps up to which it falls to the first value.
        div_factor: the peak over the first value.
        final_div_factor: the first value over the last one.

    Raises:
        ValueError: ``transition_steps`` is not positive.

    Source: `optax.linear_onecycle_schedule`.

    >>> round(float(linear_onecycle_schedule(100, 1.0)(30)), 6)
    1.0
    """
    steps = _positive("optim.linear_onecycle_schedule", "transition_steps", transition_steps)
    scales = {int(pct_start * steps): div_factor, int(pct_final * steps): 1 / div_factor, steps: 1 / final_div_factor}
    return piecewise_interpolate_schedule("linear", peak_value / div_factor, scales)


@_schedule
def cosine_onecycle_schedule(
    transition_steps: int,
    peak_value: Any,
    pct_start: float = 0.3,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:
    """A cosine up to ``peak_value``, and one down to almost zero.

    Args:
        transition_steps: the length.
        peak_value: the largest value.
        pct_start: the part of the steps that rises.
        div_factor: the peak over the first value.
        final_div_factor: the first value over the last one.

    Raises:
        ValueError: ``transition_steps`` is not positive.

    Source: `optax.cosine_onecycle_schedule`.

    >>> round(float(cosine_onecycle_schedule(100, 1.0)(30)), 6)
    1.0
    """
    steps = _positive("optim.cosine_onecycle_schedule", "transition_steps", transition_steps)
    scales = {int(pct_start * steps): div_factor, int(steps): 1 / (div_factor * final_div_factor)}
    return piecewise_interpolate_schedule("cosine", peak_value / div_factor, scales)


def _listed(what: str, name: str, given: Any) -> list[Any]:
    if isinstance(given, (str, Mapping)) or not isinstance(given, Iterable):
        raise TypeError(message(what, f"{name} must be a list", described(given)))
    return list(given)


@_schedule
def join_schedules(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Schedule:
    """One schedule after the other; each counts its steps from its boundary.

    Args:
        schedules: the schedules.
        boundaries: the steps at which the second and each later one begins.

    Raises:
        ValueError: there is not one boundary less than schedules.

    Source: `optax.join_schedules`.

    >>> joined = join_schedules([constant_schedule(1.0), linear_schedule(1.0, 0.0, 2)], [3])
    >>> [float(joined(step)) for step in (2, 3, 4, 5)]
    [1.0, 1.0, 0.5, 0.0]
    """
    what = "optim.join_schedules"
    schedules, boundaries = (
        _listed(what, name, given) for name, given in (("schedules", schedules), ("boundaries", boundaries))
    )
    for each in schedules:
        if not callable(each):
            raise TypeError(message(what, "a schedule must be a function of the step", described(each)))
    checked_numbers(what, **{f"boundaries[{i}]": boundary for i, boundary in enumerate(boundaries)})
    if len(schedules) != len(boundaries) + 1:
        got = f"{len(schedules)} schedules and {len(boundaries)} boundaries"
        raise ValueError(message(what, "a boundary must stand between two schedules", got))

    def schedule(step: Any) -> Any:
        value = schedules[0](step)
        for boundary, following in zip(boundaries, schedules[1:]):
            value = np.where(step < boundary, value, following(step - boundary))
        return value

    return schedule


@_schedule
def warmup_constant_schedule(init_value: Any, peak_value: Any, warmup_steps: int) -> Schedule:
    """A straight line to ``peak_value``, which stays.

    >>> float(warmup_constant_schedule(0.0, 1.0, 4)(9))
    1.0
    """
    _not_negative("optim.warmup_constant_schedule", "warmup_steps", warmup_steps)
    return linear_schedule(init_value, peak_value, warmup_steps)


@_schedule
def warmup_cosine_decay_schedule(
    init_value: Any, peak_value: Any, warmup_steps: int, decay_steps: int, end_value: Any = 0.0, exponent: Any = 1.0
) -> Schedule:
    """A straight line to ``peak_value``, then a cosine down to ``end_value``.

    Args:
        init_value: the first value.
        peak_value: the value after ``warmup_steps``.
        warmup_steps: the length of the line.
        decay_steps: the length of both together.
        end_value: the last value.
        exponent: a power of the cosine.

    Raises:
        ValueError: ``decay_steps`` is not above ``warmup_steps``, or these are negative.

    Source: `optax.warmup_cosine_decay_schedule`.

    >>> [round(float(warmup_cosine_decay_schedule(0.0, 1.0, 2, 6)(step)), 3) for step in (1, 2, 4, 6)]
    [0.5, 1.0, 0.5, 0.0]
    """
    _not_negative("optim.warmup_cosine_decay_schedule", "warmup_steps", warmup_steps)
    _positive("optim.warmup_cosine_decay_schedule", "decay_steps - warmup_steps", decay_steps - warmup_steps)
    alpha = 0.0 if peak_value == 0.0 else end_value / peak_value
    rises = linear_schedule(init_value, peak_value, warmup_steps)
    return join_schedules(
        [rises, cosine_decay_schedule(peak_value, decay_steps - warmup_steps, alpha, exponent)], [warmup_steps]
    )


@_schedule
def warmup_exponential_decay_schedule(
    init_value: Any,
    peak_value: Any,
    warmup_steps: int,
    transition_steps: int,
    decay_rate: Any,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: Any = None,
) -> Schedule:
    """A straight line to ``peak_value``, then :func:`exponential_decay`.

    >>> float(warmup_exponential_decay_schedule(0.0, 1.0, 2, 1, 0.5)(3))
    0.5
    """
    _not_negative("optim.warmup_exponential_decay_schedule", "warmup_steps", warmup_steps)
    rises = linear_schedule(init_value, peak_value, warmup_steps)
    falls = exponential_decay(peak_value, transition_steps, decay_rate, transition_begin, staircase, end_value)
    return join_schedules([rises, falls], [warmup_steps])


@_schedule
def sgdr_schedule(cosine_kwargs: Iterable[Mapping[str, Any]]) -> Schedule:
    """Warm restarts: several :func:`warmup_cosine_decay_schedule`, one after the other.

    Args:
        cosine_kwargs: the arguments of each.

    Source: `optax.sgdr_schedule`; Loshchilov, Hutter, "SGDR", arXiv 1608.03983.

    >>> part = {"init_value": 0.0, "peak_value": 1.0, "warmup_steps": 1, "decay_steps": 3}
    >>> [round(float(sgdr_schedule([part, part])(step)), 3) for step in (1, 2, 3, 4)]
    [1.0, 0.5, 0.0, 1.0]
    """
    what, signature = "optim.sgdr_schedule", inspect.signature(warmup_cosine_decay_schedule)
    parts = _listed(what, "cosine_kwargs", cosine_kwargs)
    for part in parts:
        if not isinstance(part, Mapping):
            raise TypeError(message(what, "cosine_kwargs must be a list of dicts", described(part)))
        try:
            signature.bind(**part)
        except TypeError as error:
            rule = f"cosine_kwargs must be the arguments of warmup_cosine_decay_schedule: {error}"
            raise TypeError(message(what, rule, [*part])) from None
        checked_number(what, "decay_steps", part["decay_steps"])
    if not parts:
        raise ValueError(message(what, "cosine_kwargs must have an entry at least", "none"))
    ends = np.cumsum([part["decay_steps"] for part in parts]).tolist()
    return join_schedules([warmup_cosine_decay_schedule(**part) for part in parts], ends[:-1])
