# SPDX-License-Identifier: Apache-2.0
"""The ``debug.print`` calls of a program. Their values are hidden results, printed after each run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..trees import unflatten

__all__ = ["DebugPrint", "DebugPrints"]


class DebugPrints(list["DebugPrint"]):
    """The calls in a program, in program order."""

    refused_in = ""  # the loop or branch whose body is recorded now: "scan"


class DebugPrint:
    """One call of ``debug.print`` in a program: its format, its static leaves, and the values that the run returns.

    ``values`` are values of the recorded program, one per traced leaf. Each vmap around the call replaces them by
    values with a leading dim. ``_maps`` holds the dim's size and which values have it, the outermost vmap first.
    """

    def __init__(self, fmt: str, tree: Any, leaves: list[Any], values: Sequence[int | None] = ()) -> None:
        self._fmt = fmt
        self._tree = tree
        self._leaves = leaves
        self._places = [i for i, value in enumerate(values) if value is not None]
        self.values = [value for value in values if value is not None]
        self._maps: list[tuple[int, list[bool]]] = []

    def batch(self, values: Sequence[tuple[int, bool]], size: int) -> None:
        """Replace the values by the batched ones of a vmap, each with a flag: whether it depends on the example."""
        self.values = [value for value, _ in values]
        self._maps.insert(0, (size, [batched for _, batched in values]))

    def show(self, results: Sequence[np.ndarray]) -> None:
        """Print the values of a run, one line per example."""
        for example in self._examples(list(results), 0):
            leaves = [np.asarray(leaf) if hasattr(leaf, "__shardwise_array__") else leaf for leaf in self._leaves]
            for i, result in zip(self._places, example):
                leaves[i] = result
            args, kwargs = unflatten(self._tree, leaves)
            sys.stdout.write(self._fmt.format(*args, **kwargs) + "\n")

    def _examples(self, results: list[np.ndarray], depth: int) -> Iterator[list[np.ndarray]]:
        """The values of every example of the vmaps from level ``depth`` on; level 0 is the outermost."""
        if depth == len(self._maps):
            yield results
            return
        size, batched = self._maps[depth]
        for i in range(size if any(batched) else 1):
            # An ellipsis keeps scalars arrays.
            yield from self._examples([x[i, ...] if has_dim else x for x, has_dim in zip(results, batched)], depth + 1)
