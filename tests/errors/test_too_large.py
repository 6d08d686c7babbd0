# SPDX-License-Identifier: Apache-2.0
"""What does not fit: buffers beyond the memory, shapes beyond 63 bits, and meshes of more devices than can run."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import NamedSharding, P

MESH = sw.Mesh({"x": 4})
X = np.zeros((4,), np.float32)
SIDE = 2**20  # squared and of float32 it is 4 TiB, which no machine lends


def message_of(error: type[Exception], call: Callable[[], Any]) -> str:
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error, repr(caught.value)
    text, found = re.subn(f" \\(at {re.escape(__file__)}:[0-9]+\\)$", "", str(caught.value))
    assert found == 1, text
    return text


# ---- memory ---------------------------------------------------------------------------------------------------------

FEW = "use a smaller shape, or only compile the program: sw.jit(f).lower(...).compile()"


WHOLE = "tensor<1048576x1048576xf32>, 4398046511104 bytes"


def column(x: Any) -> Any:
    return np.arange(SIDE, dtype=np.float32)[:, None] + x[0]


@pytest.mark.parametrize(
    ("function", "op", "buffer"),
    [
        (lambda x: np.broadcast_to(x[0], (SIDE, SIDE)) + 1, "stablehlo.add", WHOLE),
        (lambda x: np.outer(column(x), column(x)), "stablehlo.multiply", WHOLE),
        (lambda x: np.cumsum(np.broadcast_to(x[0], (SIDE, SIDE)), axis=0), "stablehlo.reduce_window", WHOLE),
        (lambda x: sw.split(column(x), 0, "x") * np.broadcast_to(x[0], (SIDE, SIDE)), "stablehlo.multiply",
         "tensor<262144x1048576xf32> for each of 4 devices, 4398046511104 bytes"),
    ],
    ids=["broadcast", "outer", "cumsum", "on several devices"],
)  # fmt: skip
def test_a_buffer_beyond_the_memory_names_op_shape_and_bytes(
    function: Callable[[Any], Any], op: str, buffer: str
) -> None:
    step = sw.jit(function, mesh=MESH)
    assert step.lower(X).compile().op_count
    with pytest.raises(sw.OutOfMemoryError) as caught:
        step(X)
    assert isinstance(caught.value, MemoryError)
    message = f"{op}: its buffers must fit into memory, got {buffer}; {FEW}"
    assert re.sub(r" \(at \S+:\d+\)$", "", str(caught.value)) == message
    assert re.search(rf"\(at {re.escape(__file__)}:\d+\)$", str(caught.value))


def test_an_argument_beyond_the_memory() -> None:
    wide = np.broadcast_to(np.float32(1), (SIDE, SIDE))
    expected = f"array: its buffers must fit into memory, got f32[1048576, 1048576], 4398046511104 bytes; {FEW}"
    assert message_of(sw.OutOfMemoryError, lambda: sw.device_put(wide, MESH)) == expected
    assert message_of(sw.OutOfMemoryError, lambda: sw.device_put(wide, NamedSharding(MESH, P("x")))) == expected


def test_after_an_error_of_memory_the_next_run_is_right() -> None:
    step = sw.jit(lambda x: np.broadcast_to(x, (2**38, 4)) + 1, mesh=MESH)
    small = sw.jit(lambda x: x + 1, mesh=MESH, in_shardings=P("x"))
    for _ in range(3):
        with pytest.raises(sw.OutOfMemoryError):
            step(X)
        np.testing.assert_array_equal(small(X), X + 1)


def test_memory_that_ends_anywhere_is_our_error() -> None:
    """Also where a vector of the extension grows, with a limit on the memory of the process."""
    code = """if True:
    import resource
    import numpy as np
    import shardwise as sw
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    for extra in (2, 20, 40, 60, 80, 100, 120):
        resource.setrlimit(resource.RLIMIT_AS, (used + (extra << 20), -1))
        try:
            x = np.zeros(2**20, np.float32)
            sw.jit(lambda x: np.cumsum(np.outer(x, x[:4]), 0)[::-1] * 2.0, mesh=sw.Mesh({"x": 3}))(x)
        except MemoryError as error:
            assert "std::" not in str(error), error
            print(type(error).__name__)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "OutOfMemoryError" in done.stdout


# ---- shapes ---------------------------------------------------------------------------------------------------------

