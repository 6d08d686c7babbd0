# SPDX-License-Identifier: Apache-2.0
"""The arguments of one call of a jitted function: avals, names, specs, and their part of the cache key."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..array import Array, ShapeDtypeStruct
from ..dtypes import refuse_subclass
from ..errors import DTypeError, MeshError, ShardingError, message
from ..mesh import Mesh
from ..partition_spec import PartitionSpec
from ..sharding import UNSPECIFIED, NamedSharding
from ..tracing import Trace, Tracer, WeakTracer, refuse_escaped
from ..trees import broadcast_prefix, flatten, leaf_names, unflatten

__all__ = [
    "Call",
    "argument_names",
    "as_weak",
    "aval_of",
    "constrained",
    "core_sharding",
    "leaf_key",
    "parameter_names",
    "specs_per_leaf",
    "typed",
]


class Call:
    """The arguments of one call, taken apart: leaves to trace, and what the cache key holds beside them."""

    __slots__ = ("dynamic_args", "dynamic_kwargs", "leaves", "static", "tree")

    def __init__(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], static_nums: set[int], static_names: set[str]
    ) -> None:
        static_nums = {i + len(args) if i < 0 else i for i in static_nums}
        self.static = (
            tuple((i, args[i]) for i in sorted(static_nums) if 0 <= i < len(args)),
            tuple((k, kwargs[k]) for k in sorted(static_names) if k in kwargs),
        )
        self.dynamic_args = tuple(a for i, a in enumerate(args) if i not in static_nums)
        self.dynamic_kwargs = {k: v for k, v in kwargs.items() if k not in static_names}
        self.leaves, self.tree = flatten((self.dynamic_args, self.dynamic_kwargs))

    def static_key(self) -> Any:
        """The static values with their types: ``1``, ``1.0`` and ``True`` are equal, but not the same program."""
        return tuple([tuple([(name, typed(value)) for name, value in group]) for group in self.static])

    def static_values(self) -> tuple[Any, ...]:
        """The static arguments."""
        return tuple(value for group in self.static for _, value in group)

    def rebuild(self, leaves: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments of the user's function with ``leaves`` in place of the arrays."""
        dynamic, kwargs = unflatten(self.tree, leaves)
        args = list(dynamic)
        for i, value in self.static[0]:
            args.insert(i, value)
        return args, {**kwargs, **dict(self.static[1])}


def specs_per_leaf(specs: Any, tree: Any, what: str) -> list[Any]:
    """One spec per leaf, None where it is unspecified."""
    return [None if spec is UNSPECIFIED else spec for spec in broadcast_prefix(specs, tree, what)]


def typed(value: Any) -> Any:
    """The value with its type: ``1``, ``1.0`` and ``True`` are equal, but make different programs."""
    if type(value) is tuple:
        return tuple([typed(item) for item in value])
    return type(value), value.hex() if type(value) is float else value


def as_weak(x: Tracer, leaf: Any) -> Tracer:
    """The tracer of an argument; a Python number stays weakly typed."""
    return WeakTracer.of(x, type(leaf)) if type(leaf) in (int, float) else x


def constrained(trace: Trace, leaves: list[Any], specs: list[Any], what: str) -> list[Any]:
    """The leaves of a nested function with the shardings that its jit states."""
    out = []
    for leaf, spec in zip(leaves, specs):
        if spec is not None and trace.mesh is not None:
            x = trace.lift(leaf)
            leaf = trace.constrain(x, core_sharding(spec, trace.mesh, x.ndim, what))
            trace.implied.add(leaf._value)
        out.append(leaf)
    return out


def argument_names(fun: Callable[..., Any], call: Call) -> list[str]:
    """A name for each traced leaf: the parameter and the path in it, for reports and errors."""
    static = {i for i, _ in call.static[0]}
    names = [n for i, n in enumerate(parameter_names(fun, call.rebuild(call.leaves)[0])) if i not in static]
    out = [name + path for name, arg in zip(names, call.dynamic_args) for path in leaf_names(arg)]
    for key in sorted(call.dynamic_kwargs):
        out += [key + path for path in leaf_names(call.dynamic_kwargs[key])]
    return out


def parameter_names(fun: Callable[..., Any], args: Sequence[Any]) -> list[str]:
    """The names that a function has for its positional arguments; ``arg0`` for one that has none."""
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [names[i] if i < len(names) else f"arg{i}" for i in range(len(args))]


def aval_of(leaf: Any, path: str) -> ShapeDtypeStruct:
    """Shape, dtype and sharding of an argument leaf; DTypeError if it is no array of numbers."""
    if isinstance(leaf, ShapeDtypeStruct):
        return leaf
    if isinstance(leaf, Tracer):
        refuse_escaped(leaf)
    if isinstance(leaf, Array):
        return ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
    refuse_subclass(leaf)
    array = np.asarray(leaf)
    if array.dtype.kind in "OSUVMmc" and array.dtype.name != "bfloat16":
        raise DTypeError(
            message(
                "jit",
                "an argument must be an array of numbers",
                f"{array.dtype} for {type(leaf).__name__} at {path}",
                "make it static, or pass arrays",
            )
        )
    return ShapeDtypeStruct(array.shape, array.dtype)


def leaf_key(leaf: Any) -> Any:
    """What the cache key holds of an argument leaf."""
    if isinstance(leaf, np.ndarray):
        if type(leaf) is not np.ndarray:
            refuse_subclass(leaf)
        return leaf.shape, leaf.dtype
    if isinstance(leaf, Array):
        return leaf.shape, leaf.dtype, leaf._data.sharding
    if isinstance(leaf, ShapeDtypeStruct):
        return leaf.shape, leaf.dtype, leaf.sharding
    if isinstance(leaf, Tracer):
        refuse_escaped(leaf)
    array = np.asarray(leaf)
    return array.shape, array.dtype, type(leaf) if type(leaf) in (int, float) else None


def core_sharding(spec: Any, mesh: Mesh, ndim: int, what: str) -> Any:
    """The extension's sharding for a spec on the program's mesh; None if unspecified."""
    if spec is None:
        return None
    sharding = NamedSharding(mesh, spec) if isinstance(spec, (PartitionSpec, str)) else spec
    if not isinstance(sharding, NamedSharding):
        raise ShardingError(message(what, "takes P(...), NamedSharding or text", repr(spec)))
    if sharding.mesh != mesh:
        raise MeshError(message(what, f"must be on the program's mesh, {mesh!r}", repr(sharding.mesh)))
    return sharding.core(ndim)
