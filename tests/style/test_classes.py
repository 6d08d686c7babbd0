# SPDX-License-Identifier: Apache-2.0
"""Sizes of classes, and includes that nothing needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.style import exceptions as allowed
from tests.style.cpp_classes import CppClass, classes_with_members, data_members
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
    for path, found in classes_with_members(cpp_files(CORE)):
        yield f"{relative(path)}:{found.name}", found
    for path in sorted((ROOT / "python" / "shardwise").rglob("*.py")):
        for found in python_classes(path):
            yield f"{relative(path)}:{found.name}", found


def test_classes_are_small() -> None:
    sizes = {place: (found.lines, len(found.members)) for place, found in all_classes()}
    large = {
        place: size
        for place, size in sizes.items()
        if size[0] > allowed.CLASSES.get(place, MAX_LINES) or size[1] > MAX_MEMBERS
    }
    assert large == {}
    small = {place for place in allowed.CLASSES if sizes.get(place, (0, 0))[0] <= MAX_LINES}
    assert small == set(), "an exception that is no longer needed"


def test_the_lines_of_a_class_include_members_defined_elsewhere(tmp_path: Path) -> None:
    header, source = tmp_path / "plan.h", tmp_path / "plan.cpp"
    header.write_text("class Plan {\n public:\n  Plan();\n  int run(\n      int steps);\n};\n")
    source.write_text(
        "Plan::Plan() {}\n\n"
        "int Plan::run(int steps) {\n  if (steps > 0) {\n  }\n  return steps;\n}\n\n"
        "std::vector<int> Other::of(const Plan& plan,\n                           int steps) {\n  return {};\n}\n"
        "class Other {\n};\n"
    )
    found = {each.name: each.lines for _, each in classes_with_members([header, source])}
    assert found == {"Plan": 6 + 1 + 5, "Other": 2 + 4}


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
