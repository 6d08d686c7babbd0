# SPDX-License-Identifier: Apache-2.0
"""Generators of elementwise ops, of layout and of slices."""

from __future__ import annotations

from collections.abc import Sequence

from tests.conformance.shardy.rule_instances.instance import (
    ALL_TYPES,
    ANY_FLOAT,
    FLOAT_TYPES,
    NUMBER_TYPES,
    Generator,
    Instance,
    Rng,
    Shape,
    dim,
    dims,
    ints,
    tensor,
)

# ---- elementwise ----------------------------------------------------------------------------------------------------

SMOOTH = "cbrt cosine exponential exponential_minus_one log log_plus_one logistic rsqrt sine sqrt tan tanh"
ROUNDED = "ceil floor round_nearest_afz round_nearest_even"
CHLO_SMOOTH = "acos acosh asin asinh atan atanh bessel_i1e conj cosh sinh square tan"
CHLO_REAL = "digamma erf erf_inv erfc lgamma"
BROADCAST = (
    "add atan2 divide maximum minimum multiply next_after power remainder shift_left shift_right_arithmetic "
    "shift_right_logical subtract"
)


def compare(rng: Rng) -> Instance:
    shape, dtype = dims(rng), rng.choice(ALL_TYPES)
    direction = rng.choice(["EQ", "NE", "LT", "LE", "GT", "GE"])
    kind = "FLOAT" if dtype in ANY_FLOAT else "UNSIGNED" if dtype in ("ui8", "i1") else "SIGNED"
    attributes = f"comparison_direction = #stablehlo<comparison_direction {direction}>"
    if rng.random() < 0.5:
        attributes += f", compare_type = #stablehlo<comparison_type {kind}>"
    return Instance("stablehlo.compare", (tensor(shape, dtype),) * 2, (tensor(shape, "i1"),), attributes)


def select(rng: Rng) -> Instance:
    shape, dtype = dims(rng), rng.choice(ALL_TYPES)
    predicate = tensor(shape if rng.random() < 0.7 else (), "i1")
    return Instance(
        "stablehlo.select", (predicate, tensor(shape, dtype), tensor(shape, dtype)), (tensor(shape, dtype),)
    )


def clamp(rng: Rng) -> Instance:
    shape, dtype = dims(rng), rng.choice(FLOAT_TYPES)
    low, high = (tensor(shape if rng.random() < 0.5 else (), dtype) for _ in range(2))
    return Instance("stablehlo.clamp", (low, tensor(shape, dtype), high), (tensor(shape, dtype),))


def convert(rng: Rng) -> Instance:
    shape = dims(rng)
    return Instance(
        "stablehlo.convert", (tensor(shape, rng.choice(ALL_TYPES)),), (tensor(shape, rng.choice(ALL_TYPES)),)
    )


def bitcast_convert(rng: Rng) -> Instance:
    shape = dims(rng)
    same = [("f32", "i32"), ("i4", "ui4"), ("f64", "i64"), ("bf16", "ui16"), ("i1", "i1"), ("f8E4M3FN", "i8")]
    split = [("f32", "ui8", 4), ("i64", "i32", 2), ("f64", "bf16", 4), ("i8", "i4", 2)]
    if rng.random() < 0.4:
        a, b = rng.choice(same)
        return Instance("stablehlo.bitcast_convert", (tensor(shape, a),), (tensor(shape, b),))
    wide, narrow, ratio = rng.choice(split)
    types = tensor(shape, wide), tensor((*shape, ratio), narrow)
    a, b = types if rng.random() < 0.5 else types[::-1]
    return Instance("stablehlo.bitcast_convert", (a,), (b,))


def reduce_precision(rng: Rng) -> Instance:
    t = tensor(dims(rng), rng.choice(FLOAT_TYPES))
    return Instance("stablehlo.reduce_precision", (t,), (t,), "exponent_bits = 5 : i32, mantissa_bits = 3 : i32")


