# SPDX-License-Identifier: Apache-2.0
"""Errors of functions of JAX that are called with traced arrays of Shardwise, with the function to use instead.

JAX raises errors of many kinds: it knows neither the arrays nor the axes of a manual region.

    jnp.tanh(x)                                   use np.tanh
    jax.lax.with_sharding_constraint(x, spec)     use sw.with_sharding_constraint
    jax.lax.psum(x, "data")                       write the manual region in JAX: sw.from_jax(jax.shard_map(f, …))
"""

from __future__ import annotations

import ast
import os
import sys
from types import TracebackType

import numpy as np

from ..errors import UnsupportedError, composed
from ..process.traceback_filtering import HIDDEN
from .call_sites import site_of
from .sources import shown_file
from .static_arguments import is_traced

__all__ = ["error_of_jax"]

_COLLECTIVES = frozenset({
    "all_gather", "all_to_all", "axis_index", "axis_size", "pmax", "pmean", "pmin", "ppermute", "pshuffle", "psum",
    "psum_scatter",
})  # fmt: skip
_WITHOUT_ARRAYS = frozenset({"axis_index", "axis_size"})
_IN_REGION = (
    "return the part of each device, and combine the parts after sw.shard_map, or write the region in JAX, "
    "sw.from_jax(jax.shard_map(f, …))"
)
_BY_NAME = {"device_put": "use sw.reshard", "checkpoint_name": "use sw.name"}
_RULE = "takes no traced arrays of Shardwise"
_IN_JAX = "use NumPy's functions, or write the whole function in JAX and pass it to sw.from_jax"


def error_of_jax(error: Exception) -> UnsupportedError | None:
    """The error of a function of JAX that the user called with a tracer, at the user's line; None for other errors."""
    step = _last_step(error.__traceback__)
    if step is None:
        return None
    site = site_of(step.tb_frame, step.tb_lasti)
    function = site.value(site.node.func) if isinstance(site.node, ast.Call) else None
    name = getattr(function, "__name__", "")
    is_of_jax = str(getattr(function, "__module__", "")).partition(".")[0] == "jax"
    place = shown_file(step.tb_frame.f_code.co_filename), step.tb_lineno
    if isinstance(site.node, ast.Call) and is_of_jax and name:
        takes_traced = any(is_traced(value) for _, value in site.names(site.node))
        if takes_traced or (name in _WITHOUT_ARRAYS and isinstance(error, NameError)):
            rule = "knows no manual axes of Shardwise" if name in _COLLECTIVES else _RULE
            return UnsupportedError(composed(site.text(site.node.func), rule, None, _way_out(name), *place))
    text = str(error)
    if type(error) is TypeError and "shardwise.recording.tracing.Tracer'>" in text and "jax" in text.lower():
        return UnsupportedError(composed("a function of JAX", _RULE, None, _IN_JAX, *place))
    return None


def _way_out(name: str) -> str:
    """The way out for a function of JAX of this name."""
    if name in _COLLECTIVES:
        return _IN_REGION
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name in sys.modules["shardwise"].__all__:
        return f"use sw.{name}"
    return f"use np.{name}" if hasattr(np, name) else _IN_JAX


def _last_step(traceback: TracebackType | None) -> TracebackType | None:
    """The last frame of the user in a traceback, before the first one of JAX."""
    found = None
    while traceback is not None and f"{os.sep}jax{os.sep}_src{os.sep}" not in traceback.tb_frame.f_code.co_filename:
        if not traceback.tb_frame.f_code.co_filename.startswith(HIDDEN):
            found = traceback
        traceback = traceback.tb_next
    return found
