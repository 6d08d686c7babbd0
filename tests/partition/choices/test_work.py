# SPDX-License-Identifier: Apache-2.0
"""`Program.work()`: operations of a device by source line, and how much of them other devices repeat."""

from __future__ import annotations

import inspect
import json
import warnings
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"x": 2, "y": 4})
F32 = np.float32


def program(function: Any, *shapes: tuple[int, ...], specs: Any = None, out: Any = None) -> sw.Program:
    jitted = sw.jit(function, mesh=MESH, in_shardings=specs, out_shardings=out)
    return jitted.lower(*(sw.ShapeDtypeStruct(shape, F32) for shape in shapes)).compile()


def product(x: Any, w: Any) -> Any:
    return x @ w


@pytest.mark.parametrize(
    ("specs", "ratio"),
    [((P(), P()), 8), ((P("x"), P()), 4), ((P("x"), P(None, "y")), 1), ((P(None, "y"), P("y")), 2)],
    ids=["whole", "rows", "rows and columns", "contraction"],
)
def test_work_is_compared_with_the_share_of_a_device(specs: Any, ratio: float) -> None:
    work = program(product, (1 << 14, 256), (256, 256), specs=specs).work()
    assert work.ideal == 2 * 2**14 * 256 * 256 / 8
    assert work.ratio == pytest.approx(ratio)
    [row] = work.rows
    assert row.location.endswith(f"test_work.py:{product.__code__.co_firstlineno + 1}")
    assert bool(row.advice) == (ratio > 1) == bool(work.warnings)


def test_a_warning_names_line_and_way_out() -> None:
    [warning] = program(product, (1 << 14, 256), (256, 256), specs=(P("x"), P())).work().warnings
    line = f"test_work.py:{product.__code__.co_firstlineno + 1}"
    assert line in warning
    assert (
        "computes 4 times its share, 75% of all work: split its result, sw.split(…, 1, 'y'), or an operand" in warning
    )


def test_padding_is_work() -> None:
    work = program(product, (9, 64), (64, 64), specs=(P("x"), P(None, "y"))).work()
    assert work.ratio == pytest.approx(10 / 9)


def test_a_loop_counts_with_its_trips() -> None:
    def looped(x: Any, w: Any) -> Any:
        return sw.fori_loop(0, 5, lambda i, x: product(x, w), x)

    once = program(product, (64, 64), (64, 64), specs=(P("x"), P())).work()
    five = program(looped, (64, 64), (64, 64), specs=(P("x"), P())).work()
    products = [row.flops for row in five.rows if row.location == once.rows[0].location]
    assert products == [5 * once.flops]


def test_work_beyond_64_bits_has_a_ratio() -> None:
    def step(x: Any, w1: Any, w2: Any) -> Any:
        def layer(x: Any, _: None) -> tuple[Any, None]:
            return np.einsum("mk,kn->mn", np.maximum(np.einsum("mk,kn->mn", x, w1), 0), w2), None

        return sw.scan(layer, x, None, length=126)[0]

    specs = (P("data"), P(None, "model"), P("model"))
    jitted = sw.jit(step, mesh=sw.Mesh({"data": 1024, "model": 8}), in_shardings=specs, out_shardings=P("data"))
    shapes = [(2**26, 16384), (16384, 53248), (53248, 16384)]
    work = jitted.lower(*(sw.ShapeDtypeStruct(shape, sw.bfloat16) for shape in shapes)).compile().work()
    assert work.ideal > 2**62 / 8192
    assert work.ratio < 1.001
    assert not work.warnings


def test_advice_names_axes_of_the_mesh() -> None:
    mesh = sw.Mesh({"x": 2, "y": 3})
    jitted = sw.jit(lambda x, w: np.tanh(sw.split(x, 0, 3) @ w), mesh=mesh)
    work = jitted.lower(sw.ShapeDtypeStruct((48, 64), F32), sw.ShapeDtypeStruct((64, 64), F32)).compile().work()
    assert all("'other'" not in row.advice for row in work.rows)


def test_what_no_split_helps_has_no_such_advice() -> None:
    work = program(lambda x: np.sort(x, axis=0), (4096,), specs=P()).work()
    assert all("sw.split" not in row.advice for row in work.rows)


def test_a_program_without_work() -> None:
    work = program(lambda x: x[::-1], (8, 4), specs=P("x"), out=P("x")).work()
    assert (work.flops, work.ratio, work.warnings, len(work)) == (0, 1.0, (), 0)
    assert str(work) == "0 flop per device, 1 times its share"


