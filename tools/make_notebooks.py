# SPDX-License-Identifier: Apache-2.0
"""Write a notebook beside every tutorial in Markdown, and execute the other notebooks in docs/tutorials again."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

DOCS = Path(__file__).resolve().parents[1] / "docs"
_PART = re.compile(r"```python\n(?P<code>.*?)```(?:\n+```text\n.*?```)?", re.DOTALL)


def cells_of(text: str) -> list[nbformat.NotebookNode]:
    """The cells of a tutorial: prose becomes Markdown cells, and the outputs in the text are dropped."""
    cells, end = [], 0
    for found in _PART.finditer(text):
        cells += [new_markdown_cell(prose)] if (prose := text[end : found.start()].strip()) else []
        cells.append(new_code_cell(found["code"].rstrip("\n")))
        end = found.end()
    if rest := text[end:].strip():
        cells.append(new_markdown_cell(rest))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    return cells


def main() -> None:
    """Execute and write every notebook."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    for path in sorted((DOCS / "tutorials").glob("*.md")):
        notebook = new_notebook(cells=cells_of(path.read_text()))
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        write(notebook, path.with_suffix(".ipynb"))
    for path in sorted((DOCS / "tutorials").glob("*.ipynb")):
        if not path.with_suffix(".md").exists():
            write(nbformat.read(path, as_version=4), path)


def write(notebook: nbformat.NotebookNode, path: Path) -> None:
    """Execute a notebook, and write it without what differs between runs."""
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    for cell in notebook.cells:
        cell.metadata.clear()  # times of the run
    notebook.metadata.pop("language_info", None)
    nbformat.write(notebook, path)
    print(f"written: {path}")


if __name__ == "__main__":
    main()
