# SPDX-License-Identifier: Apache-2.0
"""Random counts: of events, of successes, of trials up to the first success, and of successes in several categories.

Rejection is by a loop of the program: each step draws for all elements, and those that have accepted keep their number.

Sources: Knuth, "The Art of Computer Programming", vol. 2, 3.4.1 (products of uniform numbers). Hörmann, "The
transformed rejection method for generating Poisson random variables", Insurance: Mathematics and Economics 12, 1993;
"The generation of binomial random variates", J. Statistical Computation and Simulation 46, 1993 (BTRS).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..control_flow import scan, while_loop
from ..dtypes import as_dtype, is_float
from ..errors import DTypeError, ShapeError, message
from ..lax.calls import on_arrays, recording
from ..lax.elementwise import lgamma
from ..recording.tracing import WeakTracer
from ._arguments import checked_shape, float_dtype, integer_dtype, operand, shape_with
from ._choices import bernoulli
from ._floats import uniform
from ._keys import split
from ._threefry import check_key

__all__ = ["binomial", "geometric", "multinomial", "poisson", "rademacher", "rademacher_in"]

_FLOAT32 = np.dtype(np.float32)
# log(k!) less Stirling's approximation, for k up to 9.
_STIRLING_TAIL: tuple[float, ...]
_STIRLING_TAIL = (0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211)
_STIRLING_TAIL += (0.0138761288230707, 0.0118967099458917, 0.010411265261972, 0.00925546218271273, 0.00833056343336287)


@on_arrays("key", "lam", module="random", takes_lists=True)
def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = np.int32) -> Any:
    """Random counts of events whose mean is ``lam``.

    Args:
        key: a key, uint32[2].
        lam: the mean: a number that is not negative, or an array that broadcasts to ``shape``; used in float32.
        shape: the shape of the result; None for that of ``lam``.
        dtype: the integer dtype of the result.

    Returns:
        The draws of ``jax.random.poisson``, the same on every mesh; -1 where ``lam`` is NaN. Float32 numbers decide
        what is rejected: for a mean of thousands, one draw in a hundred differs, as JAX rounds logarithms otherwise.

    Raises:
        ShapeError, DTypeError: not a key, a dtype that is not of integers, or a mean that does not broadcast.

    >>> from shardwise.random import PRNGKey
    >>> poisson(PRNGKey(0), 4.0, (6,))
    array([0, 1, 5, 5, 2, 2], dtype=int32)
    """
    key, found = check_key("random.poisson", key), integer_dtype("random.poisson", dtype)
    lam = operand("random.poisson", "lam", lam, _FLOAT32)
    sizes = shape_with("random.poisson", shape, lam=lam)
    lam = np.broadcast_to(lam, sizes)
    is_small = np.isnan(lam) | (lam < 10)
    counts = np.where(
        is_small,
        _poisson_of_small(key, np.where(is_small, lam, np.float32(0)), found),
        _poisson_of_large(key, np.where(is_small, np.float32(1e5), lam), found),
    )
    return np.where(lam == 0, np.zeros((), found), counts)


def _limit(dtype: np.dtype[Any]) -> int:
    """The largest number of steps: a count is at most the largest number of its dtype."""
    return min(int(np.iinfo(dtype).max), np.iinfo(np.int64).max)


def _poisson_of_small(key: Any, lam: Any, dtype: np.dtype[Any]) -> Any:
    """How many uniform numbers can be multiplied before the product falls below exp(-lam)."""
    most = _limit(dtype)

    def goes_on(carry: Any) -> Any:
        step, _, _, log_product = carry
        return np.any(log_product > -lam) & (step < most)

    def body(carry: Any) -> Any:
        step, count, key, log_product = carry
        keys = split(key)
        count = np.where(log_product > -lam, count + np.ones((), dtype), count)
        return step + 1, count, keys[0], log_product + np.log(uniform(keys[1], lam.shape))

    first = (np.int64(0), np.zeros(lam.shape, dtype), key, np.zeros_like(lam))
    return while_loop(goes_on, body, first)[1] - np.ones((), dtype)


def _poisson_of_large(key: Any, lam: Any, dtype: np.dtype[Any]) -> Any:
    most, log_lam = _limit(dtype), np.log(lam)
    b = 0.931 + 2.53 * np.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def body(carry: Any) -> Any:
        step, count, accepted, key = carry
        keys = split(key, 3)
        u = uniform(keys[1], lam.shape) - np.float32(0.5)
        v = uniform(keys[2], lam.shape)
        distance = 0.5 - np.abs(u)
        k = np.floor((2 * a / distance + b) * u + lam + 0.43)
        s = np.log(v * inverse_alpha / (a / (distance * distance) + b))
        accepts = s <= k * log_lam - lam - lgamma(k + 1)
        accepts &= ~((k < 0) | ((distance < 0.013) & (v > distance)))
        accepts |= (distance >= 0.07) & (v <= v_r)
        return step + 1, np.where(accepts, k, count), accepted | accepts, keys[0]

    first = (np.int64(0), np.full(lam.shape, -1, np.float32), np.zeros(lam.shape, bool), key)
    return while_loop(lambda carry: np.any(~carry[2]) & (carry[0] < most), body, first)[1].astype(dtype)


@on_arrays("key", "n", "p", module="random", takes_lists=True)
def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = np.float32) -> Any:
    """Random counts of successes in ``n`` trials that succeed with probability ``p``.

    Args:
        key: a key, uint32[2].
        n: the number of trials: a number, or an array that broadcasts to ``shape``.
        p: the probability, like ``n``; the computation is in float64 if its dtype is, else in float32.
        shape: the shape of the result; None for the broadcast shape of ``n`` and ``p``.
        dtype: the floating dtype of the result.

    Returns:
        The draws of ``jax.random.binomial``, the same on every mesh; NaN for a negative ``n``, ``p < 0`` or NaN. Floats
        decide which numbers are rejected, so that a draw in some thousands may differ from JAX's.

    Raises:
        ShapeError, DTypeError: not a key, a dtype that is not floating, or parameters that do not broadcast.

    >>> from shardwise.random import PRNGKey
    >>> binomial(PRNGKey(0), 10, 0.5, (6,))
    array([6., 7., 5., 6., 7., 3.], dtype=float32)
    """
    key, found = check_key("random.binomial", key), float_dtype("random.binomial", dtype)
    p = _probability("random.binomial", p)
    n = operand("random.binomial", "n", n, p.dtype)
    return _binomial_in(key, n, p, shape_with("random.binomial", shape, n=n, p=p), found)


def _probability(function: str, p: Any) -> Any:
    """``p`` in float64 or float32: float32 of Python numbers, as in JAX, and of 16-bit floats."""
    if isinstance(p, (WeakTracer, int, float)) and not isinstance(p, np.generic):
        return operand(function, "p", p, _FLOAT32)
    p = p if hasattr(p, "dtype") else np.asarray(p)
    is_wide = p.dtype.itemsize == 8 or (p.dtype.itemsize == 4 and not is_float(p.dtype))
    return operand(function, "p", p, np.dtype(np.float64) if is_wide else _FLOAT32)


def _binomial_in(key: Any, n: Any, p: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    zero, half, one = (np.array(number, p.dtype) for number in (0, 0.5, 1))
    n, p = np.broadcast_to(n, shape), np.broadcast_to(p, shape)
    is_rare = p < half
    q = np.where(is_rare, p, one - p)
    has_no_number = np.isnan(n) | (n < zero)
    has_no_rate, is_infinite = np.isnan(q) | (q < zero), np.isinf(n)
    q = np.where(has_no_rate, np.array(0.01, p.dtype), q)
    is_small = has_no_number | (n * q <= 10)
    n = np.floor(n)
    counts = np.where(
        is_small,
        _binomial_of_small(key, np.where(is_small, n, zero), q, dtype),
        _binomial_of_large(key, np.where(is_small, np.array(1e4, p.dtype), n), np.where(is_small, half, q), dtype),
    )
    has_none = has_no_rate | has_no_number
    counts = np.where(has_none, np.array(np.nan, dtype), counts)
    counts = np.where(is_infinite & ~has_none, np.array(np.inf, dtype), counts)
    keeps = is_rare | has_no_number | np.isnan(q) | is_infinite
    return np.where(keeps, counts, n.astype(dtype) - counts)


def _binomial_of_small(key: Any, n: Any, p: Any, dtype: np.dtype[Any]) -> Any:
    """How many successes come before the trials are used up: the distances between them are geometric."""
    log_failure = np.log1p(-p)

    def body(carry: Any) -> Any:
        count, used, key = carry
        keys = split(key)
        count = np.where(used <= n, count + np.ones((), p.dtype), count)
        return count, used + np.ceil(np.log(uniform(keys[0], n.shape, p.dtype)) / log_failure), keys[1]

    first = (np.zeros_like(n), np.zeros_like(n), key)
    return (while_loop(lambda carry: np.any(carry[1] <= n), body, first)[0] - np.ones((), p.dtype)).astype(dtype)


def _binomial_of_large(key: Any, n: Any, p: Any, dtype: np.dtype[Any]) -> Any:
    deviation = np.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    ratio = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    mode = np.floor((n + 1) * p)
    of_mode = (mode + 0.5) * np.log((mode + 1) / (ratio * (n - mode + 1)))
    tails = _stirling_tail(mode) + _stirling_tail(n - mode)

    def body(carry: Any) -> Any:
        count, accepted, key = carry
        keys = split(key, 3)
        u = uniform(keys[1], n.shape, p.dtype) - 0.5
        v = uniform(keys[2], n.shape, p.dtype)
        distance = 0.5 - np.abs(u)
        k = np.floor((2 * a / distance + b) * u + c)
        bound = (
            of_mode
            + (n + 1) * np.log((n - mode + 1) / (n - k + 1))
            + (k + 0.5) * np.log(ratio * (n - k + 1) / (k + 1))
            + tails
            - _stirling_tail(k)
            - _stirling_tail(n - k)
        )
        accepts = np.log(v * alpha / (a / (distance * distance) + b)) <= bound
        accepts &= ~((k < 0) | (k > n))
        accepts |= (distance >= 0.07) & (v <= v_r)
        return np.where(accepts, k, count), accepted | accepts, keys[0]

    first = (np.full(n.shape, -1, p.dtype), np.zeros(n.shape, bool), key)
    return while_loop(lambda carry: np.any(~carry[1]), body, first)[0].astype(dtype)


def _stirling_tail(k: Any) -> Any:
    """log(k!) less Stirling's approximation."""
    limited = np.clip(k, np.zeros((), k.dtype), np.array(9, k.dtype))
    square = (limited + 1) * (limited + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (limited + 1)
    known = np.take(recording().lift(np.array(_STIRLING_TAIL, k.dtype)), np.floor(limited).astype(np.int32))
    return np.where(k <= 9, known, series)


@on_arrays("key", "n", "p", module="random", takes_lists=True)
def multinomial(key: Any, n: Any, p: Any, *, shape: Any = None, dtype: Any = np.float32, unroll: int | bool = 1) -> Any:
    """Random counts of ``n`` trials in categories.

    Args:
        key: a key, uint32[2].
        n: the number of trials: a number, or an array that broadcasts to the result without its last dim.
        p: the probabilities of the categories, ``[..., k]``.
        shape: the shape of the result, its last dim included; None for that of ``p``.
        dtype: the dtype of the result.
        unroll: how many categories each trip of the loop draws, as in :func:`shardwise.scan`.

    Returns:
        The draws of ``jax.random.multinomial``, the same on every mesh; see :func:`binomial`, which draws them.

    Raises:
        ShapeError, DTypeError: not a key, no dim, or parameters that do not broadcast.

    >>> from shardwise.random import PRNGKey
    >>> multinomial(PRNGKey(0), 20, np.array([0.2, 0.3, 0.5])).sum()
    np.float32(20.0)
    """
    what = "random.multinomial"
    key, found = check_key(what, key), as_dtype(what, dtype)
    p = _probability(what, p)
    if not p.shape:
        raise ShapeError(message(what, "p must have a dim", "a scalar", "give one probability a category"))
    n = operand(what, "n", n, p.dtype)
    sizes = tuple(p.shape) if shape is None else shape_with(what, shape, p=p)
    shape_with(what, sizes[:-1], n=n)
    p = np.moveaxis(np.broadcast_to(p, sizes), -1, 0)
    # Added in the order of the indices: the same bits, however the dim is split.
    first = np.zeros_like(p, shape=p.shape[1:])
    remaining = scan(lambda total, row: (total + row,) * 2, first, p, reverse=True)[1]
    ratios = np.clip(p / np.where(remaining == 0, np.ones((), p.dtype), remaining), 0, 1)

    def step(left: Any, ratio_and_key: Any) -> Any:
        ratio, key = ratio_and_key
        count = _binomial_in(key, left, ratio, sizes[:-1], p.dtype)
        return left - count, count

    _, counts = scan(step, np.broadcast_to(n, sizes[:-1]), (ratios, split(key, ratios.shape[0])), unroll=unroll)
    return np.moveaxis(counts, 0, -1).astype(found)


@on_arrays("key", "p", module="random", takes_lists=True)
def geometric(key: Any, p: Any, shape: Any = None, dtype: Any = np.int32) -> Any:
    """Random numbers of trials up to the first success, each of probability ``p``.

    Args:
        key: a key, uint32[2].
        p: the probability: a number in (0, 1], or an array that broadcasts to ``shape``.
        shape: the shape of the result; None for that of ``p``.
        dtype: the integer dtype of the result.

    Returns:
        The draws of ``jax.random.geometric``, the same on every mesh.

    Raises:
        ShapeError, DTypeError: not a key, a dtype that is not of integers, or a probability that does not broadcast.

    >>> from shardwise.random import PRNGKey
    >>> geometric(PRNGKey(0), 0.3, (6,))
    array([1, 1, 4, 3, 2, 6], dtype=int32)
    """
    key, found = check_key("random.geometric", key), integer_dtype("random.geometric", dtype)
    p = _probability("random.geometric", p)
    u = uniform(key, shape_with("random.geometric", shape, p=p), p.dtype)
    trials = np.floor(np.log(np.where(u == 0, np.ones((), p.dtype), u)) / np.log1p(-p)) + 1
    return trials.astype(found)


@on_arrays("key", module="random")
def rademacher(key: Any, shape: Any = (), dtype: Any = np.int32) -> Any:
    """Random signs: -1 or 1, each with probability one half.

    Args:
        key: a key, uint32[2].
        shape: the shape of the result.
        dtype: the dtype of the result, of signed integers or floats.

    Returns:
        The numbers of ``jax.random.rademacher``, bit for bit.

    Raises:
        ShapeError, DTypeError: not a key, a negative size, or another dtype.

    >>> from shardwise.random import PRNGKey
    >>> rademacher(PRNGKey(0), (6,))
    array([-1, -1,  1,  1, -1,  1], dtype=int32)
    """
    key, found = check_key("random.rademacher", key), as_dtype("random.rademacher", dtype).newbyteorder("=")
    if found.kind != "i" and not is_float(found):
        rule = "dtype must be of signed integers or floats"
        raise DTypeError(message("random.rademacher", rule, found, "convert the result with astype"))
    return rademacher_in(key, checked_shape("random.rademacher", shape), found)


def rademacher_in(key: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """:func:`rademacher` with arguments that are checked already."""
    one = np.ones((), dtype)
    return np.where(bernoulli(key, 0.5, shape), one, -one)
