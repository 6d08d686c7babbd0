# SPDX-License-Identifier: Apache-2.0
"""why() of texts: the names and lines of the text, the propagation that was done, and how much an answer holds."""

from __future__ import annotations

import random
import re
import warnings
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import _core
from shardwise.reports.explanations import rows_of
from tests.conformance.shardy.random_modules.drawing import random_module
from tests.conformance.shardy.random_modules.region_steps import REGION_STEPS
from tests.conformance.shardy.random_modules.special_steps import SPECIAL_STEPS
from tests.conformance.shardy.random_modules.steps import STEPS
from tests.explanation.programs import CONFLICT, MESH, T, sharded
from tests.explanation.test_why import DISAGREEING

CALLS = f"""{MESH}func.func @main(%x: {sharded('{"a"}, {?}')}) -> ({T}, {T}) {{
  %0 = func.call @f(%x) : ({T}) -> {T}
  %r:2 = func.call @g(%0) : ({T}) -> ({T}, {T})
  return %r#0, %r#1 : {T}, {T}
}}
func.func private @f(%p: {T}) -> {T} {{
  %0 = stablehlo.tanh %p : {T}
  return %0 : {T}
}}
func.func private @g(%p: {T}) -> ({T}, {T}) {{
  %q = func.call @f(%p) : ({T}) -> {T}
  return %p, %q : {T}, {T}
}}"""


# ---- names ----------------------------------------------------------------------------------------------------------


def test_the_names_are_those_of_the_text() -> None:
    text = CONFLICT.replace("%0", "%h").replace("%x", "%in")
    (value,) = sw.parse(text).why("%h").values
    assert (value.name, value.location) == ("%h", "program text:3")
    assert [axis.origin for axis in value.axes] == ["argument %y"]
    assert value.axes[0].path[0].value == "%h"
    (value,) = sw.parse(text).why("%in").values
    assert (value.name, value.location, value.axes[0].origin) == ("%in", "program text:2", "argument %in")
    with pytest.raises(KeyError, match="no value of the program is called '%arg0'"):
        sw.parse(text).why("%arg0")


def test_a_name_that_several_functions_use_is_asked_for_with_its_function() -> None:
    module = sw.parse(CALLS)
    with pytest.raises(KeyError, match=re.escape("%0 is a name in several functions; ask for @main %0 or @f %0")):
        module.why("%0")
    with pytest.raises(KeyError, match=re.escape("%p is a name in several functions; ask for @f %p or @g %p")):
        module.why("%p")
    (value,) = module.why("@main %0").values
    assert (value.name, value.op, value.line, value.called_at) == ("%0", "func.call", 3, ())
    first, second = module.why("@f %0").values
    assert (first.name, first.op, first.line) == ("@f %0", "stablehlo.tanh", 8)
    assert first.called_at == ("program text:3",)
    assert second.called_at == ("program text:4", "program text:12")
    assert "@f %0 (program text:8, called at program text:4, program text:12) is " in str(second)
    assert [axis.origin for axis in second.axes] == ["argument %x"]
    (taken,) = module.why("@g %p").values
    assert (taken.line, taken.op, taken.sharding) == (11, "", '[{"a"}, {}]')


def test_of_many_functions_with_a_name_the_first_are_listed() -> None:
    function = "func.func private @f{0}(%x: tensor<f32>) -> tensor<f32> {{ return %x : tensor<f32> }}"
    text = "\n".join(["func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }"]
                     + [function.format(i) for i in range(11)])  # fmt: skip
    with pytest.raises(KeyError, match=r"ask for @main %x or @f0 %x or .* or @f6 %x or 4 more'"):
        sw.parse(text).why("%x")


@pytest.mark.parametrize("end", ["", ":1", "[1]", "[", ", line 1"])
def test_a_long_question_is_refused_like_a_short_one(end: str) -> None:
    with pytest.raises(KeyError, match="no value of the program is called"):
        sw.parse(CONFLICT).why("x" * 300_000 + end)


def test_results_of_calls_are_asked_for_by_their_numbers() -> None:
    module = sw.parse(CALLS)
    assert [value.name for value in module.why("%r").values] == ["%r#0", "%r#1"]
    (value,) = module.why("%r#1").values
    assert [(step.value, step.name) for step in value.axes[0].path][-1] == ("%r:2", "func.call")
    assert [value.name for value in module.why("func.call").values] == ["%0", "%r#0", "%r#1", "@g %q"]


def test_the_places_are_lines_of_the_text_unless_it_tells_others() -> None:
    text = CONFLICT.replace("-> tensor<8x64xf32>\n  return", '-> tensor<8x64xf32> loc("h"("train.py":7:3))\n  return')
    (value,) = sw.parse(text, "conflict.mlir").why("%0").values
    assert (value.location, value.axes[0].location) == ("train.py:7", "conflict.mlir:2")
    assert sw.parse(text).why("h").values[0].name == "%0"
    only_a_name = text.replace('loc("h"("train.py":7:3))', 'loc("h")')
    (value,) = sw.parse(only_a_name, "conflict.mlir").why("conflict.mlir:3").values
    assert (value.name, value.location) == ("%0", "conflict.mlir:3")


