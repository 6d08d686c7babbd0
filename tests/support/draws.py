# SPDX-License-Identifier: Apache-2.0
"""Sources of random decisions: Hypothesis, which finds smaller examples, or a seed, which is ten times as fast."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, Protocol

from hypothesis import strategies as st


class Draws(Protocol):
    """The decisions that generators take."""

    def integer(self, low: int, high: int) -> int:
        """From ``low`` to ``high``, both included."""

    def pick(self, options: Iterable[Any]) -> Any: ...

    def boolean(self) -> bool: ...

    def permutation(self, options: Iterable[Any]) -> list[Any]: ...


class HypothesisDraws:
    """The decisions of a Hypothesis example."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def pick(self, options: Iterable[Any]) -> Any:
        return self.draw(st.sampled_from(list(options)))

    def boolean(self) -> bool:
        return self.draw(st.booleans())

    def permutation(self, options: Iterable[Any]) -> list[Any]:
        return list(self.draw(st.permutations(list(options))))


class SeededDraws:
    """The decisions of a seed."""

    def __init__(self, *seed: int) -> None:
        self.random = random.Random(repr(seed))

    def integer(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def pick(self, options: Iterable[Any]) -> Any:
        return self.random.choice(list(options))

    def boolean(self) -> bool:
        return self.random.random() < 0.5

    def permutation(self, options: Iterable[Any]) -> list[Any]:
        shuffled = list(options)
        self.random.shuffle(shuffled)
        return shuffled
