# SPDX-License-Identifier: Apache-2.0
"""A program beside a function of JAX: what each sends and computes, and for how long."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .._core.ir import Module, Op
from ..dtypes import numpy_dtype
from ..errors import is_integer, message, shown
from ..reports.collective_rows import COLLECTIVE_KINDS
from ..reports.ledger import Ledger
from ..reports.tables import Report, format_bytes
from ..stages import Program
from ..traceback_filtering import entry_point
from .hlo import HloCollective, collectives_of, instructions_of, op_class
from .optional import jax, needs_jax
from .to_jax.program import JaxProgram

__all__ = ["Comparison", "compare", "compiled_texts", "sent"]

_COMPUTES = ("dot", "reduce", "elementwise", "movement", "other")


@dataclass
class Totals:
    """The work of one side in a class of ops.

    Attributes:
        count: the executions of collectives, as far as they are known; other ops, each once, also those in loops.
        bytes: received by one device for collectives; of the results on one device for other ops.
        seconds: of all devices together, in one run; 0 if the profiler gives no times.
    """

    count: int = 0
    bytes: float = 0.0
    seconds: float = 0.0

    def add(self, size: float, times: int = 1) -> None:
        self.count += times
        self.bytes += size * times


@dataclass(frozen=True)
class ComparisonRow:
    """A kind of collectives or a class of other ops, on both sides."""

    name: str
    ours: Totals
    theirs: Totals

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, with values that JSON supports."""
        return asdict(self)


class Comparison(Report[ComparisonRow]):
    """A program beside a function of JAX; made by :func:`compare`.

    Attributes:
        ours: the ledger of the program; of a handed-over one, that of its JAX function.
        theirs: the collectives of the function after SPMD partitioning, in program order.
    """

    def __init__(self, rows: Sequence[ComparisonRow], ours: Ledger, theirs: Sequence[HloCollective]) -> None:
        super().__init__(rows)
        self.ours = ours
        self.theirs = tuple(theirs)

    def same_collectives(self) -> bool:
        """Whether both sides run the same collectives, by kind and bytes, as often, in any order."""
        return sent(self.ours) == sent(self.theirs)

    def summary(self) -> str:
        """One line for the whole report."""
        ours, theirs = [sum(each.bytes * each.count for each in side) for side in (self.ours.rows, self.theirs)]
        return f"received per device: {format_bytes(ours)} here, {format_bytes(theirs)} in JAX"

    def to_dict(self) -> dict[str, Any]:
        """The report as values that JSON supports."""
        return {
            "rows": [row.to_dict() for row in self.rows],
            "ours": self.ours.to_dict(),
            "theirs": [{**asdict(row), "shape": list(row.shape)} for row in self.theirs],
        }

    def _with(self, rows: Sequence[Any]) -> Comparison:
        return Comparison(rows, self.ours, self.theirs)

    def _header(self) -> Sequence[str]:
        sides = [f"{what}, {side}" for side in ("here", "JAX") for what in ("ops", "bytes", "ms")]
        return ("class", *sides)

    def _right(self) -> frozenset[int]:
        return frozenset(range(1, 7))

    def _cells(self, row: ComparisonRow) -> Sequence[str]:
        sides = (row.ours, row.theirs)
        return (
            row.name,
            *[
                text
                for side in sides
                for text in (str(side.count), format_bytes(side.bytes), f"{1e3 * side.seconds:.3g}")
            ],
        )


