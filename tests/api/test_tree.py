# SPDX-License-Identifier: Apache-2.0
"""``sw.tree``, registered classes, and dataclasses of the user wherever trees are taken."""

from __future__ import annotations

import re
from collections import OrderedDict, namedtuple
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import optree
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"x": 2, "y": 2})
W = np.arange(8.0, dtype=np.float32).reshape(4, 2)
Pair = namedtuple("Pair", ["w", "b"])


@dataclass
class Linear:
    """Nobody registers it: it holds arrays."""

    w: Any
    b: Any
    activation: str = field(default="relu", metadata={"static": True})

    def __call__(self, x: Any) -> Any:
        y = x @ self.w + self.b
        return np.maximum(y, 0) if self.activation == "relu" else y


@dataclass(frozen=True)
class Nested:
    layers: list[Linear]
    scale: Any


@dataclass
class Sizes:
    rows: int
    columns: int


def linear(activation: str = "relu") -> Linear:
    return Linear(W, np.ones(2, np.float32), activation)


# ---- the functions of sw.tree ---------------------------------------------------------------------------------------


def test_leaves_structure_and_back() -> None:
    tree = {"b": (1, None), "a": [2, Pair(3, 4)]}
    leaves, structure = sw.tree.flatten(tree)
    assert leaves == sw.tree.leaves(tree) == [2, 3, 4, 1]
    assert structure == sw.tree.structure(tree)
    assert sw.tree.unflatten(structure, leaves) == tree
    assert sw.tree.leaves(tree, is_leaf=lambda x: isinstance(x, Pair)) == [2, Pair(3, 4), 1]


def test_what_is_leaf_makes_a_leaf_is_not_registered() -> None:
    @dataclass
    class Held:
        w: Any

    tree = [Held(W), OrderedDict(a=1), Held(W)]
    assert sw.tree.leaves(tree, is_leaf=lambda x: not isinstance(x, list)) == tree
    assert len(sw.tree.leaves(tree)) == 3
    assert sw.tree.leaves(tree, is_leaf=lambda x: isinstance(x, Held)) == [tree[0], 1, tree[2]]
    assert sw.tree.leaves_with_path(tree, is_leaf=lambda x: isinstance(x, Held))[2][0] == (sw.tree.SequenceKey(2),)


def test_none_is_no_leaf_and_keys_are_sorted() -> None:
    assert sw.tree.leaves({"b": 1, "a": None, "c": 2}) == [1, 2]
    assert sw.tree.structure({"b": 1, "a": 2}) == sw.tree.structure({"a": 3, "b": 4})
    assert sw.tree.structure(OrderedDict(b=1, a=2)) != sw.tree.structure(OrderedDict(a=2, b=1))


def test_map_takes_several_trees_and_prefixes() -> None:
    assert sw.tree.map(lambda a, b: a * b, {"x": 2, "y": (3, None)}, {"x": 5, "y": (7, None)}) == {
        "x": 10,
        "y": (21, None),
    }
    assert sw.tree.map(lambda a, b: (a, b), [1, 2], [(3, 4), {"k": 5}]) == [(1, (3, 4)), (2, {"k": 5})]


@dataclass
class Layer:
    w: Any
    activation: str = field(default="tanh", metadata={"static": True})


X = np.zeros((8, 6))


@pytest.mark.parametrize(
    ("first", "others", "difference"),
    [
        ([1, 2], ([1],), "a list of 2 where tree 2 has a list of 1"),
        ({"w": X}, ({"w": X}, {"v": X}), "a dict with key 'w' where tree 3 has a dict with key 'v'"),
        ([{"w": X}], ([{}],), "a dict with key 'w' where tree 2 has a dict with no keys, at [0]"),
        ([{"w": (X,)}], ([{"w": X}],), "a tuple of 1 where tree 2 has float64[8, 6], at [0]['w']"),
        ({"w": None}, ({"w": X},), "None where tree 2 has float64[8, 6], at ['w']"),
        (
            [Layer(X)],
            ([Layer(X, "relu")],),
            "Layer with static data ('tanh',) where tree 2 has Layer with static data ('relu',), at [0]",
        ),
        (
            dict.fromkeys("abcdefghi", X),
            (dict.fromkeys("abcdefghix", X),),
            "a dict with keys 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', … where tree 2 has a dict with keys "
            "'x', 'a', 'b', 'c', 'd', 'e', 'f', 'g', …",
        ),
    ],
)
def test_map_names_the_first_place_that_differs(first: Any, others: tuple[Any, ...], difference: str) -> None:
    expected = f"the first tree must be a prefix of the others, got {difference} (at {__file__}:"
    for what, function in (("tree.map", sw.tree.map), ("tree.map_with_path", sw.tree.map_with_path)):
        with pytest.raises(ValueError, match="^" + re.escape(f"{what}: {expected}")):
            function(lambda *leaves: leaves, first, *others)
    with pytest.raises(ValueError, match=r"tree\.broadcast: the first tree must be a prefix of the others, got"):
        sw.tree.broadcast(first, others[-1])


