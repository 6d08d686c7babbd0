# SPDX-License-Identifier: Apache-2.0
"""``Program.checkpoint_policy``: JAX keeps what a program within a memory limit keeps."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.ad_checkpoint import print_saved_residuals

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"d": 8})


def loss(weights: Any, x: Any) -> Any:
    for up, down in weights:
        x = x + jax.nn.softmax(jnp.tanh(x @ up) @ down)
    return (x**2).sum()


def arguments(count: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    weights = [tuple(rng.standard_normal(shape, np.float32) / 8 for shape in ((64, 256), (256, 64)))] * count
    return weights, rng.standard_normal((4096, 64), np.float32)


def program(**options: Any) -> sw.Program:
    weights, x = arguments()
    step = sw.jit(sw.from_jax(jax.grad(loss)), mesh=MESH, in_shardings=(P(), P("d")), **options)
    return step.lower(weights, x).compile()


def saved(function: Any, capsys: Any) -> list[str]:
    print_saved_residuals(function, *arguments())
    return [line.partition(" ")[0] for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("is_limited", [False, True])
def test_jax_drops_what_the_program_drops(is_limited: bool, capsys: Any) -> None:
    limit = int(program().memory().peak_bytes * 0.75)
    policy = program(memory_limit=limit).checkpoint_policy() if is_limited else program().checkpoint_policy(limit)
    assert ("stablehlo.exponential", "float32[4096,64]") in policy.kept
    assert "f32[4096,256]" in saved(loss, capsys)
    found = saved(jax.checkpoint(loss, policy=policy), capsys)
    assert "f32[4096,256]" not in found
    assert "f32[4096,64]" in found
    expected = jax.tree.leaves(jax.grad(loss)(*arguments()))
    made = jax.tree.leaves(jax.grad(jax.checkpoint(loss, policy=policy))(*arguments()))
    np.testing.assert_allclose(np.concatenate(made, None), np.concatenate(expected, None), rtol=1e-4, atol=1e-4)


def test_a_program_that_fits_keeps_everything(capsys: Any) -> None:
    policy = program(memory_limit="80GB").checkpoint_policy()
    assert policy.kept is None
    assert repr(policy) == "CheckpointPolicy(all)"
    assert "f32[4096,256]" in saved(jax.checkpoint(loss, policy=policy), capsys)


def test_a_policy_of_a_limit_that_cannot_be_kept_is_refused() -> None:
    with pytest.raises(
        ValueError, match="checkpoint_policy: the program must fit by computing values again, got limit"
    ):
        program().checkpoint_policy("1KiB")
    with pytest.raises(ValueError, match="rematerialized: needs a memory limit"):
        program().checkpoint_policy()
