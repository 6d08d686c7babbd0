# SPDX-License-Identifier: Apache-2.0
"""What a table prints is an attribute of its rows; long reports print in groups."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from shardwise.interop.comparison import Comparison
from shardwise.interop.comparison_rows import ComparisonRow, Totals
from shardwise.reports import (
    Estimate,
    EstimateDiff,
    EstimateGroups,
    Ledger,
    LedgerDiff,
    LedgerGroups,
    MemoryGroups,
    MemoryReport,
    MemoryTimeline,
    Promotions,
    Rematerialization,
    RematerializedGroups,
    ShardUpdateReport,
    WorkReport,
)
from shardwise.reports.groups import Groups
from shardwise.reports.tables import Report
from tests.memory_limit.programs import MODELS

MESH = sw.Mesh({"x": 4})


def layers(x: Any, scale: Any, *ws: Any) -> Any:
    for w in ws:
        x = np.tanh(x @ w)
    return np.sum(x) * scale


def program(count: int) -> sw.Program:
    w = sw.ShapeDtypeStruct((8, 8), np.float32)
    specs = (P(), P(), *[P("x")] * count)
    scale = sw.ShapeDtypeStruct((), np.float64)
    return sw.jit(layers, mesh=MESH, in_shardings=specs).lower(w, scale, *[w] * count).compile()


SHORT, LONG = program(2), program(30)
LIMITED = MODELS[0].jitted(memory_limit="800KB").lower(*MODELS[0].arguments).compile()
DESCENT = sw.ShapeDtypeStruct((64, 64), np.float32), sw.ShapeDtypeStruct((16, 64), np.float32)
SPLIT = sw.jit(
    lambda w, x: w - np.float32(0.1) * sw.grad(lambda w: ((x @ w) ** 2).sum())(w),
    mesh=MESH, in_shardings=(P(), P("x")), shard_update="x",
)  # fmt: skip
EXAMPLES: dict[type[Report[Any]], Report[Any]] = {
    Ledger: SHORT.collectives(),
    LedgerGroups: SHORT.collectives().group_by("where", "axes", "devices"),
    LedgerDiff: SHORT.collectives().diff(LONG.collectives(), by=("kind", "axes", "devices")),
    MemoryReport: SHORT.memory(),
    MemoryGroups: SHORT.memory().group_by("op", "type", "category"),
    MemoryTimeline: SHORT.memory().timeline(),
    Estimate: SHORT.estimate("h100_sxm"),
    EstimateGroups: SHORT.estimate("h100_sxm").by("line", "op"),
    EstimateDiff: SHORT.estimate("h100_sxm").diff(LONG.estimate("h100_sxm")),
    WorkReport: SHORT.work(),
    Promotions: SHORT.promotions(),
    Rematerialization: LIMITED.rematerialized(),
    RematerializedGroups: LIMITED.rematerialized().group_by("op", "how"),
    ShardUpdateReport: SPLIT.lower(*DESCENT).compile().shard_update(),
    Comparison: Comparison(
        [ComparisonRow("dot", "", Totals(1, 2.0, 3.0), (), Totals())], SHORT.collectives(), None, ()
    ),
}


def kinds(cls: type[Any]) -> Iterator[type[Any]]:
    for each in cls.__subclasses__():
        yield each
        yield from kinds(each)


def test_every_kind_of_report_has_an_example() -> None:
    assert set(kinds(Report)) - {Groups} == set(EXAMPLES)


@pytest.mark.parametrize("report", EXAMPLES.values(), ids=lambda report: type(report).__name__)
def test_columns_are_attributes_of_the_rows(report: Report[Any]) -> None:
    assert len(report) > 0
    columns = [column for column in report._header() if column]
    for row in report:
        values = [attrgetter(column)(row) for column in columns]
        assert len(values) == len(columns)
        assert set(map(str, columns)) - {c for c in columns if "." in c} <= set(dir(row))


def test_the_attributes_are_what_the_table_shows() -> None:
    ledger = SHORT.collectives()
    row = ledger[0]
    assert row.devices == row.group_size == 4
    assert row.where == row.location
    assert row.where.endswith(f"test_report_columns.py:{layers.__code__.co_firstlineno + 2}")
    group, *_ = groups = ledger.group_by("kind", "devices")
    assert (group.kind, group.devices) == group.key
    assert sum(each.count for each in groups) == len(ledger)
    with pytest.raises(AttributeError, match="'CollectiveGroup' object has no attribute 'axes'"):
        _ = group.axes
    change, *_ = ledger.diff(LONG.collectives(), by=("kind", "axes"))
    assert (change.kind, change.axes) == change.key
    assert change.count == change.counts
    memory = SHORT.memory()
    assert sum(each.share for each in memory) == pytest.approx(1)


def test_a_long_memory_report_is_printed_by_line_and_size() -> None:
    memory = LONG.memory()
    assert len(memory) > 24
    lines = repr(memory).splitlines()
    assert lines[0] == f"{len(memory)} values at the {memory.summary()}, by where and op, largest first:"
    assert lines[1].split() == ["where", "op", "count", "bytes", "share"]
    assert "argument" in lines[2]
    assert lines[-1] == ".rows has every value; .group_by(…) groups by other columns"
    groups = memory.group_by()
    sizes = [group.bytes for group in groups]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == memory.peak_bytes
    assert sum(group.count for group in groups) == len(memory)
    assert repr(memory.largest(5)).count("\n") == 6
    with pytest.raises(ValueError, match="keys must be of where, op, value, type, file, dtype, category, got 'axes'"):
        memory.group_by("axes")
    assert len(repr(SHORT.memory()).splitlines()) == len(SHORT.memory()) + 2
