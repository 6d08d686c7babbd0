# SPDX-License-Identifier: Apache-2.0
"""Programs with several meshes: inline ones, other device orders, one device, none; all compared with Shardy."""

from __future__ import annotations

import re

import pytest

import shardwise as sw
from tests.conformance.shardy.client import LEVELS, OracleError, ShardyOracle, differences, shardings_of
from tests.conformance.shardy.several_mesh_programs import random_program

MESHES = """
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  sdy.mesh @twin = <["x"=2, "y"=2]>
  sdy.mesh @turned = <["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>
  sdy.mesh @wide = <["x"=2, "y"=4]>
  sdy.mesh @single = <[], device_ids=[1]>
  sdy.mesh @empty = <[]>"""


def program(x: str = "", y: str = "", total: str = "", result: str = "") -> str:
    """The sum of two arguments, and its absolute value."""

    def said(sharding: str) -> str:
        return f" {{sdy.sharding = #sdy.sharding<{sharding}>}}" if sharding else ""

    of_sum = f" {{sdy.sharding = #sdy.sharding_per_value<[<{total}>]>}}" if total else ""
    return f"""module {{{MESHES}
  func.func @main(%arg0: tensor<8x8xf32>{said(x)}, %arg1: tensor<8x8xf32>{said(y)})
      -> (tensor<8x8xf32>{said(result)}) {{
    %0 = stablehlo.add %arg0, %arg1{of_sum} : tensor<8x8xf32>
    %1 = stablehlo.abs %0 : tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  }}
}}
"""


PROGRAMS = {
    "one mesh": program(x='@mesh, [{"x", ?}, {?}]', y='@mesh, [{?}, {"y", ?}]'),
    "axes differ": program(x='@mesh, [{"x", ?}, {?}]', y='@wide, [{?}, {"y", ?}]'),
    "order of devices differs": program(x='@mesh, [{"x", ?}, {?}]', y='@turned, [{?}, {"y", ?}]'),
    "equal meshes of two names": program(x='@mesh, [{"x", ?}, {?}]', y='@twin, [{?}, {"y", ?}]'),
    "equal meshes, the second is sharded": program(x="@twin, [{?}, {?}]", y='@mesh, [{?}, {"y", ?}]'),
    "one device": program(x='@mesh, [{"x", ?}, {?}]', y="@single, []"),
    "one device only": program(y="@single, []"),
    "one device behind": program(x='@mesh, [{"x", ?}, {?}]', result="@single, []"),
    "an empty mesh adopts": program(x='@mesh, [{"x", ?}, {?}]', y="@empty, [{?}, {?}]", result="@empty, [{?}, {?}]"),
    "a closed empty mesh stays": program(x='@mesh, [{"x", ?}, {?}]', y="@empty, [{}, {?}]"),
    "an empty mesh first": program(x="@empty, [{?}, {?}]", y='@wide, [{?}, {"y", ?}]'),
    "only empty meshes": program(x="@empty, [{?}, {?}]", y="@empty, [{}, {?}]"),
    "another mesh behind": program(x='@mesh, [{"x", ?}, {?}]', result='@wide, [{?}, {"y", ?}]'),
    "another mesh in the middle": program(x='@mesh, [{"x", ?}, {?}]', total='@wide, [{?}, {"y", ?}]'),
    "inline": program(x='mesh<["x"=2]>, [{"x", ?}, {?}]'),
    "inline twice": program(x='mesh<["x"=2]>, [{"x", ?}, {?}]', y='mesh<["x"=2]>, [{?}, {?}]'),
    "inline and equal symbol": program(x='mesh<["x"=2, "y"=2]>, [{"x", ?}, {?}]', y='@mesh, [{?}, {"y", ?}]'),
    "inline and another": program(x='mesh<["x"=2, "y"=8]>, [{"x", ?}, {?}]', y='@mesh, [{?}, {"y", ?}]'),
}


def ours(core: sw._core.ir.Module, shardy: ShardyOracle) -> dict[str, str | None]:
    """Read back by Shardy, so that both are printed alike."""
    return shardings_of(shardy.run(core.text()))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_propagation_agrees_with_shardy(name: str, level: str, shardy: ShardyOracle) -> None:
    # Shardy's module passes end the process when a mesh is inline.
    module, before = sw.parse(PROGRAMS[name]), ""
    if "inline" in name:
        module, before = module.apply("lift_inlined_meshes"), "sdy-lift-inlined-meshes,"
    core = sw._core.passes.run_passes(module._core, [LEVELS[level]])
    theirs = shardings_of(shardy.run(PROGRAMS[name], before + level))
    assert not differences(ours(core, shardy), theirs)


