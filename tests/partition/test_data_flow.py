# SPDX-License-Identifier: Apache-2.0
"""Regions, barriers, groups and manual computations: read, printed, and propagated as Shardy does."""

from __future__ import annotations

import re

import numpy as np
import pytest

import shardwise as sw
from shardwise import _core
from tests.conformance.shardy.client import ShardyOracle
from tests.support.partitioned import execute

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=2]>\n'
T = "tensor<8x8xf32>"


def sharded(dims: str) -> str:
    return f"{T} {{sdy.sharding = #sdy.sharding<@mesh, [{dims}]>}}"


WHILE = f"""{MESH}
func.func public @main(%x: {sharded('{"a"}, {?}')}, %w: {sharded('{?}, {"b", ?}')}) -> {T} {{
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %1:2 = stablehlo.while(%i = %0, %y = %x) : tensor<i32>, {T}
  cond {{
    %c = stablehlo.constant dense<5> : tensor<i32>
    %p = stablehlo.compare LT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %2 = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : ({T}, {T}) -> {T}
    stablehlo.return %i, %2 : tensor<i32>, {T}
  }}
  %3 = stablehlo.transpose %1#1, dims = [1, 0] : ({T}) -> {T}
  return %3 : {T}
}}
"""
CASE = f"""{MESH}
func.func public @main(%i: tensor<i32>, %x: {sharded('{"a"}, {?}')}, %y: {sharded('{?}, {"b", ?}')}) -> {T} {{
  %1 = "stablehlo.case"(%i) ({{
    %2 = stablehlo.add %x, %x : {T}
    stablehlo.return %2 : {T}
  }}, {{
    %2 = stablehlo.transpose %y, dims = [1, 0] : ({T}) -> {T}
    stablehlo.return %2 : {T}
  }}) : (tensor<i32>) -> {T}
  %4:2 = stablehlo.optimization_barrier %1, %x : {T}, {T}
  %5 = stablehlo.add %4#0, %4#1 : {T}
  return %5 : {T}
}}
"""
IF = f"""{MESH}
func.func public @main(%p: tensor<i1>, %x: {sharded('{"a", ?}, {?}')}, %y: {T}) -> ({T}, {T}) {{
  %1:2 = "stablehlo.if"(%p) ({{
    stablehlo.return %x, %y : {T}, {T}
  }}, {{
    %2 = stablehlo.tanh %y : {T}
    stablehlo.return %2, %x : {T}, {T}
  }}) : (tensor<i1>) -> ({T}, {T})
  return %1#0, %1#1 : {T}, {T}
}}
"""
MANUAL = f"""{MESH}
func.func public @main(%x: {sharded('{"a"}, {}')}, %y: {T}) -> {T} {{
  %3 = sdy.manual_computation(%x, %y) in_shardings=[<@mesh, [{{"a", "b"}}, {{?}}]>, <@mesh, [{{"a", ?}}, {{?}}]>]
      out_shardings=[<@mesh, [{{"a", ?}}, {{?}}]>] manual_axes={{"a"}} (%p: tensor<4x8xf32>, %q: tensor<4x8xf32>) {{
    %4 = stablehlo.add %p, %q : tensor<4x8xf32>
    sdy.return %4 : tensor<4x8xf32>
  }} : ({T}, {T}) -> {T}
  %5 = stablehlo.add %3, %3 : {T}
  return %5 : {T}
}}
"""
BARRIERS = f"""{MESH}
func.func public @main(%x: {sharded('{"a"}, {?}')}, %y: {sharded('{"b"}, {?}')}) -> ({T}, {T}, {T}) {{
  %0 = sdy.propagation_barrier %x allowed_direction=FORWARD : {T}
  %1 = stablehlo.add %0, %0 : {T}
  %2 = sdy.propagation_barrier %1 allowed_direction=NONE : {T}
  %3 = stablehlo.add %2, %2 : {T}
  %4 = stablehlo.tanh %x : {T}
  %5 = sdy.propagation_barrier %4 allowed_direction=BACKWARD : {T}
  %6 = stablehlo.add %5, %y : {T}
  return %1, %3, %6 : {T}, {T}, {T}
}}
"""
GROUPS = f"""{MESH}
func.func public @main(%x: {sharded('{"a", ?}, {?}')}, %y: {T}, %z: {T}) -> ({T}, {T}) {{
  sdy.sharding_group %x group_id=5 : {T}
  sdy.sharding_group %y group_id=5 : {T}
  %0 = stablehlo.add %y, %y : {T}
  %1 = stablehlo.transpose %z, dims = [1, 0] : ({T}) -> {T}
  sdy.sharding_group %1 group_id=9 : {T}
  sdy.sharding_group %0 group_id=9 : {T}
  return %0, %1 : {T}, {T}
}}
"""
CONFLICTING_GROUP = f"""{MESH}
func.func public @main(
    %x: {sharded('{"b", ?}, {?}')}, %y: {sharded('{"a", ?}, {?}')}, %z: {sharded('{"a"}, {?}')}) -> ({T}, {T}) {{
  sdy.sharding_group %x group_id=7 : {T}
  sdy.sharding_group %y group_id=7 : {T}
  %0 = stablehlo.add %z, %z : {T}
  sdy.sharding_group %0 group_id=5 : {T}
  %1 = stablehlo.add %x, %y : {T}
  sdy.sharding_group %1 group_id=5 : {T}
  return %0, %1 : {T}, {T}
}}
"""
# A constraint on what a region hands on or gets takes all uses of it; two that differ do not.
CONSTRAINED = f"""{MESH}
func.func public @main(%x: {T}, %y: {sharded('{"b", ?}, {?}')}) -> ({T}, {T}) {{
  %0:2 = stablehlo.while(%a = %x, %b = %y) : {T}, {T}
  cond {{
    %p = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %t = stablehlo.tanh %a : {T}
    %k = sdy.sharding_constraint %a <@mesh, [{{}}, {{"b"}}]> : {T}
    %c = stablehlo.add %a, %b : {T}
    %d = stablehlo.add %c, %t : {T}
    stablehlo.return %b, %d : {T}, {T}
  }}
  %q = stablehlo.tanh %0#0 : {T}
  %k2 = sdy.sharding_constraint %0#0 <@mesh, [{{}}, {{"a"}}]> : {T}
  %k3 = sdy.sharding_constraint %0#1 <@mesh, [{{}}, {{"a"}}]> : {T}
  %k4 = sdy.sharding_constraint %0#1 <@mesh, [{{}}, {{"b"}}]> : {T}
  return %q, %0#1 : {T}, {T}
}}
"""
TEXTS = {
    "while": WHILE,
    "case": CASE,
    "if": IF,
    "manual": MANUAL,
    "barriers": BARRIERS,
    "groups": GROUPS,
    "conflicting group": CONFLICTING_GROUP,
    "constrained": CONSTRAINED,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_text_reads_back(text: str, shardy: ShardyOracle) -> None:
    module = _core.ir.parse(text)
    module.verify()
    for generic in (False, True):
        printed = module.text(generic=generic)
        assert _core.ir.parse(printed).text(generic=generic) == printed
        assert shardy.parse(printed) == shardy.parse(text)


def shardings(text: str) -> list[list[str]]:
    """The axes of every dim that a text gives a sharding, in the order of the text, without replicated values."""
    found = re.findall(r"<@mesh, (\[[^\]]*\])", text.replace("\n", " "))
    return [dims for dims in found if '"' in dims]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_propagation_is_shardys(text: str, shardy: ShardyOracle) -> None:
    ours = _core.passes.run_passes(_core.ir.parse(text), ["propagate"]).text()
    theirs = shardy.after(text, "sdy-propagation-pipeline")
    if text is IF:  # Shardy knows no data flow through if, and leaves what is after it alone
        assert shardings(theirs) == ['[{"a"}, {}]']
        assert shardings(ours) == 7 * ['[{"a"}, {}]']
        return
    assert shardings(ours) == shardings(theirs)


# The loop of WHILE never ends; this one has three trips.
THREE_TRIPS = WHILE.replace("dense<0>", "dense<1>").replace(
    "stablehlo.return %i, %2", "%n = stablehlo.add %i, %i : tensor<i32>\n    stablehlo.return %n, %2"
)
SCALARS: dict[str, list[np.ndarray]] = {
    "while": [],
    "case": [np.asarray(i, np.int32) for i in (0, 1)],
    "if": [np.asarray(p) for p in (False, True)],
}


@pytest.mark.parametrize("name", SCALARS)
def test_regions_run_on_all_devices(name: str) -> None:
    module = _core.ir.parse(THREE_TRIPS if name == "while" else TEXTS[name])
    compiled = _core.passes.compile(module, _core.mesh.Mesh("mesh", [("a", 2), ("b", 2)]))
    random = np.random.default_rng(0)
    x, y = (random.integers(-2, 3, (8, 8)).astype(np.float32) for _ in range(2))
    for operands in [[scalar, x, y] for scalar in SCALARS[name]] or [[x, y]]:
        expected = _core.runtime.run_unpartitioned(module, operands)
        for results in execute(compiled, operands):
            for result, wanted in zip(results, expected, strict=True):
                np.testing.assert_array_equal(result, wanted)


def test_manual_regions_run() -> None:
    x, y = (np.random.default_rng(i).normal(size=(8, 8)).astype(np.float32) for i in range(2))
    program = sw.parse(TEXTS["manual"]).compile()
    np.testing.assert_array_equal(program.run(x, y), (x + y) + (x + y))
    np.testing.assert_array_equal(program.run(x, y, faithful=True, poison=True), (x + y) + (x + y))
    assert {row.kind for row in program.collectives().rows} <= {"all_gather"}


CALLS = f"""{MESH}
func.func public @main(%x: {sharded('{"a"}, {?}')}, %y: {sharded('{?}, {"b", ?}')}) -> ({T}, {T}) {{
  %0 = call @f(%x) : ({T}) -> {T}
  %1 = call @g(%y) : ({T}) -> {T}
  %2 = call @f(%1) : ({T}) -> {T}
  return %0, %2 : {T}, {T}
}}
func.func private @f(%z: {T}) -> {T} {{
  %0 = stablehlo.negate %z : {T}
  return %0 : {T}
}}
func.func private @g(%z: {T}) -> {T} {{
  %0 = call @f(%z) : ({T}) -> {T}
  %1 = stablehlo.multiply %0, %z : {T}
  return %1 : {T}
}}
"""


def functions_called(text: str) -> list[list[int]]:
    """For every call of main, its place among those of the same function: the numbers after names may differ."""
    names = re.findall(r"call @(\w+)", text.partition("func.func private")[0])
    return [[other for other in range(len(names)) if names[other] == name] for name in names]


def test_calls_are_propagated_as_shardy_does(shardy: ShardyOracle) -> None:
    ours = _core.passes.run_passes(_core.ir.parse(CALLS), ["propagate"]).text()
    theirs = shardy.after(CALLS, "sdy-propagation-pipeline")
    assert sorted(shardings(ours)) == sorted(shardings(theirs))
    assert functions_called(ours) == functions_called(theirs)


def test_calls_run() -> None:
    mesh = _core.mesh.Mesh("mesh", [("a", 2), ("b", 2)])
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((8, 8), np.float32) for _ in range(2))
    compiled = _core.passes.compile(_core.ir.parse(CALLS), mesh)
    for first, second in execute(compiled, [x, y]):
        np.testing.assert_array_equal(first, -x)
        np.testing.assert_array_equal(second, y * y)


