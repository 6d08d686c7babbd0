# SPDX-License-Identifier: Apache-2.0
"""Reductions by a function of two scalars, under windows and along dims, and cumulative ones.

reduce_window(x, -np.inf, np.maximum, (2,), (2,), "VALID")
    %1 = "stablehlo.reduce_window"(%x, %init) <{window_dimensions = [2], window_strides = [2]}> ({…maximum…})
cumsum(x)
    %1 = "stablehlo.reduce_window"(%x, %0) <{padding = dense<[[3, 0]]>, window_dimensions = [4]}> ({…add…})
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..control_flow import associative_scan
from ..dtypes import is_float
from ..errors import DTypeError, ShapeError, called_as, described, message, shown
from ..numpy._primitives import normalize_axis, prefix, splat
from ..numpy.reductions import highest, lowest
from ..recording.tracing import Tracer
from ..trees import flatten, unflatten
from .calls import lifted, on_arrays, recording
from .combining import recorded_region, reduction
from .paddings import integers, pads_of

__all__ = [
    "cumlogsumexp",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "reduce",
    "reduce_window",
    "select_and_scatter_add",
]


# ---- windows -------------------------------------------------------------------------------------------------------


def _window(
    function: str,
    shape: Sequence[int],
    window_dimensions: Any,
    window_strides: Any,
    padding: Any,
    base_dilation: Any = None,
    window_dilation: Any = None,
) -> dict[str, Any]:
    """The attributes of an op with windows."""
    ndim = len(shape)
    sizes = integers(function, "window_dimensions", window_dimensions, ndim, 1)
    ones = (1,) * ndim
    given = (("window_strides", window_strides), ("base_dilation", base_dilation), ("window_dilation", window_dilation))
    strides, base, dilation = (
        ones if value is None else integers(function, name, value, ndim, 1) for name, value in given
    )
    whole = [(size - 1) * step + 1 for size, step in zip(sizes, dilation)]
    pads = pads_of(function, padding, shape, whole, strides)
    return {
        "base_dilations": base,
        "padding": np.array(pads, np.int64).reshape(-1, 2),
        "window_dilations": dilation,
        "window_dimensions": sizes,
        "window_strides": strides,
    }


def _expect_numbers(function: str, name: str, values: Any) -> None:
    """Raise TypeError for a leaf that is neither a number nor an array."""
    for value in flatten(values)[0]:
        if not (isinstance(value, (bool, int, float, complex)) or hasattr(value, "dtype")):
            raise TypeError(message(function, f"{name} must be a scalar", described(value)))


@on_arrays("operand", "init_value", known=("init_value",))
def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Combine the elements under a window that moves over the dims.

    Along a split dim, devices exchange the rows that windows of other devices read.

    Args:
        operand: an array, or a tree of arrays of one shape.
        init_value: a scalar for each array, which each window starts from and which padding has: a neutral element of
            ``computation``, such as ``-np.inf`` for a maximum.
        computation: an associative function of two scalars, such as ``np.add`` or ``lambda a, b: a * b``; of trees of
            scalars where the operand is a tree. It is recorded once.
        window_dimensions: the size of the window along each dim.
        window_strides: the steps from one window to the next; None for 1.
        padding: as in :func:`conv_general_dilated`, for each dim.
        base_dilation: the elements are moved that far apart; None for 1.
        window_dilation: the elements of a window are that far apart; None for 1.

    Returns:
        A tree like the operand. Gradients are those of additions, products and extrema of one array.

    Raises:
        ShapeError: shapes or lists do not fit, or ``computation`` is not made of elementwise ops.
        DTypeError: a scalar does not have the dtype of its array.
        TypeError: the trees differ, ``computation`` is no function, or a list is not of integers.

    Source: `jax.lax.reduce_window`; StableHLO reduce_window.

    >>> reduce_window(np.arange(6.0), -np.inf, np.maximum, (3,), (2,), "SAME")
    array([2., 4., 5.])
    """
    function = "lax.reduce_window"
    _expect_numbers(function, "init_value", init_value)
    parts = reduction(function, operand, init_value, "init_value", computation)
    attrs = _window(
        function, parts.arrays[0].shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    with called_as(function, "stablehlo.reduce_window"):
        made = recording().emit_op("stablehlo.reduce_window", parts.arrays + parts.starts, attrs, (), [parts.region])
    return unflatten(parts.tree, made)


@on_arrays("source", "operand")
def select_and_scatter_add(
    source: Any,
    operand: Any,
    select_prim: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
) -> Any:
    """Add each element of ``source`` to the place that its window of ``operand`` selects: how max pooling goes back.

    Args:
        source: an element for each window.
        operand: the array under the windows.
        select_prim: whether the first of two scalars stays selected: ``np.greater_equal`` for the first largest element
            of a window, ``np.less_equal`` for the first smallest. Padding is never selected.
        window_dimensions, window_strides, padding: as in :func:`reduce_window`.

    Returns:
        An array like ``operand``; 0 where nothing was added.

    Raises:
        ShapeError: shapes or lists do not fit.
        DTypeError: the dtypes differ, or ``select_prim`` returns no bool.
        TypeError: ``select_prim`` is no function, or a list is not of integers.

    Source: `jax.lax.select_and_scatter_add_p`; StableHLO select_and_scatter.

    >>> x = np.array([1.0, 5.0, 2.0, 2.0])
    >>> select_and_scatter_add(np.array([10.0, 20.0]), x, np.greater_equal, (2,), (2,), "VALID")
    array([ 0., 10., 20.,  0.])
    """
    function = "lax.select_and_scatter_add"
    values, x = lifted(source, operand)
    if values.dtype != x.dtype:
        got = f"{values.dtype.name} and {x.dtype.name}"
        raise DTypeError(message(function, "source and operand must have the same dtype", got))
    attrs = _window(function, x.shape, window_dimensions, window_strides, padding)
    windows = tuple(
        max((n + low + high - size) // step + 1, 0)
        for n, (low, high), size, step in zip(
            x.shape, attrs["padding"].tolist(), attrs["window_dimensions"], attrs["window_strides"]
        )
    )
    if values.shape != windows:
        raise ShapeError(message(function, f"source must have an element for each window, {windows}", values.shape))
    del attrs["base_dilations"], attrs["window_dilations"]
    _, one = flatten(0)
    select = recorded_region(function, select_prim, one, [x.dtype], [np.dtype(bool)], name="select_prim")
    add = recorded_region(function, np.add, one, [x.dtype], [x.dtype])
    with called_as(function, "stablehlo.select_and_scatter"):
        operands = (x, values, splat(recording(), 0, (), x.dtype))
        (made,) = recording().emit_op("stablehlo.select_and_scatter", operands, attrs, (), [select, add])
    return made


# ---- along dims ----------------------------------------------------------------------------------------------------


@on_arrays("operands", "init_values", known=("init_values",))
def reduce(operands: Any, init_values: Any, computation: Callable[[Any, Any], Any], dimensions: Sequence[int]) -> Any:
    """Combine the elements along some dims.

    Args:
        operands: an array, or a tree of arrays of one shape.
        init_values: a scalar for each array: a neutral element of ``computation``.
        computation: an associative function of two scalars, or of two trees of them, as in :func:`reduce_window`.
        dimensions: the dims.

    Returns:
        A tree like the operands, without those dims.

    Raises:
        ShapeError: shapes do not fit, there is no such dim, or ``computation`` is not made of elementwise ops.
        DTypeError: a scalar does not have the dtype of its array.
        TypeError: the trees differ, or ``computation`` is no function.

    Source: `jax.lax.reduce`; StableHLO reduce.

    >>> reduce(np.arange(6).reshape(2, 3), 1, lambda a, b: a * b, (1,))
    array([ 0, 60])
    """
    function = "lax.reduce"
    _expect_numbers(function, "init_values", init_values)
    parts = reduction(function, operands, init_values, "init_values", computation)
    ndim = parts.arrays[0].ndim
    try:
        dims = [normalize_axis(function, axis, ndim) for axis in dimensions]
    except TypeError:
        rule = "dimensions must be a list of integers"
        raise TypeError(message(function, rule, shown(dimensions))) from None
    if len(set(dims)) != len(dims):
        raise ShapeError(message(function, "dimensions must differ", shown(dimensions)))
    attrs = {"dimensions": tuple(sorted(dims))}
    with called_as(function, "stablehlo.reduce"):
        made = recording().emit_op("stablehlo.reduce", parts.arrays + parts.starts, attrs, (), [parts.region])
    return unflatten(parts.tree, made)


def _cumulative(function: str, op: str, operand: Any, axis: Any, reverse: Any, init: Any) -> Tracer:
    (x,) = lifted(operand)
    if x.dtype.kind == "b":
        raise DTypeError(message(function, "the array must be of numbers", x.dtype, "convert it with astype"))
    return prefix(x, op, normalize_axis(function, axis, x.ndim), init(x.dtype), bool(reverse))


@on_arrays("operand")
def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The sum of the elements up to each one along a dim, in the dtype of the array.

    Along a split dim, devices exchange only the totals of their shards.

    Args:
        operand: an array of numbers.
        axis: the dim.
        reverse: of the elements from each one on.

    Raises:
        ShapeError: there is no such dim. DTypeError: the array is of bools.

    Source: `jax.lax.cumsum`.

    >>> cumsum(np.array([1, 2, 3, 4], np.int8), reverse=True)
    array([10,  9,  7,  4], dtype=int8)
    """
    return _cumulative("lax.cumsum", "add", operand, axis, reverse, lambda _: 0)


@on_arrays("operand")
def cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The product of the elements up to each one along a dim, in the dtype of the array.

    Args:
        operand, axis, reverse: as in :func:`cumsum`.

    Raises:
        ShapeError, DTypeError: as :func:`cumsum`.

    Source: `jax.lax.cumprod`.
    """
    return _cumulative("lax.cumprod", "multiply", operand, axis, reverse, lambda _: 1)


@on_arrays("operand")
def cummax(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The largest of the elements up to each one along a dim.

    Args:
        operand, axis, reverse: as in :func:`cumsum`.

    Raises:
        ShapeError, DTypeError: as :func:`cumsum`.

    Source: `jax.lax.cummax`.
    """
    return _cumulative("lax.cummax", "maximum", operand, axis, reverse, lowest)


@on_arrays("operand")
def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The smallest of the elements up to each one along a dim.

    Args:
        operand, axis, reverse: as in :func:`cumsum`.

    Raises:
        ShapeError, DTypeError: as :func:`cumsum`.

    Source: `jax.lax.cummin`.
    """
    return _cumulative("lax.cummin", "minimum", operand, axis, reverse, highest)


@on_arrays("operand")
def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The logarithm of the sum of exponentials of the elements up to each one along a dim.

    Args:
        operand: an array of floats.
        axis, reverse: as in :func:`cumsum`.

    Raises:
        ShapeError: there is no such dim. DTypeError: the array is not of floats.

    Source: `jax.lax.cumlogsumexp`.
    """
    function = "lax.cumlogsumexp"
    (x,) = lifted(operand)
    dim = normalize_axis(function, axis, x.ndim)
    if not is_float(x.dtype):
        raise DTypeError(message(function, "the array must be of floats", x.dtype, "convert it with astype"))
    return associative_scan(np.logaddexp, x, reverse=bool(reverse), axis=dim) if x.shape[dim] > 1 else x
