# SPDX-License-Identifier: Apache-2.0
"""Ops without a kernel: those that others make up, under vmap and as texts; and the list of those that do not run."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import _core, errors
from tests.op.cases import COMPOSED, OF_FUNCTIONS, OF_OTHERS_WITHOUT_KERNEL
from tests.support.partitioned import execute, same_bits

# Ops that have neither a kernel nor a decomposition. An op that gets one leaves the list; no op may join it.
WITHOUT_KERNEL = {
    "stablehlo.infeed",
    "stablehlo.outfeed",
    "stablehlo.recv",
    "stablehlo.send",
}


def test_ops_without_kernel_or_decomposition_only_become_fewer() -> None:
    without = {op.name for op in _core.ir.all_ops() if not op.runnable}
    assert without - WITHOUT_KERNEL == set(), "give it a kernel or a decomposition"
    assert WITHOUT_KERNEL - without == set(), "it runs: take it off the list"
    assert {op.name for op in _core.ir.all_ops() if not op.complete} == WITHOUT_KERNEL


def test_each_op_that_does_not_run_has_a_reason() -> None:
    refused = {op.name for op in _core.ir.all_ops() if op.refusal}
    # A named computation is inlined; a scan that runs has no reason to be refused.
    assert {op.name for op in _core.ir.all_ops() if not op.runnable} - refused <= {"sdy.named_computation", "chlo.scan"}
    assert not any(op.runnable for op in _core.ir.all_ops() if op.refusal)


OUTSIDE = "outside of a manual computation each group must have one device"
INSTEAD = "write the function on whole arrays, or put the op into a region of sdy.manual_computation"
NOT_RUN = "can be read, propagated and printed, but not run, because"
ADDS = """({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
})"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "%t = stablehlo.create_token : !stablehlo.token\n"
            '"stablehlo.outfeed"(%x, %t) : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token',
            f"stablehlo.outfeed: {NOT_RUN} it exchanges data with the host while the program runs; return the data as "
            "results",
        ),
        (
            f'%1 = "stablehlo.all_reduce"(%x) <{{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}> {ADDS} : '
            "(tensor<4xf32>) -> tensor<4xf32>",
            f"stablehlo.all_reduce: {OUTSIDE}, got [0, 1]; {INSTEAD}",
        ),
        (
            "%1 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) {mhlo.backend_config = {index = 0 : ui64}} : "
            "(tensor<4xf32>) -> tensor<4xf32>",
            f"custom_call @xla_ffi_python_cpu_callback: {NOT_RUN} it calls a Python function, which is not in the "
            "text; remove the callback, or use sw.from_jax",
        ),
        (
            "%1 = stablehlo.custom_call @a_target(%x) : (tensor<4xf32>) -> tensor<4xf32>",
            f"custom_call @a_target: {NOT_RUN} its function is not in the text; define it with sw.register_custom_call",
        ),
    ],
)
def test_a_refused_op_is_named_with_its_line(body: str, message: str) -> None:
    text = f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n{body}\nreturn %x : tensor<4xf32>\n}}"
    module = sw.parse(text, "f.mlir")
    module.propagate()
    with pytest.raises(sw.UnsupportedError) as refused:
        module.compile()
    line = 2 + body.count("\n") * body.startswith("%t")
    assert str(refused.value) == f"{message} (at f.mlir:{line})"
    with pytest.raises(sw.UnsupportedError) as refused:
        sw.parse(text).run(np.zeros(4, np.float32))
    assert str(refused.value) == f"{message} (at program text:{line})"


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (
            "%x: tensor<?xf32>",
            "a dim must have a static size, got tensor<?; lower the program with concrete shapes, because sizes decide",
        ),
        (
            "%x: tensor<4x!quant.uniform<i8:f32, 0.5:3>>",
            "; use floats, or integers with their scales as operands, because no kernel computes with scales and zero",
        ),
    ],
)
def test_types_of_no_program_that_runs_are_refused_when_read(declared: str, message: str) -> None:
    with pytest.raises(sw.ParseError) as refused:
        sw.parse(f"\n\nfunc.func @main({declared}) {{ return }}")
    line, column, text = str(refused.value).split(":", 2)
    assert (line, int(column) > 15) == ("3", True)
    assert message in text


def test_an_op_that_no_pass_decomposes_is_refused() -> None:
    amount = "tensor<1xi32>"
    types = f"(tensor<6xf32>, tensor<f32>, {amount}, {amount}, {amount}) -> tensor<8xf32>"
    text = f"""func.func @main(%x: tensor<6xf32>, %v: tensor<f32>, %n: {amount}) -> tensor<8xf32> {{
  %0 = stablehlo.dynamic_pad %x, %v, %n, %n, %n : {types}
  return %0 : tensor<8xf32>
}}"""
    with pytest.raises(sw.UnsupportedError, match=r"stablehlo.dynamic_pad: .* \(at program text:2\)"):
        sw.parse(text).apply("legalize")


