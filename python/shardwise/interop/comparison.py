# SPDX-License-Identifier: Apache-2.0
"""A program beside a function of JAX: what each sends and computes, and for how long."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .._core.ir import Module, Op
from ..dtypes import numpy_dtype
from ..errors import UnsupportedError, is_integer, message, shown
from ..process.traceback_filtering import entry_point
from ..programs.stages import Program
from ..reports.ledger import Ledger
from ..reports.tables import Report, format_bytes, short_location
from .comparison_rows import CollectiveRows, ComparisonRow, Totals
from .hlo import HloCollective, collectives_of, instructions_of, op_class
from .optional import jax, needs_jax
from .to_jax.program import JaxProgram

__all__ = ["Comparison", "compare", "compiled_texts", "sent"]

_COMPUTES = ("dot", "reduce", "elementwise", "movement", "other")


class Comparison(Report[ComparisonRow]):
    """A program beside a function of JAX; made by :func:`compare`.

    Attributes:
        ours: the ledger of the program.
        handed: the ledger of the JAX program that :meth:`Program.to_jax` made of it; None for other functions.
        theirs: the collectives of the function after SPMD partitioning, in program order.
    """

    def __init__(
        self, rows: Sequence[ComparisonRow], ours: Ledger, handed: Ledger | None, theirs: Sequence[HloCollective]
    ) -> None:
        super().__init__(rows)
        self.ours = ours
        self.handed = handed
        self.theirs = tuple(theirs)

    def same_collectives(self) -> bool:
        """Whether XLA runs the collectives of the hand-over's ledger, or of the program for a function of `jax.jit`.

        Collectives are compared by kind and bytes, as often as they run, in any order.
        """
        return sent(self.ours if self.handed is None else self.handed) == sent(self.theirs)

    def summary(self) -> str:
        """One line for the whole report."""
        sides: list[tuple[str, Sequence[Any]]] = [("here", self.ours.rows), ("in JAX", self.theirs)]
        if self.handed is not None and sent(self.handed) != sent(self.ours):
            sides.insert(1, ("handed over", self.handed.rows))
        texts = [f"{format_bytes(sum(x.bytes * x.count for x in rows))} {side}" for side, rows in sides]
        return f"received per device: {', '.join(texts)}"

    def to_dict(self) -> dict[str, Any]:
        """The report as values that JSON supports."""
        return {
            "rows": [row.to_dict() for row in self.rows],
            "ours": self.ours.to_dict(),
            "handed": None if self.handed is None else self.handed.to_dict(),
            "theirs": [{**asdict(row), "shape": list(row.shape)} for row in self.theirs],
        }

    def _with(self, rows: Sequence[Any]) -> Comparison:
        return Comparison(rows, self.ours, self.handed, self.theirs)

    @property
    def _has_handed(self) -> bool:
        return any(row.handed_text for row in self.rows)

    def _header(self) -> Sequence[str]:
        here, there = [[f"{side}.{what}" for what in ("count", "bytes", "ms")] for side in ("ours", "theirs")]
        return ("name", "where", *here, *(["handed_text"] if self._has_handed else []), *there)

    def _right(self) -> frozenset[int]:
        return frozenset(i for i, name in enumerate(self._header()) if "." in name)

    def _cells(self, row: ComparisonRow) -> Sequence[str]:
        here, there = [[str(side.count), format_bytes(side.bytes), f"{side.ms:.3g}"] for side in (row.ours, row.theirs)]
        middle = [row.handed_text] if self._has_handed else []
        return (row.name, short_location(row.where), *here, *middle, *there)


@entry_point
def compare(program: Program, function: Any, *args: Any, runs: int = 3, **kwargs: Any) -> Comparison:
    """Run a program on the virtual mesh and a function in JAX, and compare their collectives, bytes and times.

    Args:
        program: a compiled program.
        function: the result of :meth:`Program.to_jax`, or a `jax.jit` function, which XLA partitions.
        args, kwargs: arguments for both. For a function of `jax.jit`, place them first, or give it ``in_shardings``.
            JAX arrays that the function donates are copied for each run.
        runs: the number of runs over which JAX's times are averaged.

    Returns:
        A report with a row per collective and per class of other ops. ``ours`` is the program's own ledger; the column
        ``handed_text`` shows the collectives of the JAX program where they differ. JAX's bytes are those of the
        compiled HLO, its times those of its profiler. Collectives of both sides are matched by kind and bytes; those
        that only JAX has follow.

    Raises:
        UnsupportedError: JAX is missing. TypeError: not a compiled program, or not a jitted function.
        ValueError: the JAX program was made from another program.

    >>> compare(program, program.to_jax(), x)  # doctest: +SKIP
    name        where       ours.count  ours.bytes  ours.ms  theirs.count  theirs.bytes  theirs.ms
    all_reduce  train.py:9           1        20 B    0.003             1          20 B      0.741
    dot                              1        72 B    0.004             1          72 B      0.031
    received per device: 20 B here, 20 B in JAX
    """
    is_handed = _checked(program, function, runs)
    on_host, named = function._on_host(args, kwargs) if is_handed else (args, kwargs)
    trace = program._timed(*on_host, **named)
    partitioned, compiled = compiled_texts(function.lower() if is_handed else function.lower(*args, **kwargs))
    seconds = _profiled(function, args, kwargs, runs)
    found = collectives_of(partitioned)
    rows = CollectiveRows(program._all_collectives().rows, function._transfers() if is_handed else None, found)
    (ours, classes), theirs = _classes_of(program), _classes_of_hlo(compiled, seconds)
    for step in trace:
        if not rows.add_ours(step):
            ours[classes.get(step["op"], "other")].seconds += step["duration_ns"] / 1e9
    for instruction in collectives_of(compiled):
        duration = seconds.get(instruction.name, 0.0)
        if not rows.add_theirs(instruction, duration):
            theirs["other"].seconds += duration
    names = [name for name in _COMPUTES if name in ours or name in theirs]
    computing = [ComparisonRow(name, "", ours[name], None, theirs[name]) for name in names]
    handed = function.collectives() if is_handed else None
    return Comparison([*rows.rows(), *computing], program.collectives(), handed, found)


def sent(rows: Iterable[Any]) -> Counter[tuple[str, float]]:
    """How often a collective of a kind and of as many bytes runs."""
    times: Counter[tuple[str, float]] = Counter()
    for row in rows:
        times[row.kind, row.bytes] += row.count
    return times


def _class_of(op: Op) -> str:
    name = op.name.partition(".")[2].replace("_general", "").replace("_in_dim", "").replace("_", "-")
    return op_class({name})


def _checked(program: Any, function: Any, runs: Any) -> bool:
    """Whether the function is a JAX program. Raises the errors of :func:`compare`."""
    if not isinstance(program, Program):
        raise TypeError(message("compare", "takes a compiled program", shown(program), "call .compile() first"))
    needs_jax("compare")
    if not hasattr(function, "lower"):
        raise TypeError(message("compare", "takes a jitted function of JAX", shown(function), "pass jax.jit(function)"))
    if not is_integer(runs, 1):
        raise ValueError(message("compare", "runs must be a positive integer", shown(runs)))
    if not isinstance(function, JaxProgram):
        return False
    if not function._is_of(program):
        rule = "the JAX program must be made of the program"
        raise ValueError(message("compare", rule, f"{function!r} of another one", "pass program.to_jax()"))
    return True


def _classes_of(program: Program) -> tuple[dict[str, Totals], dict[str, str]]:
    """The work of the program by class, without times, and the class of each op."""
    totals: dict[str, Totals] = defaultdict(Totals)
    classes: dict[str, str] = {}
    module: Module = program._compiled.stages["local"]
    for op in _computing(module.main.body):
        classes[op.name] = _class_of(op)
        totals[classes[op.name]].add(float(sum(_bytes(value.type) for value in op.results)))
    return totals, classes


def _classes_of_hlo(text: str, seconds: dict[str, float]) -> dict[str, Totals]:
    totals: dict[str, Totals] = defaultdict(Totals)
    for instruction in instructions_of(text):
        if instruction.op_class in _COMPUTES:
            totals[instruction.op_class].add(instruction.bytes)
            totals[instruction.op_class].seconds += seconds.get(instruction.name, 0.0)
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
        if not files and (count := re.search(r"num_partitions=(\d+)", final)) and int(count[1]) > 1:
            way_out = 'call jax.config.update("jax_enable_compilation_cache", False) and jax.clear_caches() first'
            got = "a program from JAX's compilation cache"
            raise UnsupportedError(message("compare", "needs the HLO after SPMD partitioning", got, way_out))
        return (files[-1].read_text() if files else final), final


def _profiled(function: Any, args: Any, kwargs: Any, runs: int) -> dict[str, float]:
    """Seconds of each instruction, of all devices together, in one run."""
    leaves, tree = jax.tree.flatten((args, kwargs))
    first = _copied(leaves, range(len(leaves)))
    positional, named = jax.tree.unflatten(tree, first)
    jax.block_until_ready(function(*positional, **named))
    donated = [i for i, leaf in enumerate(first) if isinstance(leaf, jax.Array) and leaf.is_deleted()]
    calls = [jax.tree.unflatten(tree, _copied(leaves, donated)) for _ in range(runs)]
    jax.block_until_ready(calls)  # the profiler would show the copies
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for positional, named in calls:
                jax.block_until_ready(function(*positional, **named))
        with warnings.catch_warnings():
            # jaxlib 0.12 makes types on first use, and Python warns of them; where warnings are errors, jaxlib aborts.
            warnings.simplefilter("ignore", DeprecationWarning)
            return _seconds_of_ops(Path(folder), runs)


def _seconds_of_ops(folder: Path, runs: int) -> dict[str, float]:
    """What the profiler wrote into a folder: seconds of each instruction in one of the runs."""
    seconds: dict[str, float] = defaultdict(float)
    for file in folder.rglob("*.xplane.pb"):
        for plane in jax.profiler.ProfileData.from_file(str(file)).planes:
            for event in (event for line in plane.lines for event in line.events):
                name = dict(event.stats).get("hlo_op")
                if name is not None:
                    seconds[str(name)] += event.duration_ns / 1e9 / runs
    return seconds


def _copied(leaves: Sequence[Any], places: Iterable[int]) -> list[Any]:
    """The leaves, with copies of the JAX arrays at some places."""
    own = list(leaves)
    for i in places:
        if isinstance(own[i], jax.Array):
            own[i] = own[i].copy()
    return own
