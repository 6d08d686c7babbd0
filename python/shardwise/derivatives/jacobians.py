# SPDX-License-Identifier: Apache-2.0
"""Jacobians and Hessians: all derivatives of a function's results by the elements of its arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from ..dtypes import is_complex, is_float
from ..errors import DTypeError, ShapeError, called_as, message
from ..jit import JitFunction, run_as_program
from ..jit.options import parameter_positions
from ..numpy._primitives import compare, convert, iota, reshape
from ..process.traceback_filtering import entry_point
from ..recording.tracing import Trace, Tracer, current_trace
from ..trees import flatten, unflatten
from ..trees.argument_names import names_of_argument
from ..vmap import vmap
from .forward import jvp
from .reverse import vjp
from .variables import FLOAT0, expect_callable, expect_pair, results_of, with_float0, without_float0

__all__ = ["hessian", "jacfwd", "jacrev"]


@entry_point
def jacfwd(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """Make a function that returns the Jacobian of ``fun``, in forward mode: one pass for each element of the argument.

    Use it for tall Jacobians, of functions with more results than arguments, and :func:`jacrev` for wide ones. The
    passes run as one, batched by :func:`shardwise.vmap`.

    Args:
        fun: a function that returns a tree of arrays.
        argnums: the position or positions of the arguments to differentiate with respect to: trees of floating arrays.
        has_aux: ``fun`` returns ``(value, aux)``.
        holomorphic: ``fun`` is holomorphic, and all its arguments to differentiate and results are complex.

    Returns:
        A function that returns the Jacobian; with ``has_aux``, ``(jacobian, aux)``. It has the tree of the value, with
        the tree of the argument at each leaf, and there an array whose shape is that of the result, then that of the
        argument. If ``argnums`` is a sequence, a tuple takes the place of the argument's tree.

    Raises:
        DTypeError: an argument to differentiate is not floating, or not complex with ``holomorphic``.

    Source: `jax.jacfwd`.

    >>> import shardwise as sw
    >>> np.asarray(jacfwd(lambda x: x[:2] * x[1:])(np.array([1.0, 2.0, 3.0])))
    array([[2., 1., 0.],
           [0., 3., 2.]])
    """
    return _Jacobian("jacfwd", fun, argnums, has_aux, holomorphic, False, _by_columns).function()


@entry_point
def jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """Make a function that returns the Jacobian of ``fun``, in reverse mode: one pass for each element of the result.

    The arguments and the Jacobian are those of :func:`jacfwd`.

    Args:
        fun: a function that returns a tree of floating arrays.
        argnums: as in :func:`jacfwd`.
        has_aux: as in :func:`jacfwd`.
        holomorphic: as in :func:`jacfwd`.
        allow_int: allow integer arguments, whose derivatives are zeros of dtype float0.

    Raises:
        DTypeError: an argument to differentiate or a result is not floating, or not complex with ``holomorphic``.

    Source: `jax.jacrev`.

    >>> import shardwise as sw
    >>> np.asarray(jacrev(lambda x: x[:2] * x[1:])(np.array([1.0, 2.0, 3.0])))
    array([[2., 1., 0.],
           [0., 3., 2.]])
    """
    return _Jacobian("jacrev", fun, argnums, has_aux, holomorphic, allow_int, _by_rows).function()


@entry_point
def hessian(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """Make a function that returns the second derivatives of ``fun``: ``jacfwd(jacrev(fun))``.

    Args:
        fun: a function that returns a tree of floating arrays, most often a scalar.
        argnums: as in :func:`jacfwd`.
        has_aux: as in :func:`jacfwd`.
        holomorphic: as in :func:`jacfwd`.

    Returns:
        A function that returns, at each leaf of the value, a tree of trees of the argument; the array of each has the
        shape of the result, then those of the two leaves of the argument.

    Raises:
        DTypeError: as :func:`jacrev`.

    Source: `jax.hessian`.

    >>> np.asarray(hessian(lambda x: (x**3).sum())(np.array([1.0, 2.0])))
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    expect_callable("hessian", fun)
    with called_as("hessian", "jacfwd", "jacrev"):
        of_rows = jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)

    @entry_point
    @wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with called_as("hessian", "jacfwd", "jacrev"):
            return of_rows(*args, **kwargs)

    return wrapped


