# SPDX-License-Identifier: Apache-2.0
"""Programs that every communicator must run alike: each collective and reducer over every subset of axes, loops,
branches, uneven dims, sub-axes, permuted device ids.

    for program in programs():
        program.module, program.mesh        # to compile
        program.arguments                   # NumPy arrays
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P


@dataclass(frozen=True)
class Program:
    name: str
    mesh: sw.Mesh
    function: Callable[..., Any]
    arguments: tuple[np.ndarray, ...]
    # For a program with products of floats, whose bits may differ: computes the sums of the terms' absolute values from
    # the absolute values of the arguments.
    terms: Callable[..., Any] | None = None
    products: int = 1  # that follow each other
    options: Mapping[str, Any] = field(default_factory=dict)  # of jit


MESHES = {
    "x4": sw.Mesh({"x": 4}),
    "x8": sw.Mesh({"x": 8}),
    "x2_y4": sw.Mesh({"x": 2, "y": 4}),
    "x4_y2": sw.Mesh({"x": 4, "y": 2}),
    "x2_y2_z2": sw.Mesh({"x": 2, "y": 2, "z": 2}),
    "x3_y4": sw.Mesh({"x": 3, "y": 4}),
    "permuted": sw.Mesh({"x": 4, "y": 2}, device_ids=[3, 1, 4, 0, 7, 5, 2, 6]),
}
REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda x, axis: np.sum(x, axis=axis),
    "prod": lambda x, axis: np.prod(x, axis=axis),
    "max": lambda x, axis: np.max(x, axis=axis),
    "min": lambda x, axis: np.min(x, axis=axis),
    "all": lambda x, axis: np.all(x > 0, axis=axis),
    "any": lambda x, axis: np.any(x > 3, axis=axis),
    "argmax": lambda x, axis: np.argmax(x, axis=axis),
    "argmin": lambda x, axis: np.argmin(x, axis=axis),
    "cumsum": lambda x, axis: np.cumsum(x, axis=axis),
}


def numbers(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """Elements of both signs, with a NaN and both zeros among floats."""
    rng = np.random.default_rng(7)
    values = rng.standard_normal(shape) * 4
    if np.dtype(dtype).kind == "f" and values.size > 6:
        values.flat[[1, 3, 5]] = np.nan, 0.0, -0.0
    return values.astype(dtype)


def subsets(mesh: sw.Mesh) -> Iterator[tuple[str, ...]]:
    """Every list of the mesh's axes, in each order."""
    for count in range(1, len(mesh.axis_names) + 1):
        yield from itertools.permutations(mesh.axis_names, count)


def reduction(name: str, axes: tuple[str, ...], dtype: Any) -> Callable[..., Any]:
    reduce = REDUCTIONS[name]

    def function(x: Any) -> Any:
        return reduce(sw.shard(x, P(axes, None)), 0)

    return function


def reductions() -> Iterator[Program]:
    for mesh in ("x4_y2", "x2_y2_z2"):
        for axes in subsets(MESHES[mesh]):
            for name in REDUCTIONS if len(axes) < 3 else ("sum", "max", "argmax"):
                x = numbers((24, 5))
                yield Program(f"{name} {mesh} {axes}", MESHES[mesh], reduction(name, axes, x.dtype), (x,))
    for dtype in (np.int8, np.int32, np.uint64, np.float64, np.float16, sw.bfloat16):
        name = f"sum {np.dtype(dtype).name}"
        yield Program(name, MESHES["x4_y2"], reduction("sum", ("y", "x"), dtype), (numbers((24, 5), dtype),))


def resharded(before: Any, after: Any) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        return sw.shard(sw.shard(x, before) + 0, after)

    return function


def movements() -> Iterator[Program]:
    """all_gather, all_to_all, permutes and slices: from each placement to each other."""
    specs = {
        "x4_y2": [
            P(), P("x"), P(None, "x"), P("y", "x"), P("x", "y"), P(("x", "y")), P(("y", "x")), P(None, ("x", "y")),
        ],
        "x2_y2_z2": [P("x", "y"), P("y", "z"), P(("x", "z"), "y"), P(None, ("z", "y", "x"))],
        "x8": [
            P("x"), P(None, "x"), '[{"x":(1)2}, {"x":(2)4}]', '[{"x":(2)2, "x":(1)2}, {}]',
            '[{"x":(4)2, "x":(2)2}, {"x":(1)2}]',
        ],
        "permuted": [P("x"), P("y", "x"), P(None, ("x", "y"))],
    }  # fmt: skip
    for name, choices in specs.items():
        for before, after in itertools.permutations(choices, 2):
            for shape in ((16, 8), (13, 7)) if name == "x4_y2" else ((16, 8),):
                title = f"reshard {name} {shape} {before} to {after}"
                yield Program(title, MESHES[name], resharded(before, after), (numbers(shape),))