def test_reduce_and_all() -> None:
    assert sw.tree.reduce(lambda a, b: a + b, {"a": "x", "b": ["y", "z"]}) == "xyz"
    assert sw.tree.reduce(lambda a, b: [*a, b], (1, 2), []) == [1, 2]
    assert sw.tree.reduce(lambda a, b: b, [], None) is None
    with pytest.raises(TypeError):
        sw.tree.reduce(lambda a, b: a + b, [])
    assert sw.tree.all({"a": True, "b": [1, None]})
    assert not sw.tree.all([True, 0])


def test_transpose_turns_a_tree_of_trees_inside_out() -> None:
    outer, inner = sw.tree.structure({"a": 0, "b": 0}), sw.tree.structure((0, 0))
    tree = {"a": (1, 2), "b": (3, 4)}
    assert sw.tree.transpose(outer, inner, tree) == ({"a": 1, "b": 3}, {"a": 2, "b": 4})
    assert sw.tree.transpose(outer, None, tree) == ({"a": 1, "b": 3}, {"a": 2, "b": 4})


def test_broadcast_repeats_the_leaves_of_a_prefix() -> None:
    assert sw.tree.broadcast((1, {"k": 2}), ((3, [4]), {"k": (5, 6)})) == ((1, [1]), {"k": (2, 2)})


def test_paths_are_those_of_jax() -> None:
    tree = {"layers": [linear()], "pair": Pair(1, (2,))}
    pairs, structure = sw.tree.flatten_with_path(tree)
    assert [sw.tree.keystr(path) for path, _ in pairs] == [
        "['layers'][0].w",
        "['layers'][0].b",
        "['pair'].w",
        "['pair'].b[0]",
    ]
    assert structure == sw.tree.structure(tree)
    assert pairs[0][0] == (sw.tree.DictKey("layers"), sw.tree.SequenceKey(0), sw.tree.GetAttrKey("w"))
    assert sw.tree.leaves_with_path(tree)[2:] == pairs[2:]
    named = sw.tree.map_with_path(lambda path, x, y: (len(path), x + y), {"a": [1]}, {"a": [10]})
    assert named == {"a": [(2, 11)]}


# ---- registered classes ---------------------------------------------------------------------------------------------


class Stack:
    """Registered with a key for each of its children."""

    def __init__(self, parts: Iterable[Any], name: Any) -> None:
        self.parts, self.name = list(parts), name


sw.register_pytree_node(
    Stack,
    lambda s: (s.parts, s.name),
    lambda name, parts: Stack(parts, name),
    lambda s: ([(sw.tree.DictKey(f"part{i}"), part) for i, part in enumerate(s.parts)], s.name),
)


@sw.register_pytree_node_class
class Box:
    def __init__(self, content: Any) -> None:
        self.content = content

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        return (self.content,), None

    @classmethod
    def tree_unflatten(cls, static: None, children: Iterable[Any]) -> Box:
        return cls(*children)


def test_registered_classes_go_through_jit() -> None:
    def f(stack: Stack, box: Box) -> tuple[Stack, Box]:
        assert stack.name == "s"
        return Stack([part * 2 for part in stack.parts], stack.name), Box({"k": box.content["k"] + 1})

    stack, box = sw.jit(f, mesh=MESH)(Stack([W, W + 1], "s"), Box({"k": W}))
    assert (type(stack), stack.name, type(box)) == (Stack, "s", Box)
    np.testing.assert_array_equal(stack.parts[1], 2 * W + 2)
    np.testing.assert_array_equal(box.content["k"], W + 1)


