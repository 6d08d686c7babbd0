# SPDX-License-Identifier: Apache-2.0
"""Options as dataclasses: one class for propagation, one for the partitioner.

A field of such a class is an option: signatures, docstrings, checks and the command line follow from it. Its metadata
may have ``"choices"``, the values of an option that is no switch, or ``"check"``, a function that returns the checked
value, and ``"help"``, for the command line.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Options:
...     whole: bool = False
...     deep: bool = False
>>> checked_options("opt", Options(), whole=None, deep=True)
Options(whole=False, deep=True)
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import Field, fields, replace
from typing import Any, TypeVar

import numpy as np

from ..errors import ShardingError, message

__all__ = ["check_keywords", "checked_options", "options_among", "switch", "takes_options"]

_F = TypeVar("_F", bound=Callable[..., Any])
_O = TypeVar("_O")


def takes_options(*kinds: type, keywords: type | None = None) -> Callable[[_F], _F]:
    """Give ``function(..., **options)`` the parameters of these options in its signature.

    The line ``options: ...`` of its docstring becomes the description of each. ``keywords`` is a TypedDict with the
    types that options are given as, where these are more than the types of the fields.

    >>> from shardwise.programs.partition_options import PartitionOptions
    >>> @takes_options(PartitionOptions)
    ... def partition(module, **options): ...
    >>> "hardware" in inspect.signature(partition).parameters
    True
    """

    def with_options(function: _F) -> _F:
        signature = inspect.signature(function)
        own = [parameter for parameter in signature.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
        added, lines = [], []
        for kind in kinds:
            options = [option for option in fields(kind) if option.name not in signature.parameters]
            added += [
                inspect.Parameter(
                    option.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_annotation(option, keywords)
                )
                for option in options
            ]
            rows = re.findall(r"^        (\w+): (.*(?:\n {12}.*)*)", kind.__doc__ or "", re.MULTILINE)
            names = {option.name for option in options}
            lines += [f"{name}: {text.replace(' ' * 12, ' ' * 4)}" for name, text in rows if name in names]
        function.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
        if function.__doc__ is not None and lines:
            function.__doc__ = re.sub(
                r"^( *)options: \.\.\.$",
                lambda found: textwrap.indent("\n".join(lines), found[1]),
                function.__doc__,
                flags=re.M,
            )
        return function

    return with_options


def _annotation(option: Field[Any], keywords: type | None) -> str:
    """The type of the values that an option takes, or None."""
    stored = f"{str(option.type).removesuffix(' | None')} | None"
    taken = {} if keywords is None else keywords.__annotations__
    return str(getattr(taken.get(option.name), "__forward_arg__", stored))


def options_among(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """The options of this kind in a mapping that may hold more; None for a missing one."""
    return {option.name: values.get(option.name) for option in fields(kind)}


def check_keywords(what: str, keywords: Mapping[str, Any], *kinds: type) -> None:
    """Raise Python's TypeError for a keyword argument that is no option of these kinds."""
    known = {option.name for kind in kinds for option in fields(kind)}
    for name in keywords:
        if name not in known:
            raise TypeError(f"{what}() got an unexpected keyword argument {name!r}")


def checked_options(what: str, default: _O, **given: Any) -> _O:
    """Replace the options in ``default`` that a user gave to ``what``; None leaves an option unchanged.

    Raises:
        ShardingError: no such value, or a switch that is neither True nor False.
    """
    kinds = {option.name: option for option in fields(default)}  # type: ignore[arg-type]
    checked = {
        name: _checked(what, name, value, kinds[name].metadata) for name, value in given.items() if value is not None
    }
    return replace(default, **checked)  # type: ignore[type-var]


def _checked(what: str, name: str, value: Any, metadata: Mapping[str, Any]) -> Any:
    if "check" in metadata:
        return metadata["check"](what, value)
    choices = metadata.get("choices")
    if choices is None:
        return switch(what, name, value, False)
    if not isinstance(value, str) or value not in choices:
        rule = f"{name} must be {' or '.join(map(repr, sorted(choices, reverse=True)))}"
        raise ShardingError(message(what, rule, repr(value)))
    return value


def switch(what: str, name: str, value: Any, default: bool) -> bool:
    """Check a bool option; None gives ``default``. Raises ShardingError for other values."""
    if value is None:
        return default
    if not isinstance(value, (bool, np.bool_)):
        raise ShardingError(message(what, f"{name} must be True or False", repr(value)))
    return bool(value)
