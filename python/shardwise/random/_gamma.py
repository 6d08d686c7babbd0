# SPDX-License-Identifier: Apache-2.0
"""The gamma distribution by rejection, and the distributions that are functions of gamma numbers.

Each element has a key of its own and draws until it accepts; a loop of the program runs until all elements have. A step
is elementwise, so a device computes its shard alone; the devices exchange one bool per step.

Source: Marsaglia, Tsang, "A simple method for generating gamma variables", ACM TOMS 26, 2000.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..control_flow import scan, while_loop
from ..errors import ShapeError, message
from ..lax.calls import on_arrays
from ._arguments import checked_shape, checked_size, float_dtype, operand, shape_with
from ._counts import rademacher_in
from ._floats import exponential, normal
from ._hashed import Words, keys_of_elements, one_normal, one_uniform, split_elements
from ._keys import split
from ._threefry import check_key

__all__ = ["ball", "beta", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma", "t"]


class _Draw(NamedTuple):
    """What the elements have drawn so far."""

    key: Words  # of the next attempt
    normal_key: Words  # of the next normal number of this attempt
    uniform_key: Words  # of the uniform number of this attempt
    cube: Any
    begins: Any  # whether the next step begins a new attempt
    accepted: Any


def _attempted(draw: _Draw, d: Any, c: Any) -> _Draw:
    """One normal number per element: it is drawn again if it is too low, and else accepted or not."""
    dtype = d.dtype
    one, half, squeeze = (np.array(number, dtype) for number in (1, 0.5, 0.0331))
    following, normal_key, uniform_key = split_elements(draw.key, 3)
    key = _where(draw.begins, following, draw.key)
    normal_key = _where(draw.begins, normal_key, draw.normal_key)
    uniform_key = _where(draw.begins, uniform_key, draw.uniform_key)
    normal_key, subkey = split_elements(normal_key, 2)
    x = one_normal(subkey, dtype)
    v = one + x * c
    is_high = ~(v <= 0)  # NaN counts as high, or a parameter of NaN would never be accepted
    square, cube, u = x * x, v * v * v, one_uniform(uniform_key, dtype)
    is_rejected = (u >= one - squeeze * (square * square)) & (
        np.log(u) >= square * half + d * ((one - cube) + np.log(cube))
    )
    accepts = is_high & ~is_rejected & ~draw.accepted
    return _Draw(key, normal_key, uniform_key, np.where(accepts, cube, draw.cube), is_high, draw.accepted | accepts)


def _where(condition: Any, then: Words, otherwise: Words) -> Words:
    return np.where(condition, then[0], otherwise[0]), np.where(condition, then[1], otherwise[1])


def gamma_in(key: Any, a: Any, shape: tuple[int, ...], log_space: bool = False) -> Any:
    """:func:`gamma`, or its logarithm, with arguments that are checked already; ``a`` has the result's dtype."""
    dtype = a.dtype
    one, third = np.ones((), dtype), np.array(1 / 3, dtype)
    a = np.broadcast_to(a, shape)
    is_large = a >= one
    d = np.where(is_large, a, a + one) - third
    c = third / np.sqrt(d)
    attempts, last = split_elements(keys_of_elements(key, shape), 2)
    first = _Draw(attempts, attempts, attempts, np.zeros_like(d), np.ones_like(is_large), np.zeros_like(is_large))
    cube = while_loop(lambda draw: ~np.all(draw.accepted), lambda draw: _attempted(draw, d, c), first).cube
    # Below 1, the number of a + 1 times u ** (1 / a).
    u = one_uniform(last, dtype)
    if not log_space:
        return d * cube * np.where(is_large, one, (one - u) ** (one / a))
    logarithm = np.log1p(-u)
    boost = np.where(is_large | (logarithm == 0), one - one, logarithm * (one / a))
    return np.log(d) + np.log(cube) + boost


@on_arrays("key", "a", module="random", takes_lists=True)
def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = np.float32) -> Any:
    """Random numbers from the gamma distribution of shape ``a`` and scale 1.

    Args:
        key: a key, uint32[2].
        a: a positive number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; None for that of ``a``.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        The draws of ``jax.random.gamma`` within rounding, with the same bits on every mesh. They have no gradient in
        ``a``: the loop that rejects cannot be differentiated.

    Raises:
        ShapeError, DTypeError: not a key, a dtype that is not floating, or parameters that do not broadcast.

    Source: Marsaglia and Tsang's method; `jax.random.gamma`.

    >>> from shardwise.random import PRNGKey
    >>> gamma(PRNGKey(0), 3.0, (4,)).round(3)
    array([2.569, 2.784, 1.968, 5.406], dtype=float32)
    """
    return _gamma("random.gamma", key, a, shape, dtype, False)


