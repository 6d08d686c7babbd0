# SPDX-License-Identifier: Apache-2.0
"""What each rank runs in the tests of checkpoints.

    mpirun -n 4 python -m tests.mpi.checkpoint_worker FOLDER checks | loop

checks: saves and loads, with faults of one rank. loop: saves step after step until it is killed; the file pid-RANK
has its pid.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P
from shardwise.checkpoints import writing
from tests.checkpoints.trees import assert_same, assert_shards, state


def error_of(call: Callable[[], Any]) -> str:
    try:
        call()
    except (OSError, sw.Error) as error:
        return f"{type(error).__name__}: {error}".partition(" (at ")[0]
    return "no error"


def checks(ranks: sw.mpi.Ranks, folder: Path) -> None:
    own = folder / "own"
    assert sw.latest(own) is None
    assert_same(sw.load(folder / "alone", like=state(0)), state(7))  # one process saved it
    sw.save(own, state(1), step=1)
    assert_same(sw.load(own), state(1))
    for step in (2, 3, 4):
        sw.save(own, state(step), step=step, async_=True, keep=2)
    assert sw.latest(own) == 4
    ids = list(range(3 * ranks.size))[::-1]
    columns = sw.NamedSharding(sw.Mesh({"a": 3 * ranks.size}, device_ids=ids), P(None, "a"))
    loaded = sw.load(own, step=3, shardings={**sw.tree.map(lambda _: None, state(0)), "w": columns, "data": columns})
    assert_shards(loaded["w"], np.asarray(state(3)["w"]))
    assert_shards(loaded["data"], state(3)["data"])
    faults(ranks, folder / "faults")


def faults(ranks: sw.mpi.Ranks, folder: Path) -> None:
    last = ranks.size - 1
    sw.save(folder, state(1), step=1)
    others = {**state(2), "data": np.full(3, ranks.rank == last)}
    got = error_of(lambda: sw.save(folder, others, step=2))
    want = f"RankMismatchError: save: mpi: all ranks must pass the same tree['data'], got other elements on rank {last}"
    assert got.startswith(want), got
    write_all = writing.write_all
    if ranks.rank == last:
        writing.write_all = full_disk
    disk = "the disk must have room for the checkpoint, got No space left on device"
    want = f"OSError: save: {disk}" if ranks.rank == last else f"OSError: save: on rank {last}: {disk}"
    assert error_of(lambda: sw.save(folder, state(2), step=2)).startswith(want)
    sw.save(folder, state(2), step=2, async_=True)
    assert sw.latest(folder) == 1
    assert error_of(lambda: sw.save(folder, state(3), step=3)).startswith(want)
    writing.write_all = write_all
    want = (
        "FileNotFoundError: load: " + ("on rank 0: " if ranks.rank else "") + "the folder must have step 9, got steps 1"
    )
    assert error_of(lambda: sw.load(folder, step=9)).startswith(want)
    assert_same(sw.load(folder, like=state(0)), state(1))
    assert os.listdir(folder) == ["step-1"]


def full_disk(fd: int, data: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def loop(ranks: sw.mpi.Ranks, folder: Path) -> None:
    (folder / f"pid-{ranks.rank}").write_text(str(os.getpid()))
    for step in range(1, 10_000):
        sw.save(folder / "run", state(step), step=step, keep=2, async_=bool(step % 2))


if __name__ == "__main__":
    job = sw.mpi.communicator()
    {"checks": checks, "loop": loop}[sys.argv[2]](job, Path(sys.argv[1]))
    print(f"rank {job.rank} is done", flush=True)
