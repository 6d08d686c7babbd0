# SPDX-License-Identifier: Apache-2.0
"""why(): through regions, groups and manual computations, what lost and what would be, and how one asks."""

from __future__ import annotations

import copy
import random
import re
from pathlib import Path
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
from tests.conformance.shardy.random_modules.texts import ModuleText
from tests.explanation.programs import BEGINNINGS, CONFLICT, IN_COMMON, LOST, MESH, LostCase, T, sharded
from tests.partition.test_data_flow import GROUPS, MANUAL, WHILE


def reasons(text: str) -> dict[str, list[tuple[Any, ...]]]:
    """For every value of the program by its number: axis, dim, origin, and the ops of the path."""
    propagated = _core.passes.propagate_program(_core.ir.parse(text))
    found = {}
    for number in range(1, 40):
        try:
            (why,) = rows_of(propagated.explain_value(number))
        except IndexError:
            break
        found[number] = [
            (a["axis"], a["dim"], a["origin"], [(s.name, s.from_, s.to) for s in a["path"]]) for a in why["axes"]
        ]
    return found


def test_an_axis_is_followed_through_a_while() -> None:
    (from_x, from_w) = next(axes for axes in reasons(WHILE).values() if len(axes) == 2 and axes[0][2] == "argument 0")
    assert from_x == ('"a"', 0, "argument 0", [])
    assert from_w[:3] == ('"b"', 1, "argument 1")
    assert from_w[3] == [
        ("stablehlo.dot_general", "operand 1 dim 1", "result 0 dim 1"),
        ("stablehlo.while", "what its region returns, dim 1", "operand 1 dim 1"),
    ]


def test_an_axis_is_followed_out_of_a_manual_computation() -> None:
    paths = [path for axes in reasons(MANUAL).values() for (*_, path) in axes]
    into = ("sdy.manual_computation", "argument 1 of its region, dim 0", "operand 1 dim 0")
    assert any(into in path for path in paths)


def test_members_of_a_group_name_the_member_that_was_annotated() -> None:
    axes = reasons(GROUPS)
    synced = [a for found in axes.values() for a in found if any(s[0] == "sdy.sharding_group" for s in a[3])]
    assert synced
    assert {a[2] for a in synced} == {"argument 0"}


def is_annotated(program: ModuleText, axis: dict[str, Any]) -> bool:
    """Whether a user said something where the axis is said to come from."""
    kind, _, rest = str(axis["origin"]).partition(" ")
    if kind == "argument":
        return program.main.argument_shardings[int(rest)] is not None
    if kind == "result":
        return program.main.result_shardings[int(rest.split()[0])] is not None
    (op,) = [op for op in program.ops() if f"n{op.number}" == axis["name"]]
    return op.shardings is not None or op.name in ("sdy.sharding_constraint", "sdy.manual_computation")


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_every_axis_comes_from_an_annotation(first: int) -> None:
    """In whole programs, with regions; calls would give ops of a function the names of their copies."""
    axes = 0
    for index in range(first, first + 20):
        program = random_module(random.Random(f"why:{index}"), STEPS + SPECIAL_STEPS + REGION_STEPS)
        if len(program.functions) > 1:
            continue
        strategy, conservative = ("basic", True) if index % 3 == 0 else ("aggressive", False)
        result = _core.passes.propagate_program(
            _core.ir.parse(program.text()), strategy=strategy, conservative=conservative
        )
        for row in rows_of(result.explain_all()):
            axes += len(row["axes"])
            for axis in row["axes"]:
                assert is_annotated(program, axis), (row["name"], axis, program.text())
    assert axes > 20


# ---- what lost ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", LOST, ids=lambda case: case.name)
def test_what_lost_says_to_what_and_by_which_rule(case: LostCase) -> None:
    module = sw.parse(case.text)
    (value,) = module.why(case.value, strategy=case.strategy, conservative=case.conservative).values  # type: ignore[arg-type]
    (lost,) = [lost for lost in value.lost if (lost.dim, lost.axis) == (case.dim, case.axis)]
    assert (lost.reason, lost.rule) == (case.reason, case.rule)
    assert [axis.origin for axis in lost.winner] == [case.winner] * bool(case.winner)
    assert (lost.closed_by.origin if lost.closed_by else "") == case.closed_by
    assert (value.strategy, value.conservative) == (case.strategy, case.conservative)
    text = str(value)
    assert f"rule: {case.rule}" in text
    assert f"sharded {value.sharding} by {'conservative ' * case.conservative}{case.strategy} propagation" in text