def test_children_are_named_by_their_keys_or_their_index() -> None:
    assert sw.tree.keystr(sw.tree.leaves_with_path(Stack([1, 2], ""))[1][0]) == "['part1']"
    assert sw.tree.keystr(sw.tree.leaves_with_path([Box(1)])[0][0]) == "[0][<flat index 0>]"
    with pytest.raises(sw.DTypeError, match=r"argument stack\['part1'\] must be an array of numbers, got str 'a'"):
        sw.jit(lambda stack: stack.parts[0], mesh=MESH)(Stack([W, "a"], ""))


def test_a_class_of_optree_is_a_node() -> None:
    class Cell:
        def __init__(self, value: Any) -> None:
            self.value = value

    optree.register_pytree_node(
        Cell, lambda c: ((c.value,), None), lambda _, xs: Cell(*xs), namespace=optree.registry.__GLOBAL_NAMESPACE
    )
    np.testing.assert_array_equal(sw.jit(lambda c: Cell(c.value + 1), mesh=MESH)(Cell(W)).value, W + 1)


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0.0, -0.0), ((1,), (1.0,)), ("a", "b")])
def test_programs_differ_by_static_data_and_its_type(one: Any, other: Any) -> None:
    seen = []
    f = sw.jit(lambda stack: seen.append(stack.name) or stack.parts[0] * 2, mesh=MESH)
    for name in (one, other, one, other):
        f(Stack([W], name))
    assert list(map(repr, seen)) == list(map(repr, (one, other)))
    assert sw.tree.structure(Stack([W], one)) != sw.tree.structure(Stack([W], other))


def test_register_dataclass_takes_fields_as_jax() -> None:
    @dataclass
    class Layer:
        w: Any
        name: str
        cache: Any = None

    assert sw.register_dataclass(Layer, ["w"], ["name"], ["cache"]) is Layer
    leaves, structure = sw.tree.flatten(Layer(1, "n", "dropped"))
    assert leaves == [1]
    assert sw.tree.unflatten(structure, [2]) == Layer(2, "n", None)


def test_register_dataclass_is_a_decorator_with_and_without_arguments() -> None:
    @sw.register_dataclass
    @dataclass
    class Line:
        slope: float
        unit: str = field(default="m", metadata={"static": True})

    @sw.register_dataclass(data_fields=["w"], meta_fields=["n"])
    @dataclass
    class Power:
        w: Any
        n: int

    assert sw.tree.leaves((Line(2.0), Power(3, 4))) == [2.0, 3]
    result = sw.jit(lambda line, p: Line(line.slope + p.w**p.n), mesh=MESH)(Line(2.0), Power(np.float64(3), 4))
    assert (float(result.slope), result.unit) == (83.0, "m")


# ---- dataclasses that nobody registers ------------------------------------------------------------------------------


def test_a_dataclass_that_holds_arrays_is_a_tree() -> None:
    f = sw.jit(lambda model, x: (model(x), model), mesh=MESH)
    for activation in ("relu", "none"):
        y, model = f(linear(activation), -W[:, :1] @ np.ones((1, 4), np.float32))
        expected = -W[:, :1] @ np.ones((1, 4), np.float32) @ W + 1
        np.testing.assert_array_equal(y, np.maximum(expected, 0) if activation == "relu" else expected)
        assert (type(model), model.activation, type(model.w)) == (Linear, activation, sw.Array)


def test_dataclasses_nest_in_dataclasses() -> None:
    model = Nested([linear(), linear("none")], 2.0)
    doubled = sw.jit(lambda m: sw.tree.map(lambda x: x * m.scale, m), mesh=MESH)(model)
    assert type(doubled) is Nested
    np.testing.assert_array_equal(doubled.layers[1].w, 2 * W)
    assert float(doubled.scale) == 4.0


def test_a_dataclass_is_made_only_in_the_function() -> None:
    @dataclass
    class State:
        total: Any
        count: Any

    state = sw.jit(lambda x: State(x.sum(), {"n": 3}), mesh=MESH)(W)
    assert (type(state), float(state.total), int(state.count["n"])) == (State, 28.0, 3)


