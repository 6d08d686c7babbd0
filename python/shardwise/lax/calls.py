# SPDX-License-Identifier: Apache-2.0
"""How the functions of `sw.lax` take traced arrays, `sw.Array` and plain NumPy arrays.

@on_arrays("operand")
def top_k(operand, k): ...      traced: an op of the program; sw.Array: a program of its own, cached;
                                NumPy: the op's kernel at once, and NumPy arrays as results
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from ..errors import DTypeError, called_as, message, reworded
from ..flags import as_flag, flags_of
from ..jit import run_as_program
from ..numpy._primitives import operand
from ..numpy._promote import is_inexact
from ..process.traceback_filtering import entry_point, has_left_entry_point
from ..recording.tracing import Trace, Tracer, WeakTracer, current_trace
from ..trees import flatten, unflatten

__all__ = ["lifted", "on_arrays", "recording", "spelled", "with_dtype"]

_F = TypeVar("_F", bound=Callable[..., Any])
_MOST_PROGRAMS = 256  # of a function with other static arguments; the oldest one goes


def recording() -> Trace:
    """The trace that a function under :func:`on_arrays` records into."""
    trace = current_trace()
    assert trace is not None
    return trace


def lifted(*arrays: Any) -> list[Tracer]:
    """The arrays as values of the program that is recorded."""
    return [recording().lift(x) for x in arrays]


def with_dtype(function: str, x: Any, dtype: np.dtype[Any]) -> Tracer:
    """``x`` as a value of the program: a Python number takes the dtype, an array keeps its own."""
    is_number = isinstance(x, (bool, int, float, WeakTracer)) and not isinstance(x, np.generic)
    if not is_number:
        return recording().lift(x)
    if not is_inexact(dtype) and np.dtype(getattr(x, "dtype", type(x))).kind == "f":
        got = f"a float for {np.dtype(dtype).name}"
        raise DTypeError(message(f"lax.{function}", "a float must stand beside an array of floats", got, "convert one"))
    return operand(recording(), x, dtype)


def on_arrays(
    *names: str, known: Collection[str] = (), module: str = "lax", takes_lists: bool = False
) -> Callable[[_F], _F]:
    """Make a function that records ops callable with arrays of any kind.

    Args:
        names: the parameters that are arrays or trees of arrays. Others are static.
        known: those of them whose numbers are constants of the program, and keep their Python type.
        module: what errors write before the name of the function.
        takes_lists: whether lists of numbers are arrays, too.
    """

    def decorate(record: _F) -> _F:
        what = f"{module}.{record.__name__}"
        signature = inspect.signature(record)
        flags = flags_of(signature)
        programs: dict[Any, tuple[Callable[..., Any], dict[Any, Any]]] = {}

        @entry_point
        @wraps(record)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:  # an argument is missing, or unknown
                raise TypeError(message(what, str(error))) from None
            arguments = bound.arguments
            for name in flags:
                if name in arguments:
                    arguments[name] = as_flag(what, name, arguments[name])
            for name in names:
                if takes_lists and isinstance(arguments.get(name), (list, tuple)):
                    arguments[name] = np.asarray(arguments[name])
                elif name != "start_indices" and name not in known and _is_list_of_numbers(arguments.get(name)):
                    got = type(arguments[name]).__name__
                    raise DTypeError(message(what, f"{name} must be an array", f"a {got} of numbers", "use np.asarray"))
            if current_trace() is not None:
                with called_as(what, "trace"):
                    return record(*bound.args, **bound.kwargs)
            bound.apply_defaults()
            constant = {name for name in known if all(map(_is_number, flatten(arguments[name])[0]))}
            given = [name for name in names if name in arguments and name not in constant]
            leaves, tree = flatten([arguments[name] for name in given])
            static = {name: value for name, value in arguments.items() if name not in given}
            key = (tree, _frozen(static))
            if key not in programs:
                if len(programs) >= _MOST_PROGRAMS:  # a new lambda in each call is a new program
                    del programs[next(iter(programs))]
                programs[key] = (_of_leaves(record, given, tree, static), {})
            function, cache = programs[key]
            is_plain = not any(hasattr(leaf, "__shardwise_array__") for leaf in leaves)
            with called_as(what, "trace"):
                return run_as_program(what, function, record, cache, tuple(leaves), {}, is_plain=is_plain)

        return call  # type: ignore[return-value]

    return decorate


def spelled(name: str, function: _F) -> _F:
    """A function of `shardwise` under another name: its own errors begin with that name.

    Those of other calls, which its functions of the user make, keep the names of these.
    """
    record: Any = function.__wrapped__  # type: ignore[attr-defined] # without the entry point
    signature = inspect.signature(record)

    @entry_point
    @wraps(record)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:  # an argument is missing, or unknown
            raise TypeError(message(name, str(error))) from None
        try:
            return record(*args, **kwargs)
        except (TypeError, ValueError) as error:
            head, _, rest = str(error).partition(": ")
            if head != record.__name__ or has_left_entry_point(error):
                raise
            raise reworded(error, f"{name}: {rest}") from None

    return call  # type: ignore[return-value]


def _of_leaves(record: Callable[..., Any], names: list[str], tree: Any, static: dict[str, Any]) -> Callable[..., Any]:
    def run(*leaves: Any) -> Any:
        return record(**dict(zip(names, unflatten(tree, list(leaves)))), **static)

    return run


def _is_list_of_numbers(x: Any) -> bool:
    return isinstance(x, (list, tuple)) and len(x) > 0 and all(map(_is_number, flatten(x)[0]))


def _is_number(x: Any) -> bool:
    return isinstance(x, (bool, int, float, complex, np.generic))


def _frozen(value: Any) -> Any:
    """A key for a static argument: lists and arrays by what they hold."""
    if isinstance(value, (float, complex)) and not isinstance(value, np.generic):
        return (type(value), repr(value))  # 0.0 is not -0.0, and NaN equals itself
    if isinstance(value, dict):
        return tuple((name, _frozen(item)) for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return (type(value), *map(_frozen, value))
    if isinstance(value, (np.ndarray, np.generic)):
        return (value.shape, value.dtype.str, value.tobytes())
    return value
