# SPDX-License-Identifier: Apache-2.0
# mypy: allow-untyped-defs, allow-untyped-calls
"""Functions that emitted programs use: their text is copied into the script, which has SIZES and ALL of its mesh.

No module imports this one.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

SIZES: dict[str, int] = {}
ALL: tuple[str, ...] = ()


def total_order(x):
    """Integers in the total order of floats. Of a byte at most: those of float32, where all NaN of a sign are equal."""
    if x.dtype.itemsize == 1:
        size = jnp.finfo(x.dtype).bits
        wide = np.arange(2**size, dtype="uint8").view(x.dtype).astype("float32")
        keys = total_order(np.where(np.isnan(wide), np.copysign(np.float32(np.nan), wide), wide))
        return jnp.take(keys, lax.bitcast_convert_type(x, f"uint{size}").astype("int32"), mode="clip")
    bits = lax.bitcast_convert_type(x, f"int{8 * x.dtype.itemsize}")
    return lax.select(bits < 0, bits ^ jnp.iinfo(bits.dtype).max, bits)


def canonical(x):
    """0.0 for -0.0, and one NaN for all of them."""
    return lax.select(x != x, lax.full_like(x, jnp.nan), lax.select(x == 0, lax.full_like(x, 0), x))


def generated(state, shape, dtype, algorithm):
    """The next state, and bits as any dtype: JAX generates only unsigned integers."""
    state, bits = lax.rng_bit_generator(state, shape, f"uint{8 * jnp.dtype(dtype).itemsize}", algorithm=algorithm)
    return state, lax.bitcast_convert_type(bits, dtype)


def philox(state, shape, dtype, algorithm):
    """The next state, and bits: Philox of a key and a counter of 128 bits, a state that JAX does not have."""
    size = 8 * jnp.dtype(dtype).itemsize
    count = math.prod(shape) * (2 if size == 64 else 1)
    low = state[1] + lax.iota("uint64", count // 4 + 1)
    high = state[2] + (low < state[1]).astype("uint64")
    words = [x >> shift & 0xFFFFFFFF for x in (low, high) for shift in (0, 32)]
    keys = [state[0] & 0xFFFFFFFF, state[0] >> 32]
    for _ in range(10):
        p, q = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
        words = [(q >> 32) ^ words[1] ^ keys[0], q & 0xFFFFFFFF, (p >> 32) ^ words[3] ^ keys[1], p & 0xFFFFFFFF]
        keys = [(key + np.uint64(step)) & 0xFFFFFFFF for key, step in zip(keys, (0x9E3779B9, 0xBB67AE85))]
    found = jnp.stack(words, -1).reshape(-1)[:count]
    found = found[::2] | found[1::2] << 32 if size == 64 else found
    blocks = -(-count // 4)
    end = state[1] + np.uint64(blocks)
    state = jnp.stack([state[0], end, state[2] + (end < np.uint64(blocks))])
    return state, lax.bitcast_convert_type(found.astype(f"uint{size}").reshape(shape), dtype)


def random_part(generate, state, start, shape, whole, dtype, algorithm):
    """The next state, and a part of the bits for the whole shape."""
    state, bits = generate(state, whole, dtype, algorithm=algorithm)
    bits = jnp.pad(bits, [(0, n) for n in shape])
    return state, lax.dynamic_slice(bits, start, shape, allow_negative_indices=False)


def integer_power(x, y):
    """Integers by squaring. For a negative exponent 0, unless the base is 1 or -1."""
    negative, odd = y < 0, (y & 1) == 1
    result, base, rest = lax.full_like(x, 1), x, y
    for _ in range(8 * x.dtype.itemsize):
        result = jnp.where((rest & 1) == 1, result * base, result)
        base, rest = base * base, lax.shift_right_logical(rest, lax.full_like(rest, 1))
    unit = jnp.where((x == 1) | (x + 1 == 0) & odd, x, jnp.where(x + 1 == 0, lax.full_like(x, 1), lax.full_like(x, 0)))
    return jnp.where(negative, unit, result)


def in_order(dtype, sign):
    """The bits of all floats of at most a byte, ascending for sign 1 and descending for -1. One NaN is the last."""
    bits = np.arange(2 ** jnp.finfo(dtype).bits, dtype="uint8")
    x = bits.view(dtype).astype("float64")
    numbers = bits[np.lexsort((sign * np.copysign(1, x), sign * x))][: np.count_nonzero(x == x)]
    return numbers if len(numbers) == len(bits) else np.append(numbers, np.array(np.nan, dtype).view("uint8"))


def ranked(x, sign):
    """Floats of at most a byte as their ranks."""
    order = in_order(x.dtype, sign)
    ranks = np.full(2 ** jnp.finfo(x.dtype).bits, len(order) - 1, "uint8")
    ranks[order] = np.arange(len(order))
    return jnp.take(ranks, lax.bitcast_convert_type(x, f"uint{jnp.finfo(x.dtype).bits}").astype("int32"), mode="clip")


def of_ranks(ranks, dtype, sign):
    """Floats of at most a byte from their ranks."""
    bits = jnp.take(in_order(dtype, sign), ranks.astype("int32"), mode="clip")
    return lax.bitcast_convert_type(bits.astype(f"uint{jnp.finfo(dtype).bits}"), dtype)


def one_nan(x):
    """Every NaN with the same bits."""
    return lax.select(x != x, lax.full_like(x, jnp.nan), x)


def exact_max(x, axes, axis_index_groups=None):
    """The maximum over devices. As integers, NaN wins and 0.0 is more than -0.0."""
    if x.dtype.itemsize == 1:
        best = lax.pmax(ranked(x, 1), axes, axis_index_groups=axis_index_groups)
        return of_ranks(best, x.dtype, 1)
    keys = lax.pmax(total_order(one_nan(x)), axes, axis_index_groups=axis_index_groups)
    return lax.bitcast_convert_type(lax.select(keys < 0, keys ^ jnp.iinfo(keys.dtype).max, keys), x.dtype)


def exact_min(x, axes, axis_index_groups=None):
    """The minimum over devices. As integers, NaN wins and -0.0 is less than 0.0."""
    if x.dtype.itemsize == 1:
        best = lax.pmax(ranked(x, -1), axes, axis_index_groups=axis_index_groups)
        return of_ranks(best, x.dtype, -1)
    return one_nan(-exact_max(-x, axes, axis_index_groups))


def as_bits(move, x):
    """A movement of narrow floats as integers, which no backend widens; of less than a byte as bytes."""
    is_float = jnp.issubdtype(x.dtype, jnp.floating)
    size = (jnp.finfo if is_float else jnp.iinfo)(x.dtype).bits if x.dtype.itemsize == 1 and x.dtype != bool else 8
    if size < 8:
        bits = lax.bitcast_convert_type(x, f"uint{size}") if is_float else x
        moved = move(bits.astype("uint8")).astype(bits.dtype)
        return lax.bitcast_convert_type(moved, x.dtype) if is_float else moved
    if not is_float or x.dtype.itemsize > 2:
        return move(x)
    return lax.bitcast_convert_type(move(lax.bitcast_convert_type(x, f"uint{8 * x.dtype.itemsize}")), x.dtype)


def folded(parts, combine):
    """Row 0, then row 1, and so on; narrow floats in float32."""
    narrow = jnp.issubdtype(parts.dtype, jnp.floating) and parts.dtype.itemsize < 4
    wide = parts.astype("float32") if narrow else parts
    return lax.scan(lambda a, b: (combine(a, b), None), wide[0], wide[1:])[0].astype(parts.dtype)


def exchanged(parts, axes, axis_index_groups=None):
    """Row i goes to device i along the axes."""

    def move(x):
        return lax.all_to_all(x, axes, 0, 0, axis_index_groups=axis_index_groups, tiled=True)

    return as_bits(move, parts)


def fold(x, axes, size, combine, axis_index_groups=None):
    """An all-reduce in the order of the devices, with an all-reduce's bytes."""
    parts = jnp.pad(x.reshape(-1), (0, -x.size % size)).reshape(size, -1)
    total = folded(exchanged(parts, axes, axis_index_groups), combine)

    def gather(y):
        return lax.all_gather(y, axes, axis_index_groups=axis_index_groups, tiled=True)

    return as_bits(gather, total)[: x.size].reshape(x.shape)


