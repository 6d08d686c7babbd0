# SPDX-License-Identifier: Apache-2.0
"""What sw.optim has beside Optax's numbers: GShard's Adafactor, float32 masters, accumulation, masks, layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import optax
import pytest

import shardwise as sw
from shardwise import P, optim as o

MESH = sw.Mesh({"x": 2, "y": 4})
RNG = np.random.default_rng(5)
EXPERTS = {"bias": RNG.normal(size=7), "experts": RNG.normal(size=(4, 9, 6))}
STEPS = [{name: RNG.normal(size=leaf.shape) for name, leaf in EXPERTS.items()} for _ in range(12)]


def test_names_are_those_of_optax() -> None:
    own = {"MasterState", "with_float32_masters", "gshard_adafactor", "rsqrt_decay_schedule", "pow_decay_rate"}
    own |= {"adam_decay_rate", "capped_decay_rate"}
    assert {name for name in o.__all__ if not hasattr(optax, name)} - own == set()


# ---- GShard's Adafactor ---------------------------------------------------------------------------------------------


def betas(kind: str) -> list[float]:
    steps = range(1, 13)
    if kind == "adam":
        return [0.99 * (1 - 0.99 ** (t - 1)) / (1 - 0.99**t) for t in steps]
    return [min(0.99 if kind == "capped" else 1.0, 1 - t**-0.8) for t in steps]


def literal(kind: str, decay_steps: int) -> dict[str, np.ndarray]:
    """The paper's loop, expert by expert, with floats of 64 bits."""
    w = {"bias": EXPERTS["bias"].copy(), "experts": EXPERTS["experts"].copy()}
    v, r, k = np.zeros(7), np.zeros((4, 9)), np.zeros((4, 6))
    for t, (grads, beta) in enumerate(zip(STEPS, betas(kind)), start=1):
        rate = 1.0 / max(1.0, np.sqrt(t / decay_steps))
        v = beta * v + (1 - beta) * (grads["bias"] ** 2 + 1e-30)
        u = {"bias": grads["bias"] / np.sqrt(v), "experts": np.zeros((4, 9, 6))}
        for e in range(4):
            square = grads["experts"][e] ** 2 + 1e-30
            r[e] = beta * r[e] + (1 - beta) * square.mean(axis=1)
            k[e] = beta * k[e] + (1 - beta) * square.mean(axis=0)
            u["experts"][e] = grads["experts"][e] / np.sqrt(np.outer(r[e] / r[e].mean(), k[e]))
        for name, update in u.items():
            clipped = update / max(1.0, np.sqrt((update**2).mean()))
            w[name] -= rate * max(1e-3, np.sqrt((w[name] ** 2).mean())) * clipped
    return w


@pytest.mark.parametrize("kind", ["pow", "adam", "capped"])
def test_gshards_adafactor_is_the_papers_loop(kind: str) -> None:
    optimizer, params = o.gshard_adafactor(decay_steps=4, decay=kind), EXPERTS
    state = optimizer.init(params)
    for grads in STEPS:
        updates, state = optimizer.update(grads, state, params)
        params = o.apply_updates(params, updates)
    # "pow" is rounded to float32, as in Optax.
    for name, expected in literal(kind, 4).items():
        close = {"rtol": 1e-6, "atol": 1e-6} if kind == "pow" else {"rtol": 1e-11}
        np.testing.assert_allclose(params[name], expected, **close)
    assert params["experts"].shape == (4, 9, 6)


def test_the_learning_rate_falls_after_ten_thousand_steps() -> None:
    rate = o.rsqrt_decay_schedule(1.0)
    assert [float(rate(t - 1)) for t in (1, 10_000, 40_000)] == [1.0, 1.0, 0.5]


def test_a_factored_square_of_rank_one_is_exact() -> None:
    g = np.outer([1.0, 2.0, 3.0], [0.5, 4.0])
    whole, factored = (o.scale_by_factored_rms(flag, min_dim_size_to_factor=1) for flag in (False, True))
    expected = whole.update(g, whole.init(g), g)[0]
    np.testing.assert_allclose(factored.update(g, factored.init(g), g)[0], expected, rtol=1e-12)


def test_factored_moments_are_a_row_and_a_column() -> None:
    params = {"w": np.zeros((1024, 8192), np.float32)}
    (state, *_) = o.adafactor(0.1).init(params)
    assert sum(leaf.nbytes for leaf in sw.tree.leaves((state.v_row, state.v_col))) == (1024 + 8192) * 4
    experts = o.gshard_adafactor().init({"w": np.zeros((3, 128, 256), np.float32)})[0]
    assert (experts.v_row["w"].shape, experts.v_col["w"].shape) == ((3, 128), (3, 256))


