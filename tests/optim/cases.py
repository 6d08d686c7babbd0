# SPDX-License-Identifier: Apache-2.0
"""Optimizers that both Optax and sw.optim make, as ``make(o)``, and the trees that they update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

STEPS = 100
SHAPES: dict[str, tuple[int, ...]] = {"cube": (3, 10, 6), "matrix": (13, 7), "one": (1,), "row": (17,), "scalar": ()}
MASK = {"cube": True, "matrix": True, "one": False, "row": False, "scalar": True}
LABELS = {name: "first" if keep else "second" for name, keep in MASK.items()}


def with_pair(o: Any, optimizer: Any) -> Any:
    """A lookahead whose state holds the pair of parameters."""

    def init(params: Any) -> Any:
        pair = o.LookaheadParams.init_synced(params)
        return pair, optimizer.init(pair)

    def update(grads: Any, state: Any, params: Any) -> Any:
        pair, inner = state
        updates, inner = optimizer.update(grads, inner, pair)
        return updates.fast, (o.apply_updates(pair, updates), inner)

    return o.GradientTransformation(init, update)


def with_infinities(o: Any, optimizer: Any) -> Any:
    """The gradient of one leaf, which is zero at first, is infinite there."""

    def inverse(updates: Any, params: Any) -> Any:
        with np.errstate(all="ignore"):
            return {**updates, "one": 1 / updates["one"]}

    return o.chain(o.stateless(inverse), optimizer)


CASES: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda o: o.sgd(0.1),
    "momentum": lambda o: o.sgd(0.1, momentum=0.9),
    "nesterov": lambda o: o.sgd(0.1, momentum=0.9, nesterov=True),
    "adam": lambda o: o.adam(0.01),
    "adam-options": lambda o: o.adam(0.01, b1=0.8, b2=0.95, eps=1e-3, eps_root=1e-3),
    "adamw": lambda o: o.adamw(0.01, weight_decay=0.1, mask=MASK),
    "nadam": lambda o: o.nadam(0.01),
    "nadamw": lambda o: o.nadamw(0.01),
    "adafactor-whole": lambda o: o.adafactor(0.01, factored=False),
    "lamb": lambda o: o.lamb(0.01, weight_decay=0.1),
    "lars": lambda o: o.lars(0.1, weight_decay=0.1, trust_coefficient=0.1),
    "lars-masks": lambda o: o.lars(0.1, 0.1, MASK, trust_ratio_mask=MASK, nesterov=True),
    "rmsprop": lambda o: o.rmsprop(0.01, momentum=0.9, initial_scale=0.1),
    "rmsprop-outside": lambda o: o.rmsprop(0.01, eps_in_sqrt=False),
    "rmsprop-centered": lambda o: o.rmsprop(0.01, initial_scale=0.1, centered=True, momentum=0.9),
    "rmsprop-corrected": lambda o: o.rmsprop(0.01, bias_correction=True),
    "rmsprop-both": lambda o: o.rmsprop(0.01, eps=0.1, centered=True, bias_correction=True),
    "adagrad": lambda o: o.adagrad(0.1),
    "lion": lambda o: o.lion(0.01),
    "clipped": lambda o: o.chain(o.clip_by_global_norm(2.0), o.adam(0.01)),
    "clipped-elements": lambda o: o.chain(o.clip(0.5), o.sgd(0.1)),
    "clipped-blocks": lambda o: o.chain(o.clip_by_block_rms(0.5), o.scale_by_param_block_norm(), o.scale(-0.01)),
    "ema": lambda o: o.chain(o.ema(0.9), o.scale_by_sign(), o.scale_by_learning_rate(0.01)),
    "scheduled": lambda o: o.sgd(o.cosine_decay_schedule(0.5, 90, 0.1)),
    "decay-scheduled": lambda o: o.chain(o.add_decayed_weights(o.cosine_decay_schedule(0.2, 70)), o.sgd(0.1)),
    "labels": lambda o: o.multi_transform({"first": o.adam(0.01), "second": o.set_to_zero()}, LABELS),
    "adafactor": lambda o: o.adafactor(0.01, min_dim_size_to_factor=4),
    "adafactor-options": lambda o: o.adafactor(0.01, 6, momentum=0.9, weight_decay_rate=0.01),
    "adamax": lambda o: o.adamax(0.01),
    "adamax-options": lambda o: o.adamax(0.01, b1=0.8, b2=0.95, eps=1e-3),
    "adamaxw": lambda o: o.adamaxw(0.01),
    "adamaxw-options": lambda o: o.adamaxw(0.01, b1=0.8, b2=0.95, eps=1e-3, weight_decay=0.1, mask=MASK),
    "radam": lambda o: o.radam(0.01),
    "radam-options": lambda o: o.radam(0.01, b1=0.8, b2=0.95, eps=1e-3, eps_root=1e-3, threshold=9.0, nesterov=True),
    "lookahead": lambda o: with_pair(o, o.lookahead(o.adam(0.01), 6, 0.5)),
    "lookahead-reset": lambda o: with_pair(o, o.lookahead(o.adam(0.01), 7, 0.3, reset_state=True)),
    "finite": lambda o: with_infinities(o, o.apply_if_finite(o.adam(0.01), 5)),
    "injected": lambda o: o.inject_hyperparams(o.adamw)(o.cosine_decay_schedule(0.5, 90, 0.1), b1=0.8, mask=MASK),
    "injected-static": lambda o: o.inject_hyperparams(o.sgd, "momentum")(0.1, momentum=0.9, nesterov=True),
    "accumulated": lambda o: o.MultiSteps(o.adam(0.01), 3).gradient_transformation(),
}

SCHEDULES: dict[str, Callable[[Any], Any]] = {
    "constant": lambda o: o.constant_schedule(0.1),
    "polynomial": lambda o: o.polynomial_schedule(1.0, 0.1, 2, 40, 5),
    "polynomial-none": lambda o: o.polynomial_schedule(1.0, 0.1, 2, 0),
    "linear": lambda o: o.linear_schedule(0.1, 1.0, 30, -3),
    "piecewise": lambda o: o.piecewise_constant_schedule(1.0, {10: 0.5, 40: 0.1}),
    "exponential": lambda o: o.exponential_decay(1.0, 10, 0.5, 3),
    "exponential-stairs": lambda o: o.exponential_decay(1.0, 10, 0.5, 0, True, 0.1),
    "exponential-rising": lambda o: o.exponential_decay(1.0, 10, 1.5, 0, False, 5.0),
    "cosine": lambda o: o.cosine_decay_schedule(1.0, 60, 0.1, 1.5),
    "interpolate": lambda o: o.piecewise_interpolate_schedule("linear", 1.0, {20: 2.0, 50: 0.25}),
    "interpolate-cosine": lambda o: o.piecewise_interpolate_schedule("cosine", 1.0, {20: 2.0, 50: 0.25}),
    "onecycle": lambda o: o.linear_onecycle_schedule(80, 1.0),
    "onecycle-cosine": lambda o: o.cosine_onecycle_schedule(80, 1.0),
    "join": lambda o: o.join_schedules([o.constant_schedule(1.0), o.linear_schedule(1.0, 0.0, 20)], [30]),
    "warmup": lambda o: o.warmup_constant_schedule(0.0, 1.0, 20),
    "warmup-cosine": lambda o: o.warmup_cosine_decay_schedule(0.0, 1.0, 20, 80, 0.1),
    "warmup-exponential": lambda o: o.warmup_exponential_decay_schedule(0.0, 1.0, 20, 10, 0.5),
    "sgdr": lambda o: o.sgdr_schedule(
        [{"init_value": 0.1, "peak_value": 1.0, "warmup_steps": 5, "decay_steps": 30, "end_value": 0.0}] * 2
    ),
}
COUNTS = np.arange(STEPS, dtype=np.int32)


def _normal(rng: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    parts = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        parts = parts + 1j * rng.normal(size=shape)
    return np.asarray(parts).astype(dtype)


def params_of(dtype: Any) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {name: _normal(rng, shape, dtype) for name, shape in SHAPES.items()}


def grads_of(dtype: Any, steps: int = STEPS) -> dict[str, np.ndarray]:
    """The gradients of all steps, stacked; those of one leaf are zero at first."""
    rng = np.random.default_rng(2)
    grads = {name: _normal(rng, (STEPS, *shape), dtype)[:steps] for name, shape in SHAPES.items()}
    grads["one"][:3] = 0
    return grads


def trained(o: Any, optimizer: Any, params: Any, grads: Any, scan: Any) -> tuple[Any, Any]:
    """Parameters and state behind the steps; and those before each step, its updates, and the state behind it."""

    def step(carry: Any, grad: Any) -> tuple[Any, Any]:
        params, state = carry
        updates, new_state = optimizer.update(grad, state, params)
        return (o.apply_updates(params, updates), new_state), (params, state, updates, new_state)

    result: tuple[Any, Any] = scan(step, (params, optimizer.init(params)), grads)
    return result


def loss_behind(o: Any, make: Any, scan: Any, total: Any) -> Callable[[Any, Any], Any]:
    """A function of a factor of the gradients and of the parameters: the loss behind four steps on its own gradient."""

    def loss(factor: Any, params: Any) -> Any:
        optimizer = make(o)

        def step(carry: Any, _: Any) -> tuple[Any, None]:
            params, state = carry
            grads = {name: factor * (leaf**3 + leaf) for name, leaf in params.items()}
            updates, state = optimizer.update(grads, state, params)
            return (o.apply_updates(params, updates), state), None

        (params, _), _ = scan(step, (params, optimizer.init(params)), None, length=4)
        return total([(leaf**2).sum() for leaf in params.values()])

    return loss


GRADIENTS = ("momentum", "adam-options", "lamb", "lars", "adafactor", "clipped-elements", "scheduled")
STEPWISE = ("sgd", "momentum", "nesterov", "adam", "adamw", "nadam", "adafactor", "lamb", "lars", "rmsprop", "adagrad")
STEPWISE += ("adamax", "lookahead", "lion", "clipped", "clipped-blocks", "scheduled", "accumulated")
REAL = ("clipped-elements", "adafactor-options", "accumulated")  # Optax has no numbers for complex leaves
REAL += ("injected", "injected-static")  # and makes hyperparameters complex
COMPLEX = tuple(name for name in CASES if name not in REAL)
COMPLEX_STEPS = ("momentum", "adam", "nadam", "adafactor", "lamb", "lars", "rmsprop", "adagrad", "lion", "clipped")
NARROW = ("momentum", "adam", "lamb", "adafactor", "clipped")  # also in bfloat16
ONE_STEP = 4  # the first steps, each alone
