# SPDX-License-Identifier: Apache-2.0
"""The options of propagation, the same for :func:`jit`, for the stages of a program, for texts and the command line.

A new option is a field of :class:`PropagationOptions`, a key of :class:`PropagationSwitches`, a field of
``CompileOptions`` and its row in ``kCompileOptions`` (cpp/shardwise/ir/compile_options.h). Signatures, docstrings and
the command line have it from there.

>>> checked_options("opt", DEFAULTS, strategy="basic", conservative=None, strict_divisible=True)
PropagationOptions(strategy='basic', conservative=False, strict_divisible=True)
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal, TypedDict, TypeVar, cast, get_args

import numpy as np

from .. import _core
from ..errors import ShardingError, message

__all__ = [
    "DEFAULTS",
    "STRATEGIES",
    "PropagationKeywords",
    "PropagationOptions",
    "PropagationSwitches",
    "Strategy",
    "check_keywords",
    "checked_options",
    "options_among",
    "options_of_passes",
    "switch",
    "takes_options",
]

Strategy = Literal["aggressive", "basic"]
STRATEGIES: Final[tuple[Strategy, ...]] = get_args(Strategy)


@dataclass(frozen=True)
class PropagationOptions:
    """How shardings are propagated.

    Attributes:
        strategy: how conflicts are resolved. ``"aggressive"``: each tensor takes the axes that it can; ``"basic"``:
            only axes on which all tensors of an op agree.
        conservative: propagate whole axes only, and nothing along dims whose elements move between devices.
        strict_divisible: shrink shardings of arguments and results until they divide the shapes, as Shardy does.
    """

    # The command line's help, and the values of an option that is not a switch.
    strategy: Strategy = field(
        default="aggressive", metadata={"help": "how propagation resolves conflicts", "choices": STRATEGIES}
    )
    conservative: bool = field(
        default=False, metadata={"help": "propagate whole axes only, and nothing along dims whose elements move"}
    )
    strict_divisible: bool = field(
        default=False, metadata={"help": "shrink uneven shardings of arguments and results, as Shardy"}
    )

    def as_arguments(self) -> Mapping[str, Any]:
        """The options by name, as the extension takes them."""
        return vars(self)


class PropagationSwitches(TypedDict, total=False):
    """The options apart from the strategy, as keyword arguments; None leaves one unspecified."""

    conservative: bool | None
    strict_divisible: bool | None


class PropagationKeywords(PropagationSwitches, total=False):
    """All options as keyword arguments; None leaves one unspecified."""

    strategy: Strategy | None


DEFAULTS: Final = PropagationOptions()
_FIELDS = {option.name: option for option in fields(PropagationOptions)}
_F = TypeVar("_F", bound=Callable[..., Any])


def takes_options(function: _F) -> _F:
    """Give ``function(..., **options)`` the parameters of the options in its signature.

    The line ``options: ...`` of its docstring becomes the description of each.

    >>> @takes_options
    ... def propagate(module, **options): ...
    >>> list(inspect.signature(propagate).parameters)
    ['module', 'strategy', 'conservative', 'strict_divisible']
    """
    signature = inspect.signature(function)
    own = [parameter for parameter in signature.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
    names = [name for name in _FIELDS if name not in signature.parameters]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=f"{_FIELDS[name].type} | None")
        for name in names
    ]
    function.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    if function.__doc__ is not None and PropagationOptions.__doc__ is not None:
        rows = re.findall(r"^        (\w+): (.*(?:\n {12}.*)*)", PropagationOptions.__doc__, re.MULTILINE)
        deeper = " " * 12
        lines = [f"{name}: {text.replace(deeper, deeper[8:])}" for name, text in rows if name in names]
        function.__doc__ = re.sub(
            r"^( *)options: \.\.\.$",
            lambda found: textwrap.indent("\n".join(lines), found[1]),
            function.__doc__,
            flags=re.M,
        )
    return function


def options_among(values: Mapping[str, Any]) -> dict[str, Any]:
    """The options of propagation in a mapping that may hold more; None for a missing one."""
    return {name: values.get(name) for name in _FIELDS}


def check_keywords(what: str, keywords: Mapping[str, Any]) -> None:
    """Raise Python's TypeError for a keyword argument that is no option."""
    for name in keywords:
        if name not in _FIELDS:
            raise TypeError(f"{what}() got an unexpected keyword argument {name!r}")


def checked_options(what: str, default: PropagationOptions, **given: Any) -> PropagationOptions:
    """Replace the options in ``default`` that a user gave to ``what``; None leaves an option unchanged.

    Raises:
        ShardingError: no such strategy, or a switch that is neither True nor False.
    """
    return replace(default, **{name: _checked(what, name, value) for name, value in given.items() if value is not None})


def _checked(what: str, name: str, value: Any) -> Any:
    choices = _FIELDS[name].metadata.get("choices")
    if choices is None:
        return switch(what, name, value, False)
    if not isinstance(value, str) or value not in choices:
        rule = f"{name} must be {' or '.join(map(repr, sorted(choices, reverse=True)))}"
        raise ShardingError(message(what, rule, repr(value)))
    return value


def options_of_passes(
    what: str, passes: Sequence[str], default: PropagationOptions, **given: Any
) -> PropagationOptions:
    """As :func:`checked_options`, for passes to run. A pass with a strategy in its name determines the strategy.

    Raises:
        ShardingError: also for an option that none of the passes reads. Unknown pass names are ignored.

    >>> options_of_passes("run", ["propagate-basic"], DEFAULTS, conservative=True)
    PropagationOptions(strategy='basic', conservative=True, strict_divisible=False)
    """
    how = checked_options(what, default, **given)
    known = _core.passes.options_of_passes()
    rows = [known[name] for name in (name.replace("-", "_") for name in passes) if name in known]
    for option, value in given.items():
        if value is None or any(option in reads for reads, _ in rows) or len(rows) < len(passes):
            continue
        readers = " or ".join(name for name, (reads, _) in known.items() if option in reads)
        rule = f"{option} is an option of {readers}"
        raise ShardingError(message(what, rule, f"{value!r} for {', '.join(passes) or 'no pass'}", "leave it out"))
    own = [cast("Strategy", name) for _, name in rows if name is not None]
    return how if not own or any("strategy" in reads for reads, _ in rows) else replace(how, strategy=own[-1])


def switch(what: str, name: str, value: Any, default: bool) -> bool:
    """Check a bool option; None gives ``default``. Raises ShardingError for other values."""
    if value is None:
        return default
    if not isinstance(value, (bool, np.bool_)):
        raise ShardingError(message(what, f"{name} must be True or False", repr(value)))
    return bool(value)
