# SPDX-License-Identifier: Apache-2.0
"""The processor time of ``import shardwise``, beyond that of the libraries that it needs, beside ``import jax``.

    python -m benchmarks.import_time

Each import runs in a process of its own, all of them once per round; the fastest of each counts. The bytecode is cached
by a first round that is not counted.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from benchmarks.report import table, write

LIMIT = 0.08
LIBRARIES = "numpy, optree, ml_dtypes"
PROGRAM = """
import time
import {before}
start = time.process_time()
import {module}
print(time.process_time() - start)
"""


def seconds(module: str, before: str) -> float:
    """The processor time of importing ``module`` after ``before``."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    # Worker threads of OpenBLAS that wait busily are no work of an import. 4: as short as OpenBLAS allows.
    environment["OPENBLAS_THREAD_TIMEOUT"] = "4"
    program = PROGRAM.format(before=before, module=module)
    done = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True)
    return float(done.stdout)


def main() -> None:
    """Print and write the rows; exit code 1 above the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    imports = {"shardwise": LIBRARIES, LIBRARIES: "time", "jax": LIBRARIES}
    measured: dict[str, list[float]] = {module: [] for module in imports}
    for number in range(rounds + 1):
        for module, before in imports.items():
            measured[module] += [seconds(module, before)] * (number > 0)
    rows = [
        {"import": module, "after": imports[module], "seconds": min(times), "rounds": rounds}
        for module, times in measured.items()
    ]
    table("processor time of imports", ["import", "after", "seconds"], [list(row.values())[:3] for row in rows])
    write("import_time", rows)
    if min(measured["shardwise"]) > LIMIT:
        sys.exit(f"import shardwise takes more than {LIMIT} s")


if __name__ == "__main__":
    main()
