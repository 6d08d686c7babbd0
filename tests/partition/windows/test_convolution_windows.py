# SPDX-License-Identifier: Apache-2.0
"""Convolutions on sharded spatial dims receive the rows of their windows; gradients of kernels, those of their taps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shardwise import _core
from tests.op.convolution_references import convolution
from tests.support.partitioned import SCENARIOS, Scenario, execute, sharding

RNG = np.random.default_rng(11)
NUMBERS = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
Pairs = tuple[tuple[int, int], ...]


class Window:
    """A window over two spatial dims, of which only the first is not trivial if ``second`` is not given."""

    def __init__(
        self, taps: int, stride: int = 1, pads: tuple[int, int] = (0, 0), base: int = 1, dilation: int = 1,
        reverse: bool = False, features: int = 1, batches: int = 1,
    ) -> None:  # fmt: skip
        self.taps, self.strides, self.pads = taps, (stride, 1), (pads, (0, 0))
        self.base, self.dilation, self.reverse = (base, 1), (dilation, 1), (reverse, False)
        self.features, self.batches = features, batches

    def text(self) -> str:
        return (
            f"stride = {list(self.strides)}, pad = {[list(p) for p in self.pads]}, lhs_dilate = {list(self.base)}, "
            f"rhs_dilate = {list(self.dilation)}, reverse = {[str(f).lower() for f in self.reverse]}"
        ).replace("'", "")

    def apply(self, x: np.ndarray, w: np.ndarray, numbers: str = NUMBERS) -> np.ndarray:
        return convolution(
            x, w, numbers, self.strides, self.pads, self.base, self.dilation, self.features, self.batches, self.reverse
        )  # fmt: skip


def program(
    window: Window, x: np.ndarray, w: np.ndarray, shardings: list[Any], mesh: Any, numbers: str = NUMBERS
) -> Any:
    """A convolution as a text, with the shardings of its operands and of its result."""
    shapes = [x.shape, w.shape, window.apply(x, w, numbers).shape]
    lhs, rhs, result = ("tensor<" + "x".join([*map(str, shape), "f32"]) + ">" for shape in shapes)
    held, kernel, out = ("" if s is None else f"{{sdy.sharding = #sdy.sharding{s}}}" for s in shardings)
    return _core.ir.parse(f"""sdy.mesh @mesh = {mesh.text()}
