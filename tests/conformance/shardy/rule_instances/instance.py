# SPDX-License-Identifier: Apache-2.0
"""One op on arguments, as text, with random shapes and attributes; the generators are in ``rule_instances``.

"stablehlo.cholesky"(%a0) <{lower = true}> : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

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


def comparator(dtypes: Sequence[str]) -> str:
    arguments = [tensor((), dtype) for dtype in dtypes for _ in range(2)]
    listed = ", ".join(f"%x{i}: {argument}" for i, argument in enumerate(arguments))
    compare = '"stablehlo.compare"(%x0, %x1) <{comparison_direction = #stablehlo<comparison_direction LT>}>'
    kind = f"({arguments[0]}, {arguments[1]}) -> tensor<i1>"
    return f'{{\n^bb0({listed}):\n  %y = {compare} : {kind}\n  "stablehlo.return"(%y) : (tensor<i1>) -> ()\n}}'


def pads(rows: Sequence[tuple[int, int]]) -> str:
    if not rows:
        return "dense<> : tensor<0x2xi64>"
    return f"dense<[{', '.join(f'[{low}, {high}]' for low, high in rows)}]> : tensor<{len(rows)}x2xi64>"


FLOAT_TYPES = ("f32", "f64", "bf16", "f8E4M3FN")
ANY_FLOAT = (*FLOAT_TYPES, "complex<f32>")
INTEGER_TYPES = ("i32", "ui8", "i4", "i64")
NUMBER_TYPES = (*ANY_FLOAT, *INTEGER_TYPES)
LOGIC_TYPES = (*INTEGER_TYPES, "i1")
ALL_TYPES = (*NUMBER_TYPES, "i1")

Generator = Callable[[Rng], Instance]


def elementwise(op: str, count: int, dtypes: Sequence[str], result: str | None = None) -> Generator:
    def draw(rng: Rng) -> Instance:
        shape, dtype = dims(rng), rng.choice(dtypes)
        return Instance(op, (tensor(shape, dtype),) * count, (tensor(shape, result or dtype),))

    return draw


def fixed(op: str, operands: Sequence[str], results: Sequence[str], attributes: str = "") -> Generator:
    return lambda rng: Instance(op, tuple(operands), tuple(results), attributes)


def listed(label: str, values: Sequence[int]) -> str:
    return f"{label} = [{', '.join(map(str, values))}]"
