# SPDX-License-Identifier: Apache-2.0
"""Local programs of one program on two meshes that differ in axis sizes alone.

    compare(compiled, larger)    # "same", or why the ops differ

The ops may differ for two reasons. A dim that is sharded evenly on one mesh and unevenly on the other one is masked on
the latter. And the compiler folds constants and merges equal ops, which depends on numbers. So ops are compared by
structure: name, operands and regions, without numbers. Ops of one structure count once, and a value computed from
constants alone is a constant.
"""

from __future__ import annotations

import math
from typing import Any

from shardwise import _core

SAME, EVENNESS, DIFFERENT = "same", "evenness of a dim", "different"
FOLDED = {"stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.convert"}  # of a constant
CONSTANT = hash("stablehlo.constant")


def local_ops(compiled: Any) -> list[str]:
    """The names of the ops of the local program, in order."""
    names: list[str] = []
    for function in compiled.stages["local"].functions:
        _add_names(function.body, names)
    return names


def _add_names(region: Any, names: list[str]) -> None:
    for op in region.ops:
        names.append(op.name)
        for inner in op.regions:
            _add_names(inner, names)


def structures(module: Any) -> set[int]:
    """The structures of all ops of a module, as hashes."""
    found: set[int] = set()
    for function in module.functions:
        _hash_region(function.body, {}, found)
    return found


def _hash_region(region: Any, known: dict[Any, int], found: set[int]) -> int:
    for i, argument in enumerate(region.arguments):
        known[argument] = hash(("argument", i))
    for op in region.ops:
        operands = tuple(known[operand] for operand in op.operands)
        if op.name == "stablehlo.constant" or (op.name in FOLDED and operands == (CONSTANT,)):
            known[op.results[0]] = CONSTANT
            continue
        whole = hash((op.name, operands, *(_hash_region(inner, known, found) for inner in op.regions)))
        found.add(whole)
        for i, result in enumerate(op.results):
            known[result] = hash((whole, i))
    return hash(tuple(known[result] for result in region.results))


def evenness(compiled: Any) -> list[tuple[bool, ...]]:
    """By value of the resharded program and sharded dim: whether its shards are equally large."""
    found: list[tuple[bool, ...]] = []
    for function in compiled.stages["resharded"].functions:
        _add_evenness(function.body, found)
    return found


def _add_evenness(region: Any, found: list[tuple[bool, ...]]) -> None:
    values = [*region.arguments, *(result for op in region.ops for result in op.results)]
    for value in values:
        if value.sharding is not None:
            shards = [math.prod(size for _, _, size in axes) for axes, _, _ in value.sharding.dims]
            found.append(tuple(n % count == 0 for n, count in zip(value.type.shape, shards) if count > 1))
    for op in region.ops:
        for inner in op.regions:
            _add_evenness(inner, found)


def compare(compiled: Any, larger: Any) -> str:
    """SAME, EVENNESS or DIFFERENT."""
    if local_ops(compiled) == local_ops(larger):
        return SAME
    if evenness(compiled) != evenness(larger):
        return EVENNESS
    same = structures(compiled.stages["local"]) == structures(larger.stages["local"])
    return SAME if same else DIFFERENT


def compiled_with(module: Any, mesh: Any, choices: Any = None) -> Any:
    """The compiled program, or none where the choices are impossible on the mesh."""
    try:
        return _core.passes.compile(module, mesh, choices=choices)
    except ValueError as error:
        if "choices must be possible for the program on this mesh" in str(error):
            return None
        raise
