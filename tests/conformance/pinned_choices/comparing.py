# SPDX-License-Identifier: Apache-2.0
"""Local programs of one program on two meshes that differ in axis sizes alone.

    compare(compiled, larger)    # "same", or why the ops differ

The ops may differ for three reasons. A dim that is sharded evenly on one mesh and unevenly on the other one is masked,
padded or trimmed on the latter. And the compiler folds constants and merges equal ops, which depends on the numbers in
indices and masks. And an op that reads a range of an operand exchanges rows only if some device lacks one: a slice of
columns 1 and 3 of 5 is local where shards have 2 columns, but where they have 1, device 0 needs column 1 of device 1.
No collectives are the same in both, because those of the one program receive nothing. All other ops are the same, in
the same order, the collectives too. Where no dim changes, all ops are
also compared by structure: name, operands and regions, without numbers. Equal structures count once, and a value that
is computed from constants alone is a constant.

Choices may be refused where a dim that is sharded evenly becomes uneven: its shards are then no part of those that an
op reads by its rule, and a collective with a name cannot move them. They may be refused, too, where propagation itself
gives values other axes, because an axis is as large as a dim now.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from shardwise import _core

SAME, EVENNESS, DIFFERENT = "same", "evenness of a dim", "different"
IN_PLACE = "in place on one mesh"
EXCHANGE = "shardwise.exchange"
FOLDED = {"stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.convert"}  # of a constant
CONSTANT = hash("stablehlo.constant")
MASKING = {  # of padding: indices of rows and of devices, what is compared with them, what is selected or cut
    "shardwise.axis_index", "stablehlo.add", "stablehlo.and", "stablehlo.broadcast_in_dim", "stablehlo.compare",
    "stablehlo.constant", "stablehlo.convert", "stablehlo.iota", "stablehlo.minimum", "stablehlo.multiply",
    "stablehlo.or", "stablehlo.pad", "stablehlo.reshape", "stablehlo.select", "stablehlo.slice", "stablehlo.subtract",
}  # fmt: skip


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


def becomes_uneven(compiled: Any, factor: int) -> bool:
    """Whether a dim of the resharded program is sharded evenly, and not if the axes are ``factor`` times as large."""
    return any(n % shards == 0 and n % larger for n, shards, larger in _dims_with(compiled, factor))


def has_uneven(compiled: Any, factor: int) -> bool:
    """Whether a dim of the resharded program is sharded unevenly if the axes are ``factor`` times as large.

    Its shards may nest on the smaller mesh alone: 3 rows over 2 and over 4 devices do, over 8 and over 64 they do not.
    """
    return any(n % larger for n, _, larger in _dims_with(compiled, factor))


def _dims_with(compiled: Any, factor: int) -> Iterator[tuple[int, int, int]]:
    """(size, shards, shards on the larger mesh) of each sharded dim of each value."""
    for function in compiled.stages["resharded"].functions:
        for n, shards, axes in _sharded_dims(function.body):
            yield n, shards, shards * factor**axes


def _sharded_dims(region: Any) -> Iterator[tuple[int, int, int]]:
    """(size, shards, number of axes) of each sharded dim of each value."""
    for value in [*region.arguments, *(result for op in region.ops for result in op.results)]:
        if value.sharding is not None:
            for n, (axes, _, _) in zip(value.type.shape, value.sharding.dims):
                if axes:
                    yield n, math.prod(size for _, _, size in axes), len({name for name, _, _ in axes})
    for op in region.ops:
        for inner in op.regions:
            yield from _sharded_dims(inner)


def propagated(compiled: Any) -> list[tuple[tuple[str, ...], ...]]:
    """The axes of each dim of each value, by name."""
    found = []
    for function in compiled.stages["propagated"].functions:
        for value in [*function.body.arguments, *(result for op in function.body.ops for result in op.results)]:
            dims = [] if value.sharding is None else value.sharding.dims
            found.append(tuple(tuple(name for name, _, _ in axes) for axes, _, _ in dims))
    return found


def _without(names: list[str], left_out: set[str]) -> list[str]:
    return [name for name in names if name not in left_out]


def _received(compiled: Any) -> list[bool]:
    """Whether each exchange of the local program receives something."""
    return [row["bytes"] > 0 for row in compiled.collectives() if row["kind"] == "exchange"]


def compare(compiled: Any, larger: Any) -> str:
    """SAME, EVENNESS, IN_PLACE or DIFFERENT."""
    before, after = local_ops(compiled), local_ops(larger)
    if before == after:
        return SAME
    if _without(before, MASKING) != _without(after, MASKING):
        others = MASKING | {EXCHANGE}
        # An exchange that receives nothing would be one that the compiler should not have emitted.
        moves = all(_received(compiled)) and all(_received(larger))
        return IN_PLACE if moves and _without(before, others) == _without(after, others) else DIFFERENT
    if evenness(compiled) != evenness(larger):
        return EVENNESS
    same = structures(compiled.stages["local"]) == structures(larger.stages["local"])
    return SAME if same else DIFFERENT


def compiled_with(module: Any, mesh: Any, choices: Any = None) -> Any:
    """The compiled program, or none where the choices are impossible on the mesh."""
    try:
        # What travels together is decided by the times of each mesh, and not pinned.
        return _core.passes.compile(module, mesh, choices=choices, combine_bytes="0")
    except ValueError as error:
        if "choices must be possible for the program on this mesh" in str(error):
            return None
        raise
