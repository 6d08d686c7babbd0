# SPDX-License-Identifier: Apache-2.0
"""Writes what Optax computes for the cases of cases.py into an .npz file, in its own process.

python -m tests.optim.optax_worker OUT.npz
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import ml_dtypes
import numpy as np
import optax

from tests.optim.cases import (
    CASES,
    COMPLEX,
    COMPLEX_STEPS,
    COUNTS,
    GRADIENTS,
    NARROW,
    ONE_STEP,
    SCHEDULES,
    STEPWISE,
    grads_of,
    loss_behind,
    params_of,
    trained,
)

OPTIONS = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def compiled(function: Any, *args: Any) -> Any:
    """One unoptimised program of all cases: it compiles in a third of the time."""
    return jax.jit(function).lower(*args).compile(OPTIONS)(*args)


def in_float64() -> dict[str, Any]:
    def run(params: Any, grads: Any) -> Any:
        return {name: trained(optax, make(optax), params, grads, jax.lax.scan)[0] for name, make in CASES.items()}

    def run_complex(params: Any, grads: Any) -> Any:
        return {name: trained(optax, CASES[name](optax), params, grads, jax.lax.scan)[0] for name in COMPLEX}

    def gradients(factor: Any, params: Any) -> Any:
        losses = {name: loss_behind(optax, CASES[name], jax.lax.scan, sum) for name in GRADIENTS}
        return {name: jax.grad(loss, argnums=(0, 1))(factor, params) for name, loss in losses.items()}

    found = {f"trained/{k}": v for k, v in compiled(run, params_of(np.float64), grads_of(np.float64)).items()}
    complex_trees = params_of(np.complex128), grads_of(np.complex128)
    found |= {f"complex/{k}": v for k, v in compiled(run_complex, *complex_trees).items()}
    found |= {f"gradient/{k}": v for k, v in compiled(gradients, np.float64(0.7), params_of(np.float64)).items()}
    return found | {f"schedule/{name}": jax.vmap(make(optax))(COUNTS) for name, make in SCHEDULES.items()}


def step_by_step(dtype: Any, names: Any) -> dict[str, Any]:
    def run(params: Any, grads: Any) -> Any:
        return {name: trained(optax, CASES[name](optax), params, grads, jax.lax.scan)[1] for name in names}

    results = compiled(run, params_of(dtype), grads_of(dtype, ONE_STEP))
    return {f"{np.dtype(dtype).name}/{name}": result for name, result in results.items()}


def main(path: str) -> None:
    jax.config.update("jax_enable_x64", True)
    found = in_float64()
    jax.config.update("jax_enable_x64", False)
    found |= step_by_step(np.float32, STEPWISE) | step_by_step(ml_dtypes.bfloat16, NARROW)
    found |= step_by_step(np.complex64, COMPLEX_STEPS)
    arrays = {}
    for name, tree in found.items():
        for i, leaf in enumerate(jax.tree.leaves(tree)):
            # NumPy's files know no bfloat16; every such number is a float32.
            arrays[f"{name}/{i}"] = np.asarray(leaf, np.float32 if leaf.dtype.name == "bfloat16" else None)
    np.savez(path, **arrays)


if __name__ == "__main__":
    main(sys.argv[1])
