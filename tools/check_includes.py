# SPDX-License-Identifier: Apache-2.0
"""Compiles C++ sources alone, without code generation: a file must include what it uses.

A build compiles sources in batches (SHARDWISE_UNITY), where a missing include does not show. By default: the sources
that the commits of the last day changed, and those that reach a header which they changed. Of more than 60, a sample of
60 is compiled, another one after each commit.

    python tools/check_includes.py build/editable [--jobs 2]     # a build: its compiler and its libraries are used
    python tools/check_includes.py build/editable --all          # every source
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CPP = ROOT / "cpp"
MOST = 60


def configure(build: Path) -> list[dict[str, str]]:
    """The compile commands of a build like `build`, but for its batches."""
    alone = build.with_name("includes")
    cache = (build / "CMakeCache.txt").read_text().splitlines()
    wanted = ("Python_EXECUTABLE", "pybind11_DIR", "CMAKE_CXX_COMPILER")
    settings = [f"-D{line}" for line in cache if line.split(":")[0] in wanted]
    options = ["-DSHARDWISE_UNITY=OFF", "-DSHARDWISE_TESTS=OFF", "-DCMAKE_BUILD_TYPE=Debug", *settings]
    subprocess.run(["cmake", "-G", "Ninja", "-S", ROOT, "-B", alone, *options], check=True, stdout=subprocess.DEVNULL)
    commands: list[dict[str, str]] = json.loads((alone / "compile_commands.json").read_text())
    return commands


def git(*arguments: str) -> str:
    """What git prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def changed_files() -> set[Path]:
    """The C++ files that the commits of the day before the last commit changed, and the uncommitted changes."""
    last = int(git("log", "-1", "--format=%ct"))
    committed = git("log", f"--since={last - 24 * 3600}", "--format=", "--name-only", "--", "cpp")
    return {ROOT / name for name in committed.splitlines() if name} | uncommitted_files()


def uncommitted_files() -> set[Path]:
    """The C++ files with changes that are not committed."""
    return {ROOT / name for name in git("diff", "--name-only", "HEAD", "--", "cpp").splitlines()}


def including(changed: set[Path]) -> set[Path]:
    """The changed files, and all files that include one of them, directly or not."""
    includers: dict[str, list[Path]] = {}
    for path in CPP.rglob("*"):
        if path.suffix in (".h", ".cpp"):
            for name in re.findall(r'^#include "([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE):
                includers.setdefault(name, []).append(path)
    reached, waiting = set(changed), [path for path in changed if path.suffix == ".h"]
    while waiting:
        for path in includers.get(str(waiting.pop().relative_to(CPP)), []):
            if path not in reached:
                reached.add(path)
                waiting.append(path)
    return reached


def selected(entries: list[dict[str, str]]) -> list[dict[str, str]]:
    """The entries of changed sources first, then of those that include a changed header; at most MOST of them.

    Uncommitted changes come before all: the sample of a day with many commits must have them.
    """
    changed, uncommitted = changed_files(), uncommitted_files()
    reached = including(changed)
    chosen = [entry for entry in entries if Path(entry["file"]) in reached]
    commit = git("rev-parse", "HEAD").strip()
    random.Random(commit).shuffle(chosen)  # the same sample each time that this commit is checked
    chosen.sort(key=lambda entry: (Path(entry["file"]) not in uncommitted, Path(entry["file"]) not in changed))
    return chosen[:MOST]


def compile_alone(entry: dict[str, str]) -> str:
    """The compiler's messages; empty if the file compiles."""
    command = shlex.split(entry["command"])
    out = command.index("-o")
    command = [*command[:out], *command[out + 2 :], "-fsyntax-only"]
    done = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def main() -> int:
    """Exit status 1 if a source does not compile."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--all", action="store_true", help="every source, not only those that have changed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    known = configure(arguments.build.resolve())
    entries = known if arguments.all else selected(known)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        messages = [text for text in pool.map(compile_alone, entries) if text]
    print(*messages, sep="\n")
    print(f"{len(entries)} of {len(known)} sources compiled alone, {len(messages)} failed")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
