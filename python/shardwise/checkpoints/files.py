# SPDX-License-Identifier: Apache-2.0
"""The operations on files that checkpoints are made of: writes, flushes to disk, locks, and errors in plain words.

Nothing else in this package writes, so a test that replaces these functions can cut a save short at any byte.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import message

__all__ = [
    "explained_errors",
    "lock_shared",
    "open_lock",
    "remove_tree",
    "rename",
    "same_file",
    "sync_file",
    "sync_folder",
    "try_lock",
    "unlock",
    "write_all",
]

_WHOLE = "checkpoints that were saved before are whole"
_REASONS = {
    errno.ENOSPC: ("the disk must have room for the checkpoint", f"free some space; {_WHOLE}"),
    errno.EDQUOT: ("the disk quota must have room for the checkpoint", f"free some space; {_WHOLE}"),
    errno.EFBIG: ("the files must stay below the limit of their size", f"raise the limit; {_WHOLE}"),
    errno.EROFS: ("the folder must be writable", "pass a path on a file system that is mounted for writing"),
    errno.EACCES: ("the folder must be accessible to this user", "change its permissions, or pass another path"),
    errno.EPERM: ("the folder must be accessible to this user", "change its permissions, or pass another path"),
    errno.ENOTDIR: ("path must be a folder", "pass another path"),
    errno.EEXIST: ("path must be a folder", "pass another path"),
}
_NO_LOCKS = (errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS, errno.EINVAL)


def _os_error(what: str, error: OSError, path: Path) -> OSError:
    """The same error with a message in plain words; its class and ``errno`` are kept."""
    rule, way_out = _REASONS.get(error.errno or 0, ("the files must be accessible", ""))
    named = os.fspath(path) if error.filename is None else os.fsdecode(error.filename)
    made = type(error)(message(what, rule, f"{error.strerror or error} for {named}", way_out))
    made.errno = error.errno
    return made


@contextmanager
def explained_errors(what: str, path: Path) -> Iterator[None]:
    """Errors of the operating system start with ``what`` and name the way out."""
    try:
        yield
    except OSError as error:
        if str(error).startswith(f"{what}: "):
            raise
        raise _os_error(what, error, path) from None


def write_all(fd: int, data: Any) -> None:
    """Write all bytes at the end of the file; one call of the system may write less."""
    memory = memoryview(data).cast("B")
    while len(memory):
        memory = memory[os.write(fd, memory) :]


def sync_file(fd: int) -> None:
    """Wait until the file's bytes are on the disk."""
    os.fsync(fd)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems that need no flush of folders
            raise
    finally:
        os.close(fd)


def rename(source: Path, target: Path) -> None:
    """Give a folder another name, in one step."""
    os.rename(source, target)


def remove_tree(folder: Path) -> None:
    """Remove a folder, as far as that is possible."""
    with suppress(OSError):
        shutil.rmtree(folder)


# ---- locks: of open files, so the end of a process ends its locks ---------------------------------------------------


def open_lock(path: Path) -> int:
    """Open a file for a lock. Some file systems lock for one owner only what is open for writing."""
    try:
        return os.open(path, os.O_RDWR)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        return os.open(path, os.O_RDONLY)


def try_lock(fd: int) -> bool:
    """Lock a file for one owner; False if another process or thread has it locked."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _NO_LOCKS
    return True


def lock_shared(fd: int) -> None:
    """Lock a file against removal; waits for its one owner, if it has one."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise


def unlock(fd: int) -> None:
    """End the lock also for processes that were forked meanwhile, and close the file."""
    with suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_UN)
    os.close(fd)


def same_file(fd: int, path: Path) -> bool:
    """Whether ``path`` still names the open file."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    return os.path.samestat(os.fstat(fd), found)