def reduce_from(combine, inputs, inits, dims):
    """A reduction that combines its initial values once, in front: XLA may leave out or repeat what is not neutral."""

    def step(a, b):
        *a, has_a = a
        *b, has_b = b
        both = combine(*a, *b)
        both = both if isinstance(both, (tuple, list)) else [both]
        rows = [jnp.where(has_a & has_b, z, jnp.where(has_a, x, y)) for x, y, z in zip(a, b, both)]
        return (*rows, has_a | has_b)

    there = lax.full(inputs[0].shape, True)
    found = lax.reduce((*inputs, there), (*inits, np.bool_(False)), step, dims)
    starts = [jnp.broadcast_to(init, found[-1].shape) for init in inits]
    return step((*starts, lax.full_like(found[-1], True)), tuple(found))[:-1]


def within(indices, limit):
    """Indices in a dtype in which those outside of ``limit`` elements stay outside when a window is added."""
    indices = indices.astype("int32") if indices.dtype.itemsize < 4 else indices
    indices = jnp.clip(indices, -limit if jnp.issubdtype(indices.dtype, jnp.signedinteger) else 0, limit)
    return indices.astype("int32" if limit < 2**30 else "int64")


def scattered(scatter, x, indices, updates, numbers):
    """A scatter that drops the elements of a window that are outside, where JAX drops the whole window."""
    indices, named = within(indices, max(x.shape)), numbers.scatter_dims_to_operand_dims
    inserted, moved = list(numbers.inserted_window_dims), []
    kept = [d for d in range(x.ndim) if d not in (*inserted, *numbers.operand_batching_dims)]
    windows = dict(zip(kept, numbers.update_window_dims))
    order = [d for d in range(updates.ndim) if d not in windows.values()]
    for i, d in enumerate(named):
        if d in windows:
            moved.append(windows.pop(d))
            inserted.append(d)
            steps = np.zeros((updates.shape[moved[-1]], len(named)), indices.dtype)
            steps[:, i] = np.arange(len(steps))
            indices = indices[..., None, :] + steps
    order += moved
    window = tuple(range(len(order), updates.ndim))
    batching = (numbers.operand_batching_dims, numbers.scatter_indices_batching_dims)
    numbers = lax.ScatterDimensionNumbers(window, tuple(sorted(inserted)), named, *batching)
    updates = updates.transpose([*order, *windows.values()])
    return scatter(x, indices, updates, numbers, mode=lax.GatherScatterMode.FILL_OR_DROP)


