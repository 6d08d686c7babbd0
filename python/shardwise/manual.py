# SPDX-License-Identifier: Apache-2.0
"""Manual regions: functions of local shards, inside a program that is partitioned automatically."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from . import _core
from .array_leaves import lifted_results
from .dtypes import dtype_name, numpy_dtype
from .errors import MeshError, ShapeError, ShardingError, composed, message
from .jit import JitFunction, run_as_program
from .process.foreign import native
from .process.traceback_filtering import entry_point
from .programs.options import switch
from .recording.tracing import Trace, Tracer, current_trace
from .shardings.mesh import Mesh, default_mesh
from .shardings.partition_spec import PartitionSpec
from .shardings.sharding import UNSPECIFIED, NamedSharding, sharding_on
from .trees import broadcast_prefix, flatten, leaf_names, unflatten
from .trees.argument_names import names_of_leaves

__all__ = ["manual", "shard_map"]


@entry_point
def manual(
    fun: Callable[..., Any],
    mesh: Mesh | None = None,
    in_specs: Any = None,
    out_specs: Any = None,
    axes: Iterable[str] | None = None,
    check_vma: bool = True,
) -> Callable[..., Any]:
    """Call ``fun`` on local shards along some mesh axes; the other axes are partitioned automatically.

    In each dim, the manual axes of a spec come first: ``fun`` sees 1/n of the dim for n devices along them. Propagation
    handles the other axes, also inside ``fun``.

    A result whose spec does not name a manual axis must be equal on all devices along it. This is inferred: inputs vary
    along the manual axes of their specs, constants along none, and an op's result along those of its operands.

    Args:
        fun: a function of trees of arrays with local shapes.
        mesh: the mesh. Default: the program's mesh.
        in_specs: a prefix tree of specs for the positional arguments; None is ``P()``.
        out_specs: a prefix tree of specs for the result; None is ``P()``.
        axes: the manual axes. Default: all axes of the mesh.
        check_vma: raise ShardingError for a result that varies along a manual axis that its spec does not name. If
            False, such a result is the value of the first device along that axis.

    Returns:
        A function of arrays with global shapes.

    Raises:
        ShardingError: a result varies along a manual axis that its spec does not name; specs do not fit; the mesh does
            not have an axis; an axis is already manual in an outer region; or a manual axis follows another axis in a
            dim.
        ShapeError: the manual axes do not divide a dim.
        MeshError: the mesh is not the program's.

    Source: Shardy's `sdy.manual_computation`; `jax.shard_map`.

    >>> import numpy as np
    >>> import shardwise as sw
    >>> mesh = sw.Mesh({"x": 2, "y": 4})
    >>> double = sw.manual(lambda part: part + part, mesh, sw.P("x"), sw.P("x"), axes={"x"})
    >>> text = sw.jit(double, mesh=mesh).trace(np.zeros((8, 4), np.float32)).as_text()
    >>> [line.strip() for line in text.splitlines() if "stablehlo.add" in line]
    ['%1 = stablehlo.add %arg1, %arg1 : tensor<4x4xf32>']
    >>> first = sw.manual(lambda part: part - part[0], mesh, sw.P("x"), sw.P("x"), axes={"x"})  # of each shard
    >>> np.asarray(sw.jit(first, mesh=mesh)(np.arange(8)))
    array([0, 1, 2, 3, 0, 1, 2, 3])
    """
    return _mapped(_mapping("manual", "axes", mesh, in_specs, out_specs, axes, check_vma), fun)


@dataclass(frozen=True)
class _Mapping:
    """The checked arguments of :func:`manual`, or of :func:`shard_map`, which ``what`` names."""

    what: str
    axes_argument: str  # the name of the argument with the axes
    mesh: Mesh | None
    in_specs: Any
    out_specs: Any
    axes: frozenset[str] | None  # None for all
    check_vma: bool


def _mapping(
    what: str, axes_argument: str, mesh: Any, in_specs: Any, out_specs: Any, axes: Any, check_vma: Any
) -> _Mapping:
    mesh = native(mesh)
    if mesh is not None and not isinstance(mesh, Mesh):
        raise MeshError(message(what, "mesh must be a Mesh", repr(mesh)))
    listed = (axes,) if isinstance(axes, str) else axes
    if listed is not None and not (isinstance(listed, Iterable) and all(isinstance(axis, str) for axis in listed)):
        raise ShardingError(message(what, f"{axes_argument} must be names, or None for all", repr(axes)))
    names = None if listed is None else frozenset(listed)
    return _Mapping(what, axes_argument, mesh, in_specs, out_specs, names, switch(what, "check_vma", check_vma, True))


def _mapped(mapping: _Mapping, fun: Any) -> Callable[..., Any]:
    if not callable(fun):
        raise TypeError(message(mapping.what, "takes a function", repr(fun)))
    programs: dict[Any, JitFunction] = {}

    @entry_point
    @wraps(fun)
    def wrapped(*args: Any) -> Any:
        trace = current_trace()
        if trace is None:
            return run_as_program(mapping.what, wrapped, fun, programs, args, {}, mapping.mesh)
        return _record(trace, fun, mapping, args)

    return wrapped


@entry_point
def shard_map(
    f: Callable[..., Any] | None = None,
    *,
    out_specs: Any,
    in_specs: Any,
    mesh: Mesh | None = None,
    axis_names: Iterable[str] = frozenset(),
    check_vma: bool = True,
) -> Callable[..., Any]:
    """JAX's name for :func:`manual`. Without ``f``, it is a decorator.

    Args:
        f: a function of trees of arrays with local shapes.
        out_specs: as in :func:`manual`.
        in_specs: as in :func:`manual`.
        mesh: as in :func:`manual`.
        axis_names: the manual axes. Default: all axes of the mesh.
        check_vma: as in :func:`manual`.

    Raises:
        ShardingError, ShapeError, MeshError: as :func:`manual`.

    Source: `jax.shard_map`.
    """
    names = axis_names or None
    mapping = _mapping("shard_map", "axis_names", mesh, in_specs, out_specs, names, check_vma)
    if f is None:
        return lambda fun: _mapped(mapping, fun)
    return _mapped(mapping, f)


def _record(trace: Trace, fun: Callable[..., Any], mapping: _Mapping, args: tuple[Any, ...]) -> Any:
    mesh, names, in_specs = mapping.mesh, mapping.axes, mapping.in_specs
    if trace.mesh is None and mesh is None and default_mesh() is None:
        way_out = f"pass mesh= to {mapping.what}, or call set_mesh first"
        raise MeshError(message(mapping.what, "no mesh given", None, way_out))
    program_mesh = trace.require_mesh(mapping.what, mesh)
    if mesh is not None and mesh != program_mesh:
        raise MeshError(message(mapping.what, f"must be on the program's mesh, {program_mesh!r}", repr(mesh)))
    free = [axis for axis in program_mesh.axis_names if axis not in trace.manual_axes]
    for name in sorted(names or ()):
        if name not in free:
            way_out = _one_of(free)
            rule = f"{mapping.axes_argument} must be of the mesh, and not manual already"
            raise ShardingError(message(mapping.what, rule, repr(name), way_out))
    axes = tuple(axis for axis in free if names is None or axis in names)
    region = _Region(trace, mapping, program_mesh, axes, len(axes) < len(free))
    specs = broadcast_prefix(tuple(in_specs) if type(in_specs) is list else in_specs, args, f"{mapping.what}: in_specs")
    return region.record(fun, args, specs)


def _one_of(free: Sequence[str]) -> str:
    return f"use one of {', '.join(map(repr, free))}" if free else "call it outside of the manual region"


class _Region:
    """Records one manual computation."""

    def __init__(self, trace: Trace, mapping: _Mapping, mesh: Mesh, axes: tuple[str, ...], is_partial: bool) -> None:
        self._trace = trace
        self._mapping = mapping
        self._mesh = mesh
        self._axes = axes
        self._is_partial = is_partial
        self._outer = trace.manual_axes  # of the regions around this one

    def record(self, fun: Callable[..., Any], args: tuple[Any, ...], specs: list[Any]) -> Any:
        leaves, tree = flatten(args)
        inputs = [self._trace.lift(leaf) for leaf in leaves]
        names = names_of_leaves(fun, args)
        trace, core = self._trace, self._trace.core
        rows = zip(inputs, specs, names)
        shardings = [
            self._sharding(f"{self._mapping.what}: in_specs of {name}", x.ndim, spec) for x, spec, name in rows
        ]
        outer = trace.manual_axes
        outer_matches = core.set_matches_varying(self._mapping.check_vma)
        region = core.begin_region()
        results: list[Tracer] = []
        try:
            trace.manual_axes = (*outer, *self._axes)
            parts = [self._argument(*argument) for argument in zip(inputs, shardings, names)]
            result = fun(*unflatten(tree, parts))
            results, out_tree = lifted_results(trace, self._mapping.what, result)
        finally:  # the caller may catch an error of the function and keep recording
            trace.manual_axes = outer
            core.set_matches_varying(outer_matches)
            core.end_region([x._value for x in results])
        wanted = broadcast_prefix(self._mapping.out_specs, result, f"{self._mapping.what}: out_specs")
        places = [f"{self._mapping.what}: out_specs of result{path}" for path in leaf_names(result)]
        out = [self._sharding(place, x.ndim, spec) for x, spec, place in zip(results, wanted, places)]
        types = [
            (self._sizes(x.shape, sharding, operator.mul), dtype_name(x.dtype)) for x, sharding in zip(results, out)
        ]
        operands = inputs + self._captured(region)
        attrs = {"manual_axes": _core.ir.Axes(list(self._axes))}
        made = trace.emit_op("sdy.manual_computation", operands, attrs, types, [region])
        for x, sharding in zip(made, out):
            core.set_sharding(x._value, sharding)
        if self._mapping.check_vma:
            self._check_equal(results, made, out, places)
        return unflatten(out_tree, made)

    def _check_equal(
        self, results: list[Tracer], made: list[Tracer], shardings: list[_core.mesh.Sharding], places: list[str]
    ) -> None:
        """Raise ShardingError for a result that varies along a manual axis which its spec does not name."""
        core = self._trace.core
        undeclared = core.undeclared_axes(made[0]._value, list(self._trace.manual_axes)) if made else []
        for x, axes, sharding, place in zip(results, undeclared, shardings, places):
            if not axes:
                continue
            named = " and ".join(map(repr, axes))
            result = place.removeprefix(f"{self._mapping.what}: out_specs of ")
            rule = f"{result} must not vary along a manual axis that its spec {sharding.dims_text()} does not name"
            got = f"{x.dtype.name}{list(x.shape)}, which varies along {named}"
            way_out = (
                f"name {named} in its spec and combine the shards outside, or pass check_vma=False "
                "to return the first device's value"
            )
            text = composed(self._mapping.what, rule, got, way_out, *core.location(x._value))
            raise ShardingError(text)

    def _argument(self, x: Tracer, sharding: _core.mesh.Sharding, name: str) -> Tracer:
        """Add the region argument for an operand: its local part, named as the function names it."""
        shape = self._sizes(x.shape, sharding, operator.floordiv)
        if self._sizes(shape, sharding, operator.mul) != x.shape:
            parts = self._sizes((1,) * x.ndim, sharding, operator.mul)
            dim = next(d for d in range(x.ndim) if x.shape[d] % parts[d])
            rule = f"the manual axes of dim {dim} of {name} have {parts[dim]} parts, which must divide it"
            got = f"{x.shape[dim]} in {list(x.shape)} for {sharding.dims_text()}"
            raise ShapeError(message(self._mapping.what, rule, got, "pad the array, or use other axes"))
        core = self._trace.core
        argument = Tracer(self._trace, core.region_argument(shape, dtype_name(x.dtype)), shape, x.dtype)
        core.set_sharding(argument._value, sharding)
        core.set_name(argument._value, name)
        return argument

    def _captured(self, region: int) -> list[Tracer]:
        """The closed-over values of the function, which are replicated along the manual axes."""
        core = self._trace.core
        operands = []
        for value, argument in core.capture(region):
            kind = core.type_of(value)
            core.set_sharding(argument, self._sharding(f"{self._mapping.what}: in_specs", len(kind.shape), None))
            operands.append(Tracer(self._trace, value, kind.shape, numpy_dtype(kind.dtype)))
        return operands

    def _sharding(self, what: str, ndim: int, spec: Any) -> _core.mesh.Sharding:
        """The outer sharding of a spec. Dims stay open if propagation may add other axes, as in JAX."""
        spec = PartitionSpec() if spec is None or spec is UNSPECIFIED else spec
        if isinstance(spec, NamedSharding) and spec.mesh != self._mesh:
            raise MeshError(message(what, f"must be on the program's mesh, {self._mesh!r}", repr(spec.mesh)))
        sharding: _core.mesh.Sharding = sharding_on(self._mesh, spec, ndim, what)
        for axes, _, _ in sharding.dims:
            taken = [name for name, _, _ in axes if name in self._outer]
            if taken:
                free = [name for name in self._mesh.axis_names if name not in self._outer]
                rule = "a spec must not name an axis that is manual already"
                raise ShardingError(message(what, rule, repr(taken[0]), _one_of(free)))
            kinds = [name in self._axes for name, _, _ in axes]
            if kinds != sorted(kinds, reverse=True):
                rule = f"in each dim the manual axes {', '.join(map(repr, self._axes))} must come first"
                raise ShardingError(message(what, rule, sharding.dims_text()))
        if not self._is_partial or isinstance(spec, str):
            return sharding
        dims = [(axes, True, priority) for axes, _, priority in sharding.dims]
        reducer = sharding.reducer if sharding.unreduced else ""
        return _core.mesh.Sharding.make(self._mesh._core, dims, sharding.replicated_axes, sharding.unreduced, reducer)

    def _sizes(
        self, shape: Sequence[int], sharding: _core.mesh.Sharding, combine: Callable[[int, int], int]
    ) -> tuple[int, ...]:
        """Combine each size with the number of shards of its dim along the manual axes."""
        parts = [math.prod(size for name, _, size in axes if name in self._axes) for axes, _, _ in sharding.dims]
        return tuple(combine(size, count) for size, count in zip(shape, parts))
