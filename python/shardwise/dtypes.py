# SPDX-License-Identifier: Apache-2.0
"""NumPy dtypes and the extension's names of them. Those that NumPy lacks come from ml_dtypes."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
from ml_dtypes import bfloat16

from ._core import ir
from .errors import DTypeError, message, shown

__all__ = [
    "as_dtype",
    "as_wide",
    "bfloat16",
    "dtype_name",
    "float_range",
    "integer_range",
    "is_complex",
    "is_dtype",
    "is_dtype_name",
    "is_float",
    "is_inexact",
    "is_integer",
    "is_signed",
    "is_unsigned",
    "numpy_dtype",
    "refuse_subclass",
    "way_to_numbers",
]

# Older versions of ml_dtypes lack some of the narrow ones.
_KINDS = {name: kind for name, kind in ir.dtypes() if hasattr(ml_dtypes, name) or hasattr(np, name) or name == "bool"}
_BY_NAME: dict[str, np.dtype[Any]] = {name: np.dtype(getattr(ml_dtypes, name, name)) for name in _KINDS}
_NAMES = {dtype: name for name, dtype in _BY_NAME.items()}
_KIND_OF = {dtype: _KINDS[name] for name, dtype in _BY_NAME.items()}


def as_dtype(function: str, dtype: Any) -> np.dtype[Any]:
    """``np.dtype(dtype)``. Raises DTypeError, with ``function`` as the subject, if NumPy does not accept it."""
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except (TypeError, ValueError):
        raise DTypeError(message(function, "dtype must be a NumPy dtype or the name of one", shown(dtype))) from None
    return found


def dtype_name(dtype: Any) -> str:
    """The extension's name of a NumPy dtype. Raises DTypeError if programs do not support it."""
    name = _NAMES.get(dtype)
    if name is not None:
        return name
    found = np.dtype(dtype)
    name = _NAMES.get(found.newbyteorder("="))
    if name is None:
        raise DTypeError(
            message("dtype", f"must be one of {', '.join(_BY_NAME)}", found, "convert the array with astype")
        )
    return name


def is_dtype_name(name: object) -> bool:
    """Whether it is the extension's name of a dtype that programs can hold."""
    return isinstance(name, str) and name in _BY_NAME


def is_dtype(dtype: np.dtype[Any]) -> bool:
    """Whether programs can hold this dtype."""
    return dtype in _NAMES or dtype.newbyteorder("=") in _NAMES


def refuse_subclass(x: Any) -> None:
    """Raise DTypeError for a masked array, whose mask would be lost, and for a matrix, whose ``*`` is a product."""
    if isinstance(x, np.matrix):
        way_out = "pass np.asarray(x), and write @ for products"
        raise DTypeError(message("array", "must not be a np.matrix, whose * is a matrix product", None, way_out))
    if isinstance(x, np.ma.MaskedArray):
        raise DTypeError(
            message("array", "must not be masked", type(x).__name__, "pass x.data and the mask, and use np.where")
        )


_TO_NUMBERS = {
    "M": "convert it with astype(np.int64)",
    "m": "convert it with astype(np.int64)",
    "U": "number its strings with np.unique(x, return_inverse=True)",
}


def way_to_numbers(x: Any) -> str | None:
    """The fix for an array of another dtype, a table of mixed columns or a large int; None for other values."""
    if isinstance(x, int) and not -(2**63) <= x < 2**64:
        return "numbers of programs have at most 64 bits: pass a float"
    if isinstance(x, type) or not hasattr(x, "__array__"):
        return None
    dtype = getattr(x, "dtype", None)
    if dtype is None:  # a pandas.DataFrame, whose columns have dtypes of their own
        return "pass its columns of numbers, df[columns].to_numpy(np.float32)" if hasattr(x, "columns") else None
    if getattr(dtype, "fields", None):
        return "pass its fields as separate arrays"
    kind = {"category": "category", "str": "U"}.get(str(dtype))
    if kind is None:
        kind = dtype.kind if isinstance(dtype, np.dtype) else np.asarray(x).dtype.kind
    if kind == "V":  # NumPy's files have no names for the dtypes of ml_dtypes
        return "if np.load has lost its narrow dtype, pass x.view(dtype), such as x.view(sw.bfloat16)"
    return "pass x.cat.codes" if kind == "category" else _TO_NUMBERS.get(kind, "convert it with astype")


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy dtype of an extension name."""
    return _BY_NAME[name]


def _kind(dtype: np.dtype[Any]) -> str:
    """The kind of a dtype; NumPy's own ``kind`` is "V" for most dtypes of ml_dtypes."""
    return _KIND_OF.get(dtype) or dtype.kind


def is_float(dtype: np.dtype[Any]) -> bool:
    """A floating dtype of real numbers, those of ml_dtypes included."""
    return _kind(dtype) == "f"


def is_complex(dtype: np.dtype[Any]) -> bool:
    """complex64 or complex128."""
    return dtype.kind == "c"


def is_inexact(dtype: np.dtype[Any]) -> bool:
    """A floating dtype, real or complex: one with derivatives."""
    return _kind(dtype) in "fc"


def is_integer(dtype: np.dtype[Any]) -> bool:
    """A signed or unsigned integer dtype, those of ml_dtypes included; bool is not."""
    return _kind(dtype) in "iu"


def as_wide(x: Any) -> np.ndarray:
    """An array of numbers in float64, or in complex128."""
    array = np.asarray(x)
    return array.astype(np.complex128 if is_complex(array.dtype) else np.float64)


def float_range(dtype: np.dtype[Any]) -> tuple[float, float]:
    """The smallest and the largest number of a float dtype: infinities, where it has them."""
    if math.isinf(float(np.array(math.inf).astype(dtype))):
        return -math.inf, math.inf
    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return float(info.min), float(info.max)


def integer_range(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The smallest and the largest number of an integer dtype."""
    info = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    return int(info.min), int(info.max)


def is_unsigned(dtype: np.dtype[Any]) -> bool:
    """An unsigned integer dtype, those of ml_dtypes included."""
    return _kind(dtype) == "u"


def is_signed(dtype: np.dtype[Any]) -> bool:
    """A signed integer dtype, those of ml_dtypes included."""
    return _kind(dtype) == "i"
