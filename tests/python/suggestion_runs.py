# SPDX-License-Identifier: Apache-2.0
"""Values that nothing splits, annotated as why() suggests and propagated again; for tests and benchmarks.origins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from shardwise import _core

MOST_PER_PROGRAM = 12


@dataclass
class SuggestionTally:
    """What was tried; `failed` has the texts in which a suggestion did not split its value."""

    programs: int = 0
    programs_with: int = 0
    tried: int = 0
    split: int = 0
    without: int = 0
    failed: list[str] = field(default_factory=list)


def try_suggestions(text: str, tally: SuggestionTally) -> None:
    """Each value of one program, or the first few."""
    # Calls become part of main first, so that values keep their numbers.
    module = _core.passes.run_passes(_core.ir.parse(text), ["inline_calls"])
    tally.programs += 1
    tried = 0
    for row in _core.passes.propagate_program(module).explain_all():
        if row["axes"] or not row["sharding"]:
            continue
        if not row["suggestion"]:
            tally.without += 1
            continue
        if tried == MOST_PER_PROGRAM:
            break
        try:
            done = splits(module, row)
        except IndexError:  # a copy that propagation made of a constant
            continue
        tried += 1
        tally.tried += 1
        if done:
            tally.split += 1
        else:
            tally.failed.append(f"{row['name']} {row['type']} {row['suggestion']}\n{text}")
    tally.programs_with += tried > 0


def splits(module: Any, row: dict[str, Any]) -> bool:
    """Whether the value, annotated, has the axes that were suggested."""
    after = _core.passes.propagate_annotated(module, row["number"], row["suggestion"])
    return bool(after.explain_value(row["number"])["sharding"] == row["suggestion"])
