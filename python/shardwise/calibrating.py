# SPDX-License-Identifier: Apache-2.0
"""Fits the constants of :func:`shardwise.hardware.calibrate` to measured steps.

>>> import numpy as np
>>> nonnegative_least_squares(np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]]), np.array([3.0, 2.0, 1.0]))
array([2., 0.])
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from .errors import described, message, shown
from .reports.calibration import TIER, Calibration
from .reports.estimate import Estimate

__all__ = ["MOST_CONSTANTS", "expect_steps", "fitted", "nonnegative_least_squares", "read_steps", "terms_of"]

MOST_CONSTANTS = 5
_WHAT = "hardware.calibrate"
_COLUMNS = ("program", "seconds")


def nonnegative_least_squares(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The x of at least 0 that minimises ``|a x - b|``, for few columns: the best of all sets of columns.

    An optimum that is positive in a set of columns, and 0 in the others, is the unconstrained one of these columns.
    """
    columns = a.shape[1]
    best, least = np.zeros(columns), float(b @ b)
    for count in range(1, columns + 1):
        for chosen in map(list, combinations(range(columns), count)):
            x = np.linalg.lstsq(a[:, chosen], b, rcond=None)[0]
            residual = a[:, chosen] @ x - b
            if np.all(x >= 0) and float(residual @ residual) < least:
                least = float(residual @ residual)
                best = np.zeros(columns)
                best[chosen] = x
    return best


def terms_of(given: Any, quantities: Sequence[Mapping[str, float]], tiers: Sequence[str]) -> list[tuple[str, ...]]:
    """The terms that share a constant each; by default, all that the steps have, where the tiers share one.

    With one for each tier, a few steps that are slow for another reason decide that of a tier with short transfers.
    """
    kernels, links = ["matrix", "attention", "memory"], [TIER + tier for tier in tiers]
    known = [*kernels, *links]
    groups: list[tuple[str, ...]]
    if given is None:
        present = [term for term in known if any(step.get(term) for step in quantities)]
        groups = [(term,) for term in present if term in kernels]
        groups += [shared] if (shared := tuple(term for term in present if term in links)) else []
    else:
        if not isinstance(given, Iterable) or isinstance(given, str):
            way_out = 'terms=["matrix", ("tiers.nvlink", "tiers.infiniband")] fits two constants'
            raise TypeError(
                message(_WHAT, "terms must be a sequence of terms, or of tuples", described(given), way_out)
            )
        groups = [(group,) if isinstance(group, str) else tuple(group) for group in given]
    _check_terms(groups, known)
    return groups


def _check_terms(groups: Sequence[tuple[Any, ...]], known: Sequence[str]) -> None:
    flat = [term for group in groups for term in group]
    for term in flat:
        if term not in known:
            raise ValueError(message(_WHAT, f"terms must be among {', '.join(known)}", shown(term)))
        if flat.count(term) > 1:
            raise ValueError(message(_WHAT, "each term must be in terms once", shown(term)))
    if not 1 <= len(groups) <= MOST_CONSTANTS or not all(groups):
        rule = f"there must be 1 to {MOST_CONSTANTS} constants"
        raise ValueError(message(_WHAT, rule, f"{len(groups)}: {shown(groups)}", "let terms share one: terms=[(…, …)]"))


