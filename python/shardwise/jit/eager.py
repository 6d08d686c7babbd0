# SPDX-License-Identifier: Apache-2.0
"""NumPy calls on Arrays outside :func:`shardwise.jit`: each runs as a small cached program."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array import Array
from ..errors import ShapeError, TracerConversionError, message
from ..numpy._registry import CHECKS, FUNCTIONS, function_name
from ..process.implementations import provides
from ..recording.tracing import Tracer, UserCall, current_trace
from ..trees import flatten, unflatten
from ..unpartitioned import as_numpy, unpartitioned_mesh
from .cache import static_leaf_key
from .function import JitFunction

__all__ = ["eager_call"]

_eager_cache: dict[Any, JitFunction] = {}
_needs_values: set[Any] = set()  # calls whose small integer Arrays (an axis, a size) must be known values
_MAX_EAGER_PROGRAMS = 4096
_MAX_STATIC_ELEMENTS = 16


@provides("eager_call")
def eager_call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run ``function(*args, **kwargs)`` on sharded arrays as a one-op program; equal calls share the program.

    Arrays are the program's arguments. Numbers, axes, indices and small integer arrays are static.
    """
    args = tuple([_array_of_numbers(x) for x in args])
    leaves, tree = flatten((args, kwargs))
    trace = current_trace()
    if _runs_on_numpy(function, args) and not any(isinstance(leaf, Tracer) for leaf in leaves):
        call_args, call_kwargs = unflatten(tree, [_gathered(leaf) for leaf in leaves])
        return function(*call_args, **call_kwargs)
    if trace is not None:
        lifted = [trace.lift(leaf) if isinstance(leaf, Array) else leaf for leaf in leaves]
        call_args, call_kwargs = unflatten(tree, lifted)
        is_traced = any(isinstance(leaf, Tracer) for leaf in lifted)
        # No argument is traced: the Array was like=, which requests a traced result.
        return (function if is_traced else FUNCTIONS[function])(*call_args, **call_kwargs)
    if unpartitioned_mesh() is not None:
        return function(*as_numpy(args), **as_numpy(kwargs))
    written = _numpy_output(function, kwargs)
    if written is not None:  # `total += a` of a NumPy array
        result = eager_call(function, args, {name: value for name, value in kwargs.items() if name != "out"})
        if np.broadcast_shapes(written.shape, result.shape) != written.shape:
            rule = f"out= must have the shape of the result, {result.shape}"
            raise ShapeError(message(function_name(function), rule, written.shape))
        np.copyto(written, np.asarray(result), casting="same_kind")
        return written
    if function in (np.shape, np.ndim, np.size):
        return FUNCTIONS[function](*args, **kwargs)
    check = CHECKS.get(function)
    if check is not None:
        check(*args, **kwargs)
    if not any(isinstance(leaf, Array) for leaf in leaves):  # np.asarray(y, like=x): the result does not depend on x
        return function(*args, **kwargs)
    is_argument = [_is_eager_argument(leaf) for leaf in leaves]
    is_small = [_is_small_integer(leaf) for leaf in leaves]
    if not any(is_small):
        return _run(function, leaves, tree, is_argument)
    return _run_with_small_integers(function, leaves, tree, is_argument, is_small)


def _array_of_numbers(x: Any) -> Any:
    """Lists of NumPy's numbers as the arrays that NumPy makes of them. As arguments, the numbers would be traced."""
    if type(x) not in (list, tuple):
        return x
    if type(x) is list and all(map(np.isscalar, x)):
        return np.asarray(x) if any(isinstance(each, (np.inexact, np.bool_)) for each in x) else x
    return type(x)(map(_array_of_numbers, x))


