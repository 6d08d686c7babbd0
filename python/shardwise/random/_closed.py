# SPDX-License-Identifier: Apache-2.0
"""Distributions whose numbers are a function of a few uniform or normal ones.

Outside a traced function they run as a program on one device, so their bits are those of every traced function.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..lax.calls import on_arrays
from ._arguments import checked_shape, float_dtype, operand, shape_with
from ._counts import rademacher_in
from ._floats import MANTISSA, SMALLEST, exponential, normal, uniform, uniform_in
from ._keys import split
from ._threefry import check_key

__all__ = [
    "cauchy",
    "double_sided_maxwell",
    "laplace",
    "logistic",
    "lognormal",
    "maxwell",
    "pareto",
    "rayleigh",
    "triangular",
    "wald",
    "weibull_min",
]


@on_arrays("key", module="random")
def cauchy(key: Any, shape: Any = (), dtype: Any = np.float32) -> Any:
    """Random numbers from the standard Cauchy distribution.

    Args:
        key: a key, uint32[2].
        shape: the shape of the result.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        Numbers equal to ``jax.random.cauchy`` within rounding, with the same bits on every mesh.

    Raises:
        ShapeError, DTypeError: not a key, a negative size, or a dtype that is not floating.

    >>> from shardwise.random import PRNGKey
    >>> cauchy(PRNGKey(0), (2,)).round(3)
    array([ 6.027, 14.838], dtype=float32)
    """
    key, found = check_key("random.cauchy", key), float_dtype("random.cauchy", dtype)
    sizes = checked_shape("random.cauchy", shape)
    low = np.array(2.0 ** -MANTISSA[found.name], found)
    u = uniform_in(key, sizes, found, low, np.ones((), found))
    return np.tan(np.array(math.pi, found) * (u - np.array(0.5, found)))


@on_arrays("key", module="random")
def laplace(key: Any, shape: Any = (), dtype: Any = np.float32) -> Any:
    """Random numbers from the Laplace distribution of mean 0 and scale 1.

    Args:
        key: a key, uint32[2].
        shape: the shape of the result.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        Numbers equal to ``jax.random.laplace`` within rounding, with the same bits on every mesh.

    Raises:
        ShapeError, DTypeError: not a key, a negative size, or a dtype that is not floating.

    >>> from shardwise.random import PRNGKey
    >>> laplace(PRNGKey(0), (2,)).round(3)
    array([-2.257, -3.15 ], dtype=float32)
    """
    key, found = check_key("random.laplace", key), float_dtype("random.laplace", dtype)
    sizes = checked_shape("random.laplace", shape)
    one = np.ones((), found)
    low = np.array(2.0 ** -(MANTISSA[found.name] + 1), found) - one
    u = uniform_in(key, sizes, found, low, one)
    return np.sign(u) * np.log1p(-np.abs(u))


@on_arrays("key", module="random")
def logistic(key: Any, shape: Any = (), dtype: Any = np.float32) -> Any:
    """Random numbers from the standard logistic distribution.

    Args:
        key: a key, uint32[2].
        shape: the shape of the result.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        Numbers equal to ``jax.random.logistic`` within rounding, with the same bits on every mesh.

    Raises:
        ShapeError, DTypeError: not a key, a negative size, or a dtype that is not floating.

    >>> from shardwise.random import PRNGKey
    >>> logistic(PRNGKey(0), (2,)).round(3)
    array([2.896, 3.822], dtype=float32)
    """
    key, found = check_key("random.logistic", key), float_dtype("random.logistic", dtype)
    sizes = checked_shape("random.logistic", shape)
    u = uniform_in(key, sizes, found, np.array(SMALLEST[found.name], found), np.ones((), found))
    return np.log(u) - np.log1p(-u)


@on_arrays("key", module="random")
def maxwell(key: Any, shape: Any = (), dtype: Any = np.float32) -> Any:
    """Random numbers from the Maxwell distribution of scale 1: lengths of normal vectors in three dimensions.

    Args:
        key: a key, uint32[2].
        shape: the shape of the result.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        Numbers equal to ``jax.random.maxwell`` within rounding, with the same bits on every mesh.

    Raises:
        ShapeError, DTypeError: not a key, a negative size, or a dtype that is not floating.

    >>> from shardwise.random import PRNGKey
    >>> maxwell(PRNGKey(0), (2,)).round(3)
    array([2.631, 0.991], dtype=float32)
    """
    key, found = check_key("random.maxwell", key), float_dtype("random.maxwell", dtype)
    sizes = checked_shape("random.maxwell", shape)
    drawn = normal(key, (*sizes, 3), found)
    x, y, z = (drawn[..., i] for i in range(3))
    return np.sqrt(x * x + y * y + z * z)


@on_arrays("key", "sigma", module="random", takes_lists=True)
def lognormal(key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = np.float32) -> Any:
    """Random numbers from the log-normal distribution: ``exp(sigma * x)`` of normal numbers x.

    Args:
        key: a key, uint32[2].
        sigma: the deviation of the logarithm: a positive number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; None for that of ``sigma``.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        Numbers equal to ``jax.random.lognormal`` within rounding, with the same bits on every mesh. They are
        differentiable in the parameter.

    Raises:
        ShapeError, DTypeError: not a key, a dtype that is not floating, or parameters that do not broadcast.

    >>> from shardwise.random import PRNGKey
    >>> lognormal(PRNGKey(0), 0.5, (2,)).round(3)
    array([2.251, 2.753], dtype=float32)
    """
    what = "random.lognormal"
    key, found = check_key(what, key), float_dtype(what, dtype)
    sigma = operand(what, "sigma", sigma, found)
    sizes = shape_with(what, shape, sigma=sigma)
    return np.exp(normal(key, sizes, found) * sigma)


@on_arrays("key", "b", module="random", takes_lists=True)
def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = np.float32) -> Any:
    """Random numbers from the Pareto distribution of exponent ``b`` and scale 1.

    Args:
        key: a key, uint32[2].
        b: a positive number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; None for that of ``b``.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        Numbers equal to ``jax.random.pareto`` within rounding, with the same bits on every mesh. They are
        differentiable in the parameter.

    Raises:
        ShapeError, DTypeError: not a key, a dtype that is not floating, or parameters that do not broadcast.

    >>> from shardwise.random import PRNGKey
    >>> pareto(PRNGKey(0), 2.0, (2,)).round(3)
    array([4.371, 6.833], dtype=float32)
    """
    what = "random.pareto"
    key, found = check_key(what, key), float_dtype(what, dtype)
    b = operand(what, "b", b, found)
    sizes = shape_with(what, shape, b=b)
    return np.exp(exponential(key, sizes, found) / b)


@on_arrays("key", "scale", module="random", takes_lists=True)
def rayleigh(key: Any, scale: Any, shape: Any = None, dtype: Any = np.float32) -> Any:
    """Random numbers from the Rayleigh distribution.

    Args:
        key: a key, uint32[2].
        scale: a positive number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; None for that of ``scale``.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        Numbers equal to ``jax.random.rayleigh`` within rounding, with the same bits on every mesh. They are
        differentiable in the parameter.

    Raises:
        ShapeError, DTypeError: not a key, a dtype that is not floating, or parameters that do not broadcast.

    >>> from shardwise.random import PRNGKey
    >>> rayleigh(PRNGKey(0), 2.0, (2,)).round(3)
    array([0.656, 0.416], dtype=float32)
    """
    what = "random.rayleigh"
    key, found = check_key(what, key), float_dtype(what, dtype)
    scale = operand(what, "scale", scale, found)
    sizes = shape_with(what, shape, scale=scale)
    return scale * np.sqrt(np.log(uniform(key, sizes, found)) * np.array(-2, found))


@on_arrays("key", "left", "mode", "right", module="random", takes_lists=True)
def triangular(key: Any, left: Any, mode: Any, right: Any, shape: Any = None, dtype: Any = np.float32) -> Any:
    """Random numbers from the triangular distribution.

    Args:
        key: a key, uint32[2].
        left: the lower limit: a number, or an array that broadcasts to ``shape``.
        mode: the peak of the density, like ``left``.
        right: the upper limit, like ``left``.
        shape: the shape of the result; None for the broadcast shape of the parameters.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        Numbers equal to ``jax.random.triangular`` within rounding, with the same bits on every mesh. They are
        differentiable in the parameters.

    Raises:
        ShapeError, DTypeError: not a key, a dtype that is not floating, or parameters that do not broadcast.

    >>> from shardwise.random import PRNGKey
    >>> triangular(PRNGKey(0), 0.0, 1.0, 2.0, (2,)).round(3)
    array([1.676, 1.793], dtype=float32)
    """
    what = "random.triangular"
    key, found = check_key(what, key), float_dtype(what, dtype)
    left = operand(what, "left", left, found)
    mode = operand(what, "mode", mode, found)
    right = operand(what, "right", right, found)
    sizes = shape_with(what, shape, left=left, mode=mode, right=right)
    u, one = uniform(key, sizes, found), np.ones((), found)
    width = right - left
    rises = left + np.sqrt(u * width * (mode - left))
    falls = right - np.sqrt((one - u) * width * (right - mode))
    return np.where(u < (mode - left) / width, rises, falls)


@on_arrays("key", "mean", module="random", takes_lists=True)
def wald(key: Any, mean: Any, shape: Any = None, dtype: Any = np.float32) -> Any:
    """Random numbers from the Wald distribution, the inverse Gaussian one of scale 1.

    Args:
        key: a key, uint32[2].
        mean: a positive number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; None for that of ``mean``.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        Numbers equal to ``jax.random.wald`` within rounding, with the same bits on every mesh. They are
        differentiable in the parameter.

    Raises:
        ShapeError, DTypeError: not a key, a dtype that is not floating, or parameters that do not broadcast.

    >>> from shardwise.random import PRNGKey
    >>> wald(PRNGKey(0), 2.0, (2,)).round(3)
    array([0.533, 0.598], dtype=float32)
    """
    what = "random.wald"
    key, found = check_key(what, key), float_dtype(what, dtype)
    mean = operand(what, "mean", mean, found)
    sizes = shape_with(what, shape, mean=mean)
    first, second = split(key)
    v, z, four = normal(first, sizes, found), uniform(second, sizes, found), np.array(4, found)
    y, square = v * v, mean * mean
    half_mean = mean / np.array(2, found)
    x = mean + square * y / np.array(2, found) - half_mean * np.sqrt(four * mean * y + square * (y * y))
    return np.where(z <= mean / (mean + x), x, square / x)


@on_arrays("key", "scale", "concentration", module="random", takes_lists=True)
def weibull_min(key: Any, scale: Any, concentration: Any, shape: Any = (), dtype: Any = np.float32) -> Any:
    """Random numbers from the Weibull distribution.

    Args:
        key: a key, uint32[2].
        scale: a positive number, or an array that broadcasts with ``shape``.
        concentration: like ``scale``.
        shape: the shape of the uniform numbers; the result has that of its broadcast with the parameters.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        Numbers equal to ``jax.random.weibull_min`` within rounding, with the same bits on every mesh. They are
        differentiable in the parameters.

    Raises:
        ShapeError, DTypeError: not a key, a dtype that is not floating, or parameters that do not broadcast.

    >>> from shardwise.random import PRNGKey
    >>> weibull_min(PRNGKey(0), 2.0, 1.5, (2,)).round(3)
    array([4.114, 4.907], dtype=float32)
    """
    what = "random.weibull_min"
    key, found = check_key(what, key), float_dtype(what, dtype)
    scale = operand(what, "scale", scale, found)
    concentration = operand(what, "concentration", concentration, found)
    u = uniform(key, checked_shape(what, shape), found)
    return (-np.log1p(-u)) ** (np.ones((), found) / concentration) * scale


@on_arrays("key", "loc", "scale", module="random", takes_lists=True)
def double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Any = (), dtype: Any = np.float32) -> Any:
    """Random numbers from the double-sided Maxwell distribution: Maxwell numbers with random signs.

    Args:
        key: a key, uint32[2].
        loc: the center: a number or an array.
        scale: a number or an array.
        shape: the first dims of the result, before the broadcast shape of the parameters. Without one, the result has
            the dims of the parameters twice, as in JAX.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        Numbers equal to ``jax.random.double_sided_maxwell`` within rounding, with the same bits on every mesh. They are
        differentiable in the parameters.

    Raises:
        ShapeError, DTypeError: not a key, a dtype that is not floating, or parameters that do not broadcast.

    >>> from shardwise.random import PRNGKey
    >>> double_sided_maxwell(PRNGKey(0), 0.0, 1.0, (2,)).round(3)
    array([1.546, 1.574], dtype=float32)
    """
    what = "random.double_sided_maxwell"
    key, found = check_key(what, key), float_dtype(what, dtype)
    loc = operand(what, "loc", loc, found)
    scale = operand(what, "scale", scale, found)
    common = shape_with(what, None, loc=loc, scale=scale)
    sizes = (*(checked_shape(what, shape) or common), *common)
    first, second = split(key)
    drawn = rademacher_in(second, sizes, found) * maxwell(first, sizes, found)
    return drawn * scale + loc
