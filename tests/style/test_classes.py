# SPDX-License-Identifier: Apache-2.0
"""Sizes of classes, and includes that nothing needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.style import exceptions as allowed
from tests.style.cpp_classes import CppClass, classes, data_members
from tests.style.includes import dead_includes
from tests.style.source_tree import CORE, ROOT, cpp_files, relative

MAX_LINES, MAX_MEMBERS = 200, 12


def length(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def docstrings(node: ast.ClassDef) -> Iterator[ast.stmt]:
    for part in ast.walk(node):
        if isinstance(part, (ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(part) is not None:
            yield part.body[0]


def python_classes(path: Path) -> Iterator[CppClass]:
    """Classes of a Python file; their members are the attributes that methods assign.

    Lines of docstrings do not count: a public class has more lines of reference than of code.
    """
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ClassDef):
            continue
        members = {
            target.attr
            for target in ast.walk(node)
            if isinstance(target, ast.Attribute)
            and isinstance(target.ctx, ast.Store)
            and isinstance(target.value, ast.Name)
            and target.value.id == "self"
        }
        yield CppClass(node.name, length(node) - sum(map(length, docstrings(node))), sorted(members))


def all_classes() -> Iterator[tuple[str, CppClass]]:
    for path in cpp_files(CORE):
        for found in classes(path):
            yield f"{relative(path)}:{found.name}", found
    for path in sorted((ROOT / "python" / "shardwise").rglob("*.py")):
        for found in python_classes(path):
            yield f"{relative(path)}:{found.name}", found


def test_classes_are_small() -> None:
    large = {
        place: (found.lines, len(found.members))
        for place, found in all_classes()
        if found.lines > MAX_LINES or len(found.members) > MAX_MEMBERS
    }
    assert {place: size for place, size in large.items() if place not in allowed.CLASSES} == {}
    assert set(allowed.CLASSES) <= set(large), "an exception that is no longer needed"


def test_the_reader_of_classes_counts_members() -> None:
    body = """\
 public:
  int steps() const { return steps_; }

 private:
  int steps_ = 0;
  const Module& module_;
  std::vector<std::pair<OpId, ValueId>> pairs_;
  bool a_ = false, b_ = false;
  Shape shape_{1, 2};
  static constexpr int kLimit = 3;
  void add(int value_);"""
    assert data_members(body.splitlines(), "  ") == ["steps_", "module_", "pairs_", "a_", "b_", "shape_"]


def test_every_include_is_needed() -> None:
    dead = {relative(path): names for path in cpp_files(CORE) if (names := dead_includes(path))}
    assert dead == {}
