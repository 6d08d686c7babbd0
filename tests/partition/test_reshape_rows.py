# SPDX-License-Identifier: Apache-2.0
"""Reshapes of sharded dims that do not divide: rows of consecutive elements are exchanged."""

from __future__ import annotations

import numpy as np
import pytest

import shardwise as sw
from shardwise import P, _core
from tests.support.partitioned import SCENARIOS, Scenario, execute, same_bits, sharding

RNG = np.random.default_rng(31)
LINE = sw.Mesh({"x": 8})
PAIR = sw.Mesh({"x": 2})


@pytest.mark.parametrize(
    ("mesh", "shape", "to", "most"),
    [
        (LINE, (12, 12), (144,), 72),
        (LINE, (144,), (12, 12), 96),
        (LINE, (24,), (3, 8), 32),
        (LINE, (17, 3), (51,), 28),
        (PAIR, (3, 2), (6,), 4),
        (LINE, (64, 4), (256,), 0),
    ],
)
def test_bytes_of_rows(mesh: sw.Mesh, shape: tuple[int, ...], to: tuple[int, ...], most: int) -> None:
    x = RNG.normal(size=shape).astype(np.float32)
    placed = sw.jit(lambda x: x.reshape(to), mesh=mesh, in_shardings=P("x"), out_shardings=P("x"))
    program = placed.lower(x).compile()
    assert sum(row.total_bytes for row in program.collectives()) == most, program.collectives()
    np.testing.assert_array_equal(program.run(x), x.reshape(to))


COLUMNS = P(None, "x")


# Up to 16 rows are operands of one exchange. More, or rows on both sides, first become ranges of the first dim.
@pytest.mark.parametrize(
    ("shape", "to", "given", "wanted", "exchanges"),
    [
        ((24, 4), (3, 8, 4), P("x"), COLUMNS, [48]),
        ((3, 8, 4), (24, 4), COLUMNS, P("x"), [48]),
        ((3, 2, 8), (48,), P(None, None, "x"), P("x"), [24]),
        ((20, 12), (240,), COLUMNS, P("x"), [120, 120]),
        ((3, 8), (4, 6), COLUMNS, COLUMNS, [24, 16]),
    ],
)
def test_bytes_of_a_sharded_minor_dim(
    shape: tuple[int, ...], to: tuple[int, ...], given: P, wanted: P, exchanges: list[int]
) -> None:
    x = RNG.normal(size=shape).astype(np.float32)
    placed = sw.jit(lambda x: x.reshape(to), mesh=LINE, in_shardings=given, out_shardings=wanted)
    program = placed.lower(x).compile()
    assert [(row.kind, row.bytes) for row in program.collectives()] == [("exchange", n) for n in exchanges]
    np.testing.assert_array_equal(program.run(x), x.reshape(to))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_elements_are_those_of_one_device(scenario: Scenario) -> None:
    mesh, axes, others, n = scenario.mesh(), scenario.axes, scenario.others, scenario.size
    turn = 0
    for shape, to in [
        ((n, 6), (n * 6,)),
        ((n * 6,), (n, 6)),
        ((n, 6), (6, n)),
        ((2, n, 3), (n * 2, 3)),
        ((n, 4, 3), (n * 2, 6)),
        ((1, n, 2), (n, 1, 2)),
        ((3, n), (n, 3)),
        ((n * 6,), (2, n, 3)),
    ]:
        x = RNG.integers(0, 2**31, shape).astype(np.int32)
        for dim in range(len(shape)):
            turn += 1
            held = [axes if d == dim else others if d == (dim + 1) % len(shape) else () for d in range(len(shape))]
            for target in ([axes, *[()] * (len(to) - 1)], [*[()] * (len(to) - 1), axes], None):
                trace = _core.ir.Trace("reshape")
                argument = trace.argument(shape, "int32", "", sharding(mesh, held))
                found = trace.emit("stablehlo.reshape", [argument], {}, to, "int32")[0]
                out = None if target is None else sharding(mesh, target)
                compiled = _core.passes.compile(trace.finish([found], [out]), mesh)
                for got in execute(compiled, [x]):
                    assert same_bits(got[0], x.reshape(to)), (shape, to, held, target)
    assert turn == 17  # dims of the shapes


def test_a_sum_from_the_end_is_one_of_the_other_direction() -> None:
    x = RNG.normal(size=(64, 16)).astype(np.float32)
    for function in (np.cumsum, np.cumprod):
        turned = sw.jit(lambda x, f=function: f(x[::-1], 0)[::-1], mesh=LINE, in_shardings=P("x"), out_shardings=P("x"))
        program = turned.lower(x).compile()
        assert [row.total_bytes for row in program.collectives()] == [56, 56]
        want = function(x[::-1].astype(np.float64), 0)[::-1]
        np.testing.assert_allclose(program.run(x), want, rtol=1e-4, atol=1e-4)


def test_two_reverses_move_nothing() -> None:
    x = RNG.normal(size=(33, 4)).astype(np.float32)
    program = (
        sw.jit(lambda x: np.flip(x[::-1], (1, 0)), mesh=LINE, in_shardings=P("x"), out_shardings=P("x"))
        .lower(x)
        .compile()
    )
    np.testing.assert_array_equal(program.run(x), np.flip(x, 1))


def test_a_reversed_sum_that_is_also_read_forward_stays() -> None:
    """Both results have the same bits."""
    x = RNG.normal(size=(64, 4)).astype(np.float32)

    def both(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        total = np.cumsum(x[::-1], 0)
        return total, total[::-1]

    total, turned = sw.jit(both, mesh=LINE, in_shardings=P("x"))(x)
    np.testing.assert_array_equal(np.asarray(total)[::-1], turned)
