# SPDX-License-Identifier: Apache-2.0
"""The README's program runs, and prints what the README shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.support.paths import ROOT
from tools import pages

README = ROOT / "README.md"


def test_readme_program_prints_what_the_readme_shows(tmp_path: Path) -> None:
    text = README.read_text()
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    (tmp_path / "mlp.py").write_text(program)
    done = subprocess.run([sys.executable, "mlp.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.replace(f"{tmp_path}/", "") == shown


def test_the_readme_lists_every_page() -> None:
    """Pages of the reference are listed by its index."""
    linked = set(re.findall(r"\]\((docs/[^)#]+)\)", README.read_text()))
    written = {
        f"docs/{path.relative_to(pages.DOCS)}" for path in pages.pages() if path.parent.name not in ("ops", "reference")
    }
    notebooks = {
        f"docs/{path.relative_to(pages.DOCS)}"
        for path in pages.DOCS.rglob("*.ipynb")
        if not path.with_suffix(".md").exists()
    }
    assert (written | notebooks) - {"docs/index.md"} - linked == set()


def test_readme_and_landing_page_show_the_same_program() -> None:
    blocks = [
        re.findall(r"```(?:python|text)\n(.*?)```", path.read_text(), re.DOTALL)
        for path in (README, pages.DOCS / "index.md")
    ]
    assert blocks[0] == blocks[1]
