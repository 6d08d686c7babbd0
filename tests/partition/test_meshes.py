# SPDX-License-Identifier: Apache-2.0
"""Annotations on several meshes over the same devices, GShard's counts and device assignments that do not nest."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import NamedSharding, P, _core
from shardwise.testing import assert_matches_unpartitioned
from tests.conformance.reshards.meshes import draw_pair, wrong_in
from tests.support.counted_bytes import differences, received_in_run
from tests.support.partitioned import execute

GRID = sw.Mesh({"x": 2, "y": 3})
LINE = sw.Mesh({"d": 6}, name="line")
TURNED = sw.Mesh({"a": 3, "b": 2}, name="turned")
MIXED = sw.Mesh({"u": 2, "v": 3}, [3, 0, 5, 1, 4, 2], name="mixed")
EIGHT = sw.Mesh({"a": 4, "b": 2})
OTHER_EIGHT = sw.Mesh({"p": 2, "q": 4}, name="other")
X = np.arange(36, dtype=np.float32).reshape(6, 6)
W = np.cos(X)
UNEVEN = np.arange(35, dtype=np.float32).reshape(5, 7)


def on(mesh: sw.Mesh, *dims: Any) -> NamedSharding:
    return NamedSharding(mesh, P(*dims))


def same(x: Any) -> Any:
    return x


def twice(x: Any) -> Any:
    """Both meshes in one op, and a change back."""
    return sw.shard(np.tanh(sw.shard(x, on(MIXED, "u", "v"))) + sw.shard(x, P("y", "x")), on(TURNED, "b", "a"))


def product(x: Any, w: Any) -> Any:
    return sw.shard(x, P("x", "y")) @ sw.shard(w, on(MIXED, "v", "u"))


def sums(x: Any) -> Any:
    """Reductions on the second mesh: to the whole, to a shard, and of what changes its mesh."""
    x = sw.shard(x, on(MIXED, "u", "v"))
    return np.sum(x) + sw.shard(np.sum(x, 0), on(MIXED, "v")) + sw.shard(np.max(x, 1)[:6], P("y"))


def loop(x: Any) -> Any:
    return sw.fori_loop(0, 3, lambda _, y: sw.shard(np.sin(sw.shard(y, on(MIXED, "v", "u"))) + y, P("x", "y")), x)


def carried(x: Any) -> Any:
    x = sw.shard(x, on(MIXED, "v", "u"))
    return sw.fori_loop(0, 3, lambda _, y: np.sin(y) + np.sum(y, 0), x)


def branch(x: Any) -> Any:
    x = sw.shard(x, on(MIXED, "v", "u"))
    return sw.cond(np.sum(x) > 0, lambda x: np.roll(x, 1, 0), lambda x: x * 2, x)


def movement(x: Any) -> Any:
    x = sw.shard(x, on(MIXED, "v", "u"))
    return np.concatenate([x[1:], x[:1] * 2])[::-1] + np.cumsum(x, 1)


def order(x: Any) -> Any:
    return np.argmax(sw.shard(x, on(MIXED, "v", "u")), 0) + np.argsort(sw.shard(x, on(TURNED, "b", "a")), 1)


def loss(x: Any, w: Any) -> Any:
    return np.sum(np.tanh(product(x, w)) ** 2)


PERMUTED = np.array([3, 0, 5, 1, 4, 2])
EIGHTH = np.arange(64, dtype=np.float32).reshape(8, 8)
PROGRAMS: dict[str, tuple[sw.Mesh, Callable[..., Any], list[np.ndarray]]] = {
    "split in 3 on 2x3": (GRID, lambda x: np.tanh(sw.split(x, 0, 3)), [X]),
    "split in 2 on 3x2": (sw.Mesh({"x": 3, "y": 2}), lambda x: np.tanh(sw.split(x, 1, 2)), [X]),
    "split in 3, beside an axis": (GRID, lambda x, w: sw.split(x, 0, 3) + sw.split(w, 0, "x"), [X, W]),
    "assignment: axes": (GRID, lambda x: np.tanh(sw.shard(x, np.arange(6).reshape(2, 3).T)), [X]),
    "assignment: digits": (
        EIGHT,
        lambda x: sw.shard(x, np.arange(8).reshape(2, 2, 2).transpose(1, 2, 0).reshape(4, 2)) * 2,
        [EIGHTH],
    ),
    "assignment: any order": (GRID, lambda x: np.tanh(sw.shard(x, PERMUTED.reshape(6, 1))), [X]),
    "assignment: any order of tiles": (GRID, lambda x: np.tanh(sw.shard(x, PERMUTED.reshape(3, 2))), [UNEVEN]),
    "6 in 2x3": (GRID, lambda x: np.tanh(sw.shard(x, on(LINE, "d"))), [X]),
    "2x3 in 6": (LINE, lambda x: np.tanh(sw.shard(x, on(GRID, "y", "x"))), [X]),
    "2x4 in 4x2": (EIGHT, lambda x: np.tanh(sw.shard(x, on(OTHER_EIGHT, "q", "p"))), [EIGHTH]),
    "3x2 in 2x3": (GRID, lambda x: np.tanh(sw.shard(x, on(TURNED, "a", "b"))), [X]),
    "other ids": (GRID, lambda x: np.tanh(sw.shard(x, on(MIXED, "u", "v"))), [UNEVEN]),
    "two meshes in an op": (GRID, twice, [UNEVEN]),
    "a product of two meshes": (GRID, product, [X, W]),
    "reductions": (GRID, sums, [X]),
    "a loop": (GRID, loop, [UNEVEN]),
    "a carry": (GRID, carried, [UNEVEN]),
    "branches": (GRID, branch, [UNEVEN]),
    "movement": (GRID, movement, [UNEVEN]),
    "order": (GRID, order, [UNEVEN]),
    "a gradient": (GRID, sw.grad(loss, argnums=(0, 1)), [X, W]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_on_several_meshes(name: str) -> None:
    """The values of NumPy in each mode, the bytes that were predicted, and texts that read back."""
    mesh, function, arrays = PROGRAMS[name]
    program = assert_matches_unpartitioned(function, *arrays, mesh=mesh)
    assert differences(program._compiled, received_in_run(program, *arrays)) == []
    for stage in ("global", "propagated", "resharded", "local"):
        text = program.as_text(stage)
        assert sw.parse(text).as_text() == sw.parse(sw.parse(text).as_text()).as_text()
        assert sw.parse(text).as_text().count("@mixed") == text.count("@mixed")


def test_a_digit_order_needs_no_second_mesh() -> None:
    """It is written with sub-axes, where it is annotated."""
    program = sw.jit(PROGRAMS["2x4 in 4x2"][1], mesh=EIGHT).lower(EIGHTH).compile()
    assert "@other" not in program.as_text("global")
    assert program(EIGHTH).sharding == on(EIGHT, (sw.sub("a", pre=2, size=2), "b"), sw.sub("a", pre=1, size=2))
    text = """
