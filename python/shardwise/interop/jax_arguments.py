# SPDX-License-Identifier: Apache-2.0
"""Which leaf of a program each leaf of a call is. A program has no leaves for static arguments.

program = sw.from_jax(f, static_argnums=1).lower(x, 3).compile()
ProgramArguments(program).places_of("annotate_jax", (x, 3), {})     # [0, None]
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..errors import ShardingError, composed, described
from ..programs.stages import Program
from ..trees import flatten, unflatten
from .jax_arrays import is_jax_array
from .jax_errors import users_place

__all__ = ["ProgramArguments"]


class _Argument(NamedTuple):
    """An argument of a program or of a call."""

    key: str | None  # of one that is passed by name
    structure: Any
    ndims: tuple[int, ...]  # of the leaves; -1 for one that is neither array nor number
    places: tuple[int, ...] = ()  # of the leaves in the program
    has_arrays: bool = True

    def fits(self, other: _Argument) -> bool:
        same_name = self.key is None or other.key is None or self.key == other.key
        return same_name and self.structure == other.structure and self.ndims == other.ndims


class ProgramArguments:
    """The arguments of a program.

    Attributes:
        names: the name of each leaf.
    """

    def __init__(self, program: Program) -> None:
        traced = program._traced
        self.names = traced.in_names
        args, kwargs = unflatten(traced.in_tree, range(len(self.names)))
        ndims = [len(aval.shape) for aval in traced.in_avals]
        self._arguments = []
        for key, value in _with_names(args, kwargs):
            places, structure = flatten(value)
            self._arguments.append(_Argument(key, structure, tuple([ndims[i] for i in places]), tuple(places)))

    def places_of(self, what: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[int | None]:
        """The leaf of the program for each leaf of ``(args, kwargs)``, without keys of JAX; None for Python values.

        Raises:
            ShardingError: the arrays are not those of the program.
        """
        given = [_argument(key, value) for key, value in _with_names(args, kwargs)]
        owners = self._owners(given)
        leaves = flatten((args, kwargs))[0]
        if owners is None:
            rule = f"the arrays must be the {len(self.names)} of the program, {', '.join(self.names)}"
            got = ", ".join(described(leaf) for leaf in leaves if _is_array(leaf))
            way_out = "pass the arguments that the program was made for"
            raise ShardingError(composed(what, rule, got or "none", way_out, *users_place()))
        places: list[int | None] = []
        for argument, owner in zip(given, owners):
            places += [None] * len(argument.ndims) if owner is None else owner.places
        return [place if _is_array(leaf) else None for leaf, place in zip(leaves, places)]

    def _owners(self, given: list[_Argument]) -> list[_Argument | None] | None:
        """The argument of the program for each one of a call, in order; None for a static one."""

        @cache
        def rest(i: int, k: int) -> list[_Argument | None] | None:
            """The owners of the arguments from ``i``, among those from ``k``."""
            if i == len(given):
                return [] if k == len(self._arguments) else None
            if k < len(self._arguments) and given[i].fits(self._arguments[k]):
                owners = rest(i + 1, k + 1)
                if owners is not None:
                    return [self._arguments[k], *owners]
            owners = None if given[i].has_arrays else rest(i + 1, k)
            return None if owners is None else [None, *owners]

        return rest(0, 0)


def _with_names(args: Sequence[Any], kwargs: dict[str, Any]) -> list[tuple[str | None, Any]]:
    """The arguments in the order of their leaves."""
    return [*[(None, value) for value in args], *[(key, kwargs[key]) for key in sorted(kwargs)]]


def _argument(key: str | None, value: Any) -> _Argument:
    leaves, structure = flatten(value)
    return _Argument(key, structure, tuple(map(_ndim, leaves)), has_arrays=any(map(_is_array, leaves)))


def _ndim(leaf: Any) -> int:
    return len(leaf.shape) if _is_array(leaf) else 0 if isinstance(leaf, (bool, int, float, complex)) else -1


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (np.ndarray, np.generic)) or is_jax_array(leaf)
