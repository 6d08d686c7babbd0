# SPDX-License-Identifier: Apache-2.0
"""Calls of jitted functions: specs of arguments by name, methods, large ints, small Arrays from around, DLPack."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import NamedSharding, P

MESH = sw.Mesh({"x": 4})
OTHER = sw.Mesh({"y": 2})
X = np.arange(64, dtype=np.float32).reshape(8, 8)
LARGE = 2**70

# ---- in_shardings of arguments by name ------------------------------------------------------------------------------


def specs_of(jitted: Any, *args: Any, **kwargs: Any) -> list[Any]:
    return [sharding.spec for sharding in jitted.lower(*args, **kwargs).compile().input_shardings]


@pytest.mark.parametrize(
    ("args", "kwargs"), [((X, X), {}), ((X,), {"b": X}), ((), {"a": X, "b": X}), ((), {"b": X, "a": X})]
)
def test_in_shardings_are_those_of_positions_also_by_name(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    jitted = sw.jit(lambda a, b: a + b.T, mesh=MESH, in_shardings=(P("x"), P(None, "x")))
    assert specs_of(jitted, *args, **kwargs) == [P("x", None), P(None, "x")]
    np.testing.assert_array_equal(np.asarray(jitted(*args, **kwargs)), X + X.T)


def test_one_spec_is_that_of_arguments_by_name_too() -> None:
    jitted = sw.jit(lambda a, b: a + b.T, mesh=MESH, in_shardings=P("x"))
    assert specs_of(jitted, X, b=X) == [P("x", None), P("x", None)]


def test_in_shardings_of_trees_beside_static_and_keyword_only_arguments() -> None:
    def f(n: int, tree: Any, c: Any, *, only: Any) -> Any:
        return (tree["w"] + tree["v"] + c + only) * n

    jitted = sw.jit(f, mesh=MESH, static_argnums=0, in_shardings=({"w": P("x"), "v": P()}, P(None, "x")))
    tree = {"w": X, "v": X}
    for program in (
        jitted.lower(2, tree, X, only=X).compile(),
        jitted.lower(2, only=X, c=X, tree=tree).compile(),
        jitted.lower(n=2, tree=tree, c=X, only=X).compile(),
    ):
        names = dict(zip(program._traced.in_names, [s.spec for s in program.input_shardings], strict=True))
        assert (names["c"], names["tree['v']"], names["tree['w']"]) == (P(None, "x"), P(None, None), P("x", None))


def test_specs_may_be_for_arguments_by_position_alone() -> None:
    jitted = sw.jit(lambda a, b=None: a + b, mesh=MESH, in_shardings=(P("x"),))
    assert specs_of(jitted, X, b=X)[0] == P("x", None)


def test_a_wrong_number_of_specs_is_still_refused() -> None:
    jitted = sw.jit(lambda a, b=X: a + b, mesh=MESH, in_shardings=(P("x"), P()))
    with pytest.raises(sw.ShardingError, match="jit: in_shardings: must be a prefix of the tree it describes"):
        jitted(X)


# ---- methods --------------------------------------------------------------------------------------------------------


class Scaled:
    """A class without registration, whose methods are jitted."""

    def __init__(self, k: float) -> None:
        self.k = k

    @sw.jit(mesh=MESH)
    def traced(self, x: Any) -> Any:
        return x * self.k

    @sw.jit(mesh=MESH, static_argnums=0)
    def static(self, x: Any) -> Any:
        return x * self.k


def test_a_method_says_how_self_is_static() -> None:
    with pytest.raises(
        sw.DTypeError, match=re.escape("got Scaled; make it static, above the method: @sw.jit(static_argnums=0)")
    ):
        Scaled(2).traced(X)
    for k in (2, 3):
        np.testing.assert_array_equal(np.asarray(Scaled(k).static(X)), X * k)


# ---- ints of more than 64 bits --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda: sw.jit(lambda x, s: x * s, mesh=MESH)(X, LARGE),
        lambda: sw.jit(lambda x: LARGE, mesh=MESH)(X),
        lambda: sw.jit(lambda x: sw.scan(lambda c, row: (c * 2, row), LARGE, x), mesh=MESH)(X),
        lambda: sw.device_put(LARGE, NamedSharding(MESH, P())),
        lambda: sw.jit(sw.grad(lambda s, x: (x * s).sum()), mesh=MESH)(-LARGE, X),
    ],
)
def test_large_ints_ask_for_a_float(call: Any) -> None:
    with pytest.raises(TypeError, match="numbers of programs have at most 64 bits: pass a float"):
        call()


def test_large_ints_beside_arrays_are_as_in_numpy() -> None:
    np.testing.assert_array_equal(np.asarray(sw.jit(lambda x: x * LARGE, mesh=MESH)(X)), X * LARGE)
    np.testing.assert_array_equal(np.asarray(sw.jit(lambda x: x < LARGE, mesh=MESH)(X)), X < LARGE)
    with pytest.raises(OverflowError, match="a number must fit int64"):
        sw.jit(lambda n: n * LARGE, mesh=MESH)(np.arange(4))


# ---- Arrays that are closed over ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [8, 32])
def test_a_small_array_that_is_closed_over_is_as_a_large_one(size: int) -> None:
    here = sw.device_put(np.arange(float(size)), NamedSharding(MESH, P("x")))
    assert sw.jit(lambda: here * 2, mesh=MESH)().sharding.spec == P("x")
    assert sw.jit(lambda: here * 2)().sharding == NamedSharding(MESH, P("x"))
    elsewhere = sw.device_put(np.arange(float(size)), NamedSharding(OTHER, P("y")))
    with pytest.raises(sw.MeshError, match=r"jit: all arrays of a program must be on its mesh, Mesh\('x': 4\)"):
        sw.jit(lambda: elsewhere * 2, mesh=MESH)()


def test_a_small_array_that_is_whole_has_no_sharding_to_lose() -> None:
    rate = sw.device_put(np.float32(0.5), NamedSharding(OTHER, P()))
    np.testing.assert_array_equal(np.asarray(sw.jit(lambda x: x * rate, mesh=MESH)(X)), X * np.float32(0.5))


# ---- meshes and other libraries -------------------------------------------------------------------------------------


def test_no_device_ids_are_too_few() -> None:
    with pytest.raises(sw.MeshError, match="device ids must be a permutation of the devices, got none for 1 devices"):
        sw.Mesh({"x": 1}, device_ids=[])
    with pytest.raises(sw.MeshError, match="device ids must be integers"):
        sw.Mesh({"x": 2}, device_ids=[[0], [1, 2]])  # type: ignore[list-item]


def test_arrays_have_dlpack() -> None:
    placed = sw.device_put(X, NamedSharding(MESH, P("x")))
    found = np.from_dlpack(placed)
    np.testing.assert_array_equal(found, X)
    assert placed.__dlpack_device__() == X.__dlpack_device__()
    with pytest.raises(BufferError):
        np.from_dlpack(sw.device_put(X.astype(sw.bfloat16), NamedSharding(MESH, P("x"))))
