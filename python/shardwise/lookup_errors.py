# SPDX-License-Identifier: Apache-2.0
"""Errors for constants that are indexed by traced arrays: ``table[ids]`` and ``np.take(table, ids)``.

NumPy asks an index for its numbers (``__index__``, ``__array__``) and takes it no further, so that a tracer can only
tell from its caller's bytecode what is being done to it, and name the form that works.
"""

from __future__ import annotations

import ast
import dis
import os
from types import FrameType

import numpy as np

from .call_sites import site_of
from .errors import TracerConversionError, message

__all__ = ["lookup_error"]

_NUMPY = os.path.dirname(np.__file__) + os.sep
_READS = frozenset({"BINARY_SUBSCR"})


def lookup_error(caller: FrameType | None, index: object) -> TracerConversionError | None:
    """The error for a tracer whose numbers ``caller`` asks for in order to index a constant by it; None otherwise."""
    name = ""
    while caller is not None and caller.f_code.co_filename.startswith(_NUMPY):
        name, caller = caller.f_code.co_name, caller.f_back
    if name == "take":
        must_hold = "a table of constants must be traced where its indices are"
        way_out = "use shardwise.numpy.take(table, indices, axis=0), or np.asarray(table, like=indices)[indices]"
        return TracerConversionError(message("np.take", must_hold, f"the traced indices {index!r}", way_out))
    if name or caller is None or not _reads_item(caller):
        return None
    must_hold = "a NumPy array, list or tuple cannot be indexed by a traced array"
    way_out = "use np.asarray(table, like=i)[i], or shardwise.numpy.take(table, i, axis=0)"
    return TracerConversionError(message("indexing", must_hold, repr(index), way_out))


def _reads_item(frame: FrameType) -> bool:
    """Whether the frame is at ``a[b]``, and not at ``a[b] += c``, which reads the item in order to write it."""
    return _is_at_subscript(frame) and not isinstance(getattr(site_of(frame).node, "ctx", None), ast.Store)


def _is_at_subscript(frame: FrameType) -> bool:
    code, offset = frame.f_code.co_code, frame.f_lasti
    if dis.opname[code[offset]] in _READS:
        return True
    instructions = dis.get_instructions(frame.f_code)
    found = next((one for one in instructions if one.offset == offset), None)
    return found is not None and found.opname == "BINARY_OP" and found.argrepr == "[]"  # Python 3.14
