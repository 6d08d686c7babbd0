# SPDX-License-Identifier: Apache-2.0
"""In a notebook, places are cells: ``Cell In[2], line 6``, as IPython prints them."""

from __future__ import annotations

import json
import re
import sys
import types
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from shardwise.reports.tables import place
from shardwise.user_code import sources
from tests.support.oracles import oracle
from tests.support.paths import ROOT

MESH = sw.Mesh({"x": 2})
CELL = "/tmp/ipykernel_7/1234.py"
SOURCE = """
def f(x):
    h = np.tanh(x)
    return h.sum()


def wrong(x):
    return x.reshape(3)
"""


class Shell:
    """What IPython's shell has of its cells."""

    def __init__(self) -> None:
        self.compile = self
        self.counts = {CELL: 2}

    def format_code_name(self, name: str) -> tuple[str, str] | None:
        return ("Cell", f"In[{self.counts[name]}]") if name in self.counts else None


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Shell:
    found = Shell()
    module: Any = types.ModuleType("IPython")
    module.get_ipython = lambda: found
    monkeypatch.setitem(sys.modules, "IPython", module)
    return found


def cell() -> dict[str, Any]:
    namespace: dict[str, Any] = {"np": np}
    exec(compile(SOURCE, CELL, "exec"), namespace)
    return namespace


def test_a_place_is_a_line_of_a_file_or_of_a_cell() -> None:
    assert place("train.py", 3) == "train.py:3"
    assert place("Cell In[2]", 6) == "Cell In[2], line 6"
    assert place("", 0) == ""


@pytest.mark.usefixtures("shell")
def test_reports_name_the_cell() -> None:
    program = sw.jit(cell()["f"], mesh=MESH, in_shardings=P("x")).lower(np.ones(4, np.float32)).compile()
    (row,) = program.collectives()
    assert (row.file, row.line, row.location) == ("Cell In[2]", 4, "Cell In[2], line 4")
    assert "Cell In[2], line 4  reduction in reduce" in repr(program.collectives())
    assert repr(program.why("h")).splitlines()[0] == (
        'h (Cell In[2], line 3) is tensor<4xf32>, sharded [{"x"}] by aggressive propagation.'
    )
    assert 'loc("Cell In[2]":3:9)' in program.as_text("global", locations=True)


@pytest.mark.usefixtures("shell")
def test_why_is_asked_for_a_line_of_a_cell() -> None:
    traced = sw.jit(cell()["f"], mesh=MESH, in_shardings=P("x")).trace(np.ones(4, np.float32))
    for question in ("Cell In[2], line 3", "Cell In[2], line 4"):
        assert traced.why(question).values[0].location == question
    with pytest.raises(KeyError, match=r"why: the program has no values in Cell In\[3\]; it has some in Cell In\[2\]"):
        traced.why("Cell In[3], line 3")


@pytest.mark.usefixtures("shell")
def test_errors_name_the_cell() -> None:
    with pytest.raises(sw.ShapeError) as refused:
        sw.jit(cell()["wrong"], mesh=MESH)(np.ones(4))
    assert str(refused.value).endswith(" (at Cell In[2], line 8)")


def test_a_cell_has_the_number_of_its_last_execution(shell: Shell) -> None:
    traced = sw.jit(cell()["f"], mesh=MESH).trace(np.ones(4, np.float32))
    shell.counts[CELL] = 5
    assert 'loc("Cell In[5]":3:9)' in traced.as_text(locations=True)


@pytest.mark.parametrize(
    "module",
    [None, types.ModuleType("IPython"), types.SimpleNamespace(get_ipython=lambda: None),
     types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(compile=types.SimpleNamespace()))],
)  # fmt: skip
def test_without_cells_the_file_is_named(monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    monkeypatch.setitem(sys.modules, "IPython", module)
    assert sources.shown_file(CELL) == CELL


def executed(cells: list[str]) -> list[Any]:
    """The outputs of a notebook's cells, run by a kernel that imports this package."""
    nbformat, nbclient = oracle("nbformat"), oracle("nbclient")
    oracle("ipykernel")  # the kernel that runs the cells

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True).execute()
    return [cell.outputs for cell in notebook.cells]


def shown_by(outputs: list[Any]) -> str:
    """The texts of a cell's outputs, its result as HTML where it has one."""
    texts = []
    for output in outputs:
        data = output.get("data", {})
        texts.append(output.get("text") or data.get("text/html") or data.get("text/plain") or output.get("evalue", ""))
    return "".join("".join(text) for text in texts)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_the_notebook_of_reports_shows_what_it_has_stored() -> None:
    notebook = json.loads((ROOT / "docs" / "tutorials" / "reports_in_a_notebook.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    outputs = executed(["".join(cell["source"]) for cell in cells])
    found = [shown_by(out) for out in outputs]
    assert found == [shown_by(cell["outputs"]) for cell in cells]
    _, array, printed, ledger, why, graph, diff, promotions, error = found
    assert "Array([[0., 1.]," in array
    assert "empty: devices 6-7" in array
    assert printed.startswith("largest 2.00\n")
    assert "<td>Cell In[3], line 4</td>" in ledger
    assert "h (Cell In[3], line 4) is tensor" in why
    assert "<svg" in graph
    assert "<td>-</td><td>all_reduce</td>" in diff
    assert "<td>Cell In[8], line 1</td><td>multiply</td>" in promotions
    assert error.endswith("(at Cell In[3], line 4)\n")
    assert not re.search(r"ipykernel_\d+", json.dumps(notebook) + "".join(found))
