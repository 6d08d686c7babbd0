# SPDX-License-Identifier: Apache-2.0
"""The arguments of one call of a jitted function: the leaves to trace, and the static values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..trees import flatten, leaf_names, unflatten
from ..trees.argument_names import parameter_names, positional_names
from .options import Arguments

__all__ = ["NO_STATIC", "Call"]

NO_STATIC: tuple[tuple[tuple[int, Any], ...], tuple[tuple[str, Any], ...]] = ((), ())


class Call:
    """The arguments of one call: the leaves to trace, and the rest of the cache key."""

    __slots__ = ("dynamic_args", "dynamic_kwargs", "leaves", "static", "tree")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], static: Arguments) -> None:
        static_nums, static_names = static
        if not static_nums and not static_names:
            self.static, self.dynamic_args, self.dynamic_kwargs = NO_STATIC, args, kwargs
            self.leaves, self.tree = flatten((args, kwargs))
            return
        static_nums = {i + len(args) if i < 0 else i for i in static_nums}
        self.static = (
            tuple((i, args[i]) for i in sorted(static_nums) if 0 <= i < len(args)),
            tuple((k, kwargs[k]) for k in sorted(static_names) if k in kwargs),
        )
        self.dynamic_args = tuple(a for i, a in enumerate(args) if i not in static_nums)
        self.dynamic_kwargs = {k: v for k, v in kwargs.items() if k not in static_names}
        self.leaves, self.tree = flatten((self.dynamic_args, self.dynamic_kwargs))

    def leaves_of(self, arguments: Arguments) -> tuple[int, ...]:
        """Indices of the leaves of some arguments, by position among all arguments and by name."""
        nums, names = arguments
        count = len(self.dynamic_args) + len(self.static[0])
        nums = {i + count if i < 0 else i for i in nums}
        static = {i for i, _ in self.static[0]}
        wanted = [i in nums for i in range(count) if i not in static]
        wanted += [name in names for name in sorted(self.dynamic_kwargs)]
        owners = [own for own, count in zip(wanted, self.leaf_counts()) for _ in range(count)]
        return tuple([i for i, own in enumerate(owners) if own])

    def leaf_counts(self) -> list[int]:
        """The number of leaves of each argument: by position, then by name, sorted."""
        args, kwargs = self.tree.children()
        return [child.num_leaves for child in args.children() + kwargs.children()]

    def names_at_positions(self, fun: Callable[..., Any], static: set[int]) -> list[str]:
        """The names of all positional parameters of the function but for those at ``static`` positions."""
        return [name for i, name in enumerate(positional_names(fun)) if i not in static]

    def static_values(self) -> tuple[Any, ...]:
        """The static arguments."""
        return tuple(value for group in self.static for _, value in group)

    def rebuild(self, leaves: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments of the user's function with ``leaves`` in place of the arrays."""
        dynamic, kwargs = unflatten(self.tree, leaves)
        args = list(dynamic)
        for i, value in self.static[0]:
            args.insert(i, value)
        return args, {**kwargs, **dict(self.static[1])}

    def names(self, fun: Callable[..., Any]) -> list[str]:
        """A name for each traced leaf: the parameter and the path in it, for reports and errors."""
        static = {i for i, _ in self.static[0]}
        count = len(self.dynamic_args) + len(static)
        names = [n for i, n in enumerate(parameter_names(fun, count)) if i not in static]
        out = [name + path for name, arg in zip(names, self.dynamic_args) for path in leaf_names(arg)]
        for key in sorted(self.dynamic_kwargs):
            out += [key + path for path in leaf_names(self.dynamic_kwargs[key])]
        return out
