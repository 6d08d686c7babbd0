# SPDX-License-Identifier: Apache-2.0
"""Sorts, top_k and random bits give the bits that XLA gives for the same text."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.op.catalogue import random, sort
from tests.support.once_per_run import once_per_run
from tests.support.partitioned import ONE_DEVICE, record, run, same_bits
from tests.support.paths import ROOT

CASES = [*sort.CASES, *(case for case in random.CASES if case.name == "stablehlo.rng_bit_generator")]
ROWS = [
    (case, dtype, application)
    for case in CASES
    for dtype in case.dtypes[:: max(len(case.dtypes) // 3, 1)]
    for application in case.applications(7, dtype)[::2]
]


@pytest.fixture(scope="module")
def xla(tmp_path_factory: pytest.TempPathFactory) -> Any:
    def write(folder: Path) -> None:
        folder.mkdir()
        operands = {}
        for i, (case, dtype, application) in enumerate(ROWS):
            for k, array in enumerate(case.operands(application, dtype)):
                operands[f"{i}_{k}"] = array if array.dtype.kind != "V" else array.view(np.uint16)
        np.savez(folder / "operands.npz", **operands)
        (folder / "programs.json").write_text(json.dumps([record(c, a, d).text() for c, d, a in ROWS]))
        worker = "tests.conformance.jax.composed_worker"
        subprocess.run([sys.executable, "-m", worker, str(folder)], check=True, capture_output=True, cwd=ROOT)

    folder = once_per_run(tmp_path_factory, "sorts", write)
    return dict(np.load(folder / "results.npz"))


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_bits_are_those_of_xla(xla: Any, case: Any) -> None:
    compared = 0
    for i, (row, dtype, application) in enumerate(ROWS):
        if row is not case or str(i) not in xla:
            continue
        got = run(record(case, application, dtype), ONE_DEVICE, case.operands(application, dtype))[0]
        want = xla[str(i)].view(got.dtype)  # XLA returns int16 as uint16
        assert same_bits(got, want), f"{case.id} {dtype} {application.label}"
        compared += 1
    assert compared >= 4
