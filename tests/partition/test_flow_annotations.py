# SPDX-License-Identifier: Apache-2.0
"""Groups, barriers and manual regions: what a user writes about the flow of shardings, and what Shardy makes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import NamedSharding, P
from tests.conformance.shardy.client import ShardyOracle

MESH = sw.Mesh({"x": 2, "y": 4})
X = np.arange(32, dtype=np.float32).reshape(8, 4)


def agrees_with_shardy(text: str, shardy: ShardyOracle) -> None:
    """What we propagate is what Shardy does, value by value, but that we say of every value that it is whole."""

    def shardings(reply: dict[str, Any]) -> list[Any]:
        said = ("sdy.sharding_group", "sdy.sharding_constraint", "sdy.reshard")  # in attributes of their own
        rows = [row for row in reply["ops"] if row is not None and row[0] not in said]
        lists = [reply["arguments"], *([row[1]] for row in rows), reply["results"]]
        return [[None if one is None or '"' not in one else one for one in shardings] for shardings in lists]

    ours = shardings(shardy.run(str(sw.parse(text).propagate())))
    assert ours == shardings(shardy.run(text, "sdy-propagation-pipeline"))
    assert any(any(row) for row in ours)


# ---- groups ---------------------------------------------------------------------------------------------------------


def test_values_of_a_group_have_one_sharding() -> None:
    def f(x: Any, y: Any) -> Any:
        x = sw.split(x, 0, "x")
        assert sw.sharding_group({"x": x, "y": [y, None]})["y"][0] is y
        return y * 2

    program = sw.jit(f, mesh=MESH).lower(X, X).compile()
    assert "sdy.sharding_group" in program.as_text("global")
    assert program.input_shardings[1].spec == P("x", None)
    np.testing.assert_array_equal(program(X, X), X * 2)


def test_groups_are_numbered_by_call_or_by_the_user() -> None:
    def f(a: Any, b: Any, c: Any) -> Any:
        sw.sharding_group((a, b))
        sw.sharding_group(c, 7)
        sw.sharding_group((a + 1, c))
        sw.sharding_group(b, 0)
        return a + b + c

    text = sw.jit(f, mesh=MESH).trace(X, X, X).as_text()
    ids = [int(line.rpartition("group_id=")[2].partition(" ")[0]) for line in text.splitlines() if "group_id" in line]
    assert ids == [0, 0, 7, 8, 8, 0]


@pytest.mark.parametrize(("x", "group_id"), [(X, None), (X, 3), ({"a": 1.0}, 0)])
def test_a_group_outside_of_a_program_is_nothing(x: Any, group_id: Any) -> None:
    assert sw.sharding_group(x, group_id) is x


def test_groups_pass_through_gradients_and_vmap() -> None:
    def loss(x: Any, y: Any) -> Any:
        x = sw.split(x, 0, "x")
        sw.sharding_group((x, y))
        return (x * y).sum()

    gradient = sw.jit(sw.grad(loss), mesh=MESH)(X, X)
    np.testing.assert_array_equal(gradient, X)
    mapped = sw.jit(sw.vmap(loss), mesh=MESH)(X.reshape(2, 4, 4), X.reshape(2, 4, 4))
    np.testing.assert_allclose(mapped, (X * X).reshape(2, -1).sum(1))


def test_groups_agree_with_shardy(shardy: ShardyOracle) -> None:
    def f(a: Any, b: Any, c: Any) -> Any:
        a = sw.split(a, 0, "x")
        sw.sharding_group((a, b))
        d = b @ c.T
        sw.sharding_group((c, a * a), 5)
        return d, a + a

    agrees_with_shardy(sw.jit(f, mesh=MESH).trace(X, X, X).as_text(), shardy)


# ---- barriers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("direction", "forward", "backward"), [("forward", True, False), ("backward", False, True), ("none", False, False)]
)
def test_shardings_pass_a_barrier_in_its_direction(
    direction: str,
    forward: bool,
    backward: bool,
    shardy: ShardyOracle,
) -> None:
    def down(x: Any) -> Any:
        return np.tanh(sw.propagation_barrier({"a": sw.shard(x, P("x", sw.open()))}, direction)["a"])

    def up(x: Any) -> Any:
        return sw.shard(sw.propagation_barrier(np.tanh(x), direction), P("x", sw.open()))

    program = sw.jit(down, mesh=MESH).lower(X).compile()
    assert program.output_shardings.spec == (P("x", None) if forward else P(None, None))
    np.testing.assert_allclose(program(X), np.tanh(X), rtol=1e-6)
    program = sw.jit(up, mesh=MESH).lower(X).compile()
    assert program.input_shardings[0].spec == (P("x", None) if backward else P(None, None))
    np.testing.assert_allclose(program(X), np.tanh(X), rtol=1e-6)
    assert "barrier" in program.as_text("propagated")
    assert "barrier" not in program.as_text("local")
    for f in (down, up):
        agrees_with_shardy(sw.jit(f, mesh=MESH).trace(X).as_text(), shardy)


def test_a_barrier_is_the_identity_for_gradients_vmap_and_plain_arrays() -> None:
    assert sw.propagation_barrier(X, "none") is X
    gradient = sw.jit(sw.grad(lambda x: (sw.propagation_barrier(x, "none") ** 2).sum()), mesh=MESH)
    np.testing.assert_array_equal(gradient(X), 2 * X)
    mapped = sw.jit(sw.vmap(lambda x: sw.propagation_barrier(x, "forward") + 1), mesh=MESH)
    np.testing.assert_array_equal(mapped(X), X + 1)


# ---- manual regions -------------------------------------------------------------------------------------------------


def traced(function: Any, *args: Any, mesh: sw.Mesh = MESH) -> str:
    text: str = sw.jit(function, mesh=mesh).trace(*args).as_text()
    assert str(sw.parse(text)) == text
    return text


def test_a_manual_region_sees_local_shapes_and_is_propagated_through(shardy: ShardyOracle) -> None:
    seen: list[Any] = []

    def part(tree: Any, b: Any) -> Any:
        seen.append((tree["a"].shape, b.shape))
        return {"sum": tree["a"] + b}

    region = sw.manual(part, MESH, ({"a": P("x")}, P("x")), {"sum": P("x")}, axes={"x"})

    def f(x: Any, y: Any) -> Any:
        return region({"a": sw.split(x, 1, "y")}, y)["sum"]

    text = traced(f, X, X)
    assert seen == [((4, 4), (4, 4))]
    assert 'in_shardings=[<@mesh, [{"x", ?}, {?}]>, <@mesh, [{"x", ?}, {?}]>]' in text
    assert 'out_shardings=[<@mesh, [{"x", ?}, {?}]>] manual_axes={"x"}' in text
    propagated = str(sw.parse(text).propagate())
    assert '%arg1: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}' in propagated
    assert shardy.parse(propagated)
    agrees_with_shardy(text, shardy)


def test_all_axes_are_manual_unless_named() -> None:
    f = sw.manual(lambda part: part * 2, MESH, P("x", "y"), P("x", "y"))
    text = traced(f, X)
    assert 'manual_axes={"x", "y"}' in text
    assert 'in_shardings=[<@mesh, [{"x"}, {"y"}]>]' in text
    assert "tensor<4x1xf32>" in text
    same = sw.shard_map(lambda part: part * 2, mesh=MESH, in_specs=P("x", "y"), out_specs=P("x", "y"))
    assert traced(same, X) == text.replace("jit_<lambda>", "jit_<lambda>")
    partial = sw.shard_map(lambda part: part * 2, mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    assert 'manual_axes={"x"}' in traced(partial, X)


def test_specs_may_name_free_axes_behind_manual_ones_and_be_text() -> None:
    f = sw.manual(lambda part: part * 2, None, '[{"x", "y"}, {}]', NamedSharding(MESH, P(None, ("x", "y"))), axes=["x"])
    text = traced(f, X)
    assert 'in_shardings=[<@mesh, [{"x", "y"}, {}]>] out_shardings=[<@mesh, [{?}, {"x", "y", ?}]>]' in text
    assert "-> tensor<8x4xf32>" not in text.partition("manual_computation")[2].partition("sdy.return")[0]
    assert "(tensor<8x4xf32>) -> tensor<4x8xf32>" in text


def test_what_a_region_closes_over_becomes_an_operand() -> None:
    large = np.arange(64, dtype=np.float32).reshape(4, 16)

    def f(x: Any, y: Any) -> Any:
        scaled = y * 2

        def part(p: Any) -> Any:
            return p @ large + scaled.sum(), scaled

        return sw.manual(part, MESH, P("x"), (P("x"), P()), axes={"x"})(x)

    text = traced(f, X, X)
    region = text.partition("sdy.manual_computation(")[2]
    assert region.partition(")")[0].count("%") == 3
    assert region.count("<@mesh, [{?}, {?}]>") == 3
    sw.parse(text).propagate()


def test_transforms_and_reductions_inside_of_a_region_are_recorded_there() -> None:
    def part(p: Any, w: Any) -> Any:
        gradient = sw.grad(lambda w: (np.tanh(p @ w) ** 2).sum())(w)
        rows = sw.vmap(lambda row: row.sum() + w.sum())(p)
        return gradient, rows, np.argmax(p, axis=1)

    f = sw.manual(part, MESH, (P("x"), P()), (P(), P("x"), P("x")), axes={"x"}, check_vma=False)
    text = traced(f, X, X[:4])
    assert text.count("sdy.manual_computation") == 1
    assert "-> (tensor<4x4xf32>, tensor<8xf32>, tensor<8xi64>)" in text.partition("sdy.return")[2]
    sw.parse(text).propagate()


def test_shard_map_is_a_decorator() -> None:
    @sw.shard_map(mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    def double(p: Any) -> Any:
        return p * 2

    assert "tensor<4x4xf32>" in traced(double, X)


def test_regions_nest_on_other_axes() -> None:
    inner = sw.manual(lambda p: p + 1, MESH, P(None, "y"), P(None, "y"), axes={"y"})
    f = sw.manual(lambda p: inner(p) * 2, MESH, P("x"), P("x"), axes={"x"})
    text = traced(f, X)
    assert text.count("sdy.manual_computation") == 2
    assert "tensor<4x1xf32>" in text


@pytest.mark.parametrize("transform", [lambda f: f, sw.grad, sw.vmap], ids=["run", "grad", "vmap"])
@pytest.mark.parametrize("spec", [P(), P("x")], ids=str)
def test_a_manual_region_runs(transform: Any, spec: P) -> None:
    rows = np.stack([X, X + 40, X * X]) if transform is sw.vmap else X
    region = sw.manual(lambda p: p * p * 2, MESH, spec, spec, axes={"x"})
    found = sw.jit(transform(lambda x: (region(x) * x).sum()), mesh=MESH)(rows)
    wanted = sw.jit(transform(lambda x: (x * x * 2 * x).sum()), mesh=MESH)(rows)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(sw.manual(lambda p: p * 2, MESH, P("x"), P("x"))(X), X * 2)


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        (
            {"axes": {"z"}},
            sw.ShardingError,
            "must be of the mesh, and not manual already, got 'z'; use one of 'x'",
        ),
        ({"in_specs": P("z")}, sw.ShardingError, "z"),
        ({"in_specs": (P(), P())}, sw.ShardingError, "in_specs: must be a prefix"),
        ({"out_specs": (P(), P())}, sw.ShardingError, "out_specs: must be a prefix"),
        ({"in_specs": 3}, sw.ShardingError, "in_specs of p: takes P"),
        ({"in_specs": P(("y", "x"))}, sw.ShardingError, "in each dim the manual axes 'x' must come first"),
        (
            {"in_specs": P(None, ("x", "y")), "axes": None, "x": X[:, :3]},
            sw.ShapeError,
            "8 parts, which must divide it",
        ),
        ({"mesh": sw.Mesh({"x": 2})}, sw.MeshError, "must be on the program's mesh"),
        ({"in_specs": NamedSharding(sw.Mesh({"x": 2}), P("x"))}, sw.MeshError, "must be on the program's mesh"),
    ],
)
def test_a_region_that_means_nothing_is_refused(options: dict[str, Any], kind: Any, text: str) -> None:
    x = options.pop("x", X)
    known = {"mesh": None, "in_specs": P("x"), "out_specs": P("x"), "axes": {"x"}, **options}
    with pytest.raises(kind, match=text):
        sw.jit(sw.manual(lambda p: p * 2, **known), mesh=MESH).trace(x)


def test_manual_axes_are_taken_inside() -> None:
    for inside in (lambda p: sw.split(p, 0, "x"), lambda p: sw.shard(p, P(replicated="x"))):
        with pytest.raises(sw.ShardingError, match="must not use an axis of a manual region around it, got 'x'"):
            sw.jit(sw.manual(inside, MESH, P(), P(), axes={"x"}), mesh=MESH).trace(X)
    nested = sw.manual(sw.manual(lambda p: p, MESH, P("x"), P("x"), axes={"x"}), MESH, P(), P(), axes={"x"})
    with pytest.raises(sw.ShardingError, match="not manual already, got 'x'; use one of 'y'"):
        sw.jit(nested, mesh=MESH).trace(X)
    free = sw.manual(lambda p: sw.split(p, 0, "y"), MESH, P("x"), P("x"), axes={"x"})
    assert '<@mesh, [{"y"}, {?}]>' in traced(free, X)


def test_a_function_that_raises_leaves_the_recording_usable() -> None:
    def broken(p: Any) -> Any:
        raise KeyError("broken")

    def f(x: Any) -> Any:
        try:
            sw.manual(broken, MESH, P("x"), P("x"), axes={"x"})(x)
        except KeyError:
            return sw.split(x, 0, "x") + 1
        raise AssertionError

    np.testing.assert_array_equal(sw.jit(f, mesh=MESH)(X), X + 1)


def test_values_of_a_manual_region_have_the_names_of_its_function() -> None:
    def part(tree: Any, *rest: Any) -> Any:
        return tree["a"] + rest[0]

    def f(x: Any) -> Any:
        return sw.manual(part, MESH, P("x"), P("x"), axes={"x"})({"a": sw.split(x, 1, "y")}, x)

    program = sw.jit(f, mesh=MESH).trace(X)
    for name in ("tree['a']", "arg1"):
        (value,) = program.why(name).values
        assert (value.type, value.sharding) == ("tensor<4x4xf32>", '[{"x"}, {"y"}]')
    assert program.why("x").values[0].type == "tensor<8x4xf32>"


def test_a_number_of_partitions_in_a_manual_region_is_of_the_axes_that_are_left() -> None:
    def part(x: Any) -> Any:
        return sw.split(x, 1, 4)

    text = traced(lambda x: sw.manual(part, MESH, P("x"), P("x"), axes={"x"})(x), X)
    assert '[{?}, {"y"}]' in text


def test_shard_map_takes_what_jax_takes() -> None:
    def f(part: Any) -> Any:
        return part + 1

    plain = sw.shard_map(f, mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    assert traced(sw.shard_map(f, mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_vma=False), X) == traced(plain, X)
