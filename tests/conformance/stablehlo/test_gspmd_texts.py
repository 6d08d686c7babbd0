# SPDX-License-Identifier: Apache-2.0
"""Shardings of GSPMD in texts: mhlo.sharding of arguments, results and ops, and custom_call @Sharding."""

from __future__ import annotations

import numpy as np
import pytest

import shardwise as sw

TEXT = """module @jit_f attributes {{mhlo.num_partitions = 8 : i32}} {{
  func.func public @main(%arg0: tensor<8x4xf32> {{mhlo.sharding = "{argument}"}})
      -> (tensor<8x4xf32> {{mhlo.sharding = "{result}"}}) {{
    %0 = stablehlo.custom_call @Sharding(%arg0) {{backend_config = "{config}", mhlo.sharding = "{inner}"}}
      : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = stablehlo.add %0, %0 : tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }}
}}
"""


def text(argument: str, result: str = "{replicated}", inner: str = "{replicated}", config: str = "") -> str:
    return TEXT.format(argument=argument, result=result, inner=inner, config=config)


@pytest.mark.parametrize(
    ("sharding", "axes", "expected"),
    [
        ("{replicated}", "", "[{}, {}]"),
        ("{devices=[8,1]<=[8]}", '"_axis_0"=8', '[{"_axis_0"}, {}]'),
        ("{devices=[4,2]<=[8]}", '"_axis_0"=4, "_axis_1"=2', '[{"_axis_0"}, {"_axis_1"}]'),
        ("{devices=[2,4]<=[4,2]T(1,0)}", '"_axis_0"=4, "_axis_1"=2', '[{"_axis_1"}, {"_axis_0"}]'),
        ("{devices=[4,1,2]<=[8] last_tile_dim_replicate}", '"_axis_0"=4, "_axis_1"=2', '[{"_axis_0"}, {}]'),
        ("{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}", '"_axis_0"=4, "_axis_1"=2', '[{}, {"_axis_1"}]'),
        ("{devices=[1,2,2,2]<=[8] last_tile_dims={replicated, replicated}}",
         '"_axis_0"=2, "_axis_1"=2, "_axis_2"=2', '[{}, {"_axis_0"}]'),
        ("{devices=[2,2,2]<=[2,2,2]T(2,0,1) last_tile_dim_replicate}",
         '"_axis_0"=2, "_axis_1"=2, "_axis_2"=2', '[{"_axis_2"}, {"_axis_0"}]'),
        ("{devices=[4,2]0,2,4,6,1,3,5,7}", '"_axis_0"=2, "_axis_1"=2, "_axis_2"=2',
         '[{"_axis_2", "_axis_0"}, {"_axis_1"}]'),
    ],
)  # fmt: skip
def test_tiles_become_axes(sharding: str, axes: str, expected: str) -> None:
    printed = str(sw.parse(text(sharding)))
    assert f"%arg0: tensor<8x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, {expected}>}}" in printed
    if axes:
        assert f"sdy.mesh @mesh = <[{axes}]>" in printed
    assert "mhlo.sharding" not in printed
    assert str(sw.parse(printed)) == printed


@pytest.mark.parametrize("form", ["<=[4,2]T(1,0)", "<=[8]", "<=[2,2,2]T(2,0,1)", "0,2,4,6,1,3,5,7"])
def test_a_device_holds_the_tile_at_its_place_in_the_list(form: str) -> None:
    sharding = "{devices=[2,4]" + form + "}"
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    shards = sw.parse(text(sharding, sharding, sharding)).run(x).addressable_shards
    assert len(shards) == 8
    for shard in shards:
        row, column = np.argwhere(devices_of(form) == shard.device)[0]
        np.testing.assert_array_equal(np.asarray(shard.data), 2 * x[4 * row : 4 * row + 4, column : column + 1])


