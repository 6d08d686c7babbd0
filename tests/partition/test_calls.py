# SPDX-License-Identifier: Apache-2.0
"""Functions that are called several times are partitioned once, and run like the same program without calls."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import shardwise as sw
from shardwise import _core
from tests.partition.test_memory import counted_peak
from tests.support.partitioned import execute

# All numbers are small integers, so that every order of additions gives the same bits.
X, W, V = "tensor<6x8xf32>", "tensor<8x12xf32>", "tensor<12x8xf32>"
LAYER = f"""
func.func private @layer(%x: {X}, %w: {W}, %v: {V}) -> {X} {{
  %low = stablehlo.constant dense<-4.0> : tensor<f32>
  %high = stablehlo.constant dense<4.0> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({X}, {W}) -> tensor<6x12xf32>
  %1 = stablehlo.clamp %low, %0, %high : (tensor<f32>, tensor<6x12xf32>, tensor<f32>) -> tensor<6x12xf32>
  %2 = stablehlo.dot_general %1, %v, contracting_dims = [1] x [0] : (tensor<6x12xf32>, {V}) -> {X}
  %3 = stablehlo.clamp %low, %2, %high : (tensor<f32>, {X}, tensor<f32>) -> {X}
  %4 = stablehlo.add %x, %3 : {X}
  %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [1]
      : ({X}, tensor<f32>) -> tensor<6xf32>
  %6 = stablehlo.clamp %low, %5, %high : (tensor<f32>, tensor<6xf32>, tensor<f32>) -> tensor<6xf32>
  %7 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<6xf32>) -> {X}
  %8 = stablehlo.subtract %4, %7 : {X}
  %9 = stablehlo.clamp %low, %8, %high : (tensor<f32>, {X}, tensor<f32>) -> {X}
  %10 = stablehlo.negate %9 : {X}
  return %10 : {X}
}}
"""
CALL = f"({X}, {W}, {V}) -> {X}"
MESHES = {
    "1": ('["a"=1]', '{"a"}, {}', '{}, {"a"}'),
    "8": ('["a"=8]', '{"a"}, {}', '{}, {"a"}'),
    "2x3": ('["a"=2, "b"=3]', '{"a"}, {}', '{}, {"b"}'),
    "2x3 uneven": ('["a"=2, "b"=3]', '{"b"}, {"a"}', '{"b"}, {"a"}'),
    "5": ('["a"=5]', '{}, {"a"}', '{"a"}, {}'),
}


def array(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float32)


ARGUMENTS = [array(0, 6, 8), array(1, 8, 12), array(2, 12, 8)]


def layer(x: np.ndarray, w: np.ndarray, v: np.ndarray) -> np.ndarray:
    y = x + np.clip(np.clip(x @ w, -4, 4) @ v, -4, 4)
    result: np.ndarray = -np.clip(y - np.clip(y.sum(1), -4, 4)[:, None], -4, 4)
    return result


def layers(x: np.ndarray, w: np.ndarray, v: np.ndarray, count: int) -> np.ndarray:
    for _ in range(count):
        x = layer(x, w, v)
    return x


def program(mesh: str, body: str, functions: str = LAYER, results: str = X) -> str:
    """Main of these ops, with x and w annotated."""
    axes, of_x, of_w = MESHES[mesh]
    arguments = ", ".join(
        f"%{name}: {kind} {{sdy.sharding = #sdy.sharding<@mesh, [{dims}]>}}"
        for name, kind, dims in (("x", X, of_x), ("w", W, of_w), ("v", V, "{?}, {?}"))
    )
    return f"sdy.mesh @mesh = <{axes}>\nfunc.func @main({arguments}) -> ({results}) {{\n{body}\n}}\n{functions}"


CHAIN = f"""  %0 = func.call @layer(%x, %w, %v) : {CALL}
  %1 = func.call @layer(%0, %w, %v) : {CALL}
  %2 = func.call @layer(%1, %w, %v) : {CALL}
  return %2 : {X}"""


def loop(trips: int) -> str:
    """Two calls in each trip of a loop, and one after it."""
    return f"""  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %trips = stablehlo.constant dense<{trips}> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %c = %x) : tensor<i32>, {X} cond {{
    %p = stablehlo.compare LT, %i, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %0 = func.call @layer(%c, %w, %v) : {CALL}
    %1 = func.call @layer(%0, %w, %v) : {CALL}
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %1 : tensor<i32>, {X}
  }}
  %2 = func.call @layer(%r#1, %w, %v) : {CALL}
  return %2 : {X}"""


def branch(index: int) -> str:
    return f"""  %i = stablehlo.constant dense<{index}> : tensor<i32>
  %0 = func.call @layer(%x, %w, %v) : {CALL}
  %1 = "stablehlo.case"(%i) ({{
    %2 = func.call @layer(%0, %w, %v) : {CALL}
    stablehlo.return %2 : {X}
  }}, {{
    %2 = stablehlo.negate %0 : {X}
    stablehlo.return %2 : {X}
  }}) : (tensor<i32>) -> {X}
  return %1 : {X}"""


NEGATIONS = "\n".join(f"  %n{i} = stablehlo.negate {f'%n{i - 1}' if i else '%x'} : {X}" for i in range(12))
OUTER = f"""
func.func private @outer(%x: {X}, %w: {W}, %v: {V}) -> ({X}, tensor<6x8xf32>, {W}) {{
{NEGATIONS}
  %0 = func.call @layer(%n11, %w, %v) : {CALL}
  %1 = func.call @layer(%0, %w, %v) : {CALL}
  return %1, %0, %w : {X}, {X}, {W}
}}
{LAYER}"""
NESTED = f"""  %0:3 = func.call @outer(%x, %w, %v) : ({X}, {W}, {V}) -> ({X}, {X}, {W})
  %1:3 = func.call @outer(%0#0, %0#2, %v) : ({X}, {W}, {V}) -> ({X}, {X}, {W})
  return %1#1, %1#0 : {X}, {X}"""

Program = tuple[Callable[[str], str], list[np.ndarray]]
PROGRAMS: dict[str, Program] = {
    "three calls": (lambda mesh: program(mesh, CHAIN), [layers(*ARGUMENTS, 3)]),
    "calls in a loop": (lambda mesh: program(mesh, loop(3)), [layers(*ARGUMENTS, 7)]),
    "a loop without trips": (lambda mesh: program(mesh, loop(0)), [layers(*ARGUMENTS, 1)]),
    "a call in a branch": (lambda mesh: program(mesh, branch(0)), [layers(*ARGUMENTS, 2)]),
    "a branch without a call": (lambda mesh: program(mesh, branch(1)), [-layers(*ARGUMENTS, 1)]),
    "nested calls": (
        lambda mesh: program(mesh, NESTED, OUTER, f"{X}, {X}"),
        [layers(*ARGUMENTS, 3), layers(*ARGUMENTS, 4)],
    ),
}


def compiled(text: str) -> sw.Program:
    return sw.parse(text).compile()


def functions_of(program: sw.Program, kind: str = "local") -> list[str]:
    return [function.name for function in program._compiled.stages[kind].functions]


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_calls_give_the_numbers_of_numpy(name: str, mesh: str) -> None:
    """Every shard once and every device, with poisoned padding."""
    text, expected = PROGRAMS[name]
    program = compiled(text(mesh))
    assert "layer" in functions_of(program)
    for results in execute(program._compiled, ARGUMENTS):
        for got, want in zip(results, expected, strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_unpartitioned_run_calls_functions_too(name: str) -> None:
    text, expected = PROGRAMS[name]
    results = _core.runtime.run_unpartitioned(_core.ir.parse(text("8")), ARGUMENTS)
    assert len(results) == len(expected) >= 1
    for got, want in zip(results, expected):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_of_each_stage_reads_back(name: str) -> None:
    stages = compiled(PROGRAMS[name][0]("2x3 uneven"))._compiled.stages
    for stage in stages.values():
        stage.verify()
        again = _core.ir.parse(stage.text())
        assert again.structurally_equal(stage)
        assert again.text() == stage.text()
    to_local = ["localize", "optimize_collectives", "form_scans"]
    resharded = _core.ir.parse(stages["resharded"].text())
    assert _core.passes.run_passes(resharded, to_local).text() == stages["local"].text()


def test_the_local_program_holds_a_function_once() -> None:
    program = compiled(PROGRAMS["three calls"][0]("2x3"))
    assert functions_of(program) == ["main", "layer"]
    assert program.as_text("local").count("call @layer") == 3
    assert program.as_text("local").count("= stablehlo.dot_general") == 2
    inside = [row for row in program.collectives().rows if row.cause.startswith("reduction in dot_general")]
    assert [(row.kind, row.count) for row in inside] == [("reduce_scatter", 3)]


TWO = f"""  %n = stablehlo.negate %x : {X}
  %y = sdy.sharding_constraint %n <@mesh, [{{}}, {{"a"}}]> : {X}
  %0 = func.call @layer(%x, %w, %v) : {CALL}
  %1 = func.call @layer(%y, %w, %v) : {CALL}
  %2 = func.call @layer(%1, %w, %v) : {CALL}
  return %0, %2 : {X}, {X}"""


def test_calls_with_other_shardings_have_functions_of_their_own() -> None:
    made = compiled(program("5", TWO, results=f"{X}, {X}").replace('{}, {"a"}', '{"a"}, {}', 1))
    assert functions_of(made) == ["main", "layer", "layer_0"]
    x, w, v = ARGUMENTS
    for first, second in execute(made._compiled, ARGUMENTS):
        np.testing.assert_array_equal(first, layer(x, w, v))
        np.testing.assert_array_equal(second, layers(-x, w, v, 2))


def test_small_functions_and_those_called_once_are_inlined() -> None:
    small = LAYER.replace("@layer", "@small").split("  %1 =")[0] + f"  return %x : {X}\n}}\n"
    once = LAYER.replace("@layer", "@once")
    body = CHAIN.replace("call @layer(%0,", "call @small(%0,").replace("call @layer(%1,", "call @once(%1,")
    made = compiled(program("8", body, small + once + LAYER))
    assert functions_of(made) == ["main"]
    twice = CHAIN.replace("call @layer(%0,", "call @small(%0,")
    assert functions_of(compiled(program("8", twice, small + LAYER))) == ["main", "layer"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_predicted_peak_is_what_a_run_counts(name: str) -> None:
    program = compiled(PROGRAMS[name][0]("8"))
    executable = program._here().executable
    peak, of_arguments, *_ = executable.memory(per_device=False)
    scatter = _core.runtime.ShardedArray.scatter
    arguments = [scatter(a, s) for a, s in zip(ARGUMENTS, program._compiled.argument_shardings)]
    counted = counted_peak(executable, arguments, [])
    assert peak - of_arguments == counted if name != "a branch without a call" else counted <= peak - of_arguments


def test_a_run_traces_the_ops_of_each_call() -> None:
    program = compiled(PROGRAMS["three calls"][0]("2x3"))
    executable = _core.runtime.Executable(program._compiled)
    arguments = [
        _core.runtime.ShardedArray.scatter(array, held)
        for array, held in zip(ARGUMENTS, program._compiled.argument_shardings)
    ]
    executable.run(arguments, trace=True)
    rows = [row for row in executable.trace() if row["op"] == "stablehlo.dot_general"]
    assert len(rows) == 6


def test_a_result_that_depends_on_a_later_call_varies_in_all_of_them() -> None:
    """The second call of @f takes other values on each device, so the first call's result is stored like that, too."""
    body = f"""  %s = stablehlo.negate %x : {X}
  %c = stablehlo.constant dense<2.0> : {X}
  %0 = func.call @layer(%c, %w, %v) : {CALL}
  %1 = func.call @layer(%s, %w, %v) : {CALL}
  %2 = func.call @layer(%0, %w, %v) : {CALL}
  return %0, %1, %2 : {X}, {X}, {X}"""
    x, w, v = ARGUMENTS
    twos = np.full_like(x, 2)
    for mesh in MESHES:
        made = compiled(program(mesh, body, results=f"{X}, {X}, {X}"))
        for results in execute(made._compiled, ARGUMENTS):
            for got, want in zip(results, (layer(twos, w, v), layer(-x, w, v), layers(twos, w, v, 2)), strict=True):
                np.testing.assert_array_equal(got, want)


def test_an_annotated_argument_is_resharded_at_each_call() -> None:
    own = '%x: tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}'
    made = compiled(program("5", CHAIN, LAYER.replace("%x: tensor<6x8xf32>", own)).replace('{}, {"a"}', '{"a"}, {}', 1))
    assert functions_of(made) == ["main", "layer"]
    assert "argument 0 of @layer" in {row.cause for row in made.collectives()}
    for (result,) in execute(made._compiled, ARGUMENTS):
        np.testing.assert_array_equal(result, layers(*ARGUMENTS, 3))


def test_the_work_of_assignment_does_not_grow_with_the_calls() -> None:
    def chain(count: int) -> str:
        calls = "\n".join(
            f"  %{i} = func.call @layer({f'%{i - 1}' if i else '%x'}, %w, %v) : {CALL}" for i in range(count)
        )
        return program("8", f"{calls}\n  return %{count - 1} : {X}")

    few, many = compiled(chain(2)), compiled(chain(36))
    assert many.counters["choose.plans"] == few.counters["choose.plans"]
    assert len(many._compiled.stages["local"].ops) == len(few._compiled.stages["local"].ops) + 34
    assert [row.count for row in many.collectives()] == [18 * row.count for row in few.collectives()]


def test_calls_that_nest_too_deep_are_an_error() -> None:
    step = f"%0 = func.call @f{{}}(%x) : ({X}) -> {X}"
    links = [
        f"func.func private @f{i}(%x: {X}) -> {X} {{ {step.format(i + 1)} return %0 : {X} }}" for i in range(10_000)
    ]
    last = f"func.func private @f10000(%x: {X}) -> {X} {{ return %x : {X} }}"
    text = program("8", f"{step.format(0)} return %0 : {X}", "\n".join([*links, last]))
    with pytest.raises(sw.ShardingError, match="calls and regions must nest at most 256 deep"):
        compiled(text)


# ---- texts ----------------------------------------------------------------------------------------------------------


def test_a_local_text_with_functions_reads_back_and_runs() -> None:
    unit = compiled(PROGRAMS["nested calls"][0]("2x3 uneven"))._compiled
    text = unit.stages["local"].text(placements=True)
    assert "shardwise.placement" in text.partition("@layer(")[2]
    for results in execute(unit.with_local_stage(_core.ir.parse(text)), ARGUMENTS):
        np.testing.assert_array_equal(results[1], layers(*ARGUMENTS, 4))


def test_a_function_of_a_local_text_must_not_call_itself() -> None:
    unit = compiled(PROGRAMS["three calls"][0]("2x3"))._compiled
    text = unit.stages["local"].text(placements=True).replace("func.call @layer(", "func.call @main(", 1)
    edited = unit.with_local_stage(_core.ir.parse(text))
    said = "func.call: a function must not call itself, got @main; use stablehlo.while to repeat something"
    for action in (edited.collectives, lambda: _core.runtime.Executable(edited)):
        with pytest.raises(sw.ShardingError, match=re.escape(said)):
            action()


def test_a_resharded_text_must_place_operands_like_arguments() -> None:
    text = compiled(PROGRAMS["three calls"][0]("8"))._compiled.stages["resharded"].text()
    wrong = text.replace('[{"a"}, {}]', "[{}, {}]", 1)
    said = (
        "func.call: operand 0 must be placed like the argument of @layer, "
        '#shardwise.placement<@mesh, [{"a"}: 1, {}: 8]>, got '
        "#shardwise.placement<@mesh, [{}: 6, {}: 8]>; run assign on the program before"
    )
    with pytest.raises(sw.ShardingError, match=re.escape(said)):
        _core.passes.run_passes(_core.ir.parse(wrong), ["localize"])
    result = re.sub(r'(call @layer.*?<@mesh, )\[\{"a"\}, \{\}\]', r"\1[{}, {}]", text, count=1)
    with pytest.raises(sw.ShardingError, match=r"func\.call: result 0 must be placed like that of @layer, "):
        _core.passes.run_passes(_core.ir.parse(result), ["localize"])


def test_a_comparator_holds_no_calls() -> None:
    """A large function that two sorts call is inlined in their regions."""
    signs = "\n".join(f"  %n{i} = stablehlo.negate {f'%n{i - 1}' if i else '%p'} : tensor<f32>" for i in range(12))
    less = f"""func.func private @less(%p: tensor<f32>, %q: tensor<f32>) -> tensor<i1> {{
{signs}
  %0 = stablehlo.compare LT, %n11, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}}"""

    def sort(name: str, dim: int) -> str:
        return f"""  %{name} = "stablehlo.sort"(%x) <{{dimension = {dim} : i64, is_stable = true}}> ({{
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %r{name} = func.call @less(%p, %q) : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %r{name} : tensor<i1>
  }}) : ({X}) -> {X}"""

    body = "\n".join([sort("a", 0), sort("b", 1), f"  return %a, %b : {X}, {X}"])
    made = compiled(program("8", body, less, f"{X}, {X}"))
    assert functions_of(made) == ["main"]
    for a, b in execute(made._compiled, ARGUMENTS):
        np.testing.assert_array_equal(a, np.sort(ARGUMENTS[0], 0))
        np.testing.assert_array_equal(b, np.sort(ARGUMENTS[0], 1))


# ---- calls without effects ------------------------------------------------------------------------------------------


def simplified(text: str) -> str:
    return _core.passes.run_passes(_core.ir.parse(text), ["simplify"]).text()


CALLS_AND_RESULTS = f"""  %0 = func.call @layer(%x, %w, %v) : {CALL}
  %1 = func.call @layer(%x, %w, %v) : {CALL}
  %2 = func.call @layer(%0, %w, %v) : {CALL}
  %3 = stablehlo.add %0, %1 : {X}
  return %3 : {X}"""


def test_calls_that_nothing_uses_go_and_equal_calls_are_merged() -> None:
    used = CALLS_AND_RESULTS.replace("add %0, %1", "add %1, %2")
    assert simplified(program("8", used)).count("call @layer") == 2


def test_the_last_of_equal_calls_is_replaced_by_the_ops_of_its_function() -> None:
    text = simplified(program("8", CALLS_AND_RESULTS))
    assert (text.count("@layer"), text.count("stablehlo.dot_general")) == (0, 2)


def test_a_call_of_a_function_with_an_effect_stays() -> None:
    log = f"  %e = stablehlo.custom_call @print(%x) {{has_side_effect = true}} : ({X}) -> {X}\n"
    inner = LAYER.replace("  %low", log + "  %low", 1)
    outer = f"""
func.func private @twice(%x: {X}, %w: {W}, %v: {V}) -> {X} {{
  %0 = func.call @layer(%x, %w, %v) : {CALL}
  return %0 : {X}
}}
"""
    body = f"  %0 = func.call @twice(%x, %w, %v) : {CALL}\n  return %x : {X}"
    assert simplified(program("8", body, inner + outer)).count("call @twice") == 1
    assert simplified(program("8", body, LAYER + outer)).count("call @twice") == 0


PAIR = f"""
func.func private @pair(%x: {X}, %w: {W}, %v: {V}) -> ({X}, {W}) {{
  %0:2 = func.call @inner(%x, %w, %v) : ({X}, {W}, {V}) -> ({X}, {W})
  %1 = func.call @layer(%0#0, %w, %v) : {CALL}
  return %1, %0#1 : {X}, {W}
}}
func.func private @inner(%x: {X}, %w: {W}, %v: {V}) -> ({X}, {W}) {{
  %0 = stablehlo.sine %w : {W}
  %1 = func.call @layer(%x, %w, %v) : {CALL}
  return %1, %0 : {X}, {W}
}}
"""


def test_results_that_no_call_uses_go_through_all_functions() -> None:
    call = f"({X}, {W}, {V}) -> ({X}, {W})"
    body = f"""  %0:2 = func.call @pair(%x, %w, %v) : {call}
  %1:2 = func.call @pair(%0#0, %w, %v) : {call}
  return %1#0 : {X}"""
    text = simplified(program("8", body, LAYER + PAIR))
    assert "sine" not in text
    assert f"-> ({X}, {W})" not in text
    results = execute(compiled(program("2x3", body, LAYER + PAIR))._compiled, ARGUMENTS)
    for (got,) in results:
        np.testing.assert_array_equal(got, layers(*ARGUMENTS, 4))
    used = body.replace(
        "return %1#0",
        "%2 = stablehlo.dot_general %1#0, %0#1, contracting_dims = [1] x [0] : "
        f"({X}, {W}) -> tensor<6x12xf32>\n  return %2",
    ).replace(f": {X}", ": tensor<6x12xf32>")
    assert "sine" in simplified(program("8", used, LAYER + PAIR, "tensor<6x12xf32>"))
