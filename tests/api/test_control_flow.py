# SPDX-License-Identifier: Apache-2.0
"""Loops and branches: what is recorded, what a body may do, and the same functions outside a traced function."""

from __future__ import annotations

import contextlib
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw

MESH = sw.Mesh({"data": 4, "model": 2})
X = np.arange(24, dtype=np.float32).reshape(6, 4)
W = np.eye(4, dtype=np.float32)


def text_of(function: Callable[..., Any], *args: Any) -> str:
    traced = sw.jit(function, mesh=MESH).trace(*args)
    traced.verify()
    traced.propagate().verify()
    text: str = traced.as_text()
    assert sw.parse(text).as_text() == text
    return text


def body_of(text: str) -> str:
    """The ops of main."""
    return re.sub(r"^    ", "", text[text.index("-> ") :].partition("{\n")[2].rpartition("  }\n}")[0], flags=re.M)


# ---- what is recorded -----------------------------------------------------------------------------------------------


def test_a_scan_is_a_while_that_reads_and_writes_rows() -> None:
    text = text_of(lambda c, xs: sw.scan(lambda c, x: (c + x, c), c, xs), X[0], X)
    assert (
        body_of(text)
        == """\
%0 = stablehlo.constant dense<0> : tensor<i32>
%1 = stablehlo.constant dense<0.000000e+00> : tensor<6x4xf32>
%2:3 = stablehlo.while(%arg2 = %0, %arg3 = %arg0, %arg4 = %1) : tensor<i32>, tensor<4xf32>, tensor<6x4xf32>
cond {
  %3 = stablehlo.constant dense<6> : tensor<i32>
  %4 = stablehlo.compare LT, %arg2, %3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %4 : tensor<i1>
}
do {
  %5 = stablehlo.constant dense<0> : tensor<i32>
  %6 = stablehlo.dynamic_slice %arg1, %arg2, %5, sizes = [1, 4] : (tensor<6x4xf32>, tensor<i32>, tensor<i32>) \
-> tensor<1x4xf32>
  %7 = stablehlo.reshape %6 : (tensor<1x4xf32>) -> tensor<4xf32>
  %8 = stablehlo.add %arg3, %7 : tensor<4xf32>
  %9 = stablehlo.reshape %arg3 : (tensor<4xf32>) -> tensor<1x4xf32>
  %10 = stablehlo.constant dense<0> : tensor<i32>
  %11 = stablehlo.dynamic_update_slice %arg4, %9, %arg2, %10 : (tensor<6x4xf32>, tensor<1x4xf32>, tensor<i32>, \
tensor<i32>) -> tensor<6x4xf32>
  %12 = stablehlo.constant dense<1> : tensor<i32>
  %13 = stablehlo.add %arg2, %12 : tensor<i32>
  stablehlo.return %13, %8, %11 : tensor<i32>, tensor<4xf32>, tensor<6x4xf32>
}
return %2#1, %2#2 : tensor<4xf32>, tensor<6x4xf32>
"""
    )


def test_a_condition_is_a_case_of_two_branches() -> None:
    text = text_of(lambda p, x: sw.cond(p, lambda: x + x, lambda: x), np.bool_(True), X)
    assert (
        body_of(text)
        == """\
%0 = stablehlo.convert %arg0 : (tensor<i1>) -> tensor<i32>
%1 = "stablehlo.case"(%0) ({
  stablehlo.return %arg1 : tensor<6x4xf32>
}, {
  %2 = stablehlo.add %arg1, %arg1 : tensor<6x4xf32>
  stablehlo.return %2 : tensor<6x4xf32>
}) : (tensor<i32>) -> tensor<6x4xf32>
return %1 : tensor<6x4xf32>
"""
    )


def test_a_range_counts_from_its_start_to_a_traced_end() -> None:
    text = text_of(lambda n, x: sw.fori_loop(np.int32(2), n, lambda i, c: c + c, x), np.int32(5), X)
    assert (
        body_of(text)
        == """\
%0 = stablehlo.constant dense<2> : tensor<i32>
%1:2 = stablehlo.while(%arg2 = %0, %arg3 = %arg1) : tensor<i32>, tensor<6x4xf32>
cond {
  %2 = stablehlo.compare LT, %arg2, %arg0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %2 : tensor<i1>
}
do {
  %3 = stablehlo.add %arg3, %arg3 : tensor<6x4xf32>
  %4 = stablehlo.constant dense<1> : tensor<i32>
  %5 = stablehlo.add %arg2, %4 : tensor<i32>
  stablehlo.return %5, %3 : tensor<i32>, tensor<6x4xf32>
}
return %1#1 : tensor<6x4xf32>
"""
    )


