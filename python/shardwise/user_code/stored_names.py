# SPDX-License-Identifier: Apache-2.0
"""Finds the variables that the result of an instruction is stored to, by following it on the stack.

h = f(x)             "h"
g = h = f(x)         "g = h"
a, b = f(x)          "a, b"
loss, (w, b) = f(x)  "loss, w, b"
a, b = f(x), g(x)    "a" for f(x), and "b" for g(x)
"""

from __future__ import annotations

import dis
from collections.abc import Sequence

__all__ = ["stored_names"]

Path = tuple[int, ...]  # of a leaf: () is the whole value, (1, 0) the first element of the second one

_STORES = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")
_IGNORED = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "RESUME"})
_BUILDS = ("BUILD_TUPLE", "BUILD_LIST")
# Control goes elsewhere, or elements cannot be told apart.
_ENDS = ("RETURN", "RAISE", "RERAISE", "YIELD", "SEND", "UNPACK_EX", "END_")
_NOTHING_PUSHED = ("STORE_", "POP_", "DELETE_")
_MOST_INSTRUCTIONS = 400
_NO_VARIABLE = "_"
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))


class _Stack:
    """Where a value and its copies are, counted from the top of the stack."""

    def __init__(self) -> None:
        self.names: list[dict[Path, str]] = [{(): ""}]  # by copy, of its leaves
        # By depth: the copy, the path of the part of it, and its index in a tuple that was built around it.
        self.at: dict[int, tuple[int, Path, int | None]] = {0: (0, (), None)}

    def move(self, pops: int, pushes: int) -> None:
        """Other instructions take what is on top."""
        self.at = {depth - pops + pushes: entry for depth, entry in self.at.items() if depth >= pops}

    def copy(self, depth: int) -> None:
        found = self.at.get(depth)
        self.move(0, 1)
        if found is not None and found[1] == ():
            self.names.append({(): ""})
            self.at[0] = (len(self.names) - 1, (), found[2])

    def swap(self, depth: int) -> None:
        entries = {0: self.at.pop(depth, None), depth: self.at.pop(0, None)}
        self.at.update({place: entry for place, entry in entries.items() if entry is not None})

    def build(self, count: int) -> None:
        inside = {depth: entry for depth, entry in self.at.items() if depth < count}
        self.move(count, 1)
        if len(inside) == 1:
            ((depth, (copy, path, around)),) = inside.items()
            if around is None:
                self.at[0] = (copy, path, count - 1 - depth)

    def unpack(self, count: int) -> None:
        found = self.at.get(0)
        self.move(1, count)
        if found is None:
            return
        copy, path, place = found
        if place is not None:
            self.at[place] = (copy, path, None)
            return
        del self.names[copy][path]
        for i in range(count):
            self.names[copy][*path, i] = ""
            self.at[i] = (copy, (*path, i), None)

    def store(self, name: str) -> None:
        found = self.at.get(0)
        self.move(1, 0)
        if found is not None and found[2] is None:
            copy, path, _ = found
            self.names[copy][path] = name

    def targets(self) -> str:
        in_order = (*self.names[1:], self.names[0])  # a copy is stored before what it is a copy of
        named = [[name for _, name in sorted(names.items())] for names in in_order if any(names.values())]
        return " = ".join(", ".join(name or _NO_VARIABLE for name in names) for names in named)


def stored_names(instructions: Sequence[dis.Instruction], begin: int) -> str:
    """The variables that the value on top of the stack before instruction ``begin`` is stored to.

    Args:
        instructions: of one code object.

    Returns:
        The targets of the assignment: joined by " = " in the order of the stores, their leaves by ", ", with "_" for
        a leaf that is no variable. A target without a variable is left out; "" without any.
    """
    stack = _Stack()
    for instruction in instructions[begin : begin + _MOST_INSTRUCTIONS]:
        if not stack.at or instruction.opcode in _JUMPS or instruction.opname.startswith(_ENDS):
            break
        _step(stack, instruction)
    return stack.targets()


def _step(stack: _Stack, instruction: dis.Instruction) -> None:
    name, count = instruction.opname, instruction.arg or 0
    if name in _IGNORED:
        return
    if name == "COPY":
        stack.copy(count - 1)
    elif name == "SWAP":
        stack.swap(count - 1)
    elif name == "UNPACK_SEQUENCE":
        stack.unpack(count)
    elif name in _BUILDS:
        stack.build(count)
    elif name.startswith(_STORES):
        _store(stack, instruction)
    else:
        effect = dis.stack_effect(instruction.opcode, instruction.arg)
        pushes = 0 if name.startswith(_NOTHING_PUSHED) else max(1, effect)
        stack.move(pushes - effect, pushes)


def _store(stack: _Stack, instruction: dis.Instruction) -> None:
    """Python 3.13 joins STORE_FAST with its neighbour: its names are then a pair, the stored one first."""
    names = instruction.argval
    first, *rest = names if isinstance(names, tuple) else (names,)
    stack.store(str(first))
    if instruction.opname == "STORE_FAST_STORE_FAST":
        stack.store(str(rest[0]))
    elif rest:
        stack.move(0, 1)