def complex_abs(rng: Rng) -> Instance:
    shape = dims(rng)
    a, b = rng.choice([("complex<f32>", "f32"), ("f32", "f32"), ("i32", "i32"), ("i4", "i4"), ("complex<f64>", "f64")])
    return Instance("stablehlo.abs", (tensor(shape, a),), (tensor(shape, b),))


def part(op: str) -> Generator:
    def draw(rng: Rng) -> Instance:
        shape = dims(rng)
        a, b = rng.choice([("complex<f32>", "f32"), ("complex<f64>", "f64"), ("bf16", "bf16")])
        return Instance(op, (tensor(shape, a),), (tensor(shape, b),))

    return draw


def make_complex(op: str) -> Generator:
    def draw(rng: Rng) -> Instance:
        shape, dtype = dims(rng), rng.choice(["f32", "f64"])
        return Instance(op, (tensor(shape, dtype),) * 2, (tensor(shape, f"complex<{dtype}>"),))

    return draw


def broadcasting(op: str, dtypes: Sequence[str], attributes: str = "", result: str | None = None) -> Generator:
    def draw(rng: Rng) -> Instance:
        shape, dtype = dims(rng), rng.choice(dtypes)
        small = shape[rng.randint(0, len(shape)) :]
        operands = [tensor(shape, dtype), tensor(small, dtype)]
        rng.shuffle(operands)
        if op.endswith("select"):
            operands.insert(0, tensor(shape if rng.random() < 0.5 else (), "i1"))
        return Instance(op, tuple(operands), (tensor(shape, result or dtype),), attributes)

    return draw


def constant_like(rng: Rng) -> Instance:
    t = tensor(dims(rng))
    return Instance("chlo.constant_like", (t,), (t,), "value = 1.500000e+00 : f32")


def constant(op: str) -> Generator:
    def draw(rng: Rng) -> Instance:
        value, dtype = rng.choice(
            [("1.500000e+00", "f32"), ("3", "i32"), ("(1.0,-2.0)", "complex<f32>"), ("true", "i1"), ("-3", "i4"),
             ("15", "ui4"), ("0x7F", "f8E4M3FN"), ("-1.5", "f4E2M1FN"), ("0.25", "f8E8M0FNU"), ("1", "i2")]
        )  # fmt: skip
        t = tensor(dims(rng, smallest=1), dtype)
        return Instance(op, (), (t,), f"value = dense<{value}> : {t}")

    return draw


def iota(rng: Rng) -> Instance:
    shape = dims(rng, 1)
    attributes = f"iota_dimension = {rng.randrange(len(shape))} : i64"
    return Instance("stablehlo.iota", (), (tensor(shape, rng.choice(NUMBER_TYPES)),), attributes)


# ---- layout ---------------------------------------------------------------------------------------------------------


def transpose(rng: Rng) -> Instance:
    shape, dtype = dims(rng), rng.choice(ALL_TYPES)
    order = rng.sample(range(len(shape)), len(shape))
    result = tuple(shape[i] for i in order)
    return Instance(
        "stablehlo.transpose", (tensor(shape, dtype),), (tensor(result, dtype),), f"permutation = {ints(order)}"
    )


def split_size(rng: Rng, size: int) -> Shape:
    parts = []
    while size > 1:
        part_size = rng.choice([d for d in range(1, size + 1) if size % d == 0])
        parts.append(part_size)
        size //= part_size
    if rng.random() < 0.4:
        parts.insert(rng.randint(0, len(parts)), 1)
    return tuple(parts)


def reshape(rng: Rng) -> Instance:
    size = rng.choice([1, 4, 6, 8, 12, 24, 36, 48, 60, 64, 7])
    shapes = split_size(rng, size), split_size(rng, size)
    if rng.random() < 0.1:
        shapes = (0, *shapes[0]), (*shapes[1], 0, 2)
    return Instance("stablehlo.reshape", (tensor(shapes[0]),), (tensor(shapes[1]),))


