# SPDX-License-Identifier: Apache-2.0
"""Inspect traced functions: :func:`print` prints values, :func:`visualize_array_sharding` prints tiles."""

from __future__ import annotations

import string
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core
from .array import Array
from .errors import UnsupportedError, message
from .numpy.calls import RuleTrace, Value, tracers_of
from .recording.debug_prints import DebugPrint, call_of, print_from_op
from .recording.tracing import Trace, Tracer, current_trace, recording, refuse_escaped
from .trees import flatten, unflatten
from .viz.inspected import INSPECTED_SHAPE, tiles_text

__all__ = ["print", "visualize_array_sharding"]

_TARGET = "shardwise.debug_print"


def print(fmt: str, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Print traced values when the program runs, as ``jax.debug.print``; outside :func:`shardwise.jit`, immediately.

    At the top level of a program the values become hidden results, which are gathered on the host and printed after
    the run. Printing then adds no collectives by itself, but a printed value must be computed: partial sums are
    reduced, and ops that nothing else uses are kept.

    In a loop or a branch, each execution prints, and all devices gather the values first. In a manual region each
    device prints its own shard; if some axes are not manual, equal shards print once. Lines are in program order.

    Args:
        fmt: a format string for ``str.format``.
        args: values for ``{}`` and ``{0}``: arrays, or trees of arrays and other Python values.
        ordered: accepted as in JAX; values are always printed in program order.
        kwargs: values for ``{name}``.

    :func:`shardwise.grad` prints the value of the forward pass once. :func:`shardwise.vmap` prints one line per
    example, unless no printed value depends on the example.

    Raises:
        TypeError: ``fmt`` is not a string, or has a format spec for an array that is not a scalar. ValueError: ``fmt``
        does not use an argument. IndexError, KeyError: a field of ``fmt`` has no argument.

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
    # The user may write to the array before the run.
    known = [None if isinstance(x, Tracer) else x.copy() if isinstance(x, np.ndarray) else x for x in leaves]
    operands = [trace.lift(leaf) if isinstance(leaf, Tracer) else None for leaf in leaves]
    traced = [None if x is None else x._value for x in operands]
    prints = trace.prints
    if not prints.in_body and not trace.manual_axes:
        prints.append(DebugPrint(fmt, tree, known, traced))
        return
    values = [x for x in operands if x is not None]
    has_device = _is_manual_everywhere(trace)
    if has_device:
        values.append(trace.emit("stablehlo.partition_id", (), None, (), np.dtype(np.uint32)))
    call = DebugPrint(fmt, tree, known, traced, len(prints), has_device)
    prints.ops.append(call)
    _emit(trace, call, values)


def _is_manual_everywhere(trace: Trace) -> bool:
    """Whether each device runs the ops that are recorded now by itself, so that it has a number."""
    sizes = {} if trace.mesh is None else trace.mesh.shape
    return bool(trace.manual_axes) and all(size == 1 or axis in trace.manual_axes for axis, size in sizes.items())


def _emit(trace: Trace, call: DebugPrint, operands: Sequence[Tracer]) -> None:
    attrs = {
        "call_target_name": _TARGET,
        "has_side_effect": True,
        "mhlo.backend_config": {"call": call.register()},
    }
    trace.emit_op("stablehlo.custom_call", operands, attrs)


def _print_op(arrays: list[np.ndarray], types: Any, options: dict[str, Any], place: str) -> list[np.ndarray]:
    """The kernel of the op. A text without its program has only the values."""
    call = call_of(options["call"])
    if call is None:
        sys.stdout.write(" ".join(map(str, arrays)) + "\n")
    else:
        print_from_op(call, arrays)
    return []


def _batch_op(
    core: _core.ir.Trace, size: int, in_batched: list[bool], operands: list[Value], types: Any, options: dict[str, Any]
) -> list[tuple[int, bool]]:
    """The batching rule of the op."""
    call = call_of(options["call"])
    if call is None:
        rule = "a call from a text cannot be batched"
        raise UnsupportedError(message("debug.print", rule, None, "trace the function again"))
    trace = RuleTrace(core)
    with recording(trace):
        _emit(trace, call.batched(size, in_batched), tracers_of(trace, operands))
    return []


_core.ir.register_custom_call(_TARGET, _print_op, batch=_batch_op)


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

    More than 32 tiles are printed as groups of neighbours. A traced value is printed when its program is compiled, with
    the sharding that the compiler chose. In a manual region the shape is that of a shard, and the tiles are those along
    the axes that are not manual.

    Args:
        array: an :class:`Array`, or a traced value.

    Raises:
        TypeError: any other value.

    Source: `jax.debug.visualize_array_sharding`.

    >>> import shardwise as sw
    >>> mesh = sw.Mesh({"x": 4, "y": 2})
    >>> sw.debug.visualize_array_sharding(sw.device_put(np.arange(5), sw.NamedSharding(mesh, sw.P("x"))))
    int64[5] sharded [{"x"}]
    [0:2]  devices 0-1
    [2:4]  devices 2-3
    [4:5]  devices 4-5
    empty  devices 6-7
    """
    if isinstance(array, Tracer):
        trace = current_trace()
        if trace is None:
            refuse_escaped(array)
        trace.prints.shows_tiles = True
        options = {INSPECTED_SHAPE: ",".join(map(str, array.shape))}
        attrs = {"call_target_name": "InspectSharding", "has_side_effect": True, "mhlo.backend_config": options}
        trace.emit_op("stablehlo.custom_call", [trace.lift(array)], attrs)
        return
    if not isinstance(array, Array):
        rule, way_out = "takes an Array or a traced value", "put it on a mesh with device_put"
        raise TypeError(message("visualize_array_sharding", rule, type(array).__name__, way_out))
    sys.stdout.write(tiles_text(array.dtype.name, array.shape, array._data.sharding))


def __dir__() -> list[str]:
    return sorted(__all__)