func.func public @main(%x: {lhs} {held}, %w: {rhs} {kernel}) -> ({result} {out}) {{
  %0 = stablehlo.convolution(%x, %w) dim_numbers = {numbers}, window = {{{window.text()}}}
    {{batch_group_count = {window.batches} : i64, feature_group_count = {window.features} : i64}}
    : ({lhs}, {rhs}) -> {result}
  return %0 : {result}
}}""")


def whole(*shape: int) -> np.ndarray:
    """Small integers, whose sums are exact in any order."""
    return RNG.integers(-9, 10, shape).astype(np.float32)


def check(window: Window, x: np.ndarray, w: np.ndarray, shardings: list[Any], mesh: Any, numbers: str = NUMBERS) -> Any:
    compiled = _core.passes.compile(program(window, x, w, shardings, mesh, numbers), mesh)
    want = window.apply(x, w, numbers).astype(np.float32)
    for got in execute(compiled, [x, w]):
        np.testing.assert_array_equal(got[0], want, window.text())
    return compiled.collectives()


# The three cases of a base dilation: windows in phase on all devices; stride 1; neither.
WINDOWS = [
    Window(5, pads=(2, 1)),
    Window(3, stride=2, pads=(1, 1)),
    Window(2, stride=3, pads=(0, 3), dilation=2, reverse=True),
    Window(3, stride=2, pads=(1, 0), base=2),
    Window(3, pads=(1, 0), base=3),
    Window(4, stride=3, pads=(3, 3), base=2),
    Window(3, pads=(-1, 2), reverse=True),
    Window(1, stride=2, pads=(-1, 1), base=3),
    Window(3, pads=(2, 2), features=2),
    Window(3, pads=(2, 2), batches=2),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_windows_read_the_rows_of_neighbors(scenario: Scenario) -> None:
    mesh, axes, others = scenario.mesh(), scenario.axes, scenario.others
    placements = [sharding(mesh, [(), axes, others, ()]), sharding(mesh, [others, axes, (), ()])]
    for turn, window in enumerate(WINDOWS):
        x = whole(2, scenario.size + 4, 3, 2)
        w = whole(window.taps, 1, 2 // window.features, 4)
        held = placements[turn % 2]
        check(window, x, w, [held, None, held], mesh)
        check(window, x, w, [held, None, None], mesh)
        check(window, x, w, [None, None, held], mesh)


# The kernel is as large as the input: the gradient of a kernel. The batch is the feature that is summed.
GRADIENT = "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_gradients_of_kernels_sum_up_the_taps_of_each_device(scenario: Scenario) -> None:
    mesh, axes, others = scenario.mesh(), scenario.axes, scenario.others
    held = sharding(mesh, [others, axes, (), ()])
    size = scenario.size + 3
    for window, taps in [
        (Window(size, pads=(1, 1)), size),
        (Window(size // 2, dilation=2, pads=(1, 2)), size // 2),
        (Window(size, pads=(1, 0), reverse=True), size),
        (Window(size, base=2, stride=2, pads=(-1, 2)), size),
    ]:
        x, w = whole(2, size, 3, 2), whole(2, taps, 1, 4)
        check(window, x, w, [held, held, None], mesh, GRADIENT)
        check(window, x, w, [held, None, None], mesh, GRADIENT)
        check(window, x, w, [None, held, sharding(mesh, [(), (), (), axes])], mesh, GRADIENT)


GRID = _core.mesh.Mesh("mesh", [("x", 2), ("y", 4)])
LINE = _core.mesh.Mesh("mesh", [("x", 8)])
SAME = Window(3, pads=(1, 1))


def bytes_of(rows: Any) -> list[tuple[str, float]]:
    return [(row["kind"], row["bytes"]) for row in rows]


def test_bytes_of_halos() -> None:
    rows = sharding(LINE, [(), ("x",), (), ()])
    row = 4 * 2 * 4  # of four columns, two features
    for window, received in [
        (SAME, 2 * row),
        (Window(21, pads=(10, 10)), 20 * row),  # more than a neighbor has
        (Window(3, stride=2, pads=(0, 1)), row),
        (Window(3, base=2, pads=(2, 1)), row),  # the gradient of a stride: each second row is a hole
        (Window(4, base=2, pads=(2, 2)), 2 * row),
        (Window(1, stride=2), 0),
    ]:
        found = check(window, whole(1, 64, 4, 2), whole(window.taps, 1, 2, 2), [rows, None, rows], LINE)
        assert bytes_of(found) == [("exchange", received)] * (received > 0), window.text()


def test_corners_of_two_sharded_dims_are_received_once() -> None:
    both = sharding(GRID, [(), ("x",), ("y",), ()])
    window = Window(3)
    window.pads = ((1, 1), (1, 1))
    found = check(window, whole(1, 64, 64, 1), whole(3, 3, 1, 1), [both, None, both], GRID)
    assert bytes_of(found) == [("exchange", ((32 + 1) * (16 + 2) - 32 * 16) * 4)]


def test_bytes_of_the_gradient_of_a_kernel() -> None:
    rows = sharding(LINE, [(), ("x",), (), ()])
    for cotangent in (rows, None):
        found = check(
            Window(64, pads=(1, 1)), whole(2, 64, 4, 1), whole(2, 64, 1, 4), [rows, cotangent, None], LINE, GRADIENT
        )
        assert bytes_of(found) == [("exchange", 2 * 2 * 4 * 4), ("all_reduce", 2 * 7 / 8 * 3 * 4 * 4 * 4)]


@pytest.mark.parametrize("taps", [8, 7])
def test_a_row_of_infinity_reaches_only_the_windows_that_read_it(taps: int) -> None:
    """An uneven kernel is not split: a device would multiply rows that other windows read by zeros."""
    mesh = _core.mesh.Mesh("mesh", [("x", 4)])
    x, w = whole(1, taps + 2, 3, 2), np.abs(whole(taps, 1, 2, 2)) + 1
    x[0, -1] = np.inf
    rows = sharding(mesh, [(), ("x",), (), ()])
    check(Window(taps), x, w, [rows, sharding(mesh, [("x",), (), (), ()]), None], mesh)
