# SPDX-License-Identifier: Apache-2.0
"""Random booleans, choices with given probabilities, and random orders."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ..errors import DTypeError, ShapeError, called_as, is_one_of, message, shown
from ..flags import as_flag
from ..numpy._primitives import normalize_axis
from ..process.traceback_filtering import entry_point
from ..recording.tracing import Tracer
from ._arguments import check_mode, checked_shape, floating, shape_with
from ._floats import MANTISSA, gumbel, uniform, uniform_in
from ._integers import bits, randint
from ._keys import split
from ._threefry import check_key

__all__ = ["bernoulli", "categorical", "choice", "permutation", "shuffle"]


@entry_point
def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, mode: str = "low") -> Any:
    """Random booleans that are True with probability ``p``.

    Args:
        key: a key, uint32[2].
        p: a float or an array of floats that broadcasts to ``shape``.
        shape: the shape of the result; None for the shape of ``p``.
        mode: ``"low"``, or ``"high"`` for twice the random bits, which matters if ``p`` is below 1e-6.

    Returns:
        Booleans, equal to ``jax.random.bernoulli``.

    Raises:
        ShapeError, DTypeError: not a key, a negative size, or a ``p`` that is not floating.
        ValueError: a number ``p`` outside of [0, 1], or an unknown mode.

    >>> from shardwise.random import PRNGKey
    >>> bernoulli(PRNGKey(0), 0.95, (2,))
    array([ True, False])
    """
    key = check_key("random.bernoulli", key)
    if not is_one_of(mode, ("low", "high")):
        raise ValueError(message("random.bernoulli", "mode must be 'low' or 'high'", repr(mode)))
    probability = floating("random.bernoulli", "p", p)
    if isinstance(p, (float, np.generic)) and not 0 <= float(p) <= 1:
        raise ValueError(message("random.bernoulli", "p must be in [0, 1]", p, "limit it with np.clip"))
    found = probability.dtype
    sizes = shape_with("random.bernoulli", shape, p=probability)
    zero, one = np.zeros((), found), np.ones((), found)
    if mode == "low":
        return uniform_in(key, sizes, found, zero, one) < probability
    drawn = uniform_in(key, (2, *sizes), found, zero, one)
    return drawn[1] * np.array(2.0 ** -MANTISSA[found.name], found) < probability - drawn[0]


@entry_point
def categorical(
    key: Any, logits: Any, axis: int = -1, shape: Any = None, replace: bool = True, mode: str | None = None
) -> Any:
    """Random indices along ``axis``, each with the probability that softmax gives to its logit.

    Args:
        key: a key, uint32[2].
        logits: floating; the logarithms of the probabilities, up to a constant.
        axis: the axis that holds the logits of one draw.
        shape: the shape of the result; the other dims of ``logits`` broadcast to its last dims. None for these dims.
        replace: whether the same index may be drawn again. If not, the dims of ``shape`` before those of ``logits``
            are draws of different indices: those of the largest sums of a logit and Gumbel noise.
        mode: ``"low"``, ``"high"`` or ``"highest"``, as in :func:`gumbel`.

    Returns:
        int64 indices: the choices of ``jax.random.categorical``.

    Raises:
        ShapeError, DTypeError: not a key, a missing axis, a shape that does not fit, too many draws without
            replacement, or logits that are not floating.
        TypeError: ``replace`` is not a bool. ValueError: an unknown mode.

    >>> from shardwise.random import PRNGKey
    >>> categorical(PRNGKey(0), np.log(np.array([0.05, 0.05, 0.9])), shape=(6,))
    array([2, 2, 2, 2, 1, 2])
    """
    key = check_key("random.categorical", key)
    replace = as_flag("random.categorical", "replace", replace)
    logits = floating("random.categorical", "logits", logits)
    sizes = list(logits.shape)
    if not sizes:
        raise ShapeError(message("random.categorical", "logits must have a dim", "a scalar", "give one a choice"))
    dim = normalize_axis("random.categorical", axis, len(sizes))
    count = sizes.pop(dim)
    if not count:
        raise ShapeError(message("random.categorical", f"axis {axis} must have a choice", list(logits.shape)))
    if shape is not None:
        drawn = shape_with("random.categorical", shape, logits=np.broadcast_to(np.empty(()), sizes))
        prefix, sizes = drawn[: len(drawn) - len(sizes)], list(drawn[len(drawn) - len(sizes) :])
    else:
        prefix = ()
    if not replace:
        return _without_replacement(key, logits, dim, (prefix, tuple(sizes)), mode)
    sizes.insert(dim, count)
    noise = gumbel(key, (*prefix, *sizes), logits.dtype, mode)
    return np.argmax(noise + logits, axis=len(prefix) + dim)


def _without_replacement(
    key: Any, logits: Any, dim: int, shape: tuple[tuple[int, ...], tuple[int, ...]], mode: str | None
) -> Any:
    """Different indices along ``dim``: ``shape`` is that of the draws, and that of the other dims of the logits."""
    prefix, sizes = shape
    draws, count = math.prod(prefix), logits.shape[dim]
    if sizes != tuple(np.delete(logits.shape, dim)):
        rule = "replace=False draws for each row of the logits: shape must end with their other dims"
        raise ShapeError(message("random.categorical", rule, (*prefix, *sizes), "broadcast the logits"))
    if draws > count:
        rule = f"replace=False draws at most the {count} indices of a row"
        raise ShapeError(message("random.categorical", rule, f"{draws} draws", "pass replace=True"))
    sums = logits + gumbel(key, logits.shape, logits.dtype, mode)
    order = np.argsort(-np.moveaxis(sums, dim, -1), axis=-1, stable=True)[..., :draws]
    return np.moveaxis(order, -1, 0).reshape(*prefix, *sizes)


@entry_point
def choice(
    key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0, mode: str | None = None
) -> Any:
    """Random elements of an array, or random numbers below ``a``.

    Args:
        key: a key, uint32[2].
        a: an array, whose elements along ``axis`` are drawn; or an int, for ``np.arange(a)``.
        shape: the number of draws, as a shape.
        replace: whether an element may be drawn again.
        p: the probability of each element; equal ones by default. Without replacement, that of the first draw.
        axis: the axis of ``a`` along which elements are drawn.
        mode: ``"low"``, ``"high"`` or ``"highest"``, as in :func:`gumbel`; it matters for ``p`` without replacement.

    Returns:
        The choices of ``jax.random.choice``.

    Raises:
        ShapeError, DTypeError: not a key, too few elements, a negative size, or ``p`` of another size or dtype.
        TypeError: ``replace`` is not a bool. ValueError: an unknown mode.

    >>> from shardwise.random import PRNGKey
    >>> choice(PRNGKey(0), np.array([10, 20, 30]), (4,)).shape
    (4,)
    >>> choice(PRNGKey(0), 5, (3,), replace=False)
    array([0, 1, 4])
    """
    key = check_key("random.choice", key)
    replace = as_flag("random.choice", "replace", replace)
    check_mode("random.choice", mode)
    wanted = checked_shape("random.choice", shape)
    table, dim, count = _elements("random.choice", "a", a, axis)
    draws = math.prod(wanted)
    if count < 1 and (draws or replace):
        raise ShapeError(message("random.choice", "there must be an element to draw", repr(a)))
    if not replace and draws > count:
        rule = f"replace=False draws at most the {count} elements of a"
        raise ShapeError(message("random.choice", rule, f"shape {wanted}, {draws} draws", "pass replace=True"))
    if p is not None:
        p = floating("random.choice", "p", p)
        if p.shape != (count,):
            raise ShapeError(message("random.choice", f"p must have one number for each of {count} elements", p.shape))
    if replace and p is None:
        drawn = randint(key, wanted, 0, count)
    elif replace:
        sums = np.cumsum(p)
        drawn = np.searchsorted(sums, sums[-1] * (1 - uniform(key, wanted, p.dtype)))
    elif p is None:
        drawn = _shuffled(key, (count,), 0)[:draws].reshape(wanted)
    else:  # the largest sums of log p and Gumbel noise are a sample without replacement
        with np.errstate(divide="ignore"):
            sums = gumbel(key, (count,), p.dtype, mode) + np.log(p)
        drawn = np.argsort(-sums, stable=True)[:draws].reshape(wanted)
    return np.asarray(drawn) if not table.ndim and not isinstance(drawn, Tracer) else _taken(table, drawn, dim)


@entry_point
def shuffle(key: Any, x: Any, axis: int = 0) -> Any:
    """The elements of an array in a random order along ``axis``, each line in one of its own.

    The same as :func:`permutation` with ``independent=True``; JAX had it under this name.

    Args:
        key: a key, uint32[2].
        x: an array, whose elements along ``axis`` are moved; or an int, for ``np.arange(x)``.
        axis: the axis of ``x`` to shuffle.

    Returns:
        A new array of the shape and dtype of ``x``.

    Raises:
        ShapeError, DTypeError: not a key, a missing axis, or neither an array nor an integer.

    >>> from shardwise.random import PRNGKey
    >>> shuffle(PRNGKey(0), np.arange(10).reshape(2, 5), axis=1).sum(1)
    array([10, 35])
    """
    with called_as("random.shuffle", "random.permutation"):
        return permutation(key, x, axis, True)


@entry_point
def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Any:
    """The elements of an array in a random order, or the numbers below ``x``.

    Args:
        key: a key, uint32[2].
        x: an array, whose elements along ``axis`` are moved; or an int, for ``np.arange(x)``.
        axis: the axis of ``x`` to permute.
        independent: whether each line along ``axis`` has an order of its own. By default, all have the same.

    Returns:
        An array of the shape and dtype of ``x``, in the order of ``jax.random.permutation``: the elements are sorted
        by random bits, once for up to 1,625 elements of a line, and twice or three times for more.

    Raises:
        ShapeError, DTypeError: not a key, a missing axis, or neither an array nor an integer.
        TypeError: ``independent`` is not a bool.

    >>> from shardwise.random import PRNGKey
    >>> permutation(PRNGKey(0), 5)
    array([0, 1, 4, 3, 2])
    """
    key = check_key("random.permutation", key)
    independent = as_flag("random.permutation", "independent", independent)
    table, dim, count = _elements("random.permutation", "x", x, axis)
    if not independent or table.ndim < 2:
        return _taken(table, _shuffled(key, (count,), 0), dim)
    order = _shuffled(key, table.shape, dim)
    return np.take_along_axis(order._trace.lift(table) if isinstance(order, Tracer) else table, order, dim)


def _elements(function: str, name: str, x: Any, axis: Any) -> tuple[Any, int, int]:
    """What to draw from: an array or a number, the dim to draw along, and the number of elements there."""
    table = x if hasattr(x, "dtype") else np.asarray(x)
    if not table.ndim and table.dtype.kind not in "iu":
        raise DTypeError(message(function, f"{name} must be an array or an integer", shown(x)))
    if not table.ndim:
        normalize_axis(function, axis, 1)
        count = operator.index(x)
        if count < 0:
            raise ShapeError(message(function, f"{name} must not be negative", count))
        return table, 0, count
    dim = normalize_axis(function, axis, table.ndim)
    return table, dim, table.shape[dim]


_SHUFFLE_EXPONENT = 3  # JAX's: the probability that two elements never had different bits is below size^-1


def _shuffled(key: Any, shape: tuple[int, ...], dim: int) -> Any:
    """The indices along ``dim``, in an order of its own in each line: sorted by random bits, as JAX shuffles.

    Bits that collide keep their order, so more elements need more rounds.
    """
    size = math.prod(shape)
    rounds = math.ceil(_SHUFFLE_EXPONENT * math.log(max(1, size)) / math.log(np.iinfo(np.uint32).max))
    indices = np.arange(shape[dim]).reshape([-1 if i == dim else 1 for i in range(len(shape))])
    indices = np.broadcast_to(indices, shape)
    for i in range(rounds):
        key, subkey = split(key)
        order = np.argsort(bits(subkey, shape), axis=dim, stable=True)
        indices = np.take_along_axis(indices, order, dim) if i else order
    return indices


def _taken(table: Any, drawn: Any, dim: int) -> Any:
    if not table.ndim:
        return drawn
    if isinstance(drawn, Tracer):
        table = drawn._trace.lift(table)
    return np.take(table, drawn, axis=dim)
