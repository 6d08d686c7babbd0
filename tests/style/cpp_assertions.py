# SPDX-License-Identifier: Apache-2.0
"""GoogleTests that cannot fail: without EXPECT_ and ASSERT_, with them under conditions only, or left before the first.

TEST(Dims, AreCounted) {         line 2: returns before any assertion
  if (dims.empty()) return;
  EXPECT_EQ(count(dims), 3);
}

A function of the tests asserts if it returns nothing and contains an assertion, or a call of a function that does.
GTEST_SKIP is for kernels that need AVX-512 only: the hardware decides, and no setup can add it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

TEST = re.compile(r"^(?:TYPED_)?TEST(?:_F|_P)?\((\w+),\s*(\w+)\) \{", re.MULTILINE)
# Only what returns nothing is called for its assertions; an assertion in another one is about the data that it makes.
FUNCTION = re.compile(r"\bvoid (?:\w+::)?(\w+)\((?:[^;{}()]|\([^;{}()]*\)|\{\})*\)(?: const| noexcept| override)* \{")
ASSERTION = r"(?:EXPECT|ASSERT)_\w+|FAIL|ADD_FAILURE|ADD_FAILURE_AT"
CONDITION = re.compile(r"(?:else|if|while|switch|case)\b")
# Comments and literals; a literal keeps its quotes, and each keeps its lines.
TEXTS = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.DOTALL)


@dataclass(frozen=True)
class Body:
    """A function or a test, without comments and literals."""

    name: str
    line: int
    text: str


def bare(source: str) -> str:
    """The source with empty literals and without comments, line by line as before."""
    return TEXTS.sub(lambda found: ('""' if found[0][0] in "\"'R" else "") + "\n" * found[0].count("\n"), source)


def body_at(source: str, opened: int) -> str:
    """From an opening brace to its closing one."""
    depth = 0
    for at in range(opened, len(source)):
        depth += {"{": 1, "}": -1}.get(source[at], 0)
        if depth == 0:
            return source[opened : at + 1]
    return source[opened:]


def bodies(source: str, head: re.Pattern[str]) -> Iterator[Body]:
    for found in head.finditer(source):
        yield Body(".".join(found.groups()), source.count("\n", 0, found.start()) + 1, body_at(source, found.end() - 1))


def assertion_of(asserting: Iterable[str]) -> re.Pattern[str]:
    """Matches an assertion, or the name of a function that asserts."""
    return re.compile(rf"\b(?:{'|'.join([ASSERTION, *map(re.escape, asserting)])})\b")


def asserting_functions(sources: Iterable[str]) -> set[str]:
    """The functions that assert, also through other ones."""
    functions = [body for source in sources for body in bodies(source, FUNCTION)]
    found: set[str] = set()
    while new := {f.name for f in functions if assertion_of(found).search(f.text)} - found:
        found |= new
    return found


def is_conditional(text: str, at: int) -> bool:
    """Whether the statement at this place, or a block around it, follows a condition."""
    heads: list[str] = []  # of the blocks around
    start = 0  # of the statement
    for mark in re.finditer(r"[{};]", text[:at]):
        if mark[0] == "{":
            heads.append(text[start : mark.start()])
        elif mark[0] == "}" and heads:
            heads.pop()
        start = mark.end()
    return any(CONDITION.match(head.strip()) for head in (*heads, text[start:at]))


def included_files(path: str, files: Mapping[str, str]) -> set[str]:
    """The files of the tests that a file includes, also through other ones."""
    found: set[str] = set()
    waiting = [path]
    while waiting:
        names = re.findall(r'^#include "(.*)"', files[waiting.pop()], re.MULTILINE)
        new = {f"tests/unit/{name}" for name in names} & files.keys() - found
        found |= new
        waiting += new
    return found


def findings(files: Mapping[str, str]) -> list[str]:
    """`path:line: test what` of each test that cannot fail; path → source."""
    sources = {path: bare(text) for path, text in files.items()}
    found = []
    for path, source in sources.items():
        asserting = asserting_functions(sources[name] for name in {path, *included_files(path, files)})
        for test in bodies(source, TEST):
            places = [place.start() for place in assertion_of(asserting).finditer(test.text)]
            left = re.search(r"\breturn;", test.text)
            if not places:
                found.append(f"{path}:{test.line}: {test.name} asserts nothing")
            elif all(is_conditional(test.text, place) for place in places):
                found.append(f"{path}:{test.line}: {test.name} asserts under conditions only")
            elif left and left.start() < places[0]:
                line = test.line + test.text.count("\n", 0, left.start())
                found.append(f"{path}:{line}: {test.name} returns before any assertion")
        for number, line in enumerate(source.splitlines(), 1):
            if "GTEST_SKIP" in line and "avx512" not in line.lower():
                found.append(f"{path}:{number}: GTEST_SKIP is for AVX-512 only")
    return found