def _run_with_small_integers(
    function: Any, leaves: list[Any], tree: Any, is_argument: list[bool], is_small: list[bool]
) -> Any:
    """Run a call with small integer Arrays: as arguments if possible, otherwise as known values."""
    key = (*_program_key(function, leaves, tree, is_argument), tuple(is_small))
    if key not in _needs_values:
        try:
            return _run(function, leaves, tree, is_argument)
        except TracerConversionError:  # an axis, a size or a shift
            if is_small == is_argument:  # no array argument would remain
                raise
    values = [np.asarray(leaf)[()] if small else leaf for leaf, small in zip(leaves, is_small)]
    result = _run(function, values, tree, [_is_eager_argument(leaf) for leaf in values])
    if len(_needs_values) >= _MAX_EAGER_PROGRAMS:
        _needs_values.clear()
    _needs_values.add(key)
    return result


def _run(function: Any, leaves: list[Any], tree: Any, is_argument: list[bool]) -> Any:
    key = _program_key(function, leaves, tree, is_argument)
    jitted = _eager_cache.get(key)
    if jitted is None:
        if len(_eager_cache) >= _MAX_EAGER_PROGRAMS:
            _eager_cache.clear()
        jitted = _eager_cache[key] = _program(function, leaves, tree, is_argument)
    return jitted._run_outside(tuple([leaf for leaf, argument in zip(leaves, is_argument) if argument]))


def _program_key(function: Any, leaves: list[Any], tree: Any, is_argument: list[bool]) -> Any:
    rest = [None if argument else static_leaf_key(leaf) for leaf, argument in zip(leaves, is_argument)]
    return function, tree, tuple(rest), tuple(is_argument)


def _program(function: Any, leaves: list[Any], tree: Any, is_argument: list[bool]) -> JitFunction:
    rest = [None if argument else leaf for leaf, argument in zip(leaves, is_argument)]  # does not keep arguments alive

    def run(*tracers: Any) -> Any:
        values = iter(tracers)
        call_args, call_kwargs = unflatten(
            tree, [next(values) if argument else leaf for leaf, argument in zip(rest, is_argument)]
        )
        return function(*call_args, **call_kwargs)

    run.__name__ = getattr(function, "__name__", "op")
    return JitFunction(run, UserCall(run, eager=True))


def _is_eager_argument(leaf: Any) -> bool:
    if isinstance(leaf, (np.ndarray, np.generic)):
        # A small integer may be an axis, a size or an index, which must be known during tracing.
        return leaf.size > _MAX_STATIC_ELEMENTS or leaf.dtype.kind not in "iu"
    return isinstance(leaf, Array)


# These return no array, or print or save one, so there is nothing to partition.
_ON_NUMPY = frozenset(
    getattr(np, name)
    for name in (
        "array2string", "array_equiv", "array_repr", "array_str", "can_cast", "common_type", "iscomplexobj",
        "isrealobj", "may_share_memory", "min_scalar_type", "result_type", "save", "savetxt", "savez",
        "savez_compressed", "shares_memory",
    )
)  # fmt: skip
_WRITES_FIRST = frozenset((np.copyto, np.fill_diagonal, np.place, np.put, np.put_along_axis, np.putmask))


def _runs_on_numpy(function: Any, args: tuple[Any, ...]) -> bool:
    """Whether a call runs on gathered NumPy arrays: its result is not an array, or it writes into a NumPy array."""
    return function in _ON_NUMPY or (function in _WRITES_FIRST and isinstance(args[0], np.ndarray))


def _numpy_output(function: Any, kwargs: dict[str, Any]) -> np.ndarray | None:
    """The NumPy array in ``out=`` of a ufunc call that writes all of it, or None."""
    if not isinstance(getattr(function, "__self__", None), np.ufunc) or function.__name__ != "__call__":
        return None
    outs: Any = kwargs.get("out", ())  # NumPy passes a tuple
    return outs[0] if len(outs) == 1 and "where" not in kwargs and isinstance(outs[0], np.ndarray) else None


def _gathered(leaf: Any) -> Any:
    return np.asarray(leaf) if isinstance(leaf, Array) else leaf


def _is_small_integer(leaf: Any) -> bool:
    return isinstance(leaf, Array) and leaf.dtype.kind in "iu" and leaf.size <= _MAX_STATIC_ELEMENTS
