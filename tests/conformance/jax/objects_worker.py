# SPDX-License-Identifier: Apache-2.0
"""Programs with objects of JAX, in a process of its own with eight devices: classes, meshes, shardings and arrays.

python -m tests.conformance.jax.objects_worker OUT.json: writes the traceback of each check, "" where it passed.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sys
import traceback
from collections import OrderedDict, namedtuple
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shardwise as sw

MESH = sw.Mesh({"x": 4, "y": 2})
JAX_MESH = jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
ABSTRACT = jax.sharding.AbstractMesh((4, 2), ("x", "y"))
Pair = namedtuple("Pair", ["w", "b"])
JP = jax.sharding.PartitionSpec
X = np.arange(32.0, dtype=np.float32).reshape(8, 4)


@jax.tree_util.register_pytree_node_class
class Module:
    """Like a module of flax: children without keys, and static data."""

    def __init__(self, w: Any, b: Any, name: str) -> None:
        self.w, self.b, self.name = w, b, name

    def tree_flatten(self) -> Any:
        return (self.w, self.b), self.name

    @classmethod
    def tree_unflatten(cls, name: str, children: Any) -> Module:
        return cls(*children, name)


class Keyed:
    """Like a module of equinox: children with keys; None is a child without leaves."""

    def __init__(self, w: Any, bias: Any = None) -> None:
        self.w, self.bias = w, bias


jax.tree_util.register_pytree_with_keys(
    Keyed,
    lambda k: (((jax.tree_util.GetAttrKey("w"), k.w), (jax.tree_util.GetAttrKey("bias"), k.bias)), None),
    lambda _, children: Keyed(*children),
)


@jax.tree_util.register_pytree_node_class
class Variable:
    """Like a variable of flax: a node that converts to an array."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.value, dtype)

    def tree_flatten(self) -> Any:
        return (self.value,), None

    @classmethod
    def tree_unflatten(cls, _: None, children: Any) -> Variable:
        return cls(*children)


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class State:
    m: Any
    step: int = dataclasses.field(default=0, metadata={"static": True})


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Config:
    layers: int


def raises(kind: type[Exception], text: str, call: Any) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        call()


def check_class_of_jax_goes_through_jit() -> None:
    seen = []
    f = sw.jit(lambda m: seen.append(m.name) or Module(m.w * 2, {"b": m.b["b"] + 1}, m.name), mesh=MESH)
    for name in ("one", "two", "one"):
        out = f(Module(X, {"b": X[0]}, name))
        assert (type(out), out.name, type(out.w)) == (Module, name, sw.Array)
        np.testing.assert_array_equal(out.w, 2 * X)
        np.testing.assert_array_equal(out.b["b"], X[0] + 1)
    assert seen == ["one", "two"]


def check_gradient_is_of_the_class_of_jax() -> None:
    with sw.set_mesh(MESH):
        gradient = sw.grad(lambda m, x: ((x @ m.w) ** 2).sum())(Keyed(X), X.T)
    assert type(gradient) is Keyed
    assert gradient.bias is None
    np.testing.assert_allclose(gradient.w, jax.grad(lambda m, x: ((x @ m.w) ** 2).sum())(Keyed(X), X.T).w, rtol=1e-6)


def check_axes_and_shardings_are_the_class_of_jax() -> None:
    mapped = sw.vmap(lambda m: m.w + m.bias, in_axes=(Keyed(0, None),))
    np.testing.assert_array_equal(sw.jit(mapped, mesh=MESH)(Keyed(X, X[0])), X + X[0])
    f = sw.jit(lambda m: m, mesh=MESH, in_shardings=(Keyed(sw.P("x"), JP("y")),), out_shardings=Keyed(JP("x"), None))
    out = f(Keyed(X, X[0]))
    assert (out.w.sharding.spec, out.bias.sharding.spec) == (sw.P("x", None), sw.P("y"))