def with_axes(shardings: dict[str, str | None]) -> dict[str, str | None]:
    """A sharding without axes says what none says: we write it where a program has one mesh, Shardy does not."""
    return {
        name: text if text and re.search(r'\[.*"', text.partition(", ")[2]) else None
        for name, text in shardings.items()
    }


def test_random_programs_on_several_meshes_agree_with_shardy(shardy: ShardyOracle) -> None:
    compared = 0
    for seed in range(150):
        text = random_program(seed)
        try:
            theirs = shardings_of(shardy.run(text, "sdy-propagation-pipeline"))
        except OracleError:
            with pytest.raises(sw.ParseError):
                sw.parse(text)
            continue
        found = differences(with_axes(ours(sw.parse(text).apply("propagate")._core, shardy)), with_axes(theirs))
        assert not found, "\n".join([*found, text])
        compared += 1
    assert compared > 140


def import_step(text: str, ours_name: str, theirs_name: str, shardy: ShardyOracle) -> None:
    """Both texts after the step, meshes and all."""
    module = sw.parse(text).apply(ours_name)
    module.verify()
    here, there = shardy.parse(module.as_text()), shardy.parse(shardy.after(text, theirs_name))
    assert sorted(here.splitlines()) == sorted(there.splitlines())  # we print meshes first


INLINE = """module {
  sdy.mesh @grid = <["x"=2]>
  sdy.mesh @mesh_0 = <["y"=2]>
  sdy.mesh @again = <["x"=2]>
  sdy.mesh @single = <[], device_ids=[3]>
  func.func public @main(
      %arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=2]>, [{"x"}]>},
      %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=4]>, [{"x"}]>},
      %arg2: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=4, "z"=3]>, [{"x"}]>},
      %arg3: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<[], device_ids=[5]>, []>},
      %arg4: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<[]>, [{?}]>},
      %arg5: tensor<8xf32> {sdy.sharding = #sdy.sharding<@again, [{"x"}]>},
      %arg6: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>, [{"x"}]>})
      -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["r"=2]>, [{?}]>}) {
    %0 = stablehlo.add %arg0, %arg0
        {sdy.sharding = #sdy.sharding_per_value<[<mesh<[], device_ids=[3]>, []>]>} : tensor<8xf32>
    %1 = stablehlo.add %0, %0 {sdy.sharding = #sdy.sharding_per_value<[<mesh<["y"=2]>, [{}]>]>} : tensor<8xf32>
    %2 = sdy.sharding_constraint %1 <mesh<["q"=2]>, [{}]> : tensor<8xf32>
    %3 = stablehlo.abs %2 {sdy.sharding = #sdy.sharding_per_value<[<mesh<["later"=2]>, [{}]>]>} : tensor<8xf32>
    return %3 : tensor<8xf32>
  }
  sdy.mesh @behind = <["later"=2]>
}
"""
SIZE_ONE = """module {
  sdy.mesh @mesh = <["a"=1, "b"=4, "c"=1]>
  sdy.mesh @ones = <["a"=1, "b"=1]>
  sdy.mesh @turned = <["a"=1, "b"=4], device_ids=[3, 2, 1, 0]>
  sdy.mesh @single = <[], device_ids=[2]>
  func.func public @main(
      %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b", ?}p1, {"c"}p2]>},
      %arg1: tensor<8x8xf32> {sdy.sharding =
          #sdy.sharding<@mesh, [{"a", ?}p1, {?}], replicated={"c"}, unreduced={"b"}>},
      %arg2: tensor<8xf32> {sdy.sharding = #sdy.sharding<@ones, [{"a"}], unreduced={"b"}>},
      %arg3: tensor<8xf32> {sdy.sharding = #sdy.sharding<@turned, [{"a", "b"}]>},
      %arg4: tensor<8xf32> {sdy.sharding = #sdy.sharding<@single, []>},
      %arg5: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["a"=1, "b"=2]>, [{"a"}p3]>})
      -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c"}, {"a", ?}]>}) {
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{}, {"a", "b":(1)2}]> : tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}
"""


def test_inlined_meshes_become_symbols_as_in_shardy(shardy: ShardyOracle) -> None:
    import_step(INLINE, "lift_inlined_meshes", "sdy-lift-inlined-meshes", shardy)


