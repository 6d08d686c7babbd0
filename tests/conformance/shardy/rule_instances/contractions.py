# SPDX-License-Identifier: Apache-2.0
"""Generators of contractions, reductions, windows, gather and scatter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.conformance.shardy.rule_instances.instance import (
    NUMBER_TYPES,
    Instance,
    Rng,
    Shape,
    combiner,
    comparator,
    dim,
    dims,
    flag,
    ints,
    listed,
    pads,
    tensor,
)

# ---- contractions ---------------------------------------------------------------------------------------------------


def numbered(parts: Sequence[Sequence[int]], rng: Rng) -> tuple[list[list[int]], list[int]]:
    """Deals the sizes of several groups to dims in random order: the dims of each group, and the shape."""
    entries = [(g, i) for g, group in enumerate(parts) for i in range(len(group))]
    rng.shuffle(entries)
    where: list[list[int]] = [[0] * len(group) for group in parts]
    shape = []
    for position, (g, i) in enumerate(entries):
        where[g][i] = position
        shape.append(parts[g][i])
    return where, shape


def dot_general(rng: Rng) -> Instance:
    batch, contract = dims(rng, 0, 2), dims(rng, 0, 2)
    (lb, lc, lf), lhs = numbered((batch, contract, dims(rng, 0, 2)), rng)
    (rb, rc, rf), rhs = numbered((batch, contract, dims(rng, 0, 2)), rng)
    result = [*batch, *(lhs[d] for d in sorted(lf)), *(rhs[d] for d in sorted(rf))]
    fields = ", ".join(
        listed(label, values)
        for label, values in (
            ("lhs_batching_dimensions", lb),
            ("rhs_batching_dimensions", rb),
            ("lhs_contracting_dimensions", lc),
            ("rhs_contracting_dimensions", rc),
        )
        if values
    )
    return Instance(
        "stablehlo.dot_general",
        (tensor(lhs), tensor(rhs)),
        (tensor(result),),
        f"dot_dimension_numbers = #stablehlo.dot<{fields}>",
    )


def dot(rng: Rng) -> Instance:
    k = dim(rng)
    lhs, rhs = (*dims(rng, 0, 1), k), (k, *dims(rng, 0, 1))
    precision = "precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision HIGH>]"
    return Instance(
        "stablehlo.dot",
        (tensor(lhs), tensor(rhs)),
        (tensor(lhs[:-1] + rhs[1:]),),
        precision if rng.random() < 0.3 else "",
    )


def einsum(rng: Rng) -> Instance:
    sizes = {letter: dim(rng) for letter in "bijk"}
    lhs, rhs = ("".join(rng.sample("bijk", rng.randint(0, 4))) for _ in range(2))
    used = sorted({*lhs, *rhs})
    out = "".join(rng.sample(used, rng.randint(0, len(used))))
    types = [tensor([sizes[letter] for letter in word]) for word in (lhs, rhs, out)]
    return Instance("stablehlo.einsum", (types[0], types[1]), (types[2],), f'einsum_config = "{lhs},{rhs}->{out}"')


def unary_einsum(rng: Rng) -> Instance:
    sizes = {letter: dim(rng) for letter in "ijk"}
    operand = "".join(rng.sample("ijk", rng.randint(1, 3)))
    out = "".join(rng.sample(operand, rng.randint(0, len(operand))))
    types = [tensor([sizes[letter] for letter in word]) for word in (operand, out)]
    return Instance("stablehlo.unary_einsum", (types[0],), (types[1],), f'einsum_config = "{operand}->{out}"')


def ragged_dot(rng: Rng) -> Instance:
    b, m, k, n, g = (dim(rng, 1) for _ in range(5))
    mode = rng.choice(["free", "contracting", "batch"])
    numbers = "lhs_batching_dimensions = [0], rhs_batching_dimensions = [{rb}], lhs_contracting_dimensions = [2], "
    numbers += "rhs_contracting_dimensions = [{rc}], lhs_ragged_dimensions = [{ragged}]"
    if mode == "free":
        numbers = numbers.format(rb=1, rc=2, ragged=1) + ", rhs_group_dimensions = [0]"
        rhs, groups, result = (g, b, k, n), (b, g), (b, m, n)
    elif mode == "contracting":
        numbers = numbers.format(rb=0, rc=1, ragged=2)
        rhs, groups, result = (b, k, n), (b, g), (g, b, m, n)
    else:
        numbers = numbers.format(rb=0, rc=1, ragged=0)
        rhs, groups, result = (b, k, n), (g,), (b, m, n)
    operands = tensor((b, m, k)), tensor(rhs), tensor(groups, "i64")
    attributes = f"ragged_dot_dimension_numbers = #chlo.ragged_dot<{numbers}>"
    return Instance("chlo.ragged_dot", operands, (tensor(result),), attributes)


# ---- reductions and windows -----------------------------------------------------------------------------------------


def reduce(rng: Rng) -> Instance:
    shape, dtype = dims(rng), rng.choice(NUMBER_TYPES)
    summed = sorted(rng.sample(range(len(shape)), rng.randint(0, len(shape))))
    result = tuple(size for d, size in enumerate(shape) if d not in summed)
    op = rng.choice(["add", "maximum", "multiply"])
    return Instance(
        "stablehlo.reduce",
        (tensor(shape, dtype), tensor((), dtype)),
        (tensor(result, dtype),),
        f"dimensions = {ints(summed)}",
        (combiner(op, dtype),),
    )


def windows(rng: Rng, size: int, dilated: bool = True) -> tuple[int, int, int, int, tuple[int, int], int]:
    """Window, stride, dilations of the operand and of the window, padding; and how many windows there are."""
    if rng.random() < 0.4:
        return 1, 1, 1, 1, (0, 0), size
    window, stride = rng.choice([1, 2, 2, 3]), rng.choice([1, 1, 2])
    base, inner = (rng.choice([1, 1, 1, 2]), rng.choice([1, 1, 1, 2])) if dilated else (1, 1)
    padding = (rng.randint(0, 2), rng.randint(0, 2))
    spread = 0 if size == 0 else (size - 1) * base + 1
    room = spread + sum(padding) - ((window - 1) * inner + 1)
    return window, stride, base, inner, padding, 0 if room < 0 else room // stride + 1


def reduce_window(rng: Rng) -> Instance:
    shape = dims(rng)
    rows = [windows(rng, size) for size in shape]
    attributes = ", ".join(
        f"{name} = {ints([row[i] for row in rows])}"
        for i, name in enumerate(("window_dimensions", "window_strides", "base_dilations", "window_dilations"))
    )
    attributes += f", padding = {pads([row[4] for row in rows])}"
    return Instance(
        "stablehlo.reduce_window",
        (tensor(shape), tensor(())),
        (tensor([row[5] for row in rows]),),
        attributes,
        (combiner(rng.choice(["add", "maximum"])),),
    )


def select_and_scatter(rng: Rng) -> Instance:
    shape = dims(rng, 1)
    rows = [windows(rng, size, dilated=False) for size in shape]
    attributes = f"window_dimensions = {ints([row[0] for row in rows])}, "
    attributes += f"window_strides = {ints([row[1] for row in rows])}, padding = {pads([row[4] for row in rows])}"
    operands = tensor(shape), tensor([row[5] for row in rows]), tensor(())
    return Instance(
        "stablehlo.select_and_scatter", operands, (tensor(shape),), attributes, (comparator(["f32"]), combiner())
    )


def placed(rng: Rng, batch: str, feature: str, spatial: int) -> list[str]:
    order = [batch, feature, *map(str, range(spatial))]
    if rng.random() < 0.6:
        rng.shuffle(order)
    return order


def convolution(rng: Rng) -> Instance:
    spatial = rng.randint(0, 3)
    rows = []
    for _ in range(spatial):
        size = dim(rng)
        window, stride, base, inner, padding, count = windows(rng, size)
        rows.append((size, window, stride, base, inner, padding, count))
    batch_groups = rng.choice([1, 1, 1, 2])
    feature_groups = rng.choice([1, 1, 1, 2, 3]) if batch_groups == 1 else 1
    batch, features, out = dim(rng) * batch_groups, dim(rng, 1), dim(rng) * feature_groups * batch_groups
    lhs_dims, rhs_dims, out_dims = (
        placed(rng, "b", "f", spatial),
        placed(rng, "i", "o", spatial),
        placed(rng, "b", "f", spatial),
    )

    def shape_of(order: list[str], sizes: dict[str, int]) -> str:
        return tensor([sizes[name] for name in order])

    lhs = shape_of(
        lhs_dims, {"b": batch, "f": features * feature_groups, **{str(i): row[0] for i, row in enumerate(rows)}}
    )
    rhs = shape_of(rhs_dims, {"i": features, "o": out, **{str(i): row[1] for i, row in enumerate(rows)}})
    result = shape_of(
        out_dims, {"b": batch // batch_groups, "f": out, **{str(i): row[6] for i, row in enumerate(rows)}}
    )
    numbers = f"[{', '.join(lhs_dims)}]x[{', '.join(rhs_dims)}]->[{', '.join(out_dims)}]"
    attributes = (
        f"batch_group_count = {batch_groups} : i64, dimension_numbers = #stablehlo.conv<{numbers}>, "
        f"feature_group_count = {feature_groups} : i64"
    )
    if rows:
        lists = [ints([row[i] for row in rows]) for i in (2, 3, 4)]
        attributes += f", window_strides = {lists[0]}, lhs_dilation = {lists[1]}, rhs_dilation = {lists[2]}"
        attributes += f", padding = {pads([row[5] for row in rows])}"
        attributes += f", window_reversal = array<i1: {', '.join(flag(rng) for _ in rows)}>"
    return Instance("stablehlo.convolution", (lhs, rhs), (result,), attributes)


# ---- gather and scatter ---------------------------------------------------------------------------------------------


@dataclass
class Indexed:
    """What gather and scatter have in common."""

    operand: Shape
    batching: list[int]
    indices_batching: list[int]
    collapsed: list[int]
    index_map: list[int]
    slices: list[int]
    indices: list[int]
    vector: int
    out: list[int]
    offset: list[int]

    @staticmethod
    def draw(rng: Rng) -> Indexed:
        operand = dims(rng, 1, 4, smallest=1)
        free = list(range(len(operand)))
        rng.shuffle(free)
        batching = [free.pop()] if len(free) > 1 and rng.random() < 0.3 else []
        index_map = rng.sample(free, rng.randint(0, len(free)))
        collapsed = sorted(d for d in free if rng.random() < (0.5 if d in index_map else 0.15))
        slices = []
        for d, size in enumerate(operand):
            if d in batching or d in collapsed:
                slices.append(1)
            else:
                slices.append(rng.choice([size, size, 1, rng.randint(1, size)]))
        batch = list(dims(rng, len(batching), 2 + len(batching)))
        indices_batching = []
        for d in batching:
            position = rng.randrange(len(batch))
            batch[position] = operand[d]
            indices_batching.append(position)
        vector = rng.randint(0, len(batch)) if len(index_map) != 1 or rng.random() < 0.6 else len(batch)
        indices = [*batch[:vector], len(index_map), *batch[vector:]]
        if len(index_map) == 1 and vector == len(batch) and rng.random() < 0.5:
            indices = list(batch)
        indices_batching = [d + (d >= vector) for d in indices_batching]
        window = [slices[d] for d in range(len(operand)) if d not in batching and d not in collapsed]
        ndim = len(window) + len(batch)
        offset = sorted(rng.sample(range(ndim), len(window)))
        rest, slots = iter(batch), iter(window)
        out = [next(slots) if d in offset else next(rest) for d in range(ndim)]
        return Indexed(operand, batching, indices_batching, collapsed, index_map, slices, indices, vector, out, offset)

    def fields(self, names: Sequence[str]) -> str:
        lists = (self.offset, self.collapsed, self.batching, self.indices_batching, self.index_map)
        parts = [listed(name, values) for name, values in zip(names, lists) if values]
        return ", ".join([*parts, f"index_vector_dim = {self.vector}"])


GATHER = ("offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims")
SCATTER = ("update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims")


def gather(rng: Rng) -> Instance:
    drawn = Indexed.draw(rng)
    fields = drawn.fields((*GATHER, "start_index_map"))
    attributes = f"dimension_numbers = #stablehlo.gather<{fields}>, slice_sizes = {ints(drawn.slices)}"
    return Instance(
        "stablehlo.gather", (tensor(drawn.operand), tensor(drawn.indices, "i32")), (tensor(drawn.out),), attributes
    )


def scatter(rng: Rng) -> Instance:
    drawn = Indexed.draw(rng)
    fields = drawn.fields((*SCATTER, "scatter_dims_to_operand_dims"))
    dtype, op = rng.choice([("f32", "add"), ("f32", "maximum"), ("i32", "multiply"), ("i1", "or"), ("f32", "subtract")])
    operands = tensor(drawn.operand, dtype), tensor(drawn.indices, "i32"), tensor(drawn.out, dtype)
    attributes = f"scatter_dimension_numbers = #stablehlo.scatter<{fields}>"
    return Instance("stablehlo.scatter", operands, (tensor(drawn.operand, dtype),), attributes, (combiner(op, dtype),))