sdy.mesh @mesh = <["a"=4, "b"=2]>
sdy.mesh @other = <["p"=2, "q"=4]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@other, [{"q"}, {"p"}]>}) {
  %0 = stablehlo.tanh %x : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}"""
    program = sw.parse(text).compile()
    assert "from_mesh" not in program.as_text("local")
    np.testing.assert_array_equal(np.asarray(program(EIGHTH)), np.asarray(sw.parse(text).compile()(EIGHTH)))


def test_other_orders_are_one_exchange() -> None:
    """Each device receives its new tile, but for what it holds: of 6 elements, 4 at most where one corner stays."""
    moved = sw.jit(lambda x: sw.shard(x, on(MIXED, "u", "v")), mesh=GRID, in_shardings=P("x", "y"))
    program = moved.lower(X).compile()
    [row] = program.collectives()
    assert (row.kind, row.axes, row.bytes) == ("exchange", '@mesh {"x", "y"} as @mixed {"u", "v"}', 24)
    assert "from_mesh = @mesh, mesh = @mixed" in program.as_text("local")
    assert program(X).sharding == on(MIXED, "u", "v")
    placed = {shard.device: shard.data for shard in program(X).addressable_shards}
    for place, device in enumerate(MIXED.device_ids):
        row_, column = divmod(place, 3)
        np.testing.assert_array_equal(placed[device], X[3 * row_ : 3 * row_ + 3, 2 * column : 2 * column + 2])


def test_an_exchange_between_meshes_has_a_fill() -> None:
    """A local text by hand, which reads one row further down: what no device has is the fill, as on one mesh."""
    text = """module {
  sdy.mesh @mesh = <["x"=2, "y"=3]>
  sdy.mesh @mixed = <["u"=2, "v"=3], device_ids=[3, 0, 5, 1, 4, 2]>
  func.func public @main(%arg0: tensor<6x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                         %arg1: tensor<f32>)
      -> (tensor<6x6xf32> {sdy.sharding = #sdy.sharding<@mixed, [{"u"}, {"v"}]>}, tensor<f32>) {
    return %arg0, %arg1 : tensor<6x6xf32>, tensor<f32>
  }
}"""
    unit = sw.parse(text).compile()._compiled
    local = unit.stages["local"].text(placements=True)
    rows = '{axes = #sdy<axis_ref_list{"x"}>'
    for old, new in (
        (f"(%arg0) <{{from = [[{rows}", f"(%arg0, %arg1) <{{from = [[{rows}, offset = 1 : i64"),
        (": (tensor<3x2xf32>) ->", ": (tensor<3x2xf32>, tensor<f32>) ->"),
    ):
        assert local.count(old) == 1, local
        local = local.replace(old, new)
    seven = np.float32(7)
    for results in execute(unit.with_local_stage(_core.ir.parse(local)), [X, np.asarray(seven)]):
        np.testing.assert_array_equal(results[0], np.concatenate([X[1:], np.full((1, 6), seven)]))


def test_an_elementwise_chain_stays_on_its_mesh() -> None:
    program = sw.jit(lambda x: np.tanh(sw.shard(x, on(MIXED, "u", "v"))) * 2 + 1, mesh=GRID).lower(X).compile()
    assert program.collectives().total_bytes == 0
    assert program(X).sharding.mesh == MIXED


def test_an_op_is_computed_on_the_mesh_that_sends_least() -> None:
    """The large operand stays where it is."""
    large, small = np.ones((60, 6), np.float32), np.ones((1, 6), np.float32)

    def add(a: Any, b: Any) -> Any:
        a, b = sw.shard(a, on(MIXED, ("u", "v"))), sw.shard(b, P(None, ("x", "y")))
        return sw.shard(a + b, on(MIXED, ("u", "v")))

    [row] = sw.jit(add, mesh=GRID).lower(large, small).compile().collectives()
    assert row.bytes == 5 * 4
    assert row.kind == "all_gather"


def test_arguments_and_results_on_another_mesh() -> None:
    given = sw.device_put(UNEVEN, on(MIXED, "u", "v"))
    out = sw.jit(lambda x: x * 2, mesh=GRID, out_shardings=on(TURNED, "a", "b"))(given)
    assert out.sharding == on(TURNED, "a", "b")
    np.testing.assert_array_equal(np.asarray(out), UNEVEN * 2)
    np.testing.assert_array_equal(np.asarray(sw.jit(np.negative, mesh=GRID, in_shardings=P("y"))(given)), -UNEVEN)


def test_arguments_and_results_of_a_text_may_be_on_a_mesh_that_nests() -> None:
    """They are taken and returned with the axes of the program's mesh."""
    text = """module { sdy.mesh @other = <["a"=2, "b"=4]>
      sdy.mesh @mesh = <["x"=4, "y"=2]>
      func.func public @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@other, [{"a"}]>},
                             %y: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
          -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@other, [{"b"}]>}) {
        %0 = stablehlo.add %x, %y : tensor<8xf32>
        return %0 : tensor<8xf32> } }"""
    x, y = np.arange(8, dtype=np.float32), np.ones(8, np.float32)
    for mesh in (None, sw.Mesh({"x": 4, "y": 2})):
        np.testing.assert_array_equal(sw.parse(text).compile(mesh=mesh).run(x, y), x + y)


def test_why_and_reports_name_both_meshes() -> None:
    program = sw.jit(lambda x: np.tanh(sw.shard(x, on(MIXED, "u", "v")) * 2), mesh=GRID, in_shardings=P("x")).lower(X)
    compiled = program.compile()
    assert '@mixed {"u", "v"}' in str(compiled.collectives())
    assert "the tensors of the op are on different meshes" in str(compiled.why("x"))
    choices = compiled.choices
    again = sw.jit(
        lambda x: np.tanh(sw.shard(x, on(MIXED, "u", "v")) * 2), mesh=GRID, in_shardings=P("x"), choices=choices
    )
    np.testing.assert_array_equal(np.asarray(again(X)), np.asarray(compiled(X)))


def test_random_pairs_of_meshes() -> None:
    """A sample of the pairs that ``python -m tests.conformance.reshards --meshes`` tries."""
    rng = random.Random(5)
    pairs = [draw_pair(rng) for _ in range(60)]
    found = [(wrong_in(pair), pair) for pair in pairs]
    assert [f"{wrong}: {pair}" for wrong, pair in found if wrong] == []


def test_a_branch_depends_on_a_value_that_was_gathered_on_another_mesh() -> None:
    def shifted(x: Any) -> Any:
        held = sw.shard(sw.shard(x, on(MIXED, "v")) + x, on(MIXED, None))  # gathered along v, so the same everywhere
        return sw.cond(held.max() > 5, lambda y: y - 1, lambda y: y + 1, held) + sw.split(x, 0, "d")

    assert_matches_unpartitioned(shifted, UNEVEN[:, 0], mesh=LINE)


def test_meshes_over_other_devices_are_refused() -> None:
    with pytest.raises(sw.MeshError, match=r"^shard: the mesh must be over the 6 devices of the program's mesh"):
        sw.jit(lambda x: sw.shard(x, on(EIGHT, "a")), mesh=GRID)(X)
    text = """
sdy.mesh @a = <["x"=2]>
sdy.mesh @b = <["x"=4]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@a, [{"x"}]>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@b, [{"x"}]>}) {
  return %x : tensor<8xf32>
}"""
    rule = r'all shardings must be of meshes over the same devices, got @a <\["x"=2\]> and @b <\["x"=4\]>; give both as'
    with pytest.raises(sw.ShardingError, match=rule):
        sw.parse(text).compile()


def test_an_argument_of_a_text_on_a_digit_order() -> None:
    """It is placed as the program takes it: with sub-axes of the main mesh."""
    text = """
sdy.mesh @mesh = <["a"=4, "b"=2]>
sdy.mesh @other = <["p"=2, "q"=4]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@other, [{"q"}, {"p"}]>},
                %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.add %x, %y : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}"""
    program = sw.parse(text).compile()
    np.testing.assert_array_equal(np.asarray(program(EIGHTH, 2 * EIGHTH)), 3 * EIGHTH)
