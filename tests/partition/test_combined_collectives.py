# SPDX-License-Identifier: Apache-2.0
"""Collectives that become one: the same bits and bytes, fewer messages, and no later step or higher peak."""

from __future__ import annotations

from typing import Any

import numpy as np
import optree
import pytest
from hypothesis import given, settings

import shardwise as sw
from shardwise import P, _core, models
from tests.support.mesh_strategies import meshes
from tests.support.partitioned import execute
from tests.support.random_programs import Program, programs

HARDWARE = ("default", "h100_sxm", "tpu_v3")


def rows_of(unit: Any) -> list[dict[str, Any]]:
    return [row for row in unit.collectives() if row["bytes"]]


def estimated(unit: Any, hardware: str) -> int:
    return _core.analysis.estimate(unit.stages["local"], _core.hardware.builtin(hardware)).estimate_ps


def both(step: Any, *args: Any, **options: Any) -> tuple[sw.Program, sw.Program]:
    """The program with and without combined collectives."""
    made = [sw.jit(step, **options, combine_bytes=size).lower(*args).compile() for size in (None, 0)]
    return made[0], made[1]


@settings(max_examples=min(150, settings.default.max_examples))
@given(meshes().flatmap(programs))
def test_random_programs_keep_their_bits_and_bytes(program: Program) -> None:
    combined, alone = (
        _core.passes.compile(program.record(), program.mesh, **options) for options in ({}, {"combine_bytes": "0"})
    )
    for found, wanted in zip(execute(combined, program.arguments), execute(alone, program.arguments)):
        for got, want in zip(found, wanted):
            assert got.dtype == want.dtype
            assert got.tobytes() == want.tobytes(), program
    ours, theirs = rows_of(combined), rows_of(alone)
    assert len(ours) <= len(theirs)
    assert sum(row["bytes"] * row["count"] for row in ours) == sum(row["bytes"] * row["count"] for row in theirs)
    assert sum(max(1, len(row["combined"])) for row in ours) == len(theirs)
    combined.stages["local"].verify()


# ---- training steps -------------------------------------------------------------------------------------------------


def sgd(loss: Any) -> Any:
    def step(params: Any, *data: Any) -> Any:
        gradients = sw.grad(loss)(params, *data)
        return optree.tree_map(lambda p, g: p - 0.1 * g, params, gradients)

    return step


def mlp_loss(params: Any, x: Any, y: Any) -> Any:
    for w, b in params[:-1]:
        x = np.tanh(x @ w + b)
    w, b = params[-1]
    return np.mean((x @ w + b - y) ** 2)


def mlp(layers: int, width: int, rows: int, make: Any) -> tuple[Any, Any, Any]:
    params = [(make((width, width)), make((width,))) for _ in range(layers)]
    return params, make((rows, width)), make((rows, width))


def shape(dims: tuple[int, ...]) -> sw.ShapeDtypeStruct:
    return sw.ShapeDtypeStruct(dims, np.float32)


@pytest.mark.parametrize("hardware", HARDWARE)
def test_a_data_parallel_step_sends_its_gradients_together(hardware: str) -> None:
    options = {"mesh": sw.Mesh({"d": 8}), "in_shardings": (None, P("d"), P("d")), "hardware": hardware}
    combined, alone = both(sgd(mlp_loss), *mlp(12, 512, 32768, shape), **options)
    assert alone.collectives().by_kind() == {"all_reduce": 24}
    assert combined.collectives().by_kind()["all_reduce"] <= 12
    assert combined.collectives().total_bytes == alone.collectives().total_bytes
    assert combined.estimate().estimate <= alone.estimate().estimate
    assert combined.memory().peak_bytes <= alone.memory().peak_bytes


def test_the_step_of_experts_has_a_third_of_its_all_reduces() -> None:
    config = models.TransformerConfig.gshard(2048, 36, group_size=None)
    params = models.transformer_shapes(config, np.float32, sw.ShapeDtypeStruct)

    def loss(params: Any, tokens: Any, random: Any) -> Any:
        return models.next_token_loss(params, tokens, config, axes="x", random=random)[0]

    tokens = sw.ShapeDtypeStruct((2048, config.length + 1), np.int32)
    random = shape((config.moe_layers, 2048, config.length))
    with pytest.warns(sw.ShardingWarning):
        combined, alone = both(sgd(loss), params, tokens, random, mesh=sw.Mesh({"x": 2048}))
    assert alone.collectives().by_kind()["all_reduce"] > 300
    assert combined.collectives().by_kind()["all_reduce"] <= 111
    assert combined.collectives().total_bytes == alone.collectives().total_bytes
    assert combined.estimate().estimate <= alone.estimate().estimate
    assert combined.memory().peak_bytes <= alone.memory().peak_bytes


