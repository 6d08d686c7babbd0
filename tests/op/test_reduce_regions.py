# SPDX-License-Identifier: Apache-2.0
"""Reductions by regions that no collective knows: what they send, gradients at ties, vmap, and programs' sizes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P, _core
from tests.op.catalogue.reduce import region_of
from tests.support.partitioned import ONE_DEVICE, execute, sharding

MESH = sw.Mesh({"x": 8})
X = np.random.default_rng(3).integers(-4, 5, (32, 64)).astype(np.float32)


def received(function: Any, *arrays: Any) -> float:
    """Bytes that one device receives; the numbers are NumPy's."""
    jitted = sw.jit(function, mesh=MESH)
    compiled = jitted.lower(*arrays).compile()
    assert np.array_equal(np.asarray(jitted(*arrays)), function(*arrays))
    return sum(c.bytes * c.count for c in compiled.collectives())


def annotate(x: Any, *spec: Any) -> Any:
    return x if isinstance(x, np.ndarray) else sw.shard(x, P(*spec))


@pytest.mark.parametrize("rows", [32, 33])
def test_argmax_over_the_sharded_dim_sends_winners_alone(rows: int) -> None:
    x = np.resize(X, (rows, 64))
    part = -(-rows // 8)
    whole = received(lambda x: np.argmax(annotate(x, None, "x"), axis=1), x)
    # Values and indices go to one device per row, and indices back: 33 rows are in 7 shards, and the eighth has none.
    assert whole == 7 * part * (4 + 4) + (rows - (part if rows % 8 == 0 else 0)) * 4
    split = received(lambda x: annotate(np.argmax(annotate(x, None, "x"), axis=1), "x"), x)
    assert split == 7 * part * (4 + 4)
    assert received(lambda x: np.argmax(annotate(x, "x", None), axis=1), x) == 0


def test_argmax_of_one_row_gathers_the_winners() -> None:
    assert received(lambda x: np.argmax(annotate(x, "x")), X[0]) == 7 * (4 + 4)
    assert received(lambda x: np.argmax(annotate(x, "x", None)), X) == 7 * (4 + 4)


def test_what_argmax_sends_says_why() -> None:
    compiled = sw.jit(lambda x: np.argmax(sw.split(x, 1, "x"), 1), mesh=MESH).lower(X).compile()
    assert {c.cause for c in compiled.collectives()} == {"partial results of reduce along dim 1"}


def test_the_local_program_is_the_same_for_any_number_of_devices() -> None:
    texts = set()
    for devices in (8, 64, 2048):
        mesh = sw.Mesh({"x": devices})
        program = sw.jit(lambda x: np.argmax(sw.split(x, 1, "x"), axis=1), mesh=mesh)
        compiled = program.lower(sw.ShapeDtypeStruct((2 * devices, 4 * devices), np.float32)).compile()
        texts.add(re.sub(r"\d+", "N", compiled.as_text("local")))
    assert len(texts) == 1


# ---- gradients ------------------------------------------------------------------------------------------------------


def gradient(values: list[float], indices: list[int] | None, init: float, shards: int = 4) -> tuple[list[float], float]:
    """Of argmax's value with weight 6, by the elements and by the init value, whose index is 1."""
    mesh = _core.mesh.Mesh("mesh", [("x", shards)])
    trace = _core.ir.Trace("gradient")
    x = trace.argument((len(values),), "float64", "", sharding(mesh, [("x",)]))
    start = trace.argument((), "float64")
    if indices is None:
        places = trace.emit("stablehlo.iota", [], {"iota_dimension": 0}, (len(values),), "int32")[0]
    else:
        places = trace.constant(np.array(indices, np.int32))[0]
    operands = [x, places, start, trace.constant(np.asarray(1, np.int32))[0]]
    region = region_of(trace, "argmax", ("float64", "int32"))
    best = trace.emit_op("stablehlo.reduce", operands, {"dimensions": (0,)}, regions=[region])[0][0]
    seed = trace.constant(np.asarray(6.0))[0]
    module = trace.finish(trace.vjp([best], [seed], [x, start]))
    arrays = [np.array(values, np.float64), np.asarray(init)]
    results = execute(_core.passes.compile(module, mesh), arrays)
    assert all(np.array_equal(a, b) for a, b in zip(*results))
    return results[0][0].tolist(), float(results[0][1])


@pytest.mark.parametrize(
    ("values", "indices", "init", "want", "of_init"),
    [
        ([4, 1, 4, 2, 4], None, -np.inf, [6, 0, 0, 0, 0], 0),  # the first of equal ones
        ([4, 1, np.nan, 2, np.nan], None, -np.inf, [0, 0, 6, 0, 0], 0),
        ([4, 1, 4, 2, 4], [3, 9, 2, 9, 2], -np.inf, [0, 0, 3, 0, 3], 0),  # an index twice: they share
        ([4, 1, 4, 2, 4], None, 5.0, [0, 0, 0, 0, 0], 6),  # nothing reaches the init value
        ([4, 1, 4, 2, 4], [0, 1, 2, 3, 4], 5.0, [0, 0, 0, 0, 0], 6),  # … whose index is an element's
    ],
)
def test_gradient_of_argmax_goes_to_the_winner(
    values: list[float], indices: list[int] | None, init: float, want: list[float], of_init: float
) -> None:
    assert gradient(values, indices, init) == (want, of_init)


def test_gradient_of_a_maximum_with_a_constant_start_is_one_hot() -> None:
    trace = _core.ir.Trace("gradient")
    x = trace.argument((5, 3), "float64")
    places = trace.emit("stablehlo.iota", [], {"iota_dimension": 0}, (5, 3), "int64")[0]
    inits = [trace.constant(np.asarray(-np.inf))[0], trace.constant(np.asarray(0))[0]]
    region = region_of(trace, "argmax", ("float64", "int64"))
    best = trace.emit_op("stablehlo.reduce", [x, places, *inits], {"dimensions": (0,)}, regions=[region])[0][0]
    seed = trace.constant(np.array([1.0, 2.0, 3.0]))[0]
    module = trace.finish(trace.vjp([best], [seed], [x]))
    array = np.array([[1, 5, -np.inf], [3, 5, -np.inf], [2, 1, -np.inf], [3, 0, -np.inf], [0, 5, -np.inf]])
    want = np.zeros((5, 3))
    want[1, 0], want[0, 1], want[0, 2] = 1, 2, 3
    for (got,) in execute(_core.passes.compile(module, ONE_DEVICE), [array]):
        assert np.array_equal(got, want)


# ---- vmap, regions of traces ----------------------------------------------------------------------------------------


def test_vmap_of_argmax_is_argmax_of_rows() -> None:
    rows = sw.jit(sw.vmap(lambda x: np.argmax(x)), mesh=MESH)(X)
    assert np.array_equal(np.asarray(rows), np.argmax(X, axis=1))


def test_a_region_belongs_to_one_op() -> None:
    trace = _core.ir.Trace("twice")
    x = trace.argument((4,), "float32")
    one = trace.constant(np.ones((), np.float32))[0]
    region = trace.begin_region()
    a, b = (trace.region_argument((), "float32") for _ in range(2))
    with pytest.raises(sw.ShapeError, match="a region must be one that was recorded for this op"):
        trace.emit_op("stablehlo.reduce", [x, one], {"dimensions": (0,)}, regions=[region])  # it is open still
    trace.end_region([trace.emit("stablehlo.subtract", [a, b])[0]])
    trace.emit_op("stablehlo.reduce", [x, one], {"dimensions": (0,)}, regions=[region])
    for wrong in (region, 0, 1, 99):
        with pytest.raises(sw.ShapeError, match="a region must be one that was recorded for this op"):
            trace.emit_op("stablehlo.reduce", [x, one], {"dimensions": (0,)}, regions=[wrong])
