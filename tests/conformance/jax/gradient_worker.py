# SPDX-License-Identifier: Apache-2.0
"""Writes JAX's values and gradients at the points of special_points.py into an .npz file, in its own process.

python -m tests.conformance.jax.gradient_worker OUT.npz
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.conformance.jax.special_points import WIDE, Points, all_points, arrays_of, weighted_sum

Program = list[tuple[Points, list[str]]]  # with the runs of one dtype


def gradients(point: Points, arrays: tuple[Any, ...]) -> tuple[list[Any], tuple[Any, ...]]:
    """The function's results, and the gradients by each array."""

    def loss(*xs: Any) -> Any:
        result = point.function(jnp, *xs)
        return weighted_sum(result, str(xs[0].dtype)), result

    found, result = jax.grad(loss, tuple(range(len(arrays))), has_aux=True)(*arrays)
    return list(result) if isinstance(result, (list, tuple)) else [result], found


def gradients_of_runs(point: Points, stacked: tuple[Any, ...]) -> tuple[list[Any], tuple[Any, ...]]:
    """The results and gradients of several runs; those of one dtype are one batch, which compiles as fast as one."""
    if len(stacked[0]) > 1:
        return jax.vmap(lambda *xs: gradients(point, xs))(*stacked)  # type: ignore[no-any-return]
    return jax.tree.map(lambda x: x[None], gradients(point, tuple(x[0] for x in stacked)))  # type: ignore[no-any-return]


def together(program: Program, inputs: list[tuple[np.ndarray, ...]]) -> list[Any]:
    """One unoptimised program of many: each on its own would compile for minutes."""
    traced = jax.jit(lambda inputs: [gradients_of_runs(point, xs) for (point, _), xs in zip(program, inputs)])
    options: dict[str, bool | int | float | str] = {
        "xla_backend_optimization_level": 0,
        "xla_llvm_disable_expensive_passes": True,
        "xla_disable_hlo_passes": "algsimp",  # makes 0 of the NaN in gradients of max
    }
    lowered = traced.lower(inputs)
    try:
        compiled = lowered.compile(options | {"xla_cpu_use_fusion_emitters": False})  # they compile three times as long
    except jax.errors.JaxRuntimeError as error:
        if "No such compile option" not in str(error):  # jaxlib 0.12 has no other emitters
            raise
        compiled = lowered.compile(options)
    return list(compiled(inputs))


def stacked_runs(point: Points, runs: list[str]) -> tuple[np.ndarray, ...]:
    return tuple(np.stack(xs) for xs in zip(*(arrays_of(point, run) or () for run in runs)))


def main(path: str) -> None:
    jax.config.update("jax_enable_x64", True)
    program: Program = []
    for point in all_points():
        if point.in_jax:
            wide = [] if arrays_of(point, WIDE) is None else [WIDE]
            program += [(point, ["float32"]), (point, ["float64", *wide])]
    inputs = [stacked_runs(point, runs) for point, runs in program]
    written = {}
    for (point, runs), (result, found) in zip(program, together(program, inputs), strict=True):
        for kind, arrays in (("value", result), ("gradient", found)):
            for i, of_runs in enumerate(arrays):
                written.update({f"{point.name}/{run}/{kind}/{i}": x for run, x in zip(runs, np.asarray(of_runs))})
    np.savez(path, **written)


if __name__ == "__main__":
    main(sys.argv[1])
