# SPDX-License-Identifier: Apache-2.0
"""Training of the translation model: the loss, and a step with accumulated gradients and a log of the experts' load."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import random as sw_random, tree
from ...control_flow import scan
from ...errors import ShapeError
from ...grad import value_and_grad
from ...optim import GradientTransformation, apply_updates
from ..configs import Axes, AxisNames, axes_of, called_with, message, positive
from ..layers import cross_entropy, split_dim
from .checks import check_call, check_config, check_keys, check_optimizer, check_params
from .config import TranslationConfig
from .model import translation

__all__ = ["init_state", "loss", "train_step"]

State = dict[str, Any]


def loss(
    params: dict[str, Any],
    source: Any,
    target: Any,
    config: TranslationConfig,
    *,
    axes: Axes | AxisNames = None,
    key: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """The training loss: the mean cross-entropy of the target's tokens plus ``k`` times the auxiliary loss.

    Args:
        params, source, config, axes, key: as in :func:`translation`.
        target: (B, T), the sentences with ``config.eos`` at their end, and padding after it.

    Returns:
        The loss, and a dict: ``cross_entropy``; ``aux``; ``correct``, the share of tokens that the model predicts;
        and ``load`` and ``dropped`` of ``encoder`` and ``decoder``.

    Raises:
        DTypeError, ShapeError: tokens are no integers (batch, length), or ``key`` is no key. ValueError: parameters are
        missing, or a token of a NumPy array is outside of the vocabulary. TypeError: no dict, or no configuration.

    ``k`` is ``config.aux_weight * config.moe.aux_factor``; see :class:`shardwise.models.TransformerConfig`.

    Source: GShard, section 2.2 (L = nll + k * aux).
    """
    check_call("loss", params, source, config, target=target, key=key, has_target=True)
    if target.dtype.itemsize < 4:
        target = target.astype(np.int32)  # the dtype of some tokens may be too narrow for the start
    start = np.full((target.shape[0], 1), config.bos, target.dtype, like=target)
    shown = np.concatenate([start, target[:, :-1]], axis=1)
    logits, aux, statistics = translation(params, source, shown, config, axes=axes, key=key)
    counts = target != config.pad
    entropy = cross_entropy(logits, target, mask=counts, smoothing=config.label_smoothing)
    hits = np.sum((np.argmax(logits, axis=-1) == target) & counts, dtype=np.int32)
    correct = hits / np.maximum(np.sum(counts, dtype=np.int32), 1)
    parts = {"cross_entropy": entropy, "aux": aux, "correct": correct.astype(entropy.dtype), **statistics}
    return entropy + (config.aux_weight * config.moe.aux_factor) * aux, parts


def init_state(params: dict[str, Any], optimizer: GradientTransformation) -> State:
    """The first state of a training run: ``params``, ``optimizer`` and ``step``. It is what a checkpoint saves."""
    check_params("init_state", params)
    check_optimizer("init_state", optimizer)
    return {"params": params, "optimizer": optimizer.init(params), "step": np.zeros((), np.int32)}


def train_step(
    config: TranslationConfig,
    optimizer: GradientTransformation,
    *,
    axes: Axes | AxisNames = None,
    accumulate: int = 1,
) -> Callable[[State, Any, Any, Any], tuple[State, dict[str, Any]]]:
    """Make a step of training, to be jitted: ``step(state, source, target, key) -> (state, log)``.

    Args:
        config: the configuration.
        optimizer: as those of :mod:`shardwise.optim`; :func:`shardwise.optim.gshard_adafactor` is the paper's.
        axes: as in :func:`translation`.
        accumulate: the parts of a batch whose gradients are computed one after the other, and summed. It must divide
            B. Memory of activations falls by this factor. Each target token of the batch counts alike, in whatever
            part it is.

    Returns:
        The step. It folds the number of the step into the key, so one key serves a whole run, and a run that a
        checkpoint resumes draws the same numbers. The log has ``loss`` beside the dict of :func:`loss`.
    """
    check_config("train_step", config)
    positive("train_step", accumulate=accumulate)
    check_optimizer("train_step", optimizer)
    axes = axes_of(axes)
    factor = config.aux_weight * config.moe.aux_factor

    def weighted(params: Any, row: dict[str, Any], tokens: Any) -> tuple[Any, dict[str, Any]]:
        """The contribution of one part of a batch with ``tokens`` tokens to the loss, and to the log."""
        _, log = loss(params, row["source"], row["target"], config, axes=axes, key=row.get("key"))
        share = np.sum(row["target"] != config.pad, dtype=np.int32) / tokens
        shares = {name: log[name] * share.astype(log[name].dtype) for name in ("cross_entropy", "correct")}
        log = {**log, **shares, "aux": log["aux"] / accumulate}
        return log["cross_entropy"] + factor * log["aux"], log

    gradients_of = value_and_grad(loss if accumulate == 1 else weighted, has_aux=True)

    def step(state: State, source: Any, target: Any, key: Any) -> tuple[State, dict[str, Any]]:
        check_keys("train_step", "state", state, ("params", "optimizer", "step"))
        params = state["params"]
        check_call("train_step", params, source, config, target=target, key=key, has_target=True)
        key = None if key is None else sw_random.fold_in(key, state["step"])
        if accumulate == 1:
            (value, log), gradients = gradients_of(params, source, target, config, axes=axes, key=key)
        else:
            rows = _parts(source, target, key, accumulate, axes)
            tokens = np.maximum(np.sum(target != config.pad, dtype=np.int32), 1)

            def add(total: Any, row: dict[str, Any]) -> tuple[Any, Any]:
                (value, log), gradients = gradients_of(params, row, tokens)
                return tree.map(lambda a, b: a + b, total, gradients), (value, log)

            gradients, logs = scan(add, tree.map(np.zeros_like, params), rows)
            value, log = tree.map(lambda x: np.sum(x, axis=0, dtype=x.dtype), logs)
        with called_with("train_step"):
            updates, optimizer_state = optimizer.update(gradients, state["optimizer"], params)
        new = {"params": apply_updates(params, updates), "optimizer": optimizer_state, "step": state["step"] + 1}
        return new, {"loss": value, **log}

    return step


def _parts(source: Any, target: Any, key: Any, count: int, axes: Axes) -> dict[str, Any]:
    """A batch as the rows of a loop: ``count`` parts, each with a key of its own."""
    if source.shape[0] % count:
        got = f"{source.shape[0]} sentences in {count} parts"
        raise ShapeError(message("train_step", "accumulate must divide the batch", got))

    def parts_of(x: Any) -> Any:
        # Every count-th sentence: a part has sentences of all devices, and nothing is sent.
        rows = split_dim(x, 0, axes.groups).reshape(x.shape[0] // count, count, *x.shape[1:])
        return split_dim(np.swapaxes(rows, 0, 1), 1, axes.groups)

    rows = {"source": parts_of(source), "target": parts_of(target)}
    return rows if key is None else {**rows, "key": sw_random.split(key, count)}
