# SPDX-License-Identifier: Apache-2.0
"""Writes what jax.random draws for the table of cases.py into an .npz file, in its own process.

python -m tests.conformance.jax.random.worker OUT.npz
"""

from __future__ import annotations

import sys

import jax
import numpy as np

from tests.conformance.jax.random.cases import SEEDS, all_draws
from tests.conformance.jax.random.distributions import Draw

KEY = np.array([SEEDS[2] >> 32, SEEDS[2] & 0xFFFFFFFF], np.uint32)


def drawn_together(draws: list[Draw]) -> dict[str, np.ndarray]:
    # One unoptimised program of all draws: each on its own would compile for a minute.
    together = jax.jit(lambda key: [draw.draw(jax.random, key) for draw in draws]).lower(KEY)
    options = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    results = zip(draws, together.compile(options)(KEY))
    # NumPy's files know no bfloat16; every such number is a float32.
    return {d.name: np.asarray(r, np.float32 if r.dtype.name == "bfloat16" else None) for d, r in results}


def main(path: str) -> None:
    jax.config.update("jax_enable_x64", True)
    drawn = {}
    for i, seed in enumerate(SEEDS):
        key = jax.random.PRNGKey(seed)
        drawn[f"key/{i}"] = np.asarray(key)
    for narrow in (False, True):
        jax.config.update("jax_enable_x64", not narrow)
        drawn.update(drawn_together([draw for draw in all_draws() if draw.narrow == narrow]))
    np.savez(path, **drawn)


if __name__ == "__main__":
    main(sys.argv[1])
