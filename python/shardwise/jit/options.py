# SPDX-License-Identifier: Apache-2.0
"""The options of :func:`shardwise.jit`, checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from ..errors import ShardingError, message, shown
from ..mesh import Mesh
from ..module import checked_rule
from ..op_rules import ShardingRule
from ..propagation_options import Strategy

__all__ = ["JitOptions", "checked_rules", "static_both_ways"]


class JitOptions(TypedDict, total=False):
    """The keyword arguments of :func:`shardwise.jit`."""

    mesh: Mesh | None
    in_shardings: Any
    out_shardings: Any
    static_argnums: int | Sequence[int]
    static_argnames: str | Sequence[str]
    strategy: Strategy | None
    conservative: bool | None
    strict_divisible: bool | None
    sharding_rules: Mapping[str, ShardingRule | str] | None


def listed(option: str, value: Any, kind: type, what: str) -> tuple[Any, ...]:
    """One integer or name, or several. Raises TypeError for what is none, such as a name among positions."""
    items = tuple(value) if isinstance(value, (tuple, list, set, frozenset, range)) else (value,)
    if not all(isinstance(item, kind) and not isinstance(item, bool) for item in items):
        raise TypeError(message("jit", f"{option} must be {what}, or several of them", shown(value)))
    return items


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
