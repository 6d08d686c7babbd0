# SPDX-License-Identifier: Apache-2.0
"""The kinds of collectives, and one collective of a program as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .tables import LocalTensorRow

__all__ = ["COLLECTIVE_KINDS", "CollectiveRow"]

COLLECTIVE_KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute", "exchange")


@dataclass(frozen=True)
class CollectiveRow(LocalTensorRow):
    """One collective of a program.

    Attributes:
        kind: ``"all_reduce"``, ``"all_gather"``, …
        axes: the mesh axes of a group, as text.
        group_size: how many devices take part in a group; also as ``devices``, the column of the table.
        bytes: received by one device in one execution: the maximum over devices.
        shape: the shape of the operand on one device.
        dtype: the name of its dtype.
        count: the number of executions in one run, as far as it is known.
        bound: ``""`` where ``count`` is exact, ``"at most"`` in a branch, which may not run, ``"per trip"`` in a loop
            whose number of trips is unknown before the run.
        file, line: the user's source line of the op that needs it.
        cause: its reason, for example ``"reduction in dot_general"``.
        reason: why that op is computed as it is, if it could be computed otherwise: ``'faster than [{"x"}, {}]'`` or
            ``'fewer bytes than …'``, with the results of the best other way, or ``"pinned"``.
        name: the name of its result: in the program text, by ``sw.name`` or by the variable that holds it; of a sum
            for a gradient, ``"gradient of params['w1']"``.
        sum_bytes: received by all devices together in one execution.
        device_axes: the mesh axes along which devices receive different numbers of bytes, with their sizes; a size
            below that of the axis is that of its major part.
        device_bytes: received by each device in one execution, by position along ``device_axes``, row-major. Empty
            where all devices receive the same, and for more than 65,536 positions.
    """

    kind: str
    axes: str
    group_size: int
    bytes: float
    shape: tuple[int, ...]
    dtype: str
    count: int = 1
    file: str = ""
    line: int = 0
    cause: str = ""
    name: str = ""
    bound: str = ""
    sum_bytes: float = 0.0
    device_axes: tuple[tuple[str, int], ...] = ()
    device_bytes: tuple[float, ...] = ()
    reason: str = ""

    @property
    def devices(self) -> int:
        """The same as ``group_size``."""
        return self.group_size

    @property
    def gradient(self) -> str:
        """Its name if it is for the gradient of an argument, else ``""``; shown with the cause."""
        return self.name if self.name.startswith("gradient of ") else ""

    @property
    def total_bytes(self) -> float:
        """Bytes that one device receives in ``count`` executions: the maximum over devices."""
        return self.bytes * self.count

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, with values that JSON supports."""
        lists = {"device_axes": [list(axis) for axis in self.device_axes], "device_bytes": list(self.device_bytes)}
        return {**asdict(self), "shape": list(self.shape), **lists}