def gathered_loss(params: Any, x: Any, y: Any) -> Any:
    params = optree.tree_map(lambda p: sw.shard(p, P("d", *[None] * (p.ndim - 1))), params)
    return mlp_loss(params, x, y)


@pytest.mark.parametrize("faithful", [False, True])
def test_bits_of_gathers_and_scattered_sums_stay(faithful: bool) -> None:
    rng = np.random.default_rng(0)
    args = mlp(4, 16, 32, lambda dims: rng.standard_normal(dims).astype(np.float32))
    spec = optree.tree_map(lambda p: P("d", *[None] * (p.ndim - 1)), args[0])
    options = {"mesh": sw.Mesh({"d": 8}), "in_shardings": (spec, P("d"), P("d")), "out_shardings": spec}
    options["hardware"] = "h100_sxm"
    combined, alone = both(sgd(gathered_loss), *args, **options)
    kinds = {row.kind for row in combined.collectives() if row.combined}
    assert kinds & {"all_gather", "reduce_scatter"}
    for got, want in zip(*(optree.tree_leaves(p.run(*args, faithful=faithful)) for p in (combined, alone))):
        assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


# ---- what reports say -----------------------------------------------------------------------------------------------


def gathered(x: Any, y: Any) -> Any:
    a = sw.shard(x, P())
    b = sw.shard(y, P())
    return a, b


def two() -> sw.Program:
    options = {"mesh": sw.Mesh({"d": 4}), "in_shardings": P("d")}
    return sw.jit(gathered, **options).lower(shape((8, 3)), shape((8, 5))).compile()


def test_a_combined_row_names_all_that_it_moves() -> None:
    program = two()
    (row,) = program.collectives().rows
    first = gathered.__code__.co_firstlineno + 1
    assert [(part.line, part.shape, part.bytes) for part in row.combined] == [
        (first, (2, 3), 72),
        (first + 1, (2, 5), 120),
    ]
    assert row.bytes == sum(part.bytes for part in row.combined)
    assert [part.cause for part in row.combined] == ["annotation", "annotation"]
    assert [part["line"] for part in row.to_dict()["combined"]] == [first, first + 1]
    text = repr(program.collectives())
    assert "float32[2,3] +1 more" in text
    assert f":{first} +1 more" in text
    groups = program.collectives().group_by("where")
    assert [(group.count, group.bytes) for group in groups] == [(1, 120), (1, 72)]
    assert sorted(part.line for part in row.separate()) == [first, first + 1]


def test_an_estimate_divides_a_combined_transfer_among_its_lines() -> None:
    found = two().estimate()
    (row,) = (row for row in found.rows if row.kind == "transfer")
    assert len(row.combined) == 2
    groups = {group.where: group.transfer for group in found.by("line")}
    assert np.isclose(sum(groups.values()), row.total)
    assert sum(transfer > 0 for transfer in groups.values()) == 2
    assert len(row.to_dict()["combined"]) == 2


def test_assertions_count_combined_collectives_once() -> None:
    sw.testing.assert_collectives(two(), all_gather=1, bytes_max=192)


def products(x: Any, w: Any, z: Any) -> Any:
    largest = np.max(np.exp(z))  # takes the most memory
    a = x @ w
    b = w.T @ x.T
    c = x @ np.abs(w)
    return a, b, c, largest


def test_a_line_says_what_it_sends_in_a_combined_collective() -> None:
    options = {"mesh": sw.Mesh({"d": 8}), "in_shardings": (P(None, "d"), P("d"), P()), "out_shardings": P()}
    program = sw.jit(products, **options).lower(*map(shape, ((1024, 4096), (4096, 1024), (4096, 2048)))).compile()
    _, row = program.collectives()  # the first sum has a link at once, and the others wait for it
    line = products.__code__.co_firstlineno + 4
    assert row.combined[1].line == line
    assert program.why(f"test_combined_collectives.py:{line}").decisions


@pytest.mark.parametrize("size", ["30MiB", 1 << 20, 0])
def test_sizes(size: Any) -> None:
    options = {"mesh": sw.Mesh({"d": 4}), "in_shardings": P("d"), "combine_bytes": size}
    program = sw.jit(gathered, **options).lower(shape((8, 3)), shape((8, 5))).compile()
    assert program.collectives().by_kind() == {"all_gather": 1 if size else 2}
