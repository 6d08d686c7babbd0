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

import ml_dtypes
import numpy as np

from shardwise.dtypes import as_wide, is_inexact, numpy_dtype
from tests.conformance.stablehlo.ops.comparing import CALL, ROUNDED, Wide, differing, ours, same, wide_results
from tests.conformance.stablehlo.ops.invariants import broken
from tests.conformance.stablehlo.ops.mechanisms import MECHANISMS, Difference
from tests.conformance.stablehlo.ops.partitioned import run_partitioned
from tests.conformance.stablehlo.ops.xla import Xla
from tests.op.catalogue.instance import Instance
from tests.op.catalogue.values import Array

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
        found = _run_whole(outcome)
        if found is not None:
            whole[i] = found
    rounded = [i for i in whole if instances[i].kind in ROUNDED]
    wide: dict[int, Wide] = {}
    for i, results in zip(rounded, wide_results([instances[i] for i in rounded], xla)):
        if isinstance(results, str):
            outcomes[i].failures.append(f"XLA in float64: {results}")
        else:
            wide[i] = results
    for i, results in whole.items():
        if i in wide or instances[i].kind not in ROUNDED:
            _run_on_mesh(outcomes[i], results, _kept(instances[i], results, wide[i]) if i in wide else None)
    asked = [i for i in whole if instances[i].kind not in ("uniform", "normal", "definition")]
    differences: list[tuple[int, Difference, Any]] = []
    for i, answer in zip(asked, xla.run([instances[i] for i in asked])):
        if isinstance(answer, str):
            outcomes[i].failures.append(f"XLA: {answer}")
            continue
        for k, (got, want) in enumerate(zip(whole[i], answer)):
            bad = differing(instances[i], k, got, want, True, wide.get(i))
            if i in wide:  # XLA's convolutions in float64 multiply NaN by the holes of a dilation
                bad &= ~(np.isnan(wide[i].values[k]) & same(got, want) & ~np.isnan(got))
            if np.any(bad):
                differences.append((i, Difference(instances[i], k, got, want, wide.get(i)), bad))
    _explain(outcomes, differences, xla)
    return outcomes


def _kept(instance: Instance, whole: list[Array], wide: Wide) -> Wide:
    """The wide results, with ours of the whole program where the two differ: that is reported once."""
    values, terms = list(wide.values), list(wide.terms) if wide.terms else None
    for k, x in enumerate(whole):
        if is_inexact(x.dtype):
            bad = differing(instance, k, x, x, True, wide)
            values[k] = np.where(bad, as_wide(x), values[k])
            if terms is not None:  # of XLA's sum, which may have other terms
                terms[k] = np.where(bad, np.max(np.abs(values[k]), initial=0) + 2 * terms[k], terms[k])
    return Wide(values, terms)


def _run_whole(outcome: Outcome) -> list[Array] | None:
    """Our results; failures are those of types and ranges."""
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
    if instance.op.startswith(CALL):
        outcome.failures += broken(instance, whole)
    if instance.kind in ("uniform", "normal"):
        outcome.failures += misdrawn(instance, whole[0])
        if not np.array_equal(ours(instance)[0], whole[0]):
            outcome.failures.append("a second run draws other numbers")
    return whole


def misdrawn(instance: Instance, x: Array) -> list[str]:
    """What is wrong with random numbers: their bounds, mean or deviation, by six standard errors."""
    a, b = (float(v) for v in instance.arguments)
    numbers = x.astype(np.float64)
    if instance.kind == "normal":
        mean, deviation = a, b
    else:
        steps = 0 if is_inexact(x.dtype) else 1  # integers are below the bound, bools are both
        high = b + (x.dtype == np.bool_) - steps
        if not np.all((numbers >= a) & (numbers <= high)):
            return ["a random number is out of bounds"]
        count = b + (x.dtype == np.bool_) - a
        mean, deviation = (a + high) / 2, np.sqrt((count**2 - steps) / 12)
    error = 6 / np.sqrt(x.size) + float(ml_dtypes.finfo(x.dtype).eps if is_inexact(x.dtype) else 0)
    found = [] if abs(numbers.mean() - mean) <= error * deviation else [f"the mean is {numbers.mean()}, not {mean}"]
    if x.size > 500 and abs(numbers.std() - deviation) > error * deviation:
        found.append(f"the deviation is {numbers.std()}, not {deviation}")
    return found


def _run_on_mesh(outcome: Outcome, whole: list[Array], wide: Wide | None) -> None:
    instance = outcome.instance
    try:
        runs = run_partitioned(instance)
    except Exception as error:
        outcome.failures.append(f"partitioned: {error}")
        return
    for run, mode in zip(runs, ("once", "faithful")):
        for k, (got, want) in enumerate(zip(run, whole)):
            typed = got.dtype == want.dtype and got.shape == want.shape
            if not typed or np.any(differing(instance, k, got, want, False, wide)):
                outcome.failures.append(f"partitioned, {mode}: result {k} is\n{got}\nand not\n{want}")


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
