# SPDX-License-Identifier: Apache-2.0
"""The options of the partitioner, for :func:`jit`.

A new option is a field of :class:`PartitionOptions`, a key of :class:`PartitionKeywords`, a field of ``CompileOptions``
and its row in ``kCompileOptions`` (cpp/shardwise/ir/compile_options.h). Signatures, docstrings, caches and
:class:`Choices` have it from there.

>>> PartitionOptions(objective="bytes").as_arguments()
{'objective': 'bytes', 'hardware': 'default'}
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypedDict, get_args

from ..errors import described, message, reworded
from ..hardware import Hardware, load

__all__ = ["DEFAULT_OPTIONS", "OBJECTIVES", "Objective", "PartitionKeywords", "PartitionOptions"]

Objective = Literal["time", "bytes"]
OBJECTIVES: Final[tuple[Objective, ...]] = get_args(Objective)
DEFAULT_HARDWARE: Final = load("default")


def checked_hardware(what: str, given: Any) -> Hardware:
    """``given``, or the hardware that it names.

    Raises:
        ValueError: no built-in name and no file. ParseError: a file of another form. TypeError: other values.
    """
    if isinstance(given, Hardware):
        return given
    if not isinstance(given, (str, os.PathLike, Mapping)):
        rule = "hardware must be that of hardware.load, a name or a path"
        raise TypeError(message(what, rule, described(given)))
    try:
        return load(given)
    except (OSError, TypeError, ValueError) as error:
        rest = str(error).removeprefix("hardware.load: ")
        text = f"{what}: hardware{' ' if rest.startswith('must ') else ': '}{rest}"
        raise (ValueError(text) if isinstance(error, OSError) else reworded(error, text)) from None


@dataclass(frozen=True)
class PartitionOptions:
    """How a propagated program is partitioned.

    Attributes:
        objective: what the partitioner minimizes. ``"time"``, the default: operations, memory and transfers of a device
            on the hardware, one after the other (:meth:`Program.choice_price`). ``"bytes"``: the bytes that a device
            receives, even if devices then repeat work.
        hardware: the hardware that times are computed for: a :class:`shardwise.hardware.Hardware`, its name, or a path;
            by default the file ``default``: an H100 without launches and latencies, 8 in a node.
    """

    objective: Objective = field(default="time", metadata={"choices": OBJECTIVES})
    hardware: Hardware = field(default=DEFAULT_HARDWARE, metadata={"check": checked_hardware})

    @property
    def is_by_bytes(self) -> bool:
        """Whether bytes are minimised, not time."""
        return self.objective == "bytes"

    def as_arguments(self) -> Mapping[str, Any]:
        """The options by name, as the extension takes them."""
        return {**vars(self), "hardware": self._hardware_text()}

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
