# SPDX-License-Identifier: Apache-2.0
"""Writes what jax.random draws for the table of random_cases.py into an .npz file, in its own process.

python -m tests.conformance.jax.random_worker OUT.npz
"""

from __future__ import annotations

import sys

import jax
import numpy as np

from tests.conformance.jax.random_cases import SEEDS, all_draws


def main(path: str) -> None:
    jax.config.update("jax_enable_x64", True)
    drawn = {}
    for i, seed in enumerate(SEEDS):
        key = jax.random.PRNGKey(seed)
        drawn[f"key/{i}"] = np.asarray(key)
    draws = all_draws()
    # One unoptimised program of all draws: each on its own would compile for a minute.
    together = jax.jit(lambda key: [draw.draw(jax.random, key) for draw in draws]).lower(jax.random.PRNGKey(SEEDS[2]))
    options = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    for draw, result in zip(draws, together.compile(options)(jax.random.PRNGKey(SEEDS[2]))):
        # NumPy's files know no bfloat16; every such number is a float32.
        drawn[draw.name] = np.asarray(result, np.float32 if result.dtype.name == "bfloat16" else None)
    np.savez(path, **drawn)


if __name__ == "__main__":
    main(sys.argv[1])
