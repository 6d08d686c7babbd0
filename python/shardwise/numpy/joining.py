# SPDX-License-Identifier: Apache-2.0
"""Functions that join, split, roll, repeat and pad: concatenations of slices, and broadcasts.

np.roll(x, 1, axis=0)      concatenate(x[-1:], x[:-1])
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtypes import as_dtype
from ..errors import ShapeError, UnsupportedError, message, shown
from ..recording.tracing import Trace, Tracer, WeakTracer
from ..user_code.advice import conversion_error
from ._primitives import (
    broadcast,
    broadcast_dims,
    broadcast_shape,
    cast,
    common_trace,
    convert,
    iota,
    normalize_axis,
    operand,
    refuse,
    reshape,
    reverse,
    slice_,
    static_integer,
)
from ._promote import result_dtype
from ._registry import implements
from .manipulation import atleast_1d, atleast_2d, atleast_3d, expand_dims, ravel, sizes_of, squeeze

__all__ = ["holds_traced", "nested", "stack"]


# ---- joining and splitting ------------------------------------------------------------------------------------------


def _part(x: Tracer, dim: int, start: int, limit: int) -> Tracer:
    low, high = [0] * x.ndim, list(x.shape)
    low[dim], high[dim] = start, limit
    return slice_(x, low, high)


def _joined(trace: Trace, parts: Sequence[Tracer], dim: int) -> Tracer:
    if len(parts) == 1:
        return parts[0]
    return trace.emit("stablehlo.concatenate", tuple(parts), {"dimension": dim})


def _lifted(function: str, arrays: Any) -> tuple[Trace, list[Tracer]]:
    if isinstance(arrays, Tracer):
        arrays = list(arrays)
    trace = common_trace(arrays)
    if not len(arrays):
        raise ShapeError(message(function, "needs at least one array", 0))
    return trace, [trace.lift(x) for x in arrays]


@implements("concatenate", "concat")
def concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Tracer:
    """``numpy.concatenate``. Raises ShapeError when another dim than ``axis`` differs."""
    refuse("concatenate", out=(out, None), casting=(casting, "same_kind"))
    trace, parts = _lifted("np.concatenate", arrays)
    dtype = result_dtype(*[x.dtype for x in parts]) if dtype is None else as_dtype("np.concatenate", dtype)
    if axis is None:
        parts, axis = [ravel(x) for x in parts], 0
    dim = normalize_axis("np.concatenate", axis, parts[0].ndim)
    first = parts[0].shape
    for x in parts[1:]:
        if x.ndim != len(first) or any(i != dim and n != m for i, (n, m) in enumerate(zip(x.shape, first))):
            got = f"{first} and {x.shape}"
            raise ShapeError(
                message("np.concatenate", f"shapes must agree but for dim {dim}", got, "reshape one of them")
            )
    return _joined(trace, [convert(x, dtype) for x in parts], dim)


@implements("stack")
def stack(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind") -> Tracer:
    """``numpy.stack``. Raises ShapeError for different shapes."""
    refuse("stack", out=(out, None))
    _, parts = _lifted("np.stack", arrays)
    for x in parts[1:]:
        if x.shape != parts[0].shape:
            raise ShapeError(message("np.stack", "shapes must be the same", f"{parts[0].shape} and {x.shape}"))
    dim = normalize_axis("np.stack", axis, parts[0].ndim + 1)
    return concatenate([expand_dims(x, dim) for x in parts], axis=dim, dtype=dtype, casting=casting)


def holds_traced(x: Any) -> bool:
    """Whether ``x`` is a traced or sharded array, or a list or tuple with one at any depth."""
    if isinstance(x, (list, tuple)):
        return any(map(holds_traced, x))
    return isinstance(x, Tracer) or hasattr(x, "__shardwise_array__")


def nested(trace: Trace, x: Any) -> Any:
    """Convert ``x`` as ``numpy.asarray`` does. The result is traced if ``x`` holds a traced array at any depth.

    Raises:
        ShapeError: nested arrays of different shapes.
    """
    if not holds_traced(x):
        return x if isinstance(x, np.ndarray) else np.asarray(x)
    if isinstance(x, (list, tuple)):
        return stack([trace.lift(nested(trace, item)) for item in x])
    return x.strong() if type(x) is WeakTracer else trace.lift(x)  # a number in an array is not weak


@implements("vstack")
def vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Tracer:
    """``numpy.vstack``."""
    return concatenate([atleast_2d(x) for x in _lifted("np.vstack", tup)[1]], axis=0, dtype=dtype, casting=casting)


@implements("hstack")
def hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Tracer:
    """``numpy.hstack``."""
    parts = [atleast_1d(x) for x in _lifted("np.hstack", tup)[1]]
    return concatenate(parts, axis=0 if parts[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@implements("dstack")
def dstack(tup: Any) -> Tracer:
    """``numpy.dstack``."""
    return concatenate([atleast_3d(x) for x in _lifted("np.dstack", tup)[1]], axis=2)


@implements("column_stack")
def column_stack(tup: Any) -> Tracer:
    """``numpy.column_stack``."""
    parts = _lifted("np.column_stack", tup)[1]
    return concatenate([x if x.ndim > 1 else reshape(x, (x.size, 1)) for x in parts], axis=1)


@implements("array_split")
def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Tracer]:
    """``numpy.array_split``: a number of parts, or the places to cut."""
    dim = normalize_axis("np.array_split", axis, ary.ndim)
    size = ary.shape[dim]
    if np.ndim(indices_or_sections) == 0:
        parts = int(indices_or_sections)
        if parts <= 0:
            raise ShapeError(message("np.array_split", "the number of parts must be positive", parts))
        each, extra = divmod(size, parts)
        cuts = np.cumsum([0] + [each + 1] * extra + [each] * (parts - extra)).tolist()
    else:
        cuts = [0, *(int(i) for i in indices_or_sections), size]
    bounds = [slice(*pair).indices(size)[:2] for pair in itertools.pairwise(cuts)]
    return [_part(ary, dim, low, low if high < low else high) for low, high in bounds]


@implements("split")
def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Tracer]:
    """``numpy.split``. Raises ShapeError when a number of parts does not divide the dim."""
    dim = normalize_axis("np.split", axis, ary.ndim)
    if np.ndim(indices_or_sections) == 0 and ary.shape[dim] % int(indices_or_sections):
        raise ShapeError(
            message(
                "np.split", f"the parts must divide dim {dim} of size {ary.shape[dim]}", indices_or_sections,
                "use np.array_split for unequal parts",
            )
        )  # fmt: skip
    return array_split(ary, indices_or_sections, dim)


@implements("hsplit")
def hsplit(ary: Any, indices_or_sections: Any) -> list[Tracer]:
    """``numpy.hsplit``."""
    return split(ary, indices_or_sections, 1 if ary.ndim > 1 else 0)


@implements("vsplit")
def vsplit(ary: Any, indices_or_sections: Any) -> list[Tracer]:
    """``numpy.vsplit``."""
    return split(ary, indices_or_sections, 0)


@implements("dsplit")
def dsplit(ary: Any, indices_or_sections: Any) -> list[Tracer]:
    """``numpy.dsplit``."""
    return split(ary, indices_or_sections, 2)


@implements("unstack")
def unstack(x: Any, /, *, axis: Any = 0) -> tuple[Tracer, ...]:
    """``numpy.unstack``: the slices along an axis."""
    dim = normalize_axis("np.unstack", axis, x.ndim)
    return tuple(squeeze(_part(x, dim, i, i + 1), dim) for i in range(x.shape[dim]))


@implements("append")
def append(arr: Any, values: Any, axis: Any = None) -> Tracer:
    """``numpy.append``."""
    return concatenate((arr, values), axis=axis)


@implements("roll")
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """``numpy.roll``: two slices for a known shift, a gather for a traced shift."""
    if isinstance(shift, Tracer) and not shift.ndim and not isinstance(axis, (tuple, list)):
        return _roll_by_traced(a, shift, axis)
    if isinstance(shift, Tracer) or (isinstance(shift, (tuple, list)) and any(isinstance(s, Tracer) for s in shift)):
        return _roll_by_each(a, shift, axis)
    if axis is None:
        return reshape(roll(ravel(a), np.sum(shift), 0), a.shape)
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    for dim, by in zip(*np.broadcast_arrays(np.asarray(axes), np.asarray(shift))):
        dim = normalize_axis("np.roll", dim, a.ndim)
        size = a.shape[dim]
        cut = -int(by) % size if size else 0
        if cut:
            a = _joined(a._trace, [_part(a, dim, cut, size), _part(a, dim, 0, cut)], dim)
    return a


def _roll_by_each(a: Any, shift: Any, axis: Any) -> Any:
    axes = list(axis) if isinstance(axis, (tuple, list)) else [axis]
    shifts = list(shift) if isinstance(shift, (tuple, list)) or shift.ndim == 1 else [shift]
    count = max(len(axes), len(shifts))
    if not {len(axes), len(shifts)} <= {1, count} or any(np.ndim(by) for by in shifts):
        got = f"{shift!r} along {axis}"
        raise ShapeError(message("np.roll", "there must be one shift for each axis", got, "give as many as axes"))
    for dim, by in zip(axes * (count // len(axes)), shifts * (count // len(shifts))):
        a = roll(a, by, dim)
    return a


def _roll_by_traced(a: Any, shift: Tracer, axis: Any) -> Any:
    if axis is None:
        return reshape(_roll_by_traced(ravel(a), shift, 0), a.shape)
    dim = normalize_axis("np.roll", axis, a.ndim)
    size = a.shape[dim]
    return np.take(a, (iota(a._trace, (size,), 0) - shift) % size, axis=dim) if size else a


# ---- repeating and padding ------------------------------------------------------------------------------------------


@implements("broadcast_to")
def broadcast_to(array: Any, shape: Any, subok: Any = False) -> Tracer:
    """``numpy.broadcast_to``."""
    refuse("broadcast_to", subok=(subok, False))
    wanted = sizes_of(shape)
    if len(wanted) < array.ndim or broadcast_shape("np.broadcast_to", (array.shape, wanted)) != wanted:
        raise ShapeError(message("np.broadcast_to", f"shape {array.shape} must broadcast to the wanted one", wanted))
    return broadcast(array, wanted)


@implements("broadcast_arrays")
def broadcast_arrays(*args: Any, subok: Any = False) -> tuple[Tracer, ...]:
    """``numpy.broadcast_arrays``."""
    refuse("broadcast_arrays", subok=(subok, False))
    _, arrays = _lifted("np.broadcast_arrays", args)
    shape = broadcast_shape("np.broadcast_arrays", [x.shape for x in arrays])
    return tuple(broadcast(x, shape) for x in arrays)


@implements("tile")
def tile(A: Any, reps: Any) -> Tracer:  # noqa: N803
    """``numpy.tile``: a broadcast and a reshape."""
    counts = sizes_of(reps)
    ndim = A.ndim if len(counts) < A.ndim else len(counts)
    counts = (1,) * (ndim - len(counts)) + counts
    sizes = (1,) * (ndim - A.ndim) + A.shape
    interleaved = [n for pair in zip(counts, sizes) for n in pair]
    wide = broadcast_dims(reshape(A, sizes), tuple(interleaved), range(1, 2 * ndim, 2))
    return reshape(wide, tuple(count * size for count, size in zip(counts, sizes)))


@implements("repeat")
def repeat(a: Any, repeats: Any, axis: Any = None) -> Tracer:
    """``numpy.repeat``; a number per element must be known during tracing."""
    if isinstance(repeats, Tracer):
        raise conversion_error(repeats, "index")
    if axis is None:
        a, axis = ravel(a), 0
    dim = normalize_axis("np.repeat", axis, a.ndim)
    counts = np.asarray(repeats)
    if counts.size == 1:
        count = static_integer("np.repeat", "repeats", counts.item(), 0, _MOST_REPEATS)
        shape = (*a.shape[: dim + 1], count, *a.shape[dim + 1 :])
        wide = broadcast_dims(a, shape, [i + (i > dim) for i in range(a.ndim)])
        return reshape(wide, (*a.shape[:dim], a.shape[dim] * count, *a.shape[dim + 1 :]))
    if counts.shape != (a.shape[dim],):
        raise ShapeError(message("np.repeat", f"repeats must be one number or {a.shape[dim]}", counts.shape))
    parts = [repeat(_part(a, dim, i, i + 1), count, dim) for i, count in enumerate(counts)]
    return _joined(a._trace, parts, dim)


_MOST_REPEATS = 2**56 - 1  # the maximum number of elements of an array in a program
_PAD_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


@implements("pad")
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """``numpy.pad`` in the modes constant, edge, reflect, symmetric and wrap."""
    if isinstance(pad_width, dict):
        pad_width = [pad_width.get(i, pad_width.get(i - array.ndim, 0)) for i in range(array.ndim)]
        pad_width = [(n, n) if np.ndim(n) == 0 else n for n in pad_width]
    widths = [(int(low), int(high)) for low, high in np.broadcast_to(np.asarray(pad_width), (array.ndim, 2))]
    if any(n < 0 for pair in widths for n in pair):
        raise ShapeError(message("np.pad", "widths must not be negative", widths))
    if mode not in _PAD_MODES:
        raise UnsupportedError(message("np.pad", f"mode must be one of {', '.join(_PAD_MODES)}", repr(mode)))
    allowed = {"constant": ("constant_values",)}.get(mode, ())
    for name, value in kwargs.items():
        if name not in allowed and not (name == "reflect_type" and value == "even"):
            raise UnsupportedError(message("np.pad", f"{name}= is not supported in mode {mode}", shown(value)))
    if mode == "constant":
        return _pad_constant(array, widths, kwargs.get("constant_values", 0))
    for dim, (low, high) in enumerate(widths):
        array = _pad_copied(array, dim, low, high, mode)
    return array


def _pad_constant(x: Tracer, widths: list[tuple[int, int]], values: Any) -> Tracer:
    if isinstance(values, Tracer):
        return _padded(x, widths, cast(reshape(values, ()), x.dtype))
    if type(values) is int:  # raises if the dtype cannot hold it
        return _padded(x, widths, operand(x._trace, values, x.dtype))
    table = np.broadcast_to(np.asarray(values).astype(x.dtype), (x.ndim, 2))
    if table.size and np.all(table == table.flat[0]):
        return _padded(x, widths, operand(x._trace, table.flat[0], x.dtype))
    for dim, side in np.ndindex(x.ndim, 2):
        own = [(0, 0)] * x.ndim
        own[dim] = (widths[dim][0], 0) if side == 0 else (0, widths[dim][1])
        x = _padded(x, own, operand(x._trace, table[dim, side], x.dtype))
    return x


def _padded(x: Tracer, widths: list[tuple[int, int]], value: Tracer) -> Tracer:
    if not any(n for pair in widths for n in pair):
        return x
    attrs = {
        "edge_padding_low": tuple(low for low, _ in widths),
        "edge_padding_high": tuple(high for _, high in widths),
        "interior_padding": (0,) * x.ndim,
    }
    return x._trace.emit("stablehlo.pad", (x, value), attrs)


def _pad_copied(x: Tracer, dim: int, low: int, high: int, mode: str) -> Tracer:
    size = x.shape[dim]
    if low == high == 0:
        return x
    reach = {"edge": math.inf, "reflect": size - 1, "symmetric": size, "wrap": size}[mode]
    if size == 0 or low > reach or high > reach:
        raise UnsupportedError(
            message(
                "np.pad",
                f"mode {mode} must copy within the array",
                f"widths {(low, high)} on dim {dim} of size {size}",
                "pad in steps",
            )
        )
    if mode == "edge":
        before = repeat(_part(x, dim, 0, 1), low, dim)
        after = repeat(_part(x, dim, size - 1, size), high, dim)
    elif mode == "wrap":
        before, after = _part(x, dim, size - low, size), _part(x, dim, 0, high)
    else:
        skip = 1 if mode == "reflect" else 0
        before = reverse(_part(x, dim, skip, low + skip), (dim,))
        after = reverse(_part(x, dim, size - skip - high, size - skip), (dim,))
    parts = [part for part, width in ((before, low), (x, 1), (after, high)) if width]
    return _joined(x._trace, parts, dim)
