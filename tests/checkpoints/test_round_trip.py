# SPDX-License-Identifier: Apache-2.0
"""What is saved comes back: every dtype, every kind of leaf and node, and any name."""

from __future__ import annotations

import json
import zlib
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.checkpoints.trees import DTYPES, assert_same, bits, of_dtype, state
from tests.support.oracles import oracle

Moments = namedtuple("Moments", ["mu", "nu"])


@dataclass
class Layer:
    w: Any
    name: str


def test_a_state_comes_back(tmp_path: Path) -> None:
    sw.save(tmp_path, state(3), step=3)
    assert_same(sw.load(tmp_path), state(3))
    assert_same(sw.load(str(tmp_path), like=state(0)), state(3))
    assert sw.load(tmp_path)["w"].sharding == state(3)["w"].sharding


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_keeps_its_bits(tmp_path: Path, name: str) -> None:
    mesh = sw.Mesh({"x": 3, "y": 2})
    x = of_dtype(name, (5, 4))
    tree = {"n": x, "scalar": x[0, 0], "a": sw.device_put(x, sw.NamedSharding(mesh, P("x", "y"))), "empty": x[:0]}
    sw.save(tmp_path, tree)
    assert_same(sw.load(tmp_path), tree)
    assert_same(sw.load(tmp_path, like=tree), tree)


def test_values_that_are_no_arrays_survive(tmp_path: Path) -> None:
    values = [3, -(2**63), 2**5000, True, False, None, 0.1, -0.0, float("inf"), float("nan"), 5e-324, 1 - 0j]
    tree = {"values": values, "texts": ("", "ä\0\ud800\n", "x" * 10_000), "bytes": b"\0\xff", "empty": [{}, (), []]}
    sw.save(tmp_path, tree)
    assert_same(sw.load(tmp_path), tree)
    assert_same(sw.load(tmp_path, like=tree), tree)


HOSTILE = [
    "../x", "", "a/b", ".", "..", "/etc/passwd", "ü\u202e", "nul\0nul", "\ud800", "x" * 100_000, "manifest.json",
    "blocks-0", "']['a", "con", "a\nb", '"', "\\", " ",
]  # fmt: skip


def test_hostile_names_stay_names(tmp_path: Path) -> None:
    tree = {name: np.full(2, i) for i, name in enumerate(HOSTILE)}
    sw.save(tmp_path / "run", tree)
    assert_same(sw.load(tmp_path / "run"), tree)
    assert_same(sw.load(tmp_path / "run", like=tree), tree)
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert found == ["run", "run/step-0", "run/step-0/blocks-0", "run/step-0/manifest.json"]


def test_keys_of_dicts_keep_their_types(tmp_path: Path) -> None:
    trees: list[dict[Any, Any]] = [{1: 5, 2: 6}, {(1, "a"): 5}, {None: 5}, {True: 5}, {1.5: 5}, {b"k": 5}, {2**70: 5}]
    sw.save(tmp_path, trees)
    assert_same(sw.load(tmp_path), trees)


def test_classes_come_back_with_like_and_as_dicts_without(tmp_path: Path) -> None:
    x = np.arange(3)
    tree = {"m": Moments(x, 2 * x), "l": Layer(x, "dense"), "o": OrderedDict(b=1, a=2)}
    sw.save(tmp_path, tree)
    assert_same(sw.load(tmp_path, like=tree), tree)
    plain = {"m": {"mu": x, "nu": 2 * x}, "l": {"w": x, "name": "dense"}, "o": {"a": 2, "b": 1}}
    assert_same(sw.load(tmp_path), plain)


def test_random_keys_of_jax_and_of_shardwise_survive(tmp_path: Path) -> None:
    jax = oracle("jax")
    tree = {"typed": jax.random.key(7), "many": jax.random.split(jax.random.key(1), 3), "plain": sw.random.key(7)}
    sw.save(tmp_path, tree)
    for loaded in (sw.load(tmp_path), sw.load(tmp_path, like=tree)):
        assert loaded["typed"] == tree["typed"]
        assert jax.random.key_impl(loaded["many"]) == jax.random.key_impl(tree["many"])
        assert bits(jax.random.key_data(loaded["many"])) == bits(jax.random.key_data(tree["many"]))
        assert bits(loaded["plain"]) == bits(tree["plain"])


def test_other_arrays_become_numpy_arrays(tmp_path: Path) -> None:
    jax = oracle("jax")
    x = np.arange(6.0).reshape(2, 3)
    sw.save(tmp_path, [jax.numpy.asarray(x), x.astype(">f8"), np.asfortranarray(x)[:, ::-1]])
    assert_same(sw.load(tmp_path), [x.astype(np.float32), x, x[:, ::-1]])


def test_like_decides_what_a_leaf_becomes(tmp_path: Path) -> None:
    mesh = sw.Mesh({"z": 2})
    x = np.arange(6, dtype=np.int32)
    count = sw.device_put(np.int32(9), mesh)
    sw.save(tmp_path, {"a": sw.device_put(x, mesh), "n": x, "count": count})
    rows = sw.NamedSharding(mesh, P("z"))
    like = {"a": x, "n": sw.device_put(0 * x, rows), "count": 0}
    assert_same(sw.load(tmp_path, like=like), {"a": x, "n": sw.device_put(x, rows), "count": 9})
    shapes = {"a": sw.ShapeDtypeStruct((6,), np.int32, sharding=rows), "n": x[::-1], "count": np.int32(0)}
    loaded = sw.load(tmp_path, like=shapes)
    assert_same(loaded, {"a": sw.device_put(x, rows), "n": x, "count": np.int32(9)})
    assert loaded["a"].sharding == rows
    abstract = {"a": sw.ShapeDtypeStruct((6,), np.int32), "n": sw.ShapeDtypeStruct((6,), np.int32), "count": count}
    assert_same(sw.load(tmp_path, like=abstract), {"a": sw.device_put(x, mesh), "n": x, "count": count})


def test_shapes_of_jax_are_shapes(tmp_path: Path) -> None:
    jax = oracle("jax")
    x = np.arange(6, dtype=np.int32)
    sw.save(tmp_path, {"a": sw.device_put(x, sw.Mesh({"z": 2})), "n": x})
    like = {name: jax.ShapeDtypeStruct((6,), np.int32) for name in "an"}
    assert_same(sw.load(tmp_path, like=like), {"a": sw.device_put(x, sw.Mesh({"z": 2})), "n": x})


def test_an_array_alone_is_a_tree(tmp_path: Path) -> None:
    sw.save(tmp_path, np.arange(3))
    assert_same(sw.load(tmp_path), np.arange(3))
    sw.save(tmp_path, None)
    assert sw.load(tmp_path) is None


def test_the_manifest_is_json(tmp_path: Path) -> None:
    sw.save(tmp_path, {"w": np.arange(3, dtype=np.int8)}, step=2)
    manifest = json.loads((tmp_path / "step-2" / "manifest.json").read_text("ascii"))
    assert manifest["tree"] == {"dict": [["w", 0]]}
    expected = {
        "name": "['w']",
        "kind": "numpy",
        "dtype": "int8",
        "shape": [3],
        "block": [3],
        "blocks": [[0, 0, [zlib.crc32(b"\0\1\2")]]],
    }
    assert manifest["leaves"] == [expected]
    assert (tmp_path / "step-2" / "blocks-0").read_bytes() == b"\0\1\2"
