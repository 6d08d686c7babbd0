# SPDX-License-Identifier: Apache-2.0
"""How the calls of cases.py are compared with JAX: on NumPy arrays, on sharded ones, and their gradients."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import shardwise as sw
from shardwise import P
from tests.lax.cases import Case, weights

WORKER = "tests.lax.jax_worker"
MESHES = (sw.Mesh({"x": 2, "y": 2}), sw.Mesh({"x": 3}))


def rows_of(result: Any) -> list[Any]:
    """The arrays of a result."""
    return result if isinstance(result, list) else [result]


def called(case: Case, arrays: list[Any]) -> list[Any]:
    """The arrays that the call returns."""
    return rows_of(case.function(sw.lax, np, *arrays))


def with_gradients(case: Case, *arrays: Any) -> tuple[list[Any], list[Any]]:
    """The arrays that the call returns, and the gradients of a weighted sum by each argument."""

    def loss(*xs: Any) -> Any:
        rows = called(case, list(xs))
        return sum((row * weights(row.shape, row.dtype)).sum().astype(np.float32) for row in rows), rows

    if not case.differentiated:
        return called(case, list(arrays)), []
    found, rows = sw.grad(loss, tuple(range(len(arrays))), has_aux=True)(*arrays)
    return rows, list(found)


def specs(case: Case, array: int, dim: int) -> tuple[P, ...]:
    """One argument split along x, the others free."""
    return tuple(P(*[None] * dim, "x") if i == array else P() for i in range(len(case.shapes)))


def assert_equal(jax: Any, key: str, found: list[Any], places: int) -> None:
    """Results are those of JAX, with its dtypes."""
    assert f"{key}/{len(found)}" not in jax
    for i, ours in enumerate(found):
        assert ours.dtype.name == str(jax[f"{key}/{i}/dtype"]), key
        theirs = jax[f"{key}/{i}"]
        assert ours.shape == theirs.shape, key
        ours = np.asarray(ours).astype(np.float64)
        if not places:
            np.testing.assert_array_equal(ours, theirs, key)
            continue
        unit = float(ml_dtypes.finfo(found[i].dtype).eps)  # type: ignore[no-untyped-call]
        np.testing.assert_allclose(ours, theirs, rtol=places * unit, atol=places * unit, err_msg=key)


def compare(theme: str, case: Case, jax: Any) -> None:
    """Compare the call with JAX's on NumPy arrays, and as a program for each split and mesh."""
    arrays = case.arrays()
    key = f"{theme}/{case.name}"
    plain = called(case, arrays)
    assert all(type(row) is np.ndarray for row in plain)
    assert_equal(jax, f"{key}/result", plain, case.places)
    # Gradients of 16-bit floats have sums that these do not hold.
    places = max(case.places, 4) if case.dtype == "bfloat16" else case.places
    for split in case.splits or (None,):
        for mesh in MESHES if split else MESHES[:1]:
            options = {} if split is None else {"in_shardings": specs(case, *split)}
            run = sw.jit(lambda *xs: with_gradients(case, *xs), mesh=mesh, **options)
            rows, gradients = run(*arrays)
            assert_equal(jax, f"{key}/result", rows, case.places)
            assert_equal(jax, f"{key}/gradient", gradients, places)


def compare_placed(case: Case) -> None:
    """The call on placed arrays gives placed arrays with the numbers of the plain ones."""
    arrays = case.arrays()
    mesh = MESHES[0]
    placed = [sw.device_put(x, sw.NamedSharding(mesh, spec)) for x, spec in zip(arrays, specs(case, *case.splits[0]))]
    for ours, plain in zip(called(case, placed), called(case, arrays)):
        assert isinstance(ours, sw.Array)
        np.testing.assert_array_equal(np.asarray(ours), plain)
