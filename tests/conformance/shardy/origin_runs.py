# SPDX-License-Identifier: Apache-2.0
"""Where axes come from, by why() and by Shardy, on random modules; used by the tests and by origins.py.

for run in compare_origins(oracle, programs, ["sdy-basic-propagate"] * len(programs)):
    run.outcome, run.differences
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from shardwise import _core
from shardwise.reports.explanations import rows_of
from tests.conformance.shardy.client import ShardyOracle
from tests.conformance.shardy.mechanisms import mechanism_of
from tests.conformance.shardy.oracle_runs import PASSES, propagated, with_our_rules
from tests.conformance.shardy.origin_mechanisms import CONTRADICTED, IN_PIECES, NOT_CARRIED
from tests.conformance.shardy.random_modules.texts import ModuleText, Op, smaller


@dataclass
class Difference:
    """Of one axis of a value, or of one op's edges."""

    what: str  # "origin" or "edge"
    place: str  # "n7 0", "argument 1"; the op of an edge
    axis: str
    ours: Any
    theirs: Any
    in_pieces: bool = False  # what Shardy names is where another part of the axis comes from


@dataclass
class OriginRun:
    """One program."""

    given: str
    passes: str
    # "equal", or "explained": by mechanisms; "differs"; "resharded": the shardings themselves differ, and no mechanism
    # of mechanisms.py explains it; "ruled": Shardy has no rule for an op, or another one for an op inside a region
    # (mechanisms.py); "invalid": refused by Shardy, "died": it ended
    outcome: str = "equal"
    edges_only: bool = False
    text: str = ""  # the same without calls and with edges: what both propagated
    detail: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    mechanisms: Counter[str] = field(default_factory=Counter)

    def report(self) -> str:
        rows = [f"  {d.what} {d.place} {d.axis}: ours {d.ours}, Shardy {d.theirs}" for d in self.differences]
        return "\n".join([f"{self.passes}: {self.outcome} {self.detail}", *rows, self.given])


def says_something(text: str) -> bool:
    return '"' in text.partition("replicated")[0]


def has_annotated_ops(program: ModuleText) -> bool:
    """Shardy knows of no origin but arguments, results, constraints and manual computations."""
    return any(says_something(text) for op in program.ops() for text in op.shardings or [])


def origin_name(row: dict[str, Any]) -> str:
    return str(row["name"] or row["origin"].removesuffix(" of main"))


Rows = dict[int, tuple[str, list[dict[str, Any]]]]


def rows_by_number(result: Any) -> Rows:
    """Per value: "argument 1" or "n7 0", and its axes with their origins. Values inside of reductions have neither."""
    found: Rows = {}
    in_head = True
    for row in rows_of(result.explain_all()):
        in_head = in_head and not row["op"]
        place = f"argument {row['index']}" if in_head else f"{row['name']} {row['index']}" if row["op"] else ""
        if row["op"] == "sdy.manual_computation":  # the edges after it are what is sharded
            place = ""
        found[row["number"]] = (place, row["axes"] if place else [])
    return found


def our_origins(rows: Rows) -> dict[str, dict[str, list[tuple[str, str]]]]:
    """Per value and axis of a dim, the pieces in which it came: digits and origin."""
    found: dict[str, dict[str, list[tuple[str, str]]]] = {}
    for place, axes in rows.values():
        for a in axes:
            axis = a["axis"].replace('"', "")
            pieces = found.setdefault(place, {}).setdefault(axis.partition(":")[0], [])
            pieces.append((axis, origin_name(a)))
    return found


def compare_values(ours: dict[str, Any], theirs: dict[str, dict[str, str]], counts: Counter[str]) -> list[Difference]:
    """Axis by axis; Shardy's for the same digits, or for any of the axis where it has other digits."""
    found = []
    for place, axes in ours.items():
        counts["values"] += 1
        for name, pieces in axes.items():
            told = {axis: origin for axis, origin in theirs.get(place, {}).items() if axis.partition(":")[0] == name}
            for axis, origin in pieces:
                counts["axes"] += 1
                exact = told.get(axis)
                if exact == origin or (exact is None and origin in told.values()):
                    continue
                others = {other for _, other in pieces} & set(told.values())
                found.append(Difference("origin", place, axis, origin, exact or told or None, bool(others)))
    return found


