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
from special_points import RUNS, Points, all_points, arrays_of, weighted_sum

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
    options: dict[str, bool | int | float | str] = {
        "xla_backend_optimization_level": 0,
        "xla_llvm_disable_expensive_passes": True,
        "xla_disable_hlo_passes": "algsimp",  # makes 0 of the NaN in gradients of max
    }
    return list(traced.compile(options)(inputs))


def main(path: str) -> None:
    jax.config.update("jax_enable_x64", True)
    program = [(p, run) for p in all_points() for run in RUNS if p.in_jax and arrays_of(p, run) is not None]
    inputs = [arrays_of(point, run) or () for point, run in program]
    written = {}
    for (point, run), (result, found) in zip(program, together(program, inputs), strict=True):
        for kind, arrays in (("value", result), ("gradient", found)):
            written.update({f"{point.name}/{run}/{kind}/{i}": np.asarray(x) for i, x in enumerate(arrays)})
    np.savez(path, **written)


if __name__ == "__main__":
    main(sys.argv[1])