def broadcast_in_dim(rng: Rng) -> Instance:
    result = dims(rng, 0, 5)
    where = rng.sample(range(len(result)), rng.randint(0, len(result)))
    operand = tuple(1 if rng.random() < 0.3 else result[d] for d in where)
    return Instance(
        "stablehlo.broadcast_in_dim", (tensor(operand),), (tensor(result),), f"broadcast_dimensions = {ints(where)}"
    )


def broadcast(rng: Rng) -> Instance:
    shape, sizes = dims(rng, 0, 3), dims(rng, 0, 2)
    return Instance(
        "stablehlo.broadcast", (tensor(shape),), (tensor(sizes + shape),), f"broadcast_sizes = {ints(sizes)}"
    )


def reverse(rng: Rng) -> Instance:
    shape = dims(rng)
    which = rng.sample(range(len(shape)), rng.randint(0, len(shape)))
    return Instance("stablehlo.reverse", (tensor(shape),), (tensor(shape),), f"dimensions = {ints(which)}")


# ---- slicing --------------------------------------------------------------------------------------------------------


def slice_op(rng: Rng) -> Instance:
    shape = dims(rng)
    start, limit, stride = [], [], []
    for size in shape:
        low = 0 if rng.random() < 0.5 else rng.randint(0, size)
        start.append(low)
        limit.append(size if rng.random() < 0.6 else rng.randint(low, size))
        stride.append(rng.choice([1, 1, 1, 2]))
    result = [-(-(hi - lo) // by) for lo, hi, by in zip(start, limit, stride)]
    attributes = f"start_indices = {ints(start)}, limit_indices = {ints(limit)}, strides = {ints(stride)}"
    return Instance("stablehlo.slice", (tensor(shape),), (tensor(result),), attributes)


def pad(rng: Rng) -> Instance:
    shape = dims(rng)
    low, high, interior, result = [], [], [], []
    for size in shape:
        amounts = (0, 0, 0) if rng.random() < 0.5 else (rng.randint(0, 2), rng.randint(0, 2), rng.choice([0, 0, 1]))
        if size > 0 and rng.random() < 0.2:
            amounts = (1, -1, 0)
        low.append(amounts[0])
        high.append(amounts[1])
        interior.append(amounts[2])
        result.append(size + amounts[0] + amounts[1] + max(size - 1, 0) * amounts[2])
    attributes = (
        f"edge_padding_low = {ints(low)}, edge_padding_high = {ints(high)}, interior_padding = {ints(interior)}"
    )
    return Instance("stablehlo.pad", (tensor(shape), tensor(())), (tensor(result),), attributes)


def concatenate(rng: Rng) -> Instance:
    shape = dims(rng, 1)
    joined = rng.randrange(len(shape))
    shapes = [
        tuple(dim(rng) if d == joined else size for d, size in enumerate(shape)) for _ in range(rng.randint(1, 3))
    ]
    total = sum(s[joined] for s in shapes)
    result = tuple(total if d == joined else size for d, size in enumerate(shape))
    return Instance(
        "stablehlo.concatenate", tuple(map(tensor, shapes)), (tensor(result),), f"dimension = {joined} : i64"
    )


def smaller(rng: Rng, shape: Shape) -> Shape:
    return tuple(size if rng.random() < 0.5 else rng.randint(min(size, 1), size) for size in shape)


def dynamic_slice(rng: Rng) -> Instance:
    shape = dims(rng)
    sizes = smaller(rng, shape)
    starts = (tensor((), "i32"),) * len(shape)
    return Instance(
        "stablehlo.dynamic_slice", (tensor(shape), *starts), (tensor(sizes),), f"slice_sizes = {ints(sizes)}"
    )


def dynamic_update_slice(rng: Rng) -> Instance:
    shape = dims(rng)
    starts = (tensor((), "i32"),) * len(shape)
    return Instance(
        "stablehlo.dynamic_update_slice", (tensor(shape), tensor(smaller(rng, shape)), *starts), (tensor(shape),)
    )
