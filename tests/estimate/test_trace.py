# SPDX-License-Identifier: Apache-2.0
"""``Estimate.save_trace``: events that Perfetto reads, which sum up to the estimate, and the memory beside them."""

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
from tests.estimate.training_steps import BF16, Step

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


def _nested() -> Any:
    """A loop in a loop, after an op that each trip of the outer one runs."""

    def f(x: Any) -> Any:
        def outer(x: Any, _: Any) -> Any:
            return sw.scan(lambda y, _: (np.exp(np.dot(y, y)), None), np.dot(x, x), None, length=4)[0], None

        return sw.scan(outer, x, None, length=3)[0]

    shape = sw.ShapeDtypeStruct((1024, 1024), np.float32)
    return sw.jit(f, mesh=sw.Mesh({"x": 1}), in_shardings=P()).lower(shape).compile()


PROGRAMS = {
    **{str(step): step.compile for step in STEPS},
    "two tiers": Step(layers=2, width=512, hidden=512, tokens=2**14, data=128, is_recomputed=True).compile,
    "branching": _branching,
    "calls": _calls,
    "nested": _nested,
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
    assert {event["ph"] for event in events} <= {"X", "M", "s", "f", "C"}
    for event in events:
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert event["name"]
        if event["ph"] == "X":
            assert event["ts"] >= 0
            assert event["dur"] >= 0
        if event["ph"] == "C":
            assert list(event["args"]) == ["bytes"]
            assert isinstance(event["args"]["bytes"], int)
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


def _check_memory(events: list[Event], program: Any, seconds: float) -> None:
    counted = [event for event in events if event["ph"] == "C"]
    memory = program.memory()
    assert max(event["args"]["bytes"] for event in counted) == memory.peak_bytes
    assert counted[-1]["args"]["bytes"] == memory.timeline()[-1].bytes
    for event, following in itertools.pairwise(counted):
        assert following["ts"] >= event["ts"]
    assert counted[0]["ts"] == 0
    assert counted[-1]["ts"] == pytest.approx(seconds * 1e6)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("hardware", ["h100_sxm", "tpu_v5p"])
def test_trace_is_one_that_perfetto_reads(name: str, hardware: str, tmp_path: Path) -> None:
    program = PROGRAMS[name]()
    estimate = program.estimate(hardware)
    events = _trace(estimate, tmp_path)
    _check(events, estimate.estimate)
    _check_memory(events, program, estimate.estimate)


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


def test_memory_follows_the_kernels(tmp_path: Path) -> None:
    def f(x: Any, w: Any) -> Any:
        return np.dot(np.dot(x, w), w)

    square = sw.ShapeDtypeStruct((1024, 1024), BF16)
    program = sw.jit(f, mesh=sw.Mesh({"x": 2}), in_shardings=(P("x"), P())).lower(square, square).compile()
    estimate = program.estimate("h100_sxm")
    first, second = (row.start * 1e6 for row in estimate)
    points = [(e["ts"], e["args"]["bytes"] / 2**20) for e in _trace(estimate, tmp_path) if e["ph"] == "C"]
    # x has 1 MiB, w 2 MiB, and each product 1 MiB; the first one is freed when the second one has been computed.
    assert first == 0
    assert points == [(0, 4), (second, 5), (pytest.approx(estimate.estimate * 1e6), 4)]


def test_the_second_trip_of_a_loop_has_its_memory(tmp_path: Path) -> None:
    program = Step(layers=6, width=256, hidden=512, tokens=2048).compile()
    events = _trace(program.estimate("h100_sxm"), tmp_path)
    more = [e for e in events if e["ph"] == "X" and e["name"] == "5 more trips"]
    assert len(more) == 2  # forward and backward
    for event in more:
        inside = [e["ts"] for e in events if e["ph"] == "C" and event["ts"] < e["ts"] < event["ts"] + event["dur"]]
        assert len(set(inside)) > 1
        assert inside[0] < event["ts"] + event["dur"] / 5  # in the second trip


def test_memory_of_nested_loops(tmp_path: Path) -> None:
    estimate = _nested().estimate("h100_sxm")
    events = _trace(estimate, tmp_path)
    compute = _tracks(events)["compute"]
    (inner,) = (e for e in compute if e["name"] == "3 more trips")
    (outer,) = (e for e in compute if e["name"] == "2 more trips")
    times = [e["ts"] for e in events if e["ph"] == "C"]
    for event in (inner, outer):
        assert sum(event["ts"] <= time < event["ts"] + event["dur"] for time in times) > 2
    # Of the second trip of the outer loop, the product before the inner one, and a trip of this.
    trip = outer["dur"] / 2
    assert any(outer["ts"] <= time < outer["ts"] + trip / 5 for time in times)
    assert any(outer["ts"] + trip / 5 < time <= outer["ts"] + trip for time in times)


def test_calibrated_hardware_has_its_memory(tmp_path: Path) -> None:
    plain = [Step(layers=n, width=512, hidden=1024, tokens=4096).compile() for n in (1, 2, 3)]
    measured = [(program, 1.3 * program.estimate("h100_sxm").estimate) for program in plain]
    one = {"terms": [("matrix", "memory", "tiers.nvlink")]}
    hardware = sw.hardware.calibrate(measured, hardware="h100_sxm", fitted_on="a test", name="ours", **one)
    estimate = plain[2].estimate(hardware)
    events = _trace(estimate, tmp_path)
    _check(events, estimate.estimate)
    _check_memory(events, plain[2], estimate.estimate)


def test_a_file_is_named_by_a_path() -> None:
    # A number would be that of an open file.
    program = sw.jit(lambda x: x + 1, mesh=sw.Mesh({"x": 2})).lower(np.ones(2)).compile()
    with pytest.raises(TypeError, match="save_trace: path must be a str or a path, got 2"):
        program.estimate().save_trace(2)  # type: ignore[arg-type]
