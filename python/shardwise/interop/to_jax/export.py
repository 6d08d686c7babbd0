# SPDX-License-Identifier: Apache-2.0
"""A compiled program as one `sdy.manual_computation` in StableHLO alone, which jaxlib compiles and runs.

JAX lowers the handed-over program; then groups of devices become mesh axes, so that the text does not grow with them:

    replica_groups = dense<[[0, 2], [1, 3]]>    becomes    replica_group_mesh_axes<mesh = @mesh, axes = ["x"]>
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain, permutations
from typing import Any

import numpy as np

from ...stages import Program
from ..optional import jax
from ..source.script import script_of
from .program import JaxProgram
from .target import JAX

__all__ = ["export_text"]

_GROUPS = "replica_groups"


def export_text(program: Program, generic: bool) -> str:
    """The text of a program; it needs no devices."""
    script = script_of(program, JAX)
    sizes = script.axes.sizes
    mesh = jax.sharding.AbstractMesh(tuple(sizes.values()), tuple(sizes))
    module = JaxProgram(program, script, None, mesh).lower().compiler_ir("stablehlo")
    with module.context:
        for op in _walk(module.operation):
            if _GROUPS in op.attributes:
                text = _axes_text(sizes, np.array(op.attributes[_GROUPS]).tolist())
                if text:
                    op.attributes[_GROUPS] = type(op.attributes[_GROUPS]).parse(text)
        return str(module.operation.get_asm(print_generic_op_form=generic))


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
