# SPDX-License-Identifier: Apache-2.0
"""Errors of functions from JAX that JAX itself does not describe for a program of Shardwise."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

from ..errors import TracerConversionError, UnsupportedError, composed, described, message
from ..process.traceback_filtering import HIDDEN
from ..recording.tracing import Tracer
from ..trees import flatten, leaf_names
from .jaxprs import equations
from .optional import jax

__all__ = [
    "clearer",
    "export_error",
    "refuse_callbacks",
    "refuse_captured_results",
    "refuse_jax_tracer",
    "refuse_leaked_tracers",
    "users_place",
]

_OWN_CLASS = re.compile(r"\bshardwise\.[a-z_.]*[A-Z]")  # JAX's messages name the class of a value that it cannot take
_TO_PRINT = "remove it, or return the value, and print it by sw.debug.print in the function around"
_TO_CALL = "write it in jax.numpy, or return the value, and call Python on the results of the program"
_NO_CALL = "a JAX function must not call Python functions, which no device can run"
_NO_PRINT = "a JAX function must not print, which no device can do"
_CALLBACKS = {  # by primitive: what must hold, the function of JAX, and the way out
    "debug_callback": (_NO_CALL, "jax.debug.callback", _TO_PRINT),
    "debug_print": (_NO_PRINT, "jax.debug.print", _TO_PRINT),
    "io_callback": (_NO_CALL, "jax.experimental.io_callback", _TO_CALL),
    "pure_callback": (_NO_CALL, "jax.pure_callback", _TO_CALL),
}


def refuse_callbacks(jaxpr: Any) -> None:
    """Raise UnsupportedError, with its line, for a print or a call of Python in a program."""
    for eqn in equations(jaxpr):
        found = _CALLBACKS.get(eqn.primitive.name)
        if found is not None:
            raise _unsupported(eqn, *found)


def export_error(eqn: Any) -> UnsupportedError:
    """The error of a call of a function that `jax.export` made for other platforms than the rest of the program."""
    exported = eqn.params["exported"]
    rule = "all functions of jax.export in a JAX function must be exported for TPUs, or all for CPUs"
    got = f"{exported.fun_name} for {', '.join(exported.platforms)}"
    way_out = 'export them with platforms=("tpu", "cpu")'
    return _unsupported(eqn, rule, got, way_out)


def _unsupported(eqn: Any, rule: str, got: str, way_out: str) -> UnsupportedError:
    """The error of an equation, with its place."""
    return UnsupportedError(composed("from_jax", rule, got, way_out, *_place_of(eqn)))


def _place_of(eqn: Any) -> tuple[str, int]:
    """The user's line of an equation; if JAX has none, the line that calls the JAX function."""
    traceback = eqn.source_info.traceback
    for frame in () if traceback is None else traceback.frames:
        if not _is_hidden(frame.file_name):
            return frame.file_name, frame.line_num
    return users_place()


def _is_hidden(file: str) -> bool:
    """Whether a file is not the user's. `functools` calls the cached properties of Shardwise."""
    return file.startswith((*HIDDEN, os.path.dirname(jax.__file__) + os.sep, functools.__file__, "<"))


def users_place() -> tuple[str, int]:
    """The user's line that is running, also where JAX traces it."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and _is_hidden(frame.f_code.co_filename):
        frame = frame.f_back
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def refuse_jax_tracer(x: Any, name: str) -> None:
    """Raise UnsupportedError if JAX traces the function that calls us."""
    if isinstance(x, jax.core.Tracer):
        rule = "must not be called in a function that JAX traces, such as one of jax.jit"
        way_out = "call the JAX function itself there, or sw.jit in place of jax.jit"
        raise UnsupportedError(
            composed("from_jax", rule, f"a traced {described(x)} for {name}", way_out, *users_place())
        )


def refuse_leaked_tracers(constants: list[Any]) -> None:
    """Raise an error if one of the arrays that a function of JAX closes over is traced.

    Raises:
        jax.errors.UnexpectedTracerError: the trace has ended.
        TracerConversionError: JAX traces the function around.
    """
    for value in constants:
        if isinstance(value, jax.core.Tracer):
            jax.jit(lambda x: x)(value)  # JAX's error names the function that leaked it; make_jaxpr raises none
            rule = "a JAX function must not use a traced value of another call"
            way_out = "return it, or pass it as an argument"
            raise TracerConversionError(
                composed("from_jax", rule, f"a traced {described(value)}", way_out, *users_place())
            )


class _CapturedResultError(Exception):
    """A function of JAX returns a traced value of Shardwise."""


def refuse_captured_results(leaves: list[Any]) -> None:
    """Raise an error, for :func:`clearer`, if a function of JAX returns a traced value of Shardwise."""
    for leaf in leaves:
        if isinstance(leaf, Tracer):
            raise _CapturedResultError(f"{leaf!r} in the results")


def clearer(error: Exception) -> Exception | None:
    """The error to raise in place of one that JAX raised while it traced a function; None to keep it."""
    if isinstance(error, ValueError) and "Non-hashable static arguments" in str(error):
        rule = "static arguments of jitted functions inside must not depend on arguments that are traced"
        way_out = "make the argument static, too: pass static_argnums= or static_argnames= to from_jax"
        return ValueError(message("from_jax", rule, None, way_out))
    if isinstance(error, _CapturedResultError):
        return _captured(str(error))
    is_ours = isinstance(error, (TracerConversionError, UnsupportedError)) or bool(_OWN_CLASS.search(str(error)))
    if not is_ours and not isinstance(error, jax.errors.TracerArrayConversionError):
        return None
    captured = next(_tracers_in(error.__traceback__), None)
    return None if captured is None else _captured(captured)


def _captured(value: str) -> TracerConversionError:
    rule = "a JAX function must not close over traced values of Shardwise"
    return TracerConversionError(message("from_jax", rule, value, "pass it as an argument of the JAX function"))


def _tracers_in(traceback: TracebackType | None) -> Iterator[str]:
    """The variables of the user's frames that hold traced values of Shardwise, with their names; the last call first.

    A function of JAX is given tracers of JAX. So it has closed over these.
    """
    frames = []
    while traceback is not None:
        frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    for frame in reversed(frames):
        if frame.f_code.co_filename == __file__ or _is_hidden(frame.f_code.co_filename):
            continue
        for name, value in frame.f_locals.items():
            try:
                leaves, paths = flatten(value)[0], leaf_names(value)
            except Exception:  # a tree that cannot be flattened has another error
                continue
            for leaf, path in zip(leaves, paths):
                if isinstance(leaf, Tracer):
                    yield f"{name}{path}, {leaf!r}"
