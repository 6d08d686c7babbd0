# SPDX-License-Identifier: Apache-2.0
"""Ops of CHLO that broadcast their operands."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import special

from shardwise import _core
from shardwise.dtypes import is_float
from tests.op import references as ref
from tests.op.case import ALL, FLOATS, INTEGERS, NUMBERS, Application, OpCase
from tests.op.catalogue.elementwise import (
    ACCEPTED,
    FLOATS_FROM_16,
    accepted_by,
    compare_elementwise,
    compare_properties,
    operands_of,
    result_dtype,
)
from tests.op.catalogue.instance import Build, Row, Table, ints, tensor
from tests.op.catalogue.linalg import recorded_size
from tests.op.dtype_values import ALL_DTYPES, COMPLEX
from tests.op.inputs import Shape, extreme, plain, whole_numbers, within
from tests.op.references import Array, Reference

# ---- cases -----------------------------------------------------------------------------------------------------------


def broadcasting_cases(count: int, reference: Reference, attrs: dict[str, Any] | None = None) -> Any:
    """Equal shapes, sizes of 1, fewer dims with and without broadcast_dimensions."""

    def applications(n: int, dtype: str) -> list[Application]:
        shapes: list[tuple[tuple[Shape, Shape], Shape | None]] = [
            (((n, 3), (n, 3)), None),
            (((n, 3), (3,)), (1,)),
            (((n,), (n, 2)), (0,)),
            (((), (n, 3)), None),
        ]
        if n > 1:
            shapes.append((((n, 1), (1, 3)), None))
        found = []
        for (a, b), dims in shapes:
            given = dict(attrs or {})
            if dims is not None:
                given["broadcast_dimensions"] = dims
            at = Alignment(dims)
            operands = ((n, 3), a, b) if count == 3 else (a, b)
            if count == 3 and len(np.broadcast_shapes(*(at.shape(s, 2) for s in (a, b)))) != 2:
                continue
            if count == 3:
                operands = (tuple(np.broadcast_shapes(at.shape(a, 2), at.shape(b, 2))), a, b)
            found.append(
                Application(
                    operands, at.aligned(reference), given,
                    dtypes=("bool",) if count == 3 else (), label=f"{a}{b}{dims}",
                )
            )  # fmt: skip
        return found

    return applications


class Alignment:
    """Where the dims of an operand with fewer dims go: to the given ones, else to the last."""

    def __init__(self, dims: Shape | None) -> None:
        self.dims = dims

    def shape(self, shape: Shape, ndim: int) -> Shape:
        if self.dims is None or len(shape) == ndim or len(shape) != len(self.dims):
            return (1,) * (ndim - len(shape)) + tuple(shape)
        return tuple(shape[self.dims.index(d)] if d in self.dims else 1 for d in range(ndim))

    def aligned(self, reference: Reference) -> Reference:
        def computed(*operands: Array) -> Array:
            ndim = max(x.ndim for x in operands)
            shaped = [x.reshape(self.shape(x.shape, ndim)) for x in operands]
            return reference(*np.broadcast_arrays(*shaped))

        return computed


def _broadcast_case(
    name: str, reference: Reference, dtypes: tuple[str, ...], draw: Any = extreme, kind: str = "exact", **options: Any
) -> OpCase:
    attrs = options.pop("attrs", None)
    exact = ref.in_float32(reference) if kind == "exact" and reference is not ref.next_after else reference
    return OpCase(
        f"chlo.broadcast_{name}",
        dtypes,
        broadcasting_cases(options.pop("count", 2), exact, attrs),
        draw,
        kind,
        options.pop("ulps", 2),
        **options,
    )


def complex_cases(n: int, dtype: str) -> list[Application]:
    rows = broadcasting_cases(2, ref.in_long_double(np.hypot), None)(n, dtype)
    return [recorded_size("chlo.broadcast_complex", row) for row in rows]


def _power(x: Array, y: Array) -> Array:
    return (ref.in_long_double(np.power) if is_float(x.dtype) else ref.integer_power)(x, y)


EnumValue = _core.ir.EnumValue
LESS = {"comparison_direction": EnumValue("chlo", "comparison_direction", "LT")}
LOGIC = (*INTEGERS, "bool")
SMOOTH_DRAW = {"gradient_draw": within(0.5, 3)}
CASES: list[OpCase] = [
    _broadcast_case("add", np.add, ALL),
    _broadcast_case("subtract", np.subtract, NUMBERS),
    _broadcast_case("multiply", np.multiply, ALL),
    _broadcast_case("divide", ref.divide, NUMBERS, **SMOOTH_DRAW),
    _broadcast_case("remainder", ref.remainder, NUMBERS, **SMOOTH_DRAW),
    _broadcast_case("power", _power, NUMBERS, within(0.1, 3), "ulps"),
    _broadcast_case("atan2", ref.in_long_double(np.arctan2), FLOATS, plain, "ulps"),
    _broadcast_case("maximum", ref.maximum, ALL),
    _broadcast_case("minimum", ref.minimum, ALL),
    _broadcast_case("and", np.bitwise_and, LOGIC, differentiable=False),
    _broadcast_case("or", np.bitwise_or, LOGIC, differentiable=False),
    _broadcast_case("xor", np.bitwise_xor, LOGIC, differentiable=False),
    _broadcast_case("shift_left", ref.shift_left, INTEGERS, differentiable=False),
    _broadcast_case("shift_right_arithmetic", ref.shift_right_arithmetic, INTEGERS, differentiable=False),
    _broadcast_case("shift_right_logical", ref.shift_right_logical, INTEGERS, differentiable=False),
    _broadcast_case("compare", np.less, ALL, attrs=LESS, differentiable=False),
    _broadcast_case("select", np.where, ALL, count=3),
    _broadcast_case("next_after", ref.next_after, FLOATS, differentiable=False),
    _broadcast_case("polygamma", ref.in_float64(ref.polygamma), FLOATS, whole_numbers, "magnitude", ulps=16),
    _broadcast_case("zeta", ref.in_float64(special.zeta), FLOATS, within(1.5, 5), "magnitude", ulps=16),
    OpCase("chlo.broadcast_complex", ("float32", "float64"), complex_cases, plain, "ulps", 2),
]


# ---- random instances ------------------------------------------------------------------------------------------------


def draw_broadcast(op: str, b: Build) -> None:
    """Operands that broadcast as in NumPy, or along dims that the op names."""
    whole = b.filled_shape(1, 3)
    kept = b.below(0, len(whole))
    dims = sorted(b.rng.choice(len(whole), kept, replace=False).tolist()) if b.chance(0.5) else None
    small = whole[len(whole) - kept :] if dims is None else tuple(whole[d] for d in dims)
    small = tuple(1 if b.chance(0.2) else d for d in small)
    base = op.removeprefix("broadcast_")
    known = base if base in ACCEPTED else f"chlo.{base}"
    arrays = operands_of(b, known, whole)
    small_array = operands_of(b, known, small)[1]
    # Equal ranks broadcast dims of size 1; other ranks take the named dims.
    named = f"broadcast_dimensions = {ints(range(len(whole) - kept, len(whole)) if dims is None else dims)}"
    properties = named if len(small) != len(whole) else ""
    if base == "compare":
        properties = ", ".join(x for x in (properties, compare_properties(b, "chlo")) if x)
    made = result_dtype(base, b.dtype)
    x, y = b.argument(arrays[0]), b.argument(small_array)
    b.op([x, y], [(whole, made)], properties)
    # XLA broadcasts trailing dims only.
    t, to = tensor(whole, b.dtype), tensor(whole, made)
    own = properties.removeprefix(named).removeprefix(", ")
    into = dims if dims is not None else range(len(whole) - kept, len(whole))
    b.tell_xla(
        f'%s = "stablehlo.broadcast_in_dim"({y}) <{{broadcast_dimensions = {ints(into)}}}> : ({b.type_of(y)}) -> {t}',
        f'%r = "chlo.{op}"({x}, %s)' + (f" <{{{own}}}>" if own else "") + f" : ({t}, {t}) -> {to}",
    )
    compare_elementwise(b, known)


def draw_broadcast_select(b: Build) -> None:
    """Scalars, and operands with the last dims of the result."""
    whole = b.filled_shape(1, 3)
    others = [whole, whole[b.below(0, len(whole)) :]]
    shapes = [b.pick(((), whole)), *(others if b.chance(0.5) else others[::-1])]
    arrays = [b.wild(shapes[0], "bool"), b.wild(shapes[1]), b.wild(shapes[2])]
    b.op([b.argument(x) for x in arrays], [(whole, b.dtype)])


def _broadcasts() -> Table:
    names = (
        "add", "and", "atan2", "complex", "divide", "maximum", "minimum", "multiply", "next_after", "or", "polygamma",
        "power", "remainder", "shift_left", "shift_right_arithmetic", "shift_right_logical", "subtract", "xor", "zeta",
    )  # fmt: skip
    table = {}
    for name in names:
        dtypes = FLOATS_FROM_16 if name == "next_after" else accepted_by(name if name in ACCEPTED else f"chlo.{name}")
        if name == "remainder":
            dtypes = tuple(d for d in dtypes if d not in COMPLEX)
        table[f"chlo.broadcast_{name}"] = Row(dtypes, partial(draw_broadcast, f"broadcast_{name}"))
    table["chlo.broadcast_compare"] = Row(accepted_by("compare"), partial(draw_broadcast, "broadcast_compare"))
    return table


DRAWS: Table = {**_broadcasts(), "chlo.broadcast_select": Row(tuple(ALL_DTYPES), draw_broadcast_select)}
