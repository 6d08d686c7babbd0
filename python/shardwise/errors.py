# SPDX-License-Identifier: Apache-2.0
"""The exceptions of shardwise.

Every message reads ``<op>: <what must hold>, got <values>; <what to do>`` and ends with the user's ``(at file:line)``.
Each class is also the builtin exception that a NumPy or JAX user would expect to catch.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ._core import ir as _ir
from ._core.error import (
    DTypeError,
    Error,
    InternalError,
    MeshError,
    OutOfMemoryError,
    ParseError,
    ShapeError,
    ShardingError,
    ShardingWarning,
    UnsupportedError,
)

__all__ = [
    "CheckpointError",
    "DTypeError",
    "DeletedArrayError",
    "Error",
    "InternalError",
    "MeshError",
    "OutOfMemoryError",
    "ParseError",
    "ShapeError",
    "ShardingError",
    "ShardingWarning",
    "TracerBoolConversionError",
    "TracerConversionError",
    "TracingWarning",
    "UnsupportedError",
]


class DeletedArrayError(Error, RuntimeError):
    """An Array was used after it was deleted, or donated to a jitted function."""


class CheckpointError(Error, ValueError):
    """A checkpoint is damaged, of a newer format, or not of the tree that is loaded."""


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # in reprs of functions and objects; useless, and different in each run


class TracerConversionError(Error, TypeError):
    """The value of a traced array was needed, which is unknown during tracing."""


class TracingWarning(UserWarning):
    """A line of a traced function that runs once, during tracing, and not on each call."""


class TracerBoolConversionError(TracerConversionError):
    """A traced value was used as a condition of Python's ``if``, ``while``, ``and`` or ``or``."""


_MAX_SHOWN = 60  # characters


def shown(value: object) -> str:
    """The text of a value in a message: arrays by dtype and shape, never by their numbers.

    >>> import numpy as np
    >>> shown((np.zeros((8, 6)), 2, None))
    '(float64[8, 6], 2, None)'
    """
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    if type(value) is tuple:
        return f"({', '.join(map(shown, value))}{',' if len(value) == 1 else ''})"
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    return f"{dtype}{list(shape)}" if shape and dtype is not None else repr(value)


def described(value: object) -> str:
    """The text of a non-array value in a message: its type and, if it is short, its value.

    >>> import numpy as np
    >>> described("relu"), described(np.zeros(3, complex)), described(len)
    ("str 'relu'", 'complex128[3]', 'the function len')
    """
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if not isinstance(value, type) and shape is not None and dtype is not None:
        return f"{dtype}{list(shape)}"
    if callable(value):
        return f"the {'class' if isinstance(value, type) else 'function'} {getattr(value, '__name__', repr(value))}"
    text = repr(value)
    has_short_text = type(value).__repr__ is not object.__repr__ and len(text) <= _MAX_SHOWN and "\n" not in text
    if not has_short_text:
        return type(value).__qualname__
    return text if text.startswith(type(value).__name__) else f"{type(value).__name__} {text}"


def is_one_of(value: object, choices: Collection[str]) -> bool:
    """Whether ``value`` is one of these words; False unless it is a string."""
    return isinstance(value, str) and value in choices


def is_integer(value: object, least: int) -> bool:
    """Whether ``value`` is an integer, and no bool, of at least ``least``."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= least)


def expect_text(subject: str, name: str, value: object) -> None:
    """Raise TypeError unless it is a string."""
    if not isinstance(value, str):
        raise TypeError(message(subject, f"{name} must be a str", shown(value)))


def message(subject: str, must_hold: str, got: object = None, way_out: str = "") -> str:
    """Compose the text of an error: ``subject: must_hold, got got; way_out (at file:line)``."""
    return composed(subject, must_hold, got, way_out, *_ir.current_location())


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Errors of shardings start with ``place``: ``in_shardings of params['w']``."""
    try:
        yield
    except ShardingError as error:
        if str(error).startswith(f"{place}: "):
            raise
        raise ShardingError(f"{place}: {str(error).partition(': ')[2]}") from None


@contextmanager
def called_as(name: str, *others: str) -> Iterator[None]:
    """Errors that start with the name of another function, which ``name`` calls, start with ``name``."""
    try:
        yield
    except Error as error:
        head, _, rest = str(error).partition(": ")
        if head not in others:
            raise
        raise reworded(error, f"{name}: {rest}") from None


@contextmanager
def headed(name: str) -> Iterator[None]:
    """Errors of the ops that ``name`` makes start with ``name``, and then with the op."""
    try:
        yield
    except InternalError:
        raise
    except Error as error:
        if str(error).startswith(f"{name}: "):
            raise
        raise reworded(error, f"{name}: {error}") from None


def reworded(error: Exception, text: str) -> Exception:
    """The same error with another text: of the same class, and with the same attributes."""
    made = type(error)(text)
    vars(made).update(vars(error))
    return made


def sentence(text: str, way_out: str = "") -> str:
    """Compose the text of an error that is one statement: ``text; way_out (at file:line)``."""
    file, line = _ir.current_location()
    text = _ADDRESS.sub("", f"{text}; {way_out}" if way_out else text)
    return f"{text} (at {_ir.place_text(file, line)})" if file else text


def composed(subject: str, must_hold: str, got: object, way_out: str, file: str, line: int) -> str:
    """The text of an error at a given place; ``""`` means an unknown file."""
    text = f"{subject}: {must_hold}"
    if got is not None:
        text += f", got {_ADDRESS.sub('', str(got))}"
    if way_out:
        text += f"; {way_out}"
    return f"{text} (at {_ir.place_text(file, line)})" if file else text


_registry: dict[Any, int] = {}  # of Python's warning filters, to warn once per line


def warn(
    subject: str,
    must_hold: str,
    got: object = None,
    way_out: str = "",
    *,
    category: type[Warning] = ShardingWarning,
    place: tuple[str, int] | None = None,
) -> None:
    """Warn at a file and line, by default the user's: ``train.py:31: ShardingWarning: subject: must_hold, got got``."""
    file, line = _ir.current_location() if place is None else place
    text = composed(subject, must_hold, got, way_out, "", 0)
    warnings.warn_explicit(text, category, file or "<unknown>", line, registry=_registry)


def __dir__() -> list[str]:
    return sorted(__all__)
