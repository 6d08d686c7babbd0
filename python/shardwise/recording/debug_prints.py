# SPDX-License-Identifier: Apache-2.0
"""The ``debug.print`` calls of a program.

The values of a call at the top level are hidden results, which are printed after each run. A call in a loop, a branch
or a manual region is an op, which prints whenever it runs:

    stablehlo.custom_call @shardwise.debug_print(%x) {has_side_effect = true, mhlo.backend_config = {call = "5d41…"}}

Lines keep the order of the program: an op that stands behind a call at the top level prints once that call has printed.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ..trees import unflatten

__all__ = ["DebugPrint", "DebugPrints", "call_of", "print_from_op", "print_order"]

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class DebugPrints(list["DebugPrint"]):
    """The calls at the top level of a program, in program order.

    Attributes:
        ops: the calls that are ops.
        in_body: whether the body of a loop or a branch is being recorded.
        shows_tiles: whether the program calls ``debug.visualize_array_sharding``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ops: list[DebugPrint] = []
        self.in_body = False
        self.shows_tiles = False


class DebugPrint:
    """One call of ``debug.print`` in a program: its format, its static leaves, and the values to print.

    ``values`` are values of the recorded program, one per traced leaf. Each vmap around the call replaces them by
    values with a leading dim. ``_maps`` holds the dim's size and which values have it, the outermost vmap first.

    Attributes:
        position: how many calls at the top level stand before this one, for an op.
        has_device: whether the last value is the number of the device, which makes each device print.
    """

    def __init__(
        self,
        fmt: str,
        tree: Any,
        leaves: list[Any],
        values: Sequence[int | None] = (),
        position: int = 0,
        has_device: bool = False,
    ) -> None:
        self._fmt = fmt
        self._tree = tree
        self._leaves = leaves
        self._places = [i for i, value in enumerate(values) if value is not None]
        self.values = [value for value in values if value is not None]
        self._maps: list[tuple[int, list[bool]]] = []
        self.position = position
        self.has_device = has_device
        self._batched: list[DebugPrint] = []  # those that batching made of this one, which live as long

    def batch(self, values: Sequence[tuple[int, bool]], size: int) -> None:
        """Replace the values by the batched ones of a vmap, each with a flag: whether it depends on the example."""
        self.values = [value for value, _ in values]
        self._maps.insert(0, (size, [batched for _, batched in values]))

    def batched(self, size: int, flags: Sequence[bool]) -> DebugPrint:
        """The call inside of one more vmap, for an op."""
        made = DebugPrint(self._fmt, self._tree, self._leaves, (), self.position, self.has_device)
        made._places = self._places
        made._maps = [(size, list(flags)), *self._maps]
        self._batched.append(made)
        return made

    def register(self) -> str:
        """Make an op find this call by the returned key. Equal calls have equal keys, in other processes, too."""
        leaves = [leaf.tobytes() if isinstance(leaf, np.ndarray) else repr(leaf) for leaf in self._leaves]
        content = (self._fmt, str(self._tree), leaves, self._places, self._maps, self.position, self.has_device)
        text = _ADDRESS.sub("", repr(content))
        import hashlib  # OpenSSL would slow down the import of shardwise

        key = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        registered = _registered.setdefault(key, self)
        if registered is not self:
            self._batched.append(registered)  # keeps it alive for the ops of this call
        return key

    def show(self, results: Sequence[np.ndarray]) -> None:
        """Print the values of a run, one line per example."""
        for line in self.lines(results):
            sys.stdout.write(line)

    def lines(self, results: Sequence[np.ndarray]) -> Iterator[str]:
        """The text for the values of a run, one line per example."""
        for example in self._examples(list(results), 0):
            leaves = [np.asarray(leaf) if hasattr(leaf, "__shardwise_array__") else leaf for leaf in self._leaves]
            for i, result in zip(self._places, example):
                leaves[i] = result
            args, kwargs = unflatten(self._tree, leaves)
            yield self._fmt.format(*args, **kwargs) + "\n"

    def _examples(self, results: list[np.ndarray], depth: int) -> Iterator[list[np.ndarray]]:
        """The values of every example of the vmaps from level ``depth`` on; level 0 is the outermost."""
        if depth == len(self._maps):
            yield results
            return
        size, batched = self._maps[depth]
        for i in range(size if any(batched) else 1):
            # An ellipsis keeps scalars arrays.
            yield from self._examples([x[i, ...] if has_dim else x for x, has_dim in zip(results, batched)], depth + 1)


_registered: WeakValueDictionary[str, DebugPrint] = WeakValueDictionary()


def call_of(key: str) -> DebugPrint | None:
    """The call that was registered with this key; None if its program is gone."""
    return _registered.get(key)


class _Lines:
    """The lines that the ops of one run have printed too early, each with the calls that must come first."""

    def __init__(self) -> None:
        self._shown = 0
        self._waiting: list[tuple[int, str]] = []
        self._lock = threading.Lock()

    def write(self, position: int, line: str) -> None:
        """Print a line, once ``position`` calls at the top level have printed."""
        with self._lock:
            if position <= self._shown:
                sys.stdout.write(line)
            else:
                self._waiting.append((position, line))

    def reach(self, count: int) -> None:
        """``count`` calls at the top level have printed."""
        with self._lock:
            self._shown = count
            for position, line in self._waiting:
                if position <= count:
                    sys.stdout.write(line)
            self._waiting = [row for row in self._waiting if row[0] > count]


_runs: list[_Lines] = []  # those of now, in all threads


@contextmanager
def print_order(prints: DebugPrints) -> Iterator[_Lines]:
    """Keep the lines of a run in program order. An error prints all lines that wait."""
    lines = _Lines()
    _runs.append(lines)
    try:
        yield lines
    finally:
        _runs.remove(lines)
        lines.reach(len(prints))


def print_from_op(call: DebugPrint, arrays: Sequence[np.ndarray]) -> None:
    """Print what an op was called with."""
    for line in call.lines(arrays):
        if _runs:
            _runs[-1].write(call.position, line)
        else:
            sys.stdout.write(line)
