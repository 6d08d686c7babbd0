# SPDX-License-Identifier: Apache-2.0
"""The options of the partitioner, for :func:`jit`.

A new option is a field of :class:`PartitionOptions`, a key of :class:`PartitionKeywords`, a field of ``CompileOptions``
and its row in ``kCompileOptions`` (cpp/shardwise/ir/compile_options.h). Signatures, docstrings, caches and
:class:`Choices` have it from there.

>>> PartitionOptions(objective="bytes").as_arguments()
{'objective': 'bytes', 'hardware': 'default', 'memory_limit': '0'}
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypedDict, get_args

from ..hardware import Hardware, load
from .hardware_options import checked_hardware, checked_limit

__all__ = ["DEFAULT_OPTIONS", "OBJECTIVES", "Objective", "PartitionKeywords", "PartitionOptions"]

Objective = Literal["time", "bytes"]
OBJECTIVES: Final[tuple[Objective, ...]] = get_args(Objective)
DEFAULT_HARDWARE: Final = load("default")


@dataclass(frozen=True)
class PartitionOptions:
    """How a propagated program is partitioned.

    Attributes:
        objective: what the partitioner minimizes. ``"time"``, the default: operations, memory and transfers of a device
            on the hardware, one after the other (:meth:`Program.choice_price`). ``"bytes"``: the bytes that a device
            receives, even if devices then repeat work.
        hardware: the hardware that times are computed for: a :class:`shardwise.hardware.Hardware`, its name, or a path;
            by default the file ``default``: an H100 without launches and latencies, 8 in a node.
        memory_limit: the bytes that a device has for the program: a number, ``"80GB"``, ``"16GiB"``, or hardware, less
            what it reserves. Values that would not fit are gathered or computed again where they are needed, those
            first that take the least time for their memory (:meth:`Program.memory`); OutOfMemoryError where that is not
            enough. Default: no limit.
    """

    objective: Objective = field(default="time", metadata={"choices": OBJECTIVES})
    hardware: Hardware = field(default=DEFAULT_HARDWARE, metadata={"check": checked_hardware})
    memory_limit: int | None = field(default=None, metadata={"check": checked_limit})

    @property
    def is_by_bytes(self) -> bool:
        """Whether bytes are minimised, not time."""
        return self.objective == "bytes"

    def as_arguments(self) -> Mapping[str, Any]:
        """The options by name, as the extension takes them."""
        limit = "0" if self.memory_limit is None else str(self.memory_limit)
        return {**vars(self), "hardware": self._hardware_text(), "memory_limit": limit}

    def to_dict(self) -> dict[str, Any]:
        """The options by name, as JSON has them: hardware that is built in by its name, other as a dict."""
        is_built_in = self.hardware.is_built_in
        return {**vars(self), "hardware": self.hardware.name if is_built_in else self.hardware.to_dict()}

    def _hardware_text(self) -> str:
        return self.hardware.name if self.hardware.is_built_in else self.hardware._core.json


DEFAULT_OPTIONS: Final = PartitionOptions()


class PartitionKeywords(TypedDict, total=False):
    """All options as keyword arguments; None leaves one unspecified."""

    objective: Objective | None
    hardware: Hardware | str | os.PathLike[str] | None
    memory_limit: int | str | Hardware | os.PathLike[str] | None