def scatter_sum(x: Any, w: Any) -> Any:
    x, w = sw.shard(x, P(None, "x")), sw.shard(w, P("x", None))
    return sw.shard(np.einsum("bm,mh->bh", x, w), P("x", None))


def windows(x: Any) -> Any:
    x = sw.shard(x, P("x"))
    return np.roll(x, 3), np.diff(x), x[2:-5], np.pad(x, 2), x[::-1], np.convolve(x, np.ones(5, np.float32), "same")


def joined(x: Any) -> Any:
    x = sw.shard(x, P("x", None))
    return np.concatenate([x, x[:3]]), np.stack([x, x + 1]), x.reshape(-1), x.T.reshape(4, -1), np.tile(x, (2, 1))


def looked_up(x: Any, rows: Any) -> Any:
    x, rows = sw.shard(x, P("x", None)), sw.shard(rows, P("x"))
    return np.take(x, rows, axis=0), sw.at(x, rows).add(1.0), np.where(rows[:, None] > 2, x[:8], 0)


def product(x_spec: P, w_spec: P) -> Callable[..., Any]:
    return lambda x, w: sw.shard(x, x_spec) @ sw.shard(w, w_spec)


def products() -> Iterator[Program]:
    """Products of floats. A process computes the devices that it owns by one call of BLAS where it can."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((48, 96), (96, 24)))
    specs = [(P("x"), P()), (P(), P(None, "y")), (P("x"), P(None, "y")), (P(None, "x"), P("x"))]
    specs += [(P(None, ("x", "y")), P(("x", "y"))), (P("y", "x"), P("x"))]
    for mesh in ("x4_y2", "permuted", "x2_y4", "x3_y4"):
        for x_spec, w_spec in specs:
            title = f"product {mesh} {x_spec} {w_spec}"
            yield Program(title, MESHES[mesh], product(x_spec, w_spec), (x, w), np.matmul)


def windowed() -> Iterator[Program]:
    """Products in loops beside a gather or a reduce_scatter."""
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((13, 96), (96, 23)))
    gathered = {
        "columns": lambda x, w: sw.shard(x, P("x")) @ sw.replicate(sw.shard(w, P(None, "x"))),
        "contracting": lambda x, w: sw.shard(x, P("x")) @ sw.replicate(sw.shard(w, P("x"))),
        "scattered": scatter_sum,
    }
    for mesh in ("x4", "x8", "x3_y4", "permuted"):
        for name, function in gathered.items():
            title = f"windowed {mesh} {name}"
            yield Program(title, MESHES[mesh], function, (x, w), np.matmul, options={"windowed_einsum": "always"})


def looped(x: Any) -> Any:
    x = sw.shard(x, P("x", "y"))

    def step(i: Any, carry: Any) -> Any:
        total, y = carry
        y = np.max(y, axis=0) - y + i
        return total + np.sum(y), y

    total, y = sw.fori_loop(0, 4, step, (np.float32(0), x))
    return total, y, sw.while_loop(lambda c: np.sum(c) < 100, lambda c: c * 2 + 1, np.abs(x))


def scanned(x: Any) -> Any:
    x = sw.shard(x, P(None, "x"))

    def step(carry: Any, row: Any) -> Any:
        carry = carry + row - np.mean(row)
        return carry, np.sum(carry)

    return sw.scan(step, np.zeros(x.shape[1], np.float32), x)


def branched(x: Any) -> Any:
    x = sw.shard(x, P("x", None))
    chosen = sw.cond(np.sum(x) > 0, lambda v: np.sum(v, axis=0), lambda v: np.max(v, axis=0), x)
    switched = sw.switch(np.argmax(np.sum(x, axis=0)) % 3, [lambda v: v + 1, lambda v: v.T.T * 2, np.flip], x)
    return chosen, switched


def drawn(x: Any) -> Any:
    x = sw.shard(x, P("x", None))
    return x + sw.random.normal(sw.random.key(3), x.shape), sw.random.randint(sw.random.key(4), (24,), 0, 9)


def layer(params: Any, x: Any) -> Any:
    w1, w2 = params
    h = np.maximum(sw.split(x, 0, "x") @ sw.shard(w1, P(None, "y")), 0)
    return np.sum((h @ w2) ** 2)


def gradient(w1: Any, w2: Any, x: Any) -> Any:
    return sw.value_and_grad(layer)((w1, w2), x)


def gradient_terms(w1: np.ndarray, w2: np.ndarray, x: np.ndarray) -> Any:
    """`gradient` of arguments without a sign: each result is then the sum of its terms' absolute values."""
    h = x @ w1
    y = h @ w2
    return (y**2).sum(), (x.T @ (2 * y @ w2.T), h.T @ (2 * y))


