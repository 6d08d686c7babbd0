# SPDX-License-Identifier: Apache-2.0
"""Adafactor's second moments: of a matrix, the means of its rows and of its columns, instead of each element.

g[m, h]    v_row[m] <- means over h of g²    v_col[h] <- means over m of g²    u = g / sqrt(v_row ⊗ v_col / mean)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..array import ShapeDtypeStruct
from ..errors import described, message, shown
from ..flags import takes_flags
from ..tree import map as tree_map
from ._base import (
    GradientTransformation,
    abs_sq,
    as_array,
    checked_number,
    checked_numbers,
    checked_step,
    full_like,
    like,
    mapped,
    params_given,
    safe_increment,
    wide,
)
from ._checks import expect_numbers, expect_shapes, expect_state
from ._moments import first_count

__all__ = [
    "FactoredState",
    "adam_decay_rate",
    "capped_decay_rate",
    "pow_decay_rate",
    "scale_by_factored_rms",
]


class FactoredState(NamedTuple):
    """The number of steps, the means of rows and of columns, and the means of elements where nothing is factored."""

    count: Any
    v_row: Any
    v_col: Any
    v: Any


class _Leaf(NamedTuple):
    update: Any
    v_row: Any
    v_col: Any
    v: Any


def pow_decay_rate(count: Any, exponent: Any = 0.8) -> Any:
    """Adafactor's decay ``1 - t ** -exponent`` of step ``t = count + 1``, in float32 as in Optax.

    >>> round(float(pow_decay_rate(9)), 6)
    0.841511
    """
    checked_step("optim.pow_decay_rate", "count", count)
    checked_number("optim.pow_decay_rate", "exponent", exponent)
    t = as_array(count + 1).astype(np.float32).astype(np.float64)
    rounded = as_array(exponent).astype(np.float32).astype(np.float64)
    return np.float32(1) - np.power(t, -rounded).astype(np.float32)


def adam_decay_rate(count: Any, beta2: Any = 0.99) -> Any:
    """The decay of an average with Adam's bias correction: ``b (1 - b^(t-1)) / (1 - b^t)`` of step ``t = count + 1``.

    >>> [round(float(adam_decay_rate(count)), 4) for count in (0, 1)]
    [0.0, 0.4975]
    """
    checked_step("optim.adam_decay_rate", "count", count)
    checked_number("optim.adam_decay_rate", "beta2", beta2)
    t = as_array(count + 1).astype(np.float64)
    return beta2 * (1 - np.power(float(beta2), t - 1)) / (1 - np.power(float(beta2), t))


def capped_decay_rate(count: Any, beta2: Any = 0.99) -> Any:
    """``min(beta2, 1 - t ** -0.8)``: another reading of GShard's text, which differs from step 317 on.

    >>> float(capped_decay_rate(1000))
    0.99
    """
    checked_step("optim.capped_decay_rate", "count", count)
    checked_number("optim.capped_decay_rate", "beta2", beta2)
    t = as_array(count + 1).astype(np.float64)
    return np.minimum(beta2, 1 - np.power(t, -0.8))


def _factored_dims(shape: tuple[int, ...], least: int, which: str) -> tuple[int, int] | None:
    """The dim of the rows and that of the columns, or None if the leaf is not factored."""
    if len(shape) < 2:
        return None
    rows, columns = (len(shape) - 2, len(shape) - 1) if which == "last" else np.argsort(shape)[-2:].tolist()
    return (rows, columns) if min(shape[rows], shape[columns]) >= max(least, 1) else None


def _shapes_of(shape: tuple[int, ...], dims: tuple[int, int] | None) -> list[tuple[int, ...]]:
    """The shapes of the means of rows, of those of columns, and of those of elements."""
    if dims is None:
        return [(1,), (1,), shape]
    return [*(tuple(np.delete(shape, dim).tolist()) for dim in reversed(dims)), (1,)]


@takes_flags("optim")
def scale_by_factored_rms(
    factored: bool = True,
    decay_rate: Any = 0.8,
    step_offset: Any = 0,
    min_dim_size_to_factor: int = 128,
    epsilon: Any = 1e-30,
    decay_rate_fn: Callable[[Any, Any], Any] = pow_decay_rate,
    *,
    factored_dims: str = "largest",
) -> GradientTransformation:
    """Updates over the root of their average squares, factored where that saves memory.

    Args:
        factored: whether anything is factored.
        decay_rate: the second argument of ``decay_rate_fn``.
        step_offset: subtracted from the number of steps.
        min_dim_size_to_factor: a leaf with a smaller factored dim is not factored.
        epsilon: added to the squares.
        decay_rate_fn: the decay of the average at a step: :func:`pow_decay_rate` and its neighbors.
        factored_dims: ``"largest"``, the two largest dims, as in Optax; or ``"last"``: of a stack of matrices, such as
            the weights of experts, each is factored alone, and no mean crosses it.

    Raises:
        TypeError: the update is called without parameters, or with the state of another transformation. DTypeError:
        leaves of integers. ShapeError: updates or a state of other shapes than the parameters.
        ValueError: unknown ``factored_dims``.

    Source: `optax.scale_by_factored_rms`; Shazeer, Stern, "Adafactor", arXiv 1804.04235; GShard, A.2.

    >>> rms = scale_by_factored_rms(min_dim_size_to_factor=1)
    >>> state = rms.init(np.zeros((3, 2)))
    >>> state.v_row.shape, state.v_col.shape
    ((2,), (3,))
    """
    what = "optim.scale_by_factored_rms"
    if factored_dims not in ("largest", "last"):
        raise ValueError(message(what, "factored_dims must be 'largest' or 'last'", shown(factored_dims)))

    if not callable(decay_rate_fn):
        raise TypeError(message(what, "decay_rate_fn must be a function", described(decay_rate_fn)))
    checked_numbers(what, decay_rate=decay_rate, step_offset=step_offset, epsilon=epsilon)
    checked_numbers(what, min_dim_size_to_factor=min_dim_size_to_factor)

    def dims_of(param: Any) -> tuple[int, int] | None:
        return _factored_dims(tuple(param.shape), min_dim_size_to_factor, factored_dims) if factored else None

    def first(param: Any) -> _Leaf:
        row, col, each = _shapes_of(tuple(param.shape), dims_of(param))
        is_whole = dims_of(param) is None  # its means of elements have the sharding of the parameter
        means = (full_like(param, 0, shape=shape) for shape in ((1,), row, col, None if is_whole else each))
        return _Leaf(*means)

    def check(what: str, tree: Any, number: int, leaves: tuple[Any, ...]) -> None:
        g, *means, param = leaves
        expect_numbers(what, tree, number, (g, param))
        for mean, shape in zip(means, _shapes_of(tuple(param.shape), dims_of(param))):
            expect_shapes(what, tree, number, (mean, ShapeDtypeStruct(shape, param.dtype)))

    def init(params: Any) -> FactoredState:
        return _state(first_count(), mapped(what, first, params))

    def update(updates: Any, state: FactoredState, params: Any = None) -> tuple[Any, FactoredState]:
        expect_state(what, FactoredState, state)
        decay = decay_rate_fn(state.count - step_offset, decay_rate)

        def scaled(g: Any, v_row: Any, v_col: Any, v: Any, param: Any) -> _Leaf:
            dims, square = dims_of(param), abs_sq(g)
            square = square + like(epsilon, square)
            if dims is None:
                new = _average(decay, v, square).astype(param.dtype)
                return _Leaf(g / np.sqrt(new), v_row, v_col, new)
            return _factored(g, square, (v_row, v_col), (decay, dims, v))

        trees = (updates, state.v_row, state.v_col, state.v, params_given(what, params))
        leaves = mapped(what, scaled, *trees, check=check)
        return _part(leaves, "update"), _state(safe_increment(state.count), leaves)

    return GradientTransformation(init, update)


def _factored(g: Any, square: Any, means: tuple[Any, Any], rest: tuple[Any, tuple[int, int], Any]) -> _Leaf:
    decay, (rows, columns), v = rest
    v_row, v_col = (
        _average(decay, mean, np.mean(wide(square), axis=dim).astype(square.dtype)).astype(mean.dtype)
        for mean, dim in zip(means, (columns, rows))
    )
    row_dim = rows - 1 if rows > columns else rows
    mean = np.mean(wide(v_row), axis=row_dim, keepdims=True).astype(v_row.dtype)
    row_root = np.expand_dims(np.sqrt(v_row / mean), columns)
    return _Leaf(g / row_root / np.expand_dims(np.sqrt(v_col), rows), v_row, v_col, v)


def _average(decay: Any, past: Any, new: Any) -> Any:
    """In the dtype of the leaf, or that of the decay if it is wider: 16-bit averages are rounded once."""
    dtype = np.result_type(past.dtype, np.float32) if past.dtype.itemsize < 4 else past.dtype
    decay = as_array(decay).astype(dtype)
    return decay * past.astype(dtype) + (1 - decay) * new.astype(dtype)


def _part(leaves: Any, name: str) -> Any:
    return tree_map(lambda leaf: getattr(leaf, name), leaves, is_leaf=lambda x: isinstance(x, _Leaf))


def _state(count: Any, leaves: Any) -> FactoredState:
    return FactoredState(count, *(_part(leaves, name) for name in ("v_row", "v_col", "v")))
