# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions on traced values, composed of StableHLO ops.

Semantics, result dtypes, broadcasting and axis rules are NumPy's. NumPy's own protocols dispatch ``np.tanh(x)`` on a
tracer to this package; ``shardwise.numpy.tanh`` is the same function. Other functions raise UnsupportedError, whose
message names the code to write instead.

>>> import shardwise.numpy as snp
>>> snp.sum([1, 2, 3])
np.int64(6)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..dtypes import as_dtype, is_dtype
from ..errors import DTypeError, message
from ..process.implementations import provides
from ..recording.tracing import Tracer
from . import (  # noqa: F401
    advanced_indexing,
    choosing,
    counting,
    creation,
    cumulative,
    elementwise,
    fourier,
    joining,
    lifting,
    linalg,
    manipulation,
    nan_reductions,
    numerical,
    reductions,
    searching,
    selection,
    sorting,
    subscripts,
    updates,
)
from ._primitives import cast, refuse
from ._promote import is_weak
from ._registry import FUNCTIONS, function_name, implements
from ._unsupported import missing_name, unsupported_function

_RULES = elementwise.RULES
_call = elementwise.call


@provides("apply_ufunc")
def apply_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record a ufunc call. The implementation of ``Tracer.__array_ufunc__``.

    Raises:
        UnsupportedError: the ufunc, its method, or an option is not supported. ShapeError, DTypeError: as NumPy.
    """
    if method == "accumulate":
        return cumulative.apply_accumulate(ufunc, inputs, kwargs)
    if method != "__call__":
        return reductions.apply_method(ufunc, method, inputs, kwargs)
    dtype = elementwise.call_options(ufunc, kwargs) if kwargs else None
    rule = _RULES.get(ufunc)
    if rule is not None:
        return _call(ufunc, rule, inputs, dtype)
    special = linalg.UFUNCS.get(ufunc)
    if special is None:
        raise unsupported_function(_ufunc_name(ufunc), __all__)
    return special(elementwise.strong(inputs) if all(map(is_weak, inputs)) else inputs, dtype)


@provides("apply_function")
def apply_function(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record a call of another NumPy function. The implementation of ``Tracer.__array_function__``.

    Raises:
        UnsupportedError: the function or an option is not supported. ShapeError, DTypeError: as NumPy.
    """
    traced = FUNCTIONS.get(func)
    if traced is None:
        raise unsupported_function(function_name(func), __all__)
    return traced(*args, **kwargs)


@provides("astype")
@implements("astype")
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tracer:
    """``x`` in another dtype, as ``ndarray.astype``; floats beyond an integer dtype saturate.

    Raises:
        DTypeError: a dtype that programs cannot hold.
    """
    refuse("astype", device=(device, None))
    wanted = as_dtype("astype", dtype)
    if not is_dtype(wanted):
        raise DTypeError(message("astype", "the dtype must be of numbers", wanted))
    return cast(x, wanted.newbyteorder("="))


def _ufunc_name(ufunc: np.ufunc) -> str:
    name = ufunc.__name__
    return f"np.{name}" if getattr(np, name, None) is ufunc else f"the ufunc {name}"


def _public_names() -> dict[str, Any]:
    names = {}
    for function in [*_RULES, *linalg.UFUNCS, *FUNCTIONS]:
        name = getattr(function, "__name__", "")
        if getattr(np, name, None) is function and name != "astype":
            names[name] = function
    for alias in ("abs", "true_divide", "mod", "bitwise_not", "divide", "conj", "pow", "acos", "asin", "atan", "atan2"):
        if hasattr(np, alias):
            names[alias] = getattr(np, alias)
    for alias in (
        "acosh",
        "asinh",
        "atanh",
        "bitwise_invert",
        "bitwise_left_shift",
        "bitwise_right_shift",
        "amax",
        "amin",
    ):
        if hasattr(np, alias):
            names[alias] = getattr(np, alias)
    return names


_NUMBERS = ("e", "inf", "nan", "newaxis", "pi")
# The dtypes of the array API standard and what asks about them, which are NumPy's objects, too.
_DTYPES = ("bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)))
_DTYPES += ("float16", "float32", "float64", "complex64", "complex128", "dtype", "finfo", "iinfo", "isdtype")

_names = {**_public_names(), **{name: getattr(np, name) for name in (*_NUMBERS, *_DTYPES)}, **lifting.LIFTING}
globals().update(_names)
__all__ = [
    *sorted({*_names, "astype"}),
]

if not TYPE_CHECKING:  # hidden from type checkers, which would accept every name

    def __getattr__(name: str) -> NoReturn:
        raise missing_name(name, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
