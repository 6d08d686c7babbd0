# SPDX-License-Identifier: Apache-2.0
"""Saves that die: each in a process of its own, forked from this one, which prints a line for each that left damage.

    python -m tests.checkpoints.crash_worker FOLDER cuts 200 | kills 15 | ranks 4

cuts: the process dies at a random byte of what it writes, or just before a call of the system. kills: SIGKILL from
outside. ranks: SIGKILL of one rank of 4; the others live on for a while.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import shardwise as sw
from shardwise.checkpoints import files, folders, saving, writing
from tests.checkpoints.fake_ranks import forked_ranks
from tests.checkpoints.trees import assert_same, state

CALLS = ("sync_file", "sync_folder", "rename", "remove_tree")


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_after(count: int) -> None:
    """Write this many bytes, and die."""
    left = count
    write_all = files.write_all

    def write(fd: int, data: Any) -> None:
        nonlocal left
        memory = memoryview(data).cast("B")
        write_all(fd, memory[:left])
        if left <= len(memory):
            die()
        left -= len(memory)

    saving.write_all = writing.write_all = write


def die_before(call: str, count: int) -> None:
    """Die instead of call number ``count``."""
    calls = 0

    def counted(real: Callable[..., Any], *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        return die() if calls > count else real(*arguments)

    for module in (files, folders, saving, writing):
        if hasattr(module, call):
            real = getattr(module, call)
            setattr(module, call, lambda *arguments, real=real: counted(real, *arguments))


def forked(run: Callable[[], Any]) -> int:
    """Start a process that runs it and ends."""
    pid = os.fork()
    if pid == 0:
        try:
            run()
        finally:
            os._exit(0)
    return pid


def whole_steps(folder: Path) -> dict[int, int]:
    """The steps in the folder, each of which must be whole, with the number of the state that was saved."""
    found = {}
    for step in sorted({each.step for each in folders.published(folder)}):
        loaded = sw.load(folder, step=step)
        found[step] = loaded["step"]
        assert_same(loaded, state(loaded["step"]))
    return found


def empty(folder: Path) -> None:
    """Remove all steps, so that a run can begin with the first one again."""
    for path in folder.iterdir():
        shutil.rmtree(path)


def cut(folder: Path, arrange: Callable[[], None], step: int) -> bool:
    """Save state 2 beside or over step 1, with a fault. Returns whether it was published all the same."""

    def run() -> None:
        arrange()
        sw.save(folder, state(2), step=step)

    os.waitpid(forked(run), 0)
    found = whole_steps(folder)
    assert found in ({1: 1}, {1: 1, step: 2}), found
    sw.save(folder, state(1), step=max(found), keep=1)
    assert len(os.listdir(folder)) == 1, os.listdir(folder)
    if max(found) > 1:
        empty(folder)
        sw.save(folder, state(1), step=1)
    return found != {1: 1}


def cuts(folder: Path, count: int) -> str:
    sw.save(folder, state(1), step=1)
    size = sum(file.stat().st_size for file in (folder / "step-1").iterdir())
    draws = random.Random(count)
    at = [draws.randrange(size) for _ in range(count)]
    published = sum(cut(folder, lambda n=n: die_after(n), 1 + i % 2) for i, n in enumerate(at))  # type: ignore[misc]
    calls = [(call, number, step) for call in CALLS for number in range(4) for step in (1, 2)]
    new = sum(cut(folder, lambda c=c, n=n: die_before(c, n), step) for c, n, step in calls)  # type: ignore[misc]
    return f"{count} cuts published {published}, {len(calls)} calls published {'some' if new else 'none'}"


def save_steps(folder: Path) -> None:
    """Save step after step, every second one in a thread."""
    for step in range(1, 10_000):
        sw.save(folder, state(step), step=step, keep=2, async_=bool(step % 2))


def end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def last_step(folder: Path) -> int:
    """The newest step; all are whole, and the next save cleans up. Then empties the folder."""
    last = max([0, *whole_steps(folder)])
    sw.save(folder, state(last), step=last, keep=1)
    assert [each.step for each in folders.published(folder)] == [last]
    assert len(os.listdir(folder)) == 1
    empty(folder)
    return last


def kills(folder: Path, count: int) -> str:
    draws, last = random.Random(count), 0
    for _ in range(count):
        pid = forked(lambda: save_steps(folder))
        time.sleep(draws.uniform(0.02, 0.12))
        end(pid)
        last = max(last, last_step(folder))
    return f"{count} kills after {'some' if last > 1 else 'no'} steps"


def ranks(folder: Path, count: int) -> str:
    draws, last = random.Random(count), 0
    for victim in range(count):
        pids = forked_ranks(4, lambda: save_steps(folder))
        time.sleep(draws.uniform(0.1, 0.3))
        end(pids.pop(victim % 4))
        time.sleep(0.1)  # the others end what they can end without it
        before = sorted(os.listdir(folder))
        time.sleep(0.1)
        assert sorted(os.listdir(folder)) == before, "a save went on without one of its ranks"
        for pid in pids:
            end(pid)
        last = max(last, last_step(folder))
    return f"{count} kills of a rank after {'some' if last > 1 else 'no'} steps"


if __name__ == "__main__":
    os.fsync = lambda fd: None  # processes die here, and not the machine: their writes are not lost
    print({"cuts": cuts, "kills": kills, "ranks": ranks}[sys.argv[2]](Path(sys.argv[1]), int(sys.argv[3])))