def test_a_function_must_not_call_itself() -> None:
    text = CALLS.replace("stablehlo.negate %z : ", "func.call @g(%z) : ({T}) -> ".replace("{T}", T))
    with pytest.raises(sw.ShardingError, match=r"a function must not call itself, got @[fg]"):
        _core.passes.run_passes(_core.ir.parse(text), ["inline_calls"])


def chain(functions: int, calls: int, *, last_first: bool = False) -> str:
    """@f0 calls @f1 that many times, which calls @f2, …; the last has an op."""
    texts = []
    for i in range(functions):
        body = "".join(f"  %{k} = call @f{i + 1}(%x) : ({T}) -> {T}\n" for k in range(calls))
        if i + 1 == functions:
            body = f"  %0 = stablehlo.tanh %x : {T}\n"
        texts.append(f"func.func private @f{i}(%x: {T}) -> {T} {{\n{body}  return %0 : {T}\n}}")
    main = f"func.func public @main(%x: {T}) -> {T} {{\n  %0 = call @f0(%x) : ({T}) -> {T}\n  return %0 : {T}\n}}"
    return "\n".join([*reversed(texts), main] if last_first else [main, *texts])


@pytest.mark.parametrize("name", ["inline_calls", "propagate"])
@pytest.mark.parametrize("last_first", [False, True])
def test_calls_without_bounds_are_refused(name: str, last_first: bool) -> None:
    deep = _core.ir.parse(chain(2000, 1, last_first=last_first))
    with pytest.raises(sw.ShardingError, match="calls and regions must nest at most 256 deep"):
        _core.passes.run_passes(deep, [name])
    many = _core.ir.parse(chain(60, 2, last_first=last_first))
    with pytest.raises(sw.ShardingError, match="calls must come to at most 16777216 ops in all"):
        _core.passes.run_passes(many, [name])