def fitted(
    quantities: Sequence[Mapping[str, float]], measured: Sequence[float], groups: Sequence[tuple[str, ...]], words: str
) -> Calibration:
    """The constants that minimise the squares of the relative errors. Terms in no group keep the constant 1.

    Raises:
        ValueError: fewer steps than constants, a constant that no step depends on, or steps that are too much alike.
    """
    if len(measured) < len(groups):
        way_out = "measure more steps, or pass fewer terms="
        raise ValueError(
            message(_WHAT, "needs as many steps as constants", f"{len(measured)} for {len(groups)}", way_out)
        )
    seconds = np.array(measured)
    columns = [[sum(step.get(term, 0.0) for term in group) for step in quantities] for group in groups]
    a = np.array(columns).T / seconds[:, None]
    for group, column in zip(groups, a.T):
        if not column.any():
            raise ValueError(message(_WHAT, "each term must be in a step at least", " and ".join(group), "drop it"))
    if np.linalg.matrix_rank(a / np.abs(a).max(axis=0)) < len(groups):
        rule, got = "the steps must tell the terms apart", " and ".join("+".join(group) for group in groups)
        way_out = "measure steps of other shapes, or let terms share a constant with terms="
        raise ValueError(message(_WHAT, rule, f"{got} in the same proportion", way_out))
    fixed = [sum(step.values()) - sum(step.get(t, 0.0) for group in groups for t in group) for step in quantities]
    b = 1.0 - np.array(fixed) / seconds
    x = nonnegative_least_squares(a, b)
    errors = np.abs(a @ x - b)
    constants = {term: float(value) for group, value in zip(groups, x) for term in group}
    left_out = np.mean([_left_out(a, b, i) for i in range(len(b))])
    return Calibration(constants, words, len(b), float(errors.mean()), float(errors.max()), float(left_out))


def _left_out(a: np.ndarray, b: np.ndarray, step: int) -> float:
    others = np.arange(len(b)) != step
    return float(abs(a[step] @ nonnegative_least_squares(a[others], b[others]) - b[step]))


def expect_steps(steps: Any) -> list[tuple[Any, float]]:
    """Pairs of a program, or its estimate, and the seconds that its step took."""
    rule = "steps must be pairs of a program and the seconds of its step"
    if not isinstance(steps, Iterable) or isinstance(steps, Mapping):
        raise TypeError(message(_WHAT, rule, described(steps), "or the path of a CSV file, with programs="))
    pairs: list[tuple[Any, float]] = []
    for pair in steps:
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise TypeError(message(_WHAT, rule, described(pair)))
        if not (isinstance(pair[0], Estimate) or callable(getattr(pair[0], "estimate", None))):
            raise TypeError(message(_WHAT, rule, described(pair[0]), "program.lower(…).compile() is a program"))
        pairs.append((pair[0], _seconds(pair[1], "")))
    if not pairs:
        raise ValueError(message(_WHAT, "there must be a step", "none"))
    return pairs


def _seconds(value: Any, place: str) -> float:
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not is_number or not 0 < float(value) < float("inf"):
        rule = "the seconds of a step must be a number above 0"
        raise ValueError(message(_WHAT, f"{place}{rule}", shown(value)))
    return float(value)


def read_steps(path: str | os.PathLike[str], programs: Any) -> list[tuple[Any, float]]:
    """The steps of a CSV file with the columns ``program`` and ``seconds``; it may have others."""
    if not isinstance(programs, Mapping):
        way_out = 'programs={"7b": program} names the programs of a CSV file'
        raise TypeError(message(_WHAT, "programs must be a dict of programs by name", described(programs), way_out))
    with open(path, newline="", encoding="utf-8") as file:
        try:
            return list(_rows_of(csv.DictReader(file), os.fspath(path), programs))
        except UnicodeDecodeError as error:
            raise ValueError(message(_WHAT, f"{os.fspath(path)} must be a text in UTF-8", str(error))) from None


def _rows_of(reader: Any, path: str, programs: Mapping[str, Any]) -> Iterator[tuple[Any, float]]:
    for column in _COLUMNS:
        if column not in (reader.fieldnames or ()):
            found = ", ".join(reader.fieldnames or ())
            raise ValueError(message(_WHAT, f"{path} must have the columns program and seconds", found or "none"))
    for row in reader:
        place = f"{path}:{reader.line_num}: "
        if row["program"] not in programs:
            rule = f"{place}program must be one of {', '.join(map(str, programs))}"
            raise ValueError(message(_WHAT, rule, shown(row["program"])))
        try:
            seconds = float(row["seconds"])
        except (TypeError, ValueError):
            raise ValueError(message(_WHAT, f"{place}seconds must be a number", shown(row["seconds"]))) from None
        yield programs[row["program"]], _seconds(seconds, place)
