# SPDX-License-Identifier: Apache-2.0
"""The tools that try random programs and rotating shares of tables, two at a time, with the seed of the commit.

    python -m tests.conformance.run_random            # a third of each
    python -m tests.conformance.run_random --whole    # all of each, as `make test-all` does

A tool that fails is one line of tests/seeds.txt from then on: the command that repeats it. These lines run first, in
each run. The output of each tool is in build/conformance/random/.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.support.paths import ROOT
from tests.support.run_seed import THIRD, is_whole, run_seed

SEEDS = ROOT / "tests" / "seeds.txt"
OUTPUTS = ROOT / "build" / "conformance" / "random"
SHOWN = 6000  # characters of the output of a tool that fails
ASSIGNMENT = re.compile(r"\w+=")


@dataclass(frozen=True)
class Tool:
    """A command with places for {seed}, {count}, {every} and {profile}. A third of a run has a third of ``count``."""

    command: str
    count: int = 0  # of a whole run

    def line(self, seed: int, whole: bool) -> str:
        """The command of a run."""
        count, every = (self.count, 1) if whole else (-(-self.count // THIRD), THIRD)
        profile = "explore" if whole else "explore_third"
        return self.command.format(seed=seed, count=count, every=every, profile=profile)


CONFORMANCE = "python -m tests.conformance"
SHARE = "--every {every} --first {seed}"
# Those that take longest come first, so that none is left alone at the end.
TOOLS = (
    Tool(f"{CONFORMANCE}.fuzz --texts {{count}} --seed {{seed}}a --keep", 12_000),
    Tool(f"{CONFORMANCE}.fuzz --texts {{count}} --seed {{seed}}b --keep", 12_000),
    Tool(f"{CONFORMANCE}.jax.corpus {SHARE}"),
    Tool(f"{CONFORMANCE}.jax.random_regions --programs {{count}} --seed {{seed}}", 200),
    Tool(
        f"JAX_PLATFORMS=cpu {CONFORMANCE}.jax.handover --programs {{count}} --cells {{count}} --seed {{seed}} "
        "--no-models",
        60,
    ),
    Tool(f"{CONFORMANCE}.shardy.oracle --programs {{count}} --seed {{seed}} --workers 1", 3000),
    Tool(f"{CONFORMANCE}.stablehlo.ops --instances {{count}} --start {{seed}}0", 3000),
    Tool(f"{CONFORMANCE}.op_matrix {SHARE}"),
    Tool(f"{CONFORMANCE}.shardy.origins --programs {{count}} --suggestions {{count}} --seed {{seed}}", 500),
    Tool(f"{CONFORMANCE}.pinned_choices {SHARE}"),
    Tool(
        "SHARDWISE_HYPOTHESIS={profile} python -m pytest -q -p no:cacheprovider --hypothesis-seed={seed} "
        "tests/partition/test_random_programs.py"
    ),
    Tool(f"python -m benchmarks.communication --check {SHARE}"),
    Tool(f"{CONFORMANCE}.random_programs --programs {{count}} --seed {{seed}} --processes 1", 500),
    Tool(f"{CONFORMANCE}.random_programs --programs {{count}} --seed {{seed}} --processes 1 --several-meshes", 500),
    Tool(f"{CONFORMANCE}.spellings --programs {{count}} --seed {{seed}}", 3000),
    Tool(f"{CONFORMANCE}.known_places --programs {{count}} --seed {{seed}}", 50),
    Tool(f"{CONFORMANCE}.needed_bytes --programs {{count}} --seed {{seed}}", 50),
    Tool(f"{CONFORMANCE}.reshards --pairs {{count}} --seed {{seed}}", 2000),
    Tool(f"{CONFORMANCE}.reshards --meshes {{count}} --seed {{seed}}", 200),
)


def kept(path: Path) -> list[str]:
    """The commands of a file of seeds."""
    lines = [line.strip() for line in path.read_text().splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    line: str
    status: int
    output: Path
    wall: float
    processor: float

    def report(self) -> str:
        result = "ok" if self.status == 0 else f"FAILED with {self.status}"
        head = f"{result:8} {self.wall:6.1f} s wall {self.processor:6.1f} s processor  {self.line}"
        if self.status == 0:
            return head
        return f"{head}\n{self.output.read_text(errors='replace')[-SHOWN:]}\nto repeat it: {self.line}"


def execute(line: str, output: Path) -> Ended:
    """Run a command: words of a shell, of which the first can set variables."""
    words = shlex.split(line)
    count = next(i for i, word in enumerate(words) if not ASSIGNMENT.match(word))
    variables = dict(word.split("=", 1) for word in words[:count])
    command = [sys.executable if word == "python" else word for word in words[count:]]
    began = time.monotonic()
    with output.open("w") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **variables}, stdout=file, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)  # the processor time of this child and of its children
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - began
    return Ended(line, process.returncode, output, wall, usage.ru_utime + usage.ru_stime)


def run_all(lines: Sequence[str], jobs: int) -> list[Ended]:
    """Run the commands, so many at a time, and print what each gave as it ends."""
    OUTPUTS.mkdir(parents=True, exist_ok=True)

    def one(number: int, line: str) -> Ended:
        ended = execute(line, OUTPUTS / f"{number:02}.txt")
        print(ended.report(), flush=True)
        return ended

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, range(len(lines)), lines))


def keep(lines: Sequence[str], path: Path) -> None:
    """Append commands that the file does not have."""
    new = [line for line in lines if line not in kept(path)]
    with path.open("a") as file:
        file.writelines(f"{line}\n" for line in new)
    if new:
        print(f"{path} has {len(new)} more lines; commit it")


def main(arguments: Sequence[str] | None = None, tools: Sequence[Tool] = TOOLS, seeds: Path = SEEDS) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--whole", action="store_true", default=is_whole(), help="also with SHARDWISE_WHOLE=1")
    parser.add_argument("--only", default="", help="commands that contain this text; failures are not kept")
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("JOBS", "2")), help="tools at a time")
    parser.add_argument("--seed", type=int, default=run_seed(), help="instead of SHARDWISE_SEED or the commit's")
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}; to repeat this run: SHARDWISE_SEED={options.seed} make test-random", flush=True)
    lines = dict.fromkeys([*kept(seeds), *(tool.line(options.seed, options.whole) for tool in tools)])
    wanted = [line for line in lines if options.only in line]
    if not wanted:
        parser.error(f"no command contains {options.only}")
    ended = run_all(wanted, options.jobs)
    failed = [each.line for each in ended if each.status]
    seconds = sum(each.processor for each in ended)
    print(f"{len(ended)} commands, {len(failed)} failed, {seconds:.0f} s of processor time")
    if not options.only:
        keep(failed, seeds)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
