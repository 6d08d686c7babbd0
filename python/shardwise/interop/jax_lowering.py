# SPDX-License-Identifier: Apache-2.0
"""Functions of JAX as StableHLO text, with the gradients of JAX.

    function = FlatFunction("f", f, (jax.ShapeDtypeStruct((4,), "float32"),))
    function.text                  # "module @jit_f { func.func public @main … }"
    function.derivative.forward    # x → f(x), residuals: a FlatFunction, so that it can be differentiated again

A text has lost the rules of `jax.custom_vjp` and the like, so `jax.vjp` is lowered to texts of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..process.traceback_filtering import HIDDEN
from ..shardings.mesh import Mesh
from ..user_code.discarded import warn_of_discarded
from .jax_calls import Origin, with_parameters
from .jax_constants import with_outer_constants
from .jax_errors import export_error, refuse_callbacks, refuse_captured_results, refuse_leaked_tracers
from .jax_types import explicit_sharding
from .jaxprs import discarded_constraints, equations, mesh_of, named_call, rewritten
from .optional import jax
from .random_keys import without_keys

__all__ = ["Derivative", "FlatFunction", "canonical_dtype", "shape_of", "with_device_ids"]

_PLATFORMS = ("tpu", "cpu")  # on TPUs, linear algebra is not a call of LAPACK
_LARGEST_CONSTANT = 16  # elements; a larger one is an operand of its own
_PLACE = re.compile(r'loc\("([^"]*)":\d+:\d+(?: to (?:\d+)?:\d+)?\)')
_POSITIONS = "shardwise.positions = true"
_COLLECTIVE = re.compile(r'("stablehlo\.(?:all_|collective_|reduce_scatter)\w*"\([^\n]*?\) <\{)')
_DEVICE_NUMBER = re.compile(r"(= stablehlo\.partition_id)(?= :)")
_MESH = re.compile(r"^(\s*sdy\.mesh @.* = <\[[^\]]*\])>", re.MULTILINE)


def canonical_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of JAX's arrays for this one: float32 for float64, unless x64 is enabled."""
    found: np.dtype[Any] = np.dtype(jax.dtypes.canonicalize_dtype(dtype))
    return found


def shape_of(shape: tuple[int, ...], dtype: np.dtype[Any], weak: bool, sharding: Any = None) -> Any:
    """JAX's description of an argument. ``sharding`` is part of its type: with explicit axes, or in another memory."""
    return jax.ShapeDtypeStruct(shape, dtype, weak_type=weak, sharding=sharding)


def _explicit(x: Any) -> Any:
    """JAX's description of an array or a result, with explicit axes, in the memory of its devices."""
    sharding = explicit_sharding(jax.typeof(x).sharding if isinstance(x, jax.Array) else getattr(x, "sharding", None))
    if sharding is not None and sharding.memory_kind is not None:
        sharding = sharding.with_memory_kind(None)
    weak = isinstance(x, jax.ShapeDtypeStruct) and x.weak_type
    return jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=weak, sharding=sharding)


class FlatFunction:
    """A function of array leaves, at fixed shapes.

    Args:
        name: the name of the computation.
        fun: the function.
        avals: JAX's descriptions of its arguments.
        origin: the user's function, for errors of JAX.
        mesh: the mesh of shardings that name axes, but no devices.

    Attributes:
        constants: the larger arrays that it closes over, as its first operands.
        donated: the arguments that it donates if it is a jitted function, by position among ``avals``.
        in_avals, out_avals: shapes and dtypes of all operands, and of all results.
        out_tree: JAX's structure of the results.
    """

    def __init__(
        self, name: str, fun: Callable[..., Any], avals: Sequence[Any], origin: Origin, mesh: Mesh | None
    ) -> None:
        self.name = name
        self.origin = origin

        def traced(*leaves: Any) -> Any:
            results = without_keys(fun(*leaves))
            refuse_captured_results(jax.tree.leaves(results))
            return results

        named, arguments = with_parameters(traced, origin, avals)
        closed, shapes = jax.make_jaxpr(named, return_shape=True)(*arguments)
        closed = with_outer_constants(closed)
        refuse_leaked_tracers(closed.consts)
        leaves, self.out_tree = jax.tree.flatten(shapes)
        self.mesh = mesh_of(closed.jaxpr) or mesh
        self.donated = _donated(closed.jaxpr)
        is_operand = [_is_large(value) for value in closed.consts]
        self.constants = [np.asarray(value) for value, large in zip(closed.consts, is_operand) if large]
        self._small = [None if large else value for value, large in zip(closed.consts, is_operand)]
        self._jaxpr = closed.jaxpr
        constants = [value for value, large in zip(closed.consts, is_operand) if large]
        self.in_avals = [*map(_explicit, constants), *map(_explicit, avals)]
        self.out_avals = leaves

    def _run(self, jaxpr: Any, operands: Sequence[Any]) -> list[Any]:
        given = iter(operands)
        constants = [next(given) if value is None else value for value in self._small]
        return list(jax.core.eval_jaxpr(jaxpr, constants, *given))

    def __call__(self, *operands: Any) -> list[Any]:
        """The result leaves, in JAX."""
        return self._run(self._jaxpr, operands)

    def warn_of_discarded(self) -> None:
        """Warn of sharding constraints that the user wrote and discarded."""
        for call, name in discarded_constraints(self._jaxpr).items():
            warn_of_discarded(call, name, f"x = {name}(x, …)")

    @cached_property
    def text(self) -> str:
        """StableHLO with locations. The operands and results of its main are those of the function."""
        refuse_callbacks(self._jaxpr)
        named = rewritten(self._jaxpr, named_call)

        def run(*operands: Any) -> list[Any]:
            return self._run(named, operands)

        platforms = _platforms_of(self._jaxpr)
        lowered = _lowered(jax.jit(run, keep_unused=True).trace(*self.in_avals), platforms)
        return _without_own_places(with_device_ids(str(lowered.as_text(debug_info=True)), self.mesh))

    @cached_property
    def derivative(self) -> Derivative:
        """The gradient by `jax.vjp`."""
        return _derivative_of(self)


