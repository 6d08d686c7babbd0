# SPDX-License-Identifier: Apache-2.0
"""One op on arguments, as text: the random instances of ``tests/op/catalogue`` without their numbers.

"stablehlo.cholesky"(%a0) <{lower = true}> : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.op.catalogue import DRAWS
from tests.op.catalogue.instance import Build

Rng = random.Random
Shape = tuple[int, ...]
TOKEN = "!stablehlo.token"


@dataclass(frozen=True)
class Instance:
    """One op; its operands are arguments of main."""

    op: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    attributes: str = ""
    regions: tuple[str, ...] = field(default=())

    def text(self, first: int, number: int) -> str:
        operands = ", ".join(f"%a{first + i}" for i in range(len(self.operands)))
        names = f"%r{number}:{len(self.results)} = " if self.results else ""
        properties = f" <{{{self.attributes}}}>" if self.attributes else ""
        regions = f" ({', '.join(self.regions)})" if self.regions else ""
        types = f"({', '.join(self.operands)}) -> ({', '.join(self.results)})"
        return f'  {names}"{self.op}"({operands}){properties}{regions} : {types}'


FUNCTION = "func.func private @decomposition(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }\n"


def module_text(instances: Sequence[Instance]) -> str:
    """All instances in one main, which returns nothing."""
    lines: list[str] = []
    arguments: list[str] = []
    for number, instance in enumerate(instances):
        lines.append(instance.text(len(arguments), number))
        arguments += instance.operands
    listed = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(arguments))
    function = FUNCTION if any("@decomposition" in instance.attributes for instance in instances) else ""
    return f"{function}func.func public @main({listed}) {{\n" + "\n".join(lines) + "\n  return\n}\n"


# ---- pieces ---------------------------------------------------------------------------------------------------------


def tensor(shape: Sequence[int], dtype: str = "f32") -> str:
    return "tensor<" + "".join(f"{size}x" for size in shape) + dtype + ">"


def dim(rng: Rng, smallest: int = 0) -> int:
    return rng.choice([size for size in (0, 1, 1, 2, 3, 4, 4, 6, 8, 12) if size >= smallest])


def dims(rng: Rng, least: int = 0, most: int = 4, smallest: int = 0) -> Shape:
    return tuple(dim(rng, smallest) for _ in range(rng.randint(least, most)))


def ints(values: Sequence[int]) -> str:
    return "array<i64: " + ", ".join(map(str, values)) + ">" if values else "array<i64>"


def flag(rng: Rng) -> str:
    return rng.choice(["true", "false"])


def region(arguments: Sequence[str], op: str, operands: str, kind: str, result: str) -> str:
    listed = ", ".join(f"%x{i}: {argument}" for i, argument in enumerate(arguments))
    return f'{{\n^bb0({listed}):\n  %y = "{op}"({operands}) : {kind}\n  "stablehlo.return"(%y) : ({result}) -> ()\n}}'


def combiner(op: str = "add", dtype: str = "f32") -> str:
    t = tensor((), dtype)
    return region((t, t), f"stablehlo.{op}", "%x0, %x1", f"({t}, {t}) -> {t}", t)


Generator = Callable[[Rng], Instance]


def fixed(op: str, operands: Sequence[str], results: Sequence[str], attributes: str = "") -> Generator:
    return lambda rng: Instance(op, tuple(operands), tuple(results), attributes)


# ---- instances of the catalogue -------------------------------------------------------------------------------------


class Larger(Build):
    """Draws sizes that meshes divide, and more dims: there are no numbers to compute."""

    sizes = (0, 1, 1, 2, 3, 4, 4, 6, 8, 12)
    few = 2

    def shape(self, low: int = 0, high: int = 3) -> Shape:
        return super().shape(low, high + (high >= 3))


def of_catalogue(op: str, takes: Callable[[str], bool] = bool) -> Generator:
    """Instances in the dtypes that a condition takes."""

    def draw(rng: Rng) -> Instance:
        row = DRAWS[op]
        build = Larger(
            op, rng.choice([dtype for dtype in row.dtypes if takes(dtype)]), np.random.default_rng(rng.getrandbits(64))
        )
        with np.errstate(all="ignore"):
            row.make(build)
        made = build.statement
        assert made is not None, op
        return Instance(made.op, made.operands, made.results, made.attributes, (made.regions,) if made.regions else ())

    return draw
