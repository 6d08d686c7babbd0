# SPDX-License-Identifier: Apache-2.0
"""Losses of each element or of each row; take their mean for a scalar.

Classes may be split over devices: all_reduces then exchange a few numbers per row, never the logits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ShapeError, message
from ..numpy._primitives import normalize_axes, normalize_axis
from ._arguments import as_array, inexact, like, mask_of, number, public, total
from .activations import log_sigmoid_of
from .softmax import log_softmax_of, logsumexp_of, places_of

__all__ = [
    "cosine_similarity",
    "huber_loss",
    "l2_loss",
    "log_cosh",
    "sigmoid_binary_cross_entropy",
    "softmax_cross_entropy",
    "softmax_cross_entropy_with_integer_labels",
    "squared_error",
]


def _both(function: str, names: tuple[str, str], first: Any, second: Any) -> tuple[Any, Any]:
    """Two arrays of floats that broadcast. A Python number takes the other's dtype."""
    a = inexact(function, first, names[0])
    b = inexact(function, number(function, names[1], second, a), names[1])
    try:
        np.broadcast_shapes(tuple(a.shape), tuple(b.shape))
    except ValueError:
        rule, got = f"{names[0]} and {names[1]} must broadcast", f"{tuple(a.shape)} and {tuple(b.shape)}"
        raise ShapeError(message(function, rule, got, "reshape one")) from None
    return a, b


@public
def softmax_cross_entropy(logits: Any, labels: Any, axis: Any = -1, where: Any = None) -> Any:
    """``-sum(labels * log_softmax(logits))`` along ``axis``: cross-entropy with distributions as labels.

    Args:
        logits: an array of real numbers.
        labels: an array that broadcasts with ``logits``: numbers whose sum along ``axis`` is 1.
        axis: the dim, or dims, of the classes.
        where: bools that broadcast to ``logits``: the classes that are included.

    Returns:
        An array without the dims of ``axis``.

    Raises:
        ShapeError: no such dim, or shapes that do not broadcast.
        DTypeError: no real numbers, or ``where`` is not of bools.

    Layout: along a split dim, three all_reduces of one number per row.

    Source: `optax.losses.softmax_cross_entropy`.

    >>> softmax_cross_entropy(np.zeros(4), np.array([0.0, 1.0, 0.0, 0.0])).round(4)  # log 4
    np.float64(1.3863)
    """
    name = "nn.softmax_cross_entropy"
    logits, labels = _both(name, ("logits", "labels"), logits, labels)
    dims, mask = normalize_axes(name, axis, len(logits.shape)), mask_of(name, where, logits)
    terms = labels * log_softmax_of(logits, dims, mask)
    return -total(terms, dims, mask, keepdims=False)


@public
def softmax_cross_entropy_with_integer_labels(logits: Any, labels: Any, axis: int = -1, where: Any = None) -> Any:
    """``-log_softmax(logits)[label]`` along ``axis``.

    Args:
        logits: an array of real numbers.
        labels: an array of integers, of the shape of ``logits`` without ``axis``. Negative ones count from the end;
            one that is no class gives NaN.
        axis: the dim of the classes.
        where: bools that broadcast to ``logits``: the classes that are included.

    Returns:
        An array of the shape of ``labels``, in the dtype of ``logits``.

    Raises:
        ShapeError: no such dim, or shapes that do not fit.
        DTypeError: no real numbers, or labels that are no integers.

    Layout: along a split dim, three all_reduces of one number per row: the largest logit, the sum, the label's logit.

    Source: `optax.losses.softmax_cross_entropy_with_integer_labels`.

    >>> softmax_cross_entropy_with_integer_labels(np.zeros((2, 4)), np.array([1, 3])).round(4)
    array([1.3863, 1.3863])
    """
    name = "nn.softmax_cross_entropy_with_integer_labels"
    logits, labels = inexact(name, logits, "logits"), as_array(name, labels, "labels")
    dim, mask = normalize_axis(name, axis, len(logits.shape)), mask_of(name, where, logits)
    shape, size = tuple(n for d, n in enumerate(logits.shape) if d != dim), int(logits.shape[dim])
    if tuple(labels.shape) != shape:
        raise ShapeError(message(name, f"labels must have shape {shape}", f"{tuple(labels.shape)}", "reshape them"))
    if labels.dtype.kind == "i":
        labels = labels.astype(np.int64)
        labels = np.where(labels < 0, labels + size, labels)
    chosen = np.where(places_of(name, labels, size, dim), logits, like(0, logits))
    result = logsumexp_of(logits, (dim,), mask=mask) - total(chosen, (dim,), keepdims=False)
    return np.where((labels >= 0) & (labels < size), result, like(math.nan, logits))


