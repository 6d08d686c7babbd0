# SPDX-License-Identifier: Apache-2.0
"""The options of :func:`shardwise.jit`, checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..errors import MeshError, ShardingError, message
from ..process.foreign import native
from ..programs.choices import Choices, checked_choices
from ..programs.op_rules import ShardingRule, checked_rule
from ..programs.options import checked_options, options_among
from ..programs.partition_options import PartitionKeywords, PartitionOptions
from ..programs.propagation_options import DEFAULTS, PropagationKeywords, PropagationOptions
from ..shardings.mesh import Mesh
from ..shardings.sharding import UNSPECIFIED, NamedSharding
from ..trees import flatten, native_specs

__all__ = [
    "Arguments",
    "CheckedOptions",
    "CompileKeywords",
    "JitOptions",
    "checked_jit_options",
    "parameter_positions",
]


class CompileKeywords(PropagationKeywords, PartitionKeywords, total=False):
    """The options of propagation and of the partitioner as keyword arguments."""


class JitOptions(CompileKeywords, total=False):
    """The keyword arguments of :func:`shardwise.jit`."""

    mesh: Mesh | None
    in_shardings: Any
    out_shardings: Any
    static_argnums: int | Sequence[int] | None
    static_argnames: str | Sequence[str] | None
    donate_argnums: int | Sequence[int] | None
    donate_argnames: str | Sequence[str] | None
    sharding_rules: Mapping[str, ShardingRule | str] | None
    choices: Choices | None


class Arguments(NamedTuple):
    """Some arguments of a function, by position and by name; negative positions count from the end."""

    positions: set[int]
    names: set[str]


@dataclass(frozen=True)
class CheckedOptions:
    """The options of one jit, checked.

    Attributes:
        mesh: the mesh that ``mesh=`` names, if any.
        in_shardings, out_shardings: prefix trees; None where nothing is specified.
        meshes: the meshes that the options name; they must be one.
        static, donated: positions and names of arguments.
        propagation, rules: how the program is propagated.
        choices: how it is partitioned; None lets the partitioner choose.
        partition: the options of the partitioner.
        stated: the options that the user specified. An enclosing program must have equal ones.
    """

    mesh: Mesh | None
    in_shardings: Any
    out_shardings: Any
    meshes: tuple[Mesh, ...]
    static: Arguments
    donated: Arguments
    propagation: PropagationOptions
    rules: dict[str, ShardingRule]
    choices: Choices | None
    partition: PartitionOptions
    stated: JitOptions


def checked_jit_options(fun: Callable[..., Any], given: JitOptions) -> CheckedOptions:
    """Check the options of ``jit(fun)``.

    Raises:
        TypeError, ValueError: of static and donated arguments. MeshError, ShardingError: of the others.
    """
    mesh = native(given["mesh"])
    if mesh is not None and not isinstance(mesh, Mesh):
        raise MeshError(message("jit", "mesh must be a Mesh", repr(mesh)))
    in_shardings, out_shardings = (
        None if spec is UNSPECIFIED else spec for spec in (given["in_shardings"], given["out_shardings"])
    )
    in_shardings = native_specs(tuple(in_shardings) if type(in_shardings) is list else in_shardings)
    out_shardings = native_specs(out_shardings)
    named = [spec.mesh for spec in flatten((in_shardings, out_shardings))[0] if isinstance(spec, NamedSharding)]
    static = both_ways("static", fun, given["static_argnums"], given["static_argnames"])
    donated = both_ways("donate", fun, given["donate_argnums"], given["donate_argnames"])
    check_disjoint(static, donated)
    asked = options_among(PropagationOptions, given)
    propagation = checked_options("jit", DEFAULTS, **asked)
    rules = {} if given["sharding_rules"] is None else checked_rules(given["sharding_rules"])
    stated: Any = {name: getattr(propagation, name) for name, value in asked.items() if value is not None}
    if given["sharding_rules"] is not None:
        stated["sharding_rules"] = rules
    choices = checked_choices("jit", given["choices"])
    if choices is not None:
        stated["choices"] = choices
    partition = partition_of(choices, options_among(PartitionOptions, given))
    stated |= {
        name: value for name, value in vars(partition).items() if choices is not None or given.get(name) is not None
    }
    stated["mesh"] = mesh
    meshes = (*([] if mesh is None else [mesh]), *named)
    return CheckedOptions(
        mesh, in_shardings, out_shardings, meshes, static, donated, propagation, rules, choices, partition, stated
    )


def partition_of(choices: Choices | None, asked: Mapping[str, Any]) -> PartitionOptions:
    """The options of the partitioner that a user gave; by default those of the choices, and none may differ from them.

    Raises:
        ShardingError: an unknown value, or another than that of the choices.
    """
    usual = PartitionOptions() if choices is None else choices.options
    partition = checked_options("jit", usual, **asked)
    if partition.gather_dtype is not None and partition.shard_update is None:
        rule = "gather_dtype is an option of shard_update"
        raise ShardingError(message("jit", rule, repr(partition.gather_dtype), "name axes: shard_update='data'"))
    for name, value in vars(usual).items():
        if choices is not None and getattr(partition, name) != value:
            rule = f"{name} must be that of the choices, {value!r}"
            raise ShardingError(message("jit", rule, repr(getattr(partition, name)), "leave it out"))
    return partition


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


def both_ways(kind: str, fun: Callable[..., Any], argnums: Any, argnames: Any) -> Arguments:
    """Positions and names of the static or donated arguments; each is inferred from the other, as in JAX."""
    by_number, by_name = f"{kind}_argnums", f"{kind}_argnames"
    nums = set(parameter_positions("jit", by_number, () if argnums is None else argnums, by_name))
    names = set(parameter_names(by_name, () if argnames is None else argnames, by_number))
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return Arguments(nums, names)
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
    return Arguments(nums | {positional.index(n) for n in names if n in positional}, names | by_position)


def check_disjoint(static: Arguments, donated: Arguments) -> None:
    """Raise ValueError if an argument is both static and donated."""
    both: list[Any] = [*sorted(static.names & donated.names)] or [*sorted(static.positions & donated.positions)]
    if both:
        rule = "an argument must not be static and donated"
        raise ValueError(message("jit", rule, ", ".join(map(repr, both)), "leave it out of donate_argnums"))


def checked_rules(rules: Any) -> dict[str, ShardingRule]:
    """Parse ``sharding_rules``. ShardingError if it is not a mapping from op names to rules."""
    if not isinstance(rules, Mapping) or not all(isinstance(op, str) for op in rules):
        rule = "sharding_rules must be a mapping from names of ops to rules"
        raise ShardingError(message("jit", rule, repr(rules), "write {'dot_general': 'i j, j k -> i k'}"))
    return {op: checked_rule("jit", rule) for op, rule in rules.items()}
