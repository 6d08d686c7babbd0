# SPDX-License-Identifier: Apache-2.0
"""The optimizers: chains of the transformations beside, in Optax's order."""

from __future__ import annotations

from typing import Any

import numpy as np  # noqa: F401 - the examples use it

from ._base import (
    GradientTransformation,
    ScalarOrSchedule,
    checked_number,
    identity,
    optimizer,
)
from ._masking import masked, named_chain
from ._moments import (
    scale_by_adam,
    scale_by_adamax,
    scale_by_lion,
    scale_by_radam,
    scale_by_rms,
    scale_by_rss,
    scale_by_stddev,
    trace,
)
from ._scaling import (
    add_decayed_weights,
    scale_by_learning_rate,
    scale_by_trust_ratio,
)

__all__ = [
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
    "rmsprop",
    "sgd",
]


@optimizer
def sgd(
    learning_rate: ScalarOrSchedule, momentum: Any = None, nesterov: bool = False, accumulator_dtype: Any = None
) -> GradientTransformation:
    """Stochastic gradient descent, with momentum if one is given.

    Args:
        learning_rate: a number or a schedule.
        momentum: the decay of past updates; None for none.
        nesterov: whether the update looks one step ahead.
        accumulator_dtype: the dtype of the momentum; that of the parameters by default.

    Raises:
        DTypeError: no such dtype. And those of :class:`GradientTransformation`.

    Source: `optax.sgd`.

    >>> sgd(0.5).update(np.ones(1), sgd(0.5).init(np.zeros(1)))[0]
    array([-0.5])
    """
    first = identity()
    if momentum is not None:
        first = trace(checked_number("optim.sgd", "momentum", momentum), nesterov, accumulator_dtype)
    return named_chain("optim.sgd", first, scale_by_learning_rate(learning_rate))


