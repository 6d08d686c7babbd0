# SPDX-License-Identifier: Apache-2.0
"""Ops that read a sharded dim at another place receive what they read, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import shardwise as sw
from shardwise import P, _core
from tests.op.window_references import reduce_window
from tests.support.partitioned import ONE_DEVICE, SCENARIOS, Scenario, execute, run, same_bits, sharding

MESH = sw.Mesh({"x": 8})
GRID = sw.Mesh({"x": 2, "y": 4})
RNG = np.random.default_rng(3)


def numbers(*shape: int) -> np.ndarray:
    return RNG.integers(-99, 99, shape).astype(np.float32)


def jacobi(x: Any) -> Any:
    return np.roll(x, 1, 0) + np.roll(x, -1, 0) + np.roll(x, 1, 1) + np.roll(x, -1, 1)


def next_tokens(tokens: Any) -> Any:
    return tokens[:, :-1], tokens[:, 1:]


def padded(x: Any) -> Any:
    return np.pad(x, ((3, 5), (0, 0)))


X, ROWS, SEQUENCE = P("x"), (64, 16), P(None, "x")
# name: mesh, function, shapes, shardings of arguments and results, bytes that one device receives, what XLA sends
BYTES: dict[str, tuple[sw.Mesh, Callable[..., Any], list[tuple[int, ...]], Any, Any, int]] = {
    "roll by 3": (MESH, lambda x: np.roll(x, 3, 0), [ROWS], X, X, 192),
    "roll by -11": (MESH, lambda x: np.roll(x, -11, 0), [ROWS], X, X, 512),
    "first row": (MESH, lambda x: x[0], [ROWS], X, P(), 64),
    "last token": (MESH, lambda h: h[:, -1], [(4, 64, 16)], SEQUENCE, P(), 256),
    "every second row": (MESH, lambda x: x[::2], [ROWS], X, X, 0),
    "a range of rows": (MESH, lambda x: x[10:40], [ROWS], X, X, 256),
    "pad": (MESH, padded, [ROWS], X, X, 256),
    "concatenate": (MESH, lambda a, b: np.concatenate([a, b]), [(32, 8), (16, 8)], (X, X), X, 192),
    "reverse": (MESH, lambda x: x[::-1], [ROWS], X, X, 512),
    "reverse of 33 rows": (MESH, lambda x: x[::-1], [(33, 16)], X, X, 320),
    "differences": (MESH, lambda x: x[1:] - x[:-1], [ROWS], X, X, 64),
    "next tokens": (MESH, next_tokens, [(2, 65)], SEQUENCE, SEQUENCE, 56),
    "Jacobi": (GRID, jacobi, [(64, 64)], P("x", "y"), P("x", "y"), 384),
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes(name: str) -> None:
    mesh, function, shapes, given, wanted, most = BYTES[name]
    arrays = [numbers(*shape) for shape in shapes]
    program = sw.jit(function, mesh=mesh, in_shardings=given, out_shardings=wanted).lower(*arrays).compile()
    assert sum(row.total_bytes for row in program.collectives()) == most, program.collectives()
    for got, want in zip(np.atleast_1d(program.run(*arrays)), np.atleast_1d(function(*arrays))):
        np.testing.assert_array_equal(got, want)


def test_the_reason_and_the_kind_are_in_the_ledger() -> None:
    program = sw.jit(lambda x: x[1:], mesh=MESH, in_shardings=X, out_shardings=X).lower(numbers(*ROWS)).compile()
    [row] = program.collectives()
    assert (row.kind, row.cause, row.bytes, row.group_size) == ("exchange", "exchange of slice along dim 0", 64, 8)
    sw.testing.assert_collectives(program, exchange=1, all_gather=0, bytes_max=64)


@pytest.mark.parametrize("devices", [8, 64, 1 << 20])
def test_text_has_one_length_for_all_numbers_of_devices(devices: int) -> None:
    mesh = sw.Mesh({"x": devices})
    x = sw.ShapeDtypeStruct((4 * devices, 8), np.float32)
    program = sw.jit(lambda x: np.roll(x, 3, 0)[1:], mesh=mesh, in_shardings=X, out_shardings=X).lower(x).compile()
    assert len(program.as_text("local")) < 3000
    [row] = program.collectives()  # of two operands
    assert (row.kind, row.bound, row.bytes) == ("exchange", "", 2 * 32)


# ---- every placement gives the same bits ----------------------------------------------------------------------------


def slices(size: int) -> list[dict[str, Any]]:
    ranges = [(0, size, 1), (size // 3, size, 1), (0, size - size // 4, 1), (size // 4, size, 3), (0, min(size, 1), 1)]
    return [
        {"start_indices": (start, 0), "limit_indices": (limit, 3), "strides": (stride, 2)}
        for start, limit, stride in ranges
    ]


def pads(size: int) -> list[dict[str, Any]]:
    amounts = [(2, 3, 0), (-min(size, 2), 4, 0), (1, -min(size, 1), 2), (0, 0, 1)]
    return [
        {"edge_padding_low": (low, 0), "edge_padding_high": (high, 1), "interior_padding": (interior, 0)}
        for low, high, interior in amounts
    ]


OPS: dict[str, Callable[[int], list[dict[str, Any]]]] = {
    "slice": slices,
    "pad": pads,
    "reverse": lambda _: [{"dimensions": (0,)}, {"dimensions": (0, 1)}],
    "concatenate": lambda _: [{"dimension": 0}, {"dimension": 1}],
}
DTYPES = ["int8", "bfloat16", "float32", "float64", "int64"]


def bits(dtype: str, *shape: int) -> np.ndarray:
    """Any bit patterns: signalling NaNs, -0.0 and denormals among them."""
    item = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    patterns = RNG.integers(0, 256, (*shape, item.itemsize), dtype=np.uint8)
    if dtype == "float32" and patterns.size:
        patterns.view(np.uint32).flat[:1] = 0x7F800001
    return patterns.view(item)[..., 0]


def program_of(op: str, attrs: dict[str, Any], arrays: list[np.ndarray], held: list[Any], out: Any) -> Any:
    trace = _core.ir.Trace("moved")
    values = [trace.argument(x.shape, x.dtype.name, "", h) for x, h in zip(arrays, held)]
    result = trace.emit(f"stablehlo.{op}", values, attrs)[0]
    return trace.finish([result], [out])


def placements(scenario: Scenario, mesh: Any) -> list[Any]:
    axes, others = scenario.axes, scenario.others
    return [None, sharding(mesh, [axes, others]), sharding(mesh, [(), axes]), sharding(mesh, [others, ()])]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
@pytest.mark.parametrize("op", OPS)
def test_moved_bits_are_those_of_one_device(op: str, scenario: Scenario) -> None:
    mesh = scenario.mesh()
    choices = placements(scenario, mesh)
    turn = 0
    for attrs in OPS[op](scenario.size):
        for held in choices[1:]:
            for out in choices:
                dtype = DTYPES[turn % len(DTYPES)]
                turn += 1
                arrays = [bits(dtype, scenario.size, 3)]
                if op == "pad":
                    arrays.append(bits(dtype))
                if op == "concatenate":
                    arrays += [bits(dtype, scenario.size, 3)]
                shardings = [held, None if op == "pad" else choices[turn % len(choices)]]
                want = run(program_of(op, attrs, arrays, [None] * len(arrays), None), ONE_DEVICE, arrays)[0]
                compiled = _core.passes.compile(program_of(op, attrs, arrays, shardings, out), mesh)
                for got in execute(compiled, arrays):
                    assert same_bits(got[0], want), (op, attrs, dtype, shardings, out)
    assert turn


def test_an_addend_passes_an_exchange() -> None:
    def function(a: Any, b: Any) -> Any:
        return (a @ b)[3:11]

    a, b = numbers(64, 32), numbers(32, 8)
    mesh = sw.Mesh({"x": 4, "y": 2})
    program = sw.jit(function, mesh=mesh, in_shardings=(P("x", "y"), P("y")), out_shardings=P("x"))
    np.testing.assert_array_equal(program(a, b), function(a, b))


# size, stride, window dilation, base dilation, low and high padding of the windows along the sharded dim
WINDOWS = [
    (5, 1, 1, 1, 2, 1),
    (3, 2, 1, 1, 1, 1),
    (2, 3, 2, 1, 0, 3),
    (3, 1, 1, 2, 1, 0),
    (4, 3, 1, 2, 3, 3),
    (3, 1, 1, 1, -1, 2),
]


def windows_of(x: np.ndarray, window: tuple[int, ...], held: Any, out: Any) -> tuple[Any, np.ndarray]:
    size, stride, dilation, base, low, high = window
    init = np.array(3, np.float32)
    padding = ((low, high), (0, 0))
    trace = _core.ir.Trace("windows")
    operands = [trace.argument(x.shape, "float32", "", held), trace.argument((), "float32", "", None)]
    attrs = {
        "window_dimensions": (size, 1),
        "window_strides": (stride, 1),
        "window_dilations": (dilation, 1),
        "base_dilations": (base, 1),
        "padding": np.array(padding, np.int64),
    }
    result = trace.emit("stablehlo.reduce_window", operands, attrs, None, None, "stablehlo.add")[0]
    want = reduce_window(x, init, "add", (size, 1), padding, (stride, 1), (base, 1), (dilation, 1))
    return trace.finish([result], [out]), want.astype(np.float32)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_windows_read_the_rows_of_neighbors(scenario: Scenario) -> None:
    mesh = scenario.mesh()
    choices = placements(scenario, mesh)
    for turn, window in enumerate(WINDOWS):
        x = numbers(scenario.size + 9, 3)
        module, want = windows_of(x, window, choices[1], choices[turn % len(choices)])
        for got in execute(_core.passes.compile(module, mesh), [x, np.array(3, np.float32)]):
            np.testing.assert_array_equal(got[0], want, str(window))


def test_a_window_receives_its_halo_once() -> None:
    mesh = _core.mesh.Mesh("mesh", [("x", 8)])
    rows = sharding(mesh, [("x",), ()])
    compiled = _core.passes.compile(windows_of(numbers(64, 4), (5, 1, 1, 1, 2, 2), rows, rows)[0], mesh)
    [row] = compiled.collectives()
    assert (row["kind"], row["bytes"], row["cause"]) == ("exchange", 4 * 16, "exchange of reduce_window along dim 0")