def test_results_of_main_have_a_place() -> None:
    result = sharded('{"a"}, {}')
    text = f"""{MESH}func.func @main(%x: {T}) -> ({T},
    {result}) {{
  %h = stablehlo.tanh %x : {T}
  return %x, %h : {T}, {T}
}}"""
    for name in ("%h", "%x"):
        (value,) = sw.parse(text, "m.mlir").why(name).values
        assert (value.axes[0].origin, value.axes[0].location) == ("result 1 of main", "m.mlir:3")


def test_what_regions_take_is_where_it_is_named() -> None:
    """Both regions of a while name it, after ops of further lines."""
    text = f"""{MESH}func.func @main(%x: {sharded('{"a"}, {?}')}) -> {T} {{
  %n = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %n, %s = %x) : tensor<i32>, {T}
  cond {{
    %five = stablehlo.constant dense<5> : tensor<i32>
    %c = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %t = stablehlo.tanh %s : {T}
    stablehlo.return %i, %t : tensor<i32>, {T}
  }}
  return %r#1 : {T}
}}"""
    module = sw.parse(text, "w.mlir")
    (value,) = module.why("%s").values
    assert (value.location, value.sharding) == ("w.mlir:4", '[{"a"}, {}]')
    assert module.why("%t").values[0].location == "w.mlir:10"


def test_errors_of_passes_name_the_file() -> None:
    text = (
        CALLS.replace("func.call @f(%p)", "func.call @g(%p)")
        .replace(
            "%q = func.call @g(%p) : (tensor<8x8xf32>) -> tensor<8x8xf32>",
            "%q:2 = func.call @g(%p) : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)",
        )
        .replace("return %p, %q :", "return %p, %q#0 :")
    )
    with pytest.raises(sw.ShardingError, match=r"a function must not call itself, got @g; .*\(at calls.mlir:12\)"):
        sw.parse(text, "calls.mlir").propagate()


def test_a_program_without_a_text_has_the_names_that_it_is_printed_with() -> None:
    module = sw.Module.from_json(sw.parse(CONFLICT).to_json())
    (value,) = module.why("%0").values
    assert value.axes[0].origin == "argument %arg1"


