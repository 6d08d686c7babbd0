# SPDX-License-Identifier: Apache-2.0
"""A compiled program as one `sdy.manual_computation` in StableHLO alone, which jaxlib compiles and runs.

JAX lowers the handed-over program; then groups of devices become mesh axes, so that the text does not grow with them:

    replica_groups = dense<[[0, 2], [1, 3]]>    becomes    replica_group_mesh_axes<mesh = @mesh, axes = ["x"]>

and a line of the script that JAX traced becomes the line of the user's program that it was written for:

    loc("tanh"("local"("<to_jax>":21:9)))       becomes    loc("h"("train.py":12:0))
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import chain, permutations
from typing import Any

import numpy as np

from ..._core.ir import Op
from ...stages import Program
from ..optional import jax
from ..source.script import script_of
from .program import SCRIPT, JaxProgram
from .target import JAX

__all__ = ["export_text"]

_GROUPS = "replica_groups"
_LINE = re.compile(rf'"{SCRIPT}":(\d+)')


def export_text(program: Program, locations: bool, generic: bool) -> str:
    """The text of a program; it needs no devices. ``locations``: with the user's lines."""
    script = script_of(program, JAX, is_read=False)
    sizes = script.axes.sizes
    mesh = jax.sharding.AbstractMesh(tuple(sizes.values()), tuple(sizes))
    module = JaxProgram(program, script, None, mesh).lower().compiler_ir("stablehlo")
    with module.context:
        for op in _walk(module.operation):
            if _GROUPS in op.attributes:
                text = _axes_text(sizes, np.array(op.attributes[_GROUPS]).tolist())
                if text:
                    op.attributes[_GROUPS] = type(op.attributes[_GROUPS]).parse(text)
        options = {"print_generic_op_form": generic}
        if locations:
            _set_locations(module, script.ops_by_line())
            options |= {"enable_debug_info": True, "use_local_scope": True}
        return str(module.operation.get_asm(**options))


def _set_locations(module: Any, ops: dict[int, Op]) -> None:
    """Give each op the user's line. ``ops`` has the lines of the script that were written for an op."""
    known: dict[Op | None, Any] = {}
    for each in [module.operation, *_walk(module.operation)]:
        lines = map(int, _LINE.findall(str(each.location)))  # a line of a helper, then the one that calls it
        op = next((ops[line] for line in lines if line in ops), None)
        if op not in known:
            known[op] = _location(type(each.location), op)
        each.location = known[op]
        for block in [] if each.name == "func.func" else chain.from_iterable(each.regions):
            for argument in block.arguments:
                argument.set_location(type(each.location).unknown())


def _location(kind: Any, op: Op | None) -> Any:
    """The place of an op as a location of MLIR; ``kind``: the class that makes them."""
    place = None if op is None else op.location
    if place is None or not place.file:
        return kind.unknown()
    line = kind.file(place.file, place.line, 0)
    return kind.name(place.variable, line) if place.variable else line


def _walk(op: Any) -> Iterator[Any]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from _walk(inner.operation)


def _axes_text(sizes: dict[str, int], groups: list[list[int]]) -> str:
    """The attribute for groups along some axes, in their order; "" for other groups."""
    grid = np.arange(math.prod(sizes.values())).reshape(list(sizes.values()))
    wide = [d for d, size in enumerate(grid.shape) if size > 1]
    for order in chain.from_iterable(permutations(wide, count) for count in range(1, len(wide) + 1)):
        rest = [d for d in range(grid.ndim) if d not in order]
        if grid.transpose([*rest, *order]).reshape(-1, math.prod(grid.shape[d] for d in order)).tolist() == groups:
            names = ", ".join(f'#stablehlo.axis_ref<name = "{list(sizes)[d]}">' for d in order)
            return f"#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [{names}]>"
    return ""
