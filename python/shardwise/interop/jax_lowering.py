# SPDX-License-Identifier: Apache-2.0
"""Functions of JAX as StableHLO text, with the gradients of JAX.

    function = FlatFunction("f", f, (jax.ShapeDtypeStruct((4,), "float32"),))
    function.text                  # "module @jit_f { func.func public @main … }"
    function.derivative.forward    # x → f(x), residuals: a FlatFunction, so that it can be differentiated again

A text has lost the rules of `jax.custom_vjp` and the like, so `jax.vjp` is lowered to texts of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .optional import jax
from .random_keys import without_keys

__all__ = ["Derivative", "FlatFunction", "canonical_dtype", "rewritten", "shape_of"]

_LARGEST_CONSTANT = 16  # elements; a larger one is an operand of its own
_NAME_PREFIX = "checkpoint_name:"  # of the function that stands for a checkpoint_name; cpp/…/import_program.h


def canonical_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of JAX's arrays for this one: float32 for float64, unless x64 is enabled."""
    found: np.dtype[Any] = np.dtype(jax.dtypes.canonicalize_dtype(dtype))
    return found


def shape_of(shape: tuple[int, ...], dtype: np.dtype[Any], weak: bool) -> Any:
    """JAX's description of an argument."""
    return jax.ShapeDtypeStruct(shape, dtype, weak_type=weak)


class FlatFunction:
    """A function of array leaves, at fixed shapes.

    Attributes:
        constants: the larger arrays that it closes over, as its first operands.
        donated: the arguments that it donates if it is a jitted function, by position among ``avals``.
        in_avals, out_avals: shapes and dtypes of all operands, and of all results.
        out_tree: JAX's structure of the results.
    """

    def __init__(self, name: str, fun: Callable[..., Any], avals: Sequence[Any]) -> None:
        self.name = name
        closed, shapes = jax.make_jaxpr(lambda *leaves: without_keys(fun(*leaves)), return_shape=True)(*avals)
        leaves, self.out_tree = jax.tree.flatten(shapes)
        self.donated = _donated(closed.jaxpr)
        is_operand = [_is_large(value) for value in closed.consts]
        self.constants = [np.asarray(value) for value, large in zip(closed.consts, is_operand) if large]
        self._small = [None if large else value for value, large in zip(closed.consts, is_operand)]
        self._jaxpr = closed.jaxpr
        self.in_avals = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in self.constants] + list(avals)
        self.out_avals = leaves

    def _run(self, jaxpr: Any, operands: Sequence[Any]) -> list[Any]:
        given = iter(operands)
        constants = [next(given) if value is None else value for value in self._small]
        return list(jax.core.eval_jaxpr(jaxpr, constants, *given))

    def __call__(self, *operands: Any) -> list[Any]:
        """The result leaves, in JAX."""
        return self._run(self._jaxpr, operands)

    @cached_property
    def text(self) -> str:
        """StableHLO with locations. The operands and results of its main are those of the function."""
        named = rewritten(self._jaxpr, _named_call)

        def run(*operands: Any) -> list[Any]:
            return self._run(named, operands)

        traced = jax.jit(run, keep_unused=True).trace(*self.in_avals)
        try:
            lowered = traced.lower(lowering_platforms=("tpu",))
        except (NotImplementedError, ValueError):  # an op without a rule there, such as eig or a callback
            lowered = traced.lower(lowering_platforms=("cpu",))
        return str(lowered.as_text(debug_info=True))

    @cached_property
    def derivative(self) -> Derivative:
        """The gradient by `jax.vjp`."""
        return _derivative_of(self)


def _donated(jaxpr: Any) -> list[int]:
    """The arguments that the first jitted function in a jaxpr donates."""
    given = next((eqn for eqn in jaxpr.eqns if any(eqn.params.get("donated_invars", ()))), None)
    if given is None:
        return []
    donated = [x for x, own in zip(given.invars, given.params["donated_invars"]) if own]
    return [i for i, x in enumerate(jaxpr.invars) if any(x is each for each in donated)]


def _is_large(value: Any) -> bool:
    return not jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended) and np.size(value) > _LARGEST_CONSTANT


