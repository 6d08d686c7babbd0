# SPDX-License-Identifier: Apache-2.0
"""A new op is entered in few tables outside of C++: each folder or test that names all ops is counted."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from shardwise import _core
from tests.style.source_tree import ROOT, python_files

# The ops with a kernel: one that other ops make up needs only its cases.
OPS = frozenset(
    op.name
    for op in _core.ir.all_ops()
    if op.runnable and not op.composed and op.name.startswith(("stablehlo.", "chlo."))
)
SHARE = 0.9
LIST = re.compile(r"[a-z_0-9. ]+")
# Beside its definition, each op needs instances and a form in both targets of hand-over.
TABLES = ["python/shardwise/interop/to_jax", "python/shardwise/interop/to_mpi4py", "tests/op/catalogue"]


def ops_named_in(text: str) -> set[str]:
    """Ops whose name, with or without the dialect, is a string, or a word of a string that lists names."""
    strings = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    words = {word for value in strings if isinstance(value, str) and LIST.fullmatch(value) for word in value.split()}
    return {op for op in OPS if op in words or op.partition(".")[2] in words}


def tables(files: Iterable[Path], root: Path) -> list[str]:
    """Where nearly all ops are named: in the modules of a folder together, or in one test."""
    named: defaultdict[Path, set[str]] = defaultdict(set)
    for path in files:
        named[path if path.name.startswith("test_") else path.parent] |= ops_named_in(path.read_text())
    return sorted(str(place.relative_to(root)) for place, ops in named.items() if len(ops) >= SHARE * len(OPS))


def test_three_folders_name_all_ops() -> None:
    assert len(OPS) > 80
    assert tables(python_files(), ROOT) == TABLES, "make it a view of tests/op/catalogue"


@pytest.mark.parametrize("has_dialects", [True, False])
def test_another_table_is_found_in_one_file_or_in_several(tmp_path: Path, has_dialects: bool) -> None:
    names = [op if has_dialects else op.partition(".")[2] for op in sorted(OPS)]
    parts = {
        "one/table.py": f"TABLE = {names}",
        "two/first.py": f"FIRST = {names[::2]}",
        "two/second.py": f"SECOND = {' '.join(names[1::2])!r}.split()",
        "three/test_first.py": f"FIRST = {names[::2]}",
        "three/test_second.py": f"SECOND = {names[1::2]}",
        "three/test_third.py": f"THIRD = {dict.fromkeys(names, 1)}",
    }
    for name, text in parts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert tables([tmp_path / name for name in parts], tmp_path) == ["one", "three/test_third.py", "two"]


def test_contributing_names_the_tables() -> None:
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("## Add an op\n")[2].partition("\n## ")[0]
    assert [table for table in TABLES if f"`{table}/" not in section] == []
