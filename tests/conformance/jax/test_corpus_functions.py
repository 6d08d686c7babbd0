# SPDX-License-Identifier: Apache-2.0
"""A sample of ``python -m tests.conformance.jax.corpus``: JAX's functions as texts, whole and on 8 devices."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator

from tests.support.paths import ROOT

TOOL = "tests.conformance.jax.corpus"


def test_a_sample_of_functions_gives_what_jax_gives() -> None:
    """Every fourth row, about 25 s of processor time. The tool also checks that the rows call every public function."""
    run = subprocess.run([sys.executable, "-m", TOOL, "--every", "4"], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stdout + run.stderr
    rows, uneven = re.search(r"(\d+) rows in \d+ s, (\d+) with uneven shards: 0 differ", run.stdout).groups()  # type: ignore[union-attr]
    assert int(rows) >= 65
    assert int(uneven) >= int(rows) * 3 // 4
    assert run.stdout.count("equal") >= 120


def test_a_function_that_no_row_calls_is_found() -> None:
    """Its name in the title of another row does not count."""
    program = (
        "from tests.conformance.jax import corpus_coverage as coverage\n"
        "row = coverage.FUNCTIONS.pop('fft.dctn and idctn')\n"
        "coverage.FUNCTIONS['fft.dctn and idctn'] = (lambda x: x, row[1])\n"
        "print(coverage.functions_without_row())\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert run.stdout.strip() == "['jax.scipy.fft.dctn', 'jax.scipy.fft.idctn']", run.stdout + run.stderr


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
