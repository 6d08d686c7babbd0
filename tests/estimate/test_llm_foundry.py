# SPDX-License-Identifier: Apache-2.0
"""Estimates of 155 measured training runs, with constants that were fitted to models of other sizes.

A run of the tests takes a third of the rows, for which the bounds are wider; SHARDWISE_WHOLE=1 takes all.
``python -m tests.estimate.test_llm_foundry`` prints every row.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

import shardwise as sw
from tests.estimate.mpt import Run, compiled, runs
from tests.support.run_seed import in_turn, is_whole

H100, A100 = ("h100", "h100_large"), ("a100_40",)


class Block(NamedTuple):
    """Runs on one kind of GPU, and what may be their mean error: of all of them, and of a third."""

    names: tuple[str, ...]
    hardware: str
    bound: float
    bound_of_third: float


BLOCKS = [Block(H100, "h100_sxm", 0.035, 0.045), Block(A100, "a100_40", 0.06, 0.08)]


def estimates(chosen: Sequence[Run], hardware: Any) -> list[Any]:
    return [compiled(run, hardware).estimate() for run in chosen]


def fitted(chosen: Sequence[Run], found: Sequence[Any], hardware: Any) -> sw.hardware.Hardware:
    steps = [(estimate, run.seconds) for run, estimate in zip(chosen, found)]
    return sw.hardware.calibrate(steps, hardware=hardware, fitted_on=f"{len(steps)} runs of llm-foundry")


def seconds(calibrated: sw.hardware.Hardware, estimate: Any) -> float:
    """As ``program.estimate(calibrated)``; the test below compares them."""
    return calibrated.calibration.seconds(estimate)


def errors_by_size(chosen: Sequence[Run], found: Sequence[Any], hardware: str) -> list[float]:
    """The relative error of each run, with constants of the other sizes."""
    pairs = list(zip(chosen, found))
    errors = {}
    for size in {run.model for run in chosen}:
        others = [(run, estimate) for run, estimate in pairs if run.model != size]
        calibrated = fitted(*zip(*others), hardware)
        errors.update({run: seconds(calibrated, e) / run.seconds - 1 for run, e in pairs if run.model == size})
    return [errors[run] for run in chosen]


def errors_of_constant_utilisation(chosen: Sequence[Run], utilisation: str) -> list[float]:
    """The errors if each run had the mean utilisation of the other sizes."""
    errors = []
    for run in chosen:
        others = [getattr(other, utilisation) for other in chosen if other.model != run.model]
        errors.append(getattr(run, utilisation) / statistics.mean(others) - 1)
    return errors


def mean(errors: Sequence[float]) -> float:
    return statistics.mean(map(abs, errors))


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.hardware)
def test_runs_of_models_of_other_sizes_are_predicted(block: Block) -> None:
    chosen = in_turn(runs(*block.names))
    found = estimates(chosen, block.hardware)
    assert [str(run) for run, e in zip(chosen, found) if e.lower > run.seconds] == []
    errors = errors_by_size(chosen, found, block.hardware)
    assert mean(errors) <= (block.bound if is_whole() else block.bound_of_third)
    for utilisation in ("mfu", "hfu"):
        assert mean(errors) < 0.75 * mean(errors_of_constant_utilisation(chosen, utilisation))
    calibrated = fitted(chosen, found, block.hardware)
    assert len(set(calibrated.calibration.constants.values())) <= 5
    assert all(0.2 < constant < 3 for constant in calibrated.calibration.constants.values())
    last = compiled(chosen[-1], calibrated).estimate()
    assert last.estimate == pytest.approx(seconds(calibrated, found[-1]), rel=1e-9)


def test_runs_have_the_bytes_of_fsdp() -> None:
    assert len(runs(*H100)) == 70
    for run in (next(r for r in runs(*H100) if not r.is_gathered_again), runs(*A100)[4], runs("h100")[1]):
        program = compiled(run, "h100_sxm")
        width, layers = {"3b": (2560, 32), "13b": (5120, 40), "70b": (8192, 80)}[run.model]
        weights = 12 * width**2 * layers * (run.gpus - 1) / run.gpus * run.passes
        outside = (50368 + run.length) * width * run.passes  # the embedding and the positions
        gathers, item = (2 if run.is_gathered_again else 1), np.dtype(run.reduction).itemsize
        bytes_of = {group.kind: group.bytes for group in program.collectives().group_by("kind")}
        # Rows of the vocabulary that are no multiple of the devices are exchanged.
        gathered = bytes_of["all_gather"] + bytes_of.get("exchange", 0)
        assert 0.999 * 2 * gathers * weights <= gathered <= 2 * gathers * weights + 4 * outside
        assert 0.999 * item * weights <= bytes_of["reduce_scatter"] <= item * weights + 4 * outside


def fp8(run: Run, calibrated: sw.hardware.Hardware) -> float:
    """Seconds with the constants of bf16 and the peak of fp8, at which products run but for attention."""
    document = calibrated.to_dict()
    peaks = document["peak_flops"]["matrix"]
    ratio = calibrated.peak("matrix", "float8_e4m3fn") / calibrated.peak("matrix", "bfloat16")
    constants = document["calibration"]["constants"]
    constants["attention"] *= ratio
    peaks["bf16"] = peaks["f8E4M3FN"]
    return compiled(run, sw.hardware.load({**document, "name": "fp8"})).estimate().estimate


def report() -> None:
    for block in BLOCKS:
        chosen = runs(*block.names)
        found = estimates(chosen, block.hardware)
        errors = errors_by_size(chosen, found, block.hardware)
        calibrated = fitted(chosen, found, block.hardware)
        print(calibrated)
        print(calibrated.calibration.constants)
        print(f"sizes left out: mean {mean(errors):.2%}, largest {max(map(abs, errors)):.1%}")
        for utilisation in ("hfu", "mfu"):
            constant = errors_of_constant_utilisation(chosen, utilisation)
            print(f"constant {utilisation}: mean {mean(constant):.1%}, largest {max(map(abs, constant)):.0%}")
        for error, run in sorted(zip(errors, chosen), key=lambda pair: -abs(pair[0])):
            print(f"{error:+7.1%}  {run}")
        if block.names == H100:
            fp8_errors = [fp8(run, calibrated) / run.seconds - 1 for run in runs("h100_fp8")]
            print(f"fp8: mean {mean(fp8_errors):.1%}")
            for error, run in zip(fp8_errors, runs("h100_fp8")):
                print(f"{error:+7.1%}  {run}")


if __name__ == "__main__":
    report()
