# SPDX-License-Identifier: Apache-2.0
"""The folders of checkpoints: one for each step, which appears under its name when it is whole.

    run/step-100                   published
    run/step-100.1                 step 100 again: replaces step-100, which the same save removes
    run/step-200.tmp-9f3c2e51      being written, or left by a save that was killed

Whoever writes or reads a folder holds a lock on its manifest, exclusive or shared. A folder is removed only by the
holder of the exclusive lock, so neither the folder of a living save nor one that is being loaded is ever removed.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import CheckpointError, is_integer, message, shown
from .files import lock_shared, open_lock, remove_tree, rename, same_file, sync_folder, try_lock, unlock

__all__ = [
    "MANIFEST",
    "Draft",
    "StepFolder",
    "checked_path",
    "checked_step",
    "expect_newest",
    "expect_no_step",
    "keep_newest",
    "make_folder",
    "newest",
    "published",
    "reading",
    "remove_leftovers",
]

MANIFEST = "manifest.json"
_STEP = re.compile(r"step-(0|[1-9]\d{0,18})(?:\.([1-9]\d{0,8}))?")
_LEFTOVER = re.compile(r"step-\d+(\.\d+)?\.tmp-[0-9a-f]+")
_MOST_NAMED = 8  # folders in a message
_TRIES = 100  # of a reader whose folder is replaced meanwhile


class StepFolder(NamedTuple):
    """A published checkpoint; ``version`` counts the saves of the same step."""

    step: int
    version: int
    path: Path


def checked_path(what: str, path: Any) -> Path:
    """The path of a folder on a file system. Raises TypeError, ValueError."""
    try:
        text = os.fsdecode(os.fspath(path))
    except TypeError:
        raise TypeError(message(what, "path must be a str or a path", shown(path))) from None
    if not text or "\0" in text:
        raise ValueError(message(what, "path must be the name of a folder", repr(text)))
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text):
        way_out = "pass a folder of a mounted file system, and copy it there"
        raise ValueError(message(what, "path must be a folder of a file system", repr(text), way_out))
    return Path(text)


def checked_step(what: str, step: Any) -> int:
    """The number of a step. Raises ValueError."""
    if not is_integer(step, 0) or step >= 2**63:
        raise ValueError(message(what, "step must be an integer that is not negative, below 2^63", shown(step)))
    return int(step)


def published(path: Path) -> list[StepFolder]:
    """The checkpoints in a folder, oldest step first; none if there is no folder."""
    found = [(match, name) for name in _names(path) if (match := _STEP.fullmatch(name))]
    return sorted(StepFolder(int(match[1]), int(match[2] or 0), path / name) for match, name in found)


def _names(path: Path) -> list[str]:
    try:
        return os.listdir(path)
    except FileNotFoundError:
        return []


def newest(path: Path, step: int | None = None) -> StepFolder | None:
    """The newest checkpoint in a folder, or the newest version of one step; None if there is none."""
    found = [folder for folder in published(path) if step is None or folder.step == step]
    return found[-1] if found else None


def expect_no_step(what: str, path: Path) -> None:
    """Raise CheckpointError if the path is that of a published step, not of the folder of all steps."""
    folder = Path(os.path.realpath(path))
    if _STEP.fullmatch(folder.name) and (folder / MANIFEST).exists():
        rule, way_out = "path must be the folder of the checkpoints", f"pass {folder.parent}, or another folder"
        raise CheckpointError(message(what, rule, f"the checkpoint {folder}", way_out))


# ---- writing --------------------------------------------------------------------------------------------------------


class Draft:
    """The folder of a save, with its empty manifest, which this process holds locked until it is published."""

    def __init__(self, path: Path, step: int) -> None:
        self.step = step
        make_folder(path)
        while True:
            self.folder = path / f"step-{step}.tmp-{secrets.token_hex(8)}"
            os.mkdir(self.folder)
            manifest = self.folder / MANIFEST
            try:
                self.manifest = os.open(manifest, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            except FileNotFoundError:  # another process took it for a leftover
                continue
            if try_lock(self.manifest) and same_file(self.manifest, manifest):
                return
            unlock(self.manifest)

    def publish(self) -> Path:
        """Give the folder its final name. All its files must be on the disk."""
        sync_folder(self.folder)
        parent = self.folder.parent
        while True:
            last = newest(parent, self.step)
            version = 0 if last is None else last.version + 1
            target = parent / (f"step-{self.step}.{version}" if version else f"step-{self.step}")
            try:
                rename(self.folder, target)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):  # another process was faster
                    raise
                continue
            sync_folder(parent)
            unlock(self.manifest)
            return target

    def discard(self) -> None:
        """Remove the folder."""
        remove_tree(self.folder)
        unlock(self.manifest)


def make_folder(path: Path) -> None:
    """Make a folder and those above it, and flush their names."""
    if path.is_dir():
        return
    make_folder(path.parent)
    try:
        os.mkdir(path)
    except FileExistsError:
        if not path.is_dir():
            raise
    sync_folder(path.parent)


def remove_leftovers(path: Path) -> None:
    """Remove what killed saves left. The folders of living ones stay."""
    for name in _names(path):
        if _LEFTOVER.fullmatch(name):
            _remove_if_unused(path / name)


def expect_newest(path: Path, step: int | None) -> None:
    """Raise CheckpointError if a save of this step, None for no number, would come before a step that is there.

    :func:`latest` would go on from the newer one: of a run that was rolled back, from the steps that it dropped.
    """
    newer = sorted({folder.step for folder in published(path) if folder.step > (step or 0)})
    if not newer:
        return
    there = f"step {newer[0]}" if len(newer) == 1 else f"{len(newer)} steps up to {newer[-1]}"
    if step is None:
        rule = "a folder with numbered steps needs a number"
        raise CheckpointError(message("save", rule, f"no step= with {there} in {path}", "pass step="))
    names = [f"step-{each}" for each in newer[-_MOST_NAMED:]]
    dots = "…, " if len(newer) > len(names) else ""
    way_out = f"to go on from an earlier step, remove {dots}{', '.join(names)}, or save in another folder"
    rule = "step must not be below the newest one in the folder"
    raise CheckpointError(message("save", rule, f"step {step} with {there} in {path}", way_out))


def keep_newest(path: Path, saved: int, keep: int | None) -> None:
    """Remove earlier versions of steps, and of the steps up to that just saved all but the newest ``keep``."""
    found = published(path)
    last = {folder.step: folder for folder in found}
    steps = sorted(step for step in last if step <= saved)
    old = set() if keep is None else set(steps[:-keep])
    for folder in found:
        if folder.step in old or last[folder.step] is not folder:
            _remove_if_unused(folder.path)


def _remove_if_unused(folder: Path) -> None:
    """Remove a folder unless someone reads or writes it."""
    try:
        lock = open_lock(folder / MANIFEST)
    except FileNotFoundError:
        remove_tree(folder)
        return
    except OSError:
        return
    try:
        if try_lock(lock) and same_file(lock, folder / MANIFEST):
            doomed = folder
            if not _LEFTOVER.fullmatch(folder.name):  # a half removed folder must not have the name of a step
                doomed = folder.with_name(f"{folder.name}.tmp-{secrets.token_hex(8)}")
                rename(folder, doomed)
            remove_tree(doomed)
    except OSError:  # no permission to rename: it stays
        pass
    finally:
        unlock(lock)


# ---- reading --------------------------------------------------------------------------------------------------------


@contextmanager
def reading(what: str, path: Path, step: int | None) -> Iterator[tuple[Path, bytes, str]]:
    """The folder of a checkpoint, the bytes of its manifest, and what to do if they are damaged.

    Nobody removes the folder within the block.
    """
    for _ in range(_TRIES):
        folder = _folder_to_read(what, path, step)
        try:
            lock = os.open(folder / MANIFEST, os.O_RDONLY)
        except FileNotFoundError:
            if not folder.is_dir():  # a save has just replaced it
                continue
            rule = f"a checkpoint must have a file {MANIFEST}"
            raise CheckpointError(message(what, rule, f"none in {folder}", _way_out(path, step))) from None
        try:
            lock_shared(lock)
            if not same_file(lock, folder / MANIFEST):
                continue
            with open(lock, "rb", closefd=False) as file:
                data = file.read()
            yield folder, data, _way_out(path, step)
            return
        finally:
            unlock(lock)
    raise CheckpointError(message(what, "a checkpoint must stay while it is loaded", f"{path}, which others replace"))


def _folder_to_read(what: str, path: Path, step: int | None) -> Path:
    if step is None and (path / MANIFEST).exists():  # the folder of a step
        return path
    found = newest(path, step)
    if found is not None:
        return found.path
    if not path.exists():
        raise _missing(message(what, "path must be a folder with a checkpoint", f"no folder {path}"))
    os.listdir(path)  # NotADirectoryError, PermissionError
    steps = sorted({folder.step for folder in published(path)})
    if step is not None and steps:
        shown_steps = ", ".join(map(str, steps[-8:]))
        raise _missing(message(what, f"the folder must have step {step}", f"steps {shown_steps} in {path}"))
    raise _missing(
        message(what, "path must be a folder with a checkpoint", f"none in {path}", "write one with sw.save")
    )


def _missing(text: str) -> FileNotFoundError:
    error = FileNotFoundError(text)
    error.errno = errno.ENOENT
    return error


def _way_out(path: Path, step: int | None) -> str:
    steps = sorted({folder.step for folder in published(path)})
    wrong = steps[-1] if step is None and steps else step
    others = [each for each in steps if each != wrong]
    return f"load another step: step={others[-1]}" if others else "restore the folder from a copy"
