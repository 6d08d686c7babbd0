# SPDX-License-Identifier: Apache-2.0
"""Activation functions: one op or a few per element, and no communication whatever the sharding is.

Each takes floats of any shape and keeps their dtype; integers become float64, as in NumPy's division. Where JAX states
a gradient (of relu at 0, for instance), it is the same here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dtypes import is_float
from ..errors import ShapeError, message
from ..lax import erfc, logistic
from ..numpy._primitives import normalize_axis
from ._arguments import as_array, inexact, like, number, public

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "leaky_relu",
    "log1mexp",
    "log_sigmoid",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "swish",
    "tanh",
]

_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


@public
def identity(x: Any) -> Any:
    """Return ``x``.

    Args:
        x: an array of any dtype and shape.

    Source: `jax.nn.identity`.
    """
    return as_array("nn.identity", x)


@public
def relu(x: Any) -> Any:
    """``max(x, 0)``. The gradient at 0 is 0.

    Args:
        x: an array of real numbers of any shape. Integers stay integers.

    Raises:
        DTypeError: complex numbers, or no numbers.

    Source: `jax.nn.relu`. NaN gives NaN; there, JAX's gradient is 0, and this one is that of ``x``.

    >>> relu(np.array([-2.0, 0.0, 3.0]))
    array([0., 0., 3.])
    """
    x = as_array("nn.relu", x)
    if not (is_float(x.dtype) or x.dtype.kind in "iu"):
        x = inexact("nn.relu", x)
    return np.where(x <= like(0, x), like(0, x), x)


@public
def relu6(x: Any) -> Any:
    """``min(max(x, 0), 6)``. The gradient at 0 and at 6 is 0.

    Args:
        x: an array of real numbers of any shape.

    Raises:
        DTypeError: complex numbers, or no numbers.

    Source: `jax.nn.relu6`.

    >>> relu6(np.array([-2.0, 3.0, 8.0]))
    array([0., 3., 6.])
    """
    return _relu6(inexact("nn.relu6", x))


def _relu6(x: Any) -> Any:
    zero, six = like(0, x), like(6, x)
    return np.where(x <= zero, zero, np.where(x >= six, six, x))


@public
def sigmoid(x: Any) -> Any:
    """``1 / (1 + exp(-x))``, without overflow.

    Args:
        x: an array of real numbers of any shape.

    Raises:
        DTypeError: complex numbers, or no numbers.

    Source: `jax.nn.sigmoid`; StableHLO logistic.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0]))
    array([0. , 0.5, 1. ])
    """
    return logistic(inexact("nn.sigmoid", x))


@public
def log_sigmoid(x: Any) -> Any:
    """``log(sigmoid(x))``, as ``-softplus(-x)``: precise for any ``x``.

    Args:
        x: an array of real numbers of any shape.

    Raises:
        DTypeError: complex numbers, or no numbers.

    Source: `jax.nn.log_sigmoid`.

    >>> log_sigmoid(np.array([-1000.0, 1000.0]))
    array([-1000.,    -0.])
    """
    return log_sigmoid_of(inexact("nn.log_sigmoid", x))


def log_sigmoid_of(x: Any) -> Any:
    """:func:`log_sigmoid` of floats."""
    return -_softplus(-x)


@public
def softplus(x: Any) -> Any:
    """``log(1 + exp(x))``, without overflow.

    Args:
        x: an array of real numbers of any shape.

    Raises:
        DTypeError: complex numbers, or no numbers.

    Source: `jax.nn.softplus`.

    >>> softplus(np.array([-1000.0, 1000.0]))
    array([   0., 1000.])
    """
    return _softplus(inexact("nn.softplus", x))


def _softplus(x: Any) -> Any:
    return np.logaddexp(x, like(0, x))


@public
def squareplus(x: Any, b: Any = 4) -> Any:
    """``(x + sqrt(x**2 + b)) / 2``.

    Args:
        x: an array of real numbers of any shape.
        b: a number or an array that broadcasts with ``x``: how smooth the curve is at 0.

    Raises:
        DTypeError: complex numbers, or no numbers.

    Source: `jax.nn.squareplus`.

    >>> squareplus(np.array([0.0]))
    array([1.])
    """
    x = inexact("nn.squareplus", x)
    return (x + np.sqrt(x * x + number("nn.squareplus", "b", b, x))) / like(2, x)


@public
def sparse_plus(x: Any) -> Any:
    """0 up to -1, ``x`` from 1 on, and ``(x + 1)**2 / 4`` between.

    Args:
        x: an array of real numbers of any shape.

    Raises:
        DTypeError: complex numbers, or no numbers.

    Source: `jax.nn.sparse_plus`.

    >>> sparse_plus(np.array([-2.0, 0.0, 2.0]))
    array([0.  , 0.25, 2.  ])
    """
    x = inexact("nn.sparse_plus", x)
    above = x + like(1, x)
    curve = np.where(x >= like(1, x), x, above * above / like(4, x))
    return np.where(x <= like(-1, x), like(0, x), curve)


@public
def sparse_sigmoid(x: Any) -> Any:
    """``clip(x + 1, 0, 2) / 2``.

    Args:
        x: an array of real numbers of any shape.

    Raises:
        DTypeError: complex numbers, or no numbers.

    Source: `jax.nn.sparse_sigmoid`.

    >>> sparse_sigmoid(np.array([-2.0, 0.0, 2.0]))
    array([0. , 0.5, 1. ])
    """
    x = inexact("nn.sparse_sigmoid", x)
    return like(0.5, x) * np.minimum(np.maximum(x + like(1, x), like(0, x)), like(2, x))


@public
def soft_sign(x: Any) -> Any:
    """``x / (|x| + 1)``.

    Args:
        x: an array of real numbers of any shape.

    Raises:
        DTypeError: complex numbers, or no numbers.

    Source: `jax.nn.soft_sign`.

    >>> soft_sign(np.array([-1.0, 3.0]))
    array([-0.5 ,  0.75])
    """
    x = inexact("nn.soft_sign", x)
    return x / (np.abs(x) + like(1, x))


@public
def silu(x: Any) -> Any:
    """``x * sigmoid(x)``; also called swish.

    Args:
        x: an array of real numbers of any shape.

    Raises:
        DTypeError: complex numbers, or no numbers.

    Source: `jax.nn.silu`.

    >>> silu(np.array([0.0, 1000.0]))
    array([   0., 1000.])
    """
    x = inexact("nn.silu", x)
    return x * logistic(x)


swish = silu


@public
def mish(x: Any) -> Any:
    """``x * tanh(softplus(x))``.

    Args:
        x: an array of real numbers of any shape.

    Raises:
        DTypeError: complex numbers, or no numbers.

    Source: `jax.nn.mish`; Misra, "Mish: a self regularized non-monotonic activation function", 2019.

    >>> mish(np.array([0.0, 1000.0]))
    array([   0., 1000.])
    """
    x = inexact("nn.mish", x)
    return x * np.tanh(_softplus(x))


@public
def elu(x: Any, alpha: Any = 1.0) -> Any:
    """``x`` above 0, and ``alpha * (exp(x) - 1)`` below.

    Args:
        x: an array of real numbers of any shape.
        alpha: a number or an array that broadcasts with ``x``.

    Raises:
        DTypeError: complex numbers, or no numbers.

    Source: `jax.nn.elu`.

    >>> elu(np.array([-1000.0, 2.0]))
    array([-1.,  2.])
    """
    x = inexact("nn.elu", x)
    return _elu(x, number("nn.elu", "alpha", alpha, x))


def _elu(x: Any, alpha: Any) -> Any:
    zero = like(0, x)
    return np.where(x > zero, x, like(alpha, x) * np.expm1(np.where(x > zero, zero, x)))


@public
def celu(x: Any, alpha: Any = 1.0) -> Any:
    """``max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1)``: differentiable at 0 for any ``alpha``.

    Args:
        x: an array of real numbers of any shape.
        alpha: a number or an array that broadcasts with ``x``.

    Raises:
        DTypeError: complex numbers, or no numbers.

    Source: `jax.nn.celu`.

    >>> celu(np.array([-1000.0, 2.0]), alpha=0.5)
    array([-0.5,  2. ])
    """
    x = inexact("nn.celu", x)
    zero, scale = like(0, x), number("nn.celu", "alpha", alpha, x)
    return np.maximum(x, zero) + scale * np.expm1(np.minimum(x, zero) / scale)


@public
def selu(x: Any) -> Any:
    """:func:`elu`, with the ``alpha`` and the scale that keep mean 0 and variance 1 through many layers.

    Args:
        x: an array of real numbers of any shape.

    Raises:
        DTypeError: complex numbers, or no numbers.

    Source: `jax.nn.selu`; Klambauer et al., "Self-normalizing neural networks", 2017.

    >>> selu(np.array([1.0])).round(4)
    array([1.0507])
    """
    x = inexact("nn.selu", x)
    return like(_SELU_SCALE, x) * _elu(x, _SELU_ALPHA)


@public
def gelu(x: Any, approximate: bool = True) -> Any:
    """``x`` times the probability that a standard normal number is below ``x``.

    Args:
        x: an array of real numbers of any shape.
        approximate: by ``tanh``, else by the error function.

    Raises:
        DTypeError: complex numbers, or no numbers.

    Source: `jax.nn.gelu`; Hendrycks and Gimpel, "Gaussian error linear units", 2016.

    >>> gelu(np.array([-1000.0, 0.0, 1000.0])) + 0
    array([   0.,    0., 1000.])
    """
    x = inexact("nn.gelu", x)
    half, one = like(0.5, x), like(1, x)
    if approximate:
        inner = like(math.sqrt(2 / math.pi), x) * (x + like(0.044715, x) * (x * x * x))
        return x * (half * (one + np.tanh(inner)))
    return half * x * erfc(-x * like(math.sqrt(0.5), x))


@public
def glu(x: Any, axis: int = -1) -> Any:
    """The first half of ``x`` along ``axis``, times the sigmoid of the second half.

    Args:
        x: an array of real numbers.
        axis: a dim of an even size.

    Returns:
        An array with half the size along ``axis``.

    Raises:
        ShapeError: no such dim, or one of an odd size.
        DTypeError: complex numbers, or no numbers.

    Layout: along a split ``axis``, an exchange for each half brings them together; other dims need no communication.

    Source: `jax.nn.glu`.

    >>> glu(np.array([2.0, 4.0, 0.0, 0.0]))
    array([1., 2.])
    """
    x = inexact("nn.glu", x)
    dim = normalize_axis("nn.glu", axis, len(x.shape))
    if x.shape[dim] % 2:
        rule = f"the size along axis {axis} must be even"
        raise ShapeError(message("nn.glu", rule, f"shape {tuple(x.shape)}", "pad it, or choose another axis"))
    first, second = np.split(x, 2, axis=dim)
    return first * logistic(second)


@public
def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Any:
    """``x`` from 0 on, and ``negative_slope * x`` below.

    Args:
        x: an array of real numbers of any shape.
        negative_slope: a number or an array that broadcasts with ``x``.

    Raises:
        DTypeError: complex numbers, or no numbers.

    Source: `jax.nn.leaky_relu`.

    >>> leaky_relu(np.array([-1.0, 2.0]))
    array([-0.01,  2.  ])
    """
    x = inexact("nn.leaky_relu", x)
    return np.where(x >= like(0, x), x, number("nn.leaky_relu", "negative_slope", negative_slope, x) * x)


@public
def tanh(x: Any) -> Any:
    """The hyperbolic tangent, as ``np.tanh``.

    Args:
        x: an array of real numbers of any shape.

    Raises:
        DTypeError: complex numbers, or no numbers.

    Source: `jax.nn.tanh`.

    >>> tanh(np.array([-1000.0, 0.0, 1000.0]))
    array([-1.,  0.,  1.])
    """
    return np.tanh(inexact("nn.tanh", x))


@public
def hard_tanh(x: Any) -> Any:
    """``x`` between -1 and 1, and the nearer of both outside.

    Args:
        x: an array of real numbers of any shape.

    Raises:
        DTypeError: complex numbers, or no numbers.

    Source: `jax.nn.hard_tanh`.

    >>> hard_tanh(np.array([-3.0, 0.5, 3.0]))
    array([-1. ,  0.5,  1. ])
    """
    x = inexact("nn.hard_tanh", x)
    low, high = like(-1, x), like(1, x)
    return np.where(x > high, high, np.where(x < low, low, x))


@public
def hard_sigmoid(x: Any) -> Any:
    """``relu6(x + 3) / 6``.

    Args:
        x: an array of real numbers of any shape.

    Raises:
        DTypeError: complex numbers, or no numbers.

    Source: `jax.nn.hard_sigmoid`.

    >>> hard_sigmoid(np.array([-4.0, 0.0, 4.0]))
    array([0. , 0.5, 1. ])
    """
    return _hard_sigmoid(inexact("nn.hard_sigmoid", x))


def _hard_sigmoid(x: Any) -> Any:
    return _relu6(x + like(3, x)) / like(6, x)


@public
def hard_silu(x: Any) -> Any:
    """``x * hard_sigmoid(x)``; also called hard swish.

    Args:
        x: an array of real numbers of any shape.

    Raises:
        DTypeError: complex numbers, or no numbers.

    Source: `jax.nn.hard_silu`.

    >>> hard_silu(np.array([-4.0, 3.0])) + 0
    array([0., 3.])
    """
    x = inexact("nn.hard_silu", x)
    return x * _hard_sigmoid(x)


hard_swish = hard_silu


@public
def log1mexp(x: Any) -> Any:
    """``log(1 - exp(-x))``, precise near 0 and for large ``x``; NaN below 0.

    Args:
        x: an array of real numbers of any shape.

    Raises:
        DTypeError: complex numbers, or no numbers.

    Source: `jax.nn.log1mexp`; Mächler, "Accurately computing ``log(1 - exp(-|a|))``", 2012. The gradient is
        ``1 / (exp(x) - 1)``.

    >>> log1mexp(np.array([1e-20, 50.0])).round(4)
    array([-46.0517,  -0.    ])
    """
    x = inexact("nn.log1mexp", x)
    border = like(math.log(2), x)
    # Each side gets numbers of its own only: beyond them, its derivative is infinite, and 0 times that NaN.
    small, large = np.where(x < border, x, border), np.where(x < border, border, x)
    return np.where(x < border, np.log(-np.expm1(-small)), np.log1p(-np.exp(-large)))
