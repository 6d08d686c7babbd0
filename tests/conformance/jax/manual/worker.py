# SPDX-License-Identifier: Apache-2.0
"""Writes the texts of cases.py and what JAX computes on 8 devices into an .npz file.

python -m tests.conformance.jax.manual.worker OUT.npz
"""

from __future__ import annotations

import os
import sys
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax  # reads XLA_FLAGS
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

from tests.conformance.jax.manual.cases import CASES, MESHES, Case


def function_of(case: Case) -> tuple[Any, Any]:
    sizes = MESHES[case.mesh]
    devices = np.array(jax.devices())[list(case.device_ids or range(8))].reshape(tuple(sizes.values()))
    mesh = Mesh(devices, tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    if case.is_whole:
        return case.body(jax)(mesh), mesh
    in_specs = tuple(P(*spec) for spec in case.in_specs)
    body, axes = case.body(jax), set(case.axes or sizes)
    out = jax.shard_map(
        body, mesh=mesh, in_specs=in_specs, out_specs=P(*case.out_specs), axis_names=axes, check_vma=False
    )
    return out, mesh


def main(path: str) -> None:
    if hasattr(jax.config, "jax_raise_on_ppermute_sort_diff"):  # JAX 0.12 has it: some cases name axes in another order
        jax.config.update("jax_raise_on_ppermute_sort_diff", False)
    arrays: dict[str, Any] = {}
    for name, case in CASES.items():
        function, mesh = function_of(case)
        inputs = [jax.numpy.bfloat16(x) if case.is_narrow else x for x in case.inputs]
        specs = case.arguments or ((),) * len(inputs)
        placed = [jax.device_put(x, NamedSharding(mesh, P(*spec))) for x, spec in zip(inputs, specs)]
        lowered = jax.jit(function).lower(*placed)
        arrays[f"{name}/text"] = np.asarray(lowered.as_text())
        arrays[f"{name}/result"] = np.asarray(lowered.compile()(*placed)).astype(np.float32)
    np.savez(path, **arrays)


if __name__ == "__main__":
    main(sys.argv[1])
