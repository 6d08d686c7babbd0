# SPDX-License-Identifier: Apache-2.0
"""A compiled program as a Python script that needs only its target and NumPy."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from ...dtypes import numpy_dtype
from ...errors import UnsupportedError, message
from ...programs.stages import Program
from ...recording.tracing import Limit
from .collectives import refs_used
from .library import helpers_of
from .literals import axes_text, embedded, wrapped
from .mesh_axes import MeshAxes
from .prints import prints_of
from .scope import Scope, Shared, Transfer, listed
from .target import Target

__all__ = ["Border", "Script", "script_of"]

_MOST_BYTES = 4096  # of constants inside of a script, where they take about 50 lines


@dataclass(frozen=True)
class Border:
    """An argument or a result of the program.

    Attributes:
        shape: the user's.
        padded: the shape over all devices, a multiple of the number of shards in each dim.
        spec: the refined axes of each dim.
        other: the axes of `spec` if they are those of another mesh over the same devices, or of the program's mesh with
            other cuts. Inside of the program, the tiles of all devices then follow each other along dim 0.
        positions: for such a value, the position of each device along each dim.
    """

    shape: tuple[int, ...]
    padded: tuple[int, ...]
    dtype: np.dtype[Any]
    spec: tuple[tuple[str, ...], ...]
    other: MeshAxes | None = None
    positions: tuple[tuple[int, ...], ...] = ()

    @property
    def tile(self) -> tuple[int, ...]:
        """The shape on one device. Only for a value on another mesh."""
        return tuple(n // (max(places) + 1) for n, places in zip(self.padded, self.positions))

    @property
    def places(self) -> list[list[tuple[int, int]]]:
        """For each device and dim, its position and the number of tiles. Only for a value on another mesh."""
        counts = [max(places) + 1 for places in self.positions]
        return [list(zip(own, counts)) for own in zip(*self.positions)]

    @property
    def inside(self) -> tuple[int, ...]:
        """The shape over all devices that the jitted function takes or gives."""
        if self.other is None:
            return self.padded
        rows, *rest = self.tile
        return rows * self.other.mesh.size, *rest

    @property
    def text(self) -> str:
        """The spec inside of the program as ``P(…)``."""
        if self.other is not None:
            return "P(ALL)"
        dims = [axes_text(axes) if axes else "None" for axes in self.spec]
        while dims and dims[-1] == "None":
            dims.pop()
        return f"P({', '.join(dims)})"


@dataclass(frozen=True)
class Script:
    """A script, and what it has of the program.

    Attributes:
        local: the lines of ``local``, the program of one device, and of the functions that it calls.
        helpers: the functions that it uses.
        tables: the globals that it uses, by their text.
        constants: the larger constants, by name.
        inputs, outputs: hidden ones included.
        names: of the inputs, for people.
        prints: the statements of ``debug.print``, which read ``results``.
        limits: the ranges of arguments that are Python ints, by their place.
        needs_x64: whether it has values of 64 bits, which JAX narrows unless x64 is enabled.
        is_extended: whether it has values of dtypes that NumPy lacks.
    """

    target: Target
    name: str
    local: list[str]
    helpers: list[str]
    tables: dict[str, str]
    constants: dict[str, np.ndarray]
    axes: MeshAxes
    inputs: list[Border]
    outputs: list[Border]
    names: list[str]
    prints: list[str]
    hidden: list[np.ndarray]  # the arrays that the program closes over, its last arguments
    visible: tuple[int, int]  # the number of arguments and results of the user
    transfers: list[Transfer]
    limits: list[tuple[int, Limit]]
    needs_x64: bool
    is_extended: bool

    @property
    def stored(self) -> dict[str, np.ndarray]:
        """All arrays of the script, by name."""
        return {**self.constants, **{f"hidden{i}": array for i, array in enumerate(self.hidden)}}

    @property
    def passed(self) -> str:
        """The statements that check the arguments of ``main`` and add the hidden ones."""
        lines = [f"arguments = checked(args, {self.visible_inputs})", *self._limit_checks()]
        if self.hidden:
            lines.append(f'arguments += [CONSTANTS[f"hidden{{i}}"] for i in range({len(self.hidden)})]')
        return "\n    ".join(lines)

    def _limit_checks(self) -> list[str]:
        """The statements that check the ranges of Python ints, which narrower dtypes would wrap silently."""
        lines: dict[str, str] = {}  # by the condition: ops may need the same range
        for i, limit in self.limits:
            error = next(base.__name__ for base in limit.error.__mro__ if base.__module__ == "builtins")
            text = f"main: argument {self.names[i]} must be from {limit.low} to {limit.high}"
            condition = f"if not {limit.low} <= int(arguments[{i}]) <= {limit.high}:"
            lines.setdefault(condition, f"    raise {error}({text!r})")
        return [line for row in lines.items() for line in row]

    @property
    def visible_inputs(self) -> str:
        """The rows of the arguments of ``main``."""
        return f"INPUTS[:{self.visible[0]}]" if self.hidden else "INPUTS"

    @staticmethod
    def has_other_meshes(borders: list[Border]) -> bool:
        """Whether some are on another mesh."""
        return any(border.other is not None for border in borders)

    def _places(self) -> list[str]:
        """The definitions of the positions of devices, for arguments and results on another mesh."""
        lines = []
        for name, borders in (("IN_PLACES", self.inputs), ("OUT_PLACES", self.outputs)):
            found = {i: border.places for i, border in enumerate(borders) if border.other is not None}
            lines += [f"{name} = {found}  # by device: position and number of tiles of each dim"] if found else []
        return lines

    @property
    def head(self) -> str:
        """The imports and the globals that the definitions use."""
        modules = ["import math"] if any("math." in text for text in self.helpers) else []
        if any("functools." in text for text in [*self.helpers, *self.local]):
            modules.insert(0, "import functools")
        return "\n".join([*modules, *([""] if modules else []), self.target.head(self)])

    @property
    def definitions(self) -> list[str]:
        """The helpers and the tables that ``local`` uses."""
        tables = [f"{name} = {text}" for text, name in self.tables.items()]
        return [*self.helpers, *tables, *(["", ""] if tables else [])]

    def whole(self, title: str, file: str | None) -> str:
        """The script; ``file``: the name of the file beside it that holds the constants."""
        rows = [
            f"    {listed(map(repr, (name, b.shape, b.padded, b.dtype.name)))},"
            for name, b in zip(self.names, self.inputs)
        ]
        results = [f"    {b.shape}," for b in self.outputs]
        return _formatted(
            [
                f'"""{title}"""',
                "",
                *(["from pathlib import Path", ""] if file is not None and self.stored else []),
                *(["import base64", ""] if file is None and self.stored else []),
                self.head,
                *self._constants(file),
                "INPUTS = [  # name, shape, shape on the devices, dtype\n" + "\n".join(rows) + "\n]",
                "RESULTS = [\n" + "\n".join(results) + "\n]",
                *self._places(),
                "",
                "",
                *self.definitions,
                *self.local,
                "",
                "",
                self.target.main(self),
            ]
        )

    def _constants(self, file: str | None) -> list[str]:
        """The definition of all arrays; ValueError if they are too large for a script without a file beside it."""
        constants = self.stored
        if not constants:
            return []
        if file is not None:
            view = "".join(
                f'\nCONSTANTS["{name}"] = CONSTANTS["{name}"].view({self.target.dtypes}.{array.dtype.name})'
                for name, array in constants.items()
                if array.dtype.isbuiltin != 1
            )
            return [f'CONSTANTS = dict(np.load(Path(__file__).with_name("{file}"))){view}']
        size = sum(array.nbytes for array in constants.values())
        if size > _MOST_BYTES:
            largest = max(constants.values(), key=lambda array: array.nbytes)
            rule = f"without path=, the constants of a script must have at most {_MOST_BYTES} bytes"
            got = f"{size}, the largest in {largest.dtype.name}{list(largest.shape)}"
            way_out = "pass path=, which writes them to an .npz file beside the script"
            raise ValueError(message("to_source", rule, got, way_out))
        lines = ["CONSTANTS = {"]
        for name, array in constants.items():
            first, *rest = embedded(array, self.target.dtypes, "    ")
            lines += [f'    "{name}": {first}', *rest[:-1], f"{rest[-1]},"]
        return [*lines, "}"]


def _formatted(parts: list[str]) -> str:
    """The parts, one after the other, with lines of bounded length."""
    lines = "\n".join(parts).split("\n")
    rows = [
        wrapped(line.lstrip(), " " * (len(line) - len(line.lstrip()))) if len(line) > 120 else [line] for line in lines
    ]
    return "\n".join(chain.from_iterable(rows))


def script_of(program: Program, target: Target, is_read: bool = True) -> Script:
    """Write a compiled program for a target. ``is_read``: for people to read, not only to run."""
    module = program._compiled.stages["local"]
    body = module.main.body
    mesh = program.mesh._core
    borders = [*body.arguments, *body.results]
    placements = [value.placement for value in borders if value.placement is not None]
    same = (mesh.axis_names, mesh.axis_sizes)
    own = [each for each in placements if (each.mesh.axis_names, each.mesh.axis_sizes) == same]
    used = [ref for placement in own for refs, _ in placement.dims for ref in refs]
    axes = MeshAxes.of(mesh, used, refs_used(module, mesh))
    shared = Shared(module, axes, target, is_read)
    traced = program._traced
    border = _Borders(axes, target)
    inputs = [
        border(value, shape, dtype, f"argument {name}")
        for value, (shape, dtype, name) in zip(body.arguments, _argument_types(program))
    ]
    outputs = [
        border(value, tuple(kind.shape), numpy_dtype(kind.dtype), f"result {i}")
        for i, (value, kind) in enumerate(zip(body.results, traced._core.result_types))
    ]
    scope = Scope(shared)
    names = [name for _, _, name in _argument_types(program)]
    arguments = [scope.argument(value, name) for value, name in zip(body.arguments, names)]
    returned = scope.region(body)
    called = [line for lines in shared.functions.values() for line in lines]
    signature = wrapped(f"def local({', '.join(arguments)}):", "")
    results = wrapped(f"return ({returned},)", "    ") if outputs else ["    return ()"]
    local = [*called, *signature, *scope.lines, *results]
    dtypes = {value.type.dtype for value in _values(module)} | {b.dtype.name for b in (*inputs, *outputs)}
    return Script(
        target=target,
        name=_name(program),
        local=local,
        helpers=helpers_of(target, (*target.always, *shared.helpers, *_of_borders(inputs, outputs))),
        tables=shared.tables,
        constants=shared.constants,
        axes=axes,
        inputs=inputs,
        outputs=outputs,
        names=names,
        prints=prints_of(program, "to_source") if is_read else [],
        hidden=[np.asarray(array) for array in traced._call.hoisted],
        visible=(len(traced.in_avals), traced.out_tree.num_leaves),
        transfers=shared.transfers,
        limits=list(traced._call.limits),
        needs_x64=not dtypes.isdisjoint(_WIDE),
        is_extended=any(numpy_dtype(dtype).isbuiltin != 1 for dtype in dtypes),
    )


def _of_borders(inputs: list[Border], outputs: list[Border]) -> Iterator[str]:
    """The helpers that ``main`` calls."""
    for borders, helper in ((inputs, "tile_of"), (outputs, "of_tiles")):
        if Script.has_other_meshes(borders):
            yield helper


def _name(program: Program) -> str:
    found = re.match(r'module @(\w+|"[^"]*")', program.as_text("global"))
    return re.sub(r"\W+", " ", found[1].strip('"').removeprefix("jit_")).strip() if found else "main"


_WIDE = frozenset(("float64", "int64", "uint64", "complex128"))


def _values(module: Any) -> list[Any]:
    return [value for op in module.ops for value in op.results]


def _argument_types(program: Program) -> list[tuple[tuple[int, ...], np.dtype[Any], str]]:
    traced = program._traced
    rows = [(aval.shape, aval.dtype, name) for aval, name in zip(traced.in_avals, traced.in_names)]
    return rows + [(array.shape, array.dtype, f"hidden_{i}") for i, array in enumerate(traced._call.hoisted)]


@dataclass(frozen=True)
class _Borders:
    """Makes the borders of a program."""

    axes: MeshAxes
    target: Target

    def __call__(self, value: Any, shape: tuple[int, ...], dtype: np.dtype[Any], what: str) -> Border:
        placement = value.placement
        if placement is None:
            return Border(shape, shape, dtype, ((),) * len(shape))
        if placement.unreduced:
            rule = f"{what} must be reduced, as {self.target.arrays}"
            way_out = "leave unreduced= out of its annotation"
            raise UnsupportedError(message(self.target.caller, rule, repr(placement), way_out))
        dims = [refs for refs, _ in placement.dims]
        is_main = self.axes.is_main(placement.mesh) or not any(dims)
        # Cuts that do not nest with the others (6 as 3·2 and as 2·3) need axes of their own, like another mesh.
        is_here = is_main and all(self.axes.names(refs) is not None for refs in dims)
        axes = self.axes if is_here else MeshAxes.of(placement.mesh, chain.from_iterable(dims))
        spec = tuple(axes.spec(dims, what, self.target.caller))
        padded = tuple(n * math.prod(axes.sizes[axis] for axis in own) for n, own in zip(value.type.shape, spec))
        if is_here:
            return Border(shape, padded, dtype, spec)
        positions = tuple(tuple(self.axes.positions(placement.mesh, refs)[1].tolist()) for refs in dims)
        return Border(shape, padded, dtype, spec, axes, positions)
