# SPDX-License-Identifier: Apache-2.0
"""What a buffer of one device is for: weights, optimizer state, gradients, activations, …

It follows from the program of one device alone. Values that are named "gradient of w" are gradients, and make %w a
weight. A step returns an argument updated: the result has the argument's type, and elementwise ops and transfers lead
from it to the result. An updated argument that is no weight is optimizer state:

    %w2 = subtract %w, %u      %w   weights: there is a gradient of it
    %u  = multiply %m2, %rate  %m2 = add %m, %dw, returned, too: %m is optimizer state
    %y  = dot_general %x, %w   activations
    %g  = all_gather %w        gathered, and so are rows that a loop gathers and returns

Where no gradient has a name, as in a text, what an update reads besides arguments are gradients, and an updated
argument is a weight if a product reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["CATEGORIES", "categories_of", "category_of"]

_GRADIENT = "gradient of "
CATEGORIES = (
    "weights",
    "optimizer state",
    "inputs",
    "arguments",
    "gradients",
    "gathered",
    "collective buffers",
    "activations",
)


def categories_of(module: Any) -> dict[int, str]:
    """The category of values of a local program, by number: arguments of main, and gradients."""
    body = module.main.body
    arguments = {value.number for value in body.arguments}
    named = {value.number: name for op in module.ops for value in op.results if (name := _differentiated(value))}
    updated: set[int] = set()
    changes: set[int] = set()
    for result in body.results:
        of_result, others = _update(result, arguments)
        updated |= of_result
        changes |= others if of_result else set()
    if named:
        names = set(named.values())
        weights = {value.number for value in body.arguments if not names.isdisjoint(_names_within(_name_of(value)))}
        gradients = set(named)
    else:
        # The residual of a layer that is only evaluated looks like an update, too, but a step updates most arguments.
        if 2 * len(updated) <= len(arguments):
            return dict.fromkeys(arguments, "arguments")
        weights = updated & _read_by_products(module.ops)
        gradients = changes
    categories = dict.fromkeys(gradients, "gradients") | dict.fromkeys(arguments, "inputs")
    return categories | dict.fromkeys(updated, "optimizer state") | dict.fromkeys(weights, "weights")


def _name_of(value: Any) -> str:
    return str(value.name or value.location.variable)


_PART = re.compile(r"""\w+(?:\[['"](\w+)['"]\]|\.(\w+))(.*)""")


def _names_within(name: str) -> Iterator[str]:
    """The names of an argument, and of its parts: a loss knows state['params']['w'] as params['w']."""
    while True:
        yield name
        part = _PART.fullmatch(name)
        if part is None:
            return
        name = (part[1] or part[2]) + part[3]


def _differentiated(value: Any) -> str:
    """What the value is the gradient of; "" for any other value."""
    name = _name_of(value)
    return name.removeprefix(_GRADIENT) if name.startswith(_GRADIENT) else ""


def category_of(value: Any, categories: dict[int, str]) -> str:
    """The category of any value of the program."""
    known = categories.get(value.number)
    if known is not None:
        return known
    op = value.defining_op
    if op is None:
        return "activations"
    if _is_gathered(op) or _is_gathered(_maker_of_row(op, value)):
        return "gathered"
    return "collective buffers" if op.definition.collective else "activations"


def _is_gathered(op: Any) -> bool:
    return op is not None and bool(op.definition.collective) and op.name.endswith("all_gather")


def _maker_of_row(loop: Any, stack: Any) -> Any:
    """What makes the rows of a stack in the trips of a loop, behind movements; None if the op is no loop."""
    if not loop.definition.control_flow or len(loop.regions) == 0:
        return None
    rows = loop.regions[-1].results
    op = rows[loop.results.index(stack)].defining_op if len(rows) == len(loop.results) else None
    while op is not None and op.definition.movement and len(op.operands) == 1:
        op = op.operands[0].defining_op
    return op


def _is_passed_on(op: Any) -> bool:
    definition = op.definition
    return bool(definition.elementwise or definition.movement or definition.annotation or definition.collective)


def _update(result: Any, arguments: set[int]) -> tuple[set[int], set[int]]:
    """The arguments of the result's type that elementwise ops lead from to it, and what else these read."""
    reached: set[int] = set()
    others: set[int] = set()
    open_values, seen = [result], {result.number}
    while open_values:
        value = open_values.pop()
        op = value.defining_op
        if op is None:
            if value.number in arguments and value.type == result.type:
                reached.add(value.number)
        elif _is_passed_on(op):
            for operand in op.operands:
                if operand.number not in seen:
                    seen.add(operand.number)
                    open_values.append(operand)
        elif value.type.shape == result.type.shape:
            others.add(value.number)
    return reached, others


def _read_by_products(ops: Iterable[Any]) -> set[int]:
    """Values that ops other than elementwise ones read, through views, casts and transfers."""
    read: set[int] = set()
    for op in ops:
        if _is_passed_on(op):
            continue
        for operand in op.operands:
            value = operand
            read.add(value.number)
            while (maker := value.defining_op) is not None and len(maker.operands) == 1:
                if not _is_passed_on(maker):
                    break
                value = maker.operands[0]
                read.add(value.number)
    return read
