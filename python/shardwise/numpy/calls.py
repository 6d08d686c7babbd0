# SPDX-License-Identifier: Apache-2.0
"""Records custom calls, and registers Python functions as their gradients and batching rules.

call("shardwise.eigvalsh", trace, [x], [((4,), x.dtype)], {"uplo": ord("L")})
    %1 = stablehlo.custom_call @shardwise.eigvalsh(%0) {mhlo.backend_config = {uplo = 76 : i64}}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from .. import _core
from ..dtypes import dtype_name, numpy_dtype
from ..errors import ShapeError, message, shown
from ..recording.tracing import Trace, Tracer, current_trace, recording

__all__ = ["RuleTrace", "call", "gradient_of", "tracers_of", "vjp_callback"]

_F = TypeVar("_F", bound=Callable[..., Any])
Type = tuple[tuple[int, ...], Any]  # shape and dtype
Value = tuple[int, tuple[int, ...], str]  # number, shape and dtype name


def call(
    name: str, trace: Trace, operands: Sequence[Tracer], types: Sequence[Type], options: dict[str, Any] | None = None
) -> list[Tracer]:
    """Record a custom call and return its results. ``options`` are those that the definition reads."""
    attrs: dict[str, Any] = {"call_target_name": name}
    if options:
        attrs["mhlo.backend_config"] = options
    named = [(shape, dtype_name(np.dtype(dtype))) for shape, dtype in types]
    return trace.emit_op("stablehlo.custom_call", operands, attrs, named)


class RuleTrace(Trace):
    """The program of one gradient or batching rule, which becomes part of another program."""

    __slots__ = ()

    def __init__(self, core: _core.ir.Trace) -> None:
        outer = current_trace()
        super().__init__("rule", None if outer is None else outer.mesh)
        self.core = core

    def lift(self, x: Any) -> Tracer:
        """Arrays that the rule closes over become constants: its program has no hidden arguments."""
        if isinstance(x, Tracer) or hasattr(x, "__shardwise_array__"):
            return super().lift(x)
        return self.constant(np.asarray(x))


def tracers_of(trace: Trace, values: Sequence[Value]) -> tuple[Tracer, ...]:
    """The arguments of a rule's program."""
    return tuple(Tracer(trace, number, shape, numpy_dtype(name)) for number, shape, name in values)


def vjp_callback(name: str, vjp: Callable[..., Any]) -> Callable[..., list[int | None]]:
    """``vjp(operands, results, cotangents, **options)`` in the form that the extension calls."""

    def record(
        core: _core.ir.Trace, operands: Any, results: Any, cotangents: Any, options: dict[str, Any]
    ) -> list[int | None]:
        trace = RuleTrace(core)
        with recording(trace):
            xs = tracers_of(trace, operands)
            made = vjp(xs, tracers_of(trace, results), tracers_of(trace, cotangents), **options)
            if not isinstance(made, (tuple, list)) or len(made) != len(xs):
                rule = f"vjp must return a cotangent or None for each of the {len(xs)} operands"
                raise ShapeError(message(f"custom_call @{name}", rule, shown(made)))
            return [None if ct is None else _cotangent(name, trace.lift(ct), x)._value for ct, x in zip(made, xs)]

    return record


def _cotangent(name: str, cotangent: Tracer, x: Tracer) -> Tracer:
    if cotangent.shape != x.shape or cotangent.dtype != x.dtype:
        rule = f"a cotangent that vjp returns must be {x.dtype.name}{list(x.shape)}, like its operand"
        raise ShapeError(message(f"custom_call @{name}", rule, shown(cotangent)))
    return cotangent


def gradient_of(name: str) -> Callable[[_F], _F]:
    """Register the decorated function as the gradient of one of shardwise's own custom calls."""

    def register(vjp: _F) -> _F:
        _core.ir.set_custom_call_vjp(name, vjp_callback(name, vjp))
        return vjp

    return register
