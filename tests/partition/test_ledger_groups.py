# SPDX-License-Identifier: Apache-2.0
"""Ledgers in groups, sorted, compared, and as data frames."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import shardwise as sw
from shardwise import P
from shardwise.reports.ledger import Ledger, ledger_of
from shardwise.reports.ledger_groups import CollectiveGroup, LedgerDifference

MESH = sw.Mesh({"data": 4, "model": 2})
ROW: dict[str, Any] = {
    "kind": "all_reduce", "axes": '{"model"}', "group_size": 2, "bytes": 512.0, "shape": [8, 16], "dtype": "float32",
    "count": 1, "file": "train.py", "line": 31, "cause": "reduction in dot_general", "name": "h",
}  # fmt: skip
GATHER = {**ROW, "kind": "all_gather", "bytes": 100.0, "count": 3, "line": 9, "cause": "annotation"}
LAYERS = 48


def layers(x: Any, weights: Any) -> Any:
    for up, down in weights:
        x = np.tanh(x @ up) @ down
    return x


def deep_ledger() -> Ledger:
    weights = [(np.ones((4, 6), np.float32), np.ones((6, 4), np.float32))] * LAYERS
    specs = [(P(None, "model"), P("model", None))] * LAYERS
    program = sw.jit(layers, mesh=MESH, in_shardings=(P("data"), specs)).lower(np.ones((8, 4), np.float32), weights)
    return program.compile().collectives()


def on_terminal(report: Any) -> str:
    console = Console(width=120, file=io.StringIO())
    console.print(report)
    return console.file.getvalue()


# ---- groups ---------------------------------------------------------------------------------------------------------


def test_a_ledger_is_grouped_largest_first() -> None:
    groups = ledger_of([GATHER, ROW, ROW]).group_by("where")
    assert groups.rows == (
        CollectiveGroup(("train.py:31",), 2, 1024.0, 1024 / 1324),
        CollectiveGroup(("train.py:9",), 3, 300.0, 300 / 1324),
    )
    assert repr(groups) == (
        "3 collectives, 1.293 KiB received per device, by where, largest first:\n"
        "where        count  bytes  share\n"
        "train.py:31      2  1 KiB  77.3%\n"
        "train.py:9       3  300 B  22.7%"
    )


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ((), ("train.py:31", "all_reduce")), (("kind",), ("all_reduce",)), (("axes", "devices"), ('{"model"}', 2)),
        (("type", "dtype"), ("float32[8,16]", "float32")), (("cause", "name"), ("reduction in dot_general", "h")),
        (("file", "where", "kind"), ("train.py", "train.py:31", "all_reduce")),
    ],
)  # fmt: skip
def test_a_ledger_is_grouped_by_any_columns(keys: tuple[str, ...], key: tuple[Any, ...]) -> None:
    groups = ledger_of([ROW]).group_by(*keys)
    assert groups.by == (keys or ("where", "kind"))
    assert [(group.key, group.count, group.bytes, group.share) for group in groups] == [(key, 1, 512.0, 1.0)]


def test_groups_are_data_table_and_html() -> None:
    groups = ledger_of([GATHER, ROW]).group_by("kind", "axes")
    assert json.loads(groups.to_json()) == {
        "by": ["kind", "axes"],
        "groups": [
            {"kind": "all_reduce", "axes": '{"model"}', "count": 1, "bytes": 512.0, "share": 512 / 812},
            {"kind": "all_gather", "axes": '{"model"}', "count": 3, "bytes": 300.0, "share": 300 / 812},
        ],
    }
    text = on_terminal(groups)
    assert text.startswith("2 collectives, 812 B received per device, by kind and axes, largest first:")
    assert "63.1%" in text
    assert "<td>{&quot;model&quot;}</td><td>1</td><td>512 B</td><td>63.1%</td>" in groups._repr_html_()
    assert groups[:1].rows == groups.rows[:1]
    assert groups[:1] != groups
    assert len({groups, ledger_of([GATHER, ROW]).group_by("kind", "axes")}) == 1


def test_groups_of_nothing_and_of_no_bytes() -> None:
    assert repr(ledger_of([]).group_by("kind")) == "no collectives"
    assert ledger_of([{**ROW, "bytes": 0.0}]).group_by("kind")[0].share == 0.0


def test_of_many_groups_the_largest_are_printed() -> None:
    groups = ledger_of([{**ROW, "line": i, "bytes": float(i)} for i in range(1, 43)]).group_by("where")
    assert len(groups) == 42
    assert repr(groups).splitlines()[-1] == "… 2 more groups, 3 B"
    assert repr(groups[:41]).splitlines()[-1] == "… 1 more group, 2 B"
    assert repr(groups[:40]).splitlines()[-1].startswith("train.py:3 ")
    assert len(groups.to_dict()["groups"]) == 42


def test_a_long_ledger_is_printed_in_groups_and_keeps_its_rows() -> None:
    ledger = deep_ledger()
    line = layers.__code__.co_firstlineno + 2
    assert len(ledger.rows) == len(ledger) == LAYERS
    lines = repr(ledger).splitlines()
    assert lines[0] == "48 collectives, 1.5 KiB received per device, by where and kind, largest first:"
    assert lines[1].split() == ["where", "kind", "count", "bytes", "share"]
    assert lines[2].endswith(f"test_ledger_groups.py:{line}  all_reduce     48  1.5 KiB  100.0%")
    assert lines[3:] == [".rows has every collective; .group_by(…) groups by other columns"]
    assert f"test_ledger_groups.py:{line}" in on_terminal(ledger)
    html = ledger._repr_html_()
    assert html.startswith("<p>48 collectives, 1.5 KiB received per device, by where and kind, largest first:</p>")
    assert "<summary>all 48 collectives</summary>" in html
    assert html.count("<tr>") == 2 + 1 + LAYERS
    assert len(ledger.to_dict()["collectives"]) == LAYERS
    assert repr(ledger[:24]).startswith("kind ")
    assert len(repr(ledger[:24]).splitlines()) == 26


def test_the_largest_collectives() -> None:
    ledger = ledger_of([GATHER, ROW, {**ROW, "count": 2}])
    assert [row.total_bytes for row in ledger.largest(2)] == [1024.0, 512.0]
    assert [row.total_bytes for row in ledger.largest()] == [1024.0, 512.0, 300.0]


# ---- differences ----------------------------------------------------------------------------------------------------


def test_two_ledgers_are_compared() -> None:
    before, after = ledger_of([ROW, GATHER]), ledger_of([ROW, ROW, {**ROW, "kind": "all_to_all", "bytes": 2048.0}])
    diff = before.diff(after)
    assert diff
    assert diff.rows == (
        LedgerDifference("+", ("train.py:31", "all_to_all", '{"model"}'), (0, 1), (0.0, 2048.0)),
        LedgerDifference("~", ("train.py:31", "all_reduce", '{"model"}'), (1, 2), (512.0, 1024.0)),
        LedgerDifference("-", ("train.py:9", "all_gather", '{"model"}'), (3, 0), (300.0, 0.0)),
    )
    assert repr(diff) == (
        "3 differences by where, kind and axes, 812 B → 3 KiB received per device:\n"
        "   where        kind        axes       count          bytes\n"
        '+  train.py:31  all_to_all  {"model"}      1          2 KiB\n'
        '~  train.py:31  all_reduce  {"model"}  1 → 2  512 B → 1 KiB\n'
        '-  train.py:9   all_gather  {"model"}      3          300 B'
    )
    assert [row.change for row in after.diff(before)] == ["-", "~", "+"]
    assert json.loads(diff.to_json())["differences"][1] == {
        "change": "~", "where": "train.py:31", "kind": "all_reduce", "axes": '{"model"}', "count_before": 1,
        "count_after": 2, "bytes_before": 512.0, "bytes_after": 1024.0,
    }  # fmt: skip
    assert "1 → 2" in on_terminal(diff)
    assert "<tr><td>~</td><td>train.py:31</td>" in diff._repr_html_()
    assert repr(diff[:1]).startswith("1 difference by where, kind and axes, 812 B → 3 KiB received per device:\n")


def test_bytes_that_change_alone_are_a_difference() -> None:
    (row,) = ledger_of([ROW]).diff(ledger_of([{**ROW, "bytes": 1024.0}]))
    assert (row.change, row.counts, row.bytes) == ("~", (1, 1), (512.0, 1024.0))
    text = repr(ledger_of([ROW]).diff(ledger_of([{**ROW, "bytes": 1024.0}])))
    assert text.splitlines()[-1].split("  ")[-2:] == ["1", "512 B → 1 KiB"]


def test_equal_ledgers_have_no_difference() -> None:
    diff = deep_ledger().diff(deep_ledger())
    assert not diff
    assert repr(diff) == "no difference"
    assert diff._repr_html_() == "<p>no difference</p>"
    assert on_terminal(diff) == "no difference\n"


def test_programs_of_other_lines_are_compared_by_what_they_have_in_common() -> None:
    moved = ledger_of([{**ROW, "line": 77}])
    assert [row.change for row in ledger_of([ROW]).diff(moved)] == ["-", "+"]
    assert not ledger_of([ROW]).diff(moved, by=("kind", "axes"))
    assert not ledger_of([ROW]).diff(moved, by="kind")


def test_diff_shows_what_an_annotation_costs() -> None:
    def program(spec: P) -> sw.Program:
        def f(x: Any) -> Any:
            return sw.shard(np.tanh(x), spec).sum(1)

        return sw.jit(f, mesh=MESH, in_shardings=P("data")).lower(np.ones((8, 4), np.float32)).compile()

    diff = program(P("data")).collectives().diff(program(P(None, "data")).collectives(), by="kind")
    assert [(row.change, *row.key) for row in diff] == [("+", "all_gather")]


# ---- data frames ----------------------------------------------------------------------------------------------------


def test_ledgers_groups_and_differences_are_data_frames() -> None:
    ledger = ledger_of([GATHER, ROW])
    frame = ledger.to_pandas()
    assert list(frame["kind"]) == ["all_gather", "all_reduce"]
    assert frame.groupby("where")["total_bytes"].sum().to_dict() == {"train.py:31": 512.0, "train.py:9": 300.0}
    assert list(ledger.group_by("where").to_pandas().columns) == ["where", "count", "bytes", "share"]
    assert ledger.diff(ledger[:1]).to_pandas()["change"].tolist() == ["-"]
    assert list(ledger_of([]).to_pandas().columns) == list(frame.columns)


def test_without_pandas_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"^to_pandas: needs pandas, got none installed; pip install pandas \(at "):
        ledger_of([ROW]).to_pandas()
