# SPDX-License-Identifier: Apache-2.0
"""Programs of the comparison, compiled by Shardwise; and those that send more than their bound, with the reason."""

from __future__ import annotations

from typing import Any

import numpy as np

import shardwise as sw

from .layers import LAYERS
from .needless import NEEDLESS
from .programs import MOVEMENT, RESHARDS, Library, Program

__all__ = ["ABOVE_BOUND", "ABOVE_BOUND_BY_BYTES", "PROGRAMS", "arguments_of", "compiled", "jitted"]

PROGRAMS = (*MOVEMENT, *NEEDLESS, *RESHARDS, *LAYERS)

# The bytes of a program, and why they are not its bound.
ABOVE_BOUND: dict[str, tuple[int, str]] = {
    "17 rows: tanh, then sum": (224, "all 8 devices share the reduction, though only 6 of them have rows"),
    "embedding, ids sharded": (8288, "less time: each device reads and writes a column of all rows, and masks none"),
}
# The same where all programs are compiled for the fewest bytes: what this sends more, or no longer.
ABOVE_BOUND_BY_BYTES: dict[str, tuple[int, str]] = {
    name: row for name, row in ABOVE_BOUND.items() if name != "embedding, ids sharded"
}


def arguments_of(program: Program) -> list[tuple[Any, Any]]:
    """The shape and the dtype of each argument."""
    return [shape if shape and isinstance(shape[0], tuple) else (shape, np.float32) for shape in program.shapes]


def jitted(program: Program, factor: int = 1) -> Any:
    """The function on its mesh, with axes ``factor`` times as large."""
    library = Library(np, sw.grad, lambda array, *axes: sw.shard(array, sw.P(*axes)), sw.lax, sw.vmap)
    wanted = program.wanted
    return sw.jit(
        lambda *arrays: program.function(library, *arrays),
        mesh=sw.Mesh({axis: size * factor for axis, size in program.mesh.items()}),
        in_shardings=tuple(sw.P(*axes) for axes in program.given),
        out_shardings=tuple(sw.P(*axes) for axes in wanted) if isinstance(wanted, list) else sw.P(*wanted),
        objective=program.objective,
    )


def compiled(program: Program) -> sw.Program:
    return jitted(program).lower(*(sw.ShapeDtypeStruct(*argument) for argument in arguments_of(program))).compile()