def test_experts_of_other_devices_are_not_mixed() -> None:
    w = sw.device_put(np.ones((8, 4, 6), np.float32), sw.NamedSharding(MESH, P(("x", "y"))))
    rms = o.scale_by_factored_rms(min_dim_size_to_factor=1, factored_dims="last")
    step = sw.jit(lambda g, w: rms.update(g, rms.init(w), w), mesh=MESH).lower(w, w).compile()
    assert step.collectives().rows == ()


# ---- narrow weights -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sgd", "adam", "adafactor"])
def test_weights_of_bfloat16_are_the_rounded_masters(name: str) -> None:
    inner = getattr(o, name)(1e-3)
    optimizer = o.with_float32_masters(inner)
    params = {"w": RNG.normal(size=(5, 3)).astype(sw.bfloat16)}
    master = {"w": params["w"].astype(np.float32)}
    state, own = optimizer.init(params), inner.init(master)
    assert {leaf.dtype.name for leaf in sw.tree.leaves(state)} == {"float32"} | ({"int32"} if name != "sgd" else set())

    @sw.jit(mesh=MESH)
    def step(params: Any, state: Any, grads: Any) -> Any:
        updates, state = optimizer.update(grads, state, params)
        return o.apply_updates(params, updates), state

    for _ in range(20):
        grads = {"w": RNG.normal(size=(5, 3)).astype(sw.bfloat16)}
        params, state = step(params, state, grads)
        wide, own = inner.update({"w": grads["w"].astype(np.float32)}, own, master)
        master = o.apply_updates(master, wide)
    np.testing.assert_allclose(state.master["w"], master["w"], rtol=1e-5)
    assert np.asarray(params["w"]).dtype == sw.bfloat16
    np.testing.assert_array_equal(np.asarray(params["w"]), np.asarray(state.master["w"]).astype(sw.bfloat16))


def test_narrow_moments_have_their_own_dtype() -> None:
    params = {"w": np.ones((3, 2), np.float32)}
    for optimizer in (o.adam(0.1, mu_dtype=sw.bfloat16), o.sgd(0.1, 0.9, accumulator_dtype=sw.bfloat16)):
        updates, state = optimizer.update(params, optimizer.init(params), params)
        assert updates["w"].dtype == np.float32
        assert state[0][-2 if len(state[0]) > 1 else 0]["w"].dtype == sw.bfloat16


# ---- parts ----------------------------------------------------------------------------------------------------------


def test_accumulation_steps_every_third_call() -> None:
    every_third = o.MultiSteps(o.sgd(1.0), 3)
    grads = [np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([5.0, 0.0])]

    def run(params: Any, grads: Any) -> Any:
        def step(state: Any, grad: Any) -> Any:
            updates, state = every_third.update(grad, state, params)
            return state, (updates, every_third.has_updated(state))

        return sw.scan(step, every_third.init(params), grads)[1]

    for call in (run, sw.jit(run, mesh=MESH)):
        updates, has_updated = call(np.zeros(2), np.stack(grads * 2))
        np.testing.assert_allclose(updates, [[0, 0], [0, 0], [-3, -2]] * 2, atol=1e-15)
        np.testing.assert_array_equal(has_updated, [False, False, True] * 2)


def test_masks_and_labels_may_stand_for_subtrees() -> None:
    grads = {"layer": {"b": np.ones(2), "w": np.ones((2, 3))}, "head": np.ones(1), "none": None}
    part = o.masked(o.trace(0.5), {"layer": True, "head": False, "none": False})
    updates, state = part.update(grads, part.init(grads))
    assert len(sw.tree.leaves(state)) == 2
    assert sw.tree.structure(updates) == sw.tree.structure(grads)
    frozen = o.multi_transform({1: o.sgd(2.0), 2: o.set_to_zero()}, lambda tree: {"layer": 1, "head": 2, "none": 2})
    updates, _ = frozen.update(grads, frozen.init(grads))
    assert (updates["layer"]["b"].tolist(), updates["head"].tolist(), updates["none"]) == ([-2.0, -2.0], [0.0], None)