def rewritten(jaxpr: Any, rewrite: Callable[[Any], Any]) -> Any:
    """Replace the equations of ``checkpoint_name`` by ``rewrite(equation)``, in inner jaxprs too."""
    eqns = []
    for eqn in jaxpr.eqns:
        params = {key: _rewritten_param(value, rewrite) for key, value in eqn.params.items()}
        if eqn.primitive.name == "name":
            eqns.append(rewrite(eqn))
        elif any(params[key] is not value for key, value in eqn.params.items()):
            eqns.append(eqn.replace(params=params))
        else:
            eqns.append(eqn)
    return jaxpr if all(new is old for new, old in zip(eqns, jaxpr.eqns)) else jaxpr.replace(eqns=eqns)


def _rewritten_param(param: Any, rewrite: Callable[[Any], Any]) -> Any:
    if isinstance(param, jax.extend.core.ClosedJaxpr):
        inner = rewritten(param.jaxpr, rewrite)
        return param if inner is param.jaxpr else param.replace(jaxpr=inner)
    if isinstance(param, jax.extend.core.Jaxpr):
        return rewritten(param, rewrite)
    if isinstance(param, tuple):
        items = tuple([_rewritten_param(item, rewrite) for item in param])
        return param if all(new is old for new, old in zip(items, param)) else items
    return param


def _named_call(eqn: Any) -> Any:
    """The call of an identity function: a ``checkpoint_name`` has no op in a text."""

    def identity(x: Any) -> Any:
        return x

    identity.__name__ = _NAME_PREFIX + eqn.params["name"]
    aval = eqn.outvars[0].aval
    call = jax.make_jaxpr(jax.jit(identity))(jax.ShapeDtypeStruct(aval.shape, aval.dtype)).jaxpr.eqns[0]
    return eqn.replace(primitive=call.primitive, params=call.params)


@dataclass(frozen=True)
class Derivative:
    """The gradient of a function as two programs.

    Attributes:
        forward: operands → results, then residuals.
        backward: residuals, then the cotangents of the floating results → gradients of the floating operands.
        has_gradient, has_cotangent: which operands and results these are.
    """

    forward: FlatFunction
    backward: FlatFunction
    has_gradient: list[bool]
    has_cotangent: list[bool]


def _derivative_of(function: FlatFunction) -> Derivative:
    has_gradient = [_is_inexact(aval) for aval in function.in_avals]
    has_cotangent = [_is_inexact(aval) for aval in function.out_avals]
    residuals: list[Any] = []  # the structure of the residuals, once the forward function is traced

    def forward(*operands: Any) -> list[Any]:
        def of_floats(*floats: Any) -> list[Any]:
            values = iter(floats)
            return function(*[next(values) if own else x for own, x in zip(has_gradient, operands)])

        results, pull_back = jax.vjp(of_floats, *[x for own, x in zip(has_gradient, operands) if own])
        leaves, tree = jax.tree.flatten(pull_back)
        residuals[:] = [tree, [_key_of(leaf) for leaf in leaves]]
        return [*results, *map(_plain, leaves)]

    made = FlatFunction(f"{function.name}_forward", forward, function.in_avals)
    tree, keys = residuals
    count = len(function.out_avals)

    def backward(*operands: Any) -> list[Any]:
        leaves = [x if wrap is None else wrap(x) for x, wrap in zip(operands, keys)]
        cotangents = iter(operands[len(keys) :])
        given = [
            next(cotangents) if own else np.zeros(aval.shape, jax.dtypes.float0)
            for own, aval in zip(has_cotangent, function.out_avals)
        ]
        return list(jax.tree.unflatten(tree, leaves)(given))

    cotangents = [aval for aval, own in zip(function.out_avals, has_cotangent) if own]
    avals = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in [*made.out_avals[count:], *cotangents]]
    pulled = FlatFunction(f"{function.name}_backward", backward, avals)
    return Derivative(made, pulled, has_gradient, has_cotangent)


def _is_inexact(aval: Any) -> bool:
    return bool(jax.numpy.issubdtype(aval.dtype, jax.numpy.inexact))


def _key_of(leaf: Any) -> Callable[[Any], Any] | None:
    """The way back from the numbers of a random key; None for an array."""
    if not jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return None
    implementation = jax.random.key_impl(leaf)
    return lambda x: jax.random.wrap_key_data(x, impl=implementation)


def _plain(leaf: Any) -> Any:
    return leaf if _key_of(leaf) is None else jax.random.key_data(leaf)
