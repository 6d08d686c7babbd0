# SPDX-License-Identifier: Apache-2.0
"""Adafactor, Optax's and GShard's: chains of the transformations beside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import is_one_of, message, shown
from ._base import GradientTransformation, ScalarOrSchedule, checked_number, checked_numbers, checked_rate, optimizer
from ._factored import adam_decay_rate, capped_decay_rate, pow_decay_rate, scale_by_factored_rms
from ._masking import named_chain
from ._moments import ema
from ._scaling import (
    add_decayed_weights,
    clip_by_block_rms,
    scale,
    scale_by_learning_rate,
    scale_by_param_block_rms,
)
from ._schedules import rsqrt_decay_schedule

__all__ = ["adafactor", "gshard_adafactor"]


@optimizer
def adafactor(
    learning_rate: ScalarOrSchedule = None,
    min_dim_size_to_factor: int = 128,
    decay_rate: Any = 0.8,
    decay_offset: Any = 0,
    multiply_by_parameter_scale: bool = True,
    clipping_threshold: Any = 1.0,
    momentum: Any = None,
    dtype_momentum: Any = np.float32,
    weight_decay_rate: ScalarOrSchedule = None,
    eps: Any = 1e-30,
    factored: bool = True,
    weight_decay_mask: Any = None,
) -> GradientTransformation:
    """Adafactor: Adam without momentum whose second moments of a matrix are one row and one column.

    Args:
        learning_rate: a number or a schedule; None for 1.
        min_dim_size_to_factor: a leaf whose two largest dims are not both so large is not factored.
        decay_rate: the exponent of the decay ``1 - t ** -decay_rate``.
        decay_offset: subtracted from the number of steps.
        multiply_by_parameter_scale: whether each leaf is scaled by the root mean square of its parameter.
        clipping_threshold: the largest root mean square of an update; None for no limit.
        momentum: the decay of an average of the updates; None for none.
        dtype_momentum: its dtype.
        weight_decay_rate: the decay, not times the learning rate; None for none.
        eps: added to the squares.
        factored: whether anything is factored.
        weight_decay_mask: which leaves decay, as in :func:`add_decayed_weights`.

    Raises:
        DTypeError: no such dtype. TypeError: the update is called without parameters. And those of
        :class:`GradientTransformation`.

    Source: `optax.adafactor`; Shazeer, Stern, arXiv 1804.04235. :func:`gshard_adafactor` has the form of GShard.

    >>> optimizer = adafactor(0.1)
    >>> optimizer.update(np.full(1, 3.0), optimizer.init(np.zeros(1)), np.ones(1))[0].round(6)
    array([-0.1])
    """
    given = {"momentum": momentum, "clipping_threshold": clipping_threshold}
    given = {name: value for name, value in given.items() if value is not None}
    checked_numbers("optim.adafactor", decay_offset=decay_offset, eps=eps, **given)
    if weight_decay_rate is not None:
        checked_rate("optim.adafactor", "weight_decay_rate", weight_decay_rate)
    parts = [scale_by_factored_rms(factored, decay_rate, decay_offset, min_dim_size_to_factor, eps)]
    if clipping_threshold is not None:
        parts.append(clip_by_block_rms(clipping_threshold))
    if learning_rate is not None:
        parts.append(scale_by_learning_rate(learning_rate, flip_sign=False))
    if multiply_by_parameter_scale:
        parts.append(scale_by_param_block_rms())
    if momentum is not None:
        parts.append(ema(momentum, debias=False, accumulator_dtype=dtype_momentum))
    if weight_decay_rate is not None:
        parts.append(add_decayed_weights(weight_decay_rate, weight_decay_mask))
    return named_chain("optim.adafactor", *parts, scale(-1))


@optimizer
def gshard_adafactor(
    learning_rate: Any = 1.0,
    decay_steps: int = 10_000,
    decay: str = "pow",
    beta2: Any = 0.99,
    multiply_by_parameter_scale: bool = True,
    clipping_threshold: Any = 1.0,
    min_dim_size_to_factor: int = 1,
    eps: Any = 1e-30,
    min_scale: Any = 1e-3,
) -> GradientTransformation:
    """Adafactor as GShard trained with it: the last two dims are factored, for each expert alone.

    Args:
        learning_rate: the rate up to step ``decay_steps``; it then falls with the square root of the step.
        decay_steps: the step at which the decay begins.
        decay: that of the second moments: ``"pow"``, ``1 - t ** -0.8``; ``"adam"``, ``beta2`` with Adam's bias
            correction; or ``"capped"``, the smaller one of ``beta2`` and ``1 - t ** -0.8``.
        beta2: the decay of ``"adam"`` and ``"capped"``.
        multiply_by_parameter_scale: whether each leaf is scaled by the root mean square of its parameter.
        clipping_threshold: the largest root mean square of an update; None for no limit.
        min_dim_size_to_factor: a leaf whose last two dims are not both so large is not factored.
        eps: added to the squares.
        min_scale: the least root mean square of a parameter.

    Raises:
        ValueError: an unknown ``decay``. TypeError: the update is called without parameters. And those of
        :class:`GradientTransformation`.

    Source: GShard (arXiv 2006.16668), A.2, which names both a decay of 0.99 and the schedule.

    >>> gshard_adafactor().init(np.zeros((8, 64, 32), np.float32))[0].v_row.shape  # rows of each of 8 experts
    (8, 64)
    """
    if not is_one_of(decay, ("pow", "adam", "capped")):
        raise ValueError(message("optim.gshard_adafactor", "decay must be 'pow', 'adam' or 'capped'", shown(decay)))
    if clipping_threshold is not None:
        checked_number("optim.gshard_adafactor", "clipping_threshold", clipping_threshold)
    checked_numbers(
        "optim.gshard_adafactor", learning_rate=learning_rate, decay_steps=decay_steps, beta2=beta2, eps=eps
    )
    functions: dict[str, tuple[Callable[[Any, Any], Any], Any]]
    functions = {"pow": (pow_decay_rate, 0.8), "adam": (adam_decay_rate, beta2), "capped": (capped_decay_rate, beta2)}
    function, rate = functions[decay]
    parts = [
        scale_by_factored_rms(True, rate, 0, min_dim_size_to_factor, eps, function, factored_dims="last"),
        *([] if clipping_threshold is None else [clip_by_block_rms(clipping_threshold)]),
        scale_by_learning_rate(rsqrt_decay_schedule(learning_rate, decay_steps), flip_sign=False),
        *([scale_by_param_block_rms(min_scale)] if multiply_by_parameter_scale else []),
    ]
    return named_chain("optim.gshard_adafactor", *parts, scale(-1))
