# SPDX-License-Identifier: Apache-2.0
"""vmap of dynamic slices whose starts differ between the examples: one gather or scatter, with the clamped starts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from shardwise import _core
from tests.op.case import ALL
from tests.op.inputs import extreme
from tests.support.partitioned import SCENARIOS, execute, same_bits, sharding

SHAPE, PART = (5, 4, 3), (2, 4, 1)  # the middle dim is read whole
# Starts in the first and the last dim; some are out of bounds on either side.
STARTS = {"int32": ([-3, 0, 1, 9], [2, -1, 0, 1]), "int8": ([-128, 3, 4, 127], [0, 1, 2, 3])}
STARTS |= {"uint8": ([0, 255, 3, 4], [0, 1, 2, 3]), "uint32": ([0, 2**32 - 1, 3, 2], [0, 1, 2, 3])}
STARTS |= {"int64": ([-(2**63), 2**63 - 1, 3, 2], [0, 1, 2, 3])}
ROWS = 4


def clamped(starts: Any) -> tuple[slice, ...]:
    low = [min(max(int(s), 0), whole - part) for s, whole, part in zip(starts, SHAPE, PART)]
    return tuple(slice(at, at + part) for at, part in zip(low, PART))


def batched(name: str, arrays: list[np.ndarray], flags: list[bool], size: int, mesh: Any) -> Any:
    """The op of one example, batched: the module, and whether the result has the new dim."""
    trace = _core.ir.Trace("batched")
    region = trace.begin_region()
    inner = [trace.region_argument(x.shape[flag:], x.dtype.name) for x, flag in zip(arrays, flags)]
    attrs = {"slice_sizes": PART} if name == "stablehlo.dynamic_slice" else None
    trace.end_region([trace.emit(name, inner, attrs)[0]])
    outer = [
        trace.argument(x.shape, x.dtype.name, "", sharding(mesh, [("x",), *[()] * (x.ndim - 1)]) if flag else None)
        for x, flag in zip(arrays, flags)
    ]
    ((value, is_batched),) = trace.batch(region, outer, flags, size)
    assert is_batched
    return trace.finish([value])


def compare(name: str, tensors: list[np.ndarray], of_tensors: list[bool], index: str, of_starts: list[bool]) -> None:
    first, last = (np.array(values, index) for values in STARTS[index])
    starts = [first, np.zeros(ROWS, index), last]
    starts = [s if flag else np.asarray(s[1]) for s, flag in zip(starts, of_starts)]
    arrays, flags = [*tensors, *starts], of_tensors + of_starts
    mesh = SCENARIOS[1].mesh()
    module = batched(name, arrays, flags, ROWS, mesh)
    for (got,) in execute(_core.passes.compile(module, mesh), arrays):
        for i in range(ROWS):
            example = [x[i] if flag else x for x, flag in zip(arrays, flags)]
            where = clamped(example[len(tensors) :])
            if name == "stablehlo.dynamic_slice":
                want = example[0][where]
            else:
                want = example[0].copy()
                want[where] = example[1]
            assert same_bits(np.asarray(got)[i], want), (index, of_tensors, of_starts, i)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", ["stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice"])
def test_examples_are_rows_of_a_python_loop(name: str, dtype: str) -> None:
    rng = np.random.default_rng(5)
    updates = name == "stablehlo.dynamic_update_slice"
    for index in STARTS if dtype == "float32" else ["int32", "uint8"]:
        for of_starts in ([True, True, True], [True, False, False], [False, False, True]):
            for of_tensors in ([True, True], [False, True], [True, False], [False, False]):
                shapes = [SHAPE, PART] if updates else [SHAPE]
                flags = of_tensors[: len(shapes)]
                tensors = [extreme((ROWS, *s) if flag else s, dtype, rng) for s, flag in zip(shapes, flags)]
                compare(name, tensors, flags, index, of_starts)


@pytest.mark.parametrize("name", ["stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice"])
def test_the_number_of_ops_does_not_depend_on_the_examples(name: str) -> None:
    texts = set()
    for size in (0, 2, 200):
        tensors = [np.zeros((size, *SHAPE), np.float32)]
        if name == "stablehlo.dynamic_update_slice":
            tensors.append(np.zeros((size, *PART), np.float32))
        arrays = [*tensors, *[np.zeros(size, np.int32)] * 3]
        mesh = SCENARIOS[1].mesh()
        module = batched(name, arrays, [True] * len(arrays), size, mesh)
        texts.add(tuple(re.findall(r"stablehlo\.\w+", module.text())))
        (got,), _ = execute(_core.passes.compile(module, mesh), arrays)
        assert np.asarray(got).shape == (size, *(PART if len(tensors) == 1 else SHAPE))
    assert len(texts) == 1


def test_a_slice_of_whole_dims_has_no_index() -> None:
    trace = _core.ir.Trace("whole")
    region = trace.begin_region()
    x, i = trace.region_argument((4,), "float32"), trace.region_argument((), "int32")
    part = trace.emit("stablehlo.dynamic_slice", [x, i], {"slice_sizes": (4,)})[0]
    trace.end_region([part, trace.emit("stablehlo.dynamic_update_slice", [x, part, i])[0]])
    outer = [trace.argument((3, 4), "float32"), trace.argument((3,), "int32")]
    results = trace.batch(region, outer, [True, True], 3)
    text = trace.finish([value for value, _ in results]).text()
    assert "return %arg0, %arg0" in text
