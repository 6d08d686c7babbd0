# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of control_flow_programs.py in JAX, and our traced texts of them in XLA, in its own process.

python -m tests.conformance.jax.control_flow_worker TEXTS.json OUT.npz

TEXTS.json maps a program's name to the arguments' order and the text of `jit(f).trace(...)`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.extend import backend

from tests.conformance.jax.control_flow_programs import PROGRAMS


def run_text(text: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The results of a StableHLO text on one device."""
    device = jax.devices()[0]
    options = backend.get_compile_options(num_replicas=1, num_partitions=1)
    options.executable_build_options.use_shardy_partitioner = True
    executable = backend.get_backend().compile_and_load(text, [device], options)
    results = executable.execute_sharded([jax.device_put(x, device) for x in arrays])
    return [np.asarray(shards[0]) for shards in results.disassemble_into_single_device_arrays()]


def main(texts: str, out: str) -> None:
    jax.config.update("jax_enable_x64", True)
    found: dict[str, Any] = {}
    recorded = json.loads(Path(texts).read_text())
    for program in PROGRAMS:
        expected = jax.jit(lambda *arrays, f=program.function: f(jax.numpy, jax.lax, *arrays))(*program.inputs)
        for i, leaf in enumerate(jax.tree.leaves(expected)):
            found[f"jax/{program.name}/{i}"] = np.asarray(leaf)
        for i, leaf in enumerate(run_text(recorded[program.name], [np.asarray(x) for x in program.inputs])):
            found[f"text/{program.name}/{i}"] = leaf
    np.savez(out, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