def test_each_refusal_is_of_an_op_or_names_a_condition() -> None:
    names = [row[0] for row in _core.ir.refusals()]
    assert len(set(names)) == len(names)
    known = {op.name for op in _core.ir.all_ops()}
    for name, reason, way_out, is_read in _core.ir.refusals():
        assert reason
        assert way_out
        op = name.partition(" ")[0]
        assert is_read == (op not in known and not op.startswith("@")), name
        assert name not in known or not next(op for op in _core.ir.all_ops() if op.name == name).runnable


def test_the_cases_of_composed_ops_are_those_of_the_registry() -> None:
    composed = {op.name for op in _core.ir.all_ops() if op.composed}
    assert composed - OF_FUNCTIONS - OF_OTHERS_WITHOUT_KERNEL == {case.name for case in COMPOSED}


# ---- texts ----------------------------------------------------------------------------------------------------------

MESH = _core.mesh.Mesh("mesh", [("x", 4)])


def results(text: str, *arrays: Any) -> list[Any]:
    once, faithful = execute(_core.passes.compile(_core.ir.parse(text), MESH), arrays)
    assert all(same_bits(a, b) for a, b in zip(once, faithful))
    return once


NESTED = """
sdy.mesh @mesh = <["x"=4]>
func.func public @main(%x: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<6xf32>, tensor<6xf32>) {
  %0:2 = stablehlo.composite "my.pair" %x {composite_attributes = {n = 1 : i32}, decomposition = @pair,
    version = 1 : i32} : (tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<6xf32>, tensor<6xf32>
}
func.func private @pair(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = stablehlo.composite "my.twice" %x {decomposition = @twice} : (tensor<6xf32>) -> tensor<6xf32>
  %1 = func.call @twice(%0) : (tensor<6xf32>) -> tensor<6xf32>
  return %0, %1 : tensor<6xf32>, tensor<6xf32>
}
func.func private @twice(%x: tensor<6xf32>) -> tensor<6xf32> {
  %0 = stablehlo.add %x, %x : tensor<6xf32>
  return %0 : tensor<6xf32>
}
"""


def test_composites_are_inlined() -> None:
    x = np.arange(6, dtype=np.float32)
    assert [r.tolist() for r in results(NESTED, x)] == [(2 * x).tolist(), (4 * x).tolist()]
    compiled = _core.passes.run_passes(_core.ir.parse(NESTED), ["inline_calls"]).text()
    assert "composite" not in compiled
    assert "func.func private" not in compiled


def test_propagation_alone_keeps_composites_and_dynamic_ops() -> None:
    assert 'stablehlo.composite "my.pair"' in sw.parse(NESTED).propagate().as_text()
    dynamic = """func.func public @main(%x: tensor<6xf32>) -> tensor<2x3xf32> {
      %s = stablehlo.constant dense<[2, 3]> : tensor<2xi32>
      %0 = stablehlo.dynamic_reshape %x, %s : (tensor<6xf32>, tensor<2xi32>) -> tensor<2x3xf32>
      return %0 : tensor<2x3xf32>
    }"""
    assert "dynamic_reshape" in sw.parse(dynamic).propagate().as_text()
    assert "stablehlo.reshape" in _core.passes.run_passes(_core.ir.parse(dynamic), ["simplify"]).text()
    x = np.arange(6, dtype=np.float32)
    assert results(dynamic, x)[0].tolist() == x.reshape(2, 3).tolist()


MAPPED = """
sdy.mesh @mesh = <["x"=4]>
func.func public @main(%x: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %s: tensor<f32>)
    -> tensor<6xi1> {
  %0 = "stablehlo.map"(%x) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>):
    %c = chlo.constant dense<2.0> : tensor<f32>
    %1 = stablehlo.multiply %a, %s : tensor<f32>
    %2 = chlo.broadcast_divide %1, %c : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %3 = chlo.is_pos_inf %2 : tensor<f32> -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  }) : (tensor<6xf32>) -> tensor<6xi1>
  return %0 : tensor<6xi1>
}
"""


def test_a_map_may_hold_composed_ops_and_capture_scalars() -> None:
    x = np.array([1, 0, -1, 3e38, 1e30, np.inf], np.float32)
    with np.errstate(all="ignore"):
        assert results(MAPPED, x, np.asarray(10, np.float32))[0].tolist() == (x * np.float32(10) / 2 == np.inf).tolist()


def test_the_propagated_program_shows_what_was_written() -> None:
    module = _core.ir.parse(MAPPED)
    assert "stablehlo.map" in _core.passes.run_passes(module, ["propagate"]).text()
    legal = _core.passes.run_passes(module, ["propagate", "legalize"]).text()
    assert not re.search(r"stablehlo\.map|chlo\.", legal)
    for line in legal.splitlines():
        if re.search(r"= stablehlo\.(multiply|divide|compare)", line):
            assert '[{"x"}]' in line


def test_unpartitioned_programs_run_composed_ops() -> None:
    trace = _core.ir.Trace("tan")
    x = trace.argument((3,), "float32")
    module = trace.finish([trace.emit("chlo.conj", [trace.emit("chlo.tan", [x])[0]])[0]])
    array = np.array([0.5, 1, 2], np.float32)
    (got,) = _core.runtime.run_unpartitioned(module, [array])
    np.testing.assert_allclose(got, np.tan(array), rtol=1e-6)


