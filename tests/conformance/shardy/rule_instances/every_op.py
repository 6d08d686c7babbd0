# SPDX-License-Identifier: Apache-2.0
"""Random instances of every op, as text, whose sharding rules are compared with Shardy's.

One generator per op, of ``tests/op/catalogue``: sizes 0 and 1 included, attributes drawn.
``compare(oracle, count, seed)`` gives a row per op, for benchmarks; tests run a few of each.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from shardwise import _core
from shardwise.dtypes import is_inexact, numpy_dtype
from tests.conformance.shardy.client import OracleDiedError, ShardyOracle
from tests.conformance.shardy.mechanisms import RULES, call_of_instance, judge
from tests.conformance.shardy.rule_instances.calls import GENERATORS as OF_DEVICES
from tests.conformance.shardy.rule_instances.instance import Generator, Instance, module_text, of_catalogue
from tests.op.catalogue import DRAWS

CONSERVATIVE_RULES = "func.func(sdy-populate-op-sharding-rules{conservative-propagation=true})"

# Ops that stand for data flow have no rule: their edges speak (test_data_flow).
DATA_FLOW = {"stablehlo.while", "stablehlo.case", "stablehlo.if", "stablehlo.optimization_barrier"}
GENERATORS: dict[str, Generator] = {
    **{op: of_catalogue(op) for op in DRAWS if op not in DATA_FLOW and "@" not in op},
    # Shardy's text has no square of integers.
    "chlo.square": of_catalogue("chlo.square", lambda dtype: is_inexact(numpy_dtype(dtype))),
    # The dtype has no zero that another device could add; Shardy reduces all the same.
    "stablehlo.scatter": of_catalogue("stablehlo.scatter", lambda dtype: dtype != "float8_e8m0fnu"),
    **OF_DEVICES,
}


# ---- the comparison ------------------------------------------------------------------------------------------------


@dataclass
class Row:
    op: str
    instances: int = 0
    equal: int = 0
    by_mechanism: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    died: int = 0


def instances_of(op: str, count: int, seed: int) -> list[Instance]:
    rng = random.Random(f"{op} {seed}")
    return [GENERATORS[op](rng) for _ in range(count)]


def compare_op(oracle: ShardyOracle, op: str, count: int, seed: int, conservative: bool = False) -> Row:
    """Halves a module that ends Shardy's process until the instance that does is alone."""
    row = Row(op)
    pending: list[list[Instance]] = [instances_of(op, count, seed)]
    while pending:
        batch = pending.pop()
        try:
            passes = CONSERVATIVE_RULES if conservative else RULES
            theirs = oracle.run(module_text(batch), passes)["rules"]
        except OracleDiedError:
            if len(batch) == 1:
                row.died += 1
            else:
                pending += [batch[: len(batch) // 2], batch[len(batch) // 2 :]]
            continue
        ours = _core.ir.parse(module_text(batch)).sharding_rules(conservative)
        for instance, (_, our), their in zip(batch, ours, theirs, strict=True):
            row.instances += 1
            verdict = judge(call_of_instance(instance), our, their)
            if verdict is None:
                row.equal += 1
            elif verdict:
                row.by_mechanism[verdict] = row.by_mechanism.get(verdict, 0) + 1
            else:
                row.wrong.append(f"{instance.text(0, 0)}\n    {our}\n    Shardy {their}")
    return row


def compare(oracle: ShardyOracle, count: int, seed: int, conservative: bool = False) -> Iterator[Row]:
    for op in GENERATORS:
        yield compare_op(oracle, op, count, seed, conservative)
