# SPDX-License-Identifier: Apache-2.0
"""Steps of random modules: elementwise ops, layout, slicing, dots, reductions, indexing."""

from __future__ import annotations

import math

from tests.conformance.shardy.random_modules.drawing import Drawer
from tests.conformance.shardy.random_modules.texts import Shape, Value

FLOAT_UNARY = (
    "negate", "abs", "sign", "sine", "cosine", "tan", "tanh", "exponential", "exponential_minus_one", "log",
    "log_plus_one", "logistic", "sqrt", "rsqrt", "cbrt", "ceil", "floor", "round_nearest_afz",
    "round_nearest_even",
)  # fmt: skip
BINARY = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "remainder", "power"]
INTEGER_BINARY = ["and", "or", "xor", "shift_left", "shift_right_arithmetic", "shift_right_logical"]
REDUCERS = ["add", "maximum", "minimum", "multiply"]


def i64(values: object) -> str:
    items = [str(int(v)) for v in values]  # type: ignore[attr-defined]
    return f"array<i64: {', '.join(items)}>" if items else "array<i64>"


def matrix(rows: list[tuple[int, int]]) -> str:
    if not rows:
        return "dense<> : tensor<0x2xi64>"
    return f"dense<[{', '.join(f'[{a}, {b}]' for a, b in rows)}]> : tensor<{len(rows)}x2xi64>"


def unary(d: Drawer) -> bool:
    x = d.array(0, ("f32", "i32", "i1", "f32"))
    if x.dtype == "f32":
        name = d.choose((*FLOAT_UNARY, "is_finite", "reduce_precision"))
        if name == "is_finite":
            d.op("stablehlo.is_finite", [x], (x.shape, "i1"))
        elif name == "reduce_precision":
            d.op(
                "stablehlo.reduce_precision", [x], (x.shape, "f32"), "exponent_bits = 5 : i32, mantissa_bits = 10 : i32"
            )
        else:
            d.op(f"stablehlo.{name}", [x], (x.shape, "f32"))
    else:
        names = ("not", "popcnt", "count_leading_zeros", "negate", "abs", "sign") if x.dtype == "i32" else ("not",)
        d.op(f"stablehlo.{d.choose(names)}", [x], (x.shape, x.dtype))
    return True


def binary(d: Drawer) -> bool:
    x = d.array(0, ("f32", "i32", "f32", "i1"))
    y = d.like(x.shape, x.dtype)
    names = {"f32": [*BINARY, "atan2"], "i32": [*BINARY, *INTEGER_BINARY], "i1": ["and", "or", "xor"]}[x.dtype]
    d.op(f"stablehlo.{d.choose(names)}", d.rng.sample([x, y], 2), (x.shape, x.dtype))
    return True


def compare(d: Drawer) -> bool:
    x = d.array(0)
    direction = d.choose(("EQ", "NE", "LT", "LE", "GT", "GE"))
    attrs = f"comparison_direction = #stablehlo<comparison_direction {direction}>"
    d.op("stablehlo.compare", [x, d.like(x.shape, x.dtype)], (x.shape, "i1"), attrs)
    return True


def select(d: Drawer) -> bool:
    x = d.array(0, ("f32", "i32", "i1"))
    which = d.like(x.shape if d.maybe(0.7) else (), "i1")
    d.op("stablehlo.select", [which, x, d.like(x.shape, x.dtype)], (x.shape, x.dtype))
    return True


def clamp(d: Drawer) -> bool:
    x = d.array(0)
    low, high = (d.like(x.shape if d.maybe(0.4) else (), x.dtype) for _ in range(2))
    d.op("stablehlo.clamp", [low, x, high], (x.shape, x.dtype))
    return True


def convert(d: Drawer) -> bool:
    x = d.array(0, ("f32", "i32", "i1"))
    d.op("stablehlo.convert", [x], (x.shape, d.choose(("f32", "i32", "i1"))))
    return True


def bitcast(d: Drawer) -> bool:
    x = d.array(0)
    d.op("stablehlo.bitcast_convert", [x], (x.shape, "i32" if x.dtype == "f32" else "f32"))
    return True


def bitcast_resized(d: Drawer) -> bool:
    x = d.array(0, high=3)
    narrow = d.op("stablehlo.bitcast_convert", [x], ((*x.shape, 2), "i16"))
    if d.maybe(0.7):
        same = d.op("stablehlo.add", [narrow, narrow], (narrow.shape, "i16"))
        d.op("stablehlo.bitcast_convert", [same], (x.shape, x.dtype))
    return True


def constraint(d: Drawer) -> bool:
    x = d.array(0, ("f32", "i32", "i1"))
    closed = True if d.maybe(0.4) else None
    d.feature("constraints")
    attrs = f"sharding = #sdy.sharding{d.sharding(x.ndim, closed)}"
    d.op("sdy.sharding_constraint", [x], (x.shape, x.dtype), attrs)
    return True


