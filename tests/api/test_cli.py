# SPDX-License-Identifier: Apache-2.0
"""The command line: every pass on text that jaxlib reads, `why` by names of the text, and errors with their place."""

from __future__ import annotations

import io
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import shardwise as sw
from shardwise import _core
from shardwise.cli import main
from tests.conformance.fuzz.test_mutated_text import mutated
from tests.conformance.shardy.client import ShardyOracle
from tests.explanation.test_why import DISAGREEING
from tests.partition.test_data_flow import CALLS, CASE, MANUAL, WHILE
from tests.support.example_programs import EXAMPLES, traced_example

TEXT = """\
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<4x16xf32>)
    -> tensor<8x16xf32> {
  %h = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1],
    rhs_contracting_dimensions = [0]>}> : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  %z = stablehlo.tanh %h : tensor<8x16xf32>
  return %z : tensor<8x16xf32>
}
"""
PASSES = [name.replace("_", "-") for name, _ in _core.passes.named_passes()]
TO_LOCAL = [
    "inline-calls", "simplify", "propagate", "legalize", "choose", "assign", "plan-reshards", "localize",
    "optimize-collectives", "form-scans", "window-einsums", "rematerialize", "gathers-in-trips", "combine-collectives",
]  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "program.mlir"
    path.write_text(TEXT)
    return path


