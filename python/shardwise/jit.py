# SPDX-License-Identifier: Apache-2.0
"""From a Python function to a program for N devices, in JAX's stages: ``trace``, ``lower``, ``compile``, call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, overload

import numpy as np

from .array import Array, ShapeDtypeStruct
from .errors import DTypeError, MeshError, ShardingError, message
from .mesh import Mesh, get_mesh
from .sharding import NamedSharding, PartitionSpec
from .stages import Lowered, Program, Traced
from .tracing import Trace, Tracer, current_trace, recording
from .trees import broadcast_prefix, flatten, leaf_names, unflatten

__all__ = ["JitFunction", "jit"]


@overload
def jit(fun: Callable[..., Any], **options: Any) -> JitFunction: ...
@overload
def jit(fun: None = None, **options: Any) -> Callable[[Callable[..., Any]], JitFunction]: ...
def jit(
    fun: Callable[..., Any] | None = None,
    *,
    mesh: Mesh | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    strategy: str = "basic",
) -> Any:
    """Make ``fun``, written in NumPy, one SPMD program for the devices of a mesh. Also a decorator factory.

    Args:
        fun: takes and returns trees of arrays.
        mesh: the devices; default: the mesh of sharded arguments or shardings, else that of :func:`set_mesh`.
        in_shardings: a prefix tree of specs for the positional arguments; None leaves an argument to propagation.
        out_shardings: the same for the result.
        static_argnums: positional arguments that are Python values, part of the cache key.
        static_argnames: the same for keyword arguments.
        strategy: how propagation settles conflicts, ``"basic"`` or ``"aggressive"``.

    Returns:
        A :class:`JitFunction`: call it with arrays, or ask it for stages.

    Raises:
        MeshError: no mesh is known. ShardingError: shardings that do not fit.

    >>> import shardwise as sw
    >>> double = jit(lambda x: x + x, mesh=sw.Mesh({"x": 2}))
    >>> np.asarray(double(np.arange(4)))
    array([0, 2, 4, 6])
    """
    options = dict(
        mesh=mesh,
        in_shardings=in_shardings,
        out_shardings=out_shardings,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        strategy=strategy,
    )
    if fun is None:
        return lambda f: JitFunction(f, **options)
    return JitFunction(fun, **options)


class _Call:
    """The arguments of one call, taken apart: leaves to trace, and what the cache key holds beside them."""

    __slots__ = ("dynamic_args", "dynamic_kwargs", "leaves", "static", "tree")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], static_nums: set[int], static_names: set[str]) -> None:
        static_nums = {i % len(args) if args else i for i in static_nums}
        self.static = (
            tuple((i, args[i]) for i in sorted(static_nums) if i < len(args)),
            tuple((k, kwargs[k]) for k in sorted(static_names) if k in kwargs),
        )
        self.dynamic_args = tuple(a for i, a in enumerate(args) if i not in static_nums)
        self.dynamic_kwargs = {k: v for k, v in kwargs.items() if k not in static_names}
        self.leaves, self.tree = flatten((self.dynamic_args, self.dynamic_kwargs))

    def rebuild(self, leaves: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments of the user's function with ``leaves`` in place of the arrays."""
        dynamic, kwargs = unflatten(self.tree, leaves)
        args = list(dynamic)
        for i, value in self.static[0]:
            args.insert(i, value)
        return args, {**kwargs, **dict(self.static[1])}


