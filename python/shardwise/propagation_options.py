# SPDX-License-Identifier: Apache-2.0
"""The options of propagation, the same for :func:`jit`, for the stages of a program, for texts and the command line.

>>> options("opt", "basic", None, True, DEFAULTS)
PropagationOptions(strategy='basic', conservative=False, strict_divisible=True)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

import numpy as np

from . import _core
from .errors import ShardingError, message

__all__ = ["DEFAULTS", "STRATEGIES", "PropagationOptions", "Strategy", "options", "options_of_passes", "switch"]

Strategy = Literal["aggressive", "basic"]
STRATEGIES: Final[tuple[Strategy, ...]] = get_args(Strategy)


@dataclass(frozen=True)
class PropagationOptions:
    """How shardings are propagated.

    Attributes:
        strategy: how conflicts are settled: ``"aggressive"``, each tensor takes what it can; ``"basic"``, only what all
            tensors of an op agree on.
        conservative: propagate only what asks for no exchange and no part of an axis.
        strict_divisible: shrink shardings of arguments and results until they divide the shapes, as Shardy does.
    """

    strategy: Strategy = "aggressive"
    conservative: bool = False
    strict_divisible: bool = False

    def as_arguments(self) -> Mapping[str, Any]:
        """The options by name, as the extension takes them."""
        return vars(self)


DEFAULTS: Final = PropagationOptions()


def options(
    what: str, strategy: Any, conservative: Any, strict_divisible: Any, default: PropagationOptions
) -> PropagationOptions:
    """The options that a user gave to ``what``, checked; None leaves one as ``default`` has it.

    Raises:
        ShardingError: no such strategy, or a switch that is neither True nor False.
    """
    if strategy is not None and (not isinstance(strategy, str) or strategy not in STRATEGIES):
        choices = " or ".join(map(repr, sorted(STRATEGIES, reverse=True)))
        raise ShardingError(message(what, f"strategy must be {choices}", repr(strategy)))
    return PropagationOptions(
        default.strategy if strategy is None else strategy,
        switch(what, "conservative", conservative, default.conservative),
        switch(what, "strict_divisible", strict_divisible, default.strict_divisible),
    )


def options_of_passes(
    what: str,
    passes: Sequence[str],
    strategy: Any,
    conservative: Any,
    strict_divisible: Any,
    default: PropagationOptions,
) -> PropagationOptions:
    """As :func:`options`, for passes to run. A strategy that one of them has in its name is the strategy.

    Raises:
        ShardingError: also for an option that none of the passes reads. Names that no pass has are not looked at.

    >>> options_of_passes("run", ["propagate-basic"], None, True, None, DEFAULTS)
    PropagationOptions(strategy='basic', conservative=True, strict_divisible=False)
    """
    how = options(what, strategy, conservative, strict_divisible, default)
    known = _core.passes.options_of_passes()
    rows = [known[name] for name in (name.replace("-", "_") for name in passes) if name in known]
    given = {"strategy": strategy, "conservative": conservative, "strict_divisible": strict_divisible}
    for option, value in given.items():
        if value is None or any(option in reads for reads, _ in rows) or len(rows) < len(passes):
            continue
        readers = " or ".join(name for name, (reads, _) in known.items() if option in reads)
        rule = f"{option} is an option of {readers}"
        raise ShardingError(message(what, rule, f"{value!r} for {', '.join(passes) or 'no pass'}", "leave it out"))
    own = [name for _, name in rows if name is not None]
    return how if not own or any("strategy" in reads for reads, _ in rows) else replace(how, strategy=own[-1])


def switch(what: str, name: str, value: Any, default: bool) -> bool:
    """``value``, checked; ``default`` for None. Raises ShardingError where it is neither True nor False."""
    if value is None:
        return default
    if not isinstance(value, (bool, np.bool_)):
        raise ShardingError(message(what, f"{name} must be True or False", repr(value)))
    return bool(value)
