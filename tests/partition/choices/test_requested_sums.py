# SPDX-License-Identifier: Apache-2.0
"""`P(unreduced=…)` in an annotation: the value stays a sum of parts, or a warning says what is in the way."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"x": 2, "y": 4})
RNG = np.random.default_rng(2)
A, B, C = (RNG.integers(-9, 9, shape).astype(np.float32) for shape in [(8, 16), (16, 8), (8, 8)])
SPLIT, WHOLE = (P(None, "y"), P("y"), P()), (P(), P(), P())
PARTS = P(None, None, unreduced="y")


def product_with_itself(y: Any, c: Any) -> Any:
    return sw.shard(y * -sw.shard(y, PARTS), PARTS) + c


def compiled(function: Callable[..., Any], specs: Any, **options: Any) -> sw.Program:
    jitted = sw.jit(function, mesh=MESH, in_shardings=specs, out_shardings=P(), **options)
    return jitted.lower(A, B, C).compile()


def assigned_products(program: sw.Program) -> list[str]:
    """The placements of products, as the resharded text writes them."""
    lines = [line for line in program.as_text("resharded").splitlines() if "stablehlo.dot_general" in line]
    return [re.findall(r"<\[<@mesh, (.*?)>\]>", line)[0] for line in lines]


@pytest.mark.parametrize("objective", ["time", "bytes"])
@pytest.mark.parametrize("specs", [SPLIT, WHOLE], ids=["split", "whole"])
@pytest.mark.parametrize(
    "function",
    [
        lambda a, b, c: sw.shard(a @ b, PARTS) + c,
        lambda a, b, c: sw.shard(-(a @ b), PARTS) * c,
        lambda a, b, c: sw.shard(np.transpose(c + a @ b), PARTS)[::2],
        lambda a, b, c: sw.shard(np.concatenate([a @ b, c]), PARTS)[3:9],
    ],
    ids=["product", "negated", "sum", "joined"],
)
def test_the_product_is_left_unreduced(function: Callable[..., Any], specs: Any, objective: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = compiled(function, specs, objective=objective)
    assert all('unreduced={"y"}' in placement for placement in assigned_products(program))
    np.testing.assert_array_equal(program(A, B, C), function(A, B, C))


def test_an_argument_that_is_unreduced_may_stay_so() -> None:
    text = """sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"y"}>}) -> tensor<4xf32> {
  %0 = stablehlo.negate %a : tensor<4xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{}], unreduced={"y"}> : tensor<4xf32>
  return %1 : tensor<4xf32>
}"""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sw.parse(text).compile().collectives().by_kind() == {"all_reduce": 1}


@pytest.mark.parametrize(
    ("function", "obstacle"),
    [
        (lambda a, b, c: sw.shard(np.tanh(a @ b), PARTS) + c, "stablehlo.tanh, which does not distribute over one"),
        (lambda a, b, c: sw.shard((a @ b) ** 2, PARTS) + c, "stablehlo.multiply, which does not distribute over one"),
        (
            lambda a, b, c: product_with_itself(a @ b, c),
            "a value that is reduced before",
        ),
        (lambda a, b, c: sw.shard(c, PARTS) + a @ b, "an argument that is whole"),
        (
            lambda a, b, c: sw.shard(a.astype(np.float16) @ b.astype(np.float16), PARTS) + c,
            "stablehlo.dot_general, whose parts are wider than the sum until they are reduced",
        ),
    ],
    ids=["tanh", "square", "with itself", "argument", "float16"],
)
def test_what_cannot_be_left_unreduced_is_refused(function: Callable[..., Any], obstacle: str) -> None:
    wanted = rf'shard: unreduced={{"y"}} takes a sum of parts, got {obstacle} \(at .*{__name__.split(".")[-1]}.py:\d+\)'
    with pytest.warns(sw.ShardingWarning, match=wanted + "; drop unreduced="):
        program = compiled(function, SPLIT)
    np.testing.assert_allclose(program(A, B, C), function(A, B, C), rtol=1e-5, atol=1e-5)


def test_requests_of_one_value_are_united() -> None:
    def function(a: Any, b: Any, c: Any) -> Any:
        y = a @ b
        return sw.shard(y, P(None, None, unreduced="x")) + sw.shard(y, PARTS) + c

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = compiled(function, WHOLE)
    assert assigned_products(program) == ['[{}, {}], unreduced={"x", "y"}']
    np.testing.assert_array_equal(program(A, B, C), function(A, B, C))


def test_a_sum_that_a_loop_leaves_unreduced() -> None:
    def function(a: Any, b: Any, c: Any) -> Any:
        return sw.shard(sw.fori_loop(0, 3, lambda i, total: total + a @ b, c), PARTS) * 2

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = compiled(function, SPLIT)
    np.testing.assert_array_equal(program(A, B, C), 2 * (C + 3 * (A @ B)))


@pytest.mark.parametrize("op", ["negate %v{}", "add %v{}, %v{}"], ids=["chain", "diamonds"])
def test_requests_take_linear_time_and_no_stack(op: str) -> None:
    square, count = "tensor<4x4xf32>", 40_000
    lines = [f"  %v{i + 1} = stablehlo.{op.replace('{}', str(i))} : {square}" for i in range(count)]
    text = f"""sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: {square} {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"y"}}]>}}, %b: {square}) -> {square} {{
  %v0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({square}, {square}) -> {square}
{chr(10).join(lines)}
  %r = sdy.sharding_constraint %v{count} <@mesh, [{{}}, {{}}], unreduced={{"y"}}> : {square}
  return %r : {square}
}}"""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(sw.parse(text).compile().collectives()) == 1


def seconds_of_annotations(count: int) -> float:
    """The time to compile a chain of ops with an annotation after each, which one sum passes."""
    square = "tensor<4x4xf32>"
    lines = [
        f"""  %n{i} = stablehlo.negate %v{i} : {square}
  %v{i + 1} = sdy.sharding_constraint %n{i} <@mesh, [{{}}, {{}}], unreduced={{"y"}}> : {square}"""
        for i in range(count)
    ]
    module = sw.parse(f"""sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: {square} {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"y"}}]>}}, %b: {square}) -> {square} {{
  %v0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({square}, {square}) -> {square}
{chr(10).join(lines)}
  return %v{count} : {square}
}}""")
    start = time.process_time()
    assert len(module.compile().collectives()) == 1
    return time.process_time() - start


def test_many_annotations_on_one_chain_take_linear_time() -> None:
    few, many = (min(seconds_of_annotations(count) for _ in range(2)) for count in (500, 4000))
    assert many < 20 * few


@pytest.mark.parametrize(
    "add",
    [
        lambda carry, part: sw.shard(carry + part, PARTS),
        lambda carry, part: carry + sw.shard(part, PARTS),
        lambda carry, part: sw.shard(sw.shard(carry, PARTS) - part, PARTS),
    ],
    ids=["sum", "addend", "difference"],
)
def test_an_annotated_carry_is_reduced_once_after_the_loop(add: Callable[..., Any]) -> None:
    def accumulated(rows: Any, w: Any, c: Any) -> Any:
        return sw.scan(lambda carry, row: (add(carry, row.T @ w), None), c, rows)[0]

    rows = RNG.integers(-9, 9, (5, 16, 8)).astype(np.float32)
    specs = P(None, "y"), P("y"), P()
    program = sw.jit(accumulated, mesh=MESH, in_shardings=specs, out_shardings=P()).lower(rows, B, C).compile()
    assert [(row.kind, row.count) for row in program.collectives()] == [("all_reduce", 1)]
    parts = [row.T @ B for row in rows]
    expected = C
    for part in parts:
        expected = add(expected, part)
    np.testing.assert_array_equal(program(rows, B, C), expected)


def test_an_annotated_carry_that_is_read_otherwise_is_reduced_in_each_trip() -> None:
    def accumulated(rows: Any, w: Any, c: Any) -> Any:
        return sw.scan(lambda carry, row: (sw.shard(np.tanh(carry) + row.T @ w, PARTS), None), c, rows)[0]

    rows = RNG.integers(-9, 9, (5, 16, 8)).astype(np.float32)
    specs = P(None, "y"), P("y"), P()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = sw.jit(accumulated, mesh=MESH, in_shardings=specs, out_shardings=P()).lower(rows, B, C).compile()
    assert sum(row.count for row in program.collectives()) >= 5
    np.testing.assert_allclose(program(rows, B, C), accumulated(rows, B, C), rtol=1e-5)
