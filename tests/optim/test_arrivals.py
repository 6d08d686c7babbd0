# SPDX-License-Identifier: Apache-2.0
"""Split weights and moments that meet in_shardings of another layout: the ledger has what the program receives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"data": 4, "model": 2})
INPUTS, OUTPUTS, ROWS = 64, 32, 4096
WEIGHT_BYTES = INPUTS * OUTPUTS * 4
ADAM = sw.optim.adam(1e-2)


def loss(w: Any, x: Any, y: Any) -> Any:
    return np.mean((np.tanh(x @ w) - y) ** 2)


def step(w: Any, state: Any, x: Any, y: Any) -> Any:
    updates, state = ADAM.update(sw.grad(loss)(w, x, y), state, w)
    return sw.optim.apply_updates(w, updates), state


def random(*sizes: int) -> np.ndarray:
    return np.random.default_rng(sum(sizes)).normal(size=sizes).astype(np.float32)


WEIGHT, BATCH = random(INPUTS, OUTPUTS) / 8, (random(ROWS, INPUTS), random(ROWS, OUTPUTS))
IN_BATCH = (P("data"), P("data"))


def train(spec: Any) -> Any:
    return sw.jit(step, mesh=MESH, in_shardings=(spec, None, *IN_BATCH), shard_update="data")


def split_weight() -> sw.Array:
    weight = train(P(None, "model"))(WEIGHT, ADAM.init(WEIGHT), *BATCH)[0]
    assert isinstance(weight, sw.Array)
    return weight


def of_weight(program: sw.Program) -> list[tuple[str, str, float]]:
    """Kind, cause and bytes of what moves weights into place before they are used."""
    found = [(row.kind, row.cause, row.bytes * row.count) for row in program.collectives()]
    return [row for row in found if row[1].startswith(("in_shardings", "shard_update"))]


@pytest.mark.parametrize(
    ("spec", "received"), [(P(None, "model"), 3 / 8), (P(), 7 / 8), (P("data", "model"), 0), (P("data"), 1 / 8)]
)
def test_a_program_without_the_switch_counts_the_conversion(spec: Any, received: float) -> None:
    weight = split_weight()
    assert weight.sharding.spec == P("data", "model")
    evaluate = sw.jit(loss, mesh=MESH, in_shardings=(spec, *IN_BATCH))
    program = evaluate.lower(weight, *BATCH).compile()
    wanted = [("all_gather", "in_shardings of w", WEIGHT_BYTES * received)] if received else []
    assert of_weight(program) == wanted
    assert program.input_shardings[0].spec == P("data", "model")
    np.testing.assert_allclose(float(evaluate(weight, *BATCH)), float(evaluate(np.asarray(weight), *BATCH)), rtol=1e-6)


@pytest.mark.parametrize("arrives", [P(), P("data"), None])
def test_an_array_that_the_call_only_slices_is_no_part_of_the_program(arrives: Any) -> None:
    """Each device has its rows already: nothing is received."""
    given = WEIGHT if arrives is None else sw.device_put(WEIGHT, sw.NamedSharding(MESH, arrives))
    evaluate = sw.jit(loss, mesh=MESH, in_shardings=(P(("data", "model")), *IN_BATCH))
    program = evaluate.lower(given, *BATCH).compile()
    assert program.input_shardings[0].spec == P(("data", "model"), None)
    assert not [row for row in of_weight(program) if row[1].startswith("in_shardings")]


def test_blocks_of_uneven_dims_are_moved_by_the_program() -> None:
    """17 rows over 4 devices are blocks of 5, over 8 devices blocks of 3: not each is in a block of the other kind."""
    given = sw.device_put(random(17, 4), sw.NamedSharding(MESH, P("data")))
    double = sw.jit(lambda w: 2 * w, mesh=MESH, in_shardings=(P(("data", "model")),))
    (row,) = double.lower(given).compile().collectives()
    assert row.cause == "in_shardings of w"
    assert row.bytes > 0
    np.testing.assert_array_equal(np.asarray(double(given)), 2 * random(17, 4))


@pytest.mark.parametrize("other", [MESH, sw.Mesh({"y": 8})])
def test_a_compiled_program_moves_nothing_uncounted(other: sw.Mesh) -> None:
    """JAX raises, too: the ledger of a compiled program has no row for what its call would move."""
    program = sw.jit(loss, mesh=MESH, in_shardings=(P(None, "model"), *IN_BATCH)).lower(WEIGHT, *BATCH).compile()
    given = sw.device_put(WEIGHT, sw.NamedSharding(other, P(other.axis_names[0])))
    text = r"^call: argument w must be sharded as compiled, P\(None, 'model'\), got .*input_shardings\[0\]"
    with pytest.raises(sw.ShardingError, match=text):
        program(given, *BATCH)
    placed = sw.reshard(given, program.input_shardings[0])
    np.testing.assert_array_equal(np.asarray(program(placed, *BATCH)), np.asarray(program(WEIGHT, *BATCH)))


def test_a_compiled_program_slices_what_its_devices_hold() -> None:
    program = sw.jit(loss, mesh=MESH, in_shardings=(P("data", "model"), *IN_BATCH)).lower(WEIGHT, *BATCH).compile()
    given = sw.device_put(WEIGHT, sw.NamedSharding(MESH, P("data")))
    np.testing.assert_array_equal(np.asarray(program(given, *BATCH)), np.asarray(program(WEIGHT, *BATCH)))


def test_a_compiled_program_takes_no_array_of_other_devices() -> None:
    program = sw.jit(loss, mesh=MESH, in_shardings=(P(None, "model"), *IN_BATCH)).lower(WEIGHT, *BATCH).compile()
    given = sw.device_put(WEIGHT, sw.NamedSharding(sw.Mesh({"z": 2}), P()))
    with pytest.raises(sw.MeshError, match=r"^call of argument w: the mesh must be over the 8 devices"):
        program(given, *BATCH)


def test_an_argument_that_nothing_reads_is_not_moved() -> None:
    first = sw.jit(lambda w, x: 2 * x, mesh=MESH, in_shardings=(P(), None))
    assert len(first.lower(split_weight(), np.ones(8, np.float32)).compile().collectives()) == 0


def test_a_mesh_of_another_order_is_left_in_the_program() -> None:
    other = sw.Mesh({"y": 8}, device_ids=[*range(7, -1, -1)])
    given = sw.device_put(WEIGHT, sw.NamedSharding(other, P("y")))
    double = sw.jit(lambda w: 2 * w, mesh=MESH, in_shardings=(P("data"),))
    (row,) = double.lower(given).compile().collectives()
    assert row.cause == "in_shardings of w"
    np.testing.assert_array_equal(np.asarray(double(given)), 2 * WEIGHT)


@pytest.mark.parametrize("steps", [1, 3])
def test_a_step_takes_back_what_it_returned(steps: int) -> None:
    """in_shardings names the model's layout; the arrays keep theirs, and nothing but the forward pass gathers."""

    def some(w: Any, state: Any, x: Any, y: Any) -> Any:
        return sw.fori_loop(0, steps, lambda _, carry: step(*carry, x, y), (w, state))

    shardings: Any = {"mesh": MESH, "in_shardings": (P(None, "model"), None, *IN_BATCH)}
    run = sw.jit(some if steps > 1 else step, shard_update="data", **shardings)
    results = run(WEIGHT, ADAM.init(WEIGHT), *BATCH)
    program = run.lower(*results, *BATCH).compile()
    assert program.input_shardings[0].spec == results[0].sharding.spec == P("data", "model")
    assert [row[0] for row in of_weight(program)] == ["all_gather"]
    assert of_weight(program)[0][1].startswith("shard_update: gather of ")