def defined_names(text: str) -> dict[str, int]:
    """Names of a text that uses each once, with their lines."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        names = re.findall(r"^\s*(%\w+)(?::\d+)? = ", line) + re.findall(r"(%\w+): (?:tensor|!)", line)
        found |= dict.fromkeys(names, number)
    return found


def program_with_calls(rng: random.Random) -> str:
    while True:
        program = random_module(rng, STEPS + SPECIAL_STEPS + REGION_STEPS)
        if len(program.functions) > 1:
            return program.text()


@pytest.mark.parametrize("seed", range(24))
def test_every_name_of_a_text_is_found_in_its_line(seed: int) -> None:
    text = program_with_calls(random.Random(f"names:{seed}"))
    propagated = _core.passes.propagate_program(_core.ir.parse(text, "t.mlir", name_values=True))
    names = defined_names(text)
    assert len(names) > 5
    for name, line in names.items():
        rows = rows_of(propagated.explain(name))
        assert rows or propagated.was_given(name), (name, text)
        assert {row["line"] for row in rows} <= {line}, (name, text)
        assert {row["name"].rpartition(" ")[2].partition("#")[0] for row in rows} <= {name}


def told_shardings(text: str) -> dict[str, list[str]]:
    """By the name that loc gives an op of main, and its copies: the shardings of the results."""
    main = text[text.index("@main") :]
    main = main[: main.index("\n  }")]
    found: dict[str, list[str]] = {}
    for line in main.splitlines():
        given = re.search(r'loc\("(n\d+)"\)$', line)
        if given and "sdy.sharding_per_value<" in line:
            said = line[line.index("sdy.sharding_per_value<") :]
            found.setdefault(given[1], []).extend(re.findall(r"<@mesh, (\[[^<>]*)>", said))
    return found


@pytest.mark.parametrize("seed", range(24))
def test_what_is_explained_is_what_propagation_does(seed: int) -> None:
    """Also where functions are called, which propagation takes as regions."""
    text = program_with_calls(random.Random(f"told:{seed}"))
    told = told_shardings(sw.parse(text).propagate().as_text(locations=True))
    propagated = _core.passes.propagate_program(_core.ir.parse(text))
    for name, shardings in told.items():
        assert sorted(row["sharding"] for row in rows_of(propagated.explain(name))) == sorted(shardings), (name, text)
    assert told


# ---- the propagation that was done ----------------------------------------------------------------------------------


def test_why_of_a_propagated_module_explains_its_propagation() -> None:
    module = sw.parse(CONFLICT)
    assert module.why("%0").values[0].sharding == '[{}, {"a"}]'
    basic = module.propagate(strategy="basic", conservative=True)
    (value,) = basic.why("%0").values
    assert (value.sharding, value.strategy, value.conservative) == ("[{}, {}]", "basic", True)
    assert {lost.rule for lost in value.lost} == {"basic propagation resolves no conflicts"}
    assert basic.why("%0", strategy="basic") == basic.why("%0")
    with pytest.raises(sw.ShardingError, match=r"strategy must be that of the propagation, 'basic', got 'aggressive'"):
        basic.why("%0", strategy="aggressive")
    again = basic.propagate()
    assert (again.why("%0").values[0].strategy, again.why("%0").values[0].sharding) == ("aggressive", "[{}, {}]")


@pytest.mark.parametrize(
    ("passes", "sharding", "strategy"),
    [
        (("propagate",), '[{}, {"a"}]', "aggressive"),
        (("propagate-basic",), "", "basic"),
        (("propagate_aggressive",), '[{?}, {"a", ?}]', "aggressive"),
        (("simplify", "propagate-op-priority"), '[{?}, {"a", ?}]', "aggressive"),
        (("propagate", "assign"), '[{}, {"a"}]', "aggressive"),
        (("propagate-basic", "propagate"), '[{}, {"a"}]', "aggressive"),
    ],
)
def test_why_explains_the_pass_that_propagated(passes: tuple[str, ...], sharding: str, strategy: str) -> None:
    (value,) = sw.parse(CONFLICT).apply(*passes).why("%0").values
    assert (value.sharding, value.strategy) == (sharding, strategy)


def test_why_explains_what_a_strict_propagation_did() -> None:
    text = (
        MESH
        + """func.func @main(%x: tensor<9xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<9xf32> {
  %0 = stablehlo.tanh %x : tensor<9xf32>
  return %0 : tensor<9xf32>
}"""
    )
    module = sw.parse(text)
    assert module.why("%x").values[0].sharding == '[{"a"}]'
    assert module.propagate(strict_divisible=True).why("%x").values[0].sharding == "[{}]"
    assert module.why("%x", strict_divisible=True).values[0].sharding == "[{}]"


def test_why_explains_the_propagation_by_rules_of_ones_own() -> None:
    module = sw.parse(CONFLICT).with_sharding_rule("stablehlo.dot_general", "a b, c d -> a d")
    ruled = module.with_sharding_rule("stablehlo.dot_general", "a b, c d -> a e")
    assert ruled.why("%0").values[0].sharding == '[{"a"}, {}]'
    assert ruled.propagate().why("%0").values[0].sharding == '[{"a"}, {}]'
    assert module.why("%0").values[0].sharding == '[{}, {"a"}]'


def test_without_an_annotation_in_a_function_no_call_has_it() -> None:
    text = CALLS.replace(sharded('{"a"}, {?}'), T).replace(f"@f(%p: {T}", "@f(%p: " + sharded('{"a"}, {?}'))
    for name in ("%r#1", "@main %0", "@f %0"):
        values = sw.parse(text).why(name, counterfactual=True).values
        assert values
        for value in values:
            assert [(one.without.origin, one.sharding) for one in value.counterfactuals or ()] == [
                ("argument @f %p", "[{}, {}]")
            ]


# ---- groups ---------------------------------------------------------------------------------------------------------


def test_a_group_whose_members_disagree_is_warned_of() -> None:
    said = (
        'sharding_group 3: members should be annotated alike, got [{"a"}, {}] of %x at g.mlir:2 and [{"b"}, {}] of %y '
        "at g.mlir:2; each keeps its own, and their users follow the group"
    )
    module = sw.parse(DISAGREEING, "g.mlir")
    with pytest.warns(sw.ShardingWarning) as told:
        module.why("%0")
    assert [str(one.message) for one in told] == [said]
    assert told[0].filename == __file__
    with pytest.warns(sw.ShardingWarning, match="at g.mlir:2 and .* at g.mlir:2"):
        module.propagate()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for _ in range(3):  # a line is told once
            module.propagate()
    assert len(told) == 1
    agreeing = sw.parse(DISAGREEING.replace('{"b"}, {}', '{"a"}, {}'))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agreeing.propagate()


def test_a_member_of_such_a_group_is_one_value() -> None:
    module = sw.parse(DISAGREEING)
    for name in ("%x", "%y"):
        (value,) = module.why(name).values
        assert (value.name, value.op) == (name, "")
    assert [value.name for value in module.why("program text:2").values] == ["%x", "%y"]
    made = module.why("sharding_constraint").values
    assert [value.title for value in made] == ["result 0 of sdy.sharding_constraint"] * 2


def test_a_member_of_such_a_group_is_one_value_beside_a_loop() -> None:
    """Values that enter loops are propagated by ops of their own, which are gone afterwards."""
    loop = """%n = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %n, %s = %1) : tensor<i32>, tensor<8x8xf32>
  cond {
    %five = stablehlo.constant dense<5> : tensor<i32>
    %c = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %t = stablehlo.tanh %s : tensor<8x8xf32>
    stablehlo.return %i, %t : tensor<i32>, tensor<8x8xf32>
  }
  return %0, %r#1"""
    module = sw.parse(DISAGREEING.replace("return %0, %1", loop))
    (value,) = module.why("%y").values
    assert (value.name, value.op) == ("%y", "")
    (value,) = module.why("%0").values
    assert value.axes[0].path[0].name == "sdy.sharding_group"


