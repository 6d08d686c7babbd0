# SPDX-License-Identifier: Apache-2.0
"""The error function, and its inverse by polynomials in w = -log(1 - x²), one for the centre and others for the tails.

Source: Giles, "Approximating the erfinv function", GPU Computing Gems Jade Edition, 2011. The order of operations is
XLA's, which JAX's numbers need. The op chlo.erf_inv has the same coefficients, and more digits near ±1.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from .. import _core
from ..recording.tracing import Tracer

__all__ = ["erf", "erf_inv"]


def erf(x: Any) -> Any:
    """The error function of a float array or tracer, elementwise."""
    if isinstance(x, Tracer):
        return x._trace.emit("chlo.erf", (x,))
    return np.vectorize(math.erf, otypes=[float])(x.astype(float)).astype(x.dtype)


def erf_inv(x: Any) -> Any:
    """The number whose error function is ``x``, elementwise; ±1 gives ±infinity, and other values NaN.

    Args:
        x: a float array or tracer; 16-bit floats are computed in float32.

    >>> round(float(erf_inv(np.array([0.5]))[0]), 12)
    0.476936276204
    """
    if x.dtype.itemsize < 4:
        return erf_inv(x.astype(np.float32)).astype(x.dtype)
    number = x.dtype.type
    with np.errstate(divide="ignore", invalid="ignore"):
        w = -np.log1p(-x * x)
        result = _polynomials(w, _branches(x.dtype.name), number) * x
        # By its sign: the gradient of x * infinity would be infinite.
        return np.where(np.abs(x) == 1, np.sign(x) * number(np.inf), result)


@cache
def _branches(dtype: str) -> Any:
    """The upper limit of w, the offset of the polynomial in w (first branch) or sqrt(w), and its coefficients."""
    return _core.ir.erf_inv_branches(dtype)


def _polynomials(w: Any, branches: Any, number: Any) -> Any:
    """Horner's scheme. Each step selects the coefficient by branch; a branch with fewer coefficients stops early."""
    below = [w < number(limit) for limit, _, _ in branches[:-1]]
    shifts = [shift for _, shift, _ in branches]
    # Replaced below the first limit, because the gradient of the root at zero is infinite.
    root = np.sqrt(np.maximum(w, number(branches[0][0])))
    argument = np.where(below[0], w - number(shifts[0]), root - _choose(below[1:], shifts[1:], number))
    result: Any = _choose(below, [c[0] for _, _, c in branches], number)
    for i in range(1, len(branches[0][2])):
        active = [c[i] for _, _, c in branches if i < len(c)]
        following = _choose(below, active, number) + result * argument
        result = following if len(active) == len(branches) else np.where(below[len(active) - 1], following, result)
    return result


def _choose(below: list[Any], values: list[float], number: Any) -> Any:
    """The first value whose condition holds, else the last one."""
    chosen = number(values[-1])
    for condition, value in reversed(list(zip(below, values[:-1]))):
        chosen = np.where(condition, number(value), chosen)
    return chosen