def test_a_program_has_one_size_for_any_number_of_steps() -> None:
    def steps(count: int) -> str:
        return text_of(lambda x: sw.scan(lambda c, _: (c + 1, c.sum()), x, None, length=count), X)

    assert steps(10).replace("10xf32", "10000xf32").replace("dense<10>", "dense<10000>") == steps(10000)


def test_a_fully_unrolled_scan_has_no_loop() -> None:
    text = text_of(lambda xs: sw.scan(lambda c, x: (c + x, c), xs[0], xs, unroll=True), X)
    assert "while" not in text
    assert text.count("stablehlo.add ") == 6


def test_an_associative_scan_has_no_loop_and_logarithmic_depth() -> None:
    text = text_of(lambda x: sw.associative_scan(np.add, x), np.arange(1024.0))
    assert "while" not in text
    assert text.count("stablehlo.add ") == 2 * 10 - 1


def test_constant_bounds_give_an_index_that_is_like_a_python_int() -> None:
    text = text_of(lambda x: sw.fori_loop(0, 3, lambda i, c: c * i, x), X)
    assert "xf64" not in text


# ---- what a body may do ---------------------------------------------------------------------------------------------


def test_a_body_uses_values_and_arrays_from_around_it() -> None:
    table = np.arange(100, dtype=np.float32)

    def f(w: Any, xs: Any) -> Any:
        scaled = w * 2

        def body(c: Any, x: Any) -> Any:
            inner, _ = sw.scan(lambda d, _: (d @ scaled + x, None), c, None, length=2)
            return inner, x.sum() + (table * x[0]).sum()

        return sw.scan(body, w[0], xs)

    text = text_of(f, W, X)
    assert "%arg2: tensor<100xf32>" in text  # hoisted, although a body is the first to use it
    assert text.count("stablehlo.while") == 2


def test_annotations_and_names_in_a_body() -> None:
    def f(xs: Any) -> Any:
        def body(c: Any, x: Any) -> Any:
            h = sw.name(sw.split(c + x, 0, "model"), "hidden")
            return h, h.sum()

        return sw.scan(body, np.zeros(4, np.float32), xs)

    traced = sw.jit(f, mesh=MESH).trace(X)
    assert traced.propagate().as_text().count('[{"model"}]') >= 4  # the carry in the loop and after it
    assert str(traced.why("hidden")).startswith("hidden (")
    assert 'sharded [{"model"}]' in str(traced.why("hidden"))
    assert 'sharded [{"model"}]' in str(traced.why("c"))  # the carry, by its parameter


def test_an_annotation_that_only_a_region_returns_is_used() -> None:
    text_of(lambda x: sw.cond(x.sum() > 0, lambda: sw.split(x, 0, "data"), lambda: x), X)

    def f(x: Any) -> Any:
        placed = sw.split(x, 0, "data")
        return sw.cond(x.sum() > 0, lambda: placed, lambda: x)

    text_of(f, X)


def test_python_numbers_in_a_carry_settle_one_after_another() -> None:
    def f(lax: Any, xs: Any) -> Any:
        return sw.scan(lambda c, x: ((c[0] + x[0], c[0] * 1, c[2] + 1), None), (0, 0, 0), xs)[0]

    expected = [np.float32, np.float32, np.int64]
    assert [x.dtype for x in f(np, X)] == expected
    info = sw.eval_shape(lambda xs: f(np, xs), X)
    assert [x.dtype for x in info] == expected


def test_a_gradient_in_a_body() -> None:
    text_of(lambda xs: sw.scan(lambda c, x: (c - sw.grad(lambda c: (c * c * x).sum())(c), None), xs[0], xs), X)