@entry_point
def compare(program: Program, function: Any, *args: Any, runs: int = 3) -> Comparison:
    """Run a program on the virtual mesh and a function in JAX, and compare their collectives, bytes and times.

    Args:
        program: a compiled program.
        function: what :meth:`Program.to_jax` gives, or a `jax.jit` function, which XLA partitions.
        args: arguments for both. For a function of `jax.jit`, place them first, or give it ``in_shardings``.
        runs: over how many runs the times of JAX are averaged.

    Returns:
        A report with a row per kind of collectives and per class of other ops. Bytes are those of the compiled HLO,
        times those of JAX's profiler.

    Raises:
        UnsupportedError: JAX is missing. TypeError: not a compiled program, or not a jitted function.

    >>> compare(program, program.to_jax(), x)  # doctest: +SKIP
    class       ops, here  bytes, here  ms, here  ops, JAX  bytes, JAX  ms, JAX
    all_reduce          1         20 B     0.003         1        20 B    0.741
    dot                 1         72 B     0.004         1        72 B    0.031
    received per device: 20 B here, 20 B in JAX
    """
    if not isinstance(program, Program):
        raise TypeError(message("compare", "takes a compiled program", shown(program), "call .compile() first"))
    needs_jax("compare")
    if not hasattr(function, "lower"):
        raise TypeError(message("compare", "takes a jitted function of JAX", shown(function), "pass jax.jit(function)"))
    if not is_integer(runs, 1):
        raise ValueError(message("compare", "runs must be a positive integer", shown(runs)))
    handed = isinstance(function, JaxProgram)
    ledger = function.collectives() if handed else program.collectives()
    ours = _ours(program, ledger, program._timed(*args))
    partitioned, compiled = compiled_texts(function.lower() if handed else function.lower(*args))
    seconds = _profiled(function, args, runs)
    found = collectives_of(partitioned)
    theirs: dict[str, Totals] = defaultdict(Totals)
    for row in found:
        theirs[row.kind].add(row.bytes, row.count)
    for instruction in instructions_of(compiled):
        own = theirs[instruction.op_class]
        if instruction.op_class in _COMPUTES:
            own.add(instruction.bytes)
        own.seconds += seconds.get(instruction.name, 0.0)
    names = [name for name in (*COLLECTIVE_KINDS, *_COMPUTES) if name in ours or name in theirs]
    return Comparison([ComparisonRow(name, ours[name], theirs[name]) for name in names], ledger, found)


def sent(rows: Iterable[Any]) -> Counter[tuple[str, float]]:
    """How often a collective of a kind and of as many bytes runs."""
    times: Counter[tuple[str, float]] = Counter()
    for row in rows:
        times[row.kind, row.bytes] += row.count
    return times


def _class_of(op: Op) -> str:
    name = op.name.partition(".")[2].replace("_general", "").replace("_in_dim", "").replace("_", "-")
    return op_class({name})


def _ours(program: Program, ledger: Ledger, trace: Sequence[dict[str, Any]]) -> dict[str, Totals]:
    totals: dict[str, Totals] = defaultdict(Totals)
    for row in ledger:
        totals[row.kind].add(row.bytes, row.count)
    module: Module = program._compiled.stages["local"]
    classes: dict[str, str] = {}
    for op in _computing(module.main.body):
        classes[op.name] = _class_of(op)
        totals[classes[op.name]].add(float(sum(_bytes(value.type) for value in op.results)))
    for step in trace:
        kind = step["op"].partition(".")[2]
        name = kind if step["op"].startswith("shardwise.") else classes.get(step["op"], "other")
        totals[name if name in COLLECTIVE_KINDS or name in _COMPUTES else "other"].seconds += step["duration_ns"] / 1e9
    return totals


def _computing(region: Any) -> list[Op]:
    """The ops that compute or move something, also those in loops and branches; not those of combiners."""
    found: list[Op] = []
    for op in region.ops:
        if op.definition.control_flow:
            for inner in op.regions:
                found += _computing(inner)
        elif not op.definition.collective and op.name != "stablehlo.constant":
            found.append(op)
    return found


def _bytes(kind: Any) -> int:
    size = numpy_dtype(kind.dtype).itemsize
    for n in kind.shape:
        size *= n
    return size


def compiled_texts(lowered: Any) -> tuple[str, str]:
    """The HLO after SPMD partitioning, and the final one."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"xla_dump_to": folder, "xla_dump_hlo_as_text": True, "xla_dump_hlo_pass_re": "spmd-partition.*"}
        compiled = lowered.compile(compiler_options=options)
        files = sorted(Path(folder).glob("*after_spmd-partitioning*.txt"))
        final: str = compiled.as_text()
        return (files[-1].read_text() if files else final), final


def _profiled(function: Any, args: Any, runs: int) -> dict[str, float]:
    """Seconds of each instruction, of all devices together, in one run."""
    jax.block_until_ready(function(*args))
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for _ in range(runs):
                jax.block_until_ready(function(*args))
        seconds: dict[str, float] = defaultdict(float)
        for file in Path(folder).rglob("*.xplane.pb"):
            for plane in jax.profiler.ProfileData.from_file(str(file)).planes:
                for event in (event for line in plane.lines for event in line.events):
                    name = dict(event.stats).get("hlo_op")
                    if name is not None:
                        seconds[str(name)] += event.duration_ns / 1e9 / runs
    return seconds