@optimizer
def adam(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Adam.

    Args:
        learning_rate: a number or a schedule.
        b1: the decay of the average of gradients.
        b2: the decay of the average of their squares.
        eps: added to the root.
        eps_root: added under the root; gradients through the update need it.
        mu_dtype: the dtype of the first average; that of the parameters by default.
        nesterov: whether the average looks one step ahead.

    Raises:
        DTypeError: no such dtype. And those of :class:`GradientTransformation`.

    Source: `optax.adam`; Kingma, Ba, arXiv 1412.6980.

    >>> adam(0.1).update(np.full(1, 3.0), adam(0.1).init(np.zeros(1)))[0].round(6)
    array([-0.1])
    """
    return named_chain(
        "optim.adam",
        scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        scale_by_learning_rate(learning_rate),
    )


@optimizer
def adamw(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    weight_decay: ScalarOrSchedule = 1e-4,
    mask: Any = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Adam, with weights that decay apart from the gradients.

    Args:
        learning_rate: a number or a schedule.
        b1: the decay of the average of gradients.
        b2: the decay of the average of their squares.
        eps: added to the root.
        eps_root: added under the root; gradients through the update need it.
        mu_dtype: the dtype of the first average; that of the parameters by default.
        weight_decay: the decay, times the learning rate.
        mask: which leaves decay, as in :func:`add_decayed_weights`.
        nesterov: whether the average looks one step ahead.

    Raises:
        DTypeError: no such dtype. TypeError: the update is called without parameters. And those of
        :class:`GradientTransformation`.

    Source: `optax.adamw`; Loshchilov, Hutter, arXiv 1711.05101.

    >>> optimizer = adamw(0.1, weight_decay=0.5)
    >>> optimizer.update(np.full(1, 3.0), optimizer.init(np.zeros(1)), np.ones(1))[0].round(6)
    array([-0.15])
    """
    return named_chain(
        "optim.adamw",
        scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


@optimizer
def nadam(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
) -> GradientTransformation:
    """:func:`adam` with ``nesterov=True``.

    >>> nadam(0.1).update(np.full(1, 3.0), nadam(0.1).init(np.zeros(1)))[0].shape
    (1,)
    """
    scaled = scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=True)
    return named_chain("optim.nadam", scaled, scale_by_learning_rate(learning_rate))


@optimizer
def nadamw(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    weight_decay: ScalarOrSchedule = 1e-4,
    mask: Any = None,
) -> GradientTransformation:
    """:func:`adamw` with ``nesterov=True``.

    >>> nadamw(0.1).update(np.full(1, 3.0), nadamw(0.1).init(np.zeros(1)), np.ones(1))[0].shape
    (1,)
    """
    return named_chain(
        "optim.nadamw",
        scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=True),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


@optimizer
def adamax(learning_rate: ScalarOrSchedule, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> GradientTransformation:
    """Adamax: Adam with the largest gradient, of which past ones decay, in place of the average square.

    Args:
        learning_rate: a number or a schedule.
        b1: the decay of the average of gradients.
        b2: the decay of the largest one.
        eps: added to the absolute value of each gradient.

    Raises:
        DTypeError, ShapeError, TypeError: those of :class:`GradientTransformation`.

    Source: `optax.adamax`; Kingma, Ba, arXiv 1412.6980, section 7.1.

    >>> adamax(0.1).update(np.full(1, 3.0), adamax(0.1).init(np.zeros(1)))[0].round(6)
    array([-0.1])
    """
    return named_chain("optim.adamax", scale_by_adamax(b1, b2, eps), scale_by_learning_rate(learning_rate))


@optimizer
def adamaxw(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    weight_decay: ScalarOrSchedule = 1e-4,
    mask: Any = None,
) -> GradientTransformation:
    """:func:`adamax`, with weights that decay apart from the gradients.

    Args:
        learning_rate: a number or a schedule.
        b1: the decay of the average of gradients.
        b2: the decay of the largest one.
        eps: added to the absolute value of each gradient.
        weight_decay: the decay, times the learning rate.
        mask: which leaves decay, as in :func:`add_decayed_weights`.

    Raises:
        TypeError: the update is called without parameters. And those of :class:`GradientTransformation`.

    Source: `optax.adamaxw`.

    >>> optimizer = adamaxw(0.1, weight_decay=0.5)
    >>> optimizer.update(np.full(1, 3.0), optimizer.init(np.zeros(1)), np.ones(1))[0].round(6)
    array([-0.15])
    """
    return named_chain(
        "optim.adamaxw",
        scale_by_adamax(b1, b2, eps),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


@optimizer
def radam(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    threshold: Any = 5.0,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Rectified Adam: momentum alone until there are enough steps for the variance of the gradients.

    Args:
        learning_rate: a number or a schedule.
        b1: the decay of the average of gradients.
        b2: the decay of the average of their squares.
        eps: added to the root.
        eps_root: added under the root; gradients through the update need it.
        threshold: the length of the average of squares from which on it counts.
        nesterov: whether the average looks one step ahead.

    Raises:
        DTypeError, ShapeError, TypeError: those of :class:`GradientTransformation`.

    Source: `optax.radam`; Liu et al., arXiv 1908.03265.

    >>> radam(0.1).update(np.full(1, 3.0), radam(0.1).init(np.zeros(1)))[0].round(6)
    array([-0.3])
    """
    return named_chain(
        "optim.radam",
        scale_by_radam(b1, b2, eps, eps_root, threshold, nesterov=nesterov),
        scale_by_learning_rate(learning_rate),
    )


@optimizer
def rmsprop(
    learning_rate: ScalarOrSchedule,
    decay: Any = 0.9,
    eps: Any = 1e-8,
    initial_scale: Any = 0.0,
    eps_in_sqrt: bool = True,
    centered: bool = False,
    momentum: Any = None,
    nesterov: bool = False,
    bias_correction: bool = False,
) -> GradientTransformation:
    """RMSProp: gradients over the root of their average square.

    Args:
        learning_rate: a number or a schedule.
        decay: the decay of the average.
        eps: added to the average, or to the root.
        initial_scale: what the average begins with.
        eps_in_sqrt: whether ``eps`` is under the root.
        centered: whether the variance of the gradients stands in place of their average square.
        momentum: the decay of past updates; None for none.
        nesterov: whether the momentum looks one step ahead.
        bias_correction: whether averages count as if they had not begun with zeros.

    Raises:
        DTypeError, ShapeError, TypeError: those of :class:`GradientTransformation`.

    Source: `optax.rmsprop`.

    >>> rmsprop(0.5, 0.75).update(np.full(1, 3.0), rmsprop(0.5).init(np.zeros(1)))[0].round(6)
    array([-1.])
    """
    last = identity()
    if momentum is not None:
        last = trace(checked_number("optim.rmsprop", "momentum", momentum), nesterov)
    return named_chain(
        "optim.rmsprop",
        (scale_by_stddev if centered else scale_by_rms)(decay, eps, initial_scale, eps_in_sqrt, bias_correction),
        scale_by_learning_rate(learning_rate),
        last,
    )


@optimizer
def adagrad(
    learning_rate: ScalarOrSchedule, initial_accumulator_value: Any = 0.1, eps: Any = 1e-7
) -> GradientTransformation:
    """AdaGrad: gradients over the root of the sum of all squares.

    Args:
        learning_rate: a number or a schedule.
        initial_accumulator_value: what the sum begins with.
        eps: added under the root.

    Raises:
        DTypeError, ShapeError, TypeError: those of :class:`GradientTransformation`.

    Source: `optax.adagrad`.

    >>> adagrad(0.5, 0.0).update(np.full(1, 3.0), adagrad(0.5, 0.0).init(np.zeros(1)))[0].round(6)
    array([-0.5])
    """
    return named_chain(
        "optim.adagrad", scale_by_rss(initial_accumulator_value, eps), scale_by_learning_rate(learning_rate)
    )


@optimizer
def lion(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.99,
    mu_dtype: Any = None,
    weight_decay: ScalarOrSchedule = 1e-3,
    mask: Any = None,
) -> GradientTransformation:
    """Lion: signs of an average of the gradients.

    Args:
        learning_rate: a number or a schedule.
        b1: the decay of the average in the update.
        b2: the decay of the average in the state.
        mu_dtype: the dtype of the average; that of the parameters by default.
        weight_decay: the decay, times the learning rate.
        mask: which leaves decay, as in :func:`add_decayed_weights`.

    Raises:
        DTypeError: no such dtype. TypeError: the update is called without parameters. And those of
        :class:`GradientTransformation`.

    Source: `optax.lion`.

    >>> lion(0.5, weight_decay=0.0).update(np.full(1, 3.0), lion(0.5).init(np.zeros(1)), np.ones(1))[0]
    array([-0.5])
    """
    return named_chain(
        "optim.lion",
        scale_by_lion(b1, b2, mu_dtype),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


@optimizer
def lamb(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-6,
    eps_root: Any = 0.0,
    weight_decay: ScalarOrSchedule = 0.0,
    mask: Any = None,
) -> GradientTransformation:
    """LAMB: Adam's updates, each leaf scaled by the norm of its parameter.

    Args:
        learning_rate: a number or a schedule.
        b1: the decay of the average of gradients.
        b2: the decay of the average of their squares.
        eps: added to the root.
        eps_root: added under the root; gradients through the update need it.
        weight_decay: the decay, times the learning rate.
        mask: which leaves decay, as in :func:`add_decayed_weights`.

    Raises:
        TypeError: the update is called without parameters. And those of :class:`GradientTransformation`.

    Source: `optax.lamb`; You et al., arXiv 1904.00962.

    >>> lamb(0.5).update(np.full(2, 3.0), lamb(0.5).init(np.zeros(2)), np.full(2, 4.0))[0].round(6)
    array([-2., -2.])
    """
    return named_chain(
        "optim.lamb",
        scale_by_adam(b1, b2, eps, eps_root),
        add_decayed_weights(weight_decay, mask),
        scale_by_trust_ratio(),
        scale_by_learning_rate(learning_rate),
    )


@optimizer
def lars(
    learning_rate: ScalarOrSchedule,
    weight_decay: ScalarOrSchedule = 0.0,
    weight_decay_mask: Any = True,
    trust_coefficient: Any = 0.001,
    eps: Any = 0.0,
    trust_ratio_mask: Any = True,
    momentum: Any = 0.9,
    nesterov: bool = False,
) -> GradientTransformation:
    """LARS: momentum on gradients that are scaled by the norm of their parameter.

    Args:
        learning_rate: a number or a schedule.
        weight_decay: the decay, added to the gradients.
        weight_decay_mask: which leaves decay, as in :func:`masked`.
        trust_coefficient: a factor of the ratio of norms.
        eps: added to the norm of the gradient.
        trust_ratio_mask: which leaves are scaled.
        momentum: the decay of past updates.
        nesterov: whether the momentum looks one step ahead.

    Raises:
        TypeError: the update is called without parameters. And those of :class:`GradientTransformation`.

    Source: `optax.lars`; You et al., arXiv 1708.03888.

    >>> lars(1.0, trust_coefficient=0.5).update(np.array([2.0]), lars(1.0).init(np.zeros(1)), np.array([4.0]))[0]
    array([-2.])
    """
    return named_chain(
        "optim.lars",
        add_decayed_weights(weight_decay, weight_decay_mask),
        masked(scale_by_trust_ratio(trust_coefficient=trust_coefficient, eps=eps), trust_ratio_mask),
        scale_by_learning_rate(learning_rate),
        trace(checked_number("optim.lars", "momentum", momentum), nesterov),
    )
