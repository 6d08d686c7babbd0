# SPDX-License-Identifier: Apache-2.0
"""Ops that move elements, with static and with dynamic shapes, and constants."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from shardwise.dtypes import is_complex, is_float, is_integer, numpy_dtype
from tests.conformance.stablehlo.ops.instance import Build, Row, Table, ints, tensor
from tests.conformance.stablehlo.ops.values import Shape
from tests.op.dtype_values import ALL_DTYPES, bits_of, width_of

EVERY = tuple(ALL_DTYPES)
NUMBERS = tuple(d for d in ALL_DTYPES if d != "bool")
INDEX_DTYPES = ("int32", "int64", "uint8", "int8", "uint32")


def reshaped(b: Build, shape: Shape) -> Shape:
    """Another shape with as many elements."""
    count = math.prod(shape)
    if count == 0:
        return (*b.pick(((), (3,), (1, 2))), 0)
    found: list[int] = []
    while count > 1 and len(found) < 3:
        factor = b.pick([d for d in range(1, count + 1) if count % d == 0])
        found.append(factor)
        count //= factor
    return (*found, count) if count > 1 or b.chance(0.3) else tuple(found)


def reshape(b: Build) -> None:
    shape = b.shape()
    b.op([b.argument(b.wild(shape))], [(reshaped(b, shape), b.dtype)])


def dynamic_reshape(b: Build) -> None:
    shape = b.shape()
    to = reshaped(b, shape)
    x, c = b.argument(b.wild(shape)), b.int_constant(to)
    b.op([x, c], [(to, b.dtype)], types=[b.type_of(x), f"tensor<{len(to)}xi64>"])


def transpose(b: Build) -> None:
    shape = b.shape(0, 4)
    order = b.rng.permutation(len(shape)).tolist()
    b.op([b.argument(b.wild(shape))], [(tuple(shape[d] for d in order), b.dtype)], f"permutation = {ints(order)}")


def broadcast(b: Build) -> None:
    shape, sizes = b.shape(0, 2), b.shape(0, 2)
    b.op([b.argument(b.wild(shape))], [((*sizes, *shape), b.dtype)], f"broadcast_sizes = {ints(sizes)}")


def broadcast_shapes(b: Build) -> tuple[Shape, Shape, list[int]]:
    to = b.shape(0, 3)
    dims = sorted(b.rng.choice(len(to), b.below(0, len(to)), replace=False).tolist()) if to else []
    return tuple(1 if b.chance(0.3) else to[d] for d in dims), to, dims


def broadcast_in_dim(b: Build) -> None:
    shape, to, dims = broadcast_shapes(b)
    if b.chance(0.3):  # dims in any order
        order = b.rng.permutation(len(dims)).tolist()
        shape, dims = tuple(shape[i] for i in order), [dims[i] for i in order]
    b.op([b.argument(b.wild(shape))], [(to, b.dtype)], f"broadcast_dimensions = {ints(dims)}")


def dynamic_broadcast_in_dim(b: Build) -> None:
    shape, to, dims = broadcast_shapes(b)
    x, c = b.argument(b.wild(shape)), b.int_constant(to)
    types = [b.type_of(x), f"tensor<{len(to)}xi64>"]
    b.op([x, c], [(to, b.dtype)], f"broadcast_dimensions = {ints(dims)}", types=types)


def reverse(b: Build) -> None:
    shape = b.shape()
    dims = b.rng.permutation(len(shape))[: b.below(0, len(shape))].tolist()
    b.op([b.argument(b.wild(shape))], [(shape, b.dtype)], f"dimensions = {ints(dims)}")


def slice_bounds(b: Build, shape: Shape) -> tuple[list[int], list[int], list[int], Shape]:
    starts = [b.below(0, d) for d in shape]
    limits = [b.below(s, d) for s, d in zip(starts, shape)]
    steps = [b.pick((1, 1, 2, 3)) for _ in shape]
    return starts, limits, steps, tuple(-(-(e - s) // k) for s, e, k in zip(starts, limits, steps))


def slice_(b: Build) -> None:
    shape = b.shape()
    starts, limits, steps, to = slice_bounds(b, shape)
    properties = f"start_indices = {ints(starts)}, limit_indices = {ints(limits)}, strides = {ints(steps)}"
    b.op([b.argument(b.wild(shape))], [(to, b.dtype)], properties)


def real_dynamic_slice(b: Build) -> None:
    shape = b.shape(1, 3)
    *bounds, to = slice_bounds(b, shape)
    x = b.argument(b.wild(shape))
    constants = [b.int_constant(bound) for bound in bounds]
    b.op([x, *constants], [(to, b.dtype)], types=[b.type_of(x), *[f"tensor<{len(shape)}xi64>"] * 3])


def pads(b: Build) -> tuple[Shape, list[int], list[int], list[int], Shape]:
    shape = b.shape(1, 3)
    low, high = [b.below(-2, 3) for _ in shape], [b.below(-2, 3) for _ in shape]
    interior = [b.pick((0, 0, 1, 2)) for _ in shape]
    to = [d + lo + hi + max(d - 1, 0) * i for d, lo, hi, i in zip(shape, low, high, interior)]
    for d, size in enumerate(to):
        if size < 0:
            high[d], to[d] = high[d] - size, 0
    return shape, low, high, interior, tuple(to)


def pad(b: Build) -> None:
    shape, low, high, interior, to = pads(b)
    properties = (
        f"edge_padding_low = {ints(low)}, edge_padding_high = {ints(high)}, interior_padding = {ints(interior)}"
    )
    b.op([b.argument(b.wild(shape)), b.argument(b.wild(()))], [(to, b.dtype)], properties)


def dynamic_pad(b: Build) -> None:
    shape, *lists, to = pads(b)
    operands = [b.argument(b.wild(shape)), b.argument(b.wild(()))]
    types = [b.type_of(x) for x in operands] + [f"tensor<{len(shape)}xi64>"] * 3
    b.op([*operands, *(b.int_constant(x) for x in lists)], [(to, b.dtype)], types=types)


def concatenate(b: Build) -> None:
    shape = b.shape(1, 3)
    dim = b.below(0, len(shape) - 1)
    shapes = [(*shape[:dim], b.size(), *shape[dim + 1 :]) for _ in range(b.below(1, 3))]
    to = (*shape[:dim], sum(s[dim] for s in shapes), *shape[dim + 1 :])
    b.op([b.argument(b.wild(s)) for s in shapes], [(to, b.dtype)], f"dimension = {dim} : i64")


def starts(b: Build, shape: Shape, reach: int = 3) -> list[str]:
    """Scalar start indices, out of bounds too."""
    dtype = b.pick(INDEX_DTYPES)
    low = 0 if dtype.startswith("u") else -reach
    return [b.argument(np.array(b.below(low, d + reach), numpy_dtype(dtype))) for d in shape]


def dynamic_slice(b: Build) -> None:
    shape = b.shape()
    sizes = tuple(b.below(0, d) for d in shape)
    x = b.argument(b.wild(shape))
    b.op([x, *starts(b, shape)], [(sizes, b.dtype)], f"slice_sizes = {ints(sizes)}")


def dynamic_update_slice(b: Build) -> None:
    shape = b.shape()
    sizes = tuple(b.below(0, d) for d in shape)
    operands = [b.argument(b.wild(shape)), b.argument(b.wild(sizes))]
    b.op([*operands, *starts(b, shape)], [(shape, b.dtype)])


def iota(b: Build) -> None:
    shape = b.shape(1, 3)
    b.op([], [(shape, b.dtype)], f"iota_dimension = {b.below(0, len(shape) - 1)} : i64")


def dynamic_iota(b: Build) -> None:
    shape = b.shape(1, 3)
    c = b.int_constant(shape)
    dim = f"iota_dimension = {b.below(0, len(shape) - 1)} : i64"
    b.op([c], [(shape, b.dtype)], dim, types=[f"tensor<{len(shape)}xi64>"])


def dense(b: Build, shape: Shape) -> str:
    """Elements as raw bytes, or one as a splat in hexadecimal."""
    t = tensor(shape, b.dtype)
    array = b.wild(shape)
    if array.size == 0:
        return f"dense<> : {t}"
    narrow = width_of(b.dtype) < 8
    if array.size == 1 or narrow or b.chance(0.3):
        array = np.full(shape, array.reshape(-1)[0])
        return f"dense<{scalar(array.reshape(-1)[0], b.dtype)}> : {t}"
    return f'dense<"0x{bits_of(array).tobytes().hex().upper()}"> : {t}'


def scalar(value: np.generic, dtype: str) -> str:
    to = numpy_dtype(dtype)
    if dtype == "bool":
        return "true" if value else "false"
    if is_complex(to):
        part = "float32" if dtype == "complex64" else "float64"
        return f"({scalar(value.real, part)}, {scalar(value.imag, part)})"
    if is_integer(to):
        return str(int(value))
    if is_float(to) and width_of(dtype) < 8:  # without NaN and infinities
        return repr(float(value))
    if is_float(to):
        digits = -(-width_of(dtype) // 4)
        return f"0x{np.asarray(value).tobytes()[::-1].hex().upper()[-digits:]}"
    raise AssertionError(dtype)


def constant(b: Build) -> None:
    shape = b.shape()
    b.op([], [(shape, b.dtype)], f"value = {dense(b, shape)}")


def dimension_size(b: Build) -> None:
    shape = b.shape(1, 3)
    dim = f"dimension = {b.below(0, len(shape) - 1)} : i64"
    b.op([b.argument(b.wild(shape))], [((), "int32")], dim)


def set_dimension_size(b: Build) -> None:
    """A constant size that is the whole dim: any smaller one makes a dynamic shape."""
    shape = b.shape(1, 3)
    dim = b.below(0, len(shape) - 1)
    x = b.argument(b.wild(shape))
    b.line(f"%c = stablehlo.constant dense<{shape[dim]}> : tensor<i32>")
    b.op([x, "%c"], [(shape, b.dtype)], f"dimension = {dim} : i64", types=[b.type_of(x), "tensor<i32>"])


def barrier(b: Build) -> None:
    shapes = [b.shape() for _ in range(b.below(1, 3))]
    b.op([b.argument(b.wild(s)) for s in shapes], [(s, b.dtype) for s in shapes])


MAKERS: dict[str, Callable[[Build], None]] = {
    "reshape": reshape, "dynamic_reshape": dynamic_reshape, "transpose": transpose, "broadcast": broadcast,
    "broadcast_in_dim": broadcast_in_dim, "dynamic_broadcast_in_dim": dynamic_broadcast_in_dim, "reverse": reverse,
    "slice": slice_, "real_dynamic_slice": real_dynamic_slice, "pad": pad, "dynamic_pad": dynamic_pad,
    "concatenate": concatenate, "dynamic_slice": dynamic_slice, "dynamic_update_slice": dynamic_update_slice,
    "constant": constant, "get_dimension_size": dimension_size, "set_dimension_size": set_dimension_size,
    "optimization_barrier": barrier,
}  # fmt: skip

ROWS: Table = {
    **{f"stablehlo.{name}": Row(EVERY, make) for name, make in MAKERS.items()},
    "stablehlo.iota": Row(NUMBERS, iota),
    "stablehlo.dynamic_iota": Row(NUMBERS, dynamic_iota),
    "chlo.constant": Row(EVERY, partial(constant)),
}
