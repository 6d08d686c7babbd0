# SPDX-License-Identifier: Apache-2.0
"""The programs of pages and tutorials print what is shown, and the tutorials' notebooks are the same programs."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
PAGES = sorted(DOCS.rglob("*.md"))
_BLOCK = re.compile(r"```python\n(.*?)```(?:\n+```text\n(.*?)```)?", re.DOTALL)


def printed(code: str, namespace: dict[str, Any]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "tutorial", "exec"), namespace)
    return out.getvalue()


def test_there_are_tutorials_and_pages() -> None:
    assert TUTORIALS
    assert {"representation", "words"} <= {path.stem for path in PAGES}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_prints_what_it_shows(path: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    blocks = _BLOCK.findall(path.read_text())
    assert blocks
    for code, shown in blocks:
        assert printed(code, namespace) == shown, code


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_notebook_is_its_tutorial_executed(path: Path) -> None:
    notebook = json.loads(path.with_suffix(".ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    blocks = _BLOCK.findall(path.read_text())
    assert ["".join(cell["source"]) for cell in cells] == [code.rstrip("\n") for code, _ in blocks]
    for cell, (code, shown) in zip(cells, blocks):
        assert cell["execution_count"], code
        assert all(output["output_type"] == "stream" for output in cell["outputs"]), code
        assert "".join("".join(output["text"]) for output in cell["outputs"]) == shown, code
