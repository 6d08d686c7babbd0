# SPDX-License-Identifier: Apache-2.0
"""An element that one device has reaches the others as its bits, and sums of narrow floats stay wide until reduced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import shardwise as sw
from shardwise import P

RNG = np.random.default_rng(21)
LINE = sw.Mesh({"x": 8})
PERMUTED = sw.Mesh({"x": 2, "y": 4}, device_ids=[3, 1, 4, 0, 7, 5, 2, 6])
FLOATS = ["float32", "float64", "float16", "bfloat16", "float8_e4m3fn"]


def patterns(dtype: str, *shape: int) -> np.ndarray:
    """Any bit patterns: signalling NaNs, -0.0 and denormals among them."""
    item = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    found = RNG.integers(0, 256, (*shape, item.itemsize), dtype=np.uint8).view(item)[..., 0]
    if dtype == "float32":
        found.view(np.uint32)[::2] = 0x7F800001
        found.view(np.uint32)[1::4] = 0x80000000
    return found


PLACES = RNG.integers(0, 17, (5, 17)).astype(np.int32)
READS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "row": (lambda x, i: x[i], [np.int32(11)]),
    "take": (lambda x, ids: np.take(x, ids, 0), [np.array([3, 0, 16, 3], np.int32)]),
    "take along an axis": (lambda x, places: np.take_along_axis(x, places, 0), [PLACES]),
    "diagonal": (lambda x: np.diagonal(x), []),
    "moved": (lambda x, i: x[i][::-1].reshape(17, 1), [np.int32(4)]),
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("mesh", [LINE, PERMUTED], ids=["x=8", "permuted"])
def test_bits_are_those_of_the_owner(name: str, mesh: sw.Mesh) -> None:
    function, others = READS[name]
    rows = P("x") if mesh is LINE else P(("y", "x"))
    for turn, dtype in enumerate(FLOATS):
        x = patterns(dtype, 17, 17)
        want = np.asarray(sw.jit(function, mesh=sw.Mesh({"one": 1}))(x, *others))
        out = [P(), rows, None][turn % 3]
        program = sw.jit(function, mesh=mesh, in_shardings=(rows, *(P() for _ in others)), out_shardings=out)
        got = np.asarray(program(x, *others))
        assert got.tobytes() == want.tobytes(), dtype


def test_an_element_is_an_addend_where_a_sum_follows() -> None:
    """The rows and the partial products are reduced together."""

    def function(table: Any, ids: Any, a: Any, b: Any) -> Any:
        return np.take(table, ids, 0) + a @ b

    table, a, b = (RNG.normal(size=shape).astype(np.float32) for shape in [(64, 8), (16, 32), (32, 8)])
    ids = RNG.integers(0, 64, 16).astype(np.int32)
    placed = sw.jit(function, mesh=LINE, in_shardings=(P("x"), P(), P(None, "x"), P("x")), out_shardings=P())
    program = placed.lower(table, ids, a, b).compile()
    assert [row.kind for row in program.collectives()] == ["all_reduce"]
    np.testing.assert_allclose(program.run(table, ids, a, b), function(table, ids, a, b), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.float8_e5m2])
def test_narrow_products_add_up_in_float32(dtype: Any) -> None:
    """Each device's sum overflows; together they are 0."""
    a, b = np.full((4, 512), 224, dtype), np.full((512, 8), 224, dtype)  # wide: moving them would send more than sums
    a[:, 256:] *= -1
    for out in (P(), P("x"), P(None, "x")):
        product = sw.jit(lambda a, b: a @ b, mesh=LINE, in_shardings=(P(None, "x"), P("x")), out_shardings=out)
        np.testing.assert_array_equal(np.asarray(product(a, b)).astype(np.float32), np.zeros((4, 8)))
    program = product.lower(a, b).compile()
    assert [row.type for row in program.collectives()] == ["float32[4,8]"]


# ---- addends ---------------------------------------------------------------------------------------------------------


def test_a_whole_value_is_an_addend_of_a_sum() -> None:
    """x + A + M: one reduction for both partial products."""
    x, a, w, m, v = (
        RNG.normal(size=shape).astype(np.float32) for shape in [(64, 32), (64, 64), (64, 32), (64, 64), (64, 32)]
    )

    def function(x: Any, a: Any, w: Any, m: Any, v: Any) -> Any:
        return x + a @ w + m @ v

    split = (P(), P(None, "x"), P("x"), P(None, "x"), P("x"))
    for out, kind, received in [(P(), "all_reduce", 14336), (P("x"), "reduce_scatter", 7168)]:
        program = sw.jit(function, mesh=LINE, in_shardings=split, out_shardings=out).lower(x, a, w, m, v).compile()
        assert [(row.kind, row.total_bytes) for row in program.collectives()] == [(kind, received)]
        np.testing.assert_allclose(program.run(x, a, w, m, v), function(x, a, w, m, v), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [64, 61, 5])
@pytest.mark.parametrize("how", ["add", "multiply", "maximum"])
def test_updates_of_a_sharded_table_gather_nothing(rows: int, how: str) -> None:
    table, updates = (RNG.integers(1, 3, shape).astype(np.float32) for shape in [(rows, 4), (512, 4)])
    ids = RNG.integers(-rows, rows, 512).astype(np.int32)
    name = {"add": "add", "multiply": "multiply", "maximum": "max"}[how]

    def function(t: Any, i: Any, u: Any) -> Any:
        return getattr(t.at[i], name)(u)

    program = (
        sw.jit(function, mesh=LINE, in_shardings=P("x"), out_shardings=P("x")).lower(table, ids, updates).compile()
    )
    want = table.astype(np.float64)
    getattr(np, how).at(want, ids, updates)
    np.testing.assert_allclose(program.run(table, ids, updates), want, rtol=1e-5)
    if rows == 64:
        assert [(row.kind, row.bytes) for row in program.collectives()] == [("reduce_scatter", 64 * 4 * 4 * 7 / 8)]
