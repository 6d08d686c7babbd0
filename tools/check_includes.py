# SPDX-License-Identifier: Apache-2.0
"""Compiles each C++ source alone, without code generation: a file must include what it uses.

A build compiles sources in batches (SHARDWISE_UNITY), where a missing include does not show.

    python tools/check_includes.py build/editable [--jobs 2]     # a build: its compiler and its libraries are used
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


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
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    entries = configure(arguments.build.resolve())
    with ThreadPoolExecutor(arguments.jobs) as pool:
        messages = [text for text in pool.map(compile_alone, entries) if text]
    print(*messages, sep="\n")
    print(f"{len(entries)} sources compiled alone, {len(messages)} failed")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
