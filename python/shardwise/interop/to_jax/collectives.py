# SPDX-License-Identifier: Apache-2.0
"""The symbolic collectives of a local program as those of `jax.lax`, with the ledger of what is sent.

JAX has no exact maximum (NaN and ±0 get lost), no product and no bitwise reduction over devices, and narrow floats may
travel wider. helpers.py has what takes their place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..._core.ir import Op
from ...dtypes import numpy_dtype
from ..source.collectives import Operand, dim_axes, mesh_of, moves_of, operands_of, permuted, refs_of, without
from ..source.literals import axes_text
from ..source.mesh_axes import AxisRef
from ..source.narrow_dtypes import is_narrow_float, is_small_integer
from ..source.scope import Scope, call, listed
from ..source.target import attributes
from .movement import empty
from .narrow import Form, converted, form_of, form_of_integer, returned
from .target import emits

__all__ = ["along_of", "is_empty", "item_size"]

_FOLDS = {"sum": "lax.add", "prod": "lax.mul", "max": "lax.max", "min": "lax.min", "and": "lax.bitwise_and",
          "or": "lax.bitwise_or"}  # fmt: skip


@dataclass(frozen=True)
class Along:
    """Axes of a collective in the emitted program.

    Attributes:
        size: the number of devices along them.
        axes: the text of JAX's axes.
        groups: "" or the text of ``, axis_index_groups=…``: axes of a second mesh, or sub-axes that do not nest.
    """

    size: int
    axes: str
    groups: str

    @property
    def arguments(self) -> str:
        return self.axes + self.groups


def along_of(scope: Scope, op: Op | Operand, refs: Sequence[AxisRef], other_mesh: Any = None) -> Along:
    """Axes of a collective in the emitted program; ``other_mesh``: instead of the mesh that the op names."""
    mesh = mesh_of(scope, op) if other_mesh is None else other_mesh
    size = math.prod(size for _, _, size in refs)
    names = scope.axes.names(refs) if scope.axes.is_main(mesh) else None
    if names is not None:
        return Along(size, axes_text(names) if names else "()", "")
    groups = scope.table("GROUPS", repr(scope.axes.groups(mesh, refs)))
    return Along(size, "ALL", f", axis_index_groups={groups}")


def is_empty(op: Op | Operand) -> bool:
    """Whether a collective has no elements to send; JAX refuses some of these."""
    return 0 in op.operands[0].type.shape


def _bytes(op: Op | Operand, dtype: str | None = None) -> float:
    kind = op.operands[0].type
    return float(math.prod(kind.shape) * item_size(dtype or kind.dtype))


def item_size(dtype: str) -> int:
    """Bytes of an element."""
    return numpy_dtype(dtype).itemsize


def _moves_as_bits(op: Op | Operand) -> bool:
    dtype = op.operands[0].type.dtype
    return is_narrow_float(dtype) or is_small_integer(dtype)


def _moved(scope: Scope, op: Op | Operand, text: str, x: str) -> str:
    """A movement whose text has ``{x}`` for its operand: narrow floats move as integers, which nobody widens."""
    if not _moves_as_bits(op):
        return text.format(x=x)
    return f"{scope.helper('as_bits')}(lambda bits: {text.format(x='bits')}, {x})"


@emits("shardwise.axis_index")
def axis_index(scope: Scope, op: Op) -> str:
    mesh, refs = mesh_of(scope, op), refs_of(scope, op, "axes")
    names = scope.axes.names(refs) if scope.axes.is_main(mesh) else None
    if names is not None:
        return call("lax.axis_index", axes_text(names)) if names else "np.int32(0)"
    positions = scope.axes.positions(mesh, refs)[1]
    table = scope.table("POSITIONS", f'np.array({positions.tolist()}, "int32")')
    return f"jnp.asarray({table})[lax.axis_index(ALL)]"


def _combined(scope: Scope, op: Op | Operand) -> tuple[Form | None, str, str]:
    """The form in which the devices combine an operand; its dtype and reducer there."""
    dtype, reducer = op.operands[0].type.dtype, attributes(op)["reducer"]
    form = form_of(scope, dtype, reducer) if reducer in ("max", "min") else form_of_integer(dtype)
    return form, dtype if form is None else form.dtype, (form and form.reducer) or reducer


def _each(scope: Scope, op: Op, emit: Callable[[Scope, Operand], str]) -> str:
    """The results of all operands. XLA makes one collective of those that JAX has apart."""
    texts = [emit(scope, operand) for operand in operands_of(op)]
    return texts[0] if len(texts) == 1 else listed(texts)


@emits("shardwise.all_reduce")
def all_reduce(scope: Scope, op: Op) -> str:
    return _sums(scope, op) or _each(scope, op, _all_reduce)


def _sums(scope: Scope, op: Op) -> str:
    """Several operands in one call of `lax.psum`; "" where each has another form."""
    operands = operands_of(op)
    along = along_of(scope, op, refs_of(scope, op, "axes"))
    form, dtype, reducer = _combined(scope, op)
    is_sum = form is None and _native_reduction(scope, dtype, reducer) == "lax.psum"
    if len(operands) == 1 or not is_sum or along.size == 1 or any(map(is_empty, operands)):
        return ""
    for operand in operands:
        _add_reduction(scope, operand, along.size, _bytes(operand), dtype)
    return call("lax.psum", listed(map(scope, op.operands)), along.arguments)


def _add_reduction(scope: Scope, operand: Operand, n: int, size: float, dtype: str) -> None:
    count = size / item_size(dtype)
    received = (count + (n - 2) * math.ceil(count / n)) * item_size(dtype)
    scope.transfer("all_reduce", n, received, operand.op, operand=operand.number)


def _all_reduce(scope: Scope, op: Operand) -> str:
    if is_empty(op):
        return empty(scope, op.results[0])
    along = along_of(scope, op, refs_of(scope, op, "axes"))
    form, dtype, reducer = _combined(scope, op)
    return returned(
        form, _reduced(scope, op, along, dtype, reducer, converted(form, scope(op.operands[0])), _bytes(op))
    )


def _reduced(scope: Scope, op: Operand, along: Along, dtype: str, reducer: str, x: str, size: float) -> str:
    if along.size == 1:
        return x
    native = _native_reduction(scope, dtype, reducer)
    n, count = along.size, size / item_size(dtype)
    if native is not None:
        _add_reduction(scope, op, n, size, dtype)
        return call(native, x, along.arguments)
    part = math.ceil(count / n) * item_size(dtype)
    scope.transfer("all_to_all", n, part * (n - 1), op.op, operand=op.number)
    scope.transfer("all_gather", n, part * (n - 1), op.op, operand=op.number)
    return f"{scope.helper('fold')}({x}, {along.axes}, {n}, {_FOLDS[reducer]}{along.groups})"


def _native_reduction(scope: Scope, dtype: str, reducer: str) -> str | None:
    """The function that reduces as exactly as the virtual mesh; None: fold the parts in order."""
    if dtype == "bool":
        return {"and": "lax.pmin", "min": "lax.pmin", "prod": "lax.pmin"}.get(reducer, "lax.pmax")
    is_real = dtype.startswith(("float", "bfloat"))
    if reducer in ("max", "min"):
        return scope.helper(f"exact_{reducer}") if is_real else f"lax.p{reducer}"
    return "lax.psum" if reducer == "sum" and not is_narrow_float(dtype) else None


def _counts(dims: dict[int, list[AxisRef]]) -> dict[int, int]:
    return {d: math.prod(size for _, _, size in refs) for d, refs in dims.items()}


@emits("shardwise.all_gather")
def all_gather(scope: Scope, op: Op) -> str:
    return _each(scope, op, _all_gather)


def _all_gather(scope: Scope, op: Operand) -> str:
    if is_empty(op):
        return empty(scope, op.results[0])
    dims = dim_axes(scope, op, "gather")
    x = scope(op.operands[0])
    along = along_of(scope, op, [ref for refs in dims.values() for ref in refs])
    if along.size == 1:
        return x
    scope.transfer("all_gather", along.size, _bytes(op) * (along.size - 1), op.op, operand=op.number)
    if len(dims) == 1:
        (dim,) = dims
        return _moved(scope, op, f"lax.all_gather({{x}}, {along.arguments}, axis={dim}, tiled=True)", x)
    helper = scope.helper("gather_dims")
    counts = str(_counts(dims)).replace("{", "{{").replace("}", "}}")
    return _moved(scope, op, f"{helper}({{x}}, {along.axes}, {counts}{along.groups})", x)


@emits("shardwise.reduce_scatter")
def reduce_scatter(scope: Scope, op: Op) -> str:
    return _each(scope, op, _reduce_scatter)


def _reduce_scatter(scope: Scope, op: Operand) -> str:
    if is_empty(op):
        return empty(scope, op.results[0])
    dims = dim_axes(scope, op, "scatter")
    scattered = [ref for refs in dims.values() for ref in refs]
    along = along_of(scope, op, scattered)
    form, dtype, reducer = _combined(scope, op)
    rest = without(refs_of(scope, op, "axes"), scattered)
    x = converted(form, scope(op.operands[0]))
    size = _bytes(op) / along.size
    if along.size > 1:
        x = _scattered(scope, op, along, dtype, reducer, dims, x)
    left = along_of(scope, op, rest)
    if left.size > 1:
        is_folded = _native_reduction(scope, dtype, reducer) is None
        if is_folded or along.size > 1:
            x = f"({x})" if " " in x and not x.endswith(")") else x
        x = _reduced(scope, op, left, dtype, reducer, x, size)
    return returned(form, x)


def _scattered(
    scope: Scope, op: Operand, along: Along, dtype: str, reducer: str, dims: dict[int, list[AxisRef]], x: str
) -> str:
    size = _bytes(op) / along.size * (along.size - 1)
    is_sum = reducer == "sum" and _native_reduction(scope, dtype, "sum") == "lax.psum"
    if is_sum:
        scope.transfer("reduce_scatter", along.size, size, op.op, operand=op.number)
        if len(dims) == 1:
            (dim,) = dims
            return f"lax.psum_scatter({x}, {along.arguments}, scatter_dimension={dim}, tiled=True)"
        blocks = f"{scope.helper('blocks')}({x}, {_counts(dims)})"
        return f"lax.psum_scatter({blocks}, {along.arguments})"
    scope.transfer("all_to_all", along.size, size, op.op, operand=op.number)
    return f"{scope.helper('fold_scatter')}({x}, {along.axes}, {_counts(dims)}, {_FOLDS[reducer]}{along.groups})"


@emits("shardwise.all_to_all")
def all_to_all(scope: Scope, op: Op) -> str:
    if is_empty(op):
        return empty(scope, op.results[0])
    moves = moves_of(scope, op)
    x = scope(op.operands[0])
    sources, targets = {source for _, source, _ in moves}, {target for _, _, target in moves}
    if len(moves) == 1 or sources & targets:
        for refs, source, target in moves:
            along = along_of(scope, op, refs)
            scope.transfer("all_to_all", along.size, _bytes(op) * (along.size - 1) / along.size, op)
            dims = f"split_axis={target}, concat_axis={source}, tiled=True"
            x = _moved(scope, op, f"lax.all_to_all({{x}}, {along.axes}, {dims}{along.groups})", x)
        return x
    along = along_of(scope, op, [ref for refs, _, _ in moves for ref in refs])
    scope.transfer("all_to_all", along.size, _bytes(op) * (along.size - 1) / along.size, op)
    rows = [(source, target, math.prod(size for _, _, size in refs)) for refs, source, target in moves]
    return _moved(scope, op, f"{scope.helper('move_axes')}({{x}}, {along.axes}, {rows}{along.groups})", x)


@emits("shardwise.collective_permute")
def collective_permute(scope: Scope, op: Op) -> str:
    if is_empty(op):
        return empty(scope, op.results[0])
    mesh = mesh_of(scope, op)
    own = attributes(op)
    if "shift" in own:
        return _shifted(scope, op, refs_of(scope, op, "axes"), own["shift"], own["wrap"], own.get("reducer"))
    sources, targets = permuted(scope, op)
    size = math.prod(size for _, _, size in sources)
    scope.transfer("collective_permute", size, _bytes(op), op)
    names = [scope.axes.names(refs) if scope.axes.is_main(mesh) else None for refs in (sources, targets)]
    if None not in names:
        pairs = f"{scope.helper('swapped')}({names[0]}, {names[1]})"
    else:
        pairs = scope.table("PAIRS", repr(scope.axes.pairs(mesh, sources, targets)))
    return _moved(scope, op, f"lax.ppermute({{x}}, ALL, {pairs})", scope(op.operands[0]))


def _shifted(scope: Scope, op: Op, refs: Sequence[AxisRef], shift: int, wrap: bool, reducer: str | None) -> str:
    mesh = mesh_of(scope, op)
    size = math.prod(size for _, _, size in refs)
    scope.transfer("collective_permute", size, _bytes(op), op)
    names = scope.axes.names(refs) if scope.axes.is_main(mesh) else None
    x = scope(op.operands[0])
    if names is not None:
        pairs = f"{scope.helper('shifted')}({names}, {shift}, {wrap})"
    else:
        pairs = scope.table("PAIRS", repr(scope.axes.shifted(mesh, refs, shift, wrap)))
    if reducer is not None:
        form = form_of(scope, op.operands[0].type.dtype, reducer)
        reducer = (form and form.reducer) or reducer
        return returned(form, call(scope.helper("passed_on"), converted(form, x), pairs, _FOLDS[reducer]))
    return _moved(scope, op, f"lax.ppermute({{x}}, ALL, {pairs})", x)
