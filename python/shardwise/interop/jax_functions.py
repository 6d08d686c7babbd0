# SPDX-License-Identifier: Apache-2.0
"""``from_jax``: a function written in JAX, as part of a program of Shardwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from typing import Any

import numpy as np

from .. import _core
from ..array import ShapeDtypeStruct
from ..dtypes import dtype_name
from ..errors import DTypeError, MeshError, described, message
from ..foreign import native
from ..jit import JitFunction
from ..jit.call import Call
from ..jit.options import both_ways
from ..mesh import Mesh
from ..placement import device_put
from ..stages import Lowered, Traced
from ..traceback_filtering import entry_point, hide_frames
from ..tracing import Trace, Tracer, WeakTracer, current_trace
from ..trees import flatten, unflatten
from ..trees.argument_names import display_name
from .jax_arrays import expect_alive, is_jax_array, sharding_of
from .jax_lowering import FlatFunction, canonical_dtype, shape_of
from .optional import jax, needs_jax

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
            the arguments, else that of :func:`set_mesh`.
        static_argnums: positional arguments that are Python values, as in `jax.jit`. Arguments that are neither arrays
            nor numbers are static anyway.
        static_argnames: the same for keyword arguments.

    Returns:
        A :class:`JaxFunction`. In a traced function its ops become part of the program. On its own, it has the stages
        of :func:`jit`: call it with arrays, or ``trace``, ``lower`` and ``compile`` it.

    Raises:
        UnsupportedError: JAX is not installed, or older than 0.8.
        DTypeError: an argument has a dtype that JAX would narrow, such as float64 without ``jax_enable_x64``.
        ValueError: ``fun`` is a jitted function that donates arguments; :func:`jit` donates those of the program.
        DeletedArrayError: an argument is a JAX array that was deleted or donated.

    The shardings of ``fun`` (``with_sharding_constraint``, ``in_shardings``) become annotations, and locations are the
    lines of ``fun``. Gradients are those of JAX, with the rules of ``custom_vjp`` and ``custom_jvp``, to any order.

    >>> import numpy as np
    >>> import jax.numpy as jnp
    >>> import shardwise as sw
    >>> mesh = sw.Mesh({"data": 4})
    >>> layer = sw.from_jax(lambda x, w: jnp.tanh(x @ w), mesh=mesh)
    >>> layer(np.zeros((8, 2), np.float32), np.ones((2, 3), np.float32)).shape
    (8, 3)
    """
    return JaxFunction(fun, mesh, static_argnums, static_argnames)