# ---- errors ---------------------------------------------------------------------------------------------------------


def function(body: str, arguments: str = "%x: tensor<6xf32>", result: str = "tensor<6xf32>") -> str:
    located = f'{body} loc("model.py":7:3)'
    return f"func.func public @main({arguments}) -> {result} {{\n{located}\n  return %0 : {result}\n}}\n"


CONVOLUTION = (
    '  %0 = "stablehlo.dynamic_conv"(%x, %w, %p) <{dimension_numbers = '
    "#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64}> "
    ": (tensor<1x6x1xf32>, tensor<1x1x1xf32>, tensor<1x2xi64>) -> tensor<1x6x1xf32>"
)
MISTAKES = [
    (
        function('  %0 = stablehlo.composite "my.op" %x {decomposition = @f} : (tensor<6xf32>) -> tensor<6xf32>'),
        errors.ShapeError,
        "stablehlo.composite: the function called must be one of the module, got @f; define it (at model.py:7)",
    ),
    (
        function('  %0 = stablehlo.composite "my.op" %x {decomposition = @main} : (tensor<6xf32>) -> tensor<6xf32>'),
        errors.ShardingError,
        "func.call: a function must not call itself, got @main; use stablehlo.while to repeat something "
        "(at model.py:7)",
    ),
    (
        function(
            "  %c = stablehlo.constant dense<0> : tensor<1xi32>\n"
            "  %v = stablehlo.constant dense<0.0> : tensor<f32>\n"
            "  %0 = stablehlo.dynamic_pad %x, %v, %n, %c, %c : "
            "(tensor<6xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<8xf32>",
            "%x: tensor<6xf32>, %n: tensor<1xi32>",
            "tensor<8xf32>",
        ),
        errors.UnsupportedError,
        "stablehlo.dynamic_pad: the amounts must be constants to run it, got values that the program computes; "
        "use constants (at model.py:7)",
    ),
    (
        function(
            "  %l = stablehlo.constant dense<4> : tensor<1xi32>\n"
            "  %s = stablehlo.constant dense<2> : tensor<1xi32>\n"
            "  %0 = stablehlo.real_dynamic_slice %x, %s, %l, %s : "
            "(tensor<6xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xf32>",
            result="tensor<3xf32>",
        ),
        errors.ShapeError,
        "stablehlo.real_dynamic_slice: the result must have type tensor<1xf32> for these constants, "
        "got tensor<3xf32>; correct the declared type (at model.py:7)",
    ),
    (
        function(
            '  %0 = "stablehlo.map"(%x) <{dimensions = array<i64: 0>}> ({\n  ^bb0(%a: tensor<f32>):\n'
            "    %1 = stablehlo.optimization_barrier %a : tensor<f32>\n    stablehlo.return %1 : tensor<f32>\n"
            "  }) : (tensor<6xf32>) -> tensor<6xf32>"
        ),
        errors.UnsupportedError,
        "stablehlo.map: its region must hold elementwise ops and constants, got stablehlo.optimization_barrier; "
        "write it with other ops (at model.py:7)",
    ),
    (
        function(
            CONVOLUTION,
            "%x: tensor<1x6x1xf32>, %w: tensor<1x1x1xf32>, %p: tensor<1x2xi64>",
            "tensor<1x6x1xf32>",
        ),
        errors.UnsupportedError,
        "stablehlo.dynamic_conv: the amounts must be constants to run it, got values that the program computes; "
        "use constants (at model.py:7)",
    ),
    (
        function(
            "  %n = stablehlo.constant dense<4> : tensor<i32>\n"
            "  %0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<6xf32>, tensor<i32>) -> tensor<6xf32>"
        ),
        errors.UnsupportedError,
        "stablehlo.set_dimension_size: the size must be that of the type, tensor<6xf32>, to run it, got 4; "
        "use stablehlo.slice, or a mask (at model.py:7)",
    ),
    (
        function(
            "  %0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<6xf32>, tensor<i32>) -> tensor<6xf32>",
            "%x: tensor<6xf32>, %n: tensor<i32>",
        ),
        errors.UnsupportedError,
        "stablehlo.set_dimension_size: the size must be that of the type, tensor<6xf32>, to run it, "
        "got a value that the program computes; use stablehlo.slice, or a mask (at model.py:7)",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "message"), MISTAKES)
def test_what_cannot_be_decomposed_is_an_error(text: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        _core.passes.compile(_core.ir.parse(text), MESH)
    assert str(caught.value) == message


def test_passes_behind_legalize_name_it() -> None:
    text = function("  %0 = chlo.conj %x : tensor<6xf32> -> tensor<6xf32>")
    with pytest.raises(errors.UnsupportedError) as caught:
        _core.passes.run_passes(_core.ir.parse(text), ["propagate", "assign"])
    assert str(caught.value) == (
        "chlo.conj: can be read, propagated and printed, but not run; run legalize first (at model.py:7)"
    )
