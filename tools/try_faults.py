# SPDX-License-Identifier: Apache-2.0
"""Builds the faults of tests/faults.txt one after another, and runs for each the step of CI that must find it.

    python tools/try_faults.py                      # all of them; the first run also builds the copy of the tree
    python tools/try_faults.py unmasked_padding …   # these, in the order of the file
    python tools/try_faults.py --list

CI tries a part of its programs and rows in each commit, another one in the next. A fault counts as found if its step
fails with the seed of this commit (SHARDWISE_SEED), or with one of the next two. The step must first pass without
the fault. All happens in a copy of the tree, build/faults/tree, which has what is not committed yet, too; what the
steps print is in build/faults/NAME.txt. The exit status is 1 if a fault was not found.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.paths import ROOT
from tests.support.run_seed import run_seed

FAULTS = ROOT / "tests" / "faults.txt"
WORK = ROOT / "build" / "faults"
TREE = WORK / "tree"
SEEDS = 3
TIMED_OUT = 124


@dataclass(frozen=True)
class Step:
    """A target of the Makefile that tests.

    Attributes:
        build: the target that compiles what it runs.
        variable: the variable of the Makefile that narrows it, if there is one.
        has_seed: whether it tries other things with another seed.
    """

    build: str
    variable: str = ""
    has_seed: bool = False


STEPS = {
    "test-cpp": Step("build-tests", "FOLDER"),
    "test-asan-cpp": Step("build-asan", "FOLDER"),
    "test-tsan": Step("build-tsan"),
    "test-py": Step("build", "SELECT", has_seed=True),
    "test-random": Step("build", "SELECT", has_seed=True),
    "test-ranks": Step("build", "SELECT", has_seed=True),
    "test-includes": Step("build"),
}
# The packages are those of this environment. A warning must not hide whether a test finds the fault.
OUTER = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "SHARDWISE_STEPS", "SHARDWISE_WHOLE")  # of `make test-all`
OPTIONS = ("-o", ".venv/.demo-packages", "-o", ".venv/.packages", "WERROR=OFF")


@dataclass(frozen=True)
class Fault:
    """A paragraph of tests/faults.txt: in ``file``, ``new`` takes the place of ``old``, which it has once."""

    name: str
    shows: str
    file: str
    step: str
    select: str
    old: str
    new: str

    @property
    def build(self) -> list[str]:
        """The arguments of ``make`` that compile what the step runs."""
        target = STEPS[self.step].build
        return [target] if target == "build" else ["-o", "build", target, *self._selected()]

    @property
    def run(self) -> list[str]:
        """The arguments of ``make`` that run the step, narrowed to what the fault selects."""
        return ["-o", "build", self.step, *self._selected()]

    def _selected(self) -> list[str]:
        return [f"{STEPS[self.step].variable}={self.select}"] if self.select else []

    def apply(self, tree: Path) -> None:
        """Write the fault into the files of ``tree``."""
        path = tree / self.file
        text = path.read_text()
        if text.count(self.old) != 1:
            raise SystemExit(f"{self.name}: {self.file} must have the replaced text once, got {text.count(self.old)}")
        path.write_text(text.replace(self.old, self.new))


def read_faults(path: Path = FAULTS) -> list[Fault]:
    """The paragraphs of a file of faults."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return [_fault_of(text) for text in re.split(r"\n{2,}", "\n".join(lines).strip("\n"))]


def _fault_of(paragraph: str) -> Fault:
    fields: dict[str, str] = {}
    old, new = [], []
    for line in paragraph.splitlines():
        if line.startswith(("- ", "+ ")):
            (old if line[0] == "-" else new).append(line[2:])
            continue
        key, colon, value = line.partition(": ")
        if not colon or key not in ("fault", "shows", "file", "step") or key in fields:
            raise SystemExit(f"faults: expected 'fault', 'shows', 'file', 'step', '- ' or '+ ', got {line!r}")
        fields[key] = value
    step, _, select = fields["step"].partition(" ")
    return Fault(fields["fault"], fields["shows"], fields["file"], step, select, "\n".join(old), "\n".join(new))


@dataclass(frozen=True)
class Outcome:
    """What became of a fault: the seed with which its step failed, or why it counts as not found."""

    fault: Fault
    seed: int | None
    reason: str
    seconds: float

    @property
    def row(self) -> tuple[str, str, str, str]:
        """Of the table at the end."""
        seed = "-" if self.seed is None else str(self.seed)
        return self.fault.name, f"{self.fault.step} {self.fault.select}", seed, f"{self.reason}, {self.seconds:.0f} s"


