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
    members: Sequence[int]  # the ranks of its group
    describe: Callable[..., str]
    details: tuple[Any, ...]  # what `describe` takes

    def text(self) -> str:
        """What the main thread waits for."""
        return self.describe(*self.details)


class _Answer(NamedTuple):
    """What a rank does: how many collectives it has entered, whether it waits in one, and where it is."""

    number: int
    waits: bool
    where: str


class _Questions:
    """Questions of ranks to each other about what they do, over a communicator for nothing else."""

    def __init__(self, comm: Any) -> None:
        self.rank: int = comm.Get_rank()
        self.answers: dict[int, _Answer] = {}
        self._comm = comm
        self._sent: list[Any] = []

    def ask(self, ranks: Sequence[int]) -> None:
        """Ask these ranks; their answers come later."""
        self.answers.clear()
        for rank in ranks:
            if rank != self.rank:
                self._send(("ask", self.rank, None), rank)

    def serve(self, answer: Callable[[], _Answer]) -> None:
        """Answer what other ranks have asked, and collect their answers."""
        while self._comm.iprobe(tag=_TAG):
            kind, rank, content = self._comm.recv(tag=_TAG)
            if kind == "ask":
                self._send(("answer", self.rank, answer()), rank)
            else:
                self.answers[rank] = content
        self._sent = [request for request in self._sent if not request.Test()]

    def _send(self, content: Any, rank: int) -> None:
        self._sent.append(self._comm.isend(content, rank, tag=_TAG))

    def abort(self) -> None:
        """End all ranks."""
        sys.stdout.flush()
        self._comm.Abort(1)


class Watch:
    """Knows in which collective this rank waits, and reports it when it waits long.

    Args:
        comm: a communicator for questions and answers.
        threads: whether several threads may use MPI. Without, the report cannot name the missing ranks.
        timeout: seconds after which a wait ends all ranks; 0 for never.
    """

    def __init__(self, comm: Any, threads: bool, timeout: float) -> None:
        self._questions = _Questions(comm)
        self._threads = threads
        self._timeout = timeout
        self._limit = min(WARN_AFTER, timeout) if timeout else WARN_AFTER
        self._wait: _Wait | None = None
        self._count = 0
        self._reported = -1  # number of a wait
        self._asked = (-1, 0.0)  # number of a wait, and when
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shardwise.mpi.watch", daemon=True)
        self._thread.start()

    def enter(self, members: Sequence[int], describe: Callable[..., str], *details: Any) -> None:
        """The main thread is about to wait for the members of a group, as ``describe(*details)`` says."""
        self._count += 1
        self._wait = _Wait(self._count, time.monotonic(), members, describe, details)

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
            if self._threads:
                self._questions.serve(self._answer)
            wait = self._wait
            if wait is None or self._reported == wait.number or time.monotonic() - wait.since < self._limit:
                continue
            number, since = self._asked
            if not self._threads:
                self._report(wait, "the missing ranks are unknown, because MPI runs without MPI_THREAD_MULTIPLE")
            elif number != wait.number:
                self._asked = (wait.number, time.monotonic())
                self._questions.ask(wait.members)
            elif len(self._questions.answers) == len(wait.members) - 1 or time.monotonic() - since > _ANSWERS_WITHIN:
                self._conclude(wait)

    def _answer(self) -> _Answer:
        wait = self._wait
        if wait is not None:
            return _Answer(wait.number, True, f"waits in {wait.text()}")
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        return _Answer(self._count, False, f"runs other code{_place(frame)}")

    def _conclude(self, wait: _Wait) -> None:
        answers = self._questions.answers
        waiting = [rank for rank, answer in answers.items() if answer.waits and answer.number == wait.number]
        if self._wait is not wait:
            return
        if any(rank < self._questions.rank for rank in waiting):
            self._reported = wait.number  # that rank reports
            return
        silent = _Answer(0, False, "does not answer: it has ended or is stopped")
        missing = []
        for rank in wait.members:
            answer = answers.get(rank, silent)
            # A rank with a larger number has been here meanwhile.
            if rank != self._questions.rank and rank not in waiting and answer.number <= wait.number:
                missing.append(f"rank {rank} {answer.where}")
        if missing:
            self._report(wait, ", ".join(missing), waiting)
        else:
            self._asked = (-1, 0.0)

    def _report(self, wait: _Wait, missing: str, waiting: Sequence[int] = ()) -> None:
        self._reported = wait.number
        ranks = sorted([self._questions.rank, *waiting])
        names = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"
        seconds = time.monotonic() - wait.since
        ends = bool(self._timeout) and seconds >= self._timeout
        way_out = "" if self._timeout else "set SHARDWISE_MPI_TIMEOUT to end such a run"
        got = f"{names} waiting for {seconds:.0f} s; {missing}"
        text = composed("mpi", f"all ranks must reach {wait.text()}", got, way_out, "", 0)
        print(f"shardwise: {'error' if ends else 'warning'}: {text}", file=sys.stderr, flush=True)
        if ends:
            self._questions.abort()
        if self._timeout:  # the next report is the last one
            self._limit, self._reported, self._asked = self._timeout, -1, (-1, 0.0)


def _place(frame: FrameType | None) -> str:
    """The user's line that a frame was called from."""
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(HIDDEN) and not name.startswith("<frozen"):
            return f" (at {name}:{frame.f_lineno})"
        frame = frame.f_back
    return ""
