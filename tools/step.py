# SPDX-License-Identifier: Apache-2.0
"""Run one step of a make target: print its name, its progress and its time, and keep its figures for a table.

    python3 tools/step.py build --log -- ninja    # the output goes to build/logs/build.log; its last line is shown
    python3 tools/step.py test-py -- pytest -q    # the output is shown as it is
    python3 tools/step.py --table build/steps.tsv # the steps that ran while SHARDWISE_STEPS named that file

The standard library alone: steps run before anything is installed.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

LOGS = Path(__file__).resolve().parents[1] / "build" / "logs"
WIDTH = 110
SHOWN_OF_A_FAILURE = 80  # lines


def minutes(seconds: float) -> str:
    """Seconds as ``minutes:seconds``."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def last_line(log: Path) -> str:
    """The last line of a log that is not blank, cut to a terminal's width."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
        lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1][:WIDTH] if lines else ""


def run_logged(name: str, command: list[str]) -> int:
    """Run a command with its output in a log, and show the log's last line every few seconds."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{name}.log"
    terminal = sys.stdout.isatty()
    start, shown = time.monotonic(), ""
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        while True:
            try:
                status = process.wait(1 if terminal else 15)
                break
            except subprocess.TimeoutExpired:
                line = last_line(log)
                if terminal:
                    print(f"\r\033[K   {minutes(time.monotonic() - start)}  {line[: WIDTH - 30]}", end="", flush=True)
                elif line != shown:
                    print(f"   {minutes(time.monotonic() - start)}  {line}", flush=True)
                shown = line
    if terminal:
        print("\r\033[K", end="")
    if status:
        lines = log.read_text(errors="replace").splitlines()
        print(*lines[-SHOWN_OF_A_FAILURE:], sep="\n")
        print(f"{name} failed with exit status {status}; the whole output is in {log}")
    return status


def children_seconds() -> float:
    """Processor seconds of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(name: str, command: list[str], logged: bool) -> int:
    """Run the step, and add its row to the file that SHARDWISE_STEPS names."""
    print(f"== {name}", flush=True)
    start = time.monotonic()
    status = run_logged(name, command) if logged else subprocess.run(command, check=False).returncode
    wall, processor = time.monotonic() - start, children_seconds()
    print(f"== {name}: {'failed after' if status else 'done in'} {minutes(wall)} ({processor:.0f} CPU s)", flush=True)
    if table := os.environ.get("SHARDWISE_STEPS"):
        with open(table, "a", encoding="utf-8") as rows:
            rows.write(f"{name}\t{wall:.1f}\t{processor:.1f}\t{status}\n")
    return status


def print_table(path: Path) -> None:
    """Print the step, wall and processor seconds of each row, and their sums."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    print(f"{'step':<20}{'wall s':>8}{'CPU s':>8}")
    for name, wall, processor, status in rows:
        print(f"{name:<20}{float(wall):8.0f}{float(processor):8.0f}{'' if status == '0' else '  failed'}")
    print(f"{'sum':<20}{sum(float(row[1]) for row in rows):8.0f}{sum(float(row[2]) for row in rows):8.0f}")


def main() -> int:
    """Exit status of the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", nargs="?")
    parser.add_argument("--log", action="store_true", help="write the output into build/logs/NAME.log")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print the steps that FILE lists")
    own, separator, command = sys.argv[1:], "", list[str]()
    if "--" in own:
        at = own.index("--")
        own, separator, command = own[:at], "--", own[at + 1 :]
    arguments = parser.parse_args(own)
    if arguments.table:
        print_table(arguments.table)
        return 0
    if not arguments.name or not separator or not command:
        parser.error("a name and -- COMMAND, or --table FILE")
    return run(arguments.name, command, arguments.log)


if __name__ == "__main__":
    sys.exit(main())
