# SPDX-License-Identifier: Apache-2.0
"""A compiled program as one `sdy.manual_computation` in StableHLO only, which jaxlib compiles and runs.

JAX lowers the handed-over program; then groups of devices become mesh axes, so that the text does not grow with them:

    replica_groups = dense<[[0, 2], [1, 3]]>    becomes    replica_group_mesh_axes<mesh = @mesh, axes = ["x"]>

and of all lines that JAX keeps of an op, only that of the user's program stays:

    loc("tanh"(callsite("train.py":12:0 at …)))     becomes    loc("train.py":12:0)
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from ..._core.ir import Module
from ...errors import UnsupportedError, message
from ...programs.stages import Program
from ..optional import jax
from ..source.script import script_of
from .portable import walk, with_ops_for_calls
from .program import JaxProgram
from .target import JAX
from .traced_calls import on_other_mesh

__all__ = ["export_text"]

_GROUPS = "replica_groups"
_LINE = re.compile(r'"([^"]+)":(\d+)')


def export_text(program: Program, locations: bool, generic: bool) -> str:
    """The text of a program; it needs no devices. ``locations``: with the user's lines."""
    script = script_of(program, JAX, is_read=False)
    names = [*program._traced.in_names, *["a closed-over array"] * len(script.hidden)]
    other = on_other_mesh(script, names)
    if other is not None:
        # In JAX's program its tiles follow the order of the devices, which a sharding in the text cannot express.
        rule = "every argument and result must be on the program's mesh, along sub-axes that nest"
        got = f"{other} on another mesh, or along other cuts"
        way_out = "reshard it, or hand the program over with to_jax()"
        raise UnsupportedError(message('as_text("export")', rule, got, way_out))
    sizes = script.axes.sizes
    mesh, ir = jax.sharding.AbstractMesh(tuple(sizes.values()), tuple(sizes)), jax.interpreters.mlir.ir
    module = JaxProgram(program, script, None, mesh).lower().compiler_ir("stablehlo")
    with module.context:
        with_ops_for_calls(module)
        for op in walk(module.operation):
            # JAX 0.12 names axes itself, where it can.
            if _GROUPS in op.attributes and isinstance(op.attributes[_GROUPS], ir.DenseElementsAttr):
                text = _axes_text(sizes, np.array(op.attributes[_GROUPS]).tolist())
                if text:
                    op.attributes[_GROUPS] = ir.Attribute.parse(text)
        options = {"print_generic_op_form": generic}
        if locations:
            _set_locations(module, _lines(program._compiled.stages["local"]))
            options |= {"enable_debug_info": True, "use_local_scope": True}
        return str(module.operation.get_asm(**options))


def _set_locations(module: Any, lines: set[tuple[str, int]]) -> None:
    """Give each op the user's line, one of ``lines``."""
    for op in [module.operation, *walk(module.operation)]:
        found = ((file, int(number)) for file, number in _LINE.findall(str(op.location)))  # the innermost one first
        line = next((each for each in found if each in lines), None)
        kind = type(op.location)
        op.location = kind.unknown() if line is None else kind.file(*line, 0)


def _lines(module: Module) -> set[tuple[str, int]]:
    places = [op.location for op in module.ops]
    return {(place.file, place.line) for place in places if place.file}


def _axes_text(sizes: dict[str, int], groups: list[list[int]]) -> str:
    """The attribute for groups along some axes, in their order; "" for other groups."""
    names, shape = [*sizes], [*sizes.values()]
    grid = np.arange(math.prod(shape)).reshape(shape)
    axis_at = {math.prod(shape[d + 1 :]): d for d, size in enumerate(shape) if size > 1}  # by the distance of devices
    order: list[int] = []
    count, (first, *_) = 1, groups
    while count < len(first):  # the minor axis first
        d = axis_at.get(first[count] - first[0])
        if d is None or d in order:
            return ""
        order.insert(0, d)
        count *= shape[d]
    rest = [d for d in range(len(shape)) if d not in order]
    if not order or grid.transpose([*rest, *order]).reshape(-1, count).tolist() != groups:
        return ""
    axes = ", ".join(f'#stablehlo.axis_ref<name = "{names[d]}">' for d in order)
    return f"#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [{axes}]>"
