# SPDX-License-Identifier: Apache-2.0
"""Ops in `jax.lax` and in NumPy give what XLA computes for their text: those that few programs use."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shardwise as sw
from shardwise import _core
from shardwise.interop.source.library import helpers_of
from shardwise.interop.source.mesh_axes import MeshAxes
from shardwise.interop.source.scope import Scope, Shared
from shardwise.interop.source.target import Target
from shardwise.interop.to_jax import JAX
from shardwise.interop.to_mpi4py import MPI4PY

RNG = np.random.default_rng(3)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def emitted(text: str, target: Target) -> Any:
    """The main of a program on one device, written for a target."""
    module = _core.ir.parse(text)
    module = _core.passes.run_passes(module, ["inline_calls"])
    scope = Scope(Shared(module, MeshAxes.of(_core.mesh.Mesh("one", [("all", 1)])), target))
    arguments = [scope.argument(x, f"x{i}") for i, x in enumerate(module.main.body.arguments)]
    results = scope.region(module.main.body)
    tables = [f"{name} = {value}" for value, name in scope.shared.tables.items()]
    functions = [line for lines in scope.shared.functions.values() for line in lines]
    helpers = helpers_of(target, tuple(scope.shared.helpers))
    lines = [*helpers, *tables, *functions, f"def local({', '.join(arguments)}):", *scope.lines]
    modules = {"jax": jax, "jnp": jnp, "lax": lax} if target is JAX else {"functools": functools, "math": math}
    namespace: dict[str, Any] = {**modules, "np": np, "CONSTANTS": scope.shared.constants}
    exec("\n".join([*lines, f"    return ({results},)"]), namespace)
    return jax.jit(namespace["local"]) if target is JAX else namespace["local"]


@jax.jit
def called(x: Any) -> tuple[Any, Any]:
    """A function that is too large to be inlined."""
    y = x
    for _ in range(7):
        y = jnp.sin(y) * 2
    return y, y.sum()


SPD = np.eye(4, dtype=np.float32) * 3 + 0.1 * np.ones((4, 4), np.float32)
KEYS = np.array([3.0, -0.0, np.nan, 1.0, 0.0, -2.0], np.float32)
CASES: dict[str, tuple[Any, ...]] = {
    "convolution": (lambda x, k: lax.conv_general_dilated(
        x, k, (2, 1), ((1, 1), (0, 2)), (1, 2), (1, 1), ("NHWC", "HWIO", "NHWC"), 2),
        normal(2, 6, 5, 4), normal(3, 2, 2, 6)),
    "gradient of a convolution": (jax.grad(
        lambda k, x: (lax.conv(x, k, (1, 1), "SAME") ** 2).sum()), normal(3, 2, 3, 3), normal(2, 2, 5, 5)),
    "calls": (lambda x: called(called(x)[0] + called(x)[1]), normal(3, 4)),
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
    "grouped convolution": (lambda x, k: lax.conv_general_dilated(
        x, k, (1, 2), "SAME", feature_group_count=3), normal(2, 6, 5, 5), normal(9, 2, 3, 3)),
    "windows": (lambda x: (lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 2), "SAME"), lax.reduce_window(
        x, -np.inf, lax.max, (3, 1), (2, 1), ((1, 1), (0, 0)), (1, 2), (2, 1))), normal(6, 5)),
    "argmax": (lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0)), normal(4, 7).round()),
    "batched gather": (lambda x, i: jnp.take_along_axis(x, i, 1), normal(4, 5), np.arange(12).reshape(4, 3) % 5),
    "scatter of windows": (lambda x, i, u: x.at[:, i].multiply(u), normal(3, 8), np.array([7, 2, 7]), normal(3, 3)),
    "special functions": (lambda x: (lax.erf(x), lax.lgamma(x), lax.erfc(x), lax.clz(x.astype(int)),
        lax.population_count(x.astype(int)), lax.reduce_precision(x, 5, 7), lax.round(x * 2)), normal(9)),
    "integer division": (lambda x, y: (lax.div(x, y), lax.rem(x, y), lax.shift_right_logical(x, abs(y))),
        np.arange(-8, 8, dtype=np.int32), np.arange(16, dtype=np.int32) % 5 - 2),
    "branches": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda y: y * 2], x), np.int32(7), normal(3)),
}  # fmt: skip


@pytest.mark.parametrize("target", [JAX, MPI4PY], ids=lambda target: target.name)
@pytest.mark.parametrize("name", CASES)
def test_an_op_is_what_its_text_says(name: str, target: Target) -> None:
    function, *arguments = CASES[name]
    with jax.enable_x64(name == "random bits"):
        expected = jax.tree.leaves(jax.jit(function)(*arguments))
        avals = [jax.ShapeDtypeStruct(np.shape(x), jax.dtypes.canonicalize_dtype(x.dtype)) for x in arguments]
        text = jax.jit(function).trace(*avals).lower(lowering_platforms=("tpu",)).as_text()
        if name == "random bits" and target is MPI4PY:
            with pytest.raises(sw.UnsupportedError, match="NumPy has no generator with these bits; draw them with sw"):
                emitted(text, target)
            return
        with np.errstate(all="ignore"):
            results = emitted(text, target)(*arguments)
        assert len(results) == len(expected)
        for got, want in zip(results, expected):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5, atol=1e-5)
