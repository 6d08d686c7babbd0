# SPDX-License-Identifier: Apache-2.0
"""From a Python function to a program for N devices, in JAX's stages: ``trace``, ``lower``, ``compile``, call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial, update_wrapper
from types import MethodType
from typing import TYPE_CHECKING, Any, TypedDict, overload

import numpy as np

from .array import Array, ShapeDtypeStruct
from .dtypes import refuse_masked
from .errors import DTypeError, MeshError, ShardingError, message
from .layouts import current_layout
from .mesh import Mesh, get_mesh
from .module import checked_rule
from .numpy._registry import CHECKS, FUNCTIONS
from .op_rules import ShardingRule
from .partition_spec import PartitionSpec
from .propagation_options import DEFAULTS, Strategy, options
from .sharding import UNSPECIFIED, NamedSharding
from .stages import Lowered, Program, Traced
from .tracing import Trace, Tracer, WeakTracer, current_trace, recording, refuse_escaped
from .trees import broadcast_prefix, flatten, leaf_names, unflatten

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["JitFunction", "jit"]


class _Options(TypedDict, total=False):
    mesh: Mesh | None
    in_shardings: Any
    out_shardings: Any
    static_argnums: int | Sequence[int]
    static_argnames: str | Sequence[str]
    strategy: Strategy | None
    conservative: bool | None
    strict_divisible: bool | None
    sharding_rules: Mapping[str, ShardingRule | str] | None


@overload
def jit(fun: Callable[..., Any], **options: Unpack[_Options]) -> JitFunction: ...
@overload
def jit(fun: None = None, **options: Unpack[_Options]) -> Callable[[Callable[..., Any]], JitFunction]: ...
def jit(
    fun: Callable[..., Any] | None = None,
    *,
    mesh: Mesh | None = None,
    in_shardings: Any = UNSPECIFIED,
    out_shardings: Any = UNSPECIFIED,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    strategy: Strategy | None = None,
    conservative: bool | None = None,
    strict_divisible: bool | None = None,
    sharding_rules: Mapping[str, ShardingRule | str] | None = None,
) -> Any:
    """Make ``fun``, written in NumPy, one SPMD program for the devices of a mesh. Also a decorator factory.

    Args:
        fun: takes and returns trees of arrays.
        mesh: the devices; default: the mesh of sharded arguments or shardings, else that of :func:`set_mesh`.
        in_shardings: a prefix tree of shardings for the positional arguments: :class:`NamedSharding`, ``P(...)`` or
            text. ``UNSPECIFIED``, the default, and None leave an argument to propagation.
        out_shardings: the same for the result.
        static_argnums: positional arguments that are Python values, part of the cache key.
        static_argnames: the same for keyword arguments.
        strategy: how propagation settles conflicts: ``"aggressive"``, the default, each tensor takes what it can;
            ``"basic"``, only what all tensors of an op agree on.
        conservative: propagate only what asks for no exchange and no part of an axis.
        strict_divisible: shrink shardings of arguments and results until they divide the shapes, as Shardy does.
        sharding_rules: rules of yours for ops, as :meth:`Module.with_sharding_rule` takes them:
            ``{"dot_general[0]": "... i j, ... j k -> ... i k"}``. They change shardings, never numbers.

    The last four hold for a whole program: a function that another one calls leaves them None, or says the same.

    Returns:
        A :class:`JitFunction`: call it with arrays, or ask it for stages.

    Raises:
        MeshError: no mesh is known. ShardingError: shardings or rules that do not fit, an option that there is not.

    >>> import shardwise as sw
    >>> double = jit(lambda x: x + x, mesh=sw.Mesh({"x": 2}))
    >>> np.asarray(double(np.arange(4)))
    array([0, 2, 4, 6])
    """
    said: _Options = {
        "mesh": mesh,
        "in_shardings": in_shardings,
        "out_shardings": out_shardings,
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "strategy": strategy,
        "conservative": conservative,
        "strict_divisible": strict_divisible,
        "sharding_rules": sharding_rules,
    }
    if fun is None:
        return lambda f: JitFunction(f, **said)
    return JitFunction(fun, **said)


class _Call:
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
        return tuple([tuple([(name, _typed(value)) for name, value in group]) for group in self.static])

    def rebuild(self, leaves: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments of the user's function with ``leaves`` in place of the arrays."""
        dynamic, kwargs = unflatten(self.tree, leaves)
        args = list(dynamic)
        for i, value in self.static[0]:
            args.insert(i, value)
        return args, {**kwargs, **dict(self.static[1])}


