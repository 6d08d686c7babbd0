# SPDX-License-Identifier: Apache-2.0
"""The table of emissions: how each op of a local program is written with `jax.lax`.

    @emits("stablehlo.transpose")
    def transpose(scope: Scope, op: Op) -> str:
        return f"lax.transpose({scope(op.operands[0])}, {attributes(op)['permutation']})"

An emission returns the expression of the results. The modules of this package fill the table, one per family of ops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ..._core.ir import Op

if TYPE_CHECKING:
    from .scope import Scope

__all__ = ["EMISSIONS", "REFUSED", "attributes", "emits"]

Emission = Callable[["Scope", Op], str]
_E = TypeVar("_E", bound=Callable[..., Any])

EMISSIONS: dict[str, Emission] = {}
_OF_GLOBAL_PROGRAMS = (
    "sdy.sharding_constraint", "sdy.reshard", "sdy.data_flow_edge", "sdy.func_data_flow_edge",
    "sdy.propagation_barrier", "sdy.sharding_group", "sdy.all_gather", "sdy.all_slice", "sdy.all_to_all",
    "sdy.collective_permute", "sdy.all_reduce", "sdy.reduce_scatter",
)  # fmt: skip
REFUSED: dict[str, str] = {
    **dict.fromkeys(_OF_GLOBAL_PROGRAMS, "it is an op of global programs, which the partitioner replaces"),
    "stablehlo.select_and_scatter": "JAX has no public function for it",
    "stablehlo.custom_call": "it calls a function of one engine",
}
"""Runnable ops without an emission, and the reason."""


def attributes(op: Op) -> dict[str, Any]:
    """The attributes of an op, whose types its definition checks."""
    return op.attributes


def emits(*names: str) -> Callable[[_E], _E]:
    """Make the decorated function the emission of these ops."""

    def register(emission: _E) -> _E:
        EMISSIONS.update(dict.fromkeys(names, emission))
        return emission

    return register
