# SPDX-License-Identifier: Apache-2.0
"""Reasons for differences between XLA:CPU and Shardwise, each with the sentence that decides and an example.

A mechanism is no list of ops: it returns the elements that it explains. It compares our value there with the one that
the specification gives: XLA's in float64, or NumPy's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

from shardwise.dtypes import as_wide, is_float, is_inexact, is_integer
from tests.conformance.stablehlo.ops.comparing import MOVES, Wide, differing, ours, same, same_bits
from tests.conformance.stablehlo.ops.references import reference
from tests.conformance.stablehlo.ops.specified import (
    bits_set,
    compared,
    convolved,
    flushed,
    is_subnormal,
    lexicographic,
    scattered,
    selected_and_scattered,
    upper_half,
    windows_of_updates,
)
from tests.op.catalogue.instance import Build, Instance, dense_ints, tensor
from tests.op.catalogue.scalar_regions import combiner
from tests.op.catalogue.values import Array
from tests.op.catalogue.window import selector
from tests.op.dtype_values import COMPLEX, bits_of, width_of


@dataclass
class Difference:
    """A result that differs from XLA's. `wider` is XLA's result computed in wider floats and rounded once."""

    instance: Instance
    result: int
    ours: Array
    xla: Array
    wide: Wide | None = None
    wider: Array | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.ours.dtype

    def operands(self) -> list[Array]:
        """The arguments broadcast to the result: as in NumPy, or along the dims that the op names."""
        named = re.search(r"broadcast_dimensions = array<i64(?:: ([\d, ]+))?>", self.instance.body)
        dims = [int(d) for d in (named[1] or "").split(",") if d.strip()] if named else None
        found = []
        for x in self.instance.arguments:
            if dims is not None and x.ndim == len(dims) < self.ours.ndim:
                x = x.reshape([x.shape[dims.index(d)] if d in dims else 1 for d in range(self.ours.ndim)])
            try:
                found.append(np.broadcast_to(x, self.ours.shape))
            except ValueError:
                continue
        return found

    def agrees(self, other: Array | None) -> Any:
        """The elements of our result that are within the instance's bound of another result."""
        return _near(self, self.ours, other)

    def shown(self, bad: Any) -> str:
        """The first element that differs, and the operands there."""
        at = tuple(np.argwhere(bad)[0])
        operands = ", ".join(str(x[at]) for x in self.operands())
        return (
            f"result {self.result} at {tuple(map(int, at))} is {self.ours[at]!r}, XLA gives {self.xla[at]!r} "
            f"for {operands} ({int(np.count_nonzero(bad))} elements differ)"
        )


@dataclass(frozen=True)
class Mechanism:
    """A reason for differences, which elements it explains, and a smallest instance."""

    name: str
    why: str
    explains: Callable[[Difference], Any]
    example: Callable[[], Instance]


# ---- predicates -----------------------------------------------------------------------------------------------------


def _near(d: Difference, one: Array, other: Array | None) -> Any:
    if other is None or other.shape != one.shape:
        return np.zeros(one.shape, bool)
    wide = Wide([as_wide(other)] * (d.result + 1), d.wide.terms) if d.wide else None
    return ~differing(d.instance, d.result, one, other.astype(d.dtype), True, wide)


ON_ONE_DEVICE = ("all_reduce", "reduce_scatter", "cross-replica-sum")  # they add nothing to their operand


def _subnormal(d: Difference) -> Any:
    """Where our result is XLA's in float64, or is exact in float64 and XLA's is what subnormals as zeros give."""
    if _of_ops("sort")(d):  # it compares numbers
        return _wider(d) & _any_subnormal(d)
    if _of_ops("constant")(d) and is_inexact(d.dtype):
        return is_subnormal(d.ours) & _is_literal(d) & (d.xla == 0)
    if _of_ops("iota", "dynamic_iota")(d) and d.dtype.name == "float8_e8m0fnu":  # XLA folds an iota of size 1
        return np.isnan(d.ours) & _wider(d)
    if is_integer(d.dtype) or (d.instance.op in MOVES and not _of_ops(*ON_ONE_DEVICE)(d)):
        return _nothing(d)
    found = is_subnormal(d.ours)
    for x in d.instance.arguments:
        found = found | (is_subnormal(x) if x.shape == d.ours.shape else np.any(is_subnormal(x)))
    widest = any(x.dtype in (np.float64, np.complex128) for x in (d.ours, *d.instance.arguments))
    widest = widest or NEXT_AFTER(d)  # wider floats have other neighbors
    if not np.any(found):
        return found
    return found & (_flushed(d) if widest else _wider(d))


