# SPDX-License-Identifier: Apache-2.0
"""Jaxprs, JAX's programs: their equations, their meshes, and replaced equations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..process.foreign import native
from ..shardings.mesh import Mesh
from .optional import jax

__all__ = ["constraint_of_name", "context_mesh", "equations", "mesh_of", "named_call", "rewritten"]

_NAME_PREFIX = "checkpoint_name:"  # of the function that stands for a checkpoint_name; cpp/…/import_program.h
_OF_CONTEXT = ("context_mesh", "ctx_mesh")  # parameters with the mesh of `jax.set_mesh`


def equations(jaxpr: Any) -> Iterator[Any]:
    """The equations of a jaxpr and of those inside it; those of a jaxpr that is called often, once."""
    yield from _equations(jaxpr, set())


def _equations(jaxpr: Any, seen: set[int]) -> Iterator[Any]:
    if id(jaxpr) in seen:
        return
    seen.add(id(jaxpr))
    for eqn in jaxpr.eqns:
        yield eqn
        for param in eqn.params.values():
            for inner in _inner(param):
                yield from _equations(inner, seen)


def _inner(param: Any) -> Iterator[Any]:
    if isinstance(param, jax.extend.core.ClosedJaxpr):
        yield param.jaxpr
    elif isinstance(param, jax.extend.core.Jaxpr):
        yield param
    elif isinstance(param, (tuple, list)):
        for item in param:
            yield from _inner(item)


def mesh_of(jaxpr: Any) -> Mesh | None:
    """The first mesh with devices among the shardings of a jaxpr. JAX gives all of them the same order of devices."""
    for eqn in equations(jaxpr):
        for name, param in eqn.params.items():
            if name not in _OF_CONTEXT:
                for mesh in _meshes(param):
                    return mesh
    return None


def _meshes(param: Any) -> Iterator[Mesh]:
    if isinstance(param, jax.sharding.NamedSharding):
        yield from _meshes(param.mesh)
    elif isinstance(param, jax.sharding.Mesh) and not param.empty:
        yield native(param)
    elif isinstance(param, (tuple, list)):
        for item in param:
            yield from _meshes(item)


def context_mesh() -> Mesh | None:
    """The mesh of `jax.set_mesh`, whose devices are those of shardings without a mesh of their own."""
    read = getattr(jax.sharding, "get_mesh", None)  # not in the oldest version
    try:
        return None if read is None else next(_meshes(read()), None)
    except ValueError:  # in a function that JAX traces
        return None


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


def named_call(eqn: Any) -> Any:
    """The call of an identity function: a ``checkpoint_name`` has no op in StableHLO text."""

    def identity(x: Any) -> Any:
        return x

    identity.__name__ = _NAME_PREFIX + eqn.params["name"]
    return _with_ops_of(eqn, jax.jit(identity))


def constraint_of_name(eqn: Any, sharding: Any) -> Any:
    """The equation of a ``checkpoint_name`` as a sharding constraint."""
    return _with_ops_of(eqn, lambda x: jax.lax.with_sharding_constraint(x, sharding))


def _with_ops_of(eqn: Any, function: Callable[[Any], Any]) -> Any:
    """The equation with the primitive of a function of one equation."""
    aval = eqn.outvars[0].aval
    made = jax.make_jaxpr(function)(jax.ShapeDtypeStruct(aval.shape, aval.dtype)).jaxpr.eqns[0]
    return eqn.replace(primitive=made.primitive, params=made.params)
