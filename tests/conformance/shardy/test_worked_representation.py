# SPDX-License-Identifier: Apache-2.0
"""The worked examples of the representation: meshes, dims, parts of axes, priorities, and how they are written.

Each row names its place: a section of Shardy's page on its representation ("Representation: …"), of the digest of how
Shardy behaves ("Axis refs: …"), or of Mesh-TensorFlow's layouts ("Layouts: …"). What they say of meshes and shardings
must also be what jaxlib's Shardy reads and prints.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import NamedSharding, P, _core
from tests.conformance.shardy.client import OracleError, ShardyOracle

XYZ = {"x": 2, "y": 4, "z": 2}
Y8 = {"x": 2, "y": 8, "z": 2}


def parsed(axes: dict[str, int], text: str) -> Any:
    return _core.mesh.Sharding.parse(_core.mesh.Mesh("mesh", list(axes.items())), text)


def on_argument(mesh: str, sharding: str, kind: str) -> str:
    attribute = f"{{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}"
    return f"sdy.mesh @mesh = {mesh}\nfunc.func @main(%x: {kind} {attribute}) -> {kind} {{\n  return %x : {kind}\n}}\n"


def mesh_text(axes: dict[str, int]) -> str:
    return "<[" + ", ".join(f'"{name}"={size}' for name, size in axes.items()) + "]>"


def tensor(shape: tuple[int, ...]) -> str:
    return "tensor<" + "".join(f"{size}x" for size in shape) + "f32>"


# ---- what a device holds --------------------------------------------------------------------------------------------

LOCAL_SHAPES = [
    ("Basic structure", XYZ, '[{"x"}, {"z", "y"}]', (4, 8), (2, 1)),
    ("Open and closed dims", XYZ, '[{"x"}, {"z", ?}]', (4, 8), (2, 4)),
    ("Explicitly replicated axes", XYZ, '[{"x"}, {?}], replicated={"y"}', (4, 8), (2, 8)),
    ("Parts of axes: only the one in the middle", Y8, '[{"x"}, {"y":(2)2}]', (4, 8), (2, 4)),
    ("Parts of axes, replicated", Y8, '[{"x"}, {"y":(2)2}], replicated={"y":(1)2}', (4, 8), (2, 4)),
    ("Priorities", {"w": 6, **XYZ}, '[{"x"}p1, {"y"}, {"z", ?}p2]', (4, 8, 4), (2, 2, 2)),
    ("Dims that axes do not divide", {"x": 8, "y": 2, "z": 3}, '[{"x"}, {"y"}, {"z"}]', (7, 3, 8), (1, 2, 3)),
]


@pytest.mark.parametrize(("place", "axes", "text", "shape", "local"), LOCAL_SHAPES, ids=[r[0] for r in LOCAL_SHAPES])
def test_a_device_holds(
    shardy: ShardyOracle, place: str, axes: dict[str, int], text: str, shape: tuple[int, ...], local: tuple[int, ...]
) -> None:
    sharding = parsed(axes, text)
    sharding.verify(shape)
    assert sharding.local_shape(shape) == local
    assert sharding.text() == f"<@mesh, {text}>", place
    module = on_argument(mesh_text(axes), text, tensor(shape))
    assert f"<@mesh, {text}>" in shardy.parse(module)
    assert f"<@mesh, {text}>" in _core.ir.parse(module).text()


def test_a_mesh_of_four_devices_tiles_a_matrix() -> None:
    """Representation, overview: devices 0 to 3 as 2 x 2 hold a, b, c, d."""
    mesh = sw.Mesh({"x": 2, "y": 2})
    np.testing.assert_array_equal(mesh.devices, [[0, 1], [2, 3]])
    matrix = np.array([["a", "b"], ["c", "d"]])
    held = {
        d: matrix[tile].tolist() for d, tile in NamedSharding(mesh, P("x", "y")).devices_indices_map((2, 2)).items()
    }
    assert held == {0: [["a"]], 1: [["b"]], 2: [["c"]], 3: [["d"]]}


def same_tiles(first: NamedSharding, second: NamedSharding, shape: tuple[int, ...]) -> bool:
    return first.devices_indices_map(shape) == second.devices_indices_map(shape)


def test_a_mesh_of_two_axes_is_a_tiling_of_one() -> None:
    """Representation, parts of axes: x=4, y=2 are (1)4 and (4)2 of one axis of 8."""
    split = NamedSharding(sw.Mesh({"x": 4, "y": 2}), P("x", "y"))
    whole = NamedSharding(
        sw.Mesh({"devices": 8}), P(sw.sub("devices", pre=1, size=4), sw.sub("devices", pre=4, size=2))
    )
    assert same_tiles(split, whole, (4, 4))


def test_two_meshes_with_one_order_of_devices_mean_the_same() -> None:
    """Representation, several meshes: the axis b of a=4, b=2 is the axis z of x=2, y=2, z=2."""
    first = NamedSharding(sw.Mesh({"a": 4, "b": 2}, list(range(8))), P("b"))
    second = NamedSharding(sw.Mesh({"x": 2, "y": 2, "z": 2}, list(range(8))), P("z"))
    assert same_tiles(first, second, (8,))


# ---- meshes ---------------------------------------------------------------------------------------------------------

MESHES = [
    ("Mesh: device ids", '<["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>', '<["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>'),
    ("Mesh: empty", "<[]>", "<[]>"),
    ("Mesh: maximal", "<[], device_ids=[3]>", "<[], device_ids=[3]>"),
    ("Mesh: ids in order go", '<["x"=2, "y"=2], device_ids=[0, 1, 2, 3]>', '<["x"=2, "y"=2]>'),
    ("Mesh: one device with an axis is not maximal", '<["a"=1], device_ids=[0]>', '<["a"=1]>'),
]


@pytest.mark.parametrize(("place", "text", "printed"), MESHES, ids=[row[0] for row in MESHES])
def test_a_mesh_is_printed(shardy: ShardyOracle, place: str, text: str, printed: str) -> None:
    module = f"sdy.mesh @mesh = {text}\nfunc.func @main() {{\n  return\n}}\n"
    assert f"sdy.mesh @mesh = {printed}" in _core.ir.parse(module).text(), place
    assert f"mesh = #sdy.mesh<{printed[1:-1]}>" in shardy.parse(module)


def test_devices_are_numbered_row_by_row() -> None:
    """Mesh: logical devices are row-major, device ids permute them."""
    mesh = sw.Mesh({"x": 2, "y": 4}, [7, 6, 5, 4, 3, 2, 1, 0])
    np.testing.assert_array_equal(mesh.devices, [[7, 6, 5, 4], [3, 2, 1, 0]])


# ---- parts of axes --------------------------------------------------------------------------------------------------

A, B = ("a", 1, 6), ("b", 1, 8)


def part(pre: int, size: int, axis: str = "b") -> tuple[str, int, int]:
    return (axis, pre, size)


ALGEBRA: list[tuple[str, str, list[Any], list[Any], Any]] = [
    ("a full axis is the part from 1 to its size", "contains", [part(1, 8)], [part(2, 2)], True),
    ("8 in base 2, neighbours", "can_coexist", [part(1, 2)], [part(2, 2)], True),
    ("8 in base 2, first and last", "can_coexist", [part(1, 2)], [part(4, 2)], True),
    ("digits 2 and 3 of 6 in both orders", "can_coexist", [part(1, 2, "a")], [part(3, 2, "a")], False),
    ("a prefix", "prefix_of", [part(1, 2)], [part(1, 4)], True),
    ("not a prefix", "prefix_of", [part(2, 2)], [part(1, 4)], False),
    ("a suffix", "suffix_of", [part(2, 2)], [part(1, 4)], True),
    ("not a suffix", "suffix_of", [part(1, 2)], [part(1, 4)], False),
    ("intervals that meet", "overlaps", [part(1, 4)], [part(2, 4)], True),
    ("intervals that touch", "overlaps", [part(1, 2)], [part(2, 4)], False),
    ("the whole axis meets every part", "overlaps", [B], [part(4, 2)], True),
    ("the common digits", "overlap", [part(1, 4)], [part(2, 4)], part(2, 2)),
    ("the digits before the other", "prefix_without_overlap", [part(1, 4)], [part(2, 4)], part(1, 2)),
    ("disjoint: itself", "prefix_without_overlap", [part(1, 2)], [part(2, 4)], part(1, 2)),
    ("starting at the other: nothing", "prefix_without_overlap", [part(2, 2)], [part(2, 4)], None),
    ("cannot coexist: nothing", "prefix_without_overlap", [part(1, 2, "a")], [part(1, 3, "a")], None),
    ("the digits after the other", "suffix_without_overlap", [part(2, 4)], [part(1, 4)], part(4, 2)),
    ("the whole axis without its first digit", "suffix_without_overlap", [B], [part(1, 2)], part(2, 4)),
    ("neighbours merge", "sort_and_merge", [part(1, 2), part(2, 2)], [], [part(1, 4)]),
    ("up to the whole axis", "sort_and_merge", [part(4, 2), part(1, 4)], [], [B]),
    ("first digit, axis a before b", "sort_and_merge", [part(4, 2), part(1, 2), A], [], [A, part(1, 2), part(4, 2)]),
    ("a minus b splits", "difference", [A, B], [part(2, 2)], [A, part(1, 2), part(4, 2)]),
    ("truncated where it is hit", "truncate_at_overlap", [A, B], [part(4, 2)], [A, part(1, 4)]),
    ("common prefix of lists", "greatest_common_prefix", [A, part(1, 4)], [A, part(1, 2)], [A, part(1, 2)]),
    ("no common prefix", "greatest_common_prefix", [A, B], [B], []),
]


@pytest.mark.parametrize(("place", "op", "a", "b", "result"), ALGEBRA, ids=[f"{r[1]}: {r[0]}" for r in ALGEBRA])
def test_axis_refs(place: str, op: str, a: list[Any], b: list[Any], result: Any) -> None:
    """Axis refs and parts of axes: all algebra is per axis name."""
    mesh = _core.mesh.Mesh("mesh", [("a", 6), ("b", 8)])
    assert _core.mesh.algebra(mesh, op, a, b) == result, place


# ---- what is printed, and what is refused ---------------------------------------------------------------------------

PRINTED = [
    (
        "Text syntax: a value",
        '<["a"=2, "b"=4, "c"=2, "d"=2]>',
        '[{"a", ?}, {?}, {}, {"b":(1)2}p1], replicated={"c"}, unreduced={"d"}',
        '[{"a", ?}, {?}, {}, {"b":(1)2}p1], replicated={"c"}, unreduced={"d"}',
    ),
    (
        "Text syntax: unreduced before replicated",
        '<["a"=2, "b"=4, "c"=2, "d"=2]>',
        '[{}, {}, {}, {}], unreduced={"d"}, replicated={"c"}',
        '[{}, {}, {}, {}], replicated={"c"}, unreduced={"d"}',
    ),
    (
        "Explicitly replicated axes: in the order of the mesh",
        '<["c"=2, "a"=2, "b"=2]>',
        '[{}, {}, {}, {}], replicated={"c", "a"}',
        '[{}, {}, {}, {}], replicated={"c", "a"}',
    ),
    (
        "Parts of axes, replicated: by their place in the axis",
        '<["x"=2, "y"=8]>',
        '[{}, {}, {}, {}], replicated={"x", "y":(1)2, "y":(4)2}',
        '[{}, {}, {}, {}], replicated={"x", "y":(1)2, "y":(4)2}',
    ),
]


@pytest.mark.parametrize(("place", "mesh", "text", "printed"), PRINTED, ids=[row[0] for row in PRINTED])
def test_a_sharding_is_printed(shardy: ShardyOracle, place: str, mesh: str, text: str, printed: str) -> None:
    module = on_argument(mesh, text, "tensor<8x8x8x8xf32>")
    assert f"#sdy.sharding<@mesh, {printed}>" in _core.ir.parse(module).text(), place
    assert f"#sdy.sharding<@mesh, {printed}>" in shardy.parse(module)


def test_combiners_of_unreduced_axes() -> None:
    """Text syntax: sum is not printed, max and min are. jaxlib's version does not know the latter."""
    axes = {"a": 2}
    assert parsed(axes, '[{}], unreduced=sum{"a"}').text() == '<@mesh, [{}], unreduced={"a"}>'
    for reducer in ("max", "min"):
        text = f'[{{}}], unreduced={reducer}{{"a"}}'
        assert parsed(axes, text).text() == f"<@mesh, {text}>"
        assert parsed(axes, text).reducer == reducer


