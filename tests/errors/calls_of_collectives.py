# SPDX-License-Identifier: Apache-2.0
"""Calls of the collectives of sw.lax in a region, with an argument of another type, as rows of test_called_names.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import shardwise as sw

lax: Any = sw.lax
WRONG: dict[str, Any] = {
    "none": None, "text": "word", "words": ["a"], "float": 1.5, "list": [1.5], "dict": {"a": 1}, "integer": 7,
    "object": object(), "ragged": [[0], [1, 2]],
}  # fmt: skip
NO_ARRAYS = ("text", "words", "object")
NO_NAMES = ("none", "text", "words", "float", "list", "dict", "integer", "object", "ragged")
NO_GROUPS = ("text", "words", "float", "list", "dict", "integer", "object", "ragged")
NO_DIM = ("none", "text", "words", "float", "list", "dict", "integer", "object", "ragged")
NO_FLAG = NO_DIM
NO_PERMUTATION = ("none", "text", "words", "float", "list", "dict", "integer", "object", "ragged")

REDUCTIONS = ("psum", "pmean", "pmax", "pmin")
FAULTS = {
    "x": NO_ARRAYS, "axis_name": NO_NAMES, "axis_index_groups": NO_GROUPS, "axis": NO_DIM, "scatter_dimension": NO_DIM,
    "split_axis": NO_DIM, "concat_axis": NO_DIM, "tiled": NO_FLAG, "perm": NO_PERMUTATION,
}  # fmt: skip
DIMS = {"split_axis": 0, "concat_axis": 0}
CALLS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    **{name: ({}, ("x", "axis_name", "axis_index_groups")) for name in REDUCTIONS},
    "all_gather": ({}, ("x", "axis_name", "axis_index_groups", "axis", "tiled")),
    "psum_scatter": ({"tiled": True}, ("x", "axis_name", "axis_index_groups", "scatter_dimension", "tiled")),
    "all_to_all": (
        {**DIMS, "tiled": True},
        ("x", "axis_name", "split_axis", "concat_axis", "axis_index_groups", "tiled"),
    ),
    "ppermute": ({"perm": [(0, 1)]}, ("x", "axis_name", "perm")),
    "pshuffle": ({"perm": [1, 0]}, ("x", "axis_name", "perm")),
    "axis_index": ({}, ("axis_name",)),
    "axis_size": ({}, ("axis_name",)),
}


def calls_of_collectives() -> Iterator[tuple[str, str, str, Callable[[Any], Any]]]:
    """Name of the function, fault, parameter, and a function of the shard of a device of an axis "x" of two."""
    for name, (good, parameters) in CALLS.items():
        for parameter in parameters:
            for fault in FAULTS[parameter]:
                given = {"axis_name": "x", **good, parameter: WRONG[fault]}
                yield f"lax.{name}", f"{parameter}-{fault}", parameter, partial(_called, name, given)


def _called(name: str, given: dict[str, Any], x: Any) -> Any:
    arguments = given if name.startswith("axis_") else {"x": x, **given}
    getattr(lax, name)(**arguments)
    return x


def spelled_in_lax() -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Calls of the control flow of sw.lax, which `shardwise` has, too: the name is the one that was called."""
    x = np.ones((4, 2), np.float32)
    yield "lax.scan", "type", partial(lax.scan, 3, 0.0, x)
    yield "lax.scan", "result", partial(lax.scan, lambda c, row: c, 0.0, x)
    yield "lax.scan", "missing", partial(lax.scan)
    yield "lax.scan", "reverse", partial(lax.scan, lambda c, row: (c, row), 0.0, x, reverse="word")
    yield "lax.scan", "in-scan", partial(sw.scan, lambda c, row: lax.scan(3, c, row), 0.0, x)
    yield "scan", "in-lax.scan", partial(lax.scan, lambda c, row: sw.scan(3, c, row), 0.0, x)  # type: ignore[arg-type]
    yield "lax.map", "type", partial(lax.map, 3, x)
    yield "lax.cond", "type", partial(lax.cond, True, 3, 3)
    yield "lax.cond", "predicate", partial(lax.cond, x, np.sin, np.cos, x)
    yield "lax.switch", "type", partial(lax.switch, 0, 3)
    yield "lax.while_loop", "type", partial(lax.while_loop, 3, 3, x)
    yield "lax.fori_loop", "bounds", partial(lax.fori_loop, 0.5, 1, lambda i, c: c, x)
    yield "lax.associative_scan", "type", partial(lax.associative_scan, 3, x)
    yield "lax.associative_scan", "reverse", partial(lax.associative_scan, np.add, x, reverse=3)
    yield "lax.associative_scan", "axis", partial(lax.associative_scan, np.add, x, axis=3)
