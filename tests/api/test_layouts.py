# SPDX-License-Identifier: Apache-2.0
"""Named dims and layout rules: what they constrain, Mesh-TensorFlow's presets and its rule of legal layouts."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import shardwise as sw
from shardwise import NamedSharding, P, layouts
from shardwise.layouts import Layout, current_layout

MESH = sw.Mesh({"data": 4, "model": 2})
X = np.arange(64, dtype=np.float32).reshape(8, 8)


def spec_under(rules: Any, names: Any, x: Any = X, mesh: sw.Mesh = MESH) -> Any:
    """The spec that a value named `names` gets."""
    f = sw.jit(lambda x: sw.logical(x, names), mesh=mesh)
    with sw.axis_rules(rules):
        found = f(x)
    np.testing.assert_array_equal(found, x)
    return found.sharding.spec


@pytest.mark.parametrize(
    ("rules", "names", "spec"),
    [
        ({"batch": "data", "hidden": "model"}, "batch hidden", P("data", "model")),
        ({"batch": "data"}, "batch hidden", P("data", None)),
        ({"batch": ("data", "model")}, ("batch", "hidden"), P(("data", "model"), None)),
        ({"batch": ["model", "data"]}, "hidden batch", P(None, ("model", "data"))),
        ({"batch": None}, "batch _", P(None, None)),
        ({"batch": sw.sub("data", pre=2, size=2)}, ("batch", None), P(sw.sub("data", pre=2, size=2), None)),
        (
            {"a": sw.sub("data", pre=1, size=2), "b": sw.sub("data", pre=2, size=2)},
            "b a",
            P(sw.sub("data", pre=2, size=2), sw.sub("data", pre=1, size=2)),
        ),
        ([("batch", "data"), ("hidden", None)], "batch hidden", P("data", None)),
        ("batch:data;hidden:model", "hidden batch", P("model", "data")),
        (" batch : data ; ", "batch hidden", P("data", None)),
        ({}, "batch hidden", P(None, None)),
        ({"unused": "nowhere"}, "batch hidden", P(None, None)),
    ],
)
def test_rules_put_named_dims_on_axes(rules: Any, names: Any, spec: P) -> None:
    assert spec_under(rules, names) == spec


def test_names_without_rules_say_nothing() -> None:
    f = sw.jit(lambda x: sw.logical(x, "batch hidden") + 1, mesh=MESH)
    assert "sharding_constraint" not in f.trace(X).as_text()
    assert sw.logical(X, "batch hidden") is X


def test_an_array_is_resharded_by_its_names() -> None:
    placed = sw.device_put(X, NamedSharding(MESH, P(None, "data")))
    with sw.axis_rules({"batch": "data"}):
        assert sw.logical(placed, "batch hidden").sharding == NamedSharding(MESH, P("data", None))
    assert sw.logical(placed, "batch hidden").sharding == placed.sharding


def test_a_function_is_recorded_anew_under_other_rules() -> None:
    f = sw.jit(lambda x: sw.logical(x, "batch hidden"), mesh=MESH)
    for rules, spec in (({"batch": "data"}, P("data", None)), ({"hidden": "data"}, P(None, "data"))) * 2:
        with sw.axis_rules(rules):
            assert f(X).sharding.spec == spec
    assert f(X).sharding.spec == P(None, None)
    gradient = sw.jit(sw.grad(lambda x: (sw.logical(x, "batch hidden") ** 2).sum()), mesh=MESH)
    for rules, spec in (({"batch": "data"}, P("data", None)), ({"hidden": "data"}, P(None, "data"))):
        with sw.axis_rules(rules):
            assert gradient(X).sharding.spec == spec


def test_an_inner_layout_replaces_an_outer_one_in_its_thread() -> None:
    seen: list[Any] = []
    with sw.axis_rules({"a": "data"}) as outer:
        with sw.axis_rules({"b": "model"}) as inner:
            assert current_layout() is inner
            assert inner.axes("a") == ()
        assert current_layout() is outer
        thread = threading.Thread(target=lambda: seen.append(current_layout()))
        thread.start()
        thread.join()
    assert seen == [None]
    assert current_layout() is None
    rules = sw.axis_rules({"a": "data"})
    with rules, rules:
        assert current_layout() == Layout({"a": "data"})
    assert current_layout() is None


# ---- names without a rule -------------------------------------------------------------------------------------------


def warned(rules: Any, names: str) -> list[str]:
    """What sw.logical warns of, each with its line."""
    with warnings.catch_warnings(record=True) as caught, sw.axis_rules(rules):
        warnings.simplefilter("always")
        f = sw.jit(lambda x: sw.logical(x, names), mesh=MESH)
        f(X)
    assert all(one.category is sw.ShardingWarning and one.filename == __file__ for one in caught)
    assert {one.lineno for one in caught} <= {f.__wrapped__.__code__.co_firstlineno}
    return [str(one.message) for one in caught]


def test_a_name_without_a_rule_is_warned_of_at_the_users_line() -> None:
    assert warned({"batch": "data", "hidden": "model"}, "bacth hidden") == [
        "logical: a dim without a rule is left unsharded, got 'bacth'; did you mean 'batch'? "
        "The rule {'bacth': None} states that it is unsharded"
    ]
    assert warned("batch:data", "batch length") == [
        "logical: a dim without a rule is left unsharded, got 'length'; the rules are for 'batch'. "
        "The rule {'length': None} states that it is unsharded"
    ]


@pytest.mark.parametrize(
    ("rules", "names"),
    [
        ({"batch": "data", "hidden": None}, "batch hidden"),
        ({"batch": "data"}, "batch _"),
        ({}, "batch hidden"),
        (layouts.data_parallel, "batch hidden"),
        (layouts.both, "length d_model"),
        (layouts.both(data="model", model="data"), "batch d_model"),
        (Layout({"batch": "data"}, others_unsharded=True), "batch anything"),
    ],
)
def test_what_is_stated_to_be_unsharded_is_not_warned_of(rules: Any, names: str) -> None:
    assert warned(rules, names) == []


def test_a_preset_knows_its_own_names_from_slips() -> None:
    assert len(warned(layouts.data_parallel, "bacth hidden")) == 1
    assert len(warned(layouts.both, "hiden batch")) == 1


# ---- presets --------------------------------------------------------------------------------------------------------


def feed_forward(x: Any, w1: Any, w2: Any) -> Any:
    x = sw.logical(x, "batch d_model")
    w1, w2 = sw.logical(w1, "d_model d_ff"), sw.logical(w2, "d_ff d_model")
    h = sw.logical(np.maximum(x @ w1, 0), "batch d_ff")
    return sw.logical(h @ w2, "batch d_model")


@pytest.mark.parametrize(
    ("layout", "specs", "kinds"),
    [
        (layouts.data_parallel, (P("data", None), P(None, None), P(None, None)), []),
        (layouts.model_parallel, (P(None, None), P(None, "model"), P("model", None)), ["all_reduce"]),
        (layouts.both, (P("data", None), P(None, "model"), P("model", None)), ["all_reduce"]),
    ],
    ids=["data", "model", "both"],
)
def test_presets_are_the_layouts_of_mesh_tensorflow(layout: Layout, specs: Any, kinds: list[str]) -> None:
    rng = np.random.default_rng(0)
    x, w1, w2 = (rng.standard_normal(shape).astype(np.float32) for shape in ((8, 4), (4, 16), (16, 4)))
    with sw.axis_rules(layout):
        program = sw.jit(feed_forward, mesh=MESH).lower(x, w1, w2).compile()
    assert tuple(sharding.spec for sharding in program.input_shardings) == specs
    assert program.output_shardings.spec == specs[0]
    assert [row.kind.rpartition(".")[2] for row in program.collectives()] == kinds
    np.testing.assert_allclose(np.asarray(program(x, w1, w2)), np.maximum(x @ w1, 0) @ w2, rtol=1e-5, atol=1e-5)


def test_axes_of_a_preset_can_be_renamed() -> None:
    assert layouts.data_parallel(data="all") == Layout({"batch": "all"})
    renamed = layouts.both(data="rows", model="columns")
    assert (renamed["batch"], renamed["heads"]) == ("rows", "columns")
    assert layouts.both["heads"] == "model"
    assert dict(layouts.both) == {**layouts.data_parallel, **layouts.model_parallel}


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from([None, "x", "y", ("x", "y"), ("y", "x")])))
def test_layouts_are_mappings_by_value(rules: dict[str, Any]) -> None:
    layout = Layout(rules)
    assert layout == Layout(list(rules.items()))
    assert hash(layout) == hash(Layout(dict(reversed(rules.items()))))
    assert dict(layout) == rules
    assert eval(repr(layout), {"Layout": Layout}) == layout
    for name, axes in rules.items():
        assert layout.axes(name) == (() if axes is None else axes if isinstance(axes, tuple) else (axes,))


# ---- legality -------------------------------------------------------------------------------------------------------


@given(
    st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from([None, "data", "model", ("data", "model")])),
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=2, max_size=2),
)
def test_a_layout_is_legal_exactly_when_no_axis_has_two_dims(rules: dict[str, Any], names: list[str]) -> None:
    layout = Layout(rules)
    axes = [axis for name in names for axis in layout.axes(name)]
    legal = len(set(axes)) == len(axes) and names[0] != names[1]
    if legal:
        assert spec_under(layout, names) == P(*map(layout.axes, names))
    else:
        with pytest.raises(sw.ShardingError, match=r"logical: (two dims|the dims) of a tensor must"):
            spec_under(layout, names)


@pytest.mark.parametrize(
    ("rules", "names", "text"),
    [
        ({"a": "data", "b": "data"}, "a b", "different mesh axes, got 'a' and 'b' both on 'data'; change the rule"),
        ({"a": ("model", "data"), "b": "data"}, "b a", "'b' and 'a' both on 'data'"),
        ({"a": sw.sub("data", pre=1, size=2), "b": "data"}, "a b", "'a' and 'b' both on 'data'"),
        (
            {"a": "rows"},
            "a b",
            r"axis of Mesh\('data': 4, 'model': 2\), got 'a': 'rows'; use one of 'data', 'model', or",
        ),
        ({"a": "data"}, "a a", "different names, got 'a' twice"),
        ({"b": "data"}, "a a", "different names, got 'a' twice"),
    ],
)
def test_an_illegal_layout_is_an_error_that_names_the_dims(rules: Any, names: str, text: str) -> None:
    with pytest.raises(sw.ShardingError, match=text):
        spec_under(rules, names)


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ({"a b": "data"}, "the name of a dim must be an identifier, got 'a b'"),
        ({3: "data"}, "the name of a dim must be an identifier, got 3"),
        ([("a", "data"), ("a", "model")], "a dim must have one rule, got 'a' again"),
        ({"a": 3}, "a rule must name an axis, several or None, got 'a': 3"),
        ([("a",)], "takes a mapping, pairs of names and axes, or text"),
        (3, "takes a mapping, pairs of names and axes, or text"),
    ],
)
def test_what_is_no_layout_is_refused(rules: Any, text: str) -> None:
    with pytest.raises(sw.ShardingError, match=text):
        sw.axis_rules(rules)


@pytest.mark.parametrize("names", ["batch", "a b c", ()])
def test_there_is_a_name_for_each_dim(names: Any) -> None:
    with pytest.raises(sw.ShapeError, match="logical: an array of 2 dims needs as many names"):
        sw.jit(lambda x: sw.logical(x, names), mesh=MESH)(X)


def test_names_without_rules_have_one_warning() -> None:
    jitted = sw.jit(lambda x: sw.logical(x, "batch hidden") * 2, mesh=MESH)
    text = "logical: a dim is left unsharded without rules, got 'batch hidden'; "
    with pytest.warns(sw.ShardingWarning, match=text) as caught:
        np.testing.assert_array_equal(jitted(X), np.asarray(jitted(X)))
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sw.logical(X, "batch hidden")
        sw.jit(lambda x: sw.logical(x, "batch hidden") * 2, mesh=sw.Mesh({"data": 1}))(X)
        with sw.axis_rules({"batch": None, "hidden": None}):
            jitted(X)