@pytest.mark.parametrize("case", [case for case in LOST if case.winner or case.closed_by], ids=lambda case: case.name)
def test_without_the_winner_the_loser_gets_the_axis(case: LostCase) -> None:
    module = sw.parse(case.text)
    (value,) = module.why(case.value, strategy=case.strategy, counterfactual=True).values  # type: ignore[arg-type]
    assert value.counterfactuals is not None
    decided = {one.without.origin: one.sharding for one in value.counterfactuals}
    taken = decided[case.winner or case.closed_by]
    assert case.axis in taken.strip("[]").split("}, {")[case.dim], (taken, str(value))


def test_what_two_lists_begin_with_wins_nothing() -> None:
    (value,) = sw.parse(BEGINNINGS).why("%0").values
    assert value.sharding == '[{"a"}, {}]'
    assert [(lost.axis, [axis.axis for axis in lost.winner]) for lost in value.lost] == [
        ('"b"', ['"c"']), ('"c"', ['"b"']),
    ]  # fmt: skip
    text = BEGINNINGS.replace('"b"}', '"b", ?}').replace('"c"}', '"c", ?}')
    (value,) = sw.parse(text).why("%x").values
    (lost,) = value.lost
    assert (lost.axis, [axis.axis for axis in lost.winner]) == ('"c"', ['"b"'])


@pytest.mark.parametrize("first", range(0, 600, 100))
def test_tensors_that_disagree_are_named(first: int) -> None:
    """Whatever kept an axis away is found: only where a third tensor has another axis do tensors disagree."""
    disagreeing = 0
    for index in range(first, first + 100):
        text = random_module(random.Random(f"disagree:{index}"), STEPS + SPECIAL_STEPS + REGION_STEPS).text()
        for strategy, conservative in (("aggressive", False), ("basic", index % 2 == 0)):
            result = _core.passes.propagate_program(_core.ir.parse(text), strategy=strategy, conservative=conservative)
            for lost in (lost for row in rows_of(result.explain_all()) for lost in row["lost"]):
                assert lost["reason"] != "propagation skips the op", (lost, strategy, conservative, text)
                if lost["rule"] == IN_COMMON:
                    assert lost["winner"], (lost, strategy, conservative, text)
                    disagreeing += 1
                if lost["reason"] == "an annotation closes the dim":
                    assert lost["closed_by"], (lost, strategy, conservative, text)
    assert disagreeing


def test_a_value_without_a_sharding_has_reasons_and_a_suggestion() -> None:
    """Single passes leave it so, where `propagate` closes all."""
    (left,) = sw.parse(CONFLICT).apply("propagate_basic").why("%0").values
    (closed,) = sw.parse(CONFLICT).why("%0", strategy="basic").values
    assert (left.sharding, closed.sharding) == ("", "[{}, {}]")
    assert left.lost == closed.lost
    assert {(lost.dim, lost.axis) for lost in left.lost} == {(0, '"a"'), (1, '"a"')}
    assert left.suggestion == closed.suggestion == '[{}, {"a"}]'
    assert "%0 (program text:3) is tensor<8x64xf32>, without a sharding." in str(left)


def test_what_nothing_uses_is_passed_by() -> None:
    unused = "%1 = stablehlo.transpose %x, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>"
    text = CONFLICT.replace("  return %0", f"  {unused}\n  return %0")
    (value,) = sw.parse(text).apply("propagate_basic").why("%1").values
    assert value.sharding == ""
    (lost,) = value.lost
    assert (lost.dim, lost.axis, lost.reason) == (1, '"a"', "propagation skips the op")
    assert lost.rule == "unused ops are not propagated"


def test_a_value_without_a_sharding_behind_another_is_suggested_one_of_the_programs_mesh() -> None:
    text = CONFLICT.replace("  return %0", "  %1 = stablehlo.tanh %0 : tensor<8x64xf32>\n  return %1")
    (value,) = sw.parse(text).apply("propagate_basic").why("%1").values
    assert (value.sharding, value.lost, value.suggestion) == ("", (), '[{}, {"a"}]')


