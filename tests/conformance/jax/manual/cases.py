# SPDX-License-Identifier: Apache-2.0
"""Programs with `jax.shard_map`, for worker.py and test_manual.py. Nothing here imports JAX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

RANDOM = np.random.default_rng(0)
MESHES = {"xy": {"x": 2, "y": 4}, "abc": {"a": 2, "b": 2, "c": 2}}
PERMUTED = (3, 1, 2, 0, 7, 6, 5, 4)
Spec = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """A function of JAX's modules that returns the body of a shard_map, or with `is_whole` the whole function."""

    name: str
    body: Callable[..., Any]
    inputs: tuple[np.ndarray, ...]
    in_specs: tuple[Spec, ...]
    out_specs: Any
    mesh: str = "xy"
    axes: tuple[str, ...] | None = None
    device_ids: tuple[int, ...] | None = None
    is_exact: bool = False
    is_whole: bool = False
    arguments: tuple[Spec, ...] = ()  # shardings of the whole arguments
    is_narrow: bool = False  # the inputs become bfloat16


def values(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    if np.dtype(dtype).kind in "iu":
        return RANDOM.integers(0, 50, shape).astype(dtype)
    return RANDOM.uniform(-1, 1, shape).astype(dtype)


def _subsets(mesh: str) -> list[tuple[str, ...]]:
    names = tuple(MESHES[mesh])
    found = [subset for size in range(1, len(names) + 1) for subset in combinations(names, size)]
    return [*found, tuple(reversed(names))]


def _size(mesh: str, axes: tuple[str, ...]) -> int:
    return int(np.prod([MESHES[mesh][axis] for axis in axes]))


def _collective(operation: str, axes: tuple[str, ...], size: int) -> Callable[..., Any]:
    """What the body does with its shard, which has 8 rows and 16 columns."""
    ring = [(i, (i + 1) % size) for i in range(size)]

    def body(jax: Any) -> Callable[[Any], Any]:
        lax = jax.lax
        return {
            "psum": lambda a: lax.psum(a, axes),
            "pmax": lambda a: lax.pmax(a, axes),
            "pmin": lambda a: lax.pmin(a, axes),
            "psum_scatter": lambda a: lax.psum_scatter(a, axes, scatter_dimension=0, tiled=True),
            "psum_scatter_untiled": lambda a: lax.psum_scatter(a[:size], axes, scatter_dimension=0, tiled=False)[None],
            "all_gather": lambda a: lax.all_gather(a, axes, axis=1, tiled=True)[:, ::size],
            "all_gather_untiled": lambda a: lax.all_gather(a, axes, axis=1, tiled=False).sum(1),
            "all_to_all": lambda a: lax.all_to_all(a, axes, 0, 1, tiled=True),
            "all_to_all_of_one_dim": lambda a: lax.all_to_all(a, axes, 1, 1, tiled=True),
            "ring": lambda a: lax.ppermute(a, axes, ring),
            "shift": lambda a: lax.ppermute(a, axes, ring[:-1]),
            "back": lambda a: lax.ppermute(a, axes, [(j, i) for i, j in ring]),
            "reverse": lambda a: lax.ppermute(a, axes, [(i, size - 1 - i) for i in range(size)]),
            "shuffle": lambda a: lax.ppermute(a, axes, [(i, (3 * i + 1) % size) for i in range(size) if i != 2]),
            "butterfly": lambda a: lax.ppermute(a, axes, [(i, i ^ (size // 2)) for i in range(size)]),
            "neighbors": lambda a: lax.ppermute(a, axes, [(i, i ^ 1) for i in range(size)]),
            "axis_index": lambda a: a + lax.axis_index(axes).astype(a.dtype),
        }[operation]

    return body


EXACT = (
    "pmax",
    "pmin",
    "all_gather",
    "all_to_all",
    "all_to_all_of_one_dim",
    "ring",
    "shift",
    "back",
    "reverse",
    "shuffle",
    "butterfly",
    "neighbors",
)
ALL = (*EXACT, "psum", "psum_scatter", "psum_scatter_untiled", "all_gather_untiled", "axis_index")


def _matrix() -> list[Case]:
    cases = []
    for mesh in MESHES:
        names = tuple(MESHES[mesh])
        split: Spec = (names[0], names[1:])
        rows, columns = 8 * _size(mesh, names[:1]), 16 * _size(mesh, names[1:])
        for operation in ALL:
            for axes in _subsets(mesh):
                body = _collective(operation, axes, _size(mesh, axes))
                inputs = (values(rows, columns, dtype=np.float32),)
                name = f"{operation}_{''.join(axes)}"
                cases.append(Case(name, body, inputs, (split,), split, mesh, is_exact=operation in EXACT))
    return cases


def nested(jax: Any) -> Any:
    lax, spec = jax.lax, jax.sharding.PartitionSpec

    def inner(b: Any) -> Any:
        number = (lax.axis_index("x") + 2 * lax.axis_index("y")).astype(b.dtype)
        return lax.psum(b * number, ("x", "y")) + lax.pmax(b, "y")

    def outer(a: Any) -> Any:
        b = jax.shard_map(
            inner, in_specs=spec(None, "y"), out_specs=spec(None, None), axis_names={"y"}, check_vma=False
        )
        return lax.psum(a, "x")[:, :2] * b(a)

    return outer


def in_scan(jax: Any) -> Any:
    lax = jax.lax

    def body(a: Any) -> Any:
        def step(carry: Any, i: Any) -> Any:
            total, part = carry
            part = lax.ppermute(part, "y", [(k, (k + 1) % 4) for k in range(4)]) + lax.axis_index("x").astype(a.dtype)
            return (total + lax.psum(part, ("x", "y")).sum() * i, part), part.sum()

        (total, part), sums = lax.scan(step, (0.0, a), jax.numpy.arange(3.0))
        return total + part + sums.sum()

    return body


def in_while(jax: Any) -> Any:
    lax, jnp = jax.lax, jax.numpy

    def body(a: Any) -> Any:
        def goes_on(carry: Any) -> Any:
            return lax.psum(jnp.sum(carry[1]), ("x", "y")) < 50.0

        def step(carry: Any) -> Any:
            i, part = carry
            return i + 1, part * 1.5 + lax.pmax(part, "x")

        steps, part = lax.while_loop(goes_on, step, (0, jnp.abs(a) + 0.1))
        return part + steps

    return body


def by_branch(jax: Any) -> Any:
    lax = jax.lax

    def body(a: Any) -> Any:
        x, y = lax.axis_index("x").astype(a.dtype), lax.axis_index("y")
        return lax.cond(y % 2 == 0, lambda v: v * 2 + x, lambda v: -v, a)

    return body


def in_helper(jax: Any) -> Any:
    lax, spec = jax.lax, jax.sharding.PartitionSpec

    @jax.jit
    def mean(a: Any) -> Any:
        return lax.pmean(a, "y") * 3

    def of_mesh(mesh: Any) -> Any:
        run = jax.shard_map(lambda a: mean(mean(a) + a), mesh=mesh, in_specs=spec("x", "y"), out_specs=spec("x", None))
        layer = jax.jit(lambda x: jax.numpy.tanh(run(x)))
        return lambda x: layer(layer(x).repeat(4, 1)) + 1

    return of_mesh


def gradient(jax: Any) -> Any:
    lax, jnp, spec = jax.lax, jax.numpy, jax.sharding.PartitionSpec

    def of_mesh(mesh: Any) -> Any:
        def body(a: Any, w: Any) -> Any:
            moved = lax.ppermute(jnp.tanh(a @ w), "x", [(0, 1), (1, 0)])
            return lax.psum(moved * lax.all_gather(w, "y", tiled=True).sum(), "y")

        run = jax.shard_map(body, mesh=mesh, in_specs=(spec("x", "y"), spec("y")), out_specs=spec("x"))
        return lambda x, w: jax.grad(lambda x, w: (run(x, w) ** 2).sum(), (0, 1))(x, w)[1]

    return of_mesh


def mapped(jax: Any) -> Any:
    lax, spec = jax.lax, jax.sharding.PartitionSpec

    def of_mesh(mesh: Any) -> Any:
        run = jax.shard_map(
            lambda a: lax.all_to_all(a, "y", 0, 1, tiled=True) + lax.axis_index("y"),
            mesh=mesh,
            in_specs=spec("x", "y"),
            out_specs=spec("x", "y"),
        )
        return jax.vmap(run)

    return of_mesh


def matmul(jax: Any) -> Any:
    return lambda a, w: jax.lax.psum(a @ w, "y")


def partly(jax: Any) -> Any:
    lax = jax.lax

    def body(a: Any, w: Any) -> Any:
        return lax.psum_scatter(jax.numpy.sin(a @ w), "x", scatter_dimension=0, tiled=True) + lax.psum(a[0, 0], "x")

    return body


def partly_uneven(jax: Any) -> Any:
    lax, spec = jax.lax, jax.sharding.PartitionSpec

    def body(a: Any, w: Any) -> Any:
        product = lax.with_sharding_constraint(a @ w, spec(None, "y"))
        shift = lax.axis_index("x").astype(a.dtype)
        return lax.ppermute(product, "x", [(0, 1), (1, 0)]) + lax.all_gather(a, "x").sum() + shift

    return body


def ring_of_both(jax: Any) -> Any:
    order = [(i, (i + 3) % 8) for i in range(8)]
    return lambda a: jax.lax.ppermute(a, ("y", "x"), order)


def numbers(jax: Any) -> Any:
    return lambda a: a + (8 * jax.lax.axis_index("x") + jax.lax.axis_index("y")).astype(a.dtype)


def position(jax: Any) -> Any:
    return lambda a: a * (jax.lax.axis_index("x") + 3).astype(a.dtype)


def narrow(jax: Any) -> Any:
    lax = jax.lax
    return lambda a: lax.all_gather(lax.ppermute(a, "x", [(0, 1), (1, 0)]), "y", axis=0, tiled=True)


XY: Spec = ("x", "y")
WHOLE = (values(16, 32),)
PARTLY = ((values(8, 6), values(6, 12)), (values(8, 6), values(6, 7)))
PROGRAMS = [
    Case("nested", nested, (values(8, 8),), (("x",),), ("x",), axes=("x",)),
    Case("in_scan", in_scan, (values(4, 8),), (XY,), XY),
    Case("in_while", in_while, (values(4, 8),), (XY,), XY),
    Case("by_branch", by_branch, (values(4, 8),), (XY,), XY, is_exact=True),
    Case("in_helper", in_helper, (values(4, 16),), (), (), is_whole=True),
    Case("gradient", gradient, (values(4, 8), values(8, 6)), (), (), is_whole=True),
    Case("mapped", mapped, (values(3, 8, 8),), (), (), is_whole=True),
    Case("matmul", matmul, (values(8, 16), values(16, 12)), (XY, ("y",)), ("x",)),
    Case("partly", partly, PARTLY[0], (("x",), ()), ("x",), axes=("x",), arguments=(("x",), (None, "y"))),
    Case("partly_uneven", partly_uneven, PARTLY[1], (("x",), ()), ("x",), axes=("x",)),
    Case("ring_of_both", ring_of_both, WHOLE, (XY,), XY, is_exact=True),
    Case("numbers", numbers, WHOLE, (XY,), XY, is_exact=True),
    Case("position", position, (values(8, 8),), (("x",),), ("x",), is_exact=True),
    Case("partial_position", position, (values(8, 8),), (("x",),), ("x",), axes=("x",), is_exact=True),
    Case("on_permuted_devices", ring_of_both, WHOLE, (XY,), XY, device_ids=PERMUTED, is_exact=True),
    Case("int8", narrow, (values(16, 32, dtype=np.int8),), (XY,), XY, is_exact=True),
    Case("bfloat16", narrow, WHOLE, (XY,), XY, is_narrow=True, is_exact=True),
    Case(
        "integer_sums",
        lambda jax: lambda a: jax.lax.psum(a, XY),
        (values(16, 32, dtype=np.int32),),
        (XY,),
        XY,
        is_exact=True,
    ),
]
CASES = {case.name: case for case in [*_matrix(), *PROGRAMS]}
