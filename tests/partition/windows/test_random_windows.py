# SPDX-License-Identifier: Apache-2.0
"""Random convolutions, gradients of pooling and reshapes under random placements equal those of one device."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from shardwise import _core
from tests.op.catalogue.window import pool
from tests.partition.windows.test_convolution_windows import Window, check, whole
from tests.support.partitioned import execute, same_bits, sharding

Mesh = tuple[list[tuple[str, int]], list[int]]
MESHES: list[Mesh] = [
    ([("x", 8)], []),
    ([("x", 2), ("y", 4)], []),
    ([("x", 3), ("y", 2)], [5, 1, 0, 3, 2, 4]),
    ([("a", 2), ("b", 2), ("c", 2)], []),
]


def placement(draw: random.Random, mesh: Any, ndim: int) -> Any:
    """None, or each axis on any dim, whether that divides or not."""
    dims: list[list[str]] = [[] for _ in range(ndim)]
    for axis in draw.sample(mesh.axis_names, len(mesh.axis_names)):
        if draw.random() < 0.75:
            draw.choice(dims).append(axis)
    return None if draw.random() < 0.2 else sharding(mesh, [tuple(dim) for dim in dims])


@pytest.mark.parametrize("seed", range(4))
def test_random_convolutions(seed: int) -> None:
    draw = random.Random(seed)
    tried = 0
    for _ in range(60):
        mesh = _core.mesh.Mesh("mesh", *draw.choice(MESHES))
        spatial = [draw.choice([1, 3, 5, 8, 12, 17]) for _ in range(2)]
        is_gradient = draw.random() < 0.4
        taps = [max(1, size - draw.choice([0, 1, 2])) if is_gradient else draw.choice([1, 2, 3, 5]) for size in spatial]
        window = Window(taps[0])
        window.strides = (draw.choice([1, 1, 2, 3]), draw.choice([1, 2]))
        window.base = (draw.choice([1, 1, 2, 3]), draw.choice([1, 2]))
        window.dilation = (draw.choice([1, 1, 2]), 1)
        window.pads = (
            (draw.choice([-1, 0, 2, 5]), draw.choice([-1, 0, 3])),
            (draw.choice([0, 1]), draw.choice([0, 2])),
        )
        window.reverse = (draw.random() < 0.3, draw.random() < 0.3)
        group = draw.choice([1, 1, 2])
        window.features, window.batches = draw.choice([(group, 1), (1, group)])
        padded = [(n - 1) * b + 1 + sum(p) for n, b, p in zip(spatial, window.base, window.pads)]
        spans = [(n - 1) * d + 1 for n, d in zip(taps, window.dilation)]
        if spatial[0] * window.base[0] < 2 or any(n < span for n, span in zip(padded, spans)):
            continue
        x = whole(draw.choice([1, 2, 3]) * window.batches, *spatial, draw.choice([1, 3]) * window.features)
        w = whole(*taps, x.shape[3] // window.features, draw.choice([1, 2]) * group)
        shardings = [placement(draw, mesh, 4) for _ in range(3)]
        if any(shardings):
            check(window, x, w, shardings, mesh)
            tried += 1
    assert tried >= 30


@pytest.mark.parametrize("seed", range(4))
def test_random_gradients_of_pooling(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(20):
        mesh = _core.mesh.Mesh("mesh", *draw.choice(MESHES))
        shape = tuple(draw.choice([1, 2, 5, 8, 12]) for _ in range(draw.choice([1, 2, 3])))
        sizes = tuple(min(size, draw.choice([1, 2, 3, 4])) for size in shape)
        strides = tuple(draw.choice([1, 1, 2, 3]) for _ in shape)
        windows = pool(shape, sizes, strides, tuple((draw.randrange(size), draw.randrange(size)) for size in sizes))
        arrays = [whole(*windows.shapes[0]), whole(*windows.shapes[1]), np.array(draw.choice([0, 1]), np.float32)]
        trace = _core.ir.Trace("pool")
        held = [placement(draw, mesh, len(shape)), placement(draw, mesh, len(shape)), None]
        values = [trace.argument(x.shape, "float32", "", h) for x, h in zip(arrays, held)]
        module = trace.finish([windows.record(trace, values)], [placement(draw, mesh, len(shape))])
        want = windows.reference(*arrays).astype(np.float32)
        for got in execute(_core.passes.compile(module, mesh), arrays):
            np.testing.assert_array_equal(got[0], want, windows.label)


def factors(draw: random.Random, size: int) -> tuple[int, ...]:
    """A shape of `size` elements."""
    shape = [1] * draw.choice([0, 0, 1])
    while size > 1:
        shape.append(draw.choice([d for d in range(2, size + 1) if size % d == 0]))
        size //= shape[-1]
    draw.shuffle(shape)
    return tuple(shape)


@pytest.mark.parametrize("seed", range(4))
def test_random_reshapes(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(100):
        mesh = _core.mesh.Mesh("mesh", *draw.choice(MESHES))
        size = draw.choice([6, 12, 17, 24, 30, 36, 48, 63, 96, 144])
        shape, to = factors(draw, size), factors(draw, size)
        x = np.arange(size, dtype=np.int32).reshape(shape)
        trace = _core.ir.Trace("reshape")
        argument = trace.argument(shape, "int32", "", placement(draw, mesh, len(shape)))
        result = trace.emit("stablehlo.reshape", [argument], {}, to, "int32")[0]
        module = trace.finish([result], [placement(draw, mesh, len(to))])
        for got in execute(_core.passes.compile(module, mesh), [x]):
            assert same_bits(got[0], x.reshape(to)), (shape, to)