def by_op(edges: Iterable[tuple[str, str, str, str]]) -> dict[str, set[tuple[str, str, str]]]:
    found: dict[str, set[tuple[str, str, str]]] = defaultdict(set)
    for op, *edge in edges:
        found[op].add((edge[0], edge[1], edge[2]))
    return found


def compare_edges(ours: list[Any], theirs: list[Any], counts: Counter[str]) -> list[Difference]:
    """Op by op: which axis went from which operand or result to which; Shardy notes an equal one of an op once, and
    those between main's results and the values returned with result 0."""
    mine = by_op((e["op"] or "results", e["axis"], e["source"], e["target"]) for e in ours)
    yours = by_op(("results" if e[1] == "result 0" else e[1], *e[2:5]) for e in theirs)
    found = []
    for op in sorted(set(mine) | set(yours)):
        counts["edges"] += len(mine[op])
        for axis in sorted({edge[0] for edge in mine[op] | yours[op]}):
            a = sorted(edge[1:] for edge in mine[op] if edge[0] == axis)
            b = sorted(edge[1:] for edge in yours[op] if edge[0] == axis)
            if a != b:
                found.append(Difference("edge", op, axis, a, b))
    return found


def cannot_be_ruled(op: Op) -> bool:
    """Whether Shardy takes no rule of ours for it."""
    return op.name.startswith("chlo.broadcast_") or (op.name.startswith("chlo.") and not op.operands)


def text_for_both(program: ModuleText) -> str:
    """Without sharding groups, of which Shardy's debug information knows nothing."""
    return "\n".join(line for line in with_our_rules(program).splitlines() if "sdy.sharding_group" not in line)


def compare_origins(oracle: ShardyOracle, programs: Sequence[ModuleText], passes: Sequence[str]) -> list[OriginRun]:
    """Each program under one of Shardy's module passes; of those with annotated ops Shardy is asked for edges alone."""
    runs = []
    for program, name in zip(programs, passes, strict=True):
        if any(cannot_be_ruled(op) for op in program.ops()):
            runs.append(OriginRun(program.text(), name, outcome="ruled"))
        else:
            runs.append(OriginRun(text_for_both(program), name, edges_only=has_annotated_ops(program)))
    compare_runs(oracle, [run for run in runs if run.outcome != "ruled"])
    for run, program in zip(runs, programs, strict=True):
        if run.outcome == "resharded":
            explain_resharded(oracle, run, program)
    return runs


def explain_resharded(oracle: ShardyOracle, run: OriginRun, program: ModuleText) -> None:
    """As oracle.py does: by the mechanism that a smaller program shows."""

    def is_resharded(candidate: ModuleText) -> bool:
        again = OriginRun(text_for_both(candidate), run.passes, edges_only=has_annotated_ops(candidate))
        compare_runs(oracle, [again])
        return again.outcome == "resharded"

    mechanism = mechanism_of(smaller(program, is_resharded, 400))
    if mechanism is not None:
        run.outcome = "explained"
        run.mechanisms[mechanism.name] += 1


def compare_runs(oracle: ShardyOracle, runs: Sequence[OriginRun]) -> None:
    """All of them are one request."""
    requests = [{"do": "origins", "text": r.given, "passes": r.passes, "edges_only": r.edges_only} for r in runs]
    for run, reply in zip(runs, oracle.ask_all(requests), strict=True):
        if "died" in reply:
            run.outcome, run.detail = "died", reply["died"]
        elif "error" in reply:
            run.outcome, run.detail = "invalid", reply["error"]
        else:
            compare_reply(run, reply)
    for run in runs:
        if run.outcome == "differs" and text_differences(oracle, run.text, run.passes):
            run.outcome = "resharded"


def text_differences(oracle: ShardyOracle, text: str, passes: str) -> list[Any]:
    """Of the shardings that both leave."""
    (reply,) = oracle.ask_all([{"do": "compare", "text": text, "passes": passes, "ours": propagated(text, passes)}])
    found: list[Any] = reply["differences"]
    return found


