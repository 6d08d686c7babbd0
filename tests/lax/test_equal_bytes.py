# SPDX-License-Identifier: Apache-2.0
"""A call of `sw.lax` and the same call of `jax.lax` through `from_jax` send equal bytes, forward and in the gradient.

They differ where JAX has another program for the same numbers: then ours sends less, but for the rows of `MORE` and for
`cumlogsumexp`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.lax.cases import ALL, Case, weights
from tests.lax.comparing import called, rows_of, specs
from tests.support.oracles import oracle
from tests.support.run_seed import in_turn

JAX: Any = oracle("jax")
MESH = sw.Mesh({"x": 2, "y": 2})
DIFFERENTIATED_OTHERWISE = {
    "same", "same lower, strided", "pairs", "input dilated", "bfloat16 in float32", "default order",
    "conv_with_general_padding", "transpose, valid, short kernel", "transpose, gradient", "transpose, three dims",
    "select the smallest", "cumprod float32 along 0", "cumprod float32 along 1 in reverse", "cummax float32 along 0",
    "cummax float32 along 1 in reverse", "cummin float32 along 0", "cummin float32 along 1 in reverse",
    "dot_general bfloat16",
}  # fmt: skip
# On a CPU, JAX computes this one as a window over the whole dim: each element is added up anew.
OF_ANOTHER_PROGRAM = {
    "cumlogsumexp float32 along 0", "cumlogsumexp float32 along 1 in reverse", "cumlogsumexp bfloat16 along 0",
    "cumlogsumexp bfloat16 along 1 in reverse",
}  # fmt: skip
MORE = {
    ("transpose, pairs", (0, 1)): (800, 560),
    ("transpose, consistent pairs", (0, 1)): (800, 560),
    ("transpose, gradient", (0, 1)): (1280, 1216),
    ("select the smallest", (1, 2)): (864, 768),
}
ROWS = [(case, split) for cases in ALL.values() for case in cases for split in case.splits]
DIFFERENTIATED = [(case, split) for case, split in ROWS if case.differentiated]


def named(rows: list[Any]) -> list[str]:
    return [f"{case.name}, dim {split[1]} of {split[0]}" for case, split in rows]


def received(function: Callable[..., Any], case: Case, split: tuple[int, int]) -> float:
    """Bytes of a device, with one argument split."""
    with JAX.enable_x64(True):
        program = sw.jit(function, mesh=MESH, in_shardings=specs(case, *split)).lower(*case.arrays()).compile()
    return sum(row.bytes for row in program.collectives().rows)


def of_jax(case: Case, *xs: Any) -> list[Any]:
    from tests.lax.jax_worker import LAX, NP

    return rows_of(case.function(LAX, NP, *xs))


def loss_of(rows: list[Any]) -> Any:
    return sum((row * weights(row.shape, row.dtype)).sum().astype("float32") for row in rows)


@pytest.mark.filterwarnings("ignore::shardwise.ShardingWarning")
@pytest.mark.parametrize(("case", "split"), in_turn(ROWS), ids=in_turn(named(ROWS)))
def test_forward(case: Case, split: tuple[int, int]) -> None:
    ours = received(lambda *xs: called(case, list(xs)), case, split)
    theirs = received(sw.from_jax(lambda *xs: of_jax(case, *xs)), case, split)
    assert ours == theirs or case.name in OF_ANOTHER_PROGRAM


@pytest.mark.filterwarnings("ignore::shardwise.ShardingWarning")
@pytest.mark.parametrize(("case", "split"), in_turn(DIFFERENTIATED), ids=in_turn(named(DIFFERENTIATED)))
def test_gradient(case: Case, split: tuple[int, int]) -> None:
    places = tuple(range(len(case.shapes)))
    ours = received(lambda *xs: list(sw.grad(lambda *xs: loss_of(called(case, list(xs))), places)(*xs)), case, split)
    theirs = received(
        sw.from_jax(lambda *xs: list(JAX.grad(lambda *xs: loss_of(of_jax(case, *xs)), places)(*xs))), case, split
    )
    if (case.name, split) in MORE:
        assert (ours, theirs) == MORE[case.name, split]
    elif case.name in DIFFERENTIATED_OTHERWISE:
        assert ours <= theirs
    else:
        assert ours == theirs or case.name in OF_ANOTHER_PROGRAM


def test_tables_name_cases() -> None:
    names = {case.name for case, _ in ROWS}
    assert names >= DIFFERENTIATED_OTHERWISE | OF_ANOTHER_PROGRAM | {name for name, _ in MORE}
    assert np.all([bytes_of[0] > bytes_of[1] for bytes_of in MORE.values()])
