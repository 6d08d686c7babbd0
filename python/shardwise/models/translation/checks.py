# SPDX-License-Identifier: Apache-2.0
"""Checks the arguments of the translation model's functions, so that errors name the function that was called."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DTypeError, ShapeError, described, shown
from ..checks import check_keys, check_shapes
from ..configs import message
from .config import TranslationConfig, check_config
from .parameters import expected_shapes

__all__ = ["check_call", "check_config", "check_keys", "check_memory", "check_optimizer", "check_params"]


def check_call(
    what: str, params: Any, source: Any, config: Any, *, target: Any = None, key: Any = None, has_target: bool = False
) -> None:
    """Raise unless the arguments are those of a model.

    Args:
        what: the public function.
        params, source, config, target, key: its arguments; the key may be None.
        has_target: whether the function has a target.

    Raises:
        TypeError: no configuration or parameters. DTypeError, ShapeError: tokens or a key of another dtype or shape.
        ValueError: parameters are missing, or a known token is outside of the vocabulary.
    """
    check_config(what, config)
    check_params(what, params)
    check_shapes(what, "params", params, expected_shapes(config), "init")
    _check_tokens(what, "source", source, config.source_length, config.source_vocabulary)
    if has_target:
        _check_tokens(what, "target", target, config.target_length, config.target_vocabulary)
        if source.shape[0] != target.shape[0]:
            got = f"{source.shape[0]} and {target.shape[0]}"
            raise ShapeError(message(what, "source and target must have equally many sentences", got))
    if key is not None and (tuple(getattr(key, "shape", ())) != (2,) or key.dtype != np.uint32):
        rule, way_out = "key must be a random key, uint32[2]", "make one with sw.random.key(seed)"
        raise DTypeError(message(what, rule, described(key), way_out))


def check_memory(what: str, memory: Any, source: Any, config: TranslationConfig) -> None:
    """Raise ShapeError unless the encoded source has the sentences, tokens and width of ``source`` (B, S)."""
    wanted = (*source.shape, config.moe.model_dim)
    if tuple(getattr(memory, "shape", ())) != wanted:
        rule = f"memory must be the encoded source, of shape {wanted}"
        raise ShapeError(message(what, rule, described(memory), "pass the result of encode for this source"))


def check_params(what: str, params: Any) -> None:
    """Raise TypeError or ValueError if these are not the parameters of a model."""
    check_keys(what, "params", params, ("source", "encoder", "target", "decoder"))


def check_optimizer(what: str, optimizer: Any) -> None:
    """Raise TypeError unless it is an optimizer."""
    if not callable(getattr(optimizer, "init", None)) or not callable(getattr(optimizer, "update", None)):
        raise TypeError(message(what, "optimizer must have init and update", shown(optimizer)))


def _check_tokens(what: str, name: str, tokens: Any, length: int, vocabulary: int) -> None:
    rule = f"{name} must be an integer array of shape (batch, length)"
    shape, dtype = getattr(tokens, "shape", None), getattr(tokens, "dtype", None)
    if shape is None or dtype is None or np.dtype(dtype).kind not in "iu":
        raise DTypeError(message(what, rule, described(tokens)))
    if len(shape) != 2:
        raise ShapeError(message(what, rule, described(tokens)))
    if 0 in shape:
        raise ShapeError(
            message(what, f"{name} must have at least one sentence of at least one token", described(tokens))
        )
    if shape[1] > length:
        way_out = f"cut the sentences, or set {name}_length in the configuration"
        rule = f"{name} must be (B, {name[0].upper()}) with at most {length} tokens"
        raise ShapeError(message(what, rule, f"shape {tuple(shape)}", way_out))
    if isinstance(tokens, np.ndarray) and tokens.size:
        least, most = int(tokens.min()), int(tokens.max())
        if least < 0 or most >= vocabulary:
            rule = f"tokens of {name} must be from 0 to {vocabulary - 1}"
            way_out = f"{name}_vocabulary of the configuration is {vocabulary}"
            raise ValueError(message(what, rule, least if least < 0 else most, way_out))
