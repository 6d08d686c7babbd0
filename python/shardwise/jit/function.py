# SPDX-License-Identifier: Apache-2.0
"""``jit`` compiles a Python function to a program for N devices, in JAX's stages: ``trace``, ``lower``, ``compile``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from inspect import unwrap
from types import MethodType
from typing import TYPE_CHECKING, Any, Unpack, overload

from .._core.runtime import enter_call, leave_call
from ..array import ShapeDtypeStruct
from ..errors import MeshError, ShardingError, message
from ..process.traceback_filtering import entry_point, hide_frames
from ..programs.choices import Choices
from ..programs.op_rules import ShardingRule
from ..programs.options import check_keywords, takes_options
from ..programs.partition_options import PartitionOptions
from ..programs.propagation_options import PropagationOptions
from ..programs.stages import Lowered, Program, Traced
from ..recording.tracing import Trace, Tracer, UserCall, current_trace
from ..shardings.mesh import Mesh
from ..shardings.sharding import UNSPECIFIED, sharding_on
from ..trees import flatten, specs_per_leaf, unflatten
from ..unpartitioned import as_numpy, unpartitioned_mesh
from ..viz import function_html
from .cache import ProgramCache
from .call import Call
from .options import Arguments, CompileKeywords, JitOptions, checked_jit_options
from .recorder import Recorder

__all__ = ["JitFunction", "attribute_of", "eval_shape", "jit"]


@overload
def jit(fun: Callable[..., Any], **options: Unpack[JitOptions]) -> JitFunction: ...
@overload
def jit(fun: None = None, **options: Unpack[JitOptions]) -> Callable[[Callable[..., Any]], JitFunction]: ...
@entry_point
@takes_options(PropagationOptions, PartitionOptions, keywords=CompileKeywords)
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
    sharding_rules: Mapping[str, ShardingRule | str] | None = None,
    choices: Choices | None = None,
    **options: Unpack[CompileKeywords],
) -> Any:
    """Compile a NumPy function to one SPMD program for the devices of a mesh. Also a decorator factory.

    Args:
        fun: takes and returns trees of arrays.
        mesh: the devices; default: the mesh of sharded arguments or shardings, else that of :func:`set_mesh`, else
            that of the first :class:`NamedSharding` that ``fun`` uses.
        in_shardings: a prefix tree of shardings for the positional arguments: :class:`NamedSharding`, ``P(...)`` or
            text. ``UNSPECIFIED``, the default, and None leave an argument to propagation. The program moves an
            :class:`Array` of another sharding, with the cause ``in_shardings of x`` in the ledger.
        out_shardings: a prefix tree of shardings for the result.
        static_argnums: positional arguments that are Python values, part of the cache key.
        static_argnames: keyword arguments that are Python values.
        donate_argnums: positional arguments whose :class:`Array` leaves are deleted when the run begins. A result may
            take their memory if nothing else holds it. Any later use of them is an error. NumPy arrays are not
            affected. Ignored in nested jitted functions, as in JAX.
        donate_argnames: keyword arguments to donate.
        options: ...
        sharding_rules: your own rules for ops, as :meth:`Module.with_sharding_rule` takes them:
            ``{"dot_general[0]": "... i j, ... j k -> ... i k"}``. They change shardings, never numbers.
        choices: how to compute each op and do each reshard: :attr:`Program.choices` of the same program, on a mesh with
            the same axes. By default, the partitioner chooses. ShardingError if they do not fit.

    The options of propagation and of the partitioner, rules and choices apply to a whole program: a nested jitted
    function must not specify other values.

    Returns:
        A :class:`JitFunction`. Call it with arrays, or call its stages.

    Raises:
        MeshError: no mesh given. ShardingError: shardings or rules that do not fit, or an unknown option value.

    >>> import numpy as np
    >>> import shardwise as sw
    >>> double = jit(lambda x: x + x, mesh=sw.Mesh({"x": 2}))
    >>> np.asarray(double(np.arange(4)))
    array([0, 2, 4, 6])
    """
    check_keywords("jit", options, PropagationOptions, PartitionOptions)
    given: Any = {name: value for name, value in locals().items() if name not in ("fun", "options")} | options
    if fun is None:
        return lambda f: JitFunction(f, **given)
    return JitFunction(fun, **given)


# Arguments, and those that are static in the program → the arguments, with other leaves as parts of the structure
HideLeaves = Callable[[tuple[Any, ...], dict[str, Any], Arguments], tuple[tuple[Any, ...], dict[str, Any]]]

# The signature of jit is the only place with the defaults.
_DEFAULTS: JitOptions = unwrap(jit).__kwdefaults__


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Shape and dtype of every result of ``fun``, without running it: a tree of :class:`ShapeDtypeStruct`.

    Args:
        fun: takes and returns trees of arrays.
        args: arrays or :class:`ShapeDtypeStruct`; a mesh is needed only for annotations.
        kwargs: keyword arguments of ``fun``, of the same types.

    Errors are those of tracing ``fun``.

    Source: `jax.eval_shape`.

    >>> import numpy as np
    >>> eval_shape(lambda x: {"gram": x.T @ x}, ShapeDtypeStruct((8, 4), np.float32))
    {'gram': ShapeDtypeStruct(shape=(4, 4), dtype=float32)}
    """
    if not callable(fun):
        raise TypeError(message("eval_shape", "takes a function", repr(fun)))
    return (fun if isinstance(fun, JitFunction) else JitFunction(fun)).eval_shape(*args, **kwargs)


