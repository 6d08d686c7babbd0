# SPDX-License-Identifier: Apache-2.0
# mypy: allow-untyped-defs, allow-untyped-calls
"""Functions that scripts for mpi4py use: their text is copied into the script, which has SIZES, ALL and COMM.

No module imports this one.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from mpi4py import MPI

from ..source.helpers import dim_of, order_of

SIZES: dict[str, int] = {}
ALL: tuple[str, ...] = ()
COMM: Any = None


def split(groups):
    """The communicator of the group that has this device."""
    color = next(i for i, group in enumerate(groups) if COMM.rank in group)
    return COMM.Split(color, groups[color].index(COMM.rank))


@functools.cache
def along(*axes):
    """The communicator of the devices that differ from this one along some axes only, in their order."""
    return split(order_of(axes).reshape(math.prod(SIZES[axis] for axis in axes), -1).T.tolist())


# ---- collectives ---------------------------------------------------------------------------------------------------


def fold(parts, combine):
    """The first part, then the second, and so on; narrow floats in float32."""
    is_narrow = parts[0].dtype.itemsize < 4 and "float" in parts[0].dtype.name
    wide = [part.astype("float32") for part in parts] if is_narrow else parts
    return functools.reduce(combine, wide).astype(parts[0].dtype)


def all_reduce(x, comm, combine):
    """Each device folds a piece of x in the order of the devices, and all gather the pieces."""
    pieces = comm.alltoall(np.array_split(np.ravel(x), comm.size))
    return np.concatenate(comm.allgather(fold(pieces, combine))).reshape(np.shape(x))


def all_reduce_together(arrays, comm, combine):
    """all_reduce of several arrays, in the same messages."""
    cut = [np.array_split(np.ravel(x), comm.size) for x in arrays]
    own = [fold(pieces, combine) for pieces in zip(*comm.alltoall(list(zip(*cut))))]
    all_pieces = zip(*comm.allgather(own))
    return [np.concatenate(pieces).reshape(np.shape(x)) for x, pieces in zip(arrays, all_pieces)]


def blocks(x, counts):
    """The blocks of x: (dim, number of blocks), the first dim major."""
    parts = [x]
    for dim, count in counts:
        parts = [block for part in parts for block in np.split(part, count, dim)]
    return parts


def joined(parts, counts):
    """The array with these blocks: (dim, number of blocks), the first dim major."""
    for dim, count in reversed(counts):
        parts = [np.concatenate(parts[i : i + count], dim) for i in range(0, len(parts), count)]
    return parts[0]


def permute(x, pairs):
    """Pairs (from, to) of devices; zeros where none sends."""
    to, source = dict(pairs), {receiver: sender for sender, receiver in pairs}
    ends = to.get(COMM.rank, MPI.PROC_NULL), source.get(COMM.rank, MPI.PROC_NULL)
    received = COMM.sendrecv(x, ends[0], source=ends[1])
    return np.zeros_like(x) if received is None else received


def passed_on(x, pairs, combine):
    """What the operands of the devices before this one combine to: each device passes it on to the next."""
    to, source = dict(pairs), {receiver: sender for sender, receiver in pairs}
    result = COMM.recv(source=source[COMM.rank]) if COMM.rank in source else np.zeros_like(x)
    if COMM.rank in to:
        COMM.send(combine(result, x) if COMM.rank in source else x, to[COMM.rank])
    return result


def exchange(operands, fill, shape, sources):
    """The fill, with rows from the devices that have them; sources: (communicator, dims as in `dim_of`) by operand."""
    result = np.full(shape, fill, operands[0].dtype)
    for x, (comm, given) in zip(operands, sources):
        dims = [dim_of(given.get(d, {}), *sizes) for d, sizes in enumerate(zip(x.shape, shape))]
        counts = [(dim["at"] or MPI.COMM_SELF).size for dim in dims]
        shards = [np.unravel_index(i, counts) for i in range(comm.size)]
        tiles = [(dim["to"] or MPI.COMM_SELF).rank for dim in dims]
        wanted = [[rows(*each) for each in zip(dims, other, shards[comm.rank])] for other in comm.allgather(tiles)]
        pieces = comm.alltoall([x[np.ix_(*[at for _, at in each])] for each in wanted])
        for piece, own in zip(pieces, shards):
            places = [rows(*each)[0] for each in zip(dims, tiles, own)]
            result[np.ix_(*places)] = piece
    return result


def rows(dim, tile, shard):
    """The rows of a tile that a shard has, and their places in the shard."""
    t = tile * dim["step"] + np.arange(dim["count"])
    row, rest = np.divmod(dim["scale"] * t + dim["offset"], dim["holes"])
    own = (dim["begin"] <= t) & (t < dim["end"]) & (rest == 0)
    own &= (row >= 0) & (row < dim["size"]) & (row // dim["block"] == shard)
    return np.flatnonzero(own), row[own] % dim["block"]


# ---- elements ------------------------------------------------------------------------------------------------------


def each(function, x):
    """A function of Python for each element; infinity at its poles, and where it overflows."""

    def at(value):
        try:
            return function(value)
        except (ValueError, OverflowError):
            return math.inf

    return np.vectorize(at, otypes=[np.asarray(x).dtype])(x)


def total_order(x):
    """Integers in the total order of floats."""
    x = x.astype("float32") if x.dtype.itemsize == 1 else x  # the first bit of some is no sign, or NaN alone has it
    bits = x.view(f"int{8 * x.dtype.itemsize}")
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def canonical(x):
    """0.0 for -0.0, and one NaN for all of them."""
    x = x.astype("float32") if x.dtype.itemsize == 1 else x  # some lack 0 or NaN
    return np.where(x != x, np.array(np.nan, x.dtype), np.where(x == 0, np.zeros((), x.dtype), x))


def round_away(x):
    """Halves are rounded away from zero."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole).astype(x.dtype)