class JitFunction:
    """A function that runs as one SPMD program; made by :func:`jit`.

    Programs are cached by shapes, dtypes, shardings and the rules of :func:`shardwise.axis_rules`.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        *,
        mesh: Mesh | None = None,
        in_shardings: Any = UNSPECIFIED,
        out_shardings: Any = UNSPECIFIED,
        static_argnums: int | Sequence[int] = (),
        static_argnames: str | Sequence[str] = (),
        strategy: Strategy | None = None,
        conservative: bool | None = None,
        strict_divisible: bool | None = None,
        sharding_rules: Mapping[str, ShardingRule | str] | None = None,
    ) -> None:
        if not callable(fun):
            raise TypeError(message("jit", "takes a function", repr(fun)))
        if mesh is not None and not isinstance(mesh, Mesh):
            raise MeshError(message("jit", "mesh must be a Mesh", repr(mesh)))
        self._fun = fun
        self._mesh = mesh
        in_shardings = None if in_shardings is UNSPECIFIED else in_shardings
        self._in_shardings = tuple(in_shardings) if type(in_shardings) is list else in_shardings
        self._out_shardings = None if out_shardings is UNSPECIFIED else out_shardings
        nums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
        self._static_nums, self._static_names = _static_both_ways(fun, set(nums), set(names))
        self._options = options("jit", strategy, conservative, strict_divisible, DEFAULTS)
        self._rules = {} if sharding_rules is None else _checked_rules(sharding_rules)
        # What a program around this function must not contradict.
        self._said: _Options = {"mesh": mesh}
        if strategy is not None:
            self._said["strategy"] = self._options.strategy
        if conservative is not None:
            self._said["conservative"] = self._options.conservative
        if strict_divisible is not None:
            self._said["strict_divisible"] = self._options.strict_divisible
        if sharding_rules is not None:
            self._said["sharding_rules"] = self._rules
        self._cache: dict[Any, Program] = {}
        update_wrapper(self, fun, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on the virtual mesh; inside another traced function the ops are recorded there."""
        outer = current_trace()
        if outer is not None:
            return self._inline(outer, args, kwargs)
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

    def _inline(self, trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record the function in another program, with this function's shardings as constraints."""
        if self._mesh is not None and self._mesh != trace.mesh:
            raise MeshError(
                message("jit", f"a nested function must be on the program's mesh, {trace.mesh!r}", repr(self._mesh))
            )
        self._check_propagated_alike(trace)
        if self._in_shardings is None and self._out_shardings is None:
            return self._fun(*args, **kwargs)
        call = self._call(args, kwargs)
        inner_args, inner_kwargs = call.rebuild(_constrained(trace, call.leaves, self._wanted(call), "in_shardings"))
        result = self._fun(*inner_args, **inner_kwargs)
        leaves, tree = flatten(result)
        wanted = _said(self._out_shardings, result, "out_shardings")
        return unflatten(tree, _constrained(trace, leaves, wanted, "out_shardings"))

    def _check_propagated_alike(self, trace: Trace) -> None:
        """A program is propagated in one way: a nested function may ask for no other."""
        for name, whole in trace.propagation.items():
            own = self._said.get(name, whole)
            if own != whole:
                rule = f"a nested function must not have another {name} than the program, {whole!r}"
                raise ShardingError(message("jit", rule, repr(own), "give it to the jit around the whole program"))

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
            raise MeshError(
                message(
                    "jit", "a mesh must be known", None, "pass mesh= to jit, sharded arrays, or call set_mesh first"
                )
            )
        for other in candidates:
            if other != mesh:
                raise MeshError(
                    message(
                        "jit",
                        f"all arguments and shardings must be on one mesh, {mesh!r}",
                        repr(other),
                        "move arrays with device_put",
                    )
                )
        return mesh

    def _program(self, call: _Call) -> Program:
        mesh = self._mesh_for(call)
        try:
            leaf_keys = tuple([_leaf_key(leaf) for leaf in call.leaves])
            key = (call.tree, leaf_keys, call.static_key(), mesh, current_layout())
            program = self._cache.get(key)
        except TypeError as error:
            if "unhashable" not in str(error):
                raise
            raise TypeError(message("jit", "static arguments must be hashable", str(error))) from None
        if program is None:
            program = self._cache[key] = self._trace(call, mesh).lower().compile()
        return program

    def _trace(self, call: _Call, mesh: Mesh) -> Traced:
        avals = [
            _aval(leaf, path) for leaf, path in zip(call.leaves, leaf_names((call.dynamic_args, call.dynamic_kwargs)))
        ]
        shardings = self._argument_shardings(call, mesh, avals)
        trace = Trace(getattr(self._fun, "__name__", "f"), mesh)
        trace.propagation = {**vars(self._options), "sharding_rules": self._rules}
        names = _argument_names(self._fun, call)
        with recording(trace):
            tracers = [
                trace.argument(aval.shape, aval.dtype, name, sharding)
                for aval, sharding, name in zip(avals, shardings, names)
            ]
            args, kwargs = call.rebuild([_as_weak(x, leaf) for x, leaf in zip(tracers, call.leaves)])
            result = self._fun(*args, **kwargs)
            out_leaves, out_tree = flatten(result)
            outputs = [trace.lift(leaf) for leaf in out_leaves]
        _check_constraints(trace, outputs)
        out_specs = _said(self._out_shardings, result, "out_shardings")
        out_shardings = [_core_of(spec, mesh, x.ndim, "out_shardings") for spec, x in zip(out_specs, outputs)]
        module = trace.core.finish([x._value for x in outputs], out_shardings)
        places = {x._value: i for i, x in enumerate(tracers)}
        limits = [(places[limit.value], limit) for limit in trace.limits if limit.value in places]
        traced = Traced(module, self._options, mesh, call.tree, avals, out_tree, trace.hoisted, limits)
        for op, rule in self._rules.items():
            traced = traced.with_sharding_rule(op, rule)
        return traced

    def _argument_shardings(self, call: _Call, mesh: Mesh, avals: list[ShapeDtypeStruct]) -> list[Any]:
        specs = self._wanted(call)
        return [
            _core_of(spec if spec is not None else aval.sharding, mesh, aval.ndim, "in_shardings")
            for spec, aval in zip(specs, avals)
        ]

    def _wanted(self, call: _Call) -> list[Any]:
        """What in_shardings says of every leaf; of keyword arguments it says nothing."""
        specs: list[Any] = [None] * len(call.leaves)
        if self._in_shardings is not None:
            wanted = _said(self._in_shardings, call.dynamic_args, "in_shardings")
            specs[: len(wanted)] = wanted
        return specs

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<jit of {getattr(self._fun, '__qualname__', self._fun)}>"


def _said(specs: Any, tree: Any, what: str) -> list[Any]:
    """One spec per leaf, None where nothing is said."""
    return [None if spec is UNSPECIFIED else spec for spec in broadcast_prefix(specs, tree, what)]


def _static_both_ways(fun: Callable[..., Any], nums: set[int], names: set[str]) -> tuple[set[int], set[str]]:
    """Static arguments by position and by name, however they were given, as JAX infers them."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return nums, names
    kinds = {p.kind for p in parameters}
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        for i in nums:
            if not -len(positional) <= i < len(positional):
                raise ValueError(message("jit", f"static_argnums must be below the {len(positional)} parameters", i))
        nums = {i % len(positional) for i in nums}
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        for name in sorted(names - {p.name for p in parameters}):
            raise ValueError(message("jit", "static_argnames must name parameters", repr(name)))
    by_position = {positional[i] for i in nums if 0 <= i < len(positional)}
    return nums | {positional.index(n) for n in names if n in positional}, names | by_position


def _checked_rules(rules: Any) -> dict[str, ShardingRule]:
    if not isinstance(rules, Mapping) or not all(isinstance(op, str) for op in rules):
        rule = "sharding_rules must be a mapping from names of ops to rules"
        raise ShardingError(message("jit", rule, repr(rules), "write {'dot_general': 'i j, j k -> i k'}"))
    return {op: checked_rule("jit", rule) for op, rule in rules.items()}


def _typed(value: Any) -> Any:
    if type(value) is tuple:
        return tuple([_typed(item) for item in value])
    return type(value), value.hex() if type(value) is float else value


def _as_weak(x: Tracer, leaf: Any) -> Tracer:
    return WeakTracer.of(x, type(leaf)) if type(leaf) in (int, float) else x


def _constrained(trace: Trace, leaves: list[Any], specs: list[Any], what: str) -> list[Any]:
    """The leaves of a nested function with the shardings that its jit states."""
    out = []
    for leaf, spec in zip(leaves, specs):
        if spec is not None and trace.mesh is not None:
            x = trace.lift(leaf)
            leaf = trace.constrain(x, _core_of(spec, trace.mesh, x.ndim, what))
            trace.implied.add(leaf._value)
        out.append(leaf)
    return out


def _argument_names(fun: Callable[..., Any], call: _Call) -> list[str]:
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


def _aval(leaf: Any, path: str) -> ShapeDtypeStruct:
    if isinstance(leaf, ShapeDtypeStruct):
        return leaf
    if isinstance(leaf, Tracer):
        refuse_escaped(leaf)
    if isinstance(leaf, Array):
        return ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
    refuse_masked(leaf)
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


def _leaf_key(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        if type(leaf) is not np.ndarray:
            refuse_masked(leaf)
        return leaf.shape, leaf.dtype
    if isinstance(leaf, Array):
        return leaf.shape, leaf.dtype, leaf._data.sharding
    if isinstance(leaf, ShapeDtypeStruct):
        return leaf.shape, leaf.dtype, leaf.sharding
    if isinstance(leaf, Tracer):
        refuse_escaped(leaf)
    array = np.asarray(leaf)
    return array.shape, array.dtype, type(leaf) if type(leaf) in (int, float) else None


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
    unused = [row for row in unused if row[0] not in trace.implied]
    if unused:
        _, file, line = unused[0]
        raise ShardingError(
            f"annotation: its result must be used, got an annotation whose result nothing uses; "
            f"write x = sw.split(x, …) and use x from there on (at {file}:{line})"
        )


_eager_cache: dict[Any, JitFunction] = {}
_MAX_EAGER_PROGRAMS = 4096
_MAX_STATIC_ELEMENTS = 16


def eager_call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run ``function(*args, **kwargs)`` on sharded arrays as a one-op program; equal calls share the program.

    The program's arguments are the arrays; numbers, axes, indices and small integer arrays are part of the program.
    """
    leaves, tree = flatten((args, kwargs))
    trace = current_trace()
    if trace is not None:
        lifted = [trace.lift(leaf) if isinstance(leaf, Array) else leaf for leaf in leaves]
        call_args, call_kwargs = unflatten(tree, lifted)
        return function(*call_args, **call_kwargs)
    if function in (np.shape, np.ndim, np.size):
        return FUNCTIONS[function](*args, **kwargs)
    check = CHECKS.get(function)
    if check is not None:
        check(*args, **kwargs)
    is_argument = [_is_eager_argument(leaf) for leaf in leaves]
    if not any(is_argument):  # np.arange(n, like=x), whose result needs nothing of x
        return function(*args, **kwargs)
    rest = [None if argument else leaf for leaf, argument in zip(leaves, is_argument)]

    def run(*tracers: Any) -> Any:
        values = iter(tracers)
        call_args, call_kwargs = unflatten(
            tree, [next(values) if argument else leaf for leaf, argument in zip(rest, is_argument)]
        )
        return function(*call_args, **call_kwargs)

    run.__name__ = getattr(function, "__name__", "op")
    key = (function, tree, tuple(map(static_leaf_key, rest)), tuple(is_argument))
    jitted = _eager_cache.get(key)
    if jitted is None:
        if len(_eager_cache) >= _MAX_EAGER_PROGRAMS:
            _eager_cache.clear()
        jitted = _eager_cache[key] = jit(run)
    return jitted(*[leaf for leaf, argument in zip(leaves, is_argument) if argument])


def _is_eager_argument(leaf: Any) -> bool:
    if isinstance(leaf, (np.ndarray, np.generic)):
        # A small integer may be an axis, a size or an index, which must be known while recording.
        return leaf.size > _MAX_STATIC_ELEMENTS or leaf.dtype.kind not in "iu"
    return isinstance(leaf, Array)


def static_leaf_key(leaf: Any) -> Any:
    """What tells a leaf that is part of a program, and no argument of it, from others: type and value."""
    if isinstance(leaf, (np.ndarray, np.generic)):
        return type(leaf), leaf.dtype, leaf.shape, leaf.tobytes()
    if isinstance(leaf, slice):
        return slice, *map(static_leaf_key, (leaf.start, leaf.stop, leaf.step))
    try:
        hash(leaf)
    except TypeError:
        return type(leaf), repr(leaf)
    return _typed(leaf)


def run_as_program(
    function: Callable[..., Any],
    fun: Callable[..., Any],
    programs: dict[Any, JitFunction],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    mesh: Mesh | None = None,
) -> Any:
    """Run ``function``, a transform of ``fun`` that is called outside :func:`jit`, as a program of its own.

    The program is kept in ``programs``. It is on the mesh, and is propagated, as the jit of ``fun`` says where it has
    one. What is no array among the arguments is part of the program.
    """
    leaves, tree = flatten((args, kwargs))
    is_array = [isinstance(leaf, (Array, np.ndarray, np.generic, bool, int, float)) for leaf in leaves]
    rest = [None if array else leaf for leaf, array in zip(leaves, is_array)]

    def run(*arrays: Any) -> Any:
        values = iter(arrays)
        call_args, call_kwargs = unflatten(tree, [next(values) if a else x for x, a in zip(rest, is_array)])
        return function(*call_args, **call_kwargs)

    key = (tree, tuple(is_array), tuple(map(static_leaf_key, rest)), mesh)
    if key not in programs:
        said = _said_of(fun)
        programs[key] = jit(run, **(said if mesh is None else {**said, "mesh": mesh}))
    return programs[key](*[leaf for leaf, array in zip(leaves, is_array) if array])


def _said_of(fun: Any) -> _Options:
    """What the jit says that ``fun`` is, or that stands behind its transforms; nothing of a function without one."""
    while not isinstance(fun, JitFunction):
        if isinstance(fun, partial):
            fun = fun.func
        elif isinstance(fun, MethodType):
            fun = fun.__func__
        elif hasattr(fun, "__wrapped__"):
            fun = fun.__wrapped__
        else:
            return {}
    return fun._said
