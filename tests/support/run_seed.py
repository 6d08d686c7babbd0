# SPDX-License-Identifier: Apache-2.0
"""The seed of a run of the tests, which differs from commit to commit, and what a run tries in turn.

    SHARDWISE_SEED=1234 pytest      repeats a run; its first lines show the seed
    SHARDWISE_WHOLE=1 pytest        tries all rows, as `make test-all` does
    python -m tests.support.run_seed     prints the seed

``in_turn(rows)`` is a third of the rows, and the other thirds in the next two commits. What rotates within a row counts
with ``rounds()``: with the seed itself, a row would meet only every third of its variants.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from tests.support.paths import ROOT

T = TypeVar("T")
THIRD = 3


def run_seed() -> int:
    """SHARDWISE_SEED, or the seed of the commit."""
    given = os.environ.get("SHARDWISE_SEED")
    return int(given) if given else seed_of_commit(ROOT)


def seed_of_commit(repository: Path) -> int:
    """The number of commits; in a shallow clone, which lacks some, the first 8 hex digits of the commit.

    Outside a repository, as in an unpacked sdist, it is 0.
    """

    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        return subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True).stdout.strip()

    try:
        if git("rev-parse", "--is-shallow-repository") == "true":
            return int(git("rev-parse", "HEAD")[:8], 16)
        return int(git("rev-list", "--count", "HEAD"))
    except (OSError, subprocess.CalledProcessError):
        return 0


def is_whole() -> bool:
    """Whether this run tries all rows of the tables."""
    return os.environ.get("SHARDWISE_WHOLE", "0") not in ("", "0")


def in_turn(rows: Sequence[T], share: int = THIRD) -> list[T]:
    """Every ``share``-th of the rows, beginning with another one in each commit; all rows in a whole run."""
    return list(rows) if is_whole() else list(rows[run_seed() % share :: share])


def rounds(share: int = THIRD) -> int:
    """How often ``in_turn`` has been through all rows."""
    return run_seed() // share


def add_share(parser: argparse.ArgumentParser) -> None:
    """The options with which a tool tries a share of its table."""
    parser.add_argument("--every", type=int, default=1, help="only each n-th row of the table")
    parser.add_argument("--first", type=int, default=0, help="the row to begin with, modulo --every")


def share_of(rows: Sequence[T], options: argparse.Namespace) -> list[T]:
    """The rows that the options of ``add_share`` select."""
    return list(rows[options.first % options.every :: options.every])


if __name__ == "__main__":
    print(run_seed())
