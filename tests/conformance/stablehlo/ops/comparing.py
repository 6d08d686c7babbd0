# SPDX-License-Identifier: Apache-2.0
"""Differences between two results of an instance: bits, units in the last place, or the rounding errors of sums.

differing(instance, k, got, want, ULPS)  # a mask over the elements of result k
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

import shardwise as sw
from shardwise.dtypes import as_wide, is_complex, is_float, is_inexact, is_signed
from tests.conformance.stablehlo.ops.invariants import has_numbers
from tests.conformance.stablehlo.ops.xla import CONTRACTIONS, WIDER, Xla
from tests.op.catalogue import collectives, create, dynamism, layout, slicing
from tests.op.catalogue.instance import Instance
from tests.op.catalogue.values import Array, integer_ends, parts_of
from tests.op.dtype_values import bits_of, width_of

# These keep every bit, of NaN too.
MOVES = {
    *layout.DRAWS, *slicing.DRAWS, *create.DRAWS, *dynamism.DRAWS, *collectives.DRAWS, "stablehlo.gather",
    "stablehlo.torch_index_select", "stablehlo.sort", "stablehlo.bitcast_convert", "stablehlo.select",
}  # fmt: skip
CALL = "stablehlo.custom_call"
PER_MATRIX = ("stablehlo.cholesky", "stablehlo.triangular_solve")
# Units in the last place of a narrow float by which a partitioned sum may miss the bounds of a whole one.
SPLIT_ULPS = 2
ROUNDED = ("sum", "product", "scaled", "triangle")  # kinds of comparison that allow the rounding errors of a sum


@dataclass(frozen=True)
class Wide:
    """XLA's results in float64 or complex128 for an instance that adds, not rounded; and Σ|terms|, if it is a sum."""

    values: list[Array]
    terms: list[Array] | None = None


def differing(instance: Instance, k: int, got: Array, want: Array, whole: bool, wide: Wide | None = None) -> Any:
    """Which elements differ by more than the instance allows.

    `whole` compares with XLA; otherwise a partitioned run is compared with our whole run, or with the wide results.
    """
    with np.errstate(all="ignore"):
        kind = instance.kind
        if instance.op.startswith(CALL):
            if not whole and not instance.op.endswith("@trsm"):  # one call for each matrix: the same bits
                return ~same(got, want)
            if not whole and wide is None and is_inexact(got.dtype):  # BLAS rounds by how many rows it is given
                wide = Wide([as_wide(want)] * (k + 1))
            of_numbers = has_numbers(instance)
            finite = of_numbers.reshape(of_numbers.shape + (1,) * (got.ndim - of_numbers.ndim))
            bad = outside_bounds(instance, k, got, wide, whole) if wide and is_inexact(got.dtype) else ~same(got, want)
            return bad & finite
        if kind in ROUNDED and is_inexact(got.dtype):
            return outside_bounds(instance, k, got, wide or Wide([as_wide(want)] * (k + 1)), whole)
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
    if x.dtype.name == "float8_e8m0fnu":  # it has no sign
        return raw.astype(np.int64)
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


def of_magnitudes(instance: Instance) -> Instance:
    """The instance in wide floats on the absolute values of its numbers; its results are Σ|terms|."""
    wide = instance.with_dtypes(WIDER)
    arguments = list(wide.arguments)
    for i, x in enumerate(arguments):
        if is_inexact(x.dtype):
            orders = instance.op == "stablehlo.select_and_scatter" and i == 0
            arguments[i] = x if orders else np.abs(x).astype(x.dtype)
        elif is_signed(x.dtype) and instance.op in CONTRACTIONS:
            least = integer_ends(x.dtype.name)[0]  # it has no absolute value
            arguments[i] = np.abs(np.maximum(x.astype(np.int64), least + 1)).astype(x.dtype)
    return replace(wide, arguments=tuple(arguments))


