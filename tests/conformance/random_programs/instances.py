# SPDX-License-Identifier: Apache-2.0
"""Programs of random instances of any op: what they take is moved before, and what they give is moved and annotated.

The instances are those that ``tests.conformance.stablehlo.ops`` compares with XLA. An argument of an instance may be
the result of a movement, of an array that was moved back. The results of an instance are compared with the
unpartitioned run, within what the instance allows. A NaN that arithmetic makes may have other bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import _core
from tests.conformance.stablehlo.ops.comparing import differing, same
from tests.conformance.stablehlo.ops.drawing import TABLE, drawn
from tests.op.catalogue.instance import Instance, ints, tensor
from tests.op.dtype_values import COMPLEX
from tests.op.references import Array
from tests.support.draws import Draws
from tests.support.mesh_strategies import drawn_sharding

OPS = sorted(TABLE)
EXACT = ("exact", "ulps")  # these give the same bits on every mesh
SEEDS = 100_000  # instances of each op


@dataclass
class Result:
    """A result of the program: result ``k`` of an instance, or that one moved."""

    instance: int
    k: int
    moved: Callable[[Array], Array] | None = None


@dataclass
class InstanceProgram:
    """One program of several instances, as text."""

    mesh: Any
    instances: list[Instance] = field(default_factory=list)
    arguments: list[Array] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)  # of arguments
    shardings: list[Any] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    returned: list[tuple[str, str, str]] = field(default_factory=list)  # name, type, attributes
    functions: str = ""

    def text(self) -> str:
        names, types = ", ".join(n for n, _, _ in self.returned), ", ".join(t for _, t, _ in self.returned)
        results = ", ".join(t + attributes for _, t, attributes in self.returned)
        body = "".join(self.lines)
        return (
            f"module @random {{\n  sdy.mesh @{self.mesh.name} = {self.mesh.text()}\n"
            f"func.func public @main({', '.join(self.heads)}) -> ({results}) {{\n{body}"
            f"  return {names} : {types}\n}}\n{self.functions}}}\n"
        )

    def record(self) -> Any:
        return _core.ir.parse(self.text())

    @cached_property
    def whole(self) -> list[Array]:
        """The results of the unpartitioned run."""
        returned = sw.parse(self.text()).run(*self.arguments)
        return [np.asarray(x) for x in (returned if isinstance(returned, tuple) else (returned,))]

    def wrong(self, got: Sequence[Array]) -> Iterator[str]:
        """What is not as in the unpartitioned run."""
        for n, result in enumerate(self.results):
            instance, want, found = self.instances[result.instance], self.whole[n], got[n]
            if result.moved is not None:
                if not np.all(same(found, result.moved(got[n - 1]))):
                    yield f"result {n}, moved {instance.name}: is\n{found}\nof\n{got[n - 1]}"
            elif found.dtype != want.dtype or found.shape != want.shape:
                yield f"result {n} of {instance.name}: {found.dtype}{found.shape}, not {want.dtype}{want.shape}"
            elif np.any(differing(instance, result.k, found, want, False)):
                yield f"result {n} of {instance.name} ({instance.dtype}): is\n{found}\nand not\n{want}"


class InstanceDrawer:
    """Draws a program of one to three instances."""

    def __init__(self, draws: Draws, mesh: Any, others: Any = ()) -> None:
        self.draws = draws
        self.mesh = mesh
        self.program = InstanceProgram(mesh)
        self.groups: dict[tuple[int, ...], int] = {}  # by shape

    def drawn(self) -> InstanceProgram:
        for number in range(self.draws.integer(1, 3)):
            with np.errstate(all="ignore"):
                instance = drawn(self.draws.pick(OPS), self.draws.integer(0, SEEDS))
            self.add(number, replace(instance, for_xla=""))
        return self.program

    def sharding(self, ndim: int, unreduced: bool = False) -> Any:
        return drawn_sharding(self.draws, self.mesh, ndim, unreduced=unreduced)

    def add(self, number: int, instance: Instance) -> None:
        program, renamed = self.program, instance.renamed(f"p{number}")
        program.instances.append(instance)
        for k, x in enumerate(instance.arguments):
            self.argument(f"%p{number}a{k}", x)
        program.lines.append(renamed.body)
        program.functions += renamed.functions
        for k, (name, (shape, dtype)) in enumerate(zip(renamed.returned, instance.results)):
            name = self.annotated(name, shape, dtype)
            self.returned(name, shape, dtype, Result(number, k))
            if instance.kind in EXACT and shape and self.draws.integer(0, 2) == 0:
                self.move(name, shape, dtype, Result(number, k))

    def returned(self, name: str, shape: tuple[int, ...], dtype: str, result: Result) -> None:
        held = f" {{sdy.sharding = #sdy.sharding{self.sharding(len(shape))}}}" if self.draws.boolean() else ""
        self.program.returned.append((name, tensor(shape, dtype), held))
        self.program.results.append(result)

    def argument(self, name: str, x: Array) -> None:
        """``x``, or a movement of what it was moved from."""
        program, dtype = self.program, x.dtype.name
        if not x.ndim or self.draws.integer(0, 2):
            self.take(name, x)
            return
        taken = f"{name}m"
        if self.draws.boolean():
            order = self.draws.permutation(range(x.ndim))
            self.take(taken, np.ascontiguousarray(x.transpose(np.argsort(order))))
            attributes, op = f"permutation = {ints(order)}", "transpose"
        else:
            dims = [d for d in range(x.ndim) if self.draws.boolean()] or [0]
            self.take(taken, np.ascontiguousarray(np.flip(x, dims)))
            attributes, op = f"dimensions = {ints(dims)}", "reverse"
        before = tensor(program.arguments[-1].shape, dtype)
        line = f'  {name} = "stablehlo.{op}"({taken}) <{{{attributes}}}> : ({before}) -> {tensor(x.shape, dtype)}\n'
        program.lines.append(line)

    def take(self, name: str, x: Array) -> None:
        held = self.sharding(x.ndim) if self.draws.integer(0, 4) else None
        self.program.arguments.append(x)
        self.program.shardings.append(held)
        attributes = "" if held is None else f" {{sdy.sharding = #sdy.sharding{held}}}"
        self.program.heads.append(f"{name}: {tensor(x.shape, x.dtype.name)}{attributes}")

    def annotated(self, name: str, shape: tuple[int, ...], dtype: str) -> str:
        if self.draws.integer(0, 2):
            return name
        lines, made, of_type = self.program.lines, f"%c{len(self.program.lines)}", f": {tensor(shape, dtype)}\n"
        held = self.sharding(len(shape), unreduced=dtype != "bool" and dtype not in COMPLEX)
        form = self.draws.pick(("sharding_constraint", "sharding_constraint", "reshard", "barrier", "group"))
        if form == "group":  # of tensors of one shape
            group = self.groups.setdefault(shape, len(self.groups))
            lines.append(f"  sdy.sharding_group {name} group_id={group} {of_type}")
            return name
        if form == "barrier":
            direction = self.draws.pick(("NONE", "FORWARD", "BACKWARD"))
            lines.append(f"  {made} = sdy.propagation_barrier {name} allowed_direction={direction} {of_type}")
            return made
        lines.append(f"  {made} = sdy.{form} {name} {held} {of_type}")
        return made

    def move(self, name: str, shape: tuple[int, ...], dtype: str, result: Result) -> None:
        """The result once more: some of its rows in the opposite order, and padded by itself."""
        dim = self.draws.integer(0, len(shape) - 1)
        after = tuple(2 * n if d == dim else n for d, n in enumerate(shape))
        a, b = f"%m{len(self.program.lines)}", f"%n{len(self.program.lines)}"
        was, now = tensor(shape, dtype), tensor(after, dtype)
        self.program.lines += [
            f'  {a} = "stablehlo.reverse"({name}) <{{dimensions = {ints([dim])}}}> : ({was}) -> {was}\n',
            f'  {b} = "stablehlo.concatenate"({a}, {name}) <{{dimension = {dim} : i64}}> : ({was}, {was}) -> {now}\n',
        ]
        moved = lambda x: np.concatenate([np.flip(x, dim), x], dim)  # noqa: E731
        self.returned(b, after, dtype, replace(result, moved=moved))
