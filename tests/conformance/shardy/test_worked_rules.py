# SPDX-License-Identifier: Apache-2.0
"""The worked examples of sharding rules in texts/worked/rules.txt: ours, and Shardy's."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from shardwise import _core
from tests.conformance.shardy.client import ShardyOracle, canonical_rule
from tests.conformance.shardy.rule_instances.every_op import CONSERVATIVE_RULES, RULES

FILE = Path(__file__).resolve().parent / "texts" / "worked" / "rules.txt"
OPERANDS = re.compile(r" : \((.*)\) -> ")


@dataclass
class Row:
    """`said` is what follows the op: rule, conservative, ours."""

    place: str
    op: str = ""
    said: dict[str, str] = field(default_factory=dict)

    def module(self) -> str:
        kinds = OPERANDS.findall(self.op)[-1].split(", ")
        arguments = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(kinds))
        results = len(self.op.rpartition(" -> ")[2].split(", "))
        return f"func.func public @main({arguments}) {{\n  %r:{results} = {self.op}\n  return\n}}\n"


def read_rows() -> list[Row]:
    rows: list[Row] = []
    for line in FILE.read_text().splitlines():
        if line.startswith("// ---- "):
            rows.append(Row(line.removeprefix("// ---- ")))
        elif rows and line.startswith("// "):
            key, _, value = line.removeprefix("// ").partition(": ")
            rows[-1].said[key] = "" if value == "none" else value
        elif rows:
            rows[-1].op += line + "\n"
    return rows


ROWS = read_rows()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.place)
def test_rules_are_what_the_example_says(shardy: ShardyOracle, row: Row) -> None:
    assert row.said.keys() <= {"rule", "conservative", "ours"}
    (theirs,) = shardy.run(row.module(), RULES)["rules"]
    assert (theirs or "") == (row.said["rule"] and f"#sdy.op_sharding_rule<{row.said['rule']}>")
    ((_, ours),) = _core.ir.parse(row.module()).sharding_rules()
    assert ours == row.said.get("ours", row.said["rule"])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.place)
def test_conservative_rules_are_what_the_example_says(shardy: ShardyOracle, row: Row) -> None:
    """Factors may be numbered in another order."""
    said = row.said.get("conservative", row.said["rule"])
    (theirs,) = shardy.run(row.module(), CONSERVATIVE_RULES)["rules"]
    assert (theirs or "") == (said and f"#sdy.op_sharding_rule<{said}>")
    ((_, ours),) = _core.ir.parse(row.module()).sharding_rules(True)
    assert canonical_rule(ours) == canonical_rule(row.said.get("ours", said))