@public
def sigmoid_binary_cross_entropy(logits: Any, labels: Any) -> Any:
    """``-labels * log(sigmoid(logits)) - (1 - labels) * log(1 - sigmoid(logits))``, without overflow.

    Args:
        logits: an array of real numbers.
        labels: an array that broadcasts with ``logits``: 0, 1, or probabilities. It takes the dtype of ``logits``.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: no real numbers.

    Source: `optax.losses.sigmoid_binary_cross_entropy`.

    >>> sigmoid_binary_cross_entropy(np.array([1000.0, -1000.0]), np.array([0, 0]))
    array([1000.,    0.])
    """
    logits, labels = _both("nn.sigmoid_binary_cross_entropy", ("logits", "labels"), logits, labels)
    labels = labels.astype(logits.dtype)
    return -labels * log_sigmoid_of(logits) - (like(1, labels) - labels) * log_sigmoid_of(-logits)


def _errors(function: str, predictions: Any, targets: Any) -> Any:
    if targets is None:
        return inexact(function, predictions, "predictions")
    a, b = _both(function, ("predictions", "targets"), predictions, targets)
    return a - b


@public
def squared_error(predictions: Any, targets: Any = None) -> Any:
    """``(predictions - targets)**2``.

    Args:
        predictions: an array of real numbers.
        targets: an array that broadcasts with it, or None for 0.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: no real numbers.

    Source: `optax.losses.squared_error`. (Optax wants equal shapes.)

    >>> squared_error(np.array([1.0, 4.0]), np.array([1.0, 1.0]))
    array([0., 9.])
    """
    errors = _errors("nn.squared_error", predictions, targets)
    return errors * errors


@public
def l2_loss(predictions: Any, targets: Any = None) -> Any:
    """``(predictions - targets)**2 / 2``.

    Args:
        predictions: an array of real numbers.
        targets: an array that broadcasts with it, or None for 0.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: no real numbers.

    Source: `optax.losses.l2_loss`. (Optax wants equal shapes.)

    >>> l2_loss(np.array([1.0, 4.0]), np.array([1.0, 1.0]))
    array([0. , 4.5])
    """
    errors = _errors("nn.l2_loss", predictions, targets)
    return like(0.5, errors) * (errors * errors)


@public
def huber_loss(predictions: Any, targets: Any = None, delta: float = 1.0) -> Any:
    """Half the square of the difference up to ``delta``, and a line with the slope ``delta`` beyond.

    Args:
        predictions: an array of real numbers.
        targets: an array that broadcasts with it, or None for 0.
        delta: where the line begins.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: no real numbers.

    Source: `optax.losses.huber_loss`; Huber, "Robust estimation of a location parameter", 1964.

    >>> huber_loss(np.array([0.5, 3.0]))
    array([0.125, 2.5  ])
    """
    errors = np.abs(_errors("nn.huber_loss", predictions, targets))
    border = number("nn.huber_loss", "delta", delta, errors)
    square = np.minimum(errors, border)
    return like(0.5, errors) * (square * square) + border * (errors - square)


@public
def log_cosh(predictions: Any, targets: Any = None) -> Any:
    """``log(cosh(predictions - targets))``, without overflow.

    Args:
        predictions: an array of real numbers.
        targets: an array that broadcasts with it, or None for 0.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: no real numbers.

    Source: `optax.losses.log_cosh`.

    >>> log_cosh(np.array([0.0, 1000.0])).round(4)
    array([  0.    , 999.3069])
    """
    errors = _errors("nn.log_cosh", predictions, targets)
    return np.logaddexp(errors, -errors) - like(math.log(2), errors)


@public
def cosine_similarity(predictions: Any, targets: Any, *, epsilon: float = 0.0, axis: Any = -1) -> Any:
    """The cosine of the angle between two vectors along ``axis``.

    Args:
        predictions: an array of real numbers.
        targets: an array that broadcasts with it.
        epsilon: the least length of a vector that is divided by.
        axis: the dim, or dims, of the elements of a vector.

    Returns:
        An array without the dims of ``axis``. With an epsilon of 0, a vector of zeros gives NaN.

    Raises:
        ShapeError: no such dim, or the shapes do not broadcast.
        DTypeError: no real numbers.

    Layout: along a split dim, three all_reduces of one number per row.

    Source: `optax.losses.cosine_similarity`.

    >>> cosine_similarity(np.array([1.0, 0.0]), np.array([1.0, 1.0])).round(4)
    np.float64(0.7071)
    """
    name = "nn.cosine_similarity"
    a, b = _both(name, ("predictions", "targets"), predictions, targets)
    shape = np.broadcast_shapes(tuple(a.shape), tuple(b.shape))
    a, b = (x if tuple(x.shape) == shape else np.broadcast_to(x, shape) for x in (a, b))
    number(name, "epsilon", epsilon, a)
    dims = normalize_axes(name, axis, len(shape))
    return total(_unit(a, dims, epsilon) * _unit(b, dims, epsilon), dims, keepdims=False)


def _unit(x: Any, dims: Any, epsilon: float) -> Any:
    """``x`` divided by its length, or by ``epsilon`` if that is larger; the gradient of a vector of zeros is finite."""
    least = like(epsilon, x)
    squares = total(x * x, dims)
    is_short = squares <= least * least
    length = np.sqrt(np.where(is_short, like(1, x), squares))
    return x / np.where(is_short, least, length)
