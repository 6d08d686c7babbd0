# SPDX-License-Identifier: Apache-2.0
"""The losses of `sw.nn` against the formulas of Optax, written with JAX."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.nn.against_jax import JAX, MESH, check, check_gradient, near, of_jax

RNG = np.random.default_rng(7)
A, B = RNG.normal(size=(2, 4, 5)) * 3
LABELS = np.array([0, 4, -1, 2])
jnp: Any = JAX.numpy


def cross_entropy(logits: Any, labels: Any, axis: Any = -1) -> Any:
    return -(labels * JAX.nn.log_softmax(logits, axis)).sum(axis)


def of_integers(logits: Any, labels: Any, axis: int = -1) -> Any:
    chosen = jnp.take_along_axis(logits, jnp.expand_dims(labels, axis), axis, mode="fill").squeeze(axis)
    return JAX.nn.logsumexp(logits, axis) - chosen


def binary(logits: Any, labels: Any) -> Any:
    return -labels * JAX.nn.log_sigmoid(logits) - (1 - labels) * JAX.nn.log_sigmoid(-logits)


def huber(a: Any, b: Any, delta: float = 1.0) -> Any:
    errors = jnp.abs(a - b)
    square = jnp.minimum(errors, delta)
    return 0.5 * square**2 + delta * (errors - square)


def log_cosh(a: Any, b: Any) -> Any:
    return jnp.logaddexp(a - b, b - a) - jnp.log(2.0).astype(a.dtype)


def cosine(a: Any, b: Any, axis: Any = -1) -> Any:
    norms = jnp.linalg.norm(a, axis=axis) * jnp.linalg.norm(b, axis=axis)
    return (a * b).sum(axis) / norms


OF_TWO: dict[str, tuple[Any, dict[str, Any]]] = {
    "softmax_cross_entropy": (cross_entropy, {"axis": 0}),
    "sigmoid_binary_cross_entropy": (binary, {}),
    "squared_error": (lambda a, b: (a - b) ** 2, {}),
    "l2_loss": (lambda a, b: (a - b) ** 2 / 2, {}),
    "huber_loss": (huber, {"delta": 0.5}),
    "log_cosh": (log_cosh, {}),
    "cosine_similarity": (cosine, {"axis": 0}),
}


@pytest.mark.parametrize("name", OF_TWO)
def test_results_and_gradients_are_those_of_the_formula(name: str) -> None:
    theirs, options = OF_TWO[name]
    ours = getattr(sw.nn, name)
    check(ours, theirs, A.astype(np.float32), np.abs(B).astype(np.float32))
    check_gradient(ours, theirs, A, np.abs(B))
    if options:
        near(ours(A, B, **options), of_jax(partial(theirs, **options), [A, B]))
    found = ours(A.astype(sw.bfloat16), B.astype(sw.bfloat16))
    assert found.dtype == sw.bfloat16
    np.testing.assert_allclose(found.astype(float), ours(A, B), rtol=0.05, atol=0.3)


@pytest.mark.parametrize("axis", [0, -1])
def test_labels_are_classes(axis: int) -> None:
    labels = LABELS if axis else np.array([3, 0, -4, 1, 2])
    ours = partial(sw.nn.softmax_cross_entropy_with_integer_labels, axis=axis)
    for dtype in (np.float64, np.float32):
        check(ours, partial(of_integers, axis=axis), A.astype(dtype), labels.astype(np.int64))
    check_gradient(lambda x: ours(x, labels), lambda x: of_integers(x, labels, axis), A)
    assert ours(A.astype(sw.bfloat16), labels).dtype == sw.bfloat16
    assert np.isnan(ours(A, labels + 5)).any()
    np.testing.assert_array_equal(ours(A, (labels % 4).astype(np.uint8)), ours(A, labels % 4))


def test_split_classes_exchange_three_numbers_per_row() -> None:
    loss = sw.nn.softmax_cross_entropy_with_integer_labels
    program = sw.jit(loss, mesh=sw.Mesh({"x": 4}), in_shardings=(P(None, "x"), P())).lower(A[:, :4], LABELS).compile()
    ledger = program.collectives()
    assert {row.kind for row in ledger} <= {"all_reduce", "reduce_scatter", "all_gather"}
    # An all-reduce of a number of each row sends 3/4 of it twice, as a reduce-scatter and a gather of the loss do.
    assert ledger.total_bytes <= 3 * 2 * 3 / 4 * A[:, 0].nbytes
    assert max(row.bytes for row in ledger) <= 2 * 3 / 4 * A[:, 0].nbytes


def test_large_numbers_and_none() -> None:
    large = np.array([1e4, -1e4, 0.0])
    check(sw.nn.sigmoid_binary_cross_entropy, binary, large, np.array([0.0, 1.0, 1.0]))
    check_gradient(sw.nn.sigmoid_binary_cross_entropy, binary, large, np.array([0.0, 1.0, 1.0]))
    check(sw.nn.log_cosh, log_cosh, large, 0 * large)
    for name in ("squared_error", "l2_loss", "huber_loss", "log_cosh"):
        np.testing.assert_array_equal(getattr(sw.nn, name)(A), getattr(sw.nn, name)(A, 0.0))
    masked = sw.nn.softmax_cross_entropy(A, np.abs(B), where=A > -3)
    assert np.isfinite(masked).all()
    np.testing.assert_allclose(
        masked[0], -(np.abs(B[0]) * np.log(np.exp(A[0]) / np.exp(A[0])[A[0] > -3].sum()))[A[0] > -3].sum()
    )


def test_a_vector_of_zeros() -> None:
    zeros = np.zeros((4, 5))
    assert np.isnan(sw.nn.cosine_similarity(zeros, A)).all()
    np.testing.assert_array_equal(sw.nn.cosine_similarity(zeros, A, epsilon=1e-6), np.zeros(4))
    gradient = sw.jit(sw.grad(lambda x: sw.nn.cosine_similarity(x, A, epsilon=1e-6).sum()), mesh=MESH)(zeros)
    assert np.isfinite(gradient).all()


def test_what_is_refused() -> None:
    with pytest.raises(sw.ShapeError, match=r"nn.l2_loss: predictions and targets must broadcast"):
        sw.nn.l2_loss(A, B[:3])
    with pytest.raises(sw.ShapeError, match=r"integer_labels: labels must have shape \(4,\), got \(3,\)"):
        sw.nn.softmax_cross_entropy_with_integer_labels(A, LABELS[:3])
    with pytest.raises(sw.DTypeError, match=r"integer_labels: indices must be integers"):
        sw.nn.softmax_cross_entropy_with_integer_labels(A, LABELS * 1.0)
