# SPDX-License-Identifier: Apache-2.0
"""Gradients of loops that stack their rows along any dim, with or without a reshape that adds it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from shardwise.recording.tracing import current_trace
from tests.op.control_flow.test_control_flow import MESHES, MODES

SHAPE = (4, 3, 5)


def text(dim: int, trips: int, *, has_dim: bool, reverse: bool) -> str:
    """while(h, ys) { h = tanh(h * xs[i]); ys[i] = h }, whose rows and stack are along the dim."""
    shape = [*SHAPE]
    shape[dim] = trips
    whole = "x".join(map(str, shape))
    part = "x".join(map(str, [*shape[:dim], 1, *shape[dim + 1 :]]))
    row = part if has_dim else "x".join(map(str, [*shape[:dim], *shape[dim + 1 :]]))
    starts = ", ".join("%k" if d == dim else "%zero" for d in range(3))
    sizes = ", ".join("1" if d == dim else str(n) for d, n in enumerate(shape))
    stack, row, part = f"tensor<{whole}xf32>", f"tensor<{row}xf32>", f"tensor<{part}xf32>"
    indices = ", ".join(["tensor<i32>"] * 3)
    drop = "" if has_dim else f"%x = stablehlo.reshape %slice : ({part}) -> {row}"
    add = "" if has_dim else f"%update = stablehlo.reshape %y : ({row}) -> {part}"
    k = "stablehlo.subtract %last, %i" if reverse else "stablehlo.add %zero, %i"
    return f"""func.func @main(%xs: {stack}, %h: {row}) -> ({row}, {stack}) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %trips = stablehlo.constant dense<{trips}> : tensor<i32>
  %last = stablehlo.constant dense<{trips - 1}> : tensor<i32>
  %zeros = stablehlo.constant dense<0.0> : {stack}
  %w:3 = stablehlo.while(%i = %zero, %c = %h, %ys = %zeros) : tensor<i32>, {row}, {stack}
  cond {{
    %p = stablehlo.compare LT, %i, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %k = {k} : tensor<i32>
    %slice = stablehlo.dynamic_slice %xs, {starts}, sizes = [{sizes}] : ({stack}, {indices}) -> {part}
    {drop}
    %z = stablehlo.multiply %c, {"%slice" if has_dim else "%x"} : {row}
    %y = stablehlo.tanh %z : {row}
    {add}
    %next = stablehlo.dynamic_update_slice %ys, {"%y" if has_dim else "%update"}, {starts} :
      ({stack}, {part}, {indices}) -> {stack}
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %y, %next : tensor<i32>, {row}, {stack}
  }}
  return %w#1, %w#2 : {row}, {stack}
}}"""


def imported(program: str, xs: Any, h: Any) -> Any:
    """The function of the text, in the program that is traced."""
    trace = current_trace()
    assert trace is not None
    types = [(h.shape, "float32"), (xs.shape, "float32")]
    return trace.emit_op("sdy.named_computation", [xs, h], {"name": "f"}, types, [trace.core.import_text(program)])


def expected(xs: Any, h: Any, dim: int, *, has_dim: bool, reverse: bool) -> tuple[Any, Any]:
    trips = xs.shape[dim]
    rows = [None] * trips
    for i in reversed(range(trips)) if reverse else range(trips):
        x = xs[(slice(None),) * dim + ((slice(i, i + 1)) if has_dim else i,)]
        rows[i] = h = np.tanh(h * x)
    return h, np.concatenate(rows, dim) if has_dim else np.stack(rows, dim)


@pytest.mark.parametrize("mesh", ["one", "three"])
@pytest.mark.parametrize("trips", [1, 6])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("has_dim", [False, True])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_the_gradient_reads_the_rows_that_the_loop_stacks(
    dim: int, has_dim: bool, reverse: bool, trips: int, mesh: str
) -> None:
    rng = np.random.default_rng(7)
    shape = [*SHAPE]
    shape[dim] = trips
    xs = rng.standard_normal(shape).astype(np.float32)
    h = np.take(rng.standard_normal(shape).astype(np.float32), [0], dim)
    h = h if has_dim else h.squeeze(dim)
    program = text(dim, trips, has_dim=has_dim, reverse=reverse)
    weights = rng.standard_normal(shape).astype(np.float32)

    def gradient_of(f: Any) -> Any:
        def total(xs: Any, h: Any) -> Any:
            last, ys = f(xs, h)
            return (ys * ys * weights).sum() + last.sum()

        specs = (P(*["x" if d == (dim + 1) % 3 else None for d in range(3)]), P())
        return sw.jit(sw.grad(total, (0, 1)), mesh=MESHES[mesh], in_shardings=specs).lower(xs, h).compile()

    found = gradient_of(lambda xs, h: imported(program, xs, h))
    wanted = gradient_of(lambda xs, h: expected(xs, h, dim, has_dim=has_dim, reverse=reverse)).run(xs, h)
    assert len(wanted) == 2
    for mode in MODES:
        for ours, theirs in zip(found.run(xs, h, **mode), wanted, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    if trips > 1:
        # Operands: inputs, borders, carries. Results: outputs, carries. The carries are h and its cotangent, no stack.
        local_text = str(found.as_text("local"))
        segments = re.findall(r"SegmentSizes = array<i32: ([\d, ]*)>", local_text)
        assert (segments, local_text.count("stablehlo.while")) == (["1, 0, 1", "1, 1", "3, 1, 1", "1, 1"], 0)


def test_rows_that_are_views_of_several_arrays_are_stacked() -> None:
    """Where each device computes for itself, the rows of different devices are no view of one array."""
    program = sw.parse("""
sdy.mesh @mesh = <["x"=6]>
func.func @main(%xs: tensor<1x4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(2)3, ?}, {"x":(1)2, ?}p1]>},
    %first: tensor<1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)3}p2], replicated={"x":(3)2}>})
    -> (tensor<1x4xi32>, tensor<2xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)3, ?}]>}) {
  %s:2 = chlo.scan(%xs) inits (%first) dimension=1 attributes {is_reverse = true} {
  ^bb0(%x: tensor<1xi32>, %carry: tensor<1xi32>):
    %least = stablehlo.minimum %x, %carry : tensor<1xi32>
    %most = stablehlo.maximum %least, %x : tensor<1xi32>
    stablehlo.return %most, %least : tensor<1xi32>, tensor<1xi32>
  } : (tensor<1x4xi32>, tensor<1xi32>) -> (tensor<1x4xi32>, tensor<1xi32>)
  %back = stablehlo.reverse %s#1, dims = [0] : tensor<1xi32>
  %twice = stablehlo.concatenate %back, %s#1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  return %s#0, %twice : tensor<1x4xi32>, tensor<2xi32>
}""").compile()
    for mode in MODES:
        rows, twice = program.run(np.array([[4, 2, 3, 1]], np.int32), np.array([3], np.int32), **mode)
        np.testing.assert_array_equal(rows, [[4, 2, 3, 1]])
        np.testing.assert_array_equal(twice, [1, 1])
