# SPDX-License-Identifier: Apache-2.0
"""From a Python function to a program for N devices, in JAX's stages: ``trace``, ``lower``, ``compile``, call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from types import MethodType
from typing import TYPE_CHECKING, Any, overload

from .._core.runtime import enter_call, leave_call
from ..argument_names import display_name
from ..array import ShapeDtypeStruct
from ..array_leaves import as_weak, aval_of, lifted_results
from ..errors import MeshError, ShardingError, composed, message
from ..foreign import native
from ..host_random import warning_of_draws
from ..mesh import Mesh, get_mesh
from ..op_rules import ShardingRule
from ..propagation_options import Strategy, options_among
from ..sharding import UNSPECIFIED, NamedSharding, sharding_on
from ..stages import Lowered, Program, Traced
from ..traceback_filtering import entry_point, hide_frames
from ..tracing import Trace, Tracer, UserCall, current_trace, recording
from ..trees import flatten, leaf_names, native_specs, specs_per_leaf, unflatten
from ..unpartitioned import as_numpy, unpartitioned_mesh
from .cache import ProgramCache
from .call import Call
from .options import (
    UNSPECIFIED_OPTIONS,
    JitOptions,
    both_ways,
    check_disjoint,
    propagation_choices,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["JitFunction", "eval_shape", "jit"]


@overload
def jit(fun: Callable[..., Any], **options: Unpack[JitOptions]) -> JitFunction: ...
@overload
def jit(fun: None = None, **options: Unpack[JitOptions]) -> Callable[[Callable[..., Any]], JitFunction]: ...
@entry_point
def jit(
    fun: Callable[..., Any] | None = None,
    *,
    mesh: Mesh | None = None,
    in_shardings: Any = UNSPECIFIED,
    out_shardings: Any = UNSPECIFIED,
    static_argnums: int | Sequence[int] | None = (),
    static_argnames: str | Sequence[str] | None = (),
    donate_argnums: int | Sequence[int] | None = (),
    donate_argnames: str | Sequence[str] | None = (),
    strategy: Strategy | None = None,
    conservative: bool | None = None,
    strict_divisible: bool | None = None,
    sharding_rules: Mapping[str, ShardingRule | str] | None = None,
) -> Any:
    """Compile a NumPy function to one SPMD program for the devices of a mesh. Also a decorator factory.

    Args:
        fun: takes and returns trees of arrays.
        mesh: the devices; default: the mesh of sharded arguments or shardings, else that of :func:`set_mesh`, else
            that of the first :class:`NamedSharding` that ``fun`` uses.
        in_shardings: a prefix tree of shardings for the positional arguments: :class:`NamedSharding`, ``P(...)`` or
            text. ``UNSPECIFIED``, the default, and None leave an argument to propagation.
        out_shardings: the same for the result.
        static_argnums: positional arguments that are Python values, part of the cache key.
        static_argnames: the same for keyword arguments.
        donate_argnums: positional arguments whose :class:`Array` leaves are deleted after each call, which frees their
            memory. Any later use of them is an error. The run does not write in place, so the result needs memory of
            its own. NumPy arrays are not affected. Ignored in nested jitted functions, as in JAX.
        donate_argnames: the same for keyword arguments.
        strategy: how propagation settles conflicts. With ``"aggressive"``, the default, each tensor takes the axes that
            it can; with ``"basic"``, it takes only axes on which all tensors of an op agree.
        conservative: propagate whole axes only, and nothing along dims whose elements move.
        strict_divisible: shrink shardings of arguments and results until they divide the shapes, as Shardy does.
        sharding_rules: your own rules for ops, as :meth:`Module.with_sharding_rule` takes them:
            ``{"dot_general[0]": "... i j, ... j k -> ... i k"}``. They change shardings, never numbers.

    The last four apply to a whole program: a nested jitted function must not specify other values.

    Returns:
        A :class:`JitFunction`: call it with arrays, or call its stages.

    Raises:
        MeshError: no mesh given. ShardingError: shardings or rules that do not fit, or an unknown option value.

    >>> import numpy as np
    >>> import shardwise as sw
    >>> double = jit(lambda x: x + x, mesh=sw.Mesh({"x": 2}))
    >>> np.asarray(double(np.arange(4)))
    array([0, 2, 4, 6])
    """
    given: Any = {
        "mesh": mesh,
        "in_shardings": in_shardings,
        "out_shardings": out_shardings,
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames,
        "sharding_rules": sharding_rules,
        **options_among(locals()),
    }
    if fun is None:
        return lambda f: JitFunction(f, **given)
    return JitFunction(fun, **given)


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Shape and dtype of every result of ``fun``, without running it: a tree of :class:`ShapeDtypeStruct`.

    Args:
        fun: takes and returns trees of arrays.
        args: arrays or :class:`ShapeDtypeStruct`; a mesh is needed only for annotations.
        kwargs: the same.

    Raises:
        The errors of tracing ``fun``.

    Source: `jax.eval_shape`.

    >>> import numpy as np
    >>> eval_shape(lambda x: {"gram": x.T @ x}, ShapeDtypeStruct((8, 4), np.float32))
    {'gram': ShapeDtypeStruct(shape=(4, 4), dtype=float32)}
    """
    return (fun if isinstance(fun, JitFunction) else JitFunction(fun)).eval_shape(*args, **kwargs)


