# SPDX-License-Identifier: Apache-2.0
"""``Program.memory``: what fits, what buffers are for, and memory over a run."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.estimate.training_steps import Step

H100, TPU = sw.hardware.load("h100_sxm"), sw.hardware.load("tpu_v5p")


def _adam_step(limit: Any = None) -> Any:
    def step(w: Any, m: Any, v: Any, x: Any) -> Any:
        gradient = sw.grad(lambda w: (np.dot(np.tanh(np.dot(x, w)), w.T) ** 2).sum())(w)
        m = 0.9 * m + 0.1 * gradient
        v = 0.99 * v + 0.01 * gradient**2
        return w - 0.001 * m / (np.sqrt(v) + 1e-8), m, v

    square = sw.ShapeDtypeStruct((1024, 1024), np.float32)
    jitted = sw.jit(
        step,
        mesh=sw.Mesh({"d": 8}),
        in_shardings=(P("d"),) * 4,
        out_shardings=(P("d"),) * 3,
        donate_argnums=(0, 1, 2),
    )
    return (
        jitted.lower(square, square, square, sw.ShapeDtypeStruct((4096, 1024), np.float32))
        .compile()
        .memory(limit=limit)
    )


def test_categories_of_a_training_step() -> None:
    memory = _adam_step()
    sizes = {row.key[0]: row.bytes for row in memory.group_by("category")}
    shard = 4 * 1024 * 1024 / 8
    assert (sizes["weights"], sizes["optimizer state"], sizes["inputs"]) == (shard, 2 * shard, 4 * shard)
    assert sizes["gathered"] >= 8 * shard
    assert sizes["activations"] > 0
    assert sum(sizes.values()) == memory.peak_bytes


def test_gradients_are_what_an_update_reads() -> None:
    def step(weights: Any, gradients_of: Any) -> Any:
        return [w - np.dot(gradients_of.T, gradients_of) * i for i, w in enumerate(weights)]

    square = sw.ShapeDtypeStruct((512, 512), np.float32)
    program = sw.jit(step, mesh=sw.Mesh({"d": 1}), donate_argnums=(0,)).lower([square] * 3, square).compile()
    memory = program.memory()
    # The products are read by nothing but elementwise ops: the arguments that they change are no weights of a product.
    assert {row.category for row in memory if row.op == "argument"} == {"optimizer state", "inputs"}
    assert {row.category for row in memory if row.op == "dot_general"} == {"gradients"}


def test_arguments_of_a_program_that_updates_none() -> None:
    def layer(w: Any, x: Any) -> Any:
        return x + np.dot(np.tanh(x), w)

    w, x = sw.ShapeDtypeStruct((1024, 1024), np.float32), sw.ShapeDtypeStruct((64, 1024), np.float32)
    memory = sw.jit(layer, mesh=sw.Mesh({"d": 2})).lower(w, x).compile().memory()
    assert {row.category for row in memory if row.op == "argument"} == {"arguments"}


@pytest.mark.parametrize(
    ("limit", "size"),
    [
        ("80GB", 80e9), ("16 GiB", 2**34), ("512MiB", 2**29), ("1.5k", 1500), ("7b", 7), (12345, 12345), (1e6, 10**6),
        ("h100_sxm", H100.memory_bytes - H100.reserved_bytes),
        (TPU, TPU.memory_bytes - TPU.reserved_bytes),
    ],
)  # fmt: skip
def test_limits(limit: Any, size: float) -> None:
    memory = _adam_step(limit)
    assert memory.limit == size
    assert memory.fits == (memory.peak_bytes <= size)
    assert ("fits in" in memory.summary()) == memory.fits
    assert ("too much for" in memory.summary()) != memory.fits
    assert json.loads(memory.to_json())["limit"] == size
    assert memory.largest(2).limit == size


@pytest.mark.parametrize("limit", ["80XB", "", "GB", "-3GB", object()])
def test_wrong_limits(limit: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=r"memory: (a limit of memory|limit|hardware) must be") as caught:
        _adam_step(limit)
    assert not isinstance(caught.value, sw.Error)  # no error of a sharding


def test_a_limit_is_of_one_device() -> None:
    program = Step(layers=1, width=64, hidden=64, tokens=512).compile()
    with pytest.raises(ValueError, match=r"memory: limit is of one device, and virtual=True of all, got '80GB'"):
        program.memory(virtual=True, limit="80GB")
    assert program.memory(limit=np.int64(10**9)).fits
    assert not program.memory(limit=np.float32(1)).fits


@pytest.mark.parametrize("count", [-1, 1.5, "2", True])
def test_the_largest_values_are_a_number_of_them(count: Any) -> None:
    with pytest.raises(TypeError, match="largest: count must be an integer of at least 0, got"):
        _adam_step("80GB").largest(count)


@pytest.mark.parametrize("limit", [-1, float("nan"), float("inf")])
def test_limits_that_are_no_size(limit: Any) -> None:
    with pytest.raises(ValueError, match="memory: limit must be"):
        _adam_step(limit)


def test_without_a_limit_nothing_is_known_to_fit() -> None:
    memory = _adam_step()
    assert memory.fits is None
    assert memory.limit is None


def test_timeline_reaches_the_peak() -> None:
    memory = Step(layers=6, width=256, hidden=512, tokens=2048, is_scanned=False).compile().memory(limit="1MB")
    timeline = memory.timeline()
    assert max(row.bytes for row in timeline) == memory.peak_bytes
    assert min(row.bytes for row in timeline) > 0
    assert timeline[-1].bytes >= memory.result_bytes
    assert "training_steps.py" in timeline.summary()
    assert repr(timeline).splitlines()[-1] == timeline.summary()
    picture = timeline._repr_html_()
    assert picture.startswith("<svg")
    assert "limit 976.6 KiB" in picture
    assert len(json.loads(timeline.to_json())["moments"]) == len(timeline)


def test_a_long_timeline_is_thinned_and_keeps_the_peak() -> None:
    memory = Step(layers=400, width=64, hidden=64, tokens=512, is_scanned=False).compile().memory()
    timeline = memory.timeline()
    assert 1000 < len(timeline) <= 2049
    assert max(row.bytes for row in timeline) == memory.peak_bytes
    assert len(timeline._repr_html_()) < 200_000