def update_places(shape, size, indices, numbers):
    """The place in the operand of each element of the updates of a scatter, dim by dim."""
    indices = within(indices, max(shape, default=1))
    absent = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    rows = [d for d in range(len(size)) if d not in numbers.update_window_dims]
    along = dict(zip((d for d in range(len(shape)) if d not in absent), numbers.update_window_dims))
    for d, e in zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims):
        along[d] = rows[e]
    dtype = indices.dtype
    at = [lax.broadcasted_iota(dtype, size, along[d]) if d in along else dtype.type(0) for d in range(len(shape))]
    for i, d in enumerate(numbers.scatter_dims_to_operand_dims):
        at[d] = at[d] + lax.broadcast_in_dim(indices[..., i], size, rows)
    return [jnp.broadcast_to(x, size).reshape(-1) for x in at]


def scattered_in_turn(combine, operands, indices, updates, numbers):
    """A scatter with any function: the elements of the updates one after another, those outside are dropped."""
    shape, size = operands[0].shape, updates[0].shape
    if 0 in (*shape, *size):
        return operands

    def step(xs, row):
        places, parts = row
        is_inside = jnp.all(jnp.array([(place >= 0) & (place < n) for place, n in zip(places, shape)], bool))
        old = [lax.dynamic_slice(x, places, (1,) * x.ndim) for x in xs]
        new = combine(*(x.reshape(()) for x in old), *parts)
        new = new if isinstance(new, tuple) else (new,)
        chosen = [jnp.where(is_inside, x, y) for x, y in zip(new, old)]
        return tuple(lax.dynamic_update_slice(x, y, places) for x, y in zip(xs, chosen)), None

    places = update_places(shape, size, indices, numbers)
    return lax.scan(step, tuple(operands), (places, [x.reshape(-1) for x in updates]))[0]