SEVERAL_MESHES = f"""sdy.mesh @m = <["a"=2]>
sdy.mesh @n = <["z"=4]>
func.func @main(%x: {sharded('{"a"}, {}')}, %y: {sharded('{"z"}, {?}')}) -> {T} {{
  %0 = stablehlo.add %x, %y : {T}
  return %0 : {T}
}}""".replace('@mesh, [{"a"', '@m, [{"a"').replace('@mesh, [{"z"', '@n, [{"z"')


def test_tensors_on_different_meshes_are_said_to_be() -> None:
    (value,) = sw.parse(SEVERAL_MESHES).why("%0", counterfactual=True).values
    assert (value.sharding, value.suggestion) == ("", '[{"a"}, {}]')
    told = [(lost.axis, [(axis.axis, axis.origin) for axis in lost.winner]) for lost in value.lost]
    assert told == [('"a"', [('"z"', "argument %y")]), ('"z"', [('"a"', "argument %x")])]
    assert {lost.reason for lost in value.lost} == {"the tensors of the op are on different meshes"}
    assert {lost.rule for lost in value.lost} == {"axes pass between tensors of one mesh only"}
    decided = {one.without.origin: one.sharding for one in value.counterfactuals or ()}
    assert decided == {"argument %y": '[{"a"}, {}]', "argument %x": '[{"z"}, {}]'}
    (value,) = sw.parse(SEVERAL_MESHES).why("%x").values
    assert [(lost.axis, lost.reason) for lost in value.lost] == [
        ('"z"', "the tensors of the op are on different meshes")
    ]


DISAGREEING = f"""sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: {sharded('{"a"}, {}')}, %y: {sharded('{"b"}, {}')}) -> (tensor<8x8xf32>, tensor<8x8xf32>) {{
  sdy.sharding_group %x group_id=3 : tensor<8x8xf32>
  sdy.sharding_group %y group_id=3 : tensor<8x8xf32>
  %0 = stablehlo.tanh %x : tensor<8x8xf32>
  %1 = stablehlo.tanh %y : tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}}"""


# ---- what would be --------------------------------------------------------------------------------------------------


def without(program: ModuleText, origin: str) -> str:
    """The program's text without the annotation of an argument or result of main."""
    changed = copy.deepcopy(program)
    kind, number = origin.split()[:2]
    held = changed.main.argument_shardings if kind == "argument" else changed.main.result_shardings
    held[int(number)] = None
    return changed.text()


def compared_counterfactuals(program: ModuleText, names: list[str], others: bool = True) -> int:
    """How many counterfactuals of the program are what these passes give without the annotation.

    `others`: compared is also how many other values change. Constants that the whole pipeline copies do not count.
    """
    propagated = _core.passes.propagate_program(_core.ir.parse(program.text()), names=names)
    known = {row["number"]: row["sharding"] for row in rows_of(propagated.explain_all())}
    compared = 0
    for number in known:
        for one in rows_of(propagated.explain_value(number, True))[0]["counterfactuals"]:
            if not one["origin"].startswith(("argument", "result")):
                continue
            text = without(program, one["origin"])
            after = _core.passes.propagate_program(_core.ir.parse(text), names=names)
            then = {row["number"]: row["sharding"] for row in rows_of(after.explain_all())}
            assert one["sharding"] == then[number], (one, text)
            if others:
                assert one["others"] == sum(then[n] != known[n] for n in known if n != number), (one, text)
            compared += 1
    return compared


@pytest.mark.parametrize("level", ["basic", "aggressive", "op_priority", "user_priority"])
@pytest.mark.parametrize("seed", range(12))
def test_counterfactuals_of_a_level_are_what_that_level_gives(seed: int, level: str) -> None:
    draw = random.Random(f"level:{seed}")
    programs = (random_module(draw, STEPS) for _ in range(10))
    assert any(compared_counterfactuals(program, [f"propagate_{level}"]) for program in programs)


