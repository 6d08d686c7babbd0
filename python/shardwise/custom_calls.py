# SPDX-License-Identifier: Apache-2.0
"""Custom calls: ops that NumPy functions compute, by name, in traced functions and in texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _core
from .array import Array, ShapeDtypeStruct
from .array_leaves import numbers_of
from .dtypes import dtype_name
from .errors import (
    DTypeError,
    ShapeError,
    UnsupportedError,
    composed,
    described,
    expect_text,
    is_integer,
    message,
    shown,
)
from .jit import JitFunction, run_as_program
from .numpy.calls import RuleTrace, Value, call, tracers_of, vjp_callback
from .process.traceback_filtering import entry_point
from .programs.op_rules import ShardingRule, checked_rule
from .recording.tracing import Trace, Tracer, current_trace, recording
from .trees import flatten, unflatten

__all__ = ["custom_call", "register_custom_call"]

_FUNCTIONS: dict[str, Callable[..., Any]] = {}  # those that Python defines
_PROGRAMS: dict[Any, dict[Any, JitFunction]] = {}  # of calls outside jit, by everything that is not an array
BROADCAST_ALL = "broadcast_all"


@entry_point
def register_custom_call(
    name: str,
    fn: Callable[..., Any],
    rule: ShardingRule | str | None = None,
    vjp: Callable[..., Any] | None = None,
    batch: Callable[..., Any] | str | None = None,
) -> None:
    """Define a custom call by a NumPy function. :func:`custom_call` and a ``stablehlo.custom_call`` run it.

    Each device calls ``fn`` on its blocks: a dim whose factor in ``rule`` is split has the size of one block, with
    padding in the last block of an uneven dim. Registering a name again replaces the definition: programs that are
    compiled then call the new function, but keep the rule, the gradient and the batching that they were made with.

    Args:
        name: the target. Names of shardwise's own calls, such as LAPACK's, are taken.
        fn: a function of read-only NumPy arrays that returns an array, or a tuple of arrays, of the declared types.
            Options of the call are keyword arguments. It must not depend on anything else: equal calls are merged.
        rule: how the dims of operands and results are related: a :func:`sharding_rule` or its text, such as
            ``"... i, ... j -> ... i"``. A reduced factor means that the results of the devices must be added up.
            None: every device computes the call on whole arrays.
        vjp: the gradient, ``vjp(operands, results, cotangents, **options)``, of tuples of traced arrays. It returns a
            tuple with a cotangent, or None, for each operand.
        batch: for :func:`vmap`: ``"broadcast_all"`` if ``fn`` takes operands that all have more leading dims (the rule
            then begins with ``...``), or a function ``batch(axis_size, in_batched, *operands, **options)`` that returns
            ``(results, out_batched)``, as for ``jax.custom_batching.custom_vmap``.

    Raises:
        ShapeError: the name is one of shardwise's own.
        ShardingError: malformed rule.
        TypeError: a wrong type of an argument.

    Source: StableHLO ``custom_call``; `jax.ffi.register_ffi_target`, `jax.pure_callback`.

    >>> import shardwise as sw
    >>> register_custom_call("cubes", lambda x: x**3, rule="i -> i", vjp=lambda xs, ys, cts: (3 * xs[0] ** 2 * cts[0],))
    >>> f = sw.jit(lambda x: custom_call("cubes", x, x).sum(), mesh=sw.Mesh({"d": 2}))
    >>> float(f(np.arange(4.0))), np.asarray(sw.grad(f)(np.arange(4.0)))
    (36.0, array([ 0.,  3., 12., 27.]))
    """
    expect_text("register_custom_call", "name", name)
    if not name:
        raise ShapeError(message("register_custom_call", "a name must not be empty"))
    for what, function in (("fn", fn), ("vjp", vjp), ("batch", batch)):
        may_be = (function is None and what != "fn") or (what == "batch" and function == BROADCAST_ALL)
        if not may_be and not callable(function):
            or_text = f" or {BROADCAST_ALL!r}" if what == "batch" else ""
            raise TypeError(message("register_custom_call", f"{what} must be a function{or_text}", described(function)))
    shapes_to_rule = None if rule is None else checked_rule("register_custom_call", rule).text
    batch_rule = None if batch is None else _batch_callback(name, batch)
    _core.ir.register_custom_call(name, _kernel(name), shapes_to_rule, vjp and vjp_callback(name, vjp), batch_rule)
    _FUNCTIONS[name] = fn


@entry_point
def custom_call(name: str, result_shape_dtypes: Any, /, *args: Any, **options: Any) -> Any:
    """Call a custom call by name.

    Args:
        name: the target: one that :func:`register_custom_call` defined, or one of shardwise's own.
        result_shape_dtypes: what it returns: a :class:`ShapeDtypeStruct` (or anything with ``shape`` and ``dtype``), or
            a tree of them, with global shapes.
        args: arrays.
        options: static numbers and strings for the function.

    Returns:
        An array, or a tree of arrays like ``result_shape_dtypes``. NumPy arrays outside :func:`jit` give NumPy arrays.

    Raises:
        UnsupportedError: the name is unknown.
        TypeError: wrong types of arguments.
        ShapeError, DTypeError: when it runs, if the function returns something else than declared.

    Source: `jax.pure_callback`, `jax.ffi.ffi_call`.

    >>> register_custom_call("rows", lambda x, scale: scale * x.sum(axis=1), rule="i j -> i")
    >>> x = np.ones((2, 3))
    >>> custom_call("rows", ShapeDtypeStruct((2,), np.float64), x, scale=2.0)
    array([6., 6.])
    """
    expect_text("custom_call", "name", name)
    if not _core.ir.is_custom_call(name):
        way_out = "define it with sw.register_custom_call"
        raise UnsupportedError(message(f"custom_call @{name}", "a target must be known to run", None, way_out))
    structs, tree = flatten(result_shape_dtypes)
    types = [_declared(name, struct) for struct in structs]
    for option, value in options.items():
        if not isinstance(value, (bool, float, str)) and not is_integer(value, -(2**63)):
            rule = f"the option {option} must be a number or a string, which is static"
            raise TypeError(message(f"custom_call @{name}", rule, described(value), "pass arrays by position"))
    for i, x in enumerate(args):
        if not isinstance(x, (Tracer, Array)) and numbers_of(x) is None:
            raise DTypeError(message(f"custom_call @{name}", f"argument {i} must be an array", described(x)))
    trace = current_trace()
    if trace is not None:
        return unflatten(tree, _record(trace, name, args, types, options))
    if name in _FUNCTIONS and not any(isinstance(x, Array) for x in args):
        named = [(shape, dtype_name(dtype)) for shape, dtype in types]
        return unflatten(tree, _kernel(name)([np.asarray(x) for x in args], named, options, ""))

    def recorded(*arrays: Any) -> Any:
        inner = current_trace()
        assert inner is not None
        return unflatten(tree, _record(inner, name, arrays, types, options))

    key = (name, tree, tuple(types), tuple(sorted(options.items())))
    return run_as_program("custom_call", recorded, recorded, _PROGRAMS.setdefault(key, {}), args, {})


def _declared(name: str, struct: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    if not hasattr(struct, "shape") or not hasattr(struct, "dtype"):
        rule = "result_shape_dtypes must have a shape and a dtype for each result"
        raise TypeError(message(f"custom_call @{name}", rule, described(struct), "use sw.ShapeDtypeStruct"))
    declared = ShapeDtypeStruct(struct.shape, struct.dtype)
    return declared.shape, declared.dtype


def _record(trace: Trace, name: str, args: Sequence[Any], types: Any, options: dict[str, Any]) -> list[Tracer]:
    made: list[Tracer] = call(name, trace, [trace.lift(x) for x in args], types, options)
    return made


def _kernel(name: str) -> Callable[..., list[np.ndarray]]:
    """The function of a name in the form that the extension calls: on lists of arrays, with a check of the results."""

    def run(arrays: Any, types: Any, options: dict[str, Any], place: str) -> list[np.ndarray]:
        fn = _FUNCTIONS[name]
        try:
            made = fn(*arrays, **options)
        except Exception as error:
            if place:
                error.add_note(f"in the custom call @{name} (at {place})")
            raise
        results = flatten(made)[0]
        at = f" (at {place})" if place else ""
        if len(results) != len(types):
            got = f"{len(results)} from {described(fn)}"
            raise ShapeError(composed(f"custom_call @{name}", f"must return {len(types)} arrays", got, "", "", 0) + at)
        return [_checked(name, np.asarray(x), shape, dtype, at) for x, (shape, dtype) in zip(results, types)]

    return run


def _checked(name: str, x: np.ndarray, shape: tuple[int, ...], dtype: str, at: str) -> np.ndarray:
    if x.shape == tuple(shape) and x.dtype.name == dtype:
        return x
    error = DTypeError if x.shape == tuple(shape) else ShapeError
    rule = f"a result must be {dtype}{list(shape)}, the block of one device"
    raise error(composed(f"custom_call @{name}", rule, shown(x), "return an array of this type", "", 0) + at)


def _batch_callback(name: str, batch: Callable[..., Any] | str) -> Callable[..., list[tuple[int, bool]]]:
    """A batching rule in the form that the extension calls: values of results, and which have the new dim."""

    def record(
        core: _core.ir.Trace, size: int, in_batched: list[bool], operands: list[Value], types: Any, options: Any
    ) -> list[tuple[int, bool]]:
        trace = RuleTrace(core)
        with recording(trace):
            xs = tracers_of(trace, operands)
            if callable(batch):
                made, out_batched = batch(size, list(in_batched), *xs, **options)
            else:
                made, out_batched = _broadcast_all(trace, name, size, in_batched, xs, types, options), True
            results = [trace.lift(x) for x in flatten(made)[0]]
            flags = flatten(out_batched)[0]
            flags = flags * len(results) if len(flags) == 1 else flags
            if len(results) != len(types) or len(flags) != len(results):
                rule = f"batch must return {len(types)} results, and whether each is batched"
                raise ShapeError(message(f"custom_call @{name}", rule, shown((made, out_batched))))
            for x, (shape, dtype), flag in zip(results, types, flags):
                wanted = (size, *shape) if flag else tuple(shape)
                if x.shape != wanted or dtype_name(x.dtype) != dtype:
                    rule = f"a result of batch must be {dtype}{list(wanted)}"
                    raise ShapeError(message(f"custom_call @{name}", rule, shown(x)))
            return [(x._value, bool(flag)) for x, flag in zip(results, flags)]

    return record


def _broadcast_all(
    trace: Trace, name: str, size: int, in_batched: Sequence[bool], xs: Sequence[Tracer], types: Any, options: Any
) -> list[Tracer]:
    wide: list[Any] = [x if has_dim else np.broadcast_to(x, (size, *x.shape)) for x, has_dim in zip(xs, in_batched)]
    return _record(trace, name, wide, [((size, *shape), dtype) for shape, dtype in types], options)
