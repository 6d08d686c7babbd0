# SPDX-License-Identifier: Apache-2.0
"""The programs of pages and tutorials print what is shown, and the tutorials' notebooks are the same programs."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
PAGES = sorted(DOCS.rglob("*.md"))
# Of these modules every public name says something of shardings.
MODULES = ["annotations", "dtensor", "layouts", "manual", "mesh", "op_rules", "partition_spec", "placement", "sharding"]
_BLOCK = re.compile(r"```python\n(.*?)```(?:\n+```text\n(.*?)```)?", re.DOTALL)


def printed(code: str, namespace: dict[str, Any]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "tutorial", "exec"), namespace)
    return out.getvalue()


def test_there_are_tutorials_and_pages() -> None:
    assert TUTORIALS
    assert {"representation", "words", "propagation", "shardy_differences"} <= {path.stem for path in PAGES}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_prints_what_it_shows(path: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    blocks = _BLOCK.findall(path.read_text())
    assert blocks
    for code, shown in blocks:
        assert printed(code, namespace) == shown, code


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_block_of_a_page_is_a_program_or_what_it_prints(path: Path) -> None:
    text = path.read_text()
    blocks = _BLOCK.findall(text)
    assert text.count("```") == sum(4 if shown else 2 for _, shown in blocks)


def test_the_page_of_words_has_every_word_of_shardings() -> None:
    """Names that are types of values, and those that are said by methods, are not words of their own."""
    page = (DOCS / "words.md").read_text()
    types = {"Axis", "OpenDim", "PriorityDim", "SubAxis", "PartitionSpec", "Layout", "ShardingRule", "Placement"}
    modules = [importlib.import_module(f"shardwise.{name}") for name in MODULES]
    words = {word for module in modules for word in module.__all__} - types - {"name", "current_layout"}
    assert {word for word in words if not re.search(rf"\b{word}\b", page)} == set()


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
