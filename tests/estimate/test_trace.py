# SPDX-License-Identifier: Apache-2.0
"""``Estimate.save_trace``: events that Perfetto reads, which sum up to the estimate."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.estimate.test_estimate import STEPS
from tests.estimate.training_steps import Step

Event = dict[str, Any]
CALLS = """sdy.mesh @mesh = <["x"=8]>
func.func @main(%a: tensor<1024x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> tensor<1024x1024xf32> {
  %0 = call @layer(%a) : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %1 = call @layer(%0) : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %1 : tensor<1024x1024xf32>
}
func.func private @layer(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  @OPS@
  return %y20 : tensor<1024x1024xf32>
}
"""


def _branching() -> Any:
    """A loop of unknown length whose condition sends, with branches in it; a scan in a branch; a loop without trips."""

    def heavy(x: Any) -> Any:
        return np.exp(np.dot(x, x.T)) @ x

    def f(x: Any, n: Any) -> Any:
        def body(c: Any) -> Any:
            return c[0] + 1, sw.cond(c[0] > 2, heavy, np.sin, c[1])

        _, y = sw.while_loop(lambda c: np.sum(c[1]) < n, body, (np.float32(0), x))
        y, _ = sw.scan(lambda c, _: (np.cos(c), None), y, None, length=0)

        def scanned(y: Any) -> Any:
            return sw.scan(lambda c, _: (heavy(c), None), y, None, length=5)[0]

        return np.tanh(sw.switch(n.astype(np.int32), [scanned, np.exp, heavy], y))

    shapes = sw.ShapeDtypeStruct((1024, 1024), np.float32), sw.ShapeDtypeStruct((), np.float32)
    return sw.jit(f, mesh=sw.Mesh({"x": 16}), in_shardings=(P("x"), P())).lower(*shapes).compile()


def _calls() -> Any:
    ops = [f"%y{i} = stablehlo.tanh %{'x' if i == 0 else f'y{i - 1}'} : tensor<1024x1024xf32>" for i in range(21)]
    return sw.parse(CALLS.replace("@OPS@", "\n  ".join(ops)), "calls").compile()


PROGRAMS = {
    **{str(step): step.compile for step in STEPS},
    "two tiers": Step(layers=2, width=512, hidden=512, tokens=2**14, data=128, is_recomputed=True).compile,
    "branching": _branching,
    "calls": _calls,
}


def _trace(estimate: Any, folder: Path) -> list[Event]:
    estimate.save_trace(folder / "trace.json")
    events: list[Event] = json.loads((folder / "trace.json").read_text())["traceEvents"]
    return events


def _tracks(events: list[Event]) -> dict[str, list[Event]]:
    """The events of each track by its name, in the order of their times."""
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    found: dict[str, list[Event]] = {name: [] for name in names.values()}
    for event in sorted((e for e in events if e["ph"] == "X"), key=lambda e: (e["ts"], -e["dur"])):
        found[names[event["tid"]]].append(event)
    return found


def _check(events: list[Event], seconds: float) -> None:
    assert {event["ph"] for event in events} <= {"X", "M", "s", "f"}
    for event in events:
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert event["name"]
        if event["ph"] == "X":
            assert event["ts"] >= 0
            assert event["dur"] >= 0
    tracks = _tracks(events)
    assert sum(event["dur"] for event in tracks["compute"]) == pytest.approx(seconds * 1e6, rel=1e-6)
    for name, track in tracks.items():
        ends: list[float] = []
        for event in track:
            while ends and event["ts"] >= ends[-1] * (1 - 1e-9):
                ends.pop()
            assert not ends or name == "loops and branches", "one thing at a time"
            end = event["ts"] + event["dur"]
            assert not ends or end <= ends[-1] * (1 + 1e-9), "one thing is inside another, or after it"
            ends.append(end)
    flows = [(e["id"], e["ph"]) for e in events if e["ph"] in "sf"]
    assert len(flows) == len(set(flows))
    assert {i for i, ph in flows if ph == "s"} == {i for i, ph in flows if ph == "f"}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("hardware", ["h100_sxm", "tpu_v5p"])
def test_trace_is_one_that_perfetto_reads(name: str, hardware: str, tmp_path: Path) -> None:
    program = PROGRAMS[name]()
    estimate = program.estimate(hardware)
    events = _trace(estimate, tmp_path)
    _check(events, estimate.estimate)


def test_a_transfer_has_an_event_on_each_tier(tmp_path: Path) -> None:
    estimate = PROGRAMS["two tiers"]().estimate("h100_sxm")
    tracks = _tracks(_trace(estimate, tmp_path))
    both = [row for row in estimate if {"nvlink", "infiniband"} <= row.parts.keys()]
    assert both
    for row in both:
        assert [stream for stream, _, _ in row.stages] == [tier for tier in row.parts if tier != "latency"]
        assert sum(seconds for _, _, seconds in row.stages) == pytest.approx(row.seconds)
        for (_, start, seconds), (_, after, _) in itertools.pairwise(row.stages):
            assert after >= (start + seconds) * (1 - 1e-9)
        for stream, start, seconds in row.stages:
            assert any(
                (event["name"], event["ts"], event["dur"]) == (row.name, start * 1e6, seconds * 1e6)
                for event in tracks[stream]
            )
    shown = sum(event["dur"] for stream in ("nvlink", "infiniband") for event in tracks[stream])
    assert shown == pytest.approx(sum(row.seconds for row in estimate if row.kind == "transfer") * 1e6)


def test_branches_and_conditions_have_events(tmp_path: Path) -> None:
    estimate = _branching().estimate("h100_sxm")
    tracks = _tracks(_trace(estimate, tmp_path))
    around = [event["name"] for event in tracks["loops and branches"]]
    assert around.count("while, 16 trips") == 1
    assert around.count("case") + around.count("if") == 2
    assert [name for name in around if name.startswith("branch")] == [f"branch {i}" for i in (0, 1, 0, 1, 2)]
    computed = [event["name"] for event in tracks["compute"]]
    assert computed.count("15 more trips") == 1
    assert computed.count("condition of while, 16 more") == 1
    assert computed.count("4 more trips") == 1
    # A branch is as long as its share.
    for row in estimate:
        if row.name == "sine":
            assert row.stages[0][2] == pytest.approx(row.seconds / 2)
    assert sum(row.cost for row in estimate) == pytest.approx(estimate.estimate)


def test_a_function_that_is_called_again_has_an_event(tmp_path: Path) -> None:
    estimate = _calls().estimate("h100_sxm")
    tracks = _tracks(_trace(estimate, tmp_path))
    (call,) = tracks["loops and branches"]
    *kernels, again = tracks["compute"]
    assert call["name"] == again["name"]
    assert again["dur"] == pytest.approx(sum(event["dur"] for event in kernels))
    assert again["ts"] == pytest.approx(call["ts"] + call["dur"])
