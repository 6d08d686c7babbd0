# SPDX-License-Identifier: Apache-2.0
"""The checks of the op matrix, and the ways to split a dim that it tries."""

from __future__ import annotations

from shardwise import _core
from tests.op.cases import OpCase
from tests.support.partitioned import (
    ONE_DEVICE,
    Scenario,
    assignments,
    bitwise,
    difference,
    execute,
    record,
    run,
    same_bits,
)

__all__ = ["CELLS", "EVENNESS", "failures"]

EVENNESS = ("even", "uneven", "empty shards")
WAYS = {  # the mesh, the axes that split a dim into 4 shards, those that split the dim beside it, device ids
    "one axis": ((("x", 4), ("y", 2)), ("x",), ("y",), ()),
    "two axes": ((("x", 2), ("y", 2), ("z", 2)), ("y", "x"), ("z",), ()),
    "sub-axis": ((("x", 16),), (("x", 2, 4),), (("x", 8, 2),), ()),
    "permuted ids": ((("x", 4), ("y", 2)), ("x",), ("y",), (5, 2, 7, 0, 6, 1, 4, 3)),
}
SIZES = {"even": 8, "uneven": 7, "empty shards": 5}  # shards of 2, 2, 2, 1 and of 2, 2, 1, 0
# Each way to split a dim, with equal shards, with a smaller one, and with an empty one.
CELLS = {
    (evenness, way): Scenario(f"{evenness}, {way}", mesh, SIZES[evenness], axes, ids, others)
    for evenness in EVENNESS
    for way, (mesh, axes, others, ids) in WAYS.items()
}


def failures(case: OpCase, dtype: str, scenario: Scenario, turn: int | None) -> list[str]:
    """What goes wrong for one op, dtype and scenario, with each assignment, or with one in turn."""
    found = []
    mesh = scenario.mesh()
    for application in case.applications(scenario.size, dtype):
        operands = case.operands(application, dtype)
        whole_module = record(case, application, dtype)
        whole = run(whole_module, ONE_DEVICE, operands)[0]
        where = f"{case.id} {dtype} {application.label or application.shapes}, {scenario.name}"
        if reason := difference(case, application, operands, whole):
            found.append(f"{where}, one device: {reason}")
            continue
        choices = assignments(scenario, application, whole.shape)
        if turn is not None:
            choices = [choices[turn % len(choices)]]
        for shardings, result in choices:
            compiled = _core.passes.compile(record(case, application, dtype, shardings, result), mesh)
            for mode, (got,) in zip(("once per shard", "faithful"), execute(compiled, operands)):
                reason = difference(case, application, operands, got)
                if not reason and bitwise(case, dtype) and not same_bits(got, whole):
                    reason = f"other bits than the unpartitioned run:\n{got!r}\n{whole!r}"
                if reason:
                    found.append(f"{where}, arguments {shardings}, result {result}, {mode}: {reason}")
    return found
