# SPDX-License-Identifier: Apache-2.0
"""Compares the results of a program on another engine with those of the virtual mesh.

    for got, want, exact in zip(found, expected, exact_results(program), strict=True):
        assert_near(got, want, exact)

A result is exact, in every bit, if each op that it depends on is: movement, integers, comparisons, maxima, random bits,
conversions, and sums, products, quotients and roots of single numbers. XLA may contract a product and a sum, it
multiplies by the reciprocals of constants, and the order of reductions may differ.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from shardwise.interop.source.target import attributes
from tests.support.partitioned import same_values, unit_in_last_place

__all__ = ["assert_near", "exact_results"]

_ULPS = 8
_NARROW_ULPS = 1  # sums of narrow floats are accumulated in float32, and rounded once
_ROUNDED_ONCE = {f"stablehlo.{name}" for name in (
    "abs", "ceil", "clamp", "compare", "convert", "divide", "floor", "is_finite", "maximum", "minimum", "negate",
    "remainder", "round_nearest_afz", "round_nearest_even", "select", "sign", "sqrt", "bitcast_convert", "multiply",
    "real", "imag", "complex", "sort", "reduce_precision", "optimization_barrier",
)}  # fmt: skip
_SUMS = {"stablehlo.add", "stablehlo.subtract"}
_CHOOSING = {f"stablehlo.{name}" for name in ("reduce", "reduce_window", "scatter", "sort")}  # if their regions choose
_FROM_BITS = {"stablehlo.iota", "stablehlo.constant", "shardwise.random_bits", "stablehlo.rng_bit_generator"}


def exact_results(program: Any) -> list[bool]:
    """For each result of the user, whether another engine must give the same bits."""
    body = program._compiled.stages["global"].main.body
    exact: dict[Any, bool] = dict.fromkeys(body.arguments, True)
    for op in body.ops:
        is_exact = all(exact.get(value, False) for value in op.operands) and _is_exact(op)
        exact.update(dict.fromkeys(op.results, is_exact))
    return [exact[value] for value in body.results[: program._traced.out_tree.num_leaves]]


def _is_exact(op: Any) -> bool:
    """Whether it gives the same bits everywhere for the same operands."""
    kinds = [value.type.dtype for value in (*op.operands, *op.results)]
    if op.definition.movement or op.definition.annotation or op.name in _FROM_BITS:
        return not op.regions or all(map(_chooses, op.regions))
    if op.regions:
        return op.name in _CHOOSING and all(map(_chooses, op.regions))
    if not any("float" in kind or "complex" in kind for kind in kinds):
        return True
    if any("complex" in kind for kind in kinds) and op.name not in ("stablehlo.real", "stablehlo.imag"):
        return False
    if op.name == "stablehlo.divide":  # XLA multiplies by the reciprocal of a constant
        return _has_exact_reciprocal(op.operands[1])
    if op.name in _SUMS:
        made = [value.defining_op for value in op.operands]
        return all(each is None or each.name != "stablehlo.multiply" for each in made)
    return op.name in _ROUNDED_ONCE


def _has_exact_reciprocal(value: Any) -> bool:
    """Whether a divisor is not a constant, or one of powers of two."""
    op = value.defining_op
    while op is not None and op.operands:
        op = op.operands[0].defining_op
    if op is None or op.name != "stablehlo.constant":
        return True
    return bool((np.abs(np.frexp(np.asarray(attributes(op)["value"]).astype(np.float64))[0]) == 0.5).all())


def _chooses(region: Any) -> bool:
    """Whether a region has no sum or product of floats, whose order would matter."""
    return all(
        op.name in (_ROUNDED_ONCE | _FROM_BITS) - {"stablehlo.multiply", "stablehlo.divide"}
        or not any(
            "float" in value.type.dtype or "complex" in value.type.dtype for value in (*op.operands, *op.results)
        )
        for op in region.ops
    )


def assert_near(got: Any, want: Any, exact: bool, terms: float = 0.0) -> None:
    """Bits for integers and exact results, else 8 eps of the largest element, and one unit of each for narrow floats.

    8 eps of the largest element is less than the bound of a sum, 8 eps of the magnitudes of its terms, if these cancel:
    then ``terms`` is the sum of the magnitudes.
    """
    want = np.asarray(want)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    if got.dtype.kind == "c":
        assert_near(got.real, want.real, exact, terms)
        assert_near(got.imag, want.imag, exact, terms)
        return
    is_float = got.dtype.kind in "fV" and "int" not in got.dtype.name
    if exact or not is_float:
        assert same_values(got, want), f"must be the same bits, got\n{got}\n{want}"
        return
    wide = np.abs(want.astype(np.float64))
    finite = np.where(np.isfinite(wide), wide, 0)
    if ml_dtypes.finfo(got.dtype).bits < 32:
        allowed = _NARROW_ULPS * unit_in_last_place(finite, got.dtype)
    else:
        allowed = _ULPS * float(ml_dtypes.finfo(got.dtype).eps) * finite.max(initial=terms)
    with np.errstate(invalid="ignore"):
        distance = np.abs(got.astype(np.float64) - want.astype(np.float64))
        is_near = (distance <= allowed) | (got == want) | (np.isnan(got) & np.isnan(want))
    assert is_near.all(), f"{distance.max()} from the result, where {np.max(allowed)} is allowed\n{got}\n{want}"
