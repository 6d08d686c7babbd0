# SPDX-License-Identifier: Apache-2.0
"""Writes a region of a local program as lines of Python, op by op."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..._core.ir import Module, Op, Region, Value
from ...errors import UnsupportedError, composed
from .literals import array_text, identifier, scalar_text, wrapped
from .mesh_axes import MeshAxes
from .table import EMISSIONS, REFUSED

__all__ = ["Scope", "Transfer"]

_INLINE_ELEMENTS = 16
_RESERVED = {
    *dir(builtins), "SIZES", "ALL", "CONSTANTS", "P", "functools", "jax", "jnp", "lax", "local", "main", "math", "np",
}  # fmt: skip


@dataclass(frozen=True)
class Transfer:
    """A collective of the emitted program.

    Attributes:
        source: the collective of the local program, by its place among all of them.
        kind: the kind of the ledger.
        group: the number of devices of a group.
        bytes: received by one device, in one run of the op.
    """

    source: int
    kind: str
    group: int
    bytes: float
    shape: tuple[int, ...]
    dtype: str


@dataclass
class Shared:
    """What all scopes of a script share."""

    module: Module
    axes: MeshAxes
    constants: dict[str, np.ndarray] = field(default_factory=dict)  # the larger ones, by name
    helpers: dict[str, None] = field(default_factory=dict)  # functions of helpers.py that are used
    tables: dict[str, str] = field(default_factory=dict)  # other globals, by their text
    functions: dict[str, list[str]] = field(default_factory=dict)  # those that are called: lines, by name
    transfers: list[Transfer] = field(default_factory=list)
    collectives: int = 0  # of the local program so far

    @cached_property
    def function_names(self) -> dict[str, str]:
        """The name in the script of each function of the program."""
        names: dict[str, str] = {}
        for function in self.module.functions:
            names[function.name] = _unused(f"fn_{function.name}", names.values())
        return names


class Scope:
    """The lines of a region, and the names of its values."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.lines: list[str] = []
        self._indent = "    "
        self._names: dict[Value, str] = {}
        self._taken = {*_RESERVED, *shared.function_names.values()}
        self._count = 0
        self._place = ""

    def __call__(self, value: Value) -> str:
        """The name or the literal of a value."""
        return self._names[value]

    @property
    def axes(self) -> MeshAxes:
        """The axes of JAX's mesh."""
        return self.shared.axes

    def helper(self, name: str) -> str:
        """Use a function of helpers.py."""
        self.shared.helpers[name] = None
        return name

    def table(self, prefix: str, text: str) -> str:
        """A global with this value."""
        tables = self.shared.tables
        return tables.setdefault(text, f"{prefix}_{len(tables)}")

    def transfer(self, kind: str, group: int, size: float, op: Op, dtype: str | None = None) -> None:
        """Add a collective to the ledger, with the bytes that one device receives."""
        kind_of = op.operands[0].type if op.operands else op.results[0].type
        row = Transfer(self.shared.collectives - 1, kind, group, size, kind_of.shape, dtype or kind_of.dtype)
        self.shared.transfers.append(row)

    def argument(self, value: Value, wanted: str) -> str:
        """Name an argument."""
        name = self._fresh(wanted)
        self._names[value] = name
        return name

    def constant(self, array: np.ndarray) -> str:
        """The literal of a constant, or its name among the larger ones."""
        if array.ndim == 0:
            return scalar_text(array[()])
        if array.size and all(stride == 0 or size == 1 for stride, size in zip(array.strides, array.shape)):
            return f"lax.full({array.shape}, {scalar_text(array.reshape(-1)[0])})"
        if array.size <= _INLINE_ELEMENTS and array.size:
            return array_text(array)
        if not array.size:
            return f'np.zeros({array.shape}, "{array.dtype.name}")'
        name = f"c{len(self.shared.constants)}"
        self.shared.constants[name] = np.ascontiguousarray(array)
        return f'CONSTANTS["{name}"]'

    def region(self, region: Region) -> str:
        """Write the ops of a region; returns the text of its results."""
        for op in region.ops:
            self._op(op)
        return ", ".join(self._names[value] for value in region.results)

    def function(self, name: str, region: Region, carry: str = "") -> str:
        """Define a function with the arguments and results of a region.

        ``carry``: "" takes and returns them one by one, "in" takes a tuple of them, "both" also returns one.
        """
        name = self._fresh(name)
        self.definition(name, region, carry)
        return name

    def definition(self, name: str, region: Region, carry: str = "") -> None:
        """Write the definition of a function; ``carry`` as above."""
        arguments = [self.argument(x, x.name or f"a{i}") for i, x in enumerate(region.arguments)]
        self.line(f"def {name}({'carry' if carry else ', '.join(arguments)}):")
        with self._indented():
            if carry:
                self.line(f"{listed(arguments)[1:-1]} = carry")
            results = self.region(region)
            self.line(f"return ({results},)" if carry == "both" else f"return {results}")
        self._place = ""

    def called(self, symbol: str) -> str:
        """The name of a function of the program, which is written once."""
        name = self.shared.function_names[symbol]
        if name not in self.shared.functions:
            (body,) = (function.body for function in self.shared.module.functions if function.name == symbol)
            scope = Scope(self.shared)
            scope._indent = ""
            scope.definition(name, body)
            self.shared.functions[name] = ["@jax.jit", *scope.lines, "", ""]
        return name

    def line(self, text: str) -> None:
        """Write a statement."""
        self.lines += wrapped(text, self._indent)

    def _op(self, op: Op) -> None:
        if op.definition.collective:
            self.shared.collectives += op.name != "shardwise.axis_index"
        emission = EMISSIONS.get(op.name)
        if emission is None:
            reason = REFUSED.get(op.name, "this one has none yet")
            rule = f"every op must have a form in jax.lax: {reason}"
            raise UnsupportedError(composed("to_jax", rule, op.name, "", op.location.file, op.location.line))
        if op.name == "stablehlo.constant" and not op.results[0].type.shape:
            self._names[op.results[0]] = emission(self, op)
            return
        text = emission(self, op)
        names = [self._fresh(self._wanted(op, value)) for value in op.results]
        for value, name in zip(op.results, names):
            self._names[value] = name
        if names:
            self.line(f"{', '.join(names)} = {text}{self._comment(op)}")

    def _wanted(self, op: Op, value: Value) -> str:
        self._count += 1
        return value.name or (op.location.variable if len(op.results) == 1 else "") or f"t{self._count}"

    def _comment(self, op: Op) -> str:
        place = op.location
        text = f"{Path(place.file).name}:{place.line}" if place.file and not place.file.startswith("<") else ""
        if not text or text == self._place:
            return ""
        self._place = text
        return f"  # {text}"

    def _fresh(self, wanted: str) -> str:
        name = _unused(wanted, self._taken)
        self._taken.add(name)
        return name

    @contextmanager
    def _indented(self) -> Iterator[None]:
        self._indent += "    "
        yield
        self._indent = self._indent[:-4]


def _unused(wanted: str, taken: Collection[str]) -> str:
    name = base = identifier(wanted)
    i = 2
    while name in taken:
        name = f"{base}_{i}"
        i += 1
    return name


def call(function: str, *arguments: Any) -> str:
    """``function(a, b)``."""
    return f"{function}({', '.join(map(str, arguments))})"


def listed(names: Iterable[str]) -> str:
    """A tuple as text, also of one item."""
    items: Sequence[str] = list(names)
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