def test_counterfactuals_are_of_the_pass_that_is_explained() -> None:
    asked = sw.parse(CONFLICT, "c.mlir")
    found = {
        name: [str(one) for one in asked.apply(name).why("%y", counterfactual=True).values[0].counterfactuals or ()]
        for name in ("propagate", "propagate_op_priority", "propagate_basic")
    }
    without_y = "without argument %y at c.mlir:2 it would"
    assert found == {
        "propagate": [f"{without_y} be sharded [{{}}, {{}}]; 1 other value would change"],
        "propagate_op_priority": [f"{without_y} have no sharding; 1 other value would change"],
        "propagate_basic": [f"{without_y} have no sharding; 1 other value would change"],
    }


@pytest.mark.parametrize("seed", range(60))
def test_counterfactuals_are_what_propagation_gives_without_the_annotation(seed: int) -> None:
    draw = random.Random(f"without:{seed}")
    programs = (random_module(draw, STEPS) for _ in range(10))
    assert any(compared_counterfactuals(program, ["propagate"], others=False) for program in programs)


def test_a_counterfactual_counts_the_values_that_change() -> None:
    (value,) = sw.parse(CONFLICT).why("%0", counterfactual=True).values
    assert value.counterfactuals is not None
    (one,) = value.counterfactuals
    assert (one.without.origin, one.sharding, one.others) == ("argument %y", '[{"a"}, {}]', 1)
    assert (
        str(one) == 'without argument %y at program text:2 it would be sharded [{"a"}, {}]; 1 other value would change'
    )
    assert sw.parse(CONFLICT).why("%0").values[0].counterfactuals is None


def test_a_counterfactual_of_a_value_that_propagation_made() -> None:
    """Where the members of a group disagree, constraints stand between them and their users."""
    values = sw.parse(DISAGREEING).why("sharding_constraint", counterfactual=True).values
    assert values
    for value in values:
        assert value.counterfactuals is not None
        decided = {one.without.origin: one.sharding for one in value.counterfactuals}
        # The group has one sharding then, and needs no constraint: that of the member.
        assert decided["argument %y"] == '[{"a"}, {}]'


def test_a_counterfactual_of_a_copied_constant() -> None:
    lines = [
        "%c = stablehlo.constant dense<1.0> : tensor<8x16xf32>",
        *(f"%{i} = stablehlo.add %arg{i}, %c : tensor<8x16xf32>" for i in range(2)),
    ]
    arguments = f"""%arg0: {sharded('{"a"}, {}', "8x16")}, %arg1: {sharded('{"b"}, {}', "8x16")}"""
    text = (
        f'sdy.mesh @mesh = <["a"=2, "b"=2]>\nfunc.func @main({arguments}) -> (tensor<8x16xf32>, tensor<8x16xf32>) {{\n'
        + "\n".join(lines)
        + "\nreturn %0, %1 : tensor<8x16xf32>, tensor<8x16xf32>\n}"
    )
    found = sw.parse(text).why("constant", counterfactual=True).values
    told = {
        value.sharding: [(one.without.origin, one.sharding) for one in value.counterfactuals or ()] for value in found
    }
    assert told['[{"a"}, {}]'] == [("argument %arg0", "[{}, {}]")]
    assert told['[{"b"}, {}]'] == [("argument %arg1", "[{}, {}]")]


def test_counterfactuals_of_copied_constants_that_are_returned_or_annotated() -> None:
    said = """{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>}"""
    text = f"""sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, {sharded('{"b"}', "8")}, tensor<8xf32>) {{
  %c = stablehlo.constant dense<1.0> : tensor<8xf32>
  %d = stablehlo.constant {said} dense<2.0> : tensor<8xf32>
  %0 = stablehlo.add %x, %c : tensor<8xf32>
  %1 = stablehlo.add %c, %d : tensor<8xf32>
  return %1, %c, %d : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}}"""
    told = set()
    for value in sw.parse(text).why("constant", counterfactual=True).values:
        for axis in value.axes:
            assert [one.without.origin for one in value.counterfactuals or ()] == [axis.origin]
            told |= {(one.without.origin, one.sharding) for one in value.counterfactuals or ()}
    assert ("result 1 of main", "[{}]") in told
    assert ("stablehlo.constant", "[{}]") in told


