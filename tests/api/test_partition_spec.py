# SPDX-License-Identifier: Apache-2.0
"""Specs say all that a sharding can: sub-axes, open dims, priorities, replicated and unreduced axes; in text, too."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import shardwise as sw
from shardwise import NamedSharding, P
from shardwise.shardings.sharding import core_sharding, spec_of
from tests.support.mesh_strategies import meshes, shardings

MESH = sw.Mesh({"x": 8, "y": 2, "z": 2})
X = np.arange(64.0, dtype=np.float32).reshape(8, 8)

# spec, Shardy's text
SAID: list[tuple[P, str]] = [
    (P(("x", "y"), None), '[{"x", "y"}, {}]'),
    (P(sw.open("x"), sw.open()), '[{"x", ?}, {?}]'),
    (P(P.UNCONSTRAINED, "y"), '[{?}, {"y"}]'),
    (P(sw.open(("x", "y")), None), '[{"x", "y", ?}, {}]'),
    (P(sw.priority("x", 1), sw.priority(sw.open("y"), 2)), '[{"x"}p1, {"y", ?}p2]'),
    (P(sw.priority(("x", "z"), 0), None), '[{"x", "z"}p0, {}]'),
    (P(sw.priority(sw.open(), 3), None), "[{?}p3, {}]"),
    (P(sw.sub("x", pre=2, size=4), sw.sub("x", pre=1, size=2)), '[{"x":(2)4}, {"x":(1)2}]'),
    (P(("y", sw.sub("x", pre=2, size=2)), None), '[{"y", "x":(2)2}, {}]'),
    (P("x", None, replicated={"y"}), '[{"x"}, {}], replicated={"y"}'),
    (P("x", None, replicated="y", unreduced="z"), '[{"x"}, {}], replicated={"y"}, unreduced={"z"}'),
    (P(None, None, unreduced=["z", "y"], reducer="max"), '[{}, {}], unreduced=max{"y", "z"}'),
    (P(None, None, unreduced={sw.sub("x", pre=4, size=2)}), '[{}, {}], unreduced={"x":(4)2}'),
]


@pytest.mark.parametrize(("spec", "text"), SAID, ids=[text for _, text in SAID])
def test_a_spec_is_what_its_text_says(spec: P, text: str) -> None:
    said, read = NamedSharding(MESH, spec), NamedSharding(MESH, text)
    assert said.core(2).text() == f"<@mesh, {text}>"
    assert said == read
    assert hash(said) == hash(read)
    assert read.spec == spec
    assert read.core(2) == said.core(2)


@pytest.mark.parametrize(("spec", "text"), SAID, ids=[text for _, text in SAID])
def test_a_spec_is_taken_wherever_a_sharding_is(spec: P, text: str) -> None:
    written = f"<@mesh, {text}>"
    for said in (spec, text, NamedSharding(MESH, spec)):
        for annotate in (sw.shard, sw.with_sharding_constraint, sw.reshard, sw.device_put):
            f = sw.jit(lambda x: annotate(x, said), mesh=MESH)  # noqa: B023
            assert f"sdy.sharding_constraint %arg0 {written}" in f.trace(X).as_text()
        assert f"#sdy.sharding{written}" in sw.jit(lambda x: x, mesh=MESH, in_shardings=said).trace(X).as_text()
        assert f"#sdy.sharding{written}" in sw.jit(lambda x: x, mesh=MESH, out_shardings=said).trace(X).as_text()


@pytest.mark.parametrize("spec", [spec for spec, _ in SAID], ids=repr)
def test_the_repr_of_a_spec_makes_it_again_and_it_survives_pickle(spec: P) -> None:
    names = {"P": P, "open": sw.open, "sub": sw.sub, "priority": sw.priority}
    for other in (eval(repr(spec), names), pickle.loads(pickle.dumps(spec)), copy.deepcopy(spec)):
        assert other == spec
        assert hash(other) == hash(spec)
    sharding = NamedSharding(MESH, spec)
    assert pickle.loads(pickle.dumps(sharding)) == sharding


@given(meshes().flatmap(lambda mesh: st.integers(0, 3).flatmap(lambda ndim: shardings(mesh, ndim))))
def test_every_sharding_has_a_spec_that_says_the_same(core: Any) -> None:
    mesh = sw.Mesh._wrap(core.mesh)
    spec = spec_of(core)
    assert core_sharding(mesh, spec, core.ndim) == core
    sharding = NamedSharding(mesh, spec)
    assert NamedSharding(mesh, sharding.text(core.ndim).partition(" unreduced")[0]).core(core.ndim) == core
    assert eval(repr(spec), {"P": P, "open": sw.open, "sub": sw.sub, "priority": sw.priority}) == spec


def test_specs_differ_by_everything_they_say() -> None:
    specs = [spec for spec, _ in SAID] + [
        P("x", None, unreduced="y"),
        P("x", None, unreduced="y", reducer="min"),
        P("x", None, replicated="z"),
        P(sw.priority("x", 2), None),
        P(sw.open("x"), None),
    ]
    assert len(set(specs)) == len(specs)
    assert len({NamedSharding(MESH, spec) for spec in specs}) == len(specs)


def test_sets_of_axes_have_no_order() -> None:
    assert P("x", replicated={"z", "y"}) == P("x", replicated=("y", "z"))
    assert P("x", unreduced=frozenset({"y"})) == P("x", unreduced="y")
    assert P("x", replicated=["y", "y"]).replicated == ("y",)


@pytest.mark.parametrize("spec", [P("nope"), P("x", "x"), P(replicated="nope"), P("x", unreduced="x")], ids=repr)
def test_a_sharding_checks_its_axes_when_it_is_made(spec: P) -> None:
    with pytest.raises(sw.ShardingError):
        NamedSharding(MESH, spec)


def test_what_a_sharding_knows_of_itself() -> None:
    assert NamedSharding(MESH, P(None, sw.open())).is_fully_replicated
    for spec in (P("x"), P(None, sw.open("y")), P(unreduced="y")):
        assert not NamedSharding(MESH, spec).is_fully_replicated
    assert NamedSharding(MESH, P()).num_devices == 32


def test_priorities_decide_conflicts() -> None:
    mesh = sw.Mesh({"x": 2})

    def f(a: Any, b: Any, first: P, second: P) -> Any:
        return sw.shard(a, first) @ sw.shard(b, second)

    rows, columns = P(sw.priority("x", 1), None), P(None, sw.priority("x", 0))
    program = sw.jit(f, mesh=mesh, static_argnums=(2, 3)).lower(X, X, rows, columns).compile()
    assert program.output_shardings.spec == P(None, "x")
    rows, columns = P(sw.priority("x", 0), None), P(None, sw.priority("x", 1))
    program = sw.jit(f, mesh=mesh, static_argnums=(2, 3)).lower(X, X, rows, columns).compile()
    assert program.output_shardings.spec == P("x", None)


def test_specs_are_put_together_as_in_jax() -> None:
    assert P("x") + P(None, ("y", "z")) == P("x", None, ("y", "z"))
    dims: tuple[Any, ...] = ("x", None)
    assert P("y") + dims == P("y", "x", None)
    assert dims + P("y") == P("x", None, "y")
    joined = P("a", replicated="b", unreduced="c", reducer="max") + P(replicated={"d"})
    assert joined == P("a", replicated={"b", "d"}, unreduced="c", reducer="max")
    with pytest.raises(TypeError, match="unsupported operand"):
        P("x") + "y"  # type: ignore[operator]
