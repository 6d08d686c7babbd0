# SPDX-License-Identifier: Apache-2.0
"""The optimizers of sw.optim compute Optax's numbers: in NumPy, on every mesh, in loops, and in gradients."""

from __future__ import annotations

from itertools import count, takewhile
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import shardwise as sw
from shardwise import P, optim as o
from tests.optim.cases import (
    CASES,
    COMPLEX,
    COMPLEX_STEPS,
    COUNTS,
    GRADIENTS,
    NARROW,
    ONE_STEP,
    SCHEDULES,
    STEPWISE,
    grads_of,
    loss_behind,
    params_of,
    trained,
)
from tests.support.once_per_run import written_by

WORKER = "tests.optim.optax_worker"
MESHES = [sw.Mesh({"x": 8}), sw.Mesh({"x": 2, "y": 4}), sw.Mesh({"x": 6})]
MAIN = ("momentum", "adam", "adafactor", "lars", "lamb", "clipped")


@pytest.fixture(scope="module")
def optax_numbers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return np.load(written_by(tmp_path_factory, WORKER, "out.npz"))


def leaves_of(file: Any, name: str) -> list[np.ndarray]:
    return [file[f"{name}/{i}"] for i in takewhile(lambda i: f"{name}/{i}" in file, count())]


def assert_close(got: Any, expected: list[np.ndarray], tolerance: float, least: float = 1e-300) -> None:
    """Of each leaf, relative to the element and to the largest one of the leaf."""
    leaves = [np.asarray(leaf) for leaf in sw.tree.leaves(got)]
    assert [leaf.shape for leaf in leaves] == [leaf.shape for leaf in expected]
    assert [leaf.dtype.name.replace("bfloat16", "float32") for leaf in leaves] == [e.dtype.name for e in expected]
    wide = [
        tuple(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in pair)
        for pair in zip(leaves, expected)
    ]
    sizes = [np.abs(wanted) + np.max(np.abs(wanted), initial=least) for _, wanted in wide]
    assert max(np.max(np.abs(a - b) / size, initial=0) for (a, b), size in zip(wide, sizes)) <= tolerance


def specs_on(mesh: sw.Mesh) -> dict[str, P]:
    """No dim of the leaves divides, but for the 6 of the cube."""
    if "y" in mesh.axis_names:
        return {"cube": P("y", None, "x"), "matrix": P("x", "y"), "one": P("x"), "row": P(("y", "x")), "scalar": P()}
    return {"cube": P(None, "x"), "matrix": P("x"), "one": P(), "row": P("x"), "scalar": P()}


def trained_on(mesh: sw.Mesh, name: str, dtype: Any = np.float64) -> Any:
    specs = specs_on(mesh)
    stacked = {leaf: P(None, *spec) for leaf, spec in specs.items()}

    def run(params: Any, grads: Any) -> Any:
        return trained(o, CASES[name](o), params, grads, sw.scan)[0]

    return sw.jit(run, mesh=mesh, in_shardings=(specs, stacked))(params_of(dtype), grads_of(dtype))


# ---- 100 steps in float64 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_a_hundred_steps_in_numpy_are_those_of_optax(name: str, optax_numbers: Any) -> None:
    behind, _ = trained(o, CASES[name](o), params_of(np.float64), grads_of(np.float64), sw.scan)
    assert_close(behind, leaves_of(optax_numbers, f"trained/{name}"), 1e-10)


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("name", MAIN)
def test_a_hundred_steps_on_a_mesh_are_those_of_optax(name: str, place: int, optax_numbers: Any) -> None:
    assert_close(trained_on(MESHES[place], name), leaves_of(optax_numbers, f"trained/{name}"), 1e-10)


@pytest.mark.parametrize("name", [name for name in CASES if name not in MAIN])
def test_each_optimizer_runs_on_a_mesh(name: str, optax_numbers: Any) -> None:
    mesh = MESHES[list(CASES).index(name) % 3]
    assert_close(trained_on(mesh, name), leaves_of(optax_numbers, f"trained/{name}"), 1e-10)


def test_whole_leaves_run_on_a_mesh(optax_numbers: Any) -> None:
    def run(params: Any, grads: Any) -> Any:
        return trained(o, o.adam(0.01), params, grads, sw.scan)[0]

    behind = sw.jit(run, mesh=MESHES[0])(params_of(np.float64), grads_of(np.float64))
    assert_close(behind, leaves_of(optax_numbers, "trained/adam"), 1e-10)


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_leaves_have_the_numbers_of_optax(name: str, optax_numbers: Any) -> None:
    """Squares of gradients and norms are those of absolute values."""
    behind, _ = trained(o, CASES[name](o), params_of(np.complex128), grads_of(np.complex128), sw.scan)
    assert_close(behind, leaves_of(optax_numbers, f"complex/{name}"), 1e-10)


