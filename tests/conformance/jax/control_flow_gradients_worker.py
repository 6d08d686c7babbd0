# SPDX-License-Identifier: Apache-2.0
"""Values and gradients of the losses of control_flow_losses.py in JAX, in its own process.

python -m tests.conformance.jax.control_flow_gradients_worker OUT.npz
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
from jax import lax

from tests.conformance.jax.control_flow_losses import LOSSES

NAMES = ("scan", "fori_loop", "cond", "switch", "map", "associative_scan")
FUNCTIONS = SimpleNamespace(
    **{name: getattr(lax, name) for name in NAMES}, grad=jax.grad, checkpoint=jax.checkpoint
)


def main(out: str) -> None:
    jax.config.update("jax_enable_x64", True)
    found: dict[str, Any] = {}
    for loss in LOSSES:
        argnums = tuple(range(len(loss.inputs)))
        both = jax.value_and_grad(lambda *arrays, f=loss.function: f(jax.numpy, FUNCTIONS, *arrays), argnums)
        for i, leaf in enumerate(jax.tree.leaves(both(*loss.inputs))):
            found[f"{loss.name}/{i}"] = np.asarray(leaf)
    np.savez(out, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
