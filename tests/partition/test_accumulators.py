# SPDX-License-Identifier: Apache-2.0
"""Loops that accumulate: one reduction after the loop replaces one in each trip, with the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import shardwise as sw
from shardwise import P

TRIPS, BATCH, WIDTH = 5, 14, 6
EIGHT, SIX = sw.Mesh({"x": 8}), sw.Mesh({"a": 2, "b": 3})
MESHES = [sw.Mesh({"x": 1}), EIGHT, SIX]
Row = tuple[str, int, str]  # kind, executions, dtype and shape

RNG = np.random.default_rng(14)
XS = RNG.standard_normal((TRIPS, BATCH, WIDTH)).astype(np.float32)
W = (RNG.standard_normal((WIDTH, WIDTH)) / 3).astype(np.float32)
H = RNG.standard_normal((BATCH, WIDTH)).astype(np.float32)
LAYERS = (RNG.standard_normal((3, WIDTH, WIDTH)) / 3).astype(np.float32)


def batch_axes(mesh: sw.Mesh) -> Any:
    return tuple(mesh.axis_names)


def compiled(f: Callable[..., Any], mesh: sw.Mesh, specs: Any, *args: Any) -> sw.Program:
    return sw.jit(f, mesh=mesh, in_shardings=specs).lower(*args).compile()


def rows(program: sw.Program) -> list[Row]:
    return [(row.kind, row.count, row.type) for row in program.collectives().rows]


def reductions(program: sw.Program, ndim: int) -> list[Row]:
    """The rows of values with so many dims."""
    shapes = [(row, row[2].partition("[")[2].rstrip("]")) for row in rows(program)]
    return [row for row, shape in shapes if len([size for size in shape.split(",") if size]) == ndim]


def check_numbers(f: Callable[..., Any], specs: Callable[[Any], Any], args: Sequence[Any]) -> None:
    """The program on each mesh gives the numbers of the one on one device; those of integers exactly."""
    expected: list[np.ndarray] | None = None
    for mesh in MESHES:
        program = compiled(f, mesh, specs(batch_axes(mesh)), *args)
        for options in ({}, {"faithful": True}, {"poison": True}, {"faithful": True, "poison": True}):
            found = [np.asarray(leaf) for leaf in sw.tree.leaves(program.run(*args, **options))]
            expected = expected or found
            for ours, theirs in zip(found, expected):
                if np.issubdtype(theirs.dtype, np.integer) or theirs.dtype == bool:
                    np.testing.assert_array_equal(ours, theirs)
                else:
                    np.testing.assert_allclose(ours.astype(np.float32), theirs.astype(np.float32), rtol=2e-5, atol=2e-5)


# ---- gradients ------------------------------------------------------------------------------------------------------


def rnn_loss(w: Any, h: Any, xs: Any) -> Any:
    def body(h: Any, x: Any) -> Any:
        h = np.tanh(h @ w + x)
        return h, h

    h, ys = sw.scan(body, h, xs)
    return (ys * ys).sum() + h.sum()


def micro_batches(w: Any, xs: Any) -> Any:
    """Gradient accumulation: the loss and the gradient of a mini-batch, summed over micro-batches."""

    def body(sums: Any, x: Any) -> Any:
        loss, gradient = sw.value_and_grad(lambda w: (np.tanh(x @ w) ** 2).sum())(w)
        return (sums[0] + loss, sums[1] + gradient), None

    return sw.scan(body, (np.float32(0), np.zeros((WIDTH, WIDTH), np.float32)), xs)[0]


def micro_batches_of_layers(layers: Any, xs: Any) -> Any:
    """The same around a scan over stacked layers."""

    def loss(layers: Any, x: Any) -> Any:
        return (sw.scan(lambda x, w: (np.tanh(x @ w), None), x, layers)[0] ** 2).sum()

    def body(sum: Any, x: Any) -> Any:
        return sum + sw.grad(loss)(layers, x), None

    return sw.scan(body, np.zeros(LAYERS.shape, np.float32), xs)[0]


def test_the_weight_gradients_of_an_rnn_are_reduced_once() -> None:
    program = compiled(sw.grad(rnn_loss), EIGHT, (P(), P("x"), P(None, "x")), W, H, XS)
    assert rows(program) == [("all_reduce", 1, f"float32[{WIDTH},{WIDTH}]")]
    (row,) = program.collectives().rows
    assert row.cause == "reduction in dot_general, after the loop"
    assert row.bytes == W.nbytes + 6 * -(-W.size // 8) * W.itemsize


def test_accumulated_gradients_are_reduced_once() -> None:
    program = compiled(micro_batches, EIGHT, (P(), P(None, "x")), W, XS)
    assert set(rows(program)) == {("all_reduce", 1, "float32[]"), ("all_reduce", 1, f"float32[{WIDTH},{WIDTH}]")}


def test_accumulated_gradients_of_scanned_layers_are_reduced_once() -> None:
    program = compiled(micro_batches_of_layers, EIGHT, (P(), P(None, "x")), LAYERS, XS)
    assert reductions(program, 3) == [("all_reduce", 1, f"float32[3,{WIDTH},{WIDTH}]")]
    assert all(count == 1 for _, count, _ in rows(program))


@pytest.mark.parametrize("hardware", ["default", "h100_sxm", "tpu_v5p"])
@pytest.mark.parametrize("remat", [False, True])
def test_gradients_of_split_stacked_layers_are_scattered_in_each_trip(hardware: str, remat: bool) -> None:
    """They are as many bytes after the loop, and the whole stack on every device; its rounds are not worth that."""
    layers, width, hidden = 80, 8192, 28672

    def loss(weights: Any, x: Any) -> Any:
        def layer(x: Any, w: Any) -> Any:
            return x + np.tanh(x @ w[0]) @ w[1], None

        return (sw.scan(sw.checkpoint(layer) if remat else layer, x, weights)[0] ** 2).sum()

    shapes = [(layers, width, hidden), (layers, hidden, width)]
    weights = tuple(sw.ShapeDtypeStruct(shape, np.float32) for shape in shapes)
    x = sw.ShapeDtypeStruct((64, 4096, width), np.float32)
    shardings = ((P(None, "x"), P(None, "x")), P("x"))
    step = sw.jit(
        sw.grad(loss), mesh=sw.Mesh({"x": 64}), hardware=hardware, in_shardings=shardings, out_shardings=shardings[0]
    )
    program = step.lower(weights, x).compile()
    scattered = [row for row in program.collectives() if row.kind == "reduce_scatter"]
    assert {(row.count, row.type) for row in scattered} == {
        (layers, f"float32[1,{width},{hidden}]"),
        (layers, f"float32[1,{hidden},{width}]"),
    }
    whole = 4 * layers * width * hidden
    assert program.memory().peak_bytes < 1.5 * whole


def test_a_sharded_sum_is_scattered_once() -> None:
    w = RNG.standard_normal((16, 16)).astype(np.float32)
    xs = RNG.standard_normal((TRIPS, 16, 16)).astype(np.float32)

    def f(w: Any, xs: Any) -> Any:
        def body(sum: Any, x: Any) -> Any:
            return sum + sw.grad(lambda w: (np.tanh(x @ w) ** 2).sum())(w), None

        return sw.shard(sw.scan(body, np.zeros((16, 16), np.float32), xs)[0], P("x"))

    program = compiled(f, EIGHT, (P(), P(None, "x")), w, xs)
    assert [row for row in rows(program) if "reduce" in row[0]] == [("reduce_scatter", 1, "float32[16,16]")]
    alone = sw.jit(f, mesh=sw.Mesh({"x": 1}))
    np.testing.assert_allclose(program(w, xs), alone(w, xs), rtol=1e-4, atol=1e-4)


GRADIENTS = [
    (sw.grad(rnn_loss), lambda axes: (P(), P(axes), P(None, axes)), (W, H, XS)),
    (micro_batches, lambda axes: (P(), P(None, axes)), (W, XS)),
    (micro_batches_of_layers, lambda axes: (P(), P(None, axes)), (LAYERS, XS)),
]


@pytest.mark.parametrize(("f", "specs", "args"), GRADIENTS, ids=["rnn", "micro-batches", "layers"])
def test_gradients_are_those_of_one_device(f: Any, specs: Any, args: Any) -> None:
    check_numbers(f, specs, args)


# ---- reducers, dtypes, entry values ---------------------------------------------------------------------------------


def folded(combine: Callable[[Any, Any], Any], reduce: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda start, xs: sw.scan(lambda sum, x: (combine(sum, reduce(x)), None), start, xs)[0]


INTEGERS = RNG.integers(-9, 9, XS.shape).astype(np.int32)
ROW = np.arange(1, WIDTH + 1)
FOLDS: dict[str, tuple[Any, Any, Any, Any]] = {
    "sum": (np.add, lambda x: x.sum(axis=0), np.zeros(WIDTH, np.float32), XS),
    "sum from an entry value": (np.add, lambda x: x.sum(axis=0), ROW.astype(np.float32), XS),
    "difference": (np.subtract, lambda x: x.sum(axis=0), ROW.astype(np.float32), XS),
    "integers": (np.add, lambda x: x.sum(axis=0, dtype=np.int32), ROW.astype(np.int32), INTEGERS),
    "maximum": (np.maximum, lambda x: x.max(axis=0), ROW.astype(np.float32) / 9, XS),
    "minimum": (np.minimum, lambda x: x.min(axis=0), ROW.astype(np.int32) - 12, INTEGERS),
    "product": (np.multiply, lambda x: x.prod(axis=0, dtype=np.int32), ROW.astype(np.int32), INTEGERS),
    "or": (np.logical_or, lambda x: x.any(axis=0), np.zeros(WIDTH, bool), INTEGERS == 8),
    "decay": (lambda sum, y: sum * np.float32(0.5) + y, lambda x: x.sum(axis=0), ROW.astype(np.float32), XS),
    "quotient": (lambda sum, y: sum + y / 8, lambda x: x.sum(axis=0), ROW.astype(np.float32), XS),
    "decay by division": (lambda sum, y: sum / 3 + y, lambda x: x.sum(axis=0), ROW.astype(np.float32), XS),
    "masked": (
        lambda sum, y: sum + np.where(ROW % 2 == 0, y, 0),
        lambda x: x.sum(axis=0),
        ROW.astype(np.float32),
        XS,
    ),
    "masked maximum": (
        lambda best, y: np.where(ROW < 3, np.maximum(best, y), y),
        lambda x: x.max(axis=0),
        ROW.astype(np.float32) / 9,
        XS,
    ),
    "scattered": (
        lambda sum, y: sum.at[np.array([2, 0, 2, 5, 1, 1], np.int32)].add(y),
        lambda x: x.sum(axis=0),
        ROW.astype(np.float32),
        XS,
    ),
    "bfloat16": (
        lambda sum, y: sum + y.astype(np.float32),
        lambda x: x[:, 0] @ x,
        np.zeros(WIDTH, np.float32),
        np.asarray(INTEGERS % 2, ml_dtypes.bfloat16),
    ),
}


@pytest.mark.parametrize("name", FOLDS)
def test_a_fold_is_reduced_once(name: str) -> None:
    combine, reduce, start, xs = FOLDS[name]
    program = compiled(folded(combine, reduce), EIGHT, (P(), P(None, "x")), start, xs)
    assert rows(program) == [("all_reduce", 1, f"{start.dtype}[{WIDTH}]")]


@pytest.mark.parametrize("name", FOLDS)
def test_a_fold_has_the_numbers_of_one_device(name: str) -> None:
    combine, reduce, start, xs = FOLDS[name]
    check_numbers(folded(combine, reduce), lambda axes: (P(), P(None, axes)), (start, xs))


def test_a_loop_without_trips_gives_the_entry_value() -> None:
    start = np.array([-0.0, 1, np.nan, np.inf, -3, 0], np.float32)
    f = folded(np.add, lambda x: x.sum(axis=0))
    for program in (compiled(f, mesh, (P(), P(None, batch_axes(mesh))), start, XS[:0]) for mesh in MESHES):
        assert np.asarray(program(start, XS[:0])).tobytes() == start.tobytes()


@pytest.mark.parametrize("start", [0.0, 3.0])
def test_a_carry_that_starts_from_a_constant_has_it_once(start: float) -> None:
    def f(x: Any) -> Any:
        return sw.fori_loop(0, TRIPS, lambda i, sum: sum + (x * i).sum(axis=0), np.full_like(x[0], start))

    assert rows(compiled(f, EIGHT, (P("x"),), H)) == [("all_reduce", 1, f"float32[{WIDTH}]")]
    check_numbers(f, lambda axes: (P(axes),), (H,))


def test_a_loop_of_unknown_length_is_reduced_once() -> None:
    def f(n: Any, x: Any) -> Any:
        def body(carry: Any) -> Any:
            i, sum = carry
            return i + 1, sum + (x * i.astype(np.float32)).sum(axis=0)

        return sw.while_loop(lambda carry: carry[0] < n, body, (np.int32(0), np.zeros(WIDTH, np.float32)))[1]

    assert rows(compiled(f, EIGHT, (P(), P("x")), np.int32(4), H)) == [("all_reduce", 1, f"float32[{WIDTH}]")]
    check_numbers(f, lambda axes: (P(), P(axes)), (np.int32(4), H))


def test_an_inner_loop_accumulates_into_the_carry_of_an_outer_one() -> None:
    def f(start: Any, xs: Any) -> Any:
        def inner(x: Any, sum: Any) -> Any:
            return sw.fori_loop(0, 3, lambda i, sum: sum + (x * (i + 1)).sum(axis=0, dtype=np.int32), sum)

        return sw.scan(lambda sum, x: (inner(x, sum), None), start, xs)[0]

    start = ROW.astype(np.int32)
    program = compiled(f, EIGHT, (P(), P(None, "x")), start, INTEGERS)
    assert rows(program) == [("all_reduce", 1, f"int32[{WIDTH}]")]
    check_numbers(f, lambda axes: (P(), P(None, axes)), (start, INTEGERS))


def test_stacked_sums_are_reduced_together() -> None:
    def f(xs: Any) -> Any:
        return sw.scan(lambda carry, x: (carry, x.sum(axis=0)), np.int32(0), xs)[1]

    program = compiled(f, EIGHT, (P(None, "x"),), XS)
    assert rows(program) == [("all_reduce", 1, f"float32[{TRIPS},{WIDTH}]")]
    check_numbers(f, lambda axes: (P(None, axes),), (XS,))


# ---- axes -----------------------------------------------------------------------------------------------------------


def test_a_carry_is_unreduced_over_the_axes_that_all_addends_share() -> None:
    def f(x: Any, y: Any) -> Any:
        def body(_: Any, sum: Any) -> Any:
            return sum + np.tanh(x).sum(axis=0) + np.cos(y).sum(axis=0)

        return sw.fori_loop(0, TRIPS, body, np.zeros(WIDTH, np.float32))

    program = compiled(f, SIX, (P(("a", "b")), P("a")), H, H)
    assert [(row.kind, row.count, row.axes) for row in program.collectives().rows] == [
        ("all_reduce", TRIPS, '{"b"}'),
        ("all_reduce", 1, '{"a"}'),
    ]


def test_sub_axes() -> None:
    def f(xs: Any) -> Any:
        xs = sw.shard(xs, '[{}, {"x":(2)2}, {}]')
        return sw.scan(lambda sum, x: (sum + x.sum(axis=0), None), np.zeros(WIDTH, np.float32), xs)[0]

    program = compiled(f, EIGHT, P(None, "x"), XS)
    sums = [row for row in program.collectives().rows if row.kind == "all_reduce"]
    assert [(row.count, row.axes) for row in sums] == [(1, '{"x":(2)2}')]
    np.testing.assert_allclose(program(XS), XS.sum(axis=(0, 1)), rtol=1e-5)


# ---- carries that stay whole ----------------------------------------------------------------------------------------


def test_a_carry_that_the_body_reads_is_reduced_in_each_trip() -> None:
    def f(start: Any, xs: Any) -> Any:
        return sw.scan(lambda sum, x: (sum + (x * sum).sum(axis=0), None), start, xs)[0]

    start = ROW.astype(np.float32) / 50
    program = compiled(f, EIGHT, (P(), P(None, "x")), start, XS)
    assert rows(program) == [("all_reduce", TRIPS, f"float32[{WIDTH}]")]
    check_numbers(f, lambda axes: (P(), P(None, axes)), (start, XS))


def test_a_carry_that_the_condition_reads_is_reduced_in_each_trip() -> None:
    def f(x: Any) -> Any:
        return sw.while_loop(lambda sum: np.max(sum) < 100, lambda sum: sum + np.abs(x).sum(axis=0), 0 * x[0])

    program = compiled(f, EIGHT, (P("x"),), H)
    assert [(row.count, row.bound) for row in program.collectives().rows if row.type == f"float32[{WIDTH}]"][-1] == (
        1,
        "per trip",
    )
    check_numbers(f, lambda axes: (P(axes),), (H,))


def test_an_addend_that_is_needed_whole_anyway_is_reduced_in_each_trip() -> None:
    def f(start: Any, xs: Any) -> Any:
        def body(carry: Any, x: Any) -> Any:
            sum, scale = carry
            gradient = x.sum(axis=0)
            return (sum + gradient, np.tanh(gradient) + scale), None

        return sw.scan(body, (start, start), xs)[0]

    start = np.zeros(WIDTH, np.float32)
    program = compiled(f, EIGHT, (P(), P(None, "x")), start, XS)
    assert rows(program) == [("all_reduce", TRIPS, f"float32[{WIDTH}]")]
    check_numbers(f, lambda axes: (P(), P(None, axes)), (start, XS))
