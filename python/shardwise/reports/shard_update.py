# SPDX-License-Identifier: Apache-2.0
"""How the updates of weights are split: :meth:`Program.shard_update`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .tables import Report, format_bytes, short_location

__all__ = ["ShardUpdateReport", "StateRow", "shard_update_of"]


@dataclass(frozen=True)
class StateRow:
    """A weight, or a state of its optimizer.

    Attributes:
        name: of the argument; "" in the body of a loop.
        type: as in texts, ``tensor<64x32xf32>``.
        layout: the sharding in and out of the step; of a whole state, that which it has without the switch.
        group: the number of devices that the update is split over; 1 if it is whole.
        shard_bytes: what one device stores, with padding.
        padding: stored elements over elements.
        is_weight: whether the forward pass reads it.
        gathered: the dtype in which the forward pass receives it; "" if it is whole or not read.
        reason: why it is whole, split over fewer devices than asked for, or gathered in its own dtype; else "".
        location: the source line of the argument, if known.
    """

    name: str
    type: str
    layout: str
    group: int
    shard_bytes: int
    padding: float
    is_weight: bool
    gathered: str
    reason: str
    location: str

    @property
    def is_split(self) -> bool:
        """Whether each device updates a part of it."""
        return self.group > 1

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, with values that JSON supports."""
        return asdict(self)


class ShardUpdateReport(Report[StateRow]):
    """Each weight and each state of an optimizer, with the layout of its update, in the order of the arguments.

    Attributes:
        rows: a :class:`StateRow` for each.
    """

    _noun = "state"

    def named(self, name: str) -> StateRow:
        """The row of an argument.

        Raises:
            KeyError: no state has this name.
        """
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    def summary(self) -> str:
        """One line for the whole report."""
        split = sum(row.is_split for row in self.rows)
        stored = format_bytes(sum(row.shard_bytes for row in self.rows))
        return f"{split} of {len(self.rows)} states split, {stored} per device"

    def to_dict(self) -> dict[str, Any]:
        """The rows as values that JSON supports."""
        return {"rows": [row.to_dict() for row in self.rows]}

    def _header(self) -> Sequence[str]:
        return "name", "type", "layout", "group", "shard_bytes", "padding", "gathered", "reason"

    def _cells(self, row: StateRow) -> Sequence[str]:
        padding = f"{row.padding:.4g}"
        shard, where = format_bytes(row.shard_bytes), short_location(row.location)
        return row.name or where, row.type, row.layout, str(row.group), shard, padding, row.gathered, row.reason


def shard_update_of(rows: Sequence[dict[str, Any]]) -> ShardUpdateReport:
    """The report of the extension's rows."""
    return ShardUpdateReport([StateRow(**row) for row in rows])
