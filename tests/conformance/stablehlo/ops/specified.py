# SPDX-License-Identifier: Apache-2.0
"""Results that the specification gives, computed by NumPy element by element, for the mechanisms."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

import shardwise as sw
from shardwise.dtypes import as_wide, is_complex, is_float, is_inexact, is_integer
from tests.op.catalogue.instance import Instance
from tests.op.catalogue.values import Array, integer_ends, parts_of

Box = tuple[slice, ...]


def attributes(instance: Instance) -> dict[str, Any]:
    ops = sw.parse(instance.text())._core.ops
    return dict(next(op for op in ops if op.name == instance.op).attributes)


def windows_of_updates(instance: Instance) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Where each window of a scatter begins in the operand, in or out of bounds, and its elements."""
    numbers = attributes(instance)["scatter_dimension_numbers"].fields
    operand, indices, updates = instance.arguments[:3]
    names = ("update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims")
    windows, inserted, batching, start_batching = (tuple(numbers.get(name) or ()) for name in names)
    vector = numbers.get("index_vector_dim", 0)
    whole = [d for d in range(operand.ndim) if d not in (*inserted, *batching)]
    sizes = [1] * operand.ndim
    for d, window in zip(whole, windows):
        sizes[d] = updates.shape[window]
    by_window = np.moveaxis(updates, windows, range(updates.ndim - len(windows), updates.ndim))
    starts = indices if vector < indices.ndim else indices[..., np.newaxis]
    starts = np.moveaxis(starts, vector, -1)
    for at in np.ndindex(*starts.shape[:-1]):
        low = [0] * operand.ndim
        for d, start in zip(numbers.get("scatter_dims_to_operand_dims") or (), starts[at]):
            low[d] = int(start)
        for d, of_start in zip(batching, start_batching):
            low[d] = at[of_start - (of_start > vector)]
        yield tuple(low), by_window[at].reshape(sizes)


COMBINERS: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum, "or": np.bitwise_or,
    "and": np.bitwise_and, "xor": np.bitwise_xor,
}  # fmt: skip


def combine(instance: Instance) -> Callable[[Any, Any], Any]:
    """The region of a reduction or scatter; one without an op returns its second argument."""
    found = re.search(r"%uv = stablehlo\.(\w+) %u, %v", instance.body)
    return COMBINERS[found[1]] if found else lambda _, new: new


def computed_in(x: Array) -> Array:
    """In a dtype that NumPy computes with: wide floats, or Python's integers."""
    return as_wide(x) if is_inexact(x.dtype) else x if x.dtype == np.bool_ else x.astype(object)


def wrapped(x: Array, dtype: np.dtype[Any]) -> Array:
    if not is_integer(dtype):
        return x.astype(dtype)
    low, high = integer_ends(dtype.name)
    return (
        np.array([(int(v) - low) % (high - low + 1) + low for v in x.reshape(-1)], object)
        .reshape(x.shape)
        .astype(dtype)
    )


def scattered(instance: Instance) -> Array:
    """The result of a scatter: each element of an update counts where its own index is in bounds."""
    operand = instance.arguments[0]
    found, function = computed_in(operand).copy(), combine(instance)
    for low, window in windows_of_updates(instance):
        values = computed_in(window)
        for at in np.ndindex(*window.shape):
            to = tuple(a + b for a, b in zip(low, at))
            if all(0 <= i < size for i, size in zip(to, operand.shape)):
                found[to] = function(found[to], values[at])
    return wrapped(found, operand.dtype)


def selected_and_scattered(instance: Instance) -> Array:
    """The result of a select_and_scatter that keeps the first of the elements that its region keeps."""
    numbers = attributes(instance)
    operand, source, initial = instance.arguments
    ordered, values = computed_in(operand), computed_in(source)
    found, function = np.full(operand.shape, computed_in(initial)[()]), combine(instance)
    keeps = np.greater_equal if "compare GE" in instance.body else np.less_equal
    for at in np.ndindex(*source.shape):
        low = [i * k - pads[0] for i, k, pads in zip(at, numbers["window_strides"], numbers["padding"].tolist())]
        selected = None
        for offset in np.ndindex(*numbers["window_dimensions"]):
            to = tuple(a + b for a, b in zip(low, offset))
            if all(0 <= i < size for i, size in zip(to, operand.shape)):
                selected = to if selected is None or not keeps(ordered[selected], ordered[to]) else selected
        if selected is not None:
            found[selected] = function(found[selected], values[at])
    return wrapped(found, operand.dtype)


def lists_of(text: str, name: str) -> list[int]:
    """The integers of a property that is a list."""
    found = re.search(rf"{name} = (?:array<i64(?:: ([-\d, ]+))?>|dense<([-\[\]\d, ]*)>)", text)
    return [int(x) for x in re.findall(r"-?\d+", found[1] or found[2] or "")] if found else []


