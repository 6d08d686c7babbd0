# SPDX-License-Identifier: Apache-2.0
"""``debug.print`` in scripts: its values are results of ``local`` after those of the user.

sw.debug.print("sum {:.1f}, y = {y}", y.sum(), y=y)    becomes
print('sum {:.1f}, y = {y}'.format(results[1], y=results[2]))
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...errors import UnsupportedError, composed
from ...programs.stages import Program
from ...recording.debug_prints import DebugPrint
from ...trees import unflatten

__all__ = ["prints_of"]


class _Result:
    """A printed value, as the text of the array in the script."""

    def __init__(self, number: int) -> None:
        self._text = f"results[{number}]"

    def __repr__(self) -> str:
        return self._text


def prints_of(program: Program, caller: str) -> list[str]:
    """The statement of each call of ``debug.print``. UnsupportedError for a call that a script cannot repeat."""
    traced = program._traced
    values = program._compiled.stages["local"].main.body.results
    number = traced.out_tree.num_leaves
    statements = []
    for call in traced._call.prints:
        text = _statement(call, number)
        if text is None:
            made = next((value.defining_op for value in values[number:] if value.defining_op is not None), None)
            place = ("", 0) if made is None else (made.location.file, made.location.line)
            rule = (
                "debug.print must not be in vmap, and its arguments must be arrays, numbers, strings and trees of them"
            )
            way_out = "return the value instead of printing it"
            raise UnsupportedError(composed(caller, rule, repr(call._fmt), way_out, *place))
        statements.append(text)
        number += len(call.values)
    return statements


def _statement(call: DebugPrint, first: int) -> str | None:
    """The statement of a call whose values are the results from ``first`` on; None if it has none."""
    leaves = list(call._leaves)
    for i, place in enumerate(call._places):
        leaves[place] = _Result(first + i)
    args, kwargs = unflatten(call._tree, leaves)
    if call._maps or not all(map(_is_literal, (args, kwargs))):
        return None
    items = [*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())]
    return f"print({call._fmt!r}.format({', '.join(items)}))"


def _is_literal(value: Any) -> bool:
    """Whether the repr of a value is its text in Python."""
    if type(value) in (list, tuple, dict):
        return all(map(_is_literal, _items(value)))
    return value is None or type(value) in (bool, int, float, complex, str, _Result)


def _items(value: Any) -> Iterator[Any]:
    yield from value
    if isinstance(value, dict):
        yield from value.values()
