# SPDX-License-Identifier: Apache-2.0
"""The dtypes in which a NumPy call computes. NumPy resolves them, with weak Python numbers; results are cached.

>>> import numpy as np
>>> loop_dtypes(np.add, (np.zeros(3, np.float32), 2.0))
(dtype('float32'), dtype('float32'), dtype('float32'))
>>> loop_dtypes(np.sqrt, (np.zeros(3, np.int32),))
(dtype('float64'), dtype('float64'))
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dtypes import dtype_name, is_complex, is_float, is_inexact, is_integer, is_signed, is_unsigned
from ..errors import DTypeError, described, message
from ..recording.tracing import WeakTracer

__all__ = [
    "is_complex",
    "is_float",
    "is_inexact",
    "is_integer",
    "is_signed",
    "is_unsigned",
    "is_weak",
    "loop_dtypes",
    "result_dtype",
    "sum_dtype",
    "weak_kind",
]

_WEAK = (int, float, complex)
_BOOL = np.dtype(np.bool_)
_loops: dict[Any, tuple[np.dtype[Any], ...]] = {}


def weak_kind(x: Any) -> Any:
    """The dtype of ``x``, or the type of a Python number, which NumPy treats as weak."""
    if type(x) in _WEAK:
        return type(x)
    if type(x) is WeakTracer:
        return x.weak
    if type(x) is bool:
        return _BOOL
    dtype = getattr(x, "dtype", None)
    return np.asarray(x).dtype if dtype is None else dtype


def is_weak(x: Any) -> bool:
    """A Python number, given here or as an argument of the program."""
    return isinstance(weak_kind(x), type)


def loop_dtypes(ufunc: np.ufunc, inputs: tuple[Any, ...], dtype: Any = None) -> tuple[np.dtype[Any], ...]:
    """The dtypes that ``ufunc`` computes in for these inputs: of its operands, then of its results.

    Raises:
        DTypeError: the ufunc has no loop for them.
    """
    kinds = tuple([weak_kind(x) for x in inputs])
    key = (ufunc, kinds, dtype)
    found = _loops.get(key)
    if found is None:
        for x, kind in zip(inputs, kinds):
            if isinstance(kind, np.dtype) and kind.hasobject:
                rule = "operands must be arrays or numbers"
                raise DTypeError(message(f"np.{ufunc.__name__}", rule, described(x)))
        found = _loops[key] = _resolve(ufunc, kinds, dtype)
    return found


def _resolve(ufunc: np.ufunc, kinds: tuple[Any, ...], dtype: Any) -> tuple[np.dtype[Any], ...]:
    asked = (*kinds, *(None,) * ufunc.nout)
    options: dict[str, Any] = (
        {} if dtype is None else {"signature": (None,) * ufunc.nin + (np.dtype(dtype),) * ufunc.nout}
    )
    try:
        dtypes = ufunc.resolve_dtypes(asked, **options)
    except TypeError:
        got = ", ".join(getattr(kind, "name", None) or kind.__name__ for kind in kinds)
        way_out = "convert the operands with astype"
        if dtype is not None:
            got += f" with dtype={np.dtype(dtype).name}"
        raise DTypeError(message(f"np.{ufunc.__name__}", "has no meaning for these dtypes", got, way_out)) from None
    for found in dtypes:
        dtype_name(found)
    return tuple(dtypes)


def result_dtype(*operands: Any) -> np.dtype[Any]:
    """``numpy.result_type`` of tracers, arrays, dtypes and weak Python numbers.

    >>> result_dtype(np.dtype("float32"), 1.5)
    dtype('float32')
    """
    kinds = [x if isinstance(x, np.dtype) else weak_kind(x) for x in operands]
    # NumPy reads a type as a dtype; a weak number must be given as a number.
    return np.result_type(*(kind(0) if isinstance(kind, type) else kind for kind in kinds))


def sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which NumPy's sum and prod compute: integers are widened to 64 bits."""
    if dtype.kind == "b" or (dtype.kind == "i" and dtype.itemsize < 8):
        return np.dtype(np.int64)
    return np.dtype(np.uint64) if dtype.kind == "u" else dtype