def run(capsys: Any, *arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def before(name: str) -> list[str]:
    """The passes whose work a pass goes on with."""
    at = {"insert-reshards": "assign", "reshard-to-collectives": "plan-reshards"}.get(name, name)
    return TO_LOCAL[: TO_LOCAL.index(at)] if at in TO_LOCAL else []


# ---- opt ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("name", PASSES)
def test_every_pass_prints_a_program_that_jaxlib_and_we_read(
    name: str,
    example: str,
    shardy: ShardyOracle,
    tmp_path: Path,
    capsys: Any,
) -> None:
    path = tmp_path / "in.mlir"
    path.write_text(traced_example(example).as_text())
    code, out, err = run(capsys, "opt", path, f"--passes={','.join([*before(name), name])}")
    assert (code, err) == (0, "")
    local = name in TO_LOCAL[TO_LOCAL.index("localize") :]
    assert shardy.parse(out, unregistered=local)
    assert str(sw.parse(out)) == out


def test_version(capsys: Any) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"shardwise {sw.__version__}\n"


def test_the_default_is_to_print_what_was_read(file: Path, capsys: Any) -> None:
    assert run(capsys, "opt", file) == (0, str(sw.parse(TEXT)), "")


def test_passes_run_one_after_another_and_dashes_are_underscores(file: Path, capsys: Any) -> None:
    by_name = run(capsys, "opt", file, "--passes=propagate,insert-reshards,reshard-to-collectives")[1]
    assert by_name == str(sw.parse(TEXT).apply("propagate", "assign", "plan_reshards"))
    assert run(capsys, "opt", file, "--passes", "propagate, assign,plan_reshards,")[1] == by_name


@pytest.mark.parametrize("level", ["basic", "aggressive", "op-priority", "user-priority"])
def test_the_levels_of_propagation_are_those_of_shardy(level: str, file: Path, capsys: Any) -> None:
    expected = _core.passes.run_passes(_core.ir.parse(TEXT), [f"propagate_{level}"]).text()
    assert run(capsys, "opt", file, f"--passes=propagate-{level}")[1] == expected
    assert '{"x", ?}' in expected


def test_a_level_of_propagation_sees_manual_regions_as_shardy_does(
    shardy: ShardyOracle,
    file: Path,
    capsys: Any,
) -> None:
    file.write_text(
        """\
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %m = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x", ?}, {"y", ?}]>]
      out_shardings=[<@mesh, [{"x", ?}, {?}]>] manual_axes={"x"} (%b: tensor<4x8xf32>) {
    %t = stablehlo.transpose %b, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
    %u = stablehlo.transpose %t, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
    sdy.return %u : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %m : tensor<8x8xf32>
}
"""
    )
    ours = run(capsys, "opt", file, "--passes=propagate-user-priority")[1]
    assert '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y", ?}, {?}]>]>} : (tensor<4x8xf32>)' in ours
    assert ours.count('{?}, {"y", ?}') == 1  # of %t; the region's argument keeps what its text says
    assert shardy.parse(ours)


def test_shardings_of_uneven_borders_shrink_where_that_is_asked_for(file: Path, capsys: Any) -> None:
    file.write_text(TEXT.replace("tensor<8x", "tensor<6x"))
    even = '%arg0: tensor<6x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}, {}]>}'
    assert even not in run(capsys, "opt", file, "--passes=propagate")[1]
    careful = run(capsys, "opt", file, "--passes=propagate", "--conservative")[1]
    assert careful == str(sw.parse(file.read_text()).propagate(conservative=True))
    strict = run(capsys, "opt", file, "--passes=propagate", "--strict-divisible")[1]
    assert even in strict
    assert strict == str(sw.parse(file.read_text()).propagate(strict_divisible=True))


def test_text_comes_from_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert run(capsys, "opt", "-", "--passes=propagate")[1] == str(sw.parse(TEXT).propagate())


def test_forms_of_the_text(file: Path, capsys: Any) -> None:
    generic = run(capsys, "opt", file, "--generic")[1]
    assert '"stablehlo.tanh"(' in generic
    located = run(capsys, "opt", file, "--locations")[1]
    assert f'stablehlo.tanh %0 : tensor<8x16xf32> loc("{file}":6:8)' in located
    assert f'%arg1: tensor<4x16xf32> loc("{file}":2:89)' in located
    own = TEXT.replace("tensor<8x16xf32>\n  return", 'tensor<8x16xf32> loc("h"("train.py":3:4))\n  return')
    file.write_text(own)
    assert '%0 : tensor<8x16xf32> loc("h"("train.py":3:4))' in run(capsys, "opt", file, "--locations")[1]


def test_help_has_a_line_for_each_pass(capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["opt", "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    for name, doc in _core.passes.named_passes():
        assert f"  {name.replace('_', '-')} " in shown
        assert doc in shown
    assert {"parse", "propagate", "propagate-basic", "propagate-aggressive", "propagate-op-priority"} <= set(PASSES)
    assert {"propagate-user-priority", "insert-reshards", "reshard-to-collectives", *TO_LOCAL} <= set(PASSES)


# ---- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tanh %h", "tanh %hh", "6:23: error: program text: a value must be defined before its use, got %hh"),
        ("stablehlo.tanh", "stablehlo.tan_h", "6:8: error: program text: an op must be one that shardwise knows, got"),
        ('{"x"}', '{"z"}', '2:53: error: sharding: an axis must be of mesh @mesh, got "z"; use one of "x", "y"'),
        ('["x"=4, "y"=2]', '["x"=0]', '1:18: error: mesh: the size of an axis must be at least 1, got "x"=0; leave'),
        (TEXT, "", " error: program: must have a function @main, got a module without functions; add func.func"),
        (TEXT, "é", "1:1: error: program text: expected module, func.func or sdy.mesh"),
    ],
)
def test_a_text_that_is_wrong_is_refused_with_its_place(
    old: str, new: str, message: str, file: Path, capsys: Any
) -> None:
    file.write_text(TEXT.replace(old, new))
    for command in (["opt", file], ["why", file, "%z"]):
        code, out, err = run(capsys, *command)
        assert (code, out) == (1, "")
        assert err.startswith(f"{file}:{message}"), err
        assert err.count("\n") == 1


def test_what_a_pass_refuses_has_the_place_of_the_op(file: Path, capsys: Any) -> None:
    code, out, err = run(capsys, "opt", file, "--passes=localize")
    assert (code, out) == (1, "")
    assert err == (
        f"{file}:4:8: error: localize: the program must have been through assign and plan_reshards, got a program at "
        "stage global; run assign and plan_reshards first\n"
    )
    file.write_text(TEXT.replace("tensor<8x16xf32>\n  %z", 'tensor<8x16xf32> loc("train.py":3:4)\n  %z'))
    assert run(capsys, "opt", file, "--passes=localize")[2].startswith("train.py:3:1: error: localize:")


ORDERS = [
    ("localize", "assign and plan_reshards", "global"),
    ("propagate,localize", "assign and plan_reshards", "propagated"),
    ("propagate,plan-reshards,localize", "assign and plan_reshards", "propagated"),
    ("propagate,assign,localize", "plan_reshards", "assigned"),
    ("propagate,optimize-collectives", "localize", "propagated"),
    ("propagate,assign,plan-reshards,optimize-collectives", "localize", "resharded"),
]


@pytest.mark.parametrize(("passes", "missing", "got"), ORDERS)
def test_a_pass_that_comes_too_early_names_those_that_go_before(
    passes: str, missing: str, got: str, file: Path, capsys: Any
) -> None:
    moved = TEXT.replace(
        "%b: tensor<4x16xf32>", '%b: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
    )
    file.write_text(moved)
    last = passes.rpartition(",")[2].replace("-", "_")
    code, out, err = run(capsys, "opt", file, f"--passes={passes}")
    assert (code, out) == (1, "")
    must_hold = f"{last}: the program must have been through {missing}, got a program at stage"
    assert err.endswith(f"error: {must_hold} {got}; run {missing} first\n")
    *before, _ = passes.split(",")
    text = run(capsys, "opt", file, f"--passes={','.join(before)}")[1]  # of what a text holds, too
    file.write_text(text)
    known = "global" if got == "propagated" else got
    assert f"error: {must_hold} {known}; run {missing}" in run(capsys, "opt", file, f"--passes={last}")[2]


@pytest.mark.parametrize(
    "last", ["propagate", "propagate-basic", "assign", "insert-reshards", "plan-reshards", "localize"]
)
def test_a_pass_that_comes_too_late_says_behind_what(last: str, file: Path, capsys: Any) -> None:
    moved = TEXT.replace(
        "%b: tensor<4x16xf32>", '%b: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
    )
    file.write_text(moved)
    name = last.replace("-", "_")
    planned = "propagate,assign,plan-reshards"
    err = run(capsys, "opt", file, f"--passes={planned},localize,{last}")[2]
    late = f"error: {name}: the program must not have been through"
    assert f"{late} localize, got a program at stage local; give it the program before that" in err
    code, _, err = run(capsys, "opt", file, f"--passes={planned},{last}")
    assert code == (last in ("assign", "insert-reshards"))
    assert code == 0 or f"{late} plan_reshards, got a program at stage resharded; give it the program before" in err


def test_a_program_of_one_device_is_known_where_it_moves_nothing(file: Path, capsys: Any) -> None:
    err = run(capsys, "opt", file, "--passes=propagate,assign,plan-reshards,localize,localize")[2]
    assert "the program must not have been through localize, got a program at stage local; give it" in err
    local = run(capsys, "opt", file, "--passes=propagate,assign,plan-reshards,localize")[1]
    file.write_text(local)
    assert run(capsys, "opt", file, "--passes=optimize-collectives") == (0, local, "")


def claims_to_be_resharded(text: str, file: Path) -> None:
    """A text whose author is wrong about the passes that it has been through."""
    file.write_text(text.replace("module {", 'module attributes {shardwise.stage = "resharded"} {'))


def test_results_must_lie_where_the_signature_says(file: Path, capsys: Any) -> None:
    file.write_text(
        TEXT.replace("-> tensor<8x16xf32> {", "-> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {")
    )
    claims_to_be_resharded(run(capsys, "opt", file, "--passes=propagate")[1], file)
    err = run(capsys, "opt", file, "--passes=localize")[2]
    assert 'localize: result 0 must be sharded as declared, [{}, {}], got [{"x"}, {}]; run assign on the program' in err


def test_sums_of_parts_are_not_taken_for_whole(file: Path, capsys: Any) -> None:
    """localize alone would leave out the all-reduce that assign puts there."""
    file.write_text(
        """sdy.mesh @mesh = <["y"=4]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}, %v: tensor<f32>) -> tensor<8xf32> {
  %0 = stablehlo.reduce(%x init: %v) applies stablehlo.add across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}"""  # noqa: E501
    )
    assert "all_reduce" in run(capsys, "opt", file, "--passes=propagate,assign,plan-reshards,localize")[1]
    claims_to_be_resharded(run(capsys, "opt", file, "--passes=propagate")[1], file)
    code, out, err = run(capsys, "opt", file, "--passes=localize")
    assert (code, out) == (1, "")
    assert 'a reduced dim must be unsharded, or the result must be unreduced, got dim 1 of operand 0 over "y"' in err
    assert err.startswith(f"{file}:4:10: error: stablehlo.reduce: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, ": error: No such file or directory"),
        (b"module {\n  \xff", ":2:3: error: the text must be UTF-8"),
        (b"module {" * 100_000, ":1:"),
    ],
)
def test_files_that_are_no_programs(content: bytes | None, message: str, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "in.mlir"
    if content is not None:
        path.write_bytes(content)
    code, out, err = run(capsys, "opt", path)
    assert (code, out) == (1, "")
    assert err.startswith(f"{path}{message}")
    assert run(capsys, "opt", tmp_path)[2] == f"{tmp_path}: error: Is a directory\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: COMMAND"),
        (["opt"], "required: FILE"),
        (["opt", "x.mlir", "--passes=propagat"], "no pass is called 'propagat'; use propagate"),
        (["opt", "x.mlir", "--passes=zzz"], "no pass is called 'zzz'; use inline-calls, simplify, "),
        (["opt", "x.mlir", "--strategy=fast"], "invalid choice: 'fast'"),
        (["why", "x.mlir"], "required: %VALUE"),
    ],
)
def test_a_wrong_command_line_says_what_is_right(arguments: list[str], message: str, capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", PASSES)
def test_changed_texts_of_any_stage_are_processed_or_refused_in_one_line(name: str, file: Path, capsys: Any) -> None:
    rng = random.Random(name)
    stages = traced_example("gradient").lower().compile()._compiled.stages.values()
    texts = [TEXT, WHILE, CASE, MANUAL, CALLS, *(stage.text() for stage in stages)]
    refused = 0
    for _ in range(60):
        text = rng.choice(texts)
        if rng.random() < 0.7:
            text = mutated(text, rng)
        file.write_text(text)
        code, out, err = run(capsys, "opt", file, f"--passes={name}")
        refused += code
        if code == 0:
            assert sw.parse(out)
            continue
        assert code == 1
        assert re.match(r"[^\n]+:\d+:\d+: error: [^\n]+\n$", err), err
        assert "a bug in shardwise" not in err, (err, text)
    assert 0 < refused < 60


# ---- why ------------------------------------------------------------------------------------------------------------


def test_why_takes_a_name_of_the_text(file: Path, capsys: Any) -> None:
    code, out, err = run(capsys, "why", file, "%z")
    assert (code, err) == (0, "")
    assert out == (
        f'%z ({file}:6) is tensor<8x16xf32>, sharded [{{"x"}}, {{}}] by aggressive propagation.\n'
        f'  dim 0 is split over "x": it comes from argument %a at {file}:2\n'
        f"    through %h = stablehlo.dot_general ({file}:4): operand 0 dim 0 → result 0 dim 0, factor i, round 2\n"
        f"    through %z = stablehlo.tanh ({file}:6): operand 0 dim 0 → result 0 dim 0, factor i, round 2\n"
    )


def test_why_takes_an_op_or_a_line(file: Path, capsys: Any) -> None:
    by_name = json.loads(run(capsys, "why", file, "%h", "--json")[1])["values"]
    for asked in ("dot_general", "stablehlo.dot_general[0]", f"{file.name}:4"):
        assert json.loads(run(capsys, "why", file, asked, "--json")[1])["values"] == by_name
    code, _, err = run(capsys, "why", file, "xyz:1")
    assert (code, err) == (1, f"{file}: error: why: the program has no values in xyz; it has some in {file.name}\n")
    code, _, err = run(capsys, "why", file, "xyz")
    assert (code, err) == (
        1, f"{file}: error: why: no value of the program is called 'xyz'; ask by a name, "
        "such as %a, %b, %h, %z, an op or FILE:LINE\n"
    )  # fmt: skip


def test_why_says_what_would_be_and_propagates_with_caution(file: Path, capsys: Any) -> None:
    out = run(capsys, "why", file, "%z", "--counterfactual", "--conservative", "--strategy=basic")[1]
    assert 'sharded [{"x"}, {}] by conservative basic propagation.\n' in out
    assert out.endswith(
        f"  without argument %a at {file}:2 it would be sharded [{{}}, {{}}]; 2 other values would change\n"
    )
    (value,) = json.loads(run(capsys, "why", file, "%z", "--counterfactual", "--json")[1])["values"]
    assert [one["sharding"] for one in value["counterfactuals"]] == ["[{}, {}]"]


def test_why_as_json(file: Path, capsys: Any) -> None:
    found = json.loads(run(capsys, "why", file, "%h", "--json")[1])
    assert found["name"] == "%h"
    (value,) = found["values"]
    assert (value["line"], value["sharding"]) == (4, '[{"x"}, {}]')
    assert [axis["axis"] for axis in value["axes"]] == ['"x"']


def test_why_of_several_results_and_of_given_names(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "pairs.mlir"
    path.write_text(
        """\
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %i: tensor<f32>)
    -> (tensor<f32>, tensor<f32>) {
  %r:2 = "stablehlo.reduce"(%a, %a, %i, %i) <{dimensions = array<i64: 0>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>, %s: tensor<f32>, %t: tensor<f32>):
    %u = stablehlo.add %p, %s : tensor<f32>
    %v = stablehlo.add %q, %t : tensor<f32>
    "stablehlo.return"(%u, %v) : (tensor<f32>, tensor<f32>) -> ()
  }) : (tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>) loc("total")
  return %r#0, %r#1 : tensor<f32>, tensor<f32>
}
"""
    )
    both = json.loads(run(capsys, "why", path, "%r", "--json")[1])
    assert [value["name"] for value in both["values"]] == ["%r#0", "%r#1"]
    one = json.loads(run(capsys, "why", path, "%r#1", "--json")[1])
    assert [value["name"] for value in one["values"]] == ["%r#1"]
    named = json.loads(run(capsys, "why", path, "total", "--json")[1])
    assert named["values"] == both["values"]


TWICE = """\
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %h = func.call @f(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %z = stablehlo.tanh %h : tensor<8xf32>
  %v = func.call @f(%z) : (tensor<8xf32>) -> tensor<8xf32>
  return %v : tensor<8xf32> }
func.func private @f(%p: tensor<8xf32>) -> tensor<8xf32> {
  %q = stablehlo.add %p, %p : tensor<8xf32>
  return %q : tensor<8xf32>
}
"""


def test_why_of_values_in_called_functions(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "calls.mlir"
    path.write_text(TWICE)
    called = json.loads(run(capsys, "why", path, "%q", "--json")[1])["values"]
    assert [(value["name"], value["line"], value["sharding"]) for value in called] == [("@f %q", 8, '[{"x"}]')] * 2
    assert [value["called_at"] for value in called] == [[f"{path}:3"], [f"{path}:5"]]
    first, second = (value["axes"][0] for value in called)
    assert (first["origin"], second["origin"]) == ("argument %a", "argument %a")
    assert len(first["path"]) < len(second["path"])
    assert json.loads(run(capsys, "why", path, "@f", "%q", "--json")[1])["values"] == called
    assert json.loads(run(capsys, "why", path, "@f %q", "--json")[1])["values"] == called


def test_why_of_what_calls_give_and_take(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "calls.mlir"
    path.write_text(TWICE)
    (given,) = json.loads(run(capsys, "why", path, "%h", "--json")[1])["values"]
    assert (given["op"], given["line"], given["sharding"]) == ("func.call", 3, '[{"x"}]')
    assert [(step["value"], step["name"], step["from"], step["to"]) for step in given["axes"][0]["path"]] == [
        ("%h", "func.call", "operand 0 dim 0", "argument 0 of its function, dim 0"),
        ("@f %q", "stablehlo.add", "operand 0 dim 0", "result 0 dim 0"),
        ("%h", "func.call", "what its function returns, dim 0", "result 0 dim 0"),
    ]
    taken = json.loads(run(capsys, "why", path, "%p", "--json")[1])["values"]
    assert [(value["name"], value["line"], value["sharding"]) for value in taken] == [("@f %p", 7, '[{"x"}]')] * 2
    out = run(capsys, "why", path, "%p")[1]
    assert f"@f %p ({path}:7, called at {path}:5) is tensor<8xf32>" in out


def test_why_of_an_annotation_in_a_called_function(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "calls.mlir"
    said = ' {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}'
    path.write_text(TWICE.replace(said, "").replace("@f(%p: tensor<8xf32>", f"@f(%p: tensor<8xf32>{said}"))
    (value,) = json.loads(run(capsys, "why", path, "%a", "--json")[1])["values"]
    assert (value["axes"][0]["origin"], value["axes"][0]["location"]) == ("argument @f %p", f"{path}:7")


def test_why_of_a_name_that_several_functions_use(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "calls.mlir"
    path.write_text(TWICE.replace("%h", "%0").replace("%q", "%0"))
    code, out, err = run(capsys, "why", path, "%0")
    assert (code, out) == (1, "")
    assert err == (f"{path}: error: why: %0 is a name in several functions; ask for @main %0 or @f %0\n")
    (main,) = json.loads(run(capsys, "why", path, "@main", "%0", "--json")[1])["values"]
    assert (main["name"], main["line"]) == ("%0", 3)
    assert [value["line"] for value in json.loads(run(capsys, "why", path, "@f %0", "--json")[1])["values"]] == [8, 8]


def test_why_of_a_function_that_nobody_calls(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "calls.mlir"
    other = """func.func public @g(%b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %c = stablehlo.negate %b : tensor<8xf32>
  return %c : tensor<8xf32>
}
"""
    path.write_text(TWICE + other)
    (value,) = json.loads(run(capsys, "why", path, "%c", "--json")[1])["values"]
    assert (value["name"], value["sharding"]) == ("@g %c", '[{"x"}]')
    assert [axis["origin"] for axis in value["axes"]] == ["argument @g %b"]


def test_why_of_what_nothing_uses(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "unused.mlir"
    path.write_text(TWICE.replace("  return %v", "  %dead = stablehlo.tanh %v : tensor<8xf32>\n  return %v"))
    code, _, err = run(capsys, "why", path, "%dead")
    said = "why: '%dead' is not in the propagated program, since nothing uses it; ask for what is used"
    assert (code, err) == (1, f"{path}: error: {said}\n")


def test_why_of_a_name_that_is_not_there(file: Path, capsys: Any) -> None:
    code, out, err = run(capsys, "why", file, "%zz")
    assert (code, out) == (1, "")
    assert err == f"{file}: error: why: no value of the program is called '%zz'; did you mean %z?\n"


@pytest.mark.parametrize("command", [["opt", "--passes=propagate"], ["opt", "--passes=propagate-basic"], ["why", "%0"]])
def test_a_group_whose_members_disagree_is_a_warning(command: list[str], tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "group.mlir"
    path.write_text(DISAGREEING)
    code, out, err = run(capsys, command[0], path, *command[1:])
    assert code == 0
    assert out
    said = 'sharding_group 3: members should be annotated alike, got [{"a"}, {}]'
    assert err.startswith(f"{path}:2:1: warning: {said}")
    assert err.count("\n") == 1


# ---- as a process ---------------------------------------------------------------------------------------------------


def test_the_module_and_the_script_are_the_command(file: Path) -> None:
    expected = str(sw.parse(TEXT).propagate())
    script = str(Path(sys.executable).with_name("shardwise"))
    for command in ([sys.executable, "-m", "shardwise"], [script]):
        done = subprocess.run(
            [*command, "opt", "-", "--passes=propagate"], input=TEXT, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


@pytest.mark.parametrize(
    ("command", "err"),
    [
        ("opt {file} >&-", "<stdout>: error: it is closed"),
        ("opt {file} >/dev/full", "<stdout>: error: No space left on device"),
        ("opt - <&-", "<stdin>: error: it is closed"),
        ("why {file} tanh >&-", "<stdout>: error: it is closed"),
        ("opt {file}.none 2>&-", ""),
    ],
)
def test_what_cannot_be_read_or_written_is_one_line(file: Path, command: str, err: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -m shardwise {command.format(file=file)}'],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (1, "", err and f"{err}\n")


def test_an_encoding_without_an_arrow_is_one_line(file: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "shardwise", "why", str(file), "tanh"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    text = "<stdout>: error: its encoding, ascii, has no '\\u2192'; set PYTHONIOENCODING=utf-8\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", text)


def test_a_pass_that_cannot_take_named_computations_says_which_pass_takes_them_away(
    tmp_path: Path, capsys: Any
) -> None:
    path = tmp_path / "calls.mlir"
    path.write_text(
        'sdy.mesh @mesh = <["x"=2]>\n'
        "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {\n"
        '  %0 = sdy.named_computation<"f">(%a) (%b: tensor<8xf32>) {\n'
        "    sdy.return %b : tensor<8xf32>\n  } : (tensor<8xf32>) -> tensor<8xf32>\n"
        "  return %0 : tensor<8xf32>\n}\n"
    )
    said = f"{path}:3:8: error: sdy.named_computation: can be read, propagated and printed, but not run; "
    said += "run inline_calls first\n"
    for passes in ("propagate,insert-reshards", "plan-reshards"):
        assert run(capsys, "opt", path, f"--passes={passes}") == (1, "", said)
    assert run(capsys, "opt", path, "--passes=propagate,inline-calls,insert-reshards")[0] == 0


def test_a_reader_that_leaves_early_is_no_traceback(tmp_path: Path) -> None:
    lines = "".join(f"  %{i + 1} = stablehlo.tanh %{i} : tensor<4xf32>\n" for i in range(5000))
    (tmp_path / "long.mlir").write_text(
        f"func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {{\n{lines}  return %5000 : tensor<4xf32>\n}}\n"
    )
    command = f'"{sys.executable}" -m shardwise opt "{tmp_path}/long.mlir" | head -1'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout == "module {\n"
    assert done.stderr == ""


def test_names_are_suggested_in_their_natural_order(tmp_path: Path, capsys: Any) -> None:
    ops = "".join(f"  %{i + 1} = stablehlo.tanh %{i} : tensor<4xf32>\n" for i in range(12))
    path = tmp_path / "chain.mlir"
    path.write_text(f"func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {{\n{ops}  return %12 : tensor<4xf32>\n}}")
    assert run(capsys, "why", path, "x")[2].endswith("ask by a name, such as %0, %1, %2, %3, %4, an op or FILE:LINE\n")
    assert "did you mean %1, %2, %10, %11, %12?" not in run(capsys, "why", path, "%13")[2]
