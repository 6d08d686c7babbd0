# SPDX-License-Identifier: Apache-2.0
"""Checks the arguments of the functions of `sw.nn`, and gives Python numbers the dtype of the arrays beside them.

x = inexact("nn.elu", x)                    an array of floats; integers and bools become float64
alpha = number("nn.elu", "alpha", alpha, x)  0.5 beside a bfloat16 array is a bfloat16: NumPy would make a float32
half = like(0.5, x)                          the same for a constant, which needs no check
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from ..dtypes import is_float
from ..errors import DTypeError, ShapeError, described, message
from ..flags import takes_flags
from ..process.traceback_filtering import entry_point

__all__ = ["as_array", "inexact", "like", "mask_of", "mean", "number", "public", "total", "wide"]

_F = TypeVar("_F", bound=Callable[..., Any])


def public(function: _F) -> _F:
    """Make a function an entry point, in which NumPy warns of no overflow, invalid value or division by 0.

    Its flags are checked.
    """

    run = takes_flags("nn")(function)

    @entry_point
    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            return run(*args, **kwargs)

    return called  # type: ignore[return-value]


def as_array(function: str, x: Any, name: str = "x") -> Any:
    """``x``, or a NumPy array of the numbers and lists of numbers in it. Raises ShapeError for lists of two lengths."""
    if hasattr(x, "dtype") and hasattr(x, "shape"):
        return x
    try:
        return np.asarray(x)
    except ValueError:
        rule = f"{name} must be an array, or lists of equal lengths"
        raise ShapeError(message(function, rule, described(x))) from None


def inexact(function: str, x: Any, name: str = "x") -> Any:
    """``x`` as an array of floats: integers and bools become float64. Raises DTypeError for others."""
    x = as_array(function, x, name)
    if is_float(x.dtype):
        return x
    if x.dtype.kind in "biu":
        return x.astype(np.float64)
    raise DTypeError(message(function, f"{name} must be of real numbers", str(x.dtype), "convert it with astype"))


def like(value: Any, x: Any) -> Any:
    """A Python number in the dtype of ``x``; an array stays as it is."""
    return value if hasattr(value, "dtype") else np.asarray(value, x.dtype)


def number(function: str, name: str, value: Any, x: Any) -> Any:
    """:func:`like` for an argument: a real number, or an array of them. Raises DTypeError for others."""
    dtype = as_array(function, value, name).dtype
    if dtype.kind not in "biu" and not is_float(dtype):
        rule = f"{name} must be a real number or an array of them"
        raise DTypeError(message(function, rule, str(dtype) if hasattr(value, "dtype") else described(value)))
    return like(value, x)


def wide(x: Any) -> Any:
    """``x`` in float32 at least: sums of 16-bit floats are rounded once."""
    return x.astype(np.float32) if x.dtype.itemsize < 4 else x


def total(x: Any, axis: Any, where: Any = None, keepdims: bool = True) -> Any:
    """The sum over ``axis`` in the dtype of ``x``, accumulated in float32 at least."""
    options = {} if where is None else {"where": where}
    return np.sum(wide(x), axis=axis, keepdims=keepdims, **options).astype(x.dtype)


def mean(x: Any, axis: Any, where: Any = None) -> Any:
    """The mean over ``axis``, whose dims stay with size 1, in the dtype of ``x``."""
    options = {} if where is None else {"where": where}
    return np.mean(wide(x), axis=axis, keepdims=True, **options).astype(x.dtype)


def mask_of(function: str, where: Any, x: Any) -> Any:
    """A mask of bools that broadcasts to ``x``, or None. Raises DTypeError and ShapeError."""
    if where is None:
        return None
    where = as_array(function, where, "where")
    if where.dtype != bool:
        raise DTypeError(message(function, "where must be of bools", str(where.dtype), "compare it with 0"))
    check_broadcasts(function, "where", where, x)
    return where


def check_broadcasts(function: str, name: str, value: Any, x: Any) -> None:
    """Raise ShapeError unless ``value`` broadcasts to the shape of ``x``."""
    sizes, shape = tuple(value.shape), tuple(x.shape)
    if len(sizes) > len(shape) or any(a not in (1, b) for a, b in zip(sizes[::-1], shape[::-1])):
        raise ShapeError(message(function, f"{name} must broadcast to {shape}", f"shape {sizes}", "reshape it"))
