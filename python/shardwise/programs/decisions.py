# SPDX-License-Identifier: Apache-2.0
"""Questions about choices, which are answered by choosing again with other pins: see :meth:`Program.why`."""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import replace
from typing import Any

from .. import _core
from ..reports.decisions import ChosenOp, Decision, Instead, decision_of
from ..reports.explanations import Explanation
from ..reports.price import Price
from ..reports.tables import place
from ..shardings.sharding import sharding_on
from .choices import Choices, rows_of

__all__ = ["decisions_at", "instead_of"]

_MOST_DECISIONS = 4  # of a line
_MOST_WAYS = 64  # of an op, those that the partitioner ranks best


def decisions_at(program: Any, name: str) -> tuple[Decision, ...]:
    """How the ops of a source line with collectives or repeated work are computed; nothing for another question."""
    if not re.fullmatch(r".+(:|, line )\d+", name):
        return ()
    rows = (part for row in program.collectives() for part in row.separate())
    sends = any(_is_called(row.location, name) for row in rows)
    if not sends and all(row.ratio <= 1 or not _is_called(row.location, name) for row in program.work()):
        return ()
    places = {key: place(file, line) for key, file, line in program._compiled.places_of_choices()}
    keys = [key for key, location in places.items() if _is_called(location, name)]
    made = program._own_choices.ops
    ways = {key: ways for key, ways in _ways(program, keys).items() if key in made}
    # Those with the most ways decide most: a product has more than what is done to its elements.
    asked = sorted(sorted(ways, key=lambda key: -len(ways[key]))[:_MOST_DECISIONS], key=keys.index)
    before, by_bytes = program.choice_price(), program.choices.options.is_by_bytes
    decisions = (decision_of(key, places[key], made[key], ways[key], before, by_bytes) for key in asked)
    return tuple(decision for decision in decisions if decision.others or decision.impossible)


def _ways(program: Any, keys: list[str]) -> dict[str, list[tuple[ChosenOp, Price | str]]]:
    """By key: each way to compute the op, and the price of the program with it, or why it is impossible."""
    traced, options = program._traced._core, program._compile_options()
    rows = _core.passes.priced_ways(
        traced, program.mesh._core, rows_of(_pinned_ops(program)), keys, _MOST_WAYS, **options
    )
    ways: dict[str, list[tuple[ChosenOp, Price | str]]] = {}
    for (key, op, method, operands, results), price, error in rows:
        how = ChosenOp(op, method, tuple(operands), tuple(results))
        ways.setdefault(key, []).append((how, error if price is None else Price(*price)))
    return ways


def _is_called(location: str, name: str) -> bool:
    """Whether a question names the location: in full, or by the end of its path."""
    return location == name or location.endswith((f"/{name}", f"{os.sep}{name}"))


def _pinned_ops(program: Any) -> Choices | None:
    """The user's pins for a question: how values move follows from how other ops are computed."""
    pinned = program._traced._pinned
    return None if pinned is None else replace(pinned, plans={}, sources={}, exchanges={}, program="")


def _price(program: Any, module: Any, choices: Choices | None) -> Price:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the program itself has given them
        return Price(*program._compile(module, choices).choice_price())


def instead_of(program: Any, name: str, sharding: Any, explained: Explanation) -> Instead:
    """What the program would cost with another annotation on a value."""
    # The last one: what a manual region returns has its name also where each device has a part of its own.
    dims = re.match(r"tensor<((?:\d+x)*)", explained.values[-1].type) if explained.values else None
    ndim = dims[1].count("x") if dims else 0
    wanted = sharding_on(program.mesh, sharding, ndim, f"why: instead= of {name}")
    module = _core.passes.annotated_instead(program._traced._with_names(name), name, wanted)
    # A constraint is an op more, so that the program has another fingerprint. The keys of its ops stay.
    after = _price(program, module, _pinned_ops(program))
    return Instead(name, repr(sharding), after, after - program.choice_price())