def test_many_calls_within_bounds_are_inlined() -> None:
    text = _core.passes.run_passes(_core.ir.parse(chain(250, 1)), ["inline_calls"]).text()
    assert text.count("stablehlo.tanh") == 1
    assert "call" not in text


UNEVEN = """
sdy.mesh @mesh = <["a"=4, "b"=2]>
func.func public @main(
    %x: tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>},
    %y: tensor<7x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", ?}, {?}]>},
    %z: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a":(2)2, "b", ?}, {?}]>},
    %w: tensor<12x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", "a"}, {?}]>})
    -> (tensor<6x8xf32>, tensor<7x8xf32>, tensor<8x8xf32>, tensor<12x8xf32>) {
  %0:2 = stablehlo.while(%u = %x, %v = %w) : tensor<6x8xf32>, tensor<12x8xf32>
  cond {
    %p = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %2 = stablehlo.tanh %u : tensor<6x8xf32>
    stablehlo.return %2, %v : tensor<6x8xf32>, tensor<12x8xf32>
  }
  %1 = sdy.manual_computation(%y) in_shardings=[<@mesh, [{?}, {"a"}]>] out_shardings=[<@mesh, [{"b", ?}, {"a"}]>]
      manual_axes={"a"} (%q: tensor<7x2xf32>) {
    %2 = stablehlo.tanh %q : tensor<7x2xf32>
    sdy.return %2 : tensor<7x2xf32>
  } : (tensor<7x8xf32>) -> tensor<7x8xf32>
  %3 = stablehlo.tanh %z : tensor<8x8xf32>
  return %0#0, %1, %3, %0#1 : tensor<6x8xf32>, tensor<7x8xf32>, tensor<8x8xf32>, tensor<12x8xf32>
}
"""


def test_strictly_divisible_borders_are_shardys(shardy: ShardyOracle) -> None:
    module = _core.ir.parse(UNEVEN)
    ours = _core.passes.run_passes(module, ["propagate"], strict_divisible=True).text()
    assert shardings(ours) == shardings(shardy.after(UNEVEN, "sdy-propagation-pipeline"))
    assert shardings(_core.passes.run_passes(module, ["propagate"]).text()) != shardings(ours)
