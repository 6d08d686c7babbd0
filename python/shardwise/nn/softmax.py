# SPDX-License-Identifier: Apache-2.0
"""Softmax and its relatives, and one-hot vectors.

Along a split dim, each device reduces its own part, and all_reduces exchange one number per row: the largest, and the
sum. The rows themselves never travel.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dtypes import as_dtype
from ..errors import DTypeError, ShapeError, message
from ..grad import stop_gradient
from ..lax.slicing import LARGEST
from ..numpy._primitives import normalize_axes, normalize_axis, static_integer
from ._arguments import as_array, inexact, like, mask_of, number, public, total

__all__ = ["log_softmax", "logmeanexp", "logsumexp", "one_hot", "softmax"]

_INFINITY = float("inf")


def _largest(x: Any, axis: Any, where: Any = None, keepdims: bool = True) -> Any:
    """The maximum over ``axis``, or -inf over no elements."""
    if where is not None:
        x = np.where(where, x, like(-_INFINITY, x))
    if all(x.shape):
        return np.max(x, axis=axis, keepdims=keepdims)
    return np.max(x, axis=axis, keepdims=keepdims, initial=-_INFINITY)


@public
def softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """``exp(x) / sum(exp(x))`` along ``axis``, without overflow.

    Args:
        x: an array of real numbers. Integers become float64.
        axis: a dim, several, or None for all.
        where: bools that broadcast to ``x``. Elements that are not included count nowhere, and their result is 0.

    Returns:
        An array of the shape and dtype of ``x``. A row of -inf only gives NaN; a row of which nothing is included, 0.

    Raises:
        ShapeError: no such dim, or ``where`` does not broadcast.
        DTypeError: no real numbers, or ``where`` is not of bools.

    Layout: along a split dim, two all_reduces, of the largest number and of the sum of each row.

    Source: `jax.nn.softmax`.

    >>> softmax(np.array([1000.0, 1000.0, -np.inf]))
    array([0.5, 0.5, 0. ])
    """
    x = inexact("nn.softmax", x)
    dims, mask = normalize_axes("nn.softmax", axis, len(x.shape)), mask_of("nn.softmax", where, x)
    return softmax_of(x, dims, mask)


def softmax_of(x: Any, dims: Any, mask: Any = None) -> Any:
    """:func:`softmax` with arguments that are checked already."""
    safe = x if mask is None else np.where(mask, x, like(-_INFINITY, x))
    exponential = np.exp(safe - stop_gradient(_largest(safe, dims)))
    result = exponential / total(exponential, dims, mask)
    return result if mask is None else np.where(mask, result, like(0, x))


@public
def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """The logarithm of :func:`softmax`, precise where that is close to 0.

    Args:
        x: an array of real numbers. Integers become float64.
        axis: a dim, several, or None for all.
        where: bools that broadcast to ``x``. Elements that are not included count nowhere, and their result is -inf.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        ShapeError: no such dim, or ``where`` does not broadcast.
        DTypeError: no real numbers, or ``where`` is not of bools.

    Layout: along a split dim, two all_reduces, of the largest number and of the sum of each row.

    Source: `jax.nn.log_softmax`.

    >>> log_softmax(np.array([1000.0, 0.0]))
    array([    0., -1000.])
    """
    x = inexact("nn.log_softmax", x)
    mask = mask_of("nn.log_softmax", where, x)
    return log_softmax_of(x, normalize_axes("nn.log_softmax", axis, len(x.shape)), mask)


def log_softmax_of(x: Any, dims: Any, mask: Any = None) -> Any:
    """:func:`log_softmax` with arguments that are checked already."""
    lowest = like(-_INFINITY, x)
    safe = x if mask is None else np.where(mask, x, lowest)
    shifted = safe - stop_gradient(_largest(safe, dims))
    result = shifted - np.log(total(np.exp(shifted), dims, mask))
    return result if mask is None else np.where(mask, result, lowest)


@public
def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False, where: Any = None
) -> Any:
    """``log(sum(b * exp(a)))`` over ``axis``, without overflow.

    Args:
        a: an array of real numbers. Integers become float64.
        axis: a dim, several, or None for all.
        b: factors: a number or an array that broadcasts with ``a``. Where one is 0, ``a`` counts nowhere.
        keepdims: the reduced dims stay, with size 1.
        return_sign: return the logarithm of the absolute value, and the sign of the sum.
        where: bools that broadcast to ``a``: the elements that are included.

    Returns:
        The reduced array, or with ``return_sign`` two. Of no elements, or of -inf only, -inf. A negative sum gives NaN
        unless its sign is returned.

    Raises:
        ShapeError: no such dim, or ``b`` or ``where`` does not broadcast.
        DTypeError: no real numbers, or ``where`` is not of bools.

    Layout: along a split dim, two all_reduces of results: of the largest numbers, and of the sums.

    Source: `jax.nn.logsumexp`; `scipy.special.logsumexp`.

    >>> logsumexp(np.array([[1000.0, 1000.0], [-np.inf, -np.inf]]), axis=1).round(4)
    array([1000.6931,      -inf])
    """
    a = inexact("nn.logsumexp", a, "a")
    if b is not None:
        b = inexact("nn.logsumexp", number("nn.logsumexp", "b", b, a), "b")
        dtype = np.result_type(a.dtype, b.dtype)
        a, b = a.astype(dtype), b.astype(dtype)
        try:
            shape = np.broadcast_shapes(tuple(a.shape), tuple(b.shape))
        except ValueError:
            got = f"{tuple(a.shape)} and {tuple(b.shape)}"
            raise ShapeError(message("nn.logsumexp", "a and b must broadcast", got, "reshape one")) from None
        a = np.where(b != like(0, b), np.broadcast_to(a, shape), like(-_INFINITY, a))
    mask = mask_of("nn.logsumexp", where, a)
    return logsumexp_of(a, normalize_axes("nn.logsumexp", axis, len(a.shape)), b, keepdims, return_sign, mask)


def logsumexp_of(
    a: Any, dims: Any, b: Any = None, keepdims: bool = False, return_sign: bool = False, mask: Any = None
) -> Any:
    """:func:`logsumexp` with arguments that are checked already."""
    if mask is not None:
        a = np.where(mask, a, like(0, a))
    largest = _largest(a, dims, mask)
    largest = stop_gradient(np.where(np.isfinite(largest), largest, like(0, a)))
    exponential = np.exp(a - largest)
    if b is not None:
        exponential = exponential * b
    summed = total(exponential, dims, mask)
    signs = np.sign(summed) if return_sign or b is not None else None
    result = np.log(np.abs(summed) if b is not None else summed) + largest
    if b is not None and not return_sign:
        result = np.where(signs < like(0, a), like(float("nan"), a), result)
    if not keepdims:
        result = np.squeeze(result, axis=dims)
        signs = None if signs is None else np.squeeze(signs, axis=dims)
    return (result, signs) if return_sign else result


@public
def logmeanexp(x: Any, axis: Any = None, where: Any = None, keepdims: bool = False) -> Any:
    """``log(mean(exp(x)))`` over ``axis``, without overflow.

    Args:
        x: an array of real numbers. Integers become float64.
        axis: a dim, several, or None for all.
        where: bools that broadcast to ``x``: the elements that are included.
        keepdims: the reduced dims stay, with size 1.

    Returns:
        The reduced array, in the dtype of ``x``. Of no elements, NaN.

    Raises:
        ShapeError: no such dim, or ``where`` does not broadcast.
        DTypeError: no real numbers, or ``where`` is not of bools.

    Layout: along a split dim, two all_reduces of results, and a third of the counts if there is a mask.

    Source: `jax.nn.logmeanexp`.

    >>> logmeanexp(np.array([1000.0, 1000.0]))
    np.float64(1000.0)
    """
    x = inexact("nn.logmeanexp", x)
    dims, mask = normalize_axes("nn.logmeanexp", axis, len(x.shape)), mask_of("nn.logmeanexp", where, x)
    summed = logsumexp_of(x, dims, keepdims=keepdims, mask=mask)
    if mask is None:
        count = math.prod(int(x.shape[d]) for d in dims)
        return summed - like(math.log(count) if count else -_INFINITY, x)
    included = np.broadcast_to(mask, x.shape)
    return summed - np.log(np.sum(included, axis=dims, keepdims=keepdims).astype(x.dtype))


@public
def one_hot(x: Any, num_classes: int, *, dtype: Any = np.float32, axis: int = -1) -> Any:
    """One-hot vectors: 1 at the place of each index, 0 elsewhere.

    Args:
        x: an array of integers. An index outside of ``[0, num_classes)`` gives zeros.
        num_classes: the size of the new dim.
        dtype: the dtype of the result; None for float32, which is JAX's default.
        axis: the place of the new dim in the result.

    Returns:
        An array with the dims of ``x`` and a new one.

    Raises:
        DTypeError: ``x`` is not of integers.
        ShapeError: a negative size, or no such dim.

    Layout: no communication; if the new dim is split, each device makes its own classes.

    Source: `jax.nn.one_hot`.

    >>> one_hot(np.array([2, 0, 5]), 3)
    array([[0., 0., 1.],
           [1., 0., 0.],
           [0., 0., 0.]], dtype=float32)
    """
    found = as_dtype("nn.one_hot", np.float32 if dtype is None else dtype)
    return places_of("nn.one_hot", x, num_classes, axis).astype(found)


def places_of(function: str, x: Any, size: int, axis: int) -> Any:
    """The bools of :func:`one_hot`."""
    x = as_array(function, x)
    if x.dtype.kind not in "iu":
        raise DTypeError(message(function, "indices must be integers", str(x.dtype), "convert them with astype"))
    dim = normalize_axis(function, axis, len(x.shape) + 1)
    size = static_integer(function, "num_classes", size, -LARGEST, LARGEST)
    if size < 0:
        raise ShapeError(message(function, "num_classes must not be negative", size))
    if size - 1 > np.iinfo(x.dtype).max:  # an index of int8 beside 1000 classes
        x = x.astype(np.int64)
    ramp = np.arange(size, dtype=x.dtype, like=x).reshape(size, *(1,) * (len(x.shape) - dim))
    return np.expand_dims(x, dim) == ramp
