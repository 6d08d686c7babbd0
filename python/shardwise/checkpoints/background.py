# SPDX-License-Identifier: Apache-2.0
"""The save that runs in a thread. There is at most one; its error waits for the next save, or for the exit."""

from __future__ import annotations

import atexit
import os
import re
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext

from .._core.ir import current_location, place_text
from ..process.processes import Processes

__all__ = ["settle", "start", "wait"]

_PLACE = re.compile(r" \(at [^\n]*?:\d+\)$")  # at the end of a message


class _Saving:
    """A save in a thread."""

    def __init__(self, job: Callable[[], None], label: str, processes: Processes | None) -> None:
        self.error: BaseException | None = None
        self._place = current_location()  # of the user's call; the thread has none
        self.pid = os.getpid()
        self._job = job
        self._label = label
        self._processes = processes
        # Not a daemon: the process ends when the checkpoint is written.
        self._thread = threading.Thread(target=self._run, name="shardwise.save")
        self._thread.start()

    def _run(self) -> None:
        try:
            self._job()
        except BaseException as error:
            self.error = _placed(error, *self._place)

    def join(self) -> None:
        """Wait until it has ended. With several ranks, the watch reports a long wait."""
        if os.getpid() == self.pid:  # a forked process has no such thread
            waiting = nullcontext() if self._processes is None else self._processes.waiting(self._label)
            with waiting:
                self._thread.join()


def _placed(error: BaseException, file: str, line: int) -> BaseException:
    """The error with a text that ends with this place instead of one in a thread."""
    if error.args and isinstance(error.args[0], str) and file:
        text = _PLACE.sub("", error.args[0])
        if text != error.args[0]:
            error.args = (f"{text} (at {place_text(file, line)})", *error.args[1:])
    return error


_current: list[_Saving | None] = [None]
_registered: list[bool] = [False]


def start(job: Callable[[], None], label: str, processes: Processes | None) -> None:
    """Run the job in a thread, after the one before it."""
    wait()
    if not _registered[0]:
        _registered[0] = True
        atexit.register(_at_exit)
    _current[0] = _Saving(job, label, processes)


def settle() -> None:
    """Wait for the save in the thread, and keep its error."""
    saving = _current[0]
    if saving is not None:
        saving.join()


def wait() -> None:
    """Wait for the save in the thread, and raise its error, once."""
    settle()
    saving, _current[0] = _current[0], None
    if saving is not None and saving.error is not None and saving.pid == os.getpid():
        raise saving.error


def _at_exit() -> None:
    """A failed save makes the exit status 1. Nothing but this can set it while the process exits."""
    try:
        wait()
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)
