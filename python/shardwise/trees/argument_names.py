# SPDX-License-Identifier: Apache-2.0
"""The names of a function's arguments and of the leaves in them, for reports and errors: ``params['w']``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from .flattening import leaf_names

__all__ = ["display_name", "names_of_argument", "names_of_leaves", "parameter_names", "positional_names"]


def display_name(fun: Callable[..., Any]) -> str:
    """The name of a function in its source; ``f`` if it has none."""
    name = str(getattr(fun, "__name__", ""))
    return name if name.isidentifier() else "f"


def names_of_leaves(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any] = MappingProxyType({})
) -> list[str]:
    """A name for each leaf of positional, then of keyword arguments, by name: ``params['w'][0]``."""
    names = parameter_names(fun, len(args))
    named = [*zip(names, args), *sorted(kwargs.items())]
    return [name + path for name, arg in named for path in leaf_names(arg)]


def names_of_argument(fun: Callable[..., Any], args: Sequence[Any], i: int) -> list[str]:
    """A name for each leaf of positional argument ``i``: ``params['w'][0]``."""
    name = parameter_names(fun, len(args))[i]
    return [name + path for path in leaf_names(args[i])]


def positional_names(fun: Callable[..., Any]) -> list[str]:
    """The names of a function's positional parameters; empty if it has no signature."""
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def parameter_names(fun: Callable[..., Any], count: int) -> list[str]:
    """The names of a function's first positional parameters; ``arg0`` for one without a name."""
    names = positional_names(fun)
    return [names[i] if i < len(names) else f"arg{i}" for i in range(count)]
