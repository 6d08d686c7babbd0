# SPDX-License-Identifier: Apache-2.0
"""What it costs to record where shardings come from: propagation with and without, in turns.

    python -m benchmarks.recording
    python -m benchmarks.recording --without build/no_provenance/_core.so     # an extension built before

The extension without recording is built with -DSHARDWISE_PROVENANCE=OFF. Each of the two runs in a process of its own.
Each round runs all programs in both, so that a slow second of the machine meets all of them; the fastest run counts.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.report import table, write

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "no_provenance"
LIMIT = 1.10
LEVEL = "propagate_user_priority"
LAYERS, BLOCKS = 950, 120  # 15,000 ops and more


def load(path: str) -> Any:
    """The extension alone, without the package around it."""
    spec = importlib.util.spec_from_file_location("_core", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def serve(path: str) -> None:
    """A line with the text of each program, then a line for each run of one: the seconds of that run."""
    core = load(path)
    modules = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "text" in request:
            module = modules[request["program"]] = core.ir.parse(request["text"])
            print(json.dumps(module.op_count), flush=True)
        else:
            measured = core.passes.propagate_program(modules[request["program"]], names=[LEVEL])
            print(json.dumps(measured.seconds[LEVEL]), flush=True)


class Worker:
    """One extension in a process of its own."""

    def __init__(self, path: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.recording", "--serve", path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def ask(self, request: dict[str, Any]) -> Any:
        """The number of ops of a text, or the seconds of one propagation of it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def build_without() -> str:
    options = [
        "-DCMAKE_BUILD_TYPE=Release",
        "-DSHARDWISE_TESTS=OFF",
        "-DSHARDWISE_PROVENANCE=OFF",
        f"-DPython_EXECUTABLE={sys.executable}",
    ]
    tools = Path(sys.executable).parent
    cmake = str(tools / "cmake")
    ninja = f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}"
    subprocess.run([cmake, "-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja", ninja, *options], check=True, stdout=2)
    subprocess.run([cmake, "--build", str(BUILD), "--target", "_core"], check=True, stdout=2)
    (path,) = BUILD.rglob("_core*.so")
    return str(path)


def programs() -> dict[str, str]:
    from benchmarks.deep_mlp import mlp_text
    from benchmarks.propagate import ENDS, traced

    texts = {"MLP": mlp_text(LAYERS)}
    return texts | {f"Transformer, {end}": traced("Transformer", BLOCKS, end, 8).text() for end in ENDS}


def measure(workers: dict[str, Worker], texts: dict[str, str], rounds: int) -> dict[str, dict[str, Any]]:
    """By program: its ops, and the fastest run in seconds by worker."""
    results: dict[str, dict[str, Any]] = {}
    for program, text in texts.items():
        ops = [worker.ask({"program": program, "text": text}) for worker in workers.values()]
        results[program] = {"ops": ops[0], **dict.fromkeys(workers, float("inf"))}
    for _ in range(rounds):
        for program, fastest in results.items():
            for name, worker in workers.items():
                fastest[name] = min(fastest[name], worker.ask({"program": program}))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--without", metavar="FILE", help="an extension built without recording")
    parser.add_argument("--serve", metavar="FILE", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        return serve(args.serve)
    spec = importlib.util.find_spec("shardwise._core")
    assert spec is not None
    assert spec.origin is not None
    workers = {"with": Worker(spec.origin), "without": Worker(args.without or build_without())}
    results = measure(workers, programs(), args.rounds)
    for worker in workers.values():
        worker.close()
    rows = [
        [name, r["ops"], r["with"] * 1e3, r["without"] * 1e3, f"{r['with'] / r['without'] - 1:+.1%}"]
        for name, r in results.items()
    ]
    table("propagate: recording who put which axis where", ["program", "ops", "with ms", "without ms", "cost"], rows)
    write("recording", results)
    slow = [name for name, r in results.items() if r["with"] > LIMIT * r["without"]]
    for name in slow:
        print(f"NOT MET: recording costs more than {LIMIT - 1:.0%} on {name}")
    raise SystemExit(1 if slow else 0)


if __name__ == "__main__":
    main()