class JitFunction:
    """A function that runs as one SPMD program; made by :func:`jit`.

    Programs are cached by shapes, dtypes, shardings and the rules of :func:`shardwise.axis_rules`.
    """

    def __init__(
        self, fun: Callable[..., Any], user_call: UserCall | None = None, **options: Unpack[JitOptions]
    ) -> None:
        given: JitOptions = {**UNSPECIFIED_OPTIONS, **options}
        if not callable(fun):
            raise TypeError(message("jit", "takes a function", repr(fun)))
        mesh = native(given["mesh"])
        if mesh is not None and not isinstance(mesh, Mesh):
            raise MeshError(message("jit", "mesh must be a Mesh", repr(mesh)))
        self._fun = fun
        self._given = given
        self._mesh = mesh
        in_shardings, out_shardings = (
            None if spec is UNSPECIFIED else spec for spec in (given["in_shardings"], given["out_shardings"])
        )
        self._in_shardings = native_specs(tuple(in_shardings) if type(in_shardings) is list else in_shardings)
        self._out_shardings = native_specs(out_shardings)
        stated = flatten((self._in_shardings, self._out_shardings))[0]
        self._meshes = [] if mesh is None else [mesh]
        self._meshes += [sharding.mesh for sharding in stated if isinstance(sharding, NamedSharding)]
        self._static_nums, self._static_names = both_ways(
            "static", fun, given["static_argnums"], given["static_argnames"]
        )
        self._donated_nums, self._donated_names = both_ways(
            "donate", fun, given["donate_argnums"], given["donate_argnames"]
        )
        check_disjoint(self._static_nums & self._donated_nums, self._static_names & self._donated_names)
        # A program around this function must not contradict the stated ones.
        self._options, self._rules, self.stated_options = propagation_choices(given)
        self.stated_options["mesh"] = mesh
        self._cache = ProgramCache()
        self._user_call = UserCall(fun) if user_call is None else user_call
        update_wrapper(self, fun, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on the virtual mesh; inside another traced function the ops are recorded there."""
        enter_call()
        try:
            outer = current_trace()
            if outer is not None:
                return self._inline(outer, args, kwargs)
            if unpartitioned_mesh() is not None:
                return self._fun(*as_numpy(args), **as_numpy(kwargs))
            call = self._call(args, kwargs)
            return self._program(call)._call_flat(call.leaves)
        except Exception as error:
            hide_frames(error)
            raise
        finally:
            leave_call()

    def _run_outside(self, args: tuple[Any, ...]) -> Any:
        """``__call__`` for a caller that is an entry point, outside of tracing and of the unpartitioned reference."""
        call = self._call(args, {})
        return self._program(call)._call_flat(call.leaves)

    @entry_point
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Record the function for these arguments: arrays or :class:`ShapeDtypeStruct`."""
        enter_call()
        try:
            call = self._call(args, kwargs)
            call.leaves = list(map(native, call.leaves))
            return self._trace(call, self._known_mesh(call))
        finally:
            leave_call()

    @entry_point
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The recorded program, ready to be partitioned; ``.compile()`` does that."""
        return self.trace(*args, **kwargs).lower()

    def _traced_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Traced, list[Any]]:
        """The function recorded for these arguments, and their leaves."""
        call = self._call(args, kwargs)
        return self._trace(call, self._known_mesh(call)), call.leaves

    @property
    def _plain_function(self) -> Callable[..., Any]:
        """The function that was jitted."""
        return self._fun

    def _with_options(self, **options: Any) -> JitFunction:
        """The same function with some options of its jit replaced."""
        return JitFunction(self._fun, **{**self._given, **options})

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shape and dtype of every result, as :func:`shardwise.eval_shape`."""
        call = self._call(args, kwargs)
        call.leaves = [
            ShapeDtypeStruct(leaf.shape, leaf.dtype) if isinstance(leaf, Tracer) else native(leaf)
            for leaf in call.leaves
        ]
        names = call.names(self._fun)
        avals = self._avals(call, names)
        trace, _, result = self._record(call, self._known_mesh(call), avals, names, [None] * len(avals))
        with recording(trace):
            outputs, tree = lifted_results(trace, "eval_shape", result)
        return unflatten(tree, [ShapeDtypeStruct(x.shape, x.dtype) for x in outputs])

    def clear_cache(self) -> None:
        """Forget the compiled programs."""
        self._cache.clear()

    def _inline(self, trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record the function in another program, with this function's shardings as constraints."""
        if self._mesh is not None and self._mesh != trace.require_mesh("jit", self._mesh):
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

    def _no_mesh(self) -> MeshError:
        if self._user_call.transform is not None:
            way_out = "use it in sw.jit(…, mesh=mesh), pass sharded arrays, or call set_mesh first"
            return MeshError(message("grad or vmap outside jit", "no mesh given", None, way_out))
        return MeshError(
            message("jit", "no mesh given", None, "pass mesh= to jit, sharded arrays, or call set_mesh first")
        )

    def _known_mesh(self, call: Call) -> Mesh | None:
        shardings = [getattr(leaf, "sharding", None) for leaf in call.leaves]
        candidates = [*self._meshes, *(s.mesh for s in shardings if isinstance(s, NamedSharding))]
        mesh = candidates[0] if candidates else get_mesh()
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
        return self._cache.program(call, self._known_mesh(call), self._compiled)

    def _compiled(self, call: Call, mesh: Mesh | None) -> Program:
        return self._trace(call, mesh).lower().compile()

    def _trace(self, call: Call, mesh: Mesh | None) -> Traced:
        if mesh is None and (
            self._user_call.transform is not None or any(spec is not None for spec in self._wanted(call))
        ):
            raise self._no_mesh()
        names = call.names(self._fun)
        avals = self._avals(call, names)
        shardings = self._argument_shardings(call, mesh, avals, names)
        trace, tracers, result = self._record(call, mesh, avals, names, shardings)
        with recording(trace):
            outputs, out_tree = lifted_results(trace, "jit", result)
        mesh = trace.mesh  # one that was not known before is that of the first annotation
        if mesh is None:
            raise self._no_mesh()
        printed = [value for call in trace.prints for value in call.values]
        check_constraints(trace, [x._value for x in outputs] + printed)
        out_specs = specs_per_leaf(self._out_shardings, result, "out_shardings")
        places = [f"out_shardings of result{path}" for path in leaf_names(result)]
        out_shardings = [sharding_on(mesh, spec, x.ndim, to) for spec, x, to in zip(out_specs, outputs, places)]
        module = trace.core.finish([x._value for x in outputs] + printed, out_shardings)
        indices = {x._value: i for i, x in enumerate(tracers)}
        limits = [(indices[limit.value], limit) for limit in trace.limits if limit.value in indices]
        donation = (display_name(self._fun), call.leaves_of(self._donated_nums, self._donated_names))
        trees = (call.tree, avals, names, out_tree)
        traced = Traced(module, self._options, mesh, *trees, trace.hoisted, limits, donation, trace.prints)
        for op, rule in self._rules.items():
            traced = traced.with_sharding_rule(op, rule)
        return traced

    def _avals(self, call: Call, names: list[str]) -> list[ShapeDtypeStruct]:
        function = display_name(self._fun)
        return [aval_of(leaf, name, function) for leaf, name in zip(call.leaves, names)]

    def _record(
        self, call: Call, mesh: Mesh | None, avals: list[ShapeDtypeStruct], names: list[str], shardings: list[Any]
    ) -> tuple[Trace, list[Tracer], Any]:
        """Trace the function: the recorded program, its arguments, and the result."""
        user_call = self._user_call
        trace = Trace(getattr(self._fun, "__name__", "f"), mesh, user_call)
        trace.propagation = {**vars(self._options), "sharding_rules": self._rules}
        with recording(trace):
            tracers = [
                trace.argument(aval.shape, aval.dtype, name, sharding)
                for aval, sharding, name in zip(avals, shardings, names)
            ]
            if user_call.transform is not None:
                trace.arguments = {x._value: name for x, name in zip(tracers, user_call.transform)}
            args, kwargs = call.rebuild([as_weak(x, leaf) for x, leaf in zip(tracers, call.leaves)])
            with warning_of_draws(user_call.function, call.static_values()):
                return trace, tracers, self._fun(*args, **kwargs)

    def _argument_shardings(
        self, call: Call, mesh: Mesh | None, avals: list[ShapeDtypeStruct], names: list[str]
    ) -> list[Any]:
        if mesh is None:
            return [None] * len(avals)
        specs = self._wanted(call)
        return [
            sharding_on(mesh, aval.sharding if spec is None else spec, aval.ndim, f"in_shardings of {name}")
            for spec, aval, name in zip(specs, avals, names)
        ]

    def _wanted(self, call: Call) -> list[Any]:
        """The entry of in_shardings for each leaf; None for keyword arguments."""
        specs: list[Any] = [None] * len(call.leaves)
        if self._in_shardings is not None:
            wanted = specs_per_leaf(self._in_shardings, call.dynamic_args, "in_shardings")
            specs[: len(wanted)] = wanted
        return specs

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<jit of {getattr(self._fun, '__qualname__', self._fun)}>"


def check_constraints(trace: Trace, outputs: list[int]) -> None:
    unused = trace.core.unused_constraints(outputs)
    unused = [row for row in unused if row[0] not in trace.implied]
    if unused:
        _, file, line = unused[0]
        rule, got = "its result must be used", "an annotation whose result nothing uses"
        way_out = "write x = sw.split(x, …) and use x from there on"
        raise ShardingError(composed("annotation", rule, got, way_out, file, line))


def constrained(trace: Trace, leaves: list[Any], specs: list[Any], what: str) -> list[Any]:
    """Annotate the leaves of a nested jitted function with the shardings of its jit."""
    out = []
    for leaf, spec in zip(leaves, specs):
        if spec is not None and trace.mesh is not None:
            x = trace.lift(leaf)
            leaf = trace.constrain(x, sharding_on(trace.mesh, spec, x.ndim, what))
            trace.implied.add(leaf._value)
        out.append(leaf)
    return out
