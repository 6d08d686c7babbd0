# SPDX-License-Identifier: Apache-2.0
"""``import shardwise`` is quick: what only a report or a picture needs is imported when one is asked for."""

from __future__ import annotations

import json
import subprocess
import sys

PROGRAM = """
import json, sys, time
import shardwise
print(json.dumps([time.process_time(), sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def run() -> tuple[float, set[str]]:
    # -I: no PYTHONPATH, no user site. Processor time, because a busy machine is not a slow import.
    done = subprocess.run([sys.executable, "-I", "-c", PROGRAM], capture_output=True, text=True, check=True)
    seconds, modules = json.loads(done.stdout)
    return seconds, set(modules)


def test_import_takes_less_than_three_tenths_of_a_second() -> None:
    assert min(run()[0] for _ in range(5)) < 0.3


def test_import_loads_no_heavy_module() -> None:
    _, modules = run()
    assert not modules & {"jax", "matplotlib", "pytest", "rich", "scipy", "sklearn"}
