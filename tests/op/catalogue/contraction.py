# SPDX-License-Identifier: Apache-2.0
"""Products, einsums, ragged dots and convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from shardwise import _core
from shardwise.dtypes import is_float, is_inexact, is_integer, numpy_dtype
from tests.op import references as ref
from tests.op.case import ALL, FLOATS, Application, OpCase
from tests.op.catalogue.instance import Build, Row, Table, dense_ints, ints, tensor
from tests.op.catalogue.values import float_corners
from tests.op.convolution_references import Pads, convolution
from tests.op.dtype_values import ALL_DTYPES, COMPLEX
from tests.op.inputs import Shape, plain
from tests.op.references import Array, Reference, wide

Struct = _core.ir.Struct
SUMMED = tuple(d for d in ALL_DTYPES if d != "float8_e8m0fnu")  # its sums have no zero
INTEGERS = tuple(d for d in ALL_DTYPES if is_integer(numpy_dtype(d)))
SUMMED_FLOATS = tuple(d for d in SUMMED if is_float(numpy_dtype(d)))
# Each may be an operand beside the next ones, bool only of bool.
KINDS = (("bool",), INTEGERS, SUMMED_FLOATS, tuple(COMPLEX))


# ---- cases -----------------------------------------------------------------------------------------------------------


Pair = tuple[Shape, Shape]


def _dot_general_case(
    lhs: Shape, rhs: Shape, batching: Pair, contracting: Pair, wider: str | None = None
) -> Application:
    fields = {
        "lhs_batching_dimensions": batching[0],
        "rhs_batching_dimensions": batching[1],
        "lhs_contracting_dimensions": contracting[0],
        "rhs_contracting_dimensions": contracting[1],
    }
    reference = partial(ref.dot_general, batching=batching, contracting=contracting)
    free = [lhs[d] for d in batching[0]]
    free += [size for d, size in enumerate(lhs) if d not in batching[0] + contracting[0]]
    free += [size for d, size in enumerate(rhs) if d not in batching[1] + contracting[1]]
    return Application(
        (lhs, rhs),
        reference,
        {"dot_dimension_numbers": Struct("stablehlo.dot", {k: v for k, v in fields.items() if v})},
        result_shape=tuple(free) if wider else None,
        result_dtype=wider,
        label=f"{batching}{contracting}{wider}",
    )


def dot_general_cases(n: int, dtype: str) -> list[Application]:
    rows = [
        _dot_general_case((n, 4), (4, 5), ((), ()), ((1,), (0,))),
        _dot_general_case((3, n), (n, 5), ((), ()), ((1,), (0,))),
        _dot_general_case((n, 2, 3), (n, 3, 4), ((0,), (0,)), ((2,), (1,))),
        _dot_general_case((2, 3, n), (4, n, 2), ((0,), (2,)), ((2,), (1,))),
        _dot_general_case((3, 4), (n, 4), ((), ()), ((1,), (1,))),
        _dot_general_case((n, 2, 3), (3, n, 4), ((), ()), ((0, 2), (1, 0))),
        _dot_general_case((n,), (3,), ((), ()), ((), ())),
        _dot_general_case((n,), (n,), ((), ()), ((0,), (0,))),
    ]
    wider = {"bfloat16": "float32", "float16": "float32", "int8": "int32", "float32": "float64"}.get(dtype)
    if wider in ("float32", "float64"):
        rows.append(_dot_general_case((3, n), (n, 5), ((), ()), ((1,), (0,)), wider))
    return rows


def dot_cases(n: int, dtype: str) -> list[Application]:
    shapes: list[tuple[Shape, Shape]] = [
        ((n, 4), (4, 5)),
        ((3, n), (n, 5)),
        ((n,), (n, 3)),
        ((3, n), (n,)),
        ((n,), (n,)),
    ]
    return [
        Application(pair, partial(ref.dot_general, contracting=((len(pair[0]) - 1,), (0,))), label=str(pair))
        for pair in shapes
    ]


def _einsum_reference(equation: str) -> Reference:
    def computed(*operands: Array) -> Array:
        dtype = operands[0].dtype
        if dtype == np.bool_:
            return np.einsum(equation, *(x.astype(np.int64) for x in operands)) > 0
        if is_float(dtype):
            return np.einsum(equation, *map(wide, operands))
        return np.einsum(equation, *operands)

    return computed


def _einsum_cases(rows: Sequence[tuple[tuple[Shape, ...], str]]) -> list[Application]:
    return [Application(shapes, _einsum_reference(text), {"einsum_config": text}, label=text) for shapes, text in rows]


def einsum_cases(n: int, dtype: str) -> list[Application]:
    return _einsum_cases(
        [
            (((n, 4), (4, 5)), "ij,jk->ik"),
            (((2, n, 3), (3, n, 4)), "bij,jik->kbi"),
            (((n, 3), (4, 2)), "ij,kl->il"),
            (((n, n, 2), (n, 3)), "iij,ik->kj"),
            (((n,), (n,)), "i,i->"),
            (((n,), (3,)), "i,j->ji"),
        ]
    )


def unary_einsum_cases(n: int, dtype: str) -> list[Application]:
    return _einsum_cases(
        [
            (((n, 3),), "ij->ji"),
            (((n, 3, 2),), "ijk->kj"),
            (((n, n),), "ii->i"),
            (((2, n, n),), "bii->b"),
            (((n, 2, n, n),), "iaii->ai"),
        ]
    )


def ragged_dot_cases(n: int, dtype: str) -> list[Application]:
    counts = np.array([n // 3, 0, n - n // 3], np.int32)
    group = np.repeat(np.arange(3), counts)

    def by_rows(x: Array, w: Array, _: Array) -> Array:
        return np.einsum("mk,mkn->mn", wide(x), wide(w)[group])

    def by_groups(x: Array, y: Array, _: Array) -> Array:
        return np.stack([np.einsum("km,kn->mn", wide(x)[group == g], wide(y)[group == g]) for g in range(3)])

    lists = {"lhs_contracting_dimensions": (1,), "rhs_contracting_dimensions": (1,), "lhs_ragged_dimensions": (0,)}
    rows: list[tuple[Shape, Shape, Reference, dict[str, Any]]] = [
        ((n, 4), (3, 4, 5), by_rows, {**lists, "rhs_group_dimensions": (0,)}),
        ((n, 2), (n, 5), by_groups, {**lists, "lhs_contracting_dimensions": (0,), "rhs_contracting_dimensions": (0,)}),
    ]
    return [
        Application(
            (lhs, rhs, (3,)), reference, {"ragged_dot_dimension_numbers": Struct("chlo.ragged_dot", fields)},
            dtypes=(None, None, "int32"), fixed={2: counts}, has_local=False, label=f"{lhs}{rhs}",
        )
        for lhs, rhs, reference, fields in rows
    ]  # fmt: skip


def _convolution_case(
    lhs: Shape, rhs: Shape, numbers: str, pads: Pads = (), strides: Shape = (), lhs_dilation: Shape = (),
    rhs_dilation: Shape = (), features: int = 1, batches: int = 1,
) -> Application:  # fmt: skip
    ones = (1,) * (len(lhs) - 2)
    strides, lhs_dilation, rhs_dilation = strides or ones, lhs_dilation or ones, rhs_dilation or ones
    pads = pads or ((0, 0),) * len(ones)
    attrs = {
        "window_strides": strides,
        "padding": np.array(pads, np.int64).reshape(-1, 2),
        "lhs_dilation": lhs_dilation,
        "rhs_dilation": rhs_dilation,
        "dimension_numbers": Struct("stablehlo.conv", {"": numbers}),
        "feature_group_count": features,
        "batch_group_count": batches,
    }
    reference = partial(
        convolution, numbers=numbers, strides=strides, pads=pads, lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation, features=features, batches=batches,
    )  # fmt: skip
    return Application(
        (lhs, rhs), reference, attrs, has_local=features == batches == 1,
        label=f"{lhs}{rhs}{numbers}{pads}{strides}{lhs_dilation}{rhs_dilation}{features}{batches}",
    )  # fmt: skip


def convolution_cases(n: int, dtype: str) -> list[Application]:
    g = max(n, 1)
    last = "[b, 0, f]x[0, i, o]->[b, 0, f]"
    return [
        _convolution_case((n, 5, 3), (2, 3, 4), last, ((1, 0),)),
        _convolution_case((2, n, 3), (3, 3, 2), last, ((1, 1),), (2,)),
        _convolution_case((2, 4, n), (2, n, 3), last),
        _convolution_case((2, 5, 3), (2, 3, n), last, ((0, 2),), rhs_dilation=(2,)),
        _convolution_case((2, 3, n, 4), (4, 3, 2, 3), "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]",
                     ((2, -1), (1, 1)), (1, 2), (2, 1), (1, 2)),
        _convolution_case((3, n, 4, 2), (3, 2, 3, 3), "[f, 0, 1, b]x[i, 0, o, 1]->[0, b, f, 1]", ((1, 1), (0, 1))),
        _convolution_case((2, n, 4), (1, 4, 3), last),
        _convolution_case((2, n, 4), (2, 4, 3), last, strides=(2,)),
        _convolution_case((2, 4, 2 * g), (2, 2, 3 * g), last, ((1, 0),), features=g),
        _convolution_case((2, n, 3), (2, 1, 6), last, ((0, 1),), features=3),
        _convolution_case((2, n, 5), (3, 1, 5), last, ((1, 1),), features=5),
        _convolution_case((2 * g, 4, 3), (2, 3, 2 * g), last, batches=g),
        _convolution_case((n, 3), (3, 4), "[b, f]x[i, o]->[b, f]"),
    ]  # fmt: skip


CASES: list[OpCase] = [
    OpCase("stablehlo.dot_general", ALL, dot_general_cases, plain, "dot", combine="add"),
    OpCase(
        "stablehlo.convolution",
        (*FLOATS, "int32", "uint8"),
        convolution_cases,
        plain,
        "dot",
        combine="add",
        special_points="family",
        has_range=True,
    ),
    OpCase("stablehlo.dot", ALL, dot_cases, plain, "dot", combine="add"),
    OpCase("stablehlo.einsum", ALL, einsum_cases, plain, "dot", combine="add"),
    OpCase("stablehlo.unary_einsum", ALL, unary_einsum_cases, plain, "sum", combine="add"),
    OpCase("chlo.ragged_dot", FLOATS, ragged_dot_cases, plain, "magnitude", 16, combine="add"),
]


# ---- random instances ------------------------------------------------------------------------------------------------


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


def draw_dot_general(b: Build) -> None:
    """Dims of each operand in any order: batching, contracting, free."""
    batch, contracted = b.shape(0, b.few), b.shape(0, 2)
    free = [b.shape(0, b.few), b.shape(0, 2)]
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


def draw_dot(b: Build) -> None:
    k = b.size()
    left, right = (*b.shape(0, 1), k), (k, *b.shape(0, 1))
    b.op(operands_of(b, (left, right)), [((*left[:-1], *right[1:]), b.dtype)])
    compare_contracted(b, k)


def random_equation(b: Build, count: int) -> str:
    """Any letters in each operand, and any of these in the result, each once."""

    def some(letters: Sequence[str]) -> list[str]:
        return [letters[i] for i in b.rng.permutation(len(letters))[: b.below(0, len(letters))]]

    operands = [some("bijk") for _ in range(count)]
    result = some(sorted({letter for operand in operands for letter in operand}))
    return ",".join(map("".join, operands)) + "->" + "".join(result)


def draw_einsum(b: Build) -> None:
    known = ("ij,jk->ik", "bij,jik->kb", "ij,kl->il", "bij,bjk->bik", "i,i->", "i,j->ji", "ab,ab->ab")
    equation = b.pick(known) if b.chance(0.3) else random_equation(b, 2)
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


def draw_unary_einsum(b: Build) -> None:
    equation = random_equation(b, 1)
    sizes = {c: max(b.size(), 1) for c in "bijk"}
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


def draw_ragged_dot(b: Build) -> None:
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


def draw_convolution(b: Build, dynamic: bool = False) -> None:
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


DRAWS: Table = {
    "stablehlo.dot_general": Row(SUMMED, draw_dot_general),
    "stablehlo.dot": Row(SUMMED, draw_dot),
    "stablehlo.einsum": Row(SUMMED, draw_einsum),
    "stablehlo.unary_einsum": Row(tuple(d for d in SUMMED if d != "bool"), draw_unary_einsum),
    "chlo.ragged_dot": Row(SUMMED, draw_ragged_dot),
    "stablehlo.convolution": Row(SUMMED, draw_convolution),
    "stablehlo.dynamic_conv": Row(SUMMED, lambda b: draw_convolution(b, dynamic=True)),
}
