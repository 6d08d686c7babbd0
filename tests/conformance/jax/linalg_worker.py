# SPDX-License-Identifier: Apache-2.0
"""Writes the texts of linalg_programs.py, their arguments and JAX's results, and gradients, into an .npz file.

python -m tests.conformance.jax.linalg_worker OUT.npz
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.conformance.jax.linalg_losses import losses
from tests.conformance.jax.linalg_programs import ON_TPU, PROGRAMS


def main(path: str) -> None:
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_disable_most_optimizations", True)  # small matrices: it is all compile time
    arrays: dict[str, Any] = {}
    for name, (function, arguments) in PROGRAMS.items():
        traced = jax.jit(function).trace(*arguments)
        lowered = traced.lower()
        arrays[f"{name}/text"] = np.asarray(lowered.as_text())
        if name in ON_TPU:
            arrays[f"{name} on TPU/text"] = np.asarray(traced.lower(lowering_platforms=("tpu",)).as_text())
        results = jax.tree.leaves(lowered.compile()(*arguments))
        for key in (name, f"{name} on TPU") if name in ON_TPU else (name,):
            arrays |= {f"{key}/argument/{i}": x for i, x in enumerate(arguments)}
            arrays |= {f"{key}/result/{i}": np.asarray(x) for i, x in enumerate(results)}
    for name, (loss, xs) in losses(jnp).items():
        found = jax.grad(loss, tuple(range(len(xs))))(*xs)
        arrays |= {f"gradient/{name}/{i}": np.asarray(x) for i, x in enumerate(found)}
    np.savez(path, **arrays)


if __name__ == "__main__":
    main(sys.argv[1])
