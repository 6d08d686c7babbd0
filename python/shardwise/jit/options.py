# SPDX-License-Identifier: Apache-2.0
"""The options of :func:`shardwise.jit`, checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

import numpy as np

from ..errors import ShardingError, message
from ..mesh import Mesh
from ..module import checked_rule
from ..op_rules import ShardingRule
from ..propagation_options import Strategy

__all__ = ["JitOptions", "checked_rules", "parameter_positions", "static_both_ways", "static_names"]


class JitOptions(TypedDict, total=False):
    """The keyword arguments of :func:`shardwise.jit`."""

    mesh: Mesh | None
    in_shardings: Any
    out_shardings: Any
    static_argnums: int | Sequence[int] | None
    static_argnames: str | Sequence[str] | None
    strategy: Strategy | None
    conservative: bool | None
    strict_divisible: bool | None
    sharding_rules: Mapping[str, ShardingRule | str] | None


def parameter_positions(what: str, option: str, value: Any, option_of_names: str = "") -> tuple[int, ...]:
    """The value of an option that counts parameters from 0: one integer or several; TypeError for anything else."""
    several = value if isinstance(value, (tuple, list, set, frozenset, range)) else (value,)
    if not all(isinstance(i, (int, np.integer)) and not isinstance(i, bool) for i in several):
        way_out = "count the positional arguments from 0"
        if option_of_names and several and all(isinstance(name, str) for name in several):
            way_out = f"write {option_of_names}={value!r}"
        raise TypeError(message(what, f"{option} must be an integer or a sequence of integers", repr(value), way_out))
    return tuple(int(i) for i in several)


def static_names(value: Any) -> tuple[str, ...]:
    """The value of ``static_argnames``: one name or several; TypeError for anything else."""
    several = value if isinstance(value, (tuple, list, set, frozenset)) else (value,)
    if not all(isinstance(name, str) for name in several):
        are_positions = all(isinstance(i, (int, np.integer)) and not isinstance(i, bool) for i in several)
        way_out = f"write static_argnums={value!r}" if are_positions else "write the names of parameters"
        raise TypeError(message("jit", "static_argnames must be a name or a sequence of names", repr(value), way_out))
    return tuple(several)


def static_both_ways(fun: Callable[..., Any], nums: set[int], names: set[str]) -> tuple[set[int], set[str]]:
    """Static arguments by position and by name, however they were given, as JAX infers them."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return nums, names
    kinds = {p.kind for p in parameters}
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        for i in nums:
            if not -len(positional) <= i < len(positional):
                raise ValueError(message("jit", f"static_argnums must be below the {len(positional)} parameters", i))
        nums = {i % len(positional) for i in nums}
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        for name in sorted(names - {p.name for p in parameters}):
            raise ValueError(message("jit", "static_argnames must name parameters", repr(name)))
    by_position = {positional[i] for i in nums if 0 <= i < len(positional)}
    return nums | {positional.index(n) for n in names if n in positional}, names | by_position


def checked_rules(rules: Any) -> dict[str, ShardingRule]:
    """The value of ``sharding_rules``, parsed; ShardingError if it is no mapping from op names to rules."""
    if not isinstance(rules, Mapping) or not all(isinstance(op, str) for op in rules):
        rule = "sharding_rules must be a mapping from names of ops to rules"
        raise ShardingError(message("jit", rule, repr(rules), "write {'dot_general': 'i j, j k -> i k'}"))
    return {op: checked_rule("jit", rule) for op, rule in rules.items()}
