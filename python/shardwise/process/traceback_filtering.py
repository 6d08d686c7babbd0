# SPDX-License-Identifier: Apache-2.0
"""Removes the frames of Shardwise and NumPy from tracebacks, as JAX does. ``SHARDWISE_TRACEBACK=full`` keeps them.

A user calls Shardwise through an entry point, and Shardwise calls the user's function while it traces. An entry point
drops the frames between the two, so that a traceback holds the user's lines only. An InternalError keeps every frame.
"""

from __future__ import annotations

import contextlib
import os
import string
from collections.abc import Callable
from functools import wraps
from types import FunctionType, TracebackType
from typing import Any, TypeVar

import numpy as np
import optree

from .._core import error as _error, ir as _ir, runtime as _runtime

__all__ = ["HIDDEN", "PACKAGE", "entry_point", "entry_points", "has_left_entry_point", "hide_frames"]

_F = TypeVar("_F", bound=Callable[..., Any])
_C = TypeVar("_C", bound=type)
PACKAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")  # its folder

# Files and folders without user code. The models are example programs: their lines count as the user's.
HIDDEN = (
    *(os.path.join(PACKAGE, entry) for entry in sorted(os.listdir(PACKAGE)) if entry != "models"),
    *(os.path.join(PACKAGE, "models", entry) for entry in ("configs.py", "layers.py", "initial.py")),
    contextlib.__file__,  # our context managers run through it
    string.__file__,  # debug.print checks format strings with its Formatter
    *(os.path.dirname(str(library.__file__)) + os.sep for library in (np, optree)),
)
_ir.hide_frames_of(HIDDEN)


def entry_point(function: _F) -> _F:
    """Wrap ``function`` so that its exceptions have no frames of Shardwise and NumPy.

    Functions on hot paths contain the ``except`` clause themselves, which costs nothing unless it raises.
    """

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            hide_frames(error)
            if type(error) in (TypeError, ValueError) or isinstance(error, _error.Error):
                error.has_left_entry_point = True  # type: ignore[attr-defined]
            raise

    return called  # type: ignore[return-value]


def has_left_entry_point(error: BaseException) -> bool:
    """Whether the error has the name of an entry point that a function of the user called."""
    return getattr(error, "has_left_entry_point", False)


def entry_points(cls: _C) -> _C:
    """Make the constructor and the public methods of a class entry points."""
    for name, member in list(vars(cls).items()):
        if name != "__init__" and name.startswith("_"):
            continue
        if isinstance(member, FunctionType):
            setattr(cls, name, entry_point(member))
        elif isinstance(member, classmethod):
            setattr(cls, name, classmethod(entry_point(member.__func__)))
    return cls


def hide_frames(error: BaseException) -> None:
    """Drop our frames and NumPy's from ``error``, which is being handled, and from its causes and contexts.

    A plain ``raise`` in the ``except`` block then adds no frame of its own.
    """
    if _is_full(error):
        return
    chain = _chain(error)
    if any(isinstance(link, _error.InternalError) for link in chain):
        return
    for link in chain:
        # If our caller handles an exception of its own, that exception begins with one of the caller's frames.
        if link is error or (link.__traceback__ is not None and _is_hidden(link.__traceback__)):
            link.__traceback__ = _users(link.__traceback__)


def _is_full(error: BaseException) -> bool:
    try:
        return _runtime.full_traceback()
    except _error.Error as wrong:  # of a SHARDWISE_* variable
        if str(wrong) == str(error):
            return False
        raise


def _chain(error: BaseException) -> list[BaseException]:
    """The error with its causes and contexts, each once."""
    found: dict[int, BaseException] = {}
    rest: list[BaseException | None] = [error]
    while rest:
        link = rest.pop()
        if link is not None and id(link) not in found:
            found[id(link)] = link
            rest += [link.__cause__, link.__context__]
    return list(found.values())


def _is_hidden(traceback: TracebackType) -> bool:
    return traceback.tb_frame.f_code.co_filename.startswith(HIDDEN)


def _users(traceback: TracebackType | None) -> TracebackType | None:
    """The entries of a traceback that are the user's."""
    entries = []
    while traceback is not None:
        if not _is_hidden(traceback):
            entries.append(traceback)
        traceback = traceback.tb_next
    kept: TracebackType | None = None
    for entry in reversed(entries):
        kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept
