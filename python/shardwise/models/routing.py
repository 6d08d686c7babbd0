# SPDX-License-Identifier: Apache-2.0
"""Compare the routing of two runs: rounding may reroute a token whose gates are nearly equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["RoutingComparison", "compare_routing"]


@dataclass(frozen=True, eq=False)
class RoutingComparison:
    """The tokens that two runs sent to the same experts.

    Attributes:
        same: (G, S) bool; whether every MoE layer routed the token to the same experts in both runs.
        disagreements: the number of other tokens.
        largest_margin: the largest gate margin at which one of them was first routed differently; 0 without any.
    """

    same: np.ndarray
    disagreements: int
    largest_margin: float


def compare_routing(
    found: Sequence[dict[str, Any]], expected: Sequence[dict[str, Any]], margins: Callable[[], Sequence[Any]]
) -> RoutingComparison:
    """Compare the routing of two runs of the same model on the same tokens.

    Args:
        found, expected: the statistics of every MoE layer; ``experts`` and ``kept`` are used.
        margins: a function that returns the :func:`gate_margins` (G, S) of every layer of one run. It is called only if
            the runs disagree.

    >>> at = {"experts": np.array([[[0], [1]]]), "kept": np.ones((1, 2, 1), bool)}
    >>> other = {**at, "experts": np.array([[[0], [0]]])}
    >>> found = compare_routing([other], [at], lambda: [np.array([[0.5, 1e-7]])])
    >>> found.same, found.disagreements, found.largest_margin
    (array([[ True, False]]), 1, 1e-07)
    """
    largest = 0.0
    same = np.ones(np.asarray(expected[0]["kept"]).shape[:2], bool)
    for layer, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        chose, kept = (
            np.all(np.asarray(ours[name]) == np.asarray(theirs[name]), axis=-1) for name in ("experts", "kept")
        )
        apart = same & ~(chose & kept)
        if np.any(apart):
            margin = np.asarray(margins()[layer])
            # A token that lost its place lost it to another of its group, whose gates were close.
            deciding = np.where(chose, margin.min(axis=1, keepdims=True), margin)
            largest = max(largest, float(np.max(deciding[apart])))
        same &= chose & kept
    return RoutingComparison(same, int(np.sum(~same)), largest)
