# SPDX-License-Identifier: Apache-2.0
"""Tests that cannot fail: they end before an assertion, assert nothing, or are skipped.

python -m tests.style.assertions        prints `path:line: test what`, and leaves with 1 if there is any
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from tests.style.asserting_names import Names, Scope, TestModule, dotted
from tests.style.assertion_flow import leaks
from tests.style.cpp_assertions import findings as cpp_findings
from tests.style.source_tree import ROOT, cpp_files, relative

SKIPS = ("importorskip", "skip", "skipif", "xfail")
# path → why a test may be skipped there, also in CI
MAY_SKIP = {
    "tests/support/oracles.py": "oracle() skips outside CI only",
    "tests/op/kernels/test_blas.py": "kernels for AVX-512 run on a CPU that has it",
}


def modules() -> list[TestModule]:
    paths = sorted((ROOT / "tests").rglob("*.py"))
    return [TestModule.of(".".join(p.relative_to(ROOT).with_suffix("").parts), p.read_text()) for p in paths]


def file_of(module: TestModule) -> str:
    return module.name.replace(".", "/") + ".py"


def findings_of(module: TestModule, names: Names) -> Iterator[str]:
    """The tests of a module that can end without an assertion."""
    if module.name.rpartition(".")[2].startswith("test_"):
        for test in module.tests():
            scope = Scope(names, module).inner(test)
            for leak in leaks(test, scope.asserts, scope.has_elements):
                yield f"{file_of(module)}:{leak.line}: {test.name} {leak.what}"


def skips_of(module: TestModule) -> Iterator[str]:
    """The places where a module skips a test."""
    for node in ast.walk(module.tree):
        if isinstance(node, (ast.Name, ast.Attribute)):
            place, _, name = module.path_of(dotted(node)).rpartition(".")
            if name in SKIPS and place in ("pytest", "pytest.mark", "unittest"):
                yield f"{file_of(module)}:{node.lineno}: {name}: use oracle(NAME) of tests/support/oracles.py"


def findings() -> list[str]:
    found = modules()
    names = Names(found)
    skips = [skip for module in found if file_of(module) not in MAY_SKIP for skip in skips_of(module)]
    cpp = cpp_findings({relative(path): path.read_text() for path in cpp_files(ROOT / "tests" / "unit")})
    return [*(finding for module in found for finding in findings_of(module, names)), *skips, *cpp]


if __name__ == "__main__":
    lines = findings()
    print("\n".join(lines) or "each test asserts on each of its paths")
    sys.exit(bool(lines))