def test_the_manual_axes_of_a_manual_computation_cannot_be_taken_away() -> None:
    text = MANUAL.replace('{"a", "b"}', '{"a", ?}')
    assert text != MANUAL
    module = sw.parse(text)
    (value,) = module.why("manual_computation", counterfactual=True).values
    assert {axis.origin for axis in value.axes} == {"sdy.manual_computation"}
    assert value.counterfactuals == ()
    op = "%3 = sdy.manual_computation at program text:4"
    said = f"The annotation by {op} cannot be removed: the computation depends on it."
    assert [(str(one), reason) for one, reason in value.kept] == [(op, "the computation depends on it")]
    assert str(value).splitlines()[-1].strip() == said


def test_without_its_group_a_member_is_open() -> None:
    text = f"""{MESH}func.func @main(%x: {sharded('{"a"}, {}')}, %y: {sharded('{"b"}, {}')}, %z: {T}) -> {T} {{
  sdy.sharding_group %x group_id=0 : {T}
  sdy.sharding_group %z group_id=0 : {T}
  %0 = stablehlo.add %z, %y : {T}
  return %0 : {T}
}}"""
    (value,) = sw.parse(text).why("%z", counterfactual=True).values
    (lost,) = value.lost
    assert lost.closed_by is not None
    assert (lost.axis, lost.closed_by.origin) == ('"b"', "sdy.sharding_group")
    found = {one.without.origin: (one.sharding, one.others) for one in value.counterfactuals or ()}
    assert found["sdy.sharding_group"] == ('[{"b"}, {}]', 1)
    assert value.kept == ()
    assert "cannot be removed" not in str(value)
    alone = "\n".join(line for line in text.splitlines() if "group %z" not in line)
    assert sw.parse(alone).why("%z").values[0].sharding == '[{"b"}, {}]'


def test_what_a_manual_computation_closes_of_an_operand_can_be_left_open() -> None:
    types = "(tensor<8x8xf32>) -> tensor<8x8xf32>"
    text = f"""sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: {sharded('{"a"}, {?}')}) -> {T} {{
  %0 = stablehlo.tanh %x : {T}
  %m = sdy.manual_computation(%0) in_shardings=[<@mesh, [{{}}, {{"b"}}]>] out_shardings=[<@mesh, [{{?}}, {{"b"}}]>]
      manual_axes={{"b"}} (%y: tensor<8x4xf32>) {{
    %z = stablehlo.tanh %y : tensor<8x4xf32>
    sdy.return %z : tensor<8x4xf32>
  }} : {types}
  return %m : {T}
}}"""
    (value,) = sw.parse(text).why("%0", counterfactual=True).values
    (lost,) = [lost for lost in value.lost if lost.closed_by is not None]
    assert lost.closed_by is not None
    assert (lost.axis, lost.dim, lost.closed_by.origin) == ('"a"', 0, "sdy.manual_computation")
    found = {one.without.origin: one.sharding for one in value.counterfactuals or ()}
    assert found["sdy.manual_computation"] == '[{"a"}, {"b"}]'
    assert value.kept == ()


def test_what_a_manual_computation_says_of_free_axes_can_be_left_out() -> None:
    types = "(tensor<8x8xf32>) -> tensor<8x8xf32>"
    text = f"""{MESH}func.func @main(%x: {T}) -> {T} {{
  %m = sdy.manual_computation(%x) in_shardings=[<@mesh, [{{"a"}}, {{"b"}}]>] out_shardings=[<@mesh, [{{"a"}}, {{?}}]>]
      manual_axes={{"a"}} (%y: tensor<4x8xf32>) {{
    %z = stablehlo.tanh %y : tensor<4x8xf32>
    sdy.return %z : tensor<4x8xf32>
  }} : {types}
  return %m : {T}
}}"""
    (value,) = sw.parse(text).why("%z", counterfactual=True).values
    assert value.sharding == '[{}, {"b"}]'
    (one,) = value.counterfactuals or ()
    assert (one.without.origin, one.without.name, one.sharding) == ("sdy.manual_computation", "%m", "[{}, {}]")
    (value,) = sw.parse(text).why("%m", counterfactual=True).values
    assert {axis.axis for axis in value.axes} == {'"a"', '"b"'}
    assert '[{"a"}, {}]' in [one.sharding for one in value.counterfactuals or ()]


