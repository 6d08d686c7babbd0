# SPDX-License-Identifier: Apache-2.0
"""Random programs as data: drawn by Hypothesis or a seed, recorded into a trace, and computed by NumPy alongside.

Every value is an integer of small magnitude, whatever its dtype, so that sums and products are exact in any order and
NumPy, the unpartitioned run and every partitioned run must agree in every bit. Transcendental functions come with a
rounding that keeps the values integers: floor(8·tanh(x) + 0.37).

    program = data.draw(programs(mesh))
    module = program.record()                  # argument shardings and constraints included
    program.arguments, program.expected        # what NumPy computed
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from hypothesis import strategies as st

from shardwise import _core
from tests.op import references as ref
from tests.op.references import Array
from tests.op.window_references import reduce_window
from tests.support import random_control_flow
from tests.support.draws import Draws, HypothesisDraws
from tests.support.mesh_strategies import drawn_sharding
from tests.support.random_control_flow import outlined

DTYPES = ("float32", "int32", "float32", "int32", "bool")
SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 4, 6, 8)
LIMIT = 50  # larger magnitudes are clamped
MAX_ELEMENTS = 700

EnumValue = _core.ir.EnumValue
Struct = _core.ir.Struct


class Program:
    """Steps to record, and the arrays that NumPy computed for them."""

    def __init__(self, mesh: Any) -> None:
        self.mesh = mesh
        self.arguments: list[Array] = []
        self.argument_shardings: list[Any] = []
        self.steps: list[Callable[[Any, list[int]], int]] = []  # (trace, values so far) -> value
        self.values: list[Array] = []  # arguments first
        self.outputs: list[int] = []
        self.log: list[str] = []
        self.is_exact = True  # computed with numbers; False: of bits, which are moved alone
        self.has_calls = False
        self.has_choices = False  # branches, and loops of trips that the program computes

    @property
    def expected(self) -> list[Array]:
        return [self.values[i] for i in self.outputs]

    def wrong(self, results: Sequence[Array]) -> Iterator[str]:
        """What is not as NumPy computed it."""
        for k, (found, want) in enumerate(zip(results, self.expected)):
            equal = np.array_equal(found, want) if self.is_exact else found.tobytes() == want.tobytes()
            if found.dtype != want.dtype or found.shape != want.shape or not equal:
                yield f"output {k} is\n{found!r}\nand not\n{want!r}"

    def argument(self, array: Array, held: Any) -> None:
        self.arguments.append(array)
        self.argument_shardings.append(held)
        self.values.append(array)

    def op(
        self,
        name: str,
        operands: list[int],
        result: Array,
        attrs: dict[str, Any] | None = None,
        declare: bool = False,
        region: str | None = None,
    ) -> int:
        result = np.asarray(result)
        shape, dtype = (result.shape, result.dtype.name) if declare else (None, None)

        def emit(trace: Any, values: list[int]) -> int:
            value, got_shape, got_dtype = trace.emit(name, [values[i] for i in operands], attrs, shape, dtype, region)
            assert (tuple(got_shape), got_dtype) == (result.shape, result.dtype.name), name
            return value

        return self.push(
            emit, result, f"{name} {operands} {attrs or ''} {region or ''} -> {result.dtype}{list(result.shape)}"
        )

    def push(self, emit: Callable[[Any, list[int]], int], result: Array, line: str) -> int:
        self.steps.append(emit)
        self.values.append(result)
        self.log.append(f"%{len(self.values) - 1} = {line}")
        return len(self.values) - 1

    def record(self, result_shardings: Sequence[Any] = ()) -> Any:
        """The program, with its annotations; a sharding or None per output."""
        trace = _core.ir.Trace("random")
        values = [
            trace.argument(x.shape, x.dtype.name, f"a{i}", held)
            for i, (x, held) in enumerate(zip(self.arguments, self.argument_shardings))
        ]
        for step in self.steps:
            values.append(step(trace, values))
        module = trace.finish([values[i] for i in self.outputs], list(result_shardings))
        return _core.ir.parse(outlined(module.text())) if self.has_calls else module

    def __repr__(self) -> str:
        heads = [
            f"%{i}: {x.dtype}{list(x.shape)} {held}"
            for i, (x, held) in enumerate(zip(self.arguments, self.argument_shardings))
        ]
        return "\n".join([self.mesh.text(), *heads, *self.log, f"return {self.outputs}"])


# ---- drawing --------------------------------------------------------------------------------------------------------


class Drawer:
    """Draws one program step after the other."""

    steps: ClassVar[list[Callable[[Any], int | None]]]
    moves_only = False  # the bodies of loops and branches

    def __init__(
        self,
        draws: Draws,
        mesh: Any,
        dtypes: Sequence[str] = DTYPES,
        unreduced: bool = False,
        others: Sequence[Any] = (),
    ) -> None:
        """``others``: more meshes over the same devices, which annotations may name."""
        self.draws = draws
        self.program = Program(mesh)
        self.dtypes = dtypes
        self.unreduced = unreduced
        self.meshes = (mesh, *others)
        self.rng = np.random.default_rng(draws.integer(0, 10_000))
        # No later step takes these values and no program returns them: values between a transcendental function and its
        # rounding, values before a clamp, and the ends of a dtype.
        self.set_aside: set[int] = set()

    def integer(self, low: int, high: int) -> int:
        return self.draws.integer(low, high)

    def pick(self, options: Any) -> Any:
        return self.draws.pick(options)

    def sharding(self, x: Array, unreduced: bool = False) -> Any:
        mesh = self.meshes[0] if len(self.meshes) == 1 else self.pick(self.meshes)
        return drawn_sharding(self.draws, mesh, x.ndim, unreduced=unreduced and x.dtype != np.bool_)

    def shape(self, ndim: int) -> tuple[int, ...]:
        return tuple(self.pick(SIZES) for _ in range(ndim))

    def array(self, shape: tuple[int, ...], dtype: str) -> Array:
        values = np.asarray(self.rng.integers(-9, 10, shape))
        return np.asarray(values > 0) if dtype == "bool" else values.astype(dtype)

    def argument(self) -> None:
        array = self.array(self.shape(self.integer(0, 3)), self.pick(self.dtypes))
        self.program.argument(array, self.sharding(array) if self.integer(0, 3) else None)

    def value(self, test: Callable[[Array], bool] = lambda x: True) -> int | None:
        """One of the values so far that passes, mostly a recent one."""
        candidates = [i for i, x in enumerate(self.program.values) if i not in self.set_aside and test(x)]
        if not candidates:
            return None
        return candidates[max(self.integer(0, len(candidates) - 1), self.integer(0, len(candidates) - 1))]

    def body_operand(self) -> int | None:
        """The value that a loop or a branch changes: of small numbers."""
        return self.value(lambda x: x.dtype != np.bool_ and x.size > 0 and np.abs(x).max() <= LIMIT)

    def index_operand(self) -> int | None:
        """The value of small numbers that decides about trips and branches."""
        return self.body_operand()

    def array_of(self, i: int) -> Array:
        return self.program.values[i]

    def like(self, i: int) -> int:
        """A value of the same type as another one: an earlier one or a new constant."""
        x = self.array_of(i)
        found = self.value(lambda y: y.shape == x.shape and y.dtype == x.dtype)
        return found if found is not None and self.integer(0, 3) else self.constant(self.array(x.shape, x.dtype.name))

    def constant(self, array: Array) -> int:
        return self.program.push(
            lambda trace, values: trace.constant(array)[0], array, f"constant {array.dtype}{list(array.shape)}"
        )

    def keep_small(self, i: int) -> int:
        x = self.array_of(i)
        if x.dtype == np.bool_ or x.size == 0 or np.abs(x).max() <= LIMIT:
            return i
        low = self.constant(np.asarray(-LIMIT, x.dtype))
        high = self.constant(np.asarray(LIMIT, x.dtype))
        self.set_aside.add(i)
        return self.program.op("stablehlo.clamp", [low, i, high], np.clip(x, -LIMIT, LIMIT))

    def constrain(self) -> None:
        """An annotation on a value in the middle."""
        i = self.value()
        assert i is not None
        x = self.array_of(i)
        held = self.sharding(x, self.unreduced)
        self.program.push(lambda trace, values: trace.constrain(values[i], held), x, f"constrain %{i} {held}")

    # ---- one method per kind of op; each returns the new value or None where no operand fits ----

    def unary(self) -> int | None:
        i = self.value(lambda x: x.dtype != np.bool_)
        if i is None:
            return None
        name, function = self.pick([("negate", np.negative), ("abs", np.abs), ("sign", ref.sign)])
        return self.program.op(f"stablehlo.{name}", [i], function(self.array_of(i)))

    def transcendental(self) -> int | None:
        i = self.value(lambda x: x.dtype == np.float32)
        if i is None:
            return None
        x = self.array_of(i)
        name, function = self.pick([("tanh", np.tanh), ("sine", np.sin), ("logistic", lambda v: 1 / (1 + np.exp(-v)))])
        y = function(x.astype(np.float64))
        smooth = self.program.op(f"stablehlo.{name}", [i], y.astype(np.float32))
        eight = self.constant(np.full(x.shape, 8, np.float32))
        offset = self.constant(np.full(x.shape, 0.37, np.float32))
        scaled = self.program.op("stablehlo.multiply", [smooth, eight], (8 * y).astype(np.float32))
        moved = self.program.op("stablehlo.add", [scaled, offset], (8 * y + 0.37).astype(np.float32))
        result = self.program.op("stablehlo.floor", [moved], np.floor(8 * y + 0.37).astype(np.float32))
        self.set_aside |= {smooth, scaled, moved, offset}
        return result

    def binary(self) -> int | None:
        i = self.value(lambda x: x.dtype != np.bool_)
        if i is None:
            return None
        j = self.like(i)
        names = {
            "add": np.add,
            "subtract": np.subtract,
            "multiply": np.multiply,
            "maximum": ref.maximum,
            "minimum": ref.minimum,
        }
        name = self.pick(names)
        return self.program.op(f"stablehlo.{name}", [i, j], names[name](self.array_of(i), self.array_of(j)))

    def logical(self) -> int | None:
        i = self.value(lambda x: x.dtype == np.bool_)
        if i is None:
            return None
        j = self.like(i)
        names = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
        name = self.pick(names)
        return self.program.op(f"stablehlo.{name}", [i, j], names[name](self.array_of(i), self.array_of(j)))

    def compare_and_select(self) -> int | None:
        i = self.value(lambda x: x.dtype != np.bool_)
        if i is None:
            return None
        j = self.like(i)
        direction = self.pick(ref.COMPARISONS)
        attrs = {"comparison_direction": EnumValue("stablehlo", "comparison_direction", direction)}
        truth = ref.COMPARISONS[direction](self.array_of(i), self.array_of(j))
        which = self.program.op("stablehlo.compare", [i, j], truth, attrs)
        return self.program.op("stablehlo.select", [which, i, j], np.where(truth, self.array_of(i), self.array_of(j)))

    def convert(self) -> int | None:
        i = self.value()
        if i is None:
            return None
        to = self.pick(("float32", "int32", "bool"))
        return self.program.op("stablehlo.convert", [i], ref.convert(self.array_of(i), np.dtype(to)), declare=True)

    def transpose(self) -> int | None:
        i = self.value(lambda x: x.ndim > 1)
        if i is None:
            return None
        x = self.array_of(i)
        order = tuple(self.draws.permutation(range(x.ndim)))
        return self.program.op("stablehlo.transpose", [i], x.transpose(order), {"permutation": order})

    def reshape(self) -> int | None:
        i = self.value(lambda x: x.size > 1)
        if i is None:
            return None
        x = self.array_of(i)
        rest, shape = x.size, []
        for _ in range(self.integer(0, 2)):
            shape.append(self.pick([d for d in range(1, rest + 1) if rest % d == 0]))
            rest //= shape[-1]
        shape.insert(self.integer(0, len(shape)), rest)
        return self.program.op("stablehlo.reshape", [i], x.reshape(shape), declare=True)

    def broadcast(self) -> int | None:
        i = self.value(lambda x: x.ndim < 3 and x.size < 100)
        if i is None:
            return None
        x = self.array_of(i)
        ndim = self.integer(max(x.ndim, 1), 3)
        dims = tuple(self.draws.permutation(range(ndim))[: x.ndim])
        shape = list(self.shape(ndim))
        for k, d in enumerate(dims):
            if x.shape[k] != 1:
                shape[d] = x.shape[k]
        if int(np.prod(shape)) > MAX_ELEMENTS:
            return None
        result = ref.broadcast_in_dim(shape, dims)(x)
        return self.program.op("stablehlo.broadcast_in_dim", [i], result, {"broadcast_dimensions": dims}, declare=True)

    def reverse(self) -> int | None:
        i = self.value(lambda x: x.ndim > 0)
        if i is None:
            return None
        x = self.array_of(i)
        dims = tuple(d for d in range(x.ndim) if self.draws.boolean()) or (0,)
        return self.program.op("stablehlo.reverse", [i], np.flip(x, dims), {"dimensions": dims})

    def slice(self) -> int | None:
        i = self.value(lambda x: x.ndim > 0)
        if i is None:
            return None
        x = self.array_of(i)
        start = tuple(self.integer(0, n // 2) for n in x.shape)
        limit = tuple(self.integer(a, n) if self.integer(0, 1) else n for a, n in zip(start, x.shape))
        strides = tuple(self.pick((1, 1, 2, 3)) for _ in x.shape)
        attrs = {"start_indices": start, "limit_indices": limit, "strides": strides}
        return self.program.op("stablehlo.slice", [i], ref.slice_by(start, limit, strides)(x), attrs)

    def pad(self) -> int | None:
        i = self.value(lambda x: x.ndim > 0 and x.size < 200)
        if i is None:
            return None
        x = self.array_of(i)
        value = self.constant(self.array((), x.dtype.name))
        low = tuple(self.integer(-1 if n > 2 else 0, 2) for n in x.shape)
        high = tuple(self.integer(-1 if n > 2 else 0, 2) for n in x.shape)
        interior = tuple(self.pick((0, 0, 1)) for _ in x.shape)
        attrs = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior}
        return self.program.op(
            "stablehlo.pad", [i, value], ref.pad(x, self.array_of(value), low, high, interior), attrs
        )

    def concatenate(self) -> int | None:
        i = self.value(lambda x: x.ndim > 0 and x.size < 200)
        if i is None:
            return None
        x = self.array_of(i)
        dim = self.integer(0, x.ndim - 1)

        def fits(y: Array) -> bool:
            same = y.ndim == x.ndim and y.dtype == x.dtype
            return same and all(d == dim or a == b for d, (a, b) in enumerate(zip(x.shape, y.shape)))

        operands = [i, self.value(fits)]
        operands += [self.value(fits)] if self.draws.boolean() else []
        result = np.concatenate([self.array_of(k) for k in operands], dim)
        return self.program.op("stablehlo.concatenate", operands, result, {"dimension": dim})

    def starts(self, x: Array) -> list[int]:
        return [self.constant(np.asarray(self.integer(-2, n + 2), np.int32)) for n in x.shape]

    def dynamic_slice(self) -> int | None:
        i = self.value(lambda x: x.ndim > 0)
        if i is None:
            return None
        x = self.array_of(i)
        sizes = tuple(self.integer(0 if n == 0 else 1, n) if self.integer(0, 1) else n for n in x.shape)
        starts = self.starts(x)
        result = ref.dynamic_slice(sizes)(x, *(self.array_of(s) for s in starts))
        return self.program.op("stablehlo.dynamic_slice", [i, *starts], result, {"slice_sizes": sizes})

    def dynamic_update_slice(self) -> int | None:
        i = self.value(lambda x: x.ndim > 0)
        if i is None:
            return None
        x = self.array_of(i)

        def fits(y: Array) -> bool:
            return y.ndim == x.ndim and y.dtype == x.dtype and all(a <= b for a, b in zip(y.shape, x.shape))

        update = self.value(fits)
        assert update is not None
        starts = self.starts(x)
        result = ref.dynamic_update_slice(x, self.array_of(update), *(self.array_of(s) for s in starts))
        return self.program.op("stablehlo.dynamic_update_slice", [i, update, *starts], result)

    def dot(self) -> int | None:
        i = self.value(lambda x: x.ndim > 0 and x.dtype != np.bool_)
        if i is None:
            return None
        x = self.array_of(i)
        c = self.integer(0, x.ndim - 1)
        j = self.value(lambda y: y.dtype == x.dtype and x.shape[c] in y.shape)
        assert j is not None
        y = self.array_of(j)
        d = self.pick([k for k, n in enumerate(y.shape) if n == x.shape[c]])
        pairs = [(a, b) for a in range(x.ndim) for b in range(y.ndim) if a != c and b != d and x.shape[a] == y.shape[b]]
        batch = [self.pick(pairs)] if pairs and self.draws.boolean() else []
        batching = (tuple(a for a, _ in batch), tuple(b for _, b in batch))
        with np.errstate(all="ignore"):
            result = ref.dot_general(x, y, batching, ((c,), (d,))).astype(x.dtype)
        if result.size > MAX_ELEMENTS:
            return None
        fields = {
            "lhs_batching_dimensions": batching[0],
            "rhs_batching_dimensions": batching[1],
            "lhs_contracting_dimensions": (c,),
            "rhs_contracting_dimensions": (d,),
        }
        attrs = {"dot_dimension_numbers": Struct("stablehlo.dot", {k: v for k, v in fields.items() if v})}
        return self.program.op("stablehlo.dot_general", [i, j], result, attrs)

    def reduce(self) -> int | None:
        i = self.value(lambda x: x.ndim > 0)
        if i is None:
            return None
        x = self.array_of(i)
        reducer = self.pick(("and", "or") if x.dtype == np.bool_ else ("add", "add", "maximum", "minimum"))
        init = self.constant(self.array((), x.dtype.name))
        dims = tuple(d for d in range(x.ndim) if self.draws.boolean()) or (x.ndim - 1,)
        result = ref.REDUCTIONS[reducer](x, self.array_of(init), dims).astype(x.dtype)
        return self.program.op(
            "stablehlo.reduce", [i, init], result, {"dimensions": dims}, region=f"stablehlo.{reducer}"
        )

    def accumulate(self) -> int | None:
        """A loop that combines a carry with a reduction in each trip, and may change its sign, or take it away."""
        i = self.value(lambda x: x.ndim > 0)
        if i is None:
            return None
        x = self.array_of(i)
        reducer = self.pick(("and", "or") if x.dtype == np.bool_ else ("add", "add", "maximum", "minimum"))
        dims = tuple(d for d in range(x.ndim) if self.draws.boolean()) or (0,)
        neutral = self.constant(np.asarray(ref.neutral(reducer, x.dtype)))
        self.set_aside.add(neutral)  # the ends of the dtype
        addend = ref.REDUCTIONS[reducer](x, self.array_of(neutral), dims).astype(x.dtype)
        combine = {"add": np.add, "maximum": ref.maximum, "minimum": ref.minimum, "and": np.logical_and}
        trips, then = self.integer(0, 3), self.pick(("", "negate", "abs")) if reducer == "add" else ""
        after = {"negate": np.negative, "abs": np.abs}.get(then, np.asarray)
        init = self.constant(self.array(addend.shape, x.dtype.name) if self.draws.boolean() else np.zeros_like(addend))
        result = self.array_of(init)
        for _ in range(trips):
            result = np.asarray(after(combine.get(reducer, np.logical_or)(result, addend)))
        if result.dtype != np.bool_ and (not np.isfinite(result).all() or np.abs(result).max(initial=0) > 2**20):
            return None

        def emit(trace: Any, values: list[int]) -> int:
            def op(
                name: str, operands: list[int], attrs: dict[str, Any] | None = None, region: str | None = None
            ) -> int:
                return int(trace.emit(name, operands, attrs, None, None, region)[0])

            def arguments() -> tuple[int, int]:
                return trace.region_argument((), "int32"), trace.region_argument(result.shape, result.dtype.name)

            direction = EnumValue("stablehlo", "comparison_direction", "LT")
            condition = trace.begin_region()
            limit = trace.constant(np.asarray(trips, np.int32))[0]
            less = op("stablehlo.compare", [arguments()[0], limit], {"comparison_direction": direction})
            trace.end_region([less])
            body = trace.begin_region()
            counter, carry = arguments()
            more = op("stablehlo.reduce", [values[i], values[neutral]], {"dimensions": dims}, f"stablehlo.{reducer}")
            combined = op(f"stablehlo.{reducer}", [carry, more])
            combined = op(f"stablehlo.{then}", [combined]) if then else combined
            one = trace.constant(np.asarray(1, np.int32))[0]
            trace.end_region([op("stablehlo.add", [counter, one]), combined])
            start = trace.constant(np.asarray(0, np.int32))[0]
            return int(trace.emit_op("stablehlo.while", [start, values[init]], {}, regions=[condition, body])[1][0])

        line = (
            f"while: {trips} times {reducer} of {reducer} over {dims} of %{i}, from %{init}, then {then or 'nothing'}"
        )
        return self.keep_small(self.program.push(emit, result, line))

    def reduce_window(self) -> int | None:
        """Mostly the prefix form; from a constant or from any value."""
        i = self.value(lambda x: x.ndim > 0 and 0 < x.size < 200)
        if i is None:
            return None
        x = self.array_of(i)
        reducer = self.pick(("and", "or") if x.dtype == np.bool_ else ("add", "maximum", "minimum"))
        sizes, padding = [1] * x.ndim, [(0, 0)] * x.ndim
        for dim in self.draws.permutation(range(x.ndim))[: self.integer(1, 2)]:
            n = x.shape[dim]
            prefix = self.integer(0, 2) > 0
            sizes[dim] = n if prefix else self.integer(1, min(n, 3))
            padding[dim] = self.pick(((n - 1, 0), (0, n - 1)) if prefix else ((0, 0), (1, 0), (1, 1)))
        neutral = self.draws.boolean()
        init = self.constant(ref.neutral(reducer, x.dtype) if neutral else self.array((), x.dtype.name))
        if neutral:
            self.set_aside.add(init)
        result = reduce_window(x, self.array_of(init), reducer, sizes, padding).astype(x.dtype)
        if x.dtype != np.bool_ and (not np.isfinite(result).all() or np.abs(result).max() > 2**20):
            return None  # padding alone gives the ends of the dtype
        attrs = {"window_dimensions": tuple(sizes), "padding": np.array(padding, np.int64)}
        return self.keep_small(
            self.program.op("stablehlo.reduce_window", [i, init], result, attrs, region=f"stablehlo.{reducer}")
        )

    def iota(self) -> int | None:
        shape = self.shape(self.integer(1, 2))
        dim = self.integer(0, len(shape) - 1)
        dtype = self.pick(("float32", "int32"))
        return self.program.op("stablehlo.iota", [], ref.iota(shape, dim, dtype), {"iota_dimension": dim}, declare=True)


Drawer.steps = [
    Drawer.unary, Drawer.transcendental, Drawer.binary, Drawer.binary, Drawer.binary, Drawer.logical,
    Drawer.compare_and_select, Drawer.convert, Drawer.transpose, Drawer.reshape, Drawer.broadcast, Drawer.reverse,
    Drawer.slice, Drawer.pad, Drawer.concatenate, Drawer.dynamic_slice, Drawer.dynamic_update_slice, Drawer.dot,
    Drawer.dot, Drawer.reduce, Drawer.reduce, Drawer.reduce_window, Drawer.iota, Drawer.accumulate,
    random_control_flow.branch, random_control_flow.loop, random_control_flow.call,
]  # fmt: skip


def drawn_program(drawer: Drawer, min_steps: int = 10, max_steps: int = 25) -> Program:
    """A program whose outputs are its last values and some others."""
    draws = drawer.draws
    for _ in range(draws.integer(1, 4)):
        drawer.argument()
    for _ in range(draws.integer(min_steps, max_steps)):
        if draws.integer(0, 4) == 0:
            drawer.constrain()
            continue
        value = draws.pick(drawer.steps)(drawer)
        if value is not None:
            drawer.keep_small(value)
    program = drawer.program
    exact = [i for i in range(len(program.values)) if i not in drawer.set_aside]
    last = exact[-4:]
    others = [draws.pick(exact) for _ in range(draws.integer(0, 2))]
    program.outputs = list(dict.fromkeys(last + others))
    return program


@st.composite
def programs(draw: st.DrawFn, mesh: Any, min_steps: int = 10, max_steps: int = 25) -> Program:
    return drawn_program(Drawer(HypothesisDraws(draw), mesh), min_steps, max_steps)
