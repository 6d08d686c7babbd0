# SPDX-License-Identifier: Apache-2.0
"""The kinds of collectives, and one collective of a program as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from .tables import LocalTensorRow

__all__ = ["COLLECTIVE_KINDS", "CollectiveRow", "CombinedOperand", "combined_operands", "with_more"]

COLLECTIVE_KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute", "exchange")


@dataclass(frozen=True)
class CombinedOperand(LocalTensorRow):
    """One of the values that a collective moves together.

    Attributes:
        bytes: received for it by one device in one execution: the maximum over devices.
        shape: its shape on one device.
        dtype: the name of its dtype.
        file, line, cause, reason, name: as of a collective that moves it alone.
    """

    bytes: float
    shape: tuple[int, ...]
    dtype: str
    file: str = ""
    line: int = 0
    cause: str = ""
    name: str = ""
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, with values that JSON supports."""
        return {**asdict(self), "shape": list(self.shape)}


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
        combined: of a collective that moves several operands together: each of them with its bytes, line and cause.
            The row has the shape, line, cause, reason and name of the first. Else empty.
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
    combined: tuple[CombinedOperand, ...] = ()

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

    def separate(self) -> tuple[CollectiveRow, ...]:
        """A row for each operand, as if it were moved alone: the bytes of devices that receive less are not known."""
        if not self.combined:
            return (self,)
        return tuple(
            replace(
                self, bytes=part.bytes, shape=part.shape, dtype=part.dtype, file=part.file, line=part.line,
                cause=part.cause, name=part.name, reason=part.reason, combined=(), device_axes=(), device_bytes=(),
                sum_bytes=self.sum_bytes * (part.bytes / self.bytes if self.bytes else 0.0),
            )
            for part in self.combined
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, with values that JSON supports."""
        lists = {"device_axes": [list(axis) for axis in self.device_axes], "device_bytes": list(self.device_bytes)}
        combined = [part.to_dict() for part in self.combined]
        return {**asdict(self), "shape": list(self.shape), **lists, "combined": combined}


def combined_operands(values: Mapping[str, Any]) -> tuple[CombinedOperand, ...]:
    """Those of a dict of the extension."""
    return tuple(CombinedOperand(**{**part, "shape": tuple(part["shape"])}) for part in values.get("combined", ()))


def with_more(text: str, others: Sequence[str]) -> str:
    """The text of the first of several, and how many of the others have another one.

    >>> with_more("train.py:9", ["train.py:9", "train.py:12", "train.py:13"])
    'train.py:9 +2 more'
    """
    more = sum(other != text for other in others)
    return f"{text} +{more} more" if more else text