WIDE = "x".join(["2"] * 20)
SYMBOLS = ", ".join([*"ijklmnopqrstuvwxyz", "z_1", "z_2"])
SIZES = ", ".join(f"{symbol}=2" for symbol in SYMBOLS.split(", "))
ATTRIBUTES = [
    (
        "Text syntax: a rule with all of its lists",
        "#sdy.op_sharding_rule<([i, k, l], [k, j, m])->([i, j, n]) {i=8, j=16, k=4, l=2, m=2, n=2} reduction={k} "
        "need_replication={l} permutation={j} blocked_propagation={n}, custom>",
        "sdy.sharding_rule",
        ("8x4x2", "4x16x2", "8x16x2"),
    ),
    (
        "Text syntax: compound dims, the major factor first",
        "#sdy.op_sharding_rule<([ij, k], [k])->([i, jk]) {i=2, j=4, k=3}, custom>",
        "sdy.sharding_rule",
        ("8x3", "3", "2x12"),
    ),
    (
        "Text syntax: 18 letters, then numbers",
        f"#sdy.op_sharding_rule<([{SYMBOLS}], [])->([{SYMBOLS}]) {{{SIZES}}}, custom>",
        "sdy.sharding_rule",
        (WIDE, "", WIDE),
    ),
    (
        "Text syntax: a sharding for each result",
        '#sdy.sharding_per_value<[<@mesh, [{"x"}, {"y", ?}]>]>',
        "sdy.sharding",
        ("8x8", "8x8", "8x8"),
    ),
    (
        "Text syntax: a mesh written out",
        '#sdy.sharding_per_value<[<mesh<["z"=2]>, [{"z"}, {?}]>]>',
        "sdy.sharding",
        ("8x8", "8x8", "8x8"),
    ),
]


