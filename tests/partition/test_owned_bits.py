# SPDX-License-Identifier: Apache-2.0
"""An element that one device has reaches the others as its bits, and sums of narrow floats stay wide until reduced."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import shardwise as sw
from shardwise import P, _core

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
IDS, MORE_IDS = np.array([3, 0, 16, 3], np.int32), np.array([9, 5, 1, 12], np.int32)
MASK = RNG.integers(0, 2, (4, 17)) == 1


def updated(x: Any, ids: Any, i: Any) -> Any:
    return np.take(x, ids, 0).at[1].set(x[i])


READS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "row": (lambda x, i: x[i], [np.int32(11)]),
    "take": (lambda x, ids: np.take(x, ids, 0), [np.array([3, 0, 16, 3], np.int32)]),
    "take along an axis": (lambda x, places: np.take_along_axis(x, places, 0), [PLACES]),
    "diagonal": (lambda x: np.diagonal(x), []),
    "moved": (lambda x, i: x[i][::-1].reshape(17, 1), [np.int32(4)]),
    "concatenate": (lambda x, i, j: np.concatenate([np.take(x, i, 0), np.take(x, j, 0)]), [IDS, MORE_IDS]),
    "concatenate with zeros": (
        lambda x, i: np.concatenate([np.take(x, i, 0), np.zeros((2, 17), x.dtype), np.take(x, i, 0)]),
        [IDS],
    ),
    "pad with zeros": (lambda x, i: np.pad(np.take(x, i, 0), ((1, 2), (0, 0))), [IDS]),
    "pad with what is read": (
        lambda x, i, j: np.pad(np.take(x, i, 0), ((1, 2), (0, 0)), constant_values=x[j][3]),
        [IDS, np.int32(7)],
    ),
    "update": (updated, [IDS, np.int32(6)]),
    "select": (lambda x, i, j, mask: np.where(mask, np.take(x, i, 0), np.take(x, j, 0)), [IDS, MORE_IDS, MASK]),
    "select or zero": (lambda x, i, mask: np.where(mask, np.take(x, i, 0), np.zeros((), x.dtype)), [IDS, MASK]),
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


@pytest.mark.parametrize("place", [lambda rows, y: np.concatenate([rows, y]), lambda rows, y: np.where(MASK, rows, y)])
def test_elements_beside_addends_keep_their_bits(place: Callable[..., Any]) -> None:
    """They are not reduced together: a sum would make signalling NaNs quiet."""

    def function(x: Any, ids: Any, a: Any, b: Any) -> Any:
        return place(np.take(x, ids, 0), a @ b)

    x, a, b = patterns("float32", 17, 17), np.ones((4, 64), np.float32), np.ones((64, 17), np.float32)
    split = (P("x"), P(), P(None, "x"), P("x"))
    got = sw.jit(function, mesh=LINE, in_shardings=split, out_shardings=P())(x, IDS, a, b)
    assert np.asarray(got).tobytes() == function(x, IDS, a, b).tobytes()


def test_a_text_says_which_values_are_owned() -> None:
    """A text that is read continues as the program that was printed."""

    def function(x: Any, i: Any) -> Any:
        return x[i][::-1] + 1

    jitted = sw.jit(function, mesh=LINE, in_shardings=(P("x"), P()), objective="bytes")
    lowered = jitted.lower(patterns("float32", 64, 17), np.int32(3))
    stages = lowered.compile()._compiled.stages
    text = stages["resharded"].text()
    owned = [line for line in text.splitlines() if "shardwise.owned = true" in line]
    assert re.findall(r"= stablehlo\.(\w+)", "".join(owned)) == ["dynamic_slice", "reshape", "reverse"]
    passes = ["localize", "optimize_collectives", "form_scans"]
    assert _core.passes.run_passes(_core.ir.parse(text), passes).text() == stages["local"].text()
    assert "stablehlo.bitcast_convert" in stages["local"].text()
    # A text without it has addends.
    addends = _core.passes.run_passes(_core.ir.parse(text.replace(", shardwise.owned = true", "")), passes)
    assert "stablehlo.bitcast_convert" not in addends.text()


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


# Sums of float16 that overflow on each device, and are 0 together.
HALVES = np.repeat(np.array([6e4, -6e4], np.float16), 4)


def reduce_text(axes: str) -> str:
    return f"""sdy.mesh @mesh = <["x"={axes}]>