def together(x: Any, y: Any, w: Any) -> Any:
    """Sums, gathers and scattered sums, each of several values that travel together."""
    rows = [sw.shard(v, P("x", None)) for v in (x, y)]
    sums = [np.sum(v, axis=0) for v in (sw.shard(x, P("x", "y")), *rows, np.abs(rows[1]))]
    gathered = [sw.shard(np.abs(v) + 1, P()) for v in rows]
    halves = [sw.shard(v, P(None, "x")) for v in (x, y)]
    scattered = [sw.shard(v @ sw.shard(w[: v.shape[1]], P("x", None)), P("x", None)) for v in halves]
    return sums, gathered, scattered, [np.max(v, axis=0) for v in rows]


def whole_numbers(shape: tuple[int, ...]) -> np.ndarray:
    """Small integers as floats: products of them are exact, in whatever order a dot adds them."""
    return np.random.default_rng(3).integers(-4, 5, shape).astype(np.float32)


def composed() -> Iterator[Program]:
    rows = np.random.default_rng(1).integers(0, 8, 8)
    for mesh in ("x4_y2", "permuted", "x2_y4", "x3_y4"):
        on = MESHES[mesh]
        yield Program(f"scatter_sum {mesh}", on, scatter_sum, (whole_numbers((24, 12)), whole_numbers((12, 6))))
        values = (whole_numbers((24, 12)), whole_numbers((48, 24)), whole_numbers((24, 5)))
        yield Program(f"together {mesh}", on, together, values)
        yield Program(f"windows {mesh}", on, windows, (numbers((37,)),))
        yield Program(f"joined {mesh}", on, joined, (numbers((12, 4)),))
        yield Program(f"looked_up {mesh}", on, looked_up, (numbers((8, 3)), rows))
        yield Program(f"looped {mesh}", on, looped, (np.abs(whole_numbers((12, 8))) + 1,))
        yield Program(f"scanned {mesh}", on, scanned, (whole_numbers((6, 16)),))
        yield Program(f"branched {mesh}", on, branched, (whole_numbers((12, 4)),))
        yield Program(f"drawn {mesh}", on, drawn, (numbers((24, 3)),))
        arguments = (whole_numbers((6, 8)), whole_numbers((8, 3)), whole_numbers((17, 6)))
        yield Program(f"gradient {mesh}", on, gradient, arguments)
        floats = (numbers((6, 8))[:, ::-1], numbers((8, 3)), numbers((17, 6)))
        finite = tuple(np.nan_to_num(x, nan=0.5) for x in floats)
        yield Program(f"gradient of floats {mesh}", on, gradient, finite, gradient_terms, products=4)
    yield Program("large sum", MESHES["x4_y2"], reduction("sum", ("x", "y"), np.float32), (numbers((8, 40_001)),))
    yield Program("no elements", MESHES["x4"], reduction("sum", ("x",), np.float32), (numbers((0, 3)),))


TURNED = sw.Mesh({"a": 2, "b": 2}, device_ids=[2, 0, 3, 1], name="turned")
SHUFFLED = sw.Mesh({"u": 8}, device_ids=[3, 0, 6, 1, 7, 4, 2, 5], name="shuffled")


def on_two_meshes(other: sw.Mesh, spec: P, mine: P) -> Callable[[Any], Any]:
    """Ops and reductions on another mesh, and changes of the mesh, back and forth."""
    there = sw.NamedSharding(other, spec)

    def function(x: Any) -> Any:
        y = sw.shard(x, there) * 2
        total = sw.shard(y + np.sum(y, axis=0), mine) + x
        return sw.shard(sw.fori_loop(0, 2, lambda _, z: sw.shard(np.abs(sw.shard(z, there)), mine) + 1, total), mine)

    return function


def several_meshes() -> Iterator[Program]:
    four, eight = sw.Mesh({"x": 2, "y": 2}), MESHES["x4_y2"]
    there = sw.NamedSharding(TURNED, P("b", "a"))
    x = np.nan_to_num(numbers((7, 6)), nan=0.5).round()
    yield Program("two meshes of 4", four, on_two_meshes(TURNED, P("a", "b"), P("y", "x")), (x,))
    yield Program("two meshes of 8", eight, on_two_meshes(SHUFFLED, P("u"), P("x", "y")), (whole_numbers((16, 6)),))
    yield Program("a result on another mesh", four, lambda x: sw.shard(x * 2, there), (numbers((7, 6)),))
    anywhere = sw.NamedSharding(SHUFFLED, P("u"))
    yield Program("a result on another mesh of 8", eight, lambda x: sw.shard(x * 2, anywhere), (numbers((19, 6)),))


def programs() -> Iterator[Program]:
    yield from products()
    yield from windowed()
    yield from several_meshes()
    yield from composed()
    yield from reductions()
    yield from movements()


def fits(program: Program, ranks: int) -> bool:
    return program.mesh.size % ranks == 0