def _platforms_of(jaxpr: Any) -> list[str]:
    """The platforms to lower a jaxpr for, best first: those that all its functions of `jax.export` have code for."""
    platforms = list(_PLATFORMS)
    for eqn in equations(jaxpr):
        if eqn.primitive.name != "call_exported":
            continue
        exported = eqn.params["exported"]
        if jax.export.DisabledSafetyCheck.platform() in exported.disabled_safety_checks:
            continue
        platforms = [platform for platform in platforms if platform in exported.platforms]
        if not platforms:
            raise export_error(eqn)
    return platforms


def _lowered(traced: Any, platforms: list[str]) -> Any:
    """A traced function of JAX, lowered for the first platform that has rules for all its ops."""
    first, *others = platforms
    try:
        return traced.lower(lowering_platforms=(first,))
    except NotImplementedError:  # an op without a rule for TPUs, such as eig
        if not others:
            raise
        return _lowered(traced, others)


def _donated(jaxpr: Any) -> list[int]:
    """The arguments that the first jitted function in a jaxpr donates."""
    given = next((eqn for eqn in jaxpr.eqns if any(eqn.params.get("donated_invars", ()))), None)
    if given is None:
        return []
    donated = [x for x, own in zip(given.invars, given.params["donated_invars"]) if own]
    return [i for i, x in enumerate(jaxpr.invars) if any(x is each for each in donated)]


def _is_large(value: Any) -> bool:
    return not jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended) and np.size(value) > _LARGEST_CONSTANT


def with_device_ids(text: str, mesh: Mesh | None) -> str:
    """A text of JAX, which has no device ids, with those of ``mesh`` in all meshes of as many devices.

    `sdy.mesh @mesh = <["x"=2]>` becomes `sdy.mesh @mesh = <["x"=2], device_ids=[1, 0]>`. The ids in JAX's collectives
    are positions in the mesh: these ops are marked with `shardwise.positions`.
    """
    ids = () if mesh is None else mesh._core.device_ids
    if not ids:
        return text

    def completed(found: re.Match[str]) -> str:
        count = math.prod(int(size) for size in re.findall(r'"=(\d+)', found[1]))
        return f"{found[1]}, device_ids={list(ids)}>" if count == len(ids) else found[0]

    text = _COLLECTIVE.sub(rf"\1{_POSITIONS}, ", _MESH.sub(completed, text))
    return _DEVICE_NUMBER.sub(rf"\1 {{{_POSITIONS}}}", text)


def _without_own_places(text: str) -> str:
    """A text of JAX with unknown locations for those in our files: JAX takes frames of ours for the user's.

    The ops are then located at the line of the user's program that calls the function of JAX.
    """
    return _PLACE.sub(lambda found: "loc(unknown)" if found[1].startswith(HIDDEN) else found[0], text)


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

    names = [f"constant{i}" for i in range(len(function.constants))]
    origin = Origin(function.origin.function, [*names, *function.origin.names])
    made = FlatFunction(f"{function.name}_forward", forward, function.in_avals, origin, function.mesh)
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
    avals = [_explicit(x).update(weak_type=False) for x in [*made.out_avals[count:], *cotangents]]
    origin = Origin(function.origin.function, [])  # residuals have no names
    pulled = FlatFunction(f"{function.name}_backward", backward, avals, origin, function.mesh)
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
