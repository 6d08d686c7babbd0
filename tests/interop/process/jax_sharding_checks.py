# SPDX-License-Identifier: Apache-2.0
"""Shardings that a program found, for functions that XLA partitions. Runs in a process of its own on 8 host devices."""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import pytest
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import PartitionSpec

import shardwise as sw
from shardwise import P


def network(x: Any, w1: Any, w2: Any) -> Any:
    hidden = checkpoint_name(jax.numpy.tanh(x @ w1), "hidden")
    return hidden @ w2


def test_found_shardings_are_options_of_jax_jit_and_constraints() -> None:
    arrays = [np.ones(shape, np.float32) for shape in ((8, 4), (4, 6), (6, 4))]
    function = sw.from_jax(network)
    mesh = sw.Mesh({"data": 4, "model": 2})
    annotated = sw.jit(function, mesh=mesh, in_shardings=(P("data"), P(None, "model"), None), out_shardings=P("data"))
    program = annotated.lower(*arrays).compile()
    found = program.jax_shardings()

    assert [s.spec for s in found.in_shardings] == [
        PartitionSpec("data"),
        PartitionSpec(None, "model"),
        PartitionSpec("model"),
    ]
    assert found.out_shardings.spec == PartitionSpec("data")
    jitted = jax.jit(network, **found._asdict())
    np.testing.assert_allclose(np.asarray(jitted(*arrays)), np.asarray(network(*arrays)), rtol=1e-6)
    constrained = jax.jit(sw.annotate_jax(network, program))
    np.testing.assert_allclose(np.asarray(constrained(*arrays)), np.asarray(network(*arrays)), rtol=1e-6)
    text = constrained.lower(*arrays).as_text()
    assert "sdy.sharding_constraint" in text
    assert '[{"data"}, {"model"}]' in text  # hidden
    abstract = jax.sharding.AbstractMesh((4, 2), ("data", "model"))
    assert program.jax_shardings(mesh=abstract).out_shardings.mesh == abstract


def test_an_array_of_jax_brings_its_sharding() -> None:
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    by_rows, by_columns = (
        jax.device_put(x, jax.NamedSharding(mesh, spec))
        for spec in (PartitionSpec("data"), PartitionSpec(None, "data"))
    )
    own = sw.Mesh({"data": 4, "model": 2})
    function = sw.jit(np.sin, mesh=own)
    assert [function(v).sharding.spec for v in (by_rows, by_columns, x)] == [
        P("data", None),
        P(None, "data"),
        P(None, None),
    ]
    square = sw.from_jax(lambda x: jax.numpy.sum(x * x))
    assert sw.grad(square)(by_rows).sharding == sw.NamedSharding(own, P("data", None))
    with pytest.raises(sw.MeshError, match="must be on meshes over the same devices"):
        sw.jit(np.sin, mesh=sw.Mesh({"x": 4}))(by_rows)


def constraints(text: str) -> list[str]:
    return re.findall(r"sdy.sharding_constraint \S+ <@mesh, (\[.*?\])>", text)


def layers(x: Any, w: Any) -> Any:
    h = checkpoint_name(jax.numpy.tanh(x @ w), "h")
    h = checkpoint_name(h.sum(1), "h")
    return h * 2


def test_a_name_that_is_used_twice_stands_for_both_values() -> None:
    """Also for values of different ndim, as the layers of a model name them."""
    arguments = np.ones((8, 4), np.float32), np.ones((4, 6), np.float32)
    mesh = sw.Mesh({"x": 4, "y": 2})
    program = sw.jit(sw.from_jax(layers), mesh=mesh, in_shardings=(P("x"), P(None, "y"))).lower(*arguments).compile()
    constrained = jax.jit(sw.annotate_jax(layers, program))
    np.testing.assert_allclose(np.asarray(constrained(*arguments)), np.asarray(layers(*arguments)), rtol=1e-6)
    named = constraints(constrained.lower(*arguments).as_text())[2:4]  # behind those of the arguments
    assert named == ['[{"x"}, {"y"}]', '[{"x"}]']


def test_a_name_of_other_values_is_an_error() -> None:
    arguments = np.ones((8, 4), np.float32), np.ones((4, 6), np.float32)
    program = sw.jit(sw.from_jax(layers), mesh=sw.Mesh({"x": 4})).lower(*arguments).compile()

    def other(x: Any, w: Any) -> Any:
        return checkpoint_name(jax.numpy.tanh(x @ w).sum(1), "h")

    with pytest.raises(
        sw.ShardingError, match=r"annotate_jax: name 'h' must stand for the same values .*, got 1 in the "
    ):
        sw.annotate_jax(other, program)(*arguments)