def test_groups_of_devices_name_the_mesh_that_stays(shardy: ShardyOracle) -> None:
    """JAX 0.12 prints a second, equal mesh for them."""
    text = """module {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  sdy.mesh @mesh_0 = <["x"=4, "y"=2]>
  func.func public @main(%arg0: tensor<8x4xf32>) -> tensor<2x4xf32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{}, {"y"}]>]
        manual_axes={"x", "y"} (%arg1: tensor<2x2xf32>) {
      %1 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
          replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh_0, axes = [#stablehlo.axis_ref<name = "x">]>,
          use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
        %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
        stablehlo.return %2 : tensor<f32>
      }) : (tensor<2x2xf32>) -> tensor<2x2xf32>
      sdy.return %1 : tensor<2x2xf32>
    } : (tensor<8x4xf32>) -> tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
}
"""
    lifted = sw.parse(text).apply("lift_inlined_meshes").as_text()
    assert re.findall(r"mesh = (@\w+)", lifted) == ["@mesh"]
    assert "@mesh_0" not in lifted
    shardy.parse(lifted)  # jaxlib refuses a mesh that is not declared


def test_axes_of_size_one_go_as_in_shardy(shardy: ShardyOracle) -> None:
    import_step(SIZE_ONE, "remove_size_one_axes", "sdy-remove-size-one-axes", shardy)


def test_collectives_lose_axes_of_size_one(shardy: ShardyOracle) -> None:
    """Shardy drops them from the shardings alone, and then refuses what is left."""
    text = """module {
  sdy.mesh @mesh = <["a"=1, "b"=4]>
  func.func public @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", "a"}, {}]>}) {
    %0 = sdy.all_to_all [{"a"}: 0->1] %arg0 out_sharding=<@mesh, [{"b"}, {"a"}]> : tensor<8x8xf32>
    %1 = sdy.all_gather [{"b"}, {"a"}] %0 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
    return
  }
}
"""
    with pytest.raises(OracleError, match="can't apply all-to-all axis"):
        shardy.run(text, "sdy-remove-size-one-axes")
    after = sw.parse(text).apply("remove_size_one_axes")
    after.verify()
    assert 'sdy.reshard %arg0 <@mesh, [{"b"}, {}]>' in str(after)
    assert 'sdy.all_gather [{"b"}, {}] %0 out_sharding=<@mesh, [{}, {}]>' in str(after)
    shardy.parse(str(after))


@pytest.mark.parametrize("text", [INLINE, SIZE_ONE, *PROGRAMS.values()])
def test_texts_are_printed_as_read(text: str, shardy: ShardyOracle) -> None:
    module = sw.parse(text)
    module.verify()
    printed = module.as_text()
    assert sw.parse(printed) == module
    assert sw.parse(printed).as_text() == printed
    assert sw.Module.from_json(module.to_json()) == module
    visible = ', sym_visibility = "public"'
    there, here = (shardy.parse(x).replace(visible, "") for x in (text, printed))
    assert sorted(there.splitlines()) == sorted(here.splitlines())  # meshes are printed first


@pytest.mark.parametrize("name", ["axes differ", "one device"])
def test_a_program_on_other_devices_is_propagated_and_not_run(name: str) -> None:
    module = sw.parse(PROGRAMS[name])
    propagated = str(module.propagate())
    assert '[{"x"}, {}]' in propagated
    with pytest.raises(sw.ShardingError, match=r"all shardings must be of meshes over the same|placed on a single"):
        sw._core.passes.compile(module._core, sw.Mesh({"x": 2, "y": 2})._core)


AXES = '["x"=4, "y"=4, "z"=2]'


@pytest.mark.parametrize(
    ("mesh", "sharding"),
    [
        (f"<{AXES}>", '[{"x"}, {}]'),
        (f"<{AXES}>", '[{"x":(1)2, ?}p1, {?}], replicated={"y"}, unreduced=max{"z"}'),
        (f"<{AXES}, device_ids={list(range(31, -1, -1))}>", '[{"y":(2)2, "x"}, {"y":(1)2}]'),
        ("<[]>", "[{?}, {}]"),
        ("<[], device_ids=[3]>", "[]"),
    ],
)
def test_json_keeps_meshes_and_shardings(mesh: str, sharding: str) -> None:
    text = f"sdy.mesh @m = {mesh}\nfunc.func @main(%x: tensor<8x8xf32>) {{\n  return\n}}"
    core = sw.parse(text)._core.mesh
    assert core is not None
    assert sw._core.mesh.Mesh.from_json(core.to_json()) == core
    parsed = sw._core.mesh.Sharding.parse(core, sharding)
    back = sw._core.mesh.Sharding.from_json(parsed.to_json())
    assert back == parsed
    assert back.text() == parsed.text()
    assert back.mesh == core
