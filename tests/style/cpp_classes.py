# SPDX-License-Identifier: Apache-2.0
"""The classes of C++ files as clang-format leaves them: their lines and data members.

class Plan {          one class of 5 lines with 2 data members
 public:
 private:
  int steps_ = 0;
  Module module_;
};
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OPENS = re.compile(r"^( *)(?:template .*> )?class (?:\[\[\w+\]\] )?([\w:]+)[^;]*\{$")
# `Type name_;`, `Type name_ = value;`, `Type name_{…};`, `Type a_, b_;`: private members end in an underscore.
MEMBER = re.compile(
    r"^(?:static |mutable |const )*[\w:<>,*&\s\[\]()]+?[ &*]((?:\w+_(?: = [^,;]+|\{[^;]*\})?(?:, )?)+);"
)


@dataclass(frozen=True)
class CppClass:
    """A class with private state."""

    name: str
    lines: int
    members: list[str]


def classes(path: Path) -> Iterator[CppClass]:
    """Classes of a file, nested ones apart from the class around them."""
    lines = path.read_text().splitlines()
    for start, line in enumerate(lines):
        opened = OPENS.match(line)
        if opened is None:
            continue
        indent = opened[1]
        end = next((n for n in range(start, len(lines)) if lines[n] == indent + "};"), start)
        yield CppClass(opened[2], end - start + 1, data_members(lines[start + 1 : end], indent + "  "))


def data_members(body: list[str], indent: str) -> list[str]:
    members = []
    for line in body:
        if not line.startswith(indent) or line.startswith(indent + " ") or "(" in line.split("=")[0].split("{")[0]:
            continue
        code = line.split("//")[0].strip()
        if code.startswith(("using ", "static constexpr", "friend ", "return ")):
            continue
        if found := MEMBER.match(code):
            members += re.findall(r"\b(\w+_)\b(?= = |\{|,|$)", found[1])
    return members
