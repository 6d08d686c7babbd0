# SPDX-License-Identifier: Apache-2.0
"""The layouts of real weights: what they store beside merges of leading dims, and the bytes of a convolution."""

from __future__ import annotations

from math import ceil, prod
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

from .update_models import step_of

SGD = sw.optim.sgd(0.1)
# ResNet-50 and GPT-2 have these shapes, among others.
RESNET = {(7, 7, 3, 64), (2048, 1000), (1000,), (64,), (256,), (1, 1, 64, 64), (1, 1, 64, 256)}
RESNET |= {(3, 3, width, width) for width in (64, 128, 256, 512)}
RESNET |= {(1, 1, width, 4 * width) for width in (128, 256, 512)} | {(1, 1, 4 * width, width) for width in (64, 256)}
GPT = {(50257, 768), (1024, 768), (768, 2304), (2304,), (768, 768), (768,), (768, 3072), (3072,), (3072, 768)}


def merged_padding(shape: tuple[int, ...], devices: int) -> float:
    """Stored elements over elements where leading dims are merged and their product is split, as in the paper."""
    sizes = [prod(shape[: last + 1]) for last in range(len(shape))]
    return min(ceil(size / devices) * devices / size for size in sizes)


def compiled(shapes: list[tuple[int, ...]], devices: int) -> sw.Program:
    """A step of SGD on weights that products read."""

    def loss(weights: list[Any], x: Any, y: Any) -> Any:
        rows = [np.mean(np.tanh(x[:, : w.shape[0]] @ w.reshape(w.shape[0], -1)) * y) for w in weights]
        return sum(rows)

    weights = [sw.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
    batch = [sw.ShapeDtypeStruct((64 * devices, size), np.float32) for size in (max(s[0] for s in shapes), 1)]
    in_shardings = (None, None, P("data"), P("data"))
    step = sw.jit(step_of(loss, SGD), mesh=sw.Mesh({"data": devices}), in_shardings=in_shardings, shard_update="data")
    program = step.lower(weights, SGD.init(weights), *batch).compile()
    assert isinstance(program, sw.Program)
    return program


@pytest.mark.parametrize("shapes", [RESNET, GPT], ids=["resnet", "gpt"])
@pytest.mark.parametrize("devices", [6, 10, 48, 96])
def test_layouts_store_half_a_percent_more_than_merges_of_leading_dims_at_most(
    shapes: set[tuple[int, ...]], devices: int
) -> None:
    large = sorted(shape for shape in shapes if prod(shape) * 4 >= 1024)
    rows = list(compiled(large, devices).shard_update())
    stored = [row.shard_bytes * devices / 4 for row in rows]
    merged = [prod(shape) * merged_padding(shape, devices) for shape in large]
    assert len(rows) == len(large)
    assert sum(stored) <= 1.005 * sum(merged)


def convolution(devices: int) -> sw.Program:
    def loss(w: Any, x: Any, y: Any) -> Any:
        h = sw.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return np.mean((np.tanh(h) - y) ** 2)

    weight = sw.ShapeDtypeStruct((3, 3, 256, 256), np.float32)
    images = sw.ShapeDtypeStruct((64 * devices, 14, 14, 256), np.float32)
    in_shardings = (None, None, P("data"), P("data"))
    step = sw.jit(step_of(loss, SGD), mesh=sw.Mesh({"data": devices}), in_shardings=in_shardings, shard_update="data")
    program = step.lower(weight, SGD.init(weight), images, images).compile()
    assert isinstance(program, sw.Program)
    return program


@pytest.mark.parametrize(
    ("devices", "layout", "rows"),
    [
        (8, '[{}, {}, {"data"}, {}]', 256),
        (10, '[{}, {}, {"data"}, {}]', 260),
        (6, '[{"data":(2)3}, {}, {"data":(1)2}, {}]', 256),
    ],
)
def test_a_convolution_travels_as_the_paper_says(devices: int, layout: str, rows: int) -> None:
    """Over 10 devices, 256 channels store 1.6 % more, where the merged 3 x 3 would store 11 % more."""
    program = convolution(devices)
    (row,) = program.shard_update()
    assert (row.layout, row.group) == (layout, devices)
    assert row.padding == rows / 256 <= merged_padding((3, 3), devices)
    moved = {each.kind: each.bytes for each in program.collectives() if each.shape}
    one_way = 3 * 3 * rows * 256 * 4 * (devices - 1) / devices
    assert moved["reduce_scatter"] == one_way
    assert sum(moved.values()) - one_way <= one_way
