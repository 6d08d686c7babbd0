# SPDX-License-Identifier: Apache-2.0
"""with_sharding_constraint, device_put and reshard on trees, UNSPECIFIED and None, and the ambient mesh."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import UNSPECIFIED, NamedSharding, P

MESH = sw.Mesh({"x": 4, "y": 2})
OTHER = sw.Mesh({"a": 2})
X = np.arange(32, dtype=np.float32).reshape(8, 4)
ROWS = NamedSharding(MESH, P("x"))


def spec(array: Any) -> Any:
    return array.sharding.spec


# ---- constraints ----------------------------------------------------------------------------------------------------


def test_a_constraint_on_a_tree_takes_a_prefix_tree() -> None:
    def f(x: Any) -> Any:
        tree = {"a": x + 1, "b": (x + 2, [x + 3])}
        return sw.with_sharding_constraint(tree, {"a": P("x"), "b": (P("y"), P(None, "x"))})

    out = sw.jit(f, mesh=MESH)(X)
    assert (spec(out["a"]), spec(out["b"][0]), spec(out["b"][1][0])) == (P("x", None), P("y", None), P(None, "x"))
    np.testing.assert_array_equal(out["b"][1][0], X + 3)


def test_none_is_replicated_and_unspecified_says_nothing() -> None:
    def f(x: Any) -> Any:
        return sw.with_sharding_constraint((x, x * 2), (None, UNSPECIFIED))

    text = sw.jit(f, mesh=MESH, in_shardings=P("x")).trace(X).as_text()
    assert text.count("sharding_constraint") == 1
    assert "<@mesh, [{}, {}]>" in text


def test_a_constraint_keeps_what_is_on_no_mesh_and_reshards_arrays() -> None:
    tree = {"a": X, "b": [X, None]}
    assert sw.with_sharding_constraint(tree, P("x")) is tree
    placed = sw.with_sharding_constraint({"a": sw.device_put(X, MESH)}, P("y"))
    assert spec(placed["a"]) == P("y", None)


def test_gradients_and_vmap_pass_through_constraints_on_trees() -> None:
    def loss(tree: Any) -> Any:
        tree = sw.with_sharding_constraint(tree, P("x"))
        return (tree["a"] ** 2).sum() + tree["b"].sum()

    grads = sw.jit(sw.grad(loss), mesh=MESH)({"a": X, "b": X})
    np.testing.assert_array_equal(grads["a"], 2 * X)
    np.testing.assert_array_equal(grads["b"], np.ones_like(X))


# ---- jit's shardings ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nothing", [None, UNSPECIFIED], ids=repr)
def test_nothing_is_said_of_an_argument_that_is_unspecified(nothing: Any) -> None:
    f = sw.jit(lambda x, y: x + y, mesh=MESH, in_shardings=(nothing, P("x")), out_shardings=nothing)
    text = f.trace(X, X).as_text()
    assert "%arg0: tensor<8x4xf32>, %arg1: tensor<8x4xf32> {sdy.sharding" in text
    assert spec(f(X, X)) == P("x", None)
    placed = sw.device_put(X, NamedSharding(MESH, P(None, "y")))
    assert spec(sw.jit(lambda x: x, mesh=MESH, in_shardings=nothing)(placed)) == P(None, "y")
    assert spec(sw.jit(lambda x: {"a": x}, mesh=MESH, out_shardings={"a": nothing})(placed)["a"]) == P(None, "y")


def test_shardings_of_jit_are_prefix_trees() -> None:
    f = sw.jit(
        lambda tree, y: {"sum": tree["w"] + y, "rest": [tree["b"], y]},
        mesh=MESH,
        in_shardings=({"w": P("x"), "b": UNSPECIFIED}, '[{"y"}, {}]'),
        out_shardings={"sum": P(None, "y"), "rest": ROWS},
    )
    out = f({"w": X, "b": X}, X)
    assert spec(out["sum"]) == P(None, "y")
    assert [spec(leaf) for leaf in out["rest"]] == [P("x", None)] * 2


def test_unspecified_is_one_thing() -> None:
    assert pickle.loads(pickle.dumps(UNSPECIFIED)) is UNSPECIFIED
    assert repr(UNSPECIFIED) == "UNSPECIFIED"


# ---- device_put and reshard -----------------------------------------------------------------------------------------


def test_device_put_places_trees() -> None:
    tree = {"w": X, "b": (1.0, None, X[0])}
    placed = sw.device_put(tree, {"w": ROWS, "b": MESH})
    assert (spec(placed["w"]), spec(placed["b"][0]), spec(placed["b"][2])) == (P("x", None), P(), P(None))
    assert placed["b"][1] is None
    np.testing.assert_array_equal(placed["w"], X)
    again = sw.device_put(placed, device=NamedSharding(MESH, P()))
    assert all(leaf.sharding.is_fully_replicated for leaf in (again["w"], again["b"][0], again["b"][2]))


def test_the_ambient_mesh_gives_specs_and_text_a_meaning() -> None:
    with sw.set_mesh(MESH):
        assert spec(sw.device_put(X, P("x"))) == P("x", None)
        assert spec(sw.device_put(X, '[{}, {"y"}]')) == P(None, "y")
        assert sw.device_put(X).sharding == NamedSharding(MESH, P())
        assert spec(sw.reshard(X, P("y"))) == P("y", None)
        moved = sw.device_put(sw.device_put(X, OTHER), P("x"))
        assert moved.sharding == ROWS
        np.testing.assert_array_equal(moved, X)


def test_an_array_brings_its_mesh() -> None:
    placed = sw.device_put(X, ROWS)
    assert sw.reshard(placed, P(None, "y")).sharding == NamedSharding(MESH, P(None, "y"))
    assert sw.device_put(placed, P("y")).sharding == NamedSharding(MESH, P("y"))
    np.testing.assert_array_equal(sw.reshard([placed], [P(("x", "y"))])[0], X)


def test_an_array_has_neither_open_dims_nor_priorities() -> None:
    said = P(sw.priority(sw.open("x"), 2), sw.open(), replicated="y")
    assert sw.device_put(X, NamedSharding(MESH, said)).sharding == NamedSharding(MESH, P("x", None))


def test_in_a_traced_function_they_are_constraints() -> None:
    other = sw.device_put(X, ROWS)

    def f(x: Any) -> Any:
        return sw.device_put(x, ROWS), sw.reshard({"a": x * 2}, P(None, "y")), sw.device_put(other, P("y"))

    text = sw.jit(f, mesh=MESH).trace(X).as_text()
    assert text.count("sdy.sharding_constraint") == 3
    a, b, c = sw.jit(f, mesh=MESH)(X)
    assert (spec(a), spec(b["a"]), spec(c)) == (P("x", None), P(None, "y"), P("y", None))
    np.testing.assert_array_equal(b["a"], X * 2)


@pytest.mark.parametrize("place", [sw.device_put, sw.reshard])
@pytest.mark.parametrize(
    ("x", "sharding", "kind", "text"),
    [
        (X, P("x"), sw.MeshError, "a spec needs a mesh"),
        (X, 3, sw.ShardingError, "takes"),
        (X, NamedSharding(MESH, P("x", None, None)), sw.ShardingError, "at most 2 entries"),
        ({"a": X}, {"b": ROWS}, sw.ShardingError, "must be a prefix"),
        ((X, X), (ROWS,), sw.ShardingError, "must be a prefix"),
        (X, NamedSharding(MESH, P(unreduced="y")), sw.ShardingError, "cannot be left unreduced"),
        (np.array(["a"]), ROWS, sw.DTypeError, r"every leaf must be an array of numbers, got <U1\[1\] for x;"),
    ],
)
def test_what_cannot_be_placed_is_refused(place: Any, x: Any, sharding: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=text):
        place(x, sharding)


def test_device_put_without_a_place_says_nothing_in_a_program() -> None:
    for nothing in (None, UNSPECIFIED):
        f = sw.jit(lambda x: sw.device_put(x, nothing) + 1, mesh=MESH, in_shardings=P("x"))  # noqa: B023
        assert "sharding_constraint" not in f.trace(X).as_text()


@pytest.mark.parametrize("said", [P("x", None), '[{"x"}, {}]', ROWS], ids=repr)
def test_shapes_without_data_have_shardings_of_every_form(said: Any) -> None:
    x = sw.ShapeDtypeStruct(X.shape, X.dtype, sharding=said)
    program = sw.jit(lambda x: x * 2, mesh=MESH).lower(x).compile()
    assert program.input_shardings == [ROWS]
    assert hash(x) == hash(sw.ShapeDtypeStruct(X.shape, X.dtype, sharding=said))
    with pytest.raises(sw.ShardingError, match="must be a NamedSharding"):
        sw.ShapeDtypeStruct(X.shape, X.dtype, sharding=3)


def test_reshard_wants_a_sharding() -> None:
    for nothing in (None, MESH, (None,)):
        with pytest.raises(sw.ShardingError, match=r"reshard of x\[0\]: takes"):
            sw.reshard((X,), nothing)


# ---- set_mesh -------------------------------------------------------------------------------------------------------


def test_set_mesh_is_a_setter_and_a_context_manager_that_gives_back_what_was() -> None:
    assert sw.get_mesh() is None
    with sw.set_mesh(MESH) as mesh:
        assert mesh is MESH
        with sw.set_mesh(OTHER):
            assert sw.get_mesh() is OTHER
        assert sw.get_mesh() is MESH
    assert sw.get_mesh() is None
    try:
        sw.set_mesh(MESH)
        assert sw.get_mesh() is MESH
    finally:
        sw.set_mesh(None)


def test_the_mesh_of_a_program_is_fixed() -> None:
    def f(x: Any) -> Any:
        with sw.set_mesh(OTHER):
            return x

    with pytest.raises(sw.MeshError, match="must not be called in a traced function"):
        sw.jit(f, mesh=MESH)(X)
    assert sw.get_mesh() is None