BITS = "array: the size in bytes must fit into 63 bits, got "


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: np.zeros_like(x, shape=(2**40, 2**40)),
         f"{BITS}float32[1099511627776, 1099511627776]; use a smaller shape"),
        (lambda x: np.broadcast_to(x[0], (2**40, 2**40)) + 1,
         f"{BITS}float32[1099511627776, 1099511627776]; use a smaller shape"),
        (lambda x: np.zeros_like(x, shape=(2**70,)), f"{BITS}float32[1180591620717411303424]; use a smaller shape"),
        (lambda x: np.tile(x, 2**60), f"{BITS}shape [4611686018427387904] of f32; use a smaller shape"),
        (lambda x: np.tile(x, 2**70), "shape: a number must fit into 64 bits, got 1180591620717411303424"),
        (lambda x: np.pad(x, 2**70), "attribute: a number must fit into 64 bits, got 1180591620717411303424"),
        (lambda x: np.repeat(x, 2**70),
         "np.repeat: repeats must be in [0, 72057594037927935], got 1180591620717411303424"),
    ],
)  # fmt: skip
def test_a_shape_beyond_63_bits_is_refused_while_it_is_recorded(function: Callable[[Any], Any], message: str) -> None:
    assert message_of(sw.ShapeError, lambda: sw.jit(function, mesh=MESH)(X)) == message


# ---- devices --------------------------------------------------------------------------------------------------------

HUGE = sw.Mesh({"x": 2**20, "y": 2**20})
DEVICES = (
    "a mesh must have at most 1048576 devices, whose shards are all kept in this process, got 1099511627776 devices of "
    '<["x"=1048576, "y"=1048576]>; for a larger mesh only compile the program: sw.jit(f).lower(...).compile()'
)
SHARDED = NamedSharding(HUGE, P("x"))


def test_a_position_along_axes_fits_into_31_bits() -> None:
    # One row more than devices: its padding is masked by the position of each device.
    aval = sw.ShapeDtypeStruct((2**40 + 1,), np.float32)
    total = sw.jit(np.sum, mesh=sw.Mesh({"x": 2**40}), in_shardings=P("x"))
    with pytest.raises(
        sw.ShardingError, match="a position along axes must fit into 31 bits, got 1099511627776 devices"
    ):
        total.lower(aval).compile()


def test_a_program_has_no_op_of_any_number() -> None:
    program = sw.jit(np.sum, mesh=MESH).lower(X).compile()
    executable = program._on(sw.process.processes.ALONE).executable
    for number in (0, 10**6):
        with pytest.raises(IndexError, match="a program has no such op"):
            executable.op_text(number)


@pytest.fixture(autouse=True)
def quick() -> Any:
    begin = time.monotonic()
    yield
    assert time.monotonic() - begin < 30


def test_a_huge_mesh_compiles_and_explains() -> None:
    step = sw.jit(lambda x, w: x @ w, mesh=HUGE, in_shardings=(P("x"), P(None, "y")))
    program = step.lower(sw.ShapeDtypeStruct((2**22, 64), np.float32), np.zeros((64, 2**20), np.float32)).compile()
    assert program.output_shardings.spec == P("x", "y")
    assert program.as_text("local").count("tensor<4x1xf32>") >= 1
    assert len(program.collectives()) == 0


@pytest.mark.parametrize(
    ("operation", "call"),
    [
        ("run", lambda: sw.jit(lambda x: x + 1, mesh=HUGE, in_shardings=P("x"))(X)),
        ("run", lambda: sw.jit(lambda x: x + 1, mesh=HUGE).lower(X).compile().run(X)),
        ("run", lambda: sw.jit(lambda: np.float32(1), mesh=HUGE)()),
        ("device_put", lambda: sw.device_put(X, HUGE)),
        ("device_put", lambda: sw.device_put(X, SHARDED)),
        ("Mesh.device_ids", lambda: HUGE.device_ids),
        ("Mesh.device_ids", lambda: HUGE.devices),
        ("devices_indices_map", lambda: SHARDED.devices_indices_map((2**22,))),
        ("array", lambda: sw.reshard(sw.device_put(X, MESH), SHARDED)),
    ],
    ids=["call", "run", "no arguments", "replicated", "sharded", "device_ids", "devices", "indices", "reshard"],
)
def test_a_huge_mesh_is_refused_at_once(operation: str, call: Callable[[], Any]) -> None:
    assert message_of(sw.MeshError, call) == f"{operation}: {DEVICES}"


def test_a_huge_mesh_shows_itself() -> None:
    assert repr(HUGE) == "Mesh('x': 1048576, 'y': 1048576)"
    html = sw.Mesh({"a": 2**30, "x": 2**10, "y": 2**10})._repr_html_()
    assert "each area is 128 × 128 of 1,125,899,906,842,624 devices" in html
    assert HUGE.size == 2**40
    assert sw.Mesh.from_json(HUGE.to_json()) == HUGE


@pytest.mark.parametrize("ids", [range(2**40), [1, 0]], ids=["range", "list"])
def test_device_ids_of_a_huge_mesh_are_refused(ids: Any) -> None:
    assert message_of(sw.MeshError, lambda: sw.Mesh({"x": 2**40}, ids)) == (
        "Mesh: device ids can be given for at most 1048576 devices, since each is kept, got 1099511627776 devices; "
        "leave device_ids out: 0, 1, 2, … in order"
    )


def test_the_largest_mesh_that_runs() -> None:
    mesh = sw.Mesh({"x": 2**20})
    np.testing.assert_array_equal(sw.jit(lambda x: x + 1, mesh=mesh, in_shardings=P("x"))(X), X + 1)
