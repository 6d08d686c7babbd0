# SPDX-License-Identifier: Apache-2.0
"""Writes a notebook beside every tutorial: its prose, its programs, and what they print when they run here.

With --write-text the output blocks of tutorials, and of the other pages in docs/, are written too, from the same run.
"""

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
    """Prose between programs is a markdown cell; the outputs that the tutorial shows are left to the run."""
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


def with_outputs(text: str, outputs: list[str]) -> str:
    """The tutorial with what its programs printed."""
    printed = iter(outputs)

    def block(found: re.Match[str]) -> str:
        shown = next(printed)
        code = f"```python\n{found['code']}```"
        return f"{code}\n\n```text\n{shown}```" if shown else code

    return _PART.sub(block, text)


def main() -> None:
    """Run every tutorial and write what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write-text", action="store_true", help="write the outputs into the tutorials too")
    args = parser.parse_args()
    tutorials = sorted((DOCS / "tutorials").glob("*.md"))
    for path in tutorials + (sorted(DOCS.glob("*.md")) if args.write_text else []):
        notebook = new_notebook(cells=cells_of(path.read_text()))
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
        outputs = []
        for cell in notebook.cells:
            cell.metadata.clear()  # times of the run
            if cell.cell_type == "code":
                outputs.append("".join(output.get("text", "") for output in cell.outputs))
        notebook.metadata.pop("language_info", None)
        if path in tutorials:
            nbformat.write(notebook, path.with_suffix(".ipynb"))
        if args.write_text:
            path.write_text(with_outputs(path.read_text(), outputs))
        print(f"written: {path.with_suffix('')}")


if __name__ == "__main__":
    main()
