# SPDX-License-Identifier: Apache-2.0
"""``from_jax``: a function written in JAX, as part of a program of Shardwise."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import update_wrapper
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..array import ShapeDtypeStruct
from ..dtypes import dtype_name
from ..errors import DTypeError, MeshError, TracerConversionError, UnsupportedError, described, message
from ..jit import JitFunction
from ..jit.call import Call
from ..jit.function import attribute_of
from ..jit.options import Arguments, both_ways
from ..placement import device_put
from ..process.foreign import foreign_type_of, native
from ..process.traceback_filtering import entry_point, hide_frames
from ..programs.stages import Lowered, Traced
from ..recording.tracing import Trace, Tracer, UserCall, WeakTracer, current_trace
from ..shardings.mesh import Mesh
from ..trees import flatten, unflatten
from ..trees.argument_names import display_name, names_of_argument, parameter_names
from ..trees.static_leaves import has_static_leaves
from ..unpartitioned import as_numpy, unpartitioned_mesh
from .jax_arrays import expect_alive, is_jax_array, is_numeric, sharding_of
from .jax_calls import Origin, differentiated_arguments, jitted_of, static_arguments_of, trace_context, value_key
from .jax_errors import clearer, refuse_jax_tracer
from .jax_lowering import FlatFunction, canonical_dtype, shape_of
from .jax_modules import Variables, hidden_arguments, hidden_results, is_static_leaf, shown_leaves
from .jax_types import PLAIN, JaxType
from .jaxprs import context_mesh
from .optional import jax, needs_jax
from .random_keys import is_key_or_its_shape

__all__ = ["JaxFunction", "from_jax"]


@entry_point
def from_jax(
    fun: Callable[..., Any],
    *,
    mesh: Mesh | None = None,
    static_argnums: int | Sequence[int] | None = (),
    static_argnames: str | Sequence[str] | None = (),
) -> JaxFunction:
    """Use a function written in JAX in a program of Shardwise.

    Args:
        fun: takes and returns trees of JAX arrays, like an argument of `jax.jit`. It may be jitted itself, and use any
            transform of JAX.
        mesh: the mesh of the program if the function runs on its own. Default: that of the shardings in ``fun`` and of
            the arguments, else that of :func:`set_mesh`, else one device.
        static_argnums: positional arguments that are Python values, as in `jax.jit`. Need not be listed: static
            arguments of a jitted ``fun``, and single values that are neither arrays nor numbers, such as a string.
        static_argnames: keyword arguments that are Python values.

    Returns:
        A :class:`JaxFunction`. In a traced function its ops become part of the program. On its own, it has the stages
        of :func:`jit`: call it with arrays, or ``trace``, ``lower`` and ``compile`` it.

    Raises:
        UnsupportedError: JAX is not installed, or older than 0.8.
            Also UnsupportedError: ``fun`` calls back into Python, or JAX traces the function that calls this one.
        DTypeError: an argument has a dtype that JAX would narrow, such as float64 without ``jax_enable_x64``.
        ValueError: ``fun`` is a jitted function that donates arguments; :func:`jit` donates those of the program.
        DeletedArrayError: an argument is a JAX array that was deleted or donated.
        TracerConversionError: ``fun`` closes over a traced value, or a static argument of it is traced.

    The shardings of ``fun`` (``with_sharding_constraint``, ``in_shardings``) become annotations, with the order of the
    devices in their mesh. Locations are the lines of ``fun``. Gradients are those of JAX, with the rules of
    ``custom_vjp`` and ``custom_jvp``, to any order. ``fun`` is traced again when settings of JAX change.

    >>> import numpy as np
    >>> import jax.numpy as jnp
    >>> import shardwise as sw
    >>> mesh = sw.Mesh({"data": 4})
    >>> layer = sw.from_jax(lambda x, w: jnp.tanh(x @ w), mesh=mesh)
    >>> layer(np.zeros((8, 2), np.float32), np.ones((2, 3), np.float32)).shape
    (8, 3)
    """
    return JaxFunction(fun, mesh, static_argnums, static_argnames)


def _check_donation(fun: Callable[..., Any], function: FlatFunction, names: list[str]) -> None:
    if function.donated and jitted_of(fun)[0] is not None:
        rule = "the function must not donate arguments, which belong to the program"
        got = f"donation of {', '.join(names[i] for i in function.donated)}"
        way_out = "leave donate_argnums out of jax.jit, and pass it to sw.jit"
        raise ValueError(message("from_jax", rule, got, way_out))


def _hidden(
    fun: Callable[..., Any], static: Arguments, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments, where leaves that are neither arrays nor numbers are parts of the structure of their trees."""
    positions = {i + len(args) if i < 0 else i for i in static.positions}
    is_single = [i in positions or _is_static(x) for i, x in enumerate(args)]
    named = {name: name in static.names or _is_static(x) for name, x in kwargs.items()}
    return (
        tuple([x if single else hidden_arguments(fun, x) for x, single in zip(args, is_single)]),
        {name: x if named[name] else hidden_arguments(fun, x) for name, x in kwargs.items()},
    )


