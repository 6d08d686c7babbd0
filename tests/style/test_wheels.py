# SPDX-License-Identifier: Apache-2.0
"""What wheels need of libraries and what pages say of them, without a wheel; `make wheel` runs wheel_checks.py, too."""

from __future__ import annotations

import re
import subprocess
import tomllib

from shardwise import _core
from tests.style.source_tree import ROOT

# The newest symbol versions that manylinux_2_34 allows, and those of Debian 12, where wheels are built.
ALLOWED = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13)}
BUILT_WITH = {"GLIBC": (2, 36), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13)}


def wrapped() -> set[str]:
    """The functions whose calls a wheel binds to old versions."""
    return set(re.findall(r"-Wl,--wrap=(\w+)", (ROOT / "cpp" / "CMakeLists.txt").read_text()))


def needed(library: str) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Name → library and version of each symbol that a shared library takes from others."""
    table = subprocess.run(["objdump", "-T", library], capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"\*UND\*\s+\w+\s+\((\w+)_([\d.]+)\)\s+(\w+)$", table, re.MULTILINE)
    return {name: (origin, tuple(map(int, version.split(".")))) for origin, version, name in rows}


def test_what_is_newer_than_the_tag_allows_is_bound_to_old_versions() -> None:
    symbols = needed(_core.__file__)
    assert {"GLIBC", "GLIBCXX", "CXXABI"} <= {origin for origin, _ in symbols.values()}
    newer = {
        name
        for name, (origin, version) in symbols.items()
        if origin in ALLOWED and ALLOWED[origin] < version <= BUILT_WITH[origin]
    }
    # A name here: add it to cpp/manylinux/old_symbols.cpp, or use another function.
    assert newer - wrapped() == set()


def test_each_wrapped_function_has_a_wrapper_and_an_old_version() -> None:
    source = (ROOT / "cpp" / "manylinux" / "old_symbols.cpp").read_text()
    assert wrapped()
    assert set(re.findall(r"\b__wrap_(\w+)\(", source)) == wrapped()
    assert set(re.findall(r"\.symver \w+, (\w+)@GLIBC", source)) == wrapped()


def test_the_page_has_a_row_for_each_python_of_the_classifiers() -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    pythons = [found[1] for c in classifiers if (found := re.search(r":: (3\.\d+)$", c))]
    rows = re.findall(r"^\| CPython (3\.\d+) \|", (ROOT / "docs" / "install.md").read_text(), re.MULTILINE)
    assert pythons
    assert rows == pythons


def test_no_text_installs_the_package_by_its_name_alone() -> None:
    # pip would ask PyPI, where it is not.
    texts = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    texts += (ROOT / "python").rglob("*.py")
    commands = [line for text in texts for line in re.findall(r"\bpip install [^`\n]*", text.read_text())]
    assert any("dist/shardwise-" in line for line in commands)
    assert [line for line in commands if re.search(r"[\s']shardwise(?![-/\w])", line)] == []