def test_one_mesh_for_all_shardings_of_a_text() -> None:
    over_four, over_two = (f"{{devices=[{tiles}]<=[8] last_tile_dim_replicate}}" for tiles in ("4,1,2", "2,1,4"))
    printed = str(sw.parse(text(over_four, over_two)))
    assert 'sdy.mesh @mesh = <["_axis_0"=2, "_axis_1"=2, "_axis_2"=2]>' in printed
    assert '#sdy.sharding<@mesh, [{"_axis_0", "_axis_1"}, {}]>' in printed
    assert '#sdy.sharding<@mesh, [{"_axis_0"}, {}]>' in printed


def test_a_sharding_call_is_a_constraint() -> None:
    printed = str(sw.parse(text("{replicated}", inner="{devices=[4,2]<=[8]}", config="unspecified_dims=[1]")))
    assert 'sdy.sharding_constraint %arg0 <@mesh, [{"_axis_0"}, {"_axis_1", ?}]>' in printed
    program = sw.parse(text("{devices=[8,1]<=[8]}", inner="{devices=[4,2]<=[8]}")).compile()
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    for mode in ({}, {"faithful": True, "poison": True}):
        np.testing.assert_array_equal(np.asarray(program.run(x, **mode)), 2 * x)
    assert program.collectives()


def test_the_sharding_of_an_op_is_that_of_its_results() -> None:
    printed = str(
        sw.parse("""func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.negate %a {mhlo.sharding = "{devices=[4]<=[4]}"} : tensor<8xf32>
      return %0 : tensor<8xf32>
    }""")
    )
    assert 'sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"_axis_0"}]>]>' in printed


def test_a_maximal_sharding_has_a_mesh_of_its_own() -> None:
    printed = str(sw.parse(text("{maximal device=3}")))
    assert "sdy.mesh @maximal_mesh_3 = <[], device_ids=[3]>" in printed
    assert "#sdy.sharding<@maximal_mesh_3, []>" in printed


@pytest.mark.parametrize(
    ("sharding", "requirement"),
    [
        ("{devices=[2]<=[2]}", "a sharding must have 2 tiled dims"),
        ("{devices=[3,2]<=[4]}", "the devices must be as many as the tiles"),
        ("{devices=[2,2]<=[2,2]T(0,0)}", "the order of dims must be a permutation of them"),
        ("{devices=[2,2]0,3,1,2}", "the listed devices must be a transposed grid of 0, 1, 2, …"),
        (
            "{devices=[2,2]<=[4] shard_as 1}",
            "a tiling must be followed by last_tile_dim_replicate, last_tile_dims or nothing",
        ),
        ("{manual}", "a manual sharding must be that of a call of @Sharding in a manual region"),
        (
            "{devices=[1,1,2]<=[2] last_tile_dims={manual}}",
            "a manual sharding must be that of a call of @Sharding in a manual region",
        ),
        ("{devices=[1,1,2]<=[2] last_tile_dims={other}}", "the last tile dims must be replicated or manual"),
        ("{devices=[99999999999,99999999999]<=[1]}", "the tiles must be on 1 to 2^40 devices"),
        ("{sharded}", "a sharding must be replicated, maximal or tiled over devices"),
        ("{replicated", "a sharding must have '}' before ''"),
    ],
)
def test_other_shardings_are_errors(sharding: str, requirement: str) -> None:
    with pytest.raises(sw.ParseError) as refused:
        sw.parse(text(sharding), "f.mlir")
    message, _, place = str(refused.value).rpartition(" (at ")
    fix = "lower the program with jax_use_shardy_partitioner=True"
    assert message == f'2:66: mhlo.sharding: {requirement}, got "{sharding}"; {fix}'
    assert "test_gspmd_texts.py:" in place