@pytest.mark.parametrize("name", ["adam", "adafactor", "lamb", "clipped", "lion"])
def test_complex_leaves_on_a_mesh_have_the_numbers_of_optax(name: str, optax_numbers: Any) -> None:
    mesh = MESHES[COMPLEX.index(name) % 3]
    assert_close(trained_on(mesh, name, np.complex128), leaves_of(optax_numbers, f"complex/{name}"), 1e-10)


# ---- one step from the same state -----------------------------------------------------------------------------------

STEPS = [(name, np.float32) for name in STEPWISE] + [(name, ml_dtypes.bfloat16) for name in NARROW]
STEPS += [(name, np.complex64) for name in COMPLEX_STEPS]


def states_of(numbers: Any, name: str, dtype: Any) -> Any:
    """What Optax had before and behind each step, as trees of this package, and the leaves of what it computed."""
    optimizer, params = CASES[name](o), params_of(dtype)
    first = (params, optimizer.init(params))
    leaves = leaves_of(numbers, f"{np.dtype(dtype).name}/{name}")
    before = leaves[: len(sw.tree.leaves(first))]
    typed = [leaf.astype(np.asarray(like).dtype) for leaf, like in zip(before, sw.tree.leaves(first))]
    rows = [[leaf[step] for leaf in typed] for step in range(ONE_STEP)]
    after = [[leaf[step] for leaf in leaves[len(before) :]] for step in range(ONE_STEP)]
    return [sw.tree.unflatten(sw.tree.structure(first), row) for row in rows], after


@pytest.mark.parametrize(("name", "dtype"), STEPS)
def test_one_step_from_the_same_state_is_that_of_optax(name: str, dtype: Any, optax_numbers: Any) -> None:
    before, after = states_of(optax_numbers, name, dtype)
    grads, update = grads_of(dtype, ONE_STEP), CASES[name](o).update
    steps = [{leaf: rows[step] for leaf, rows in grads.items()} for step in range(ONE_STEP)]
    got = [update(step, state, params) for step, (params, state) in zip(steps, before)]
    eight = 8 * float(ml_dtypes.finfo(dtype).eps)
    assert_close(got, [leaf for row in after for leaf in row], eight)


@pytest.mark.parametrize("name", MAIN)
def test_one_step_on_a_mesh_is_that_of_optax(name: str, optax_numbers: Any) -> None:
    before, after = states_of(optax_numbers, name, np.float32)
    mesh, (params, state) = MESHES[MAIN.index(name) % 3], before[2]
    grads = {leaf: rows[2] for leaf, rows in grads_of(np.float32, ONE_STEP).items()}
    specs = specs_on(mesh)
    step = sw.jit(CASES[name](o).update, mesh=mesh, in_shardings=(specs, None, specs))
    assert_close(step(grads, state, params), after[2], 8 * float(np.finfo(np.float32).eps))


# ---- arrays, gradients ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAIN)
def test_arrays_on_a_mesh_keep_their_shardings(name: str) -> None:
    mesh = MESHES[1]
    specs, grads = specs_on(mesh), {leaf: rows[0] for leaf, rows in grads_of(np.float64, 1).items()}
    params = {k: sw.device_put(v, sw.NamedSharding(mesh, specs[k])) for k, v in params_of(np.float64).items()}
    optimizer = CASES[name](o)
    updates, state = optimizer.update(grads, optimizer.init(params), params)
    new = o.apply_updates(params, updates)
    assert {k: leaf.sharding for k, leaf in new.items()} == {k: leaf.sharding for k, leaf in params.items()}
    plain = params_of(np.float64)
    expected = optimizer.update(grads, optimizer.init(plain), plain)
    assert_close((updates, state), [np.asarray(leaf) for leaf in sw.tree.leaves(expected)], 1e-13)


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_through_steps_are_those_of_optax(name: str, optax_numbers: Any) -> None:
    mesh = MESHES[GRADIENTS.index(name) % 3]
    gradient = sw.grad(loss_behind(o, CASES[name], sw.scan, sum), argnums=(0, 1))
    got = sw.jit(gradient, mesh=mesh, in_shardings=(None, specs_on(mesh)))(np.float64(0.7), params_of(np.float64))
    assert_close(got, leaves_of(optax_numbers, f"gradient/{name}"), 1e-9, least=1e-3)


# ---- schedules ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_are_those_of_optax(name: str, optax_numbers: Any) -> None:
    schedule = SCHEDULES[name](o)
    expected = optax_numbers[f"schedule/{name}/0"]
    values = [schedule(int(step)) for step in COUNTS]
    # Where Optax divides integers it does so in float32.
    np.testing.assert_allclose(np.array(values, np.float64), expected, rtol=1e-6, atol=3e-7)
    traced = sw.jit(lambda steps: sw.map(lambda step: schedule(step) + 0.0 * step, steps), mesh=MESHES[0])(COUNTS)
    np.testing.assert_allclose(np.asarray(traced), np.array(values, np.float64), rtol=1e-14, atol=1e-15)
