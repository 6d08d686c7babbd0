# SPDX-License-Identifier: Apache-2.0
"""Steps that all ranks of a job take together; in one process, that process alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

from ..errors import CheckpointError, Error
from ..process.processes import current_processes
from .files import explained_errors

__all__ = ["Team"]

_T = TypeVar("_T")


class Team:
    """The ranks that run one save or load.

    Args:
        what: the public function.
        path: its folder.
        label: what the watch of the ranks reports while they wait for each other.
    """

    def __init__(self, what: str, path: Path, label: str) -> None:
        self._what = what
        self._path = path
        self._label = label
        self.processes = current_processes()
        self.rank = 0 if self.processes is None else self.processes.rank
        self._all_of: Callable[[Any], list[Any]] = (
            _alone if self.processes is None else self.processes.messages().all_of
        )

    def waiting(self) -> AbstractContextManager[None]:
        """A context in which the main thread waits for the other ranks."""
        return nullcontext() if self.processes is None else self.processes.waiting(self._label)

    def together(self, act: Callable[[], _T]) -> list[_T]:
        """What ``act`` returns on each rank. If it raises on one of them, all of them raise."""
        error: BaseException | None = None
        found: Any = None
        try:
            with explained_errors(self._what, self._path):
                found = act()
        except BaseException as raised:
            error = raised
        reports = self._all_of((found, None if error is None else self._report_of(error)))
        if error is not None:
            raise error
        for rank, (_, report) in enumerate(reports):
            if report is not None:
                raise self._error_of(rank, *report)
        return [value for value, _ in reports]

    def _report_of(self, error: BaseException) -> tuple[type[Exception], str, int | None]:
        """What other ranks need to raise it: the class, the text and ``errno``."""
        kind = type(error) if isinstance(error, (Error, OSError, MemoryError)) else CheckpointError
        text = (str(error) or repr(error)).removeprefix(f"{self._what}: ")
        return kind, text, error.errno if isinstance(error, OSError) else None

    def _error_of(self, rank: int, kind: type[Exception], text: str, number: int | None) -> Exception:
        """The error of another rank."""
        error = kind(f"{self._what}: on rank {rank}: {text}")
        if isinstance(error, OSError):
            error.errno = number
        return error


def _alone(value: Any) -> list[Any]:
    return [value]
