# SPDX-License-Identifier: Apache-2.0
"""Integer arrays as indices, np.take and x.at[...], traced and eager, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P, _core
from tests.support.partitioned import execute, sharding

MESH = sw.Mesh({"x": 4, "y": 2})
RNG = np.random.default_rng(11)
X = RNG.permutation(7 * 5 * 6).reshape(7, 5, 6).astype(np.float32)
ROWS = np.array([[3, -1, 0], [6, 6, -7]])
COLUMNS = np.array([4, 0, -5])

READS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "rows": lambda x, i, j: x[i],
    "columns": lambda x, i, j: x[:, j],
    "last": lambda x, i, j: x[..., j],
    "pairs": lambda x, i, j: x[i, j],
    "pairs after a slice": lambda x, i, j: x[:, i % 5, j],
    "apart": lambda x, i, j: x[i, :, j],
    "apart by None": lambda x, i, j: x[i, None, j],
    "with a slice": lambda x, i, j: x[1:6:2, j],
    "with a reversed slice": lambda x, i, j: x[::-1, :, j],
    "with None": lambda x, i, j: x[None, i, :, None],
    "with a number": lambda x, i, j: x[2, j],
    "with a number apart": lambda x, i, j: x[2, :, j],
    "with a negative number": lambda x, i, j: x[i, -1],
    "three": lambda x, i, j: x[i, j, 1],
    "one element": lambda x, i, j: x[i[0, 1], j[0], 2],
    "row of a scalar": lambda x, i, j: x[i[0, 0]],
    "scalar and slice": lambda x, i, j: x[1:3, j[1], ::2],
    "list": lambda x, i, j: x[[1, -1], 2:],
    "nothing": lambda x, i, j: x[[], :2],
    "take": lambda x, i, j: np.take(x, i),
    "take axis": lambda x, i, j: np.take(x, j, axis=1),
    "take last": lambda x, i, j: np.take(x, i % 6, axis=-1),
    "take one": lambda x, i, j: np.take(x, -2, axis=1),
    "take wrap": lambda x, i, j: np.take(x, i * 5, axis=0, mode="wrap"),
    "take clip": lambda x, i, j: np.take(x, i * 5, axis=0, mode="clip"),
    "along": lambda x, i, j: np.take_along_axis(x, np.argsort(-np.arange(7))[:, None, None] % 5, axis=1),
    "along, one for all": lambda x, i, j: np.take_along_axis(x, j[None, None], axis=2),
    "along nothing": lambda x, i, j: np.take_along_axis(x, j, axis=None),
    "narrow": lambda x, i, j: x.ravel()[i.astype(np.int8)],
    "unsigned": lambda x, i, j: x[(i % 7).astype(np.uint16)],
}


def run(function: Callable[..., Any], *args: Any, specs: tuple[Any, ...] = ()) -> list[np.ndarray]:
    """Under both executor modes, with arguments sharded."""
    program = sw.jit(function, mesh=MESH, in_shardings=specs or (None,) * len(args)).lower(*args).compile()
    return [np.asarray(program.run(*args, **o)) for o in ({}, {"faithful": True, "poison": True})]


SPECS = {
    "whole": (None, None, None),
    "rows": (P("x"), None, P("y")),
    "columns": (P(None, "y", "x"), P(None, "x"), None),
    "indices": (P("y"), P("y", "x"), P("x")),
}


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("name", READS)
def test_reading_is_that_of_numpy(name: str, spec: str) -> None:
    want = np.asarray(READS[name](X, ROWS, COLUMNS))
    for got in run(READS[name], X, ROWS, COLUMNS, specs=SPECS[spec]):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", READS)
def test_known_indices_read_the_same(name: str) -> None:
    want = np.asarray(READS[name](X, ROWS, COLUMNS))
    np.testing.assert_array_equal(run(lambda x: READS[name](x, ROWS, COLUMNS), X)[0], want)
    eager = READS[name](sw.device_put(X, sw.NamedSharding(MESH, P("x"))), ROWS, COLUMNS)
    np.testing.assert_array_equal(np.asarray(eager), want)


INDICES: dict[str, Callable[[Any, Any], Any]] = {
    "rows": lambda i, j: i,
    "columns": lambda i, j: (slice(None), j),
    "pairs": lambda i, j: (i, j),
    "apart": lambda i, j: (i, slice(None), j),
    "slice beside": lambda i, j: (slice(1, 6, 2), j),
    "reversed beside": lambda i, j: (slice(None, None, -2), slice(1, 4), j),
    "None": lambda i, j: (None, i, slice(None), None),
    "number": lambda i, j: (2, slice(None), j),
    "box": lambda i, j: (slice(1, 3), 0, slice(2, None)),
    "strides": lambda i, j: (slice(None, None, 3), slice(None), slice(4, 0, -2)),
    "reversed": lambda i, j: (slice(None, None, -1),),
    "all": lambda i, j: Ellipsis,
    "empty": lambda i, j: (slice(3, 3),),
    "element": lambda i, j: (1, -1, 0),
    "scalar": lambda i, j: (i[0, 1], slice(1, 3)),
}
UPDATES: dict[str, Callable[[Any, Any, Any], None]] = {
    "set": lambda x, index, v: x.__setitem__(index, v),
    "add": np.add.at,
    "subtract": np.subtract.at,
    "multiply": np.multiply.at,
    "min": np.minimum.at,
    "max": np.maximum.at,
}


def updated(how: str, x: np.ndarray, index: Any, values: np.ndarray) -> np.ndarray:
    result = x.copy()
    UPDATES[how](result, index, values)
    return result


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("how", UPDATES)
@pytest.mark.parametrize("name", INDICES)
def test_updates_are_those_of_numpy(name: str, how: str, spec: str) -> None:
    at = INDICES[name]
    small = (X % 5 - 2).astype(np.float64)
    shape = np.shape(small[at(ROWS, COLUMNS)])
    values = RNG.integers(-3, 4, shape).astype(np.float64)
    want = updated(how, small, at(ROWS, COLUMNS), values)

    def function(x: Any, i: Any, j: Any, v: Any) -> Any:
        return getattr(x.at[at(i, j)], how)(v)

    for got in run(function, small, ROWS, COLUMNS, values, specs=(*SPECS[spec], None)):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", INDICES)
def test_eager_updates_and_values_that_broadcast(name: str) -> None:
    index = INDICES[name](ROWS, COLUMNS)
    held = sw.device_put(X, sw.NamedSharding(MESH, P("x", "y")))
    np.testing.assert_array_equal(np.asarray(held.at[index].set(7)), updated("set", X, index, np.float32(7)))
    np.testing.assert_array_equal(np.asarray(held.at[index].get()), X[index])
    assert held.at[index].add(1.5).dtype == np.float32


def test_traced_numbers_outside_are_clamped_or_dropped() -> None:
    far = np.array([9, 2, -9, 6])

    def function(x: Any, i: Any) -> Any:
        ones = np.ones((4, 5, 6), np.float32)
        return x[i], x.at[i].add(ones), x.at[i].add(ones, mode="clip"), x.at[i, 1, 2].get(mode="fill")

    program = sw.jit(function, mesh=MESH, in_shardings=(P("x"), None)).lower(X, far).compile()
    read, dropped, clipped, filled = map(np.asarray, program.run(X, far))
    np.testing.assert_array_equal(read, X[[6, 2, 0, 6]])
    np.testing.assert_array_equal(dropped - X, np.isin(np.arange(7), [2, 6])[:, None, None] * np.ones_like(X))
    np.testing.assert_array_equal((clipped - X)[:, 0, 0], [1, 0, 1, 0, 0, 0, 2])
    np.testing.assert_array_equal(filled, [np.nan, X[2, 1, 2], np.nan, X[6, 1, 2]])


def test_gradients_of_reads_and_updates() -> None:
    x, values = RNG.normal(size=(7, 4)), RNG.normal(size=(2, 3, 4))
    weights = RNG.normal(size=(7, 4))

    def plain(x: np.ndarray, v: np.ndarray) -> float:
        written = np.tanh(x)
        np.add.at(written, ids, v)
        written[ids[:, 0]] = v[:, 1]
        written[:, 1] *= x[ids[0, 0]][0]
        return float(np.sum(written * weights) + np.sum(np.take_along_axis(x[:2], ids, axis=1)) * v[..., 0].sum())

    ids = np.array([[3, 1, 0], [2, 2, -1]])

    def traced(x: Any, v: Any, i: Any) -> Any:
        written = np.tanh(x).at[i].add(v).at[i[:, 0]].set(v[:, 1]).at[:, 1].multiply(x[i[0, 0]][0])
        return np.sum(written * weights) + np.sum(np.take_along_axis(x[:2], i, axis=1)) * v[..., 0].sum()

    program = sw.jit(sw.grad(traced, (0, 1)), mesh=MESH, in_shardings=(P("x"), P(None, None, "y"), None))
    gradients = [np.asarray(g) for g in program(x, values, ids)]
    step = 1e-6
    for k, (argument, gradient) in enumerate(zip((x, values), gradients, strict=True)):
        for index in [(0, 0), (2, 1), (3, 1), (6, 2)] if k == 0 else [(0, 0, 0), (1, 1, 1), (1, 0, 2), (0, 1, 3)]:
            sides = []
            for sign in (1, -1):
                moved = argument.copy()
                moved[index] += sign * step
                sides.append(plain(*(moved, values) if k == 0 else (x, moved)))
            assert gradient[index] == pytest.approx((sides[0] - sides[1]) / (2 * step), rel=1e-6, abs=1e-7)


def test_vmap_over_array_indices() -> None:
    ids = RNG.integers(-5, 5, (7, 4))
    values = RNG.normal(size=(7, 4, 6)).astype(np.float32)
    table = X[0]

    def both(x: Any, i: Any, v: Any) -> Any:
        return x[i], x.at[i].add(v), table_of(x)[i], x[:, [2, 0]], x.at[1, [2, 0]].set(v[0, :2])

    def table_of(x: Any) -> Any:
        return x * 2

    def shared(i: Any, v: Any, t: Any) -> Any:
        return t[i], t.at[i].max(v)

    got = sw.jit(sw.vmap(both), mesh=MESH, in_shardings=(P("x"), None, P("x")))(X, ids, values)
    added, written = X.copy(), X.copy()
    for n in range(7):
        np.add.at(added[n], ids[n], values[n])
        written[n, 1, [2, 0]] = values[n, 0, :2]
    rows = np.arange(7)[:, None]
    for result, want in zip(got, (X[rows, ids], added, 2 * X[rows, ids], X[:, :, [2, 0]], written)):
        np.testing.assert_allclose(np.asarray(result), want, rtol=1e-6)
    held, maxima = sw.jit(sw.vmap(shared, (0, 0, None)), mesh=MESH)(ids, values, table)
    np.testing.assert_array_equal(np.asarray(held), table[ids])
    want = np.stack([updated("max", table, ids[n], values[n]) for n in range(7)])
    np.testing.assert_array_equal(np.asarray(maxima), want)


# ---- what is sent ---------------------------------------------------------------------------------------------------

ROW_MESH = sw.Mesh({"x": 8})
TABLE = RNG.normal(size=(4096, 32)).astype(np.float32)  # so large that it stays where it is
IDS = RNG.integers(0, 4096, 64).astype(np.int32)


def test_embedding_sends_the_ids_and_reduces_the_rows() -> None:
    look_up = sw.jit(lambda t, i: t[i], mesh=ROW_MESH, in_shardings=(P("x"), P("x")), out_shardings=P("x"))
    program = look_up.lower(TABLE, IDS).compile()
    sw.testing.assert_collectives(program, all_gather=1, reduce_scatter=1, bytes_max=7392)
    assert sum(entry.bytes for entry in program.collectives()) == 7392
    np.testing.assert_array_equal(np.asarray(program.run(TABLE, IDS)), TABLE[IDS])
    shapes = {entry.kind: entry for entry in program.collectives()}
    assert "tensor<4096x32" not in program.as_text("local")
    assert shapes.keys() == {"all_gather", "reduce_scatter"}


def test_gradient_of_an_embedding_stays_where_the_rows_are() -> None:
    def loss(t: Any, i: Any, g: Any) -> Any:
        return np.sum(t[i] * g)

    g = RNG.normal(size=(64, 32)).astype(np.float32)
    specs = (P("x"), P("x"), P("x"))
    program = (
        sw.jit(sw.grad(loss), mesh=ROW_MESH, in_shardings=specs, out_shardings=P("x")).lower(TABLE, IDS, g).compile()
    )
    assert "tensor<4096x32" not in program.as_text("local")  # neither the table nor its gradient is ever whole
    sw.testing.assert_collectives(program, all_reduce=0, reduce_scatter=0)
    assert sum(entry.bytes for entry in program.collectives()) == 7168 + 224  # the rows' cotangents and the ids
    want = np.zeros_like(TABLE)
    np.add.at(want, IDS, g)
    for options in ({}, {"faithful": True, "poison": True}):
        np.testing.assert_allclose(np.asarray(program.run(TABLE, IDS, g, **options)), want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("objective", ["bytes", "time"])
def test_data_parallel_gradient_of_an_embedding_sends_no_more_than_one_reduction(objective: Any) -> None:
    """Table replicated, ids sharded: one all_reduce of the table's gradient, or columns of it that are gathered."""

    def loss(t: Any, i: Any, g: Any) -> Any:
        return np.sum(t[i] * g)

    g = RNG.normal(size=(64, 8)).astype(np.float32)
    table = TABLE[:16, :8]
    specs = (P(), P("x"), P("x"))
    step = sw.jit(sw.grad(loss), mesh=ROW_MESH, in_shardings=specs, out_shardings=P(), objective=objective)
    compiled = step.lower(table, IDS % 16, g).compile()
    sw.testing.assert_collectives(compiled, bytes_max=2 * table.nbytes * 7 // 8)
    if objective == "bytes":
        sw.testing.assert_collectives(compiled, all_reduce=1, all_gather=0)
    want = np.zeros_like(table)
    np.add.at(want, IDS % 16, g)
    np.testing.assert_allclose(np.asarray(compiled.run(table, IDS % 16, g)), want, rtol=1e-5, atol=1e-5)


# ---- whole programs as text -----------------------------------------------------------------------------------------

TWO_INPUTS = """
module @two {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func public @main(%x: tensor<7x3xf32>, %n: tensor<7x3xi32>, %i: tensor<9x1xi32>, %u: tensor<9x3xf32>,
                         %m: tensor<9x3xi32>) -> (tensor<7x3xf32>, tensor<7x3xi32>) {
    %0:2 = "stablehlo.scatter"(%x, %n, %i, %u, %m) <{
        scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
            scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
      REGION
    }) : (tensor<7x3xf32>, tensor<7x3xi32>, tensor<9x1xi32>, tensor<9x3xf32>, tensor<9x3xi32>)
        -> (tensor<7x3xf32>, tensor<7x3xi32>)
    return %0#0, %0#1 : tensor<7x3xf32>, tensor<7x3xi32>
  }
}
"""
ADD_BOTH = """%e = stablehlo.add %a, %c : tensor<f32>
      %f = stablehlo.add %d, %b : tensor<i32>
      stablehlo.return %e, %f : tensor<f32>, tensor<i32>"""
LARGER_WITH_ITS_NUMBER = """%k = stablehlo.constant dense<0.5> : tensor<f32>
      %h = stablehlo.add %a, %k : tensor<f32>
      %p = stablehlo.compare GT, %c, %h : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %e = stablehlo.select %p, %c, %a : tensor<i1>, tensor<f32>
      %f = stablehlo.select %p, %d, %b : tensor<i1>, tensor<i32>
      stablehlo.return %e, %f : tensor<f32>, tensor<i32>"""


@pytest.mark.parametrize("region", [ADD_BOTH, LARGER_WITH_ITS_NUMBER], ids=["add", "larger with its number"])
@pytest.mark.parametrize("dims", [((), ()), (("x",), ()), ((), ("x",))], ids=["whole", "rows", "columns"])
def test_scatter_of_two_inputs(region: str, dims: Any) -> None:
    x, n = X[:, 0, :3] % 9, np.arange(21, dtype=np.int32).reshape(7, 3)
    i = np.array([[2], [6], [2], [-1], [7], [0], [2], [6], [3]], np.int32)
    u, m = X[:3, :3, :3].reshape(9, 3) % 11, -np.arange(27, dtype=np.int32).reshape(9, 3)
    want, numbers = x.copy(), n.copy()
    for k in range(9):
        if 0 <= i[k, 0] < 7:
            row = i[k, 0]
            if region is ADD_BOTH:
                want[row] += u[k]
                numbers[row] += m[k]
            else:
                larger = u[k] > want[row] + 0.5
                want[row], numbers[row] = np.where(larger, u[k], want[row]), np.where(larger, m[k], numbers[row])
    module = sw.parse(TWO_INPUTS.replace("REGION", region))._core
    mesh = MESH._core
    module = _core.ir.parse(with_shardings(module.text(), sharding(mesh, dims)))
    for got, got_numbers in execute(_core.passes.compile(module, mesh), [x, n, i, u, m]):
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(got_numbers, numbers)


def with_shardings(text: str, held: Any) -> str:
    """The program with both inputs sharded."""
    attribute = f"{{sdy.sharding = {held.text()}}}"
    for name in ("%arg0: tensor<7x3xf32>", "%arg1: tensor<7x3xi32>"):
        text = text.replace(name, f"{name} {attribute}")
    return text


def test_a_region_without_a_gradient_says_which_have_one() -> None:
    trace = _core.ir.Trace("gradient")
    x, u = trace.argument((7,), "float32"), trace.argument((4,), "float32")
    i = trace.constant(np.array([3, 1, 1, 0]))[0]
    fields = {"inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,), "index_vector_dim": 1}
    attrs = {"scatter_dimension_numbers": _core.ir.Struct("stablehlo.scatter", fields)}
    result = trace.emit("stablehlo.scatter", [x, i, u], attrs, None, None, "stablehlo.subtract")[0]
    with pytest.raises(sw.ShapeError, match=r"only a region that adds, .* has a gradient, got another region; wr"):
        trace.vjp([result], [result], [x])


def test_partition_in_one_call_keeps_updates_where_they_belong() -> None:
    """Rows of one element each: the shards of the window dim lie as the indexed dim would."""
    x = np.arange(24.0).reshape(4, 6)
    i = np.array([5, 0, 7, -7])
    for function in (
        lambda x, i: (x + 0).at[:, i].set(7.0),
        lambda x, i: (x + 0).at[:, 1:3].set(7.0),
        lambda x, i: (x + 0).at[:, i[0]].add(1.0),
    ):
        want = np.asarray(sw.jit(function, mesh=sw.Mesh({"one": 1}))(x, i))
        for got in run(function, x, i, specs=(P("x"), None)):
            np.testing.assert_array_equal(got, want)


def test_many_updates_keep_their_order_on_many_threads() -> None:
    """Large enough to be split: rows, columns of wide windows, and elements; the last of equal ids wins."""
    ids = RNG.integers(0, 50, 20_000)
    wide = RNG.normal(size=(300, 700))
    cases = [
        (np.zeros((50, 8)), RNG.normal(size=(20_000, 8)), ids),
        (np.zeros((3, 700)), wide, RNG.integers(0, 3, 300)),
        (np.zeros(50), RNG.normal(size=20_000), ids),
        (np.zeros((1, 700)), wide, np.zeros(300, int)),
    ]
    for x, v, i in cases:
        added = updated("add", x, i, v)
        written = x.copy()
        for k in range(len(i)):
            written[i[k]] = v[k]
        program = sw.jit(lambda x, i, v: (x.at[i].add(v), x.at[i].set(v), x[i]), mesh=MESH).lower(x, i, v).compile()
        sums, last, read = map(np.asarray, program.run(x, i, v))
        np.testing.assert_array_equal(sums, added)
        np.testing.assert_array_equal(last, written)
        np.testing.assert_array_equal(read, x[i])


# ---- errors of eager code -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [np.array([0, 7]), np.array([-8]), [[1], [9]], (slice(None), np.arange(30))])
def test_known_numbers_outside_raise(index: Any) -> None:
    held = sw.device_put(X, sw.NamedSharding(MESH, P("x")))
    for call in (
        lambda: X[index],
        lambda: held[index],
        lambda: held.at[index].set(1),
        lambda: held.at[index].get(),
        lambda: sw.jit(lambda x: x[index], mesh=MESH)(X),
    ):
        with pytest.raises(IndexError):
            call()
    for axis, ids in ((0, np.arange(-8, 20)), (None, [210])):
        with pytest.raises(IndexError):
            np.take(held, ids, axis=axis)
        assert np.take(held, ids, axis=axis, mode="wrap").shape == np.take(X, ids, axis=axis, mode="wrap").shape
    with pytest.raises(IndexError):
        np.take_along_axis(held, np.full((7, 1, 6), 5), axis=1)
