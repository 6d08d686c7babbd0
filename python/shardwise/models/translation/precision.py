# SPDX-License-Identifier: Apache-2.0
"""The dtypes in which a configuration computes, read off the program of its loss and gradients."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..._core.ir import Op, Value
from ...array import ShapeDtypeStruct
from ...dtypes import is_float, numpy_dtype
from ...errors import ShardingWarning
from ...grad import value_and_grad
from ...jit import jit
from ...shardings.mesh import Mesh
from ...trees import flatten
from .config import TranslationConfig, check_config, float_dtype
from .parameters import shapes
from .training import loss

__all__ = ["precision"]

PRODUCT, LOOKUP = "stablehlo.dot_general", "stablehlo.gather"
CURVES = {"stablehlo.exponential", "stablehlo.log", "stablehlo.sqrt"}  # of softmaxes, the loss, and norms
CONVERSION = "stablehlo.convert"
SUMS = {"stablehlo.add", "stablehlo.reduce", "stablehlo.select"}  # of products, masked ones included


def precision(config: TranslationConfig, dtype: Any = np.float32) -> dict[str, str]:
    """The dtypes of each kind of number for weights of ``dtype``, read off the program of the loss and its gradients.

    Args:
        config: the configuration; ``activations`` decides.
        dtype: the dtype of the weights.

    Returns:
        The dtypes of ``weights``; of the operands ``weights in products``, ``weights in lookups``, ``weights
        elsewhere`` and ``activations in products``; of ``exponentials, logarithms, roots``, which are those of
        softmaxes, the loss and norms; of ``products in gradients``, in which the devices' parts of a gradient are
        summed; and of ``gradients``, which the update reads.

    Raises:
        TypeError: no configuration. DTypeError: ``dtype`` is no floating dtype.

    >>> from shardwise.models import MoEConfig
    >>> config = TranslationConfig(4, MoEConfig(experts=4, model_dim=8, hidden_dim=16), activations="bfloat16")
    >>> precision(config)["weights in products"]
    'bfloat16'
    """
    check_config("precision", config)
    dtype = float_dtype("precision", "dtype", dtype)
    core, weight_count = _traced(config, dtype)
    weights = core.main.body.arguments[:weight_count]
    users: dict[Value, list[tuple[Op, int]]] = defaultdict(list)
    for op in core.ops:
        for place, value in enumerate(op.operands):
            users[value].append((op, place))
    reads = list(_reads(weights, users))
    products = [op for op in core.ops if op.name == PRODUCT]
    of_weights = {(op, place) for op, place in reads if op.name == PRODUCT}
    others = [value for op in products for i, value in enumerate(op.operands) if (op, i) not in of_weights]
    gradients = core.main.body.results[-weight_count:]
    return {
        "weights": _text(weights),
        "weights in products": _text(op.operands[place] for op, place in of_weights),
        "weights in lookups": _text(op.operands[place] for op, place in reads if op.name == LOOKUP),
        "weights elsewhere": _text(op.operands[place] for op, place in reads if op.name not in (PRODUCT, LOOKUP)),
        "activations in products": _text(others),
        "exponentials, logarithms, roots": _text(x for op in core.ops if op.name in CURVES for x in op.operands),
        "products in gradients": _text(_products_in(gradients)),
        "gradients": _text(gradients),
    }


def _traced(config: TranslationConfig, dtype: Any) -> tuple[Any, int]:
    """The program of the loss and its gradients for few sentences, and the number of weights, its first arguments."""
    rows = config.moe.group_size or 1
    source, target = (ShapeDtypeStruct((rows, n), np.int32) for n in (config.source_length, config.target_length))

    def step(params: Any, source: Any, target: Any) -> Any:
        return value_and_grad(lambda p: loss(p, source, target, config)[0])(params)

    params = shapes(config, dtype)
    with warnings.catch_warnings():
        # With so few sentences, the layers warn about empty slots.
        warnings.simplefilter("ignore", ShardingWarning)
        traced = jit(step, mesh=Mesh({"x": 1})).trace(params, source, target)
    return traced._core, len(flatten(params)[0])


def _reads(weights: Iterable[Value], users: dict[Value, list[tuple[Op, int]]]) -> Iterable[tuple[Op, int]]:
    """The ops that compute with weights, through loops and through ops that only move or convert them."""
    waiting, seen = list(weights), set[Value]()
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        for op, place in users[value]:
            if op.name == LOOKUP:
                yield op, place
            elif _is_moved_or_converted(op):
                waiting += op.results if place == 0 else []
            elif op.definition.control_flow:
                waiting += [r.arguments[place] for r in op.regions if len(r.arguments) == len(op.operands)]
            else:
                yield op, place


def _products_in(values: Iterable[Value]) -> Iterable[Value]:
    """The products that values are sums of, through loops and through ops that move or convert them."""
    waiting, seen = list(values), set[Value]()
    while waiting:
        value = waiting.pop()
        op = value.defining_op
        if value in seen or op is None:
            continue
        seen.add(value)
        if op.name == PRODUCT:
            yield value
        elif op.definition.control_flow:
            waiting.append(op.regions[-1].results[op.results.index(value)])
        elif _is_moved_or_converted(op) or op.name in SUMS:
            waiting += op.operands


def _is_moved_or_converted(op: Op) -> bool:
    return op.definition.movement or op.definition.annotation or op.name == CONVERSION


def _text(values: Iterable[Value]) -> str:
    """The dtypes of floats among values."""
    names = {value.type.dtype for value in values if is_float(numpy_dtype(value.type.dtype))}
    return " and ".join(sorted(numpy_dtype(name).name for name in names)) or "none"
