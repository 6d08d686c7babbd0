# SPDX-License-Identifier: Apache-2.0
"""Custom calls that JAX prints: those that are identities to shardwise, and callbacks to Python, which are refused."""

from __future__ import annotations

import numpy as np
import pytest

import shardwise as sw
from tests.support.partitioned import same_bits

IDENTITIES = ["annotate_device_placement", "InspectSharding", "LayoutConstraint", "MoveToDevice", "MoveToHost"]
X = np.arange(24, dtype=np.float32).reshape(6, 4) - 7.5
TEXT = """sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<6x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{"y"}}]>}}) -> tensor<6x4xf32> {{
  %0 = stablehlo.custom_call @{target}(%a) {attributes} : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %1 = stablehlo.multiply %0, %0 : tensor<6x4xf32>
  return %1 : tensor<6x4xf32>
}}"""
ATTRIBUTES = """{has_side_effect = true, operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>],
    mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}}"""
WITHOUT_RESULT = """sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<6x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<6x4xf32> {
  stablehlo.custom_call @InspectSharding(%a) {has_side_effect = true} : (tensor<6x4xf32>) -> ()
  %1 = stablehlo.multiply %a, %a : tensor<6x4xf32>
  return %1 : tensor<6x4xf32>
}"""


def squares(text: str) -> None:
    program = sw.parse(text).compile()
    assert not program.collectives()
    for mode in ({}, {"faithful": True, "poison": True}):
        assert same_bits(np.asarray(program.run(X, **mode)), X * X)


@pytest.mark.parametrize("target", IDENTITIES)
def test_a_call_that_advises_other_compilers_is_the_identity(target: str) -> None:
    squares(TEXT.format(target=target, attributes=ATTRIBUTES))


def test_a_call_without_a_result_moves_nothing() -> None:
    squares(WITHOUT_RESULT)


def test_an_annotation_without_a_sharding_is_the_identity() -> None:
    for attributes in ("", '{backend_config = ""}'):
        text = TEXT.format(target="Sharding", attributes=attributes)
        program = sw.parse(text).compile()
        assert same_bits(np.asarray(program.run(X)), X * X)


@pytest.mark.parametrize("target", IDENTITIES)
def test_identities_have_gradients_and_batches(target: str) -> None:
    def cubed(x: sw.ArrayLike) -> sw.ArrayLike:
        y = sw.custom_call(target, sw.ShapeDtypeStruct(x.shape, x.dtype), x)
        return np.sum(y * y * x)

    mesh = sw.Mesh({"x": 2})
    assert np.allclose(np.asarray(sw.jit(sw.grad(cubed), mesh=mesh)(X)), 3 * X * X)
    assert np.allclose(np.asarray(sw.jit(sw.vmap(cubed), mesh=mesh)(X)), np.sum(X * X * X, axis=1))


def test_an_identity_has_the_type_of_its_operand() -> None:
    text = TEXT.format(target="LayoutConstraint", attributes="").replace(
        "(tensor<6x4xf32>) -> tensor<6x4xf32>\n  %1", "(tensor<6x4xf32>) -> tensor<4x6xf32>\n  %1"
    )
    text = text.replace("%1 = stablehlo.multiply %0, %0", "%1 = stablehlo.multiply %a, %a")
    with pytest.raises(sw.ShapeError) as refused:
        sw.parse(text).compile()
    assert str(refused.value) == (
        "custom_call @LayoutConstraint: it must have one operand, and no result or one of the same type, got "
        "tensor<6x4xf32> -> tensor<4x6xf32> (at program text:3)"
    )


# ---- callbacks -------------------------------------------------------------------------------------------------------

MAXIMAL = "sdy.mesh @maximal_mesh_0 = <[], device_ids=[0]>\n"
ON_ONE = "sdy.sharding = #sdy.sharding_per_value<[{}]>".format
PLACE = "<@maximal_mesh_0, []>"
CALLBACKS = {
    "pure": f"""func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {{
  %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%a) {{backend_config = "",
    mhlo.backend_config = {{index = 0 : ui64}}, {ON_ONE(PLACE)}}} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}}""",
    "ordered": f"""func.func @main(%t: !stablehlo.token, %a: tensor<8xf32>) -> (!stablehlo.token, tensor<8xf32>) {{
  %0:2 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%t, %a) {{has_side_effect = true,
    {ON_ONE(PLACE + ", " + PLACE)}}} : (!stablehlo.token, tensor<8xf32>) -> (!stablehlo.token, tensor<8xf32>)
  return %0#0, %0#1 : !stablehlo.token, tensor<8xf32>
}}""",
    "print": f"""func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {{
  stablehlo.custom_call @xla_ffi_python_cpu_callback(%a) {{has_side_effect = true,
    {ON_ONE(PLACE)}}} : (tensor<8xf32>) -> ()
  return %a : tensor<8xf32>
}}""",
    "called": f"""func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {{
  %0 = func.call @f(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}}
func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> {{
  %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%a) {{{ON_ONE(PLACE)}}} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}}""",
}


@pytest.mark.parametrize("name", CALLBACKS)
def test_a_callback_is_refused_by_name_and_line(name: str) -> None:
    text = MAXIMAL + CALLBACKS[name]
    line = next(i for i, row in enumerate(text.splitlines(), 1) if "@xla_ffi" in row)
    for call in (sw.Module.compile, lambda module: module.run(X[0])):
        with pytest.raises(sw.UnsupportedError) as refused:
            call(sw.parse(text))
        assert str(refused.value) == (
            "custom_call @xla_ffi_python_cpu_callback: can be read, propagated and printed, but not run, because it "
            "calls a Python function, which is not in the text; remove the callback, or use sw.from_jax "
            f"(at program text:{line})"
        )


def test_another_value_on_one_device_is_an_error_of_its_sharding() -> None:
    text = MAXIMAL + CALLBACKS["pure"].replace(
        "custom_call @xla_ffi_python_cpu_callback", "custom_call @LayoutConstraint"
    )
    with pytest.raises(
        sw.ShardingError, match=r"a value cannot be placed on a single device, .* \(at program text:3\)"
    ):
        sw.parse(text).compile()
