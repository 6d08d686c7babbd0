# SPDX-License-Identifier: Apache-2.0
"""Trees of arguments and prefix trees of shardings."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any

import pytest

import shardwise as sw
from shardwise import P
from shardwise.trees import broadcast_prefix, flatten, leaf_names, unflatten

Pair = namedtuple("Pair", ["w", "b"])


@pytest.mark.parametrize(
    ("tree", "leaves"),
    [
        (1, [1]),
        (None, []),
        ((1, None, [2, (3,)]), [1, 2, 3]),
        ({"b": 1, "a": 2}, [2, 1]),
        (Pair(1, {"x": 2}), [1, 2]),
        (OrderedDict(b=1, a=2), [1, 2]),
        ((), []),
        (P("x"), [P("x")]),
        ("text", ["text"]),
    ],
)
def test_flatten_and_unflatten_are_inverse(tree: Any, leaves: list[Any]) -> None:
    found, structure = flatten(tree)
    assert found == leaves
    again = unflatten(structure, found)
    assert again == tree
    assert type(again) is type(tree)


def test_leaves_are_named_by_their_path() -> None:
    assert leaf_names({"w": [1, (2,)], "b": None}) == ["['w'][0]", "['w'][1][0]"]
    assert leaf_names(Pair(1, 2)) == [".w", ".b"]
    assert leaf_names(3) == [""]


@pytest.mark.parametrize(
    ("specs", "tree", "expected"),
    [
        (None, (1, 2), [None, None]),
        (P("x"), (1, {"a": 2}), [P("x"), P("x")]),
        ((P("x"), None), (1, (2, 3)), [P("x"), None, None]),
        ((P("x"), P("y")), ([1, 2], 3), [P("x"), P("x"), P("y")]),
        ({"a": P("x"), "b": None}, {"a": (1, 2), "b": 3}, [P("x"), P("x"), None]),
        ((P("x"), P("y")), (None, 2), [P("y")]),
        ('[{"x"}]', (1, 2), ['[{"x"}]', '[{"x"}]']),
    ],
)
def test_a_prefix_tree_says_one_spec_per_leaf(specs: Any, tree: Any, expected: list[Any]) -> None:
    assert broadcast_prefix(specs, tree, "in_shardings") == expected


@pytest.mark.parametrize(
    ("specs", "tree"), [((P("x"),), (1, 2)), ({"a": P("x")}, (1,)), ((P("x"), (P("x"),)), (1, 2)), ([None], (1,))]
)
def test_specs_that_are_no_prefix_are_refused(specs: Any, tree: Any) -> None:
    with pytest.raises(sw.ShardingError, match="in_shardings: must be a prefix"):
        broadcast_prefix(specs, tree, "in_shardings")
