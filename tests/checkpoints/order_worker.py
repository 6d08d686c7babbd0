# SPDX-License-Identifier: Apache-2.0
"""A save that prints its writes, flushes and renames, in the order in which the system gets them.

    python -m tests.checkpoints.order_worker FOLDER RANKS

A write and a rename are printed before they begin, a flush after it ended. Several ranks are forked processes.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import shardwise as sw
from tests.checkpoints.fake_ranks import forked_ranks
from tests.checkpoints.trees import state


def record(folder: Path, log: int) -> None:
    """Add a line to the file ``log`` for each call of the system on a file in the folder."""
    write, fsync, rename = os.write, os.fsync, os.rename

    def add(call: str, *paths: Any) -> None:
        if all(Path(path).is_relative_to(folder) for path in paths):
            write(log, f"{call} {' '.join(os.fspath(Path(path).relative_to(folder)) for path in paths)}\n".encode())

    def named(fd: int) -> str:
        return os.readlink(f"/proc/self/fd/{fd}")

    def recorded_write(fd: int, data: Any) -> int:
        add("write", named(fd))
        return write(fd, data)

    def recorded_fsync(fd: int) -> None:
        time.sleep(0.02)  # who does not wait for it comes first
        fsync(fd)
        add("sync", named(fd))

    def recorded_rename(source: Any, target: Any) -> None:
        add("rename", source, target)
        rename(source, target)

    os.write, os.fsync, os.rename = recorded_write, recorded_fsync, recorded_rename  # type: ignore[assignment]


def run_on(ranks: int, run: Callable[[], Any]) -> None:
    """Run it in one process, or in forked ones."""
    if ranks == 1:
        run()
        return
    for pid in forked_ranks(ranks, run):
        os.waitpid(pid, 0)


def main(folder: Path, ranks: int) -> None:
    """Save step 1, and then step 2 in its place."""
    run_on(ranks, lambda: sw.save(folder, state(1), step=1))
    log = os.open(folder.with_name("log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    record(folder, log)
    run_on(ranks, lambda: sw.save(folder, state(2), step=2, keep=1))
    print(folder.with_name("log").read_text(), end="")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), int(sys.argv[2]))
