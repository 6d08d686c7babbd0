# SPDX-License-Identifier: Apache-2.0
"""einsum of narrow floats: sums in float32, one rounding for the result."""

from __future__ import annotations

import numpy as np
import pytest

import shardwise as sw
from shardwise.dtypes import numpy_dtype
from tests.op.dtype_values import NARROW_FLOATS, mlir_name
from tests.support.partitioned import same_bits

CONFIGS = {"ij,kl->il": ((3, 5), (4, 2)), "ij,jk->ik": ((3, 5), (5, 2)), "ijk,kl->il": ((3, 2, 4), (4, 3))}
RESULTS = {"float8_e3m4": "float8_e5m2fnuz", "float8_e4m3fn": "float8_e4m3fn", "float16": "float16"}


def program(config: str, shapes: tuple[tuple[int, ...], ...], dtype: str, result: str) -> sw.Program:
    lhs, rhs = ("tensor<" + "".join(f"{n}x" for n in shape) + f"{mlir_name(dtype)}>" for shape in shapes)
    letters = dict(zip(config.replace(",", ""), (n for shape in shapes for n in shape)))
    to = "tensor<" + "".join(f"{letters[c]}x" for c in config.split("->")[1]) + f"{mlir_name(result)}>"
    split = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}' + ", {}" * (len(shapes[0]) - 1) + "]>}"
    text = f"""sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: {lhs} {split}, %b: {rhs}) -> {to} {{
  %0 = stablehlo.einsum %a, %b, config = "{config}" : ({lhs}, {rhs}) -> {to}
  return %0 : {to}
}}"""
    return sw.parse(text).compile()


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("dtype", [*RESULTS, *(d for d in NARROW_FLOATS if d not in RESULTS and "e8m0" not in d)])
def test_einsum_is_rounded_once(config: str, dtype: str) -> None:
    result = RESULTS.get(dtype, dtype)
    rng = np.random.default_rng(5)
    arrays = [(rng.integers(-4, 5, shape) / 4).astype(numpy_dtype(dtype)) for shape in CONFIGS[config]]
    exact = np.einsum(config, *(x.astype(np.float64) for x in arrays))
    with np.errstate(all="ignore"):
        expected = exact.astype(np.float32).astype(numpy_dtype(result))
    found = program(config, CONFIGS[config], dtype, result).run(*arrays, faithful=True, poison=True)
    assert same_bits(np.asarray(found), expected)
