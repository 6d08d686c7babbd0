# SPDX-License-Identifier: Apache-2.0
"""Changes to valid texts that keep most of them: tokens, lines and bytes dropped, copied, swapped or replaced.

mutated("tensor<8x4xf32>", random.Random(0))
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

TOKEN = re.compile(r'\d+|"[^"]*"|[%@#!]\w+|[a-zA-Z_.]+|\S')
NUMBERS = ("0", "1", "2", "3", "-1", "7", str(2**31), str(2**63 - 1), "1" + "0" * 25, "0x7F", "1.5", "1e999")
SCRAPS = (
    '"', "<", "}", "[", "?", "x", "tensor<", "%0", "dense<", "0x", "loc(", "({", "->", "^bb0", "@", "#", "!", "//",
    "sdy.sharding", "f32", "*", ":", "complex<", "{}", "null", "true", "\\u0000", "\\n",
)  # fmt: skip
MOST_TOKENS = 4000  # a longer text is changed within a stretch of it


def _tokens(text: str, rng: random.Random) -> list[re.Match[str]]:
    tokens = list(TOKEN.finditer(text))
    if len(tokens) > MOST_TOKENS:
        start = rng.randrange(len(tokens) - MOST_TOKENS)
        tokens = tokens[start : start + MOST_TOKENS]
    return tokens


def change_token(text: str, rng: random.Random) -> str:
    tokens = _tokens(text, rng)
    if not tokens:
        return rng.choice(SCRAPS)
    at, other = rng.choice(tokens), rng.choice(tokens)
    numbers = NUMBERS if at.group()[0].isdigit() else SCRAPS
    new = rng.choice([other.group(), "", rng.choice(numbers), at.group() + other.group(), rng.choice(SCRAPS)])
    return text[: at.start()] + new + text[at.end() :]


def swap_tokens(text: str, rng: random.Random) -> str:
    tokens = _tokens(text, rng)
    if len(tokens) < 2:
        return text
    a, b = sorted(rng.sample(tokens, 2), key=lambda token: token.start())
    return text[: a.start()] + b.group() + text[a.end() : b.start()] + a.group() + text[b.end() :]


def change_line(text: str, rng: random.Random) -> str:
    """Drops a line, copies it elsewhere, or moves it."""
    lines = text.split("\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(3)
    line = lines[i] if kind == 1 else lines.pop(i)
    if kind:
        lines.insert(j, line)
    return "\n".join(lines)


def change_bytes(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    end = min(len(text), at + rng.choice((0, 1, 1, 2, 8)))
    return text[:at] + "".join(chr(rng.choice((0, 9, 10, 34, 60, 92, 127, 233, 0x20AC, rng.randrange(128)))) * 1
                               for _ in range(rng.choice((0, 1, 1, 3)))) + text[end:]  # fmt: skip


def cut(text: str, rng: random.Random) -> str:
    return text[: rng.randrange(len(text) + 1)]


def repeat(text: str, rng: random.Random) -> str:
    """One token very often: what nests or counts must have an end."""
    tokens = _tokens(text, rng)
    if not tokens:
        return text
    at = rng.choice(tokens)
    return text[: at.start()] + at.group() * rng.choice((2, 3, 100, 5000)) + text[at.end() :]


CHANGES: Sequence[tuple[Callable[[str, random.Random], str], int]] = (
    (change_token, 10), (swap_tokens, 3), (change_line, 3), (change_bytes, 4), (cut, 1), (repeat, 1),
)  # fmt: skip


def mutated(text: str, rng: random.Random, most: int = 3) -> str:
    functions, weights = zip(*CHANGES)
    for function in rng.choices(functions, weights, k=rng.randint(1, most)):
        text = function(text, rng)
    return text
