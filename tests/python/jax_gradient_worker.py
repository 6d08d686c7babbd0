# SPDX-License-Identifier: Apache-2.0
"""Writes JAX's values and gradients at the points of special_points.py into an .npz file, in its own process.

python jax_gradient_worker.py OUT.npz
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from special_points import RUNS, Points, all_points, arrays_of, rows, weighted_sum

# Inside a program XLA replaces the NaN of these gradients by 0; outside, each op is on its own.
EAGER = ("max", "min", "amax", "amin", "ptp", "linalg.norm", "maximum-reduce")

Program = list[tuple[Points, str]]  # with the kind of a run


def gradients(point: Points, arrays: tuple[Any, ...]) -> tuple[list[Any], tuple[Any, ...]]:
    """The function's results, and the gradients by each array."""

    def loss(*xs: Any) -> Any:
        result = point.function(jnp, *xs)
        return weighted_sum(result, str(xs[0].dtype)), result

    found, result = jax.grad(loss, tuple(range(len(arrays))), has_aux=True)(*arrays)
    return list(result) if isinstance(result, (list, tuple)) else [result], found


def together(program: Program, inputs: list[tuple[np.ndarray, ...]]) -> list[Any]:
    """One unoptimised program of many: each on its own would compile for minutes."""
    traced = jax.jit(lambda inputs: [gradients(point, xs) for (point, _), xs in zip(program, inputs)]).lower(inputs)
    options = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    return list(traced.compile(options)(inputs))


def main(path: str) -> None:
    jax.config.update("jax_enable_x64", True)
    program = [(p, run) for p in all_points() for run in RUNS if p.in_jax and arrays_of(p, run) is not None]
    eager = [(p, run) for p, run in program if p.arrays is rows and p.name.startswith(EAGER)]
    program = [row for row in program if row not in eager]
    results = together(program, [arrays_of(point, run) or () for point, run in program])
    results += [gradients(p, tuple(map(jnp.asarray, p.arrays(run)))) for p, run in eager]
    written = {}
    for (point, run), (result, found) in zip(program + eager, results, strict=True):
        for kind, arrays in (("value", result), ("gradient", found)):
            written.update({f"{point.name}/{run}/{kind}/{i}": np.asarray(x) for i, x in enumerate(arrays)})
    np.savez(path, **written)


if __name__ == "__main__":
    main(sys.argv[1])
