# SPDX-License-Identifier: Apache-2.0
"""Values that nothing splits, with the annotation that why() suggests written into the text of their program, which is
parsed, verified and propagated again; for tests and conformance/shardy/origins.py.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from shardwise import Error, _core
from shardwise.reports.explanations import rows_of

MOST_PER_PROGRAM = 12
SHARDING = re.compile(r"<@[^<>]*>")
RESULT = re.compile(r"tensor<(?:[^<>]|<[^<>]*>)*>(?: \{sdy\.sharding = #sdy\.sharding(<@[^<>]*>)\})?")


@dataclass
class SuggestionTally:
    """What was tried; `failed` has the texts in which a suggestion did not split its value."""

    programs: int = 0
    programs_with: int = 0
    tried: int = 0
    split: int = 0
    changed: int = 0  # of those split, where an annotation was changed
    reasons: Counter[str] = field(default_factory=Counter)  # of values without a suggestion
    failed: list[str] = field(default_factory=list)

    @property
    def without(self) -> int:
        return self.reasons.total()


def try_suggestions(text: str, tally: SuggestionTally) -> None:
    """Each value of one program, or the first few."""
    text = _core.ir.parse(text).text()
    rows = rows_of(_core.passes.propagate_program(named(text)).explain_all())
    tally.programs += 1
    tried = 0
    for row in rows:
        if row["axes"]:
            continue
        if not row["suggestion"]:
            reason = why_none(text, row)
            tally.reasons[reason] += 1
            if not reason:
                tally.failed.append(f"nothing suggested for {row['name']} {row['type']} {row['sharding']}\n{text}")
            continue
        if tried == MOST_PER_PROGRAM:
            continue
        tried += 1
        tally.tried += 1
        wrong = problem(text, row)
        if wrong:
            tally.failed.append(f"{row['name']} {row['type']} {row['suggestion']}: {wrong}\n{text}")
        else:
            tally.split += 1
            tally.changed += "to_change" in row
    tally.programs_with += tried > 0


def named(text: str) -> Any:
    """The module with its values' names of the text as locations."""
    return _core.ir.parse(text, "", name_values=True)


def problem(text: str, row: dict[str, Any]) -> str:
    """Of the suggestion for one value, or ""."""
    after = written(text, row)
    try:
        module = named(after)
        module.verify()
    except Error as error:
        return f"{error}\n{after}"
    found = [r for r in rows_of(_core.passes.propagate_program(module).explain_all()) if is_same(r, row)]
    assert found, (row, after)
    dims = re.findall(r"\{([^}]*)\}", row["suggestion"].partition("]")[0])
    (wanted,) = [(dim, axes) for dim, axes in enumerate(dims) if axes]
    if any(wanted in [(a["dim"], a["axis"]) for a in r["axes"]] for r in found):
        return ""
    return f"it is {found[0]['sharding']} in\n{after}"


def is_same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return all(a[key] == b[key] for key in ("name", "index", "op"))


# ---- why there is none ----------------------------------------------------------------------------------------------


def why_none(text: str, row: dict[str, Any]) -> str:
    """ "" where there should be one."""
    sizes = [int(n) for n in re.findall(r"(\d+)x", row["type"])]
    if not sizes:
        return "a scalar"
    if max(sizes) < 2:
        return "no dim to split"
    declared = mesh_of(text)
    if not declared:
        return "one device"
    if not row["sharding"]:
        return "no sharding" if not SHARDING.search(text) else ""
    free = dict.fromkeys(manual_axes(text, row), 0)
    for listed in re.findall(r"unreduced=\{([^}]*)\}", said_text(text, row)):
        for axis, part in re.findall(r'"([^"]+)"(?::\(\d+\)(\d+))?', listed):
            free[axis] = free.get(axis, declared[axis]) // int(part or declared[axis])
    return "" if any(free.get(axis, size) > 1 for axis, size in declared.items()) else "all axes are taken"


def mesh_of(text: str) -> dict[str, int]:
    (mesh,) = re.findall(r"sdy\.mesh @\w+ = <\[(.*?)\]", text)
    return {axis: int(size) for axis, size in re.findall(r'"([^"]+)"=(\d+)', mesh)}


def said_text(text: str, row: dict[str, Any]) -> str:
    found = annotation_of(text.splitlines(), row)
    return found[1] if found else ""


def manual_axes(text: str, row: dict[str, Any]) -> set[str]:
    """Of the computations around the value, and of the one that gives or takes it."""
    lines = text.splitlines()
    return manual_around(lines, definition(lines, row))


def manual_around(lines: list[str], at: int) -> set[str]:
    """Of a function that is called also those around its calls."""
    found = set(manual_of(lines[at]))
    depth = indent(lines[at])
    for line in reversed(lines[: at + 1]):
        if indent(line) < depth:
            depth = indent(line)
            found |= manual_of(line)
        if depth <= indent(line) and "func.func" in line:
            (function,) = re.findall(r"func\.func (?:\w+ )?(@[\w.]+)\(", line)
            calls = [i for i, other in enumerate(lines) if re.search(rf"call {re.escape(function)}\(", other)]
            return found.union(*(manual_around(lines, call) for call in calls))
    return found


