# SPDX-License-Identifier: Apache-2.0
"""Paths of axes: the ops that carry an axis from its annotation to a value.

The path of a value extends the path of the previous value by one step, and shares it: all paths along a chain of ops
together take as much memory as the chain.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, overload

from .tables import short_location

__all__ = ["ENDS", "Path", "PathStep", "named"]

ENDS = 4  # steps at each end of a long path that are printed


def named(value: str, op: str) -> str:
    """The text of an op: ``%h = stablehlo.tanh``."""
    return f"{value} = {op}" if "%" in value and not op.startswith("argument ") else op


@dataclass(frozen=True)
class PathStep:
    """One op that carried an axis ``from_`` one of its tensors ``to`` another.

    Attributes:
        name: the op, or the annotated argument or result.
        value: the name of the op's results in the program text.
        factor: the factor of the op's sharding rule, as its text names it.
        round: the round of propagation, from 0, for ops that change no element, to 4.
        priority: the user's priority.
    """

    name: str
    location: str
    from_: str
    to: str
    factor: str = ""
    round: int = 0
    priority: int = 0
    value: str = ""

    def __str__(self) -> str:
        where = f" ({short_location(self.location)})" if self.location else ""
        along = f", factor {self.factor}" if self.factor else ""
        when = f", in the turn of priority {self.priority}" if self.priority else ""
        return f"{named(self.value, self.name)}{where}: {self.from_} → {self.to}{along}, round {self.round}{when}"


class Path(Sequence[PathStep]):
    """Steps, starting at the annotation. Paths share their common beginning.

    >>> first = Path.of([PathStep("stablehlo.tanh", "", "operand 0", "result 0")])
    >>> longer = Path(first, PathStep("stablehlo.exponential", "", "operand 0", "result 0"))
    >>> len(longer), longer[-1].name, longer[:1] == first
    (2, 'stablehlo.exponential', True)
    """

    __slots__ = ("_before", "_begin", "_last", "_length")

    def __init__(self, before: Path | None = None, last: PathStep | None = None) -> None:
        self._before, self._last = before, last
        self._length = 0
        self._begin: tuple[PathStep, ...] = ()
        if before is not None and last is not None:
            self._length = before._length + 1
            self._begin = before._begin if self._length > ENDS else (*before._begin, last)

    @classmethod
    def of(cls, steps: Iterable[PathStep]) -> Path:
        """The path of these steps."""
        path = cls()
        for step in steps:
            path = cls(path, step)
        return path

    def _backwards(self) -> Iterator[PathStep]:
        path: Path | None = self
        while path is not None and path._last is not None:
            yield path._last
            path = path._before

    @overload
    def __getitem__(self, at: int) -> PathStep: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[PathStep, ...]: ...
    def __getitem__(self, at: int | slice) -> PathStep | tuple[PathStep, ...]:
        if not isinstance(at, slice):
            return self._some((range(self._length)[at],))[0]
        return self._some(range(self._length)[at])

    def _some(self, chosen: Sequence[int]) -> tuple[PathStep, ...]:
        """Some steps; the first ones are stored, the others are read backwards from the end."""
        if not chosen:
            return ()
        low = min(chosen)
        if max(chosen) < len(self._begin):
            return tuple(self._begin[i] for i in chosen)
        rest = list(islice(self._backwards(), self._length - low))
        return tuple(rest[self._length - 1 - i] for i in chosen)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[PathStep]:
        return reversed(list(self._backwards()))

    def __reversed__(self) -> Iterator[PathStep]:
        return self._backwards()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, (Path, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(map(operator.eq, reversed(self), reversed(other)))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> Any:
        return Path.of, (tuple(self),)
