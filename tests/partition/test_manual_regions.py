# SPDX-License-Identifier: Apache-2.0
"""Manual computations run: texts that JAX does not print, tokens, errors, and sw.manual with transforms."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.support.exports import exports

X = np.arange(16 * 8, dtype=np.float32).reshape(16, 8)
MESH = sw.Mesh({"x": 2, "y": 4})
IDS = [3, 1, 2, 0, 7, 6, 5, 4]
MODES: tuple[dict[str, bool], ...] = ({}, {"faithful": True, "poison": True})
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
ADDS = """({
  ^bb0(%u: tensor<f32>, %v: tensor<f32>):
    %s = stablehlo.add %u, %v : tensor<f32>
    stablehlo.return %s : tensor<f32>
})"""


def manual(
    body: str,
    dims: str = '[{"x"}, {"y"}]',
    *,
    local: str = "8x2",
    mesh: str = '<["x"=2, "y"=4]>',
    axes: str = '"x", "y"',
    result: str = "",
    out: str = "",
) -> str:
    """A program of one manual computation, on a shard %a of 16x8 numbers; the body returns %r."""
    return f"""sdy.mesh @mesh = {mesh}
func.func @main(%x: tensor<16x8xf32>) -> tensor<{result or "16x8"}xf32> {{
  %m = sdy.manual_computation(%x) in_shardings=[<@mesh, {dims}>] out_shardings=[<@mesh, {out or dims}>]
      manual_axes={{{axes}}} (%a: tensor<{local}xf32>) {{
{body}
    sdy.return %r : tensor<{{0}}xf32>
  }} : (tensor<16x8xf32>) -> tensor<{result or "16x8"}xf32>
  return %m : tensor<{result or "16x8"}xf32>
}}""".replace("{0}", local)


def dense(groups: Any) -> str:
    array = np.array(groups)
    return f"dense<{array.tolist()}> : tensor<{array.shape[0]}x{array.shape[1]}xi64>"


def all_reduce(groups: Any, local: str = "8x2", more: str = f"{CHANNEL}, use_global_device_ids, ") -> str:
    types = f"(tensor<{local}xf32>) -> tensor<{local}xf32>"
    return f'%r = "stablehlo.all_reduce"(%a) <{{{more}replica_groups = {dense(groups)}}}> {ADDS} : {types}'


def run(text: str, x: np.ndarray = X) -> np.ndarray:
    program = sw.parse(text, "m.mlir").compile()
    once, faithful = (np.asarray(program.run(x, **mode)) for mode in MODES)
    np.testing.assert_array_equal(once, faithful)
    return once


def kinds(program: sw.Program) -> dict[str, int]:
    return dict(Counter(row.kind for row in program.collectives().rows))


SHARDS = X.reshape(2, 8, 4, 2).transpose(0, 2, 1, 3)  # [x, y, 8, 2]


def whole(shards: np.ndarray) -> np.ndarray:
    return shards.transpose(0, 2, 1, 3).reshape(16, 8)


# ---- groups ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1])
def test_groups_name_the_devices_of_a_mesh_with_ids(axis: int) -> None:
    ids = np.array(IDS).reshape(2, 4)
    mesh = f'<["x"=2, "y"=4], device_ids={IDS}>'
    groups = np.moveaxis(ids, axis, -1).reshape(-1, ids.shape[axis])
    expected = np.broadcast_to(SHARDS.sum(axis, keepdims=True), SHARDS.shape)
    np.testing.assert_array_equal(run(manual(all_reduce(groups), mesh=mesh)), whole(expected))


@pytest.mark.parametrize("groups", [[[0], [1], [2], [3], [4], [5], [6], [7]], [[0, 1, 2, 3], [4, 5, 6, 7]]])
def test_sums_of_negative_zeros_are_negative_zeros(groups: Any) -> None:
    assert np.signbit(run(manual(all_reduce(groups)), np.full_like(X, -0.0))).all()


def test_a_device_of_a_mesh_with_ids_has_its_number() -> None:
    body = """%i = stablehlo.partition_id : tensor<ui32>
    %f = stablehlo.convert %i : (tensor<ui32>) -> tensor<f32>
    %z = stablehlo.constant dense<0.0> : tensor<8x2xf32>
    %n = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<8x2xf32>
    %r = stablehlo.add %z, %n : tensor<8x2xf32>"""
    for mesh, ids in ((f'<["x"=2, "y"=4], device_ids={IDS}>', IDS), ('<["x"=2, "y"=4]>', list(range(8)))):
        expected = np.broadcast_to(np.array(ids, np.float32).reshape(2, 4, 1, 1), SHARDS.shape)
        np.testing.assert_array_equal(run(manual(body, mesh=mesh)), whole(expected))


def test_groups_by_mesh_axes() -> None:
    axes = '[#stablehlo.axis_ref<name = "y">, #stablehlo.axis_ref<name = "x">]'
    groups = f"#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = {axes}>"
    body = f"""%g = "stablehlo.all_gather"(%a) <{{all_gather_dim = 1 : i64, {CHANNEL}, use_global_device_ids,
        replica_groups = {groups}}}> : (tensor<8x2xf32>) -> tensor<8x16xf32>
    %r = stablehlo.slice %g [0:8, 3:5] : (tensor<8x16xf32>) -> tensor<8x2xf32>"""
    gathered = SHARDS.transpose(2, 1, 0, 3).reshape(8, 16)[:, 3:5]
    np.testing.assert_array_equal(run(manual(body)), whole(np.broadcast_to(gathered, SHARDS.shape)))


@exports
def test_the_export_of_a_program_runs_as_the_program() -> None:
    program = sw.jit(lambda x, w: np.tanh(x @ w).sum(0), mesh=MESH, in_shardings=(P("x", "y"), P("y"))).lower(X, X[:8])
    compiled = program.compile()
    exported = sw.parse(compiled.as_text("export")).run(X, X[:8])
    np.testing.assert_allclose(np.asarray(exported), np.asarray(compiled(X, X[:8])), rtol=1e-6)


def test_groups_that_are_no_axes() -> None:
    groups = [[0, 5], [6, 3], [4, 1], [2, 7]]
    rows = SHARDS.reshape(8, 8, 2)
    expected = np.empty_like(rows)
    for group in groups:
        expected[group] = rows[group].sum(0)
    np.testing.assert_array_equal(run(manual(all_reduce(groups))), whole(expected.reshape(SHARDS.shape)))


def test_members_of_groups_that_are_no_axes_keep_their_order() -> None:
    groups = [[5, 0], [6, 3], [1, 4], [2, 7]]
    body = f"""%g = "stablehlo.all_gather"(%a) <{{all_gather_dim = 1 : i64, {CHANNEL}, use_global_device_ids,
        replica_groups = {dense(groups)}}}> : (tensor<8x2xf32>) -> tensor<8x4xf32>
    %r = stablehlo.slice %g [0:8, 1:3] : (tensor<8x4xf32>) -> tensor<8x2xf32>"""
    rows = SHARDS.reshape(8, 8, 2)
    expected = np.empty_like(rows)
    for first, second in groups:
        expected[[first, second]] = np.concatenate([rows[first], rows[second]], 1)[:, 1:3]
    np.testing.assert_array_equal(run(manual(body)), whole(expected.reshape(SHARDS.shape)))


def test_a_broadcast_sends_from_the_first_member() -> None:
    groups = dense([[2, 0, 1, 3], [5, 4, 6, 7]])
    body = f"""%r = "stablehlo.collective_broadcast"(%a) <{{{CHANNEL}, replica_groups = {groups}}}>
        : (tensor<8x2xf32>) -> tensor<8x2xf32>"""
    rows = SHARDS.reshape(8, 8, 2)
    expected = np.stack([rows[2]] * 4 + [rows[5]] * 4)
    np.testing.assert_array_equal(run(manual(body)), whole(expected.reshape(SHARDS.shape)))


def test_without_a_channel_ids_are_replicas_and_there_is_one() -> None:
    np.testing.assert_array_equal(run(manual(all_reduce([[0]], more=""))), X)


def test_a_channel_alone_reduces_over_all_partitions_of_a_replica() -> None:
    expected = np.broadcast_to(SHARDS.sum((0, 1)), SHARDS.shape)
    np.testing.assert_array_equal(run(manual(all_reduce([[0]], more=f"{CHANNEL}, "))), whole(expected))


def test_a_combiner_that_is_no_reducer() -> None:
    body = all_reduce(np.arange(8).reshape(2, 4)).replace(
        "stablehlo.add %u, %v : tensor<f32>",
        "stablehlo.multiply %u, %v : tensor<f32>\n %s2 = stablehlo.add %s, %s : tensor<f32>",
    )
    body = body.replace("stablehlo.return %s :", "stablehlo.return %s2 :")
    x = (X % 7 + 1).astype(np.float32)
    shards = x.reshape(2, 8, 4, 2).transpose(0, 2, 1, 3)
    expected = np.broadcast_to(shards.prod(1, keepdims=True) * 8, shards.shape)
    np.testing.assert_allclose(run(manual(body), x), whole(expected))


def test_a_sub_axis_of_a_manual_axis() -> None:
    text = manual(
        all_reduce([[0, 1], [2, 3]], local="8x4"),
        '[{"x":(1)2}, {"x":(2)2}]',
        local="8x4",
        mesh='<["x"=4]>',
        axes='"x"',
    )
    shards = X.reshape(2, 8, 2, 4)
    expected = np.broadcast_to(shards.sum(2, keepdims=True), shards.shape)
    np.testing.assert_array_equal(run(text), expected.reshape(16, 8))


def test_the_axes_of_a_dim_may_be_in_another_order_than_those_of_the_mesh() -> None:
    pairs = dense([[0, 1], [1, 2], [2, 3], [4, 5]])
    body = f"""%r = "stablehlo.collective_permute"(%a) <{{{CHANNEL}, source_target_pairs = {pairs}}}>
        : (tensor<2x8xf32>) -> tensor<2x8xf32>"""
    text = manual(body, '[{"y", "x"}, {}]', local="2x8")
    rows = X.reshape(4, 2, 2, 8)  # [y, x, 2, 8]
    expected = np.zeros_like(rows)
    expected[1:, 0] = rows[:-1, 0]
    expected[1, 1] = rows[0, 1]
    np.testing.assert_array_equal(run(text), expected.reshape(16, 8))


# ---- results --------------------------------------------------------------------------------------------------------


def test_a_result_that_should_be_equal_is_that_of_the_first_device() -> None:
    text = manual("%r = stablehlo.negate %a : tensor<8x2xf32>", out='[{"x"}, {}]', result="16x2")
    np.testing.assert_array_equal(run(text), -SHARDS[:, 0].reshape(16, 2))


def test_a_result_of_constants_has_the_shape_of_its_sharding() -> None:
    text = manual("%r = stablehlo.constant dense<2.5> : tensor<8x2xf32>")
    np.testing.assert_array_equal(run(text), np.full((16, 8), 2.5, np.float32))


def test_a_free_dim_may_be_uneven() -> None:
    text = manual(
        "%b = stablehlo.negate %a : tensor<8x8xf32>\n"
        "%r = stablehlo.slice %b [0:8, 0:7] : (tensor<8x8xf32>) -> tensor<8x7xf32>",
        '[{"x"}, {"y"}]',
        out='[{"x"}, {"y"}]',
        axes='"x"',
        local="8x8",
        result="16x7",
    ).replace("sdy.return %r : tensor<8x8xf32>", "sdy.return %r : tensor<8x7xf32>")
    np.testing.assert_array_equal(run(text), -X[:, :7])


# ---- one device -----------------------------------------------------------------------------------------------------


def test_outside_of_a_manual_computation_there_is_one_device() -> None:
    groups = "replica_groups = dense<0> : tensor<1x1xi64>"
    same = "(tensor<16x8xf32>) -> tensor<16x8xf32>"
    text = f"""func.func @main(%x: tensor<16x8xf32>) -> (tensor<16x8xf32>, tensor<ui32>, tensor<ui32>) {{
  %0 = "stablehlo.all_reduce"(%x) <{{{groups}}}> {ADDS} : {same}
  %1 = "stablehlo.all_gather"(%0) <{{all_gather_dim = 1 : i64, {groups}}}> : {same}
  %2 = "stablehlo.reduce_scatter"(%1) <{{scatter_dimension = 0 : i64, {groups}}}> {ADDS} : {same}
  %3 = "stablehlo.all_to_all"(%2) <{{concat_dimension = 1 : i64, {groups}, split_count = 1 : i64,
      split_dimension = 0 : i64}}> : {same}
  %4 = "stablehlo.collective_permute"(%3) <{{source_target_pairs = dense<0> : tensor<1x2xi64>}}> : {same}
  %5 = "stablehlo.collective_broadcast"(%4) <{{{groups}}}> : {same}
  %6 = "stablehlo.cross-replica-sum"(%5) <{{{groups}}}> : {same}
  %p = stablehlo.partition_id : tensor<ui32>
  %q = stablehlo.replica_id : tensor<ui32>
  return %6, %p, %q : tensor<16x8xf32>, tensor<ui32>, tensor<ui32>
}}"""
    result, partition, replica = sw.parse(text).run(X, mesh=sw.Mesh({"x": 4}))
    np.testing.assert_array_equal(np.asarray(result), X)
    assert (int(partition), int(replica)) == (0, 0)


# ---- tokens ---------------------------------------------------------------------------------------------------------


def test_tokens_are_carried_and_passed() -> None:
    text = """sdy.mesh @mesh = <["x"=4]>