def wide_results(instances: Sequence[Instance], xla: Xla) -> list[Wide | str]:
    """The wide results of instances whose kind is ROUNDED, or why XLA gives none."""
    sums = [x for x in instances if x.kind in ("sum", "product")]
    answers = iter(xla.run([x.with_dtypes(WIDER) for x in instances] + [of_magnitudes(x) for x in sums]))
    values = [next(answers) for _ in instances]
    terms = {id(x): next(answers) for x in sums}
    found: list[Wide | str] = []
    for instance, own in zip(instances, values):
        sizes = terms.get(id(instance))
        if isinstance(own, str) or isinstance(sizes, str):
            found.append(own if isinstance(own, str) else str(sizes))
        else:
            found.append(Wide(own, [np.abs(x) for x in sizes] if sizes is not None else None))
    return found


def ours(instance: Instance) -> list[Array]:
    """The whole program by ``Module.run``."""
    returned = sw.parse(instance.text()).run(*instance.arguments)
    return [np.asarray(x) for x in (returned if isinstance(returned, tuple) else (returned,))]


def sizes_of(instance: Instance, value: Array) -> Array:
    """For each element the largest finite one of its matrix, or of the whole array where it is no matrix."""
    finite = np.where(np.isfinite(value), np.abs(value), 0)
    axes = (-2, -1) if value.ndim > 2 and instance.op.startswith((*PER_MATRIX, CALL)) else None
    return np.broadcast_to(finite.max(axis=axes, keepdims=True, initial=0), value.shape)


def outside_bounds(instance: Instance, k: int, got: Array, wide: Wide, whole: bool) -> Any:
    """Which elements a sum in float32 (float64 for the wide dtypes), rounded once, cannot be.

    A sum of n terms has an error of at most n·eps·Σ|terms|. Narrow floats are compared in the order of their values:
    the sum must be one of those to which the interval of the possible sums rounds.
    """
    value = np.asarray(wide.values[k])
    terms = wide.terms[k] if wide.terms else sizes_of(instance, value)
    if instance.kind == "triangle":  # the other triangle may hold anything
        keep = np.tril if "lower = true" in instance.body else np.triu
        got, value = keep(got), keep(value)
    part = parts_of(got.dtype.name)
    steps = np.finfo(np.float64 if part.itemsize == 8 else np.float32)
    small = steps.smallest_normal if part.itemsize == 8 else steps.smallest_subnormal  # XLA flushes in float64
    slack = (1 if whole else 2) * instance.ulps * (float(steps.eps) * terms + float(small))
    if not whole and got.dtype.name == "bfloat16":  # each device rounds its addend once before the collective
        slack = slack + float(ml_dtypes.finfo(got.dtype).eps) / 2 * terms
    most = float(steps.max if whole else ml_dtypes.finfo(part).max)
    overflows = ~np.isfinite(got) & (terms * (1 + 64 * float(steps.eps)) >= most / 2)  # depends on the order
    exact = same(got, value.astype(got.dtype)) | (np.isfinite(value) & overflows)
    if is_complex(got.dtype) or part.itemsize >= 4:
        return ~(exact | (np.abs(got.astype(value.dtype) - value) <= np.where(np.isfinite(slack), slack, 0)))
    return ~(exact | within_rounded(got, value - slack, value + slack, 0 if whole else SPLIT_ULPS))


def within_rounded(got: Array, low: Array, high: Array, ulps: int) -> Any:
    """Whether elements lie between two numbers rounded to their dtype; past the largest one is what overflow gives."""
    past = int(ordinals(np.asarray(ml_dtypes.finfo(got.dtype).max, got.dtype))) + 1

    def place(x: Array, sign: Array) -> Any:
        return np.where(np.isfinite(x), ordinals(x), np.where(sign < 0, -past, past))

    least, most = (place(x.astype(got.dtype), x) for x in (low, high))
    own = place(got, got)
    inside = (own >= least - ulps) & (own <= most + ulps)
    return (inside | (np.isnan(got) & (least - ulps <= -past))) & np.isfinite(low) & np.isfinite(high)