class JitFunction:
    """A function that runs as one SPMD program; made by :func:`jit`. Programs are cached by shapes, dtypes and shardings."""

    def __init__(
        self,
        fun: Callable[..., Any],
        *,
        mesh: Mesh | None,
        in_shardings: Any,
        out_shardings: Any,
        static_argnums: int | Sequence[int],
        static_argnames: str | Sequence[str],
        strategy: str,
    ) -> None:
        if not callable(fun):
            raise TypeError(message("jit", "takes a function", repr(fun)))
        if mesh is not None and not isinstance(mesh, Mesh):
            raise MeshError(message("jit", "mesh must be a Mesh", repr(mesh)))
        if strategy not in ("basic", "aggressive"):
            raise ValueError(message("jit", "strategy must be 'basic' or 'aggressive'", repr(strategy)))
        self._fun = fun
        self._mesh = mesh
        self._in_shardings = in_shardings
        self._out_shardings = out_shardings
        nums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
        self._static_nums, self._static_names = _static_both_ways(fun, set(nums), set(names))
        self._strategy = strategy
        self._cache: dict[Any, Program] = {}
        update_wrapper(self, fun, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current_trace() is not None:
            return self._fun(*args, **kwargs)  # inside another program: recorded inline
        call = self._call(args, kwargs)
        return self._program(call)._call_flat(call.leaves)

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Record the function for these arguments: arrays or :class:`ShapeDtypeStruct`."""
        call = self._call(args, kwargs)
        return self._trace(call, self._mesh_for(call))

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The recorded program, ready to be partitioned; ``.compile()`` does that."""
        return self.trace(*args, **kwargs).lower()

    def clear_cache(self) -> None:
        """Forget the compiled programs."""
        self._cache.clear()

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call:
        return _Call(args, kwargs, self._static_nums, self._static_names)

    def _mesh_for(self, call: _Call) -> Mesh:
        candidates = [self._mesh] if self._mesh is not None else []
        for leaf in (*call.leaves, *flatten((self._in_shardings, self._out_shardings))[0]):
            sharding = getattr(leaf, "sharding", leaf)
            if isinstance(sharding, NamedSharding):
                candidates.append(sharding.mesh)
        mesh = candidates[0] if candidates else get_mesh()
        if mesh is None:
            raise MeshError(message("jit", "a mesh must be known", None, "pass mesh= to jit, sharded arrays, or call set_mesh first"))
        for other in candidates:
            if other != mesh:
                raise MeshError(message("jit", f"all arguments must be on one mesh, {mesh!r}", repr(other), "move them with device_put"))
        return mesh

    def _program(self, call: _Call) -> Program:
        mesh = self._mesh_for(call)
        key = (call.tree, tuple(_leaf_key(leaf) for leaf in call.leaves), call.static, mesh)
        try:
            program = self._cache.get(key)
        except TypeError as error:
            raise TypeError(message("jit", "static arguments must be hashable", str(error))) from None
        if program is None:
            program = self._cache[key] = self._trace(call, mesh).lower().compile()
        return program

    def _trace(self, call: _Call, mesh: Mesh) -> Traced:
        avals = [_aval(leaf, path) for leaf, path in zip(call.leaves, leaf_names((call.dynamic_args, call.dynamic_kwargs)))]
        shardings = self._argument_shardings(call, mesh, avals)
        trace = Trace(getattr(self._fun, "__name__", "f"), mesh)
        names = _argument_names(self._fun, call)
        with recording(trace):
            tracers = [
                trace.argument(aval.shape, aval.dtype, name, sharding)
                for aval, sharding, name in zip(avals, shardings, names)
            ]
            args, kwargs = call.rebuild(tracers)
            result = self._fun(*args, **kwargs)
            out_leaves, out_tree = flatten(result)
            outputs = [trace.lift(leaf) for leaf in out_leaves]
        _check_constraints(trace, outputs)
        out_specs = broadcast_prefix(self._out_shardings, result, "out_shardings")
        out_shardings = [_core_of(spec, mesh, x.ndim, "out_shardings") for spec, x in zip(out_specs, outputs)]
        module = trace.core.finish([x._value for x in outputs], out_shardings)
        return Traced(module, mesh, call.tree, avals, out_tree, trace.hoisted, self._strategy)

    def _argument_shardings(self, call: _Call, mesh: Mesh, avals: list[ShapeDtypeStruct]) -> list[Any]:
        specs: list[Any] = [None] * len(avals)
        if self._in_shardings is not None:
            wanted = broadcast_prefix(self._in_shardings, call.dynamic_args, "in_shardings")
            specs[: len(wanted)] = wanted
        return [
            _core_of(spec if spec is not None else aval.sharding, mesh, aval.ndim, "in_shardings")
            for spec, aval in zip(specs, avals)
        ]

    def __repr__(self) -> str:
        return f"<jit of {getattr(self._fun, '__qualname__', self._fun)}>"


def _static_both_ways(fun: Callable[..., Any], nums: set[int], names: set[str]) -> tuple[set[int], set[str]]:
    """Static arguments by position and by name, however they were given, as JAX infers them."""
    try:
        parameters = list(inspect.signature(fun).parameters)
    except (TypeError, ValueError):
        return nums, names
    names = names | {parameters[i] for i in nums if -len(parameters) <= i < len(parameters)}
    return nums | {parameters.index(n) for n in names if n in parameters}, names


def _argument_names(fun: Callable[..., Any], call: _Call) -> list[str]:
    """A name for each traced leaf: the parameter and the path in it, for reports and errors."""
    try:
        bound = inspect.signature(fun).bind_partial(*call.rebuild(call.leaves)[0])
        names = list(bound.arguments)
    except (TypeError, ValueError):
        names = []
    static = {i for i, _ in call.static[0]}
    names = [n for i, n in enumerate(names) if i not in static]
    out = []
    for i, arg in enumerate(call.dynamic_args):
        base = names[i] if i < len(names) else f"arg{i}"
        out += [base + path for path in leaf_names(arg)]
    for key in sorted(call.dynamic_kwargs):
        out += [key + path for path in leaf_names(call.dynamic_kwargs[key])]
    return out


def _aval(leaf: Any, path: str) -> ShapeDtypeStruct:
    if isinstance(leaf, ShapeDtypeStruct):
        return leaf
    if isinstance(leaf, Array):
        return ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
    array = np.asarray(leaf)
    if array.dtype.kind in "OSUVMmc" and array.dtype.name != "bfloat16":
        raise DTypeError(message("jit", "an argument must be an array of numbers", f"{array.dtype} for {type(leaf).__name__} at {path}", "make it static, or pass arrays"))
    return ShapeDtypeStruct(array.shape, array.dtype)


def _leaf_key(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        return leaf.shape, leaf.dtype
    if isinstance(leaf, Array):
        return leaf.shape, leaf.dtype, leaf.sharding
    if isinstance(leaf, ShapeDtypeStruct):
        return leaf.shape, leaf.dtype, leaf.sharding
    array = np.asarray(leaf)
    return array.shape, array.dtype


def _core_of(spec: Any, mesh: Mesh, ndim: int, what: str) -> Any:
    if spec is None:
        return None
    sharding = NamedSharding(mesh, spec) if isinstance(spec, (PartitionSpec, str)) else spec
    if not isinstance(sharding, NamedSharding):
        raise ShardingError(message(what, "takes P(...), NamedSharding or text", repr(spec)))
    if sharding.mesh != mesh:
        raise MeshError(message(what, f"must be on the program's mesh, {mesh!r}", repr(sharding.mesh)))
    return sharding.core(ndim)


def _check_constraints(trace: Trace, outputs: list[Tracer]) -> None:
    unused = trace.core.unused_constraints([x._value for x in outputs])
    if unused:
        _, file, line = unused[0]
        raise ShardingError(
            f"annotation: its result must be used, got an annotation whose result nothing uses; "
            f"write x = sw.split(x, …) and use x from there on (at {file}:{line})"
        )


_eager_cache: dict[Any, JitFunction] = {}


def eager_call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run ``function(*args, **kwargs)`` on sharded arrays as a one-op program; equal calls share the program."""
    leaves, tree = flatten((args, kwargs))
    is_array = [isinstance(leaf, (Array, np.ndarray, np.generic)) for leaf in leaves]
    arrays = [leaf for leaf, array in zip(leaves, is_array) if array]
    rest = [None if array else leaf for leaf, array in zip(leaves, is_array)]
    if current_trace() is not None:
        trace = current_trace()
        lifted = iter([trace.lift(a) for a in arrays])  # type: ignore[union-attr]
        call_args, call_kwargs = unflatten(tree, [next(lifted) if array else leaf for leaf, array in zip(leaves, is_array)])
        return function(*call_args, **call_kwargs)

    def run(*tracers: Any) -> Any:
        values = iter(tracers)
        call_args, call_kwargs = unflatten(tree, [next(values) if array else leaf for leaf, array in zip(rest, is_array)])
        return function(*call_args, **call_kwargs)

    run.__name__ = getattr(function, "__name__", "op")
    key = (getattr(function, "__qualname__", repr(function)), getattr(function, "__self__", None), tree, tuple(map(repr, rest)), tuple(is_array))
    jitted = _eager_cache.get(key)
    if jitted is None:
        if len(_eager_cache) >= 4096:
            _eager_cache.clear()
        jitted = _eager_cache[key] = jit(run)
    return jitted(*arrays)
