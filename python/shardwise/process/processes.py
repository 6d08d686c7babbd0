# SPDX-License-Identifier: Apache-2.0
"""The processes that programs run in: this one alone, or several, such as the ranks of :mod:`shardwise.mpi`.

Everything that runs asks :func:`place_on` where the devices of its mesh are. In one process that is the virtual mesh.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import numpy as np

from .._core.mesh import Mesh as CoreMesh, Sharding
from .._core.processes import DeviceSet, ProcessCommunicator
from .._core.runtime import Executable, ShardedArray

__all__ = [
    "ALONE", "Finish", "Messages", "Place", "Processes", "current_processes", "place_on", "set_processes",
    "use_processes",
]  # fmt: skip

Finish = Callable[[], None]


class Place(Protocol):
    """Where the devices of a mesh are, as seen by one process."""

    @property
    def devices(self) -> DeviceSet:
        """The devices of this process."""

    @property
    def communicator(self) -> ProcessCommunicator | None:
        """Reaches the other processes; None if there are none."""

    def begin(
        self, what: str, program: bytes, arrays: Mapping[str, Any], executable: Executable | None = None
    ) -> Finish:
        """Compare with the other processes what they do next: the same operation on the same arrays.

        Args:
            what: names the operation in messages.
            program: identifies it.
            arrays: NumPy arrays that must be the same in all processes.
            executable: the program that runs, which describes its collectives.

        Returns:
            A function to call after the operation. It raises if the processes differed.
        """

    def scatter_from(self, root: int, array: np.ndarray | None, aval: Any, sharding: Sharding) -> ShardedArray:
        """Place an array that only process ``root`` has; ``aval`` has its shape and dtype."""

    def from_own_part(self, part: np.ndarray, sharding: Sharding) -> ShardedArray:
        """Make an array from the rows that the devices of each process hold."""


class _Alone:
    """All devices are virtual ones of this process."""

    devices = DeviceSet()
    communicator = None

    def begin(
        self, what: str, program: bytes, arrays: Mapping[str, Any], executable: Executable | None = None
    ) -> Finish:
        return _nothing

    def scatter_from(self, root: int, array: np.ndarray | None, aval: Any, sharding: Sharding) -> ShardedArray:
        assert array is not None
        return ShardedArray.scatter(array, sharding)

    def from_own_part(self, part: np.ndarray, sharding: Sharding) -> ShardedArray:
        return ShardedArray.scatter(part, sharding)


class Messages(Protocol):
    """What processes tell each other outside of programs."""

    def all_of(self, value: Any) -> list[Any]:
        """What each process passes, by rank. All of them call it, one thread of each at a time."""


class Processes(Protocol):
    """Several processes that run the same program."""

    @property
    def rank(self) -> int:
        """The number of this process."""

    @property
    def size(self) -> int:
        """How many there are."""

    def place(self, mesh: CoreMesh) -> Place:
        """Where the devices of ``mesh`` are."""

    @property
    def has_threads(self) -> bool:
        """Whether :meth:`messages` may be used in a thread beside the program."""

    def broadcast(self, value: Any, root: int) -> Any:
        """The value that process ``root`` passes."""

    def begin(self, what: str, program: bytes, arrays: Mapping[str, Any]) -> Finish:
        """Compare the next operation with those of the other processes; see :meth:`Place.begin`."""

    def waiting(self, what: str) -> AbstractContextManager[None]:
        """A block in which the main thread waits for all other processes."""

    def messages(self) -> Messages:
        """Messages between all processes. All of them make the first call."""


def _nothing() -> None:
    pass


ALONE = _Alone()
_current: list[Processes | None] = [None]  # of all threads: they are one process


def current_processes() -> Processes | None:
    """The processes in use, or None for this one alone."""
    return _current[-1]


def place_on(mesh: CoreMesh) -> Place:
    """Where the devices of ``mesh`` are."""
    processes = _current[-1]
    return ALONE if processes is None else processes.place(mesh)


def set_processes(processes: Processes | None) -> Processes | None:
    """Use these processes from now on. Returns those used before."""
    before, _current[-1] = _current[-1], processes
    return before


@contextmanager
def use_processes(processes: Processes | None) -> Iterator[None]:
    """Use these processes in a block."""
    _current.append(processes)
    try:
        yield
    finally:
        _current.pop()
