# SPDX-License-Identifier: Apache-2.0
"""Wrong options of ``examples/translate.py`` end it before it trains."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tests.support.oracles import oracle
from tests.support.paths import ROOT

WRONG = {
    "--numbers 9": "--numbers must be at least 10, got 9",
    "--batch 0": "--batch must be at least 1, got 0",
    "--experts 1": "--experts must be at least 2, got 1",
    "--width 0": "--width must be at least 1, got 0",
    "--beams 0": "--beams must be at least 1, got 0",
    "--seeds 0": "--seeds must be at least 1, got 0",
    "--rate nan": "--rate must be a positive number, got nan",
    "--rate -1": "--rate must be a positive number, got -1.0",
    "--json missing/a.json": "--json must be in a folder that exists, got missing/a.json",
    "--plot missing/a.png": "--plot must be in a folder that exists, got missing/a.png",
}


@pytest.mark.parametrize("options", WRONG)
def test_wrong_options_end_it(
    options: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    oracle("num2words")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["translate.py", *options.split()])
    # Only the parser may run.
    monkeypatch.setattr("shardwise.models.translation.train_step", None)
    with pytest.raises(SystemExit, match=r"^2$"):
        runpy.run_path(str(ROOT / "examples" / "translate.py"), run_name="__main__")
    assert WRONG[options] in capsys.readouterr().err
