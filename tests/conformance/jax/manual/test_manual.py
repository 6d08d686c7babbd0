# SPDX-License-Identifier: Apache-2.0
"""Programs with `jax.shard_map` (cases.py) give what JAX gives, with the collectives that their bodies name."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.conformance.jax.manual.cases import CASES, Case
from tests.support.once_per_run import written_by

MODES: tuple[dict[str, bool], ...] = ({}, {"faithful": True, "poison": True})


@pytest.fixture(scope="module")
def by_jax(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return np.load(written_by(tmp_path_factory, "tests.conformance.jax.manual.worker", "out.npz"))


def compiled(by_jax: Any, name: str) -> sw.Program:
    return sw.parse(str(by_jax[f"{name}/text"]), f"{name}.mlir").compile()


def inputs_of(case: Case, program: sw.Program) -> list[np.ndarray]:
    return [x.astype(aval.dtype) for x, aval in zip(case.inputs, program._traced.in_avals)]


def check(case: Case, found: np.ndarray, expected: np.ndarray) -> None:
    found = found.astype(np.float32)
    if case.is_exact:
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5 * float(np.abs(expected).max()))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_manual_program_gives_what_jax_gives(by_jax: Any, case: Case) -> None:
    program = compiled(by_jax, case.name)
    for mode in MODES:
        check(case, np.asarray(program.run(*inputs_of(case, program), **mode)), by_jax[f"{case.name}/result"])


@pytest.mark.parametrize("name", ["psum_xy", "all_to_all_y", "ring_of_both", "nested", "in_while", "partly_uneven"])
def test_a_manual_program_gives_the_same_where_nothing_is_sharded(by_jax: Any, name: str) -> None:
    case = CASES[name]
    text = sw.parse(str(by_jax[f"{name}/text"]), f"{name}.mlir").apply("inline_calls").as_text()
    whole = re.sub(r"<@mesh, \[[^\]]*\](, replicated=\{[^}]*\})?>", lambda found: everywhere(found[0]), text)
    program = sw.parse(whole).compile()
    assert kinds(program) == {}
    check(case, np.asarray(program.run(*inputs_of(case, program))), by_jax[f"{name}/result"])


def everywhere(sharding: str) -> str:
    dims = sharding[: sharding.index("]")].count("{")
    return f"<@mesh, [{', '.join(['{}'] * dims)}]>"


def kinds(program: sw.Program) -> dict[str, int]:
    return dict(Counter(row.kind for row in program.collectives().rows))


SHARD = 8 * 16 * 4  # bytes of the shard that each body of the matrix gets


@pytest.mark.parametrize(
    ("name", "kind", "sent"),
    [
        ("psum_x", "all_reduce", SHARD),
        ("psum_xy", "all_reduce", 2 * SHARD * 7 // 8),
        ("pmax_y", "all_reduce", 2 * SHARD * 3 // 4),
        ("psum_scatter_y", "reduce_scatter", SHARD * 3 // 4),
        ("all_gather_y", "all_gather", 3 * SHARD),
        ("all_to_all_y", "all_to_all", SHARD * 3 // 4),
        ("ring_y", "collective_permute", SHARD),
        ("shift_x", "collective_permute", SHARD),
        ("butterfly_xy", "collective_permute", SHARD),
        ("butterfly_y", "collective_permute", SHARD),
        ("neighbors_yx", "collective_permute", SHARD),
        ("ring_of_both", "collective_permute", SHARD // 2),
        ("matmul", "all_reduce", 2 * 4 * 12 * 4 * 3 // 4),
    ],
)
def test_a_collective_of_the_body_is_one_of_the_program(by_jax: Any, name: str, kind: str, sent: int) -> None:
    program = compiled(by_jax, name)
    assert kinds(program) == {kind: 1}
    assert program.collectives().rows[0].bytes == sent


@pytest.mark.parametrize("name", ["numbers", "axis_index_y", "position", "partial_position", "by_branch"])
def test_the_number_of_a_device_sends_nothing(by_jax: Any, name: str) -> None:
    assert kinds(compiled(by_jax, name)) == {}
