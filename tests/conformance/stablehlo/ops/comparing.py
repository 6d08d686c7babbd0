# SPDX-License-Identifier: Apache-2.0
"""Differences between two results of an instance: bits, units in the last place, or the rounding errors of sums.

differing(instance, k, got, want, ULPS)  # a mask over the elements of result k
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

import shardwise as sw
from shardwise.dtypes import is_complex, is_float, is_signed, numpy_dtype
from tests.conformance.stablehlo.ops import devices, movement
from tests.conformance.stablehlo.ops.instance import Instance
from tests.conformance.stablehlo.ops.values import Array, integer_ends, parts_of
from tests.conformance.stablehlo.ops.xla import CONTRACTIONS
from tests.op.dtype_values import bits_of, mlir_name, width_of

# These keep every bit, of NaN too.
MOVES = {
    *movement.ROWS, *devices.ROWS, "stablehlo.gather", "stablehlo.dynamic_gather", "stablehlo.torch_index_select",
    "stablehlo.sort", "stablehlo.bitcast_convert", "stablehlo.select",
}  # fmt: skip
# Rounding errors of a sum in eps·Σ|terms| that a partitioned run may add to those of the whole.
SPLIT_SUM = 16.0


def differing(instance: Instance, k: int, got: Array, want: Array, whole: bool) -> Any:
    """Which elements differ by more than the instance allows; `whole` compares with XLA, else with our whole run."""
    with np.errstate(all="ignore"):
        kind = instance.kind
        if kind in ("sum", "product") and (is_float(got.dtype) or is_complex(got.dtype)):
            return outside_sum(instance, k, got, want, whole)
        if kind in ("scaled", "triangle"):
            return outside_scale(instance, got, want)
        if kind == "ulps" and whole:
            return ulps_apart(got, want) > instance.ulps
        if instance.op in MOVES and whole:
            return ~same_bits(got, want)
        return ~same(got, want)


def same_bits(got: Array, want: Array) -> Any:
    shape = (*got.shape, got.dtype.itemsize)  # of a scalar too
    return np.all(bits_of(got).reshape(shape) == bits_of(want).reshape(shape), axis=-1)


def same(got: Array, want: Array) -> Any:
    """Equal with the signs of zeros; every NaN equals every other."""
    if is_complex(got.dtype):
        return same(got.real, want.real) & same(got.imag, want.imag)
    equal = same_bits(got, want)
    return equal | (np.isnan(got) & np.isnan(want)) if is_float(got.dtype) else equal


def ordinals(x: Array) -> Any:
    """Integers in the order of the floats: neighbours are one apart; both zeros are 0."""
    width = width_of(x.dtype.name)
    raw = np.ascontiguousarray(x).reshape(-1).view(f"u{x.dtype.itemsize}").reshape(x.shape).astype(np.uint64)
    magnitude = (raw & np.uint64((1 << (width - 1)) - 1)).astype(np.int64)
    return np.where(raw >> np.uint64(width - 1) & np.uint64(1), -magnitude, magnitude)


def distance(a: Any, b: Any) -> Any:
    """|a - b| of int64, without overflow."""
    far = np.abs(a.astype(np.float64) - b.astype(np.float64))
    return np.where(far < 2.0**62, np.abs(np.where(far < 2.0**62, a - b, 0)).astype(np.float64), far)


def ulps_apart(got: Array, want: Array) -> Any:
    """The distance in units in the last place; of the magnitude where the elements are complex."""
    if is_complex(got.dtype):
        eps = np.finfo(got.dtype).eps
        size = np.maximum(np.abs(want), np.finfo(parts_of(got.dtype.name)).tiny)
        near = np.abs(got - want) / (eps * size)
        nans = np.isnan(got) & np.isnan(want)
        return np.where(
            same(got, want) | nans | (np.isinf(got) & np.isinf(want)), 0, np.where(np.isnan(near), np.inf, near)
        )
    if not is_float(got.dtype):
        return np.where(same(got, want), 0, np.inf)
    one_nan = np.isnan(got) != np.isnan(want)
    both = np.isnan(got) & np.isnan(want)
    return np.where(one_nan, np.inf, np.where(both, 0, distance(ordinals(got), ordinals(want))))


def eps_of(dtype: Any) -> float:
    return float(ml_dtypes.finfo(parts_of(np.dtype(dtype).name)).eps)


def magnitudes(instance: Instance) -> list[Array]:
    """The results for the absolute values of all numbers, in float64: Σ|terms|."""
    texts = {mlir_name(x.dtype.name) for x in instance.arguments if is_float(x.dtype) or is_complex(x.dtype)}
    texts |= {mlir_name(d) for _, d in instance.results if is_float(numpy_dtype(d)) or is_complex(numpy_dtype(d))}
    body = instance.body
    for name in texts:
        body = re.sub(rf"(?<=[x<]){re.escape(name)}(?=>)", "f64", body)
    arguments = list(instance.arguments)
    for i, x in enumerate(arguments):
        if is_float(x.dtype) or is_complex(x.dtype):
            wide = x.astype(np.complex128) if is_complex(x.dtype) else x.astype(np.float64)
            keeps_sign = instance.op == "stablehlo.select_and_scatter" and i == 0
            arguments[i] = wide if keeps_sign else np.abs(wide)
        elif is_signed(x.dtype) and instance.op in CONTRACTIONS:
            least = integer_ends(x.dtype.name)[0]  # it has no absolute value
            arguments[i] = np.abs(np.maximum(x.astype(np.int64), least + 1)).astype(x.dtype)
    results = tuple((shape, "float64" if is_inexact(d) else d) for shape, d in instance.results)
    return ours(replace(instance, arguments=tuple(arguments), body=body, results=results))


def is_inexact(dtype: str) -> bool:
    to = numpy_dtype(dtype)
    return is_float(to) or is_complex(to)


def ours(instance: Instance) -> list[Array]:
    """The whole program by ``Module.run``."""
    returned = sw.parse(instance.text()).run(*instance.arguments)
    return [np.asarray(x) for x in (returned if isinstance(returned, tuple) else (returned,))]


def outside_sum(instance: Instance, k: int, got: Array, want: Array, whole: bool) -> Any:
    terms = magnitudes(instance)[k]
    info = ml_dtypes.finfo(parts_of(got.dtype.name))
    allowed = (2 * instance.ulps if whole else SPLIT_SUM) * (eps_of(got.dtype) * terms + float(info.smallest_normal))
    wide = np.complex128 if is_complex(got.dtype) else np.float64
    near = np.abs(got.astype(wide) - want.astype(wide)) <= allowed
    overflows = terms * (1 + 16 * eps_of(got.dtype)) >= float(info.max) / 2  # on the way, depending on the order
    return ~(same(got, want) | near | overflows)


def outside_scale(instance: Instance, got: Array, want: Array) -> Any:
    if not is_inexact(got.dtype.name):
        return ~same(got, want)
    if instance.kind == "triangle":  # the other triangle may hold anything
        keep = np.tril if "lower = true" in instance.body else np.triu
        got, want = keep(got), keep(want)
    finite = np.abs(want[np.isfinite(want)]).astype(np.float64)
    size = finite.max(initial=1)
    wide = np.complex128 if is_complex(got.dtype) else np.float64
    near = np.abs(got.astype(wide) - want.astype(wide)) <= instance.ulps * eps_of(got.dtype) * size
    return ~(same(got, want) | near)
