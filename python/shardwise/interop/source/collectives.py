# SPDX-License-Identifier: Apache-2.0
"""The meshes, axes and dims that the collectives of a local program name."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..._core.ir import Op, Value
from .mesh_axes import AxisRef, axes_in, refs_of_attribute
from .scope import Scope
from .target import attributes

__all__ = [
    "WIDEST_CALL", "Operand", "axes_of_dim", "dim_axes", "dims_of_exchange", "exchange_source", "exchange_tile",
    "mesh_of",
    "moves_of", "operands_of", "permuted", "refs_of", "refs_used", "size_of", "source_mesh_of", "without",
]  # fmt: skip


@dataclass(frozen=True)
class Operand:
    """One operand of a collective and its result, as a collective of its own.

    Attributes:
        number: its place among the operands.
    """

    op: Op
    number: int

    @property
    def operands(self) -> list[Value]:
        """The operand."""
        return [self.op.operands[self.number]]

    @property
    def results(self) -> list[Value]:
        """Its result."""
        return [self.op.results[self.number]]

    @property
    def attributes(self) -> dict[str, Any]:
        """Those of the collective."""
        return attributes(self.op)


def operands_of(op: Op) -> list[Operand]:
    """The operands that a collective moves together."""
    return [Operand(op, i) for i in range(len(op.operands))]


def mesh_of(scope: Scope, op: Op | Operand) -> Any:
    """The mesh that a collective names."""
    return scope.shared.module.meshes[attributes(op)["mesh"].name]


def source_mesh_of(scope: Scope, op: Op) -> Any:
    """The mesh of the axes of an exchange's operands: a second one where a value changes its mesh."""
    own = attributes(op)
    return scope.shared.module.meshes[own["from_mesh"].name] if "from_mesh" in own else mesh_of(scope, op)


def refs_of(scope: Scope, op: Op | Operand, name: str) -> list[AxisRef]:
    """The axes of an attribute of a collective."""
    return refs_of_attribute(attributes(op)[name], mesh_of(scope, op))


def size_of(refs: Sequence[AxisRef]) -> int:
    """The number of devices along some axes."""
    return math.prod(size for _, _, size in refs)


def dim_axes(scope: Scope, op: Op | Operand, name: str) -> dict[int, list[AxisRef]]:
    """The axes of each dim in an attribute of a collective, without dims that have one block."""
    mesh = mesh_of(scope, op)
    lists = [refs_of_attribute(axes, mesh) for axes in attributes(op)[name]]
    return {d: refs for d, refs in enumerate(lists) if size_of(refs) > 1}


def moves_of(scope: Scope, op: Op) -> list[tuple[list[AxisRef], int, int]]:
    """The axes, the gathered dim and the split dim of each move of an all_to_all."""
    mesh = mesh_of(scope, op)
    rows = [(refs_of_attribute(row["axes"], mesh), row["from_dim"], row["to_dim"]) for row in attributes(op)["moves"]]
    return [row for row in rows if size_of(row[0]) > 1]


def without(refs: Sequence[AxisRef], others: Sequence[AxisRef]) -> list[AxisRef]:
    """The digits of some axes that others have not."""
    left: list[AxisRef] = []
    for name, pre, size in refs:
        begin, end = pre, pre * size
        for own, other_pre, other_size in sorted(others, key=lambda ref: ref[1]):
            if own != name or other_pre >= end or other_pre * other_size <= begin:
                continue
            if other_pre > begin:
                left.append((name, begin, other_pre // begin))
            begin = other_pre * other_size
        if begin < end:
            left.append((name, begin, end // begin))
    return left


def permuted(scope: Scope, op: Op) -> tuple[list[AxisRef], list[AxisRef]]:
    """The axes that a collective_permute reorders, in the order of the senders and of the receivers."""
    source, target = refs_of(scope, op, "from"), refs_of(scope, op, "to")
    return [*source, *without(target, source)], [*target, *without(source, target)]


def refs_used(module: Any, mesh: Any) -> list[AxisRef]:
    """The axes of all collectives on a mesh with the program's axes."""
    found: list[AxisRef] = []
    for op in module.ops:
        if not op.definition.collective or "mesh" not in attributes(op):
            continue
        own = attributes(op)
        meshes = {name: module.meshes[own.get(f"{name}_mesh", own["mesh"]).name] for name in own}
        for name, value in own.items():
            if meshes[name].axis_names == mesh.axis_names:
                found += [ref for axes in axes_in(value) for ref in refs_of_attribute(axes, meshes[name])]
    return found


WIDEST_CALL = 84  # letters of an exchange in one line; the description of a longer one is a global


# ---- exchanges, as in mesh/exchange.h ------------------------------------------------------------------------------


def axes_of_dim(dim: dict[str, Any], mesh: Any) -> list[AxisRef]:
    """The axes of a dim of an exchange."""
    return refs_of_attribute(dim["axes"], mesh) if "axes" in dim else []


def exchange_tile(op: Op, d: int, mesh: Any) -> dict[str, int]:
    """A dim of the result of an exchange: tile i has ``rows`` rows from ``i * step`` on, of ``size`` in all."""
    dim, rows = attributes(op)["to"][d], op.results[0].type.shape[d]
    shards = size_of(axes_of_dim(dim, mesh))
    return {"rows": rows, "step": dim.get("step", rows), "size": dim.get("size", rows * shards)}


def exchange_source(op: Op, place: int, d: int, mesh: Any, tile_mesh: Any) -> dict[str, int]:
    """A dim of an operand of an exchange.

    Row t of the result is row ``(scale * t + offset) / holes`` of the operand, if t is in ``[begin, end)``; shard j of
    the operand has ``block`` rows from ``j * block`` on, of ``size`` in all.
    """
    dim, block = attributes(op)["from"][place][d], op.operands[place].type.shape[d]
    size, end = block * size_of(axes_of_dim(dim, mesh)), exchange_tile(op, d, tile_mesh)["size"]
    missing = {"size": size, "scale": 1, "offset": 0, "holes": 1, "begin": 0, "end": end}
    return {"block": block} | {name: dim.get(name, value) for name, value in missing.items()}


def dims_of_exchange(op: Op, place: int, meshes: tuple[Any, Any], position: Callable[[Any, list[AxisRef]], str]) -> str:
    """The text of the dims of an operand as `dim_of` of helpers.py takes them, without those that need no entry.

    ``meshes``: of the operand, and of the result. ``position``: the text of the axes of a dim, "()" for none.
    """
    texts = []
    source_mesh, mesh = meshes
    for d, (block, count) in enumerate(zip(op.operands[place].type.shape, op.results[0].type.shape)):
        tile, source = exchange_tile(op, d, mesh), exchange_source(op, place, d, source_mesh, mesh)
        common = math.gcd(source["scale"], source["holes"])
        row = {"size": source["size"], "step": tile["step"]}
        row |= {name: source[name] // common for name in ("scale", "offset", "holes")}
        row |= {"begin": source["begin"], "end": min(source["end"], tile["size"])}
        missing = {"size": block, "step": count, "scale": 1, "offset": 0, "holes": 1, "begin": 0, "end": source["size"]}
        own = attributes(op)
        at = position(source_mesh, axes_of_dim(own["from"][place][d], source_mesh))
        to = position(mesh, axes_of_dim(own["to"][d], mesh))
        items = [f"at={at}"] if at != "()" else []
        items += [f"to={to}"] if to != at else []
        items += [f"{name}={value}" for name, value in row.items() if value != missing[name]]
        texts += [f"{d}: dict({', '.join(items)})"] if items else []
    return f"{{{', '.join(texts)}}}"
