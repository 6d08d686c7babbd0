# SPDX-License-Identifier: Apache-2.0
"""The constants of calibrated hardware: what each second of an estimate takes in truth.

A calibrated step is a sum of terms, a constant times a quantity each. The quantities are seconds of the uncalibrated
rows:

    matrix         products at the peak of the matrix unit, outside attention
    attention      those of attention kernels
    memory         what kernels read and write, at the bandwidth of memory
    tiers.nvlink   transfers over the tier nvlink
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

__all__ = ["Calibration", "calibrated_rows", "quantities_of"]

TIER = "tiers."  # begins the terms of links, as in the paths of a hardware file


@dataclass(frozen=True)
class Calibration:
    """What was fitted to measured steps, and how well it fits.

    Attributes:
        constants: by term: ``"matrix"``, ``"attention"``, ``"memory"``, or ``"tiers.nvlink"`` for the tier nvlink.
        fitted_on: the steps, in words.
        steps: how many there were.
        mean_error: the mean of the relative errors of these steps, without sign: 0.03 for 3 %.
        max_error: the largest of them.
        left_out_error: their mean if each step is estimated with constants that are fitted to the others.
    """

    constants: Mapping[str, float]
    fitted_on: str
    steps: int
    mean_error: float
    max_error: float
    left_out_error: float

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Calibration:
        """Of the section ``calibration`` of a hardware file, which was checked."""
        constants = {term: _value(constant) for term, constant in document["constants"].items()}
        errors = {name: _value(document[name]) for name in ("mean_error", "max_error", "left_out_error")}
        return cls(constants, document["fitted_on"], int(document["steps"]), **errors)

    def to_dict(self) -> dict[str, Any]:
        """The section ``calibration`` of a hardware file."""
        return {**asdict(self), "constants": dict(self.constants)}

    def constant(self, term: str) -> float:
        """That of a term; 1 if it was not fitted."""
        return self.constants.get(term, 1.0)

    def seconds(self, estimate: Any) -> float:
        """Of a step, by its uncalibrated estimate."""
        return sum(self.constant(term) * seconds for term, seconds in quantities_of(estimate.rows).items())

    def __str__(self) -> str:
        errors = f"errors: mean {self.mean_error:.1%}, largest {self.max_error:.1%}, left out {self.left_out_error:.1%}"
        return f"{self.fitted_on} ({errors})"


def _value(number: Any) -> float:
    return float(number["value"] if isinstance(number, Mapping) else number)


def row_terms(row: Any) -> dict[str, float]:
    """The quantities of a row of an uncalibrated estimate, in seconds of one execution, by term."""
    if row.kind == "transfer":
        return {TIER + tier: seconds for tier, seconds in row.parts.items() if tier != "latency"}
    terms = {"attention" if row.is_attention else "matrix": row.products, "memory": row.parts.get("memory", 0.0)}
    return {term: seconds for term, seconds in terms.items() if seconds}


def quantities_of(rows: Sequence[Any]) -> dict[str, float]:
    """Seconds of a step by term, of all rows of an uncalibrated estimate."""
    sums: dict[str, float] = {}
    for row in rows:
        for term, seconds in row_terms(row).items():
            sums[term] = sums.get(term, 0.0) + seconds * row.executions
    return sums


def calibrated_rows(rows: Sequence[Any], calibration: Calibration) -> list[Any]:
    """The rows one after the other, each as long as its terms. All of a transfer is exposed."""
    made, start = [], 0.0
    for row in rows:
        terms = row_terms(row)
        parts = {term.removeprefix(TIER): calibration.constant(term) * terms[term] for term in terms}
        if "attention" in parts:
            parts["matrix"] = parts.pop("attention")
        bound = max(parts, key=parts.__getitem__, default=row.bound)
        row = replace(row, start=start, seconds=sum(parts.values()), parts=parts, bound=bound)
        row = replace(row, stages=tuple(_stages(row)))
        if row.kind == "transfer":
            row = replace(row, exposed=row.total)
        made.append(row)
        start += row.cost
    return made


def _stages(row: Any) -> Iterator[tuple[str, float, float]]:
    """A kernel on the compute stream, or a transfer on its tiers, one after the other: all executions together."""
    at = row.start
    for stream, seconds in row.parts.items() if row.kind == "transfer" else [("compute", row.seconds)]:
        yield stream, at, seconds * row.executions
        at += seconds * row.executions
