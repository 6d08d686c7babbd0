# SPDX-License-Identifier: Apache-2.0
"""A row of the table: a program, its arguments, and the function of NumPy or SciPy that it is compared with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import shardwise as sw

Array = np.ndarray[Any, Any]
Make = Callable[[int], tuple[Any, ...]]

SHORT = {
    "bool": "i1", "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "complex64": "complex<f32>",
    "complex128": "complex<f64>", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "ui8",
    "uint16": "ui16", "uint32": "ui32", "uint64": "ui64",
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One row.

    Attributes:
        name: what is run, on which dtype.
        arguments: the arguments for a number of elements.
        function: NumPy code, which is both traced and run by NumPy.
        text: instead, a StableHLO program for these arguments.
        peer: what ``text`` is compared with, or ``function`` where NumPy has a faster spelling.
        more_peers: other spellings of the peer, whose fastest one counts.
    """

    name: str
    arguments: Make
    function: Callable[..., Any] | None = None
    text: Callable[..., str] | None = None
    peer: Callable[..., Any] | None = None
    more_peers: tuple[Callable[..., Any], ...] = ()

    @property
    def baseline(self) -> Callable[..., Any]:
        """The first function that the program is compared with."""
        found = self.peer or self.function
        assert found is not None, f"{self.name} has no peer"
        return found

    @property
    def baselines(self) -> tuple[Callable[..., Any], ...]:
        """All spellings in NumPy; the fastest one counts."""
        return (self.baseline, *self.more_peers)

    def module(self, arguments: tuple[Any, ...]) -> sw.Module:
        """The program before it is compiled."""
        if self.text is not None:
            return sw.parse(self.text(*arguments))
        assert self.function is not None, f"{self.name} has no program"
        lowered: sw.Module = sw.jit(self.function, mesh=ONE_DEVICE).lower(*arguments)
        return lowered

    def program(self, arguments: tuple[Any, ...]) -> sw.Program:
        """The program for one device."""
        module = self.module(arguments)
        return module.compile(ONE_DEVICE) if self.text is not None else module.compile()


ONE_DEVICE = sw.Mesh({"x": 1})


def op_names(module: sw.Module) -> set[str]:
    """The ops of a program, those of its regions included."""

    def walk(ops: Any) -> Iterator[str]:
        for op in ops:
            yield op.name
            for region in op.regions:
                yield from walk(region.ops)

    return set(walk(module._core.main.body.ops))


# ---- arguments ------------------------------------------------------------------------------------------------------


def dtype_of(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name) if name == "bfloat16" else name)


def drawn(shape: tuple[int, ...], dtype: str, low: float = -4.0, high: float = 4.0, seed: int = 0) -> Array:
    """Uniform numbers of a range; complex numbers have both parts in it."""
    rng = np.random.default_rng(seed)
    to = dtype_of(dtype)
    if to.kind == "c":
        return (rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).astype(to)
    if to.kind in "iu":
        return rng.integers(max(int(low), np.iinfo(to).min), int(high) + 1, shape).astype(to)
    if to.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    return rng.uniform(low, high, shape).astype(to)


def flat(count: int, dtype: str, low: float = -4.0, high: float = 4.0) -> Make:
    """`count` arrays of n elements; of four times as many where they have one byte, so that a call is worth it."""
    times = 4 if dtype_of(dtype).itemsize == 1 else 1
    return lambda n: tuple(drawn((times * n,), dtype, low, high, seed) for seed in range(count))


def square(dtype: str, low: float = -4.0, high: float = 4.0) -> Make:
    """One matrix of n elements, or of four times as many."""
    times = 2 if dtype_of(dtype).itemsize == 1 else 1
    return lambda n: (drawn((times * side(n), times * side(n)), dtype, low, high),)


def side(n: int) -> int:
    return math.isqrt(n)


# ---- texts ----------------------------------------------------------------------------------------------------------


def type_text(shape: tuple[int, ...], dtype: Any) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{SHORT[np.dtype(dtype).name]}>"


def type_of(array: Array) -> str:
    return type_text(array.shape, array.dtype)


def program(arguments: tuple[Any, ...], body: str, result: str) -> str:
    """A function with these arguments, whose body defines %r."""
    shown = ", ".join(f"%arg{i}: {type_of(np.asarray(x))}" for i, x in enumerate(arguments))
    return f"func.func @main({shown}) -> {result} {{\n{body}\n  return %r : {result}\n}}"


def one_op(name: str, attributes: str = "", result: Callable[..., str] | None = None) -> Callable[..., str]:
    """A program of one op of all arguments. The result has the first one's type unless `result` gives another."""

    def text(*arguments: Any) -> str:
        to = result(*arguments) if result else type_of(arguments[0])
        operands = ", ".join(f"%arg{i}" for i in range(len(arguments)))
        types = ", ".join(type_of(np.asarray(x)) for x in arguments)
        return program(arguments, f'  %r = "{name}"({operands}) {{{attributes}}} : ({types}) -> {to}', to)

    return text
