# SPDX-License-Identifier: Apache-2.0
"""Which values are kept and which are computed again: brute force on small graphs, HiGHS on larger ones."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from shardwise import _core


@dataclass(frozen=True)
class Value:
    bytes: int
    ps: int
    is_needed: bool
    can_be_kept: bool
    can_repeat: bool
    operands: tuple[int, ...]


def random_values(random: np.random.Generator, count: int) -> list[Value]:
    """A chain with shortcuts, as layers are; first values that cannot be computed again."""
    values = []
    for i in range(count):
        operands = {i - 1} if i and random.random() < 0.8 else set()
        operands |= {int(random.integers(0, i)) for _ in range(int(random.integers(0, 3))) if i}
        # What has no operands would be free to compute.
        can_repeat = bool(operands) and random.random() < 0.9
        can_be_kept = not can_repeat or random.random() < 0.9
        size, time = int(random.integers(1, 40)), int(random.integers(0, 30))
        needed = random.random() < 0.4
        values.append(Value(size, time, needed, can_be_kept, can_repeat, tuple(sorted(operands))))
    return values


def found(values: list[Value], limit: int, **options: int) -> tuple[list[bool], list[bool], int, int, bool, int]:
    rows = [(v.bytes, v.ps, v.is_needed, v.can_be_kept, v.can_repeat, list(v.operands)) for v in values]
    made: tuple[list[bool], list[bool], int, int, bool, int] = _core.solve.save_within(rows, limit, **options)
    return made


def _cost(values: list[Value], repeated: tuple[bool, ...]) -> tuple[int, int] | None:
    """Bytes and time if these values are computed again, once they are needed; None if that is not possible."""
    needed = [v.is_needed for v in values]
    size = time = 0
    for i in reversed(range(len(values))):
        if not needed[i]:
            continue
        if repeated[i]:
            if not values[i].can_repeat:
                return None
            time += values[i].ps
            for operand in values[i].operands:
                needed[operand] = True
        elif not values[i].can_be_kept:
            return None
        else:
            size += values[i].bytes
    return size, time


def _is_consistent(values: list[Value], kept: list[bool], repeated: list[bool]) -> bool:
    return all(
        (kept[i] or repeated[i] or not v.is_needed)
        and not (kept[i] and repeated[i])
        and (not repeated[i] or all(kept[o] or repeated[o] for o in v.operands))
        for i, v in enumerate(values)
    )


def test_small_graphs_are_solved_as_by_brute_force() -> None:
    random = np.random.default_rng(1)
    solved = impossible = 0
    for _ in range(150):
        values = random_values(random, int(random.integers(2, 12)))
        ways = [_cost(values, way) for way in itertools.product([False, True], repeat=len(values))]
        possible = [way for way in ways if way is not None]
        assert possible
        for limit in sorted({size for size, _ in possible})[::3]:
            best = min(time for size, time in possible if size <= limit)
            kept, repeated, size, time, fits, bound = found(values, limit)
            assert fits
            assert size <= limit
            assert _is_consistent(values, kept, repeated)
            assert (time, bound) == (best, best)
            solved += 1
        least = min(size for size, _ in possible)
        if least > 0:
            _, _, size, _, fits, _ = found(values, least - 1)
            assert not fits
            assert size == least
            impossible += 1
    assert solved > 300
    assert impossible > 100


def _by_highs(values: list[Value], limit: int) -> float:
    """The least time, as a mixed-integer program."""
    n = len(values)
    time = np.concatenate([np.zeros(n), [v.ps for v in values]])
    rows, low = [], []
    for i, v in enumerate(values):
        if v.is_needed:
            row = np.zeros(2 * n)
            row[[i, n + i]] = 1
            rows.append(row)
            low.append(1.0)
        for operand in v.operands:
            row = np.zeros(2 * n)
            row[[operand, n + operand]] = 1
            row[n + i] = -1
            rows.append(row)
            low.append(0.0)
    size = np.concatenate([[v.bytes for v in values], np.zeros(n)])
    most = np.concatenate([[float(v.can_be_kept) for v in values], [float(v.can_repeat) for v in values]])
    constraints = [LinearConstraint(size, -np.inf, limit), LinearConstraint(np.array(rows), np.array(low), np.inf)]
    made = milp(time, constraints=constraints, integrality=np.ones(2 * n), bounds=Bounds(0, most))
    assert made.success
    return float(made.fun)


@pytest.mark.parametrize("seed", range(8))
def test_larger_graphs_take_at_most_a_hundredth_more_than_a_mixed_integer_program(seed: int) -> None:
    random = np.random.default_rng(seed)
    values = random_values(random, 60)
    most, least = found(values, 10**9)[2], found(values, 0)[2]
    for share in (0.8, 0.5, 0.2):
        limit = int(least + share * (most - least))
        kept, repeated, size, time, fits, bound = found(values, limit)
        best = round(_by_highs(values, limit))
        assert fits
        assert size <= limit
        assert _is_consistent(values, kept, repeated)
        assert bound <= best <= time <= best * 1.01


def test_a_chain_keeps_what_is_small_and_computes_the_rest_again() -> None:
    # x (4 bytes) -> h (16 bytes, 20 ps) -> y (6 bytes, 90 ps); h and y are needed: the header's example.
    values = [
        Value(4, 0, False, True, False, ()),
        Value(16, 20, True, True, True, (0,)),
        Value(6, 90, True, True, True, (1,)),
    ]
    assert found(values, 10)[:4] == ([True, False, True], [False, True, False], 10, 20)
    assert found(values, 22)[:4] == ([False, True, True], [False, False, False], 22, 0)
    assert found(values, 4)[:4] == ([True, False, False], [False, True, True], 4, 110)
