# SPDX-License-Identifier: Apache-2.0
"""The parts of a scan of a local program: stacked operands and results, carries, and the order of the trips."""

from __future__ import annotations

from ..._core.ir import Op, Region
from .target import attributes

__all__ = ["RowsOfScan"]


class RowsOfScan:
    """What the attributes of a scan say.

    Attributes:
        body: its arguments are rows of the inputs, then the carries; its results are rows of the outputs, then the
            carries.
        inputs: how many of the operands are stacked; the others are carries.
        outputs: the same for the results.
        dimension: the dim of the stacks along which the rows are taken.
        trips: the number of rows.
        is_reverse: whether the last row comes first.
    """

    body: Region
    inputs: int
    outputs: int
    dimension: int
    trips: int
    is_reverse: bool

    def __init__(self, op: Op) -> None:
        own = attributes(op)
        (self.body,) = op.regions
        self.inputs = int(own["operandSegmentSizes"][0])
        self.outputs = int(own["resultSegmentSizes"][0])
        self.dimension = int(own["dimension"])
        self.trips = int(own["scan_dim_size"])
        self.is_reverse = bool(own.get("is_reverse", False))
