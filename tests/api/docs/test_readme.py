# SPDX-License-Identifier: Apache-2.0
"""The README's program runs, and prints what the README shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.support.paths import ROOT

README = ROOT / "README.md"


def test_readme_program_prints_what_the_readme_shows(tmp_path: Path) -> None:
    text = README.read_text()
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    (tmp_path / "mlp.py").write_text(program)
    done = subprocess.run([sys.executable, "mlp.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.replace(f"{tmp_path}/", "") == shown
