# SPDX-License-Identifier: Apache-2.0
"""The options of :func:`shardwise.jit`, checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ShardingError, message
from ..mesh import Mesh
from ..module import checked_rule
from ..op_rules import ShardingRule
from ..propagation_options import DEFAULTS, PropagationKeywords, PropagationOptions, checked_options, options_among
from ..sharding import UNSPECIFIED

__all__ = [
    "UNSPECIFIED_OPTIONS",
    "JitOptions",
    "both_ways",
    "check_disjoint",
    "checked_rules",
    "parameter_positions",
    "propagation_choices",
]


class JitOptions(PropagationKeywords, total=False):
    """The keyword arguments of :func:`shardwise.jit`."""

    mesh: Mesh | None
    in_shardings: Any
    out_shardings: Any
    static_argnums: int | Sequence[int] | None
    static_argnames: str | Sequence[str] | None
    donate_argnums: int | Sequence[int] | None
    donate_argnames: str | Sequence[str] | None
    sharding_rules: Mapping[str, ShardingRule | str] | None


UNSPECIFIED_OPTIONS: Any = {
    "mesh": None,
    "in_shardings": UNSPECIFIED,
    "out_shardings": UNSPECIFIED,
    "static_argnums": (),
    "static_argnames": (),
    "donate_argnums": (),
    "donate_argnames": (),
    "sharding_rules": None,
    **dict.fromkeys(PropagationKeywords.__annotations__),
}


def propagation_choices(given: JitOptions) -> tuple[PropagationOptions, dict[str, ShardingRule], JitOptions]:
    """How a program is propagated, its sharding rules, and those of these options that the user specified."""
    asked = options_among(given)
    how = checked_options("jit", DEFAULTS, **asked)
    rules = {} if given["sharding_rules"] is None else checked_rules(given["sharding_rules"])
    stated: Any = {name: getattr(how, name) for name, value in asked.items() if value is not None}
    if given["sharding_rules"] is not None:
        stated["sharding_rules"] = rules
    return how, rules, stated


def parameter_positions(what: str, option: str, value: Any, option_of_names: str = "") -> tuple[int, ...]:
    """Normalize an option of parameter positions to a tuple. TypeError unless it is one integer or several."""
    several = value if isinstance(value, (tuple, list, set, frozenset, range)) else (value,)
    if not all(isinstance(i, (int, np.integer)) and not isinstance(i, bool) for i in several):
        way_out = "count the positional arguments from 0"
        if option_of_names and several and all(isinstance(name, str) for name in several):
            way_out = f"write {option_of_names}={value!r}"
        raise TypeError(message(what, f"{option} must be an integer or a sequence of integers", repr(value), way_out))
    return tuple(int(i) for i in several)


def parameter_names(option: str, value: Any, option_of_positions: str) -> tuple[str, ...]:
    """Normalize an option of parameter names to a tuple. TypeError unless it is one name or several."""
    several = value if isinstance(value, (tuple, list, set, frozenset)) else (value,)
    if not all(isinstance(name, str) for name in several):
        are_positions = all(isinstance(i, (int, np.integer)) and not isinstance(i, bool) for i in several)
        way_out = f"write {option_of_positions}={value!r}" if are_positions else "write the names of parameters"
        raise TypeError(message("jit", f"{option} must be a name or a sequence of names", repr(value), way_out))
    return tuple(several)


def both_ways(kind: str, fun: Callable[..., Any], argnums: Any, argnames: Any) -> tuple[set[int], set[str]]:
    """Positions and names of the static or donated arguments; each is inferred from the other, as in JAX."""
    by_number, by_name = f"{kind}_argnums", f"{kind}_argnames"
    nums = set(parameter_positions("jit", by_number, () if argnums is None else argnums, by_name))
    names = set(parameter_names(by_name, () if argnames is None else argnames, by_number))
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return nums, names
    kinds = {p.kind for p in parameters}
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        for i in nums:
            if not -len(positional) <= i < len(positional):
                raise ValueError(message("jit", f"{kind}_argnums must be below the {len(positional)} parameters", i))
        nums = {i % len(positional) for i in nums}
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        for name in sorted(names - {p.name for p in parameters}):
            raise ValueError(message("jit", f"{kind}_argnames must name parameters", repr(name)))
    by_position = {positional[i] for i in nums if 0 <= i < len(positional)}
    return nums | {positional.index(n) for n in names if n in positional}, names | by_position


def check_disjoint(nums: set[int], names: set[str]) -> None:
    """Raise ValueError if an argument is both static and donated."""
    both: list[Any] = [*sorted(names)] or [*sorted(nums)]
    if both:
        rule = "an argument must not be static and donated"
        raise ValueError(message("jit", rule, ", ".join(map(repr, both)), "leave it out of donate_argnums"))


def checked_rules(rules: Any) -> dict[str, ShardingRule]:
    """Parse ``sharding_rules``. ShardingError if it is not a mapping from op names to rules."""
    if not isinstance(rules, Mapping) or not all(isinstance(op, str) for op in rules):
        rule = "sharding_rules must be a mapping from names of ops to rules"
        raise ShardingError(message("jit", rule, repr(rules), "write {'dot_general': 'i j, j k -> i k'}"))
    return {op: checked_rule("jit", rule) for op, rule in rules.items()}
