# SPDX-License-Identifier: Apache-2.0
"""The exceptions of shardwise.

Every message reads ``<op>: <what must hold>, got <values>; <what to do>`` and ends with the user's ``(at file:line)``.
Each class is also the builtin exception that a NumPy or JAX user would expect to catch.
"""

from __future__ import annotations

from ._core import ir as _ir
from ._core.error import (
    DTypeError,
    Error,
    InternalError,
    MeshError,
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
    "ParseError",
    "ShapeError",
    "ShardingError",
    "ShardingWarning",
    "TracerBoolConversionError",
    "TracerConversionError",
    "TracingWarning",
    "UnsupportedError",
]


class TracerConversionError(Error, TypeError):
    """The value of a traced array was needed, which is unknown during tracing."""


class TracingWarning(UserWarning):
    """A line of a traced function that runs once, during tracing, and not on each call."""


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


def message(subject: str, must_hold: str, got: object = None, way_out: str = "") -> str:
    """Compose the text of an error: ``subject: must_hold, got got; way_out (at file:line)``."""
    return composed(subject, must_hold, got, way_out, *_ir.current_location())


def sentence(text: str, way_out: str = "") -> str:
    """Compose the text of an error that is one statement: ``text; way_out (at file:line)``."""
    file, line = _ir.current_location()
    text = f"{text}; {way_out}" if way_out else text
    return f"{text} (at {file}:{line})" if file else text


def composed(subject: str, must_hold: str, got: object, way_out: str, file: str, line: int) -> str:
    """The text of an error at a known place; ``""`` for a file that is not known."""
    text = f"{subject}: {must_hold}"
    if got is not None:
        text += f", got {got}"
    if way_out:
        text += f"; {way_out}"
    return f"{text} (at {file}:{line})" if file else text
