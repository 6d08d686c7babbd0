# SPDX-License-Identifier: Apache-2.0
"""What a traced call had as arguments and results, beside the ops of its program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..array import ShapeDtypeStruct
from ..recording.debug_prints import DebugPrints
from ..recording.tracing import Limit
from ..trees.static_leaves import has_static_leaves
from .choices import Choices
from .partition_options import DEFAULT_OPTIONS, PartitionOptions

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
        prints: of ``debug.print``. The results of those at the top level follow those of ``out_tree``.
        choices: pinned ones, or None.
        partition: the options of the partitioner.
        unplaced: the results that no sharding places.
    """

    in_tree: Any
    in_avals: Sequence[ShapeDtypeStruct]
    in_names: Sequence[str]
    out_tree: Any
    hoisted: Sequence[Any] = ()
    limits: Sequence[tuple[int, Limit]] = ()
    function: str = ""
    donated: tuple[int, ...] = ()
    prints: DebugPrints = field(default_factory=DebugPrints)
    choices: Choices | None = None
    partition: PartitionOptions = DEFAULT_OPTIONS
    unplaced: tuple[int, ...] = ()

    @cached_property
    def has_static_results(self) -> bool:
        """Whether leaves of the results are neither arrays nor numbers (trees/static_leaves.py)."""
        return has_static_leaves(self.out_tree)

    @cached_property
    def free_arguments(self) -> list[int]:
        """The hidden arguments of the program that are no sharded arrays: it may have them in any placement."""
        first = len(self.in_avals)
        return [first + i for i, array in enumerate(self.hoisted) if isinstance(array, np.ndarray)]

    @property
    def free_results(self) -> tuple[int, ...]:
        """The results that the partitioner may split along another dim than propagation did."""
        return self.unplaced if self.partition.is_by_bytes and not self.donated else ()

    def known_to(self, module: Any) -> Any:
        """The module, which then knows the integers that the function closes over.

        What a program reads at known places, it moves as a slice does.
        """
        first = len(self.in_avals)
        for i, array in enumerate(self.hoisted):
            if isinstance(array, np.ndarray) and array.dtype.kind in "biu":
                module.know(first + i, array)
        return module
