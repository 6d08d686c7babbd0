# SPDX-License-Identifier: Apache-2.0
"""Writes what `jax.vmap` gives for the programs of vmapped_programs.py into an .npz file.

python -m tests.conformance.jax.vmapped_worker OUT.npz
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import numpy as np

from tests.conformance.jax.vmapped_programs import MAPPED


def main(out: str) -> None:
    jax.config.update("jax_enable_x64", True)
    found: dict[str, Any] = {}
    for mapped in MAPPED:
        results = jax.jit(mapped.of(jax.vmap, jax.numpy, jax.lax))(*mapped.inputs)
        for i, leaf in enumerate(jax.tree.leaves(results)):
            found[f"{mapped.name}/{i}"] = np.asarray(leaf)
    np.savez(out, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