def manual_of(line: str) -> set[str]:
    match = re.search(r"manual_axes=\{([^}]*)\}", line)
    return set(re.findall(r'"([^"]+)"', match[1])) if match else set()


# ---- writing it -----------------------------------------------------------------------------------------------------


def written(text: str, row: dict[str, Any]) -> str:
    """The program with the suggestion in place of the value's annotation, or as a constraint after the value."""
    lines = text.splitlines()
    (mesh,) = re.findall(r"sdy\.mesh (@\w+) =", text)
    sharding = f"<{mesh}, {row['suggestion']}>"
    if "to_change" in row:
        found = annotation_of(lines, row)
        assert found, row
        at, old, start = found
        assert lines[at][start:].startswith(old)
        lines[at] = lines[at][:start] + sharding + lines[at][start + len(old) :]
        return "\n".join(lines)
    at = definition(lines, row)
    if row["op"]:
        at = end_of_op(lines, at)
    elif "stablehlo.while(" in lines[at]:
        at = next(i for i in range(at, len(lines)) if lines[i] == " " * indent(lines[at]) + "do {")
    value = ssa(row)
    use = re.compile(re.escape(value) + r"(?![\w#:])")
    _, end = function_of(lines, row)
    rest = [use.sub("%suggested", line) for line in lines[at + 1 : end]]
    constraint = f"%suggested = sdy.sharding_constraint {value} {sharding} : {row['type']}"
    added = [constraint]
    if not any("%suggested" in line for line in rest):  # nobody annotates what nobody uses
        added.append(f"stablehlo.custom_call @use(%suggested) {{has_side_effect = true}} : ({row['type']}) -> ()")
    return "\n".join([*lines[: at + 1], *added, *rest, *lines[end:]])


def ssa(row: dict[str, Any]) -> str:
    """As its function calls it: "%h" of "@f %h"."""
    return str(row["name"]).rpartition(" ")[2]


def function_of(lines: list[str], row: dict[str, Any]) -> tuple[int, int]:
    """The lines of the function that the value is in."""
    starts = [i for i, line in enumerate(lines) if "func.func" in line]
    function = str(row["name"]).rpartition(" ")[0] or ("@main" if len(starts) > 1 else "@")
    begin = next(i for i in starts if re.search(re.escape(function) + (r"\(" if len(function) > 1 else ""), lines[i]))
    return begin, next((i for i in starts if i > begin), len(lines))


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def definition(lines: list[str], row: dict[str, Any]) -> int:
    name = re.escape(ssa(row).partition("#")[0])
    of_op, of_argument = re.compile(rf"\s*{name}(:\d+)? = "), re.compile(rf"{name}(: | = )")
    assert name, row
    begin, end = function_of(lines, row)
    return next(i for i in range(begin, end) if (of_op.match(lines[i]) if row["op"] else of_argument.search(lines[i])))


def end_of_op(lines: list[str], at: int) -> int:
    """The last of its lines: those of its regions are deeper, or begin with what belongs to them."""
    depth, end = indent(lines[at]), at + 1
    while indent(lines[end]) > depth or lines[end].lstrip().startswith(("}", "cond {", "do {", "^")):
        end += 1
    return end - 1


def annotation_of(lines: list[str], row: dict[str, Any]) -> tuple[int, str, int] | None:
    """Line, text and column of what is said of the value."""
    at, index = definition(lines, row), row["index"]
    line = lines[at]
    if not row["op"] and "func.func" in line:
        own = re.compile(re.escape(ssa(row)) + r": [^%]*?(<@[^<>]*>)\}").search(line[: line.index(" -> ")])
        return (at, own[1], own.start(1)) if own else None
    if not row["op"] and "stablehlo.while(" not in line:  # a loop annotates its arguments and its results at once
        begin = line.find("in_shardings=")
    elif "out_shardings=" in line:
        begin = line.index("out_shardings=")
    elif row["op"] in ("sdy.sharding_constraint", "sdy.data_flow_edge"):
        begin = 0
    else:
        ends = [i for i in range(at, end_of_op(lines, at) + 1) if indent(lines[i]) == indent(line)]
        at = next((i for i in ends if "sdy.sharding_per_value<[" in lines[i]), at)
        begin = lines[at].find("sdy.sharding_per_value<[")
        if begin < 0 and row["op"] == "func.call":
            return annotation_of_result(lines, at, index)
    if begin < 0:
        return None
    match = list(SHARDING.finditer(lines[at], lines[at].find("[", begin) if begin else 0))
    return (at, match[index][0], match[index].start()) if index < len(match) else None


def annotation_of_result(lines: list[str], call: int, index: int) -> tuple[int, str, int] | None:
    """The same for a result of the function that a call names."""
    (function,) = re.findall(r"call (@[\w.]+)\(", lines[call])
    at = next(i for i, line in enumerate(lines) if re.search(rf"func\.func (?:\w+ )?{re.escape(function)}\(", line))
    result = list(RESULT.finditer(lines[at], lines[at].index(" -> ")))[index]
    return (at, result[1], result.start(1)) if result[1] else None
