# SPDX-License-Identifier: Apache-2.0
"""The rows of ``python -m tests.conformance.jax.corpus``, which `make test-random` runs: their completeness."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator

from tests.support.paths import ROOT


def test_a_function_that_no_row_calls_is_found() -> None:
    """Its name in the title of another row does not count."""
    program = (
        "from tests.conformance.jax import corpus_coverage as coverage\n"
        "print(coverage.functions_without_row())\n"
        "row = coverage.FUNCTIONS.pop('fft.dctn and idctn')\n"
        "coverage.FUNCTIONS['fft.dctn and idctn'] = (lambda x: x, row[1])\n"
        "print(coverage.functions_without_row())\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert run.stdout == "[]\n['jax.scipy.fft.dctn', 'jax.scipy.fft.idctn']\n", run.stdout + run.stderr


def rows_of(table: ast.Dict) -> Iterator[str]:
    """The names in a table of rows: its keys, and the words of ``**of_module("...", ...)``."""
    for key, value in zip(table.keys, table.values):
        if isinstance(key, ast.Constant):
            yield str(key.value)
        elif isinstance(value, ast.Call) and isinstance(value.args[0], ast.Constant):
            yield from str(value.args[0].value).split()


def test_no_row_replaces_another() -> None:
    for name in ("corpus_functions", "corpus_linalg"):
        tree = ast.parse((ROOT / "tests" / "conformance" / "jax" / f"{name}.py").read_text())
        tables = {node.target.id: list(rows_of(node.value)) for node in tree.body  # type: ignore[attr-defined]
                  if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict)}  # fmt: skip
        assert {"LINALG"} & set(tables) or {"FFT", "RANDOM", "SORTS", "NN", "SPECIAL"} <= set(tables)
        for table, rows in tables.items():
            assert sorted(rows) == sorted(set(rows)), table