def test_a_branch_that_returns_what_was_differentiated_returns_a_value_of_the_program() -> None:
    def f(x: Any) -> Any:
        with contextlib.suppress(sw.ShapeError):
            sw.grad(lambda y: sw.cond(x.sum() > 0, lambda: y, lambda: -y).sum())(x)
        return x

    assert "stablehlo.return %arg0" in text_of(f, X)


def test_transforms_in_a_body() -> None:
    text_of(lambda xs: sw.scan(lambda c, x: (c, sw.vmap(lambda a: a * 2)(x)), 0, xs), X)
    text_of(lambda xs: sw.scan(lambda c, x: (c, sw.jit(lambda a: a * 2, in_shardings=sw.P("model"))(x)), 0, xs), X)
    text_of(lambda xs: sw.map(sw.manual(lambda a: a * 2, None, sw.P("model"), sw.P("model")), xs), X)


def test_a_body_that_raises_leaves_the_program_as_it_was() -> None:
    def f(x: Any) -> Any:
        with pytest.raises(KeyError):
            sw.scan(lambda c, row: {}["none"], 0, x)
        with pytest.raises(sw.DTypeError):
            sw.cond(x.sum() > 0, lambda: x, lambda: x.astype(float))
        return sw.scan(lambda c, row: (c + row, None), x[0], x)[0]

    assert text_of(f, X).count("stablehlo.while") == 1
    assert "case" not in text_of(f, X)


# ---- outside a traced function --------------------------------------------------------------------------------------


def test_arrays_on_a_mesh_stay_there() -> None:
    x = sw.device_put(X, sw.NamedSharding(MESH, sw.P("data")))
    carry, ys = sw.scan(lambda c, row: (c + row, c * 2), x[0], x)
    results = [
        carry,
        ys,
        sw.map(lambda row: row * 2, x),
        sw.while_loop(lambda v: v.sum() > 1, lambda v: v / 2, x),
        sw.fori_loop(0, 2, lambda i, v: v + i, x),
        sw.cond(x.sum() > 0, lambda: x, lambda: -x),
        sw.switch(1, [lambda v: v, lambda v: -v], x),
        sw.associative_scan(np.add, x),
    ]
    assert all(isinstance(result, sw.Array) for result in results)
    np.testing.assert_array_equal(carry, X[0] + X.sum(0))
    np.testing.assert_array_equal(results[-1], np.cumsum(X, 0))


def test_a_loop_writes_into_no_array_of_the_caller() -> None:
    def in_place(c: Any, row: Any) -> Any:
        c += row
        row += 1
        return c, c

    start, xs = np.zeros(4, np.float32), X.copy()
    last, ys = sw.scan(in_place, start, xs)
    np.testing.assert_array_equal(start, 0)
    np.testing.assert_array_equal(xs, X)
    np.testing.assert_array_equal(ys, np.cumsum(X, 0))
    np.testing.assert_array_equal(last, ys[-1])


def test_without_a_mesh_annotated_bodies_are_numpy_programs() -> None:
    def body(c: Any, row: Any) -> Any:
        return sw.split(c + row, 0, "model"), sw.name(c, "c")

    np.testing.assert_array_equal(sw.scan(body, np.zeros(4, np.float32), X)[0], X.sum(0))
    picked = sw.cond(True, lambda: sw.split(X, 0, "data"), lambda: sw.split(-X, 0, "data"))
    np.testing.assert_array_equal(picked, X)


def test_tracers_of_a_finished_program_are_refused() -> None:
    kept: list[Any] = []
    sw.jit(lambda x: (kept.append(x), x)[1], mesh=MESH).trace(X)
    leaked = "trace: a traced value must not leave the function that recorded it, got Tracer<float32[6,4]>"
    for use in (
        lambda x: sw.scan(lambda c, row: (c, row), 0, x),
        lambda x: sw.while_loop(lambda v: True, lambda v: v, x),
        lambda x: sw.cond(True, lambda v: v, lambda v: v, x),
        lambda x: sw.associative_scan(np.add, x),
    ):
        with pytest.raises(sw.UnsupportedError, match=re.escape(leaked)):
            use(kept[0])
    with pytest.raises(sw.UnsupportedError, match="leave the function that recorded it, got one of a finished program"):
        kept[0] + 1
    for need in (np.asarray, float, operator.index, hash, bool):
        with pytest.raises(sw.TracerConversionError, match=re.escape(leaked)):
            need(kept[0])
