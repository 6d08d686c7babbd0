# SPDX-License-Identifier: Apache-2.0
"""Random bodies of manual regions, written once for `sw.lax` with NumPy and for `jax.lax` with `jax.numpy`.

A body is a list of steps from an array to an array of the same shape. Each step is made by the generator before the
shapes are known to a library, so that both libraries record the same program:

    Program(mesh={"x": 4, "y": 2}, manual=("x", "y"), steps=[_ring(...), _in_scan([_psum(...)]), …])

Nothing here imports JAX or Shardwise.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Sizes = dict[str, int]
MESHES: tuple[Sizes, ...] = ({"x": 4, "y": 2}, {"x": 2, "y": 2, "z": 2}, {"x": 8}, {"x": 2, "y": 3})
SHAPE = (24, 8)  # of a shard: its dims divide by most groups
LENGTH = 3  # of a scan


@dataclass(frozen=True)
class Body:
    """What a step has around it: the library, an array that is equal on all devices, the manual axes."""

    to: Any
    weight: Any
    sizes: Sizes
    manual: tuple[str, ...]

    def count(self, axes: Sequence[str]) -> int:
        return math.prod(self.sizes[axis] for axis in axes)

    def varied(self, x: Any) -> Any:
        """The value, which counts as different along all manual axes: carries and branches have one type in JAX."""
        return x + 0 * self.to.lax.axis_index(self.manual)


Step = Callable[[Body, Any], Any]


@dataclass(frozen=True)
class Program:
    """A region, and how it is mapped."""

    sizes: Sizes
    manual: tuple[str, ...]
    steps: tuple[Step, ...]
    is_checked: bool
    has_extremum: bool  # JAX has no derivative of pmax and pmin
    names: tuple[str, ...]

    def body(self, to: Any) -> Callable[[Any, Any], Any]:
        """A function of a shard and of an array that all devices have: a shard, and a number that is equal on all."""

        def run(x: Any, weight: Any) -> Any:
            around = Body(to, weight, self.sizes, self.manual)
            for step in self.steps:
                x = step(around, x)
            return around.varied(x), to.lax.psum(around.varied((x * x).sum()), self.manual)

        return run


# ---- steps ---------------------------------------------------------------------------------------------------------


class Maker:
    """Makes the steps of one program."""

    def __init__(self, source: random.Random, sizes: Sizes, manual: tuple[str, ...], has_extremum: bool) -> None:
        self.source = source
        self.sizes = sizes
        self.manual = manual
        self.has_extremum = has_extremum
        self.is_partial = len(manual) < len(sizes)
        self.names: list[str] = []

    def steps(self, count: int, depth: int, allowed: Sequence[str] | None = None) -> tuple[Step, ...]:
        return tuple(self.step(depth, allowed) for _ in range(count))

    def step(self, depth: int, allowed: Sequence[str] | None = None) -> Step:
        plain = [*LOCAL, *COLLECTIVE, *COLLECTIVE, *(EXTREMUM if self.has_extremum else ())]
        names = allowed or [*plain, *(AROUND if depth else ())]
        name = self.source.choice(names)
        if name == "in_region" and self.free() == []:
            name = "psum"
        if name == "in_grad" and self.has_extremum:
            name = "in_vmap"
        if name in ("in_cond", "by_device") and self.is_partial:
            name = "in_scan"  # XLA:CPU waits for devices of the other branch
        self.names.append(name)
        return getattr(self, name)(depth)  # type: ignore[no-any-return]

    def free(self) -> list[str]:
        return [axis for axis in self.sizes if axis not in self.manual]

    def axes(self) -> tuple[str, ...]:
        count = self.source.randint(1, len(self.manual))
        return tuple(axis for axis in self.manual if axis in self.source.sample(self.manual, count)) or self.manual[:1]

    def size(self, axes: Sequence[str]) -> int:
        return math.prod(self.sizes[axis] for axis in axes)

    # Of one device.
    def sine(self, depth: int) -> Step:
        factor = self.source.uniform(0.5, 2)
        return lambda body, x: body.to.np.sin(factor * x)

    def dot(self, depth: int) -> Step:
        return lambda body, x: x @ body.weight

    def square(self, depth: int) -> Step:
        return lambda body, x: x * x[::-1]

    def numbered(self, depth: int) -> Step:
        axes = self.axes()
        return lambda body, x: x * (1 + body.to.lax.axis_index(axes)) / body.to.lax.axis_size(axes)

    # Between devices.
    def psum(self, depth: int) -> Step:
        axes = self.axes()
        return lambda body, x: x - body.to.lax.psum(body.varied(body.to.np.sin(x)), axes)

    def psum_alone(self, depth: int) -> Step:
        axes = self.axes()
        return lambda body, x: body.to.lax.psum(body.varied(x), axes) / body.count(axes)

    def pmean(self, depth: int) -> Step:
        axes = self.axes()
        return lambda body, x: x * body.to.lax.pmean(body.varied(x), axes)

    def pmax(self, depth: int) -> Step:
        axes = self.axes()
        return lambda body, x: x - body.to.lax.pmax(body.varied(x), axes)

    def pmin(self, depth: int) -> Step:
        axes = self.axes()
        return lambda body, x: body.varied(body.to.lax.pmin(body.varied(x), axes)) + x / 2

    def all_gather(self, depth: int) -> Step:
        axes, tiled, dim = self.axes(), self.source.random() < 0.5, self.source.randrange(2)

        def gathered(body: Body, x: Any) -> Any:
            if not tiled:
                return body.to.lax.all_gather(x, axes, axis=dim).mean(dim)
            whole = body.to.lax.all_gather(x, axes, axis=dim, tiled=True)
            return whole[:: body.count(axes)] if dim == 0 else whole[:, :: body.count(axes)]

        return gathered

    def psum_scatter(self, depth: int) -> Step:
        axes, dim = self.axes(), self.source.randrange(2)

        def scattered(body: Body, x: Any) -> Any:
            copies = body.to.np.concatenate([x * (i + 1) for i in range(body.count(axes))], dim)
            return body.to.lax.psum_scatter(copies, axes, scatter_dimension=dim, tiled=True) / body.count(axes) ** 2

        return scattered

    def all_to_all(self, depth: int) -> Step:
        axes, split = self.axes(), self.source.randrange(2)
        concat = self.source.randrange(2)

        def exchanged(body: Body, x: Any) -> Any:
            count = body.count(axes)
            if x.shape[split] % count:
                return body.to.lax.ppermute(x, axes, [(i, (i + 1) % count) for i in range(count)])
            moved = body.to.lax.all_to_all(x, axes, split, concat, tiled=True)
            return moved.reshape(x.shape)

        return exchanged

    def ppermute(self, depth: int) -> Step:
        axes = self.axes()
        count = self.size(axes)
        targets = self.source.sample(range(count), count)
        pairs = self.source.sample(list(enumerate(targets)), self.source.randint(1, count))
        return lambda body, x: x / 2 + body.to.lax.ppermute(x, axes, pairs)

    def ring(self, depth: int) -> Step:
        axes = self.axes()
        count = self.size(axes)
        ring = [(i, (i + 1) % count) for i in range(count)]
        return lambda body, x: body.to.lax.ppermute(x, axes, ring)

    def pshuffle(self, depth: int) -> Step:
        axis = self.source.choice(self.manual)
        order = self.source.sample(range(self.sizes[axis]), self.sizes[axis])
        return lambda body, x: body.to.lax.pshuffle(x, axis, order)

    # Around steps.
    def in_scan(self, depth: int) -> Step:
        steps = self.steps(self.source.randint(1, 2), depth - 1)

        def scanned(body: Body, x: Any) -> Any:
            def one(carry: Any, factor: Any) -> Any:
                carry = body.varied(_all(steps, body, body.to.np.sin(carry * factor)))
                return carry, carry.mean()

            factors = body.to.np.asarray([0.5, 1.0, 1.5])
            last, means = body.to.lax.scan(one, body.varied(x), factors)
            return last + means.sum()

        return scanned

    def in_cond(self, depth: int) -> Step:
        first, second = (self.steps(1, depth - 1) for _ in range(2))

        def branched(body: Body, x: Any) -> Any:
            # Equal on all devices: each takes the same branch, and may communicate there.
            is_large = body.to.lax.psum(body.varied(body.to.np.sin(x).sum()), body.manual) > 0
            return body.to.lax.cond(
                is_large, lambda y: body.varied(_all(first, body, y)), lambda y: body.varied(_all(second, body, y)), x
            )

        return branched

    def by_device(self, depth: int) -> Step:
        # JAX sums the cotangent of what is equal on all devices in the branch, where not all are: no dot.
        first, second = (self.steps(1, 0, ("sine", "square", "numbered")) for _ in range(2))

        def branched(body: Body, x: Any) -> Any:
            is_even = body.to.lax.axis_index(body.manual) % 2 == 0
            return body.to.lax.cond(
                is_even,
                lambda y: body.varied(_all(first, body, y)),
                lambda y: body.varied(_all(second, body, y)),
                body.varied(x),
            )

        return branched

    def in_vmap(self, depth: int) -> Step:
        steps = self.steps(self.source.randint(1, 2), depth - 1)

        def mapped(body: Body, x: Any) -> Any:
            rows = body.to.np.stack([x, x * 0.5, -x])
            return body.to.transforms.vmap(lambda y: body.varied(_all(steps, body, y)))(rows).mean(0)

        return mapped

    def in_grad(self, depth: int) -> Step:
        steps = self.steps(self.source.randint(1, 2), depth - 1)
        by_weight = self.source.random() < 0.4

        def differentiated(body: Body, x: Any) -> Any:
            def loss(y: Any, weight: Any) -> Any:
                inner = Body(body.to, weight, body.sizes, body.manual)
                return (body.to.np.sin(_all(steps, inner, y)) * y).sum()

            if not by_weight:
                return body.to.np.sin(body.to.transforms.grad(loss)(x, body.weight))
            by_x, by_w = body.to.transforms.grad(loss, (0, 1))(x, body.weight)
            return body.to.np.sin(by_x @ body.to.np.tanh(by_w))

        return differentiated

    def in_checkpoint(self, depth: int) -> Step:
        steps = self.steps(self.source.randint(1, 2), depth - 1)
        return lambda body, x: body.to.transforms.checkpoint(lambda y: _all(steps, body, y))(x)

    def in_region(self, depth: int) -> Step:
        axis = self.source.choice(self.free())
        outer, self.manual = self.manual, (*self.manual, axis)
        steps = self.steps(self.source.randint(1, 2), depth - 1)
        self.manual = outer

        def nested(body: Body, x: Any) -> Any:
            def run(part: Any, weight: Any) -> Any:
                inner = Body(body.to, weight, body.sizes, (*body.manual, axis))
                return inner.varied(_all(steps, inner, part))

            return body.to.region(run, (axis,))(x, body.weight)

        return nested


def _all(steps: Sequence[Step], body: Body, x: Any) -> Any:
    for step in steps:
        x = step(body, x)
    return x


LOCAL = ("sine", "dot", "square", "numbered")
COLLECTIVE = (
    "psum", "psum_alone", "pmean", "all_gather", "psum_scatter", "all_to_all", "ppermute", "ring", "pshuffle",
)  # fmt: skip
EXTREMUM = ("pmax", "pmin")
AROUND = ("in_scan", "in_cond", "by_device", "in_vmap", "in_grad", "in_grad", "in_checkpoint", "in_region")


def program(seed: int) -> Program:
    """The program of a seed."""
    source = random.Random(f"region {seed}")
    sizes = source.choice(MESHES)
    is_partial = len(sizes) > 1 and source.random() < 0.3
    manual = tuple(sizes)[: source.randint(1, len(sizes) - 1)] if is_partial else tuple(sizes)
    maker = Maker(source, sizes, manual, has_extremum=source.random() < 0.15)
    steps = maker.steps(source.randint(2, 4), depth=2)
    return Program(sizes, manual, steps, source.random() < 0.7, maker.has_extremum, tuple(maker.names))
