# SPDX-License-Identifier: Apache-2.0
"""Runs StableHLO texts with XLA:CPU: pickled (text, arrays) on stdin, (results | message) on stdout.

XLA may crash the process; the client then starts another one.
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
from jax.extend import backend

LAPACK: list[Any] = []


def register_lapack() -> None:
    """JAX registers the calls when it first lowers one."""
    if not LAPACK:
        LAPACK.append(jax.numpy.linalg.cholesky(np.eye(2, dtype=np.float32)))


def computed(text: str, arrays: list[Any]) -> list[Any]:
    options = backend.get_compile_options(num_replicas=1, num_partitions=1, device_assignment=np.array([[0]]))
    debug = options.executable_build_options.debug_options
    debug.xla_backend_optimization_level = 0  # most of the time is compilation
    debug.xla_llvm_disable_expensive_passes = True
    device = jax.devices()[0]
    if "lapack_" in text:
        register_lapack()
    executable = backend.get_backend().compile_and_load(text, [device], options)
    results = executable.execute_sharded([jax.device_put(a, device) for a in arrays])
    return [np.asarray(result[0]) for result in results.disassemble_into_single_device_arrays()]


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    stdin, stdout = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # XLA prints to stdout
    while True:
        try:
            text, arrays = pickle.load(stdin)
        except EOFError:
            return
        try:
            answer: Any = computed(text, arrays)
        except Exception as error:
            answer = str(error)
        pickle.dump(answer, stdout)
        stdout.flush()


if __name__ == "__main__":
    main()
