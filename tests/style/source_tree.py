# SPDX-License-Identifier: Apache-2.0
"""Reading the source tree: files, functions, includes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "cpp" / "shardwise"


def cpp_files(folder: Path = ROOT / "cpp") -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.suffix in (".h", ".cpp"))


def python_files() -> list[Path]:
    folders = ("python", "tests", "benchmarks", "examples", "tools")
    return sorted(p for f in folders for p in (ROOT / f).rglob("*.py"))


def folders() -> dict[str, int]:
    """Path → number of files directly in the folder, without compiled ones."""
    paths = [path for top in ("python", "tests", "cpp") for path in (ROOT / top, *(ROOT / top).rglob("*"))]
    return {
        relative(path): sum(file.is_file() and file.suffix != ".so" for file in path.iterdir())
        for path in paths
        if path.is_dir() and path.name != "__pycache__"
    }


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def includes(path: Path) -> list[str]:
    return re.findall(r'^#include [<"]([^>"]+)[>"]', path.read_text(), re.MULTILINE)


def cpp_functions(path: Path) -> Iterator[tuple[str, int]]:
    """(name, lines) of functions and classes that open and close at column 0, as clang-format leaves them."""
    start, name = None, ""
    for number, line in enumerate(path.read_text().splitlines()):
        if start is None:
            opens = line.rstrip().endswith("{") and not line.startswith(
                (" ", "}", "namespace", "extern", "struct", "class", "enum", "union", "#", "//")
            )
            if (opens and "(" in line) or (opens and line.startswith(")")):
                match = re.search(r"([\w:~]+|operator\S+)\(", line)
                start, name = number, match.group(1) if match else line
        elif line.startswith("}"):
            yield name, number - start + 1
            start = None


def anonymous_functions(path: Path) -> set[str]:
    """Names of the functions in the anonymous namespaces of a file, at column 0 as clang-format leaves them."""
    bodies = re.findall(r"^namespace \{\n(.*?)^\}  // namespace$", path.read_text(), re.MULTILINE | re.DOTALL)
    names: set[str] = set()
    for line in "\n".join(bodies).splitlines():
        found = re.match(r"(?!static_assert)[A-Za-z\[][\w:<>,&*\[\] ]*?(\w+)\(", line)
        names |= {found[1]} if found else set()
    return names


def python_functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1