@on_arrays("key", "a", module="random", takes_lists=True)
def loggamma(key: Any, a: Any, shape: Any = None, dtype: Any = np.float32) -> Any:
    """The logarithms of the numbers of :func:`gamma`, precise where these are close to 0.

    Args:
        key: a key, uint32[2].
        a: a positive number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; None for that of ``a``.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        The draws of ``jax.random.loggamma`` within rounding, without a gradient in ``a``.

    Raises:
        ShapeError, DTypeError: not a key, a dtype that is not floating, or parameters that do not broadcast.

    >>> from shardwise.random import PRNGKey
    >>> loggamma(PRNGKey(0), 0.001, (2,)).round()
    array([-111.,  -96.], dtype=float32)
    """
    return _gamma("random.loggamma", key, a, shape, dtype, True)


def _gamma(function: str, key: Any, a: Any, shape: Any, dtype: Any, log_space: bool) -> Any:
    key, found = check_key(function, key), float_dtype(function, dtype)
    a = operand(function, "a", a, found)
    return gamma_in(key, a, shape_with(function, shape, a=a), log_space)


@on_arrays("key", "a", "b", module="random", takes_lists=True)
def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = np.float32) -> Any:
    """Random numbers from the beta distribution, between 0 and 1.

    Args:
        key: a key, uint32[2].
        a: a positive number, or an array that broadcasts to ``shape``.
        b: like ``a``.
        shape: the shape of the result; None for the broadcast shape of the parameters.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        The draws of ``jax.random.beta`` within rounding, without a gradient in ``a`` and ``b``.

    Raises:
        ShapeError, DTypeError: not a key, a dtype that is not floating, or parameters that do not broadcast.

    >>> from shardwise.random import PRNGKey
    >>> beta(PRNGKey(0), 2.0, 5.0, (4,)).round(3)
    array([0.17 , 0.274, 0.497, 0.379], dtype=float32)
    """
    key, found = check_key("random.beta", key), float_dtype("random.beta", dtype)
    a, b = operand("random.beta", "a", a, found), operand("random.beta", "b", b, found)
    sizes = shape_with("random.beta", shape, a=a, b=b)
    logarithms = [gamma_in(each, c, sizes, log_space=True) for each, c in zip(split(key), (a, b))]
    largest = np.maximum(*logarithms)
    first, second = (np.exp(logarithm - largest) for logarithm in logarithms)
    return first / (first + second)


@on_arrays("key", "alpha", module="random", takes_lists=True)
def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = np.float32) -> Any:
    """Random probabilities from the Dirichlet distribution: rows that sum to 1.

    Args:
        key: a key, uint32[2].
        alpha: positive numbers ``[..., n]``.
        shape: the shape of the result without its last dim, to which that of ``alpha`` broadcasts; None for that one.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        Rows ``[*shape, n]``: the draws of ``jax.random.dirichlet`` within rounding, without a gradient in ``alpha``.

    Raises:
        ShapeError, DTypeError: not a key, a dtype that is not floating, no dim, or shapes that do not broadcast.

    >>> from shardwise.random import PRNGKey
    >>> dirichlet(PRNGKey(0), np.ones(3), (2,)).sum(-1).round(5)
    array([1., 1.], dtype=float32)
    """
    key, found = check_key("random.dirichlet", key), float_dtype("random.dirichlet", dtype)
    alpha = operand("random.dirichlet", "alpha", alpha, found)
    if not alpha.shape:
        raise ShapeError(message("random.dirichlet", "alpha must have a dim", "a scalar", "give one number a part"))
    rest = alpha.shape[:-1]
    sizes = rest if shape is None else shape_with("random.dirichlet", shape, alpha=np.broadcast_to(np.empty(()), rest))
    logarithm = gamma_in(key, alpha, (*sizes, alpha.shape[-1]), log_space=True)
    if not alpha.shape[-1]:
        return logarithm
    part = np.exp(logarithm - np.max(logarithm, axis=-1, keepdims=True))
    return part / _ordered_sum(part)[..., None]


def _ordered_sum(x: Any) -> Any:
    """The sum over the last dim, added in the order of the indices: the same bits, however that dim is split.

    No number is negative. The absolute value keeps the compiler from adding the rows of each device apart.
    """
    first = np.zeros_like(x, shape=x.shape[:-1])
    return scan(lambda total, row: (np.abs(total) + row, None), first, np.moveaxis(x, -1, 0))[0]


def _chisquare_in(key: Any, df: Any, shape: tuple[int, ...]) -> Any:
    two = np.array(2, df.dtype)
    return np.exp(gamma_in(key, df / two, shape, log_space=True)) * two


@on_arrays("key", "df", module="random", takes_lists=True)
def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = np.float32) -> Any:
    """Random numbers from the chi-square distribution.

    Args:
        key: a key, uint32[2].
        df: degrees of freedom: a positive number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; None for that of ``df``.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        The draws of ``jax.random.chisquare`` within rounding, without a gradient in ``df``.

    Raises:
        ShapeError, DTypeError: not a key, a dtype that is not floating, or parameters that do not broadcast.

    >>> from shardwise.random import PRNGKey
    >>> chisquare(PRNGKey(0), 4.0, (3,)).shape
    (3,)
    """
    key, found = check_key("random.chisquare", key), float_dtype("random.chisquare", dtype)
    df = operand("random.chisquare", "df", df, found)
    return _chisquare_in(key, df, shape_with("random.chisquare", shape, df=df))