def _is_literal(d: Difference) -> Any:
    """Where our result has the bits that the text of a constant gives for all elements."""
    bits = re.search(r"value = dense<0x([0-9A-F]+)>", d.instance.body)
    if bits is None:
        return _nothing(d)
    value = np.frombuffer(int(bits[1], 16).to_bytes(d.dtype.itemsize, "little"), d.dtype)
    return same_bits(d.ours, np.broadcast_to(value.reshape(()), d.ours.shape))


def _any_subnormal(d: Difference) -> Any:
    return np.any([np.any(is_subnormal(x)) for x in d.instance.arguments])


def _flushed(d: Difference) -> Any:
    """Where XLA's result is ours of flushed operands, or ours flushed, and ours is the specified one."""
    again = ours(_with_operands(d.instance, flushed))[d.result]
    zeros = [flushed(d.ours), again, flushed(again)]
    if _of_ops("convert")(d):  # XLA converts by way of float32
        zeros.append(ours(_with_operands(d.instance, lambda x: flushed(x, np.float32)))[d.result])
    if NEXT_AFTER(d):  # XLA takes operands that are equal then for the result
        zeros.append(d.operands()[1])
    # A flushed zero may lose its sign in a sum.
    return _is_specified(d) & np.any([_near(d, d.xla, x) | (d.xla == x) for x in zeros], axis=0)


def _with_operands(instance: Instance, change: Callable[[Array], Array]) -> Instance:
    return replace(instance, arguments=tuple(change(x) for x in instance.arguments))


def _is_specified(d: Difference) -> Any:
    """Where NumPy gives our result; true where it has no function for the op."""
    expected: Array | None = None
    if d.dtype == np.bool_:
        expected = compared(d.instance, d.operands())
    elif _of_ops(*ON_ONE_DEVICE)(d):
        expected = d.operands()[0]
    elif _of_ops("convert")(d):
        x = d.operands()[0]
        if d.dtype.name == "float8_e8m0fnu":  # the least number is the nearest one to smaller numbers
            x = np.where(x > 0, np.maximum(x, float(ml_dtypes.finfo(d.dtype).smallest_normal)), x)
        expected = x.astype(d.dtype)
    elif NEXT_AFTER(d):
        expected = np.nextafter(*d.operands())
    elif reference(d.instance.op) is not None:
        return _reference(d)
    if expected is None:
        return np.full(d.ours.shape, d.dtype != np.bool_)
    return d.agrees(expected)


def _wider(d: Difference) -> Any:
    return d.agrees(d.wider)


def _rounded_once(d: Difference) -> Any:
    """Where our result is XLA's in float64, rounded; of a conversion, NumPy's."""
    if width_of(d.dtype.name) > 16 or d.instance.op in MOVES or is_integer(d.dtype):
        return _nothing(d)
    converted = d.agrees(d.operands()[0].astype(d.dtype)) if _of_ops("convert")(d) else False
    return _wider(d) | converted


def _reference(d: Difference) -> Any:
    function = reference(d.instance.op)
    if function is None or d.dtype.name not in ("float64", *COMPLEX):
        return np.zeros(d.ours.shape, bool)
    with np.errstate(all="ignore"):
        return d.agrees(np.asarray(function(*d.operands())))


def _complementary_error(d: Difference) -> Any:
    """Where C's erfc is our result of float64."""
    if d.dtype != np.float64 or not _of_ops("erfc")(d):
        return _nothing(d)
    return d.agrees(np.vectorize(math.erfc, otypes=[np.float64])(d.operands()[0]))


