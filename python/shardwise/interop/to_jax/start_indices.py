# SPDX-License-Identifier: Apache-2.0
"""Start indices of slices, which StableHLO clamps.

XLA makes one slice of two, also of those with a transpose between them, and then clamps the sum of their start indices
instead of each. So indices are clamped in the program, unless they are known to be in range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np

from ..._core.ir import Op, Value
from ...dtypes import numpy_dtype
from ..source.collectives import refs_of, size_of
from ..source.scope import Scope, call, listed
from ..source.target import attributes

__all__ = ["greatest_start", "starts_in_range"]

_GREATEST: dict[str, Callable[[int, int], int]] = {
    "stablehlo.add": lambda x, y: x + y,
    "stablehlo.multiply": lambda x, y: x * y,
    "stablehlo.minimum": min,
}


def greatest_start(size: int, part: int, dtype: str) -> int:
    """The greatest start index of a slice of ``part`` elements, as far as the dtype of the index can say it."""
    return min(size - part, int(ml_dtypes.iinfo(numpy_dtype(dtype)).max))  # type: ignore[no-untyped-call]


def starts_in_range(scope: Scope, op: Op, sizes: Sequence[int]) -> str:
    """The tuple of the start indices of an op whose last operands they are."""
    starts = op.operands[-len(sizes) :] if sizes else []
    return listed(_in_range(scope, *row) for row in zip(starts, op.operands[0].type.shape, sizes))


def _in_range(scope: Scope, start: Value, size: int, part: int) -> str:
    dtype = numpy_dtype(start.type.dtype)
    last = greatest_start(size, part, start.type.dtype)
    known = _constant(start)
    if known is not None or last == 0:  # JAX refuses negative ones that it knows
        return scope.scalar(dtype.type(min(max(known or 0, 0), last)))
    greatest = _greatest(scope, start)
    if greatest is not None and greatest <= last:
        return scope(start)
    return call("lax.clamp", scope.scalar(dtype.type(0)), scope(start), scope.scalar(dtype.type(last)))


def _constant(value: Value) -> int | None:
    op = value.defining_op
    return int(np.asarray(attributes(op)["value"])) if op is not None and op.name == "stablehlo.constant" else None


def _greatest(scope: Scope, value: Value) -> int | None:
    """The greatest that a scalar can be, if it is known not to be negative: the place of a device times a size."""
    op = value.defining_op
    known = _constant(value)
    if op is None or known is not None:
        return known if known is not None and known >= 0 else None
    if op.name == "shardwise.axis_index":
        return size_of(refs_of(scope, op, "axes")) - 1
    if op.name not in _GREATEST:
        return None
    left, right = (_greatest(scope, operand) for operand in op.operands)
    return None if left is None or right is None else _GREATEST[op.name](left, right)
