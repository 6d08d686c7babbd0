# SPDX-License-Identifier: Apache-2.0
"""Programs whose loops read a row of a split dim in each trip, and the same with another split.

xs = x.reshape(4, -1, 32)          x is split along dim 0
sw.scan(step, init, xs)            the rows are moved to dim 1, so that devices share the work of a trip; or one
                                   warning, at this line
sw.split(xs, 1, "x")               shared by an annotation, without a warning, with the same numbers
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

import shardwise as sw
from tests.conformance.transformed import kits
from tests.conformance.transformed.kits import JAX, KITS, Kit

WIDTH = 64


@dataclass(frozen=True)
class Sizes:
    """Trips of a loop, and rows that a trip reads."""

    trips: int
    rows: int


def _kept(kit: Kit, xs: Any, way: str) -> Any:
    """``xs`` as it is, or with another dim split."""
    return kit.constrain(xs, (None, "x", None)) if way == "split" else xs


def _parts(x: Any, trips: int, way: str) -> Any:
    """The batch in so many parts."""
    return x.reshape(-1, trips, WIDTH).transpose(1, 0, 2) if way == "interleaved" else x.reshape(trips, -1, WIDTH)


def _step(kit: Kit, w: Any) -> Callable[[Any, Any], tuple[Any, Any]]:
    return lambda carry, rows: (carry + (kit.np.tanh(rows @ w) ** 2).mean(), None)


def scan(kit: Kit, sizes: Sizes, way: str, x: Any, w: Any) -> Any:
    """A scan over a dim that is split."""
    total, _ = kit.scan(_step(kit, w), np.float32(0), _kept(kit, x, way))
    return total


def scan_of_reshape(kit: Kit, sizes: Sizes, way: str, x: Any, w: Any) -> Any:
    """Gradient accumulation: the batch is cut into parts by a reshape."""
    xs = _parts(x, sizes.trips, way)
    return kit.scan(_step(kit, w), np.float32(0), _kept(kit, xs, way))[0]


def gradients(kit: Kit, sizes: Sizes, way: str, x: Any, w: Any) -> Any:
    """The same with the gradient in each trip."""
    xs = _parts(x, sizes.trips, way)

    def step(carry: Any, rows: Any) -> tuple[Any, Any]:
        return carry + kit.grad(lambda w: (kit.np.tanh(rows @ w) ** 2).mean())(w), None

    return kit.scan(step, kit.np.zeros_like(w), _kept(kit, xs, way))[0]


def loop(kit: Kit, sizes: Sizes, way: str, x: Any, w: Any) -> Any:
    """A loop that indexes the dim that is split."""
    xs = _kept(kit, x, way)
    return kit.fori_loop(0, sizes.trips, lambda i, total: _step(kit, w)(total, xs[i])[0], np.float32(0))


FORMS: tuple[Any, ...] = (scan, scan_of_reshape, gradients, loop)
CUT = (scan_of_reshape, gradients)  # a batch of (trips * rows, width)


@dataclass(frozen=True)
class Program:
    """One program of this kind, in NumPy or in JAX."""

    form: Any
    kit: str
    sizes: Sizes
    way: str  # "split" or "interleaved"

    def __str__(self) -> str:
        return f"{self.kit}: {self.form.__name__}, {self.sizes}, {self.way}"

    def compiled(self, way: str, arguments: tuple[np.ndarray, np.ndarray]) -> sw.Program:
        kit = KITS[self.kit]

        def function(x: Any, w: Any) -> Any:
            return self.form(kit, self.sizes, way, x, w)

        whole = sw.from_jax(function) if kit is JAX else function
        return sw.jit(whole, mesh=kits.sw_mesh(), in_shardings=(sw.P("x"), sw.P())).lower(*arguments).compile()


def draw(seed: int, index: int) -> Program:
    """Each form comes in turn, in NumPy and in JAX."""
    rng = random.Random(f"{seed}:{index}")
    form = FORMS[(seed + index // 5) % len(FORMS)]
    kit = rng.choice(("shardwise", "jax"))
    sizes = Sizes(rng.choice((4, 8, 12)), rng.choice((64, 96, 128)))
    way = rng.choice(("split", "interleaved")) if form in CUT else "split"
    return Program(form, kit, sizes, way)


def check(program: Program) -> str:
    """What is wrong: the work, a warning, or a number; "" for nothing."""
    rng = np.random.default_rng(3)
    trips, rows = program.sizes.trips, program.sizes.rows
    shape = (trips * rows, WIDTH) if program.form in CUT else (trips, rows, WIDTH)
    x = rng.standard_normal(shape).astype(np.float32)
    w = rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 8
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", sw.ShardingWarning)
        plain, split = program.compiled("", (x, w)), program.compiled(program.way, (x, w))
    expected = jax.jit(lambda x, w: program.form(kits.PLAIN, program.sizes, "", x, w))(x, w)
    for compiled in (plain, split):
        if not np.allclose(compiled(x, w), expected, rtol=1e-4, atol=1e-4):
            return "another value"
    if any("loop" in text for text in split.work().warnings):
        return f"the way out has a warning: {split.work().warnings}"
    given = [warning for warning in caught if warning.category is sw.ShardingWarning]
    # Nothing asks for the other axis of the mesh.
    if plain.work().ratio > 1.05 * split.work().ratio:
        return _check_warning(program, plain, split, given)
    return f"compilation warns of {[str(warning.message) for warning in given]}" if given else ""


def _check_warning(program: Program, plain: sw.Program, split: sw.Program, given: list[Any]) -> str:
    """What is wrong where devices repeat the work of each trip."""
    if split.work().ratio > 0.3 * plain.work().ratio:
        return f"the way out does not help:\n{split.work()}"
    found = [text for text in plain.work().warnings if "each trip of the loop" in text]
    if len(found) != 1 or "repeated_work.py:" not in found[0]:
        return f"the warnings are {plain.work().warnings}"
    texts = [str(warning.message) for warning in given if warning.filename == __file__]
    if len(given) != 1 or len(texts) != 1 or not found[0].endswith(texts[0].partition("; ")[2]):
        return f"compilation warns of {[str(warning.message) for warning in given]}"
    if ", 1, 'x')" not in found[0]:
        return f"no split of dim 1: {found[0]}"
    if program.form in CUT and f".reshape(-1, {program.sizes.trips}, {WIDTH})" not in found[0]:
        return f"no interleaved form: {found[0]}"
    return ""
