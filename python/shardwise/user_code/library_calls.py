# SPDX-License-Identifier: Apache-2.0
"""Errors of traced arrays inside other libraries: `scipy.special.logsumexp(x)` and `df @ w`.

The library reads the numbers on its own line, which the user cannot change. The error names the user's call and line
instead.
"""

from __future__ import annotations

import ast
import os
import re
import sys
import sysconfig
from functools import cache
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..errors import composed
from .call_sites import CallSite, site_of
from .sources import shown_file

if TYPE_CHECKING:
    from ..recording.tracing import Tracer

__all__ = ["library_error"]

_INSTALLED = re.compile(r".*[/\\](?:site|dist)-packages[/\\](\w+)")
_INSTEAD = {"pandas": "take the numbers out of the Series or DataFrame first, with to_numpy()"}


def library_error(x: Tracer, site: CallSite | None) -> str | None:
    """The error text if library code needs a value at ``site``; None if the line is the user's."""
    library = "" if site is None else _library_of(site.frame.f_code.co_filename)
    if site is None or not library or library == _library_of(_file_of(x._trace.user_call.function)):
        return None
    frame: FrameType | None = site.frame
    while frame is not None and _library_of(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return None
    call = site_of(frame)
    node = call.node
    subject = call.text(node.func if isinstance(node, ast.Call) else node)
    rule = f"{library} needs the values of a traced array, which are unknown during tracing"
    way_out = _INSTEAD.get(library, "write it with NumPy functions, or call it outside jit on np.asarray(x)")
    subject = library if subject == "…" else subject
    return composed(subject, rule, repr(x), way_out, shown_file(frame.f_code.co_filename), frame.f_lineno)


def _library_of(file: str) -> str:
    """The package of an installed file, or the module of the standard library; "" for a file of the user."""
    installed = _INSTALLED.match(file)
    if installed:
        return installed[1]
    root = next((path for path in _standard_library() if file.startswith(path)), None)
    if root is None:
        return ""
    name = re.match(r"\w+", file[len(root) :])
    return name[0] if name and name[0] in sys.stdlib_module_names else ""


@cache
def _standard_library() -> frozenset[str]:
    return frozenset(sysconfig.get_paths()[key] + os.sep for key in ("stdlib", "platstdlib"))


def _file_of(function: Any) -> str:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return getattr(getattr(function, "__code__", None), "co_filename", "")
