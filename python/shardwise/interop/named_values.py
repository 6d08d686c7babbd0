# SPDX-License-Identifier: Apache-2.0
"""Which value of a program each `checkpoint_name` of a function of JAX is.

h = checkpoint_name(jnp.sin(x), "h")        %1 loc("h")         the first one
h = checkpoint_name(h @ w, "h")             %2 loc("h_0")       the second one: MLIR makes names unique
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from .. import _core
from ..errors import ShardingError, composed
from .jax_errors import users_place
from .jaxprs import equations

__all__ = ["NamedValue", "named_values", "shardings_by_equation"]


class NamedValue(NamedTuple):
    """A value of a propagated program."""

    name: str
    sharding: Any
    shape: tuple[int, ...]
    line: str


def named_values(module: _core.ir.Module) -> list[NamedValue]:
    """The values with a name and a sharding, also in regions and in functions that are called."""
    return [value for function in module.functions for value in _of_region(function.body)]


def _of_region(region: _core.ir.Region) -> Iterator[NamedValue]:
    for op in region.ops:
        for value in op.results:
            if value.name and value.sharding is not None:
                line = f"{op.location.file}:{op.location.line}"
                yield NamedValue(value.name, value.sharding, tuple(value.type.shape), line)
        for inner in op.regions:
            yield from _of_region(inner)


def shardings_by_equation(jaxpr: Any, values: list[NamedValue]) -> dict[int, Any]:
    """The sharding of the value that each equation of a `checkpoint_name` makes, by the equation's id.

    A name that is used several times stands for its values in their order. ShardingError if they do not correspond,
    unless all have one sharding.
    """
    named: dict[str, list[Any]] = {}
    for eqn in equations(jaxpr):
        if eqn.primitive.name == "name":
            named.setdefault(eqn.params["name"], []).append(eqn)
    found: dict[int, Any] = {}
    for name, eqns in named.items():
        own = sorted(_of_name(name, values, named.keys()), key=lambda value: _number(name, value))
        shardings = [value.sharding for value in own]
        shapes = [tuple(eqn.outvars[0].aval.shape) for eqn in eqns]
        if shapes != [value.shape for value in own]:
            is_one = all(s == shardings[0] for s in shardings) and len({len(shape) for shape in shapes}) == 1
            if own and not (is_one and len(shapes[0]) == len(own[0].shape)):
                rule = f"name {name!r} must stand for the same values in the function and in the program"
                lines = ", ".join(value.line for value in own)
                got = f"{len(eqns)} in the function, {len(own)} in the program: {lines}"
                way_out = "give each value a name of its own"
                raise ShardingError(composed("annotate_jax", rule, got, way_out, *users_place()))
            shardings = shardings[:1] * len(eqns)
        found |= {id(eqn): sharding for eqn, sharding in zip(eqns, shardings)}
    return found


def _of_name(name: str, values: list[NamedValue], names: Any) -> Iterator[NamedValue]:
    """The values of a name: it, or made unique by a number, which is no name of another equation."""
    for value in values:
        if value.name == name or (value.name not in names and _number(name, value) >= 0):
            yield value


def _number(name: str, value: NamedValue) -> int:
    """The number that makes a name unique; -1 without one."""
    match = re.fullmatch(re.escape(name) + r"_(\d+)", value.name)
    return int(match[1]) if match else -1