# As JAX prints jax.shard_map without Shardy; a region over some axes has shardings of the second form.
MANUAL = """module @jit_f {{
  func.func public @main(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {{
    %0 = stablehlo.custom_call @Sharding(%arg0) {{mhlo.sharding = "{{devices=[4,1,2]<=[8] last_tile_dim_replicate}}"{open}}} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {{mhlo.sharding = "{manual}"}} : (tensor<8x8xf32>) -> tensor<2x8xf32>
    %2 = stablehlo.sine %1 : tensor<2x8xf32>
    %3 = stablehlo.custom_call @Sharding(%2) {{mhlo.sharding = "{inside}"}} : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {{mhlo.sharding = "{{devices=[4,1,2]<=[8] last_tile_dim_replicate}}"{open}}} : (tensor<2x8xf32>) -> tensor<8x8xf32>
    return %4 : tensor<8x8xf32>
  }}
}}
"""  # noqa: E501
ALL = {"manual": "{manual}", "inside": "{manual}", "open": ""}
SOME = {
    "manual": "{devices=[1,1,4,2]<=[8] last_tile_dims={manual, replicated}}",
    "inside": "{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dims={manual}}",
    "open": ', backend_config = "unspecified_dims=[0,1]"',
}
READ_ALL = """sdy.manual_computation(%0) in_shardings=[<@mesh, [{"_axis_0"}, {}]>] out_shardings=[<@mesh, [{"_axis_0"}, {}]>] manual_axes={"_axis_0", "_axis_1"} (%arg1: tensor<2x8xf32>) {
      %2 = stablehlo.sine %arg1 : tensor<2x8xf32>
      %3 = sdy.sharding_constraint %2 <@mesh, [{?}, {?}]> : tensor<2x8xf32>
"""  # noqa: E501
READ_SOME = """sdy.manual_computation(%0) in_shardings=[<@mesh, [{"_axis_0", ?}, {?}]>] out_shardings=[<@mesh, [{"_axis_0", ?}, {?}]>] manual_axes={"_axis_0"} (%arg1: tensor<2x8xf32>) {
      %2 = stablehlo.sine %arg1 : tensor<2x8xf32>
      %3 = sdy.sharding_constraint %2 <@mesh, [{}, {"_axis_1"}]> : tensor<2x8xf32>
"""  # noqa: E501


@pytest.mark.parametrize(("form", "wanted"), [(ALL, READ_ALL), (SOME, READ_SOME)], ids=["all axes", "some axes"])
def test_calls_around_a_manual_region_are_read_as_one(form: dict[str, str], wanted: str) -> None:
    module = sw.parse(MANUAL.format(**form), "f.mlir")
    assert wanted in str(module)
    assert str(sw.parse(str(module))) == str(module)
    module.propagate()
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    np.testing.assert_allclose(module.compile()(x), np.sin(x), rtol=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "stablehlo.sine %1",
            "stablehlo.add %1, %c",
            "a value of a manual region must enter it by @SPMDFullToShardShape",
        ),
        ("@SPMDFullToShardShape(%0)", "@SPMDFullToShardShape(%arg0)", "the operand must have a sharding, got none"),
        ("tensor<2x8xf32>", "tensor<4x8xf32>", "the region must see operand 0 as tensor<2x8xf32>, got tensor<4x8xf32>"),
        ('"{manual}"', '"{replicated}"', "the calls around a manual region must have manual axes"),
    ],
)
def test_calls_that_are_around_no_region_are_errors(old: str, new: str, expected: str) -> None:
    text = MANUAL.format(**ALL).replace("(%arg0: tensor<8x8xf32>)", "(%arg0: tensor<8x8xf32>, %c: tensor<2x8xf32>)")
    with pytest.raises(sw.Error) as refused:
        sw.parse(text.replace(old, new), "f.mlir")
    assert expected in str(refused.value), str(refused.value)
    assert str(refused.value).startswith(("4:", "5:"))


def devices_of(form: str) -> np.ndarray:
    if not form.startswith("<="):
        return np.array([int(d) for d in form.split(",")]).reshape(2, 4)
    sizes, _, order = form[3:].partition("]T(")
    dims = [int(d) for d in sizes.rstrip("]").split(",")]
    grid = np.arange(8).reshape(dims)
    return (grid.transpose([int(d) for d in order.rstrip(")").split(",")]) if order else grid).reshape(2, 4)