def test_a_compiled_program_warns_of_groups_that_disagree() -> None:
    def step(x: Any, y: Any) -> Any:
        a, b = sw.sharding_group((sw.split(x, 0, "data"), sw.split(y, 1, "data")))
        return np.tanh(a) + np.tanh(b)

    shape = sw.ShapeDtypeStruct((8, 8), np.float32)
    lowered = sw.jit(step, mesh=sw.Mesh({"data": 4})).lower(shape, shape)
    with pytest.warns(sw.ShardingWarning, match="members should be annotated alike") as told:
        lowered.compile()
    assert len(told) == 1
    places = re.findall(rf"at {re.escape(__file__)}:(\d+)", str(told[0].message))
    line = step.__code__.co_firstlineno + 1
    assert places == [str(line)] * 2


# ---- how much an answer holds ---------------------------------------------------------------------------------------


def fan(length: int, users: int) -> str:
    """A chain of ops, and users of its end that another axis keeps from one of theirs."""
    lines = [f"%c{i} = stablehlo.tanh %c{i - 1} : {T}" for i in range(1, length + 1)]
    for i in range(users):
        lines.append(f"%u{i} = stablehlo.add %c{length}, %y : {T}")
        lines.append(f"%s{i} = stablehlo.transpose %u{i}, dims = [1, 0] : ({T}) -> {T}")
    results = ", ".join(f"%s{i}" for i in range(users))
    types = ", ".join([T] * users)
    head = f"""{MESH}func.func @main(%c0: {sharded('{"a"}, {?}')}, %y: {sharded('{"b", ?}, {?}')}) -> ({types}) {{"""
    return "\n".join([head, *lines, f"return {results} : {types}", "}"])


def test_what_lost_shares_the_path_of_what_won() -> None:
    """300 copies of a path of 3,000 steps would be 900,000 steps."""
    asked = sw.parse(fan(3_000, 300)).why("%c3000")
    (value,) = asked.values
    winners = [axis for lost in value.lost for axis in lost.winner]
    assert len(winners) == 300
    assert {len(axis.path) for axis in winners} == {3_000}
    assert len({id(axis.path) for axis in (*winners, *value.axes)}) == 1
    assert len({id(step) for axis in winners for step in axis.path}) == 3_000
    assert len(asked.to_json()) < 2_000_000
    row = asked.to_dict()["values"][0]
    assert len(row["axes"][0]["path"]) == 3_000
    won = row["lost"][0]["winner"][0]
    assert (len(won["path"]), won["left_out"]) == (8, 2_992)
    assert won["path"] == row["axes"][0]["path"][:4] + row["axes"][0]["path"][-4:]


# ---- lines ----------------------------------------------------------------------------------------------------------


def two_lines(x: Any) -> Any:
    h = np.tanh(x)

    return h * 2


def test_a_line_without_values_names_the_nearest_ones() -> None:
    program = sw.jit(two_lines, mesh=sw.Mesh({"a": 2})).lower(np.ones(4)).compile()
    line = two_lines.__code__.co_firstlineno
    near = rf"lines {line + 1}, {line + 3} and \d+"
    for asked in (line + 2, 99999):
        text = rf"why: test_names\.py has no values at line {asked}; the nearest are at {near}"
        for stage in (program, sw.jit(two_lines, mesh=sw.Mesh({"a": 2})).lower(np.ones(4))):
            with pytest.raises(KeyError, match=text):
                stage.why(f"test_names.py:{asked}")
    with pytest.raises(KeyError, match=r"why: the program has no values in other\.py; it has some in test_names\.py"):
        program.why("other.py:3")
    with pytest.raises(
        KeyError, match=r"why: the program has no values in a/test_names\.py; it has some in test_names"
    ):
        program.why("a/test_names.py:3")
    with pytest.raises(KeyError, match="no value of the program is called 'other:z'"):
        program.why("other:z")
