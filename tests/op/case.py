# SPDX-License-Identifier: Apache-2.0
"""A row of the table of op cases: an op with its applications, inputs and reference. The rows are in ``cases``."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.op.inputs import Shape
from tests.op.references import Array, Reference

FLOATS = ("float32", "float64", "float16", "bfloat16")
SIGNED = ("int32", "int8", "int16", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTEGERS
ALL = (*NUMBERS, "bool")


@dataclass(frozen=True)
class Application:
    """One op on operands of given shapes."""

    shapes: tuple[Shape, ...]
    reference: Reference  # of whole arrays
    attrs: dict[str, Any] = field(default_factory=dict)
    result_shape: Shape | None = None  # declared, where the op does not imply it
    result_dtype: str | None = None  # the same
    region: str | None = None
    rows: str | None = None  # instead: the function of ref.ROWS that combines several operands
    record: Callable[[Any, Sequence[int]], int] | None = None  # how it is recorded, where one op alone will not do
    dtypes: tuple[str | None, ...] = ()  # per operand, where it is not the case's dtype
    fixed: dict[int, Array] = field(default_factory=dict)  # operands that are not drawn
    baked: bool = False  # fixed operands are constants of the program, not arguments
    at: Callable[[Shape], Reference] | None = None  # the reference for another result shape (a part of it)
    # the reference for a part of operand 0 that begins at these indices of it, whose whole shape is given
    part: Callable[[Sequence[int], Shape], Reference] | None = None
    result: int = 0  # which result of the op it is
    init: int = 1  # the operand that counts once where a reduction is split
    has_local: bool = True  # whether the op on slices is what a device runs (iota adds an offset)
    differentiable: bool = True  # False where the inputs drawn have kinks
    label: str = ""

    def operand_dtype(self, i: int, dtype: str) -> str:
        return (self.dtypes[i] if i < len(self.dtypes) else None) or dtype


@dataclass(frozen=True)
class OpCase:
    """One row: an op, or an op with one region."""

    name: str
    dtypes: tuple[str, ...]
    applications: Callable[[int, str], list[Application]]
    draw: Callable[[Shape, str, np.random.Generator], Array]
    kind: str = "exact"  # exact | ulps | magnitude | sum | product | dot | rows: how results compare with NumPy
    ulps: float = 0
    variant: str = ""
    combine: str | None = None  # the reducer of its reduction factors
    gradient_dtype: str = "float64"
    gradient_draw: Callable[[Shape, str, np.random.Generator], Array] | None = None  # away from kinks
    differentiable: bool = True  # False only with the reason in the op's definition
    # where gradients at ties, zeros and infinities are tried: "NumPy" functions, the op on all "values", "family" tests
    special_points: str = "NumPy"
    accepts: Callable[[Any], bool] | None = None  # an elementwise op: the dtypes that the specification gives it
    has_range: bool = False  # whether its rule reads a dim at other places than it is written
    peer: Callable[..., Any] | None = None  # in NumPy or SciPy, to compare times where no NumPy function records the op

    @property
    def id(self) -> str:
        return self.name.split(".")[1] + (f"-{self.variant}" if self.variant else "")

    def operands(self, application: Application, dtype: str, draw: Any = None) -> list[Array]:
        """The same arrays each time for one application."""
        seed = zlib.crc32(repr((self.id, application.label, application.shapes, dtype)).encode())
        rng = np.random.default_rng(seed)
        arrays = []
        for i, shape in enumerate(application.shapes):
            if i in application.fixed:
                arrays.append(application.fixed[i])
            else:
                arrays.append((draw or self.draw)(shape, application.operand_dtype(i, dtype), rng))
        return arrays

    def emit(self, trace: Any, operands: Sequence[int], application: Application, dtype: str) -> int:
        """Record the application; the value of its result."""
        if application.record is not None:
            return application.record(trace, operands)
        shape, result_dtype = application.result_shape, application.result_dtype
        if application.baked:
            fixed = application.fixed
            operands = [trace.constant(fixed[i])[0] if i in fixed else value for i, value in enumerate(operands)]
        if not operands and shape is not None:
            result_dtype = result_dtype or dtype
        value, _, _ = trace.emit(
            self.name, list(operands), application.attrs or None, shape, result_dtype, application.region
        )
        return value
