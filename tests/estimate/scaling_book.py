# SPDX-License-Identifier: Apache-2.0
"""What the worked problems of the scaling book share: its notation, its machines, and its questions.

The book is "How to Scale Your Model" (Austin et al., 2025, https://jax-ml.github.io/scaling-book, MIT license). It has
several texts with other answers to a few questions; the tests name the answer that they take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pytest

import shardwise as sw
from shardwise.reports import Estimate

Shape = sw.ShapeDtypeStruct


def bf16(*sizes: int) -> Shape:
    """The shape of an array of bfloat16."""
    return Shape(sizes, sw.bfloat16)


def compiled(function: Callable[..., Any], *shapes: Any, **options: Any) -> sw.Program:
    """The program of a NumPy function; ``options`` are those of ``jit``."""
    return sw.jit(function, **options).lower(*shapes).compile()


def check(actual: float, book: str, derived: str | None = None) -> None:
    """That a number is the book's answer: within 2 %, or equal when it is rounded to as many digits.

    Args:
        book: the answer as the book prints it, in SI units: ``"4e18"`` has one digit, ``"10e-3"`` two.
        derived: what the book's own rule gives if nothing is left out: (n - 1) / n of a group of n devices, a small
            operand, or digits of the numbers that it starts from. Then this is the answer.
    """
    answer = Decimal(book if derived is None else derived)
    unit = Decimal(1).scaleb(int(answer.as_tuple().exponent))
    tolerance = max(float(answer) * 0.02, float(unit) / 2)
    assert abs(actual - float(answer)) <= tolerance, f"{actual:.4g} instead of {answer}, where the book has {book}"


def cases(rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The rows of a table as the cases of a test; what a row asks, its first cell, is the name."""
    return [pytest.param(*row[1:], id=row[0]) for row in rows]


def largest(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The largest size for which ``holds``, found by halving: it holds for ``low``, not for ``high``."""
    assert holds(low)
    assert not holds(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def waits_for_links(estimate: Estimate, tier: str | None = None) -> bool:
    """Whether a tier of links, or that one, works longer than the device computes: "communication-bound"."""
    busy: dict[str, float] = {}
    for row in estimate.rows:
        if row.kind == "transfer":
            for name, seconds in row.parts.items():
                busy[name] = busy.get(name, 0.0) + seconds * row.executions
    busy.pop("latency", None)
    return (busy[tier] if tier else max(busy.values())) > estimate.compute


def hardware(base: str, **changes: Any) -> sw.hardware.Hardware:
    """A file of the user's own, which changes some numbers of a built-in one."""
    head = {"format": "shardwise.hardware", "version": 1, "name": f"book_{base}", "base": base}
    return sw.hardware.load({**head, **changes})


def at_efficiency(base: str, share: float) -> sw.hardware.Hardware:
    """Where products run at a share of the peak."""
    return hardware(base, efficiency={"matrix": {"interpolation": "step", "points": [[1, share]]}})
