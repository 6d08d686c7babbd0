# SPDX-License-Identifier: Apache-2.0
"""Functions in long double, with the branch cuts and corners of C99: who is right where we and XLA differ.

SciPy computes special functions in float64 only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

Function = Callable[..., Any]


def _wide(x: Any) -> Any:
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)


def _of_numpy(function: Function) -> Function:
    return lambda *xs: function(*map(_wide, xs))


def _of_scipy(function: Function) -> Function:
    return lambda *xs: function(*(x.astype(np.float64) for x in xs))


def _sign(x: Any) -> Any:
    wide = _wide(x)
    if wide.dtype.kind != "c":
        return np.sign(wide)
    size = np.abs(wide)
    return np.where(size == 0, wide, wide / np.where(size == 0, 1, size))


def _cbrt(x: Any) -> Any:
    return x ** (np.longdouble(1) / 3) if x.dtype.kind == "c" else np.cbrt(x)


def _lgamma(x: Any) -> Any:
    """SciPy's is infinite for subnormals, where -log|x| is exact."""
    with np.errstate(all="ignore"):
        return np.where((np.abs(x) < 1e-300) & (x != 0), -np.log(np.abs(x)), special.gammaln(x))


def _polygamma(n: Any, x: Any) -> Any:
    n, x = n.astype(np.float64), x.astype(np.float64)
    sign = np.where(n % 2 == 1, 1.0, -1.0)
    return np.where(n == 0, special.digamma(x), sign * special.gamma(n + 1) * special.zeta(n + 1, x))


def _logistic(x: Any) -> Any:
    """C99: a finite number divided by an infinity is zero. NumPy's quotient of complex numbers is NaN then."""
    below = 1 + np.exp(-x)
    return np.where(np.isinf(below), np.zeros_like(below), 1 / np.where(np.isinf(below), 1, below))


def _atan2(y: Any, x: Any) -> Any:
    y, x = _wide(y), _wide(x)
    if y.dtype.kind != "c":
        return np.arctan2(y, x)
    return -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))


def _asin_acos_kernel(z: Any) -> Any:
    z = _wide(z)
    found = np.sqrt(1 - z) * np.sqrt(1 + z)
    found.imag = np.abs(np.arccosh(z).real)
    return found


REFERENCES: dict[str, Function] = {
    **{f"stablehlo.{name}": _of_numpy(function) for name, function in {
        "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "abs": np.abs,
        "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": _cbrt, "exponential": np.exp,
        "exponential_minus_one": np.expm1, "log": np.log, "log_plus_one": np.log1p,
        "logistic": _logistic, "sine": np.sin, "cosine": np.cos, "tan": np.tan, "tanh": np.tanh,
        "power": np.power,
    }.items()},
    **{f"chlo.{name}": _of_numpy(function) for name, function in {
        "sinh": np.sinh, "cosh": np.cosh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh,
        "acosh": np.arccosh, "atanh": np.arctanh, "tan": np.tan, "square": np.square,
    }.items()},
    **{f"chlo.{name}": _of_scipy(function) for name, function in {
        "erf": special.erf, "erfc": special.erfc, "lgamma": _lgamma, "digamma": special.digamma,
        "erf_inv": special.erfinv, "bessel_i1e": special.i1e, "zeta": special.zeta, "next_after": np.nextafter,
    }.items()},
    "stablehlo.sign": _sign,
    "stablehlo.atan2": _atan2,
    "chlo.polygamma": _polygamma,
    "chlo._asin_acos_kernel": _asin_acos_kernel,
}  # fmt: skip


def reference(op: str) -> Function | None:
    """The function of an op, of CHLO's ops that broadcast too."""
    name = op.partition(".")[2].removeprefix("broadcast_")
    return next((REFERENCES[key] for key in (op, f"stablehlo.{name}", f"chlo.{name}") if key in REFERENCES), None)
