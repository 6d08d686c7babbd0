# SPDX-License-Identifier: Apache-2.0
"""Scans: chlo.scan of texts, and the scans that counted loops become in local programs."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from shardwise.recording.tracing import current_trace
from tests.op.control_flow.test_control_flow import MESHES, MODES

RNG = np.random.default_rng(5)
X, H = RNG.standard_normal((4, 3, 5), np.float32), RNG.standard_normal((4, 5), np.float32)
ROW = "tensor<4x5xf32>"
TYPES = f"(tensor<4x3x5xf32>, {ROW}) -> (tensor<4x3x5xf32>, {ROW})"


def text(attributes: str = "", *, mesh: str = "", spec: str = "") -> str:
    """y = tanh(x) + h, and the next h is y * x, along dim 1."""
    sharding = f" {{sdy.sharding = #sdy.sharding<@mesh, {spec}>}}" if spec else ""
    return f"""module @m {{
  {mesh}
  func.func public @main(%x: tensor<4x3x5xf32>{sharding}, %h: {ROW}) -> (tensor<4x3x5xf32>, {ROW}) {{
    %0:2 = chlo.scan(%x) inits (%h) dimension=1  {attributes}{{
    ^bb0(%a: {ROW}, %b: {ROW}):
      %t = stablehlo.tanh %a : {ROW}
      %y = stablehlo.add %t, %b : {ROW}
      %n = stablehlo.multiply %y, %a : {ROW}
      stablehlo.return %y, %n : {ROW}, {ROW}
    }} : {TYPES}
    return %0#0, %0#1 : tensor<4x3x5xf32>, {ROW}
  }}
}}
"""


def expected(x: Any, h: Any, *, reverse: bool = False) -> tuple[Any, Any]:
    rows = [None] * x.shape[1]
    for i in reversed(range(x.shape[1])) if reverse else range(x.shape[1]):
        rows[i] = np.tanh(x[:, i]) + h
        h = rows[i] * x[:, i]
    return np.stack(rows, axis=1), h


PLACED = {
    "whole": ("", ""),
    "even": ('sdy.mesh @mesh = <["x"=4]>', '[{"x"}, {}, {}]'),
    "uneven": ('sdy.mesh @mesh = <["x"=2, "y"=3]>', '[{"y"}, {}, {"x"}]'),
    "along the rows": ('sdy.mesh @mesh = <["x"=3]>', '[{}, {"x"}, {}]'),
}


@pytest.mark.parametrize("placed", PLACED)
@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_of_a_text_gives_what_a_loop_gives(reverse: bool, placed: str) -> None:
    attributes = "attributes {is_reverse = true} " if reverse else ""
    mesh, spec = PLACED[placed]
    module = sw.parse(text(attributes, mesh=mesh, spec=spec))
    assert str(sw.parse(str(module))) == str(module)
    program = module.compile()
    assert program.as_text("local").count("shardwise.scan") == 1
    for mode in MODES:
        for found, wanted in zip(program.run(X, H, **mode), expected(X, H, reverse=reverse)):
            np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def imported(x: Any, h: Any) -> Any:
    """The function of the text, in the program that is traced."""
    trace = current_trace()
    assert trace is not None
    types = [((4, 3, 5), "float32"), ((4, 5), "float32")]
    return trace.emit_op("sdy.named_computation", [x, h], {"name": "f"}, types, [trace.core.import_text(text())])


def test_a_scan_of_a_text_has_a_gradient() -> None:
    def gradient_of(f: Any) -> Any:
        def total(x: Any, h: Any) -> Any:
            ys, last = f(x, h)
            return (ys * ys).sum() + last.sum()

        return sw.jit(sw.grad(total, (0, 1)), mesh=MESHES["one"])(X, H)

    gradients = gradient_of(imported)
    assert len(gradients) == 2
    for found, wanted in zip(gradients, gradient_of(expected), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_a_scan_of_a_text_is_batched() -> None:
    xs, hs = np.stack([X, X + 1, X * 2]), np.stack([H, H - 1, H])
    function = sw.jit(lambda xs, hs: sw.vmap(imported)(xs, hs), mesh=MESHES["one"])
    results = function(xs, hs)
    assert len(results) == 2
    for found, wanted in zip(results, zip(*(expected(x, h) for x, h in zip(xs, hs))), strict=True):
        np.testing.assert_allclose(found, np.stack(wanted), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dimension=1", "dimension=3", "chlo.scan: dimension must be a dim of each input, got 3 for "
         "tensor<4x3x5xf32>; name a dim of the inputs"),
        ("dimension=1", "dimension=2", "chlo.scan: the body's arguments must be rows of the inputs along dim 2, then "
         "the carries, got tensor<4x5xf32>, tensor<4x5xf32> for tensor<4x3x5xf32>, tensor<4x5xf32>; correct its "
         "arguments"),
        ("dimension=1", "dimension=1 attributes {scan_dim_size = 2 : i64}", "chlo.scan: each input must have 2 rows "
         "along dim 1, got tensor<4x3x5xf32>; scan inputs with as many rows"),
        ("dimension=1", "dimension=1 attributes {is_reverse = 1 : i64}", "chlo.scan: attribute 'is_reverse' must be "
         "given and of the right kind, got another kind"),
        (f"%y, %n : {ROW}, {ROW}", f"%y : {ROW}", "chlo.scan: resultSegmentSizes must have 2 sizes, whose sum is 1, "
         "got [1, 1]; correct it"),
    ],
)  # fmt: skip
def test_a_scan_that_does_not_fit_is_an_error(old: str, new: str, message: str) -> None:
    with pytest.raises(sw.ParseError) as caught:
        sw.parse(text().replace(old, new))
    assert f"4:12: {message} (at " in str(caught.value)


# ---- scans of local programs ----------------------------------------------------------------------------------------


def local(attributes: str, operands: str = "%x, %x, %h, %h", types: str = "", arguments: str = "") -> str:
    types = types or "tensor<4x5xf32>, tensor<4x5xf32>, tensor<5xf32>, tensor<5xf32>"
    arguments = arguments or "%a: tensor<5xf32>, %b: tensor<5xf32>, %c: tensor<5xf32>"
    return f"""module @m attributes {{shardwise.stage = "local"}} {{
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%x: tensor<4x5xf32>, %h: tensor<5xf32>) -> (tensor<4x5xf32>, tensor<5xf32>) {{
    %0:2 = "shardwise.scan"({operands}) <{{{attributes}}}> ({{
    ^bb0({arguments}):
      %y = stablehlo.add %a, %b : tensor<5xf32>
      %n = stablehlo.multiply %y, %c : tensor<5xf32>
      stablehlo.return %y, %n : tensor<5xf32>, tensor<5xf32>
    }}) : ({types}) -> (tensor<4x5xf32>, tensor<5xf32>)
    return %0#0, %0#1 : tensor<4x5xf32>, tensor<5xf32>
  }}
}}
"""


GOOD = (
    "dimension = 0 : i64, offsets = array<i64: 0, -1>, operandSegmentSizes = array<i32: 2, 1, 1>, "
    "resultSegmentSizes = array<i32: 1, 1>, scan_dim_size = 4 : i64"
)


def test_a_scan_of_a_local_program_reads_back() -> None:
    module = sw.parse(local(GOOD))
    assert str(sw.parse(str(module))) == str(module)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0, -1>", "0, -2>", "shardwise.scan: input 1 must have the rows of 4 trips from -2 on, but for one before its "
         "first or after its last, got tensor<4x5xf32>; correct its offset"),
        ("0, -1>", "0, 2>", "shardwise.scan: input 1 must have the rows of 4 trips from 2 on, but for one before its "
         "first or after its last, got tensor<4x5xf32>; correct its offset"),
        ("0, -1>", "0, 0>", "shardwise.scan: there must be a border for each of the 0 inputs that lack a row, got 1; "
         "correct operandSegmentSizes"),
        ("0, -1>", "-1, -1>", "shardwise.scan: input 1 must have a border, the row that it lacks: tensor<5xf32>, got "
         "tensor<4x5xf32>, tensor<4x5xf32>, tensor<5xf32>, tensor<5xf32>; add it behind the inputs"),
        ("0, -1>", "0>", "shardwise.scan: there must be an offset for each of the 2 inputs, got 1"),
        ("size = 4", "size = 7", "shardwise.scan: input 0 must have the rows of 7 trips from 0 on, but for one before "
         "its first or after its last, got tensor<4x5xf32>; correct its offset"),
        ("size = 4", "size = -4", "shardwise.scan: scan_dim_size must not be negative, got -4"),
        (": 2, 1, 1>", ": 2, 1, 2>", "shardwise.scan: operandSegmentSizes must have 3 sizes, whose sum is 4, got "
         "[2, 1, 2]; correct it"),
        ("i32: 1, 1>", "i32: 2, 0>", "shardwise.scan: there must be as many carries among the results as among the "
         "operands, got 0 for 1; return each carry"),
    ],
)  # fmt: skip
def test_a_scan_of_a_local_program_is_verified(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(sw.ParseError) as caught:
        sw.parse(local(GOOD.replace(old, new)))
    assert f"4:12: {message} (at " in str(caught.value)


def test_a_local_scan_in_a_global_program_is_an_error() -> None:
    with pytest.raises(sw.ParseError, match=r"shardwise\.scan: must be in a local program, got a program at stage"):
        sw.parse(local(GOOD).replace(' attributes {shardwise.stage = "local"}', ""))


def test_the_body_of_a_scan_counts_among_the_ops_of_its_function() -> None:
    ops = 30
    row = "tensor<5xf32>"
    body = "\n".join(f"%t{k} = stablehlo.negate %{'a' if k == 1 else f't{k - 1}'} : {row}" for k in range(1, ops + 1))
    text = f"""func.func @main(%x: tensor<4x5xf32>, %h: {row}) -> tensor<4x5xf32> {{
      %c1 = func.call @layer(%x, %h) : (tensor<4x5xf32>, {row}) -> tensor<4x5xf32>
      %c2 = func.call @layer(%c1, %h) : (tensor<4x5xf32>, {row}) -> tensor<4x5xf32>
      return %c2 : tensor<4x5xf32>
    }}
    func.func private @layer(%x: tensor<4x5xf32>, %h: {row}) -> tensor<4x5xf32> {{
      %0:2 = chlo.scan(%x) inits (%h) dimension=0 {{
      ^bb0(%a: {row}, %b: {row}):
        {body}
        %y = stablehlo.add %t{ops}, %b : {row}
        stablehlo.return %y, %y : {row}, {row}
      }} : (tensor<4x5xf32>, {row}) -> (tensor<4x5xf32>, {row})
      return %0#0 : tensor<4x5xf32>
    }}"""
    program = sw.parse(text).compile()
    assert str(program.as_text("global")).count("call @layer") == 2
    x, h = np.arange(20, dtype=np.float32).reshape(4, 5), np.arange(5, dtype=np.float32)
    once = h + np.cumsum(x, 0)
    np.testing.assert_array_equal(np.asarray(program(x, h)), h + np.cumsum(once, 0))


# ---- loops that become scans ----------------------------------------------------------------------------------------


def shifted(scan: Any, x: Any, h: Any) -> Any:
    return scan(lambda h, row: (np.sin(h * row), h), h, x)


def backwards(scan: Any, x: Any, h: Any) -> Any:
    return scan(lambda h, row: (h + row, np.cos(h)), h, x, reverse=True)


def nested(scan: Any, x: Any, h: Any) -> Any:
    def outer(h: Any, row: Any) -> Any:
        inner, ys = scan(lambda a, other: (np.sin(a + other), a * row), h, x)
        return inner, ys.sum(0)

    return scan(outer, h, x)


def with_a_branch(scan: Any, x: Any, h: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        h = sw.cond(row.sum() > 0, lambda: h + row, lambda: h - row)
        return h, h

    return scan(step, h, x)


def counting(scan: Any, x: Any, h: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        i, h = carry
        return (i + 1, h + row * i), h

    return scan(step, (0, h), x)


def gradient(scan: Any, x: Any, h: Any) -> Any:
    def total(x: Any, h: Any) -> Any:
        return (scan(lambda h, row: (np.tanh(h * row),) * 2, h, x)[1] ** 2).sum()

    return sw.grad(total, (0, 1))(x, h)


def gradient_of_gradient(scan: Any, x: Any, h: Any) -> Any:
    inner = sw.grad(lambda x, h: (backwards(scan, x, h)[1] ** 2).sum(), 1)
    return sw.grad(lambda x, h: (inner(x, h) ** 2).sum(), (0, 1))(x, h)


LOOPS = [shifted, backwards, nested, with_a_branch, counting, gradient, gradient_of_gradient]
ROWS, ENTRY = RNG.standard_normal((6, 8, 5), np.float32), RNG.standard_normal((8, 5), np.float32)


def lowered(loop: Any, mesh: str, scan: Any = sw.scan) -> sw.Lowered:
    axis = MESHES[mesh].axis_names[0]
    function = sw.jit(partial(loop, scan), mesh=MESHES[mesh], in_shardings=(P(None, axis), P(axis)))
    return function.lower(ROWS, ENTRY)


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_loops_over_rows_are_scans(loop: Any) -> None:
    unrolled = lowered(loop, "one", partial(sw.scan, unroll=True)).compile()
    wanted = sw.tree.leaves(unrolled.run(ROWS, ENTRY))
    assert "shardwise.scan" not in str(unrolled.as_text("local"))
    for mesh in ("one", "eight", "three"):
        program = lowered(loop, mesh).compile()
        local_text = str(program.as_text("local"))
        assert "shardwise.scan" in local_text
        assert "stablehlo.while" not in local_text
        for mode in MODES:
            for found, leaf in zip(sw.tree.leaves(program.run(ROWS, ENTRY, **mode)), wanted):
                np.testing.assert_allclose(found, leaf, rtol=2e-5, atol=2e-5)


def test_a_row_before_the_first_is_a_border() -> None:
    local_text = str(lowered(gradient, "one").compile().as_text("local"))
    assert re.search(r"offsets = array<i64: (0, )*-1", local_text)
    assert "stablehlo.select" not in local_text


@pytest.mark.parametrize("select_first", [False, True])
def test_a_border_has_the_dim_of_its_rows_or_not(select_first: bool) -> None:
    row, part = "tensor<8xf32>", "tensor<1x8xf32>"
    first, slice_of = part if select_first else row, f"%p : tensor<i1>, {part}"
    steps = (
        f"%q = stablehlo.select %first, %f, {slice_of}\n%r = stablehlo.reshape %q : ({part}) -> {row}"
        if select_first
        else f"%q = stablehlo.reshape %p : ({part}) -> {row}\n%r = stablehlo.select %first, %f, %q : tensor<i1>, {row}"
    )
    text = f"""func.func @main(%xs: tensor<10x8xf32>, %f: {first}, %h: {row}) -> {row} {{
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %ten = stablehlo.constant dense<10> : tensor<i32>
      %w:2 = stablehlo.while(%i = %zero, %a = %h) : tensor<i32>, {row}
      cond {{
        %c = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }} do {{
        %im = stablehlo.subtract %i, %one : tensor<i32>
        %first = stablehlo.compare EQ, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %p = stablehlo.dynamic_slice %xs, %im, %zero, sizes = [1, 8]
            : (tensor<10x8xf32>, tensor<i32>, tensor<i32>) -> {part}
        {steps}
        %n = stablehlo.add %a, %r : {row}
        %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j, %n : tensor<i32>, {row}
      }}
      return %w#1 : {row}
    }}"""
    xs, border, h = RNG.integers(-9, 9, (3, 10, 8)).astype(np.float32)
    border, h = border[0], h[0]
    program = sw.parse(text).compile(MESHES["three"])
    assert "shardwise.scan" in str(program.as_text("local"))
    found = program(xs, border[None] if select_first else border, h)
    np.testing.assert_array_equal(np.asarray(found), h + border + xs[:-1].sum(0))


def test_loops_without_rows_stay() -> None:
    def f(x: Any) -> Any:
        x = sw.fori_loop(0, 5, lambda i, x: x * 2 + i, x)
        return sw.while_loop(lambda x: x.sum() < 100, lambda x: x * 3, x)

    text_of = str(sw.jit(f, mesh=MESHES["one"]).lower(ENTRY).compile().as_text("local"))
    assert (text_of.count("stablehlo.while"), text_of.count("shardwise.scan")) == (2, 0)


def test_the_ledger_counts_the_trips_of_a_scan() -> None:
    def f(x: Any, h: Any) -> Any:
        return sw.scan(lambda h, row: (h + row.sum(), row), h, x)

    mesh = sw.Mesh({"x": 4})
    program = sw.jit(f, mesh=mesh, in_shardings=(P(None, "x"), P())).lower(ROWS, ENTRY).compile()
    assert "shardwise.scan" in str(program.as_text("local"))
    assert [(row.kind, row.count) for row in program.collectives().rows] == [("all_reduce", len(ROWS))]
