# SPDX-License-Identifier: Apache-2.0
"""Writes a region of a local program as lines of Python, op by op."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..._core.ir import Module, Op, Value
from ...dtypes import numpy_dtype
from ...errors import UnsupportedError, composed
from .library import names_of
from .literals import array_text, identifier, scalar_text, wrapped
from .mesh_axes import MeshAxes
from .target import Target

__all__ = ["Body", "Line", "Scope", "Transfer"]

_INLINE_ELEMENTS = 16
_RESERVED = {
    *dir(builtins), "SIZES", "ALL", "COMM", "CONSTANTS", "MPI", "P", "functools", "jax", "jnp", "lax", "local", "main",
    "math", "ml_dtypes", "np",
}  # fmt: skip
_TABLES = ("ALONG", "DIMS", "GROUPS", "PAIRS", "POSITIONS", "SOURCES")  # a variable `DIMS_0` would hide the global


class Body(Protocol):
    """What becomes the lines of a function: a region, or a part of one."""

    @property
    def arguments(self) -> Sequence[Value]:
        """What the ops read."""

    @property
    def ops(self) -> Sequence[Op]:
        """The ops in their order."""

    @property
    def results(self) -> Sequence[Value]:
        """What the function returns."""


@dataclass(frozen=True)
class Transfer:
    """A collective of the emitted program.

    Attributes:
        source: the collective of the local program, by its place among all of them.
        kind: the kind of the ledger.
        group: the number of devices of a group.
        bytes: received by one device, in one run of the op.
        operand: the place of what is sent among the operands of the collective.
    """

    source: int
    kind: str
    group: int
    bytes: float
    shape: tuple[int, ...]
    dtype: str
    operand: int = 0


class Line(str):
    """A line of a script. ``op``: the op of the local program that it is written for."""

    __slots__ = ("op",)
    op: Op | None

    @classmethod
    def of(cls, text: str, op: Op | None) -> Line:
        """Make the line of an op."""
        line = cls(text)
        line.op = op
        return line


@dataclass
class Shared:
    """What all scopes of a script share."""

    module: Module
    axes: MeshAxes
    target: Target
    is_read: bool = True  # by people: operators of Python, which JAX traces slower than its functions
    constants: dict[str, np.ndarray] = field(default_factory=dict)  # the larger ones, by name
    helpers: dict[str, None] = field(default_factory=dict)  # those that are used
    tables: dict[str, str] = field(default_factory=dict)  # other globals, by their text
    functions: dict[str, list[str]] = field(default_factory=dict)  # those that are called: lines, by name
    transfers: list[Transfer] = field(default_factory=list)
    collectives: int = 0  # of the local program so far
    _names: dict[Any, str] = field(default_factory=dict)  # of the larger constants, by their type and bytes

    def stored(self, array: np.ndarray) -> str:
        """The name of a larger constant. Equal ones have one name."""
        array = np.ascontiguousarray(array)
        key = array.dtype, array.shape, array.tobytes()
        if key not in self._names:
            self._names[key] = name = f"c{len(self.constants)}"
            self.constants[name] = array
        return self._names[key]

    @cached_property
    def function_names(self) -> dict[str, str]:
        """The name in the script of each function of the program."""
        names: dict[str, str] = {}
        for function in self.module.functions:
            names[function.name] = _unused(f"fn_{function.name}", names.values())
        return names

    @cached_property
    def used(self) -> frozenset[Value]:
        """The values that an op reads, or a region returns."""
        regions = [function.body for function in self.module.functions]
        regions += [region for op in self.module.ops for region in op.regions]
        read = [value for op in self.module.ops for value in op.operands]
        return frozenset([*read, *(value for region in regions for value in region.results)])


class Scope:
    """The lines of a region, and the names of its values."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.lines: list[str] = []
        self._indent = "    "
        self._names: dict[Value, str] = {}
        self._taken = {*_RESERVED, *names_of(shared.target), *shared.function_names.values()}
        self._count = 0
        self._place = ""
        self._op_of_lines: Op | None = None

    def __call__(self, value: Value) -> str:
        """The name or the literal of a value."""
        return self._names[value]

    @property
    def axes(self) -> MeshAxes:
        """The axes of JAX's mesh."""
        return self.shared.axes

    @property
    def target(self) -> Target:
        """The engine that the program is written for."""
        return self.shared.target

    @property
    def is_read(self) -> bool:
        """Whether people read the script; else it is only run."""
        return self.shared.is_read

    def helper(self, name: str) -> str:
        """Use a helper of the target."""
        self.shared.helpers[name] = None
        return name

    def table(self, prefix: str, text: str, name: str = "") -> str:
        """A global with this value; its name is ``name`` as an identifier, or numbered. Both begin with the prefix."""
        assert prefix in _TABLES
        tables = self.shared.tables
        if text not in tables:
            tables[text] = _unused(name or f"{prefix}_{len(tables)}", tables.values())
        return tables[text]

    def transfer(self, kind: str, group: int, size: float, op: Op, dtype: str | None = None, operand: int = 0) -> None:
        """Add a collective to the ledger, with the bytes that one device receives."""
        kind_of = op.operands[operand].type if op.operands else op.results[0].type
        row = Transfer(self.shared.collectives - 1, kind, group, size, kind_of.shape, dtype or kind_of.dtype, operand)
        self.shared.transfers.append(row)

    def argument(self, value: Value, wanted: str) -> str:
        """Name an argument."""
        self._check_dtype(value)
        name = self._fresh(wanted)
        self._names[value] = name
        return name

    def scalar(self, value: Any) -> str:
        """The literal of a scalar of its dtype."""
        return scalar_text(value, self.target.dtypes)

    def rename(self, values: Sequence[Value], names: Sequence[str]) -> None:
        """Give values the names of variables."""
        self._names.update(zip(values, names))

    def fresh(self, op: Op) -> list[str]:
        """Names for the results of an op."""
        return [self._fresh(self._wanted(op, value)) for value in op.results]

    def fresh_name(self, wanted: str) -> str:
        """A name that nothing else has."""
        return self._fresh(wanted)

    def empty(self, value: Value) -> str:
        """An array of zeros with the type of a value."""
        return self.constant(np.broadcast_to(np.zeros((), numpy_dtype(value.type.dtype)), value.type.shape))

    def constant(self, array: np.ndarray) -> str:
        """The literal of a constant, or its name among the larger ones."""
        if array.ndim == 0:
            return self.scalar(array[()])
        if array.size > 1 and _is_uniform(array):
            return f"{self.target.full}({array.shape}, {self.scalar(array.reshape(-1)[0])})"
        if array.size <= _INLINE_ELEMENTS and array.size:
            return array_text(array, self.target.dtypes)
        if not array.size:
            return f'np.zeros({array.shape}, "{array.dtype.name}")'
        return f'CONSTANTS["{self.shared.stored(array)}"]'

    def region(self, region: Body) -> str:
        """Write the ops of a region; returns the text of its results."""
        outer = self._op_of_lines
        for op in region.ops:
            self._op_of_lines = op
            self._op(op)
        self._op_of_lines = outer
        return ", ".join(self._names[value] for value in region.results)

    def function(self, name: str, region: Body, carry: str = "") -> str:
        """Define a function with the arguments and results of a region.

        ``carry``: "" takes and returns them one by one, "in" takes a tuple of them, "both" also returns one.
        """
        name = self._fresh(name)
        self.definition(name, region, carry)
        return name

    def definition(self, name: str, region: Body, carry: str = "") -> None:
        """Write the definition of a function; ``carry`` as above."""
        whole = self._fresh("carry") if carry else ""
        arguments = [self.argument(x, x.name or f"a{i}") for i, x in enumerate(region.arguments)]
        self.line(f"def {name}({whole or ', '.join(arguments)}):")
        with self.indented():
            if whole:
                self.line(f"{listed(arguments)[1:-1]} = {whole}")
            results = self.region(region)
            self.line(f"return ({results},)" if carry == "both" else f"return {results}")

    def called(self, symbol: str, decorator: str = "") -> str:
        """The name of a function of the program, which is written once."""
        name = self.shared.function_names[symbol]
        if name not in self.shared.functions:
            (body,) = (function.body for function in self.shared.module.functions if function.name == symbol)
            scope = Scope(self.shared)
            scope._indent = ""
            scope.definition(name, body)
            self.shared.functions[name] = [*([decorator] if decorator else []), *scope.lines, "", ""]
        return name

    def line(self, text: str) -> None:
        """Write a statement."""
        self.lines += [Line.of(each, self._op_of_lines) for each in wrapped(text, self._indent)]

    def refusal(self, op: Op, rule: str, got: str, way_out: str = "") -> UnsupportedError:
        """The error for an op that the target has no form for."""
        return UnsupportedError(composed(self.target.caller, rule, got, way_out, op.location.file, op.location.line))

    def _op(self, op: Op) -> None:
        if op.definition.collective:
            self.shared.collectives += op.name != "shardwise.axis_index"
        emission = self.target.emissions.get(op.name)
        if emission is None:
            reason = self.target.refused.get(op.name, "this one has none yet")
            rule = f"every op must have a form in {self.target.library}: {reason}"
            raise self.refusal(op, rule, op.name, self.target.way_out)
        if op.name == "stablehlo.constant" and not op.results[0].type.shape:
            self._names[op.results[0]] = emission(self, op)
            return
        for value in op.results:
            self._check_dtype(value, op)
        text = emission(self, op)
        if not text:
            return  # it has written statements
        names = self.fresh(op)
        self.rename(op.results, names)
        if names:
            self.line(f"{', '.join(names)} = {text}{self.comment(op)}")

    def _check_dtype(self, value: Value, op: Op | None = None) -> None:
        dtype = value.type.dtype
        if dtype not in self.target.missing_dtypes:
            return
        place = ("", 0) if op is None else (op.location.file, op.location.line)
        rule = f"every value must have a dtype that {self.target.library} has"
        raise UnsupportedError(composed(self.target.caller, rule, dtype, "convert it before the program", *place))

    def _wanted(self, op: Op, value: Value) -> str:
        self._count += 1
        return value.name or (op.location.variable if len(op.results) == 1 else "") or f"t{self._count}"

    def comment(self, op: Op) -> str:
        """The line of the user's program, unless the line above has the same."""
        place = op.location
        text = f"{Path(place.file).name}:{place.line}" if place.file and not place.file.startswith("<") else ""
        if not text or text == self._place:
            return ""
        self._place = text
        return f"  # {text}"

    def _fresh(self, wanted: str) -> str:
        wanted = identifier(wanted)
        name = _unused(wanted.lower() if wanted.startswith(_TABLES) else wanted, self._taken)
        self._taken.add(name)
        return name

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Write the lines of a block."""
        self._indent += "    "
        yield
        self._indent = self._indent[:-4]
        self._place = ""


def _is_uniform(array: np.ndarray) -> bool:
    """Whether all elements have the same bits."""
    if all(stride == 0 or size == 1 for stride, size in zip(array.strides, array.shape)):
        return True
    rows = np.ascontiguousarray(array).reshape(-1, 1).view(np.uint8)
    return bool((rows == rows[:1]).all())


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
