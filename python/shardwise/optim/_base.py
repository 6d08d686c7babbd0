# SPDX-License-Identifier: Apache-2.0
"""What an optimizer is: two functions over trees, and the arithmetic that keeps the dtype of each leaf.

    state = optimizer.init(params)
    updates, state = optimizer.update(grads, state, params)

The functions are NumPy: plain arrays, `sw.Array` and traced arrays are leaves alike. A state is a tree of named tuples.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from itertools import count as numbers_from
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..array import Array, ShapeDtypeStruct
from ..dtypes import as_dtype, is_complex, is_float, is_inexact, numpy_dtype
from ..errors import DTypeError, described, message, reworded, shown
from ..flags import takes_flags
from ..placement import device_put
from ..process.foreign import native
from ..tree import map as tree_map
from ._checks import expect_numbers, expect_state, expect_to_fit, expect_updates

__all__ = [
    "EmptyState",
    "GradientTransformation",
    "abs_sq",
    "apply_updates",
    "as_array",
    "as_part_of",
    "call_update",
    "cast",
    "checked_dtype",
    "checked_number",
    "checked_numbers",
    "checked_rate",
    "checked_step",
    "full_like",
    "identity",
    "incremental_update",
    "like",
    "mapped",
    "named_in_errors",
    "optimizer",
    "params_given",
    "real_dtype",
    "real_part",
    "safe_increment",
    "set_to_zero",
    "stateless",
    "stateless_as",
    "wide",
    "zeros",
]

Schedule = Callable[[Any], Any]
_F = TypeVar("_F", bound=Callable[..., Any])
ScalarOrSchedule = Any  # a number, an array without dims, or a schedule


class GradientTransformation(NamedTuple):
    """An optimizer or a part of one, as in Optax.

    Attributes:
        init: ``init(params)`` makes the first state.
        update: ``update(updates, state, params=None)`` returns the new updates and the next state.

    ``init`` and ``update`` of this package compute with floats and complex numbers of one shape in all trees.

    Raises:
        DTypeError: leaves of integers. ShapeError: updates, or a state, of other shapes than the parameters. TypeError:
        the state of another transformation, None, or a dict that was loaded without ``like``. ValueError, TypeError:
        trees of other structures.
    """

    init: Callable[[Any], Any]
    update: Callable[..., tuple[Any, Any]]


class EmptyState(NamedTuple):
    """The state of a transformation that has none."""


def as_array(x: Any) -> Any:
    """``x``, or a NumPy array of a number, or Shardwise's form of a shape of JAX."""
    return native(x) if hasattr(x, "dtype") else np.asarray(x)


def like(value: Any, x: Any) -> Any:
    """A number, or an array without dims, in the dtype of ``x``: it does not widen bfloat16."""
    value = as_array(value)
    return value if value.dtype == x.dtype else value.astype(x.dtype)


def checked_number(what: str, name: str, value: Any, or_else: str = "") -> Any:
    """A hyperparameter: a real number, or an array of one without dims. Raises TypeError.

    Args:
        what: the public function.
        name: that of the hyperparameter.
        value: the number.
        or_else: other values that the function takes, for the message.
    """
    is_number = isinstance(value, (int, float, np.generic)) or hasattr(value, "dtype")
    if is_number:
        array = as_array(value)
        is_number = len(array.shape) == 0 and (array.dtype.kind in "biu" or is_float(array.dtype))
    if not is_number:
        got = described(value) if hasattr(value, "dtype") else shown(value)
        raise TypeError(message(what, f"{name} must be a number{or_else}", got))
    return value


def checked_numbers(what: str, **values: Any) -> None:
    """As :func:`checked_number`, for several."""
    for name, value in values.items():
        checked_number(what, name, value)


def checked_step(what: str, name: str, count: Any) -> Any:
    """The number of a step, or an array of several. Raises TypeError."""
    dtype = getattr(count, "dtype", None)
    is_number = isinstance(count, (int, float)) if dtype is None else dtype.kind in "biu" or is_float(dtype)
    if not is_number:
        raise TypeError(message(what, f"{name} must be a number", described(count)))
    return count


def checked_rate(what: str, name: str, value: Any) -> Any:
    """A number, or a schedule: a function whose results are checked when it is called. Raises TypeError."""
    if not callable(value):
        return checked_number(what, name, value, " or a schedule")
    return lambda count: checked_number(what, f"the result of {name}", value(count))


