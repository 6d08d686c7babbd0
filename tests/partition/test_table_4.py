# SPDX-License-Identifier: Apache-2.0
"""GShard's table 4: how compute, communication and memory of partitioned ops grow with the devices.

Each row is compiled for 8 to 4,096 devices with the sizes grown that the table grows, and the exponent of D is fitted.
The table's time of an all-to-all, O(sqrt D), is one of hops: its bytes are O(1), and tests/estimate has its time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

DEVICES = [2**i for i in range(3, 13)]
KEPT = 64  # a size that does not grow


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes:
        function: of the operands.
        operands: their shapes and axes, for D devices.
        out: the axes of the result.
        total: the exponent of D in the flops of all devices.
        each, sent, held: those in the flops, the received bytes and the peak memory of one device; None: it receives
            nothing.
        kinds: of the collectives.
    """

    function: Callable[..., Any]
    operands: Callable[[int], list[tuple[tuple[int, ...], P]]]
    out: P
    total: int
    each: int
    sent: int | None
    held: int
    kinds: frozenset[str] = frozenset()


def convolved(image: Any, kernel: Any) -> Any:
    numbers = ("NCHW", "HWIO", "NCHW")
    return sw.lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=numbers)


def product(*specs: P, grows: str) -> Callable[[int], list[tuple[tuple[int, ...], P]]]:
    """The operands of AB, BC, of which the dims in ``grows`` are D times as large."""

    def operands(devices: int) -> list[tuple[tuple[int, ...], P]]:
        size = {name: KEPT * (devices if name in grows else 1) for name in "ABC"}
        return [((size["A"], size["B"]), specs[0]), ((size["B"], size["C"]), specs[1])]

    return operands


def dispatch(devices: int) -> list[tuple[tuple[int, ...], P]]:
    """G and E grow, C shrinks: the slots of a group, E · C, stay the same."""
    groups, tokens, experts, capacity, width = devices, 512, devices, 4096 // devices, 16
    return [((groups, tokens, experts, capacity), P("x")), ((groups, tokens, width), P("x"))]


ROWS = {
    "Add(A, A -> A)": Row(
        np.add, lambda d: [((KEPT * d, KEPT), P("x"))] * 2, P("x"), total=1, each=0, sent=None, held=0
    ),
    "Matmul(AB, BC -> AC), B split": Row(
        np.matmul, product(P(None, "x"), P("x"), grows="B"), P(), 1, 0, 0, 0, frozenset({"all_reduce"})
    ),
    "Matmul(AB, BC -> AC), A split": Row(np.matmul, product(P("x"), P(), grows="A"), P("x"), 1, 0, None, 0),
    "Matmul(AB, BC -> AC), A and B split": Row(
        np.matmul, product(P("x"), P("x"), grows="AB"), P("x"), 2, 1, 1, 1, frozenset({"all_gather"})
    ),
    "Matmul(AB, BC -> AC), A and C split": Row(
        np.matmul, product(P("x"), P(None, "x"), grows="AC"), P("x"), 2, 1, 1, 1, frozenset({"all_gather"})
    ),
    "Reduce(AB -> A)": Row(lambda x: np.sum(x, 1), lambda d: [((KEPT * d, KEPT), P("x"))], P("x"), 1, 0, None, 0),
    # An all-reduce sends one element at least to each device, so B has an element for each of them.
    "Reduce(AB -> B)": Row(
        lambda x: np.sum(x, 0), lambda d: [((4 * d, 4096), P("x"))], P(), 1, 0, 0, 0, frozenset({"all_reduce"})
    ),
    "Einsum(GSEC, GSM -> EGCM)": Row(
        lambda mask, x: np.einsum("GSEC,GSM->EGCM", mask, x), dispatch, P("x"), 1, 0, 0, 0, frozenset({"all_to_all"})
    ),
    "Convolution(BIXY, xyIO -> BOXY)": Row(
        convolved,
        lambda d: [((2, 4, 16 * d, KEPT), P(None, None, "x")), ((3, 3, 4, 8), P())],
        P(None, None, "x"), 1, 0, 0, 0, frozenset({"exchange"}),
    ),
}  # fmt: skip


def compiled(row: Row, devices: int) -> Any:
    mesh = sw.Mesh({"x": devices})
    operands = row.operands(devices)
    step = sw.jit(row.function, mesh=mesh, in_shardings=tuple(spec for _, spec in operands), out_shardings=row.out)
    return step.lower(*(sw.ShapeDtypeStruct(shape, np.float32) for shape, _ in operands)).compile()


def exponent(values: list[float]) -> float:
    """The power of D that fits the values best, by least squares of logarithms."""
    return float(np.polyfit(np.log(DEVICES), np.log(values), 1)[0])


@pytest.mark.parametrize("name", ROWS)
def test_exponents_are_those_of_table_4(name: str) -> None:
    row = ROWS[name]
    programs = [compiled(row, devices) for devices in DEVICES]
    each = [float(sum(line.flops for line in program.work())) for program in programs]
    found = {
        "total": exponent([n * flops for n, flops in zip(DEVICES, each)]),
        "each": exponent(each),
        "held": exponent([float(program.memory().peak_bytes) for program in programs]),
    }
    assert {quantity: abs(value - getattr(row, quantity)) < 0.05 for quantity, value in found.items()} == dict.fromkeys(
        found, True
    ), found
    assert {frozenset(program.collectives().by_kind()) for program in programs} == {row.kinds}
    sent = [program.collectives().total_bytes for program in programs]
    if row.sent is None:
        assert sent == [0] * len(DEVICES)
    else:
        assert exponent(sent) == pytest.approx(row.sent, abs=0.05)


def test_all_nine_rows_are_here() -> None:
    assert len(ROWS) == 9
