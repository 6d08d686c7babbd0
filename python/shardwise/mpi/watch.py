# SPDX-License-Identifier: Apache-2.0
"""Reports ranks that wait long for others: a thread of each rank that asks the others what they do.

    mpi: all ranks must reach all_gather of tensor<4x8xf32> (at train.py:31), got ranks 0 and 1 waiting for 10 s;
    rank 2 runs other code (at train.py:12), rank 3 does not answer

The lowest rank that waits prints it. With SHARDWISE_MPI_TIMEOUT it then ends all ranks.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, NamedTuple

from ..errors import composed
from ..traceback_filtering import HIDDEN

__all__ = ["Watch"]

WARN_AFTER = 10.0  # seconds
_POLL = 0.2
_ANSWERS_WITHIN = 1.0
_TAG = 1


class _Wait(NamedTuple):
    """A collective that the main thread is in."""

    number: int  # how many it has entered before
    since: float
    describe: Callable[[], str]
    members: Sequence[int]  # the ranks of its group


class Watch:
    """Knows in which collective this rank waits, and reports it when it waits long.

    Args:
        comm: a communicator for questions and answers, of nothing else.
        threads: whether several threads may use MPI. Without, the report cannot name the missing ranks.
        timeout: seconds after which a wait ends all ranks; 0 for never.
    """

    def __init__(self, comm: Any, threads: bool, timeout: float) -> None:
        self._comm = comm
        self._threads = threads
        self._timeout = timeout
        self._limit = min(WARN_AFTER, timeout) if timeout else WARN_AFTER
        self._main = threading.main_thread().ident
        self._wait: _Wait | None = None
        self._count = 0
        self._reported = -1
        self._answers: dict[int, tuple[int, bool, str]] = {}
        self._asked: tuple[int, float] | None = None  # number of the wait, when
        self._sent: list[Any] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shardwise.mpi.watch", daemon=True)
        self._thread.start()

    def enter(self, describe: Callable[[], str], members: Sequence[int]) -> None:
        """The main thread is about to wait for the members of a group."""
        self._count += 1
        self._wait = _Wait(self._count, time.monotonic(), describe, members)

    def leave(self) -> None:
        """The wait is over."""
        self._wait = None

    def close(self) -> None:
        """Stop watching."""
        self._end.set()
        self._thread.join(2.0)

    # ---- the thread ----

    def _run(self) -> None:
        while not self._end.wait(_POLL):
            wait = self._wait
            if self._threads:
                self._answer()
            if wait is None or self._reported == wait.number or time.monotonic() - wait.since < self._limit:
                continue
            if not self._threads:
                self._report(wait, "the missing ranks are unknown: MPI runs without MPI_THREAD_MULTIPLE")
            elif self._asked is None or self._asked[0] != wait.number:
                self._answers.clear()
                self._asked = (wait.number, time.monotonic())
                self._send(("ask", self._comm.Get_rank()), [m for m in wait.members if m != self._comm.Get_rank()])
            elif len(self._answers) == len(wait.members) - 1 or time.monotonic() - self._asked[1] > _ANSWERS_WITHIN:
                self._conclude(wait)

    def _answer(self) -> None:
        while self._comm.iprobe(tag=_TAG):
            kind, rank, *state = self._comm.recv(tag=_TAG)
            if kind == "ask":
                self._send(("answer", self._comm.Get_rank(), *self._state()), [rank])
            else:
                self._answers[rank] = (state[0], state[1], state[2])
        self._sent = [request for request in self._sent if not request.Test()]

    def _send(self, content: Any, ranks: Sequence[int]) -> None:
        self._sent += [self._comm.isend(content, rank, tag=_TAG) for rank in ranks]

    def _state(self) -> tuple[int, bool, str]:
        """How many collectives this rank has entered, whether it is in one, and where."""
        wait = self._wait
        if wait is not None:
            return wait.number, True, wait.describe()
        return self._count, False, f"runs other code{_place(sys._current_frames().get(self._main or 0))}"

    def _conclude(self, wait: _Wait) -> None:
        if self._wait is not wait:
            return
        me = self._comm.Get_rank()
        waiting = [rank for rank, (number, waits, _) in self._answers.items() if waits and number == wait.number]
        if any(rank < me for rank in waiting):
            self._reported = wait.number  # that rank reports
            return
        missing = []
        for rank in wait.members:
            if rank == me or rank in waiting:
                continue
            number, waits, where = self._answers.get(rank, (0, False, "does not answer: it has ended or is stopped"))
            if number > wait.number:
                continue  # it has been here, and is on the way to tell
            missing.append(f"rank {rank} {'waits in ' if waits else ''}{where}")
        if missing:
            self._report(wait, ", ".join(missing), sorted([me, *waiting]))
        else:
            self._asked = None  # all came meanwhile

    def _report(self, wait: _Wait, missing: str, waiting: Sequence[int] = ()) -> None:
        self._reported = wait.number
        ranks = list(waiting) or [self._comm.Get_rank()]
        names = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"
        seconds = round(time.monotonic() - wait.since)
        ending = bool(self._timeout) and time.monotonic() - wait.since >= self._timeout
        way_out = "" if self._timeout else "set SHARDWISE_MPI_TIMEOUT to end such a run"
        got = f"{names} waiting for {seconds} s; {missing}"
        text = composed("mpi", f"all ranks must reach {wait.describe()}", got, way_out, "", 0)
        print(f"shardwise: {'error' if ending else 'warning'}: {text}", file=sys.stderr, flush=True)
        if ending:
            sys.stdout.flush()
            self._comm.Abort(1)
        if self._timeout:
            self._limit, self._reported, self._asked = self._timeout, -1, None


def _place(frame: FrameType | None) -> str:
    """The user's line that a frame was called from."""
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(HIDDEN) and not name.startswith("<frozen"):
            return f" (at {name}:{frame.f_lineno})"
        frame = frame.f_back
    return ""
