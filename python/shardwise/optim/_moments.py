# SPDX-License-Identifier: Apache-2.0
"""Transformations with moving averages of the updates: momentum, Adam's moments, and their relatives.

An average has the dtype of the parameter, or one of its own; the bias corrections are those of float32 in Optax without
64 bits, and of float64 for float64 leaves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..flags import takes_flags
from ._base import (
    GradientTransformation,
    abs_sq,
    as_array,
    cast,
    checked_dtype,
    checked_number,
    checked_numbers,
    full_like,
    like,
    mapped,
    real_dtype,
    real_part,
    safe_increment,
    zeros,
)
from ._checks import expect_state

__all__ = [
    "EmaState",
    "ScaleByAdamState",
    "ScaleByLionState",
    "ScaleByRStdDevState",
    "ScaleByRmsState",
    "ScaleByRssState",
    "TraceState",
    "ema",
    "scale_by_adam",
    "scale_by_adamax",
    "scale_by_lion",
    "scale_by_radam",
    "scale_by_rms",
    "scale_by_rss",
    "scale_by_stddev",
    "trace",
]


class TraceState(NamedTuple):
    """The sum of past updates, each decayed."""

    trace: Any


class EmaState(NamedTuple):
    """The number of steps, and the average of the updates."""

    count: Any
    ema: Any


class ScaleByAdamState(NamedTuple):
    """The number of steps, and the averages of the updates and of their squares."""

    count: Any
    mu: Any
    nu: Any


class ScaleByLionState(NamedTuple):
    """The number of steps, and the average of the updates."""

    count: Any
    mu: Any


class ScaleByRmsState(NamedTuple):
    """The average of the squared updates."""

    nu: Any


class ScaleByRmsWithCountState(NamedTuple):
    """The number of steps, and the average of the squared updates."""

    count: Any
    nu: Any


class ScaleByRStdDevState(NamedTuple):
    """The averages of the updates and of their squares."""

    mu: Any
    nu: Any


class ScaleByRStdDevWithCountState(NamedTuple):
    """The number of steps, and the averages of the updates and of their squares."""

    count: Any
    mu: Any
    nu: Any


class ScaleByRssState(NamedTuple):
    """The sum of the squared updates."""

    sum_of_squares: Any


def first_count() -> Any:
    """The counter of a new state."""
    return np.zeros((), np.int32)


def _moment(what: str, updates: Any, moments: Any, decay: Any, order: int = 1) -> Any:
    def average(g: Any, moment: Any) -> Any:
        power = g if order == 1 else abs_sq(g)
        return like(1 - decay, power) * power + like(decay, moment) * moment

    return mapped(what, average, updates, moments)


def _corrected(what: str, moments: Any, decay: Any, count: Any) -> Any:
    """The averages over ``1 - decay ** count``: as if they had not begun with zeros."""

    def correct(moment: Any) -> Any:
        dtype = real_dtype(moment.dtype)
        if dtype == np.float64:
            return moment / (1 - _power(as_array(decay).astype(np.float64), count))
        # Rounded to float32 where Optax rounds.
        rounded = as_array(decay).astype(np.float32).astype(np.float64)
        return moment / (np.float32(1) - _power(rounded, count).astype(np.float32)).astype(dtype)

    return mapped(what, correct, moments)


def _power(decay: Any, count: Any) -> Any:
    return np.power(decay, as_array(count).astype(np.float64))


@takes_flags("optim")
def trace(decay: Any, nesterov: bool = False, accumulator_dtype: Any = None) -> GradientTransformation:
    """Momentum: the sum of past updates, each decayed.

    Args:
        decay: the factor of the past.
        nesterov: whether the update looks one step ahead.
        accumulator_dtype: the dtype of the state; that of the parameters by default.

    Raises:
        DTypeError: no such dtype, or leaves of integers or of complex numbers that it does not hold. TypeError: the
        update gets the state of another transformation. ShapeError: updates of other shapes than the parameters.

    Source: `optax.trace`.

    >>> momentum = trace(0.5)
    >>> updates, state = momentum.update(np.ones(1), momentum.init(np.zeros(1)))
    >>> momentum.update(np.ones(1), state)[0]
    array([1.5])
    """
    what, dtype = "optim.trace", checked_dtype("optim.trace", accumulator_dtype)
    checked_number(what, "decay", decay)

    def add(g: Any, past: Any) -> Any:
        return g + like(decay, past) * past

    def update(updates: Any, state: TraceState, params: Any = None) -> tuple[Any, TraceState]:
        expect_state(what, TraceState, state)
        new = mapped(what, add, updates, state.trace)
        return mapped(what, add, updates, new) if nesterov else new, TraceState(cast(what, new, dtype))

    return GradientTransformation(lambda params: TraceState(zeros(what, params, dtype)), update)


@takes_flags("optim")
def ema(decay: Any, debias: bool = True, accumulator_dtype: Any = None) -> GradientTransformation:
    """The moving average of the updates.

    Args:
        decay: the factor of the past.
        debias: whether to correct for the zeros that the average begins with.
        accumulator_dtype: the dtype of the state; that of the parameters by default.

    Raises:
        DTypeError: no such dtype, or leaves of integers or of complex numbers that it does not hold. TypeError: the
        update gets the state of another transformation. ShapeError: updates of other shapes than the parameters.

    Source: `optax.ema`.

    >>> average = ema(0.5)
    >>> average.update(np.ones(1), average.init(np.zeros(1)))[0]
    array([1.])
    """
    what, dtype = "optim.ema", checked_dtype("optim.ema", accumulator_dtype)
    checked_number(what, "decay", decay)

    def update(updates: Any, state: EmaState, params: Any = None) -> tuple[Any, EmaState]:
        expect_state(what, EmaState, state)
        new, count = _moment(what, updates, state.ema, decay), safe_increment(state.count)
        result = _corrected(what, new, decay, count) if debias else new
        return result, EmaState(count, cast(what, new, dtype))

    return GradientTransformation(lambda params: EmaState(first_count(), zeros(what, params, dtype)), update)


@takes_flags("optim")
def scale_by_adam(
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Adam's updates: the average over the root of the average square.

    Args:
        b1: the decay of the average.
        b2: the decay of the average square.
        eps: added to the root.
        eps_root: added under the root, so that it has a gradient at zero.
        mu_dtype: the dtype of the average; that of the parameters by default.
        nesterov: whether the average looks one step ahead.

    Raises:
        DTypeError: no such dtype, or leaves of integers or of complex numbers that it does not hold. TypeError: the
        update gets the state of another transformation. ShapeError: updates of other shapes than the parameters.

    Source: `optax.scale_by_adam`; Kingma, Ba, "Adam", arXiv 1412.6980; Dozat, "Incorporating Nesterov momentum into
    Adam", 2016.

    >>> adam = scale_by_adam()
    >>> adam.update(np.full(1, 3.0), adam.init(np.zeros(1)))[0].round(6)
    array([1.])
    """
    what, dtype = "optim.scale_by_adam", checked_dtype("optim.scale_by_adam", mu_dtype)
    checked_numbers(what, b1=b1, b2=b2, eps=eps, eps_root=eps_root)

    def init(params: Any) -> ScaleByAdamState:
        return ScaleByAdamState(first_count(), zeros(what, params, dtype), zeros(what, params))

    def scaled(mu: Any, nu: Any) -> Any:
        return mu / (np.sqrt(nu + like(eps_root, nu)) + like(eps, nu))

    def update(updates: Any, state: ScaleByAdamState, params: Any = None) -> tuple[Any, ScaleByAdamState]:
        expect_state(what, ScaleByAdamState, state)
        mu = _moment(what, updates, state.mu, b1)
        nu = _moment(what, updates, state.nu, b2, order=2)
        count = safe_increment(state.count)
        mu_hat = _ahead(what, updates, mu, b1, count) if nesterov else _corrected(what, mu, b1, count)
        result = mapped(what, scaled, mu_hat, _corrected(what, nu, b2, count))
        nu = mapped(what, lambda new, old: new.astype(old.dtype), nu, state.nu)
        return result, ScaleByAdamState(count, cast(what, mu, dtype), nu)

    return GradientTransformation(init, update)


