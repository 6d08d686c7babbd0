# SPDX-License-Identifier: Apache-2.0
"""Normalization by the mean and the variance of elements, and dropout.

Statistics are computed in float32 at least. Along a split dim, all_reduces exchange them: two numbers for each
normalized group, never its elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import random as sw_random
from ..errors import ShapeError, is_one_of, message
from ..lax import rsqrt
from ..numpy._primitives import normalize_axes
from ..random._threefry import check_key
from ._arguments import check_broadcasts, inexact, like, mask_of, mean as mean_of, number, public, wide

__all__ = ["batch_norm", "dropout", "layer_norm", "rms_norm", "standardize"]


@public
def standardize(
    x: Any,
    axis: Any = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: Any = 1e-5,
    where: Any = None,
    *,
    algorithm: str = "fast",
) -> Any:
    """``(x - mean) / sqrt(variance + epsilon)`` along ``axis``.

    Args:
        x: an array of real numbers. Integers become float64.
        axis: a dim, several, or None for all.
        mean: what is subtracted; None for the mean along ``axis``.
        variance: by which is divided; None for the variance along ``axis``.
        epsilon: added to the variance.
        where: bools that broadcast to ``x``: the elements of which mean and variance are taken.
        algorithm: ``"fast"`` takes the variance from the mean of the squares; ``"stable"`` from the squares of the
            differences, for numbers far from 0.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        ShapeError: no such dim, or ``where`` does not broadcast.
        DTypeError: no real numbers, or ``where`` is not of bools.
        ValueError: another algorithm.

    Layout: along a split dim, two all_reduces of one number per row; of "fast", they do not wait for each other.

    Source: `jax.nn.standardize`.

    >>> standardize(np.array([1.0, 3.0]), epsilon=0.0)
    array([-1.,  1.])
    """
    x = inexact("nn.standardize", x)
    dims, mask = normalize_axes("nn.standardize", axis, len(x.shape)), mask_of("nn.standardize", where, x)
    if not is_one_of(algorithm, ("fast", "stable")):
        raise ValueError(message("nn.standardize", "algorithm must be 'fast' or 'stable'", repr(algorithm)))
    name = "nn.standardize"
    centre = mean_of(x, dims, mask) if mean is None else number(name, "mean", mean, x)
    if variance is None:
        if algorithm == "fast":
            variance = np.maximum(mean_of(x * x, dims, mask) - centre * centre, like(0, x))
        else:
            variance = mean_of((x - centre) * (x - centre), dims, mask)
    return (x - centre) * rsqrt(number(name, "variance", variance, x) + number(name, "epsilon", epsilon, x))


@public
def layer_norm(
    x: Any,
    scale: Any = None,
    bias: Any = None,
    *,
    axis: Any = -1,
    epsilon: float = 1e-6,
    use_fast_variance: bool = True,
) -> Any:
    """``(x - mean) / sqrt(variance + epsilon) * scale + bias``, with mean and variance of each token.

    Args:
        x: an array of real numbers. Integers become float64.
        scale: factors that broadcast to ``x``, or None for 1.
        bias: what is added, as ``scale``, or None for 0.
        axis: the dim, or dims, of the elements of a token.
        epsilon: added to the variance.
        use_fast_variance: the variance is ``mean(x**2) - mean(x)**2``, else ``mean((x - mean(x))**2)``.

    Returns:
        An array of the shape of ``x``, in the dtype that NumPy promotes ``x``, ``scale`` and ``bias`` to.

    Raises:
        ShapeError: no such dim, or a parameter does not broadcast to ``x``.
        DTypeError: no real numbers.

    Layout: along a split ``axis``, two all_reduces of one number per token, which do not wait for each other with the
    fast variance.

    Source: `flax.linen.LayerNorm`; Ba, Kiros, Hinton, "Layer normalization", 2016.

    >>> layer_norm(np.array([[1.0, 3.0]]), bias=np.array([10.0, 10.0]), epsilon=0.0)
    array([[ 9., 11.]])
    """
    x = inexact("nn.layer_norm", x)
    dims = normalize_axes("nn.layer_norm", axis, len(x.shape))
    parameters = _parameters("nn.layer_norm", x, scale=scale, bias=bias)
    number("nn.layer_norm", "epsilon", epsilon, x)
    centre, variance = _statistics(wide(x), dims, use_fast_variance)
    return _normalized(x, centre, variance, parameters["scale"], parameters["bias"], epsilon)


@public
def rms_norm(x: Any, scale: Any = None, *, axis: Any = -1, epsilon: float = 1e-6) -> Any:
    """``x / sqrt(mean(x**2) + epsilon) * scale``.

    Args:
        x: an array of real numbers. Integers become float64.
        scale: factors that broadcast to ``x``, or None for 1.
        axis: the dim, or dims, of the elements of a token.
        epsilon: added to the mean.

    Returns:
        An array of the shape of ``x``, in the dtype that NumPy promotes ``x`` and ``scale`` to.

    Raises:
        ShapeError: no such dim, or ``scale`` does not broadcast to ``x``.
        DTypeError: no real numbers.

    Layout: along a split ``axis``, one all_reduce of one number per token.

    Source: `flax.linen.RMSNorm`; Zhang and Sennrich, "Root mean square layer normalization", 2019.

    >>> rms_norm(np.array([[3.0, -3.0]]), epsilon=0.0)
    array([[ 1., -1.]])
    """
    x = inexact("nn.rms_norm", x)
    dims = normalize_axes("nn.rms_norm", axis, len(x.shape))
    parameters = _parameters("nn.rms_norm", x, scale=scale)
    number("nn.rms_norm", "epsilon", epsilon, x)
    squares = wide(x) * wide(x)
    return _normalized(x, None, mean_of(squares, dims), parameters["scale"], None, epsilon)


@public
def batch_norm(
    x: Any,
    mean: Any,
    variance: Any,
    scale: Any = None,
    bias: Any = None,
    *,
    use_running_average: bool,
    axis: Any = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-5,
    use_fast_variance: bool = True,
) -> tuple[Any, Any, Any]:
    """``(x - mean) / sqrt(variance + epsilon) * scale + bias``, with mean and variance of each feature.

    Args:
        x: an array of real numbers. Integers become float64.
        mean: the running mean, of the sizes along ``axis``.
        variance: the running variance, as ``mean``.
        scale: factors, as ``mean``, or None for 1.
        bias: what is added, as ``mean``, or None for 0.
        use_running_average: normalize by the running statistics, in evaluation; else, in training, by those of ``x``.
        axis: the dim, or dims, of the features. Statistics are over all other dims.
        momentum: the share of the old value in a new running statistic.
        epsilon: added to the variance.
        use_fast_variance: the variance is ``mean(x**2) - mean(x)**2``, else ``mean((x - mean(x))**2)``.

    Returns:
        The normalized array, in the dtype that NumPy promotes ``x``, ``scale`` and ``bias`` to; the new running mean;
        the new running variance. In evaluation, the statistics are those given.

    Raises:
        ShapeError: no such dim, or a parameter does not have the sizes along ``axis``.
        DTypeError: no real numbers.

    Layout: if the batch is split, two all_reduces of one number per feature in training: statistics are those of the
    whole batch. None in evaluation.

    Source: `flax.linen.BatchNorm`; Ioffe and Szegedy, "Batch normalization", 2015.

    >>> zeros, ones = np.zeros(1), np.ones(1)
    >>> y, mean, variance = batch_norm(np.array([[1.0], [3.0]]), zeros, ones, use_running_average=False, epsilon=0.0)
    >>> y.ravel(), mean.round(4), variance
    (array([-1.,  1.]), array([0.02]), array([1.]))
    """
    x = inexact("nn.batch_norm", x)
    for name, value in {"momentum": momentum, "epsilon": epsilon}.items():
        number("nn.batch_norm", name, value, x)
    features = sorted(normalize_axes("nn.batch_norm", axis, len(x.shape)))
    sizes = tuple(int(x.shape[d]) for d in features)
    shape = tuple(int(size) if d in features else 1 for d, size in enumerate(x.shape))
    given = {"mean": mean, "variance": variance, "scale": scale, "bias": bias}
    for name, value in given.items():
        if value is None and name in ("scale", "bias"):
            continue
        given[name] = inexact("nn.batch_norm", value, name)
        if tuple(given[name].shape) != sizes:
            got = f"shape {tuple(given[name].shape)}"
            raise ShapeError(message("nn.batch_norm", f"{name} must have the sizes {sizes} of the features", got))
    mean, variance = given["mean"], given["variance"]
    scale, bias = (None if given[name] is None else given[name].reshape(shape) for name in ("scale", "bias"))
    if use_running_average:
        centre, spread = mean.reshape(shape), variance.reshape(shape)
    else:
        dims = tuple(d for d in range(len(x.shape)) if d not in features)
        centre, spread = _statistics(wide(x), dims, use_fast_variance)
        mean = _moved(mean, centre.reshape(sizes), momentum)
        variance = _moved(variance, spread.reshape(sizes), momentum)
    return _normalized(x, centre, spread, scale, bias, epsilon), mean, variance


@public
def dropout(x: Any, key: Any, rate: Any, *, deterministic: bool = False, broadcast_dims: Any = ()) -> Any:
    """Set a random share of the elements to 0, and divide the others by ``1 - rate``.

    Args:
        x: an array of real numbers. Integers become float64.
        key: a key of :mod:`shardwise.random`.
        rate: the share, a Python number in [0, 1].
        deterministic: return ``x`` as it is, in evaluation.
        broadcast_dims: dims along which all elements share one draw.

    Returns:
        An array of the shape and dtype of ``x``. The choice is that of ``jax.random.bernoulli(key, 1 - rate)``.

    Raises:
        ShapeError: no such dim, or not a key.
        DTypeError: no real numbers, or not a key.
        ValueError: a rate outside of [0, 1].

    Layout: no communication: the draw of each element depends on the key and on its global index only.

    Source: `flax.linen.Dropout`; Srivastava et al., "Dropout", 2014.

    >>> dropout(np.ones(6), sw_random.key(0), rate=0.5)
    array([0., 0., 2., 2., 0., 2.])
    """
    x = inexact("nn.dropout", x)
    if not isinstance(rate, (int, float, np.number)) or not 0 <= rate <= 1:
        raise ValueError(message("nn.dropout", "rate must be a number in [0, 1]", repr(rate)))
    shared = normalize_axes("nn.dropout", broadcast_dims, len(x.shape))
    if deterministic or rate == 0:
        return x
    if rate == 1:
        return np.zeros_like(x)
    sizes = tuple(1 if d in shared else int(size) for d, size in enumerate(x.shape))
    kept = np.broadcast_to(sw_random.bernoulli(check_key("nn.dropout", key), 1 - rate, sizes), x.shape)
    return np.where(kept, x / like(1 - rate, x), like(0, x))


def _parameters(function: str, x: Any, **given: Any) -> dict[str, Any]:
    """Parameters as arrays that broadcast to ``x``; None stays."""
    found = {}
    for name, value in given.items():
        found[name] = None if value is None else inexact(function, number(function, name, value, x), name)
        if value is not None:
            check_broadcasts(function, name, found[name], x)
    return found


def _statistics(x: Any, dims: Any, is_fast: bool) -> tuple[Any, Any]:
    """Mean and variance over ``dims``, which stay with size 1."""
    centre = mean_of(x, dims)
    if is_fast:
        return centre, np.maximum(mean_of(x * x, dims) - centre * centre, like(0, x))
    return centre, mean_of((x - centre) * (x - centre), dims)


def _normalized(x: Any, centre: Any, variance: Any, scale: Any, bias: Any, epsilon: float) -> Any:
    dtype = np.result_type(x.dtype, *(p.dtype for p in (scale, bias) if p is not None))
    factor = rsqrt(variance + like(epsilon, variance))
    if scale is not None:
        factor = factor * scale
    result = (wide(x) if centre is None else wide(x) - centre) * factor
    return (result if bias is None else result + bias).astype(dtype)


def _moved(old: Any, new: Any, momentum: float) -> Any:
    share = like(momentum, old)
    return share * old + (like(1, old) - share) * new.astype(old.dtype)
