# SPDX-License-Identifier: Apache-2.0
"""Wrong calls of the functions of sw.optim, as rows of test_called_names.py."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import shardwise as sw

o: Any = sw.optim
X = {"a": np.ones(2)}
OTHER = {"b": np.ones(2)}
NEED_PARAMS = ("scale_by_param_block_norm", "scale_by_param_block_rms", "scale_by_trust_ratio", "scale_by_factored_rms")
TAKE_TREES = ("ema", "scale_by_adam", "scale_by_factored_rms", "scale_by_lion", "scale_by_rms", "scale_by_rss")
TAKE_TREES += ("scale_by_adamax", "scale_by_radam", "scale_by_stddev")

WORDS = np.array(["a"])
WRONG: dict[str, Any] = {"none": None, "text": "word", "list": [1], "dict": {"a": 1}}
NUMBERS = ("Any", "int", "float", "ScalarOrSchedule")
MAY_BE_NONE = ("learning_rate", "clipping_threshold")
NO_NUMBERS = ("mask", "weight_decay_mask", "trust_ratio_mask", "mu_dtype", "accumulator_dtype", "dtype_momentum")
SCALES = "boundaries_and_scales"
SCHEDULES: dict[str, dict[str, Any]] = {
    "constant_schedule": {"value": 1.0},
    "polynomial_schedule": {"init_value": 1.0, "end_value": 0.0, "power": 2, "transition_steps": 9},
    "linear_schedule": {"init_value": 1.0, "end_value": 0.0, "transition_steps": 9},
    "piecewise_constant_schedule": {"init_value": 1.0, SCALES: {3: 0.5}},
    "piecewise_interpolate_schedule": {"interpolate_type": "linear", "init_value": 1.0, SCALES: {3: 0.5}},
    "exponential_decay": {"init_value": 1.0, "transition_steps": 9, "decay_rate": 0.5},
    "cosine_decay_schedule": {"init_value": 1.0, "decay_steps": 9},
    "rsqrt_decay_schedule": {"init_value": 1.0},
    "linear_onecycle_schedule": {"transition_steps": 9, "peak_value": 1.0},
    "cosine_onecycle_schedule": {"transition_steps": 9, "peak_value": 1.0},
    "join_schedules": {"schedules": [o.constant_schedule(1.0)], "boundaries": []},
    "warmup_constant_schedule": {"init_value": 0.0, "peak_value": 1.0, "warmup_steps": 3},
    "warmup_cosine_decay_schedule": {"init_value": 0.0, "peak_value": 1.0, "warmup_steps": 3, "decay_steps": 9},
    "warmup_exponential_decay_schedule": {
        "init_value": 0.0, "peak_value": 1.0, "warmup_steps": 3, "transition_steps": 9, "decay_rate": 0.5,
    },
    "sgdr_schedule": {"cosine_kwargs": [{"init_value": 0.0, "peak_value": 1.0, "warmup_steps": 1, "decay_steps": 3}]},
}  # fmt: skip
OPTIMIZERS = (
    "adafactor",
    "adagrad",
    "adam",
    "adamax",
    "adamaxw",
    "adamw",
    "lamb",
    "lars",
    "lion",
    "nadam",
    "nadamw",
    "radam",
)
OPTIMIZERS += ("rmsprop", "sgd")
ARGUMENTS: dict[str, dict[str, Any]] = {**{name: {"learning_rate": 0.1} for name in OPTIMIZERS}, **SCHEDULES}
ARGUMENTS |= {"scale_by_adamax": {}, "scale_by_radam": {}, "scale_by_rms": {}, "scale_by_stddev": {}}
ARGUMENTS |= {"gshard_adafactor": {}, "scale_by_factored_rms": {}, "scale_by_learning_rate": {"learning_rate": 0.1}}


def calls_of_optim() -> list[tuple[str, str, Callable[[], Any]]]:
    """Name of the function, fault, and call."""
    rows: list[tuple[str, str, Callable[[], Any]]] = []

    def add(name: str, fault: str, call: Callable[[], Any]) -> None:
        rows.append((f"optim.{name}", fault, call))

    for name in NEED_PARAMS:
        part = getattr(o, name)()
        add(name, "params", lambda part=part: part.update(X, part.init(X)))
    for name in TAKE_TREES:
        part = getattr(o, name)(*((0.9,) if name == "ema" else ()))
        add(name, "tree", lambda part=part: part.update(OTHER, part.init(X), OTHER))
    add("trace", "tree", lambda: o.trace(0.9).update(OTHER, o.trace(0.9).init(X)))
    add("trace", "dtype", lambda: o.trace(0.9, accumulator_dtype="text"))
    add("ema", "dtype", lambda: o.ema(0.9, accumulator_dtype="text"))
    add("scale_by_adam", "dtype", lambda: o.scale_by_adam(mu_dtype="text"))
    add("scale_by_lion", "dtype", lambda: o.scale_by_lion(mu_dtype="text"))
    add("add_decayed_weights", "params", lambda: o.add_decayed_weights(0.1).update(X, o.EmptyState()))
    add("add_decayed_weights", "tree", lambda: o.add_decayed_weights(0.1).update(X, o.EmptyState(), OTHER))
    add("apply_updates", "tree", lambda: o.apply_updates(X, OTHER))
    add("incremental_update", "tree", lambda: o.incremental_update(X, OTHER, 0.5))
    for name in ("adam", "lamb", "rmsprop", "sgd", "nadam", "nadamw", "adagrad", "lion", "adamw", "lars"):
        part = getattr(o, name)(0.1)
        add(name, "state", lambda part=part: part.update(X, None, X))
    for name in TAKE_TREES:
        part = getattr(o, name)(*((0.9,) if name == "ema" else ()))
        add(name, "state", lambda part=part: part.update(X, None, X))
        add(name, "integers", lambda part=part: part.update({"a": np.arange(2)}, part.init(X), X))
        add(name, "shape", lambda part=part: part.update({"a": np.ones((3, 2))}, part.init(X), X))
    add("clip", "complex", lambda: o.clip(1.0).update({"a": np.ones(2, np.complex64)}, ()))
    add("identity", "state", lambda: o.identity().update(X, None))
    add("masked", "state", lambda: o.masked(o.identity(), True).update(X, None))
    add("multi_transform", "state", lambda: o.multi_transform({"a": o.identity()}, "a").update(X, None))
    add("MultiSteps", "state", lambda: o.MultiSteps(o.sgd(0.1), 2).update(X, None))
    add("with_float32_masters", "state", lambda: _masters().update(X, None, X))
    add("with_float32_masters", "weights", lambda: _masters().update(X, _masters().init({"a": np.zeros(2)}), X))
    add("apply_updates", "shape", lambda: o.apply_updates(X, {"a": np.ones((3, 2))}))
    add("apply_updates", "dtype", lambda: o.apply_updates({"a": np.arange(2)}, X))
    add("incremental_update", "shape", lambda: o.incremental_update(X, {"a": np.ones((3, 2))}, 0.5))
    add("stateless", "type", lambda: o.stateless(3))
    add("chain", "type", lambda: o.chain(3))
    add("chain", "state", lambda: o.chain(o.identity()).update(X, ()))
    add("masked", "type", lambda: o.masked(3, True))
    add("masked", "tree", lambda: o.masked(o.identity(), {"b": True}).init(X))
    add("multi_transform", "type", lambda: o.multi_transform({"a": 3}, "a"))
    add("multi_transform", "label", lambda: o.multi_transform({"a": o.identity()}, {"a": "b"}).init(X))
    add("MultiSteps", "type", lambda: o.MultiSteps(3, 2))
    add("with_float32_masters", "type", lambda: o.with_float32_masters(3))
    add("with_float32_masters", "params", lambda: _masters().update(X, _masters().init(X)))
    add("scale_by_factored_rms", "dims", lambda: o.scale_by_factored_rms(factored_dims="first"))
    add("gshard_adafactor", "decay", lambda: o.gshard_adafactor(decay="linear"))
    add("piecewise_constant_schedule", "scale", lambda: o.piecewise_constant_schedule(1.0, {3: -1.0}))
    add("piecewise_interpolate_schedule", "scale", lambda: o.piecewise_interpolate_schedule("linear", 1.0, {3: -1.0}))
    add("piecewise_interpolate_schedule", "type", lambda: o.piecewise_interpolate_schedule("cubic", 1.0, {}))
    add("cosine_decay_schedule", "steps", lambda: o.cosine_decay_schedule(1.0, 0))
    add("rsqrt_decay_schedule", "steps", lambda: o.rsqrt_decay_schedule(1.0, 0))
    add("warmup_cosine_decay_schedule", "steps", lambda: o.warmup_cosine_decay_schedule(0.0, 1.0, 5, 5))
    add("linear_onecycle_schedule", "steps", lambda: o.linear_onecycle_schedule(0, 1.0))
    add("cosine_onecycle_schedule", "steps", lambda: o.cosine_onecycle_schedule(0, 1.0))
    add("join_schedules", "count", lambda: o.join_schedules([o.constant_schedule(1.0)], [3]))
    return [*rows, *_of_other_types(), *_of_wrappers()]


def _of_other_types() -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Each hyperparameter as a value of another type, where it is used: when the optimizer is made, or later."""
    for name, good in ARGUMENTS.items():
        make = getattr(o, name)
        for parameter in list(inspect.signature(make).parameters.values()):
            if parameter.annotation not in NUMBERS or parameter.name in NO_NUMBERS:
                continue
            for fault, wrong in WRONG.items():
                may_be = wrong is None and (parameter.default is None or parameter.name in MAY_BE_NONE)
                if not may_be:
                    arguments = {**good, parameter.name: wrong}
                    yield f"optim.{name}", f"{parameter.name}-{fault}", partial(_used, make, arguments)
    for name, good in SCHEDULES.items():
        for fault, wrong in WRONG.items():
            yield f"optim.{name}", f"step-{fault}", lambda n=name, g=good, w=wrong: getattr(o, n)(**g)(w)
    for fault, wrong in WRONG.items():
        for name in ("piecewise_constant_schedule", "piecewise_interpolate_schedule"):
            if not (wrong is None or isinstance(wrong, dict)):
                arguments = {**SCHEDULES[name], SCALES: wrong}
                yield f"optim.{name}", f"scales-{fault}", partial(_used, getattr(o, name), arguments)
        yield "optim.join_schedules", f"schedules-{fault}", partial(o.join_schedules, wrong, [3])
        yield "optim.sgdr_schedule", f"parts-{fault}", partial(o.sgdr_schedule, wrong)
        yield "optim.multi_transform", f"transforms-{fault}", partial(o.multi_transform, wrong, "a")
        for name in ("pow_decay_rate", "adam_decay_rate", "capped_decay_rate"):
            yield f"optim.{name}", f"count-{fault}", partial(getattr(o, name), wrong)
            yield f"optim.{name}", f"rate-{fault}", partial(getattr(o, name), 3, wrong)
    yield "optim.global_norm", "leaf", partial(o.global_norm, {"a": WORDS})
    yield "optim.safe_increment", "count", partial(o.safe_increment, None)
    yield "optim.sgdr_schedule", "keys", partial(o.sgdr_schedule, [{"decay_steps": 3}])
    yield "optim.sgdr_schedule", "empty", partial(o.sgdr_schedule, [])
    yield "optim.join_schedules", "boundary", partial(o.join_schedules, [o.constant_schedule(1.0)] * 2, ["a"])
    yield "optim.multi_transform", "labels-none", lambda: o.multi_transform({"a": o.identity()}, None).init(X)
    yield "optim.multi_transform", "labels-array", lambda: o.multi_transform({"a": o.identity()}, X).init(X)
    yield "optim.adamw", "mask", lambda: o.adamw(0.1, mask="a").init(X)
    yield "optim.add_decayed_weights", "mask", lambda: o.add_decayed_weights(0.1, mask={"b": True}).init(X)
    yield "optim.scale_by_factored_rms", "function", lambda: o.scale_by_factored_rms(decay_rate_fn=3)
    yield "optim.MultiSteps", "dtype", lambda: o.MultiSteps(o.sgd(0.1), 2, accumulator_dtype="word")
    yield "optim.clip_by_global_norm", "leaf", lambda: o.clip_by_global_norm(1.0).update({"a": WORDS}, ())
    yield "optim.with_float32_masters", "updates", lambda: _masters().update(None, _masters().init(X), X)
    yield "optim.with_float32_masters", "parameters", lambda: _masters().update(X, _masters().init(X), 1.5)


