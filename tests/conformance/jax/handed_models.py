# SPDX-License-Identifier: Apache-2.0
"""What `tests.conformance.jax.handover` hands over besides random programs and ops.

The programs of benchmarks/communication, which has the graded rows; the examples; training steps of the models of
training_models.py and of GShard's Transformer; and the programs of tests/interop on meshes of one, two and three axes,
permuted, of 6 devices, cut into sub-axes, with uneven dims, and with a second mesh over the same devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

import shardwise as sw
from benchmarks.communication.layers import LAYERS
from benchmarks.communication.programs import MOVEMENT, RESHARDS, Library, Program as Graded
from shardwise import P, models as sw_models
from tests.conformance.jax.training_models import LAYOUTS, MODELS
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
SECOND = {
    "4x2": sw.NamedSharding(sw.Mesh({"u": 4, "v": 2}, device_ids=[3, 0, 6, 1, 7, 4, 2, 5], name="shuffled"), P("u")),
    "2x2x2": sw.NamedSharding(sw.Mesh({"u": 8}, device_ids=[7, 2, 0, 5, 1, 6, 4, 3], name="mixed"), P("u")),
    "6": sw.NamedSharding(sw.Mesh({"u": 2, "v": 3}, name="folded"), P("v")),
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
    for name in MODELS:
        for layout in LAYOUTS:
            if layout in MODELS[name].layouts:
                yield training_step(name, layout)
    for name, axes in (("data", sw_models.Axes("x", "x")), ("hidden", sw_models.Axes("x", "x", "y"))):
        yield transformer_step(name, axes)
    for handed in PROGRAMS:
        for name, mesh in MESHES.items():
            yield Model(f"{handed.name} on {name}", split(handed, name, mesh), handed.arguments, handed.exact)
        for name, there in SECOND.items():
            compiled = on_second_mesh(handed, MESHES[name], there)
            yield Model(f"{handed.name} on {name} and a second mesh", compiled, handed.arguments, handed.exact)


def drawn(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    kind = np.dtype(dtype)
    if kind.kind in "iub":
        return np.random.default_rng(len(shape)).integers(0, 2, shape).astype(kind)
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(kind)


def graded_row(row: Graded) -> Model:
    library = Library(np, sw.grad, lambda array, *axes: sw.shard(array, P(*axes)), sw.lax, sw.vmap)
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
            dims[(i + handed.split_dim + k) % len(dims)] = axis
        specs.append(P(*dims))
    jitted = sw.jit(handed.function, mesh=mesh, in_shardings=tuple(specs))
    return lambda: jitted.lower(*handed.arguments).compile()


def on_second_mesh(handed: Handed, mesh: sw.Mesh, there: sw.NamedSharding) -> Callable[[], Any]:
    """Its arguments are split on another mesh over the same devices, its results on the program's."""

    def function(*arguments: Any) -> Any:
        moved = [sw.shard(x, there) if np.ndim(x) else x for x in arguments]
        return sw.tree.map(lambda y: sw.shard(y, P("x") if np.ndim(y) else P()), handed.function(*moved))

    jitted = sw.jit(function, mesh=mesh, in_shardings=tuple(P("x") if np.ndim(x) else P() for x in handed.arguments))
    return lambda: jitted.lower(*handed.arguments).compile()


def training_step(name: str, layout: str) -> Model:
    """A step of a model that is written in JAX, with Adam."""
    model, (axes, batch_axis, state_spec) = MODELS[name], LAYOUTS[layout]
    random = np.random.default_rng(len(name))
    state = jax.tree.map(np.asarray, model.state(random))
    batch = model.batch(random)
    states = jax.tree_util.tree_map_with_path(lambda path, x: P(*state_spec(path, x)), state)
    specs = (states, *(P(batch_axis) for _ in batch))
    jitted = sw.jit(sw.from_jax(model.step), mesh=sw.Mesh(axes), in_shardings=specs, out_shardings=(P(), states))
    return Model(f"{name}, {layout}", lambda: jitted.lower(state, *batch).compile(), (state, *batch), False)


def transformer_step(name: str, axes: Any) -> Model:
    """A step of GShard's Transformer with experts, by SGD."""
    config = sw_models.TransformerConfig(2, sw_models.MoEConfig(4, 16, 32, capacity=4), 2, 8, vocabulary=24, length=8)
    random = np.random.default_rng(3)
    params = sw_models.init_transformer(random, config)
    tokens = random.integers(0, 24, (4, 9)).astype(np.int32)

    def step(params: Any, tokens: Any) -> Any:
        def loss(params: Any) -> Any:
            return sw_models.next_token_loss(params, tokens, config, axes=axes)[0]

        value, gradients = sw.value_and_grad(loss)(params)
        return value, sw.tree.map(lambda p, g: p - np.float32(0.1) * g, params, gradients)

    jitted, arguments = sw.jit(step, mesh=sw.Mesh({"x": 4, "y": 2})), (params, tokens)
    return Model(f"GShard's Transformer, {name}", lambda: jitted.lower(*arguments).compile(), arguments, False)
