# SPDX-License-Identifier: Apache-2.0
"""Wrong calls of the functions of sw.optim, as rows of test_called_names.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import shardwise as sw

o: Any = sw.optim
X = {"a": np.ones(2)}
OTHER = {"b": np.ones(2)}
NEED_PARAMS = ("scale_by_param_block_norm", "scale_by_param_block_rms", "scale_by_trust_ratio", "scale_by_factored_rms")
TAKE_TREES = ("ema", "scale_by_adam", "scale_by_factored_rms", "scale_by_lion", "scale_by_rms", "scale_by_rss")


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
    return rows


def _masters() -> Any:
    return o.with_float32_masters(o.identity())