def leading_zeros(x, size):
    """The number of zero bits before the first one; size: all bits."""
    bits = x.view(f"uint{8 * x.dtype.itemsize}")
    used = sum((bits >> np.array(i, bits.dtype) != 0).astype("int8") for i in range(size))
    return (size - used).astype(x.dtype)


def integer_divide(x, y):
    """Cut towards zero; x / 0 has all bits set."""
    quotient = x // np.where(y == 0, 1, y).astype(x.dtype)
    quotient += ((x % np.where(y == 0, 1, y).astype(x.dtype) != 0) & ((x < 0) != (y < 0))).astype(x.dtype)
    return np.where(y == 0, ~np.zeros((), x.dtype), quotient)


def integer_remainder(x, y):
    """The remainder with the sign of x; x % 0 is x."""
    return np.where(y == 0, x, np.fmod(x, np.where(y == 0, 1, y).astype(x.dtype)))


def integer_power(x, y):
    """For a negative exponent 0, unless the base is 1 or -1."""
    odd = np.where(y % 2 == 1, x, np.ones((), x.dtype))
    unit = np.where(abs(x) == 1, odd, np.zeros((), x.dtype))
    return np.where(y < 0, unit, np.power(x, np.where(y < 0, 0, y).astype(x.dtype)))


def to_integers(x, dtype, least, largest):
    """Floats are cut and saturate; NaN gives 0."""
    wide = np.nan_to_num(np.trunc(x.astype("float64")))
    low, high = wide <= least, wide >= largest
    cut = np.where(low | high, 0, wide).astype(dtype)
    return np.where(low, np.array(least, dtype), np.where(high, np.array(largest, dtype), cut))


def complex_of(real, imaginary):
    """A complex array of two real ones."""
    result = np.empty(np.shape(real), f"complex{16 * real.dtype.itemsize}")
    result.real, result.imag = real, imaginary
    return result


def complex_angle(y, x):
    """The angle of a point with complex coordinates."""
    a, b = y.astype("complex128"), x.astype("complex128")
    return (-1j * np.log((b + 1j * a) / np.sqrt(b * b + a * a))).astype(x.dtype)


def reduce_precision(x, exponent_bits, cut):
    """Rounded to nearest and even without the last bits of the mantissa; too large ones are infinite, too small ones 0.

    exponent_bits: None for those of the dtype.
    """
    rounded = x
    if cut:
        bits = x.view(f"uint{8 * x.dtype.itemsize}")
        rounded = ((bits + (2 ** (cut - 1) - 1) + ((bits >> cut) & 1)) >> cut << cut).view(x.dtype)
    if exponent_bits is not None:
        bias = 2 ** (exponent_bits - 1) - 1
        rounded = np.where(abs(rounded) >= 2.0 ** (bias + 1), np.copysign(np.inf, x), rounded)
        rounded = np.where(abs(rounded) < 2.0 ** (1 - bias), np.copysign(0, x), rounded)
    return np.where(np.isfinite(x), rounded, x).astype(x.dtype)


# ---- movement ------------------------------------------------------------------------------------------------------


def pad(x, value, rows):
    """(low, high, interior) of each dim; a negative one cuts."""
    dilated = [n + max(n - 1, 0) * inside for n, (_, _, inside) in zip(x.shape, rows)]
    whole = np.full([n + max(low, 0) + max(high, 0) for n, (low, high, _) in zip(dilated, rows)], value, x.dtype)
    at = [slice(max(low, 0), max(low, 0) + n, step + 1) for n, (low, _, step) in zip(dilated, rows)]
    whole[tuple(at)] = x
    return whole[tuple(slice(max(-low, 0), n - max(-high, 0)) for n, (low, high, _) in zip(whole.shape, rows))]


