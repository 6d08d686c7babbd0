# SPDX-License-Identifier: Apache-2.0
"""Inspect traced functions: :func:`print` prints values, :func:`visualize_array_sharding` prints tiles."""

from __future__ import annotations

import string
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from .array import Array
from .errors import UnsupportedError, message
from .recording.debug_prints import DebugPrint
from .recording.tracing import Tracer, current_trace, refuse_escaped
from .trees import flatten, unflatten
from .viz.arrays import empty_devices, holders, ranges

__all__ = ["print", "visualize_array_sharding"]


def print(fmt: str, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Print traced values after the run, as ``jax.debug.print``; outside :func:`shardwise.jit`, print immediately.

    The values become hidden results of the program. They are gathered on the host and printed in program order.
    Printing adds no collectives by itself, but a printed value must be computed: partial sums are reduced, and ops that
    nothing else uses are kept.

    Args:
        fmt: a format string for ``str.format``.
        args: values for ``{}`` and ``{0}``: arrays, or trees of arrays and other Python values.
        ordered: accepted as in JAX; values are always printed in program order.
        kwargs: values for ``{name}``.

    :func:`shardwise.grad` prints the value of the forward pass once. :func:`shardwise.vmap` prints one line per
    example, unless no printed value depends on the example.

    Raises:
        TypeError: ``fmt`` is not a string, or has a format spec for an array that is not a scalar. ValueError: ``fmt``
        does not use an argument. IndexError, KeyError: a field of ``fmt`` has no argument. UnsupportedError:
        inside a manual region, a loop or a branch.

    >>> import shardwise as sw
    >>> @sw.jit(mesh=sw.Mesh({"x": 2}), in_shardings=sw.P("x"))
    ... def f(x):
    ...     y = x * 2
    ...     sw.debug.print("y = {y}, sum {:.1f}", y.sum(), y=y)
    ...     return y + 1
    >>> z = f(np.arange(4.0))
    y = [0. 2. 4. 6.], sum 12.0
    """
    if not isinstance(fmt, str):
        raise TypeError(message("debug.print", "fmt must be a format string", repr(fmt), "write debug.print('{}', x)"))
    leaves, tree = flatten((args, kwargs))
    shapes = [_placeholder(leaf) if isinstance(leaf, (Tracer, Array, np.ndarray)) else leaf for leaf in leaves]
    examples, named_examples = unflatten(tree, shapes)
    _Checker().vformat(fmt, examples, named_examples)
    trace = current_trace()
    if trace is None:
        for leaf in leaves:
            if isinstance(leaf, Tracer):
                refuse_escaped(leaf)
        DebugPrint(fmt, tree, leaves).show([])
        return
    if trace.manual_axes:
        rule = "is not supported in a manual region"
        raise UnsupportedError(
            message("debug.print", rule, None, "return the value from the region and print it outside")
        )
    if trace.prints.refused_in:
        rule = f"is not supported in the body of {trace.prints.refused_in}"
        raise UnsupportedError(
            message("debug.print", rule, None, "return the value from the body and print it outside")
        )
    traced = [trace.lift(leaf)._value if isinstance(leaf, Tracer) else None for leaf in leaves]
    # The user may write to the array before the run.
    known = [None if isinstance(x, Tracer) else x.copy() if isinstance(x, np.ndarray) else x for x in leaves]
    trace.prints.append(DebugPrint(fmt, tree, known, traced))


def _placeholder(leaf: Any) -> np.ndarray:
    return np.broadcast_to(np.zeros((), leaf.dtype), leaf.shape)


_FIELD = "each field of fmt must have an argument"


class _Checker(string.Formatter):
    """Checks a format string against its arguments, without formatting any array."""

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Any) -> Any:
        """IndexError or KeyError for a field without an argument."""
        if isinstance(key, int) and key >= len(args):
            raise IndexError(message("debug.print", _FIELD, f"{{{key}}} for {len(args)} positional", "pass one more"))
        if isinstance(key, str) and key not in kwargs:
            raise KeyError(message("debug.print", _FIELD, f"{{{key}}} without one", f"pass {key}=…"))
        return super().get_value(key, args, kwargs)

    def convert_field(self, value: Any, conversion: Any) -> Any:
        """``!r``, ``!s`` and ``!a`` give a string, which takes any format spec; the run checks them."""
        return value if conversion is None else ""

    def format_field(self, value: Any, format_spec: str) -> str:
        """TypeError for a spec that arrays do not have."""
        if isinstance(value, np.ndarray) and value.ndim and format_spec:
            got = f"{format_spec!r} for {value.dtype}{list(value.shape)}"
            way_out = "leave it out, and set digits by np.set_printoptions(precision=…)"
            raise TypeError(message("debug.print", "a format spec needs a scalar", got, way_out))
        return ""

    def check_unused_args(self, used_args: Any, args: Sequence[Any], kwargs: Any) -> None:
        """ValueError for an argument that no field refers to."""
        unused = [str(i) for i in range(len(args)) if i not in used_args]
        unused += [name for name in kwargs if name not in used_args]
        if unused:
            got = f"{', '.join(unused)} without one"
            way_out = f"add {{{unused[0]}}} to the format string"
            raise ValueError(message("debug.print", "each argument must have a field in fmt", got, way_out))


def visualize_array_sharding(array: Any) -> None:
    """Print which devices hold which tile of an array. Notebooks also draw an Array that is a cell's result.

    >>> import shardwise as sw
    >>> mesh = sw.Mesh({"x": 4, "y": 2})
    >>> sw.debug.visualize_array_sharding(sw.device_put(np.arange(5), sw.NamedSharding(mesh, sw.P("x"))))
    int64[5] sharded [{"x"}]
    [0:2]  devices 0-1
    [2:4]  devices 2-3
    [4:5]  devices 4-5
    empty  devices 6-7
    """
    if not isinstance(array, Array):
        way_out = "put it on a mesh with device_put, or ask program.why(name) for a traced value"
        raise TypeError(message("visualize_array_sharding", "takes an Array", type(array).__name__, way_out))
    rows = [
        (f"[{', '.join(f'{start}:{start + size}' for start, size in tile)}]", ranges(devices))
        for tile, devices in holders(array).items()
    ]
    if empty := empty_devices(array):
        rows.append(("empty", ranges(empty)))
    width = max(len(tile) for tile, _ in rows)
    shape = ",".join(map(str, array.shape))
    lines = [f"{array.dtype.name}[{shape}] sharded {array.sharding.text(array.ndim)}"]
    lines += [f"{tile:{width}}  devices {devices}" for tile, devices in rows]
    sys.stdout.write("\n".join(lines) + "\n")
