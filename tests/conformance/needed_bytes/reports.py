# SPDX-License-Identifier: Apache-2.0
"""Programs of public reports that moved more than they need, each with its right bytes.

    python -m tests.conformance.needed_bytes.reports

prints the bytes of each by ``objective="bytes"`` and by the default, beside the right ones.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AbstractMesh, PartitionSpec as JaxP

import shardwise as sw
from shardwise import P

__all__ = ["ABOVE", "REPORTS", "Report"]

F32, I32, C64 = np.float32, np.int32, np.complex64
X, Y, WHOLE = P("x"), P(None, "x"), P()
HEADS, SEQUENCE = P(None, None, "x"), P(None, "x")


@dataclass(frozen=True)
class Report:
    """A program, the shapes of its arguments, and the bytes that one device has to receive."""

    name: str
    function: Callable[..., Any]
    shapes: tuple[Any, ...]  # each a shape, or a shape with a dtype
    given: tuple[Any, ...]
    wanted: Any
    right: int
    is_jax: bool = True
    sizes: tuple[tuple[str, int], ...] = (("x", 4),)

    def arguments(self) -> tuple[sw.ShapeDtypeStruct, ...]:
        described = ((s, F32) if not s or isinstance(s[0], int) else s for s in self.shapes)
        return tuple(sw.ShapeDtypeStruct(shape, dtype) for shape, dtype in described)

    def compiled(self, **options: Any) -> Any:
        function = sw.from_jax(self.function) if self.is_jax else self.function
        jitted = sw.jit(
            function, mesh=sw.Mesh(dict(self.sizes)), in_shardings=self.given, out_shardings=self.wanted, **options
        )
        return jitted.lower(*self.arguments()).compile()


def of_numpy(name: str, function: Any, shapes: Any, given: Any, wanted: Any, right: int, **sizes: int) -> Report:
    return Report(name, function, shapes, given, wanted, right, False, tuple((sizes or {"x": 4}).items()))


def of_jax(name: str, function: Any, shapes: Any, given: Any, wanted: Any, right: int, **sizes: int) -> Report:
    return Report(name, function, shapes, given, wanted, right, True, tuple((sizes or {"x": 4}).items()))


# ---- windows and indices ---------------------------------------------------------------------------------------------

write = jax.vmap(lambda c, u, i: lax.dynamic_update_slice(c, u, (i, 0, 0)))


def rows_of(length: int) -> Callable[..., Any]:
    return jax.vmap(lambda c, i: lax.dynamic_slice(c, (i, 0, 0), (length, 8, 16)))


CACHE, COUNT = (4, 1024, 8, 16), ((4,), I32)
TABLE, SMALL = (1024, 64), (64, 16)
ROWS = np.arange(1024)
MIXED = np.random.RandomState(0).permutation(1024)
BLOCKS = np.broadcast_to(np.arange(8)[::-1], (32, 8))

INDICES = [
    of_jax("2.1", write, (CACHE, (4, 1, 8, 16), COUNT), (HEADS, HEADS, WHOLE), HEADS, 0),
    of_jax("2.2", jax.grad(lambda c, i: jnp.sum(rows_of(1)(c, i) ** 2)), (CACHE, COUNT), (HEADS, WHOLE), HEADS, 0),
    of_jax("2.4", lambda x, u: x.at[0:3].set(u), (TABLE, (3, 64)), (X, WHOLE), X, 0),
    of_jax("2.5", lambda x, u: x.at[:, 2:5].add(u), ((64, 1024), (64, 3)), (Y, WHOLE), Y, 0),
    of_jax("2.7", rows_of(2), (CACHE, COUNT), (SEQUENCE, WHOLE), WHOLE, 6144),
    of_jax("2.19", lambda x, t: x[jnp.arange(1024), t], (TABLE, ((1024,), I32)), (X, X), X, 0),
    of_jax("2.20", lambda c, u, p: c.at[jnp.arange(64), p].set(u), ((64, 32, 16), SMALL, ((64,), I32)), (X,) * 3, X, 0),
    of_numpy("2.22 pairs", lambda a: a[ROWS ^ 1], (TABLE,), (X,), X, 0),
    of_numpy("2.22 identity", lambda a: a[ROWS], (TABLE,), (X,), X, 0),
    of_numpy("2.22 steps", lambda a: a[np.arange(0, 1024, 2)], (TABLE,), (X,), X, 0),
    of_numpy("2.22 diagonal", lambda a: np.diagonal(a), ((64, 64),), (X,), X, 0),
    of_numpy("2.23", lambda a: a[np.roll(ROWS, 1)], (TABLE,), (X,), X, 256),
    of_numpy("2.K table", lambda a: a[MIXED], (TABLE,), (X,), X, 50432),
    of_jax("3.7", lambda u: u.at[1:-1].multiply(2.0), (SMALL,), (X,), X, 0),
    of_jax("3.8", lambda u, w: u.at[2:6].set(w), (SMALL, (4, 16)), (X, WHOLE), X, 0),
    of_numpy("3.11", lambda y: y[np.arange(64) ^ 1], (SMALL,), (X,), X, 0),
    of_jax("3.13", lambda y: jax.image.resize(y, (128, 16), "nearest"), (SMALL,), (X,), X, 0),
    of_numpy("3.14", lambda v: np.convolve(v, np.array([1, 2, 1], F32), "same"), ((64,),), (X,), X, 8),
    of_numpy("3.16", lambda x: x[np.arange(32)[:, None], BLOCKS], ((32, 8),), (X,), X, 0),
]

# ---- reshapes, transforms, convolutions ------------------------------------------------------------------------------


def of_one_example(w: Any, x: Any) -> Any:
    return jnp.sum(lax.conv_general_dilated(x[None], w, (1, 1), "VALID") ** 2)


def accumulated(w: Any, x: Any) -> Any:
    def step(c: Any, m: Any) -> Any:
        return c + jax.grad(lambda w: jnp.mean(jnp.tanh(m @ w) ** 2))(w), None

    return lax.scan(step, jnp.zeros_like(w), x.reshape(4, -1, 32))[0]


SQUARE = ((256, 256), C64)
OVER_16 = {"x": 16}

SHAPES = [
    of_jax(
        "2.10", jax.vmap(jax.grad(of_one_example), (None, 0)), ((4, 3, 3, 3), (8, 3, 16, 16)), (WHOLE, X), X, 0, x=3
    ),
    of_jax("2.11", accumulated, ((32, 32), (4096, 32)), (WHOLE, X), WHOLE, 104448),
    of_numpy("2.13", lambda b: b.reshape(-1) * 2, ((6, 256),), (X,), None, 1536),
    of_numpy("2.14", lambda x: np.tanh(x.reshape(6, 16, 16)).reshape(6, 256), ((6, 256),), (Y,), Y, 720, x=3),
    of_numpy("2.25 fft", lambda a: np.fft.fft(a, axis=0), (SQUARE,), (X,), X, 61440, **OVER_16),
    of_numpy("2.25 fft2", lambda a: np.fft.fft2(a), (SQUARE,), (X,), X, 61440, **OVER_16),
    of_numpy("2.25 fft2, free", lambda a: np.fft.fft2(a), (SQUARE,), (X,), None, 30720, **OVER_16),
    of_numpy("2.25 ifft2 of fft2", lambda a: np.fft.ifft2(np.fft.fft2(a)), (SQUARE,), (X,), X, 61440, **OVER_16),
    of_jax("3.28", lambda x: lax.associative_scan(jnp.add, x), ((1024, 4),), (X,), X, 48),
    of_jax("3.29", jax.vmap(jnp.linalg.inv), ((12, 5, 5),), (X,), None, 0),
    of_numpy("3.31", lambda v: v.reshape(16, 30, 2), ((16, 60),), (Y,), None, 0, x=8),
    of_numpy("3.32", lambda v: v.reshape(16, 30, 128), ((16, 3840),), (Y,), None, 12288),
]

# ---- values of whole arguments, chains -------------------------------------------------------------------------------


def of_mask(n: Any, a: Any, c: Any) -> Any:
    q = np.arange(32)[None] < n[:, None]
    return np.where(q, a, 0), np.where(q, c, 0)


def uniform() -> Any:
    return jax.random.uniform(jax.random.key(1), (64, 32))


def distance() -> Any:
    return jnp.abs(jnp.arange(64)[:, None] - jnp.arange(64))


ARRAY = (64, 32)

CHAINS = [
    of_numpy("3.17", of_mask, (((64,), I32), ARRAY, ARRAY), (WHOLE, X, Y), None, 0),
    of_numpy("3.17, placed", of_mask, (((64,), I32), ARRAY, ARRAY), (WHOLE, X, Y), (X, Y), 0),
    of_jax("3.19", lambda a, c: (a + uniform(), c + uniform()), (ARRAY,) * 2, (X, Y), None, 0),
    of_jax("3.19, placed", lambda a, c: (a + uniform(), c + uniform()), (ARRAY,) * 2, (X, Y), (X, Y), 0),
    of_jax("3.20", lambda a, c: (a - distance(), c - distance()), ((64, 64),) * 2, (X, Y), None, 0),
    of_numpy("3.22", lambda w, a: (w * 2)[1:] + a[1:], (ARRAY,) * 2, (WHOLE, X), None, 128),
    of_numpy("3.23", lambda w: np.concatenate([np.concatenate([w, w])] * 2), (ARRAY,), (WHOLE,), X, 0),
    of_numpy("3.25", lambda x: np.stack([x * 2] * 4).reshape(256, 32), (ARRAY,), (WHOLE,), X, 0),
    of_numpy("3.34", lambda u: np.pad(u, ((1, 1), (0, 0)), mode="edge"), (SMALL,), (X,), X, 128),
    of_numpy("3.35", lambda u: np.diff(u, axis=0, append=u[-1:]), (SMALL,), (X,), X, 64),
]

# ---- manual regions --------------------------------------------------------------------------------------------------

REGION = AbstractMesh((4, 2), ("x", "y"))
GROUPS = ((0, 1), (2, 3))


def in_region(body: Callable[..., Any], count: int = 1, check: bool = True) -> Callable[..., Any]:
    return jax.shard_map(body, mesh=REGION, in_specs=(JaxP("x"),) * count, out_specs=JaxP("x"), check_vma=check)


def scattered(x: Any) -> Any:
    return lax.psum_scatter(x, "x", scatter_dimension=1, axis_index_groups=GROUPS, tiled=True)


def gathered(x: Any) -> Any:
    return lax.all_gather(x, "x", axis=1, axis_index_groups=GROUPS, tiled=True)


REGIONS = [
    of_jax("2.8", in_region(lambda x, y: 2 * x, 2), ((8,), (8,)), (X, X), X, 0, x=4, y=2),
    of_jax("2.16", in_region(scattered, check=False), ((8, 64),), (X,), X, 256, x=4, y=2),
    of_jax("2.17", in_region(gathered, check=False), ((8, 64),), (X,), X, 512, x=4, y=2),
]

REPORTS = [*INDICES, *SHAPES, *CHAINS, *REGIONS]

# Programs that still send more than they need, and how much.
ABOVE = {
    "2.K table": 98304,  # all rows change places twice: no exchange of single rows
    "2.10": 18432,  # blocks of the merged dim are not whole groups
    "3.28": 320,  # an exchange for each level
}


def main() -> int:
    print(f"{'report':20} {'right':>8} {'bytes':>8} {'default':>8}")
    above = 0
    for report in REPORTS:
        by_bytes = report.compiled(objective="bytes").collectives()
        by_default = report.compiled().collectives()
        above += by_bytes.total_bytes > report.right
        sign = "above" if by_bytes.total_bytes > report.right else ""
        sent = (by_bytes.total_bytes, by_default.total_bytes)
        print(
            f"{report.name:20} {report.right:8} {sent[0]:8g} {sent[1]:8g} {sign} {by_bytes.by_kind() if sign else ''}"
        )
    print(f"{len(REPORTS)} programs, {above} above their bytes")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