def window(x, starts, sizes):
    """The slices of a window inside x that begins near the starts."""
    first = [min(max(int(start), 0), n - size) for start, n, size in zip(starts, x.shape, sizes)]
    return tuple(slice(start, start + size) for start, size in zip(first, sizes))


def updated(x, update, starts):
    """x with the update in a window."""
    result = x.copy()
    result[window(x, starts, update.shape)] = update
    return result


def places(shape, indices, dims, clip):
    """Index arrays of the operand for an access: (component, dim of the window, size, batch dim) by dim."""
    rows, batch_dims, ndim = dims
    found = []
    for n, (component, place, size, batch) in zip(shape, rows):
        start = np.zeros(indices.shape[:-1], "int64") if component is None else indices[..., component].astype("int64")
        if batch is not None:
            start = np.arange(n).reshape([-1 if d == batch else 1 for d in range(indices.ndim - 1)]) + start
        start = np.clip(start, 0, n - size) if clip else start
        at = np.ones(ndim, int)
        at[list(batch_dims)] = start.shape
        start = start.reshape(at)
        if place is not None:
            start = start + np.arange(size).reshape([-1 if d == place else 1 for d in range(ndim)])
        found.append(start)
    return tuple(found)


def scatter(x, indices, updates, dims, combine):
    """x with updates at places; those out of bounds are dropped."""
    at = np.broadcast_arrays(*places(x.shape, indices, dims, clip=False), updates)[:-1]
    inside = np.full(updates.shape, True)
    for row, n in zip(at, x.shape):
        inside &= (row >= 0) & (row < n)
    result, kept = x.copy(), tuple(row[inside] for row in at)
    if combine is None:
        result[kept] = updates[inside]
    else:
        combine.at(result, kept, updates[inside])
    return result


# ---- reductions and sorts ------------------------------------------------------------------------------------------


def fold_dims(inputs, inits, combine, dims):
    """Fold the elements along some dims with a function of two elements, or of two of each input."""
    moved = [np.moveaxis(x, dims, range(len(dims))) for x in inputs]
    flat = [x.reshape(math.prod(x.shape[: len(dims)]), *x.shape[len(dims) :]) for x in moved]
    total = tuple(np.broadcast_to(init, x.shape[1:]) for init, x in zip(inits, flat))
    for parts in zip(*flat):
        result = combine(*total, *parts)
        total = result if isinstance(result, tuple) else (result,)
    return total


def windows(x, sizes, strides, dilation):
    """The windows of x, with their elements in the last dims."""
    spans = [(size - 1) * step + 1 for size, step in zip(sizes, dilation)]
    counts = [max(n - span + 1, 0) for n, span in zip(x.shape, spans)]
    bits = x.view("uint8") if x.dtype.itemsize == 1 else x  # NumPy has no strides of floats of a byte
    if all(counts):
        view = np.lib.stride_tricks.sliding_window_view(bits, spans).view(x.dtype)
    else:  # NumPy refuses windows that are larger than the array
        view = np.empty([*counts, *spans], x.dtype)
    return view[tuple(slice(None, None, step) for step in (*strides, *dilation))]


def convolution(x, kernel, padding, strides=None, dilation=None, groups=1, batch_groups=1):
    """(batch, feature, ...) by (output, input, ...)."""
    ones = (1,) * (x.ndim - 2)
    x = pad(x, 0, [(0, 0, 0), (0, 0, 0), *padding])
    view = windows(x, (1, 1, *kernel.shape[2:]), (1, 1, *(strides or ones)), (1, 1, *(dilation or ones)))
    view = view.reshape(*view.shape[: x.ndim], *kernel.shape[2:])
    inner = range(x.ndim, 2 * x.ndim - 2), range(2, x.ndim)
    parts = np.split(view, groups, 1) if groups > 1 else np.split(view, batch_groups, 0)
    kernels = np.split(kernel, len(parts), 0)
    results = [np.tensordot(a, b, ([1, *inner[0]], [1, *inner[1]])) for a, b in zip(parts, kernels)]
    return np.moveaxis(np.concatenate(results, -1), -1, 1)


def sort(operands, keys, dim):
    """All operands in the order of the keys, the first key first."""
    order = np.lexsort(keys[::-1], axis=dim)
    return tuple(np.take_along_axis(x, order, dim) for x in operands)


def top_k(x, key, k):
    """The k largest elements of each row and their places; equal ones in their order."""
    order = np.argsort(~key, axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(x, order, -1), order.astype("int32")
