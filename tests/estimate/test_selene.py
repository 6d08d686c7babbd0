# SPDX-License-Identifier: Apache-2.0
"""Estimates of Megatron's steps on Selene, with two constants that were fitted to the other kind of recomputation.

``python -m tests.estimate.test_selene`` prints every row.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import pytest

from shardwise.calibrating import fitted
from shardwise.reports.calibration import Calibration
from tests.estimate.megatron import LENGTH, RUNS, SELENE, Run

FULL, SELECTIVE = ([run for run in RUNS if run.is_selective == which] for which in (False, True))
TWO = (("matrix", "memory"), ("tiers.nvlink", "tiers.infiniband"))  # kernels, and transfers
FOUR = (("matrix",), ("memory",), ("tiers.nvlink",), ("tiers.infiniband",))
# Of Calculon, whose tables of efficiencies were made on this machine, by arXiv 2205.05198 and its own validation.
CALCULON = {
    "22B, full": 1.396, "22B, selective": 1.137, "175B, full": 18.03, "175B, selective": 13.64,
    "530B, full": 49.89, "530B, selective": 34.47, "1T, full": 90.08, "1T, selective": 66.04,
}  # fmt: skip


def fit(runs: Sequence[Run], terms: Sequence[tuple[str, ...]] = TWO) -> Calibration:
    return fitted([run.quantities() for run in runs], [run.seconds for run in runs], terms, "runs on Selene")


def errors(runs: Sequence[Run], calibration: Calibration) -> list[float]:
    """The relative error of each run."""
    steps = [sum(calibration.constant(t) * s for t, s in run.quantities().items()) for run in runs]
    return [step / run.seconds - 1 for run, step in zip(runs, steps)]


def mean(found: Sequence[float]) -> float:
    return statistics.mean(map(abs, found))


def test_one_kind_of_recomputation_predicts_the_other() -> None:
    # The goals are 6 %.
    assert mean(errors(SELECTIVE, fit(FULL))) <= 0.02
    assert mean(errors(FULL, fit(SELECTIVE))) <= 0.02


@pytest.mark.parametrize("terms", [TWO, FOUR], ids=["two constants", "four constants"])
def test_all_rows_are_met(terms: Sequence[tuple[str, ...]]) -> None:
    found = errors(RUNS, fit(RUNS, terms))
    assert mean(found) <= 0.012
    assert max(map(abs, found)) <= 0.025
    assert mean(found) < mean([CALCULON[str(run)] / run.seconds - 1 for run in RUNS]) == pytest.approx(0.0365, abs=5e-4)


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_no_step_is_faster_than_the_lower_bound(run: Run) -> None:
    assert run.lower() <= run.seconds
    assert run.lower() <= sum(run.quantities().values())


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_a_layer_has_the_collectives_and_products_of_megatron(run: Run) -> None:
    activations = run.micro_batch * LENGTH * run.width * 2 * 7 / 8  # what a GPU receives in a gather
    large = {}
    for row in run.layer.collectives().rows:
        if row.bytes > activations / 2:
            assert row.bytes in (activations, 2 * activations)
            large[row.kind] = large.get(row.kind, 0) + row.count
    if run.is_selective:
        # Before two products and after two others, in the forward and in the backward pass; two gathers are repeated.
        assert large == {"all_gather": 6, "reduce_scatter": 4}
    else:
        assert large == {"all_reduce": 6}
    # Section 4 of the paper: 72 B s h² (1 + s / 6 h). Selective recomputation repeats the product of queries and keys;
    # the paper also counts that with the values, whose result no gradient needs.
    forward = 24 * run.micro_batch * LENGTH * run.width**2
    scores = 2 * run.micro_batch * LENGTH**2 * run.width
    flops = 3 * forward + 7 * scores if run.is_selective else 4 * (forward + 2 * scores)
    products = sum(row.products for row in run.layer.estimate(SELENE).rows)
    assert products == pytest.approx(flops / 8 / SELENE.peak("matrix", "bfloat16"), rel=1e-6)


def report() -> None:
    for name, chosen, others in (("full", FULL, SELECTIVE), ("selective", SELECTIVE, FULL), ("all", RUNS, RUNS)):
        calibration = fit(others)
        found = errors(chosen, calibration)
        constants = ", ".join(f"{term} {value:.2f}" for term, value in calibration.constants.items())
        print(f"{name}: mean {mean(found):.2%}, largest {max(map(abs, found)):.2%}; {constants}")
        for run, error in zip(chosen, found):
            calculon = CALCULON[str(run)] / run.seconds - 1
            print(f"{run!s:16} {run.seconds:6.2f} s  {error:+.1%}  (Calculon {calculon:+.1%})")


if __name__ == "__main__":
    report()
