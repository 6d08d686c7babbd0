# SPDX-License-Identifier: Apache-2.0
"""Writes JAX's results and gradients of the calls in cases.py into an .npz file, in its own process.

python -m tests.lax.jax_worker OUT.npz
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.lax.windowed_reductions import _select_and_scatter_add

from tests.lax.cases import ALL, Case, weights


class _Lax:
    """`jax.lax` with a private function of it."""

    select_and_scatter_add = staticmethod(_select_and_scatter_add)

    def __getattr__(self, name: str) -> Any:
        return getattr(jax.lax, name)


LAX = _Lax()
NP = SimpleNamespace(
    add=jax.lax.add,
    multiply=jax.lax.mul,
    maximum=jax.lax.max,
    minimum=jax.lax.min,
    greater_equal=jax.lax.ge_p,
    less_equal=jax.lax.le_p,
    where=jnp.where,
    float32=jnp.float32,
)


def of_case(case: Case, arrays: list[Any]) -> tuple[list[Any], tuple[Any, ...]]:
    """The results, and the gradients by each array."""

    def loss(*xs: Any) -> Any:
        result = case.function(LAX, NP, *xs)
        rows = result if isinstance(result, list) else [result]
        return sum((row * weights(row.shape, row.dtype)).sum().astype("float32") for row in rows), rows

    if not case.differentiated:
        return loss(*arrays)[1], ()
    found, rows = jax.grad(loss, tuple(range(len(arrays))), has_aux=True)(*arrays)
    return rows, found


def main(path: str) -> None:
    jax.config.update("jax_enable_x64", True)
    cases = [(theme, case) for theme, rows in ALL.items() for case in rows]
    options: dict[str, bool | int | float | str] = {
        "xla_backend_optimization_level": 0,
        "xla_llvm_disable_expensive_passes": True,
        "xla_cpu_use_fusion_emitters": False,
    }
    run = jax.jit(lambda inputs: [of_case(case, arrays) for (_, case), arrays in zip(cases, inputs)])
    inputs = [case.arrays() for _, case in cases]
    found: dict[str, np.ndarray] = {}
    for (theme, case), (rows, gradients) in zip(cases, run.lower(inputs).compile(options)(inputs)):
        for kind, arrays in (("result", rows), ("gradient", gradients)):
            for i, array in enumerate(arrays):
                key = f"{theme}/{case.name}/{kind}/{i}"
                found[key] = np.asarray(array).astype(np.float64)
                found[f"{key}/dtype"] = np.array(array.dtype.name)
    with open(path, "wb") as file:
        np.savez(file, **found)  # type: ignore[arg-type]


if __name__ == "__main__":
    main(sys.argv[1])
