# SPDX-License-Identifier: Apache-2.0
"""A random instance of one op: arguments, program text, and how its results compare.

A function of a ``Row`` writes the body of one function with ``Build``:

    def make(b: Build) -> None:
        x = b.argument(b.wild((3, 2)))
        b.op([x], results=[((3, 2), b.dtype)])
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from shardwise.dtypes import numpy_dtype
from tests.op.catalogue import values
from tests.op.catalogue.values import Array, Shape
from tests.op.dtype_values import ALL_DTYPES, mlir_name

Type = tuple[Shape, str]  # shape, dtype
LAPACK_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
EVERY = tuple(ALL_DTYPES)
LOCAL_NAME = re.compile(r"%([A-Za-z]\w*)")


def tensor(shape: Shape, dtype: str) -> str:
    return f"tensor<{''.join(f'{d}x' for d in shape)}{mlir_name(dtype)}>"


def ints(numbers: Sequence[int]) -> str:
    """A property that is a list of integers."""
    return f"array<i64: {', '.join(map(str, numbers))}>" if len(numbers) else "array<i64>"


def dense_ints(numbers: Any) -> str:
    """A property that is a tensor of integers."""
    table = np.asarray(numbers, np.int64)
    if not table.size:
        return f"dense<> : {tensor(table.shape, 'int64')}"
    return f"dense<{table.tolist()}> : {tensor(table.shape, 'int64')}"


@dataclass(frozen=True)
class Instance:
    """One op on arguments."""

    op: str
    seed: int
    dtype: str
    arguments: tuple[Array, ...]
    body: str
    returned: tuple[str, ...]
    results: tuple[Type, ...]
    kind: str = "exact"  # | ulps | sum | product | scaled | triangle | definition | uniform | normal
    ulps: float = 0
    functions: str = ""
    for_xla: str = ""  # another body with the same results, where XLA:CPU has no form of the op
    partitioned: str = ""  # the text with shardings; drawn if empty

    @property
    def name(self) -> str:
        return f"{self.op}:{self.seed}"

    def text(self, shardings: Sequence[str] = (), result_shardings: Sequence[str] = (), mesh: str = "") -> str:
        """The program; a sharding is an attribute of an argument or of a result, or empty."""
        arguments = ", ".join(
            f"%a{i}: {tensor(x.shape, x.dtype.name)}" + (f" {{{shardings[i]}}}" if shardings and shardings[i] else "")
            for i, x in enumerate(self.arguments)
        )
        types = [tensor(*t) for t in self.results]
        results = ", ".join(
            t + (f" {{{result_shardings[i]}}}" if result_shardings and result_shardings[i] else "")
            for i, t in enumerate(types)
        )
        head = f"func.func public @main({arguments}) -> ({results}) {{\n"
        end = f"  return {', '.join(self.returned)} : {', '.join(types)}\n}}\n"
        return f"module @instance {{\n{mesh}{head}{self.body}{end}{self.functions}}}\n"

    def with_dtypes(self, others: dict[str, str]) -> Instance:
        """The same program over other element types, with the arguments converted."""

        names = {mlir_name(old): mlir_name(new) for old, new in others.items()}
        # The epsilon of a batch norm is of float32 whatever the element type is.
        end = r"(?!\w)(?!, feature_index)"
        pattern = re.compile(rf"(?<=[x<: ])({'|'.join(map(re.escape, names))}){end}") if names else None

        def replaced(text: str) -> str:
            for old, new in others.items():
                if old in LAPACK_LETTERS and new in LAPACK_LETTERS:
                    text = text.replace(f"lapack_{LAPACK_LETTERS[old]}", f"lapack_{LAPACK_LETTERS[new]}")
            return pattern.sub(lambda found: names[found[0]], text) if pattern else text

        to = {old: numpy_dtype(new) for old, new in others.items()}
        return replace(
            self,
            dtype=others.get(self.dtype, self.dtype),
            arguments=tuple(x.astype(to.get(x.dtype.name, x.dtype)) for x in self.arguments),
            body=replaced(self.body),
            for_xla=replaced(self.for_xla),
            functions=replaced(self.functions),
            results=tuple((shape, others.get(dtype, dtype)) for shape, dtype in self.results),
        )

    def renamed(self, prefix: str) -> Instance:
        """The same with other names, so that many fit in one function."""

        def rename(text: str) -> str:
            return LOCAL_NAME.sub(rf"%{prefix}\1", text).replace("@fn", f"@{prefix}fn")

        return replace(
            self,
            body=rename(self.for_xla or self.body),
            returned=tuple(rename(x) for x in self.returned),
            functions=self.functions.replace("@fn", f"@{prefix}fn"),
        )


@dataclass(frozen=True)
class Statement:
    """The op of an instance, by its types."""

    op: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    attributes: str
    regions: str


@dataclass
class Build:
    """Writes the body of an instance."""

    sizes: ClassVar[tuple[int, ...]] = (0, 1, 2, 3, 4, 5, 7, 8, 3, 4, 5, 6)
    few: ClassVar[int] = 1  # the dims of a kind, where an op has dims of many kinds

    op_name: str
    dtype: str
    rng: np.random.Generator
    arguments: list[Array] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    results: list[Type] = field(default_factory=list)
    kind: str = "exact"
    ulps: float = 0
    functions: str = ""
    for_xla: str = ""
    statement: Statement | None = None

    # ---- drawing
    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def below(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return int(self.rng.integers(low, high + 1))

    def size(self) -> int:
        return int(self.pick(self.sizes))

    def shape(self, low: int = 0, high: int = 3) -> Shape:
        rank = self.below(low, high)
        return tuple(self.size() for _ in range(rank))

    def filled_shape(self, low: int = 0, high: int = 3) -> Shape:
        """A shape without a dim of size 0."""
        return tuple(max(d, 1) for d in self.shape(low, high))

    def wild(self, shape: Shape, dtype: str = "") -> Array:
        return values.wild(shape, dtype or self.dtype, self.rng)

    def tame(self, shape: Shape, dtype: str = "", scale: float = 1) -> Array:
        return values.tame(shape, dtype or self.dtype, self.rng, scale)

    # ---- writing
    def argument(self, array: Array) -> str:
        self.arguments.append(np.asarray(array))
        return f"%a{len(self.arguments) - 1}"

    def type_of(self, name: str) -> str:
        array = self.arguments[int(name.removeprefix("%a"))]
        return tensor(array.shape, array.dtype.name)

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}\n")

    def int_constant(self, numbers: Sequence[int]) -> str:
        """A constant tensor of int64 of one dim; its name."""
        name = f"%c{len(self.lines)}"
        shown = f"dense<{list(numbers)}>" if len(numbers) else "dense<>"
        self.line(f"{name} = stablehlo.constant {shown} : tensor<{len(numbers)}xi64>")
        return name

    def op(
        self,
        operands: Sequence[str],
        results: Sequence[Type],
        properties: str = "",
        regions: str = "",
        name: str = "",
        types: Sequence[str] = (),
    ) -> list[str]:
        """The op in generic form; it becomes what the function returns."""
        found = types or [self.type_of(x) for x in operands]
        middle = (f" <{{{properties}}}>" if properties else "") + (f" ({regions})" if regions else "")
        made = tuple(tensor(*t) for t in results)
        out = ", ".join(made)
        own = name or self.op_name.partition("@")[0]  # a row of a custom call has its target after it
        many = f":{len(results)}" if len(results) > 1 else ""
        self.line(
            f'%r{many} = "{own}"({", ".join(operands)}){middle} : ({", ".join(found)}) -> '
            + (out if len(results) == 1 else f"({out})")
        )
        self.returned = [f"%r#{i}" for i in range(len(results))] if many else ["%r"]
        self.results = list(results)
        self.statement = Statement(own, tuple(found), made, properties, regions)
        return self.returned

    def tell_xla(self, *lines: str) -> None:
        """The body that XLA gets; it defines the same names."""
        self.for_xla = "".join(f"  {line}\n" for line in lines)

    def compare_with(self, kind: str, ulps: float = 0) -> None:
        self.kind, self.ulps = kind, ulps

    def built(self, seed: int) -> Instance:
        return Instance(
            self.op_name, seed, self.dtype, tuple(self.arguments), "".join(self.lines), tuple(self.returned),
            tuple(self.results), self.kind, self.ulps, self.functions, self.for_xla,
        )  # fmt: skip


@dataclass(frozen=True)
class Row:
    """How to draw instances of an op: its dtypes, through which seeds cycle, and the function that writes one."""

    dtypes: tuple[str, ...]
    make: Callable[[Build], None]


Table = dict[str, Row]