def check_dataclass_of_jax_keeps_its_static_field() -> None:
    out = sw.jit(lambda s: State(s.m + s.step, s.step + 1), mesh=MESH)(State(X, 2))
    assert (type(out), out.step) == (State, 3)
    np.testing.assert_array_equal(out.m, X + 2)


def check_node_that_converts_to_an_array_stays_a_node() -> None:
    out = sw.jit(lambda v: Variable(v.value + 1), mesh=MESH)(Variable(X))
    assert type(out) is Variable
    np.testing.assert_array_equal(out.value, X + 1)


def check_static_class_of_jax_has_no_leaves() -> None:
    assert sw.tree.leaves((Config(3), 1)) == [1]
    f = sw.jit(lambda config, x: x * config.layers, mesh=MESH)
    np.testing.assert_array_equal(f(Config(2), X), X * 2)
    np.testing.assert_array_equal(f(Config(3), X), X * 3)


def check_paths_are_those_of_jax() -> None:
    tree = {"a": Keyed(1, [2, None]), "b": Module(3, 4, "n"), "c": State(5)}
    ours = [(sw.tree.keystr(path), leaf) for path, leaf in sw.tree.leaves_with_path(tree)]
    theirs = [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree.leaves_with_path(tree)]
    assert ours == theirs, (ours, theirs)
    text = "jit: argument m.w must be an array of numbers, got str 'a'; make the field static"
    raises(sw.DTypeError, text, lambda: sw.jit(lambda m: m.bias, mesh=MESH)(Keyed("a", X)))


def check_functions_of_tree_agree_with_jax() -> None:
    a = {"k": [1, None, [2]], "m": Keyed(3, [4])}
    b = {"k": [{"z": 5}, None, [6]], "m": Keyed(7, [8])}
    for module in (sw.tree, jax.tree):
        assert module.leaves(a) == [1, 2, 3, 4]
        assert module.reduce(lambda x, y: x * 10 + y, a) == 1234
        assert module.leaves(module.map(lambda x, y: (x, y), a, b), is_leaf=lambda x: type(x) is tuple)[0] == (
            1,
            {"z": 5},
        )
        assert module.leaves(a, is_leaf=lambda x: type(x) in (dict, Keyed)) == [a]
        assert module.leaves(OrderedDict(z=Pair(1, 2)), is_leaf=lambda x: type(x) is Pair) == [Pair(1, 2)]
        assert module.leaves([OrderedDict(z=1)], is_leaf=lambda x: type(x) is OrderedDict) == [OrderedDict(z=1)]
        assert module.all(a)
        assert module.leaves(module.broadcast(a, b)) == [1, 2, 3, 4]
        assert module.unflatten(module.structure([0, 0]), iter((1, 2))) == [1, 2]
        assert module.map(lambda x: x, None) is None
        assert module.leaves(None, is_leaf=lambda x: x is None) == [None]


def check_meshes_of_jax_are_taken() -> None:
    for mesh in (JAX_MESH, ABSTRACT):
        out = sw.jit(lambda x: sw.shard(x, JP("y", "x")), mesh=mesh)(X)
        assert (out.sharding.mesh, out.sharding.spec) == (MESH, sw.P("y", "x"))
        with sw.set_mesh(mesh):
            assert sw.get_mesh() == MESH
        part = sw.shard_map(lambda x: x + x, mesh=mesh, in_specs=JP("x"), out_specs=JP("x"))
        assert "tensor<2x4xf32>" in sw.jit(part, mesh=MESH).trace(X).as_text()
        assert sw.device_put(X, mesh).sharding == sw.NamedSharding(MESH, sw.P())
        assert sw.NamedSharding(mesh, JP("x")) == sw.NamedSharding(MESH, sw.P("x"))


def check_device_order_of_a_mesh_is_kept() -> None:
    devices = np.array(jax.devices())
    assert sw.NamedSharding(jax.sharding.Mesh(devices[::-1], ("x",)), JP()).mesh.device_ids == (7, 6, 5, 4, 3, 2, 1, 0)
    assert sw.NamedSharding(jax.sharding.Mesh(devices[4:], ("x",)), JP()).mesh == sw.Mesh({"x": 4})