@pytest.mark.parametrize("arrives", [P("data"), P(None, "data"), P("model"), P(sw.sub("data", pre=2, size=2), "model")])
def test_a_step_moves_a_state_of_another_layout_once(arrives: Any) -> None:
    """The first step converts by its own collectives; the next one has the layout of the model."""
    run, state = train(P(None, "model")), ADAM.init(WEIGHT)
    given = sw.device_put(WEIGHT, sw.NamedSharding(MESH, arrives))
    program = run.lower(given, state, *BATCH).compile()
    is_kept = arrives == P(sw.sub("data", pre=2, size=2), "model")
    assert program.input_shardings[0].spec == given.sharding.spec
    assert program.output_shardings[0].spec == (given.sharding.spec if is_kept else P("data", "model"))
    causes = {row[1] for row in of_weight(program)}
    assert causes <= {"shard_update: state w", "shard_update: gather of w"}
    found, wanted = run(given, state, *BATCH), run(WEIGHT, state, *BATCH)
    np.testing.assert_allclose(np.asarray(found[0]), np.asarray(wanted[0]), rtol=1e-5, atol=1e-6)


def test_a_frozen_weight_of_a_step_is_counted() -> None:
    def tuned(w: Any, frozen: Any, x: Any, y: Any) -> Any:
        return w - 0.1 * sw.grad(lambda w: loss(w, x @ frozen, y))(w)

    frozen = sw.device_put(random(INPUTS, INPUTS), sw.NamedSharding(MESH, P("data")))
    run = sw.jit(tuned, mesh=MESH, in_shardings=(P(), P(), *IN_BATCH), shard_update="data")
    program = run.lower(WEIGHT, frozen, *BATCH).compile()
    assert ("all_gather", "in_shardings of frozen", INPUTS * INPUTS * 4 * 3 / 4) in of_weight(program)
    assert program.input_shardings[1].spec == P("data", None)
