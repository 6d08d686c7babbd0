# SPDX-License-Identifier: Apache-2.0
"""Reports ranks that wait long for others. A thread of each rank asks the other ranks for their state.

    mpi: all ranks must reach all_gather of tensor<4x8xf32> (at train.py:31), got ranks 0 and 1 waiting for 10 s;
    rank 2 runs other code (at train.py:12), rank 3 does not answer

The lowest rank that waits prints it. With SHARDWISE_MPI_TIMEOUT it then ends all ranks. A rank that waits for one that
has exited ends all ranks at once.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, NamedTuple

from ..errors import composed
from ..process.traceback_filtering import HIDDEN

__all__ = ["Watch"]

WARN_AFTER = 10.0  # seconds
_POLL = 0.2
_ANSWERS_WITHIN = 1.0
_EXITS_WITHIN = 1.0  # ranks that exit together send no messages
_EXIT_POLL = 0.002
_TAG = 1


class _Wait(NamedTuple):
    """A collective that the main thread is in."""

    number: int  # of the operation, counted in the same way on all ranks
    since: float
    members: Sequence[int]  # the ranks of its group
    describe: Callable[..., str]
    details: tuple[Any, ...]  # what `describe` takes

    def text(self) -> str:
        """Describe the collective; the text is the same on all ranks."""
        return self.describe(*self.details)


class _Answer(NamedTuple):
    """The state of a rank: the number of its operation, the collective that it waits in, and its place in the code."""

    number: int
    collective: str  # empty if it does not wait
    where: str


class _Questions:
    """Questions of ranks to each other about their state, over a communicator for nothing else."""

    def __init__(self, comm: Any) -> None:
        self.rank: int = comm.Get_rank()
        self.answers: dict[int, _Answer] = {}
        self.exited: dict[int, int] = {}  # the number of the last operation, by rank
        self._comm = comm
        self._asked = 0  # answers to earlier questions are out of date
        self._sent: list[Any] = []

    def ask(self, ranks: Sequence[int]) -> None:
        """Ask these ranks; their answers come later."""
        self.answers.clear()
        self._asked += 1
        for rank in ranks:
            if rank != self.rank:
                self._send(("ask", self.rank, self._asked, None), rank)

    def serve(self, answer: Callable[[], _Answer]) -> None:
        """Answer other ranks, and collect their answers."""
        while self._comm.iprobe(tag=_TAG):
            kind, rank, number, content = self._comm.recv(tag=_TAG)
            if kind == "ask":
                self._send(("answer", self.rank, number, answer()), rank)
            elif kind == "exit":
                self.exited[rank] = number
            elif number == self._asked:
                self.answers[rank] = content
        self._sent = [request for request in self._sent if not request.Test()]

    def exit(self, number: int) -> None:
        """Wait until all ranks exit. After a second, send the others ``number``, the last operation of this rank."""
        barrier, start, has_sent = self._comm.Ibarrier(), time.monotonic(), False
        while not barrier.Test():
            if not has_sent and time.monotonic() - start > _EXITS_WITHIN:
                for rank in range(self._comm.Get_size()):
                    if rank != self.rank:
                        self._send(("exit", self.rank, number, None), rank)
                has_sent = True
            time.sleep(_EXIT_POLL)

    def _send(self, content: Any, rank: int) -> None:
        self._sent.append(self._comm.isend(content, rank, tag=_TAG))


class Watch:
    """Reports the collective in which this rank waits, when it waits long.

    Args:
        comm: the communicator of the ranks. The watch sends nothing over it.
        threads: whether several threads may use MPI. Without, the report cannot name the missing ranks.
        timeout: seconds after which a wait ends all ranks; 0 for never.
    """

    def __init__(self, comm: Any, threads: bool, timeout: float) -> None:
        self._comm = comm
        self._rank: int = comm.Get_rank()
        self._threads = threads
        self._timeout = timeout
        self._questions: _Questions | None = None
        self._wait: _Wait | None = None
        self._number = 0
        self._has_exited = False
        self._end = threading.Event()
        self._deadline = _Deadline(None, 0.0)
        self._thread = threading.Thread(target=self._run, name="shardwise.mpi.watch", daemon=True)
        self._thread.start()

    def connect(self, comm: Any) -> None:
        """Ask and answer over this communicator from now on. It exists on all ranks, so all of them answer."""
        self._comm = comm  # the user may free the first one
        if self._threads:
            self._questions = _Questions(comm)

    def begin(self) -> None:
        """Count an operation that all ranks run. Ranks compare these numbers, so every operation must call this."""
        self._number += 1

    def enter(self, members: Sequence[int], describe: Callable[..., str], *details: Any) -> None:
        """The main thread is about to wait for the members of a group, which ``describe(*details)`` describes."""
        self._wait = _Wait(self._number, time.monotonic(), members, describe, details)

    def leave(self) -> None:
        """The wait is over."""
        self._wait = None

    def close(self) -> None:
        """Wait until all ranks exit, as MPI does, and stop watching."""
        self._has_exited = True
        if self._questions is not None:
            self._questions.exit(self._number)
        self._end.set()
        self._thread.join(2.0)

    # ---- the thread ----

    def _run(self) -> None:
        while not self._end.wait(_POLL):
            questions = self._questions
            if questions is not None:
                questions.serve(self._answer)
            wait = self._wait
            if wait is None:
                continue
            if wait is not self._deadline.wait:
                self._deadline = _Deadline(wait, min(WARN_AFTER, self._timeout or WARN_AFTER))
            self._check(wait, self._deadline, questions)

    def _answer(self) -> _Answer:
        wait = self._wait
        if wait is not None:
            text = wait.text()
            return _Answer(wait.number, text, f"waits in {text}")
        if self._has_exited:
            return _Answer(self._number, "", "has exited")
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        return _Answer(self._number, "", f"runs other code{_place(frame)}")

    def _check(self, wait: _Wait, deadline: _Deadline, questions: _Questions | None) -> None:
        now = time.monotonic()
        if questions is not None and questions.exited:
            # A rank that exited during the same operation may have done its part.
            exited = [rank for rank in wait.members if questions.exited.get(rank, wait.number) < wait.number]
            if exited:
                self._report(wait, ", ".join(f"rank {rank} has exited" for rank in exited), ends=True)
        if now - wait.since < deadline.due:
            return
        if questions is None:
            why = "MPI runs without MPI_THREAD_MULTIPLE" if not self._threads else "they have not called it yet"
            self._report_late(wait, deadline, f"the missing ranks are unknown, because {why}")
        elif deadline.asked is None:
            deadline.asked = now
            questions.ask(wait.members)
        elif len(questions.answers) == len(wait.members) - 1 or now - deadline.asked > _ANSWERS_WITHIN:
            self._conclude(wait, deadline, questions.answers)

    def _conclude(self, wait: _Wait, deadline: _Deadline, answers: dict[int, _Answer]) -> None:
        here = wait.text()
        waiting = [rank for rank, each in answers.items() if (each.number, each.collective) == (wait.number, here)]
        if self._wait is not wait:
            return
        silent = _Answer(0, "", "does not answer: it has ended or is stopped")
        missing = []
        for rank in wait.members:
            answer = answers.get(rank, silent)
            # A rank with a larger number has been here meanwhile.
            if rank != self._rank and rank not in waiting and answer.number <= wait.number:
                missing.append(f"rank {rank} {answer.where}")
        if not missing:
            deadline.ask_again(time.monotonic() - wait.since + _ANSWERS_WITHIN)
        elif any(rank < self._rank for rank in waiting):  # that rank reports
            deadline.ask_again(self._next_limit(time.monotonic() - wait.since))
        else:
            self._report_late(wait, deadline, ", ".join(missing), waiting)

    def _next_limit(self, waited: float) -> float:
        return self._timeout if waited < self._timeout else math.inf

    def _report_late(self, wait: _Wait, deadline: _Deadline, missing: str, waiting: Sequence[int] = ()) -> None:
        waited = time.monotonic() - wait.since
        self._report(wait, missing, waiting, ends=bool(self._timeout) and waited >= self._timeout)
        deadline.ask_again(self._next_limit(waited))

    def _report(self, wait: _Wait, missing: str, waiting: Sequence[int] = (), *, ends: bool) -> None:
        ranks = sorted([self._rank, *waiting])
        names = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"
        way_out = "" if self._timeout or ends else "set SHARDWISE_MPI_TIMEOUT to end such a run"
        got = f"{names} waiting for {time.monotonic() - wait.since:.0f} s; {missing}"
        text = composed("mpi", f"all ranks must reach {wait.text()}", got, way_out, "", 0)
        print(f"shardwise: {'error' if ends else 'warning'}: {text}", file=sys.stderr, flush=True)
        if ends:
            sys.stdout.flush()
            self._comm.Abort(1)


class _Deadline:
    """When the thread reports a wait next, and when it asked the other ranks about it."""

    def __init__(self, wait: _Wait | None, due: float) -> None:
        self.wait = wait
        self.due = due  # seconds of waiting
        self.asked: float | None = None

    def ask_again(self, due: float) -> None:
        """Ask again when the wait has taken ``due`` seconds."""
        self.due, self.asked = due, None


def _place(frame: FrameType | None) -> str:
    """The user's line that a frame was called from."""
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(HIDDEN) and not name.startswith("<frozen"):
            return f" (at {name}:{frame.f_lineno})"
        frame = frame.f_back
    return ""