def _nothing(d: Difference) -> Any:
    return np.zeros(d.ours.shape, bool)


def _of_ops(*names: str) -> Callable[[Difference], bool]:
    return lambda d: d.instance.op in {f"stablehlo.{n}" for n in names} | {f"chlo.{n}" for n in names}


NEXT_AFTER = _of_ops("next_after", "broadcast_next_after")


def _sub_byte(d: Difference) -> Any:
    if width_of(d.dtype.name) >= 8 or not is_integer(d.dtype) or not _of_ops("popcnt", "mulhi")(d):
        return _nothing(d)
    return d.agrees(bits_set(*d.operands()) if _of_ops("popcnt")(d) else upper_half(*d.operands()))


def _integer_power(d: Difference) -> Any:
    if not (_of_ops("power", "broadcast_power")(d) and is_integer(d.dtype)):
        return _nothing(d)
    base, exponent = d.operands()
    bits = width_of(d.dtype.name)
    right = [pow(int(b), int(e), 2**bits) if e >= 0 else None for b, e in zip(base.ravel(), exponent.ravel())]
    ours = [int(x) % 2**bits for x in d.ours.ravel()]
    return np.array([r == o for r, o in zip(right, ours)], bool).reshape(d.ours.shape)


QUIET_BITS = {"float16": 0x0200, "bfloat16": 0x0040}


def _moved_nan(d: Difference) -> Any:
    """NaN in both results, and our bits are those of a NaN of an operand; a sum may make it quiet (IEEE-754, 6.2)."""
    if width_of(d.dtype.name) > 16 or not is_float(d.dtype) or d.instance.op not in MOVES:
        return _nothing(d)
    nans = [a[np.isnan(a)] for a in d.instance.arguments if a.dtype == d.dtype]
    if _of_ops(*ON_ONE_DEVICE)(d) and d.dtype.name in QUIET_BITS:
        nans += [(x.view(np.uint16) | np.uint16(QUIET_BITS[d.dtype.name])).view(d.dtype) for x in nans]
    kept = {bytes(x) for a in nans for x in bits_of(a)}
    rows = bits_of(d.ours).reshape(-1, d.dtype.itemsize)
    moved = np.array([bytes(x) in kept for x in rows], bool).reshape(d.ours.shape)
    return np.isnan(d.ours) & np.isnan(d.xla) & moved


def _zero_alone(d: Difference) -> Any:
    """Where our result is the operand, and XLA's is the operand plus zero."""
    if not _of_ops("reduce_scatter")(d) or not is_inexact(d.dtype):
        return _nothing(d)
    (x,) = d.instance.arguments
    return same_bits(d.ours, x) & _near(d, d.xla, (x + np.zeros((), x.dtype)).astype(x.dtype))


def _complex_order(d: Difference) -> Any:
    """Where an operand has a NaN and our result is one of the operands, with a NaN."""
    named = _of_ops("maximum", "minimum", "clamp", "broadcast_maximum", "broadcast_minimum")
    if d.dtype.name not in COMPLEX or not named(d):
        return _nothing(d)
    return np.any([np.isnan(x) & same(d.ours, x) for x in d.operands()], axis=0)


def _equal_real_parts(d: Difference) -> Any:
    """Where ours is the lexicographic one, of operands of which XLA takes real parts for equal."""
    named = _of_ops("maximum", "minimum", "clamp", "broadcast_maximum", "broadcast_minimum")
    if d.dtype.name not in COMPLEX or not named(d):
        return _nothing(d)
    operands = d.operands()
    real = [flushed(x).real for x in operands]
    tied = np.any([x == y for i, x in enumerate(real) for y in real[:i]], axis=0)
    return tied & same(d.ours, lexicographic(d.instance.op.partition(".")[2].removeprefix("broadcast_"), operands))


def _ties(d: Difference) -> Any:
    return d.agrees(selected_and_scattered(d.instance)) if _of_ops("select_and_scatter")(d) else _nothing(d)


def _no_indices(d: Difference) -> Any:
    empty = _of_ops("scatter")(d) and "scatter_dims_to_operand_dims = []" in d.instance.body
    return d.agrees(scattered(d.instance)) if empty else _nothing(d)


