# SPDX-License-Identifier: Apache-2.0
"""Write the texts of programs.py, their arguments and JAX's results to an .npz file.

    python -m tests.conformance.jax.corpus_worker OUT.npz

JAX gets whole arrays, because XLA:CPU pads the shards of a cumulative maximum with zeros. It computes on CPU, even for
texts that are lowered for TPU, which have no calls of LAPACK.
"""

from __future__ import annotations

import os
import sys
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax  # reads XLA_FLAGS
import numpy as np

from tests.conformance.jax.programs import PROGRAMS, lower

RANDOM = np.random.default_rng(0)


def drawn(spec: Any) -> np.ndarray:
    """Random values: indices are in range, and floats are small, because functions that saturate lose digits."""
    dtype = np.dtype(spec.dtype)
    if dtype.kind in "biu":
        return RANDOM.integers(0, 2 if dtype.kind == "b" else 4, spec.shape).astype(dtype)
    return RANDOM.uniform(-0.5, 0.5, spec.shape).astype(dtype)


def main(path: str) -> None:
    arrays: dict[str, Any] = {}
    for name, (function, specs) in PROGRAMS.items():
        arguments = jax.tree.map(drawn, specs)
        arrays[f"{name}/text"] = np.asarray(lower(name, False))
        for i, argument in enumerate(jax.tree.leaves(arguments)):
            arrays[f"{name}/argument/{i}"] = np.asarray(argument)
        for i, result in enumerate(jax.tree.leaves(jax.jit(function)(*arguments))):
            arrays[f"{name}/result/{i}"] = np.asarray(result)
    narrow = {key: array.astype(np.float32) for key, array in arrays.items() if array.dtype.isbuiltin == 2}
    np.savez(path, **(arrays | narrow))


if __name__ == "__main__":
    main(sys.argv[1])
