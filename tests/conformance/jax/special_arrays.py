# SPDX-License-Identifier: Apache-2.0
"""The arrays of special_points.py: ties, zeros, ones, infinities, NaN, the smallest and the largest numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Arrays = tuple[np.ndarray, ...]
Function = Callable[..., Any]  # of a namespace and arrays
Row = tuple[Function, tuple[Callable[[str], Arrays], ...]]

# ---- values ---------------------------------------------------------------------------------------------------------


def values(dtype: str) -> Arrays:
    """Zeros, ones, halves, exact multiples, the smallest and the largest numbers, infinities and NaN."""
    limits = np.finfo(dtype)
    plain = [0.0, 0.1, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 6.0, 30.0, 700.0, limits.max, np.inf]
    near = [limits.smallest_subnormal, limits.tiny, limits.eps, 1 - limits.epsneg, 1 + limits.eps]
    positive = np.array([*plain, *near], dtype)
    return (np.concatenate([positive, -positive, np.array([np.nan], dtype)]),)


def moderate(dtype: str) -> Arrays:
    """The values that are neither near 0 nor the largest ones."""
    (x,) = values(dtype)
    size = np.abs(x)
    return (x[(size == 0) | (size > 0.01) & (size != np.finfo(dtype).max)],)


def pairs(dtype: str) -> Arrays:
    """Every value with every other."""
    (x,) = values(dtype)
    return np.repeat(x, len(x)), np.tile(x, len(x))


def rows(dtype: str) -> Arrays:
    """Rows of five: equal numbers, zeros, ties of the largest and of the smallest, infinities, NaN, large numbers."""
    big, tiny = np.finfo(dtype).max, np.finfo(dtype).tiny
    ordinary = [
        [1, 1, 1, 1, 1], [0, 0, 0, 0, 0], [0.0, -0.0, 0.0, -0.0, 0.0], [-2, -2, -2, -2, -2], [3, 1, 3, 2, 3],
        [1, 3, 1, 2, 1], [0, 2, 3, 4, 5], [0, 2, 3, 0, 5], [2, 2, 3, 3, -3], [-1, 1, -1, 1, 0],
    ]  # fmt: skip
    others = [
        [np.inf, 1, np.inf, 2, 3], [-np.inf, 1, -np.inf, 2, 3], [np.inf, -np.inf, 0, 1, 1], [np.inf] * 5,
        [-np.inf] * 5, [np.nan, 1, np.nan, 2, 2], [0, np.nan, 0, 1, 1], [np.inf, np.nan, np.inf, 1, 1], [np.nan] * 5,
        [big, 1, 2, big, 3], [-big, 1, 0.5, 0.25, -0.5], [tiny, tiny, 0, -tiny, tiny], [0.5, 1.5, 2.5, -0.5, -1.5],
    ]  # fmt: skip
    return (np.array(ordinary + others, dtype),)


def finite(dtype: str) -> Arrays:
    """The rows of ordinary numbers: for functions of all elements, which one NaN would fill."""
    return (rows(dtype)[0][:10],)


def constant(dtype: str) -> Arrays:
    return (np.full((4, 3), 2, dtype),)


def zeros(dtype: str) -> Arrays:
    return (np.zeros((4, 3), dtype),)


def tied(dtype: str) -> Arrays:
    """A matrix whose largest and smallest numbers, row sums and column sums are tied, with a zero in it."""
    return (np.array([[1, -1, 2], [2, 1, -1], [-1, 0, 2], [-1, 2, 1]], dtype),)


def size_one(dtype: str) -> Arrays:
    return (np.full((1, 1), 0, dtype),)


def matrices(dtype: str) -> Arrays:
    """Two matrices with zeros, infinities and NaN: products where one operand is zero and the other is not finite."""
    x = np.array([[0, 1, -0.0], [1, 0, np.inf], [2, np.nan, 0]], dtype)
    y = np.array([[1, np.inf, 0], [0, -0.0, 1], [np.nan, 1, -1]], dtype)
    return x, y


def two_rows(dtype: str) -> Arrays:
    """Rows, and others that are equal to them at some places."""
    (x,) = rows(dtype)
    return x, np.roll(x, 1, axis=1)


def angles(dtype: str) -> Arrays:
    """Steps of half a turn and of whole turns, up and down, and just beside them."""
    turns = [[0, 0.5, 0, -0.5, 0], [0, 1, 2, 1.5, -1], [0, 0.25, 0.75, 1.5, 3], [0, 0.6, 0.1, 0.6001, 0.1]]
    return (np.array(turns, dtype) * np.array(np.pi, dtype) * 2,)


def knots(dtype: str) -> Arrays:
    """Numbers at, between and outside of points, the points, and a value at each; two of the points coincide."""
    x = [-1, 0, 0.5, 1, 1.5, 2, 2.5, 3, 4, np.inf, -np.inf, np.nan]
    return np.array(x, dtype), np.array([0, 1, 1, 2, 3], dtype), np.array([0, 1, 3, 2, 5], dtype)


def weighted(dtype: str) -> Arrays:
    """Rows of ordinary numbers, and weights for them: zeros, equal ones, and negative ones; none adds up to 0."""
    (x,) = finite(dtype)
    return x, np.array([[1] * 5, [0, 0, 1, 0, 0], [2, 1, 0, 1, -1], [0.5, 0.25, 0, 0, 1], [-1, -1, 0, 3, 1]] * 2, dtype)


def two_matrices(dtype: str) -> Arrays:
    """Two finite matrices with zeros and ties."""
    x = np.array([[0, 1, -0.0], [1, 0, 2], [2, -1, 0]], dtype)
    return x, np.array([[1, 1, 0], [0, -0.0, 1], [-1, 1, -1]], dtype)


ROWS = (rows,)
REDUCED = (finite, constant, zeros, tied, size_one)  # one number of each
