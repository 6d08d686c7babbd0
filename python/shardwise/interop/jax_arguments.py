# SPDX-License-Identifier: Apache-2.0
"""Which leaf of a program each leaf of a call is. A program has no leaves for static arguments.

program = sw.from_jax(f, static_argnums=1).lower(x, 3).compile()
ProgramArguments(program).places_of("annotate_jax", (x, 3), {})     # [0, None]
"""

from __future__ import annotations

from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from ..errors import ShardingError, described, message
from ..stages import Program
from ..trees import flatten
from .jax_arrays import is_jax_array

__all__ = ["ProgramArguments"]


class _Argument(NamedTuple):
    """An argument of a program or of a call."""

    key: str | None  # of one that is passed by name
    structure: Any
    ndims: tuple[int, ...]  # of the leaves; -1 for one that is neither array nor number
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
        args, kwargs = traced.in_tree.children()
        structures = [*args.children(), *kwargs.children()]
        keys = [*[None] * args.num_children, *kwargs.entries()]
        self._ends = list(accumulate(each.num_leaves for each in structures))
        ndims = [len(aval.shape) for aval in traced.in_avals]
        self._arguments = [
            _Argument(key, each, tuple(ndims[end - each.num_leaves : end]))
            for key, each, end in zip(keys, structures, self._ends)
        ]

    def places_of(self, what: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[int | None]:
        """The leaf of the program for each leaf of ``(args, kwargs)``; None for Python values.

        Raises:
            ShardingError: the arrays are not those of the program.
        """
        given = [_argument(None, value) for value in args] + [_argument(key, kwargs[key]) for key in sorted(kwargs)]
        owners = self._owners(given)
        leaves = flatten((args, kwargs))[0]
        if owners is None:
            rule = f"the arrays must be the {len(self.names)} of the program, {', '.join(self.names)}"
            got = ", ".join(described(leaf) for leaf in leaves if _is_array(leaf))
            raise ShardingError(message(what, rule, got or "none", "pass the arguments that the program was made for"))
        places: list[int | None] = []
        for argument, owner in zip(given, owners):
            count = len(argument.ndims)
            start = 0 if owner is None else self._ends[owner] - count
            places += [None if owner is None else start + i for i in range(count)]
        return [place if _is_array(leaf) else None for leaf, place in zip(leaves, places)]

    def _owners(self, given: list[_Argument]) -> list[int | None] | None:
        """The argument of the program for each one of a call, in order; None for a static one."""

        @cache
        def rest(i: int, k: int) -> list[int | None] | None:
            """The owners of the arguments from ``i``, among those from ``k``."""
            if i == len(given):
                return [] if k == len(self._arguments) else None
            if k < len(self._arguments) and given[i].fits(self._arguments[k]):
                owners = rest(i + 1, k + 1)
                if owners is not None:
                    return [k, *owners]
            owners = None if given[i].has_arrays else rest(i + 1, k)
            return None if owners is None else [None, *owners]

        return rest(0, 0)


def _argument(key: str | None, value: Any) -> _Argument:
    leaves, structure = flatten(value)
    return _Argument(key, structure, tuple(map(_ndim, leaves)), any(map(_is_array, leaves)))


def _ndim(leaf: Any) -> int:
    return len(leaf.shape) if _is_array(leaf) else 0 if isinstance(leaf, (bool, int, float, complex)) else -1


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (np.ndarray, np.generic)) or is_jax_array(leaf)
