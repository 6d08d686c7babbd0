# SPDX-License-Identifier: Apache-2.0
"""Functions that change the shape or the order of dims, without arithmetic.

`np.moveaxis(x, 0, -1)` is `transpose(x, [1, 2, 0])`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dtypes import as_dtype, dtype_name
from ..errors import DTypeError, ShapeError, message, shown
from ..process.implementations import provides
from ..recording.tracing import Tracer
from ._primitives import (
    bitcast,
    common_trace,
    convert,
    normalize_axes,
    normalize_axis,
    refuse,
    reshape,
    reverse,
    transpose,
)
from ._registry import implements

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "expand_dims", "ravel", "sizes_of", "squeeze", "view"]


def sizes_of(shape: Any, what: str = "shape") -> tuple[int, ...]:
    """Normalize a size or a sequence of sizes to a tuple. TypeError unless all are integers."""
    several = isinstance(shape, (tuple, list)) or (hasattr(shape, "ndim") and shape.ndim)
    sizes = tuple(shape) if several else (shape,)
    if not all(hasattr(size, "__index__") for size in sizes):
        way_out = "use // or int(...) to compute a size"
        raise TypeError(message(what, "sizes must be integers", shown(shape), way_out))
    return tuple(int(size.__index__()) for size in sizes)


# ---- shapes ---------------------------------------------------------------------------------------------------------


@implements("shape")
def shape_(a: Any) -> tuple[int, ...]:
    """``numpy.shape``."""
    return tuple(a.shape)


@implements("ndim")
def ndim_(a: Any) -> int:
    """``numpy.ndim``."""
    return len(a.shape)


@implements("size")
def size_(a: Any, axis: Any = None) -> int:
    """``numpy.size``."""
    return math.prod(a.shape[i] for i in normalize_axes("np.size", axis, len(a.shape)))


@implements("copy")
def copy_(a: Any, order: Any = "K", subok: Any = False) -> Any:
    """``numpy.copy``: the value itself, because traced values are never modified."""
    refuse("copy", order=(order, "K"), subok=(subok, False))
    return a


@implements("reshape")
def reshape_(a: Any, /, shape: Any = None, order: Any = "C", *, newshape: Any = None, copy: Any = None) -> Tracer:
    """``numpy.reshape`` in the order C or F; one size may be -1."""
    sizes = list(sizes_of(newshape if shape is None else shape, "np.reshape"))
    if order == "F":
        return transpose_(reshape_(transpose_(a), sizes[::-1]))
    refuse("reshape", order=(order, "C"))
    got, open_dims = f"{a.shape} to {tuple(sizes)}", sizes.count(-1)
    if open_dims > 1:
        raise ShapeError(message("np.reshape", "only one size may be -1", got, "state the others"))
    if min(sizes, default=0) < -1:
        raise ShapeError(message("np.reshape", "a size must be at least 0, or -1", got))
    known = math.prod(n for n in sizes if n >= 0)
    if open_dims:
        sizes[sizes.index(-1)] = a.size // known if known else 0
    if math.prod(sizes) != a.size:
        rule, way_out = "the number of elements must stay the same", "let one size be -1"
        if open_dims:
            rule, way_out = f"the {a.size} elements must be a multiple of the product of the other sizes, {known}", ""
        raise ShapeError(message("np.reshape", rule, got, way_out))
    return reshape(a, tuple(sizes))


@implements("ravel")
def ravel(a: Any, order: Any = "C") -> Tracer:
    """``numpy.ravel`` in the order C or F."""
    if order == "F":
        a, order = transpose_(a), "C"
    refuse("ravel", order=(order, "C"))
    return reshape(a, (a.size,))


@implements("expand_dims")
def expand_dims(a: Any, axis: Any) -> Tracer:
    """``numpy.expand_dims``."""
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    new = normalize_axes("np.expand_dims", axes, a.ndim + len(axes))
    sizes = iter(a.shape)
    return reshape(a, tuple(1 if i in new else next(sizes) for i in range(a.ndim + len(new))))


@implements("squeeze")
def squeeze(a: Any, axis: Any = None) -> Tracer:
    """``numpy.squeeze``. Raises ShapeError for an axis that is not of size 1."""
    axes = normalize_axes("np.squeeze", axis, a.ndim)
    if axis is None:
        axes = tuple(i for i in axes if a.shape[i] == 1)
    wrong = [i for i in axes if a.shape[i] != 1]
    if wrong:
        raise ShapeError(message("np.squeeze", "an axis must have size 1", f"axis {wrong[0]} of shape {a.shape}"))
    return reshape(a, tuple(size for i, size in enumerate(a.shape) if i not in axes))


def _at_least(ndim: int, place: Any) -> Any:
    def function(*arys: Any) -> Any:
        trace = common_trace(arys)
        grown = [reshape(x, place(x.shape)) if x.ndim < ndim else x for x in map(trace.lift, arys)]
        return grown[0] if len(grown) == 1 else tuple(grown)

    function.__name__ = f"atleast_{ndim}d"
    function.__doc__ = f"``numpy.atleast_{ndim}d``."
    return function


def _shape_3d(shape: tuple[int, ...]) -> tuple[int, ...]:
    return {0: (1, 1, 1), 1: (1, *shape, 1), 2: (*shape, 1)}[len(shape)]


atleast_1d = implements("atleast_1d")(_at_least(1, lambda shape: (1,)))
atleast_2d = implements("atleast_2d")(_at_least(2, lambda shape: (1,) * (2 - len(shape)) + shape))
atleast_3d = implements("atleast_3d")(_at_least(3, _shape_3d))


@provides("view")
def view(a: Any, dtype: Any) -> Any:
    """``numpy.ndarray.view`` between dtypes of one width.

    Raises:
        DTypeError: a dtype of another width, or bits that would be no boolean.
    """
    wanted = as_dtype("view", dtype).newbyteorder("=")
    dtype_name(wanted)
    if wanted == a.dtype:
        return a
    if wanted.itemsize != a.dtype.itemsize or wanted.kind == "b":
        way_out = "compare it with 0" if wanted.kind == "b" else "use astype, or take it apart with >> and &"
        raise DTypeError(message("view", "the dtype must have the width of the array's", f"{a!r} as {wanted}", way_out))
    return convert(a, wanted) if a.dtype.kind == "b" else bitcast(a, wanted)


# ---- order of dims --------------------------------------------------------------------------------------------------


@implements("transpose", "permute_dims")
def transpose_(a: Any, axes: Any = None) -> Tracer:
    """``numpy.transpose``."""
    if axes is None:
        return transpose(a, range(a.ndim)[::-1])
    order = normalize_axes("np.transpose", tuple(axes) if np.iterable(axes) else axes, a.ndim)
    if len(order) != a.ndim:
        raise ShapeError(message("np.transpose", f"axes must name all {a.ndim} dims", axes))
    return transpose(a, order)


@implements("swapaxes")
def swapaxes(a: Any, axis1: Any, axis2: Any) -> Tracer:
    """``numpy.swapaxes``."""
    i, j = normalize_axis("np.swapaxes", axis1, a.ndim), normalize_axis("np.swapaxes", axis2, a.ndim)
    order = list(range(a.ndim))
    order[i], order[j] = j, i
    return transpose(a, order)


@implements("matrix_transpose", "linalg.matrix_transpose")
def matrix_transpose(x: Any, /) -> Tracer:
    """``numpy.matrix_transpose``: the last two dims swapped."""
    return swapaxes(x, -1, -2)


@implements("moveaxis")
def moveaxis(a: Any, source: Any, destination: Any) -> Tracer:
    """``numpy.moveaxis``."""
    sources = normalize_axes("np.moveaxis", source, a.ndim)
    places = normalize_axes("np.moveaxis", destination, a.ndim)
    if len(sources) != len(places):
        raise ShapeError(
            message("np.moveaxis", "source and destination must be as many", f"{source} and {destination}")
        )
    order = [i for i in range(a.ndim) if i not in sources]
    for place, dim in sorted(zip(places, sources)):
        order.insert(place, dim)
    return transpose(a, order)


@implements("rollaxis")
def rollaxis(a: Any, axis: Any, start: Any = 0) -> Tracer:
    """``numpy.rollaxis``."""
    axis = normalize_axis("np.rollaxis", axis, a.ndim)
    start = normalize_axis("np.rollaxis", start, a.ndim + 1) if start >= 0 else start + a.ndim
    order = [i for i in range(a.ndim) if i != axis]
    order.insert(start - (axis < start), axis)
    return transpose(a, order)


@implements("flip")
def flip(m: Any, axis: Any = None) -> Tracer:
    """``numpy.flip``."""
    return reverse(m, normalize_axes("np.flip", axis, m.ndim))


@implements("fliplr")
def fliplr(m: Any) -> Tracer:
    """``numpy.fliplr``."""
    return flip(m, 1)


@implements("flipud")
def flipud(m: Any) -> Tracer:
    """``numpy.flipud``."""
    return flip(m, 0)


@implements("rot90")
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """``numpy.rot90``."""
    first, second = normalize_axes("np.rot90", tuple(axes), m.ndim)
    if k % 4 == 0:
        return m
    if k % 4 == 2:
        return reverse(m, (first, second))
    return (
        swapaxes(reverse(m, (second,)), first, second) if k % 4 == 1 else reverse(swapaxes(m, first, second), (second,))
    )
