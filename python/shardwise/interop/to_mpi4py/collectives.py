# SPDX-License-Identifier: Apache-2.0
"""The symbolic collectives of a local program as those of mpi4py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.ir import Op
from ..source.collectives import (
    WIDEST_CALL,
    axes_of_dim,
    dim_axes,
    dims_of_exchange,
    mesh_of,
    moves_of,
    permuted,
    refs_of,
    size_of,
    source_mesh_of,
    without,
)
from ..source.mesh_axes import AxisRef
from ..source.scope import Scope, call, listed
from ..source.target import attributes
from .target import emits

__all__: list[str] = []

_FOLDS = {"sum": "np.add", "prod": "np.multiply", "max": "np.maximum", "min": "np.minimum", "and": "np.bitwise_and",
          "or": "np.bitwise_or"}  # fmt: skip


def _along(scope: Scope, mesh: Any, refs: Sequence[AxisRef]) -> str:
    """The communicator of the devices that differ along some axes, a global. All ranks make it before `local` runs."""
    if size_of(refs) == 1:
        return "MPI.COMM_SELF"
    names = scope.axes.names(refs) if scope.axes.is_main(mesh) else None
    if names is not None:
        return scope.table("ALONG", call("along", *map(repr, names)), f"ALONG_{'_'.join(names)}")
    return scope.table("ALONG", call(scope.helper("split"), scope.axes.groups(mesh, refs)))


def _rank(scope: Scope, mesh: Any, refs: Sequence[AxisRef]) -> str:
    return f"{_along(scope, mesh, refs)}.rank" if size_of(refs) > 1 else "0"


def _along_dims(scope: Scope, op: Op, dims: dict[int, list[AxisRef]]) -> str:
    return _along(scope, mesh_of(scope, op), [ref for refs in dims.values() for ref in refs])


@emits("shardwise.axis_index")
def axis_index(scope: Scope, op: Op) -> str:
    return f"np.int32({_rank(scope, mesh_of(scope, op), refs_of(scope, op, 'axes'))})"


@emits("shardwise.all_reduce")
def all_reduce(scope: Scope, op: Op) -> str:
    return _reduced(scope, op, refs_of(scope, op, "axes"), _operand(scope, op))


def _operand(scope: Scope, op: Op) -> str:
    """The operand of a collective, or the tuple of them."""
    names = [scope(operand) for operand in op.operands]
    return names[0] if len(names) == 1 else listed(names)


def _reduced(scope: Scope, op: Op, refs: Sequence[AxisRef], x: str) -> str:
    if size_of(refs) == 1:
        return x
    combine, along = _FOLDS[attributes(op)["reducer"]], _along(scope, mesh_of(scope, op), refs)
    if len(op.operands) > 1:
        return call(scope.helper("all_reduce_together"), x, along, combine)
    return call(scope.helper("all_reduce"), x, along, combine)


@emits("shardwise.all_gather")
def all_gather(scope: Scope, op: Op) -> str:
    dims, x = dim_axes(scope, op, "gather"), _operand(scope, op)
    if not dims:
        return x
    all_parts = f"{_along_dims(scope, op, dims)}.allgather({x})"
    is_one = len(op.operands) == 1
    parts = all_parts if is_one else "parts"
    if len(dims) == 1:
        text = f"np.concatenate({parts}, {next(iter(dims))})"
    else:
        text = f"{scope.helper('joined')}({parts}, {listed(map(str, _pairs(dims)))})"
    return text if is_one else f"({text} for parts in zip(*{all_parts}))"


def _pairs(dims: dict[int, list[AxisRef]]) -> list[tuple[int, int]]:
    return [(d, size_of(refs)) for d, refs in dims.items()]


@emits("shardwise.reduce_scatter")
def reduce_scatter(scope: Scope, op: Op) -> str:
    dims, x = dim_axes(scope, op, "scatter"), _operand(scope, op)
    scattered = [ref for refs in dims.values() for ref in refs]
    if dims:
        comm, combine = _along_dims(scope, op, dims), _FOLDS[attributes(op)["reducer"]]
        pairs, fold = listed(map(str, _pairs(dims))), scope.helper("fold")
        blocks = [call(scope.helper("blocks"), scope(operand), pairs) for operand in op.operands]
        if len(blocks) == 1:
            x = f"{fold}({comm}.alltoall({blocks[0]}), {combine})"
        else:
            rows = f"{comm}.alltoall(list(zip({', '.join(blocks)})))"
            x = f"tuple({fold}(parts, {combine}) for parts in zip(*{rows}))"
    return _reduced(scope, op, without(refs_of(scope, op, "axes"), scattered), x)


@emits("shardwise.all_to_all")
def all_to_all(scope: Scope, op: Op) -> str:
    moves, x = moves_of(scope, op), scope(op.operands[0])
    sources, targets = {source for _, source, _ in moves}, {target for _, _, target in moves}
    steps = [[move] for move in moves] if sources & targets else [moves] if moves else []
    for step in steps:
        comm = _along(scope, mesh_of(scope, op), [ref for refs, _, _ in step for ref in refs])
        split = listed([str((target, size_of(refs))) for refs, _, target in step])
        joined = listed([str((source, size_of(refs))) for refs, source, _ in step])
        blocks = call(scope.helper("blocks"), x, split)
        x = f"{scope.helper('joined')}({comm}.alltoall({blocks}), {joined})"
    return x


@emits("shardwise.collective_permute")
def collective_permute(scope: Scope, op: Op) -> str:
    mesh, own = mesh_of(scope, op), attributes(op)
    if "shift" in own:
        pairs = _shifted(scope, mesh, refs_of(scope, op, "axes"), own["shift"], own["wrap"])
        if "reducer" in own:
            return call(scope.helper("passed_on"), scope(op.operands[0]), pairs, _FOLDS[own["reducer"]])
    else:
        sources, targets = permuted(scope, op)
        names = [scope.axes.names(refs) if scope.axes.is_main(mesh) else None for refs in (sources, targets)]
        if None not in names:
            pairs = f"{scope.helper('swapped')}({names[0]}, {names[1]})"
        else:
            pairs = scope.table("PAIRS", repr(scope.axes.pairs(mesh, sources, targets)))
    return call(scope.helper("permute"), scope(op.operands[0]), pairs)


def _shifted(scope: Scope, mesh: Any, refs: list[AxisRef], shift: int, wrap: bool) -> str:
    names = scope.axes.names(refs) if scope.axes.is_main(mesh) else None
    if names is not None:
        return f"{scope.helper('shifted')}({names}, {shift}, {wrap})"
    return scope.table("PAIRS", repr(scope.axes.shifted(mesh, refs, shift, wrap)))


@emits("shardwise.exchange")
def exchange(scope: Scope, op: Op) -> str:
    mesh, source_mesh, shape = mesh_of(scope, op), source_mesh_of(scope, op), op.results[0].type.shape

    def position(mesh: Any, refs: Sequence[AxisRef]) -> str:
        return _along(scope, mesh, refs) if size_of(refs) > 1 else "()"

    texts = []
    for place, dims in enumerate(attributes(op)["from"]):
        comm = _along(scope, source_mesh, [ref for dim in dims for ref in axes_of_dim(dim, source_mesh)])
        texts.append(f"({comm}, {dims_of_exchange(op, place, (source_mesh, mesh), position)})")
    fill = scope(op.operands[len(texts)]) if len(op.operands) > len(texts) else "0"
    helper, operands, sources = (
        scope.helper("exchange"),
        listed(map(scope, op.operands[: len(texts)])),
        f"[{', '.join(texts)}]",
    )
    text = call(helper, operands, fill, shape, sources)
    return text if len(text) <= WIDEST_CALL else call(helper, operands, fill, shape, scope.table("SOURCES", sources))