def _partly_outside(d: Difference) -> Any:
    if not _of_ops("scatter")(d):
        return _nothing(d)
    shape, found = d.ours.shape, np.zeros(d.ours.shape, bool)
    for low, window in windows_of_updates(d.instance):
        high = [a + size for a, size in zip(low, window.shape)]
        if any(a < 0 or b > size for a, b, size in zip(low, high, shape)):
            found[tuple(slice(max(a, 0), max(b, 0)) for a, b in zip(low, high))] = True
    return found & d.agrees(scattered(d.instance)) if np.any(found) else found


def _padding(d: Difference) -> Any:
    """NaN where a NaN or an infinity of the kernel meets padding; in a dtype without NaN, what NaN becomes there."""
    if not _of_ops("convolution", "dynamic_conv")(d) or not is_float(d.dtype) or d.wide is None:
        return _nothing(d)
    if np.isfinite(as_wide(d.instance.arguments[1])).all():
        return _nothing(d)
    with np.errstate(all="ignore"):
        has_nan = np.isnan(np.asarray(np.nan).astype(d.dtype).astype(np.float64))
        is_nan = np.isnan(d.ours.astype(np.float64)) if has_nan else True
        return is_nan & np.isnan(convolved(d.instance))


def _digamma(d: Difference) -> Any:
    """Where the results are as near as the terms of a digamma are rounded, which are larger than 1."""
    if d.dtype != np.float64 or not _of_ops("digamma", "polygamma", "broadcast_polygamma")(d):
        return _nothing(d)
    is_digamma = d.operands()[0] == 0 if len(d.instance.arguments) > 1 else True
    return is_digamma & (np.abs(d.ours - d.xla) <= 16 * np.finfo(d.dtype).eps * np.maximum(np.abs(d.xla), 1))


def _log_gamma(d: Difference) -> Any:
    """Where the results are as near as the terms of a logarithm of gamma are rounded, which are larger than 1."""
    if d.dtype != np.float64 or not _of_ops("lgamma")(d):
        return _nothing(d)
    return np.abs(d.ours - d.xla) <= 16 * np.finfo(d.dtype).eps * np.maximum(np.abs(d.xla), 1)


# ---- examples -------------------------------------------------------------------------------------------------------


def _pointwise(op: str, dtype: str, *operands: Sequence[Any], ulps: float = 0) -> Callable[[], Instance]:
    def build() -> Instance:
        b = Build(op, dtype, np.random.default_rng(0))
        arrays = [np.array(x).astype(dtype) for x in operands]
        b.op([b.argument(x) for x in arrays], [(arrays[0].shape, dtype)])
        b.compare_with("ulps" if ulps else "exact", ulps)
        return b.built(0)

    return build


def _bits(op: str, dtype: str, *patterns: Sequence[int]) -> Callable[[], Instance]:
    """The first operand is a predicate."""

    def build() -> Instance:
        b = Build(op, dtype, np.random.default_rng(0))
        arrays = [np.array(p, np.uint8).view(dtype) for p in patterns]
        operands = [b.argument(np.ones(arrays[0].shape, np.bool_)), *(b.argument(x) for x in arrays)]
        b.op(operands, [(arrays[0].shape, dtype)])
        return b.built(0)

    return build


def _of_text(op: str, dtype: str, body: str, *arrays: Array) -> Callable[[], Instance]:
    """One result of the type of the first argument, which the body calls %r."""
    return lambda: Instance(op, 0, dtype, arrays, body, ("%r",), ((arrays[0].shape, dtype),))


def _scatter(numbers: str, operand: list[int], indices: Array, updates: Array) -> Callable[[], Instance]:
    x = np.array(operand, np.int32)
    types = ", ".join(tensor(a.shape, a.dtype.name) for a in (x, indices, updates))
    body = (
        f'  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>}}> '
        f"({combiner('add', 'int32')}) : ({types}) -> {tensor(x.shape, 'int32')}\n"
    )
    return _of_text("stablehlo.scatter", "int32", body, x, indices, updates)