def test_a_part_written_by_hand_joins_a_chain_and_takes_what_it_names() -> None:
    def update(updates: Any, state: Any, params: Any = None, *, factor: Any) -> Any:
        return sw.tree.map(lambda g: factor * g, updates), state

    by_factor = o.GradientTransformation(lambda params: (), update)
    both = o.chain(by_factor, o.sgd(1.0))
    updates, _ = both.update(np.ones(1), both.init(np.ones(1)), factor=3.0)
    assert updates.tolist() == [-3.0]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: o.adam("1e-3"), TypeError, "learning_rate must be a number or a schedule, got '1e-3'"),
        (lambda: o.clip_by_global_norm("1"), TypeError, "clip_by_global_norm: max_norm must be a number, got '1'"),
        (lambda: o.clip(None), TypeError, "clip: max_delta must be a number, got None"),
        (lambda: o.clip_by_block_rms(b"1"), TypeError, "clip_by_block_rms: threshold must be a number, got b'1'"),
        (lambda: o.scale("2"), TypeError, "scale: step_size must be a number, got '2'"),
        (lambda: o.MultiSteps(o.sgd(1.0), 0), ValueError, "every_k_schedule must be an integer of at least 1, or a"),
        (lambda: o.MultiSteps(o.sgd(1.0), 1.5), ValueError, "every_k_schedule must be an integer of at least 1, or a"),
    ],
)
def test_wrong_hyperparameters_are_named(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_a_learning_rate_may_be_traced() -> None:
    step = sw.jit(lambda rate, g: o.sgd(rate).update(g, o.sgd(rate).init(g))[0], mesh=MESH)
    np.testing.assert_array_equal(step(np.float64(0.5), np.ones(3, np.float32)), np.full(3, -0.5, np.float32))


def test_counters_do_not_wrap() -> None:
    last = np.int32(2**31 - 1)
    assert int(o.safe_increment(last)) == int(sw.jit(o.safe_increment, mesh=MESH)(last)) == last


# ---- layouts --------------------------------------------------------------------------------------------------------


def test_a_norm_sends_one_number() -> None:
    w = {"a": np.ones((13, 7), np.float32), "b": np.ones(17, np.float32)}
    specs = {"a": P("x", "y"), "b": P(("x", "y"))}
    clipped = o.clip_by_global_norm(1.0)
    step = sw.jit(lambda g: clipped.update(g, o.EmptyState())[0], mesh=MESH, in_shardings=(specs,), out_shardings=specs)
    program = step.lower(w).compile()
    assert {row.shape for row in program.collectives().rows} == {()}
    expected = clipped.update(w, o.EmptyState())[0]
    results = program.run(w, poison=True)
    np.testing.assert_allclose(np.asarray(results["a"]), expected["a"], rtol=1e-6)
    np.testing.assert_allclose(np.asarray(results["b"]), expected["b"], rtol=1e-6)


def test_elementwise_updates_send_nothing_and_have_the_bits_of_one_device() -> None:
    specs = {"bias": P("y"), "experts": P("x", None, "y")}
    optimizer = o.chain(o.adamw(0.1), o.trace(0.9))

    def step(params: Any, grads: Any) -> Any:
        return optimizer.update(grads, optimizer.init(params), params)

    program = sw.jit(step, mesh=MESH, in_shardings=(specs, specs)).lower(EXPERTS, STEPS[0]).compile()
    assert program.collectives().rows == ()
    whole = sw.jit(step, mesh=sw.Mesh({"one": 1}))(EXPERTS, STEPS[0])
    rows = zip(sw.tree.leaves(program(EXPERTS, STEPS[0])), sw.tree.leaves(whole))
    assert [np.array_equal(np.asarray(a), np.asarray(b)) for a, b in rows] == [True] * len(sw.tree.leaves(whole))


def test_optax_runs_in_a_program_through_from_jax() -> None:
    params = {name: leaf.astype(np.float32) for name, leaf in EXPERTS.items()}
    grads = {name: leaf.astype(np.float32) for name, leaf in STEPS[0].items()}

    def step(library: Any) -> Any:
        def run(params: Any, grads: Any) -> Any:
            optimizer = library.adam(0.1)
            updates, _ = optimizer.update(grads, optimizer.init(params), params)
            return library.apply_updates(params, updates)

        return run

    theirs = sw.jit(sw.from_jax(step(optax)), mesh=MESH)(params, grads)
    ours = sw.jit(step(o), mesh=MESH)(params, grads)
    rows = zip(sw.tree.leaves(theirs), sw.tree.leaves(ours))
    # Adam divides by roots of tiny corrections: XLA's are rounded otherwise.
    assert max(np.max(np.abs(np.asarray(a) - np.asarray(b))) for a, b in rows) <= 8 * np.finfo(np.float32).eps
