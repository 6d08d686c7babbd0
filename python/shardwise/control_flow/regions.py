# SPDX-License-Identifier: Apache-2.0
"""Regions of control flow while they are recorded: open in text, so that a body uses values from around it.

with region(trace, "while_loop") as body:
    i = body.argument(LeafType((), np.dtype(np.int32)), "i")
    body.returns([i + 1])
emit_while(trace, [zero], condition, body)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..dtypes import dtype_name
from ..numpy._primitives import operand, reshape
from ..recording.tracing import Trace, Tracer, WeakTracer
from .leaf_types import LeafType

__all__ = ["OpenRegion", "converted", "emit_while", "index_dtype", "read_row", "region", "weakened", "write_row"]


class OpenRegion:
    """A region that is being recorded."""

    __slots__ = ("_trace", "index", "results")

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.index = trace.core.begin_region()
        self.results: list[Tracer] = []

    def argument(self, leaf: LeafType, name: str = "") -> Tracer:
        """A new argument of this type."""
        core = self._trace.core
        x = Tracer(self._trace, core.region_argument(leaf.shape, dtype_name(leaf.dtype)), leaf.shape, leaf.dtype)
        if name:
            core.set_name(x._value, name)
        return weakened(x, leaf)

    def returns(self, results: Sequence[Tracer]) -> None:
        """Set the results of the region."""
        self.results = list(results)


@contextmanager
def region(trace: Trace, what: str) -> Iterator[OpenRegion]:
    """Record a region for an op of the user's ``what``; it belongs to no op yet."""
    opened = OpenRegion(trace)
    outer, trace.prints.in_body = trace.prints.in_body, True
    try:
        yield opened
    finally:  # the caller of a function that raised may go on recording
        trace.prints.in_body = outer
        trace.core.end_region([x._value for x in opened.results])


def weakened(x: Tracer, leaf: LeafType) -> Tracer:
    """``x``, as a number whose dtype gives way if the type is that of a Python number."""
    return x if leaf.weak is None or isinstance(x, WeakTracer) else WeakTracer.of(x, leaf.weak)


def converted(trace: Trace, leaves: Sequence[Any], types: Sequence[LeafType]) -> list[Tracer]:
    """The leaves as tracers of these dtypes."""
    return [operand(trace, leaf, wanted.dtype) for leaf, wanted in zip(leaves, types)]


def emit_while(trace: Trace, init: Sequence[Tracer], condition: OpenRegion, body: OpenRegion) -> list[Tracer]:
    """Record a while op; its results are the last carry."""
    return trace.emit_op("stablehlo.while", init, None, (), [condition.index, body.index])


def index_dtype(length: int) -> np.dtype[Any]:
    """The dtype of a counter up to ``length``; as in JAX, int32 where it suffices."""
    return np.dtype(np.int32 if length <= np.iinfo(np.int32).max else np.int64)


def _starts(x: Tracer, index: Tracer) -> list[Tracer]:
    zero = x._trace.constant(np.zeros((), index.dtype)) if len(x.shape) > 1 else index
    return [index, *[zero] * (len(x.shape) - 1)]


def read_row(x: Tracer, index: Tracer) -> Tracer:
    """``x[index]`` for a traced index inside the dim."""
    sizes = (1, *x.shape[1:])
    row = x._trace.emit("stablehlo.dynamic_slice", (x, *_starts(x, index)), {"slice_sizes": sizes})
    return reshape(row, x.shape[1:])


def write_row(x: Tracer, row: Tracer, index: Tracer) -> Tracer:
    """``x`` with ``row`` at ``x[index]``."""
    part = reshape(row, (1, *row.shape))
    return x._trace.emit("stablehlo.dynamic_update_slice", (x, part, *_starts(x, index)))
