# SPDX-License-Identifier: Apache-2.0
"""Reductions, windows and products in NumPy."""

from __future__ import annotations

from string import ascii_lowercase

from ..._core.ir import Op
from ...dtypes import numpy_dtype
from ..source.narrow_dtypes import is_narrow_float, is_small_integer
from ..source.regions import cumulative_dim, is_neutral_of, op_of_combiner, window_of
from ..source.scope import Scope, call, listed
from ..source.target import attributes
from .elementwise import UFUNCS, cut_to_size
from .target import emits

__all__: list[str] = []

_METHODS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}
_CUMULATIVE = {"add": "np.cumsum", "multiply": "np.cumprod", "maximum": "np.maximum.accumulate",
               "minimum": "np.minimum.accumulate"}  # fmt: skip


def _ufunc(op: Op) -> str | None:
    return UFUNCS.get(op_of_combiner(op.regions[0]) or "")


def _reduced(op: Op, ufunc: str, x: str, init: str | None, dims: tuple[int, ...]) -> str:
    """The reduction of some dims by a function of NumPy."""
    dtype = op.results[0].type.dtype
    is_sum = ufunc in ("add", "multiply")
    is_narrow = is_sum and is_narrow_float(dtype)
    x = f'{x}.astype("float32")' if is_narrow else x
    axis = str(dims[0] if len(dims) == 1 else dims)
    kept = f', dtype="{dtype}"' if is_sum and ("int" in dtype or dtype == "bool") else ""
    if ufunc in _METHODS:
        text = f"{x}.{_METHODS[ufunc]}({axis}{kept}" + (")" if init is None else f", initial={init})")
    else:
        text = f"np.{ufunc}.reduce({x}, {axis}" + (")" if init is None else f", initial={init})")
    # NumPy has no maximum of integers of less than a byte, and takes that of int8.
    return f'{text}.astype("{numpy_dtype(dtype).name}")' if is_narrow or is_small_integer(dtype) else text


def _folded(scope: Scope, op: Op, inputs: list[str], inits: list[str], dims: tuple[int, ...]) -> str:
    combine = scope.function("combine", op.regions[0])
    text = call(scope.helper("fold_dims"), listed(inputs), listed(inits), combine, dims)
    return f"{text}[0]" if len(op.results) == 1 else text


@emits("stablehlo.reduce")
def reduce(scope: Scope, op: Op) -> str:
    count = len(op.results)
    sides, dims = list(map(scope, op.operands)), tuple(attributes(op)["dimensions"])
    ufunc = _ufunc(op) if count == 1 else None
    if ufunc is None:
        return _folded(scope, op, sides[:count], sides[count:], dims)
    name = op_of_combiner(op.regions[0])
    is_plain = is_neutral_of(op.operands[1], name) and 0 not in op.operands[0].type.shape
    return _reduced(op, ufunc, sides[0], None if is_plain else sides[1], dims)


@emits("stablehlo.reduce_window")
def reduce_window(scope: Scope, op: Op) -> str:
    window, count = window_of(op), len(op.results)
    sides = list(map(scope, op.operands))
    ufunc = _ufunc(op) if count == 1 else None
    is_neutral = count == 1 and is_neutral_of(op.operands[1], op_of_combiner(op.regions[0]))
    cumulative = cumulative_dim(op, window) if is_neutral and ufunc in _CUMULATIVE else None
    if cumulative is not None and ufunc is not None:
        return _accumulated(op, ufunc, sides[0], *cumulative)
    ndim = len(window["window_dimensions"])
    rows = tuple((*pair, step - 1) for pair, step in zip(window["padding"], window["base_dilation"]))
    pad, windows = scope.helper("pad"), scope.helper("windows")
    is_padded = any(map(any, rows))
    inputs = [call(pad, x, init, rows) if is_padded else x for x, init in zip(sides, sides[count:])]
    sizes = [window[name] for name in ("window_dimensions", "window_strides", "window_dilation")]
    inputs = [call(windows, x, *sizes) for x in inputs]
    dims = tuple(range(ndim, 2 * ndim))
    if ufunc is None:
        return _folded(scope, op, inputs, sides[count:], dims)
    return _reduced(op, ufunc, inputs[0], None if is_neutral and 0 not in sizes[0] else sides[1], dims)


def _accumulated(op: Op, ufunc: str, x: str, dim: int, is_reversed: bool) -> str:
    dtype = op.results[0].type.dtype
    kept = f', dtype="{dtype}"' if "int" in dtype and ufunc in ("add", "multiply") else ""
    x = f"np.flip({x}, {dim})" if is_reversed else x
    text = f"{_CUMULATIVE[ufunc]}({x}, {dim}{kept})"
    text = f'{text}.astype("{numpy_dtype(dtype).name}")' if is_small_integer(dtype) else text
    return f"np.flip({text}, {dim})" if is_reversed else text


@emits("stablehlo.dot_general")
def dot_general(scope: Scope, op: Op) -> str:
    fields = attributes(op)["dot_dimension_numbers"].fields
    names = [[""] * len(x.type.shape) for x in op.operands]
    letters = iter(ascii_lowercase)
    for kind in ("batching", "contracting"):
        pairs = zip(*(fields.get(f"{side}_{kind}_dimensions", ()) for side in ("lhs", "rhs")))
        for left, right in pairs:
            names[0][left] = names[1][right] = next(letters)
    batch = [names[0][d] for d in fields.get("lhs_batching_dimensions", ())]
    free = []
    for side in names:
        for d, name in enumerate(side):
            if not name:
                side[d] = next(letters)
                free.append(side[d])
    terms = ["".join(side) for side in names]
    dtype = op.results[0].type.dtype
    accumulated = "float32" if is_narrow_float(dtype) else dtype
    sides = [
        scope(x) if x.type.dtype == accumulated else f'{scope(x)}.astype("{numpy_dtype(accumulated).name}")'
        for x in op.operands
    ]
    is_product = len(names[0]) == len(names[1]) == len(free) == 2 and terms[0][1] == terms[1][0]
    if is_product and "int" not in dtype and dtype != "bool":
        text = f"{sides[0]} @ {sides[1]}"
    else:
        text = f'np.einsum("{",".join(terms)}->{"".join([*batch, *free])}", {", ".join(sides)}, optimize=True)'
    return cut_to_size(op, text) if accumulated == dtype else f'({text}).astype("{numpy_dtype(dtype).name}")'
