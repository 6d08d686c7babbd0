# SPDX-License-Identifier: Apache-2.0
"""Trees that tests save, and what it means that one came back."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import shardwise as sw
from shardwise import P
from shardwise._core import ir

DTYPES = [name for name, _ in ir.dtypes()]


def of_dtype(name: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Numbers of a dtype; floats have infinities and NaN where they exist."""
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    values = np.random.default_rng(seed).integers(0, 4, shape).astype(np.float32) / 2
    if values.size > 3 and name in ("float32", "float64", "bfloat16", "float16"):
        values.reshape(-1)[:3] = np.nan, np.inf, -0.0
    found = values.astype(dtype)
    return found if dtype.kind != "c" else found * dtype.type(1 + 2j)


def bits(x: Any) -> tuple[Any, ...]:
    array = np.asarray(x)
    return array.dtype, array.shape, array.tobytes()


def assert_same(got: Any, want: Any) -> None:
    """Both trees have the same nodes, and leaves of the same classes and bits."""
    assert sw.tree.structure(got) == sw.tree.structure(want)
    for (path, a), b in zip(sw.tree.leaves_with_path(got), sw.tree.leaves(want), strict=True):
        name = sw.tree.keystr(path)
        assert type(a) is type(b), name
        assert bits(a) == bits(b) if hasattr(a, "dtype") else repr(a) == repr(b), name


def assert_shards(array: sw.Array, whole: np.ndarray) -> None:
    """Each device has its part of the whole array, and programs compute with it."""
    assert bits(array) == bits(whole)
    assert all(bits(shard.data) == bits(whole[shard.index]) for shard in array.addressable_shards)


def state(step: int) -> dict[str, Any]:
    """A small state of a training loop: other numbers in each step."""
    mesh = sw.Mesh({"x": 4, "y": 2}, device_ids=[3, 1, 0, 2, 7, 5, 6, 4])
    w = np.arange(13 * 7, dtype=np.float32).reshape(13, 7) + 1000 * step
    return {
        "step": step,
        "rate": 0.1 * step,
        "w": sw.device_put(w, sw.NamedSharding(mesh, P("x", "y"))),
        "m": [sw.device_put(w[:5].astype(sw.bfloat16), sw.NamedSharding(mesh, P(("y", "x")))), None],
        "key": sw.random.fold_in(sw.random.key(0), step),
        "data": w.T,
    }