class JaxFunction:
    """A function of JAX in programs of Shardwise; made by :func:`from_jax`."""

    def __init__(self, fun: Callable[..., Any], mesh: Mesh | None, static_argnums: Any, static_argnames: Any) -> None:
        if not callable(fun):
            raise TypeError(message("from_jax", "takes a function", repr(fun)))
        needs_jax("from_jax")
        self._fun = fun
        self._static = both_ways("static", fun, static_argnums, static_argnames)
        self._functions: dict[Any, Any] = {}  # lowered ones
        update_wrapper(self, fun, updated=())

        def record(*args: Any, **kwargs: Any) -> Any:
            trace = current_trace()
            assert trace is not None
            return self._inline(trace, args, kwargs)

        update_wrapper(record, fun, updated=())
        self._jit = JitFunction(record, mesh=mesh, static_argnums=static_argnums, static_argnames=static_argnames)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on the virtual mesh; inside another traced function the ops are recorded there."""
        try:
            trace = current_trace()
            if trace is not None:
                return self._inline(trace, args, kwargs)
            self._check_alive(args, kwargs)
            args, kwargs = _converted((args, kwargs), _as_array)
            return self._jit(*args, **kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    @entry_point
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Record the function for these arguments: arrays, or the ``ShapeDtypeStruct`` of Shardwise or JAX."""
        args, kwargs = _converted((args, kwargs), _as_shape)
        return self._jit.trace(*args, **kwargs)

    @entry_point
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The recorded program, ready to be partitioned; ``.compile()`` does that."""
        return self.trace(*args, **kwargs).lower()

    @entry_point
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shape and dtype of every result, as :func:`shardwise.eval_shape`."""
        args, kwargs = _converted((args, kwargs), _as_shape)
        return self._jit.eval_shape(*args, **kwargs)

    @property
    def __wrapped__(self) -> JitFunction:
        """The jitted form, whose options transforms such as ``sw.grad`` read."""
        return self._jit

    @__wrapped__.setter
    def __wrapped__(self, value: Any) -> None:
        """``functools.update_wrapper`` sets it; the jitted form takes its place."""

    def _inline(self, trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record the ops of the function in a program."""
        call = Call(args, kwargs, self._static)
        names = call.names(self._fun)
        operands = [self._operand(trace, leaf, name) for leaf, name in zip(call.leaves, names)]
        function = self._function_for(call, operands)
        self._check_donation(function, [name for x, name in zip(operands, names) if isinstance(x, Tracer)])
        tracers = [trace.lift(x) for x in function.constants]
        tracers += [x for x in operands if isinstance(x, Tracer)]
        results = _record(trace, function, tracers)
        return jax.tree.unflatten(function.out_tree, results)

    def _check_alive(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        call = Call(args, kwargs, self._static)
        for i, leaf in enumerate(call.leaves):
            if is_jax_array(leaf):
                expect_alive("from_jax", leaf, call.names(self._fun)[i])

    def _check_donation(self, function: FlatFunction, names: list[str]) -> None:
        jitted = self._fun
        while isinstance(jitted, partial):
            jitted = jitted.func
        if function.donated and isinstance(jitted, jax.stages.Wrapped):
            rule = "the function must not donate arguments, which belong to the program"
            got = f"donation of {', '.join(names[i] for i in function.donated)}"
            way_out = "leave donate_argnums out of jax.jit, and pass it to sw.jit"
            raise ValueError(message("from_jax", rule, got, way_out))

    def _operand(self, trace: Trace, leaf: Any, name: str) -> Any:
        """A leaf as a tracer of the dtype that JAX keeps. Anything but arrays and numbers is returned as it is."""
        if isinstance(leaf, (bool, int, float)) or not hasattr(type(leaf), "__array__"):
            return leaf
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

    def _function_for(self, call: Call, operands: list[Any]) -> Any:
        """The function at these shapes."""
        avals = [shape_of(x.shape, x.dtype, isinstance(x, WeakTracer)) for x in operands if isinstance(x, Tracer)]
        fixed = tuple([None if isinstance(x, Tracer) else (type(x), x) for x in operands])
        config = canonical_dtype(np.dtype(np.float64))
        key: Any = (call.tree, call.static, fixed, tuple([(x.shape, x.dtype, x.weak_type) for x in avals]), config)
        try:
            known = self._functions.get(key)
        except TypeError:  # a static argument without a hash
            key, known = None, None
        if known is None:
            known = FlatFunction(display_name(self._fun), self._flat(call, operands), avals)
        if key is not None:
            self._functions[key] = known
        return known

    def _flat(self, call: Call, operands: list[Any]) -> Callable[..., Any]:
        def flat(*leaves: Any) -> Any:
            values = iter(leaves)
            args, kwargs = call.rebuild([next(values) if isinstance(x, Tracer) else x for x in operands])
            return self._fun(*args, **kwargs)

        return flat

    def __repr__(self) -> str:
        return f"<from_jax of {getattr(self._fun, '__qualname__', self._fun)}>"


def _record(trace: Trace, function: Any, operands: list[Tracer]) -> list[Tracer]:
    """Append the ops of a lowered function, as a named computation that refers to its gradient."""
    mesh = _mesh_of(function.text)
    if mesh is not None and trace.mesh is None:
        trace.mesh = mesh
    elif mesh is not None and mesh != trace.mesh:
        rule = f"the shardings of a JAX function must be on the program's mesh, {trace.mesh!r}"
        raise MeshError(message("from_jax", rule, repr(mesh), "use the same axes and devices in both"))
    region = trace.core.import_text(function.text)
    attrs = {"name": function.name, "shardwise.derivative": trace.derivatives.add(function)}
    types = [(tuple(aval.shape), dtype_name(np.dtype(aval.dtype))) for aval in function.out_avals]
    return trace.emit_op("sdy.named_computation", operands, attrs, types, [region])


def _mesh_of(text: str) -> Mesh | None:
    """The mesh of the shardings in a program."""
    core = _core.ir.parse(text).program_mesh if "<@" in text else None
    return None if core is None else Mesh._wrap(core)


def _converted(tree: Any, convert: Callable[[Any], Any]) -> Any:
    leaves, structure = flatten(tree)
    return unflatten(structure, [convert(leaf) for leaf in leaves])


def _as_array(leaf: Any) -> Any:
    """An array of JAX as one of Shardwise, with its sharding."""
    if not is_jax_array(leaf):
        return leaf
    sharding = sharding_of(leaf)
    return np.asarray(leaf) if sharding is None else device_put(np.asarray(leaf), sharding)


def _as_shape(leaf: Any) -> Any:
    leaf = native(leaf)
    if not is_jax_array(leaf):
        return leaf
    return ShapeDtypeStruct(leaf.shape, np.dtype(leaf.dtype), sharding=sharding_of(leaf))