def compare_reply(run: OriginRun, reply: dict[str, Any]) -> None:
    run.text = reply["text"]
    result = _core.passes.propagate_program(_core.ir.parse(run.text), names=[PASSES[run.passes]])
    run.counts["programs"] += 1
    kept = {*reply["ops"], "argument"}  # dead ops go, and what Shardy notes on them with them
    edges = json.loads(result.edges())
    ours = [e for e in edges if not e["op"] or e["op"] in kept]
    theirs = [e for e in reply["edges"] if e[1].startswith("result") or e[1] in kept]
    rows = rows_by_number(result)
    noted = not_carried(edges, theirs)
    for difference in compare_edges(ours, theirs, run.counts):
        if was_not_carried(difference, noted):
            run.mechanisms[NOT_CARRIED] += 1
        else:
            run.differences.append(difference)
    if not run.edges_only:
        compare_reply_values(run, reply["origins"], kept, rows, edges)
    run.outcome = "differs" if run.differences else "explained" if run.mechanisms else "equal"


def compare_reply_values(run: OriginRun, told: dict[str, Any], kept: set[str], rows: Rows, edges: list[Any]) -> None:
    run.counts["programs with origins"] += 1
    live = {place: axes for place, axes in our_origins(rows).items() if place.split()[0] in kept}
    agreed = not run.differences
    for difference in compare_values(live, told, run.counts):
        if difference.in_pieces:
            run.mechanisms[IN_PIECES] += 1
        elif agreed and (
            credits_a_constraint(difference, run.text) or difference.ours in origins_by_edges(difference, rows, edges)
        ):
            run.mechanisms[CONTRADICTED] += 1
        else:
            run.differences.append(difference)


def credits_a_constraint(difference: Difference, text: str) -> bool:
    """Whether Shardy names a constraint on the argument that we name."""
    head = re.search(r'"func.func".*\n *\^bb0\((.*)\):\n', text)  # not there where main has no arguments
    arguments = re.findall(r"%\w+", head[1] if head else "")
    line = next((row for row in text.splitlines() if row.endswith(f'loc("{difference.theirs}")')), "")
    constrained = re.search(r'"sdy.sharding_constraint"\((%\w+)\)', line)
    if constrained is None or constrained[1] not in arguments:
        return False
    return bool(difference.ours == f"argument {arguments.index(constrained[1])}")


def not_carried(ours: Sequence[Any], theirs: Sequence[list[Any]]) -> list[list[Any]]:
    """The edges that Shardy notes of axes that the value never has, or that by both it is given later on: it did not
    have them before."""
    agreed = {(e["op"], e["axis"], e["source"], e["target"]) for e in ours}

    def is_given_later(edge: list[Any]) -> bool:
        return bool(edge[6]) and any(
            e[6] == edge[6] and e[2] == edge[2] and e[0] > edge[0] and tuple(e[1:5]) in agreed for e in theirs
        )

    return [edge for edge in theirs if not edge[5] or is_given_later(edge)]


def was_not_carried(difference: Difference, noted: Sequence[list[Any]]) -> bool:
    """Whether `noted`, the edges not carried, are all that Shardy has in addition, and stand for all that it lacks:
    for the first digits of an axis it notes the whole."""
    name = difference.axis.partition(":")[0]
    here = [edge for edge in noted if edge[1] == difference.place and edge[2].partition(":")[0] == name]
    added = [edge for edge in difference.theirs if edge not in difference.ours]
    lacking = [edge for edge in difference.ours if edge not in difference.theirs]
    whole = {tuple(edge[3:5]) for edge in here}
    exact = {tuple(edge[3:5]) for edge in here if edge[2] == difference.axis}
    return set(map(tuple, added)) <= exact and set(map(tuple, lacking)) <= whole


def origins_by_edges(difference: Difference, rows: Rows, edges: Sequence[dict[str, Any]]) -> set[str]:
    """Where the edges that both agree on lead, from a value back to those that had the axis from the start."""
    name = f'"{difference.axis.partition(":")[0]}"'
    start = next(number for number, (place, _) in rows.items() if place == difference.place)
    ends: set[str] = set()
    todo, seen = [(start, -1, 1 << 30)], set()
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        value, result, before = at
        into = [
            e for e in edges
            if (e["to"] == value or value in e["members"]) and (value or e["result"] == result) and e["visit"] < before
            and e["axis"].partition(":")[0] == name
        ]  # fmt: skip
        todo += [(e["from"], e["result"] if not e["from"] else -1, e["visit"]) for e in into]
        said = value and any(not a["path"] and a["axis"].startswith(name) for a in rows[value][1])
        if not into or said:  # some digits may have been there, and others joined them
            place = rows[value][0] if value else f"result {result}"
            ends.add(place if place.startswith(("argument", "result")) else place.partition(" ")[0])
    return ends
