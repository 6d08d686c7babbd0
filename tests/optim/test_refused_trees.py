# SPDX-License-Identifier: Apache-2.0
"""Each transformation refuses trees and states that would destroy weights, and names the leaf."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P, optim as o

MESH = sw.Mesh({"x": 2, "y": 4})
W = {"w": np.linspace(-1, 1, 12).reshape(4, 3), "b": np.ones(3)}
PARTS: dict[str, Callable[[], Any]] = {
    "adafactor": lambda: o.adafactor(0.1, min_dim_size_to_factor=2),
    "adagrad": lambda: o.adagrad(0.1),
    "adam": lambda: o.adam(0.1),
    "adamax": lambda: o.adamax(0.1),
    "adamaxw": lambda: o.adamaxw(0.1),
    "adamw": lambda: o.adamw(0.1),
    "add_decayed_weights": lambda: o.add_decayed_weights(0.1),
    "apply_if_finite": lambda: o.apply_if_finite(o.adam(0.1), 2),
    "chain": lambda: o.chain(o.trace(0.9), o.scale(2.0)),
    "clip": lambda: o.clip(0.5),
    "clip_by_block_rms": lambda: o.clip_by_block_rms(0.5),
    "clip_by_global_norm": lambda: o.clip_by_global_norm(0.5),
    "ema": lambda: o.ema(0.9),
    "gshard_adafactor": lambda: o.gshard_adafactor(),
    "identity": lambda: o.identity(),
    "lamb": lambda: o.lamb(0.1),
    "lars": lambda: o.lars(0.1),
    "lion": lambda: o.lion(0.1),
    "masked": lambda: o.masked(o.scale(0.5), True),
    "multi_transform": lambda: o.multi_transform({"a": o.sgd(0.1)}, "a"),
    "nadam": lambda: o.nadam(0.1),
    "nadamw": lambda: o.nadamw(0.1),
    "radam": lambda: o.radam(0.1),
    "rmsprop": lambda: o.rmsprop(0.1, momentum=0.9),
    "scale": lambda: o.scale(0.5),
    "scale_by_adam": lambda: o.scale_by_adam(),
    "scale_by_adamax": lambda: o.scale_by_adamax(),
    "scale_by_factored_rms": lambda: o.scale_by_factored_rms(min_dim_size_to_factor=2),
    "scale_by_learning_rate": lambda: o.scale_by_learning_rate(0.1),
    "scale_by_lion": lambda: o.scale_by_lion(),
    "scale_by_param_block_norm": lambda: o.scale_by_param_block_norm(),
    "scale_by_param_block_rms": lambda: o.scale_by_param_block_rms(),
    "scale_by_radam": lambda: o.scale_by_radam(),
    "scale_by_rms": lambda: o.scale_by_rms(),
    "scale_by_rss": lambda: o.scale_by_rss(),
    "scale_by_stddev": lambda: o.scale_by_stddev(),
    "scale_by_schedule": lambda: o.scale_by_schedule(lambda count: 0.5),
    "scale_by_sign": lambda: o.scale_by_sign(),
    "scale_by_trust_ratio": lambda: o.scale_by_trust_ratio(),
    "set_to_zero": lambda: o.set_to_zero(),
    "sgd": lambda: o.sgd(0.1, momentum=0.9),
    "stateless": lambda: o.stateless(lambda updates, params: updates),
    "trace": lambda: o.trace(0.9),
    "with_float32_masters": lambda: o.with_float32_masters(o.adam(0.1)),
    "MultiSteps": lambda: o.MultiSteps(o.adam(0.1), 2),
}
ANY_LEAF = ("identity", "set_to_zero", "stateless")  # which compute nothing


def error_of(kind: type[Exception], call: Callable[[], Any]) -> str:
    """The message, without the place in this file."""
    with pytest.raises(kind) as raised:
        call()
    return re.sub(r" \(at .*", "", str(raised.value))


def test_all_transformations_are_here() -> None:
    made = {
        name
        for name in o.__all__
        if inspect.isfunction(getattr(o, name))
        and inspect.signature(getattr(o, name)).return_annotation == "GradientTransformation"
    }
    assert made | {"MultiSteps"} == {*PARTS, "lookahead"}  # which takes a pair of trees: test_wrappers.py


# ---- states ---------------------------------------------------------------------------------------------------------


def loaded_plain(tree: Any) -> Any:
    """A state as `sw.load` without `like` gives it: dicts of fields."""
    if isinstance(tree, tuple):
        fields = getattr(type(tree), "_fields", None)
        return tuple(map(loaded_plain, tree)) if fields is None else dict(zip(fields, map(loaded_plain, tree)))
    return {name: loaded_plain(part) for name, part in tree.items()} if isinstance(tree, dict) else tree


STATES: dict[str, Callable[[Any], Any]] = {
    "none": lambda own: None,
    "loaded": loaded_plain,
    "a number": lambda own: np.float32(3),
    "of trace": lambda own: o.trace(0.5).init(W),
    "of scale_by_adam": lambda own: o.scale_by_adam().init(W),
    "of adamw": lambda own: o.adamw(0.1).init(W),
    "of masters": lambda own: o.with_float32_masters(o.sgd(0.1)).init(W),
}


@pytest.mark.parametrize("wrong", STATES)
@pytest.mark.parametrize("name", PARTS)
def test_the_state_of_another_transformation_is_refused(name: str, wrong: str) -> None:
    part = PARTS[name]()
    own = part.init(W)
    state = STATES[wrong](own)
    got = ""
    try:
        part.update(W, state, W)
    except (TypeError, ValueError) as error:
        got = str(error)
    assert (not got) == (sw.tree.structure(state) == sw.tree.structure(own))  # its own, or one of equal kind
    rule, way_out = "the state must be ", "call init(params), or load it with like=init(params)"
    assert (rule in got, way_out in got) == (bool(got), bool(got))
    has_parts = type(state) in (tuple, type(own))  # of which one may refuse its own
    assert not got or has_parts or got.startswith(f"optim.{name}: ")


def test_states_are_shown_by_their_kind() -> None:
    def got(state: Any) -> str:
        return error_of(TypeError, lambda: o.scale_by_adam().update(W, state)).partition(", got ")[2].partition(";")[0]

    assert got(None) == "None"
    assert got({"count": 1, "mu": W}) == "a dict with the keys 'count', 'mu'"
    assert got(o.trace(0.5).init(W)) == "the named tuple TraceState"
    assert got(o.adamw(0.1).init(W)) == "a tuple of 3"
    error = error_of(ValueError, lambda: o.adam(0.1).update(W, o.adamw(0.1).init(W), W))
    assert error.startswith("optim.adam: the state must be one of this chain, got a state of 3 parts for 2 ")


def test_a_state_of_optax_fits() -> None:
    """The names of classes and fields are equal, so a checkpoint of one library fits the other."""
    import optax

    state = optax.ScaleByAdamState(np.int32(0), *[{"w": np.zeros(2)}] * 2)
    assert o.scale_by_adam().update({"w": np.ones(2)}, state)[1].count == 1
    labels = o.multi_transform({"a": o.sgd(0.1), "b": o.adam(0.1)}, {"w": "a", "b": "b"})
    with pytest.raises(TypeError, match=r"optim\.multi_transform: the state must be the PartitionState of 'a', 'b'"):
        labels.update(W, o.PartitionState({"a": None}))


# ---- dtypes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.bool_])
@pytest.mark.parametrize("name", [name for name in PARTS if name not in ANY_LEAF])
def test_leaves_of_integers_are_refused(name: str, dtype: Any) -> None:
    """A learning rate of 0.1 would be 0 in their dtype, and a moment would have no fractions."""
    tree = {"b": np.ones(3), "n": np.array([3, 4]).astype(dtype)}
    part = PARTS[name]()
    got = error_of(sw.DTypeError, lambda: part.update(tree, part.init(tree), tree))
    rule = "leaves must be floats or complex numbers"
    way_out = "give it set_to_zero with multi_transform"
    assert got.partition(": ")[2] == f"{rule}, got {np.dtype(dtype)}[2] for tree['n']; {way_out}"


def test_integers_stay_behind_set_to_zero() -> None:
    tree = {"b": np.ones(3), "n": np.array([3, 4])}
    part = o.multi_transform({"train": o.adam(0.1), "keep": o.set_to_zero()}, {"b": "train", "n": "keep"})
    updates, _ = part.update(tree, part.init(tree), tree)
    new = o.apply_updates(tree, updates)
    assert (new["n"].tolist(), new["n"].dtype) == ([3, 4], np.int64)
    assert new["b"].max() < 1


@pytest.mark.parametrize(
    ("param", "update", "expected"),
    [
        (np.array([3, 4]), np.full(2, -0.1), "the fraction of its update, got float64[2] for a parameter of int64"),
        (np.ones(2), np.full(2, 1j), "the imaginary part of its update, got complex128[2] for a parameter of float64"),
        (np.ones(2, np.int8), np.full(2, 1j), "the imaginary part of its update, got complex128[2] for a parameter of"),
    ],
)
def test_updates_lose_no_part_of_a_number(param: Any, update: Any, expected: str) -> None:
    for call in (o.apply_updates, sw.jit(o.apply_updates, mesh=MESH)):
        got = error_of(sw.DTypeError, lambda call=call: call({"a": {"p": param}}, {"a": {"p": update}}))  # type: ignore[misc]
        assert got.startswith(f"optim.apply_updates: a parameter must hold {expected}")
        assert "tree['a']['p']" in got
    assert o.apply_updates(np.array([3, 4]), np.array([1, -1])).tolist() == [4, 3]


def test_complex_leaves_need_complex_dtypes_and_no_order() -> None:
    z = {"b": np.ones(2), "z": np.full(2, 3 + 4j, np.complex64)}
    for make in (
        lambda: o.trace(0.9, accumulator_dtype=np.float32),
        lambda: o.ema(0.9, accumulator_dtype=sw.bfloat16),
        lambda: o.scale_by_adam(mu_dtype=np.float32),
        lambda: o.scale_by_lion(mu_dtype=np.float64),
        lambda: o.adafactor(0.1, momentum=0.9),
    ):
        got = error_of(sw.DTypeError, lambda make=make: make().init(z))  # type: ignore[misc]
        assert "a complex leaf needs a complex dtype, got " in got
        assert got.endswith("for complex64[2] for tree['z']; pass complex64, or None for that of each leaf")
    got = error_of(sw.DTypeError, lambda: o.clip(1.0).update(z, ()))
    assert got == (
        "optim.clip: leaves must be real, got complex64[2] for tree['z']; use clip_by_global_norm or clip_by_block_rms"
    )


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_gradients_are_accumulated_whole(dtype: Any) -> None:
    every_second = o.MultiSteps(o.sgd(1.0), 2)
    grads = [np.array([1 + 2j, 3j], dtype), np.array([3 - 1j, 1], dtype)]
    state = every_second.init(grads[0])
    for grad in grads:
        updates, state = every_second.update(grad, state)
    assert (updates.dtype, updates.tolist()) == (dtype, [-2 - 0.5j, -0.5 - 1.5j])
    assert state.acc_grads.dtype == np.complex64


# ---- shapes ---------------------------------------------------------------------------------------------------------

TWO_TREES = ("adafactor", "adagrad", "adam", "adamw", "add_decayed_weights", "ema", "gshard_adafactor", "lamb", "lars")
TWO_TREES += ("lion", "nadam", "nadamw", "rmsprop", "scale_by_adam", "scale_by_factored_rms", "scale_by_lion", "sgd")
TWO_TREES += ("scale_by_param_block_norm", "scale_by_param_block_rms", "scale_by_rms", "scale_by_rss", "trace", "chain")
TWO_TREES += ("scale_by_trust_ratio", "with_float32_masters", "MultiSteps", "adamax", "radam", "apply_if_finite")
TWO_TREES += ("adamaxw", "scale_by_stddev")


@pytest.mark.parametrize("shape", [(4, 3), (), (1,)])
@pytest.mark.parametrize("name", TWO_TREES)
def test_updates_of_another_shape_are_refused(name: str, shape: tuple[int, ...]) -> None:
    """They would be broadcast, and the parameters would take their shape."""
    params = {"a": np.ones(2), "b": {"c": np.ones(3)}}
    part = PARTS[name]()
    grads = {"a": np.ones(2), "b": {"c": np.ones(shape)}}
    got = error_of(sw.ShapeError, lambda: part.update(grads, part.init(params), params))
    assert "a leaf must have the same shape in all trees, got [" in got
    assert got.endswith("for tree['b']['c']")


def test_a_state_of_other_shapes_is_refused() -> None:
    """Also the means of rows, which have other shapes than the parameters."""
    for name in ("adam", "trace", "adafactor", "gshard_adafactor", "adagrad"):
        part, params = PARTS[name](), {"w": np.ones((4, 3))}
        for other in ((4, 4), (3, 3), (3,), (2, 4, 3)):
            state = part.init({"w": np.ones(other)})
            got = error_of(sw.ShapeError, lambda p=part, s=state, w=params: p.update(w, s, w))  # type: ignore[misc]
            assert got.endswith("for tree['w']")


def test_updates_and_averages_are_not_broadcast() -> None:
    for call in (o.apply_updates, sw.jit(o.apply_updates, mesh=MESH), lambda a, b: o.incremental_update(a, b, 0.5)):
        for one, other in (((3,), (4, 3)), ((4, 3), (3,)), ((3,), ())):
            got = error_of(sw.ShapeError, lambda c=call, s=one, t=other: c({"a": np.ones(s)}, {"a": np.ones(t)}))  # type: ignore[misc]
            assert got.endswith(f"got {[*one]} and {[*other]} for tree['a']")


# ---- float32 masters ------------------------------------------------------------------------------------------------


def masters_of(kind: str, value: float) -> Any:
    w = {"b": np.full(3, value, sw.bfloat16), "w": np.full((4, 6), value, sw.bfloat16)}
    if kind == "mesh":
        return {
            name: sw.device_put(leaf, sw.NamedSharding(MESH, P("x"[: leaf.ndim - 1] or None)))
            for name, leaf in w.items()
        }
    return w if kind == "bfloat16" else {name: leaf.astype(np.float32) for name, leaf in w.items()}


@pytest.mark.parametrize("kind", ["bfloat16", "float32", "mesh"])
@pytest.mark.parametrize("changed", ["b", "w"])
def test_weights_that_were_loaded_after_init_are_not_erased(kind: str, changed: str) -> None:
    optimizer = o.with_float32_masters(o.sgd(0.5))
    params = masters_of(kind, 0.0)
    state = optimizer.init(params)
    loaded = {**params, changed: masters_of(kind, 3.0)[changed]}
    got = error_of(ValueError, lambda: optimizer.update(params, state, loaded))
    assert got == (
        "optim.with_float32_masters: the weights must be the rounded float32 copies in the state, got others for "
        f"tree['{changed}']: weights that were loaded or changed after init; call init(params), or "
        "state._replace(master=init(params).master) to keep the moments"
    )
    state = state._replace(master=optimizer.init(loaded).master)
    updates, _ = optimizer.update(masters_of(kind, 1.0), state, loaded)
    new = o.apply_updates(loaded, updates)
    assert {float(np.asarray(x).max()) for x in new.values()} == {2.5, -0.5}


@pytest.mark.parametrize("dtype", [sw.bfloat16, np.float16, np.float32])
def test_no_step_of_training_is_taken_for_loaded_weights(dtype: Any) -> None:
    """Weights far apart in size, one that jumps to almost 0 in one step, and NaN."""
    rng = np.random.default_rng(3)
    optimizer = o.with_float32_masters(o.sgd(1.0))
    params = {"w": (rng.normal(size=500) * 10.0 ** rng.integers(-4, 3, 500)).astype(dtype), "b": np.ones(1, dtype)}
    state = optimizer.init(params)
    for step in range(30):
        grads = {
            name: (rng.normal(size=leaf.shape) * 10.0 ** rng.integers(-6, 2)).astype(np.float32)
            for name, leaf in params.items()
        }
        if step == 10:
            grads = {name: np.asarray(leaf) - np.float32(1e-9) for name, leaf in state.master.items()}
            grads["w"] = grads["w"] * (np.arange(500) % 2)
        if step == 20:
            grads["w"][7] = np.nan
        updates, state = optimizer.update(grads, state, params)
        params = o.apply_updates(params, updates)
    assert np.isnan(np.float32(params["w"][7]))


def test_a_traced_function_takes_the_copy() -> None:
    """It cannot compare. The page and the docstring say how to make a new copy."""
    optimizer = o.with_float32_masters(o.sgd(0.5))
    zeros, loaded = (np.full(2, value, sw.bfloat16) for value in (0.0, 3.0))

    @sw.jit(mesh=MESH)
    def step(state: Any, params: Any) -> Any:
        updates, _ = optimizer.update(np.zeros(2, sw.bfloat16), state, params)
        return o.apply_updates(params, updates)

    state = optimizer.init(zeros)
    assert np.asarray(step(state, loaded)).tolist() == [0, 0]
    assert np.asarray(step(state._replace(master=optimizer.init(loaded).master), loaded)).tolist() == [3, 3]


# ---- hyperparameters ------------------------------------------------------------------------------------------------

NO_NUMBERS = {"float64[2]": np.ones(2), "'a'": "a", "1j": 1j, "[1.0]": [1.0], "<U1[]": np.array("a")}
MAKERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "adam: eps": ("", lambda x: o.adam(0.1, eps=x)),
    "lamb: b1": ("", lambda x: o.lamb(0.1, b1=x)),
    "sgd: learning_rate": (" or a schedule", o.sgd),
    "adamw: weight_decay": (" or a schedule", lambda x: o.adamw(0.1, weight_decay=x)),
    "rmsprop: decay": ("", lambda x: o.rmsprop(0.1, decay=x)),
    "adagrad: eps": ("", lambda x: o.adagrad(0.1, eps=x)),
    "lion: b2": ("", lambda x: o.lion(0.1, b2=x)),
    "lars: eps": ("", lambda x: o.lars(0.1, eps=x)),
    "adafactor: decay_rate": ("", lambda x: o.adafactor(0.1, decay_rate=x)),
    "trace: decay": ("", o.trace),
    "ema: decay": ("", o.ema),
    "scale: step_size": ("", o.scale),
    "clip: max_delta": ("", o.clip),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("got", NO_NUMBERS)
def test_hyperparameters_are_numbers(name: str, got: str) -> None:
    also, make = MAKERS[name]
    expected = f"optim.{name} must be a number{also}, got {got}"
    assert error_of(TypeError, lambda: make(NO_NUMBERS[got])) == expected
    for number in (np.float32(0.5), np.array(0.5), np.array(1)):
        assert callable(make(number).update)


@pytest.mark.parametrize("got", [*NO_NUMBERS, "None"])
def test_results_of_schedules_are_numbers(got: str) -> None:
    value = NO_NUMBERS.get(got)
    for name, part in (
        ("adam: the result of learning_rate", o.adam(lambda count: value)),
        ("adamw: the result of weight_decay", o.adamw(0.1, weight_decay=lambda count: value)),
        ("scale_by_schedule: the result of step_size_fn", o.scale_by_schedule(lambda count: value)),
    ):
        expected = f"optim.{name} must be a number, got {got}"
        assert error_of(TypeError, lambda part=part: part.update(W, part.init(W), W)) == expected


def test_states_have_no_dtype_of_integers() -> None:
    for name, make in (
        ("adam", lambda: o.adam(0.1, mu_dtype="int32")),
        ("trace", lambda: o.trace(0, False, int)),
    ):
        got = error_of(sw.DTypeError, make)
        assert got.startswith(f"optim.{name}: the dtype of a state must be of floats or complex numbers, got int")


def test_warmup_steps_are_not_negative() -> None:
    for name, rest in (
        ("warmup_constant_schedule", ()),
        ("warmup_cosine_decay_schedule", (9,)),
        ("warmup_exponential_decay_schedule", (9, 0.5)),
    ):
        got = error_of(ValueError, lambda name=name, rest=rest: getattr(o, name)(0.0, 1.0, -3, *rest))
        assert got == f"optim.{name}: warmup_steps must not be negative, got -3"


def test_masks_are_of_bools_and_updates_are_no_none() -> None:
    got = error_of(TypeError, lambda: o.masked(o.scale(1.0), {"w": "no", "b": True}).init(W))
    assert got == "optim.masked: the leaves of a mask must be True or False, got str 'no'"
    got = error_of(sw.DTypeError, lambda: o.apply_updates(W, {"w": W["w"], "b": None}))
    assert got == "optim.apply_updates: leaves must be arrays of numbers, got None for tree['b']"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", PARTS)
def test_leaves_without_elements_give_no_warnings(name: str) -> None:
    tree = {"w": np.ones((0, 3), np.float32)}
    part = PARTS[name]()
    updates, _ = part.update(tree, part.init(tree), tree)
    assert updates["w"].shape == (0, 3)


@pytest.mark.filterwarnings("error")
def test_factored_leaves_without_elements_give_no_warnings() -> None:
    tree = {"w": np.ones((0, 3), np.float32)}
    part = o.adafactor(0.1, min_dim_size_to_factor=0)
    assert part.update(tree, part.init(tree), tree)[0]["w"].shape == (0, 3)
