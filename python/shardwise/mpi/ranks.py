# SPDX-License-Identifier: Apache-2.0
"""The ranks of an MPI job as the processes that programs run in."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set as AbstractSet
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from .._core.mesh import Mesh as CoreMesh, Sharding
from .._core.processes import DeviceSet, ProcessCommunicator, process_positions
from .._core.runtime import Executable, ShardedArray, mpi_timeout, set_threads
from ..errors import ShapeError, message
from ..process.processes import Finish, Processes, set_processes
from .agreement import Agreement, compare_replicas, hash_of
from .messages import Messages
from .watch import Watch

__all__ = ["RankPlace", "Ranks"]

_MOST_BYTES = 2**30  # of one MPI call, whose counts are 32-bit integers
_MESSAGE_TAG = 2


class Ranks:
    """The ranks of a communicator; made by :func:`shardwise.mpi.communicator`.

    In a ``with`` block, the end of the block restores what was used before.
    """

    def __init__(self, comm: Any, mpi: Any) -> None:
        self._mpi = mpi
        self.rank: int = comm.Get_rank()
        self.size: int = comm.Get_size()
        self._everyone = tuple(range(self.size))
        self._places: dict[CoreMesh, RankPlace] = {}
        self._replaced: list[Processes | None] = []  # by the last call of communicator(), until a block begins
        self._restored: list[Processes | None] = []  # by the end of each block, the innermost last
        self._messages: Messages | None = None
        self._watch = Watch(comm, self.has_threads, mpi_timeout())
        with self.waiting("mpi.communicator"):
            self._comm = comm.Dup()  # so that messages of the program cannot meet ours
            self._watch.connect(comm.Dup())
            self._agreement = Agreement(comm.Dup(), self._watch.begin, self.waiting)
            self._share_processors()
        self._groups: dict[tuple[int, tuple[int, ...]], Any] = {(self.size, self._everyone): self._comm}

    def _share_processors(self) -> None:
        """Divide the processors of a machine among its ranks, unless the user decided."""
        own = os.sched_getaffinity(0)
        local = self._comm.Split_type(self._mpi.COMM_TYPE_SHARED)
        everyone: list[set[int]] = local.allgather(own)
        local.Free()
        if "SHARDWISE_THREADS" not in os.environ:
            set_threads(thread_count(own, everyone))

    @property
    def has_threads(self) -> bool:
        """Whether several threads may use MPI."""
        return bool(self._mpi.Query_thread() == self._mpi.THREAD_MULTIPLE)

    def place(self, mesh: CoreMesh) -> RankPlace:
        """Where the devices of ``mesh`` are. MeshError if the ranks do not divide them."""
        place = self._places.get(mesh)
        if place is None:
            place = self._places[mesh] = RankPlace(self, mesh)
        return place

    def broadcast(self, value: Any, root: int) -> Any:
        """The value that rank ``root`` passes; the others may pass anything."""
        self.begin(f"broadcast from rank {root}", b"broadcast", {})()
        with self.waiting("broadcast"):
            return self._comm.bcast(value, root)

    def all_of(self, value: Any, what: str) -> list[Any]:
        """What each rank passes."""
        with self.waiting(what):
            return list(self._comm.allgather(value))

    def messages(self) -> Messages:
        """Messages between all ranks, also in a thread if MPI has threads. All ranks make the first call."""
        if self._messages is None:
            with self.waiting("the first message"):
                self._messages = Messages(self._comm.Dup())
        return self._messages

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        self.begin("barrier", b"barrier", {})()

    def begin(self, what: str, program: bytes, arrays: Mapping[str, Any]) -> Finish:
        """Compare the next operation with those of the other ranks; see :meth:`Place.begin`."""
        return self._agreement.begin(what, _key(what, program), arrays)

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """The main thread waits for all other ranks in the block; the watch reports a long wait."""
        self._watch.enter(self._everyone, str, what)
        try:
            yield
        finally:
            self._watch.leave()

    def group(self, count: int, ranks: tuple[int, ...]) -> Any:
        """The sub-communicator of this rank, where ``ranks`` lists all groups of ``count``, one after the other."""
        found = self._groups.get((count, ranks))
        if found is None:
            place = ranks.index(self.rank)
            found = self._groups[count, ranks] = self._comm.Split(place // count, place % count)
        return found

    def close(self) -> None:
        """Wait until all ranks exit. Called at exit; ranks that wait for this one meanwhile end all of them."""
        if not self._mpi.Is_finalized():
            self._watch.close()

    def abort(self) -> None:
        """End all ranks."""
        sys.stdout.flush()
        sys.stderr.flush()
        self._comm.Abort(1)

    def _use(self) -> None:
        """Run programs on these ranks from now on."""
        self._replaced = [set_processes(self)]

    def __enter__(self) -> Ranks:
        if not self._replaced:
            self._use()
        self._restored.append(self._replaced.pop())
        return self

    def __exit__(self, *exc: object) -> None:
        self._replaced.clear()
        set_processes(self._restored.pop())

    def __repr__(self) -> str:
        return f"<rank {self.rank} of {self.size}>"


class RankPlace:
    """The devices of a mesh on the ranks: rank r has those at position ``positions[r]`` along the pinned axes."""

    def __init__(self, ranks: Ranks, mesh: CoreMesh) -> None:
        self._ranks = ranks
        self._mesh = mesh
        mesh_text = mesh.text().encode()
        self._positions: list[int] = process_positions(mesh, ranks.size)
        self._rank_at = {position: rank for rank, position in enumerate(self._positions)}
        self.devices = DeviceSet.at(mesh, ranks.size, self._positions[ranks.rank])
        self._members: dict[int, tuple[Any, tuple[int, ...]]] = {}  # by group: communicator, ranks
        self._byte = ranks._mpi.BYTE
        # By the program as it is: a joined text would be hashed in each call.
        self._key = lru_cache(maxsize=1024)(lambda what, program: _key(what, program + mesh_text))
        self._what = ""
        self._executable: Executable | None = None
        self._agreed: Finish = _nothing
        self.communicator = ProcessCommunicator(self.devices, self)

    # ---- Place ----

    def begin(
        self, what: str, program: bytes, arrays: Mapping[str, Any], executable: Executable | None = None
    ) -> Finish:
        """Compare the next operation with those of the other ranks."""
        self._agreed = self._ranks._agreement.begin(what, self._key(what, program), arrays)
        self._what, self._executable = what, executable
        return self._agreed

    def scatter_from(self, root: int, array: np.ndarray | None, aval: Any, sharding: Sharding) -> ShardedArray:
        """Send each rank the shards of its devices from rank ``root``."""
        self.devices.expect_uncut(sharding)  # on all ranks: the others would wait for the root
        own = np.empty(0, np.uint8)
        parts: list[np.ndarray] | None = None
        if self._ranks.rank == root:
            assert array is not None
            places = [DeviceSet.at(self._mesh, self._ranks.size, position) for position in self._positions]
            parts = [ShardedArray.scatter(array, sharding, devices=place).stack() for place in places]
        shape = self._ranks.broadcast(None if parts is None else parts[0].shape, root)
        own = np.empty(shape, aval.dtype)
        outgoing = [] if parts is None else [(self._positions[r], _bytes(p)) for r, p in enumerate(parts) if r != root]
        incoming = [] if parts is not None else [(self._positions[root], _bytes(own))]
        self._what = "device_put"
        self.exchange(0, outgoing, incoming)
        return ShardedArray.from_stack(own if parts is None else parts[root], aval.shape, sharding, self.devices)

    def from_own_part(self, part: np.ndarray, sharding: Sharding) -> ShardedArray:
        """Make an array of the rows that the devices of each rank hold."""
        self.begin("device_put of own parts", sharding.text().encode(), {})()
        self.devices.expect_uncut(sharding)
        found = self._ranks.all_of((part.shape, part.dtype.name, hash_of(part)), "device_put")
        if len({(len(shape), dtype) for shape, dtype, _ in found}) > 1:
            got = ", ".join(f"{dtype}{list(shape)} on rank {rank}" for rank, (shape, dtype, _) in enumerate(found))
            raise ShapeError(message("device_put", "the parts of all ranks must have one dtype and ndim", got))
        rows = self._rows_by_rank(sharding, part.ndim)
        whole = _whole_shape(rows, [shape for shape, _, _ in found])
        array, wrong = None, None
        try:
            array = ShardedArray.from_own_part(part, whole, sharding, self.devices)
        except ShapeError as error:
            wrong = str(error)
        for rank, text in enumerate(self._ranks.all_of(wrong, "device_put")):
            if text is not None:  # raised on all ranks, or the others would wait for this one
                raise ShapeError(text if rank == self._ranks.rank else f"on rank {rank}: {text}")
        compare_replicas(rows, [own for _, _, own in found])
        assert array is not None
        return array

    def _rows_by_rank(self, sharding: Sharding, ndim: int) -> list[tuple[int, ...]]:
        """Which rows of each dim a rank holds: equal for ranks that hold the same rows."""
        places = [DeviceSet.at(self._mesh, self._ranks.size, position) for position in self._positions]
        return [tuple([place.rows_of(sharding, d) for d in range(ndim)]) for place in places]

    # ---- what the extension calls ----

    def all_gather(self, op: int, group: int, count: int, order: list[int], own: Any, everything: Any) -> None:
        """Gather the bytes of each member of a group."""
        self._agreed()
        comm, members = self._group(group, count, order)
        self._enter("all_gather", op, members)
        try:
            if len(everything) < _MOST_BYTES:
                comm.Allgather((own, self._byte), (everything, self._byte))
            else:
                _in_pieces(comm, [own] * count, _parts(everything, count))
        finally:
            self._ranks._watch.leave()

    def all_to_all(self, op: int, group: int, count: int, order: list[int], send: Any, receive: Any) -> None:
        """Exchange a part with each member of a group."""
        self._agreed()
        comm, members = self._group(group, count, order)
        self._enter("all_to_all", op, members)
        try:
            if len(send) < _MOST_BYTES:
                comm.Alltoall((send, self._byte), (receive, self._byte))
            else:
                _in_pieces(comm, _parts(send, count), _parts(receive, count))
        finally:
            self._ranks._watch.leave()

    def exchange(self, op: int, outgoing: list[tuple[int, Any]], incoming: list[tuple[int, Any]]) -> None:
        """Send and receive messages between pairs, all at once."""
        self._agreed()
        comm = self._ranks._comm
        others = [self._rank_at[position] for position, _ in incoming + outgoing]
        self._enter("exchange", op, tuple(sorted({self._ranks.rank, *others})))
        try:
            requests = []
            for position, memory in incoming:
                for piece in _pieces(memory):
                    requests.append(comm.Irecv((piece, self._byte), self._rank_at[position], _MESSAGE_TAG))
            for position, memory in outgoing:
                for piece in _pieces(memory):
                    requests.append(comm.Isend((piece, self._byte), self._rank_at[position], _MESSAGE_TAG))
            self._ranks._mpi.Request.Waitall(requests)
        finally:
            self._ranks._watch.leave()

    def _group(self, group: int, count: int, order: list[int]) -> tuple[Any, tuple[int, ...]]:
        found = self._members.get(group)
        if found is None:
            ranks = tuple([self._rank_at[position] for position in order])
            first = ranks.index(self._ranks.rank) // count * count
            with self._ranks.waiting("a first collective along some axes"):
                comm = self._ranks.group(count, ranks)
            found = self._members[group] = comm, ranks[first : first + count]
        return found

    def _enter(self, kind: str, op: int, members: Sequence[int]) -> None:
        self._ranks._watch.enter(members, _description, kind, op, self._what, self._executable)


def thread_count(own: AbstractSet[int], local: Sequence[AbstractSet[int]]) -> int:
    """The share of a rank that may run on the processors ``own``, of those that the ranks of its machine may run on.

    >>> thread_count({0, 1, 2, 3}, [{0, 1, 2, 3}, {0, 1, 2, 3}, {4, 5}])
    2
    """
    sharing = sum(not own.isdisjoint(processors) for processors in local)
    return max(1, len(own) // sharing)


def _whole_shape(rows: Sequence[tuple[int, ...]], shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of the array whose parts have these shapes: of each dim, the rows of ranks with different rows."""
    whole = []
    for d in range(len(shapes[0])):
        sizes: dict[int, int] = {}
        for held, shape in zip(rows, shapes):
            sizes.setdefault(held[d], shape[d])
        whole.append(sum(sizes.values()))
    return tuple(whole)