def test_gradients_of_a_dataclass_are_one() -> None:
    def loss(model: Linear, x: Any) -> Any:
        return (model(x) ** 2).sum()

    x = np.ones((3, 4), np.float32)
    with sw.set_mesh(MESH):
        gradient = sw.grad(loss)(linear(), x)
        inside = sw.jit(sw.grad(loss))(linear(), x)
    y = x @ W + 1
    for found in (gradient, inside):
        assert (type(found), found.activation) == (Linear, "relu")
        np.testing.assert_array_equal(found.w, x.T @ (2 * y))
        np.testing.assert_array_equal(found.b, (2 * y).sum(0))


def test_a_dataclass_without_arrays_stays_static_in_a_gradient() -> None:
    def loss(x: Any, sizes: Sizes) -> Any:
        return sum(x[i].sum() for i in range(sizes.rows)) * sizes.columns

    with sw.set_mesh(MESH):
        np.testing.assert_array_equal(sw.grad(loss)(W, Sizes(2, 3)), [[3, 3], [3, 3], [0, 0], [0, 0]])
    static = sw.jit(loss, mesh=MESH, static_argnums=1)
    with pytest.raises(TypeError, match=r"jit: static arguments must be hashable, got unhashable type: 'Sizes'"):
        static(W, Sizes(2, 3))


def test_axes_of_vmap_are_a_dataclass() -> None:
    axes = Linear(0, None, "none")
    models = Linear(np.stack([W, 2 * W]), np.zeros(2, np.float32), "none")
    mapped = sw.vmap(lambda model, x: model(x), in_axes=(axes, None))
    y = sw.jit(mapped, mesh=MESH)(models, np.ones(4, np.float32))
    np.testing.assert_array_equal(y, [W.sum(0), 2 * W.sum(0)])


def test_shardings_are_a_dataclass_or_a_prefix() -> None:
    specs = Linear(P("x", "y"), P("y"))
    f = sw.jit(lambda m, x: m, mesh=MESH, in_shardings=(specs, None), out_shardings=specs)
    out = f(linear(), W)
    assert (out.w.sharding.spec, out.b.sharding.spec) == (P("x", "y"), P("y"))
    named = sw.tree.map(lambda spec: sw.NamedSharding(MESH, spec), specs)
    assert sw.jit(lambda m: m, in_shardings=(named,))(linear()).w.sharding.spec == P("x", "y")
    placed = sw.device_put(linear(), named)
    assert (type(placed), placed.b.sharding.spec) == (Linear, P("y"))
    whole = sw.jit(lambda m: sw.with_sharding_constraint(m, P("x")), mesh=MESH)(linear())
    assert (whole.w.sharding.spec, whole.b.sharding.spec) == (P("x", None), P("x"))


def test_a_later_registration_replaces_the_automatic_one() -> None:
    @dataclass
    class Model:
        w: Any
        n: int = 2

    assert sw.tree.leaves(Model(W, 3))[1] == 3
    sw.register_dataclass(Model, ["w"], ["n"])
    assert len(sw.tree.leaves(Model(W, 3))) == 1
    with pytest.raises(ValueError, match=r"register_dataclass: a class must be registered once, got .*Model again"):
        sw.register_dataclass(Model, ["w"], ["n"])


def test_a_dataclass_with_a_computed_field_is_registered_by_its_user() -> None:
    @dataclass
    class Normed:
        w: Any
        norm: Any = field(init=False)

        def __post_init__(self) -> None:
            self.norm = (self.w * self.w).sum()

    with pytest.raises(sw.DTypeError, match=r"argument m must be an array of numbers, got .*@sw\.register_dataclass"):
        sw.jit(lambda m: m.norm, mesh=MESH)(Normed(W))
    sw.register_dataclass(Normed, drop_fields=["norm"])
    assert float(sw.jit(lambda m: Normed(m.w + 1).norm, mesh=MESH)(Normed(W))) == ((W + 1) ** 2).sum()


def test_types_in_a_dataclass_are_no_arrays() -> None:
    @dataclass
    class Config:
        dtype: Any

    assert sw.tree.leaves(Config(np.float32)) == [Config(np.float32)]
