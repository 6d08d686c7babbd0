# SPDX-License-Identifier: Apache-2.0
"""From a Python function to a program for N devices, in JAX's stages: ``trace``, ``lower``, ``compile``, call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from types import MethodType
from typing import TYPE_CHECKING, Any, overload

from ..array import ShapeDtypeStruct
from ..errors import MeshError, ShardingError, message
from ..layouts import current_layout
from ..mesh import Mesh, get_mesh
from ..op_rules import ShardingRule
from ..propagation_options import DEFAULTS, Strategy, options
from ..sharding import UNSPECIFIED, NamedSharding
from ..stages import Lowered, Program, Traced
from ..tracing import Trace, Tracer, current_trace, recording
from ..trees import flatten, leaf_names, unflatten
from .call import Call, argument_names, as_weak, aval_of, constrained, core_sharding, leaf_key, specs_per_leaf
from .options import JitOptions, checked_rules, listed, static_both_ways

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["JitFunction", "jit"]


@overload
def jit(fun: Callable[..., Any], **options: Unpack[JitOptions]) -> JitFunction: ...
@overload
def jit(fun: None = None, **options: Unpack[JitOptions]) -> Callable[[Callable[..., Any]], JitFunction]: ...
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
    given: JitOptions = {
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
        return lambda f: JitFunction(f, **given)
    return JitFunction(fun, **given)


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
        nums = listed("static_argnums", static_argnums, int, "the position of an argument")
        names = listed("static_argnames", static_argnames, str, "the name of an argument")
        self._static_nums, self._static_names = static_both_ways(fun, set(nums), set(names))
        self._options = options("jit", strategy, conservative, strict_divisible, DEFAULTS)
        self._rules = {} if sharding_rules is None else checked_rules(sharding_rules)
        # What a program around this function must not contradict.
        self.stated_options: JitOptions = {"mesh": mesh}
        if strategy is not None:
            self.stated_options["strategy"] = self._options.strategy
        if conservative is not None:
            self.stated_options["conservative"] = self._options.conservative
        if strict_divisible is not None:
            self.stated_options["strict_divisible"] = self._options.strict_divisible
        if sharding_rules is not None:
            self.stated_options["sharding_rules"] = self._rules
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
        inner_args, inner_kwargs = call.rebuild(constrained(trace, call.leaves, self._wanted(call), "in_shardings"))
        result = self._fun(*inner_args, **inner_kwargs)
        leaves, tree = flatten(result)
        wanted = specs_per_leaf(self._out_shardings, result, "out_shardings")
        return unflatten(tree, constrained(trace, leaves, wanted, "out_shardings"))

    def _check_propagated_alike(self, trace: Trace) -> None:
        """A program is propagated in one way: a nested function may ask for no other."""
        for name, whole in trace.propagation.items():
            own = self.stated_options.get(name, whole)
            if own != whole:
                rule = f"a nested function must not have another {name} than the program, {whole!r}"
                raise ShardingError(message("jit", rule, repr(own), "give it to the jit around the whole program"))

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        return Call(args, kwargs, self._static_nums, self._static_names)

    def _mesh_for(self, call: Call) -> Mesh:
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

    def _program(self, call: Call) -> Program:
        mesh = self._mesh_for(call)
        try:
            leaf_keys = tuple([leaf_key(leaf) for leaf in call.leaves])
            key = (call.tree, leaf_keys, call.static_key(), mesh, current_layout())
            program = self._cache.get(key)
        except TypeError as error:
            if "unhashable" not in str(error):
                raise
            raise TypeError(message("jit", "static arguments must be hashable", str(error))) from None
        if program is None:
            program = self._cache[key] = self._trace(call, mesh).lower().compile()
        return program

    def _trace(self, call: Call, mesh: Mesh) -> Traced:
        avals = [
            aval_of(leaf, path) for leaf, path in zip(call.leaves, leaf_names((call.dynamic_args, call.dynamic_kwargs)))
        ]
        shardings = self._argument_shardings(call, mesh, avals)
        trace = Trace(getattr(self._fun, "__name__", "f"), mesh)
        trace.propagation = {**vars(self._options), "sharding_rules": self._rules}
        names = argument_names(self._fun, call)
        with recording(trace):
            tracers = [
                trace.argument(aval.shape, aval.dtype, name, sharding)
                for aval, sharding, name in zip(avals, shardings, names)
            ]
            args, kwargs = call.rebuild([as_weak(x, leaf) for x, leaf in zip(tracers, call.leaves)])
            result = self._fun(*args, **kwargs)
            out_leaves, out_tree = flatten(result)
            outputs = [trace.lift(leaf) for leaf in out_leaves]
        check_constraints(trace, outputs)
        out_specs = specs_per_leaf(self._out_shardings, result, "out_shardings")
        out_shardings = [core_sharding(spec, mesh, x.ndim, "out_shardings") for spec, x in zip(out_specs, outputs)]
        module = trace.core.finish([x._value for x in outputs], out_shardings)
        places = {x._value: i for i, x in enumerate(tracers)}
        limits = [(places[limit.value], limit) for limit in trace.limits if limit.value in places]
        traced = Traced(module, self._options, mesh, call.tree, avals, out_tree, trace.hoisted, limits)
        for op, rule in self._rules.items():
            traced = traced.with_sharding_rule(op, rule)
        return traced

    def _argument_shardings(self, call: Call, mesh: Mesh, avals: list[ShapeDtypeStruct]) -> list[Any]:
        specs = self._wanted(call)
        return [
            core_sharding(spec if spec is not None else aval.sharding, mesh, aval.ndim, "in_shardings")
            for spec, aval in zip(specs, avals)
        ]

    def _wanted(self, call: Call) -> list[Any]:
        """What in_shardings says of every leaf; of keyword arguments it says nothing."""
        specs: list[Any] = [None] * len(call.leaves)
        if self._in_shardings is not None:
            wanted = specs_per_leaf(self._in_shardings, call.dynamic_args, "in_shardings")
            specs[: len(wanted)] = wanted
        return specs

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<jit of {getattr(self._fun, '__qualname__', self._fun)}>"


def check_constraints(trace: Trace, outputs: list[Tracer]) -> None:
    unused = trace.core.unused_constraints([x._value for x in outputs])
    unused = [row for row in unused if row[0] not in trace.implied]
    if unused:
        _, file, line = unused[0]
        raise ShardingError(
            f"annotation: its result must be used, got an annotation whose result nothing uses; "
            f"write x = sw.split(x, …) and use x from there on (at {file}:{line})"
        )
