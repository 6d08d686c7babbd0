# SPDX-License-Identifier: Apache-2.0
"""Checks that all ranks do the same: the same operation, the same program, the same replicated arrays.

Each operation begins with an exchange of 16-byte hashes. A rank waits for it before the first collective of a program,
which waits for the other ranks anyway, or at the end of a program without one.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import Error, message

__all__ = ["Agreement", "RankMismatchError", "compare_replicas", "hash_of"]

_SIZE = 16


class RankMismatchError(Error, RuntimeError):
    """The ranks of an MPI job run different programs, or pass different arrays where all must pass the same."""


def hash_of(array: Any) -> bytes:
    """The hash of an array's dtype, shape and bytes."""
    whole = np.ascontiguousarray(array)
    digest = hashlib.blake2b(f"{whole.dtype}{np.shape(array)}".encode(), digest_size=_SIZE)
    digest.update(whole.reshape(-1).view(np.uint8).data)
    return digest.digest()


def compare_replicas(rows: Sequence[Hashable], hashes: Sequence[bytes]) -> None:
    """RankMismatchError if ranks that hold the same rows pass different parts. Both lists are by rank.

    >>> compare_replicas([0, 0, 1, 1], [b"a", b"a", b"b", b"b"])
    """
    holders: dict[Hashable, list[int]] = {}
    for rank, held in enumerate(rows):
        holders.setdefault(held, []).append(rank)
    for ranks in holders.values():
        odd = [ranks[i] for i in _minority([hashes[rank] for rank in ranks])]
        if odd:
            others = [rank for rank in ranks if rank not in odd]
            raise RankMismatchError(
                message(
                    "device_put",
                    "ranks that hold the same rows must pass equal parts",
                    f"other elements on {_ranks(odd)} than on {_ranks(others)}",
                    "pass equal parts, or use root=",
                )
            )


class Agreement:
    """Compares hashes over a communicator that nothing else uses."""

    def __init__(self, comm: Any, begins: Callable[[], None], waits: Callable[[str], Any]) -> None:
        self._comm = comm
        self._begins = begins  # counts the operations of all ranks
        self._ranks: int = comm.Get_size()
        self._waits = waits  # a context in which the rank waits for all others

    def begin(self, what: str, program: bytes, arrays: Mapping[str, Any]) -> Callable[[], None]:
        """Start the comparison. The function that it returns ends it; another call of that does nothing."""
        hashes = {name: hash_of(array) for name, array in arrays.items()}
        own = program
        if hashes or len(program) != _SIZE:
            own = hashlib.blake2b(program + b"".join(hashes.values()), digest_size=_SIZE).digest()
        everyone = bytearray(_SIZE * self._ranks)
        self._begins()
        request = self._comm.Iallgather(own, everyone)

        def finish() -> None:
            nonlocal request
            if request is None:
                return
            if not (request.Test() or request.Test()):  # the first one may only receive what has arrived
                with self._waits(what):
                    request.Wait()
            request = None
            if everyone != own * self._ranks:
                self._explain(what, program, hashes)

        return finish

    def _explain(self, what: str, program: bytes, hashes: Mapping[str, bytes]) -> None:
        """Raise the error on all ranks: all have seen the difference."""
        with self._waits(what):
            states: list[tuple[str, bytes, dict[str, bytes]]] = self._comm.allgather((what, program, dict(hashes)))
        if len({(name, key) for name, key, _ in states}) > 1:
            names = [name for name, _, _ in states]
            if len(set(names)) == 1:
                names = [f"{name} ({key.hex()[:8]})" for name, key, _ in states]
            raise RankMismatchError(
                message(
                    "mpi",
                    "all ranks must run the same programs in the same order",
                    _by_rank(names),
                    "let no line that runs a program depend on the rank, and give all ranks the same shapes",
                )
            )
        for name in hashes:
            odd = _minority([state[name] for _, _, state in states])
            if odd:
                raise RankMismatchError(
                    message(
                        f"{what}: mpi",
                        f"all ranks must pass the same {name}",
                        f"other elements on {_ranks(odd)}",
                        "use the same seed and data on all ranks, or device_put with root=0 or own_part=True",
                    )
                )


def _minority(values: Sequence[bytes]) -> list[int]:
    """The ranks without the most common value, or, among equals, without that of rank 0."""
    counts = Counter(values)
    most = max(counts.values())
    common = values[0] if counts[values[0]] == most else next(v for v in values if counts[v] == most)
    return [rank for rank, value in enumerate(values) if value != common]


def _by_rank(names: Sequence[str]) -> str:
    ranks: dict[str, list[int]] = {}
    for rank, name in enumerate(names):
        ranks.setdefault(name, []).append(rank)
    return ", ".join(f"{name} on {_ranks(each)}" for name, each in ranks.items())


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"
