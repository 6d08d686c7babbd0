# SPDX-License-Identifier: Apache-2.0
"""A target of programs, with its table of emissions: how each op of a local program is written for it.

    @JAX.emits("stablehlo.transpose")
    def transpose(scope: Scope, op: Op) -> str:
        return f"lax.transpose({scope(op.operands[0])}, {attributes(op)['permutation']})"

An emission returns the expression of the results, or "" if it has written statements and named the results itself. The
modules of a target's package fill its table, one per family of ops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..._core.ir import Op

if TYPE_CHECKING:
    from .scope import Scope
    from .script import Script

__all__ = ["Target", "attributes"]

Emission = Callable[["Scope", Op], str]
_E = TypeVar("_E", bound=Callable[..., Any])

_OF_GLOBAL_PROGRAMS = (
    "sdy.sharding_constraint", "sdy.reshard", "sdy.data_flow_edge", "sdy.func_data_flow_edge",
    "sdy.propagation_barrier", "sdy.sharding_group", "sdy.all_gather", "sdy.all_slice", "sdy.all_to_all",
    "sdy.collective_permute", "sdy.all_reduce", "sdy.reduce_scatter",
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A library that programs are written for.

    Attributes:
        name: as in ``to_source("jax")``.
        caller: the function that errors name.
        library: what the emissions call.
        dtypes: the module with the dtypes that NumPy lacks.
        full: the function that makes an array of one value.
        arrays: for errors, what arguments have in common with its arrays.
        helpers: files with functions that scripts use.
        always: those that every script uses.
        head: the text above the definitions of a script.
        main: the text of its ``main``.
        refused: runnable ops without an emission, and the reason.
        way_out: for errors, where such a program runs.
        missing_dtypes: those that the library lacks.
    """

    name: str
    caller: str
    library: str
    dtypes: str
    full: str
    arrays: str
    helpers: tuple[Path, ...]
    always: tuple[str, ...]
    head: Callable[[Script], str]
    main: Callable[[Script], str]
    refused: dict[str, str]
    way_out: str
    missing_dtypes: tuple[str, ...] = ()
    emissions: dict[str, Emission] = field(default_factory=dict)

    def __post_init__(self) -> None:
        reason = "it is an op of global programs, which the partitioner replaces"
        self.refused.update(dict.fromkeys(_OF_GLOBAL_PROGRAMS, reason))

    def emits(self, *names: str) -> Callable[[_E], _E]:
        """Make the decorated function the emission of these ops."""

        def register(emission: _E) -> _E:
            self.emissions.update(dict.fromkeys(names, emission))
            return emission

        return register


class HasAttributes(Protocol):
    """An op, or a part of one."""

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes by name."""


def attributes(op: HasAttributes) -> dict[str, Any]:
    """The attributes of an op, whose types its definition checks."""
    return op.attributes
