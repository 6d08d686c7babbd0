# SPDX-License-Identifier: Apache-2.0
"""Known boolean masks as indices: reads, updates and gradients are NumPy's on every sharding, uneven dims included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"x": 4, "y": 2})
RNG = np.random.default_rng(5)
X = RNG.normal(size=(7, 5, 6))
ROWS = np.array([True, False, True, True, False, False, True])
COLUMNS = np.array([False, True, True, False, True])
LAST = np.array([True, True, False, False, True, True])
PAIRS = RNG.random((7, 5)) < 0.4
INNER = RNG.random((5, 6)) < 0.4
WHOLE = RNG.random((7, 5, 6)) < 0.3

MASKS: dict[str, Any] = {
    "rows": ROWS,
    "columns": np.s_[:, COLUMNS],
    "last": np.s_[..., LAST],
    "pairs": PAIRS,
    "inner": np.s_[:, INNER],
    "inner by ellipsis": np.s_[..., INNER],
    "whole": WHOLE,
    "nothing": np.zeros(7, bool),
    "everything": np.ones((7, 5), bool),
    "list": ROWS.tolist(),
    "list in a tuple": (slice(None), COLUMNS.tolist()),
    "slices": np.s_[ROWS, 1:4, ::-1],
    "slice before": np.s_[1::2, COLUMNS],
    "number beside": np.s_[2, COLUMNS],
    "number apart": np.s_[2, :, LAST],
    "number after": np.s_[PAIRS, -1],
    "None": np.s_[None, ROWS, None],
    "ids beside": np.s_[COLUMNS.nonzero()[0][[0, 0, 1, 2]], :, LAST],
    "mask and ids": np.s_[ROWS, [0, 4, -1, 4]],
    "mask apart from ids": np.s_[ROWS, :, [0, 4, -1, 4]],
    "two masks": np.s_[[True, False, True, False, False, False, True], COLUMNS],
    "mask and column of ids": np.s_[np.array([[0], [3]]), COLUMNS],
}
SPECS = [None, P("x"), P(None, "x", "y"), P("y", None, "x"), P(("x", "y"))]


def runs(function: Callable[..., Any], *args: Any, spec: Any) -> list[Any]:
    """Results under both executor modes, the first argument sharded."""
    program = sw.jit(function, mesh=MESH, in_shardings=(spec, *[None] * (len(args) - 1))).lower(*args).compile()
    return [program.run(*args, **options) for options in ({}, {"faithful": True, "poison": True})]


ONE_VALUE: dict[str, Callable[[Any, Any], Any]] = {
    "set": lambda x, mask: sw.at(x, mask).set(-np.inf),
    "add": lambda x, mask: sw.at(x, mask).add(2.5),
    "subtract": lambda x, mask: sw.at(x, mask).subtract(1.5),
    "multiply": lambda x, mask: sw.at(x, mask).multiply(3.0),
    "divide": lambda x, mask: sw.at(x, mask).divide(4.0),
    "power": lambda x, mask: sw.at(x, mask).power(2.0),
    "min": lambda x, mask: sw.at(x, mask).min(0.0),
    "max": lambda x, mask: sw.at(x, mask).max(0.0),
}


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("mask", [WHOLE, PAIRS, ROWS], ids=["whole", "pairs", "rows"])
@pytest.mark.parametrize("name", ONE_VALUE)
def test_one_value_is_written_where_a_traced_mask_is_true(name: str, mask: np.ndarray, spec: Any) -> None:
    want = ONE_VALUE[name](X, mask)
    rtol = 4e-16 if name == "power" else 0  # NumPy has powers of its own for masked elements
    for got in runs(ONE_VALUE[name], X, mask, spec=spec):
        np.testing.assert_allclose(np.asarray(got), want, rtol=rtol)


def test_a_gradient_passes_where_a_traced_mask_is_false() -> None:
    def loss(x: Any, mask: Any) -> Any:
        return np.sum(sw.at(x, mask).set(0.0) ** 2)

    got = sw.jit(sw.grad(loss), mesh=MESH, in_shardings=(P("x"), None))(X, PAIRS)
    np.testing.assert_allclose(np.asarray(got), np.where(PAIRS[..., None], 0, 2 * X))


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("name", MASKS)
def test_reading_by_a_mask_is_numpys(name: str, spec: Any) -> None:
    index = MASKS[name]
    for got in runs(lambda x: x[index], X, spec=spec):
        np.testing.assert_array_equal(np.asarray(got), X[index])


@pytest.mark.parametrize("name", MASKS)
def test_reading_outside_jit_and_in_plain_numpy(name: str) -> None:
    index = MASKS[name]
    held = sw.device_put(X, sw.NamedSharding(MESH, P("x")))
    np.testing.assert_array_equal(np.asarray(held[index]), X[index])
    np.testing.assert_array_equal(np.asarray(held.at[index].get()), X[index])
    np.testing.assert_array_equal(sw.at(X, index).get(), X[index])


UPDATES: dict[str, Callable[[Any, Any, Any], None]] = {
    "set": lambda x, index, v: x.__setitem__(index, v), "add": np.add.at, "multiply": np.multiply.at,
    "max": np.maximum.at,
}  # fmt: skip


def updated(how: str, index: Any, values: Any) -> np.ndarray:
    result = X.copy()
    UPDATES[how](result, index, values)
    return result


@pytest.mark.parametrize("spec", SPECS[1:4], ids=str)
@pytest.mark.parametrize("how", UPDATES)
@pytest.mark.parametrize("name", MASKS)
def test_updating_by_a_mask_is_numpys(name: str, how: str, spec: Any) -> None:
    index = MASKS[name]
    values = RNG.normal(size=X[index].shape)
    for v in (values, 2.5):
        want = updated(how, index, v)
        for got in runs(lambda x, v: getattr(x.at[index], how)(v), X, v, spec=spec):
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-15)
        np.testing.assert_allclose(getattr(sw.at(X, index), how)(v), want, rtol=1e-15)
    held = sw.device_put(X, sw.NamedSharding(MESH, spec))
    np.testing.assert_allclose(
        np.asarray(getattr(held.at[index], how)(values)), updated(how, index, values), rtol=1e-15
    )


@pytest.mark.parametrize("spec", SPECS[1:4], ids=str)
@pytest.mark.parametrize("name", ["rows", "columns", "inner", "whole", "number apart", "mask apart from ids"])
def test_gradients_of_reads_and_updates(name: str, spec: Any) -> None:
    index = MASKS[name]
    weights, values = RNG.normal(size=X[index].shape), RNG.normal(size=X[index].shape)

    def read(x: Any) -> Any:
        return np.sum(x[index] * x[index] * weights)

    want = np.zeros_like(X)
    np.add.at(want, index, 2 * X[index] * weights)
    for got in runs(sw.grad(read), X, spec=spec):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12, atol=1e-12)

    def written(x: Any, v: Any) -> Any:
        return np.sum(x.at[index].set(v) * X) + np.sum(x.at[index].multiply(3.0) * X)

    by_x, by_v = X.copy(), X[index]
    by_x[index] = 0
    if name != "mask apart from ids":  # an element that is named twice has no gradient that NumPy could tell
        by_x = by_x + X * updated("multiply", index, 3.0) / X
        for got in runs(sw.grad(written, (0, 1)), X, values, spec=spec):
            np.testing.assert_allclose(np.asarray(got[0]), by_x, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(np.asarray(got[1]), by_v, rtol=1e-12, atol=1e-12)


def test_one_value_at_a_mask_sends_nothing() -> None:
    program = sw.jit(lambda x: x.at[ROWS].set(0), mesh=MESH, in_shardings=P("x", "y")).lower(X).compile()
    sw.testing.assert_collectives(program, bytes_max=0)
    sw.testing.assert_matches_unpartitioned(lambda x: sw.at(x, ROWS).set(0), X, mesh=MESH, in_shardings=P("x", "y"))


def test_a_mask_on_a_mesh_is_known_outside_jit() -> None:
    held = sw.device_put(X, sw.NamedSharding(MESH, P("x")))
    np.testing.assert_array_equal(np.asarray(held[held > 0]), X[X > 0])
    np.testing.assert_array_equal(np.asarray(held.at[held < 0].set(0)), np.maximum(X, 0))
    mask = held > 0
    np.testing.assert_array_equal(np.asarray(sw.jit(lambda x: x[mask], mesh=MESH)(X)), X[X > 0])


def test_a_mask_under_vmap() -> None:
    got = sw.jit(sw.vmap(lambda x: (x[COLUMNS], x.at[COLUMNS].set(1))), mesh=MESH, in_shardings=P("x"))(X)
    np.testing.assert_array_equal(np.asarray(got[0]), X[:, COLUMNS])
    np.testing.assert_array_equal(np.asarray(got[1]), np.where(COLUMNS[:, None], 1, X))


# ---- traced masks of updates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["set", "add", "subtract", "multiply", "divide", "power", "min", "max"])
@pytest.mark.parametrize("spec", [None, P("x"), P("x", None, "y")])
def test_one_value_at_a_traced_mask(how: str, spec: P | None) -> None:
    def whole(x: Any) -> Any:
        return getattr(sw.at(x, x > 0), how)(2.0)

    def rows(x: Any) -> Any:
        return getattr(sw.at(x, (x[:, 0, 0] > 0,)), how)(x[0, 0, 0])

    program = sw.testing.assert_matches_unpartitioned(whole, X, mesh=MESH, in_shardings=(spec,))
    assert program.collectives().by_kind() == {}
    sw.testing.assert_matches_unpartitioned(rows, np.abs(X), mesh=MESH, in_shardings=(spec,))


def test_gradient_of_an_update_at_a_traced_mask() -> None:
    def loss(x: Any, value: Any) -> Any:
        return np.sum(sw.at(x, x < 0).set(value) ** 2)

    gradients = sw.grad(loss, argnums=(0, 1))
    sw.testing.assert_matches_unpartitioned(gradients, X, np.float64(3.0), mesh=MESH, in_shardings=(P("x"), None))


def test_an_update_of_an_array_by_its_own_mask() -> None:
    held = sw.device_put(X, sw.NamedSharding(MESH, P("x")))
    assert np.array_equal(np.asarray(held.at[held < 0].set(0)), np.where(X < 0, 0, X))


def test_a_numpy_array_is_updated_at_a_traced_mask() -> None:
    result = sw.jit(lambda m: sw.at(np.zeros(7), m).set(1), mesh=MESH)(ROWS)
    assert np.array_equal(np.asarray(result), ROWS.astype(float))