def _check_static(fun: Callable[..., Any], call: Call) -> None:
    """Raise TracerConversionError for a traced value in a static argument."""
    positional, named = call.static
    parameters = parameter_names(fun, 1 + max((i for i, _ in positional), default=-1))
    for name, value in [*[(parameters[i], value) for i, value in positional], *named]:
        traced = next((leaf for leaf in flatten(value)[0] if isinstance(leaf, Tracer)), None)
        if traced is not None:
            way_out = f"make it static in the program, too: sw.jit(…, static_argnames={name!r}), or static_argnums="
            rule = f"argument {name} must be a Python value, since it is static in the JAX function"
            raise TracerConversionError(message("from_jax", rule, repr(traced), way_out))


def _name_gradients(
    fun: Callable[..., Any], trace: Trace, results: list[Tracer], args: tuple[Any, ...], op_count: int
) -> None:
    """Name the results of a function that `jax.grad` made, as those of ``sw.grad`` are named."""
    positions, come_first = differentiated_arguments(fun)
    names = [name for i in positions for name in names_of_argument(fun, args, i)]
    gradients = results[: len(names)] if come_first else results[len(results) - len(names) :]
    trace.name_gradients([x._value for x in gradients], names, op_count)


class JaxFunction:
    """A function of JAX in programs of Shardwise; made by :func:`from_jax`."""

    def __init__(self, fun: Callable[..., Any], mesh: Mesh | None, static_argnums: Any, static_argnames: Any) -> None:
        if not callable(fun):
            raise TypeError(message("from_jax", "takes a function", repr(fun)))
        needs_jax("from_jax")
        if isinstance(fun, jax.stages.Compiled):
            way_out = "pass the function before lower().compile(), which JAX can trace"
            raise TypeError(message("from_jax", "takes a function", "a compiled one", way_out))
        self._fun = fun
        nums, names = both_ways("static", fun, static_argnums, static_argnames)
        own = static_arguments_of(fun)
        self._static = Arguments(nums | own.positions, names | own.names)
        self._functions: dict[Any, Any] = {}  # lowered ones
        update_wrapper(self, fun, updated=())

        def record(*args: Any, **kwargs: Any) -> Any:
            trace = current_trace()
            assert trace is not None
            return self._recorded(trace, args, kwargs)

        update_wrapper(record, fun, updated=())
        self._record = record
        self._mesh = mesh
        self._jit = self._jitted(self._static)
        self._jits: dict[Any, JitFunction] = {}  # by static arguments and the settings of JAX

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on the virtual mesh; inside another traced function the ops are recorded there."""
        try:
            trace = current_trace()
            if trace is not None:
                return shown_leaves(self._recorded(trace, *_hidden(self._fun, self._static, args, kwargs)))
            args, kwargs = _hidden(self._fun, self._static, args, kwargs)
            if unpartitioned_mesh() is not None:
                return self._unpartitioned(as_numpy(args), as_numpy(kwargs))
            jitted = self._jit_of(args, kwargs, must_hash=True)
            args, kwargs = _converted((args, kwargs), _as_array)
            return jitted(*args, **kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    def _hide_leaves(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], static: Arguments
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a jitted form of this function, where ``static`` ones stay as they are."""
        own = Arguments(self._static.positions | static.positions, self._static.names | static.names)
        return _hidden(self._fun, own, args, kwargs)

    def _unpartitioned(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The results on one device. Finite differences have float64, which JAX must keep."""
        leaves = [leaf for leaf in flatten((args, kwargs))[0] if isinstance(leaf, np.ndarray)]
        is_wide = any(canonical_dtype(leaf.dtype) != leaf.dtype for leaf in leaves)
        with jax.enable_x64(True) if is_wide else nullcontext():
            jitted = self._jit_of(args, kwargs)
            if self._mesh is None:
                jitted = jitted._with_options(mesh=unpartitioned_mesh())
            traced, leaves = jitted._traced_call(*_converted((args, kwargs), _as_array))
            return traced._run_unpartitioned(leaves)

    @entry_point
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Record the function for these arguments: arrays, or the ``ShapeDtypeStruct`` of Shardwise or JAX."""
        args, kwargs = _hidden(self._fun, self._static, args, kwargs)
        jitted = self._jit_of(args, kwargs)
        args, kwargs = _converted((args, kwargs), _as_shape, is_key_or_its_shape)
        return jitted.trace(*args, **kwargs)

    @entry_point
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The recorded program, ready to be partitioned; ``.compile()`` does that."""
        return self.trace(*args, **kwargs).lower()

    @entry_point
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shape and dtype of every result, as :func:`shardwise.eval_shape`."""
        args, kwargs = _hidden(self._fun, self._static, args, kwargs)
        jitted = self._jit_of(args, kwargs)
        args, kwargs = _converted((args, kwargs), _as_shape, is_key_or_its_shape)
        return jitted.eval_shape(*args, **kwargs)

    if not TYPE_CHECKING:  # hidden from type checkers, which would accept every name

        def __getattr__(self, name: str) -> Any:
            """An attribute of the function, such as the weights of a module."""
            return attribute_of(self, self.__dict__.get("_fun"), name)

    @property
    def __wrapped__(self) -> JitFunction:
        """The jitted form, whose options transforms such as ``sw.grad`` read."""
        return self._jit

    @__wrapped__.setter
    def __wrapped__(self, value: Any) -> None:
        """``functools.update_wrapper`` sets it; the jitted form takes its place."""

    def _jitted(self, static: Arguments) -> JitFunction:
        nums, names = tuple(sorted(static.positions)), tuple(sorted(static.names))
        user_call = UserCall(self._record, what="from_jax", needs_mesh=False)
        return JitFunction(self._record, user_call, mesh=self._mesh, static_argnums=nums, static_argnames=names)

    def _jit_of(self, args: tuple[Any, ...], kwargs: dict[str, Any], must_hash: bool = False) -> JitFunction:
        """The jitted form for a call outside of programs, whose leaves are checked."""
        positions = {i for i, x in enumerate(args) if _is_static(x)}
        names = {name for name, x in kwargs.items() if _is_static(x)}
        if positions or names:
            _check_parameters(self._fun, args, kwargs)
        static = Arguments(self._static.positions | positions, self._static.names | names)
        call = Call(args, kwargs, static)
        if any(is_jax_array(leaf) or not is_numeric(leaf) for leaf in call.leaves):
            for leaf, name in zip(call.leaves, call.names(self._fun)):
                _check_leaf(leaf, name)
        settings = trace_context(), context_mesh()
        key = (frozenset(static.positions), frozenset(static.names), _static_key(call), settings)
        try:
            known = self._jits.get(key)
        except TypeError as error:
            if must_hash:
                rule, way_out = "static arguments must be hashable", "pass arrays, or trees of arrays"
                raise TypeError(message("from_jax", rule, str(error), way_out)) from None
            return self._jitted(static)
        if known is None:
            known = self._jits[key] = self._jitted(static)
        return known

    def _recorded(self, trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record the ops of the function in a program."""
        call = Call(args, kwargs, self._static)
        _check_static(self._fun, call)
        names = call.names(self._fun)
        operands = [self._operand(trace, leaf, name) for leaf, name in zip(call.leaves, names)]
        function = self._function_for(trace, call, operands, names)
        _check_donation(self._fun, function, [name for x, name in zip(operands, names) if isinstance(x, Tracer)])
        tracers = [trace.lift(x) for x in function.constants]
        tracers += [x for x in operands if isinstance(x, Tracer)]
        op_count = trace.core.op_count
        own_names = [""] * len(function.constants)
        own_names += [name for x, name in zip(operands, names) if isinstance(x, Tracer)]
        results = _record(trace, function, tracers, own_names)
        _name_gradients(self._fun, trace, results, args, op_count)
        return jax.tree.unflatten(function.out_tree, results)

    def _operand(self, trace: Trace, leaf: Any, name: str) -> Any:
        """A leaf as a tracer of the dtype that JAX keeps. Anything but arrays and numbers is returned as it is."""
        is_number = isinstance(leaf, (bool, int, float)) and not isinstance(leaf, np.generic)
        if is_number or not hasattr(type(leaf), "__array__"):
            return leaf
        refuse_jax_tracer(leaf, name)
        if isinstance(leaf, WeakTracer):
            dtype = canonical_dtype(leaf.dtype)
            if dtype == leaf.dtype:
                return leaf
            if dtype.kind == "i":
                limits = np.iinfo(dtype)
                rule, way_out = f"argument {name} must be in the range of {dtype.name}", "enable x64 in JAX"
                trace.limit(leaf, (int(limits.min), int(limits.max)), DTypeError, rule, way_out)
            return WeakTracer.of(leaf.strong().astype(dtype), leaf.weak)
        if is_jax_array(leaf):
            expect_alive("from_jax", leaf, name)
        x = trace.lift(native(leaf) if not is_jax_array(leaf) else np.asarray(leaf))
        if canonical_dtype(x.dtype) != x.dtype:
            rule = "arguments must have dtypes that JAX keeps without x64"
            kept = canonical_dtype(x.dtype).name
            way_out = f'convert it with astype("{kept}"), or call jax.config.update("jax_enable_x64", True)'
            raise DTypeError(message("from_jax", rule, f"{described(x)} for {name}", way_out))
        return x

    def _function_for(self, trace: Trace, call: Call, operands: list[Any], names: list[str]) -> FlatFunction:
        """The function at these shapes."""
        avals = [_aval(trace, x, name) for x, name in zip(operands, names) if isinstance(x, Tracer)]
        fixed = tuple([None if isinstance(x, Tracer) else value_key(x) for x in operands])
        shapes = tuple([(x.shape, x.dtype, x.weak_type, x.sharding) for x in avals])
        mesh = context_mesh() or trace.mesh
        key: Any = (call.tree, _static_key(call), fixed, shapes, mesh, trace_context())
        try:
            known = self._functions.get(key)
        except TypeError:  # a static argument without a hash
            key, known = None, None
        if known is None:
            origin = Origin(self._fun, [name for x, name in zip(operands, names) if isinstance(x, Tracer)])
            try:
                known = FlatFunction(display_name(self._fun), self._flat(call, operands), avals, origin, mesh)
            except Exception as error:
                better = clearer(error)
                if better is None:
                    raise
                raise better from error
            known.warn_of_discarded()
        if key is not None:
            self._functions[key] = known
        return known

    def _flat(self, call: Call, operands: list[Any]) -> Callable[..., Any]:
        has_static = has_static_leaves(call.tree)

        def flat(*leaves: Any) -> Any:
            values = iter(leaves)
            given = call.rebuild([next(values) if isinstance(x, Tracer) else x for x in operands])
            args, kwargs = shown_leaves(given) if has_static else given
            variables = Variables(self._fun, args, kwargs)
            results = self._fun(*args, **kwargs)
            variables.check()
            return hidden_results(results)

        return flat

    def __repr__(self) -> str:
        return f"<from_jax of {getattr(self._fun, '__qualname__', self._fun)}>"


def _aval(trace: Trace, x: Tracer, name: str) -> Any:
    """JAX's description of an operand, whose type is that of the argument that it is.

    Raises:
        UnsupportedError: a transform of Shardwise has changed the value, so that its explicit axes are not known.
    """
    known: JaxType = trace.annotations.foreign_types.get(x._value, PLAIN)
    if known.lost_in:
        rule = f"argument {name} must not have explicit axes or a memory of its own in sw.{known.lost_in}"
        way_out = f"use jax.{known.lost_in} in the JAX function"
        raise UnsupportedError(message("from_jax", rule, repr(known.sharding), way_out))
    return shape_of(x.shape, x.dtype, known.weak or isinstance(x, WeakTracer), known.sharding)


def _record(trace: Trace, function: Any, operands: list[Tracer], names: list[str]) -> list[Tracer]:
    """Append the ops of a lowered function, as an op that refers to its gradient."""
    mesh = _mesh_of(function.text)
    if mesh is not None and trace.mesh is None:
        trace.mesh = mesh
    elif mesh is not None and mesh != trace.mesh:
        rule = f"the shardings of a JAX function must be on the program's mesh, {trace.mesh!r}"
        raise MeshError(message("from_jax", rule, repr(mesh), "use the same axes and devices in both"))
    region = trace.core.import_text(function.text, names)
    attrs = {"name": function.name, "derivative": trace.derivatives.add(function)}
    types = [(tuple(aval.shape), dtype_name(np.dtype(aval.dtype))) for aval in function.out_avals]
    return trace.emit_op("shardwise.custom_derivative", operands, attrs, types, [region])


def _mesh_of(text: str) -> Mesh | None:
    """The mesh of the shardings in a program."""
    core = _core.ir.parse(text).program_mesh if "<@" in text else None
    return None if core is None else Mesh._wrap(core)


def _static_key(call: Call) -> Any:
    return tuple([tuple([(name, value_key(value)) for name, value in group]) for group in call.static])


def _check_leaf(leaf: Any, name: str) -> None:
    """Raise the error of an argument leaf that is no array of numbers, that JAX traces, or that was deleted."""
    refuse_jax_tracer(leaf, name)
    if is_jax_array(leaf):
        expect_alive("from_jax", leaf, name)
    elif not is_numeric(leaf):
        rule = f"argument {name} must be an array of numbers"
        way_out = "take it out of the tree, and pass it as an argument of its own, which is static then"
        raise DTypeError(message("from_jax", rule, described(leaf), way_out))


def _check_parameters(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise Python's TypeError if the function does not take these arguments."""
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):  # of a function without one
        return
    signature.bind(*args, **kwargs)


def _is_static(argument: Any) -> bool:
    """Whether an argument is a single value that is no array."""
    if _is_array(argument) or is_numeric(argument):
        return False
    leaves, _ = flatten(argument)
    return len(leaves) == 1 and leaves[0] is argument and is_static_leaf(argument)


def _is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray) or is_jax_array(x)


def _converted(tree: Any, convert: Callable[[Any], Any], is_kept: Callable[[Any], bool] | None = None) -> Any:
    """A tree with its leaves converted, but for those that are kept."""
    leaves, structure = flatten(tree, is_kept)
    return unflatten(structure, [leaf if is_kept is not None and is_kept(leaf) else convert(leaf) for leaf in leaves])


def _as_array(leaf: Any) -> Any:
    """An array of JAX as one of Shardwise, with its sharding. One with a type of its own stays as it is."""
    if not is_jax_array(leaf) or foreign_type_of(leaf) is not None:
        return leaf
    sharding = sharding_of(leaf)
    return np.asarray(leaf) if sharding is None else device_put(np.asarray(leaf), sharding)


def _as_shape(leaf: Any) -> Any:
    if foreign_type_of(leaf) is not None:
        return leaf
    leaf = native(leaf)
    if not is_jax_array(leaf):
        return leaf
    return ShapeDtypeStruct(leaf.shape, np.dtype(leaf.dtype), sharding=sharding_of(leaf))