@on_arrays("key", "dfnum", "dfden", module="random", takes_lists=True)
def f(key: Any, dfnum: Any, dfden: Any, shape: Any = None, dtype: Any = np.float32) -> Any:
    """Random numbers from the F distribution: the ratio of two chi-square numbers, each over its degrees of freedom.

    Args:
        key: a key, uint32[2].
        dfnum: degrees of freedom of the numerator: a positive number, or an array that broadcasts to ``shape``.
        dfden: degrees of freedom of the denominator, like ``dfnum``.
        shape: the shape of the result; None for the broadcast shape of the parameters.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        The draws of ``jax.random.f`` within rounding, without a gradient in the parameters.

    Raises:
        ShapeError, DTypeError: not a key, a dtype that is not floating, or parameters that do not broadcast.

    >>> from shardwise.random import PRNGKey
    >>> bool(np.all(f(PRNGKey(0), 4.0, 6.0, (100,)) > 0))
    True
    """
    key, found = check_key("random.f", key), float_dtype("random.f", dtype)
    dfnum, dfden = operand("random.f", "dfnum", dfnum, found), operand("random.f", "dfden", dfden, found)
    sizes = shape_with("random.f", shape, dfnum=dfnum, dfden=dfden)
    below, above = split(key)
    return _chisquare_in(above, dfnum, sizes) / dfnum / (_chisquare_in(below, dfden, sizes) / dfden)


@on_arrays("key", "df", module="random", takes_lists=True)
def t(key: Any, df: Any, shape: Any = None, dtype: Any = np.float32) -> Any:
    """Random numbers from Student's t distribution.

    Args:
        key: a key, uint32[2].
        df: degrees of freedom: a positive number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; None for that of ``df``.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        The draws of ``jax.random.t`` within rounding, without a gradient in ``df``.

    Raises:
        ShapeError, DTypeError: not a key, a dtype that is not floating, or parameters that do not broadcast.

    >>> from shardwise.random import PRNGKey
    >>> t(PRNGKey(0), 5.0, (3,)).shape
    (3,)
    """
    key, found = check_key("random.t", key), float_dtype("random.t", dtype)
    df = operand("random.t", "df", df, found)
    sizes = shape_with("random.t", shape, df=df)
    first, second = split(key)
    half = df / np.array(2, found)
    return normal(first, sizes, found) * np.sqrt(half / gamma_in(second, half, sizes))


def _generalized_normal_in(key: Any, p: Any, shape: tuple[int, ...]) -> Any:
    first, second = split(key)
    inverse = np.ones((), p.dtype) / p
    return rademacher_in(second, shape, p.dtype) * gamma_in(first, inverse, shape) ** inverse


@on_arrays("key", "p", module="random")
def generalized_normal(key: Any, p: Any, shape: Any = (), dtype: Any = np.float32) -> Any:
    """Random numbers from the generalized normal distribution, whose density is proportional to ``exp(-abs(x) ** p)``.

    Args:
        key: a key, uint32[2].
        p: a positive number.
        shape: the shape of the result.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        The draws of ``jax.random.generalized_normal`` within rounding, without a gradient in ``p``.

    Raises:
        ShapeError, DTypeError: not a key, a negative size, a dtype that is not floating, or a ``p`` that does not
            broadcast.

    >>> from shardwise.random import PRNGKey
    >>> generalized_normal(PRNGKey(0), 2.0, (3,)).shape
    (3,)
    """
    what = "random.generalized_normal"
    key, found = check_key(what, key), float_dtype(what, dtype)
    p = operand(what, "p", p, found)
    return _generalized_normal_in(key, p, shape_with(what, checked_shape(what, shape), p=p))


@on_arrays("key", "p", module="random")
def ball(key: Any, d: int, p: Any = 2, shape: Any = (), dtype: Any = np.float32) -> Any:
    """Random points of the unit ball: uniform among the vectors whose p-norm is at most 1.

    Args:
        key: a key, uint32[2].
        d: the number of dimensions of the ball.
        p: the norm: a positive number.
        shape: the shape of the result without its last dim.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        The draws of ``jax.random.ball`` within rounding, of shape ``[*shape, d]``.

    Raises:
        ShapeError, DTypeError: not a key, a negative size, a dtype that is not floating, or a ``p`` that is not scalar.

    >>> from shardwise.random import PRNGKey
    >>> bool(np.all(np.linalg.norm(ball(PRNGKey(0), 3, shape=(100,)), axis=-1) <= 1))
    True
    """
    key, found = check_key("random.ball", key), float_dtype("random.ball", dtype)
    sizes, dims = checked_shape("random.ball", shape), checked_size("random.ball", "d", d)
    p = operand("random.ball", "p", p, found)
    if p.shape:
        raise ShapeError(message("random.ball", "p must be a scalar", p.shape, "map over it with sw.vmap"))
    first, second = split(key)
    point = _generalized_normal_in(first, p, (*sizes, dims))
    norm = (_ordered_sum(np.abs(point) ** p) + exponential(second, sizes, found)) ** (np.ones((), found) / p)
    return point / norm[..., None]
