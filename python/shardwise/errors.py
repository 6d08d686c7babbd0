# SPDX-License-Identifier: Apache-2.0
"""The exceptions of shardwise.

Every message reads ``<op>: <what must hold>, got <values>; <what to do>`` and ends with the user's ``(at file:line)``.
Each class is also the builtin exception that a NumPy or JAX user would expect to catch.
"""

from __future__ import annotations

import re
from collections.abc import Collection

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
    "DTypeError",
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
    "UnsupportedError",
]


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # in the repr of functions and plain objects: no help, and never the same


class TracerConversionError(Error, TypeError):
    """A traced value was asked for its number, which exists only when the program runs."""


class TracerBoolConversionError(TracerConversionError):
    """A traced value was used as a condition of Python's ``if``, ``while``, ``and`` or ``or``."""


def shown(value: object) -> str:
    """A value in a message: an array by its dtype and shape, never by its numbers.

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


def is_one_of(value: object, choices: Collection[str]) -> bool:
    """Whether ``value`` is one of these words; False for what is no text at all."""
    return isinstance(value, str) and value in choices


def expect_text(subject: str, name: str, value: object) -> None:
    """Raise TypeError for what is no text."""
    if not isinstance(value, str):
        raise TypeError(message(subject, f"{name} must be a str", shown(value)))


def message(subject: str, must_hold: str, got: object = None, way_out: str = "") -> str:
    """Compose the text of an error: ``subject: must_hold, got got; way_out (at file:line)``."""
    return composed(subject, must_hold, got, way_out, *_ir.current_location())


def composed(subject: str, must_hold: str, got: object, way_out: str, file: str, line: int) -> str:
    """The text of an error at a known place; ``""`` for a file that is not known."""
    text = f"{subject}: {must_hold}"
    if got is not None:
        text += f", got {_ADDRESS.sub('', str(got))}"
    if way_out:
        text += f"; {way_out}"
    return f"{text} (at {file}:{line})" if file else text