func.func @main(%x: tensor<8xf16> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}) -> tensor<f16> {{
  %zero = stablehlo.constant dense<0.0> : tensor<f16>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] :
      (tensor<8xf16>, tensor<f16>) -> tensor<f16>
  return %0 : tensor<f16>
}}
"""


@pytest.mark.parametrize("devices", ["2", "8"])
def test_a_narrow_reduce_adds_up_in_float32(devices: str) -> None:
    assert sw.parse(reduce_text(devices)).compile()(HALVES) == 0


def bias_gradient(bias: Any, x: Any) -> Any:
    return sw.grad(lambda bias: np.sum((bias + x).astype(np.float32) * (x / 6e4).astype(np.float32) * 6e4))(bias)


NARROW_SUMS: dict[str, tuple[Callable[..., Any], Any, list[Any]]] = {
    "gradient of a bias": (bias_gradient, (P(), P("x")), [np.zeros(3, np.float16), np.repeat(HALVES[:, None], 3, 1)]),
    "scatter": (
        lambda table, ids, updates: table.at[ids].add(updates),
        (P(), P("x"), P("x")),
        [np.zeros(3, np.float16), np.ones(8, np.int32), HALVES[[0, 4, 4, 4, 1, 1, 1, 4]]],
    ),
    "a row of owners": (lambda x: x[:, :2].sum(dtype=np.float16), P("x"), [np.repeat(HALVES[:, None], 3, 1)]),
    "what is read": (
        lambda x, ids: np.take(x, ids, 0).sum(dtype=np.float16),
        (P("x"), P()),
        [HALVES, np.array([0, 1, 2, 3, 4, 5, 6, 7, 0], np.int32)],
    ),
    "scaled": (
        lambda x, ids, other: (np.take(x, ids, 0) + np.take(x, other, 0)) * np.float16(3),
        (P("x"), P(), P()),
        [HALVES, np.array([0, 1], np.int32), np.array([7, 6], np.int32)],
    ),
}


# 6e4, of the bias, is no element of the narrower format, which np.sum converts anyway.
NARROW_ROWS = [
    *((name, np.float16) for name in NARROW_SUMS),
    *((name, ml_dtypes.float8_e5m2) for name in NARROW_SUMS if name != "gradient of a bias"),
]


@pytest.mark.parametrize(("name", "dtype"), NARROW_ROWS)
def test_narrow_sums_are_those_of_one_device(name: str, dtype: Any) -> None:
    function, split, args = NARROW_SUMS[name]
    args = [arg.astype(dtype) if arg.dtype == np.float16 else arg for arg in args]
    want = np.asarray(sw.jit(function, mesh=sw.Mesh({"one": 1}))(*args)).astype(np.float32)
    assert np.isfinite(want).all()
    for mesh in (LINE, sw.Mesh({"x": 2})):
        got = sw.jit(function, mesh=mesh, in_shardings=split, out_shardings=P())(*args)
        np.testing.assert_array_equal(np.asarray(got).astype(np.float32), want)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.float8_e5m2])
def test_totals_of_narrow_cumulative_sums_are_wide(dtype: Any) -> None:
    """The totals of shards overflow: those of rows are infinite in between, and 0 in the end."""
    x = HALVES.astype(dtype)
    with np.errstate(over="ignore"):
        want = np.cumsum(HALVES.astype(np.float32)).astype(dtype).astype(np.float32)
    program = sw.jit(lambda x: np.cumsum(x, dtype=dtype), mesh=LINE, in_shardings=P("x"), out_shardings=P("x"))
    np.testing.assert_array_equal(np.asarray(program(x)).astype(np.float32), want)
    assert want[-1] == 0


@pytest.mark.parametrize(("dtype", "gathered"), [(np.float16, 17920), (ml_dtypes.float8_e4m3fn, 8960)])
def test_narrow_sums_are_priced_as_they_are_sent(dtype: Any, gathered: int) -> None:
    """The sums are sent in float32, 28672 bytes: moving the operands sends less."""
    a, b = (RNG.integers(-2, 3, shape).astype(dtype) for shape in [(64, 80), (80, 64)])
    program = sw.jit(
        lambda a, b: a @ b, mesh=LINE, in_shardings=(P(None, "x"), P("x")), out_shardings=P(), objective="bytes"
    )
    rows = program.lower(a, b).compile().collectives()
    assert {row.kind for row in rows} <= {"all_gather", "all_to_all"}
    assert sum(row.total_bytes for row in rows) <= gathered
    want = sw.jit(lambda a, b: a @ b, mesh=sw.Mesh({"one": 1}))(a, b)
    assert np.asarray(program(a, b)).tobytes() == np.asarray(want).tobytes()


# ---- addends ---------------------------------------------------------------------------------------------------------


def test_a_masked_sum_of_products_is_reduced_once_it_is_small() -> None:
    """Where m is false, zeros are addends of a sum already."""
    x, w = RNG.normal(size=(256, 512)).astype(np.float32), RNG.normal(size=(512, 64)).astype(np.float32)
    m = RNG.integers(0, 2, (256, 64)) == 1

    def function(x: Any, w: Any, m: Any) -> Any:
        return np.sum(np.where(m, x @ w, 0))

    program = sw.jit(function, mesh=LINE, in_shardings=(P(None, "x"), P("x"), P()), out_shardings=P())
    rows = program.lower(x, w, m).compile().collectives()
    assert [(row.kind, row.total_bytes) for row in rows] == [("all_reduce", 28)]
    np.testing.assert_allclose(program(x, w, m), function(x, w, m), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("init", ["0.0", "3.0"])
def test_windowed_sums_pass_a_sum_on(init: str) -> None:
    """One device counts the init value, once for each window that has it."""
    text = f"""sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<12x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"y"}}, {{"x"}}]>}},
    %b: tensor<8x2xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}})
    -> (tensor<6x2xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"y"}}, {{}}]>}}) {{
  %init = stablehlo.constant dense<{init}> : tensor<f32>
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] :
      (tensor<12x8xf32>, tensor<8x2xf32>) -> tensor<12x2xf32>
  %1 = "stablehlo.reduce_window"(%0, %init) <{{padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>,
      window_dimensions = array<i64: 4, 1>, window_strides = array<i64: 2, 1>}}> ({{
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }}) : (tensor<12x2xf32>, tensor<f32>) -> tensor<6x2xf32>
  return %1 : tensor<6x2xf32>
}}
"""
    a, b = (RNG.integers(-4, 5, shape).astype(np.float32) for shape in [(12, 8), (8, 2)])
    product = np.pad(a @ b, ((1, 1), (0, 0)), constant_values=float(init))
    want = np.stack([product[i : i + 4].sum(0) for i in range(0, 12, 2)]) + float(init)
    program = sw.parse(text).compile()
    assert [(row.kind, row.type) for row in program.collectives() if "reduce" in row.kind] == [
        ("all_reduce", "float32[3,2]")
    ]
    np.testing.assert_array_equal(np.asarray(program(a, b)), want)


def test_scatters_and_cumulative_sums_pass_a_sum_on() -> None:
    """Only what is left of the product is reduced."""
    x, w = RNG.normal(size=(64, 64)).astype(np.float32), RNG.normal(size=(64, 8)).astype(np.float32)
    ids = RNG.integers(0, 4, 64).astype(np.int32)
    functions: dict[str, Callable[..., Any]] = {
        "cumulative": lambda x, w, ids: np.cumsum(x @ w, 0)[-1],
        "scatter": lambda x, w, ids: sw.at(np.zeros((4, 8), np.float32), ids).add(x @ w),
    }
    for name, function in functions.items():
        program = sw.jit(function, mesh=LINE, in_shardings=(P(None, "x"), P("x"), P()), out_shardings=P())
        compiled = program.lower(x, w, ids).compile()
        want = np.asarray(sw.jit(function, mesh=sw.Mesh({"one": 1}))(x, w, ids))
        assert [row.type for row in compiled.collectives()] == [f"float32[{','.join(map(str, want.shape))}]"], name
        np.testing.assert_allclose(np.asarray(program(x, w, ids)), want, rtol=1e-3, atol=1e-3)


def test_a_division_by_what_may_be_zero_reduces_first() -> None:
    """3 / 0 - 1 / 0 is NaN, while 2 / 0 is infinite."""
    a, b = np.array([[3, -1]], np.float32), np.ones((2, 1), np.float32)
    function = sw.jit(
        lambda a, b, by: np.sum((a @ b) / by), mesh=sw.Mesh({"x": 2}), in_shardings=(P(None, "x"), P("x"), P())
    )
    assert np.asarray(function(a, b, np.zeros((1, 1), np.float32))) == np.inf


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
