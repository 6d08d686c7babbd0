# SPDX-License-Identifier: Apache-2.0
"""Where a gradient differs from JAX's on purpose: the one list of such differences, each with what the gradient is.

A difference that is not in here fails test_special_points.py, and so does an entry that no point needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class At:
    """The gradients of one point by one of its arrays."""

    name: str
    arrays: tuple[Array, ...]
    operand: int
    ours: Array
    jax: Array
    values: tuple[Array, ...]  # NumPy's results
    jax_values: tuple[Array, ...]

    def results(self) -> list[tuple[Array, Array]]:
        """NumPy's and JAX's results that have an element for each of the operand's."""
        both = zip(map(np.asarray, self.values), self.jax_values)
        return [(x, y) for x, y in both if x.shape == self.ours.shape]


@dataclass(frozen=True)
class Convention:
    reason: str
    names: tuple[str, ...]  # of functions and their variants; () for all
    applies: Callable[[At], Array]  # at which elements
    holds: Callable[[At], Array]  # what our gradient is there

    def covers(self, at: At) -> Array:
        """The elements where the convention applies; it must hold there."""
        name = at.name.partition(" ")[0]
        if self.names and not {name, name.partition("-")[0]} & set(self.names):
            return np.zeros(at.ours.shape, bool)
        return np.broadcast_to(self.applies(at) & self.holds(at), at.ours.shape)


def _weights(at: At) -> Array:
    return np.array([1 + (i % 7) / 8 for i in range(at.ours.size)]).reshape(at.ours.shape)


def _is(at: At, expected: Array) -> Array:
    with np.errstate(all="ignore"):
        expected = (expected * _weights(at)).astype(at.ours.dtype)
    eps = float(np.finfo(at.ours.dtype).eps)
    return np.isclose(at.ours, expected, rtol=64 * eps, atol=8 * float(np.finfo(at.ours.dtype).tiny), equal_nan=True)


def _is_overflow(at: At) -> Array:
    return ~np.isfinite(at.jax)


def _results(test: Callable[[Array, Array], Array]) -> Callable[[At], Array]:
    """Where a result of NumPy and that of JAX pass the test."""
    return lambda at: np.any([np.zeros(at.ours.shape, bool), *(test(x, y) for x, y in at.results())], axis=0)


def _other_value(ours: Array, jax: Array) -> Array:
    return ~((ours == jax) & (np.signbit(ours) == np.signbit(jax)) | np.isnan(ours) & np.isnan(jax))


def _quotient(at: At) -> Array:
    x, y = (np.asarray(a, np.longdouble) for a in at.arrays)
    return _is(at, 1 / y if at.operand == 0 else -(x / y) / y)


def _hypotenuse(at: At) -> Array:
    x, y = (np.asarray(a, np.longdouble) for a in at.arrays)
    return _is(at, (x, y)[at.operand] / np.hypot(x, y))


def _share_of_larger(at: At) -> Array:
    own, other = _two(at) if at.operand == 0 else _two(at)[::-1]
    return _is(at, np.where(own == other, 0.5, own > other))


def _two(at: At) -> tuple[Array, Array]:
    """The operands; the second may have been the number 0."""
    return at.arrays[0], at.arrays[1] if len(at.arrays) == 2 else np.zeros_like(at.arrays[0])


def _beyond_logarithms(at: At) -> Array:
    x, y = _two(at)
    return np.asarray(np.maximum(np.abs(x), np.abs(y)) >= np.finfo(at.ours.dtype).max)


def _powers_of_zero_exponent(at: At) -> Array:
    if at.name.startswith("vander"):
        return np.isnan(at.jax)
    exponent = at.arrays[1] if len(at.arrays) == 2 else np.zeros(()) if at.name.endswith("0.0") else np.ones(())
    return np.asarray((exponent == 0) & (at.operand == 0) & np.isnan(at.jax))


def _is_derivative_at_zero(at: At) -> Array:
    """0; np.vander at 0 has the finite derivative of its column x**1."""
    return np.isfinite(at.ours) & (at.arrays[0] == 0) if at.name.startswith("vander") else at.ours == 0


def _same_total(at: At) -> Array:
    same = np.isclose(at.ours.sum(1), at.jax.sum(1), equal_nan=True) | np.isnan(at.arrays[0]).any(1)
    return np.asarray(same)[:, None]


def _is_subnormal(at: At) -> Array:
    smallest = np.finfo(at.ours.dtype).tiny
    return np.asarray(np.any([(x != 0) & (np.abs(x) < smallest) for x in at.arrays], axis=0))


CONVENTIONS = (
    Convention(
        "JAX's derivative divides by `y * y`, which overflows or underflows long before the derivative does.",
        ("divide",), _is_overflow, _quotient,
    ),
    Convention(
        "JAX's derivative is NaN where the square of the larger operand overflows or underflows.",
        ("hypot",), _is_overflow, _hypotenuse,
    ),
    Convention(
        "JAX's derivative is not finite where squares overflow.",
        ("var", "std", "nanvar", "nanstd"), _is_overflow, lambda at: np.isfinite(at.ours),
    ),
    Convention(
        "`x**0.0` is 1 everywhere, so its derivative is 0. JAX computes `0 * x**-1.0`, which is NaN if x is 0 or NaN. "
        "`np.vander` is made of such powers.",
        ("power", "float_power", "vander"), _powers_of_zero_exponent, _is_derivative_at_zero,
    ),
    Convention(
        "JAX replaces infinities by 0: the derivative at (x, inf) with respect to x is `e**x`, and at equal infinities "
        "it is (1, 1) or NaN. Here the larger operand gets the gradient, and equal operands share it.",
        ("logaddexp", "logaddexp2"), _beyond_logarithms, _share_of_larger,
    ),
    Convention(
        "Outside of the domain, where the result is NaN, the gradient is NaN. JAX's formula may be finite there.",
        ("arccosh", "float_power"), _results(lambda ours, jax: np.isnan(ours) & np.isnan(jax)),
        lambda at: np.isnan(at.ours),
    ),
    Convention(
        "Where `jax.numpy` returns another result than NumPy, as for `np.modf(inf)` and `(-0.0)**0.5`, the gradient is "
        "that of NumPy's function.",
        ("modf", "power-static"), _results(_other_value), lambda at: (at.ours == 0) | ~np.isfinite(at.ours),
    ),
    Convention(
        "The order of multiplications is not fixed. Where a product overflows or meets `0 * inf`, NaN and infinities "
        "may be at other elements than in JAX.",
        ("prod", "cumprod", "cumulative_prod", "multiply-accumulate", "nanprod", "nancumprod", "at-multiply-twice"),
        lambda at: ~(np.isfinite(at.ours) & np.isfinite(at.jax)),
        lambda at: np.ones(at.ours.shape, bool),
    ),
    Convention(
        "All equal elements up to a position share its gradient evenly, and NaN gets none. JAX halves the gradient at "
        "each step of its reduction tree.",
        ("maximum-accumulate", "minimum-accumulate"), lambda at: np.ones(at.ours.shape, bool), _same_total,
    ),
    Convention(
        "Subnormal numbers are not treated as zero, as XLA does on CPUs. Their squares underflow, as in JAX.",
        ("divide", "power", "float_power", "arctan2"), _is_subnormal, lambda at: ~np.isfinite(at.ours),
    ),
)  # fmt: skip