def test_the_report_is_data() -> None:
    work = program(product, (64, 64), (64, 64), specs=(P("x"), P())).work()
    read = json.loads(work.to_json())
    assert read["ratio"] == 4.0
    assert [row["flops"] for row in read["rows"]] == [work.flops]
    assert "4 times its share" in repr(work)


def test_asserting_work() -> None:
    repeated = program(product, (1 << 14, 256), (256, 256), specs=(P("x"), P()))
    sw.testing.assert_work(repeated, ratio_max=4.0)
    with pytest.raises(AssertionError, match=r"a device computes 4 times its share, above 1.01:\n.*where"):
        sw.testing.assert_work(repeated, ratio_max=1.01)
    for wrong in (None, "1", float("nan"), -1):
        with pytest.raises(TypeError, match="ratio_max must be a number"):
            sw.testing.assert_work(repeated, ratio_max=wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes a compiled program"):
        sw.testing.assert_work(product, ratio_max=1)


# ---- splits that are lost: one warning, at the line that loses them -------------------------------------------------

TRIPS, ROWS, WIDTH = 4, 256, 32
ON_DATA = sw.Mesh({"data": 4})


def loss(w: Any, x: Any) -> Any:
    return (np.tanh(x @ w) ** 2).mean()


def accumulated(w: Any, x: Any) -> Any:
    xs = x.reshape(TRIPS, -1, WIDTH)
    return sw.scan(lambda c, rows: (c + sw.grad(loss)(w, rows), None), np.zeros_like(w), xs)[0]


def factors_of_rows(w: Any, x: Any) -> Any:
    """No dim of the rows can be split: a QR decomposition needs them whole."""
    xs = x.reshape(TRIPS, -1, WIDTH)
    return sw.scan(lambda c, rows: (c + np.linalg.qr(rows)[1], None), np.zeros_like(w), xs)[0]


def interleaved(w: Any, x: Any) -> Any:
    xs = x.reshape(-1, TRIPS, WIDTH).transpose(1, 0, 2)
    return sw.scan(lambda c, rows: (c + sw.grad(loss)(w, rows), None), np.zeros_like(w), xs)[0]


def split_again(w: Any, x: Any) -> Any:
    xs = sw.split(x.reshape(TRIPS, -1, WIDTH), 1, "data")
    return sw.scan(lambda c, rows: (c + sw.grad(loss)(w, rows), None), np.zeros_like(w), xs)[0]


def on_data(function: Any, *shapes: tuple[int, ...], specs: Any) -> sw.Program:
    jitted = sw.jit(function, mesh=ON_DATA, in_shardings=specs)
    return jitted.lower(*(sw.ShapeDtypeStruct(shape, F32) for shape in shapes)).compile()


def line_of(function: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def test_a_scan_over_a_split_dim_has_one_warning_with_both_ways_out() -> None:
    shapes, specs = ((WIDTH, WIDTH), (TRIPS * ROWS, WIDTH)), (P(), P("data"))
    work = on_data(factors_of_rows, *shapes, specs=specs).work()
    [warning] = work.warnings
    assert f"test_work.py:{line_of(factors_of_rows, 'sw.scan')} computes 4 times its share" in warning
    assert warning.endswith(
        "each trip of the loop reads a row of xs along dim 0, which 'data' splits; split another dim of it, "
        "sw.split(xs, 1, 'data'), or interleave the rows, x.reshape(-1, 4, 32).transpose(1, 0, 2)"
    )
    # Where another dim can be split, the rows are moved without being asked.
    for better in (accumulated, interleaved, split_again):
        found = on_data(better, *shapes, specs=specs).work()
        assert found.ratio < 1.05
        assert not found.warnings


def test_the_sum_over_the_rows_of_a_trip_ends_the_cause() -> None:
    """What follows an all_reduce is the same on all devices in any case."""

    def step(w: Any, x: Any) -> Any:
        g = accumulated(w, x)
        return w - g / np.sqrt(1 + g * g)

    work = on_data(step, (WIDTH, WIDTH), (TRIPS * ROWS, WIDTH), specs=(P(), P("data"))).work()
    [update] = [row for row in work if row.line == line_of(step, "np.sqrt")]
    assert (update.cause_file, update.ratio) == ("", 4)


def indexed(x: Any, w: Any) -> Any:
    return sw.fori_loop(0, 8, lambda i, total: total + loss(w, x[i]), F32(0))


def indexed_factors(x: Any, w: Any) -> Any:
    return sw.fori_loop(0, 8, lambda i, total: total + np.linalg.qr(x[i])[1], w)


def test_a_loop_that_indexes_a_split_dim() -> None:
    shapes, specs = ((8, ROWS, WIDTH), (WIDTH, WIDTH)), (P("data"), P())
    program = on_data(indexed_factors, *shapes, specs=specs)
    [warning] = program.work().warnings
    assert f"test_work.py:{line_of(indexed_factors, 'fori_loop')} computes 4 times" in warning
    assert "a row of x along dim 0, which 'data' splits; split another dim of it, sw.split(x, 1, 'data')" in warning
    assert on_data(indexed, *shapes, specs=specs).work().ratio < 1.05
    assert not on_data(lambda x, w: indexed(sw.split(x, 1, "data"), w), (8, ROWS, WIDTH), (WIDTH, WIDTH),
                       specs=(None, P())).work().warnings  # fmt: skip


def test_a_reshape_that_cuts_a_split_dim() -> None:
    def cut(w: Any, x: Any) -> Any:
        xs = x.reshape(3, -1, WIDTH)
        return np.tanh(xs @ w)

    shapes, specs = ((WIDTH, WIDTH), (3 * 4 * 64, WIDTH)), (P(), P("data"))
    [warning] = on_data(cut, *shapes, specs=specs).work().warnings
    assert f"test_work.py:{line_of(cut, 'reshape')} computes 4 times" in warning
    assert warning.endswith(
        "reshape cuts dim 0 of x, which 'data' splits; interleave the rows, "
        "x.reshape(-1, 3, 32).transpose(1, 0, 2), or split its result, "
        "sw.split(x.reshape(3, 256, 32), 1, 'data')"
    )
    for better in (
        lambda w, x: np.tanh(x.reshape(-1, 3, WIDTH).transpose(1, 0, 2) @ w),
        lambda w, x: np.tanh(sw.split(x.reshape(3, -1, WIDTH), 1, "data") @ w),
    ):
        assert on_data(better, *shapes, specs=specs).work().ratio < 1.05


def test_rows_that_the_axis_does_not_divide_are_not_interleaved() -> None:
    """66 rows of 2 over 4 devices: x.reshape(-1, 66, 32) would lose the split again."""

    def cut(w: Any, x: Any) -> Any:
        xs = x.reshape(-1, 2, WIDTH)
        return np.tanh(xs @ w)

    shapes, specs = ((WIDTH, WIDTH), (132, WIDTH)), (P(), P("data"))
    [warning] = on_data(cut, *shapes, specs=specs).work().warnings
    assert warning.endswith(
        "reshape cuts dim 0 of x, which 'data' splits; split its result, sw.split(x.reshape(66, 2, 32), 0, 'data')"
    )
    better = on_data(lambda w, x: np.tanh(sw.split(x.reshape(66, 2, 32), 0, "data") @ w), *shapes, specs=specs)
    assert not better.work().warnings


def test_an_op_without_a_rule() -> None:
    sw.register_custom_call("test_work.double", lambda x: 2 * x)

    def called(x: Any) -> Any:
        return np.sin(sw.custom_call("test_work.double", x, x))

    program = on_data(called, (4096, WIDTH), specs=P("data"))
    causes = [row for row in program.work() if row.cause_file]
    assert all(
        "sw.custom_call has no sharding rule, and dim 0 of x is split over 'data'" in row.advice for row in causes
    )


def test_an_op_that_needs_a_dim_whole() -> None:
    def factors(x: Any) -> Any:
        return np.linalg.qr(x)[1]

    [warning] = on_data(factors, (512, WIDTH), specs=P("data")).work().warnings
    assert ": np.linalg.qr needs all of dim 0 of x, which 'data' splits; " in warning


def test_an_op_of_one_of_several_calls_is_not_named() -> None:
    """`np.linalg.qr(x)` and `np.linalg.qr(x)[1].sum()` begin at one column."""

    def factors(x: Any) -> Any:
        return np.linalg.qr(x)[1].sum()

    [warning] = on_data(factors, (512, WIDTH), specs=P("data")).work().warnings
    assert ": the call needs all of dim 0 of x, which 'data' splits; " in warning


def test_compilation_warns_of_a_lost_split_at_its_line() -> None:
    with pytest.warns(sw.ShardingWarning, match=r"work: this line computes 4 times its share") as caught:
        on_data(factors_of_rows, (WIDTH, WIDTH), (TRIPS * ROWS, WIDTH), specs=(P(), P("data")))
    [warning] = caught
    assert (warning.filename, warning.lineno) == (__file__, line_of(factors_of_rows, "sw.scan"))
    assert str(warning.message).endswith("x.reshape(-1, 4, 32).transpose(1, 0, 2)")


def test_work_that_is_repeated_without_a_lost_split_does_not_warn_at_compilation() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program(product, (1 << 14, 256), (256, 256), specs=(P(), P()))
        program(product, (1 << 14, 256), (256, 256), specs=(P("x"), P(None, "y")))
    assert caught == []