class Copy:
    """A clone of the repository with an environment and builds of its own, at the state of the working tree."""

    def __init__(self, minutes: float) -> None:
        self.minutes = minutes
        self.commit = _snapshot()
        if not TREE.exists():
            WORK.mkdir(parents=True, exist_ok=True)
            _run(["git", "clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(TREE)])
        self.clean()
        if not (TREE / ".venv").exists():
            _make_environment(TREE / ".venv")

    def clean(self) -> None:
        """Undo a fault, and what a step has left: examples to repeat, failing seeds and texts."""
        _run(["git", "-C", str(TREE), "checkout", "--quiet", "--force", "--detach", self.commit])
        _run(["git", "-C", str(TREE), "clean", "--quiet", "--force", "-d"])
        _run(["rm", "-rf", str(TREE / ".hypothesis")])

    def make(self, arguments: Sequence[str], output: Path, seed: int) -> int:
        """Run ``make`` in the copy; its exit status, or TIMED_OUT."""
        command = ["make", *OPTIONS, *arguments]
        environment = {key: value for key, value in os.environ.items() if key not in OUTER}
        environment |= {"CI": "true", "SHARDWISE_SEED": str(seed), "VIRTUAL_ENV": str(TREE / ".venv")}
        with output.open("a") as file:
            print(f"\n$ SHARDWISE_SEED={seed} {shlex.join(command)}", file=file, flush=True)
            process = subprocess.Popen(
                command, cwd=TREE, env=environment, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                return process.wait(60 * self.minutes)
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                if isinstance(error, subprocess.TimeoutExpired):
                    return TIMED_OUT
                raise


def _run(command: Sequence[str], **options: str) -> str:
    environment = {**os.environ, **options}
    return subprocess.run(
        command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


def _snapshot() -> str:
    """A commit with all files of the working tree that git does not ignore; no branch, index or file changes."""
    index = WORK / "index"
    WORK.mkdir(parents=True, exist_ok=True)
    own = {"GIT_INDEX_FILE": str(index)}
    _run(["git", "read-tree", "HEAD"], **own)
    _run(["git", "add", "--all"], **own)
    tree = _run(["git", "write-tree"], **own)
    index.unlink()
    identity = {f"GIT_{who}_{what}": "try_faults" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return _run(["git", "commit-tree", tree, "-p", "HEAD", "-m", "the working tree"], **identity)


def _make_environment(place: Path) -> None:
    """A virtual environment that has the packages of this one, but installs the copy."""
    own = Path(sys.prefix)
    _run([sys.executable, "-m", "venv", "--without-pip", str(place)])
    packages = sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)})
    # The .pth files there, that of the editable install among them, are read only where they are a site directory.
    Path(packages, "packages.pth").write_text(sysconfig.get_path("purelib") + "\n")
    # Of a package that brings libraries: mpi4py searches the prefix for libmpi, which searches its own for the rest.
    for part in (*own.glob("lib/*"), own / "etc", own / "share"):
        if part.exists() and not (place / part.relative_to(own)).exists():
            (place / part.relative_to(own)).symlink_to(part)
    for script in (own / "bin").iterdir():
        target = place / "bin" / script.name
        if target.exists() or not script.is_file():
            continue
        start = script.read_bytes()[:2]
        if start == b"#!":  # so that it runs with the packages of the copy
            target.write_text(script.read_text().replace(str(own), str(place)))
            target.chmod(0o755)
        else:
            target.symlink_to(script.resolve())


def check(copy: Copy, fault: Fault, seed: int, output: Path) -> str:
    """Why the step cannot tell whether the fault is there, or "": it must pass without the fault."""
    if copy.make(fault.build, output, seed):
        return "does not build without the fault"
    return "fails without the fault" if copy.make(fault.run, output, seed) else ""


def attempt(copy: Copy, fault: Fault, first_seed: int, output: Path) -> Outcome:
    """Build the fault once, and run its step until it fails, with three seeds at most."""
    began = time.monotonic()
    fault.apply(TREE)

    def outcome(seed: int | None, reason: str) -> Outcome:
        return Outcome(fault, seed, reason, time.monotonic() - began)

    try:
        if copy.make(fault.build, output, first_seed):
            return outcome(None, "does not build")
        for seed in range(first_seed, first_seed + (SEEDS if STEPS[fault.step].has_seed else 1)):
            status = copy.make(fault.run, output, seed)
            if status:
                return outcome(seed, "found, by the time limit" if status == TIMED_OUT else "found")
        return outcome(None, "NOT FOUND")
    finally:
        copy.clean()


def show(rows: Sequence[Sequence[str]]) -> None:
    """A table with columns as wide as their longest cell."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def main() -> int:
    """Exit status 1 if a fault was not found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="faults; all if none is given")
    parser.add_argument("--list", action="store_true", help="show the faults, and run nothing")
    parser.add_argument("--unchecked", action="store_true", help="do not first run each step without its fault")
    parser.add_argument("--seed", type=int, default=run_seed(), help="the first of up to three seeds")
    parser.add_argument("--minutes", type=float, default=30, help="limit of each command; a fault may be a hang")
    options = parser.parse_args()
    faults = read_faults()
    unknown = set(options.names) - {fault.name for fault in faults}
    if unknown:
        parser.error(f"no faults of these names in tests/faults.txt: {', '.join(sorted(unknown))}")
    faults = [fault for fault in faults if not options.names or fault.name in options.names]
    if options.list:
        show([(fault.name, f"{fault.step} {fault.select}".strip(), fault.shows) for fault in faults])
        return 0
    copy = Copy(options.minutes)
    if copy.make(["build"], WORK / "build.txt", options.seed):
        raise SystemExit(f"the copy does not build, see {WORK / 'build.txt'}")
    known: dict[tuple[str, str], str] = {}  # by step and selection: why it cannot tell
    outcomes = []
    for fault in faults:
        output = WORK / f"{fault.name}.txt"
        output.unlink(missing_ok=True)
        selected = fault.step, fault.select
        if selected not in known:
            known[selected] = "" if options.unchecked else check(copy, fault, options.seed, output)
        reason = known[selected]
        outcomes.append(Outcome(fault, None, reason, 0) if reason else attempt(copy, fault, options.seed, output))
        print(*outcomes[-1].row, sep="  ", flush=True)
    missed = [outcome for outcome in outcomes if outcome.seed is None]
    print()
    show([("fault", "step", "seed", "outcome"), *(outcome.row for outcome in outcomes)])
    print(f"{len(outcomes) - len(missed)} of {len(outcomes)} faults found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
