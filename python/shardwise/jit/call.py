# SPDX-License-Identifier: Apache-2.0
"""The arguments of one call of a jitted function: avals, names, specs, and their part of the cache key."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from typing import Any

import numpy as np

from ..array import Array, ShapeDtypeStruct
from ..dtypes import is_dtype, refuse_subclass, way_to_numbers
from ..errors import DTypeError, MeshError, ShardingError, described, message, naming
from ..mesh import Mesh
from ..partition_spec import PartitionSpec
from ..sharding import UNSPECIFIED, NamedSharding
from ..static_arguments import STATIC_FIELD
from ..tracing import Trace, Tracer, WeakTracer, refuse_escaped
from ..tree_registry import typed
from ..trees import broadcast_prefix, flatten, leaf_names, unflatten

__all__ = [
    "Call",
    "argument_names",
    "as_weak",
    "aval_of",
    "constrained",
    "core_sharding",
    "display_name",
    "leaf_key",
    "lifted_results",
    "names_of_leaves",
    "numbers_of",
    "parameter_names",
    "specs_per_leaf",
]


_NO_STATIC: tuple[tuple[tuple[int, Any], ...], tuple[tuple[str, Any], ...]] = ((), ())


class Call:
    """The arguments of one call: the leaves to trace, and the rest of the cache key."""

    __slots__ = ("dynamic_args", "dynamic_kwargs", "leaves", "static", "tree")

    def __init__(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], static_nums: set[int], static_names: set[str]
    ) -> None:
        if not static_nums and not static_names:
            self.static, self.dynamic_args, self.dynamic_kwargs = _NO_STATIC, args, kwargs
            self.leaves, self.tree = flatten((args, kwargs))
            return
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
        if self.static is _NO_STATIC:
            return _NO_STATIC
        return tuple([tuple([(name, typed(value)) for name, value in group]) for group in self.static])

    def leaves_of(self, nums: set[int], names: set[str]) -> tuple[int, ...]:
        """Indices of the leaves of some arguments, by position among all arguments and by name."""
        count = len(self.dynamic_args) + len(self.static[0])
        nums = {i + count if i < 0 else i for i in nums}
        static = {i for i, _ in self.static[0]}
        wanted = [i in nums for i in range(count) if i not in static]
        wanted += [name in names for name in sorted(self.dynamic_kwargs)]
        args, kwargs = self.tree.children()
        owners = [
            own for own, child in zip(wanted, args.children() + kwargs.children()) for _ in range(child.num_leaves)
        ]
        return tuple([i for i, own in enumerate(owners) if own])

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


def as_weak(x: Tracer, leaf: Any) -> Tracer:
    """The tracer of an argument; a Python number stays weakly typed."""
    return WeakTracer.of(x, type(leaf)) if type(leaf) in (int, float) else x


def constrained(trace: Trace, leaves: list[Any], specs: list[Any], what: str) -> list[Any]:
    """Annotate the leaves of a nested jitted function with the shardings of its jit."""
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
    count = len(call.dynamic_args) + len(static)
    names = [n for i, n in enumerate(parameter_names(fun, count)) if i not in static]
    out = [name + path for name, arg in zip(names, call.dynamic_args) for path in leaf_names(arg)]
    for key in sorted(call.dynamic_kwargs):
        out += [key + path for path in leaf_names(call.dynamic_kwargs[key])]
    return out


def display_name(fun: Callable[..., Any]) -> str:
    """The name of a function in its source; ``f`` if it has none."""
    name = str(getattr(fun, "__name__", ""))
    return name if name.isidentifier() else "f"


def names_of_leaves(fun: Callable[..., Any], args: Sequence[Any]) -> list[str]:
    """A name for each leaf of positional arguments: ``params['w']``."""
    names = parameter_names(fun, len(args))
    return [name + path for name, arg in zip(names, args) for path in leaf_names(arg)]


def parameter_names(fun: Callable[..., Any], count: int) -> list[str]:
    """The names that a function has for its first positional arguments; ``arg0`` for one that has none."""
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [names[i] if i < len(names) else f"arg{i}" for i in range(count)]


def aval_of(leaf: Any, name: str, function: str) -> ShapeDtypeStruct:
    """Shape, dtype and sharding of the argument leaf ``name``; DTypeError if it is not an array of numbers."""
    if isinstance(leaf, ShapeDtypeStruct):
        return leaf
    if isinstance(leaf, Tracer):
        refuse_escaped(leaf)
    if isinstance(leaf, Array):
        return ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
    array = numbers_of(leaf)
    if array is None:
        rule = f"argument {name} must be an array of numbers"
        raise DTypeError(message("jit", rule, described(leaf), _way_out(leaf, name, function)))
    return ShapeDtypeStruct(array.shape, array.dtype)


def numbers_of(leaf: Any) -> np.ndarray | None:
    """Convert a leaf to a numeric array of a supported dtype; None if that is not possible."""
    refuse_subclass(leaf)
    array = np.asarray(leaf)
    return array if is_dtype(array.dtype) else None


def _way_out(leaf: Any, name: str, function: str) -> str:
    """How an argument that is no array gets into a program."""
    convert = way_to_numbers(leaf)
    if convert is not None:
        return convert
    parameter = re.split(r"[.\[]", name, maxsplit=1)[0]
    register = ""
    if is_dataclass(leaf) and not isinstance(leaf, type):
        register = f", or let it be a tree of arrays: @sw.register_dataclass above {type(leaf).__name__}"
    elif type(leaf).__module__ != "builtins" and not callable(leaf):
        register = ", or let its class be a tree of arrays: sw.register_pytree_node"
    unnamed = re.fullmatch(r"arg(\d+)", name)
    if unnamed:
        return f"make it static: sw.jit({function}, static_argnums={unnamed[1]}){register}"
    if parameter == name:
        return f"make it static: sw.jit({function}, static_argnames={name!r}){register}"
    if re.search(r"\.\w+$", name):
        return f"{STATIC_FIELD}{register}"
    return f"take it out of {parameter}, or make it an argument of its own that is static{register}"


def lifted_results(trace: Trace, what: str, result: Any) -> tuple[list[Tracer], Any]:
    """The traced leaves of a function's result, and its structure. DTypeError for leaves that are not arrays."""
    leaves, structure = flatten(result)
    for i, leaf in enumerate(leaves):
        if not isinstance(leaf, (Tracer, Array)) and numbers_of(leaf) is None:
            way_out = "return arrays, and anything else outside the function"
            got = f"{described(leaf)} for result{leaf_names(result)[i]}"
            raise DTypeError(message(what, "an output must be an array", got, way_out))
    return [trace.lift(leaf) for leaf in leaves], structure


def leaf_key(leaf: Any) -> Any:
    """The part of the cache key for an argument leaf."""
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
    return (array.shape, array.dtype, type(leaf)) if type(leaf) in (int, float) else (array.shape, array.dtype)


def core_sharding(spec: Any, mesh: Mesh, ndim: int, what: str) -> Any:
    """The extension's sharding for a spec on the program's mesh; None if unspecified."""
    if spec is None:
        return None
    with naming(what):
        sharding = NamedSharding(mesh, spec) if isinstance(spec, (PartitionSpec, str)) else spec
        if not isinstance(sharding, NamedSharding):
            raise ShardingError(message(what, "takes P(...), NamedSharding or text", repr(spec)))
        if sharding.mesh != mesh:
            raise MeshError(message(what, f"must be on the program's mesh, {mesh!r}", repr(sharding.mesh)))
        return sharding.core(ndim)
