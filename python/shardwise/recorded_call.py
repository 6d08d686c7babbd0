# SPDX-License-Identifier: Apache-2.0
"""What a traced program keeps of the call that it was traced for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .array import ShapeDtypeStruct
from .choices import Choices, Objective
from .debug_prints import DebugPrint
from .tracing import Limit

__all__ = ["RecordedCall"]


@dataclass(frozen=True)
class RecordedCall:
    """The arguments and results of a traced call, and how the program is to be partitioned.

    Attributes:
        in_tree: the structure of the arguments.
        in_avals, in_names: shape, dtype and sharding, and the name, of each of their leaves.
        out_tree: the structure of the results.
        hoisted: the arrays that the function closes over, which are the last arguments of the program.
        limits: the ranges of leaves that are Python ints, by their place.
        function: the name of the function, for messages.
        donated: the leaves that the call donates.
        prints: of ``debug.print``. Their results follow those of ``out_tree``.
        choices: pinned ones, or None.
        objective: what the partitioner makes least of.
    """

    in_tree: Any
    in_avals: Sequence[ShapeDtypeStruct]
    in_names: Sequence[str]
    out_tree: Any
    hoisted: Sequence[Any] = ()
    limits: Sequence[tuple[int, Limit]] = ()
    function: str = ""
    donated: tuple[int, ...] = ()
    prints: Sequence[DebugPrint] = ()
    choices: Choices | None = None
    objective: Objective = "time"
