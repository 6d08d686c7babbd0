# SPDX-License-Identifier: Apache-2.0
"""What `tests.conformance.jax.handover --models` hands over besides random programs and ops.

The programs of benchmarks/communication, which has the graded rows and training steps; the examples; and the programs
of tests/interop on meshes of one, two and three axes, permuted, of 6 devices, and cut into sub-axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import shardwise as sw
from benchmarks.communication.layers import LAYERS
from benchmarks.communication.programs import MOVEMENT, RESHARDS, Library, Program as Graded
from shardwise import P
from tests.interop.process.handed_programs import PROGRAMS, Handed
from tests.support.example_programs import EXAMPLES, traced_example

__all__ = ["Model", "models"]

MESHES = {
    "8": sw.Mesh({"x": 8}),
    "permuted 8": sw.Mesh({"x": 8}, device_ids=[3, 1, 4, 0, 7, 5, 2, 6]),
    "4x2": sw.Mesh({"x": 4, "y": 2}),
    "2x2x2": sw.Mesh({"x": 2, "y": 2, "z": 2}),
    "6": sw.Mesh({"x": 6}),
    "8, sub-axes": sw.Mesh({"x": 8}),
}


class Model(NamedTuple):
    """A program to hand over, made when it is called."""

    name: str
    compiled: Callable[[], Any]
    arguments: tuple[Any, ...]
    exact: bool | None  # None: if it only moves


def models() -> Iterator[Model]:
    for graded in (*MOVEMENT, *RESHARDS, *LAYERS):
        yield graded_row(graded)
    for name in EXAMPLES:
        traced = traced_example(name)
        values = [drawn(aval.shape, aval.dtype) for aval in traced.in_avals]
        args, _ = sw.tree.unflatten(traced.in_tree, values)
        yield Model(f"example {name}", traced.compile, args, False)
    for handed in PROGRAMS:
        for name, mesh in MESHES.items():
            yield Model(f"{handed.name} on {name}", split(handed, name, mesh), handed.arguments, handed.exact)


def drawn(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    kind = np.dtype(dtype)
    if kind.kind in "iub":
        return np.random.default_rng(len(shape)).integers(0, 2, shape).astype(kind)
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(kind)


def graded_row(row: Graded) -> Model:
    library = Library(np, sw.grad, lambda array, *axes: sw.shard(array, P(*axes)))
    wanted = tuple(P(*axes) for axes in row.wanted) if isinstance(row.wanted, list) else P(*row.wanted)
    function = sw.jit(
        lambda *arrays: row.function(library, *arrays),
        mesh=sw.Mesh(row.mesh),
        in_shardings=tuple(P(*axes) for axes in row.given),
        out_shardings=wanted,
    )
    typed = [shape if shape and isinstance(shape[0], tuple) else (shape, np.float32) for shape in row.shapes]
    arguments = tuple(drawn(*each) for each in typed)
    return Model(row.name, lambda: function.lower(*arguments).compile(), arguments, None)


def split(handed: Handed, name: str, mesh: sw.Mesh) -> Callable[[], Any]:
    """Its arguments are split along different dims; with sub-axes, in the order minor, major."""
    axes: list[Any] = [sw.sub("x", pre=4, size=2), sw.sub("x", pre=1, size=2)] if "sub" in name else [*mesh.axis_names]
    specs = []
    for i, x in enumerate(handed.arguments):
        dims: list[Any] = [None] * np.ndim(x)
        for k, axis in enumerate(axes[: len(dims)]):
            dims[(i + handed.turn + k) % len(dims)] = axis
        specs.append(P(*dims))
    jitted = sw.jit(handed.function, mesh=mesh, in_shardings=tuple(specs))
    return lambda: jitted.lower(*handed.arguments).compile()
