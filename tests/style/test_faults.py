# SPDX-License-Identifier: Apache-2.0
"""The faults of tests/faults.txt fit the tree, so that tools/try_faults.py can inject them."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from tests.style.source_tree import ROOT
from tools.try_faults import STEPS, Fault, read_faults

FAULTS = read_faults()
FOLDERS = ("ops", "partition", "reshard", "runtime", "interop")


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_fault_changes_one_place_of_its_file(fault: Fault) -> None:
    assert (ROOT / fault.file).read_text().count(fault.old) == 1, f"{fault.file} must have the text of '-' once"
    assert fault.new != fault.old
    assert fault.shows


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_fault_names_a_step_and_what_it_selects(fault: Fault) -> None:
    step = STEPS[fault.step]
    assert bool(fault.select) <= bool(step.variable)
    if step.variable == "FOLDER":
        assert (ROOT / "tests" / "unit" / fault.select).is_dir()
    paths = [word for word in shlex.split(fault.select) if re.fullmatch(r"tests/[\w/.]+", word)]
    assert bool(paths) == (fault.step == "test-py")
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_makefile_has_the_steps() -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {name for row in STEPS.items() for name in (row[0], row[1].build)} <= set(targets)


def test_faults_are_spread_over_the_folders() -> None:
    assert len(FAULTS) >= 20
    assert {name: count for name, count in Counter(fault.name for fault in FAULTS).items() if count > 1} == {}
    found = {part for fault in FAULTS for part in Path(fault.file).parts}
    assert set(FOLDERS) <= found


def test_the_file_is_read_by_paragraphs(tmp_path: Path) -> None:
    path = tmp_path / "faults.txt"
    path.write_text(
        "# a comment\n\nfault: one\nshows: a\nfile: f.py\nstep: test-py tests/x.py -k y\n- a\n-   b\n+ c\n\n\n"
        "fault: two\nshows: b\nfile: g.py\nstep: test-tsan\n- d\n+ \n"
    )
    assert read_faults(path) == [
        Fault("one", "a", "f.py", "test-py", "tests/x.py -k y", "a\n  b", "c"),
        Fault("two", "b", "g.py", "test-tsan", "", "d", ""),
    ]
    path.write_text("fault: one\nwhere: f.py\n")
    with pytest.raises(SystemExit, match=r"got 'where: f\.py'"):
        read_faults(path)
