# SPDX-License-Identifier: Apache-2.0
"""Public reports of wrong numbers, crashes and needless communication in other projects give the right values here.

docs/gallery.md lists them. Each case has its report's number as its id; the comment says what goes wrong elsewhere.
The expected values are NumPy's, or those of the same function on one device. Runs in a process of its own, where JAX
has 8 devices.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as Q

import shardwise as sw
from shardwise import P
from tests.support.paths import ROOT

F32 = np.float32
TWO, THREE, FOUR, EIGHT = (sw.Mesh({"x": size}) for size in (2, 3, 4, 8))
GRID, UNEVEN = sw.Mesh({"x": 4, "y": 2}), sw.Mesh({"x": 3, "y": 2})
LINES, GRIDS = (FOUR, THREE, GRID), (sw.Mesh({"x": 2, "y": 2}), GRID, UNEVEN)
ROWS, COLUMNS = P("x"), P(None, "x")


def distinct(*shape: int, dtype: Any = F32) -> np.ndarray:
    """No two elements are equal, and neither their order nor their sums follow a simple rule."""
    size = int(np.prod(shape))
    return (np.random.default_rng(size).permutation(size) - size // 3).astype(dtype).reshape(shape)


class Case(NamedTuple):
    """A program of a report; `meshes` differ in whether the dims divide, and in unused axes."""

    report: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    given: tuple[Any, ...]
    wanted: Any
    meshes: tuple[sw.Mesh, ...] = LINES
    expected: Callable[..., Any] | None = None  # NumPy's; without one, the function itself on one device
    sent: int | None = None  # bytes that a device receives, on each mesh


# ---- JAX -------------------------------------------------------------------------------------------------------------


def transposed_roll(x: Any) -> Any:
    def roll(v: Any) -> Any:
        return jnp.roll(v, 1)

    return jax.grad(lambda v: (jax.linear_transpose(roll, v)(v)[0] * roll(v) ** 2).sum())(x)


def padded_pairs(x: Any) -> Any:
    def pair(low: int, high: int) -> Any:
        zero = jnp.zeros((), x.dtype)
        return lax.concatenate([lax.pad(x, zero, [(low, 0, 0)]), lax.pad(x, zero, [(0, high, 0)])], 0)

    return pair(-3, -1) + 100 * pair(-1, -3)


def shifted(a: Any, value: Any) -> Any:
    return a.at[:-1].set(a[1:]).at[-1].set(value)


def shuffled(key: Any, rows: Any) -> Any:
    keys = jax.random.split(jax.random.wrap_key_data(key), rows.shape[0])
    return jax.vmap(jax.random.permutation)(keys, rows)


def strided_convolution(image: Any, kernel: Any, bias: Any) -> Any:
    return lax.conv_general_dilated(image, kernel, (2, 2), ((1, 1), (1, 1))) + bias


CUBES = tuple(distinct(16, 16, 16) + number for number in range(3))
CUBE, GATHERED = P("y", None, "x"), P(None, ("x", "y"), None)
DEEP = NamedSharding(jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2), Q(None, ("x", "y"), None))
KEY = np.array([0, 7], np.uint32)
JAX_REPORTS = [
    # The partitioner emits a concatenate of a wrong shape, and compilation fails: one element per device.
    Case("jax#39301-gradient", transposed_roll, (distinct(4),), (ROWS,), ROWS),
    Case("jax#39301-pads", padded_pairs, (distinct(4),), (ROWS,), ROWS),
    # A jitted FFT of a sharded array is wrong on GPUs.
    Case("jax#16909", jnp.fft.fftn, (distinct(8, 12, 10) + 1j * distinct(12, 8, 10).reshape(8, 12, 10),), (ROWS,), ROWS,
         expected=np.fft.fftn),
    # A cumulative sum along a sharded dim is wrong on GPUs.
    Case("jax#21403", lambda m: jnp.cumsum(m, axis=-1), (distinct(8, 30, dtype=np.int32),), (P("y", "x"),),
         P("y", "x"), GRIDS, lambda m: np.cumsum(m, axis=-1, dtype=np.int32)),
    # Each element of the result is twice its value on a 4 x 2 mesh.
    Case("jax#24576", lambda a, b: jnp.concatenate([a, b]), (distinct(4), distinct(12)), (ROWS, ROWS), None,
         (GRID, UNEVEN, FOUR), lambda a, b: np.concatenate([a, b])),
    # The largest element is not the first of the four largest.
    Case("jax#19271", lambda x: (lax.top_k(x, 1), lax.top_k(x, 4)), (distinct(2, 98),), (COLUMNS,), None),
    # Rows that are whole on their devices are gathered to shuffle each of them.
    Case("jax#20381", shuffled, (KEY, distinct(24, 20, 3)), (P(), ROWS), ROWS, sent=0),
    Case("jax#20381-uneven", shuffled, (KEY, distinct(22, 20, 3)), (P(), ROWS), ROWS, sent=0),
    # A write at a static place gathers the operand; some versions wrote the wrong rows.
    Case("jax#23052", lambda x, u: x.at[0:3].set(u), (distinct(16, 8), distinct(3, 8) + 0.5), (ROWS, P()), ROWS,
         (EIGHT, THREE), sent=0),
    Case("jax#23052-integer", lambda x, u: x.at[-2].set(u), (distinct(16, 8), distinct(8) + 0.5), (ROWS, P()), ROWS,
         (EIGHT, THREE), sent=0),
    # An argsort along a sharded dim has no sharding rule; XLA makes two all-gathers of it.
    Case("jax#35650", lambda x: (jnp.argsort(x), x[jnp.argsort(x)]), (distinct(50),), (ROWS,), (ROWS, ROWS),
         expected=lambda x: (np.argsort(x).astype(np.int32), np.sort(x))),
    Case("jax#35650-bincount", lambda x: jnp.bincount(x, length=7), (distinct(50, dtype=np.int32) % 7,), (ROWS,), None,
         expected=lambda x: np.bincount(x, minlength=7).astype(np.int32)),
    # The numbers that are drawn depend on the number of shards.
    Case("jax#40232", lambda k: jax.random.normal(jax.random.wrap_key_data(k), (62, 5)), (KEY,), (P(),), ROWS,
         (*LINES, EIGHT), sent=0),
    # A convolution with strides above 1 is wrong where the batch and the output channels are sharded over one axis.
    Case("jax#16894", strided_convolution, (distinct(8, 4, 8, 8) / 64, distinct(6, 4, 3, 3) / 64, distinct(1, 6, 1, 1)),
         (ROWS, ROWS, COLUMNS), None, (EIGHT, THREE, GRID)),
    # The first row of each device but the first is wrong: JAX 0.10.2 writes the row that was there.
    Case("jax#18434", shifted, (distinct(16, 16), F32(1.456)), (ROWS, P()), ROWS, (FOUR, EIGHT, THREE),
         lambda a, value: np.concatenate([a[1:], np.full((1, 16), value)])),
    Case("jax#18434-grid", shifted, (distinct(16, 16), F32(1.456)), (P("x", "y"), P()), P("x", "y"), GRIDS,
         lambda a, value: np.concatenate([a[1:], np.full((1, 16), value)])),
    # A legal reshard gathers the tensor ("involuntary full rematerialization"). Needed: 7/8 of a device's part.
    Case("jax#21562", lambda a, b, c: c + lax.with_sharding_constraint(a + b, DEEP), CUBES, (CUBE, CUBE, GATHERED),
         GATHERED, (GRID,), lambda a, b, c: a + b + c, sent=1792),
    # An FFT along a whole dim gathers the dims that are sharded.
    Case("jax#15680", lambda a: jnp.fft.fft(a, 64, axis=1), (distinct(12, 30),), (ROWS,), ROWS,
         (FOUR, THREE, EIGHT), lambda a: np.fft.fft(a, 64, axis=1), sent=0),
]  # fmt: skip

# ---- XLA -------------------------------------------------------------------------------------------------------------


def embedding_gradient(table: Any, ids: Any, seen: Any) -> Any:
    return jax.grad(lambda t: (jnp.take(t, ids, axis=0) * seen).sum())(table)


def rows_of(table: np.ndarray, ids: np.ndarray, seen: np.ndarray) -> np.ndarray:
    gradient = np.zeros_like(table)
    np.add.at(gradient, ids, seen)
    return gradient


def first_column(x: np.ndarray, start: Any, width: int) -> int:
    """JAX counts negative starts from the end, and clamps all of them."""
    return int(np.clip(start + x.shape[1] if start < 0 else start, 0, x.shape[1] - width))


def written(x: Any, update: Any, start: Any) -> Any:
    return lax.dynamic_update_slice(x, update, (jnp.int32(0), start))


def written_in_numpy(x: np.ndarray, update: np.ndarray, start: Any) -> np.ndarray:
    x = x.copy()
    first = first_column(x, start, update.shape[1])
    x[:, first : first + update.shape[1]] = update
    return x


def read(x: Any, start: Any) -> Any:
    return lax.dynamic_slice(x, (jnp.int32(0), start), (2, 6))


def read_in_numpy(x: np.ndarray, start: Any) -> np.ndarray:
    first = first_column(x, start, 6)
    return x[:, first : first + 6]


def grouped(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(
        x, w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"), feature_group_count=x.shape[2] // w.shape[1]
    )


def grouped_gradient(x: Any, w: Any) -> Any:
    return jax.grad(lambda w: (grouped(x, w) ** 2).sum())(w)


def pooled_gradient(x: Any) -> Any:
    def pool(x: Any) -> Any:
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 1, 1, 1), "SAME")

    weights = jnp.arange(x.size, dtype=F32).reshape(x.shape) % 13
    return jax.grad(lambda x: (pool(x) * weights).sum())(x)


IDS = np.random.default_rng(1).integers(0, 8, (6, 9)).astype(np.int32)  # half of the rows are never read
XLA_REPORTS = [
    # The gradient is sliced before it is summed: rows get the gradients of rows of other devices.
    Case("xla#42481", embedding_gradient, (distinct(16, 4), IDS, distinct(6, 9, 4)), (P("x"), P(None, "y"), P()),
         P("x"), GRIDS, rows_of),
    # An update whose start must be clamped is dropped.
    *[Case(f"xla#49118-start{start}-width{width}", written,
           (distinct(2, 12), distinct(2, width) + 0.5, np.int32(start)), (COLUMNS, P(), P()), COLUMNS,
           (TWO, THREE, EIGHT), written_in_numpy)
      for start, width in ((-30, 1), (4, 1), (12, 1), (40, 1), (40, 3))],
    # The start is clamped on each device: columns are repeated.
    *[Case(f"xla#49122-start{start}", read, (distinct(2, 12), np.int32(start)), (COLUMNS, P()), COLUMNS,
           (TWO, THREE, FOUR), read_in_numpy) for start in (-30, -1, 1, 11)],
    # A grouped convolution gathers its batch.
    Case("xla#47945", grouped, (distinct(8, 13, 4) / 64, distinct(3, 2, 6) / 8), (ROWS, P()), ROWS, sent=0),
    # No report: the filter's gradient is three times too large on a 3 x 2 mesh.
    Case("grouped-filter", grouped_gradient, (distinct(8, 13, 2) / 64, distinct(3, 1, 6) / 8), (P("y"), P()), P(),
         (UNEVEN, GRID)),
    # No report: where windows of two devices overlap, contributions land on the neighbour.
    Case("max-pool", pooled_gradient, (distinct(2, 9, 12, 3),), (COLUMNS,), COLUMNS),
]  # fmt: skip

# ---- other projects --------------------------------------------------------------------------------------------------


def ragged_gradient(rhs: Any, lhs: Any, experts: Any) -> Any:
    def loss(rhs: Any) -> Any:
        order = jnp.argsort(experts)
        sizes = jnp.bincount(experts[order], length=rhs.shape[0])
        return lax.ragged_dot(lhs[order], rhs, sizes).sum()

    return jax.grad(loss)(rhs)


def ragged_in_numpy(rhs: np.ndarray, lhs: np.ndarray, experts: np.ndarray) -> np.ndarray:
    sums = np.stack([lhs[experts == expert].sum(0) for expert in range(len(rhs))])
    return np.broadcast_to(sums[:, :, None], rhs.shape)


def product(x: Any, y: Any) -> Any:
    return x @ y


EXPERTS = np.array([0, 2, 2, 0, 5, 1, 2, 5, 5, 0, 4, 4], np.int32)  # expert 3 and all above 5 get nothing
OTHERS = [
    # The result depends on its sharding.
    *[Case(f"tt-xla#902-{index}", product, (distinct(12, 10), distinct(10, 8)), (P("x"), P(None, "y")), wanted, GRIDS)
      for index, wanted in enumerate((P("x"), P(None, "y"), P(), P("x", "y")))],
    # The positions that the devices find are summed.
    Case("tt-mlir#8623", lambda x, w: jnp.argmax(x @ w, -1), (distinct(3, 8), distinct(8, 50)), (P(), COLUMNS), P(),
         expected=lambda x, w: np.argmax(x @ w, -1).astype(np.int32)),
    # The contracted dims are sharded over the same axes in another order, and the wrong columns meet the rows.
    *[Case(f"pytorch#166598-size{size}", product, (distinct(4, size), distinct(size, 4)),
           (P(None, ("x", "y")), P(("y", "x"))), P(), GRIDS) for size in (24, 10)],
    # Groups without rows get a gradient.
    Case("tokamax#887", ragged_gradient, (distinct(8, 5, 6), distinct(12, 5), EXPERTS), (ROWS, P(), P()), ROWS,
         expected=ragged_in_numpy),
    Case("tokamax#887-rows", ragged_gradient, (distinct(8, 5, 6), distinct(12, 5), EXPERTS), (P(), ROWS, ROWS), P(),
         expected=ragged_in_numpy),
]  # fmt: skip


def named(report: str, mesh: sw.Mesh) -> str:
    return f"{report}-{'x'.join(str(size) for size in mesh.shape.values())}"


RUNS = [
    pytest.param(case, mesh, id=named(case.report, mesh))
    for case in (*JAX_REPORTS, *XLA_REPORTS, *OTHERS)
    for mesh in case.meshes
]


def on(report: str, *meshes: sw.Mesh) -> Any:
    return pytest.mark.parametrize("mesh", [pytest.param(mesh, id=named(report, mesh)) for mesh in meshes])


def compiled(function: Any, mesh: sw.Mesh, given: Any, wanted: Any, *arguments: Any, objective: str = "time") -> Any:
    jitted = sw.jit(sw.from_jax(function), mesh=mesh, in_shardings=given, out_shardings=wanted, objective=objective)
    return jitted.lower(*arguments).compile()


def assert_equal(results: Any, expected: Any) -> None:
    results, expected = jax.tree.leaves(results), jax.tree.leaves(expected)
    assert len(results) == len(expected)
    for result, right in zip(results, expected):
        result, right = np.asarray(result), np.asarray(right)
        assert result.shape == right.shape
        if right.dtype.kind in "iu":
            np.testing.assert_array_equal(result, right)
        else:
            np.testing.assert_allclose(result, right, rtol=2e-5, atol=2e-5 * float(np.max(np.abs(right))))


@pytest.mark.parametrize(("case", "mesh"), RUNS)
def test_a_report_gives_the_right_values(case: Case, mesh: sw.Mesh) -> None:
    objective = "time" if case.sent is None else "bytes"
    program = compiled(case.function, mesh, case.given, case.wanted, *case.arguments, objective=objective)
    expected = (case.expected or jax.jit(case.function))(*case.arguments)
    assert_equal(program(*case.arguments), expected)
    if case.sent is not None:
        assert program.collectives().total_bytes == case.sent


@on("jax#35896", *LINES)
def test_wide_integers_are_counted_on_every_device(mesh: sw.Mesh) -> None:
    """A sharded `jnp.arange` of 64 bits is wrong in several processes."""
    first, size = 2**40, 1002

    def function() -> Any:
        counted = jnp.arange(first, first + size)
        return counted, counted.sum(), counted.min()

    with jax.enable_x64(True):
        program = compiled(function, mesh, None, (ROWS, P(), P()))
        right = np.arange(first, first + size)
        assert_equal(program(), (right, right.sum(), right.min()))


@on("xla#24186", *LINES)
def test_an_update_in_double_precision_is_exact(mesh: sw.Mesh) -> None:
    """A dynamic-update-slice of a sharded float64 array fails to compile."""
    x = distinct(16, dtype=np.float64) + 2.0**-40  # is lost in float32
    right = x.copy()
    right[5:8] = 2.0**-40
    with jax.enable_x64(True):
        program = compiled(lambda x: lax.dynamic_update_slice(x, jnp.full(3, 2.0**-40), (5,)), mesh, ROWS, ROWS, x)
        result = np.asarray(program(x))
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, right)
    assert program.collectives().total_bytes == 0


@on("jax#25844", *LINES)
@pytest.mark.parametrize("transform", ["grad", "jacrev", "jacfwd"])
def test_derivatives_stay_sharded(transform: str, mesh: sw.Mesh) -> None:
    """The results are replicated, although the argument is sharded."""
    x = distinct(8)
    functions = {
        "grad": jax.grad(lambda a: (a * a).sum()),
        "jacrev": jax.jacrev(lambda a: a * a),
        "jacfwd": jax.jacfwd(lambda a: a * a),
    }
    program = compiled(functions[transform], mesh, ROWS, None, x)
    result = program(x)
    assert "x" in result.sharding.spec
    assert program.collectives().total_bytes == 0
    np.testing.assert_array_equal(np.asarray(result), 2 * x if transform == "grad" else np.diag(2 * x))


def accumulated(steps: int, w: Any, rows: Any) -> Any:
    def loss(w: Any, rows: Any) -> Any:
        return (jnp.tanh(jnp.tanh(rows @ w) @ w.T) ** 2).sum()

    def step(total: Any, rows: Any) -> Any:
        return total + jax.grad(loss)(w, rows), None

    if steps == 1:
        return jax.grad(loss)(w, rows)
    return lax.scan(step, jnp.zeros_like(w), rows.reshape(steps, -1, rows.shape[-1]))[0]


@on("jax#24208", *(sw.Mesh({"groups": 2, "model": size}) for size in (4, 3)))
def test_a_step_without_accumulation_needs_no_more_memory(mesh: sw.Mesh) -> None:
    """With the same rows per step, a step of hybrid sharded data parallelism needs more memory without accumulation."""
    w = distinct(32, 64) / 1024

    def peak(steps: int) -> float:
        rows = distinct(256 * steps, 32) / 4096
        given = (P("model"), P(("groups", "model")))
        program = compiled(lambda w, b: accumulated(steps, w, b), mesh, given, P("model", "groups"), w, rows)
        assert_equal(program(w, rows), jax.jit(lambda w, b: accumulated(1, w, b))(w, rows))
        return program.memory().peak_bytes

    assert peak(1) <= peak(2)


def test_the_page_lists_every_report() -> None:
    """docs/gallery.md and these tests have the same reports."""
    number = re.compile(r"\b(?:jax|xla|pytorch|tt-xla|tt-mlir|tokamax)#\d+")
    tables = [line for line in (ROOT / "docs" / "gallery.md").read_text().splitlines() if line.startswith("| ")]
    assert set(number.findall("\n".join(tables))) == set(number.findall(Path(__file__).read_text()))
