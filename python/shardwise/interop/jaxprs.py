# SPDX-License-Identifier: Apache-2.0
"""Jaxprs, JAX's programs: their equations, their meshes, and replaced equations."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from ..process.foreign import native
from ..process.traceback_filtering import HIDDEN
from ..shardings.mesh import Mesh
from ..user_code.call_sites import Instruction
from ..user_code.discarded import discarding_call
from .optional import jax

__all__ = [
    "constraint_of_name", "context_mesh", "discarded_constraints", "equations", "mesh_of", "named_call", "rewritten",
    "source_of",
]  # fmt: skip

_NAME_PREFIX = "checkpoint_name:"  # of the function that stands for a checkpoint_name; cpp/…/import_program.h
_CONSTRAINTS = {"sharding_constraint": "with_sharding_constraint", "reshard": "reshard"}  # primitive → function
_MAPS = ("tree.py", "tree_util.py")  # of JAX: jax.tree.map returns what it calls
_OF_CONTEXT = ("context_mesh", "ctx_mesh")  # parameters with the mesh of `jax.set_mesh`


def equations(jaxpr: Any) -> Iterator[Any]:
    """The equations of a jaxpr and of those inside it; those of a jaxpr that is called often, once."""
    for each in _jaxprs(jaxpr, set()):
        yield from each.eqns


def _jaxprs(jaxpr: Any, seen: set[int]) -> Iterator[Any]:
    """A jaxpr and those inside it, each once."""
    if id(jaxpr) in seen:
        return
    seen.add(id(jaxpr))
    yield jaxpr
    for eqn in jaxpr.eqns:
        for param in eqn.params.values():
            for inner in _inner(param):
                yield from _jaxprs(inner, seen)


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


def discarded_constraints(jaxpr: Any) -> dict[Instruction, str]:
    """The calls of the user that discard the result of a sharding constraint, and the constraint's name.

    Transposition, inner jits and `shard_map` make constraints, too, whose results may be unused.
    """
    found = {}
    for each in _jaxprs(jaxpr, set()):
        unused = [eqn for eqn in each.eqns if eqn.primitive.name in _CONSTRAINTS]
        if not unused:
            continue
        reads = Counter(id(x) for eqn in each.eqns for x in eqn.invars) + Counter(map(id, each.outvars))
        for eqn in unused:
            if reads[id(eqn.outvars[0])]:
                continue
            calls = _user_calls(eqn.source_info.traceback)
            i = discarding_call(calls)
            if i is not None and (i == 0 or reads[id(eqn.invars[0])] > 1):
                found[calls[i]] = _CONSTRAINTS[eqn.primitive.name]
    return found


def _user_calls(traceback: Any) -> list[Instruction]:
    """The calls of a traceback of JAX, innermost first, from the user's innermost one to the next one of JAX."""
    if traceback is None:
        return []
    hidden = (*HIDDEN, os.path.join(os.path.dirname(jax.__file__), ""))
    calls: list[Instruction] = []
    for code, offset in zip(*traceback.raw_frames()):
        if not code.co_filename.startswith(hidden):
            calls.append((code, offset))
        elif calls and os.path.basename(code.co_filename) not in _MAPS:
            break
    return calls


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


def source_of(jaxpr: Any, value: Any) -> Any:
    """The value of a jaxpr that a value is equal to because jitted functions return what they are given."""
    made = next((eqn for eqn in jaxpr.eqns if any(value is x for x in eqn.outvars)), None)
    inner = None if made is None else getattr(made.params.get("jaxpr"), "jaxpr", None)
    if made is None or inner is None or "jit" not in made.primitive.name:
        return value
    place = next(i for i, x in enumerate(made.outvars) if x is value)
    returned = source_of(inner, inner.outvars[place])
    for given, argument in zip(made.invars, inner.invars):
        if argument is returned:
            return source_of(jaxpr, given)
    return value