def blocks(x, counts):
    """The blocks of some dims as rows: {dim: number of blocks}, the first dim major."""
    split = [part for d, n in enumerate(x.shape) for part in ((counts[d], n // counts[d]) if d in counts else (n,))]
    places, at = [], 0
    for d in range(x.ndim):
        places += [at] if d in counts else []
        at += 1 + (d in counts)
    rest = [d for d in range(len(split)) if d not in places]
    y = x.reshape(split).transpose(places + rest)
    return y.reshape(math.prod(counts.values()), *y.shape[len(places) :])


def fold_scatter(x, axes, counts, combine, axis_index_groups=None):
    """A reduce-scatter in the order of the devices."""
    return folded(exchanged(blocks(x, counts), axes, axis_index_groups), combine)


def gather_dims(x, axes, counts, axis_index_groups=None):
    """Gather several dims at once: {dim: number of blocks}, in the order of the axes."""
    parts = lax.all_gather(x, axes, axis_index_groups=axis_index_groups).reshape(*counts.values(), *x.shape)
    order, place = [], list(counts)
    for d in range(x.ndim):
        order += ([place.index(d)] if d in counts else []) + [len(place) + d]
    return parts.transpose(order).reshape([n * counts.get(d, 1) for d, n in enumerate(x.shape)])


def move_axes(x, axes, moves, axis_index_groups=None):
    """Several all-to-alls as one: (gathered dim, split dim, number of devices)."""
    for i, (_, target, count) in enumerate(moves):
        dim = i + target
        x = x.reshape(*x.shape[:dim], count, x.shape[dim] // count, *x.shape[dim + 1 :])
        x = jnp.moveaxis(x, dim, i)
    counts = [count for _, _, count in moves]
    rows = x.reshape(math.prod(counts), *x.shape[len(moves) :])
    x = lax.all_to_all(rows, axes, 0, 0, axis_index_groups=axis_index_groups, tiled=True).reshape(x.shape)
    for i, (source, _, count) in enumerate(moves):
        dim = len(moves) - i - 1 + source
        x = jnp.moveaxis(x, 0, dim)
        x = x.reshape(*x.shape[:dim], count * x.shape[dim + 1], *x.shape[dim + 2 :])
    return x


def passed_on(x, pairs, combine):
    """What the operands of the devices before this one combine to: each device passes it on to the next."""
    senders = sorted({sender for sender, _ in pairs} - {receiver for _, receiver in pairs})
    result, total = lax.full_like(x, 0), x
    while step := [pair for pair in pairs if pair[0] in senders]:
        received = lax.ppermute(total, ALL, step)
        senders = [receiver for _, receiver in step]
        is_next = jnp.isin(lax.axis_index(ALL), np.array(senders))
        result, total = jnp.where(is_next, received, result), jnp.where(is_next, combine(received, x), total)
    return result


def exchange_boxes(operands, fill, shape, moves):
    """The fill with the boxes that devices send: (operand, collective and its arguments, boxes, their places)."""
    dtype = operands[0].dtype
    if jnp.issubdtype(dtype, jnp.floating) and 8 * dtype.itemsize == jnp.finfo(dtype).bits < 32:
        bits = [lax.bitcast_convert_type(x, f"uint{8 * dtype.itemsize}") for x in operands]  # they stay as they are
        fill = lax.bitcast_convert_type(jnp.asarray(fill, dtype), bits[0].dtype)
        return lax.bitcast_convert_type(exchange_boxes(bits, fill, shape, moves), dtype)
    result = lax.full(shape, fill, dtype)
    for place, kind, how, sizes, strides, starts, steps, senders, places in moves:
        several = isinstance(place, list)
        x = jnp.stack([operands[k] for k in place]) if several else operands[place]
        boxes = received_boxes(x, kind, how, sizes, strides, own_row(starts))
        result = result.reshape((1,) * several + shape)
        result = put_boxes(result, boxes, steps, own_row(senders), own_row(places)).reshape(shape)
    return result


def received_boxes(x, kind, how, sizes, strides, starts):
    """The boxes that a device has after a collective."""
    if kind == "all_to_all":
        return exchanged(jax.vmap(lambda row: box_at(x, row, sizes, strides))(starts), **how)
    box = box_at(x, starts, sizes, strides)
    if kind == "all_gather":
        return as_bits(lambda bits: lax.all_gather(bits, **how), box)
    return (box if kind is None else sent_on(box, how))[None]


def sent_on(box, steps):
    """The box that a device receives in one of the steps; in later steps it sends that."""
    for pairs in steps:
        is_new = len(steps) == 1 or (lax.axis_index(ALL) == np.array([receiver for _, receiver in pairs])).any()
        box = jnp.where(is_new, as_bits(lambda x: lax.ppermute(x, ALL, pairs), box), box)  # noqa: B023 - called at once
    return box


def own_row(table):
    """This device's row: of a list with a row for each, or (row, steps by axis) for row + step * index."""
    if isinstance(table, list):
        return jnp.asarray(np.array(table, "int32"))[lax.axis_index(ALL)]
    row, steps = table
    return sum((lax.axis_index(axis) * np.array(step, "int32") for axis, step in steps.items()), np.array(row, "int32"))


def box_at(x, starts, sizes, strides):
    """Every stride-th row from the starts on; as many as there are."""
    for d, (n, stride) in enumerate(zip(sizes, strides)):
        if stride > 1:
            x = jnp.take(x, starts[d] + stride * np.arange(n, dtype="int32"), axis=d, mode="clip")
        elif n < x.shape[d]:
            x = lax.dynamic_slice_in_dim(x, starts[d], n, d)
    return x


def put_boxes(result, boxes, steps, senders, places):
    """The result with some of the boxes, each at its place."""
    if len(senders) == 1:
        return put_box(result, boxes[senders[0]], steps, places[0])
    return lax.scan(lambda y, row: (put_box(y, boxes[row[0]], steps, row[1]), None), result, (senders, places))[0]


def put_box(result, box, steps, places):
    """Rows first + k·step of a box at rows to + k·to_step of the result: (to_step, step), (to, count, first) by dim."""
    mask = np.full([1] * result.ndim, True)
    for d, (to_step, step) in enumerate(steps):
        to, count, first = places[d]
        k = np.arange(result.shape[d], dtype="int32") - to
        is_there = (k >= 0) & (k < to_step * count) & (k % to_step == 0)
        rows = first + step * (k // to_step).clip(0, (count - 1).clip(0))
        box = jnp.take(box, rows, axis=d, mode="clip")
        mask = mask & is_there.reshape([-1 if e == d else 1 for e in range(result.ndim)])
    return jnp.where(mask, box, result)
