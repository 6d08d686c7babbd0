# SPDX-License-Identifier: Apache-2.0
"""Read-only views of a program: ops, values, regions, functions, attributes, types and placements."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P, _core

TEXT = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %t = stablehlo.tanh %a : tensor<4x6xf32> loc("model.py":7:3)
  %r = stablehlo.reduce(%t init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func private @other(%b: tensor<i1>) -> tensor<i1> {
  return %b : tensor<i1>
}
"""


def parsed(text: str = TEXT) -> _core.ir.Module:
    return _core.ir.parse(text, "program.mlir", name_values=True)


def op_named(module: _core.ir.Module, name: str) -> _core.ir.Op:
    (op,) = [op for op in module.ops if op.name == name]
    return op


def test_ops_are_in_the_order_of_the_text_with_those_of_regions() -> None:
    names = [op.name.removeprefix("stablehlo.") for op in parsed().ops]
    assert names == ["constant", "tanh", "reduce", "add"]


def test_an_op_has_operands_results_and_regions() -> None:
    module = parsed()
    reduce, tanh = op_named(module, "stablehlo.reduce"), op_named(module, "stablehlo.tanh")
    assert reduce.operands == [*tanh.results, *op_named(module, "stablehlo.constant").results]
    assert reduce.operands[0].defining_op == tanh
    (region,) = reduce.regions
    assert [op.name for op in region.ops] == ["stablehlo.add"]
    assert region.ops[0].operands == region.arguments
    assert region.results == region.ops[0].results
    assert region.arguments[0].defining_op is None
    assert (reduce.definition.elementwise, tanh.definition.elementwise) == (False, True)
    assert repr(tanh) == "<op stablehlo.tanh>"


def test_a_value_has_a_name_a_type_a_sharding_and_a_location() -> None:
    module = parsed()
    (a,) = module.main.body.arguments
    (t,) = op_named(module, "stablehlo.tanh").results
    assert (a.name, t.name) == ("@main %a", "@main %t")
    assert (a.type.shape, a.type.dtype, repr(a.type)) == ((4, 6), "float32", "tensor<4x6xf32>")
    assert str(a.sharding) == '<@mesh, [{"x"}, {}]>'
    assert t.sharding is None
    assert (t.location.file, t.location.line, repr(t.location)) == ("model.py", 7, "model.py:7")
    assert repr(t) == "<value of tensor<4x6xf32>>"


def test_functions() -> None:
    module = parsed()
    assert [(f.name, f.is_public) for f in module.functions] == [("main", True), ("other", False)]
    assert repr(module.main) == "<function @main>"
    assert module.main.result_shardings == [None]
    assert (module.stage, module.argument_types, module.result_types) == (
        "global", [module.main.body.arguments[0].type], [module.main.body.results[0].type],
    )  # fmt: skip


def test_views_are_equal_by_what_they_show() -> None:
    module, other = parsed(), parsed()
    assert module.ops == module.ops
    assert hash(module.ops[0]) == hash(module.ops[0])
    assert module.ops[0] != other.ops[0]
    assert module.ops[0] != module.ops[1]
    assert module.ops[0] != 1
    assert {value: i for i, value in enumerate(module.ops[2].operands)}[module.ops[1].results[0]] == 0


def test_a_view_keeps_its_program_alive() -> None:
    (op,) = [op for op in parsed().ops if op.name == "stablehlo.tanh"]
    gc.collect()
    assert op.operands[0].name == "@main %a"


def test_views_are_read_only() -> None:
    module = parsed()
    for view in (
        module,
        module.main,
        module.main.body,
        module.ops[0],
        module.ops[1].operands[0],
        module.ops[1].location,
    ):
        for name in [name for name in dir(view) if not name.startswith("_") and not callable(getattr(view, name))]:
            with pytest.raises(AttributeError):
                setattr(view, name, None)
    module.ops[0].operands.clear()
    module.ops[2].attributes.clear()
    assert len(module.ops[2].operands) == 2
    assert module.ops[2].attributes["dimensions"] == (1,)


def attribute(text: str) -> Any:
    """The attribute ``value`` of a custom call."""
    program = f"""
    sdy.mesh @mesh = <["x"=4]>
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{
      %0 = "stablehlo.custom_call"(%x) {{call_target_name = "f", value = {text}}} : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }}
    """
    (op,) = parsed(program).ops
    assert op.attributes["call_target_name"] == "f"
    return op.attributes["value"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True), ("3 : i64", 3), ("1.5 : f32", 1.5), ('"text"', "text"), ("unit", None),
        ("array<i64: 1, 2>", (1, 2)), ("array<i1: true, false>", (True, False)), ("[1, true]", (1, True)),
        ("{a = 1 : i64, b = [2]}", {"a": 1, "b": (2,)}),
    ],
)  # fmt: skip
def test_attributes_are_python_values(text: str, value: Any) -> None:
    found = attribute(text)
    assert found == value
    assert type(found) is type(value)


def test_attributes_of_other_kinds_have_a_class_of_the_extension() -> None:
    kind = attribute("#stablehlo<comparison_direction LT>")
    assert (kind.dialect, kind.mnemonic, kind.value) == ("stablehlo", "comparison_direction", "LT")
    assert kind == _core.ir.EnumValue("stablehlo", "comparison_direction", "LT")
    assert repr(kind) == "#stablehlo<comparison_direction LT>"
    assert attribute("@mesh").name == "mesh"
    assert attribute("tensor<2xi32>").dtype == "int32"
    assert str(attribute('#sdy.sharding<@mesh, [{"x"}]>')) == '<@mesh, [{"x"}]>'


def test_the_elements_of_a_constant_are_a_read_only_array() -> None:
    elements = op_named(parsed(), "stablehlo.constant").attributes["value"]
    assert isinstance(elements, np.ndarray)
    assert elements.dtype == np.float32
    assert elements == 0
    assert not elements.flags.writeable


def test_values_of_a_resharded_program_have_placements() -> None:
    mesh = sw.Mesh({"x": 2, "y": 2})
    program = sw.jit(lambda x: np.tanh(x).sum(0), mesh=mesh, in_shardings=P("x")).lower(np.ones((5, 4))).compile()
    stages: dict[str, _core.ir.Module] = program._compiled.stages
    assert all(value.placement is None for op in stages["propagated"].ops for value in op.results)
    (x,) = stages["resharded"].main.body.arguments
    assert x.placement is not None
    assert x.placement.dims == [([("x", 1, 2)], 3), ([], 4)]
    assert (x.placement.local_shape, x.placement.reducer) == ((3, 4), "none")
    assert repr(x.placement) == '#shardwise.placement<@mesh, [{"x"}: 3, {}: 4]>'
    (reduce,) = [op for op in stages["resharded"].ops if op.name == "stablehlo.reduce"]
    partial = reduce.results[0].placement
    assert partial is not None
    assert (partial.unreduced, partial.reducer) == ([("x", 1, 2)], "sum")
    assert stages["local"].main.body.arguments[0].placement == x.placement


def test_a_call_of_numpy_has_one_number() -> None:
    def f(x: Any) -> Any:
        return np.mean(x, axis=0)

    traced = sw.jit(f, mesh=sw.Mesh({"x": 2})).trace(np.ones((4, 2)))
    calls = {op.call for op in traced._core.ops if op.name != "stablehlo.add"}
    assert len(calls) == 1
    assert 0 not in calls