class JitFunction:
    """A function that runs as one SPMD program; made by :func:`jit`.

    Programs are cached by the tree, shapes, dtypes, shardings and static values of the arguments, by the mesh, and by
    the rules of :func:`shardwise.axis_rules`.
    """

    def __init__(
        self, fun: Callable[..., Any], user_call: UserCall | None = None, **options: Unpack[JitOptions]
    ) -> None:
        given: JitOptions = {**_DEFAULTS, **options}
        if not callable(fun):
            raise TypeError(message("jit", "takes a function", repr(fun)))
        self._fun = fun
        self._given = given
        self._options = checked_jit_options(fun, given)
        # A function of JAX takes trees with leaves that are neither arrays nor numbers, and returns such trees.
        self._hidden: HideLeaves | None = getattr(fun, "_hide_leaves", None)
        recorded = fun if self._hidden is None else getattr(fun, "_record")  # noqa: B009
        self._recorder = Recorder(recorded, self._options, UserCall(fun) if user_call is None else user_call)
        self._cache = ProgramCache()
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
        """``__call__`` without its checks, for entry points outside of tracing and of the unpartitioned reference."""
        call = self._call(args, {})
        return self._program(call)._call_flat(call.leaves)

    @entry_point
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Record the function for these arguments: arrays or :class:`ShapeDtypeStruct`."""
        enter_call()
        try:
            call = self._call(args, kwargs)
            return self._recorder.traced(call, self._recorder.known_mesh(call))
        finally:
            leave_call()

    @entry_point
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The recorded program, ready to be partitioned; ``.compile()`` does that."""
        return self.trace(*args, **kwargs).lower()

    def _traced_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Traced, list[Any]]:
        """The function recorded for these arguments, and their leaves."""
        call = self._call(args, kwargs)
        return self._recorder.traced(call, self._recorder.known_mesh(call)), call.leaves

    @property
    def _plain_function(self) -> Callable[..., Any]:
        """The function that was jitted."""
        return self._fun

    @property
    def stated_options(self) -> JitOptions:
        """The options of this jit that the user specified."""
        return self._options.stated

    def _with_options(self, **options: Any) -> JitFunction:
        """The same function with some options of its jit replaced."""
        return JitFunction(self._fun, self._recorder.user_call, **{**self._given, **options})

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shape and dtype of every result, as :func:`shardwise.eval_shape`."""
        call = self._call(args, kwargs)
        call.leaves = [
            ShapeDtypeStruct(leaf.shape, leaf.dtype) if isinstance(leaf, Tracer) else leaf for leaf in call.leaves
        ]
        return self._recorder.result_shapes(call)

    def clear_cache(self) -> None:
        """Forget the compiled programs."""
        self._cache.clear()

    def _inline(self, trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record the function in another program, with this function's shardings as constraints."""
        options = self._options
        if options.mesh is not None and options.mesh != trace.require_mesh("jit", options.mesh):
            rule = f"a nested function must be on the program's mesh, {trace.mesh!r}"
            raise MeshError(message("jit", rule, repr(options.mesh)))
        self._check_propagated_alike(trace)
        if options.in_shardings is None and options.out_shardings is None:
            return self._fun(*args, **kwargs)
        call = self._call(args, kwargs)
        inner_args, inner_kwargs = call.rebuild(
            constrained(trace, call.leaves, self._recorder.in_specs(call), "jit: in_shardings")
        )
        result = self._fun(*inner_args, **inner_kwargs)
        leaves, tree = flatten(result)
        wanted = specs_per_leaf(options.out_shardings, result, "jit: out_shardings")
        return unflatten(tree, constrained(trace, leaves, wanted, "jit: out_shardings"))

    def _check_propagated_alike(self, trace: Trace) -> None:
        """Raise ShardingError if the options of propagation differ from those of the whole program."""
        for name, whole in trace.propagation.items():
            own = self.stated_options.get(name, whole)
            if own != whole:
                rule = f"a nested function must not have another {name} than the program, {whole!r}"
                raise ShardingError(message("jit", rule, repr(own), "give it to the jit around the whole program"))

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        if self._hidden is not None:
            args, kwargs = self._hidden(args, kwargs, self._options.static)
        return Call(args, kwargs, self._options.static)

    def _program(self, call: Call) -> Program:
        return self._cache.program(call, self._recorder.known_mesh(call), self._compiled)

    def _compiled(self, call: Call, mesh: Mesh | None) -> Program:
        return self._recorder.traced(call, mesh).lower().compile()

    if not TYPE_CHECKING:  # hidden from type checkers, which would accept every name

        def __getattr__(self, name: str) -> Any:
            """An attribute of the function, as of one that `functools.wraps` wraps."""
            return attribute_of(self, self.__dict__.get("_fun"), name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<jit of {getattr(self._fun, '__qualname__', self._fun)}>"

    def _repr_html_(self) -> str:
        given: dict[str, Any] = {**self._given, "mesh": self._options.mesh}
        return function_html(self, {name: x for name, x in given.items() if x is not _DEFAULTS.get(name)})


def attribute_of(wrapper: Any, fun: Any, name: str) -> Any:
    """The attribute ``name`` that the object ``fun`` has, for a wrapper that has none. Raises AttributeError."""
    attributes = getattr(fun, "__dict__", {})
    if name.startswith("__") or name not in attributes:
        raise AttributeError(f"{type(wrapper).__name__!r} object has no attribute {name!r}", name=name, obj=wrapper)
    return attributes[name]


def constrained(trace: Trace, leaves: list[Any], specs: list[Any], what: str) -> list[Any]:
    """Annotate the leaves of a nested jitted function with the shardings of its jit."""
    out = []
    for leaf, spec in zip(leaves, specs):
        if spec is not None and trace.mesh is not None:
            x = trace.lift(leaf)
            leaf = trace.constrain(x, sharding_on(trace.mesh, spec, x.ndim, what), is_written=False)
        out.append(leaf)
    return out
