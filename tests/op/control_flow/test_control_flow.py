# SPDX-License-Identifier: Apache-2.0
"""Loops and branches from end to end: on every mesh, in every mode, a program gives what Python's loop gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.conformance.jax.control_flow_programs import PROGRAMS, Program, floats

MESHES = {
    "one": sw.Mesh({"x": 1}),
    "eight": sw.Mesh({"x": 8}),
    "three": sw.Mesh({"x": 3}),
    "permuted": sw.Mesh({"x": 4, "y": 2}, device_ids=[3, 1, 4, 0, 7, 5, 2, 6]),
}
MODES: tuple[dict[str, bool], ...] = ({}, {"faithful": True, "poison": True})


def on_first_dim(ndim: int) -> sw.PartitionSpec:
    return sw.P("x") if ndim else sw.P()


def on_last_dim(ndim: int) -> sw.PartitionSpec:
    return sw.P(*[None] * (ndim - 1), "x") if ndim else sw.P()


def on_sub_axes(ndim: int) -> sw.PartitionSpec:
    major, middle = sw.sub("x", pre=1, size=2), sw.sub("x", pre=2, size=2)
    return sw.P(middle, *[major] * (ndim > 1)) if ndim else sw.P()


SHARDINGS = {"first dim": on_first_dim, "last dim": on_last_dim}


def assert_same(found: Any, expected: Any) -> None:
    assert sw.tree.structure(found) == sw.tree.structure(expected)
    for ours, theirs in zip(map(np.asarray, sw.tree.leaves(found)), sw.tree.leaves(expected)):
        assert ours.dtype == np.asarray(theirs).dtype
        assert ours.shape == np.shape(theirs)
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


def check(program: Program, mesh: Any, specs: Any) -> None:
    function = sw.jit(lambda *arrays: program.function(np, sw, *arrays), mesh=mesh, in_shardings=specs)
    compiled = function.lower(*program.inputs).compile()
    expected = program.function(np, sw, *program.inputs)
    for mode in MODES:
        assert_same(compiled.run(*program.inputs, **mode), expected)
    assert_same(function(*program.inputs), expected)


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("placed", SHARDINGS)
@pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])
def test_a_program_gives_what_a_python_loop_gives(program: Program, placed: str, mesh: str) -> None:
    check(program, MESHES[mesh], tuple(SHARDINGS[placed](np.ndim(x)) for x in program.inputs))


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])
def test_a_program_on_sub_axes(program: Program) -> None:
    check(program, MESHES["eight"], tuple(on_sub_axes(np.ndim(x)) for x in program.inputs))


def layers(count: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    return floats(count, width, width) / 4, floats(count, width)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_stacked_weights_equal_the_unrolled_program(axis: int) -> None:
    weights, biases = layers(6, 8)
    x = floats(5, 8)

    def rolled(x: Any, weights: Any, biases: Any) -> Any:
        return sw.scan(lambda h, w: (np.tanh(h @ w[0] + w[1]), None), x, (weights, biases))[0]

    def unrolled(x: Any, weights: Any, biases: Any) -> Any:
        for i in range(weights.shape[0]):
            x = np.tanh(x @ weights[i] + biases[i])
        return x

    mesh = MESHES["permuted"]
    specs = (sw.P("y"), sw.P(*["x" if dim == axis else None for dim in range(3)]), None)
    for mode in MODES:
        found, expected = (
            sw.jit(f, mesh=mesh, in_shardings=specs).lower(x, weights, biases).compile().run(x, weights, biases, **mode)
            for f in (rolled, unrolled)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_annotated_carries_on_uneven_blocks() -> None:
    xs = floats(7, 10)

    def f(xs: Any) -> Any:
        def body(c: Any, x: Any) -> Any:
            return sw.split(c + x, 0, "x"), (c * x).sum()

        return sw.scan(body, np.zeros(10, np.float32), xs)

    for mesh in ("eight", "three"):
        compiled = sw.jit(f, mesh=MESHES[mesh]).lower(xs).compile()
        for mode in MODES:
            assert_same(compiled.run(xs, **mode), f(xs))


def test_the_local_program_has_one_size_for_any_number_of_steps() -> None:
    def local(count: int) -> str:
        f = sw.jit(lambda x: sw.fori_loop(0, count, lambda i, c: c * 2 + i, x), mesh=MESHES["eight"])
        return str(f.lower(floats(16, 4)).compile().as_text("local"))

    assert local(10).replace("dense<10>", "dense<10000>") == local(10000)