def test_without_the_annotation_of_a_while_its_results_lose_it() -> None:
    text = re.sub(r" \{sdy\.sharding = [^}]*\}(, \{[^}]*\})*\]>\}", "", WHILE)
    assert "sdy.sharding =" not in text
    types = ": tensor<i32>, tensor<8x8xf32>\n"
    assert types in text
    said = '#sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{"a"}, {}]>]>'
    text = text.replace(types, types.rstrip() + f" attributes {{sdy.sharding = {said}}}\n", 1)
    module = sw.parse(text)
    for name in ("%x", "dot_general", "transpose"):
        (value,) = module.why(name, counterfactual=True).values
        assert value.counterfactuals is not None
        found = [(one.without.origin, one.sharding) for one in value.counterfactuals]
        assert found == [("stablehlo.while", "[{}, {}]")]


def test_what_nothing_decides_says_so() -> None:
    (value,) = sw.parse(CONFLICT.replace('{"a"}', "{?}")).why("%0", counterfactual=True).values
    assert str(value).endswith("No annotation decides it.")


def test_without_its_last_annotation_a_program_is_on_no_mesh() -> None:
    text = """
    func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["a"=2]>, [{"a"}]>}) -> tensor<8xf32> {
      %0 = stablehlo.tanh %x : tensor<8xf32>
      return %0 : tensor<8xf32>
    }"""
    (value,) = sw.parse(text).why("tanh", counterfactual=True).values
    assert value.counterfactuals is not None
    assert [(one.sharding, one.others) for one in value.counterfactuals] == [("[{}]", 1)]


# ---- how one asks ---------------------------------------------------------------------------------------------------


def program() -> sw.Program:
    def step(x: Any, w: Any) -> Any:
        h = sw.split(x, 0, "data") @ w
        g = np.tanh(h)
        return np.exp(g @ w)

    shape = sw.ShapeDtypeStruct((16, 16), np.float32)
    return sw.jit(step, mesh=sw.Mesh({"data": 4, "model": 2})).lower(shape, shape).compile()


def test_one_asks_by_name_by_op_and_by_line() -> None:
    asked = program()
    (h,) = asked.why("h").values
    (first,) = asked.why("dot_general[0]").values
    assert (first.op, first.line, first.sharding) == ("stablehlo.dot_general", h.line, h.sharding)
    both = asked.why("stablehlo.dot_general")
    assert [value.op for value in both.values] == ["stablehlo.dot_general"] * 2
    assert both.values[1].line == h.line + 2
    assert asked.why("dot_general").values == both.values
    of_line = asked.why(f"{Path(__file__).name}:{h.line}")
    assert [value.op for value in of_line.values] == ["sdy.sharding_constraint", "stablehlo.dot_general"]
    assert repr(of_line).startswith(f"2 values of {Path(__file__).name}:{h.line}, at ")
    assert asked.why(f"{__file__}:{h.line}").values == of_line.values


@pytest.mark.parametrize(
    "name",
    ["dot_general[2]", "dot_general[x]", "ot_general", "test_why.py:", ":3"],
)
def test_what_nothing_is_called_is_an_error(name: str) -> None:
    with pytest.raises(KeyError, match="why: no value of the program is called"):
        program().why(name)


def test_a_name_goes_before_an_op() -> None:
    def step(x: Any) -> Any:
        tanh = sw.split(x, 0, "data") * 2
        return np.tanh(tanh)

    shape = sw.ShapeDtypeStruct((16,), np.float32)
    asked = sw.jit(step, mesh=sw.Mesh({"data": 4})).lower(shape).compile()
    assert [value.op for value in asked.why("tanh").values] == ["stablehlo.multiply"]
    assert [value.op for value in asked.why("stablehlo.tanh").values] == ["stablehlo.tanh"]


def test_a_module_has_lines_where_its_text_has() -> None:
    text = CONFLICT.replace("-> tensor<8x64xf32>\n  return", '-> tensor<8x64xf32> loc("train.py":7:3)\n  return')
    (value,) = sw.parse(text).why("train.py:7").values
    assert (value.name, value.location, value.op) == ("%0", "train.py:7", "stablehlo.dot_general")
    assert value.axes[0].path[0].location == "train.py:7"


