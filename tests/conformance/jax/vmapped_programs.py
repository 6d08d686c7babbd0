# SPDX-License-Identifier: Apache-2.0
"""Programs with loops and branches, mapped over examples: which arguments have the examples, and their values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tests.conformance.jax.control_flow_programs import PROGRAMS, Program, floats

__all__ = ["MAPPED", "Mapped"]

EXAMPLES = 3


def collatz(m: Any, lax: Any, n: Any) -> Any:
    """A loop that takes another number of steps for each example."""
    step = lambda c: (m.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1)  # noqa: E731
    return lax.while_loop(lambda c: c[0] != 1, step, (n, m.int32(0)))


def powers(m: Any, lax: Any, n: Any, x: Any) -> Any:
    return lax.fori_loop(0, n, lambda i, c: c * x, m.ones_like(x))


def rows_up_to(m: Any, lax: Any, n: Any, x: Any) -> Any:
    """The counter differs between the examples, and so do the places that it reads and writes."""

    def body(i: Any, c: Any) -> Any:
        row = m.take(x, i, axis=0)
        return c + row, c.sum()

    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, body(c[0], c[1])[0]), (m.int32(0), x[0]))


def unchanged_carries(m: Any, lax: Any, n: Any, x: Any, w: Any) -> Any:
    return lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, c[1] @ c[2], c[2]), (n, x, w))


def carries_that_become_mapped_one_after_another(m: Any, lax: Any, a: Any, b: Any) -> Any:
    return lax.fori_loop(0, 4, lambda i, c: (c[1], c[2], c[2] + a), (b, b * 2, b * 3))


def branch_of_an_example(m: Any, lax: Any, p: Any, x: Any, y: Any) -> Any:
    return lax.cond(p > 0, lambda x: (x * 2, y, x.sum()), lambda x: (x + 1, x, y.sum()), x)


def one_of_three(m: Any, lax: Any, i: Any, x: Any) -> Any:
    return lax.switch(i - 1, [lambda x: x, lambda x: -x, lambda x: m.zeros_like(x) + 3], x)


def branch_in_a_loop_in_a_scan(m: Any, lax: Any, n: Any, xs: Any) -> Any:
    def inner(c: Any) -> Any:
        i, v = c
        return i + 1, lax.cond(i % 2 == 0, lambda v: v * 2, lambda v: v - 1, v)

    def step(c: Any, x: Any) -> Any:
        _, v = lax.while_loop(lambda c: c[0] < n, inner, (m.int32(0), c + x))
        return v, v.sum()

    return lax.scan(step, xs[0], xs)


def scan_of_a_mapped_loop(m: Any, lax: Any, xs: Any, n: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        return c + lax.fori_loop(0, n, lambda i, v: v * x, x), c

    return lax.scan(step, xs[0] * 0, xs)


X = floats(5, 4)
TWICE = [
    Program(collatz, (np.int32(6),)),
    Program(powers, (np.int32(2), X)),
    Program(rows_up_to, (np.int32(3), X)),
    Program(unchanged_carries, (np.int32(1), X, floats(4, 4))),
    Program(carries_that_become_mapped_one_after_another, (X, X + 1)),
    Program(branch_of_an_example, (np.int32(0), X, X + 2)),
    Program(one_of_three, (np.int32(0), X)),
    Program(branch_in_a_loop_in_a_scan, (np.int32(2), X)),
    Program(scan_of_a_mapped_loop, (X, np.int32(2))),
]


class Mapped(NamedTuple):
    program: Program
    axes: tuple[tuple[int | None, ...], ...]  # of each vmap, the outermost first
    inputs: tuple[Any, ...]

    @property
    def name(self) -> str:
        return (
            f"{self.program.name}-{'-'.join(''.join('.' if a is None else str(a) for a in row) for row in self.axes)}"
        )

    def of(self, vmap: Any, m: Any, lax: Any) -> Any:
        """The mapped function, by this ``vmap``, of arrays of these modules."""

        def mapped(*arrays: Any) -> Any:
            return self.program.function(m, lax, *arrays)

        for axes in reversed(self.axes):
            mapped = vmap(mapped, axes)
        return mapped


def _examples(x: Any, axis: int | None) -> Any:
    if axis is None:
        return x
    x = np.asarray(x)
    if x.ndim:
        return np.stack([np.roll(x, i) for i in range(EXAMPLES)], axis)
    return np.stack([x ^ (i % 2 == 1) if x.dtype == np.bool_ else x + np.array(i, x.dtype) for i in range(EXAMPLES)])


def _mapped(program: Program, *axes: tuple[int | None, ...]) -> Mapped:
    inputs = program.inputs
    for row in reversed(axes):
        inputs = tuple(_examples(x, axis) for x, axis in zip(inputs, row))
    return Mapped(program, axes, inputs)


def _choices(program: Program) -> list[Mapped]:
    count = len(program.inputs)
    rows = {(0,) * count, (0, *(None,) * (count - 1)), (*(None,) * (count - 1), 0)}
    return [_mapped(program, row) for row in sorted(rows, key=str)]


def _last_axis(program: Program) -> tuple[int, ...]:
    return tuple(np.ndim(x) for x in program.inputs)


MAPPED = [mapped for program in PROGRAMS + TWICE for mapped in _choices(program)]
MAPPED += [_mapped(program, _last_axis(program)) for program in TWICE]
MAPPED += [_mapped(program, (0,) * len(program.inputs), (0,) * len(program.inputs)) for program in TWICE]
MAPPED += [
    _mapped(p, (0, *(None,) * (len(p.inputs) - 1)), (*(None,) * (len(p.inputs) - 1), 0))
    for p in TWICE
    if len(p.inputs) > 1
]
