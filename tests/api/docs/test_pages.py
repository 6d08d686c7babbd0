# SPDX-License-Identifier: Apache-2.0
"""The code in the documentation runs and prints what the pages show, and the reference has every public name."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise.process.processes import set_processes
from tests.support.oracles import oracle
from tools import pages, public_api

DOCS = pages.DOCS
PAGES = pages.pages()
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
# Every public name of these modules is a term of shardings.
MODULES = [
    "annotations",
    "dtensor",
    "layouts",
    "manual",
    "shardings.mesh",
    "programs.op_rules",
    "shardings.partition_spec",
    "placement",
    "shardings.sharding",
]
_COMMANDS = (
    "pip ",
    "make ",
    "git ",
    "cd ",
    "mpirun ",
    "srun ",
    "gcloud ",
    "COORDINATOR=",
    "python train.py",
    "python examples/",
)


def name_of(path: Path) -> str:
    return str(path.relative_to(DOCS).with_suffix(""))


# ---- pages -----------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def one_process() -> Iterator[None]:
    """A page may spread meshes over ranks; later tests run in one process."""
    hook = sys.excepthook
    yield
    ranks = set_processes(None)
    if isinstance(ranks, sw.mpi.Ranks):
        ranks.close()  # its watching thread
    sys.excepthook = hook


def test_there_are_tutorials_and_pages() -> None:
    assert TUTORIALS
    expected = {"terminology", "quickstart", "sharp_bits", "numpy", "annotations", "testing", "propagation"}
    assert expected <= {path.stem for path in PAGES}


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_a_page_prints_what_it_shows(path: Path) -> None:
    if "import jax" in path.read_text():
        oracle("jax")
    assert pages.differences(path) == ""


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_fence_of_a_page_runs_or_is_output(path: Path) -> None:
    text = path.read_text()
    blocks = pages.blocks_of(text)
    directives = re.findall(r"^```\{.*\}.*\n(?:.*\n)*?```$", text, re.MULTILINE)
    shell = re.findall(r"^```sh\n((?:.*\n)*?)```$", text, re.MULTILINE)
    assert all(line.startswith(_COMMANDS) for block in shell for line in block.splitlines())
    fences = sum(4 if block.shown else 2 for block in blocks) + 2 * len(directives) + 2 * len(shell)
    assert len(pages.fences_of(text)) == fences


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_a_page_runs_the_test_files_that_it_saves(path: Path) -> None:
    blocks = pages.blocks_of(path.read_text())
    saved = {file for block in blocks for file in re.findall(r"\A# (test_\w+\.py)\n", block.code)}
    commands = " ".join(block.code for block in blocks if block.language == "console")
    assert {file for file in saved if f"pytest -q {file}" not in commands} == set()


def test_a_page_shows_outputs_warnings_and_errors(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\n# lib.py\nx = 1\nprint(x)\n```\n\n```python\nimport warnings\nwarnings.warn('careful')\n```\n\n"
        "```python\n[][x]\n```\n\n```python\n# test_lib.py\nfrom lib import x\ndef test_x(): assert x == 1\n```\n\n"
        "```console\n$ pytest -q test_lib.py\n```\n"
    )
    printed, warned, failed, saved, tested = pages.run(page)
    assert (printed, saved) == ("1\n", "")
    assert warned == "page.py:2: UserWarning: careful\n"
    assert failed == "IndexError: list index out of range\n"
    assert tested.endswith("\n1 passed in 0.10s\n")
    page.write_text(pages.with_outputs(page.read_text(), ["1\n", "", "", "", ""]))
    assert "\n```text\n1\n```\n" in page.read_text()


def anchors_of(path: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", [*PAGES, *sorted(pages.ROOT.glob("*.md"))], ids=lambda path: path.stem)
def test_links_between_files_work_on_github(path: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", path.read_text())
    broken = []
    for file, anchor in links:
        target = (path.parent / file) if file else path
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            broken.append(f"{file}#{anchor}")
    assert broken == []


@pytest.mark.parametrize(("question", "page"), pages.QUESTIONS.items(), ids=pages.QUESTIONS)
def test_a_heading_answers_each_question(question: str, page: str) -> None:
    headings = re.findall(r"^#+ (.*)$", (DOCS / f"{page}.md").read_text(), re.MULTILINE)
    assert question in [heading.replace("`", "") for heading in headings]


def test_the_terminology_page_has_every_term_of_shardings() -> None:
    """Names that are types of values, methods or steps of other functions are not terms of their own."""
    page = (DOCS / "terminology.md").read_text()
    types = {"Axis", "OpenDim", "PriorityDim", "SubAxis", "PartitionSpec", "Layout", "ShardingRule", "Placement"}
    modules = [importlib.import_module(f"shardwise.{name}") for name in MODULES]
    words = (
        {word for module in modules for word in module.__all__}
        - types
        - {"name", "current_layout", "placed", "settled"}
    )
    assert {word for word in words if not re.search(rf"\b{word}\b", page)} == set()


@pytest.mark.parametrize("path", TUTORIALS, ids=name_of)
def test_a_notebook_is_its_tutorial_executed(path: Path) -> None:
    notebook = json.loads(path.with_suffix(".ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    blocks = pages.blocks_of(path.read_text())
    assert ["".join(cell["source"]) for cell in cells] == [block.code.rstrip("\n") for block in blocks]
    for cell, block in zip(cells, blocks):
        assert cell["execution_count"], block.code
        assert all(output["output_type"] == "stream" for output in cell["outputs"]), block.code
        assert "".join("".join(output["text"]) for output in cell["outputs"]) == block.shown, block.code


# ---- reference -------------------------------------------------------------------------------------------------------


def test_the_reference_has_every_public_name() -> None:
    documented: set[str] = set()
    for path in (DOCS / "reference").glob("*.md"):
        documented |= {f"shardwise.{name}" for name in public_api.referenced_names(path.read_text())}
    missing = set(public_api.public_names()) - documented
    assert missing == set(), "add the module of these names to a page in docs/reference"


def test_public_names_include_those_outside_of_all() -> None:
    names = public_api.public_names()
    assert {"shardwise.jit", "shardwise.split", "shardwise.open", "shardwise.name", "shardwise.sub"} <= set(names)
    assert {"shardwise.random.key", "shardwise.layouts.both", "shardwise.dtensor.Partial"} <= set(names)
    assert len(names) == len(set(names))


def test_the_tables_of_numpy_functions_are_complete() -> None:
    tables = public_api.numpy_tables()
    assert [name for name in public_api.module_names("numpy") if f"`np.{name}`" not in tables] == []
    assert "| `np.take` |" in tables
    (row,) = re.findall(r"^\| `np.sum` \|.*$", tables, re.MULTILINE)
    assert row.startswith("| `np.sum` | Sum of array elements over a given axis. | `out`")


_X = np.ones((4, 4))
_CALLS = [
    (_X,),
    (_X, 2),
    (_X, _X),
    ([_X, _X],),
    (_X, (4, 4)),
    (_X, [0]),
    ("ij->ji", _X),
    (_X, np.zeros((4, 4), int), 0),
]
_VALUES = {
    "out": [np.zeros((4, 4))], "where": [_X > 2], "order": ["F"], "device": ["gpu"], "subok": [True, False],
    "casting": ["unsafe"], "mean": [_X], "axis": [0], "initial": [2.0],
}  # fmt: skip


def outcome(function: Any, args: Any, options: dict[str, Any]) -> Exception | None:
    """The error of a traced call, or None."""
    try:
        sw.jit(lambda x: function(*[x if arg is _X else arg for arg in args], **options), mesh=sw.Mesh({"x": 1}))(_X)
    except Exception as error:
        return error
    return None


def test_unsupported_parameters_are_refused() -> None:
    """Each parameter that the tables call unsupported raises with some other value than the default."""
    tried = 0
    for module, name, function, ours in public_api.numpy_functions():
        if ours is None or module == "lifting":  # NumPy dispatches constructors only with like=
            continue
        for parameter in public_api.refused_parameters(function, ours):
            args = next((args for args in _CALLS if outcome(function, args, {}) is None), None)
            if args is not None and parameter in _VALUES:
                found = [outcome(function, args, {parameter: value}) for value in _VALUES[parameter]]
                assert any(isinstance(error, (sw.UnsupportedError, TypeError, ValueError)) for error in found), (
                    name,
                    parameter,
                )
                tried += 1
    assert tried > 50  # how many parameters the tables list and a call here reaches


def test_the_switches_of_the_compiled_code_are_listed() -> None:
    listed = re.findall(r"^\| `(\w+)`", public_api.switches(), re.MULTILINE)
    settings = (pages.ROOT / "cpp" / "shardwise" / "base" / "settings.h").read_text()
    assert listed == list(dict.fromkeys(re.findall(r"^//   (SHARDWISE_\w+)", settings, re.MULTILINE)))
    assert len(listed) >= 4


def test_each_error_of_a_docstring_has_a_line() -> None:
    text = "Do.\n\nRaises:\n    MeshError: none. ShapeError, DTypeError: other\n        types. See.\n\nA: b. C: d."
    *_, first, second, rest, empty, after = public_api.one_error_per_line(text.splitlines())
    assert (first, second) == ("    MeshError: none.", "    ShapeError, DTypeError: other")
    assert (rest, empty, after) == ("        types. See.", "", "A: b. C: d.")
