# SPDX-License-Identifier: Apache-2.0
"""Random bits and numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shardwise import _core
from shardwise.dtypes import is_float, numpy_dtype
from tests.op.case import FLOATS, INTEGERS, Application, OpCase
from tests.op.catalogue.instance import Build, Row, Table
from tests.op.inputs import Shape, dtype_of
from tests.op.random_references import LONG, drawn, random_bits
from tests.op.references import Array

EnumValue = _core.ir.EnumValue


# ---- cases -----------------------------------------------------------------------------------------------------------


def _state(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """Near the end of 64 bits, for the carry."""
    if dtype != "uint64":
        return np.asarray(rng.uniform(1, 2, shape) if is_float(dtype_of(dtype)) else 3).astype(dtype_of(dtype))
    return LONG - rng.integers(0, 4, shape).astype(np.uint64)


def rng_bit_generator_cases(algorithm: str) -> Callable[[int, str], list[Application]]:
    def applications(n: int, dtype: str) -> list[Application]:
        found = []
        for length in (2,) if algorithm == "THREE_FRY" else (2, 3):
            for shape in ((n, 3), (2, n), (3, n, 2), ()):
                for result in (1,) if shape else (0, 1):  # the state does not depend on the dims
                    found.append(_bits_case(algorithm, dtype, length, shape, result))
        return found

    return applications


def _bits_case(algorithm: str, dtype: str, length: int, shape: Shape, result: int) -> Application:
    def reference(state: Array) -> Array:
        return random_bits(algorithm, state, shape, dtype)[result]

    def record(trace: Any, operands: Sequence[int]) -> int:
        attrs = {"rng_algorithm": EnumValue("stablehlo", "rng_algorithm", algorithm)}
        declared = [((length,), "uint64"), (shape, dtype)]
        return int(trace.emit_op("stablehlo.rng_bit_generator", list(operands), attrs, declared)[result][0])

    return Application(
        ((length,),), reference, record=record, dtypes=("uint64",), result=result, has_local=False,
        label=f"{algorithm} {length} {shape}[{result}]",
    )  # fmt: skip


def rng_cases(distribution: str) -> Callable[[int, str], list[Application]]:
    def applications(n: int, dtype: str) -> list[Application]:
        attrs = {"rng_distribution": EnumValue("stablehlo", "rng_distribution", distribution)}
        ends = {0: np.asarray(1).astype(dtype_of(dtype)), 1: np.asarray(9).astype(dtype_of(dtype))}
        return [
            Application(
                ((), (), (len(shape),)), lambda a, b, _, shape=shape: drawn(distribution, a, b, shape), attrs,
                result_shape=shape, result_dtype=dtype, dtypes=(None, None, "int64"),
                fixed={**ends, 2: np.array(shape, np.int64)}, has_local=False, label=f"{distribution} {shape}",
            )
            for shape in ((n,), (n, 3), (2, n))
        ]  # fmt: skip

    return applications


WIDTHS = ("uint32", "uint64", "uint8", "int16", "float32", "bfloat16", "float64")
CASES: list[OpCase] = [
    OpCase(
        "stablehlo.rng_bit_generator",
        WIDTHS,
        rng_bit_generator_cases("PHILOX"),
        _state,
        variant="philox",
        differentiable=False,
    ),
    OpCase(
        "stablehlo.rng_bit_generator",
        WIDTHS,
        rng_bit_generator_cases("THREE_FRY"),
        _state,
        variant="three_fry",
        differentiable=False,
    ),
    OpCase(
        "stablehlo.rng",
        (*FLOATS, *INTEGERS),
        rng_cases("UNIFORM"),
        _state,
        "magnitude",
        8,
        variant="uniform",
        differentiable=False,
    ),
    OpCase(
        "stablehlo.rng", FLOATS, rng_cases("NORMAL"), _state, "magnitude", 64, variant="normal", differentiable=False
    ),
]


# ---- random instances ------------------------------------------------------------------------------------------------


def draw_rng_bit_generator(b: Build) -> None:
    algorithm = b.pick(("THREE_FRY", "PHILOX"))
    words = 2 if algorithm == "THREE_FRY" else b.pick((2, 3))
    shape = b.shape()
    state = b.argument(b.rng.integers(0, 2**64, words, dtype=np.uint64))
    properties = f"rng_algorithm = #stablehlo<rng_algorithm {algorithm}>"
    b.op([state], [((words,), "uint64"), (shape, b.dtype)], properties)


def draw_rng(b: Build) -> None:
    """The implementation chooses the numbers: only their bounds and moments are compared."""
    to = numpy_dtype(b.dtype)
    normal = b.chance(0.5) and is_float(to)
    shape = (b.below(20, 40), b.below(30, 60)) if normal or b.chance(0.3) else b.filled_shape(1, 3)
    low = np.array(0 if b.dtype == "bool" else b.below(0, 3) - (3 if to.kind not in "u" else 0)).astype(to)
    high = np.array(1 if b.dtype == "bool" else b.below(4, 9)).astype(to)  # of a normal distribution the deviation
    c = b.int_constant(shape)
    operands = [b.argument(low), b.argument(high)]
    types = [b.type_of(x) for x in operands] + [f"tensor<{len(shape)}xi64>"]
    which = "NORMAL" if normal else "UNIFORM"
    b.op([*operands, c], [(shape, b.dtype)], f"rng_distribution = #stablehlo<rng_distribution {which}>", types=types)
    b.compare_with("normal" if normal else "uniform")


WORDS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
DRAWN = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "uint32", "bool")
DRAWS: Table = {
    "stablehlo.rng_bit_generator": Row(WORDS, draw_rng_bit_generator),
    "stablehlo.rng": Row(DRAWN, draw_rng),
}
