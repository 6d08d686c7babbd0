# SPDX-License-Identifier: Apache-2.0
"""Exchanges that become one: of a slice of a pad, of several ranges of one value, and of a part of what is gathered."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P, _core
from tests.support.partitioned import ONE_DEVICE, SCENARIOS, Scenario, execute, run, same_bits, sharding

LINE = sw.Mesh({"x": 8})
GRID = sw.Mesh({"x": 2, "y": 4})
RNG = np.random.default_rng(17)
X, BOTH = P("x"), P("x", "y")


def nine_points(x: Any) -> Any:
    padded = np.pad(x, ((1, 1), (1, 1)))
    rows, columns = x.shape
    return sum(padded[i : i + rows, j : j + columns] * (3 * i + j + 1) for i in range(3) for j in range(3))


def five_points(x: Any) -> Any:
    padded = np.pad(x, ((1, 1), (1, 1)), constant_values=2)
    return padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:] - 4 * x


def padded_twice(x: Any) -> Any:
    """The last row of a pad, that pad without it, and its last row once more."""
    padded = np.pad(x, ((1, 1), (0, 0)))
    cut = padded[:-1]
    return np.concatenate([padded[-1:], cut, cut[-1:]])


def joined_twice(x: Any) -> Any:
    """A row of the padding of a join is in a join: nothing is read of either operand."""
    joined = np.concatenate([x[:3], x])
    padded = np.pad(np.roll(joined[:-1], 1, 0), ((1, 1), (0, 0)))
    return np.concatenate([padded[:1], padded])


def head_and_tail(x: Any) -> Any:
    return x[:1], x[1:]


# name: mesh, function, shape, shardings of the argument and of all results, the collectives and their bytes
ROWS: dict[str, tuple[sw.Mesh, Callable[..., Any], tuple[int, ...], Any, Any, list[tuple[str, int]]]] = {
    "3x3 stencil": (GRID, nine_points, (64, 64), BOTH, BOTH, [("exchange", 328)]),
    "3x3 stencil, rows sharded": (LINE, nine_points, (64, 64), X, X, [("exchange", 512)]),
    "3x3 stencil, uneven": (GRID, nine_points, (33, 35), BOTH, BOTH, [("exchange", 180)]),
    # Their union has corners, which nobody reads.
    "5 points": (GRID, five_points, (64, 64), BOTH, BOTH, [("exchange", n) for n in (64, 64, 128, 128)]),
    "differences of three": (LINE, lambda x: x[2:] - 2 * x[1:-1] + x[:-2], (66, 16), X, X, [("exchange", 448)]),
    "head and tail on all devices": (LINE, head_and_tail, (64, 16), X, P(), [("all_gather", 3584)]),
    "ranges on all devices": (
        LINE,
        lambda x: (x[4:20], x[6:30:3], x[8:40]),
        (64, 16),
        X,
        P(),
        [("exchange", 36 * 64)],
    ),
    "ranges far apart": (LINE, lambda x: (x[:2], x[62:]), (64, 16), X, P(), [("exchange", 128), ("exchange", 128)]),
    "roll": (LINE, lambda x: np.roll(x, 3, 0), (64, 16), X, X, [("exchange", 192)]),
    "roll, then cut": (LINE, lambda x: np.roll(x, 3, 0)[1:], (64, 16), X, X, [("exchange", 128)]),
    "a row appended, then cut": (LINE, lambda x: np.diff(x, axis=0, append=x[-1:]), (64, 16), X, X, [("exchange", 64)]),
    "a row in front, then cut": (LINE, lambda x: np.diff(x, axis=0, prepend=x[:1]), (33, 16), X, X, [("exchange", 64)]),
    "two rolls": (LINE, lambda x: np.roll(np.roll(x, 3, 0), -2, 0), (64, 16), X, X, [("exchange", 64)]),
    "tiles that stay": (LINE, padded_twice, (24, 16), X, X, [("exchange", 256)]),
    "joins of padding": (LINE, joined_twice, (48, 16), X, X, [("exchange", 320)]),
}


@pytest.mark.parametrize("name", ROWS)
def test_bytes(name: str) -> None:
    mesh, function, shape, given, wanted, rows = ROWS[name]
    x = RNG.integers(-9, 9, shape).astype(np.float32)
    want = function(x)
    several = isinstance(want, tuple)
    out = (wanted,) * len(want) if several else wanted
    program = sw.jit(function, mesh=mesh, in_shardings=given, out_shardings=out).lower(x).compile()
    assert [(row.kind, row.bytes) for row in program.collectives()] == rows
    got = program.run(x)
    for result, expected in zip(got, want) if several else [(got, want)]:
        np.testing.assert_array_equal(result, expected)


def test_many_moved_parts_are_one_exchange() -> None:
    """Blocks of rows, each reversed, from the last to the first: all exchanges become operands of one."""
    parts = 40

    def reversed_blocks(x: Any) -> Any:
        blocks = [x[8 * i : 8 * i + 8][::-1] for i in range(parts)]
        return np.concatenate(blocks[::-1])

    x = RNG.standard_normal((8 * parts, 2)).astype(np.float32)
    program = sw.jit(reversed_blocks, mesh=LINE, in_shardings=X, out_shardings=X).lower(x).compile()
    [row] = program.collectives()
    # No row stays on its device.
    assert (row.kind, row.bytes) == ("exchange", parts * 2 * 4)
    np.testing.assert_array_equal(program(x), x[::-1])


def test_many_rolls_have_few_operands() -> None:
    def rolled(x: Any) -> Any:
        for k in range(1, 41):
            x = np.roll(x, k, 0)
        return x

    x = RNG.standard_normal((128, 2)).astype(np.float32)
    program = sw.jit(rolled, mesh=LINE, in_shardings=X, out_shardings=X).lower(x).compile()
    np.testing.assert_array_equal(program(x), rolled(x))
    exchanges = re.findall(r'"shardwise.exchange"\((.*?)\)', program.as_text("local"))
    assert max(operands.count("%") for operands in exchanges) <= 16


@pytest.mark.parametrize("devices", [8, 64, 4096])
def test_the_merged_program_is_the_same_for_any_number_of_devices(devices: int) -> None:
    mesh = sw.Mesh({"x": devices, "y": 4})
    x = sw.ShapeDtypeStruct((4 * devices, 64), np.float32)
    program = sw.jit(nine_points, mesh=mesh, in_shardings=BOTH, out_shardings=BOTH).lower(x).compile()
    assert len(program.collectives()) == 1
    assert program.collectives().total_bytes == 4 * (6 * 18 - 4 * 16)


def test_a_stencil_in_a_loop_keeps_its_exchange_there() -> None:
    def steps(x: Any) -> Any:
        return sw.fori_loop(0, 5, lambda _, x: nine_points(x) / 45, x)

    x = RNG.normal(size=(24, 24)).astype(np.float32)
    want = x
    for _ in range(5):
        want = nine_points(want) / 45
    program = sw.jit(steps, mesh=GRID, in_shardings=BOTH, out_shardings=BOTH).lower(x).compile()
    assert [(row.kind, row.count) for row in program.collectives()] == [("exchange", 5)]
    np.testing.assert_allclose(program.run(x), want, rtol=1e-5, atol=1e-6)


def random_module(rng: np.random.Generator, shape: tuple[int, int], held: Any, out: Any) -> Any:
    """Slices of a pad of the argument, or of the argument, and slices of slices."""
    trace = _core.ir.Trace("ranges")
    x = trace.argument(shape, "float32", "", held)
    fill = trace.constant(np.array(rng.choice([0, 5]), np.float32))[0]
    amounts = {
        "edge_padding_low": tuple(rng.integers(-1, 3, 2)),
        "edge_padding_high": tuple(rng.integers(-1, 3, 2)),
        "interior_padding": (int(rng.integers(0, 2)), 0),
    }
    sizes = [
        max(n - 1, 0) * i + n + low + high
        for n, low, high, i in zip(
            shape, amounts["edge_padding_low"], amounts["edge_padding_high"], amounts["interior_padding"]
        )
    ]
    values = [(x, shape)]
    if min(sizes) > 0:
        values.append((trace.emit("stablehlo.pad", [x, fill], amounts)[0], tuple(sizes)))
    results = []
    for _ in range(4):
        value, size = values[rng.integers(len(values))]
        start = [int(rng.integers(0, n)) if n else 0 for n in size]
        limit = [int(rng.integers(a, n)) + 1 if n else 0 for a, n in zip(start, size)]
        strides = [int(rng.choice([1, 1, 1, 2])) for _ in size]
        attrs = {"start_indices": tuple(start), "limit_indices": tuple(limit), "strides": tuple(strides)}
        values.append(
            (
                trace.emit("stablehlo.slice", [value], attrs)[0],
                tuple(-(-(b - a) // s) for a, b, s in zip(start, limit, strides)),
            )
        )
        results.append(values[-1][0])
    return trace.finish(results, [out] * len(results))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_elements_are_those_of_one_device(scenario: Scenario) -> None:
    mesh, axes, others = scenario.mesh(), scenario.axes, scenario.others
    choices = [None, sharding(mesh, [axes, others]), sharding(mesh, [others, axes])]
    x = RNG.integers(-99, 99, (scenario.size, 4)).astype(np.float32)
    for seed in range(12):
        held, out = choices[1 + seed % 2], choices[seed % 3]
        whole = random_module(np.random.default_rng(seed), x.shape, None, None)
        want = run(whole, ONE_DEVICE, [x])
        module = random_module(np.random.default_rng(seed), x.shape, held, out)
        for got in execute(_core.passes.compile(module, mesh), [x]):
            assert all(same_bits(a, b) for a, b in zip(got, want, strict=True)), (seed, held, out)
