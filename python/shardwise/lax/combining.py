# SPDX-License-Identifier: Apache-2.0
"""Regions of scalars from Python functions: how `reduce` and `reduce_window` combine two elements.

combine = lambda a, b: a + 2 * b
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %0 = stablehlo.constant dense<2.0>
      %1 = stablehlo.multiply %0, %b
      %2 = stablehlo.add %a, %1
      stablehlo.return %2
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..control_flow.leaf_types import LeafType, expect_function
from ..control_flow.regions import region
from ..dtypes import integer_range, is_complex, is_float, is_integer
from ..errors import DTypeError, ShapeError, message, shown
from ..numpy._primitives import operand
from ..recording.tracing import Tracer, WeakTracer
from ..trees import flatten, unflatten
from .calls import lifted, recording

__all__ = ["Reduction", "as_scalar", "recorded_region", "reduction"]


class Reduction(NamedTuple):
    """The operands of a reduction: tensors of one shape, a scalar to start from for each, and how rows combine."""

    tree: Any
    arrays: list[Tracer]
    starts: list[Tracer]
    region: int


def _rank(dtype: np.dtype[Any]) -> int:
    return 3 if is_complex(dtype) else 2 if is_float(dtype) else 1 if is_integer(dtype) else 0


def as_scalar(function: str, name: str, value: Any, dtype: np.dtype[Any]) -> Tracer:
    """A scalar of the program. Numbers that are known take the dtype; a traced one must have it.

    Raises:
        ShapeError: it is no scalar. DTypeError: it does not fit the dtype.
    """
    if np.shape(value) != ():
        raise ShapeError(message(function, f"{name} must be a scalar", shown(value)))
    is_known = isinstance(value, (bool, int, float, complex, np.generic))
    found = np.asarray(value).dtype if is_known else value.dtype
    fits = _rank(found) <= _rank(dtype) if is_known or isinstance(value, WeakTracer) else found == dtype
    if fits and is_known and is_integer(dtype):
        low, high = integer_range(dtype)
        fits = low <= int(value) <= high
    if not fits:
        raise DTypeError(message(function, f"{name} must be of {dtype.name}, as the operand", shown(value)))
    return operand(recording(), value, dtype)


def recorded_region(
    function: str,
    computation: Callable[..., Any],
    trees: Any,
    dtypes: Sequence[Any],
    wanted: Sequence[Any],
    name: str = "computation",
) -> int:
    """The region of a Python function of two rows of scalars, each a tree.

    Args:
        function: the public function, for messages.
        computation: takes two trees of scalars.
        trees: the structure of each.
        dtypes: the dtypes of a row of scalars.
        wanted: the dtypes of the results.
        name: the name of the argument ``computation``.

    Raises:
        TypeError: ``computation`` is no function, or returns another tree. ShapeError, DTypeError: it returns another
            shape or dtype.
    """
    expect_function(function, name, computation)
    trace = recording()
    with region(trace, function) as body:
        rows = [[body.argument(LeafType((), np.dtype(dtype))) for dtype in dtypes] for _ in range(2)]
        results, structure = flatten(computation(*(unflatten(trees, row) for row in rows)))
        if len(results) != len(wanted) or (len(wanted) == len(dtypes) and structure != trees):
            got = f"{len(results)} for {len(dtypes)}" if len(results) != len(wanted) else "another structure"
            raise TypeError(message(function, f"{name} must return a tree like its arguments", got))
        made = []
        for result, dtype in zip(results, wanted):
            scalar = operand(trace, result, dtype) if isinstance(result, (bool, int, float, complex)) else result
            (scalar,) = lifted(scalar)
            if isinstance(scalar, WeakTracer):
                scalar = operand(trace, scalar, dtype)
            if scalar.shape != ():
                raise ShapeError(message(function, f"{name} must return scalars", shown(scalar)))
            if scalar.dtype != dtype:
                rule = f"{name} must return {np.dtype(dtype).name}"
                raise DTypeError(message(function, rule, scalar.dtype.name, "convert it with astype"))
            made.append(scalar)
        body.returns(made)
    return body.index


def reduction(function: str, operands: Any, init_values: Any, name: str, computation: Callable[..., Any]) -> Reduction:
    """The operands of a reduction of trees; ``name`` is that of the argument ``init_values``.

    Raises:
        TypeError: the trees differ, or the computation is no function of two such trees.
        ShapeError: there is no operand, their shapes differ, or something that must be a scalar is none.
        DTypeError: a start or a result does not have the dtype of its operand.
    """
    leaves, tree = flatten(operands)
    starts, other = flatten(init_values)
    if tree != other:
        rule = f"{name} must be a tree like the operand"
        raise TypeError(message(function, rule, f"{len(starts)} leaves for {len(leaves)}"))
    if not leaves:
        raise ShapeError(message(function, "takes at least one operand", "none"))
    arrays = lifted(*leaves)
    if any(x.shape != arrays[0].shape for x in arrays):
        got = " and ".join(shown(x.shape) for x in arrays)
        raise ShapeError(message(function, "operands must have the same shape", got))
    dtypes = [x.dtype for x in arrays]
    scalars = [as_scalar(function, name, value, dtype) for value, dtype in zip(starts, dtypes)]
    return Reduction(tree, arrays, scalars, recorded_region(function, computation, tree, dtypes, dtypes))