# ---- layout ---------------------------------------------------------------------------------------------------------


def transpose(d: Drawer) -> bool:
    x = d.array(2, ("f32", "i32", "i1"))
    order = d.rng.sample(range(x.ndim), x.ndim)
    d.op("stablehlo.transpose", [x], (tuple(x.shape[i] for i in order), x.dtype), f"permutation = {i64(order)}")
    return True


def factorings(d: Drawer, n: int, pieces: int) -> list[int]:
    shape = []
    for _ in range(pieces - 1):
        shape.append(d.choose([k for k in range(1, n + 1) if n % k == 0]) if n <= 4096 else 1)
        n //= shape[-1]
    return d.rng.sample([*shape, n], pieces)


def reshape(d: Drawer) -> bool:
    """Splits and joins neighbours, or any shape of as many elements."""
    x = d.array(0, ("f32", "i32", "i1"))
    shape: list[int] = []
    if d.maybe(0.75):
        i = 0
        while i < x.ndim:
            joined = x.shape[i]
            while i + 1 < x.ndim and d.maybe(0.35):
                i += 1
                joined *= x.shape[i]
            shape += factorings(d, joined, d.choose((1, 1, 2)))
            i += 1
    else:
        shape = factorings(d, math.prod(x.shape), d.rng.randint(1, 3))
    if d.maybe(0.15):
        shape.insert(d.rng.randint(0, len(shape)), 1)
    d.op(
        "stablehlo.reshape", [x], (tuple(shape[:5]) if math.prod(shape[:5]) == math.prod(x.shape) else x.shape, x.dtype)
    )
    return True


def broadcast(d: Drawer) -> bool:
    x = d.array(0, ("f32", "i32", "i1"), high=3)
    ndim = d.rng.randint(max(x.ndim, 1), 4)
    dims = d.rng.sample(range(ndim), x.ndim)
    if d.maybe(0.7):
        dims.sort()
    shape = list(d.shape(ndim))
    for k, i in enumerate(dims):
        if x.shape[k] != 1 or d.maybe(0.3):
            shape[i] = x.shape[k]
    d.op("stablehlo.broadcast_in_dim", [x], (tuple(shape), x.dtype), f"broadcast_dimensions = {i64(dims)}")
    return True


def reverse(d: Drawer) -> bool:
    x = d.array(1)
    d.op("stablehlo.reverse", [x], (x.shape, x.dtype), f"dimensions = {i64(d.subset(x.ndim, 1))}")
    return True


# ---- slicing --------------------------------------------------------------------------------------------------------


