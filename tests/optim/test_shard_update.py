# SPDX-License-Identifier: Apache-2.0
"""`jit(shard_update=)`: the same numbers as without, the bytes of the paper, and state that stays split."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

from ..support.run_seed import in_turn
from .update_models import ELEMENTWISE, MESHES, MODELS, jitted, optimizers, step_of

ROWS = list(itertools.product(optimizers(), MODELS, MESHES))
STEPS = 3


def shapes_of(tree: Any) -> Any:
    return sw.tree.map(lambda x: sw.ShapeDtypeStruct(x.shape, x.dtype), tree)


def program_of(model: str, optimizer: Any, mesh: str, **options: Any) -> Any:
    params = shapes_of(MODELS[model].params())
    state, data = optimizer.init(params), shapes_of(MODELS[model].data())
    return jitted(MODELS[model], optimizer, mesh, **options).lower(params, shapes_of(state), *data).compile()


def after_steps(step: Any, model: str, optimizer: Any, steps: int = STEPS) -> Any:
    params = MODELS[model].params()
    state = optimizer.init(params)
    for i in range(steps):
        params, state, _ = step(params, state, *MODELS[model].data(i))
    return params, state


def assert_same(found: Any, wanted: Any, is_exact: bool) -> None:
    for one, other in zip(sw.tree.leaves(found), sw.tree.leaves(wanted), strict=True):
        a, b = np.asarray(one), np.asarray(other)
        if is_exact or a.dtype.kind == "i":
            np.testing.assert_array_equal(a, b)
        else:
            bound = 8 * STEPS * np.finfo(np.float32).eps * max(np.linalg.norm(b), 1e-30)
            assert np.linalg.norm(a - b) <= bound


@pytest.mark.parametrize(("name", "model", "mesh"), in_turn(ROWS, 9))
def test_steps_compute_what_they_compute_without_it(name: str, model: str, mesh: str) -> None:
    optimizer = optimizers()[name]
    found = after_steps(jitted(MODELS[model], optimizer, mesh), model, optimizer)
    wanted = after_steps(jitted(MODELS[model], optimizer, mesh, shard_update=False), model, optimizer)
    # Where a sum is over a part of the devices first and then over the rest, the order of its addends is another one.
    assert_same(found, wanted, name in ELEMENTWISE and mesh in ("data", "six"))


@pytest.mark.parametrize("model", MODELS)
def test_sums_of_several_stages_differ_by_their_rounding(model: str) -> None:
    """Four devices add their gradients, then two add these sums: another order than that of the devices.

    Their products are of another program, and the order in which BLAS adds up examples depends on the processor.
    """
    optimizer, params, (x, y) = sw.optim.sgd(1.0), MODELS[model].params(), MODELS[model].data()
    state = optimizer.init(params)
    split, whole = (
        jitted(MODELS[model], optimizer, "sub-axis", **options)(params, state, x, y)[0]
        for options in ({}, {"shard_update": False})
    )
    parts = [sw.grad(MODELS[model].loss)(params, *batch) for batch in zip(np.split(x, 48), np.split(y, 48))]
    addends = {name: sum(np.abs(part[name]) for part in parts) / 48 for name in params}
    eps, errors = np.finfo(np.float32).eps, []
    for name in params:
        one, other = np.asarray(split[name]), np.asarray(whole[name])
        # A step that ends beside a power of two may be rounded by a unit of either side.
        unit = 8 * eps * addends[name] + np.spacing(np.maximum(np.abs(one), np.abs(other)))
        errors.append(np.abs(one - other) / unit)
    assert max(error.max() for error in errors) <= 1


@pytest.mark.parametrize(("name", "model", "mesh"), in_turn(ROWS, 28))
def test_padding_is_never_read(name: str, model: str, mesh: str) -> None:
    optimizer, params = optimizers()[name], MODELS[model].params()
    state, data = optimizer.init(params), MODELS[model].data()
    program = jitted(MODELS[model], optimizer, mesh).lower(params, state, *data).compile()
    assert_same(program.run(params, state, *data, poison=True), program(params, state, *data), True)


def received(program: Any, *kinds: str) -> float:
    return sum(row.bytes * row.count for row in program.collectives() if not kinds or row.kind in kinds)


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam", "lamb"])
def test_bytes_are_those_of_the_all_reduces(name: str) -> None:
    # Xu et al. 2020: a reduce-scatter and an all-gather receive what an all-reduce receives.
    optimizer = optimizers()[name]
    whole = program_of("transformer", optimizer, "data", shard_update=False)
    split = program_of("transformer", optimizer, "data")
    weights = sum(np.prod(shape) * 4 for key, shape in MODELS["transformer"].shapes.items() if key != "norm")
    assert received(split, "reduce_scatter") == received(split, "all_gather") == weights * 7 / 8
    assert received(whole) == received(program_of("transformer", optimizers()["sgd"], "data"))
    # LAMB sums two norms, which are numbers, of each of the seven weights that are split.
    assert received(split) - received(whole) == (7 * 2 * 7 * 4 if name == "lamb" else 0)


@pytest.mark.parametrize("mesh", ["data", "two axes", "sub-axis", "six"])
@pytest.mark.parametrize("model", ["mlp", "resnet", "transformer"])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_a_step_receives_no_more_than_the_padding_adds(name: str, model: str, mesh: str) -> None:
    optimizer = optimizers()[name]
    whole, split = (
        received(program_of(model, optimizer, mesh, **options)) for options in ({"shard_update": False}, {})
    )
    rows = program_of(model, optimizer, mesh).shard_update()
    stored = {row.name: row.shard_bytes * row.group for row in rows if row.is_weight and row.is_split}
    own = {f"params['{key}']": int(np.prod(shape)) * 4 for key, shape in MODELS[model].shapes.items()}
    padding = sum(stored[name] - own[name] for name in stored)
    assert len(stored) >= 2
    # An all-reduce of elements that 6 does not divide receives up to an element more in each of two phases.
    rounded = 8 * len(stored) if mesh == "six" else 0
    assert split - whole == pytest.approx(padding * 2 * 5 / 6, abs=rounded)


def large(shard_update: Any, devices: int, **options: Any) -> Any:
    """A step of Adam on one weight of 4 MiB, with a batch that nothing moves."""
    optimizer = sw.optim.adam(1e-3)
    params = {"w": sw.ShapeDtypeStruct((1024, 1024), np.float32)}
    batch = sw.ShapeDtypeStruct((1024 * devices, 1024), np.float32)
    step = step_of(lambda p, x, y: np.mean((x @ p["w"] - y) ** 2), optimizer)
    shardings = (None, None, P("data"), P("data"))
    mesh = sw.Mesh({"data": devices})
    jitted_step = sw.jit(step, mesh=mesh, in_shardings=shardings, shard_update=shard_update, **options)
    return jitted_step.lower(params, optimizer.init(params), batch, batch).compile()


def bytes_by_kind(program: Any) -> dict[str, float]:
    """Bytes of the collectives of the weight, by kind: those of the loss, a number, left out."""
    rows = [row for row in program.collectives() if row.shape != ()]
    return {kind: sum(row.bytes for row in rows if row.kind == kind) for kind in {row.kind for row in rows}}


def test_bytes_of_partial_sharding_are_the_papers() -> None:
    # 4 MiB over 2048 = 32 x 64 devices: training_spec, 8,384,512 bytes whichever way.
    whole = {"reduce_scatter": 4192256, "all_gather": 4192256}
    partial = {"reduce_scatter": 4128768, "all_reduce": 126976, "all_gather": 4128768}
    assert bytes_by_kind(large("data", 2048)) == whole
    assert bytes_by_kind(large(sw.sub("data", pre=32, size=64), 2048)) == partial
    assert sum(whole.values()) == sum(partial.values()) == 8384512


def test_a_narrow_gather_receives_three_quarters() -> None:
    wide, narrow = bytes_by_kind(large("data", 8)), bytes_by_kind(large("data", 8, gather_dtype="bfloat16"))
    assert sum(narrow.values()) == 0.75 * sum(wide.values())
    assert narrow["all_gather"] == wide["all_gather"] / 2


def test_a_device_stores_its_share_of_the_state() -> None:
    program = large("data", 8)
    count, batch = 4, 2 * 1024 * 1024 * 4
    assert program.memory().argument_bytes == 3 * 4 * 2**20 // 8 + batch + count
    assert [row.shard_bytes for row in program.shard_update()] == [2**19] * 3


def test_a_narrow_gather_rounds_the_weight_of_the_forward_pass_alone() -> None:
    model, optimizer = MODELS["mlp"], optimizers()["adam"]

    def rounded(p: Any, x: Any, y: Any) -> Any:
        narrow = {name: p[name].astype(sw.bfloat16).astype(np.float32) for name in ("w1", "w2")}
        return model.loss({**p, **narrow}, x, y)

    params = model.params()
    found = jitted(model, optimizer, "data", gather_dtype=sw.bfloat16)(params, optimizer.init(params), *model.data())
    mesh, batch, _ = MESHES["data"]
    step = sw.jit(step_of(rounded, optimizer, ("data",)), mesh=mesh, in_shardings=(None, None, P(batch), P(batch)))
    wanted = step(params, optimizer.init(params), *model.data())
    np.testing.assert_array_equal(np.asarray(found[2]), np.asarray(wanted[2]))
    # The gradient of a rounding is rounded, too; that of a narrow gather is not.
    moments = (np.asarray(result[1][0].mu["w1"]) for result in (found, wanted))
    np.testing.assert_allclose(*moments, rtol=1e-2, atol=1e-4)
    wide = jitted(model, optimizer, "data")(params, optimizer.init(params), *model.data())
    assert float(found[2]) != float(wide[2])


def test_state_stays_split_over_a_thousand_steps_and_a_checkpoint(tmp_path: Any) -> None:
    model, optimizer = MODELS["mlp"], optimizers()["momentum"]
    train = jitted(model, optimizer, "data")
    params = model.params()
    state = optimizer.init(params)
    x, y = (part[:64] for part in model.data())
    layouts = set()
    for i in range(1000):
        params, state, _ = train(params, state, x, y)
        layouts.add((params["w1"].sharding.spec, state[0].trace["w1"].sharding.spec))
        if i == 500:
            sw.save(tmp_path / "step", {"params": params, "state": state})
            loaded = sw.load(tmp_path / "step", like={"params": params, "state": state})
            params, state = loaded["params"], loaded["state"]
    assert layouts == {(P("data", None), P("data", None))}
    # Two programs: that of the arrays of the first call, and that of its results.
    program = train.lower(params, state, x, y).compile()
    moved = {
        (row.kind, row.gradient.partition("[")[0] or row.cause.partition("[")[0])
        for row in program.collectives()
        if row.shape
    }
    assert moved == {
        ("reduce_scatter", "gradient of p"),
        ("all_reduce", "gradient of p"),
        ("all_gather", "shard_update: gather of params"),
    }


def test_a_loop_of_steps_gathers_once_in_each() -> None:
    model, optimizer = MODELS["mlp"], optimizers()["adam"]
    params = model.params()
    state = optimizer.init(params)
    batches = [np.stack(parts) for parts in zip(*(model.data(i) for i in range(5)), strict=True)]
    mesh, _, axes = MESHES["data"]

    def steps(summed_over: Any) -> Any:
        def body(carry: Any, batch: Any) -> Any:
            *carry, value = step_of(model.loss, optimizer, summed_over)(*carry, *batch)
            return tuple(carry), value

        return lambda params, state, xs, ys: sw.scan(body, (params, state), (xs, ys))

    shardings = (None, None, P(None, "data"), P(None, "data"))
    loop = sw.jit(steps(None), mesh=mesh, in_shardings=shardings, shard_update=axes)
    program = loop.lower(params, state, *batches).compile()
    gathers = [(row.kind, row.count) for row in program.collectives() if row.kind == "all_gather"]
    assert gathers == [("all_gather", 5)] * 2
    assert {row.layout for row in program.shard_update() if row.is_split} == {'[{"data"}, {}]'}
    assert program.output_shardings[0][0]["w1"].spec == program.input_shardings[1].spec == P("data", None)
    wanted = sw.jit(steps(("data",)), mesh=mesh, in_shardings=shardings)(params, state, *batches)
    assert_same(program(params, state, *batches), wanted, True)


@pytest.mark.parametrize("loop", ["scan", "fori_loop", "nested"])
def test_a_loop_takes_the_split_weights_that_it_has_returned(loop: str) -> None:
    """The second call of the loop is the program of the first one: the same layouts, dtypes and bits."""

    def one(w: Any, x: Any) -> Any:
        return w - 0.1 * sw.grad(lambda w: np.mean(np.tanh(x @ w) ** 2))(w)

    def scanned(w: Any, xs: Any) -> Any:
        return sw.scan(lambda w, x: (one(w, x), None), w, xs)[0]

    def steps(w: Any, xs: Any) -> Any:
        if loop == "fori_loop":
            return sw.fori_loop(0, 4, lambda i, w: one(w, xs[i]), w)
        return sw.fori_loop(0, 2, lambda _, w: scanned(w, xs), w) if loop == "nested" else scanned(w, xs)

    rng = np.random.default_rng(0)
    w, xs = rng.normal(size=(64, 64)).astype(np.float32) / 8, rng.normal(size=(4, 512, 64)).astype(np.float32)
    options: Any = {"in_shardings": (None, P(None, "data")), "shard_update": "data", "gather_dtype": "bfloat16"}
    train = sw.jit(steps, mesh=sw.Mesh({"data": 8}), **options)
    first = train(w, xs)
    assert first.sharding.spec == P("data", None)
    whole, split = (train.lower(given, xs).compile() for given in (np.asarray(first), first))
    assert str(split.shard_update()) == str(whole.shard_update())
    assert split.shard_update().summary().startswith("1 of 1 states split")
    assert [str(row.type) for row in split.collectives()] == [str(row.type) for row in whole.collectives()]
    np.testing.assert_array_equal(np.asarray(train(first, xs)), np.asarray(train(np.asarray(first), xs)))


# ---- what is found, and what is left whole --------------------------------------------------------------------------


def compiled_step(step: Any, *arguments: Any, in_shardings: Any, **options: Any) -> Any:
    options = {"shard_update": "data", **options}
    return sw.jit(step, mesh=sw.Mesh({"data": 8}), in_shardings=in_shardings, **options).lower(*arguments).compile()


def shape(*sizes: int) -> Any:
    return sw.ShapeDtypeStruct(sizes, np.float32)


def square_loss(w: Any, x: Any, y: Any) -> Any:
    return np.mean((np.tanh(x @ w) - y) ** 2)


BATCHES = (shape(4096, 64), shape(4096, 32))
IN_BATCHES = (P("data"), P("data"))


def test_an_orthogonalized_update_is_left_whole_with_the_reason() -> None:
    def muon(w: Any, m: Any, x: Any, y: Any) -> Any:
        m = 0.9 * m + sw.grad(square_loss)(w, x, y)
        o = m / (np.sqrt((m * m).sum()) + 1e-7)
        for _ in range(3):
            gram = o @ o.T
            o = 1.5 * o - 0.5 * gram @ o
        return w - 0.1 * o, m

    program = compiled_step(muon, shape(64, 32), shape(64, 32), *BATCHES, in_shardings=(None, None, *IN_BATCHES))
    for row in program.shard_update():
        assert not row.is_split
        assert "computes dot_general at" in row.reason
        assert row.reason.endswith("which is neither elementwise nor a norm")
    assert [row.name for row in program.shard_update()] == ["w", "m"]


def test_a_preconditioned_update_is_left_whole() -> None:
    def shampoo(w: Any, left: Any, x: Any, y: Any) -> Any:
        grad = sw.grad(square_loss)(w, x, y)
        left = left + grad @ grad.T
        root = np.eye(64, dtype=np.float32)
        for _ in range(2):
            root = 0.5 * root @ (3 * np.eye(64, dtype=np.float32) - left @ root @ root)
        return w - 0.1 * root @ grad, left

    program = compiled_step(shampoo, shape(64, 32), shape(64, 64), *BATCHES, in_shardings=(None, None, *IN_BATCHES))
    rows = program.shard_update()
    assert "dot_general" in rows.named("w").reason
    assert not any(row.is_split for row in rows)


def _orthogonal(g: Any) -> Any:
    o = g / (np.sqrt((g * g).sum()) + 1e-7)
    return 1.5 * o - 0.5 * o @ (o.T @ o)


def _largest(g: Any) -> Any:
    return g * (np.abs(g) > np.sort(np.abs(g).ravel())[100])


def _whitened(g: Any) -> Any:
    return np.linalg.solve(g.T @ g + np.eye(32, dtype=np.float32), g.T).T


@pytest.mark.parametrize("change", [_orthogonal, _largest, _whitened])
@pytest.mark.filterwarnings("ignore::shardwise.errors.ShardingWarning")
def test_what_computes_with_the_gradient_alone_is_left_whole(change: Any) -> None:
    """No state is behind it, only the sum over the batch."""

    def step(w: Any, x: Any, y: Any) -> Any:
        return w - 0.1 * change(sw.grad(square_loss)(w, x, y))

    options: Any = {"in_shardings": (None, *IN_BATCHES)}
    program = compiled_step(step, shape(64, 32), *BATCHES, **options)
    row = program.shard_update().named("w")
    assert not row.is_split
    assert row.reason.endswith("which is neither elementwise nor a norm")
    plain = compiled_step(step, shape(64, 32), *BATCHES, shard_update=None, **options)
    assert program.collectives().by_kind() == plain.collectives().by_kind()


def _flattened(w: Any, m: Any, g: Any) -> Any:
    m = 0.9 * m.reshape(-1) + g.reshape(-1)
    return (w.reshape(-1) - 0.1 * m).reshape(w.shape), m.reshape(w.shape)


def _transposed(w: Any, m: Any, g: Any) -> Any:
    m = (0.9 * m.T + g.T).T
    return (w.T - 0.1 * m.T).T, m


def _by_slices(w: Any, m: Any, g: Any) -> Any:
    m = np.concatenate([0.9 * m[:32] + g[:32], 0.5 * m[32:] + g[32:]])
    return np.concatenate([w[:32] - 0.1 * m[:32], w[32:] - 0.01 * m[32:]]), m


@pytest.mark.parametrize(
    ("update", "op"), [(_flattened, "reshape"), (_transposed, "transpose"), (_by_slices, "concatenate")]
)
def test_updates_that_are_not_followed_are_reported(update: Any, op: str) -> None:
    def step(w: Any, m: Any, x: Any, y: Any) -> Any:
        return update(w, m, sw.grad(square_loss)(w, x, y))

    program = compiled_step(step, shape(64, 32), shape(64, 32), *BATCHES, in_shardings=(None, None, *IN_BATCHES))
    rows = program.shard_update()
    assert [row.name for row in rows] == ["w", "m"]
    assert not any(row.is_split for row in rows)
    assert all(row.reason.startswith(f"its update computes {op} at ") for row in rows)
    assert sum(row.shard_bytes for row in rows) == 2 * 64 * 32 * 4


def test_small_states_of_a_loop_are_reported() -> None:
    adam = sw.optim.adam(1e-3)

    def loss(params: Any, x: Any, y: Any) -> Any:
        return square_loss(params["w"], x, y + params["b"])

    params = {"w": shape(64, 32), "b": shape(32)}
    arguments = (params, adam.init(params), *BATCHES)
    one = step_of(loss, adam)

    def steps(params: Any, state: Any, x: Any, y: Any) -> Any:
        return sw.fori_loop(0, 5, lambda _, carry: one(*carry, x, y)[:2], (params, state))

    in_shardings = (None, None, *IN_BATCHES)
    found = [compiled_step(step, *arguments, in_shardings=in_shardings).shard_update() for step in (one, steps)]
    for rows in found:
        assert sorted(row.reason for row in rows) == [""] * 3 + ["it has 128 bytes"] * 3
        assert [row.is_weight for row in rows].count(True) == 2
    assert found[0].summary() == found[1].summary()


def test_averages_of_weights_follow_them() -> None:
    def step(w: Any, average: Any, x: Any, y: Any) -> Any:
        w = w - 0.1 * sw.grad(square_loss)(w, x, y)
        return w, sw.optim.incremental_update(w, average, 0.1)

    program = compiled_step(step, shape(64, 32), shape(64, 32), *BATCHES, in_shardings=(None, None, *IN_BATCHES))
    assert [row.layout for row in program.shard_update()] == ['[{"data"}, {}]'] * 2
    assert program.collectives().by_kind() == {"all_gather": 1, "reduce_scatter": 1}


def test_frozen_weights_stay_whole() -> None:
    def step(w: Any, frozen: Any, x: Any, y: Any) -> Any:
        grad = sw.grad(lambda w: square_loss(w, x @ frozen, y))(w)
        return w - 0.1 * grad, frozen

    program = compiled_step(step, shape(64, 32), shape(64, 64), *BATCHES, in_shardings=(None, None, *IN_BATCHES))
    rows = program.shard_update()
    assert (rows.named("w").is_split, rows.named("frozen").is_split) == (True, False)
    assert rows.named("frozen").reason == "no gradient reaches it"
    assert program.collectives().by_kind() == {"all_gather": 1, "reduce_scatter": 1}


@pytest.mark.parametrize("learns", [False, True])
def test_gradients_that_are_added_up_for_later_are_split(learns: bool) -> None:
    def step(w: Any, total: Any, x: Any, y: Any) -> Any:
        grad = sw.grad(square_loss)(w, x, y)
        return w - 0.1 * grad if learns else w, total + grad**2

    options: Any = {"in_shardings": (None, None, *IN_BATCHES)}
    program = compiled_step(step, shape(64, 32), shape(64, 32), *BATCHES, **options)
    assert program.shard_update().named("total").layout == '[{"data"}, {}]'
    assert program.output_shardings[1].spec == P("data", None)
    kinds = {"all_gather": 1, "reduce_scatter": 1} if learns else {"reduce_scatter": 1}
    assert program.collectives().by_kind() == kinds
    # The next step takes what this one gives.
    given = P("data") if learns else None
    again = compiled_step(step, *[shape(64, 32)] * 2, *BATCHES, in_shardings=(given, P("data"), *IN_BATCHES))
    assert [row.layout for row in again.shard_update()] == [row.layout for row in program.shard_update()]


def test_residual_streams_of_loops_are_no_states() -> None:
    def layer(x: Any, w: Any) -> Any:
        return x + np.tanh(x @ w[0]) @ w[1], None

    def step(w: Any, x: Any, y: Any) -> Any:
        grad = sw.grad(lambda w: np.mean((sw.scan(layer, x, w)[0] - y) ** 2))(w)
        return w - 0.1 * grad

    shapes = shape(5, 2, 64, 64), shape(4096, 64), shape(4096, 64)
    program = compiled_step(step, *shapes, in_shardings=(None, *IN_BATCHES))
    rows = program.shard_update()
    assert [row.name for row in rows] == ["w"]
    assert rows[0].is_split


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("steps", [1, 3])
def test_layers_that_a_scan_reads_one_by_one_are_not_split(narrow: bool, steps: int) -> None:
    """Eight layers over four devices: the gradient of each is scattered in the trip that makes it."""

    def loss(w: Any, x: Any, y: Any) -> Any:
        used = w.astype(sw.bfloat16).astype(np.float32) if narrow else w
        return np.mean((sw.scan(lambda x, w: (x + np.tanh(x @ w[0]) @ w[1], None), x, used)[0] - y) ** 2)

    def step(w: Any, x: Any, y: Any) -> Any:
        for _ in range(steps):
            w = w - 0.1 * sw.grad(loss)(w, x, y)
        return w

    random = np.random.default_rng(0)
    arguments = [random.normal(size=size).astype(np.float32) / 4 for size in ((8, 2, 16, 16), (64, 16), (64, 16))]
    options: Any = {"mesh": sw.Mesh({"data": 4}), "in_shardings": (None, P("data"), P("data"))}
    split, whole = sw.jit(step, shard_update="data", **options), sw.jit(step, **options)
    program = split.lower(*arguments).compile()
    assert program.shard_update().named("w").layout == '[{}, {}, {"data"}, {}]'
    assert {row.count for row in program.collectives() if row.kind == "reduce_scatter"} == {8}
    # Without it, the steps of all devices are summed, not their gradients.
    np.testing.assert_allclose(np.asarray(split(*arguments)), np.asarray(whole(*arguments)), rtol=0, atol=2**-21)


def test_a_whole_state_has_the_bytes_of_one_device() -> None:
    def step(w: Any, moment: Any, x: Any, y: Any) -> Any:
        moment = 0.9 * moment + sw.grad(square_loss)(w, x, y)
        return w - 0.1 * moment @ (moment.T @ moment), moment

    options: Any = {"mesh": sw.Mesh({"data": 4, "model": 2}), "shard_update": "data"}
    function = sw.jit(step, in_shardings=(P(None, "model"), P(None, "model"), *IN_BATCHES), **options)
    rows = function.lower(shape(64, 32), shape(64, 32), *BATCHES).compile().shard_update()
    assert all("dot_general" in row.reason for row in rows)
    assert {(row.layout, row.shard_bytes) for row in rows} == {('[{}, {"model"}]', 64 * 32 * 4 // 2)}


def test_a_tied_weight_is_gathered_and_reduced_once() -> None:
    program = program_of("transformer", optimizers()["adam"], "data")
    about = [row.kind for row in program.collectives() if row.shape in ((48, 16), (6, 16))]
    assert sorted(about) == ["all_gather", "reduce_scatter"]


@pytest.mark.parametrize("uses", [1, 2, 3])
def test_a_penalty_in_the_loss_costs_no_second_sum(uses: int) -> None:
    """The parts of the gradient are added up before the term of the weight joins them, wherever it is."""

    def loss(w: Any, x: Any, y: Any) -> Any:
        h = np.tanh(x @ w)
        for _ in range(uses - 1):
            h = np.tanh(h @ w.T + np.float32(0.1) * np.sum(w * w)) @ w
        return np.mean((h - y) ** 2) + np.float32(1e-2) * np.sum(w * w)

    def step(w: Any, m: Any, x: Any, y: Any) -> Any:
        m = np.float32(0.9) * m + sw.grad(loss)(w, x, y)
        return w - np.float32(0.1) * m, m

    random = np.random.default_rng(uses)
    sizes = (64, 32), (64, 32), (128, 64), (128, 32)
    arguments = [(random.normal(size=size) / 8).astype(np.float32) for size in sizes]
    options: Any = {"mesh": sw.Mesh({"data": 8}), "in_shardings": (None, None, *IN_BATCHES)}
    split, plain = sw.jit(step, shard_update="data", **options), sw.jit(step, **options)
    program = split.lower(*arguments).compile()
    assert bytes_by_kind(program)["reduce_scatter"] == 64 * 32 * 4 * 7 / 8
    for found, wanted in zip(split(*arguments), plain(*arguments)):
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-5, atol=2**-22)


def test_two_optimizers_of_one_tree() -> None:
    labels = {"w1": "first", "b1": "second", "w2": "second"}
    optimizer = sw.optim.multi_transform({"first": sw.optim.adam(1e-2), "second": sw.optim.sgd(0.1, 0.9)}, labels)
    rows = program_of("mlp", optimizer, "data").shard_update()
    assert {row.name for row in rows if row.is_weight} == {"params['w1']", "params['w2']", "params['b1']"}
    assert sum(row.is_split for row in rows) == 5  # w1 with two moments, w2 with one


def test_weights_that_are_split_already_keep_their_layout() -> None:
    step = step_of(square_loss, sw.optim.adam(1e-3))
    state = sw.optim.adam(1e-3).init(shape(64, 32))
    program = compiled_step(step, shape(64, 32), state, *BATCHES, in_shardings=(P(None, "data"), None, *IN_BATCHES))
    assert {row.layout for row in program.shard_update()} == {'[{}, {"data"}]'}


def test_masters_and_what_the_model_uses_are_split() -> None:
    optimizer = sw.optim.with_float32_masters(sw.optim.adam(1e-2))
    narrow = np.ones((64, 32), sw.bfloat16)
    state, step = optimizer.init(narrow), step_of(square_loss, optimizer)
    batches = (sw.ShapeDtypeStruct((4096, 64), sw.bfloat16), sw.ShapeDtypeStruct((4096, 32), sw.bfloat16))
    program = compiled_step(step, narrow, state, *batches, in_shardings=(None, None, *IN_BATCHES))
    rows = program.shard_update()
    assert all(row.is_split for row in rows)
    assert [row.shard_bytes for row in rows] == [64 * 32 * 2 / 8] + [64 * 32 * 4 / 8] * 3
    assert [row.gathered for row in rows] == ["bfloat16", "", "", ""]
    assert bytes_by_kind(program)["all_gather"] == 64 * 32 * 2 * 7 / 8


@pytest.mark.parametrize("gather_dtype", [None, "bfloat16", "float64"])
def test_masters_of_a_model_that_widens_its_weights(gather_dtype: str | None) -> None:
    """The new weights read the old ones in float32, as the products do: what is gathered is stored in bfloat16."""
    optimizer = sw.optim.with_float32_masters(sw.optim.adam(1e-2))
    narrow = np.ones((64, 32), sw.bfloat16)
    options: Any = {"in_shardings": (None, None, *IN_BATCHES), "gather_dtype": gather_dtype}
    step = step_of(square_loss, optimizer)
    program = compiled_step(step, narrow, optimizer.init(narrow), *BATCHES, **options)
    row = program.shard_update()[0]
    assert row.gathered == "bfloat16"
    assert row.reason == ("gather_dtype is not narrower than float32" if gather_dtype == "float64" else "")
    (gather,) = [row for row in program.collectives() if row.kind == "all_gather"]
    assert (gather.dtype, gather.bytes) == ("bfloat16", 64 * 32 * 2 * 7 / 8)
    assert gather.cause.startswith("shard_update: gather of ")


def test_a_weight_that_is_not_only_multiplied_is_gathered_wide() -> None:
    program = program_of("transformer", optimizers()["adam"], "data", gather_dtype="bfloat16")
    rows = program.shard_update()
    assert rows.named("params['up']").gathered == "bfloat16"
    assert (rows.named("params['embed']").gathered, rows.named("params['embed']").reason) == (
        "float32",
        "not every use of it is a product",
    )


def test_a_user_who_wants_whole_weights_gets_them_after_the_update() -> None:
    # The left form of the paper: the state is split, and the weights are gathered behind the update.
    optimizer = sw.optim.adam(1e-3)
    step, state = step_of(square_loss, optimizer), optimizer.init(shape(64, 32))
    shardings = {"in_shardings": (P(), None, *IN_BATCHES), "out_shardings": (P(), None, None)}
    program = compiled_step(step, shape(64, 32), state, *BATCHES, **shardings)
    assert program.output_shardings[0].is_fully_replicated
    assert program.output_shardings[1][0].mu.spec == P("data", None)


def test_the_report_prints_and_converts() -> None:
    report = program_of("mlp", optimizers()["sgd"], "data").shard_update()
    assert "params['w1']" in str(report)
    assert "2 of 3 states split" in report.summary()
    assert report.to_dict()["rows"][0]["name"] == "params['b1']"
    with pytest.raises(KeyError, match="nothing"):
        report.named("nothing")


def test_why_names_the_switch() -> None:
    program = program_of("mlp", optimizers()["sgd"], "data")
    assert "shard_update: state params['w1']" in str(program.why("params['w1']"))
    causes = {row.cause for row in program.collectives() if row.kind == "all_gather"}
    assert causes == {"shard_update: gather of params['w1']", "shard_update: gather of params['w2']"}
