# SPDX-License-Identifier: Apache-2.0
"""Names that programs written for JAX use around arrays: donation, deletion, ``device_get``, ``with mesh:``."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import NamedSharding, P

MESH = sw.Mesh({"x": 2, "y": 2})
OTHER = sw.Mesh({"z": 3})
ROWS = NamedSharding(MESH, P("x"))
X = np.arange(8.0).reshape(4, 2)


def placed() -> Any:
    return sw.device_put(X, ROWS)


def step(state: Any, batch: Any) -> Any:
    return {"w": state["w"] - batch, "n": state["n"] + 1}


# ---- donation -------------------------------------------------------------------------------------------------------


def test_a_training_loop_donates_its_state() -> None:
    train = sw.jit(step, donate_argnums=(0,))
    state: Any = {"w": placed(), "n": 0}
    batch = placed()
    for _ in range(3):
        before = state
        state = train(state, batch)
        assert before["w"].is_deleted()
    np.testing.assert_array_equal(state["w"], -2 * X)
    assert int(state["n"]) == 3
    assert not batch.is_deleted()


@pytest.mark.parametrize("options", [{"donate_argnums": 0}, {"donate_argnums": -2}, {"donate_argnames": "state"}])
@pytest.mark.parametrize("named", [False, True])
def test_donated_arguments_are_known_by_position_and_name(options: dict[str, Any], named: bool) -> None:
    state, batch = {"w": placed(), "n": 0}, placed()
    f = sw.jit(step, **options)
    f(state=state, batch=batch) if named else f(state, batch)
    assert (state["w"].is_deleted(), batch.is_deleted()) == (True, False)


def test_static_arguments_do_not_shift_the_donated_ones() -> None:
    a, b = placed(), placed()
    sw.jit(lambda n, x, y: x * n + y, static_argnums=0, donate_argnums=2)(3, a, b)
    assert (a.is_deleted(), b.is_deleted()) == (False, True)


def test_stages_donate_when_the_program_runs() -> None:
    x = placed()
    program = sw.jit(lambda x: x + 1, donate_argnums=0).lower(x).compile()
    assert not x.is_deleted()
    np.testing.assert_array_equal(program(x), X + 1)
    assert x.is_deleted()


def test_what_is_returned_as_it_came_stays_usable() -> None:
    x = placed()
    y = sw.jit(lambda x: x, donate_argnums=0)(x)
    assert x.is_deleted()
    np.testing.assert_array_equal(y, X)


def test_numpy_arrays_and_inner_functions_donate_nothing() -> None:
    inner = sw.jit(lambda x: x + 1, donate_argnums=0)
    x, plain = placed(), X.copy()
    np.testing.assert_array_equal(sw.jit(lambda x: inner(x) * x)(x), (X + 1) * X)
    sw.jit(lambda x: x, mesh=MESH, donate_argnums=0)(plain)
    np.testing.assert_array_equal(x, plain)


def test_a_call_that_fails_donates_nothing() -> None:
    x = placed()
    with pytest.raises(sw.ShapeError):
        sw.jit(lambda x: x + np.ones(5), donate_argnums=0)(x)
    assert not x.is_deleted()


DONATED = (
    r"^array: a deleted array has no elements, got float64\[4, 2\], donated to step; "
    r"use what step returned, or do not donate it \(at .*test_names_of_jax.py:\d+\)$"
)


@pytest.mark.parametrize(
    "use",
    [
        np.asarray,
        lambda x: x + 1,
        np.sum,
        float,
        lambda x: x[0],
        lambda x: x.addressable_shards,
        lambda x: x.block_until_ready(),
        sw.block_until_ready,
        sw.device_get,
        pickle.dumps,
        lambda x: sw.device_put(x, ROWS),
        lambda x: sw.reshard(x, P("y")),
        lambda x: sw.replicate(x),
        sw.jit(lambda x: x),
        lambda x: sw.jit(lambda y: y + x, mesh=MESH)(X),
        lambda x: sw.jit(lambda y: y, mesh=MESH).lower(X).compile()(x),
    ],
)
def test_each_use_of_a_donated_array_is_an_error(use: Any) -> None:
    state = {"w": placed(), "n": 0}
    sw.jit(step, donate_argnums=0)(state, X)
    with pytest.raises(sw.DeletedArrayError, match=DONATED) as caught:
        use(state["w"])
    assert isinstance(caught.value, RuntimeError)  # what a user of JAX catches


def test_a_deleted_array_keeps_its_shape_and_sharding() -> None:
    x = placed()
    assert not x.is_deleted()
    x.delete()
    x.delete()
    assert x.is_deleted()
    assert (x.shape, x.dtype, x.sharding) == ((4, 2), np.float64, NamedSharding(MESH, P("x", None)))
    assert repr(x) == "Array(deleted, shape=(4, 2), dtype=float64)"
    with pytest.raises(sw.DeletedArrayError, match=r"got float64\[4, 2\], deleted by .delete\(\); keep it until its"):
        np.asarray(x)


# ---- arrays and devices ---------------------------------------------------------------------------------------------


def test_device_get_gives_numpy_arrays() -> None:
    tree = {"a": placed(), "b": (X, 3, np.float32(2), None)}
    got = sw.device_get(tree)
    assert type(got["a"]) is np.ndarray
    np.testing.assert_array_equal(got["a"], X)
    assert got["b"][0] is X
    assert (got["b"][1], float(got["b"][2]), got["b"][3]) == (3, 2.0, None)
    with pytest.raises(sw.TracerConversionError):
        sw.jit(sw.device_get, mesh=MESH)(X)


def test_block_until_ready_returns_its_argument() -> None:
    tree = {"a": placed(), "b": 3}
    assert sw.block_until_ready(tree) is tree
    assert tree["a"].block_until_ready() is tree["a"]
    traced = sw.jit(lambda x: sw.block_until_ready(x) + 1, mesh=MESH)(X)
    np.testing.assert_array_equal(traced, X + 1)


def test_an_array_knows_its_devices() -> None:
    mesh = sw.Mesh({"x": 2, "y": 2}, device_ids=[3, 2, 1, 0])
    x = sw.device_put(X, NamedSharding(mesh, P("x")))
    assert x.devices() == x.sharding.device_set == {0, 1, 2, 3}
    assert (x.device, x.sharding.num_devices) == (x.sharding, 4)
    assert (x.is_fully_addressable, x.sharding.is_fully_addressable) == (True, True)
    assert (x.is_fully_replicated, sw.device_put(X, mesh).is_fully_replicated) == (False, True)
    assert sw.device_put(X, x.device).sharding == x.sharding


def test_with_mesh_sets_the_mesh_of_the_block() -> None:
    assert sw.get_mesh() is None
    with MESH as entered:
        assert (entered, sw.get_mesh()) == (MESH, MESH)
        with OTHER, OTHER:
            assert sw.get_mesh() == OTHER
            assert sw.jit(lambda x: sw.split(x, 0, "z"))(np.arange(6)).sharding.mesh == OTHER
        assert sw.get_mesh() == MESH
        seen = []
        thread = threading.Thread(target=lambda: seen.append(sw.get_mesh()))
        thread.start()
        thread.join()
        assert seen == [None]
        with pytest.raises(KeyError), OTHER:
            raise KeyError
        assert sw.get_mesh() == MESH
    assert sw.get_mesh() is None


def test_a_mesh_must_not_be_entered_while_a_program_is_recorded() -> None:
    def f(x: Any) -> Any:
        with OTHER:
            return x

    with pytest.raises(sw.MeshError, match="set_mesh: must not be called in a traced function"):
        sw.jit(f, mesh=MESH)(X)
    assert sw.get_mesh() is None


# ---- shapes without numbers -----------------------------------------------------------------------------------------


def test_eval_shape_gives_shapes_and_dtypes() -> None:
    struct = sw.ShapeDtypeStruct((4, 2), np.float32)
    shapes = sw.eval_shape(lambda x, *, y: {"a": x @ y.T, "b": (x.sum(), 3)}, struct, y=np.ones((5, 2)))
    assert shapes == {
        "a": sw.ShapeDtypeStruct((4, 5), np.float64),
        "b": (sw.ShapeDtypeStruct((), np.float32), sw.ShapeDtypeStruct((), np.int64)),
    }
    static = sw.jit(lambda x, n: x[:n], static_argnums=1)
    assert sw.eval_shape(static, struct, 3) == static.eval_shape(struct, 3) == sw.ShapeDtypeStruct((3, 2), np.float32)


def test_eval_shape_needs_a_mesh_only_for_annotations() -> None:
    with pytest.raises(sw.ShardingError, match="split: an annotation needs a mesh; pass mesh= to jit"):
        sw.eval_shape(lambda x: sw.split(x, 0, "x"), X)
    with MESH:
        assert sw.eval_shape(lambda x: sw.split(x, 0, "x"), X).shape == (4, 2)


def test_eval_shape_of_traced_values() -> None:
    def f(x: Any) -> Any:
        shape = sw.eval_shape(lambda y: y.sum(0), x)
        return x.sum(0) + np.ones(shape.shape)

    np.testing.assert_array_equal(sw.jit(f, mesh=MESH)(X), X.sum(0) + 1)