def _of_wrappers() -> Iterator[tuple[str, str, Callable[[], Any]]]:
    pair = o.LookaheadParams.init_synced(X)
    slow, careful, injected = (
        o.lookahead(o.sgd(0.1), 2, 0.5), o.apply_if_finite(o.sgd(0.1), 2), o.inject_hyperparams(o.sgd)(0.1),
    )  # fmt: skip
    for fault, wrong in WRONG.items():
        yield "optim.lookahead", f"optimizer-{fault}", partial(o.lookahead, wrong, 2, 0.5)
        yield "optim.lookahead", f"period-{fault}", partial(o.lookahead, o.sgd(0.1), wrong, 0.5)
        yield "optim.lookahead", f"step-{fault}", partial(o.lookahead, o.sgd(0.1), 2, wrong)
        yield "optim.lookahead", f"init-{fault}", partial(slow.init, wrong)
        yield "optim.lookahead", f"state-{fault}", partial(slow.update, X, wrong, pair)
        yield "optim.lookahead", f"params-{fault}", partial(slow.update, X, slow.init(pair), wrong)
        yield "optim.apply_if_finite", f"optimizer-{fault}", partial(o.apply_if_finite, wrong, 2)
        yield "optim.apply_if_finite", f"errors-{fault}", partial(o.apply_if_finite, o.sgd(0.1), wrong)
        yield "optim.apply_if_finite", f"state-{fault}", partial(careful.update, X, wrong)
        yield "optim.inject_hyperparams", f"factory-{fault}", partial(o.inject_hyperparams, wrong)
        yield "optim.inject_hyperparams", f"names-{fault}", partial(o.inject_hyperparams, o.sgd, wrong)
        yield "optim.inject_hyperparams", f"state-{fault}", partial(injected.update, X, wrong)
        if wrong is not None:
            yield "optim.inject_hyperparams", f"dtype-{fault}", partial(o.inject_hyperparams, o.sgd, (), wrong)
    yield "optim.apply_if_finite", "updates", partial(careful.update, {"a": WORDS}, careful.init(X))
    state = injected.init(X)
    yield "optim.inject_hyperparams", "names", lambda: injected.update(X, state._replace(hyperparams={"b": 1.0}))
    yield "optim.inject_hyperparams", "no-optimizer", lambda: o.inject_hyperparams(lambda: 3)().init(X)
    yield "optim.inject_hyperparams", "schedule", lambda: o.inject_hyperparams(o.sgd)(lambda count: "a").init(X)


def _used(make: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    made = make(**arguments)
    return made.update(X, made.init(X), X) if hasattr(made, "update") else made(3)


def _masters() -> Any:
    return o.with_float32_masters(o.identity())
