# SPDX-License-Identifier: Apache-2.0
"""The parts of a scan of a local program: stacked operands and results, carries, and the order of the trips."""

from __future__ import annotations

from dataclasses import dataclass

from ..._core.ir import Op, Region, Value
from .target import attributes

__all__ = ["InputOfScan", "RowsOfScan"]


@dataclass(frozen=True)
class InputOfScan:
    """A stacked operand; in the trip of row i, the body's argument is its row ``i + offset``.

    Attributes:
        border: the row that it lacks, before its first one or after its last one.
        size: the number of its rows.
    """

    stack: Value
    offset: int
    border: Value | None
    size: int


class RowsOfScan:
    """The attributes of a scan, decoded.

    Attributes:
        body: its arguments are rows of the inputs, then the carries; its results are rows of the outputs, then the
            carries.
        inputs: the stacked operands.
        carries: the operands that are carries.
        outputs: how many of the results are stacked; the others are carries.
        dimension: the dim of the stacks along which the rows are taken.
        trips: the number of trips.
        is_reverse: whether the last row comes first.
    """

    def __init__(self, op: Op) -> None:
        own = attributes(op)
        self.body: Region = op.regions[0]
        inputs, borders, _ = map(int, own["operandSegmentSizes"])
        self.outputs = int(own["resultSegmentSizes"][0])
        self.dimension = int(own["dimension"])
        self.trips = int(own["scan_dim_size"])
        self.is_reverse = bool(own.get("is_reverse", False))
        self.carries = list(op.operands[inputs + borders :])
        left = iter(op.operands[inputs : inputs + borders])
        self.inputs: list[InputOfScan] = []
        for stack, offset in zip(op.operands[:inputs], map(int, own["offsets"])):
            size = stack.type.shape[self.dimension]
            lacks_one = offset < 0 or offset + self.trips > size
            self.inputs.append(InputOfScan(stack, offset, next(left) if lacks_one else None, size))
