# SPDX-License-Identifier: Apache-2.0
"""cholesky and triangular_solve of narrow floats: computed in float32, and rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise.dtypes import numpy_dtype
from tests.op.dtype_values import NARROW_FLOATS, mlir_name
from tests.support.partitioned import same_bits

# Numbers of all narrow floats with a fraction and a sign.
A = np.array(
    [[[4, 2, 1], [2, 3, 1], [1, 1, 6]], [[6, 1, 0.5], [1, 4, 2], [0.5, 2, 3]], [[2, 1, 1], [1, 4, 1], [1, 1, 4]]]
)
B = np.array([[[1, 2], [3, 0.5], [2, 4]], [[0.5, 1], [6, 2], [1, 1.5]], [[3, 1], [1, 2], [4, 0.5]]])
CHOLESKY = "%0 = stablehlo.cholesky %a, lower = true : {a}\n  return %0 : {a}"
SOLVE = """%0 = "stablehlo.triangular_solve"(%a, %b) <{{left_side = true, lower = true, unit_diagonal = false,
    transpose_a = #stablehlo<transpose TRANSPOSE>}}> : ({a}, {b}) -> {b}
  return %0 : {b}"""


def text(body: str, dtype: str, sharding: str) -> str:
    a, b = f"tensor<3x3x3x{mlir_name(dtype)}>", f"tensor<3x3x2x{mlir_name(dtype)}>"
    batch = f"{{sdy.sharding = #sdy.sharding<@mesh, [{sharding}, {{}}, {{}}]>}}"
    result = b if body is SOLVE else a
    return f"""sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: {a} {batch}, %b: {b} {batch}) -> {result} {{
  {body.format(a=a, b=b)}
}}"""


def computed(body: str, dtype: str, sharding: str, arrays: list[Any]) -> np.ndarray:
    program = sw.parse(text(body, dtype, sharding)).compile()
    return np.asarray(program.run(*arrays, faithful=True, poison=True))


@pytest.mark.parametrize("body", [CHOLESKY, SOLVE], ids=["cholesky", "triangular_solve"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", *NARROW_FLOATS])
def test_narrow_floats_are_rounded_once(body: str, dtype: str) -> None:
    with np.errstate(all="ignore"):
        narrow = [array.astype(numpy_dtype(dtype)) for array in (A, B)]
        wide = computed(body, "float32", "{}", [array.astype(np.float32) for array in narrow])
        expected = wide.astype(numpy_dtype(dtype))
    assert np.isfinite(wide).all()
    for sharding in ("{}", '{"x"}'):
        assert same_bits(computed(body, dtype, sharding, narrow), expected)
