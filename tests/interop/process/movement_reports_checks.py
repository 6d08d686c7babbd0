# SPDX-License-Identifier: Apache-2.0
"""Programs after public reports of needless communication: right numbers, and no more bytes than they were measured at.

docs/gallery.md lists them by their names. ``needed`` is what must move; ``sent`` is more where the partitioner sends
more. The expected values are NumPy's, or those of JAX. Runs in a process of its own, where JAX has 8 devices.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shardwise as sw
from shardwise import P
from tests.support.paths import ROOT

F32, I32, C64 = np.float32, np.int32, np.complex64
ROWS, COLUMNS, WHOLE, HEADS = P("x"), P(None, "x"), P(), P(None, None, "x")
JAX_MESH = jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
PAIRS = ((0, 1), (2, 3))  # groups of devices along x


class Case(NamedTuple):
    """A program, its shapes (float32, or with a dtype), and the bytes that a device receives."""

    name: str
    function: Callable[..., Any]
    shapes: tuple[Any, ...]
    given: tuple[Any, ...]
    wanted: Any
    needed: int
    sent: int | None = None
    devices: int = 4
    is_jax: bool = False


def in_jax(*fields: Any) -> Case:
    return Case(*fields)._replace(is_jax=True)


def slice_rows(cache: Any, starts: Any, count: int) -> Any:
    return jax.vmap(lambda c, i: lax.dynamic_slice(c, (i, 0, 0), (count, 8, 16)))(cache, starts)


def written(cache: Any, update: Any, starts: Any) -> Any:
    return jax.vmap(lambda c, u, i: lax.dynamic_update_slice(c, u, (i, 0, 0)))(cache, update, starts)


def filter_gradients(w: Any, x: Any) -> Any:
    def loss(w: Any, x: Any) -> Any:
        return jnp.sum(lax.conv_general_dilated(x[None], w, (1, 1), "VALID") ** 2)

    return jax.vmap(jax.grad(loss), (None, 0))(w, x)


def accumulated(w: Any, x: Any) -> Any:
    def step(total: Any, rows: Any) -> tuple[Any, None]:
        return total + jax.grad(lambda w: jnp.mean(jnp.tanh(rows @ w) ** 2))(w), None

    return lax.scan(step, jnp.zeros_like(w), x.reshape(4, -1, 32))[0]


def on_pairs(collective: Any, **options: Any) -> Any:
    spec = jax.sharding.PartitionSpec("x")
    return jax.shard_map(
        lambda x: collective(x, "x", axis_index_groups=PAIRS, tiled=True, **options), mesh=JAX_MESH, in_specs=spec,
        out_specs=spec, check_vma=False,
    )  # fmt: skip


def uniform() -> Any:
    return jax.random.uniform(jax.random.key(1), (64, 32))


def distances() -> Any:
    return jnp.abs(jnp.arange(64)[:, None] - jnp.arange(64)).astype(F32)


def masked(n: Any, a: Any, c: Any) -> Any:
    kept = np.arange(32)[None] < n[:, None]
    return np.where(kept, a, 0), np.where(kept, c, 0)


CACHE = ((4, 64, 8, 16), ((4,), I32))
CASES = [
    in_jax("KV write, heads split", written, (CACHE[0], (4, 1, 8, 16), CACHE[1]), (HEADS, HEADS, WHOLE), HEADS, 0),
    in_jax(
        "gradient of a KV read, heads split",
        jax.grad(lambda c, i: jnp.sum(slice_rows(c, i, 1) ** 2)),
        CACHE,
        (HEADS, WHOLE),
        HEADS,
        0,
    ),
    in_jax("KV read of 2 rows, sequence split", lambda c, i: slice_rows(c, i, 2), CACHE, (COLUMNS, WHOLE), WHOLE, 6144),
    in_jax("x.at[0:3].set(u)", lambda x, u: x.at[0:3].set(u), ((64, 8), (3, 8)), (ROWS, WHOLE), ROWS, 0),
    in_jax("x.at[:, 2:5].add(u)", lambda x, u: x.at[:, 2:5].add(u), ((8, 64), (8, 3)), (COLUMNS, WHOLE), COLUMNS, 0),
    in_jax("u.at[1:-1].multiply(2)", lambda u: u.at[1:-1].multiply(2.0), ((64, 16),), (ROWS,), ROWS, 0),
    in_jax("u.at[2:6].set(w)", lambda u, w: u.at[2:6].set(w), ((64, 16), (4, 16)), (ROWS, WHOLE), ROWS, 0),
    in_jax(
        "gradients of a convolution by example",
        filter_gradients,
        ((4, 3, 3, 3), (8, 3, 16, 16)),
        (WHOLE, ROWS),
        ROWS,
        0,
        18432,
        3,
    ),
    in_jax("gradient accumulation by reshape", accumulated, ((32, 32), (4096, 32)), (WHOLE, ROWS), None, 104448),
    Case("reshape(-1) of 6 rows", lambda b: b.reshape(-1) * 2, ((6, 256),), (ROWS,), None, 1536),
    Case(
        "6 heads over 3 devices",
        lambda x: np.tanh(x.reshape(6, 16, 16)).reshape(6, 256),
        ((6, 256),),
        (COLUMNS,),
        COLUMNS,
        720,
        None,
        3,
    ),
    in_jax("psum_scatter in pairs", on_pairs(lax.psum_scatter, scatter_dimension=1), ((8, 64),), (None,), None, 256),
    in_jax("all_gather in pairs", on_pairs(lax.all_gather, axis=1), ((8, 64),), (None,), None, 512),
    in_jax(
        "logits[arange, labels]", lambda x, t: x[jnp.arange(64), t], ((64, 16), ((64,), I32)), (ROWS, ROWS), ROWS, 0
    ),
    in_jax(
        "cache.at[arange, p].set(u)",
        lambda c, u, p: c.at[jnp.arange(64), p].set(u),
        ((64, 32, 16), (64, 16), ((64,), I32)),
        (ROWS,) * 3,
        ROWS,
        0,
    ),
    Case("rows of pairs swapped", lambda a: a[np.arange(1024) ^ 1], ((1024, 64),), (ROWS,), ROWS, 0),
    Case("rows as they are", lambda a: a[np.arange(1024)], ((1024, 64),), (ROWS,), ROWS, 0),
    Case("every second row", lambda a: a[np.arange(0, 1024, 2)], ((1024, 64),), (ROWS,), ROWS, 0),
    Case("rows rotated by one", lambda a: a[np.roll(np.arange(1024), 1)], ((1024, 64),), (ROWS,), ROWS, 256),
    Case(
        "columns reversed by index",
        lambda x: x[np.arange(32)[:, None], np.broadcast_to(np.arange(8)[::-1], (32, 8))],
        ((32, 8),),
        (ROWS,),
        ROWS,
        0,
    ),
    Case("np.diagonal", lambda a: np.diagonal(a), ((64, 64),), (ROWS,), None, 0),
    Case(
        "fft along a split dim", lambda a: np.fft.fft(a, axis=0), (((256, 256), C64),), (ROWS,), ROWS, 61440, None, 16
    ),
    Case("fft2", lambda a: np.fft.fft2(a), (((256, 256), C64),), (ROWS,), None, 30720, None, 16),
    Case("fft2 and back", lambda a: np.fft.ifft2(np.fft.fft2(a)), (((256, 256), C64),), (ROWS,), ROWS, 61440, None, 16),
    in_jax(
        "nearest rows, twice as many",
        lambda y: jax.image.resize(y, (128, 16), "nearest"),
        ((64, 16),),
        (ROWS,),
        ROWS,
        0,
    ),
    Case("np.convolve", lambda v: np.convolve(v, np.array([1, 2, 1], F32), "same"), ((64,),), (ROWS,), ROWS, 8),
    Case("masks from lengths", masked, (((64,), I32), (64, 32), (64, 32)), (WHOLE, ROWS, COLUMNS), None, 0),
    in_jax(
        "random bits of one key, twice",
        lambda a, c: (a + uniform(), c + uniform()),
        ((64, 32),) * 2,
        (ROWS, COLUMNS),
        None,
        0,
    ),
    in_jax(
        "distances, twice", lambda a, c: (a - distances(), c - distances()), ((64, 64),) * 2, (ROWS, COLUMNS), None, 0
    ),
    Case("a whole array, shifted", lambda w, a: (w * 2)[1:] + a[1:], ((64, 32),) * 2, (WHOLE, ROWS), None, 128),
    Case(
        "nested concatenations", lambda w: np.concatenate([np.concatenate([w, w])] * 2), ((64, 32),), (WHOLE,), ROWS, 0
    ),
    Case("stack and reshape", lambda x: np.stack([x * 2] * 4).reshape(256, 32), ((64, 32),), (ROWS,), ROWS, 0, 6144),
    in_jax("associative_scan", lambda x: lax.associative_scan(jnp.add, x), ((1024, 4),), (ROWS,), ROWS, 48, 320),
    in_jax("inv of a batch", lambda m: jnp.linalg.inv(m + 9 * jnp.eye(5)), ((12, 5, 5),), (ROWS,), None, 0),
    Case("30 heads over 8 devices", lambda v: v.reshape(16, 30, 2), ((16, 60),), (COLUMNS,), None, 0, None, 8),
    Case("30 heads over 4 devices", lambda v: v.reshape(16, 30, 128), ((16, 3840),), (COLUMNS,), None, 12288),
    Case("pad by the edge", lambda u: np.pad(u, ((1, 1), (0, 0)), mode="edge"), ((64, 16),), (ROWS,), ROWS, 128),
    Case("diff with a row appended", lambda u: np.diff(u, axis=0, append=u[-1:]), ((64, 16),), (ROWS,), ROWS, 64),
]


def arguments(case: Case) -> list[np.ndarray]:
    """Random numbers; places are small."""
    rng = np.random.default_rng(0)
    found = []
    for shape in case.shapes:
        size, dtype = shape if isinstance(shape[-1], type) else (shape, F32)
        numbers = rng.integers(0, 16, size) if dtype is I32 else rng.normal(size=size) + 1j * rng.normal(size=size)
        found.append((numbers if dtype is not F32 else numbers.real).astype(dtype))
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_program_has_right_numbers_and_sends_no_more(case: Case) -> None:
    is_on_grid = case.name.endswith("in pairs")
    mesh = sw.Mesh({"x": 4, "y": 2}) if is_on_grid else sw.Mesh({"x": case.devices})
    function = sw.from_jax(case.function) if case.is_jax else case.function
    shardings = {} if is_on_grid else {"in_shardings": case.given, "out_shardings": case.wanted}
    given = arguments(case)
    compiled = sw.jit(function, mesh=mesh, objective="bytes", **shardings).lower(*given).compile()
    expected = jax.jit(case.function)(*given) if case.is_jax else case.function(*given)
    for ours, right in zip(sw.tree.leaves(compiled(*given)), jax.tree.leaves(expected), strict=True):
        right = np.asarray(right)
        np.testing.assert_allclose(np.asarray(ours), right, rtol=1e-4, atol=1e-4 * max(1.0, float(np.abs(right).max())))
    assert compiled.collectives().total_bytes <= (case.needed if case.sent is None else case.sent)


def test_the_page_lists_every_program() -> None:
    """docs/gallery.md has the programs with the bytes that they need, and those that they send."""
    page = (ROOT / "docs" / "gallery.md").read_text().partition("## More programs")[2]
    rows = re.findall(r"^\| `?([^|`]+?)`? \| ([\d,]+) B \| ([\d,]+) B \|", page, re.MULTILINE)
    listed = {name: (int(needed.replace(",", "")), int(sent.replace(",", ""))) for name, needed, sent in rows}
    sends = {case.name: (case.needed, case.needed if case.sent is None else case.sent) for case in CASES}
    assert listed == sends
