# SPDX-License-Identifier: Apache-2.0
"""Objects that ranks tell each other outside of programs, also in a thread beside the program: reports of a save."""

from __future__ import annotations

import time
from typing import Any

__all__ = ["Messages"]

_POLL = 0.002  # seconds; a blocking call of MPI would use a whole processor while it waits
_TO_FIRST, _FROM_FIRST = 3, 4  # tags


class Messages:
    """Exchanges over a communicator that nothing else uses. One thread at a time may call it."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm

    def all_of(self, value: Any) -> list[Any]:
        """What each rank passes, by rank. Waits until all ranks have called it."""
        size = self._comm.Get_size()
        if self._comm.Get_rank() != 0:
            self._send(value, [0], _TO_FIRST)
            return list(self._received(0, _FROM_FIRST))
        found = [value, *(self._received(rank, _TO_FIRST) for rank in range(1, size))]
        self._send(found, range(1, size), _FROM_FIRST)
        return found

    def _received(self, rank: int, tag: int) -> Any:
        while not self._comm.iprobe(rank, tag):
            time.sleep(_POLL)
        return self._comm.recv(source=rank, tag=tag)

    def _send(self, value: Any, ranks: Any, tag: int) -> None:
        requests = [self._comm.isend(value, rank, tag) for rank in ranks]
        while not all(request.Test() for request in requests):
            time.sleep(_POLL)