def _window_of_ties() -> Instance:
    b = Build("stablehlo.select_and_scatter", "int32", np.random.default_rng(0))
    operand = np.array([[1, 0], [1, 0], [0, 1]], np.int32)
    operands = [b.argument(x) for x in (operand, np.ones((3, 2), np.int32), np.array(0, np.int32))]
    properties = (
        "window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1, 1>, "
        f"padding = {dense_ints([[1, 0], [1, 0]])}"
    )
    regions = f"{selector('int32', 'LE')}, {combiner('add', 'int32')}"
    b.op(operands, [((3, 2), "int32")], properties, regions)
    return b.built(0)


def _infinite_tap() -> Instance:
    b = Build("stablehlo.convolution", "float32", np.random.default_rng(0))
    operands = [b.argument(np.ones((1, 2, 1), np.float32)), b.argument(np.array([[[1]], [[np.inf]]], np.float32))]
    properties = (
        "batch_group_count = 1 : i64, feature_group_count = 1 : i64, "
        "dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, window_strides = array<i64: 1>, "
        f"lhs_dilation = array<i64: 1>, rhs_dilation = array<i64: 1>, padding = {dense_ints([[0, 1]])}"
    )
    b.op(operands, [((1, 2, 1), "float32")], properties)
    b.compare_with("sum", 8)
    return b.built(0)


def _negative_zero_alone() -> Instance:
    b = Build("stablehlo.reduce_scatter", "float32", np.random.default_rng(0))
    properties = "replica_groups = dense<0> : tensor<1x1xi64>, scatter_dimension = 0 : i64"
    b.op([b.argument(np.array([-0.0], np.float32))], [((1,), "float32")], properties, combiner("add", "float32"))
    return b.built(0)


TINY = float(np.finfo(np.float32).smallest_subnormal)

