# SPDX-License-Identifier: Apache-2.0
"""The options of the partitioner, for :func:`jit`.

A new option is a field of :class:`PartitionOptions`, a key of :class:`PartitionKeywords`, a field of ``CompileOptions``
and its row in ``kCompileOptions`` (cpp/shardwise/ir/compile_options.h). Signatures, docstrings, caches and
:class:`Choices` have it from there.

>>> PartitionOptions(objective="bytes").as_arguments()
{'objective': 'bytes'}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypedDict, get_args

__all__ = ["OBJECTIVES", "Objective", "PartitionKeywords", "PartitionOptions"]

Objective = Literal["time", "bytes"]
OBJECTIVES: Final[tuple[Objective, ...]] = get_args(Objective)


@dataclass(frozen=True)
class PartitionOptions:
    """How a propagated program is partitioned.

    Attributes:
        objective: what the partitioner minimizes. ``"time"``, the default: the bytes that a device receives, by
            schedules in which no device waits for a chain of others. ``"bytes"``: these bytes alone.
    """

    objective: Objective = field(default="time", metadata={"choices": OBJECTIVES})

    def as_arguments(self) -> Mapping[str, Any]:
        """The options by name, as the extension takes them."""
        return vars(self)


class PartitionKeywords(TypedDict, total=False):
    """All options as keyword arguments; None leaves one unspecified."""

    objective: Objective | None
