# SPDX-License-Identifier: Apache-2.0
"""The programs of cases.py with `sw.lax` and NumPy: JAX's results, and the collectives of what JAX lowers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.conformance.jax.manual.cases import CASES, MESHES, Case
from tests.conformance.jax.manual.test_manual import MODES, by_jax, check, compiled as from_text

__all__ = ["by_jax"]


def permuted_in_mesh_order(x: Any, axis_name: Any, perm: Any) -> Any:
    """As JAX before 0.12 reads several axes; `sw.lax.ppermute` counts in the order of the names, as `axis_index`."""
    return sw.lax.ppermute(x, axis_name if isinstance(axis_name, str) else tuple(sorted(axis_name)), perm)


# Shardwise under the names of JAX's modules.
LIBRARY: Any = SimpleNamespace(
    lax=SimpleNamespace(
        **{name: getattr(sw.lax, name) for name in sw.lax.__all__ if name != "ppermute"},
        ppermute=permuted_in_mesh_order,
        with_sharding_constraint=sw.with_sharding_constraint,
    ),
    numpy=np, sharding=SimpleNamespace(PartitionSpec=sw.P), shard_map=sw.shard_map, jit=sw.jit, grad=sw.grad,
    vmap=sw.vmap,
)  # fmt: skip


def mesh_of(case: Case) -> sw.Mesh:
    sizes = MESHES[case.mesh]
    if case.device_ids is None:
        return sw.Mesh(sizes)
    ids = np.reshape(case.device_ids, tuple(sizes.values()))
    return sw.Mesh(sizes, device_ids=ids)


def function_of(case: Case, mesh: sw.Mesh) -> Any:
    if case.is_whole:
        return case.body(LIBRARY)(mesh)
    options = {} if case.axes is None else {"axis_names": set(case.axes)}
    specs = tuple(sw.P(*spec) for spec in case.in_specs)
    return sw.shard_map(
        case.body(LIBRARY), mesh=mesh, in_specs=specs, out_specs=sw.P(*case.out_specs), check_vma=False, **options
    )


def compiled(case: Case) -> sw.Program:
    mesh = mesh_of(case)
    inputs = [x.astype(sw.bfloat16) if case.is_narrow else x for x in case.inputs]
    shardings = {"in_shardings": tuple(sw.P(*spec) for spec in case.arguments)} if case.arguments else {}
    return sw.jit(function_of(case, mesh), mesh=mesh, **shardings).lower(*inputs).compile()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_manual_program_in_numpy_gives_what_jax_gives(by_jax: Any, case: Case) -> None:
    program = compiled(case)
    inputs = [x.astype(sw.bfloat16) if case.is_narrow else x for x in case.inputs]
    for mode in MODES:
        check(case, np.asarray(program.run(*inputs, **mode)), by_jax[f"{case.name}/result"])


# JAX differentiates its own program, and does not send what only the value needs.
OTHER_GRADIENT = "gradient"


@pytest.mark.parametrize("case", [CASES[name] for name in CASES if name != OTHER_GRADIENT], ids=lambda case: case.name)
def test_it_sends_what_the_program_from_jax_sends(by_jax: Any, case: Case) -> None:
    ours, theirs = (program.collectives() for program in (compiled(case), from_text(by_jax, case.name)))
    assert sorted((row.kind, row.bytes) for row in ours) == sorted((row.kind, row.bytes) for row in theirs)


def test_a_gradient_sends_what_the_forward_pass_and_its_transposes_say() -> None:
    """The gather of w, two sums of it, and the permutes of the value and of its cotangent."""
    sent = compiled(CASES[OTHER_GRADIENT]).collectives().by_kind()
    assert sent == {"collective_permute": 3, "all_gather": 1, "all_reduce": 3}