MECHANISMS: list[Mechanism] = [
    Mechanism(
        "NaN of narrow floats",
        "XLA:CPU moves 8-bit floats as float16, and bfloat16 as float32, and back to one NaN for all of theirs. The "
        "specification moves elements (select: on_true[...] or on_false[...]); we keep their bits.",
        _moved_nan,
        _bits("stablehlo.select", "float8_e3m4", [0x7F, 0x7D], [0x71, 0x72]),
    ),
    Mechanism(
        "subnormal numbers",
        "XLA:CPU sets flush-to-zero: subnormal operands and results are zeros. The specification: floats "
        "'correspond to IEEE-754', which has them; float8_e8m0fnu, without a zero, gets NaN. XLA's result in "
        "float64 is ours; in float64, XLA's is ours with subnormals as zeros.",
        _subnormal,
        _pointwise("stablehlo.multiply", "float32", [TINY], [1.0]),
    ),
    Mechanism(
        "rounded twice",
        "XLA:CPU computes 8-bit floats in float16 and rounds again, and divides 16-bit floats by a scalar by "
        "multiplying. The specification rounds the exact result once; XLA's result in float64, rounded, is ours.",
        _rounded_once,
        _pointwise("stablehlo.sqrt", "float8_e3m4", [15.5]),
    ),
    Mechanism(
        "approximations of float32",
        "XLA's polynomials of float32 and its complex functions of complex64 are farther from the exact value than "
        "the bound of the op; in float64 XLA gives our result. The specification: implementation-defined accuracy.",
        lambda d: _nothing(d) if d.instance.op in MOVES or is_integer(d.dtype) else _wider(d),
        _pointwise("chlo.lgamma", "float32", [1.0], ulps=16),
    ),
    Mechanism(
        "branch cuts and overflow of complex functions",
        "XLA decomposes them into real functions that lose the sign of a zero, or overflow on the way. NumPy in "
        "long double, with C99's branch cuts, gives our result.",
        _reference,
        _pointwise("stablehlo.sqrt", "complex128", [complex(-1.0, -0.0)], ulps=8),
    ),
    Mechanism(
        "erfc far from zero",
        "XLA multiplies by exp(-x*x) and rounds x*x: its relative error grows with x*x. C's erfc gives our result. The "
        "specification: implementation-defined accuracy.",
        _complementary_error,
        _pointwise("chlo.erfc", "float64", [11.130742015679104], ulps=10),
    ),
    Mechanism(
        "roots of digamma",
        "Near its roots, digamma is a difference of terms that are larger than 1. XLA's terms are Lanczos's, ours are "
        "a logarithm and reciprocals: either sum has their rounding errors, at most 8 eps. The specification: "
        "implementation-defined accuracy.",
        _digamma,
        _pointwise("chlo.digamma", "float64", [1.4609432278063286], ulps=16),
    ),
    Mechanism(
        "roots of lgamma",
        "Near 1 and 2, where lgamma is 0, XLA's result is a difference of terms that are larger than 1, with their "
        "rounding errors. SciPy's gammaln gives ours. The specification: implementation-defined accuracy.",
        _log_gamma,
        _pointwise("chlo.lgamma", "float64", [0.9522267838067897], ulps=16),
    ),
    Mechanism(
        "maximum and minimum of complex NaN",
        "The specification compares complex numbers lexicographically and does not define the place of NaN. We return "
        "the NaN, as IEEE-754-2019 maximum does for real numbers; XLA returns the other operand.",
        _complex_order,
        _pointwise("stablehlo.maximum", "complex64", [complex(np.nan, 0.5)], [1 + 1j]),
    ),
    Mechanism(
        "maximum and minimum of complex numbers with equal real parts",
        "The specification: for complex numbers, the lexicographic maximum of (real, imaginary) pairs. XLA's maximum "
        "compares real parts alone, and subnormal ones as zeros; of equal ones, it returns the first operand. "
        "(JAX's own functions do not use it.)",
        _equal_real_parts,
        _pointwise("stablehlo.maximum", "complex64", [1 - 1j], [1 + 7j]),
    ),
    Mechanism(
        "integers narrower than a byte",
        "XLA:CPU computes popcnt and mulhi of int4 in a byte whose upper bits are undefined. The specification: popcnt "
        "is the number of bits set in each element, mulhi the upper half of the product.",
        _sub_byte,
        _pointwise("stablehlo.popcnt", "int4", [-1, -7]),
    ),
    Mechanism(
        "powers of integers",
        "XLA multiplies for the low bits of the exponent only. The specification: 'integer exponentiation'; ours is "
        "the exact power modulo 2^bits.",
        _integer_power,
        _pointwise("stablehlo.power", "int64", [2, -6], [2**63 - 1, 686335322664527754]),
    ),
    Mechanism(
        "ties of select_and_scatter",
        "A window with equal elements: the specification reduces it by the selecting region in no fixed order. We "
        "take the first element that the region keeps; XLA visits a padded window in another order.",
        _ties,
        _window_of_ties,
    ),
    Mechanism(
        "reduce_scatter of one -0",
        "XLA:CPU adds the operand to zero. The specification: reduce_scatter splits the result of all_reduce, which is "
        "reduce_without_init, whose 'schedule doesn't include init values': the sum of one -0 is -0.",
        _zero_alone,
        _negative_zero_alone,
    ),
    Mechanism(
        "padding times infinity",
        "The specification pads the operand with zeros and contracts: zero times infinity is NaN. XLA:CPU leaves the "
        "padding out.",
        _padding,
        _infinite_tap,
    ),
    Mechanism(
        "scatter without indexed dims",
        "Indices with an empty vector address the first element. The specification applies every update; XLA "
        "applies the last one only.",
        _no_indices,
        _scatter(
            "inserted_window_dims = [0], scatter_dims_to_operand_dims = [], index_vector_dim = 1",
            [1, 2], np.zeros((3, 0), np.int32), np.array([10, 20, 30], np.int32),
        ),
    ),
    Mechanism(
        "windows of scatter partly outside",
        "The specification decides for each element: 'If result_index is in bounds for shape(results...)'. XLA "
        "drops the whole window.",
        _partly_outside,
        _scatter(
            "update_window_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 1",
            [1, 2, 3], np.array([[2]], np.int32), np.array([[10, 20]], np.int32),
        ),
    ),
]  # fmt: skip