def _nothing() -> None:
    pass


def _description(kind: str, op: int, what: str, executable: Executable | None) -> str:
    return executable.op_text(op) if op and executable is not None else f"{kind} of {what}"


@lru_cache(maxsize=1024)
def _key(what: str, program: bytes) -> bytes:
    return hashlib.blake2b(program, digest_size=16, key=what.encode()[:64]).digest()


def _bytes(array: np.ndarray) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _parts(memory: Any, count: int) -> list[Any]:
    size = len(memory) // count
    return [memory[i * size : (i + 1) * size] for i in range(count)]


def _pieces(memory: Any) -> list[Any]:
    """Parts that one MPI call can move; at least one."""
    return [memory[begin : begin + _MOST_BYTES] for begin in range(0, max(len(memory), 1), _MOST_BYTES)]


def _in_pieces(comm: Any, send: Sequence[Any], receive: Sequence[Any]) -> None:
    """An exchange with each member that is too large for one call: in pairs, the next neighbors first."""
    rank, size = comm.Get_rank(), comm.Get_size()
    for step in range(size):
        to, source = (rank + step) % size, (rank - step) % size
        for out, into in zip(_pieces(send[to]), _pieces(receive[source])):
            comm.Sendrecv(out, to, recvbuf=into, source=source)


def abort_on_exception(ranks: Ranks) -> Callable[..., None]:
    """An exception hook that prints the traceback and then ends all ranks, which would wait for this one."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        print(f"shardwise: rank {ranks.rank} of {ranks.size} raised:", file=sys.stderr)
        before(kind, error, trace)
        ranks.abort()

    return hook
