# SPDX-License-Identifier: Apache-2.0
"""The options of propagation, the same for :func:`jit`, for the stages of a program, for texts and the command line.

A new option is a field of :class:`PropagationOptions`, a key of :class:`PropagationSwitches`, a field of
``CompileOptions`` and its row in ``kCompileOptions`` (cpp/shardwise/ir/compile_options.h). Signatures, docstrings and
the command line have it from there (options.py).

>>> PropagationOptions(strategy="basic").as_arguments()
{'strategy': 'basic', 'conservative': False, 'strict_divisible': False}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypedDict, cast, get_args

from .. import _core
from ..errors import ShardingError, message
from .options import checked_options

__all__ = [
    "DEFAULTS",
    "STRATEGIES",
    "PropagationKeywords",
    "PropagationOptions",
    "PropagationSwitches",
    "Strategy",
    "options_of_passes",
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