class _Jacobian:
    """The Jacobian of a function, by ``method``: ``(trace, fun, args) -> (Jacobian, aux)``."""

    def __init__(
        self,
        what: str,
        fun: Callable[..., Any],
        argnums: int | Sequence[int],
        has_aux: bool,
        holomorphic: bool,
        allow_int: bool,
        method: Callable[..., Any],
    ) -> None:
        expect_callable(what, fun)
        self._what = what
        self._fun = fun
        self._is_single = isinstance(argnums, (int, np.integer))
        self._positions = parameter_positions(what, "argnums", argnums)
        self._has_aux = has_aux
        self._options = holomorphic, allow_int
        self._method = method

    def function(self) -> Callable[..., Any]:
        """The function that the user calls."""
        programs: dict[Any, JitFunction] = {}

        def recorded(*args: Any, **kwargs: Any) -> Any:
            trace = current_trace()
            assert trace is not None
            jacobian, aux = self._recorded(trace, args, kwargs)
            return without_float0(jacobian), aux

        @entry_point
        @wraps(self._fun)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            trace = current_trace()
            if trace is None:
                jacobian, aux = run_as_program(self._what, recorded, self._fun, programs, args, kwargs)
                jacobian = with_float0(jacobian)
            else:
                jacobian, aux = self._recorded(trace, args, kwargs)
            return (jacobian, aux) if self._has_aux else jacobian

        return wrapped

    def _recorded(self, trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        count = len(args)
        for i in self._positions:
            if not -count <= i < count:
                rule = f"argnums must be in [{-count}, {count}), the positional arguments"
                raise ShapeError(message(self._what, rule, i))
        positions = [i % count for i in self._positions]
        for i in dict.fromkeys(positions):
            self._check_argument(args, i)

        def of_chosen(*chosen: Any) -> Any:
            given = list(args)
            for i, argument in zip(positions, chosen):
                given[i] = argument
            out = self._fun(*given, **kwargs)
            value, aux = expect_pair(self._what, out) if self._has_aux else (out, None)
            return self._checked_value(trace, value), aux

        chosen = tuple(_lifted(trace, args[i]) for i in positions)
        return self._method(trace, of_chosen, chosen, self._is_single)  # type: ignore[no-any-return]

    def _check_argument(self, args: tuple[Any, ...], i: int) -> None:
        holomorphic, allow_int = self._options
        for leaf, name in zip(flatten(args[i])[0], names_of_argument(self._fun, args, i)):
            dtype = leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype
            if holomorphic and not is_complex(dtype):
                rule = "with holomorphic=True an argument to differentiate by must be complex"
                raise DTypeError(message(self._what, rule, f"{dtype.name} for {name}"))
            if not holomorphic and not (is_float(dtype) or self._takes_all(dtype, allow_int)):
                kind = "a real floating array" if self._what == "jacfwd" else "floating"
                rule = f"an argument to differentiate by must be {kind}"
                way_out = "pass holomorphic=True" if is_complex(dtype) else "convert it with astype"
                raise DTypeError(message(self._what, rule, f"{dtype.name} for {name}", way_out))

    def _takes_all(self, dtype: np.dtype[Any], allow_int: bool) -> bool:
        """Whether reverse mode takes a dtype that is not real and floating: the results are."""
        return self._what == "jacrev" and (allow_int or is_complex(dtype))

    def _checked_value(self, trace: Trace, value: Any) -> Any:
        results = results_of(trace, self._what, value)
        holomorphic, _ = self._options
        for dtype, name in zip(results.types.dtypes, results.types.names):
            if holomorphic and not is_complex(dtype):
                rule = "with holomorphic=True a result must be complex"
                raise DTypeError(message(self._what, rule, f"{dtype.name} for {name}"))
            if self._what == "jacrev" and not holomorphic and not is_float(dtype):
                rule = "a result must be a real floating array"
                way_out = "pass holomorphic=True" if is_complex(dtype) else "return it as aux"
                raise DTypeError(message(self._what, rule, f"{dtype.name} for {name}", way_out))
        return results.tree


def _lifted(trace: Trace, argument: Any) -> Any:
    leaves, structure = flatten(argument)
    return unflatten(structure, [trace.lift(leaf) for leaf in leaves])


def _by_columns(trace: Trace, fun: Callable[..., Any], primals: tuple[Any, ...], is_single: bool) -> tuple[Any, Any]:
    """One pass for each element of the arguments."""
    basis = _basis(trace, primals)
    value, tangents, aux = vmap(lambda t: jvp(fun, primals, t, has_aux=True), out_axes=(None, -1, None))(basis)
    leaves, structure = flatten(tangents)
    inputs, of_inputs = flatten(primals)
    jacobian = []
    for leaf, result in zip(leaves, flatten(value)[0]):
        parts = _split(leaf, [x.shape for x in inputs], leaf.ndim - 1)
        tree = unflatten(of_inputs, [reshape(part, (*result.shape, *x.shape)) for part, x in zip(parts, inputs)])
        jacobian.append(tree[0] if is_single else tree)
    return unflatten(structure, jacobian), aux


def _by_rows(trace: Trace, fun: Callable[..., Any], primals: tuple[Any, ...], is_single: bool) -> tuple[Any, Any]:
    """One pass for each element of the results."""
    value, pull_back, aux = vjp(fun, *primals, has_aux=True)
    outputs, structure = flatten(value)
    gradients = vmap(lambda cotangent: _floats_of(pull_back(cotangent)))(_basis(trace, value))
    inputs, of_inputs = flatten(primals)
    columns: list[list[Any]] = []  # by input
    given = iter(gradients)
    for x in inputs:
        if not (is_float(x.dtype) or is_complex(x.dtype)):
            columns.append([np.zeros((*y.shape, *x.shape), FLOAT0) for y in outputs])
            continue
        parts = _split(next(given), [y.shape for y in outputs], 0)
        columns.append([reshape(part, (*y.shape, *x.shape)) for part, y in zip(parts, outputs)])
    jacobian = []
    for row in zip(*columns):
        tree = unflatten(of_inputs, row)
        jacobian.append(tree[0] if is_single else tree)
    return unflatten(structure, jacobian), aux


def _floats_of(tree: Any) -> list[Any]:
    return [leaf for leaf in flatten(tree)[0] if leaf.dtype != FLOAT0]


def _basis(trace: Trace, tree: Any) -> Any:
    """The rows of an identity matrix over all elements, as trees with a leading dim."""
    leaves, structure = flatten(tree)
    total = sum(math.prod(x.shape) for x in leaves)
    basis, start = [], 0
    for x in leaves:
        size = math.prod(x.shape)
        rows = iota(trace, (total, size), 0)
        columns = iota(trace, (total, size), 1)
        shifted = columns if start == 0 else columns + np.int64(start)
        ones = convert(compare("EQ", rows, shifted), np.dtype(np.float32) if is_complex(x.dtype) else x.dtype)
        basis.append(reshape(convert(ones, x.dtype), (total, *x.shape)))
        start += size
    return unflatten(structure, basis)


def _split(x: Tracer, shapes: Sequence[tuple[int, ...]], dim: int) -> list[Tracer]:
    """The parts of ``dim`` that belong to arrays of these shapes."""
    parts, start = [], 0
    for shape in shapes:
        size = math.prod(shape)
        at: list[slice] = [slice(None)] * x.ndim
        at[dim] = slice(start, start + size)
        parts.append(x[tuple(at)])
        start += size
    return parts
