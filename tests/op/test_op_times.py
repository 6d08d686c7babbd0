# SPDX-License-Identifier: Apache-2.0
"""Every op costs something or has a reason not to, and programs of the front end take the time counted by hand.

Costs of single ops against counts by hand are in tests/unit/analysis.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import shardwise as sw
from shardwise import _core
from tests.op.cases import CASES, OpCase
from tests.support.partitioned import record

# A picosecond for a byte, for 1000 flops of a bf16 product, 500 of float32, 100 elements, 10 functions.
HARDWARE = {
    "format": "shardwise.hardware",
    "version": 1,
    "name": "round",
    "sources": {},
    "peak_flops": {
        "matrix": {"bf16": 1e15, "f32": 5e14},
        "vector": {"f32": 1e14},
        "transcendental": {"f32": 1e13},
    },
    "memory": {"bandwidth": 1e12, "capacity": 8e10},
    "fused_attention": True,
    "tiers": [{"name": "switch", "topology": "switch", "bandwidth": 4e11}],
}
ROUND = json.dumps(HARDWARE)
UNFUSED = json.dumps(HARDWARE | {"fused_attention": False})

IS_A_NAME = "it names its operand"
RUNS_CODE = "the ops that it runs are counted"
HAS_NO_RESULT = "it has no result"
FREE = {
    "sdy.data_flow_edge": IS_A_NAME,
    "sdy.func_data_flow_edge": IS_A_NAME,
    "sdy.propagation_barrier": IS_A_NAME,
    "sdy.reshard": IS_A_NAME,
    "sdy.sharding_constraint": IS_A_NAME,
    "stablehlo.optimization_barrier": IS_A_NAME,
    "sdy.sharding_group": HAS_NO_RESULT,
    "stablehlo.composite": RUNS_CODE,
}


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_an_op_costs_something_or_has_a_reason(case: OpCase) -> None:
    wrong = []
    for application in case.applications(6, case.dtypes[0]):
        module = record(case, application, case.dtypes[0])
        ops = {op.number: op for op in module.ops}
        for row in _core.analysis.op_times(module, ROUND):
            results = ops[row["op"]].results
            makes_nothing = bool(results) and all(0 in value.type.shape for value in results)
            if row["name"] == case.name and not makes_nothing and (row["ps"] > 0) != (case.name not in FREE):
                wrong.append(row)
    assert wrong == []


# ---- programs -------------------------------------------------------------------------------------------------------


def groups_of(function: Callable[..., Any], *arguments: Any, hardware: str = ROUND) -> list[dict[str, Any]]:
    """The groups of a traced program that write something, as dicts."""
    text = sw.jit(function, mesh=sw.Mesh({"x": 1})).lower(*arguments).as_text()
    groups: list[dict[str, Any]] = _core.analysis.group_times(_core.ir.parse(text), hardware)
    for group in groups:
        group["ops"] = [name.split(".")[1] for name in group["ops"]]
    return groups


def shaped(*shape: int, dtype: Any = np.float32) -> sw.ShapeDtypeStruct:
    return sw.ShapeDtypeStruct(shape, dtype)


def test_a_product_of_bfloat16_arrays_is_one_of_bfloat16() -> None:
    x, w = shaped(512, 1024, dtype=ml_dtypes.bfloat16), shaped(1024, 2048, dtype=ml_dtypes.bfloat16)
    (group,) = groups_of(lambda x, w: (x @ w).astype(ml_dtypes.bfloat16), x, w)
    assert group["unit_ps"][0] == 2147484  # 2·512·1024·2048 = 2147483648 at 1000 a ps
    assert group["bytes"] == 2 * (512 * 1024 + 1024 * 2048 + 512 * 2048)


def attended(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    scores = np.einsum("bhqd,bhkd->bhqk", q, k)
    if mask is not None:
        scores = np.where(mask, scores, -1e30)
    weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    return np.einsum("bhqk,bhkd->bhqd", weights / np.sum(weights, axis=-1, keepdims=True), v)


HEADS = shaped(2, 4, 64, 16)
HEADS_BYTES = 2 * 4 * 64 * 16 * 4
SCORES_BYTES = 2 * 4 * 64 * 64 * 4
ROWS_BYTES = 2 * 4 * 64 * 4


def test_attention_is_one_group_with_and_without_a_mask() -> None:
    (group,) = groups_of(attended, HEADS, HEADS, HEADS)
    assert group["is_attention"]
    assert group["bytes"] == 4 * HEADS_BYTES  # q, k, v, and the result
    mask = shaped(64, 64, dtype=np.bool_)
    (group,) = groups_of(attended, HEADS, HEADS, HEADS, mask)
    assert group["bytes"] == 4 * HEADS_BYTES + 64 * 64
    # two products of 2·4·64·64·16 multiplications and additions, in float32
    assert group["unit_ps"][0] == 2 * -(-2 * 2 * 4 * 64 * 64 * 16 // 500)


def test_attention_is_two_groups_where_the_hardware_does_not_fuse_it() -> None:
    softmax, product = groups_of(attended, HEADS, HEADS, HEADS, hardware=UNFUSED)
    assert softmax["bytes"] == 2 * HEADS_BYTES + SCORES_BYTES
    assert product["bytes"] == SCORES_BYTES + 2 * HEADS_BYTES


def test_the_gradient_of_attention_makes_the_scores_again() -> None:
    def loss(q: Any, k: Any, v: Any) -> Any:
        return np.sum(attended(q, k, v) ** 2)

    gradients = sw.value_and_grad(loss, argnums=(0, 1, 2))
    groups = groups_of(gradients, HEADS, HEADS, HEADS)
    again = [group for group in groups if group["computed_again"]]
    assert len(again) == 1
    (backward,) = again
    assert backward["ops"].count("dot_general") == 4  # of the weights, and of q, k and v
    assert backward["computed_again"].count("stablehlo.dot_general") == 1
    # q, k, v and the cotangent in, their gradients out; the maximum, the sum and the number of maxima of each row
    assert backward["bytes"] == 7 * HEADS_BYTES + 3 * ROWS_BYTES
    unfused = groups_of(gradients, HEADS, HEADS, HEADS, hardware=UNFUSED)
    assert sum(group["bytes"] for group in unfused) > sum(group["bytes"] for group in groups) + 4 * SCORES_BYTES


def test_a_normalization_is_one_group() -> None:
    def normalized(x: Any, gain: Any) -> Any:
        centered = x - np.mean(x, axis=-1, keepdims=True)
        return gain * centered / np.sqrt(np.mean(centered * centered, axis=-1, keepdims=True) + 1e-5)

    (group,) = groups_of(normalized, shaped(128, 512), shaped(512))
    assert group["bytes"] == 4 * (128 * 512 + 512 + 128 * 512)


def test_groups_in_loops_and_branches_have_their_executions() -> None:
    def looped(x: Any, flag: Any) -> Any:
        carry, _ = sw.scan(lambda c, _: (np.tanh(c), None), x, None, length=36)
        return sw.cond(flag, np.exp, np.negative, carry)

    groups = groups_of(looped, shaped(64), shaped(dtype=np.bool_))
    counted = {group["ops"][0]: (group["count"], group["factor"], group["kind"]) for group in groups}
    assert counted["tanh"] == (36, (1, 1), "exact")
    assert counted["exponential"] == (1, (1, 2), "branch")
    assert counted["negate"] == (1, (1, 2), "branch")


def test_hardware_that_cannot_be_read_is_an_error() -> None:
    module = _core.ir.parse("func.func @main() { return }")
    with pytest.raises(sw.ParseError, match="hardware"):
        _core.analysis.op_times(module, "{}")
