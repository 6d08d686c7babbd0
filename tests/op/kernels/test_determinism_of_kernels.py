# SPDX-License-Identifier: Apache-2.0
"""An elementwise kernel gives the same bits for the same input at every position, length, stride and shard."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shardwise import _core
from tests.op.references import BFLOAT16, Array
from tests.support.partitioned import ONE_DEVICE, execute, sharding

COUNT = 10_000
UNARY = {
    "stablehlo.exponential": (-90, 90), "stablehlo.exponential_minus_one": (-20, 20), "stablehlo.log": (1e-6, 1e6),
    "stablehlo.log_plus_one": (-0.99, 100), "stablehlo.logistic": (-30, 30), "stablehlo.sine": (-100, 100),
    "stablehlo.cosine": (-100, 100), "stablehlo.tan": (-100, 100), "stablehlo.tanh": (-12, 12),
    "stablehlo.sqrt": (0, 1e6), "stablehlo.rsqrt": (1e-6, 1e6), "stablehlo.cbrt": (-1e6, 1e6), "chlo.erf": (-5, 5),
    "chlo.erfc": (-5, 12), "chlo.sinh": (-20, 20), "chlo.cosh": (-20, 20), "chlo.asin": (-1, 1), "chlo.acos": (-1, 1),
    "chlo.atan": (-100, 100), "chlo.asinh": (-1e5, 1e5), "chlo.acosh": (1, 1e5), "chlo.atanh": (-0.999, 0.999),
}  # fmt: skip
BINARY = {
    "stablehlo.power": (0.01, 20), "stablehlo.atan2": (-20, 20), "stablehlo.divide": (-20, 20),
    "stablehlo.remainder": (-20, 20), "stablehlo.maximum": (-20, 20), "stablehlo.minimum": (-20, 20),
}  # fmt: skip
DTYPES = {
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
    "float16": np.dtype(np.float16),
    "bfloat16": BFLOAT16,
}
SPECIALS = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1.0, -1.0]


def inputs(dtype: np.dtype[Any]) -> list[Array]:
    """Per op one array of all values, with infinities, NaN, zeros and subnormals strewn in."""
    rng = np.random.default_rng(5)
    arrays = []
    for (low, high), count in [(d, 1) for d in UNARY.values()] + [(d, 2) for d in BINARY.values()]:
        for _ in range(count):
            values = rng.uniform(low, high, COUNT)
            places = rng.permutation(COUNT)[: 20 * len(SPECIALS)]
            values[places] = SPECIALS * 20
            with np.errstate(all="ignore"):
                arrays.append(values.astype(np.float32 if dtype == BFLOAT16 else dtype).astype(dtype))
    return arrays


def record(shape: tuple[int, ...], dtype: str, held: Any = None) -> Any:
    """All ops in one program: one argument per unary op, two per binary op."""
    trace = _core.ir.Trace("elementwise")
    outputs = [trace.emit(name, [trace.argument(shape, dtype, "", held)])[0] for name in UNARY]
    for name in BINARY:
        outputs.append(trace.emit(name, [trace.argument(shape, dtype, "", held) for _ in range(2)])[0])
    return trace.finish(outputs)


def run_all(shape: tuple[int, ...], dtype: str, arrays: list[Array]) -> list[Array]:
    compiled = _core.passes.compile(record(shape, dtype), ONE_DEVICE)
    return execute(compiled, arrays, (False,))[0]


def raw(array: Array) -> Array:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def expect_bits(got: list[Array], whole: list[Array], place: Any, what: str) -> None:
    for name, part, all_values in zip([*UNARY, *BINARY], got, whole):
        assert np.array_equal(raw(part), raw(all_values[place])), f"{name}: other bits for {what}"


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_do_not_depend_on_offset_length_and_stride(dtype: str) -> None:
    arrays = inputs(DTYPES[dtype])
    whole = run_all((COUNT,), dtype, arrays)
    rng = np.random.default_rng(6)
    for length in range(1, 41):
        executable = _core.runtime.Executable(_core.passes.compile(record((length,), dtype), ONE_DEVICE))
        held = _core.mesh.Sharding.replicated(ONE_DEVICE, 1)
        for stride in (1, 2, 3, 7, -1, -3):
            span = (length - 1) * abs(stride)
            offsets = [*range(4), *rng.integers(0, COUNT - span, 6)]
            for offset in offsets:
                first = offset if stride > 0 else offset + span
                place = first + stride * np.arange(length)
                views = [np.lib.stride_tricks.as_strided(x[first:], (length,), (stride * x.itemsize,)) for x in arrays]
                results = executable.run([_core.runtime.ShardedArray.scatter(v, held) for v in views])
                expect_bits(
                    [r.gather() for r in results], whole, place, f"offset {offset}, length {length}, stride {stride}"
                )


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_do_not_depend_on_shape_and_layout(dtype: str) -> None:
    arrays = inputs(DTYPES[dtype])
    whole = run_all((COUNT,), dtype, arrays)
    for shape in [(100, 100), (10, 1000), (8, 25, 50), (2500, 4)]:
        flat = np.arange(COUNT).reshape(shape)
        for name, view in {
            "row-major": lambda x, s=shape: x.reshape(s),
            "transposed": lambda x, s=shape: x.reshape(s).T,
            "every second row": lambda x, s=shape: x.reshape(s)[::2],
            "reversed columns": lambda x, s=shape: x.reshape(s)[..., ::-1],
        }.items():
            place = view(flat)
            got = run_all(place.shape, dtype, [view(x) for x in arrays])
            expect_bits(got, whole, place, f"{name} {shape}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_do_not_depend_on_the_number_of_shards(dtype: str) -> None:
    arrays = inputs(DTYPES[dtype])
    whole = run_all((COUNT,), dtype, arrays)
    for devices in (2, 3, 7, 16):
        mesh = _core.mesh.Mesh("mesh", [("x", devices)])
        compiled = _core.passes.compile(record((COUNT,), dtype, sharding(mesh, [("x",)])), mesh)
        for got in execute(compiled, arrays):
            expect_bits(got, whole, slice(None), f"{devices} devices")
