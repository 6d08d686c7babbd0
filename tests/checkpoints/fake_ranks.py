# SPDX-License-Identifier: Apache-2.0
"""One rank of several in this process: it has the devices of some rank, and nobody to talk to."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from shardwise._core.processes import DeviceSet, process_positions


class _Place:
    communicator = None

    def __init__(self, devices: DeviceSet) -> None:
        self.devices = devices

    def begin(self, *_: Any) -> Callable[[], None]:
        return lambda: None


class OneRank:
    """The first rank, with the devices of rank ``owner``. It takes what it says for what all ranks say."""

    has_threads = True
    rank = 0

    def __init__(self, owner: int, size: int) -> None:
        self.owner, self.size = owner, size

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
