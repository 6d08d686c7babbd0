# SPDX-License-Identifier: Apache-2.0
"""Texts of `shard_map` that JAX lowers without Shardy: GSPMD's calls around a manual region are read as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, PartitionSpec as Q

import shardwise as sw

MESH = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
X = np.arange(32, dtype=np.float32).reshape(8, 4)


def mapped(body: Any, ins: Any, outs: Any, axes: Any = frozenset()) -> Any:
    return jax.shard_map(body, mesh=MESH, in_specs=ins, out_specs=outs, axis_names=axes)


centered = mapped(lambda x: x - lax.pmean(x, ("x", "y")), Q("x", "y"), Q("x", "y"))


def nested(x: Any) -> Any:
    def inner(b: Any) -> Any:
        return b * lax.psum(b, "y")

    def outer(a: Any) -> Any:
        return jax.shard_map(inner, in_specs=Q(None, "y"), out_specs=Q(None, "y"), axis_names={"y"})(a) + 1

    return mapped(outer, Q("x"), Q("x"), {"x"})(x)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": mapped(lambda x: lax.psum(x * 2, "x"), Q("x"), Q()),
    "two values": lambda x: mapped(lambda a, b: (a * lax.axis_index("x"), b), (Q("x"), Q(None, "y")),
                                   (Q("x"), Q(None, "y")))(x, x + 1),
    "some axes": mapped(lambda x: lax.with_sharding_constraint(x * 2, Q(None, "y")), Q("x"), Q("x"), {"x"}),
    "loop": mapped(
        lambda x: lax.fori_loop(0, 3, lambda i, v: lax.ppermute(v, "x", [(0, 1), (1, 0), (2, 3), (3, 2)]) + i, x),
        Q("x"), Q("x"), {"x"},
    ),
    "two regions": lambda x: centered(jnp.sin(centered(x))) + 1,
    "in a loop": lambda x: lax.fori_loop(0, 3, lambda i, v: centered(v) + i, x),
    "gradient": jax.grad(lambda x: (centered(x) ** 2).sum()),
    "scatter": mapped(lambda x: lax.psum_scatter(x, "x", tiled=True), Q("y"), Q(("y", "x"))),
    "unused input": lambda x: mapped(lambda a, b: a * 2, (Q("x"), Q("y")), Q("x"))(x, x),
    "constant result": lambda x: mapped(lambda a: (jnp.ones((2, 4)) * 3, a), Q("x"), (Q("x"), Q("x")))(x),
    "nested": nested,
}  # fmt: skip


@pytest.fixture(autouse=True)
def without_shardy() -> Iterator[None]:
    jax.config.update("jax_use_shardy_partitioner", False)
    yield
    jax.config.update("jax_use_shardy_partitioner", True)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_region_runs_with_the_numbers_of_jax(name: str) -> None:
    function = jax.jit(FUNCTIONS[name])
    text = function.lower(X).as_text()
    assert "@SPMDFullToShardShape" in text
    module = sw.parse(text)
    assert "SPMD" not in str(module)
    assert "sdy.manual_computation" in str(module)
    assert str(sw.parse(str(module))) == str(module)
    found = module.compile()(X)
    jax.config.update("jax_use_shardy_partitioner", True)
    expected = jax.tree.leaves(FUNCTIONS[name](X))
    for own, other in zip(found if isinstance(found, (list, tuple)) else [found], expected, strict=True):
        np.testing.assert_allclose(own, np.asarray(other), rtol=1e-6, atol=1e-6)
