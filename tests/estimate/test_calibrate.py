# SPDX-License-Identifier: Apache-2.0
"""``sw.hardware.calibrate``: planted constants are found again, and estimates on calibrated hardware are their sums."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import shardwise as sw
from shardwise import P
from shardwise.calibrating import nonnegative_least_squares
from tests.estimate.training_steps import Step

PLANTED = {"matrix": 1.3, "attention": 2.5, "memory": 1.7, "tiers.nvlink": 0.4, "tiers.infiniband": 0.4}
STEPS = [
    Step(data=data, model=model, width=width, hidden=hidden, tokens=tokens)
    for data, model, width, hidden, tokens in (
        (8, 1, 1024, 4096, 2**14), (8, 1, 512, 512, 2**17), (16, 1, 1024, 8192, 2**12), (32, 2, 2048, 2048, 2**15),
        (16, 4, 4096, 1024, 2**16),
    )
]  # fmt: skip


def attention(tokens: int) -> Any:
    def function(q: Any, k: Any, v: Any) -> Any:
        scores = np.einsum("bqc,bkc->bqk", q, k)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return np.einsum("bqk,bkc->bqc", scores / scores.sum(axis=-1, keepdims=True), v)

    x = sw.ShapeDtypeStruct((16, tokens, 64), sw.bfloat16)
    return sw.jit(function, mesh=sw.Mesh({"x": 8}), in_shardings=P("x")).lower(x, x, x).compile()


PROGRAMS = [*(step.compile() for step in STEPS), attention(2048), attention(16384)]


def with_constants(constants: dict[str, float], base: str = "h100_sxm") -> sw.hardware.Hardware:
    section = {
        "constants": constants, "fitted_on": "nothing", "steps": 1,
        "mean_error": 0, "max_error": 0, "left_out_error": 0,
    }  # fmt: skip
    return sw.hardware.load({**sw.hardware.load(base).to_dict(), "name": "planted", "calibration": section})


def measured(constants: dict[str, float] = PLANTED, programs: Any = PROGRAMS) -> list[tuple[Any, float]]:
    hardware = with_constants(constants)
    return [(program, program.estimate(hardware).estimate) for program in programs]


def test_planted_constants_are_found() -> None:
    found = sw.hardware.calibrate(measured(), hardware="h100_sxm")
    calibration = found.calibration
    assert calibration is not None
    assert calibration.constants == pytest.approx(PLANTED, rel=1e-6)
    assert (calibration.steps, calibration.fitted_on) == (7, "7 steps")
    assert max(calibration.mean_error, calibration.max_error, calibration.left_out_error) < 1e-6
    assert found.name == "h100_sxm_calibrated"


def test_each_tier_may_have_a_constant() -> None:
    constants = {**PLANTED, "tiers.nvlink": 0.8, "tiers.infiniband": 0.1}
    found = sw.hardware.calibrate(measured(constants), hardware="h100_sxm", terms=list(constants))
    assert found.calibration.constants == pytest.approx(constants, rel=1e-6)


def test_terms_share_a_constant_and_others_keep_1() -> None:
    constants = {"matrix": 1.2, "attention": 1.2, "tiers.nvlink": 0.5}
    found = sw.hardware.calibrate(
        measured(constants), hardware="h100_sxm", terms=[("matrix", "attention"), "tiers.nvlink"]
    )
    assert found.calibration.constants == pytest.approx(constants, rel=1e-6)


def test_an_estimate_is_the_sum_of_its_terms() -> None:
    hardware = with_constants(PLANTED)
    for program in PROGRAMS:
        plain, estimate = program.estimate("h100_sxm"), program.estimate(hardware)
        assert sum(row.cost for row in estimate) == pytest.approx(estimate.estimate, rel=1e-12)
        assert estimate.compute + estimate.exposed == pytest.approx(estimate.estimate, rel=1e-12)
        assert sum(group.seconds for group in estimate.by("line")) == pytest.approx(estimate.estimate, rel=1e-12)
        assert estimate.lower == min(plain.lower, estimate.estimate)
        assert estimate.upper >= max(plain.upper, estimate.estimate)
        assert estimate.estimate * estimate.hfu == pytest.approx(plain.estimate * plain.hfu)
        assert estimate.estimate == pytest.approx(hardware.calibration.seconds(plain), rel=1e-12)
        expected = sum(
            row.executions
            * (
                PLANTED["attention" if row.is_attention else "matrix"] * row.products
                + PLANTED["memory"] * row.parts.get("memory", 0)
                if row.kind == "kernel"
                else 0.4 * (row.parts.get("nvlink", 0) + row.parts.get("infiniband", 0))
            )
            for row in plain
        )
        assert estimate.estimate == pytest.approx(expected, rel=1e-9)


def test_starts_and_the_trace_follow_each_other(tmp_path: Path) -> None:
    estimate = PROGRAMS[2].estimate(with_constants(PLANTED))
    for row, following in zip(estimate.rows, estimate.rows[1:]):
        assert following.start == pytest.approx(row.start + row.cost, rel=1e-9, abs=1e-15)
    estimate.save_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    spans = [event["dur"] for event in events if event["ph"] == "X" and event["tid"] == 0]
    assert sum(spans) == pytest.approx(estimate.estimate * 1e6, rel=1e-9)


def test_what_it_was_fitted_on_is_printed() -> None:
    noisy = [(program, seconds * (1.1 if i % 2 else 1)) for i, (program, seconds) in enumerate(measured())]
    found = sw.hardware.calibrate(noisy, hardware="h100_sxm", fitted_on="our cluster, June", name="ours")
    calibration = found.calibration
    assert 0 < calibration.mean_error < calibration.max_error < 0.1
    assert calibration.mean_error < calibration.left_out_error < 0.3
    words = f"our cluster, June (errors: mean {calibration.mean_error:.1%}, largest {calibration.max_error:.1%}"
    estimate = PROGRAMS[0].estimate(found)
    for text in (repr(found), estimate.summary(), estimate.assumptions[-2], str(calibration)):
        assert words in text
    assert "calibrated" not in PROGRAMS[0].estimate("h100_sxm").summary()
    assert PROGRAMS[0].estimate("h100_sxm").to_dict()["calibration"] is None
    assert estimate.to_dict()["calibration"] == calibration.to_dict()
    assert sw.hardware.load("h100_sxm").calibration is None
    numbers = {number.path: number for number in found.numbers}
    assert numbers["calibration.constants.matrix"].source == "fitted on our cluster, June"


def test_a_file_is_read_back(tmp_path: Path) -> None:
    found = sw.hardware.calibrate(measured(), hardware="h100_sxm")
    assert sw.hardware.load(found.to_dict()) == found
    path = tmp_path / "ours.json"
    path.write_text(json.dumps(found.to_dict()))
    again = sw.hardware.load(path)
    assert again.calibration == found.calibration
    assert PROGRAMS[0].estimate(again).estimate == PROGRAMS[0].estimate(found).estimate
    assert PROGRAMS[0].estimate(str(path)).hardware == again


def test_choices_do_not_depend_on_constants() -> None:
    slow = with_constants({"tiers.nvlink": 100.0})

    def compiled(hardware: Any) -> Any:
        x, w = sw.ShapeDtypeStruct((4096, 8192), sw.bfloat16), sw.ShapeDtypeStruct((8192, 8192), sw.bfloat16)
        shardings = {"in_shardings": (P(None, "t"), P("t")), "out_shardings": P()}
        return sw.jit(np.dot, mesh=sw.Mesh({"t": 8}), hardware=hardware, **shardings).lower(x, w).compile()

    assert compiled(slow).as_text() == compiled("h100_sxm").as_text()


def test_calibrated_hardware_is_fitted_anew() -> None:
    first = sw.hardware.calibrate(measured(), hardware="h100_sxm")
    again = sw.hardware.calibrate(measured(), hardware=first, name="again")
    assert again.calibration == first.calibration


def test_steps_may_be_estimates_and_a_file(tmp_path: Path) -> None:
    steps = measured()
    expected = sw.hardware.calibrate(steps, hardware="h100_sxm")
    estimates = [(program.estimate("h100_sxm"), seconds) for program, seconds in steps]
    assert sw.hardware.calibrate(estimates, hardware="h100_sxm") == expected
    path = tmp_path / "steps.csv"
    lines = [f"{seconds!r},step {i},night" for i, (_, seconds) in enumerate(steps)]
    path.write_text("seconds,program,when\n" + "\n".join(lines) + "\n")
    programs = {f"step {i}": program for i, (program, _) in enumerate(steps)}
    found = sw.hardware.calibrate(path, programs, hardware="h100_sxm")
    assert found.calibration.constants == expected.calibration.constants
    assert found.calibration.fitted_on.startswith("7 steps of ")


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 5), st.integers(0, 12), st.integers(0, 2**32 - 1))
def test_least_squares_has_no_better_neighbor(columns: int, more: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((columns + more, columns)), rng.standard_normal(columns + more)
    x = nonnegative_least_squares(a, b)
    slope = a.T @ (a @ x - b)
    assert np.all(x >= 0)
    assert np.all(slope >= -1e-9)  # a larger x is no better
    assert np.all(np.abs(slope[x > 0]) < 1e-9)  # nor is a smaller one


STEP = (PROGRAMS[0], 1.0)


def test_steps_that_are_alike_are_refused() -> None:
    steps = [(PROGRAMS[0], 1e-3)] * 6
    with pytest.raises(ValueError, match="calibrate: the steps must tell the terms apart"):
        sw.hardware.calibrate(steps, hardware="h100_sxm")


@pytest.mark.parametrize(
    ("steps", "options", "error", "message"),
    [
        ([STEP], {}, ValueError, "needs as many steps as constants, got 1 for 3"),
        ([STEP] * 3, {"terms": ["vector"]}, ValueError, "terms must be among matrix, attention, memory, tiers."),
        ([STEP] * 3, {"terms": ["matrix", ("memory", "matrix")]}, ValueError, "each term must be in terms once"),
        ([STEP] * 3, {"terms": []}, ValueError, "there must be 1 to 5 constants, got 0"),
        ([], {}, ValueError, "there must be a step, got none"),
        ([STEP] * 3, {"terms": "matrix"}, TypeError, "terms must be a sequence of terms, or of tuples"),
        ([STEP] * 3, {"terms": ["attention"]}, ValueError, "each term must be in a step at least, got attention"),
        ([(PROGRAMS[0], 0.0)], {}, ValueError, "the seconds of a step must be a number above 0, got 0.0"),
        ([(PROGRAMS[0], float("nan"))], {}, ValueError, "must be a number above 0, got nan"),
        ([(PROGRAMS[0], "1")], {}, ValueError, "must be a number above 0, got '1'"),
        ([(1.0, PROGRAMS[0])], {}, TypeError, "steps must be pairs of a program and the seconds of its step"),
        ([1.0], {}, TypeError, "steps must be pairs of a program and the seconds of its step"),
        (3, {}, TypeError, "steps must be pairs of a program and the seconds of its step"),
        ([(PROGRAMS[0].estimate("h200"), 1.0)], {}, ValueError, "each estimate must be on the hardware that is"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named(steps: Any, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        sw.hardware.calibrate(steps, hardware="h100_sxm", **options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,seconds\na,1\n", "steps.csv must have the columns program and seconds, got name, seconds"),
        ("", "steps.csv must have the columns program and seconds, got none"),
        ("program,seconds\na,1\nc,1\n", "steps.csv:3: program must be one of a, b, got 'c'"),
        ("program,seconds\na,fast\n", "steps.csv:2: seconds must be a number, got 'fast'"),
        ("program,seconds\na,-1\n", "steps.csv:2: the seconds of a step must be a number above 0, got -1.0"),
        ("program,seconds\na\n", "steps.csv:2: seconds must be a number, got None"),
    ],
)
def test_a_wrong_file_is_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "steps.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(message)):
        sw.hardware.calibrate(path, {"a": PROGRAMS[0], "b": PROGRAMS[1]}, hardware="h100_sxm")
    with pytest.raises(TypeError, match="programs must be a dict of programs by name"):
        sw.hardware.calibrate(path, hardware="h100_sxm")


def test_a_wrong_section_is_refused() -> None:
    with pytest.raises(sw.ParseError, match=r"calibration\.constants must have matrix, attention, memory or"):
        with_constants({"tiers.ici": 1.0})
    with pytest.raises(sw.ParseError, match=r"calibration\.constants\.matrix must be a number of at least 0, got -1"):
        with_constants({"matrix": -1.0})