def convolved(instance: Instance) -> Array:
    """A convolution in float64 over the padded and dilated operand: its zeros count as factors."""
    text = instance.for_xla or instance.body
    labels = re.search(r"#stablehlo.conv<\[([^]]*)\]x\[([^]]*)\]->\[([^]]*)\]>", text)
    assert labels
    left, right, made = ([x.strip() for x in labels[i].split(",")] for i in (1, 2, 3))
    space = [str(i) for i in range(len(left) - 2)]
    image, kernel = (as_wide(x) for x in instance.arguments[:2])
    image = image.transpose([left.index(c) for c in ("b", "f", *space)])
    kernel = kernel.transpose([right.index(c) for c in ("o", "i", *space)])
    counts = [int(x) for x in re.findall(r"(?:batch|feature)_group_count = (\d+)", text)]
    strides, dilation, pads = (lists_of(text, x) for x in ("window_strides", "rhs_dilation", "padding"))
    flips = re.search(r"window_reversal = array<i1: ([^>]*)>", text)
    for d, flip in enumerate(flips[1].split(", ") if flips else ()):
        kernel = np.flip(kernel, d + 2) if flip == "true" else kernel
    for d, step in enumerate(lists_of(text, "lhs_dilation")):
        wider = np.zeros((*image.shape[: d + 2], max((image.shape[d + 2] - 1) * step + 1, 0), *image.shape[d + 3 :]))
        wider[(slice(None),) * (d + 2) + (slice(None, None, step),)] = image
        low, high = pads[2 * d : 2 * d + 2]
        wider = np.pad(wider, [(max(low, 0), max(high, 0)) if i == d + 2 else (0, 0) for i in range(wider.ndim)])
        image = np.take(wider, range(max(-low, 0), wider.shape[d + 2] - max(-high, 0)), axis=d + 2)
    sizes = [instance.results[0][0][made.index(c)] for c in space]
    found = np.zeros((image.shape[0] // counts[0], kernel.shape[0], *sizes))
    features, outs = kernel.shape[1], kernel.shape[0] // (counts[0] * counts[1])
    for at in np.ndindex(*sizes):
        window = image
        for d, i in enumerate(at):
            taps = [i * strides[d] + k * dilation[d] for k in range(kernel.shape[d + 2])]
            window = np.take(window, taps, axis=d + 2)
        for o in range(kernel.shape[0]):
            group = o // outs
            rows = slice(None) if counts[0] == 1 else slice(group * found.shape[0], (group + 1) * found.shape[0])
            first = group * features if counts[1] > 1 else 0
            terms = window[rows, first : first + features] * kernel[o]
            found[(slice(None), o, *at)] = terms.reshape(found.shape[0], -1).sum(axis=1)
    return found.transpose([("b", "f", *space).index(c) for c in made])


def bits_set(x: Array) -> Array:
    """popcnt: the set bits of each element."""
    low, high = integer_ends(x.dtype.name)
    return np.array([bin(int(v) & (high - low)).count("1") for v in x.reshape(-1)]).reshape(x.shape).astype(x.dtype)


def upper_half(a: Array, b: Array) -> Array:
    """mulhi: the upper half of each product."""
    low, high = integer_ends(a.dtype.name)
    bits = (high - low).bit_length()
    return ((a.astype(np.int64) * b.astype(np.int64)) >> bits).astype(a.dtype)


COMPARISONS = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
}  # fmt: skip


def compared(instance: Instance, operands: list[Array]) -> Array | None:
    """The result of a compare of two float64 or complex128 arrays; None for a total order, which is one of bits."""
    direction = re.search(r"comparison_direction (\w+)", instance.body)
    if direction is None or "TOTALORDER" in instance.body:
        return None
    return np.asarray(COMPARISONS[direction[1]](*operands))


def lexicographic(op: str, operands: Sequence[Array]) -> Array:
    """The maximum, minimum or clamp of complex numbers, by their (real, imaginary) pairs; of equal ones, the first."""
    if op == "clamp":
        low, x, high = operands
        return lexicographic("minimum", (lexicographic("maximum", (x, low)), high))
    x, y = operands
    if op == "minimum":
        is_first = (x.real < y.real) | ((x.real == y.real) & (x.imag <= y.imag))
    else:
        is_first = (x.real > y.real) | ((x.real == y.real) & (x.imag >= y.imag))
    return np.where(is_first, x, y)


def is_subnormal(x: Array) -> Any:
    if is_complex(x.dtype):
        return is_subnormal(x.real) | is_subnormal(x.imag)
    if not is_float(x.dtype):
        return np.zeros(x.shape, bool)
    size = np.abs(x.astype(np.float64))
    return (size <= float(ml_dtypes.finfo(x.dtype).smallest_normal)) & (size > 0)


def flushed(x: Array, to: Any = None) -> Array:
    """With zeros of the same sign for subnormal numbers; for those of another dtype."""
    if not is_inexact(x.dtype):
        return x
    if is_complex(x.dtype):
        made = np.empty(x.shape, x.dtype)
        made.real, made.imag = flushed(x.real, to), flushed(x.imag, to)
        return made
    small = np.abs(x) < float(ml_dtypes.finfo(to or parts_of(x.dtype.name)).smallest_normal)
    return np.where(small, np.copysign(np.zeros((), x.dtype), x), x).astype(x.dtype)
