# SPDX-License-Identifier: Apache-2.0
"""Saves in a thread: what they save, when they are there, and where their errors are raised."""

from __future__ import annotations

import errno
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from shardwise.checkpoints import background, writing
from tests.checkpoints.trees import assert_same, bits, state
from tests.support.paths import ROOT


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Saves write nothing until it is set."""
    opened, write = threading.Event(), writing.write_all

    def gated(fd: int, data: Any) -> None:
        opened.wait(30)
        write(fd, data)

    monkeypatch.setattr(writing, "write_all", gated)
    yield opened
    opened.set()
    background.settle()


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(fd: int, data: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(writing, "write_all", write)


def test_donation_and_writes_do_not_change_what_is_saved(tmp_path: Path, gate: threading.Event) -> None:
    mesh = sw.Mesh({"x": 4})
    x = np.arange(4096.0)
    w = sw.device_put(x, sw.NamedSharding(mesh, P("x")))
    plain, listed = x.copy(), [1, 2]
    step = sw.jit(lambda a: a * 0 - 1, mesh=mesh, donate_argnums=0)
    sw.save(tmp_path, {"w": w, "plain": plain, "listed": listed}, async_=True)
    result = step(w)
    again = step(result)
    plain[:] = 7
    listed[0] = 9
    assert w.is_deleted()
    assert result.is_deleted()
    assert list(tmp_path.glob("step-0")) == []
    gate.set()
    sw.wait_until_saved()
    assert_same(sw.load(tmp_path), {"w": sw.device_put(x, mesh), "plain": x, "listed": [1, 2]})
    np.testing.assert_array_equal(again, np.full(4096, -1.0))


def test_the_folder_is_that_of_the_call(tmp_path: Path, gate: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    sw.save("run", {"x": np.arange(3)}, async_=True)
    monkeypatch.chdir(tmp_path / "elsewhere")
    gate.set()
    sw.wait_until_saved()
    assert_same(sw.load(tmp_path / "run"), {"x": np.arange(3)})


def test_a_deleted_array_is_saved_if_it_was_there_at_the_call(tmp_path: Path, gate: threading.Event) -> None:
    w = sw.device_put(np.arange(5.0), sw.Mesh({"x": 2}))
    sw.save(tmp_path, w, async_=True)
    w.delete()
    gate.set()
    assert bits(sw.load(tmp_path)) == bits(np.arange(5.0))


def test_load_latest_and_the_next_save_wait(tmp_path: Path) -> None:
    sw.save(tmp_path, state(1), step=1, async_=True)
    assert sw.latest(tmp_path) == 1
    sw.save(tmp_path, state(2), step=2, async_=True)
    assert_same(sw.load(tmp_path), state(2))
    sw.save(tmp_path, state(3), step=3, async_=True)
    sw.save(tmp_path, state(4), step=4, async_=True, keep=2)
    sw.wait_until_saved()
    sw.wait_until_saved()
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["step-3", "step-4"]


@pytest.mark.usefixtures("full_disk")
def test_an_error_is_raised_at_the_next_save_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sw.save(tmp_path, state(1), step=1, async_=True)
    assert sw.latest(tmp_path) is None
    with pytest.raises(OSError, match="save: the disk must have room for the checkpoint, got No space left") as raised:
        sw.save(tmp_path, state(2), step=2)
    assert raised.value.errno == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    sw.save(tmp_path, state(2), step=2)
    assert sw.latest(tmp_path) == 2


@pytest.mark.usefixtures("full_disk")
def test_the_error_names_the_line_of_the_save_that_failed(tmp_path: Path) -> None:
    line = sys._getframe().f_lineno + 1
    sw.save(tmp_path, {"x": np.arange(3)}, async_=True)
    with pytest.raises(OSError, match=rf"^save: the disk must have room .* \(at .*test_async\.py:{line}\)$"):
        sw.wait_until_saved()


@pytest.mark.usefixtures("full_disk")
def test_wait_until_saved_raises_the_error_once(tmp_path: Path) -> None:
    sw.save(tmp_path, state(1), step=1, async_=True)
    with pytest.raises(OSError, match="the disk must have room"):
        sw.wait_until_saved()
    sw.wait_until_saved()
    assert list(tmp_path.iterdir()) == []


SCRIPT = """
import errno, sys
import numpy as np
import shardwise as sw
from shardwise.checkpoints import writing

def full(fd, data):
    raise OSError(errno.ENOSPC, "No space left on device")

if sys.argv[2] == "full":
    writing.write_all = full
sw.save(sys.argv[1], {"w": np.arange(3)}, step=5, async_=True)
print("end of the script")
"""


@pytest.mark.parametrize("disk", ["full", "empty"])
def test_a_process_ends_when_its_save_has_ended(tmp_path: Path, disk: str) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "run"), disk]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False)
    assert done.stdout == "end of the script\n"
    assert done.returncode == (1 if disk == "full" else 0), done.stderr
    assert ("OSError: save: the disk must have room for the checkpoint" in done.stderr) == (disk == "full")
    assert sw.latest(tmp_path / "run") == (None if disk == "full" else 5)
