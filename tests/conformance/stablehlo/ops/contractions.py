# SPDX-License-Identifier: Apache-2.0
"""Contractions, convolutions, decompositions and Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from shardwise.dtypes import is_float, is_inexact, is_integer, numpy_dtype
from tests.conformance.stablehlo.ops.instance import Build, Row, Table, dense_ints, ints, tensor
from tests.conformance.stablehlo.ops.values import Array, Shape, float_corners
from tests.op.dtype_values import ALL_DTYPES, COMPLEX

NUMBERS = tuple(d for d in ALL_DTYPES if d != "float8_e8m0fnu")  # its sums have no zero
INTEGERS = tuple(d for d in ALL_DTYPES if is_integer(numpy_dtype(d)))
FLOATS = tuple(d for d in NUMBERS if is_float(numpy_dtype(d)))
KINDS = (("bool",), INTEGERS, FLOATS, tuple(COMPLEX))  # each may be an operand beside the next ones, bool only of bool
LINALG = ("float32", "float64", "complex64", "complex128")
HALVES = ("float16", "bfloat16")  # XLA rounds each step of a solve, shardwise the result


def operand_dtypes(b: Build, alike: bool) -> tuple[str, str]:
    """Dtypes of two operands whose products have the dtype of the instance; both that dtype in half of the cases."""
    if b.dtype == "bool" or b.chance(0.5):
        return b.dtype, b.dtype
    kind = next(i for i, kind in enumerate(KINDS) if b.dtype in kind)
    first, other = b.pick(KINDS[kind]), b.pick([d for kind in KINDS[1 : kind + 1] for d in kind])
    if alike:
        return first, first
    return (first, other) if b.chance(0.5) else (other, first)


def operands_of(b: Build, shapes: Sequence[Shape], alike: bool = True) -> list[str]:
    """The two operands as arguments; alike where the specification gives them one dtype."""
    corners = 0.1 if b.chance(0.2) else 0
    arrays = [b.tame(shape, dtype) for shape, dtype in zip(shapes, operand_dtypes(b, alike))]
    return [b.argument(with_corners(b, x, corners)) for x in arrays]


def with_corners(b: Build, x: Array, share: float) -> Array:
    """A share of NaN, infinities and largest numbers among real floats."""
    if not share or not is_float(x.dtype):
        return x
    special = b.rng.choice(float_corners(x.dtype), x.shape)
    return np.where(b.rng.random(x.shape) < share, special, x).astype(x.dtype)


def compare_contracted(b: Build, count: int) -> None:
    if is_inexact(numpy_dtype(b.dtype)):
        b.compare_with("sum", 8 + count)


def dot_general(b: Build) -> None:
    """Dims of each operand in any order: batching, contracting, free."""
    batch, contracted = b.shape(0, 1), b.shape(0, 2)
    free = [b.shape(0, 1), b.shape(0, 2)]
    lists = []
    shapes = []
    for own in free:
        dims = [*batch, *contracted, *own]
        order = b.rng.permutation(len(dims)).tolist()
        place = {d: i for i, d in enumerate(order)}
        shapes.append(tuple(dims[d] for d in order))
        lists.append(([place[i] for i in range(len(batch))], [place[len(batch) + i] for i in range(len(contracted))]))
    (lb, lc), (rb, rc) = lists
    left = [s for i, s in enumerate(shapes[0]) if i not in lb + lc]
    right = [s for i, s in enumerate(shapes[1]) if i not in rb + rc]
    numbers = (
        f"dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = {lb}, rhs_batching_dimensions = {rb}, "
        f"lhs_contracting_dimensions = {lc}, rhs_contracting_dimensions = {rc}>"
    )
    b.op(operands_of(b, shapes, alike=False), [((*batch, *left, *right), b.dtype)], numbers)
    compare_contracted(b, math.prod(contracted))


def dot(b: Build) -> None:
    k = b.size()
    left, right = (*b.shape(0, 1), k), (k, *b.shape(0, 1))
    b.op(operands_of(b, (left, right)), [((*left[:-1], *right[1:]), b.dtype)])
    compare_contracted(b, k)


def einsum(b: Build) -> None:
    equation = b.pick(("ij,jk->ik", "bij,jik->kb", "ij,kl->il", "bij,bjk->bik", "i,i->", "i,j->ji", "ab,ab->ab"))
    sizes = {c: max(b.size(), 1) for c in "abijkl"}
    operands = equation.partition("->")[0].split(",")
    shapes = [tuple(sizes[c] for c in x) for x in operands]
    made = equation.partition("->")[2]
    b.op(operands_of(b, shapes), [(tuple(sizes[c] for c in made), b.dtype)], f'einsum_config = "{equation}"')
    compare_contracted(b, math.prod(sizes[c] for c in {*"".join(operands)} - {*made}))
    own, to = (tensor(tuple(sizes[c] for c in made), b.dtype), [tensor(shape, b.dtype) for shape in shapes])
    if is_integer(numpy_dtype(b.dtype)):  # XLA sums in the dtype of the operands
        b.tell_xla(
            *(f"%x{i} = stablehlo.convert %a{i} : ({b.type_of(f'%a{i}')}) -> {to[i]}" for i in range(2)),
            f'%r = "stablehlo.einsum"(%x0, %x1) <{{einsum_config = "{equation}"}}> : ({", ".join(to)}) -> {own}',
        )


def unary_einsum(b: Build) -> None:
    equation = b.pick(("ij->ji", "ijk->kj", "ij->i", "i->", "ijk->i"))
    sizes = {c: max(b.size(), 1) for c in "ijk"}
    given, _, made = equation.partition("->")
    x = b.argument(b.tame(tuple(sizes[c] for c in given)))
    to = tuple(sizes[c] for c in made)
    b.op([x], [(to, b.dtype)], f'einsum_config = "{equation}"')
    scalar = tensor((), b.dtype)
    one = "(1.0, 0.0)" if b.dtype.startswith("complex") else "1.0" if is_inexact(numpy_dtype(b.dtype)) else "1"
    b.tell_xla(
        f"%one = stablehlo.constant dense<{one}> : {scalar}",
        f'%r = "stablehlo.einsum"({x}, %one) <{{einsum_config = "{given},->{made}"}}> : ({b.type_of(x)}, {scalar}) -> '
        + tensor(to, b.dtype),
    )
    compare_contracted(b, math.prod(sizes[c] for c in {*given} - {*made}))


def ragged_dot(b: Build) -> None:
    """Rows in groups, each with a matrix of its own; groups of the contracted dim; groups of the batch."""
    mode, batch = b.pick(("rows", "rows", "contracted", "batch")), tuple(b.pick(((), (2,), (3,))))
    m, k, n, groups = (max(b.size(), 1) for _ in range(4))
    if mode == "batch":
        batch = (b.below(1, 5),)
    ragged = {"rows": m, "contracted": k, "batch": math.prod(batch)}[mode]
    per_batch = batch if mode != "batch" else ()
    cuts = np.sort(b.rng.integers(0, ragged + 1, (*per_batch, groups)), axis=-1)
    if mode == "batch" or b.chance(0.7):
        cuts[..., -1] = ragged  # otherwise the last rows are in no group
    counts = np.diff(cuts, axis=-1, prepend=0).astype(np.int32)
    r = len(batch)
    group = (groups,) if mode == "rows" else ()
    fields = {
        "lhs_batching_dimensions": [*range(r)], "rhs_batching_dimensions": [i + len(group) for i in range(r)],
        "lhs_contracting_dimensions": [r + 1], "rhs_contracting_dimensions": [r + len(group)],
        "lhs_ragged_dimensions": [{"rows": r, "contracted": r + 1, "batch": 0}[mode]],
        "rhs_group_dimensions": [*range(len(group))],
    }  # fmt: skip
    numbers = ", ".join(f"{name} = {dims}" for name, dims in fields.items())
    shapes = ((*batch, m, k), (*group, *batch, k, n))
    operands = operands_of(b, shapes, alike=False)
    to = (*((groups,) if mode == "contracted" else ()), *batch, m, n)
    given = [b.type_of(x) for x in operands]
    b.op(
        [*operands, b.argument(counts)], [(to, b.dtype)],
        f"ragged_dot_dimension_numbers = #chlo.ragged_dot<{numbers}>",
    )  # fmt: skip
    compare_contracted(b, k * groups)
    dims = f"batching_dims = {[*range(r)]} x {[*range(r)]}, contracting_dims = {[r + 1]} x {[r]}"
    if mode == "batch":
        b.tell_xla(f"%r = stablehlo.dot_general %a0, %a1, {dims} : ({', '.join(given)}) -> {tensor(to, b.dtype)}")
        return
    ends = np.cumsum(counts, axis=-1)
    place = np.arange(ragged)
    member = (place < ends[..., None]) & (place >= (ends - counts)[..., None])  # batch, group, ragged
    along = np.expand_dims(member, -1 if mode == "rows" else -2)
    masked_product(b, np.moveaxis(np.broadcast_to(along, (*batch, groups, m, k)), r, 0), given, to)


def masked_product(b: Build, member: Array, given: Sequence[str], to: Shape) -> None:
    """For XLA: the product of copies of the left side that have zeros outside of their group."""
    shape, dtype, r = member.shape, b.arguments[0].dtype.name, member.ndim - 3
    t, zero = tensor(shape, dtype), b.arguments[0].dtype
    bits = str(member.astype(int).tolist()).replace("1", "true").replace("0", "false")
    number = "false" if zero == np.bool_ else "(0.0, 0.0)" if dtype in COMPLEX else "0.0" if is_float(zero) else "0"
    summed = len(to) == r + 2  # over the groups
    batch = [i + 1 for i in range(r)]
    contracted = ([0, r + 2], [0, r + 1]) if summed else ([r + 2], [r])
    dims = f"batching_dims = {batch} x {batch if summed else [*range(r)]}, contracting_dims = {contracted[0]} x "
    own = to if summed else (*to[1 : r + 1], to[0], *to[r + 1 :])
    lines = [
        f"%m = stablehlo.constant dense<{bits}> : {tensor(shape, 'bool')}",
        f"%z = stablehlo.constant dense<{number}> : {t}",
        f'%x = "stablehlo.broadcast_in_dim"(%a0) <{{broadcast_dimensions = {ints(range(1, len(shape)))}}}> : '
        f"({given[0]}) -> {t}",
        f"%y = stablehlo.select %m, %x, %z : {tensor(shape, 'bool')}, {t}",
        f"%{'r' if summed or not r else 'p'} = stablehlo.dot_general %y, %a1, {dims}{contracted[1]} : "
        f"({t}, {given[1]}) -> {tensor(own, b.dtype)}",
    ]
    if not summed and r:
        order = ints([r, *range(r), r + 1, r + 2])
        lines.append(
            f'%r = "stablehlo.transpose"(%p) <{{permutation = {order}}}> : ({tensor(own, b.dtype)}) -> '
            + tensor(to, b.dtype)
        )
    b.tell_xla(*lines)


def window_of_convolution(b: Build, spatial: Shape, kernel: Shape) -> tuple[dict[str, list[object]], Shape] | None:
    rank = len(spatial)
    w: dict[str, list[object]] = {
        "strides": [b.pick((1, 1, 2, 3)) for _ in range(rank)],
        "pads": [[b.below(-1, 2), b.below(-1, 3)] for _ in range(rank)],
        "lhs": [b.pick((1, 1, 2)) for _ in range(rank)],
        "rhs": [b.pick((1, 1, 2)) for _ in range(rank)],
    }
    to = []
    for size, tap, stride, (low, high), lhs, rhs in zip(spatial, kernel, w["strides"], w["pads"], w["lhs"], w["rhs"]):  # type: ignore[misc]
        padded = ((size - 1) * lhs + 1 if size else 0) + low + high
        reach = (tap - 1) * rhs + 1 if tap else 0
        if padded < 0:
            return None
        to.append(0 if reach > padded else (padded - reach) // stride + 1)
    return w, tuple(to)


def convolution(b: Build, dynamic: bool = False) -> None:
    rank = b.pick((1, 2, 2, 3)) if dynamic else b.pick((0, 1, 2, 2, 3))
    groups, batch_groups = b.pick(((1, 1), (1, 1), (2, 1), (3, 1), (1, 2)))
    batch, into, out = batch_groups * b.below(1, 3), groups * b.below(1, 3), groups * batch_groups * b.below(1, 3)
    spatial = tuple(b.below(1, 7 if rank < 3 else 4) for _ in range(rank))
    kernel = tuple(b.below(1, 3) for _ in range(rank))
    empty = b.pick(("batch", "features", "out", "space")) if b.chance(0.12) else ""
    batch, into, out = batch * (empty != "batch"), into * (empty != "features"), out * (empty != "out")
    if rank:
        spatial = (spatial[0] * (empty != "space"), *spatial[1:])
    found = window_of_convolution(b, spatial, kernel)
    while found is None:
        found = window_of_convolution(b, spatial, kernel)
    w, to = found
    labels = [[*map(str, range(rank))] for _ in range(3)]
    dims = [
        dict(zip(("b", "f", *labels[0]), (batch, into, *spatial))),
        dict(zip(("i", "o", *labels[1]), (into // groups, out, *kernel))),
        dict(zip(("b", "f", *labels[2]), (batch // batch_groups, out, *to))),
    ]
    orders = [[list(d)[i] for i in b.rng.permutation(rank + 2)] for d in dims]
    shapes = [tuple(d[c] for c in order) for d, order in zip(dims, orders)]
    shown = "[{}]x[{}]->[{}]".format(*(", ".join(order) for order in orders))
    reversal = ", ".join("true" if not dynamic and b.chance(0.2) else "false" for _ in range(rank))
    properties = (
        f"batch_group_count = {batch_groups} : i64, feature_group_count = {groups} : i64, "
        f"dimension_numbers = #stablehlo.conv<{shown}>, window_strides = {ints(w['strides'])}, "  # type: ignore[arg-type]
        f"lhs_dilation = {ints(w['lhs'])}, rhs_dilation = {ints(w['rhs'])}"  # type: ignore[arg-type]
    )
    if rank:
        properties += f", window_reversal = array<i1: {reversal}>"
    operands = operands_of(b, shapes[:2])
    types = [b.type_of(x) for x in operands]
    pads = dense_ints(np.asarray(w["pads"]).reshape(rank, 2))
    if dynamic:
        b.line(f"%p = stablehlo.constant {pads}")
        operands, types = [*operands, "%p"], [*types, tensor((rank, 2), "int64")]
        b.tell_xla(
            f'%r = "stablehlo.convolution"(%a0, %a1) <{{{properties}, padding = {pads}}}> : '
            f"({types[0]}, {types[1]}) -> {tensor(shapes[2], b.dtype)}"
        )
    else:
        properties += f", padding = {pads}"
    b.op(operands, [(shapes[2], b.dtype)], properties, types=types)
    compare_contracted(b, into * math.prod(kernel))


def square(b: Build) -> Shape:
    n = b.below(0, 5)
    return (*b.pick(((), (), (3,), (2, 2), (0,), (1,))), n, n)


def cholesky(b: Build) -> None:
    shape = square(b)
    x = b.tame(shape).astype(np.complex128 if b.dtype.startswith("complex") else np.float64)
    a = x @ np.conj(np.swapaxes(x, -1, -2)) + (shape[-1] + 1) * np.eye(shape[-1])
    lower = b.chance(0.5)
    b.op([b.argument(a.astype(b.dtype))], [(shape, b.dtype)], f"lower = {str(lower).lower()}")
    b.compare_with("triangle", (8 if b.dtype in HALVES else 64) * (1 + shape[-1]))


def triangular_solve(b: Build) -> None:
    shape = square(b)
    n = shape[-1]
    left, lower, unit = b.chance(0.5), b.chance(0.5), b.chance(0.3)
    transposed = b.pick(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))
    a = b.tame(shape) + (n + 2) * np.eye(n)
    other = b.below(0, 4)
    rhs = (*shape[:-2], n, other) if left else (*shape[:-2], other, n)
    flags = {"left_side": left, "lower": lower, "unit_diagonal": unit}
    properties = ", ".join(f"{k} = {str(v).lower()}" for k, v in flags.items())
    operands = [b.argument(a.astype(b.dtype)), b.argument(b.tame(rhs))]
    b.op(operands, [(rhs, b.dtype)], f"{properties}, transpose_a = #stablehlo<transpose {transposed}>")
    b.compare_with("scaled", 1e4 if unit else 32 if b.dtype in HALVES else 256)


def fft(b: Build) -> None:
    """Every kind; lengths with large primes too."""
    kind = b.pick(("FFT", "IFFT") if b.dtype.startswith("complex") else ("RFFT", "IRFFT"))
    wide = b.dtype in ("float64", "complex128")
    real, complex_ = ("float64", "complex128") if wide else ("float32", "complex64")
    lengths = [b.pick((1, 2, 3, 4, 5, 8, 11, 12, 16, 30, 37)) for _ in range(b.below(1, 3))]
    batch = b.shape(0, 1)
    half = [*lengths[:-1], lengths[-1] // 2 + 1]
    given, made = {
        "FFT": ((lengths, complex_), (lengths, complex_)),
        "IFFT": ((lengths, complex_), (lengths, complex_)),
        "RFFT": ((lengths, real), (half, complex_)),
        "IRFFT": ((half, complex_), (lengths, real)),
    }[kind]
    x = b.argument(b.tame((*batch, *given[0]), given[1]))
    properties = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {ints(lengths)}"
    b.op([x], [((*batch, *made[0]), made[1])], properties)
    b.compare_with("scaled", 64 + 8 * math.log2(math.prod(lengths) + 1))


ROWS: Table = {
    "stablehlo.dot_general": Row(NUMBERS, dot_general),
    "stablehlo.dot": Row(NUMBERS, dot),
    "stablehlo.einsum": Row(NUMBERS, einsum),
    "stablehlo.unary_einsum": Row(tuple(d for d in NUMBERS if d != "bool"), unary_einsum),
    "chlo.ragged_dot": Row(NUMBERS, ragged_dot),
    "stablehlo.convolution": Row(NUMBERS, convolution),
    "stablehlo.dynamic_conv": Row(NUMBERS, lambda b: convolution(b, dynamic=True)),
    "stablehlo.cholesky": Row(LINALG + HALVES, cholesky),
    "stablehlo.triangular_solve": Row(LINALG + HALVES, triangular_solve),
    "stablehlo.fft": Row(LINALG, fft),
}
