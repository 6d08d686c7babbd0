# SPDX-License-Identifier: Apache-2.0
"""Constants of nested jaxprs as those of the outermost one: a jitted function holds the arrays that it closes over.

    { lambda ; a. let b = jit[jaxpr={ lambda c; d. let e = add d c in (e,) }] a in (b,) }
    { lambda c; a. let b = jit[jaxpr={ lambda ; c d. let e = add d c in (e,) }] c a in (b,) }

In a text they would be literals, one in each place. What holds a jaxpr in a parameter that is not listed here keeps
its constants.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from .optional import jax

__all__ = ["with_outer_constants"]

Constants = dict[Any, Any]  # variable → array


def with_outer_constants(closed: Any) -> Any:
    """An equal closed jaxpr, which has the constants of the jaxprs inside it."""
    known: Constants = dict(zip(closed.jaxpr.constvars, closed.consts))
    jaxpr, found = _lifted(closed.jaxpr)
    if not found:
        return closed
    constants = known | found
    jaxpr = jaxpr.replace(constvars=list(constants))
    return jax.extend.core.ClosedJaxpr(jaxpr, list(constants.values()))


def _lifted(jaxpr: Any) -> tuple[Any, Constants]:
    """The jaxpr with free variables in place of the constants inside it, and these constants."""
    found: Constants = {}
    eqns = []
    for eqn in jaxpr.eqns:
        lift = _LIFTS.get(eqn.primitive.name)
        changed, constants = (eqn, {}) if lift is None else lift(eqn)
        eqns.append(changed)
        found |= constants
    return (jaxpr.replace(eqns=eqns), found) if found else (jaxpr, found)


def _closed(closed: Any) -> tuple[Any, Constants]:
    """A closed jaxpr without constants of its own, which reads them as free variables, and these constants."""
    jaxpr, found = _lifted(closed.jaxpr)
    return jaxpr, dict(zip(closed.jaxpr.constvars, closed.consts)) | found


def _taking(jaxpr: Any, variables: list[Any]) -> Any:
    """A closed jaxpr that takes these variables as its first arguments."""
    invars = [*variables, *jaxpr.invars]
    # Names of arguments would be too few.
    return jax.extend.core.ClosedJaxpr(
        jaxpr.replace(constvars=[], invars=invars, debug_info=jaxpr.debug_info.with_unknown_names()), []
    )


def _lift_jit(eqn: Any) -> tuple[Any, Constants]:
    jaxpr, found = _closed(eqn.params["jaxpr"])
    if not found:
        return eqn, found
    count = len(found)
    fresh = {"donated_invars": False, "in_shardings": _unspecified(), "in_layouts": None}
    params = {name: (value,) * count + tuple(eqn.params[name]) for name, value in fresh.items() if name in eqn.params}
    params["jaxpr"] = _taking(jaxpr, list(found))
    return eqn.replace(invars=[*found, *eqn.invars], params={**eqn.params, **params}), found


@cache
def _unspecified() -> Any:
    """The sharding of an argument of `jax.jit` that has none; it has no public name."""
    shape = jax.ShapeDtypeStruct((), "float32")
    return jax.make_jaxpr(jax.jit(lambda x: x))(shape).jaxpr.eqns[0].params["in_shardings"][0]


def _lift_checkpoint(eqn: Any) -> tuple[Any, Constants]:
    jaxpr, found = _lifted(eqn.params["jaxpr"])
    if not found:
        return eqn, found
    inner = _taking(jaxpr, list(found)).jaxpr
    return eqn.replace(invars=[*found, *eqn.invars], params={**eqn.params, "jaxpr": inner}), found


def _lift_scan(eqn: Any) -> tuple[Any, Constants]:
    jaxpr, found = _closed(eqn.params["jaxpr"])
    if not found:
        return eqn, found
    params = {
        "jaxpr": _taking(jaxpr, list(found)),
        "num_consts": eqn.params["num_consts"] + len(found),
    }
    if "linear" in eqn.params:  # before JAX 0.10
        params["linear"] = (False,) * len(found) + tuple(eqn.params["linear"])
    return eqn.replace(invars=[*found, *eqn.invars], params={**eqn.params, **params}), found


def _lift_cond(eqn: Any) -> tuple[Any, Constants]:
    branches = [_closed(branch) for branch in eqn.params["branches"]]
    found: Constants = {}
    for _, constants in branches:
        found |= constants
    if not found:
        return eqn, found
    taking = tuple([_taking(jaxpr, list(found)) for jaxpr, _ in branches])
    index, *operands = eqn.invars
    return eqn.replace(invars=[index, *found, *operands], params={**eqn.params, "branches": taking}), found


def _lift_while(eqn: Any) -> tuple[Any, Constants]:
    params = eqn.params
    (condition, of_condition), (body, of_body) = _closed(params["cond_jaxpr"]), _closed(params["body_jaxpr"])
    if not of_condition and not of_body:
        return eqn, {}
    first = params["cond_nconsts"]
    changed = {
        "cond_jaxpr": _taking(condition, list(of_condition)),
        "body_jaxpr": _taking(body, list(of_body)),
        "cond_nconsts": first + len(of_condition),
        "body_nconsts": params["body_nconsts"] + len(of_body),
    }
    invars = [*of_condition, *eqn.invars[:first], *of_body, *eqn.invars[first:]]
    return eqn.replace(invars=invars, params={**params, **changed}), of_condition | of_body


_LIFTS: dict[str, Callable[[Any], tuple[Any, Constants]]] = {
    "jit": _lift_jit,
    "pjit": _lift_jit,  # before JAX 0.7
    "checkpoint": _lift_checkpoint,
    "remat2": _lift_checkpoint,
    "scan": _lift_scan,
    "cond": _lift_cond,
    "while": _lift_while,
}
