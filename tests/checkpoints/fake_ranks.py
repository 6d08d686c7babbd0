# SPDX-License-Identifier: Apache-2.0
"""Ranks without MPI: one of several in this process, which has nobody to talk to, and forked processes with pipes."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from multiprocessing import Pipe
from typing import Any

from shardwise._core.processes import DeviceSet, process_positions
from shardwise.process.processes import use_processes


class _Place:
    communicator = None

    def __init__(self, devices: DeviceSet) -> None:
        self.devices = devices

    def begin(self, *_: Any) -> Callable[[], None]:
        return lambda: None


class OneRank:
    """The first rank, with the devices of rank ``owner``. It takes what it says for what all ranks say."""

    has_threads = True

    def __init__(self, owner: int, size: int) -> None:
        self.rank, self.owner, self.size = 0, owner, size

    def place(self, mesh: Any) -> Any:
        return _Place(DeviceSet.at(mesh, self.size, process_positions(mesh, self.size)[self.owner]))

    def broadcast(self, value: Any, root: int) -> Any:
        return value

    def begin(self, *_: Any) -> Callable[[], None]:
        return lambda: None

    def waiting(self, _: str) -> AbstractContextManager[None]:
        return nullcontext()

    def messages(self) -> OneRank:
        return self

    def all_of(self, value: Any) -> list[Any]:
        return [value] * self.size


class ForkedRank(OneRank):
    """One of several forked processes. A process that dies leaves the others waiting for its messages."""

    def __init__(self, rank: int, pipes: list[Any]) -> None:
        super().__init__(rank, len(pipes) + 1)
        self.rank = rank
        self._others = [first for first, _ in pipes] if rank == 0 else [pipes[rank - 1][1]]

    def all_of(self, value: Any) -> list[Any]:
        if self.rank == 0:
            value = [value, *(pipe.recv() for pipe in self._others)]
        for pipe in self._others:
            pipe.send(value)
        return list(value if self.rank == 0 else self._others[0].recv())


def forked_ranks(size: int, run: Callable[[], Any]) -> list[int]:
    """Start as many processes that run it as the ranks of a job. Returns their ids."""
    pipes = [Pipe() for _ in range(size - 1)]
    pids = []
    for rank in range(size):
        pid = os.fork()
        if pid == 0:
            try:
                with use_processes(ForkedRank(rank, pipes)):
                    run()
            finally:
                os._exit(0)
        pids.append(pid)
    for pipe in pipes:
        pipe[0].close()
        pipe[1].close()
    return pids