func.func @main(%x: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<16x8xf32> {
  %t = stablehlo.create_token : !stablehlo.token
  %u = stablehlo.after_all %t, %t : !stablehlo.token
  %n = stablehlo.constant dense<3> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %v = %u, %a = %x) : tensor<i32>, !stablehlo.token, tensor<16x8xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %w = stablehlo.after_all %v : !stablehlo.token
    %c:2 = func.call @step(%w, %a) : (!stablehlo.token, tensor<16x8xf32>) -> (!stablehlo.token, tensor<16x8xf32>)
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %c#0, %c#1 : tensor<i32>, !stablehlo.token, tensor<16x8xf32>
  }
  %b:2 = stablehlo.optimization_barrier %r#1, %r#2 : !stablehlo.token, tensor<16x8xf32>
  return %b#1 : tensor<16x8xf32>
}
func.func private @step(%t: !stablehlo.token, %x: tensor<16x8xf32>) -> (!stablehlo.token, tensor<16x8xf32>) {
  %0 = stablehlo.add %x, %x : tensor<16x8xf32>
  return %t, %0 : !stablehlo.token, tensor<16x8xf32>
}"""
    np.testing.assert_array_equal(run(text), 8 * X)


def test_a_token_of_main_is_refused() -> None:
    text = """func.func @main(%t: !stablehlo.token, %x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}"""
    with pytest.raises(sw.DTypeError, match=r"a value must be a tensor, got !stablehlo\.token"):
        sw.parse(text).compile()


# ---- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (
            manual(all_reduce([[0, 4], [1, 5], [2, 6], [3, 7]], "16x2"), '[{}, {"y"}]', axes='"y"', local="16x2"),
            sw.UnsupportedError,
            "stablehlo.all_reduce: devices that communicate must differ along manual axes only, got [0, 4]; make the "
            "other axes manual, too (at m.mlir:5)",
        ),
        (
            manual(all_reduce([[0, 1, 2, 3], [4, 5, 7, 6]], "16x2"), '[{}, {"y"}]', axes='"y"', local="16x2"),
            sw.UnsupportedError,
            "stablehlo.all_reduce: the groups must be the same everywhere along the axes that are not manual, got "
            "[0, 1, 2, 3], [4, 5, 7, 6]; make these axes manual, too (at m.mlir:5)",
        ),
        (
            manual(all_reduce([[0, 1, 2, 3], [4, 5, 6, -1]])),
            sw.UnsupportedError,
            "stablehlo.all_reduce: all groups must have the same size, got [0, 1, 2, 3], [4, 5, 6]; use groups of one "
            "size (at m.mlir:5)",
        ),
        (
            manual(all_reduce([[0, 1], [4, 5]])),
            sw.UnsupportedError,
            "stablehlo.all_reduce: each device must be in a group, got [0, 1], [4, 5]; add groups for the other "
            "devices (at m.mlir:5)",
        ),
        (
            manual(all_reduce([[0, 8]])),
            sw.ShardingError,
            "stablehlo.all_reduce: ids must be below 8, the number of devices, got 8 (at m.mlir:5)",
        ),
        (
            manual(all_reduce([[0, 1]], more="")),
            sw.UnsupportedError,
            "stablehlo.all_reduce: without a channel_handle the ids name replicas, and a program has one replica, got "
            "[0, 1]; give the op a channel_handle, and use_global_device_ids if it has that (at m.mlir:5)",
        ),
        (
            manual(
                "%i = stablehlo.partition_id : tensor<ui32>\n %f = stablehlo.convert %i : (tensor<ui32>) -> tensor<f32>"
                "\n %n = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<16x2xf32>\n"
                "%r = stablehlo.add %a, %n : tensor<16x2xf32>",
                '[{}, {"y"}]',
                axes='"y"',
                local="16x2",
            ),
            sw.UnsupportedError,
            "stablehlo.partition_id: all axes of the mesh must be manual where a device asks for its number, got "
            '"x" is not; make it manual, too (at m.mlir:5)',
        ),
    ],
)
def test_what_no_manual_axes_give_is_an_error(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        sw.parse(text, "m.mlir").compile()
    assert str(raised.value) == message


# ---- sw.manual ------------------------------------------------------------------------------------------------------


def test_a_manual_region_runs() -> None:
    def centered(part: Any, scale: Any) -> Any:
        return (part - part.mean(0)) * scale

    region = sw.manual(centered, MESH, (P("x", "y"), P("y")), P("x", "y"))
    scale = np.arange(8, dtype=np.float32)
    program = sw.jit(region, mesh=MESH).lower(X, scale).compile()
    parts = X.reshape(2, 8, 8)
    expected = ((parts - parts.mean(1, keepdims=True)) * scale).reshape(16, 8)
    np.testing.assert_allclose(np.asarray(program(X, scale)), expected)
    assert kinds(program) == {}


def test_a_manual_region_calls_without_jit() -> None:
    np.testing.assert_array_equal(
        np.asarray(sw.shard_map(lambda a: a - a[0], mesh=MESH, in_specs=P("x"), out_specs=P("x"))(X))[8], 0 * X[0]
    )


def loss(x: Any) -> Any:
    region = sw.manual(lambda a: np.sin(a) * a.sum(), MESH, P("x"), P("x"), axes={"x"})
    return (region(x) ** 2).sum()


def loss_of_whole(x: Any) -> Any:
    parts = x.reshape(2, 8, 8)
    return ((np.sin(parts) * parts.sum((1, 2), keepdims=True)) ** 2).sum()


def test_a_manual_region_has_a_gradient() -> None:
    x = X / 100
    found = sw.jit(sw.grad(loss), mesh=MESH)(x)
    expected = sw.jit(sw.grad(loss_of_whole), mesh=MESH)(x)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-4, atol=1e-3)


def test_vmap_of_a_manual_region() -> None:
    xs = np.stack([X, X[::-1] / 2])
    found = sw.jit(sw.vmap(loss), mesh=MESH)(xs / 100)
    np.testing.assert_allclose(np.asarray(found), [loss_of_whole(x) for x in xs / 100], rtol=1e-5)


def test_a_loop_in_a_manual_region() -> None:
    def body(part: Any) -> Any:
        return sw.while_loop(lambda c: c.sum() < 3000, lambda c: c * 2 + 1, part)

    x = X[:, :1] + 1
    found = sw.jit(sw.manual(body, MESH, P("x"), P("x"), axes={"x"}), mesh=MESH)(x)
    parts = []
    for part in x.reshape(2, 8, 1):
        while part.sum() < 3000:
            part = part * 2 + 1
        parts.append(part)
    np.testing.assert_array_equal(np.asarray(found), np.concatenate(parts))


def test_a_region_without_operands_and_results_needs_no_mesh() -> None:
    """JAX writes one where nothing of a region is used."""
    text = """
    sdy.mesh @mesh = <["x"=4]>
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={"x"} () {
        sdy.return
      } : () -> ()
      return %x : tensor<8xf32>
    }
    """
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(np.asarray(sw.parse(text).compile().run(x)), x)