def test_the_path_has_factors_rounds_and_priorities() -> None:
    text = LOST[[case.name for case in LOST].index("a priority")].text.replace('{?}, {"a"}', "{?}, {?}")
    (value,) = sw.parse(text).why("%0").values
    (step,) = value.axes[0].path
    assert (step.factor, step.round, step.priority) == ("i", 0, 1)
    where = "%0 = stablehlo.add (program text:3)"
    assert str(step) == f"{where}: operand 0 dim 0 → result 0 dim 0, factor i, round 0, in the turn of priority 1"


def chain(length: int) -> str:
    """One op after the other; %0 is the first and %{length - 1} the last."""
    ops = [f"%{i} = stablehlo.tanh %{i - 1 if i else 'x'} : tensor<8xf32>" for i in range(length)]
    return "\n".join([
        'func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["a"=2]>, [{"a"}]>}) -> tensor<8xf32> {',
        *ops,
        f"return %{length - 1} : tensor<8xf32>",
        "}",
    ])  # fmt: skip


def test_a_path_as_long_as_the_program_is_followed_and_its_ends_are_printed() -> None:
    """A frame or a copy of the path per step would need more memory than there is."""
    length = 100_000
    asked = sw.parse(chain(length)).why(f"%{length - 1}")
    (value,) = asked.values
    (axis,) = value.axes
    assert (axis.origin, len(axis.path)) == ("argument %x", length)
    assert len(asked.to_dict()["values"][0]["axes"][0]["path"]) == length
    lines = str(value).splitlines()
    step = "    through %{} = stablehlo.tanh (program text:{}): operand 0 dim 0 → result 0 dim 0, factor i, round 0"
    first, last = ([step.format(i, i + 2) for i in range(begin, begin + 4)] for begin in (0, length - 4))
    assert lines[2:] == [*first, "    … 99992 more …", *last]


@pytest.mark.parametrize("length", [1, 16])
def test_a_short_path_is_printed_whole(length: int) -> None:
    (value,) = sw.parse(chain(length)).why(f"%{length - 1}").values
    assert len(re.findall(r"through %\d+ = stablehlo\.tanh", str(value))) == length
    assert "more" not in str(value)


def test_a_large_priority_is_named() -> None:
    text = LOST[[case.name for case in LOST].index("a large priority")].text
    (value,) = sw.parse(text).why("%0").values
    assert [step.priority for axis in value.axes for step in axis.path] == [66000]
    assert "in the turn of priority 66000" in str(value)


def test_a_constraint_of_a_group_whose_members_disagree_is_said_to_be_of_the_group() -> None:
    module = sw.parse(DISAGREEING)
    for name in ("%0", "%1"):
        (value,) = module.why(name).values
        step = value.axes[0].path[0]
        assert (step.name, step.from_, step.to) == (
            "sdy.sharding_group", "a member of group 3, which disagrees, dim 0", "its users, dim 0",
        )  # fmt: skip
    (value,) = module.why("%x").values  # what stands between it and its users has no name
    assert {one.op for one in value.lost} == {"sdy.sharding_group 3 (its members disagree)"}


def test_a_constraint_that_the_user_wrote_behind_such_a_group_is_the_users() -> None:
    text = DISAGREEING.replace(
        "return %0, %1", "%2 = sdy.sharding_constraint %1 <@mesh, [{?}, {?}]> : tensor<8x8xf32>\n  return %0, %2"
    )
    (value,) = sw.parse(text).why("%2").values
    assert [step.name for step in value.axes[0].path] == [
        "sdy.sharding_group", "stablehlo.tanh", "sdy.sharding_constraint",
    ]  # fmt: skip


def test_a_name_like_no_other_is_answered_with_names_that_exist() -> None:
    def layer(x: Any, weights: Any) -> Any:
        hidden = x @ weights
        return np.tanh(hidden)

    program = sw.jit(layer, mesh=sw.Mesh({"x": 2})).lower(np.ones((2, 2)), np.ones((2, 2))).compile()
    with pytest.raises(KeyError) as caught:
        program.why("zzzz")
    text = (
        "why: no value of the program is called 'zzzz'; ask by a name, such as hidden, weights, x, an op or FILE:LINE"
    )
    assert caught.value.args[0] == text