def check_shardings_of_jax_are_taken() -> None:
    rows, columns = jax.NamedSharding(JAX_MESH, JP("x")), jax.NamedSharding(ABSTRACT, JP(None, "y"))
    f = sw.jit(lambda t: {"a": t["a"] + 1, "b": t["b"]}, in_shardings=({"a": rows, "b": None},), out_shardings=columns)
    out = f({"a": X, "b": X})
    assert out["a"].sharding == sw.NamedSharding(MESH, sw.P(None, "y"))
    np.testing.assert_array_equal(out["a"], X + 1)
    assert sw.device_put({"a": X}, {"a": rows})["a"].sharding.spec == sw.P("x", None)
    assert sw.reshard(sw.device_put(X, rows), columns).sharding.spec == sw.P(None, "y")
    assert sw.shard(sw.device_put(X, rows), columns).sharding.spec == sw.P(None, "y")
    held = sw.jit(lambda x: sw.with_sharding_constraint(x, columns) + 0, mesh=MESH)(X)
    assert held.sharding.spec == sw.P(None, "y")
    struct = sw.ShapeDtypeStruct((8, 4), np.float32, sharding=rows)
    assert struct.sharding == sw.NamedSharding(MESH, sw.P("x"))
    other = jax.ShapeDtypeStruct((8, 4), jnp.bfloat16, sharding=columns)
    for arguments in ((struct, other), (other, other)):
        text = sw.jit(lambda x, y: y).lower(*arguments).as_text()
        assert '%arg1: tensor<8x4xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>' in text, text


def check_specs_of_jax_are_taken() -> None:
    spec = JP(("x", "y"), None)
    assert sw.jit(lambda x: x, mesh=MESH, in_shardings=spec)(X).sharding.spec == sw.P(("x", "y"), None)
    left_open = sw.jit(lambda x: sw.shard(x, JP("x", JP.UNCONSTRAINED)), mesh=MESH).trace(X).as_text()
    assert '[{"x"}, {?}]' in left_open, left_open
    assert sw.P(JP.UNCONSTRAINED, "x") == sw.P(sw.open(), "x")
    assert sw.NamedSharding(MESH, JP("x", unreduced={"y"})).spec == sw.P("x", unreduced={"y"})
    text = "P: must have no reduced axes, got P('x', reduced={'y'}); leave reduced= out"
    raises(sw.ShardingError, text, lambda: sw.NamedSharding(MESH, JP("x", reduced={"y"})))
    sharded_by_module = sw.jit(lambda x: x, mesh=MESH, in_shardings=jnp)
    raises(sw.ShardingError, "in_shardings of x: takes P(...)", lambda: sharded_by_module(X))


def check_arrays_of_jax_are_arguments() -> None:
    seen = []
    f = sw.jit(lambda x, y: seen.append(1) or x @ y.T, mesh=MESH)
    np.testing.assert_array_equal(f(jnp.asarray(X), jnp.asarray(X)), X @ X.T)
    f(X, X)
    assert seen == [1]
    placed = jax.device_put(X, jax.NamedSharding(JAX_MESH, JP("x")))
    for _ in range(2):
        np.testing.assert_array_equal(f(X, placed), X @ X.T)
    assert seen == [1, 1]  # an array with a sharding has a program of its own
    low = sw.jit(lambda x: x * 2, mesh=MESH)(jnp.ones(3, jnp.bfloat16))
    assert low.dtype == sw.bfloat16
    assert sw.device_put(jnp.arange(4), MESH).shape == (4,)
    assert type(sw.device_get({"x": jnp.arange(4)})["x"]) is np.ndarray
    with sw.set_mesh(MESH):
        gradient = sw.grad(lambda x: (x * x).sum())
        for scale in (1, 2):
            np.testing.assert_array_equal(gradient(jnp.asarray(X) * scale), 2 * X * scale)
    np.testing.assert_array_equal(jnp.asarray(low), np.full(3, 2.0))


