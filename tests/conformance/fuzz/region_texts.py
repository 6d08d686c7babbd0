# SPDX-License-Identifier: Apache-2.0
"""Small programs with loops, branches and calls, to be mutated, compiled and run."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=3]>\n'
ROWS = 'tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}'
T = "tensor<4x6xf32>"

COUNTED = f"""{MESH}func.func @main(%x: {ROWS}, %n: tensor<i32>) -> (tensor<i32>, {T}) {{
  %z = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %z, %y = %x) : tensor<i32>, {T}
  cond {{
    %c = stablehlo.constant dense<5> : tensor<i32>
    %p = stablehlo.compare LT, %i, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %t = stablehlo.transpose %y, dims = [1, 0] : ({T}) -> tensor<6x4xf32>
    %u = stablehlo.dot_general %y, %t, contracting_dims = [1] x [0] : ({T}, tensor<6x4xf32>) -> tensor<4x4xf32>
    %v = stablehlo.dot_general %u, %x, contracting_dims = [1] x [0] : (tensor<4x4xf32>, {T}) -> {T}
    stablehlo.return %j, %v : tensor<i32>, {T}
  }}
  return %0#0, %0#1 : tensor<i32>, {T}
}}
"""
STACKED = f"""{MESH}func.func @main(%xs: tensor<3x4x6xf32>, %x: {ROWS}) -> (tensor<3x4x6xf32>, {T}) {{
  %z = stablehlo.constant dense<0> : tensor<i32>
  %e = stablehlo.constant dense<0.0> : tensor<3x4x6xf32>
  %0:3 = stablehlo.while(%i = %z, %y = %x, %out = %e) : tensor<i32>, {T}, tensor<3x4x6xf32>
  cond {{
    %c = stablehlo.constant dense<3> : tensor<i32>
    %p = stablehlo.compare LT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %k = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %s = stablehlo.dynamic_slice %xs, %i, %k, %k, sizes = [1, 4, 6]
        : (tensor<3x4x6xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x6xf32>
    %r = stablehlo.reshape %s : (tensor<1x4x6xf32>) -> {T}
    %a = stablehlo.add %y, %r : {T}
    %b = stablehlo.reshape %a : ({T}) -> tensor<1x4x6xf32>
    %o = stablehlo.dynamic_update_slice %out, %b, %i, %k, %k
        : (tensor<3x4x6xf32>, tensor<1x4x6xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x4x6xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %a, %o : tensor<i32>, {T}, tensor<3x4x6xf32>
  }}
  return %0#2, %0#1 : tensor<3x4x6xf32>, {T}
}}
"""
BRANCHES = f"""{MESH}func.func @main(%k: tensor<i32>, %p: tensor<i1>, %x: {ROWS}, %y: {T}) -> ({T}, tensor<4xf32>) {{
  %0 = "stablehlo.case"(%k) ({{
    %1 = stablehlo.add %x, %y : {T}
    stablehlo.return %1 : {T}
  }}, {{
    %2 = "stablehlo.if"(%p) ({{
      stablehlo.return %y : {T}
    }}, {{
      %3 = stablehlo.tanh %x : {T}
      stablehlo.return %3 : {T}
    }}) : (tensor<i1>) -> {T}
    stablehlo.return %2 : {T}
  }}, {{
    stablehlo.return %x : {T}
  }}) : (tensor<i32>) -> {T}
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %4 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [1]
      : ({T}, tensor<f32>) -> tensor<4xf32>
  %5:2 = stablehlo.optimization_barrier %0, %4 : {T}, tensor<4xf32>
  return %5#0, %5#1 : {T}, tensor<4xf32>
}}
"""
CALLS = f"""{MESH}func.func @main(%x: {ROWS}, %y: {T}) -> {T} {{
  %0 = func.call @f(%x, %y) : ({T}, {T}) -> {T}
  %1 = func.call @f(%0, %x) {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{}}, {{"b"}}]>]>}} : ({T}, {T}) -> {T}
  %2 = func.call @g(%1) : ({T}) -> {T}
  return %2 : {T}
}}
func.func private @f(%a: {T}, %b: {T} {{sdy.sharding = #sdy.sharding<@mesh, [{{?}}, {{"b", ?}}]>}}) -> {T} {{
  %0 = func.call @g(%a) : ({T}) -> {T}
  %1 = stablehlo.multiply %0, %b : {T}
  return %1 : {T}
}}
func.func private @g(%a: {T}) -> {T} {{
  %0 = stablehlo.tanh %a : {T}
  %1 = sdy.sharding_constraint %0 <@mesh, [{{"a", ?}}, {{?}}]> : {T}
  return %1 : {T}
}}
"""
NAMED = f"""{MESH}func.func @main(%x: {ROWS}, %y: {T}) -> {T} {{
  %0 = sdy.named_computation<"layer">(%x, %y) (%a: {T}, %b: {T}) {{
    %1 = stablehlo.subtract %a, %b : {T}
    sdy.return %1 : {T}
  }} : ({T}, {T}) -> {T}
  %2 = "stablehlo.reduce_window"(%0, %c) <{{window_dimensions = array<i64: 1, 2>}}> ({{
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %m = stablehlo.maximum %p, %q : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }}) : ({T}, tensor<f32>) -> tensor<4x5xf32>
  return %0 : {T}
}}
""".replace("  %0 = sdy.named", "  %c = stablehlo.constant dense<0xFF800000> : tensor<f32>\n  %0 = sdy.named")

REGION_TEXTS = [COUNTED, STACKED, BRANCHES, CALLS, NAMED]

USES = re.compile(r"%\w+")  # one is replaced by another: rarely a program
KINDS: Sequence[tuple[re.Pattern[str], Sequence[str]]] = (
    (re.compile(r"(?<=dense<)\d|(?<=[\[( ])\d(?=[\],)])"), ("0", "1", "2", "3", "4", "5", "6", "7")),
    (re.compile(r"(?<=compare )[A-Z]{2}"), ("LT", "LE", "GT", "GE", "EQ", "NE")),
    (re.compile(r"(?<=stablehlo\.)(add|subtract|multiply|maximum|minimum)\b"),
     ("add", "subtract", "multiply", "divide", "remainder", "power")),
    (re.compile(r"(?<=stablehlo\.)(tanh|abs|negate)\b"), ("abs", "negate", "exponential", "floor")),
    (re.compile(r"(?<=type = )[A-Z]+(?=,)"), ("FFT", "IFFT", "RFFT", "IRFFT")),
    (re.compile(r"(?<=lapack_)[sdcz]"), ("s", "d", "c", "z")),
    (re.compile(r"(?<== )\d+(?= : ui8)"), ("0", "65", "76", "78", "83", "85", "86", "255")),
    (re.compile(r"(?<=[(, ])-?\d+\.\d+(?=[,)])"), ("0.0", "-0.0", "1.5", "1.0e30", "0x7F800000", "0x7FC00000")),
    (re.compile(r'\{\??\}|\{"[ab]"(, \?)?\}'), ("{}", "{?}", '{"a"}', '{"b", ?}', '{"a", "b"}', '{"b":(1)3}')),
)  # fmt: skip


def varied(text: str, rng: random.Random, most: int = 3) -> str:
    """The text with a few tokens replaced by others of their kind: many of these programs still compile."""
    for _ in range(rng.randint(1, most)):
        pattern, others = rng.choice(KINDS) if rng.random() < 0.8 else (USES, USES.findall(text))
        found = list(pattern.finditer(text))
        if found:
            token = rng.choice(found)
            text = text[: token.start()] + rng.choice(others) + text[token.end() :]
    return text