@pytest.mark.parametrize(("place", "text", "name", "shapes"), ATTRIBUTES, ids=[row[0] for row in ATTRIBUTES])
def test_an_attribute_is_printed(
    shardy: ShardyOracle, place: str, text: str, name: str, shapes: tuple[str, str, str]
) -> None:
    a, b, result = (f"tensor<{shape}xf32>" if shape else "tensor<f32>" for shape in shapes)
    call = f"stablehlo.custom_call @target(%a, %b) {{{name} = {text}}} : ({a}, {b}) -> {result}"
    module = f"""sdy.mesh @mesh = {mesh_text(XYZ)}
func.func @main(%a: {a}, %b: {b}) -> {result} {{
  %0 = {call}
  return %0 : {result}
}}
"""
    assert f"{name} = {text}" in _core.ir.parse(module).text(), place
    assert f"{name} = {text}" in shardy.parse(module)


REFUSED = [
    ("Basic structure: as many dims as the tensor", XYZ, '[{"x"}]'),
    ("Basic structure: names of the mesh", XYZ, '[{"w"}, {}]'),
    ("Basic structure: an axis only once", XYZ, '[{"x"}, {"x"}]'),
    ("Basic structure: also among replicated axes", XYZ, '[{"x"}, {}], replicated={"x"}'),
    ("Explicitly replicated axes: not in the order of the mesh", XYZ, '[{}, {}], replicated={"y", "x"}'),
    ("Parts of axes, replicated: not by their place", Y8, '[{}, {}], replicated={"y":(4)2, "x", "y":(1)2}'),
    ("Parts of axes: they do not overlap", Y8, '[{"y":(1)4}, {"y":(2)4}]'),
    ("Parts of axes: neighbours are written as one", Y8, '[{"y":(1)2, "y":(2)4}, {}]'),
    ("Parts of axes: neighbours among replicated axes", Y8, '[{}, {}], replicated={"y":(1)2, "y":(2)4}'),
    ("Parts of axes: the size before is at least 1", Y8, '[{"y":(0)2}, {}]'),
    ("Parts of axes: the size is more than 1", Y8, '[{"y":(1)1}, {}]'),
    ("Parts of axes: they divide the axis", Y8, '[{"y":(1)3}, {}]'),
    ("Priorities: not on an empty closed dim", XYZ, '[{"x"}, {}p1]'),
    ("Text syntax: the question mark comes last", XYZ, '[{?, "x"}, {}]'),
]


