# SPDX-License-Identifier: Apache-2.0
"""One instance against XLA and against itself on a mesh: what differs, and by which mechanisms it may.

for outcome in check(instances, xla):
    outcome.failures    # must be empty
    outcome.mechanisms  # names of mechanisms.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shardwise.dtypes import numpy_dtype
from tests.conformance.stablehlo.ops.comparing import differing, ours
from tests.conformance.stablehlo.ops.instance import Instance
from tests.conformance.stablehlo.ops.mechanisms import MECHANISMS, Difference
from tests.conformance.stablehlo.ops.partitioned import run_partitioned
from tests.conformance.stablehlo.ops.values import Array
from tests.conformance.stablehlo.ops.xla import Xla

TOGETHER = 120  # instances in one module of XLA


@dataclass
class Outcome:
    """The findings about one instance."""

    instance: Instance
    failures: list[str] = field(default_factory=list)
    mechanisms: set[str] = field(default_factory=set)


def check(instances: Sequence[Instance], xla: Xla) -> Iterator[Outcome]:
    for start in range(0, len(instances), TOGETHER):
        with np.errstate(all="ignore"):
            outcomes = _check(instances[start : start + TOGETHER], xla)
        yield from outcomes


def _check(instances: Sequence[Instance], xla: Xla) -> list[Outcome]:
    outcomes = [Outcome(x) for x in instances]
    whole: dict[int, list[Array]] = {}
    for i, outcome in enumerate(outcomes):
        found = _run_ours(outcome)
        if found is not None:
            whole[i] = found
    asked = [i for i in whole if instances[i].kind not in ("uniform", "normal")]
    differences: list[tuple[int, Difference, Any]] = []
    for i, answer in zip(asked, xla.run([instances[i] for i in asked])):
        if isinstance(answer, str):
            outcomes[i].failures.append(f"XLA: {answer}")
            continue
        for k, (got, want) in enumerate(zip(whole[i], answer)):
            bad = differing(instances[i], k, got, want, True)
            if np.any(bad):
                differences.append((i, Difference(instances[i], k, got, want), bad))
    _explain(outcomes, differences, xla)
    return outcomes


def _run_ours(outcome: Outcome) -> list[Array] | None:
    """Our results; failures are those of types, ranges, and of the run on a mesh."""
    instance = outcome.instance
    try:
        whole = ours(instance)
    except Exception as error:
        outcome.failures.append(f"Module.run: {error}")
        return None
    types = [(x.shape, x.dtype) for x in whole]
    if types != [(shape, numpy_dtype(dtype)) for shape, dtype in instance.results]:
        outcome.failures.append(f"results are {types}")
        return None
    if instance.kind == "uniform" and not np.all(
        (whole[0] >= instance.arguments[0]) & (whole[0] <= instance.arguments[1])
    ):
        outcome.failures.append("a random number is out of range")
    try:
        runs = run_partitioned(instance)
    except Exception as error:
        outcome.failures.append(f"partitioned: {error}")
        return whole
    for run, mode in zip(runs, ("once", "faithful")):
        for k, (got, want) in enumerate(zip(run, whole)):
            bad = (
                differing(instance, k, got, want, False)
                if got.dtype == want.dtype and got.shape == want.shape
                else True
            )
            if np.any(bad):
                outcome.failures.append(f"partitioned, {mode}: result {k} is\n{got}\nand not\n{want}")
    return whole


def _explain(outcomes: list[Outcome], differences: list[tuple[int, Difference, Any]], xla: Xla) -> None:
    wider = xla.run_wider([d.instance for _, d, _ in differences]) if differences else []
    for (i, difference, bad), answer in zip(differences, wider):
        if not isinstance(answer, str):
            difference.wider = answer[difference.result]
        for mechanism in MECHANISMS:
            if not np.any(bad):
                break
            explained = bad & mechanism.explains(difference)
            if np.any(explained):
                outcomes[i].mechanisms.add(mechanism.name)
                bad = bad & ~explained
        if np.any(bad):
            outcomes[i].failures.append(difference.shown(bad))
