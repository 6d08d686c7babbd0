# SPDX-License-Identifier: Apache-2.0
"""The worked examples of tests/worked: what each value gets is written there, and Shardy gives it, too."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from shardy_oracle import ShardyOracle
from worked_examples import EXAMPLES, Example, shardy_gives, we_give


def row(example: Example) -> Any:
    wrong = [pytest.mark.xfail(strict=True, reason=example.wrong_here)] if example.wrong_here else []
    return pytest.param(example, id=f"{example.file}: {example.place}", marks=wrong)


@pytest.mark.parametrize("example", [row(example) for example in EXAMPLES])
def test_values_get_what_the_example_says(shardy: ShardyOracle, example: Example) -> None:
    theirs = shardy_gives(shardy, example)
    assert {name: theirs.get(name) for name in example.expected} == example.expected
    ours = we_give(shardy, example)
    assert {name: ours.get(name) for name in example.expected} == example.expected


def test_examples_say_something() -> None:
    assert all(len(example.expected) >= 2 for example in EXAMPLES)
    places = Counter((example.file, example.place) for example in EXAMPLES)
    assert max(places.values()) == 1