@pytest.mark.parametrize(("place", "axes", "text"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_breaks_an_invariant_is_refused(shardy: ShardyOracle, place: str, axes: dict[str, int], text: str) -> None:
    module = on_argument(mesh_text(axes), text, "tensor<8x8xf32>")
    with pytest.raises(OracleError):
        shardy.parse(module)
    with pytest.raises((sw.ShardingError, sw.ParseError)):
        _core.ir.parse(module).verify()


def test_gaps_between_priorities_are_allowed(shardy: ShardyOracle) -> None:
    """Priorities: p0 and p2 without p1."""
    module = on_argument(mesh_text(XYZ), '[{"x"}, {"y"}p2]', "tensor<8x8xf32>")
    assert '{"y"}p2' in shardy.parse(module)
    assert '{"y"}p2' in _core.ir.parse(module).text()


# ---- layouts of Mesh-TensorFlow -------------------------------------------------------------------------------------

IMAGE = np.arange(16).reshape(4, 4)
# Figure 2: dims 0 and 1 of an image on mesh dims 0 and 1, called rows and columns here; None leaves a dim whole.
LAYOUTS = [
    ("Layouts: figure 2a, everything everywhere", P(None, None), [IMAGE] * 4),
    ("Layouts: figure 2b, dim 0 on mesh dim 0", P("r", None), [IMAGE[:2], IMAGE[:2], IMAGE[2:], IMAGE[2:]]),
    (
        "Layouts: figure 2c, both dims",
        P("r", "c"),
        [IMAGE[:2, :2], IMAGE[:2, 2:], IMAGE[2:, :2], IMAGE[2:, 2:]],
    ),
]


@pytest.mark.parametrize(("place", "spec", "held"), LAYOUTS, ids=[row[0] for row in LAYOUTS])
def test_a_layout_gives_each_device_its_slice(place: str, spec: P, held: list[Any]) -> None:
    array = sw.device_put(IMAGE, NamedSharding(sw.Mesh({"r": 2, "c": 2}), spec))
    for shard, slice_ in zip(array.addressable_shards, held, strict=True):
        np.testing.assert_array_equal(shard.data, slice_, place)


def test_a_tensor_of_three_dims_on_a_mesh_of_three() -> None:
    """Layouts: tensor dim 0 on mesh dim 1, dim 1 on mesh dim 0, dim 2 whole."""
    mesh = sw.Mesh({"m0": 2, "m1": 4, "m2": 3})
    with sw.axis_rules("t0:m1;t1:m0"):
        found = sw.jit(lambda x: sw.logical(x, "t0 t1 t2"), mesh=mesh)(np.zeros((8, 8, 8)))
    assert found.sharding.spec == P("m1", "m0", None)
    assert found.sharding.shard_shape((8, 8, 8)) == (2, 4, 8)


def test_one_mesh_dim_for_two_dims_is_illegal() -> None:
    """Layouts: figure 2d, where a part of the image would be lost."""
    with sw.axis_rules({"height": "r", "width": "r"}), pytest.raises(sw.ShardingError, match="'height' and 'width'"):
        sw.jit(lambda x: sw.logical(x, "height width"), mesh=sw.Mesh({"r": 2, "c": 2}))(IMAGE)


def layer(x: Any, w1: Any, w2: Any) -> Any:
    """Layouts: equation 1, y = a(x w1) w2."""
    x, w1, w2 = sw.logical(x, "batch in"), sw.logical(w1, "in hidden"), sw.logical(w2, "hidden out")
    return sw.logical(sw.logical(np.maximum(x @ w1, 0), "batch hidden") @ w2, "batch out")


# Equations 2 to 4: the mesh, the layout, and where x, w1, w2 and y lie.
EQUATIONS = [
    ("data", {"m": 4}, "batch:m", (P("m", None), P(None, None), P(None, None), P("m", None))),
    ("model", {"m": 4}, "hidden:m", (P(None, None), P(None, "m"), P("m", None), P(None, None))),
    ("both", {"d": 2, "m": 2}, "batch:d;hidden:m", (P("d", None), P(None, "m"), P("m", None), P("d", None))),
]


@pytest.mark.parametrize(("name", "axes", "rules", "specs"), EQUATIONS, ids=[row[0] for row in EQUATIONS])
def test_layouts_of_a_layer(name: str, axes: dict[str, int], rules: str, specs: tuple[P, ...]) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape, np.float32) for shape in ((8, 4), (4, 16), (16, 4))]
    with sw.axis_rules(rules):
        program = sw.jit(layer, mesh=sw.Mesh(axes)).lower(*arrays).compile()
    found = [*program.input_shardings, program.output_shardings]
    assert tuple(sharding.spec for sharding in found) == specs
    reduces = [row.kind for row in program.collectives()]
    assert reduces == ([] if name == "data" else ["all_reduce"])
