# SPDX-License-Identifier: Apache-2.0
"""split, shard, replicate and name: what they constrain, and that they are the identity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import NamedSharding, P

MESH = sw.Mesh({"x": 4, "y": 2})
PERMUTED = sw.Mesh({"x": 4, "y": 2}, [3, 1, 4, 0, 7, 5, 2, 6])
X = np.arange(96, dtype=np.float32).reshape(12, 8)


def constraint(annotate: Callable[[Any], Any], x: Any = X, mesh: sw.Mesh = MESH) -> str:
    """The sharding that an annotation writes into the program."""
    f = sw.jit(lambda x: annotate(x) + 1, mesh=mesh)
    np.testing.assert_array_equal(np.asarray(f(x)), x + 1)
    line = next(line for line in f.trace(x).as_text().splitlines() if "sharding_constraint" in line)
    return line.partition("<@mesh, ")[2].partition("> :")[0]


@pytest.mark.parametrize(
    ("dim", "partitions", "mesh", "text"),
    [
        (0, "x", MESH, '[{"x"}, {?}]'),
        (1, "y", MESH, '[{?}, {"y"}]'),
        (-1, "x", MESH, '[{?}, {"x"}]'),
        (-2, ("y", "x"), MESH, '[{"y", "x"}, {?}]'),
        (0, ["x"], MESH, '[{"x"}, {?}]'),
        (0, (), MESH, "[{}, {?}]"),
        (0, sw.sub("x", pre=2, size=2), MESH, '[{"x":(2)2}, {?}]'),
        (0, ("y", sw.sub("x", pre=1, size=2)), MESH, '[{"y", "x":(1)2}, {?}]'),
        (0, 8, MESH, '[{"x", "y"}, {?}]'),
        (0, 4, MESH, '[{"x"}, {?}]'),
        (0, 2, MESH, '[{"x":(1)2}, {?}]'),
        (0, 1, MESH, "[{}, {?}]"),
        (1, np.int64(4), MESH, '[{?}, {"x"}]'),
        (0, 3, sw.Mesh({"d": 6}), None),
        (0, 3, sw.Mesh({"d": 3, "e": 2}), '[{"d"}, {?}]'),
        (0, 6, sw.Mesh({"d": 6}), '[{"d"}, {?}]'),
        (0, 4, PERMUTED, '[{"x"}, {?}]'),
    ],
)
def test_split_closes_one_dim_and_leaves_the_others_open(dim: int, partitions: Any, mesh: Any, text: str) -> None:
    expected = '[{"d":(1)3}, {?}]' if text is None else text
    assert constraint(lambda x: sw.split(x, dim, partitions), mesh=mesh) == expected


@pytest.mark.parametrize(
    ("dim", "partitions", "kind", "text"),
    [
        (2, "x", sw.ShapeError, r"dim must be in \[-2, 2\), got 2"),
        (-3, "x", sw.ShapeError, "dim must be in"),
        (0, "z", sw.ShardingError, "z"),
        (0, ("x", "x"), sw.ShardingError, "x"),
        (0, 3, sw.ShardingError, "must divide the 8 devices"),
        (0, 0, sw.ShardingError, "must divide the 8 devices"),
        (0, True, sw.ShardingError, "a number, an axis name, or a tuple of names"),
        (0, None, sw.ShardingError, "a number, an axis name, or a tuple of names"),
        (0, 2.0, sw.ShardingError, "a number, an axis name, or a tuple of names"),
        (0, (None,), sw.ShardingError, "a number, an axis name, or a tuple of names"),
    ],
)
def test_a_split_that_means_nothing_is_refused(dim: Any, partitions: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        sw.jit(lambda x: sw.split(x, dim, partitions), mesh=MESH)(X)
    with pytest.raises(kind, match=text), sw.set_mesh(MESH):
        sw.split(X, dim, partitions)


@pytest.mark.parametrize(
    ("sharding", "mesh", "text"),
    [
        (P("x"), MESH, '[{"x"}, {}]'),
        (P(), MESH, "[{}, {}]"),
        (P(None, ("y", "x")), MESH, '[{}, {"y", "x"}]'),
        (P(sw.open("x"), sw.open()), MESH, '[{"x", ?}, {?}]'),
        (NamedSharding(MESH, P("y", "x")), MESH, '[{"y"}, {"x"}]'),
        ('[{"x":(1)2, ?}p1, {}], replicated={"y"}', MESH, '[{"x":(1)2, ?}p1, {}], replicated={"y"}'),
        (np.arange(8).reshape(4, 2), MESH, '[{"x"}, {"y"}]'),
        (np.arange(8).reshape(4, 2).tolist(), MESH, '[{"x"}, {"y"}]'),
        (np.arange(8).reshape(4, 2).T, MESH, '[{"y"}, {"x"}]'),
        (np.arange(8).reshape(8, 1), MESH, '[{"x", "y"}, {}]'),
        (np.array(PERMUTED.device_ids).reshape(1, 8), PERMUTED, '[{}, {"x", "y"}]'),
        (np.array(PERMUTED.device_ids).reshape(4, 2).T.reshape(8, 1), PERMUTED, '[{"y", "x"}, {}]'),
    ],
)
def test_shard_takes_specs_shardings_text_and_device_assignments(sharding: Any, mesh: sw.Mesh, text: str) -> None:
    assert constraint(lambda x: sw.shard(x, sharding), mesh=mesh) == text
    if not isinstance(sharding, (np.ndarray, list)):
        assert constraint(lambda x: sw.with_sharding_constraint(x, sharding), mesh=mesh) == text


@pytest.mark.parametrize(
    ("sharding", "kind", "text"),
    [
        (P("z"), sw.ShardingError, "z"),
        (P("x", "x"), sw.ShardingError, "x"),
        (P("x", None, None), sw.ShardingError, "at most 2 entries"),
        ('[{"x"}]', sw.ShardingError, "as many entries"),
        ('[{"x"}', sw.ParseError, "got"),
        (np.arange(8), sw.ShardingError, "integer array of 2 dims, got 1-dim"),
        (np.arange(8.0).reshape(4, 2), sw.ShardingError, "integer array of 2 dims"),
        (np.zeros((4, 2), int), sw.ShardingError, "each device"),
        (None, sw.ShardingError, "takes P"),
        (3, sw.ShardingError, "takes P"),
        (NamedSharding(sw.Mesh({"x": 4}), P("x")), sw.MeshError, "over the 8 devices"),
    ],
)
def test_a_shard_that_means_nothing_is_refused(sharding: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        sw.jit(lambda x: sw.shard(x, sharding), mesh=MESH)(X)
    if kind is sw.MeshError:  # outside a program there is no other one
        return
    with pytest.raises(kind, match=text), sw.set_mesh(MESH):
        sw.shard(X, sharding)


def test_replicate_closes_every_dim() -> None:
    assert constraint(sw.replicate) == "[{}, {}]"
    f = sw.jit(lambda x: sw.replicate(x * 2), mesh=MESH, in_shardings=P("x"))
    assert f(X).sharding == NamedSharding(MESH, P())


def test_annotations_of_a_result_fix_how_devices_hold_it() -> None:
    halves, quarters = (sw.sub("x", pre=pre, size=2) for pre in (1, 2))
    cases: list[tuple[Callable[[Any], Any], P]] = [
        (lambda x: sw.split(x, 1, "y"), P(None, "y")),
        (lambda x: sw.shard(x, P("y", "x")), P("y", "x")),
        (lambda x: sw.shard(x, np.arange(8).reshape(2, 4)), P(halves, (quarters, "y"))),
        (lambda x: sw.split(x, 0, 8), P(("x", "y"))),
    ]
    for annotate, spec in cases:
        y = sw.jit(annotate, mesh=MESH)(X)
        assert y.sharding == NamedSharding(MESH, spec)
        np.testing.assert_array_equal(y, X)


def test_a_device_assignment_is_where_the_tiles_lie() -> None:
    assignment = np.array(PERMUTED.device_ids).reshape(4, 2).T
    y = sw.jit(lambda x: sw.shard(x, assignment), mesh=PERMUTED)(X)
    assert len(y.addressable_shards) == assignment.size
    for shard in y.addressable_shards:
        i, j = (int(k[0]) for k in np.nonzero(assignment == shard.device))
        np.testing.assert_array_equal(shard.data, X[6 * i : 6 * i + 6, 2 * j : 2 * j + 2])


def test_two_meshes_that_differ_by_a_transposition_give_the_same_numbers() -> None:
    transposed = sw.Mesh({"y": 2, "x": 4}, MESH.devices.T)
    results = [sw.jit(lambda x: sw.shard(x @ x.T, P("x", "y")), mesh=mesh)(X) for mesh in (MESH, transposed)]
    tiles = [sorted(r.addressable_shards, key=lambda shard: shard.device) for r in results]
    assert [len(each) for each in tiles] == [8, 8]
    for a, b in zip(*tiles):
        assert (a.device, a.index) == (b.device, b.index)
        np.testing.assert_array_equal(a.data, b.data)


# ---- outside jit ----------------------------------------------------------------------------------------------------

ANNOTATIONS: dict[str, Callable[[Any], Any]] = {
    "replicate": sw.replicate,
    "split": lambda x: sw.split(x, 0, "x"),
    "split by count": lambda x: sw.split(x, 0, 8),
    "shard": lambda x: sw.shard(x, P("y", "x")),
    "shard by text": lambda x: sw.shard(x, '[{"y"}, {}]'),
    "shard by assignment": lambda x: sw.shard(x, np.arange(8).reshape(4, 2)),
    "constraint": lambda x: sw.with_sharding_constraint(x, P("x")),
    "name": lambda x: sw.name(x, "h"),
}


@pytest.mark.parametrize("annotate", ANNOTATIONS.values(), ids=ANNOTATIONS)
@pytest.mark.parametrize("x", [X, 3.0, [1, 2], None], ids=["array", "number", "list", "None"])
def test_annotations_return_what_is_on_no_mesh(annotate: Callable[[Any], Any], x: Any) -> None:
    assert annotate(x) is x
    if isinstance(x, np.ndarray):
        with sw.set_mesh(MESH):
            assert annotate(x) is x


@pytest.mark.parametrize(
    ("annotate", "kind", "text"),
    [
        (lambda x: sw.split(x, 5, "nope"), sw.ShapeError, "dim must be in"),  # with and without a mesh
        (lambda x: sw.logical(x, "a b c"), sw.ShapeError, "an array of 2 dims needs as many names"),
        (lambda x: sw.shard(x, NamedSharding(MESH, P("x", "y", "x"))), sw.ShardingError, "x"),
        (lambda x: sw.shard(x, NamedSharding(MESH, P(None, None, "x"))), sw.ShardingError, "at most 2 entries"),
    ],
)
def test_what_cannot_fit_is_refused_without_a_known_mesh(annotate: Any, kind: type[Exception], text: str) -> None:
    for mesh in (None, MESH, sw.Mesh({"d": 8})):
        with pytest.raises(kind, match=text), sw.set_mesh(mesh):
            annotate(X)


def test_what_is_said_outside_a_program_must_fit_the_known_mesh() -> None:
    objects = np.array([[None, "a"]] * 4)  # of any dtype
    for annotate in (lambda x: sw.shard(x, P("q")), lambda x: sw.with_sharding_constraint({"a": x}, {"a": P("q")})):
        assert annotate(X) is not None  # it is known from no mesh whether there is such an axis
        for x in (X, X[0, 0], objects):
            with pytest.raises(sw.ShardingError, match="q"), sw.set_mesh(MESH):
                annotate(x)
    tree = {"a": X, "b": [X, 3.0]}
    with sw.set_mesh(MESH):
        assert sw.with_sharding_constraint(tree, {"a": P("x"), "b": None}) is tree
        assert sw.shard(objects, P("x")) is objects
        with pytest.raises(sw.ShardingError, match="at most 0 entries"):
            sw.shard(3.0, P("x"))


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("replicate", P()),
        ("split", P("x", "y")),
        ("split by count", P(("x", "y"))),
        ("shard", P("y", "x")),
        ("shard by text", P("y")),
        ("shard by assignment", P("x", "y")),
        ("constraint", P("x")),
        ("name", P(None, "y")),
    ],
)
def test_annotations_reshard_an_array_on_a_mesh(name: str, spec: P) -> None:
    a = ANNOTATIONS[name](sw.device_put(X, NamedSharding(MESH, P(None, "y"))))
    assert a.sharding == NamedSharding(MESH, spec)
    np.testing.assert_array_equal(a, X)


def test_annotations_of_closed_over_arrays_are_not_lost() -> None:
    for closed in (X, sw.device_put(X, MESH)):
        f = sw.jit(lambda x: x + sw.name(sw.shard(closed, P("x")), "w"), mesh=MESH)  # noqa: B023
        program = f.lower(X).compile()
        assert '[{"x"}, {}]' in program.as_text("global")
        assert program.why("w")
        np.testing.assert_array_equal(f(X), X + X)


# ---- use ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in ANNOTATIONS if name != "name"])
def test_an_annotation_whose_result_is_not_used_has_a_warning_with_its_line(name: str) -> None:
    def f(x: Any) -> Any:
        ANNOTATIONS[name](x)
        return x + 1

    with pytest.warns(sw.ShardingWarning, match="its result must be used") as caught:
        np.testing.assert_array_equal(sw.jit(f, mesh=MESH)(X), X + 1)
    [warning] = caught
    assert (warning.filename, warning.lineno) == (__file__, f.__code__.co_firstlineno + 1)


def test_annotations_of_an_empty_or_scalar_array() -> None:
    for x in (np.zeros((0, 8), np.float32), np.zeros((12, 0))):
        np.testing.assert_array_equal(sw.jit(lambda x: sw.split(x, 0, "x") * 2, mesh=MESH)(x), x * 2)
    np.testing.assert_array_equal(sw.jit(lambda x: sw.replicate(x) + 1, mesh=MESH)(1.0), 2.0)
    np.testing.assert_array_equal(sw.jit(lambda x: sw.shard(x, P()) + 1, mesh=MESH)(np.float32(1)), 2.0)


@pytest.mark.parametrize("annotate", ANNOTATIONS.values(), ids=ANNOTATIONS)
def test_gradients_pass_through_annotations(annotate: Callable[[Any], Any]) -> None:
    f = sw.jit(sw.grad(lambda x: (annotate(x) ** 2).sum()), mesh=MESH)
    np.testing.assert_array_equal(f(X), 2 * X)


def test_the_cotangent_of_an_annotation_has_its_constraint() -> None:
    text = sw.jit(sw.grad(lambda x: (sw.shard(x, P("x", "y")) ** 2).sum()), mesh=MESH).trace(X).as_text()
    assert text.count("sharding_constraint") == 2
    assert text.count('<@mesh, [{"x"}, {"y"}]>') == 2


def test_a_name_is_found_by_why_and_must_be_text() -> None:
    program = sw.jit(lambda x: sw.name(x * 2, "twice") + 1, mesh=MESH, in_shardings=P("x")).lower(X).compile()
    assert "twice" in repr(program.why("twice"))
    with pytest.raises(TypeError, match="must be a string"):
        sw.name(X, 3)  # type: ignore[arg-type]


def test_a_number_stays_a_number_that_has_no_dtype_of_its_own() -> None:
    def f(x: Any) -> Any:
        assert sw.replicate(2.0) == 2.0
        return x * sw.shard(2.0, P()) * sw.with_sharding_constraint(np.float32(2), P())

    program = sw.jit(f, mesh=MESH).lower(X.astype(np.float16)).compile()
    assert program.as_text("global").count("sharding_constraint") == 1
    result = program(X.astype(np.float16))
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, X * 4)
    half = sw.jit(lambda x: x * sw.replicate(2.0), mesh=MESH)(X.astype(np.float16))
    assert half.dtype == np.float16
