# SPDX-License-Identifier: Apache-2.0
"""Program ``index`` of a seed: what it holds, and what is wrong with its partitioned runs.

Each program runs in both executor modes, with poisoned padding and with zeros in it. All four runs must give the
expected results. Poison must not change a bit of them, sums of floats and the payloads of NaN included: a poisoned copy
keeps the strides of the view that it replaces, so kernels take the elements in the same order. Every run of all devices
must receive the bytes of the ledger. `live_bytes` must not be below the rehearsal of the plan. A program that is
compiled again with less memory must stay within it, or be refused, and compute the same bits.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shardwise import _core
from tests.conformance.random_programs.bits import BitsDrawer
from tests.conformance.random_programs.instances import InstanceDrawer, InstanceProgram
from tests.conformance.stablehlo.ops.comparing import same_bits
from tests.op.references import Array
from tests.support.counted_bytes import differences
from tests.support.draws import SeededDraws
from tests.support.mesh_strategies import drawn_mesh
from tests.support.random_programs import Drawer, Program, drawn_program

KINDS = ("numbers", "instances", "bits", "instances", "numbers")  # by index
NUMBERS = ("float32", "int32", "float32", "int32", "bool", "float64", "int64")
SIZES = tuple(range(1, 10))
LIMITED = 4  # every so many programs are compiled with less memory, too
MOST_DEVICES = (8, 12, 12, 24, 24, 48, 81)
OP = re.compile(r"\b((?:stablehlo|chlo|func|sdy)\.(?!mesh|sharding\b|sharding_per_value|func|return|token)\w+)")


@dataclass
class Checked:
    """One program, and what is wrong with it; "" if nothing is."""

    kind: str
    mesh: Any
    text: str
    wrong: str = ""
    ops: set[str] = field(default_factory=set)
    dtypes: set[str] = field(default_factory=set)
    annotations: set[str] = field(default_factory=set)


def program_of(seed: int, index: int, several_meshes: bool = False) -> tuple[str, Program | InstanceProgram]:
    """Its kind, and the program."""
    draws = SeededDraws(seed, index)
    kind = KINDS[index % len(KINDS)]
    mesh = drawn_mesh(draws, max_axes=4, sizes=SIZES, max_devices=draws.pick(MOST_DEVICES))
    others = [_other_mesh(draws, mesh)] if several_meshes and draws.integer(0, 4) == 0 else []
    if kind == "instances":
        return kind, InstanceDrawer(draws, mesh).drawn()
    if kind == "bits":
        return kind, drawn_program(BitsDrawer(draws, mesh, others), 3, 10)
    return kind, drawn_program(Drawer(draws, mesh, NUMBERS, unreduced=True, others=others), 5, 18)


def _other_mesh(draws: SeededDraws, mesh: Any) -> Any:
    """Another mesh over the same devices: other axes, in an order of its own."""
    devices, axes = math.prod(mesh.axis_sizes), []
    for name in "ab":
        size = draws.pick([d for d in range(1, devices + 1) if devices % d == 0])
        axes.append((name, size))
        devices //= size
    axes.append(("c", devices))
    ids = draws.permutation(range(math.prod(mesh.axis_sizes))) if draws.boolean() else []
    return _core.mesh.Mesh("other", axes, ids)


def check(seed: int, index: int, several_meshes: bool = False) -> Checked:
    with np.errstate(all="ignore"):
        kind, program = program_of(seed, index, several_meshes)
        checked = Checked(kind, program.mesh, "")
        try:
            module = program.record()
            checked.text = module.text()
            _describe(checked, module, program)
            strategy = "aggressive" if index % 7 == 0 else "basic"
            mesh = module.meshes.get(program.mesh.name) or next(iter(module.meshes.values()), program.mesh)
            compiled = _core.passes.compile(module, mesh, strategy=strategy)
            wrong = [*_wrong(kind, program, compiled)]
            if index % LIMITED == 0:
                peak, arguments = _core.analysis.live_bytes(compiled.stages["local"])[:2]
                limit = max(peak * 9 // 10, arguments, 1)
                wrong += _wrong_within(limit, program, compiled, module, mesh, strategy)
            checked.wrong = "\n".join(wrong)
        except Exception as error:
            checked.wrong = f"{type(error).__name__}: {error}"
    return checked


def _wrong(kind: str, program: Program | InstanceProgram, compiled: Any) -> Iterator[str]:
    executable = _core.runtime.Executable(compiled)
    yield from _counted_below_rehearsal(compiled, executable)
    runs: dict[tuple[bool, bool], list[Array]] = {}
    for poison in (True, False):
        arguments = [
            _core.runtime.ShardedArray.scatter(x, held, poison=poison, borrow=True)
            for x, held in zip(program.arguments, compiled.argument_shardings)
        ]
        for faithful in (False, True):
            results = executable.run(arguments, faithful=faithful, poison=poison, count=faithful)
            runs[faithful, poison] = [x.gather() for x in results]
            if faithful:
                yield from differences(compiled, executable)
    for faithful in (False, True):
        mode = "faithful" if faithful else "once per shard"
        for k, (a, b) in enumerate(zip(runs[faithful, True], runs[faithful, False])):
            if not np.all(same_bits(a, b)):
                yield f"{mode}: poison changes result {k}:\n{a}\nand without\n{b}"
        for poison in (True, False):
            for text in program.wrong(runs[faithful, poison]):
                yield f"{mode}, {'poisoned' if poison else 'with zeros as padding'}: {text}"


def _wrong_within(
    limit: int, program: Program | InstanceProgram, compiled: Any, module: Any, mesh: Any, strategy: str
) -> Iterator[str]:
    """What is wrong with the program if it has this memory; nothing if that is not enough."""
    try:
        limited = _core.passes.compile(module, mesh, strategy=strategy, memory_limit=str(limit))
    except _core.error.OutOfMemoryError:
        return
    peak = _core.analysis.live_bytes(limited.stages["local"])[0]
    if peak > limit:
        yield f"the peak is {peak} B with a limit of {limit} B"
    results = []
    for unit in (compiled, limited):
        arguments = [
            _core.runtime.ShardedArray.scatter(x, held, poison=True, borrow=True)
            for x, held in zip(program.arguments, compiled.argument_shardings)
        ]
        made = _core.runtime.Executable(unit).run(arguments, faithful=True, poison=True)
        results.append([x.gather() for x in made])
    for k, (a, b) in enumerate(zip(*results)):
        if not np.all(same_bits(a, b)):
            yield f"with a limit of {limit} B result {k} is\n{b}\nand without\n{a}"


def _counted_below_rehearsal(compiled: Any, executable: Any) -> Iterator[str]:
    every = list(range(len(compiled.argument_shardings)))
    for donated in ([], every):
        counted_bytes = _core.analysis.live_bytes(compiled.stages["local"], donated)[0]
        rehearsed = executable.memory(donated=donated)[0]
        if counted_bytes < rehearsed:
            yield f"live_bytes counts {counted_bytes} B with {donated} donated, the rehearsal {rehearsed} B"


# ---- what a program holds --------------------------------------------------------------------------------------------


def _describe(checked: Checked, module: Any, program: Program | InstanceProgram) -> None:
    checked.ops = set(OP.findall(checked.text))
    checked.dtypes = {x.dtype.name for x in program.arguments}
    found = checked.annotations
    if list(checked.mesh.device_ids) != list(range(math.prod(checked.mesh.axis_sizes))):
        found.add("permuted devices")
    if len(module.meshes) > 1:
        found.add("several meshes")
    for op, name in (("while", "loop"), ("case", "branch"), ("if", "branch")):
        if f"stablehlo.{op}" in checked.ops:
            found.add(name)
    if "func.call" in checked.ops:
        found.add("call")
    held = [] if isinstance(program, InstanceProgram) else program.argument_shardings
    held = program.shardings if isinstance(program, InstanceProgram) else held
    for x, sharding in zip(program.arguments, held):
        if sharding is not None:
            _describe_sharding(found, sharding, x.shape)
    if "sdy.sharding_constraint" in checked.text:
        found.add("constraint")
    if re.search(r"unreduced=", checked.text):
        found.add("unreduced")


def _describe_sharding(found: set[str], sharding: Any, shape: tuple[int, ...]) -> None:
    sizes = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_sizes))
    for n, (axes, is_open, priority) in zip(shape, sharding.dims):
        shards = math.prod(size for _, _, size in axes)
        if shards > 1:
            block = -(-n // shards)
            found.add("uneven" if n % shards else "even")
            if block * (shards - 1) >= n:
                found.add("empty shards")
        if len(axes) > 1:
            found.add("several axes on a dim")
        if any(size != sizes[axis] for axis, _, size in axes):
            found.add("sub-axes")
        if priority is not None:
            found.add("priority")
        if is_open:
            found.add("open dims")
    if sharding.replicated_axes:
        found.add("replicated axes")


def counted(checked: Checked) -> Counter[str]:
    """What one program adds to the table: "op …", "dtype …", and so on."""
    counts = Counter({"programs": 1, f"kind {checked.kind}": 1, "wrong": bool(checked.wrong)})
    counts.update(f"op {op}" for op in checked.ops)
    counts.update(f"dtype {dtype}" for dtype in checked.dtypes)
    counts.update(f"annotation {name}" for name in checked.annotations)
    counts[f"axes {len(checked.mesh.axis_names)}"] += 1
    counts.update({f"axis size {size}": 1 for size in checked.mesh.axis_sizes})
    return counts
