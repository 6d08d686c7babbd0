# SPDX-License-Identifier: Apache-2.0
"""Ops that other ops make up give XLA's numbers: XLA runs the same text, with decompositions of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.op.cases import COMPOSED
from tests.support.once_per_run import once_per_run
from tests.support.partitioned import ONE_DEVICE, record, run
from tests.support.paths import ROOT

DTYPES = ("float32", "float64", "int32")
CASES = [case for case in COMPOSED if case.name != "stablehlo.rng"]  # XLA draws other numbers
ROWS = [
    (case, dtype, application)
    for case in CASES
    for dtype in DTYPES
    if dtype in case.dtypes
    for application in case.applications(5, dtype)
]
# XLA translates them in a form of its own only.
REFUSED_BY_XLA = {"stablehlo.unary_einsum", "chlo.ragged_dot"}
COMPILED_BY_XLA = [case for case in CASES if case.name not in REFUSED_BY_XLA]
# It multiplies at most 64 times.
LIMITED_IN_XLA = {("chlo.broadcast_power", "int32")}


@pytest.fixture(scope="module")
def xla(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, str]]:
    def write(folder: Path) -> None:
        folder.mkdir()
        operands = {}
        for i, (case, dtype, application) in enumerate(ROWS):
            for k, array in enumerate(case.operands(application, dtype)):
                operands[f"{i}_{k}"] = array
        np.savez(folder / "operands.npz", **operands)
        (folder / "programs.json").write_text(json.dumps([record(c, a, d).text() for c, d, a in ROWS]))
        worker = "tests.conformance.jax.composed_worker"
        subprocess.run([sys.executable, "-m", worker, str(folder)], check=True, capture_output=True, cwd=ROOT)

    folder = once_per_run(tmp_path_factory, "composed", write)
    return dict(np.load(folder / "results.npz")), json.loads((folder / "refused.json").read_text())


def test_xla_compiles_the_texts(xla: Any) -> None:
    compiled = {ROWS[int(i)][0].name for i in xla[0]}
    assert {case.name for case in CASES} - compiled == REFUSED_BY_XLA


@pytest.mark.parametrize("case", COMPILED_BY_XLA, ids=[case.id for case in COMPILED_BY_XLA])
def test_numbers_are_those_of_xla(xla: Any, case: Any) -> None:
    compared = 0
    for i, (row, dtype, application) in enumerate(ROWS):
        if row is not case or str(i) not in xla[0] or (case.name, dtype) in LIMITED_IN_XLA:
            continue
        operands = case.operands(application, dtype)
        if case.name == "stablehlo.torch_index_select" and operands[1].dtype == np.int64:
            continue  # XLA reads them as uint32: the last row where an index is negative
        got, want = run(record(case, application, dtype), ONE_DEVICE, operands)[0], xla[0][str(i)]
        where = f"{case.id} {dtype} {application.label}"
        assert got.dtype == want.dtype, where
        eps = float(np.finfo(dtype).eps) if dtype != "int32" else 0.0
        scale = float(np.abs(want[np.isfinite(want)]).max(initial=1)) if want.dtype.kind == "f" else 0.0
        np.testing.assert_allclose(got, want, rtol=8 * eps, atol=64 * eps * scale, err_msg=where)
        compared += 1
    assert compared
