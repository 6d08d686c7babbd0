# SPDX-License-Identifier: Apache-2.0
"""Linear algebra of JAX's texts runs, whole and with the batch over 8 devices; gradients are those of jax.grad."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.conformance.jax.linalg_losses import losses
from tests.support.once_per_run import written_by

WORKER = "tests.conformance.jax.linalg_worker"
BATCH = 8
MESH = sw.Mesh({"d": BATCH})


@pytest.fixture(scope="module")
def by_jax(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return np.load(written_by(tmp_path_factory, WORKER, "out.npz"))


def arrays(by_jax: Any, name: str) -> list[np.ndarray]:
    count = sum(key.startswith(f"{name}/") for key in by_jax.files)
    return [by_jax[f"{name}/{i}"] for i in range(count)]


def with_split_batch(text: str) -> str:
    """The same program with dim 0 of every argument sharded over the devices."""

    def annotated(argument: re.Match[str]) -> str:
        dims = ", {}" * (argument[2].replace("complex", "").count("x") - 1)
        return f'{argument[1]}: tensor<{argument[2]}> {{sdy.sharding = #sdy.sharding<@mesh, [{{"d"}}{dims}]>}}'

    text = re.sub(r"(module @[^\n]*\n)", rf'\1  sdy.mesh @mesh = <["d"={BATCH}]>\n', text, count=1)
    signature = re.search(r"func\.func public @main\(.*?\) ->", text)
    assert signature
    pattern = r"(%arg\d+)\s*: tensor<([^<>]*(?:<[^>]*>)?)>(?: \{[^}]*\})?"
    return text.replace(signature[0], re.sub(pattern, annotated, signature[0]), 1)


def results_of(returned: Any) -> list[np.ndarray]:
    return [np.asarray(result) for result in (returned if isinstance(returned, tuple) else (returned,))]


def projections(vectors: np.ndarray) -> np.ndarray:
    """The projection onto each eigenvector: the vectors themselves have a factor that each LAPACK chooses."""
    return np.einsum("bik,bjk->bkij", vectors, vectors.conj())


def check(name: str, text: str, arguments: list[np.ndarray], expected: list[np.ndarray]) -> None:
    program = sw.parse(text, f"{name}.mlir").compile()
    whole = results_of(program.run(*arguments))
    assert len(whole) == len(expected)
    for i, (result, wanted) in enumerate(zip(whole, expected)):
        assert result.dtype == wanted.dtype
        if (name, i) == ("eig", 1):
            result, wanted = projections(result), projections(wanted)
        scale = np.max(np.abs(wanted[np.isfinite(wanted)]), initial=1)
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4 * scale, err_msg=name)
    if any(x.shape[0] != BATCH for x in arguments):
        return
    split = sw.parse(with_split_batch(text)).compile()
    for mode in ({}, {"faithful": True, "poison": True}):
        for result, wanted in zip(results_of(split.run(*arguments, **mode)), whole):
            np.testing.assert_array_equal(result, wanted, err_msg=name)


def test_texts_run_as_in_jax(by_jax: Any) -> None:
    names = [key.removesuffix("/text") for key in by_jax.files if key.endswith("/text")]
    assert len(names) > 30
    run = 0
    for name in names:
        text = str(by_jax[f"{name}/text"])
        run += 1
        check(name, text, arrays(by_jax, f"{name}/argument"), arrays(by_jax, f"{name}/result"))
    assert run > 30


def test_a_split_batch_needs_no_communication(by_jax: Any) -> None:
    for name in ("cholesky", "qr", "eigh", "svd"):
        text = with_split_batch(str(by_jax[f"{name}/text"]))
        assert not sw.parse(text).compile().collectives().rows, name


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("n", [2, 4, 40])
def test_a_factor_of_a_matrix_with_nan_is_nan(n: int, dtype: str) -> None:
    """As LAPACK's own potrf reports it; OpenBLAS returns a factor with some zeros."""
    a = np.stack([np.full((n, n), np.nan), np.eye(n), np.eye(n) * 4]).astype(dtype)
    a[1, n - 1, n - 2] = np.nan
    found = np.asarray(sw.jit(lambda x: np.linalg.cholesky(x), mesh=MESH)(a))
    assert np.isnan(found[:2]).all()
    np.testing.assert_array_equal(found[2], np.eye(n) * 2)


def test_gradients_are_those_of_jax(by_jax: Any) -> None:
    for name, (loss, xs) in losses(np).items():
        found = sw.jit(sw.grad(loss, tuple(range(len(xs)))), mesh=MESH)(*xs)
        expected = arrays(by_jax, f"gradient/{name}")
        assert len(found) == len(expected)
        for got, wanted in zip(found, expected):
            np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-7, atol=1e-8, err_msg=name)