def scale_by_adamax(b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> GradientTransformation:
    """Adamax's updates: the average over the largest update, of which past ones decay.

    Args:
        b1: the decay of the average.
        b2: the decay of the largest update.
        eps: added to the absolute value of each update.

    Raises:
        DTypeError: leaves of integers. TypeError: the update gets the state of another transformation. ShapeError:
        updates of other shapes than the parameters.

    Source: `optax.scale_by_adamax`; Kingma, Ba, "Adam", arXiv 1412.6980, section 7.1.

    >>> adamax = scale_by_adamax()
    >>> adamax.update(np.full(1, 3.0), adamax.init(np.zeros(1)))[0].round(6)
    array([1.])
    """
    what = "optim.scale_by_adamax"
    checked_numbers(what, b1=b1, b2=b2, eps=eps)

    def largest(g: Any, nu: Any) -> Any:
        size = np.abs(g)
        return np.maximum(size + like(eps, size), like(b2, size) * real_part(nu)).astype(nu.dtype)

    def update(updates: Any, state: ScaleByAdamState, params: Any = None) -> tuple[Any, ScaleByAdamState]:
        expect_state(what, ScaleByAdamState, state)
        mu, count = _moment(what, updates, state.mu, b1), safe_increment(state.count)
        nu = mapped(what, largest, updates, state.nu)
        result = mapped(what, lambda m, v: m / v, _corrected(what, mu, b1, count), nu)
        return result, ScaleByAdamState(count, mu, nu)

    def init(params: Any) -> ScaleByAdamState:
        return ScaleByAdamState(first_count(), zeros(what, params), zeros(what, params))

    return GradientTransformation(init, update)


@takes_flags("optim")
def scale_by_radam(
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    threshold: Any = 5.0,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Rectified Adam's updates: Adam's, once there are enough steps for the variance; before, the average alone.

    Args:
        b1: the decay of the average.
        b2: the decay of the average square.
        eps: added to the root.
        eps_root: added under the root, so that it has a gradient at zero.
        threshold: the length of the average of squares from which on it counts.
        nesterov: whether the average looks one step ahead.

    Raises:
        DTypeError: leaves of integers. TypeError: the update gets the state of another transformation. ShapeError:
        updates of other shapes than the parameters.

    Source: `optax.scale_by_radam`; Liu et al., "On the variance of the adaptive learning rate and beyond", arXiv
        1908.03265.

    >>> radam = scale_by_radam()
    >>> radam.update(np.full(1, 3.0), radam.init(np.zeros(1)))[0].round(6)
    array([3.])
    """
    what = "optim.scale_by_radam"
    checked_numbers(what, b1=b1, b2=b2, eps=eps, eps_root=eps_root, threshold=threshold)

    def update(updates: Any, state: ScaleByAdamState, params: Any = None) -> tuple[Any, ScaleByAdamState]:
        expect_state(what, ScaleByAdamState, state)
        mu = _moment(what, updates, state.mu, b1)
        nu = _moment(what, updates, state.nu, b2, order=2)
        count = safe_increment(state.count)
        mu_hat = _ahead(what, updates, mu, b1, count) if nesterov else _corrected(what, mu, b1, count)
        is_long, factor = _rectified(b2, count, threshold)

        def scaled(m: Any, v: Any) -> Any:
            adam = like(factor, m) * m / (np.sqrt(v + like(eps_root, v)) + like(eps, v))
            return np.where(is_long, adam, m)

        result = mapped(what, scaled, mu_hat, _corrected(what, nu, b2, count))
        nu = mapped(what, lambda new, old: new.astype(old.dtype), nu, state.nu)
        return result, ScaleByAdamState(count, mu, nu)

    def init(params: Any) -> ScaleByAdamState:
        return ScaleByAdamState(first_count(), zeros(what, params), zeros(what, params))

    return GradientTransformation(init, update)


def _rectified(b2: Any, count: Any, threshold: Any) -> tuple[Any, Any]:
    """Whether the average of squares is long enough, and the factor of its variance."""
    decay, t = as_array(b2).astype(np.float64), as_array(count).astype(np.float64)
    with np.errstate(all="ignore"):  # of a short average, the root is of a negative number
        longest = 2 / (1 - decay) - 1
        power = np.power(decay, t)
        length = longest - 2 * t * power / (1 - power)
        is_long = length >= threshold
        square = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        return is_long, np.where(is_long, np.sqrt(square), 1.0)


def _ahead(what: str, updates: Any, mu: Any, b1: Any, count: Any) -> Any:
    """Nesterov's average, which looks one step ahead."""
    ahead = _corrected(what, mu, b1, safe_increment(count))
    return _moment(what, _corrected(what, updates, b1, count), ahead, b1)


@takes_flags("optim")
def scale_by_rms(
    decay: Any = 0.9,
    eps: Any = 1e-8,
    initial_scale: Any = 0.0,
    eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformation:
    """Updates over the root of their average square.

    Args:
        decay: the decay of the average.
        eps: added to the average, or to the root.
        initial_scale: what the average begins with.
        eps_in_sqrt: whether ``eps`` is under the root.
        bias_correction: whether the average counts as if it had not begun with zeros.

    Raises:
        DTypeError: leaves of integers. TypeError: the update gets the state of another transformation. ShapeError:
        updates of other shapes than the parameters.

    Source: `optax.scale_by_rms`.

    >>> rms = scale_by_rms(0.75)
    >>> rms.update(np.full(1, 3.0), rms.init(np.zeros(1)))[0].round(6)
    array([2.])
    """
    what = "optim.scale_by_rms"
    checked_numbers(what, decay=decay, eps=eps, initial_scale=initial_scale)
    kind: Any = ScaleByRmsWithCountState if bias_correction else ScaleByRmsState

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        expect_state(what, kind, state)
        nu = _moment(what, updates, state.nu, decay, order=2)
        counted, corrected = _counted(what, state, decay, {"nu": nu}, bias_correction)
        scaled = mapped(what, lambda g, nu: _over_root(g, nu, eps, eps_in_sqrt), updates, corrected["nu"])
        return scaled, kind(**counted, nu=nu)

    def init(params: Any) -> Any:
        return kind(**_first_square(what, params, initial_scale, bias_correction))

    return GradientTransformation(init, update)


@takes_flags("optim")
def scale_by_stddev(
    decay: Any = 0.9,
    eps: Any = 1e-8,
    initial_scale: Any = 0.0,
    eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformation:
    """Updates over the root of their variance: the average square less the square of the average.

    Args:
        decay: the decay of both averages.
        eps: added to the variance, or to the root.
        initial_scale: what the average square begins with.
        eps_in_sqrt: whether ``eps`` is under the root.
        bias_correction: whether the averages count as if they had not begun with zeros.

    Raises:
        DTypeError: leaves of integers. TypeError: the update gets the state of another transformation. ShapeError:
        updates of other shapes than the parameters.

    Source: `optax.scale_by_stddev`.

    >>> stddev = scale_by_stddev(0.5)
    >>> stddev.update(np.full(1, 3.0), stddev.init(np.zeros(1)))[0].round(6)
    array([2.])
    """
    what = "optim.scale_by_stddev"
    checked_numbers(what, decay=decay, eps=eps, initial_scale=initial_scale)
    kind: Any = ScaleByRStdDevWithCountState if bias_correction else ScaleByRStdDevState

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        expect_state(what, kind, state)
        moments = {
            "mu": _moment(what, updates, state.mu, decay),
            "nu": _moment(what, updates, state.nu, decay, order=2),
        }
        counted, corrected = _counted(what, state, decay, moments, bias_correction)

        def scaled(g: Any, mu: Any, nu: Any) -> Any:
            return _over_root(g, nu - abs_sq(mu), eps, eps_in_sqrt)

        return mapped(what, scaled, updates, corrected["mu"], corrected["nu"]), kind(**counted, **moments)

    def init(params: Any) -> Any:
        return kind(**_first_square(what, params, initial_scale, bias_correction), mu=zeros(what, params))

    return GradientTransformation(init, update)


def _first_square(what: str, params: Any, initial_scale: Any, is_corrected: bool) -> dict[str, Any]:
    """The average square that a state begins with, and its counter, if it has one."""
    counted = {"count": first_count()} if is_corrected else {}
    return {**counted, "nu": mapped(what, lambda p: full_like(p, initial_scale), params)}


def _counted(what: str, state: Any, decay: Any, moments: dict[str, Any], is_corrected: bool) -> tuple[Any, Any]:
    """The counter for the next state, if it has one, and the moments to divide by."""
    if not is_corrected:
        return {}, moments
    count = safe_increment(state.count)
    return {"count": count}, {name: _corrected(what, moment, decay, count) for name, moment in moments.items()}


def _over_root(g: Any, square: Any, eps: Any, eps_in_sqrt: bool) -> Any:
    small = like(eps, square)
    with np.errstate(invalid="ignore"):  # a rounded variance may be negative: NaN, as in Optax
        return g / np.sqrt(square + small) if eps_in_sqrt else g / (np.sqrt(square) + small)


def scale_by_rss(initial_accumulator_value: Any = 0.1, eps: Any = 1e-7) -> GradientTransformation:
    """Updates over the root of the sum of all squares so far.

    Args:
        initial_accumulator_value: what the sum begins with.
        eps: added under the root.

    Raises:
        DTypeError: leaves of integers. TypeError: the update gets the state of another transformation. ShapeError:
        updates of other shapes than the parameters.

    Source: `optax.scale_by_rss`.

    >>> rss = scale_by_rss(0.0, 0.0)
    >>> rss.update(np.full(1, 3.0), rss.init(np.zeros(1)))[0]
    array([1.])
    """
    what = "optim.scale_by_rss"
    checked_numbers(what, initial_accumulator_value=initial_accumulator_value, eps=eps)

    def scaled(g: Any, total: Any) -> Any:
        is_positive = real_part(total) > 0
        safe = np.where(is_positive, total + like(eps, total), like(1, total))
        return np.where(is_positive, g / np.sqrt(safe), like(0, g))

    def update(updates: Any, state: ScaleByRssState, params: Any = None) -> tuple[Any, ScaleByRssState]:
        expect_state(what, ScaleByRssState, state)
        total = mapped(what, lambda g, sum_: abs_sq(g) + sum_, updates, state.sum_of_squares)
        return mapped(what, scaled, updates, total), ScaleByRssState(total)

    def init(params: Any) -> ScaleByRssState:
        return ScaleByRssState(mapped(what, lambda p: full_like(p, initial_accumulator_value), params))

    return GradientTransformation(init, update)


def scale_by_lion(b1: Any = 0.9, b2: Any = 0.99, mu_dtype: Any = None) -> GradientTransformation:
    """Lion's updates: the signs of the average.

    Args:
        b1: the decay of the average in the update.
        b2: the decay of the average in the state.
        mu_dtype: the dtype of the average; that of the parameters by default.

    Raises:
        DTypeError: no such dtype, or leaves of integers or of complex numbers that it does not hold. TypeError: the
        update gets the state of another transformation. ShapeError: updates of other shapes than the parameters.

    Source: `optax.scale_by_lion`; Chen et al., "Symbolic discovery of optimization algorithms", arXiv 2302.06675.

    >>> lion = scale_by_lion()
    >>> lion.update(np.full(1, -3.0), lion.init(np.zeros(1)))[0]
    array([-1.])
    """
    what, dtype = "optim.scale_by_lion", checked_dtype("optim.scale_by_lion", mu_dtype)
    checked_numbers(what, b1=b1, b2=b2)

    def update(updates: Any, state: ScaleByLionState, params: Any = None) -> tuple[Any, ScaleByLionState]:
        expect_state(what, ScaleByLionState, state)
        result = mapped(what, np.sign, _moment(what, updates, state.mu, b1))
        mu = cast(what, _moment(what, updates, state.mu, b2), dtype)
        return result, ScaleByLionState(safe_increment(state.count), mu)

    return GradientTransformation(lambda params: ScaleByLionState(first_count(), zeros(what, params, dtype)), update)