def check_annotations_give_the_mesh() -> None:
    placed = sw.jit(lambda x: sw.with_sharding_constraint(x * 2, jax.sharding.NamedSharding(JAX_MESH, JP("x"))))(X)
    assert placed.sharding == sw.NamedSharding(MESH, sw.P("x", None))
    assert placed.sharding.is_equivalent_to(jax.sharding.NamedSharding(JAX_MESH, JP("x")), 2)


def refused(function: Any, **options: Any) -> str:
    with pytest.raises(sw.UnsupportedError) as caught:
        sw.jit(function, mesh=MESH, **options)(X)
    text, place = str(caught.value).rsplit(" (at ", 1)
    assert re.fullmatch(r"\S*/jax/objects_worker.py:\d+\)", place)
    return text


def check_functions_of_jax_refuse_tracers() -> None:
    rule = "takes no traced arrays of Shardwise"
    in_jax = "use NumPy's functions, or write the whole function in JAX and pass it to sw.from_jax"
    jitted = jax.jit(jnp.exp)
    assert refused(lambda x: jnp.tanh(x)) == f"jnp.tanh: {rule}; use np.tanh"
    assert refused(lambda x: jnp.add(x, 1)) == f"jnp.add: {rule}; use np.add"
    assert refused(lambda x: jax.nn.relu(x)) == f"jax.nn.relu: {rule}; {in_jax}"
    assert refused(lambda x: jax.lax.stop_gradient(x)) == f"jax.lax.stop_gradient: {rule}; use sw.stop_gradient"
    assert refused(lambda x: jax.lax.scan(lambda c, row: (c, row), x[0], x)) == f"jax.lax.scan: {rule}; use sw.scan"
    assert refused(lambda x: jax.device_put(x)) == f"jax.device_put: {rule}; use sw.reshard"
    assert refused(lambda x: jitted(x)).startswith(("jitted: ", "a function of JAX: "))


def check_constraints_of_jax_refuse_tracers() -> None:
    text = "jax.lax.with_sharding_constraint: takes no traced arrays of Shardwise; use sw.with_sharding_constraint"
    for spec in (JP("x"), sw.P("x"), jax.sharding.NamedSharding(JAX_MESH, JP("x"))):
        assert refused(lambda x, spec=spec: jax.lax.with_sharding_constraint(x, spec)) == text


def check_collectives_of_jax_are_refused_in_regions() -> None:
    rule = (
        "knows no manual axes of Shardwise; return the part of each device, and combine the parts after sw.shard_map, "
        "or write the region in JAX, sw.from_jax(jax.shard_map(f, …))"
    )
    bodies = {
        "psum": lambda x: jax.lax.psum(x.sum(), "x"),
        "pmean": lambda x: jax.lax.pmean(x, "x"),
        "all_gather": lambda x: jax.lax.all_gather(x, "x"),
        "ppermute": lambda x: jax.lax.ppermute(x, "x", [(0, 1)]),
        "axis_index": lambda x: x * jax.lax.axis_index("x"),
        "axis_size": lambda x: x * jax.lax.axis_size("x"),
    }
    for name, body in bodies.items():
        mapped = sw.shard_map(body, mesh=MESH, in_specs=sw.P("x"), out_specs=sw.P())
        assert refused(lambda x, mapped=mapped: mapped(x)) == f"jax.lax.{name}: {rule}"


def check_errors_of_users_are_kept() -> None:
    def wrong(x: Any) -> Any:
        jnp.zeros(3)
        return int("three") * x

    with pytest.raises(ValueError, match="invalid literal"):
        sw.jit(wrong, mesh=MESH)(X)
    with pytest.raises(TypeError, match="incompatible shapes"):
        sw.jit(lambda x: x + np.asarray(jnp.add(jnp.zeros(3), jnp.zeros(4))), mesh=MESH)(X)


def main(path: str) -> None:
    outcomes = {}
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            try:
                check()
                outcomes[name] = ""
            except Exception:
                outcomes[name] = traceback.format_exc()
    Path(path).write_text(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1])