def slice_(d: Drawer) -> bool:
    x = d.array(1)
    cut = d.subset(x.ndim, 1)
    start, limit, strides = [0] * x.ndim, list(x.shape), [1] * x.ndim
    for i in cut:
        start[i] = d.rng.randint(0, x.shape[i] - 1)
        limit[i] = d.rng.randint(start[i] + 1, x.shape[i])
        strides[i] = d.choose((1, 1, 2))
    shape = tuple(-(-(b - a) // s) for a, b, s in zip(start, limit, strides))
    attrs = f"start_indices = {i64(start)}, limit_indices = {i64(limit)}, strides = {i64(strides)}"
    d.op("stablehlo.slice", [x], (shape, x.dtype), attrs)
    return True


def pad(d: Drawer) -> bool:
    x = d.array(1)
    low, high, interior = [0] * x.ndim, [0] * x.ndim, [0] * x.ndim
    for i in d.subset(x.ndim, 1):
        low[i], high[i] = d.rng.randint(-1 if x.shape[i] > 2 else 0, 4), d.rng.randint(-1 if x.shape[i] > 2 else 0, 4)
        interior[i] = d.choose((0, 0, 0, 1))
    shape = tuple(n + a + b + (n - 1) * c for n, a, b, c in zip(x.shape, low, high, interior))
    attrs = f"edge_padding_low = {i64(low)}, edge_padding_high = {i64(high)}, interior_padding = {i64(interior)}"
    d.op("stablehlo.pad", [x, d.like((), x.dtype)], (shape, x.dtype), attrs)
    return True


def concatenate(d: Drawer) -> bool:
    x = d.array(1)
    dim = d.rng.randrange(x.ndim)
    operands = [x]
    for _ in range(d.rng.randint(1, 2)):
        size = x.shape[dim] if d.maybe(0.6) else d.dim()
        operands.append(d.like((*x.shape[:dim], size, *x.shape[dim + 1 :]), x.dtype))
    d.rng.shuffle(operands)
    total = sum(v.shape[dim] for v in operands)
    shape = (*x.shape[:dim], total, *x.shape[dim + 1 :])
    d.op("stablehlo.concatenate", operands, (shape, x.dtype), f"dimension = {dim} : i64")
    return True


def concatenate_slices(d: Drawer) -> bool:
    """Of slices of one value, which Shardy treats in another way."""
    x = d.array(1)
    dim = d.rng.randrange(x.ndim)
    if x.shape[dim] < 2:
        return False
    cut = d.rng.randint(1, x.shape[dim] - 1)
    pieces = []
    for a, b in ((cut, x.shape[dim]), (0, cut)):
        start, limit = [0] * x.ndim, list(x.shape)
        start[dim], limit[dim] = a, b
        shape = (*x.shape[:dim], b - a, *x.shape[dim + 1 :])
        attrs = f"start_indices = {i64(start)}, limit_indices = {i64(limit)}, strides = {i64([1] * x.ndim)}"
        pieces.append(d.op("stablehlo.slice", [x], (shape, x.dtype), attrs))
    d.op("stablehlo.concatenate", pieces, (x.shape, x.dtype), f"dimension = {dim} : i64")
    return True


def starts(d: Drawer, count: int) -> list[Value]:
    if d.maybe(0.4):
        return [d.constant((), "i32") for _ in range(count)]
    index = d.like((), "i32")
    return [index if d.maybe(0.6) else d.constant((), "i32") for _ in range(count)]


def sub_shape(d: Drawer, shape: Shape) -> Shape:
    return tuple(n if d.maybe(0.5) else d.rng.randint(1, n) for n in shape)


def dynamic_slice(d: Drawer) -> bool:
    x = d.array(1)
    shape = sub_shape(d, x.shape)
    d.op("stablehlo.dynamic_slice", [x, *starts(d, x.ndim)], (shape, x.dtype), f"slice_sizes = {i64(shape)}")
    return True


def dynamic_update_slice(d: Drawer) -> bool:
    x = d.array(1)
    update = d.like(sub_shape(d, x.shape), x.dtype)
    d.op("stablehlo.dynamic_update_slice", [x, update, *starts(d, x.ndim)], (x.shape, x.dtype))
    return True


# ---- dots and reductions --------------------------------------------------------------------------------------------


def dot_general(d: Drawer) -> bool:
    x = d.array(1, ("f32",))
    order = d.rng.sample(range(x.ndim), x.ndim)
    contracting = order[: d.choose((0, 1, 1, 1, 2))] if x.ndim > 1 else order[:1]
    batch = order[len(contracting) :][: d.choose((0, 0, 1))]
    wanted = [("c", k) for k in range(len(contracting))] + [("b", k) for k in range(len(batch))]
    wanted += [("f", 0)] * d.choose((0, 1, 1, 2))
    if len(wanted) > 4:
        wanted = wanted[:4]
    d.rng.shuffle(wanted)
    sizes = {"c": [x.shape[i] for i in contracting], "b": [x.shape[i] for i in batch]}
    y = d.like(tuple(d.dim() if kind == "f" else sizes[kind][k] for kind, k in wanted), "f32")
    places = {mark: i for i, mark in enumerate(wanted) if mark[0] != "f"}
    if len(places) != len(contracting) + len(batch):
        return False
    other_contracting = [places["c", k] for k in range(len(contracting))]
    other_batch = [places["b", k] for k in range(len(batch))]
    shape = [x.shape[i] for i in batch]
    shape += [n for i, n in enumerate(x.shape) if i not in batch and i not in contracting]
    shape += [n for i, n in enumerate(y.shape) if i not in other_batch and i not in other_contracting]
    if len(shape) > 5:
        return False
    fields = {
        "lhs_batching_dimensions": batch,
        "rhs_batching_dimensions": other_batch,
        "lhs_contracting_dimensions": contracting,
        "rhs_contracting_dimensions": other_contracting,
    }
    inner = ", ".join(f"{k} = {v}" for k, v in fields.items() if v)
    d.op("stablehlo.dot_general", [x, y], (tuple(shape), "f32"), f"dot_dimension_numbers = #stablehlo.dot<{inner}>")
    return True


def reduce_(d: Drawer) -> bool:
    first = d.array(1, ("f32", "i32", "i1"))
    operands = [first]
    if d.maybe(0.2):
        operands.append(d.like(first.shape, "i1" if first.dtype == "i1" else d.choose(("f32", "i32"))))
    dims = d.subset(first.ndim, 1)
    shape = tuple(n for i, n in enumerate(first.shape) if i not in dims)
    inits = [d.like((), v.dtype) for v in operands]
    names = ("and", "or") if first.dtype == "i1" else REDUCERS
    body = d.body(f"stablehlo.{d.choose(names)}", [v.dtype for v in operands])
    types = [(shape, v.dtype) for v in operands]
    d.ops("stablehlo.reduce", [*operands, *inits], types, f"dimensions = {i64(dims)}", [body])
    return True


# ---- indexing -------------------------------------------------------------------------------------------------------


class Places:
    """Which dims of an array the indices address, for gather and scatter."""

    def __init__(self, d: Drawer, x: Value) -> None:
        order = d.rng.sample(range(x.ndim), x.ndim)
        self.batching = sorted(order[: d.choose((0, 0, 0, 1))]) if x.ndim > 1 else []
        rest = [i for i in order if i not in self.batching]
        self.indexed = rest[: d.rng.randint(1, min(2, len(rest)))]
        self.collapsed = sorted(i for i in self.indexed if d.maybe(0.6))
        self.window = [i for i in range(x.ndim) if i not in self.batching and i not in self.collapsed]
        self.sizes = [1 if i in self.collapsed or i in self.batching else n for i, n in enumerate(x.shape)]
        for i in self.window:
            if i in self.indexed and d.maybe(0.6):
                self.sizes[i] = d.rng.randint(1, x.shape[i])
        batch = list(d.shape(d.choose((1, 1, 2, 0) if not self.batching else (0, 1))))
        self.index_batching = []
        for i in self.batching:
            self.index_batching.append(len(batch))
            batch.append(x.shape[i])
        self.batch = batch
        self.vector_dim = d.rng.randint(0, len(batch)) if len(self.indexed) > 1 or d.maybe(0.7) else len(batch)
        indices = list(batch)
        if len(self.indexed) > 1 or self.vector_dim < len(batch) or d.maybe(0.7):
            indices.insert(self.vector_dim, len(self.indexed))
        self.index_batching = [i + (i >= self.vector_dim and len(indices) > len(batch)) for i in self.index_batching]
        self.indices = d.like(tuple(indices), "i32")
        self.offsets = sorted(d.rng.sample(range(len(batch) + len(self.window)), len(self.window)))
        windows = iter([self.sizes[i] for i in self.window])
        batches = iter(batch)
        total = len(batch) + len(self.window)
        self.result = tuple(next(windows) if i in self.offsets else next(batches) for i in range(total))


def gather(d: Drawer) -> bool:
    x = d.array(1, high=3)
    p = Places(d, x)
    fields = {
        "offset_dims": p.offsets,
        "collapsed_slice_dims": p.collapsed,
        "operand_batching_dims": p.batching,
        "start_indices_batching_dims": p.index_batching,
        "start_index_map": p.indexed,
    }
    inner = ", ".join(f"{k} = {v}" for k, v in fields.items() if v)
    inner += f"{', ' if inner else ''}index_vector_dim = {p.vector_dim}"
    attrs = f"dimension_numbers = #stablehlo.gather<{inner}>, slice_sizes = {i64(p.sizes)}, indices_are_sorted = false"
    d.op("stablehlo.gather", [x, p.indices], (p.result, x.dtype), attrs)
    return True


def scatter(d: Drawer) -> bool:
    x = d.array(1, high=3)
    p = Places(d, x)
    fields = {
        "update_window_dims": p.offsets,
        "inserted_window_dims": p.collapsed,
        "input_batching_dims": p.batching,
        "scatter_indices_batching_dims": p.index_batching,
        "scatter_dims_to_operand_dims": p.indexed,
    }
    inner = ", ".join(f"{k} = {v}" for k, v in fields.items() if v)
    inner += f"{', ' if inner else ''}index_vector_dim = {p.vector_dim}"
    attrs = (
        f"scatter_dimension_numbers = #stablehlo.scatter<{inner}>, indices_are_sorted = false, unique_indices = false"
    )
    body = d.body(f"stablehlo.{d.choose(('add', 'add', 'maximum', 'multiply', 'subtract'))}", [x.dtype])
    d.op("stablehlo.scatter", [x, p.indices, d.like(p.result, x.dtype)], (x.shape, x.dtype), attrs, blocks=[body])
    return True


STEPS = [
    (unary, 2.5), (binary, 5.0), (compare, 0.8), (select, 0.8), (clamp, 0.5), (convert, 0.8), (bitcast, 0.3),
    (constraint, 2.5), (transpose, 1.2), (reshape, 2.5), (broadcast, 1.5), (reverse, 0.4), (slice_, 0.6), (pad, 0.5),
    (concatenate, 0.8), (concatenate_slices, 0.2), (dynamic_slice, 0.6), (dynamic_update_slice, 0.6),
    (dot_general, 4.0), (reduce_, 2.0), (gather, 0.8), (scatter, 0.8),
]  # fmt: skip
