# SPDX-License-Identifier: Apache-2.0
"""The classes of C++ files as clang-format leaves them: their lines and data members.

class Plan {                  one class of 9 lines with 2 data members: its body, and the members defined outside of it
 public:
  void run();
 private:
  int steps_ = 0;
  Module module_;
};
void Plan::run() {
  ++steps_;
}
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

OPENS = re.compile(r"^( *)(?:template .*> )?class (?:\[\[\w+\]\] )?([\w:]+)[^;]*\{$")
# `Type name_;`, `Type name_ = value;`, `Type name_{…};`, `Type a_, b_;`: private members end in an underscore.
MEMBER = re.compile(
    r"^(?:static |mutable |const )*[\w:<>,*&\s\[\]()]+?[ &*]((?:\w+_(?: = [^,;]+|\{[^;]*\})?(?:, )?)+);"
)
# The start of a member's definition outside of its class, at column 0: `Type Class<T>::name(…`, `Class::Class(…`.
DEFINES = re.compile(r"^(?:\w[\w:<>,*&\s\[\]]*[ *&])?(\w+)(?:<[\w, ]+>)?::(?:~?\w+|operator[^\w\s]+)\(")


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


def classes_with_members(paths: Iterable[Path]) -> Iterator[tuple[Path, CppClass]]:
    """Classes of all files, with the lines of their members that are defined outside of the class.

    A class of a header may have members in any file; a file's own class of that name goes before it.
    """
    found = [(path, each) for path in paths for each in classes(path)]
    own = {(path, each.name) for path, each in found}
    headers = {each.name: path for path, each in found if path.suffix == ".h"}
    outside: Counter[tuple[Path, str]] = Counter()
    for path in paths:
        for name, lines in defined_members(path):
            place = path if (path, name) in own else headers.get(name)
            if place is not None:
                outside[place, name] += lines
    for path, each in found:
        yield path, replace(each, lines=each.lines + outside[path, each.name])


def defined_members(path: Path) -> Iterator[tuple[str, int]]:
    """(class, lines) of each member that is defined outside of its class."""
    lines = path.read_text().splitlines()
    for start, line in enumerate(lines):
        if found := DEFINES.match(line):
            opened = next(n for n in range(start, len(lines)) if lines[n].endswith(("{", "}", ";")))
            end = opened
            if lines[opened].endswith("{"):
                end = next(n for n in range(opened, len(lines)) if lines[n].startswith("}"))
            yield found[1], 0 if lines[opened].endswith(";") else end - start + 1


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
