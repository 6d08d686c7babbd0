# SPDX-License-Identifier: Apache-2.0
"""Writes what JAX gives for the programs of nested_programs.py into an .npz file; no row for one that it refuses.

python -m tests.conformance.jax.nested.nested_worker OUT.npz
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import numpy as np

from tests.conformance.jax.nested.nested_programs import NESTED, Library, X, nested


def main(out: str) -> None:
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_disable_most_optimizations", True)  # each program runs once
    to = Library(jax.numpy, jax, jax.lax, lambda x: x)
    found: dict[str, Any] = {}
    for names in NESTED:
        try:
            found[" ".join(names)] = np.asarray(jax.jit(nested(to, names))(X))
        except (TypeError, ValueError, NotImplementedError):
            continue
    np.savez(out, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
