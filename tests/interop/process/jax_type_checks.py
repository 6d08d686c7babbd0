# SPDX-License-Identifier: Apache-2.0
"""`jax.typeof` of the arguments and results of a function is in ``from_jax`` what it is in `jax.jit`."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as Q

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"x": 4})
EXPLICIT = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Explicit,), devices=jax.devices()[:4])
AUTO = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
X = np.arange(8, dtype=np.float32).reshape(8, 1)
LARGE = np.arange(32, dtype=np.float32).reshape(32, 1)

VALUES: dict[str, Callable[[], Any]] = {
    "explicit": lambda: jax.device_put(X, NamedSharding(EXPLICIT, Q("x", None))),
    "explicit, whole": lambda: jax.device_put(X, NamedSharding(EXPLICIT, Q())),
    "auto": lambda: jax.device_put(X, NamedSharding(AUTO, Q("x", None))),
    "host": lambda: jax.device_put(X, NamedSharding(AUTO, Q("x"), memory_kind="pinned_host")),
    "one device": lambda: jnp.asarray(X),
    "NumPy": lambda: X,
    "float": lambda: 2.5,
    "int": lambda: 3,
    "bool": lambda: True,
    "complex": lambda: 2j,
    "np.float32": lambda: np.float32(2),
    "np.int32": lambda: np.int32(2),
    "weak array": lambda: jnp.sin(2.0),
    "weak vector": lambda: jnp.broadcast_to(jnp.sin(2.0), (4,)),
    "strong scalar": lambda: jnp.float32(2),
    "tree": lambda: {"a": jax.device_put(X, NamedSharding(EXPLICIT, Q("x"))), "b": (1.5, X)},
}


def body_of(x: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf * 2, x), sum(jnp.sum(leaf) for leaf in jax.tree.leaves(x))


WAYS: dict[str, Callable[[Any], Any]] = {
    "alone": sw.from_jax,
    "in jit": lambda f: sw.jit(sw.from_jax(f), mesh=MESH),
    "in the body of a JAX function": lambda f: sw.from_jax(jax.jit(f)),
}


def types_in(transform: Callable[[Any], Any], body: Any, value: Any) -> tuple[list[str], Any]:
    found: list[str] = []

    def traced(x: Any) -> Any:
        found.extend(str(jax.typeof(leaf)) for leaf in jax.tree.leaves(x))
        result = body(x)
        found.extend(str(jax.typeof(leaf)) for leaf in jax.tree.leaves(result))
        return result

    return found, transform(traced)(value)


@pytest.mark.parametrize("x64", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("name", VALUES)
def test_types_are_those_of_jit(name: str, x64: bool) -> None:
    with jax.enable_x64(x64):
        value = VALUES[name]()
        expected, result = types_in(jax.jit, body_of, value)
        for way, transform in WAYS.items():
            found, own = types_in(transform, body_of, value)
            assert found == expected, way
            for leaf, other in zip(jax.tree.leaves(result), sw.tree.leaves(own)):
                np.testing.assert_allclose(other, np.asarray(leaf), rtol=1e-6)


def branches(a: Any) -> Any:
    return a * (2 if jax.typeof(a).sharding.spec[0] == "x" else 3)


def test_a_branch_on_the_sharding_goes_the_way_of_jit() -> None:
    explicit, auto = VALUES["explicit"](), VALUES["auto"]()
    for f in (sw.from_jax(branches), sw.jit(sw.from_jax(branches), mesh=MESH)):
        for value, factor in ((explicit, 2), (auto, 3), (explicit, 2), (X, 3)):  # the programs are cached apart
            np.testing.assert_array_equal(f(value), X * factor)
    shape = jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=explicit.sharding)
    assert "2.0" in sw.from_jax(branches).lower(shape).as_text().replace("2.000000e+00", "2.0")
    held = jax.device_put(LARGE, NamedSharding(EXPLICIT, Q("x", None)))
    np.testing.assert_array_equal(sw.from_jax(lambda: branches(held))(), LARGE * 2)


def test_gradients_keep_explicit_axes() -> None:
    def loss(a: Any) -> Any:
        return (a * branches(a)).sum()

    with jax.set_mesh(EXPLICIT):
        found = sw.grad(sw.from_jax(loss))(VALUES["explicit"]())
        np.testing.assert_array_equal(found, np.asarray(jax.grad(loss)(VALUES["explicit"]())))


def test_vmap_refuses_explicit_axes() -> None:
    with pytest.raises(sw.UnsupportedError, match=r"argument a must not have explicit axes .* in sw.vmap, got"):
        sw.vmap(sw.from_jax(branches))(VALUES["explicit"]())
    np.testing.assert_array_equal(sw.vmap(sw.from_jax(lambda a: a * 2))(VALUES["auto"]()), X * 2)


def test_axes_vary_in_shard_map_as_in_jit() -> None:
    found: list[str] = []

    def body(x: Any, w: Any) -> Any:
        total, index = jax.lax.psum(x, "x"), jax.lax.axis_index("x")
        found.extend(map(str, map(jax.typeof, (x, w, x * w, total, index))))
        return x * w + 0 * total + 0 * index

    for mesh, x in ((EXPLICIT, VALUES["explicit"]()), (AUTO, X)):
        mapped = jax.shard_map(body, mesh=mesh, in_specs=(Q("x"), Q()), out_specs=Q("x"))
        jax.jit(mapped)(x, np.float32(2))
        expected, found[:] = list(found), []
        assert "{V:x}" in expected[0]
        np.testing.assert_array_equal(sw.from_jax(mapped)(x, np.float32(2)), X * 2)
        assert found == expected
        found.clear()


def test_devices_of_a_region_print_the_lines_of_jax() -> None:
    def lines_of(debug: Any, lax: Any, run: Callable[[Any], None]) -> list[str]:
        def body(x: Any, w: Any) -> Any:
            debug.print("shard {} of {}", x, w)
            return lax.fori_loop(0, 2, lambda i, v: (debug.print("{} {}", i, v), v + 1)[1], x)

        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            run(body)
            jax.effects_barrier()
        return sorted(out.getvalue().splitlines())

    x, w = np.arange(4, dtype=np.float32), np.int32(7)
    theirs = lines_of(
        jax.debug,
        jax.lax,
        lambda body: jax.jit(jax.shard_map(body, mesh=AUTO, in_specs=(Q("x"), Q()), out_specs=Q("x")))(x, w),
    )
    ours = lines_of(
        sw.debug, sw, lambda body: sw.shard_map(body, mesh=MESH, in_specs=(P("x"), P()), out_specs=P("x"))(x, w)
    )
    assert ours == theirs
    assert len(ours) == 12


def test_arrays_from_shards_are_those_of_jax() -> None:
    sharding = NamedSharding(AUTO, Q("x"))
    theirs = jax.make_array_from_callback((8,), sharding, lambda index: np.arange(8)[index])
    ours = sw.make_array_from_callback((8,), sharding, lambda index: np.arange(8)[index])  # type: ignore[arg-type]
    for own, other in zip(ours.addressable_shards, theirs.addressable_shards):
        np.testing.assert_array_equal(own.data, np.asarray(other.data))
