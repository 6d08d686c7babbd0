# SPDX-License-Identifier: Apache-2.0
"""Loops, branches and calls of random programs: each runs a drawn body, which keeps shape, dtype and small integers.

    body = Body.draw(drawer, i)          # x -> clamp(x @ w), then x - clamp(sum of x), …
    body.numpy(x, captured)
    body.emit(trace, value, captured)

A call is recorded as a named computation; :func:`outlined` makes it a function, which several calls share.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from shardwise import _core
from tests.op.references import Array

if TYPE_CHECKING:
    from tests.support.random_programs import Drawer

LIMIT = 50
INLINED_OPS = 12  # larger functions are not inlined
EnumValue = _core.ir.EnumValue
Struct = _core.ir.Struct
Captured = list[Any]


@dataclass(frozen=True)
class Step:
    """One step of a body, in NumPy and as ops; both take the values that the body captures."""

    text: str
    numpy: Callable[[Array, Captured], Any]
    emit: Callable[[Any, int, Captured], int]


@dataclass
class Body:
    """Steps from a value to one of its type."""

    steps: list[Step] = field(default_factory=list)
    captured: list[int] = field(default_factory=list)  # values of the program

    @classmethod
    def draw(cls, drawer: Drawer, i: int, count: int) -> Body:
        body, x = cls(), drawer.array_of(i)
        for _ in range(count):
            body.steps.append(drawer.pick([_reversed] if drawer.moves_only else _kinds(x))(drawer, i, body.captured))
        return body

    def numpy(self, x: Array, captured: Captured) -> Array:
        for step in self.steps:
            x = np.asarray(step.numpy(x, captured), x.dtype)
        return x

    def emit(self, trace: Any, value: int, captured: Captured) -> int:
        for step in self.steps:
            value = step.emit(trace, value, captured)
        return value

    def arrays(self, drawer: Drawer) -> Captured:
        return [drawer.array_of(k) for k in self.captured]

    def __str__(self) -> str:
        return ", ".join(step.text for step in self.steps)


def _op(trace: Any, name: str, operands: list[int], attrs: Any = None, region: str | None = None) -> int:
    return int(trace.emit(f"stablehlo.{name}", operands, attrs, None, None, region and f"stablehlo.{region}")[0])


def _constant(trace: Any, array: Any, dtype: Any) -> int:
    return int(trace.constant(np.asarray(array, dtype))[0])


def _clamped(trace: Any, value: int, dtype: Any) -> int:
    return _op(trace, "clamp", [_constant(trace, -LIMIT, dtype), value, _constant(trace, LIMIT, dtype)])


# ---- steps ----------------------------------------------------------------------------------------------------------


def _kinds(x: Array) -> list[Callable[[Drawer, int, list[int]], Step]]:
    return [_unary, _with_captured, *([_without_sums, _product, _reversed] if x.ndim else [])]


def _unary(drawer: Drawer, i: int, captured: list[int]) -> Step:
    name, function = drawer.pick([("negate", np.negative), ("abs", np.abs)])
    return Step(name, lambda x, _: function(x), lambda trace, value, _: _op(trace, name, [value]))


def _with_captured(drawer: Drawer, i: int, captured: list[int]) -> Step:
    name, function = drawer.pick([("add", np.add), ("maximum", np.maximum), ("multiply", np.multiply)])
    captured.append(drawer.like(i))
    k, dtype = len(captured) - 1, drawer.array_of(i).dtype
    return Step(
        f"{name} %{captured[k]}",
        lambda x, arrays: np.clip(function(x, arrays[k]), -LIMIT, LIMIT),
        lambda trace, value, values: _clamped(trace, _op(trace, name, [value, values[k]]), dtype),
    )


def _without_sums(drawer: Drawer, i: int, captured: list[int]) -> Step:
    shape, dtype = drawer.array_of(i).shape, drawer.array_of(i).dtype
    dim = drawer.integer(0, len(shape) - 1)

    def emit(trace: Any, value: int, _: Captured) -> int:
        zero = _constant(trace, 0, dtype)
        sums = _clamped(trace, _op(trace, "reduce", [value, zero], {"dimensions": (dim,)}, "add"), dtype)
        attrs = {"broadcast_dimensions": tuple(d for d in range(len(shape)) if d != dim)}
        spread = int(trace.emit("stablehlo.broadcast_in_dim", [sums], attrs, shape, dtype.name, None)[0])
        return _clamped(trace, _op(trace, "subtract", [value, spread]), dtype)

    def numpy(x: Array, _: Captured) -> Array:
        sums = np.clip(x.sum(dim, keepdims=True, dtype=x.dtype), -LIMIT, LIMIT)
        return np.clip(x - sums, -LIMIT, LIMIT)

    return Step(f"subtract sums over {dim}", numpy, emit)


def _product(drawer: Drawer, i: int, captured: list[int]) -> Step:
    x = drawer.array_of(i)
    w = drawer.rng.integers(-1, 2, (x.shape[-1],) * 2).astype(x.dtype)
    fields = {"lhs_contracting_dimensions": (x.ndim - 1,), "rhs_contracting_dimensions": (0,)}
    attrs = {"dot_dimension_numbers": Struct("stablehlo.dot", fields)}

    def emit(trace: Any, value: int, _: Captured) -> int:
        return _clamped(trace, _op(trace, "dot_general", [value, _constant(trace, w, x.dtype)], attrs), x.dtype)

    return Step("dot", lambda x, _: np.clip(x @ w, -LIMIT, LIMIT), emit)


def _reversed(drawer: Drawer, i: int, captured: list[int]) -> Step:
    dim = drawer.integer(0, drawer.array_of(i).ndim - 1)
    return Step(
        f"reverse {dim}",
        lambda x, _: np.flip(x, dim),
        lambda trace, value, _: _op(trace, "reverse", [value], {"dimensions": (dim,)}),
    )


# ---- steps of a program ---------------------------------------------------------------------------------------------


def _at_most(drawer: Drawer, i: int, most: int) -> tuple[int, Callable[[Any, list[int]], int]]:
    """A number from 0 to ``most`` that depends on a value, so that it is known only when the program runs."""
    x = drawer.array_of(i)
    number = int(np.clip(x.max(), 0, most))

    def emit(trace: Any, values: list[int]) -> int:
        lowest = _constant(trace, -LIMIT, x.dtype)
        largest = _op(trace, "reduce", [values[i], lowest], {"dimensions": tuple(range(x.ndim))}, "maximum")
        inside = _op(trace, "clamp", [_constant(trace, 0, x.dtype), largest, _constant(trace, most, x.dtype)])
        return int(trace.emit("stablehlo.convert", [inside], None, (), "int32", None)[0])

    return number, emit


def branch(drawer: Drawer) -> int | None:
    """A ``stablehlo.case`` whose index is a value of the program."""
    i, index_of = drawer.body_operand(), drawer.index_operand()
    if i is None or index_of is None:
        return None
    bodies = [Body.draw(drawer, i, drawer.integer(0, 2)) for _ in range(drawer.integer(1, 3))]
    number, emit_index = _at_most(drawer, index_of, len(bodies))  # one too large, which selects the last
    chosen = bodies[min(number, len(bodies) - 1)]

    def emit(trace: Any, values: list[int]) -> int:
        index = emit_index(trace, values)
        regions = []
        for body in bodies:
            regions.append(trace.begin_region())
            trace.end_region([body.emit(trace, values[i], [values[k] for k in body.captured])])
        return int(trace.emit_op("stablehlo.case", [index], {}, regions=regions)[0][0])

    drawer.program.has_choices = True
    result = chosen.numpy(drawer.array_of(i), chosen.arrays(drawer))
    return drawer.program.push(emit, result, f"case of %{index_of} on %{i}: {' | '.join(map(str, bodies))}")


def loop(drawer: Drawer) -> int | None:
    """A ``stablehlo.while`` of a number of trips that is constant, or a value of the program."""
    i, bound_of = drawer.body_operand(), drawer.index_operand()
    if i is None or bound_of is None:
        return None
    body = Body.draw(drawer, i, drawer.integer(1, 3))
    is_counted = drawer.integer(0, 1) == 0
    trips, emit_bound = _at_most(drawer, bound_of, 3)
    if is_counted:
        trips = drawer.integer(0, 3)
    else:
        drawer.program.has_choices = True

    def emit(trace: Any, values: list[int]) -> int:
        x = drawer.array_of(i)
        bound = _constant(trace, trips, np.int32) if is_counted else emit_bound(trace, values)
        condition = trace.begin_region()
        counter = trace.region_argument((), "int32")
        trace.region_argument(x.shape, x.dtype.name)
        direction = EnumValue("stablehlo", "comparison_direction", "LT")
        trace.end_region([_op(trace, "compare", [counter, bound], {"comparison_direction": direction})])
        inside = trace.begin_region()
        counter, carry = trace.region_argument((), "int32"), trace.region_argument(x.shape, x.dtype.name)
        result = body.emit(trace, carry, [values[k] for k in body.captured])
        trace.end_region([_op(trace, "add", [counter, _constant(trace, 1, np.int32)]), result])
        start = _constant(trace, 0, np.int32)
        return int(trace.emit_op("stablehlo.while", [start, values[i]], {}, regions=[condition, inside])[1][0])

    result, captured = drawer.array_of(i), body.arrays(drawer)
    for _ in range(trips):
        result = body.numpy(result, captured)
    bound = f"{trips}" if is_counted else f"%{bound_of}"
    return drawer.program.push(emit, result, f"while {bound} trips of {body} on %{i}")


def call(drawer: Drawer) -> int | None:
    """Calls of a function that is too large to be inlined, one on the result of the other."""
    i = drawer.body_operand()
    if i is None:
        return None
    body = Body.draw(drawer, i, drawer.integer(1, 4))
    negate = Step("negate", lambda x, _: -x, lambda trace, value, _: _op(trace, "negate", [value]))
    body.steps += [negate] * (INLINED_OPS + 1)
    x, count = drawer.array_of(i), drawer.integer(2, 3)
    name = f"f{len(drawer.program.values)}"

    def emit(trace: Any, values: list[int]) -> int:
        value, captured = values[i], [values[k] for k in body.captured]
        for _ in range(count):
            region = trace.begin_region()
            arguments = [trace.region_argument(x.shape, x.dtype.name) for _ in range(1 + len(captured))]
            trace.end_region([body.emit(trace, arguments[0], arguments[1:])])
            types = [(x.shape, x.dtype.name)]
            attrs = {"name": name}
            made = trace.emit_op("sdy.named_computation", [value, *captured], attrs, types, regions=[region])
            value = int(made[0][0])
        return value

    result, arrays = x, body.arrays(drawer)
    for _ in range(count):
        result = body.numpy(result, arrays)
    drawer.program.has_calls = True
    return drawer.program.push(emit, result, f"{count} calls of @{name} on %{i}: {body}")


def outlined(text: str) -> str:
    """The text of a program with a function in place of the named computations of each name."""
    lines, functions = text.splitlines(), dict[str, list[str]]()
    kept: list[str] = []
    open_lines: list[str] | None = None
    result = name = ""
    for line in lines:
        begin = re.fullmatch(r'(\s*%\w+ = )sdy\.named_computation<"(\w+)">(\(.*?\)) (\(.*\)) \{', line)
        if begin:
            result, name = f"{begin[1]}func.call @{begin[2]}{begin[3]}", begin[2]
            open_lines = [begin[4]]
        elif open_lines is None:
            kept.append(line)
        elif re.fullmatch(r"\s*\} : .*", line):
            signature = line.strip().removeprefix("} ")
            kept.append(f"{result} {signature}")
            arguments, *body = open_lines
            head = f"  func.func private @{name}{arguments} -> ({signature.rpartition('-> ')[2]}) {{"
            functions.setdefault(name, [head, *body, "  }"])
            open_lines = None
        else:
            open_lines.append(line.replace("sdy.return", "return"))
    assert kept[-1] == "}"
    return "\n".join([*kept[:-1], *(line for function in functions.values() for line in function), "}"])
