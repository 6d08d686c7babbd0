# SPDX-License-Identifier: Apache-2.0
"""Ops in `jax.lax` give what XLA computes for their text: those that few programs use, or that need no mesh."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from shardwise import _core
from shardwise.interop.to_jax.mesh_axes import MeshAxes
from shardwise.interop.to_jax.scope import Scope, Shared
from shardwise.interop.to_jax.script import helpers_of

RNG = np.random.default_rng(3)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def emitted(text: str) -> Any:
    """The main of a program on one device, written with `jax.lax`."""
    module = _core.ir.parse(text)
    module = _core.passes.run_passes(module, ["inline_calls"])
    scope = Scope(Shared(module, MeshAxes.of(_core.mesh.Mesh("one", [("all", 1)]))))
    arguments = [scope.argument(x, f"x{i}") for i, x in enumerate(module.main.body.arguments)]
    results = scope.region(module.main.body)
    tables = [f"{name} = {value}" for value, name in scope.shared.tables.items()]
    functions = [line for lines in scope.shared.functions.values() for line in lines]
    lines = [*tables, *helpers_of(tuple(scope.shared.helpers)), *functions]
    lines += [f"def local({', '.join(arguments)}):", *scope.lines]
    namespace: dict[str, Any] = {"jax": jax, "jnp": jnp, "lax": lax, "np": np, "CONSTANTS": scope.shared.constants}
    exec("\n".join([*lines, f"    return ({results},)"]), namespace)
    return namespace["local"]


SPD = np.eye(4, dtype=np.float32) * 3 + 0.1 * np.ones((4, 4), np.float32)
KEYS = np.array([3.0, -0.0, np.nan, 1.0, 0.0, -2.0], np.float32)
CASES: dict[str, tuple[Any, ...]] = {
    "convolution": (lambda x, k: lax.conv_general_dilated(
        x, k, (2, 1), ((1, 1), (0, 2)), (1, 2), (1, 1), ("NHWC", "HWIO", "NHWC"), 2),
        normal(2, 6, 5, 4), normal(3, 2, 2, 6)),
    "gradient of a convolution": (jax.grad(
        lambda k, x: (lax.conv(x, k, (1, 1), "SAME") ** 2).sum()), normal(3, 2, 3, 3), normal(2, 2, 5, 5)),
    "fft": (lambda x: jnp.fft.rfft(x).real + jnp.fft.fft(x).imag[..., :5], normal(3, 8)),
    "cholesky": (lambda x: lax.linalg.cholesky(x, symmetrize_input=False), SPD),
    "triangular solve": (lambda a, b: lax.linalg.triangular_solve(
        a, b, left_side=True, lower=True, transpose_a=True), np.tril(SPD), normal(4, 3)),
    "sort": (lambda x: lax.sort(x), KEYS),
    "argsort, descending": (lambda x: jnp.argsort(x, descending=True), KEYS),
    "sort by two keys": (lambda x, y: lax.sort((x, y, x * 2), num_keys=2), KEYS.round(), normal(6)),
    "top k": (lambda x: lax.top_k(x, 2), normal(3, 6)),
    "random bits": (lambda: lax.rng_bit_generator(np.array([1, 2], np.uint64), (5, 3), algorithm=1),),
    "integer power": (lambda x: x**5 + jnp.power(2, x), np.arange(5, dtype=np.int32)),
    "branches": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda y: y * 2], x), np.int32(7), normal(3)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_op_is_what_its_text_says(name: str) -> None:
    function, *arguments = CASES[name]
    with jax.enable_x64(name == "random bits"):
        expected = jax.tree.leaves(jax.jit(function)(*arguments))
        avals = [jax.ShapeDtypeStruct(np.shape(x), x.dtype) for x in arguments]
        text = jax.jit(function).trace(*avals).lower(lowering_platforms=("tpu",)).as_text()
        results = jax.jit(emitted(text))(*arguments)
        assert len(results) == len(expected)
        for got, want in zip(results, expected):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5, atol=1e-6)