def wide(x: Any) -> Any:
    """``x`` in float32 at least: sums of 16-bit floats are rounded once."""
    return x.astype(np.float32) if x.dtype.itemsize < 4 else x


def abs_sq(x: Any) -> Any:
    """The square of the absolute value, which is real."""
    return np.square(x.real) + np.square(x.imag) if is_complex(x.dtype) else np.square(x)


def real_part(x: Any) -> Any:
    """The real part of a state or an update: squares of a complex leaf are kept in its dtype, as in Optax."""
    return x.real if is_complex(x.dtype) else x


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of absolute values."""
    return numpy_dtype(f"float{4 * dtype.itemsize}") if is_complex(dtype) else dtype


@contextmanager
def named_in_errors(what: str) -> Iterator[None]:
    """Context manager: errors of trees that differ begin with ``what``."""
    try:
        yield
    except (TypeError, ValueError) as error:
        head, _, rest = str(error).partition(": ")
        if head != "tree.map":
            raise
        raise reworded(error, f"{what}: {rest}") from None


@contextmanager
def as_part_of(what: str) -> Iterator[None]:
    """Context manager: errors of other functions of this package begin with ``what``, which the user called."""
    try:
        yield
    except (TypeError, ValueError) as error:
        head, _, rest = str(error).partition(": ")
        if head == what or not head.startswith("optim."):
            raise
        raise reworded(error, f"{what}: {rest}") from None


def optimizer(make: _F) -> _F:
    """Decorator: errors of the parts of an optimizer begin with its name, also in ``init`` and ``update``."""
    what = f"optim.{make.__name__}"
    make = takes_flags("optim")(make)

    @wraps(make)
    def made(*args: Any, **kwargs: Any) -> GradientTransformation:
        with as_part_of(what):
            parts = make(*args, **kwargs)

        def init(params: Any) -> Any:
            with as_part_of(what):
                return parts.init(params)

        def update(updates: Any, state: Any, params: Any = None, **extra_args: Any) -> tuple[Any, Any]:
            with as_part_of(what):
                return call_update(parts, updates, state, params, extra_args)

        return GradientTransformation(init, update)

    return made  # type: ignore[return-value]


def mapped(what: str, f: Callable[..., Any], tree: Any, *rest: Any, check: Any = expect_numbers) -> Any:
    """``f`` of the leaves of trees of one structure. Errors begin with ``what``.

    Args:
        what: the public function.
        f: a function of one leaf of each tree.
        tree: the first tree.
        rest: the others.
        check: called with ``what``, ``tree``, the number of a leaf and the leaves; None for leaves of any kind.
    """
    numbers = numbers_from()

    def checked(*leaves: Any) -> Any:
        number, arrays = next(numbers), tuple(map(as_array, leaves))
        if check is not None:
            check(what, tree, number, arrays)
        return f(*arrays)

    with named_in_errors(what):
        return tree_map(checked, tree, *rest)


def zeros(what: str, params: Any, dtype: Any = None) -> Any:
    """Zeros in the dtype of each leaf, or in ``dtype``."""
    return mapped(what, lambda p: full_like(p, 0, dtype), params, check=expect_to_fit(dtype))


def full_like(param: Any, value: Any, dtype: Any = None, shape: Any = None) -> Any:
    """``value`` in the shape and dtype of a parameter: an array of a mesh keeps its sharding, a shape gives a shape."""
    dtype = param.dtype if dtype is None else dtype
    if isinstance(param, ShapeDtypeStruct):
        return ShapeDtypeStruct(
            param.shape if shape is None else shape, dtype, sharding=param.sharding if shape is None else None
        )
    if isinstance(param, Array) and shape is None:
        return device_put(np.full(param.shape, value, dtype), param.sharding)
    return np.full_like(param, value, dtype=dtype, shape=shape)


def cast(what: str, tree: Any, dtype: Any) -> Any:
    """The tree in ``dtype``; None leaves it as it is."""
    return tree if dtype is None else mapped(what, lambda x: x.astype(dtype), tree, check=expect_to_fit(dtype))


def checked_dtype(what: str, dtype: Any) -> Any:
    """None, or a dtype of floats or complex numbers. Raises DTypeError."""
    if dtype is None:
        return None
    found = as_dtype(what, dtype)
    if not is_inexact(found):
        raise DTypeError(message(what, "the dtype of a state must be of floats or complex numbers", found))
    return found


def params_given(what: str, params: Any) -> Any:
    """Raise TypeError if the update needs the parameters and has not got them."""
    if params is None:
        raise TypeError(message(what, "needs the parameters", "None", "call update(grads, state, params)"))
    return params


def safe_increment(count: Any) -> Any:
    """``count + 1``, or the largest number of its dtype: a counter never wraps.

    >>> int(safe_increment(np.int32(2**31 - 1))) == 2**31 - 1
    True
    """
    count = as_array(count)
    if count.dtype.kind not in "iu":
        raise DTypeError(message("optim.safe_increment", "count must be an integer", described(count)))
    last, one = (np.asarray(number, count.dtype) for number in (np.iinfo(count.dtype).max, 1))
    return np.where(count < last, count + np.where(count < last, one, one - one), last)


def identity() -> GradientTransformation:
    """The updates as they are.

    >>> identity().update({"w": np.ones(1)}, EmptyState())
    ({'w': array([1.])}, EmptyState())
    """
    return stateless_as("optim.identity", lambda updates, params: updates)


def set_to_zero() -> GradientTransformation:
    """Updates of zero: the parameters stay. For :func:`multi_transform`.

    >>> set_to_zero().update({"w": np.ones(1)}, EmptyState())[0]
    {'w': array([0.])}
    """
    what = "optim.set_to_zero"

    def zero(updates: Any, params: Any) -> Any:
        return mapped(what, lambda u: full_like(u, 0), updates, check=None)

    return stateless_as(what, zero)


def stateless(f: Callable[[Any, Any], Any]) -> GradientTransformation:
    """The transformation ``f(updates, params)``, which has no state.

    Raises:
        TypeError: ``f`` is not a function, or the update gets the state of another transformation.

    >>> stateless(lambda updates, params: -updates).update(np.ones(1), EmptyState())[0]
    array([-1.])
    """
    if not callable(f):
        raise TypeError(message("optim.stateless", "takes a function of updates and parameters", shown(f)))
    return stateless_as("optim.stateless", f)


def stateless_as(what: str, f: Callable[[Any, Any], Any]) -> GradientTransformation:
    """The same under the name of a public function, which errors begin with."""

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        expect_state(what, EmptyState, state)
        return f(updates, params), state

    return GradientTransformation(lambda params: EmptyState(), update)


def apply_updates(params: Any, updates: Any) -> Any:
    """``params + updates``, each leaf in the dtype of the parameter.

    Args:
        params: a tree of arrays.
        updates: a tree of the same structure.

    Raises:
        ValueError, TypeError: the trees differ. ShapeError: an update has another shape than its parameter.
        DTypeError: a float for an integer parameter, or a complex number for a real one.

    Source: `optax.apply_updates`, which broadcasts and rounds in these places.

    >>> apply_updates({"w": np.ones(2, np.float32)}, {"w": np.full(2, -0.5)})
    {'w': array([0.5, 0.5], dtype=float32)}
    """
    what = "optim.apply_updates"
    return mapped(what, lambda p, u: (p + u).astype(p.dtype), params, updates, check=expect_updates)


def incremental_update(new_tensors: Any, old_tensors: Any, step_size: Any) -> Any:
    """An average of two trees, ``step_size * new + (1 - step_size) * old``: moving averages of weights.

    Args:
        new_tensors: a tree of arrays.
        old_tensors: a tree of the same structure.
        step_size: the weight of the new one.

    Raises:
        ValueError, TypeError: the trees differ. ShapeError: so do shapes. DTypeError: a leaf of integers.

    Source: `optax.incremental_update`.

    >>> incremental_update(np.array([1.0]), np.array([3.0]), 0.25)
    array([2.5])
    """

    checked_number("optim.incremental_update", "step_size", step_size)

    def average(new: Any, old: Any) -> Any:
        return like(step_size, new) * new + like(1 - step_size, old) * old

    return mapped("optim.incremental_update", average, new_tensors, old_tensors)


def call_update(transformation: Any, updates: Any, state: Any, params: Any, extra: dict[str, Any]) -> tuple[Any, Any]:
    """``transformation.update``, with those of the extra arguments that it takes."""
    if extra:
        parameters = inspect.signature(transformation.update).parameters.values()
        if not any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters):
            extra = {name: value for name, value in extra.items() if name in {p.name for p in parameters}}
    result: tuple[Any, Any] = transformation.update(updates, state, params, **extra)
    return result
