# SPDX-License-Identifier: Apache-2.0
"""Calls of sw.lax and sw.nn with an argument of another type, as rows of test_called_names.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import shardwise as sw

lax: Any = sw.lax
nn: Any = sw.nn
X = np.arange(8, dtype=np.float32).reshape(4, 2)
ROWS = np.array([[0], [1]], np.int32)
GATHER = lax.GatherDimensionNumbers((1,), (0,), (0,))
SCATTER = lax.ScatterDimensionNumbers((1,), (0,), (0,))
HEADS = np.ones((1, 4, 2, 3), np.float32)

WRONG: dict[str, Any] = {"none": None, "text": "word", "float": 1.5, "list": [1.5], "words": ["a"], "dict": {"a": 1}}
NO_NUMBER = ("text", "words", "dict")
NO_INTEGER = ("none", "text", "float", "list", "words", "dict")
NO_DTYPE = ("text", "float", "list", "words", "dict")
NO_INTEGERS = NO_INTEGER

SCATTERS = ("scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max")
WITH_NUMBERS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "elu": (partial(nn.elu, X), ("alpha",)),
    "celu": (partial(nn.celu, X), ("alpha",)),
    "leaky_relu": (partial(nn.leaky_relu, X), ("negative_slope",)),
    "squareplus": (partial(nn.squareplus, X), ("b",)),
    "logsumexp": (partial(nn.logsumexp, X), ("b",)),
    "huber_loss": (partial(nn.huber_loss, X), ("targets", "delta")),
    "squared_error": (partial(nn.squared_error, X), ("targets",)),
    "cosine_similarity": (partial(nn.cosine_similarity, X, X), ("epsilon",)),
    "softmax_cross_entropy": (partial(nn.softmax_cross_entropy, X), ("labels",)),
    "standardize": (partial(nn.standardize, X), ("mean", "variance", "epsilon")),
    "layer_norm": (partial(nn.layer_norm, X), ("scale", "bias", "epsilon")),
    "rms_norm": (partial(nn.rms_norm, X), ("scale", "epsilon")),
    "batch_norm": (
        partial(nn.batch_norm, X, X[0], X[0], use_running_average=True),
        ("scale", "bias", "momentum", "epsilon"),
    ),
    "dot_product_attention": (partial(nn.dot_product_attention, HEADS, HEADS, HEADS), ("scale", "bias")),
}


def calls_of_lax_and_nn() -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Name of the function, fault, and call."""
    for name, call, parameter, faults in [*_of_lax(), *_of_nn()]:
        for fault in faults:
            yield name, f"{parameter}-{fault}", partial(call, **{parameter: WRONG[fault]})
    yield "lax.top_k", "missing", partial(lax.top_k, X)
    yield "lax.top_k", "unknown", partial(lax.top_k, X, 1, slope=1)
    ragged = [[1.0], [1.0, 2.0]]
    yield "nn.relu", "ragged", partial(nn.relu, ragged)
    yield "nn.elu", "ragged", partial(nn.elu, X, ragged)
    yield "nn.dot_product_attention", "window", lambda: nn.dot_product_attention(*[HEADS] * 3, local_window_size=(1,))


def _of_lax() -> Iterator[tuple[str, Callable[..., Any], str, tuple[str, ...]]]:
    yield "lax.top_k", partial(lax.top_k, X), "k", NO_INTEGER
    yield "lax.sort", partial(lax.sort, X), "num_keys", NO_INTEGER
    yield "lax.convert_element_type", partial(lax.convert_element_type, X), "new_dtype", NO_DTYPE
    yield "lax.bitcast_convert_type", partial(lax.bitcast_convert_type, X), "new_dtype", NO_DTYPE
    rounded = partial(lax.reduce_precision, X)
    yield "lax.reduce_precision", partial(rounded, mantissa_bits=3), "exponent_bits", NO_INTEGER
    yield "lax.reduce_precision", partial(rounded, exponent_bits=3), "mantissa_bits", NO_INTEGER
    yield "lax.reduce", partial(lax.reduce, X, computation=np.add, dimensions=(0,)), "init_values", ("text",)
    windows = partial(lax.reduce_window, X, computation=np.add, window_dimensions=(2, 1))
    yield "lax.reduce_window", windows, "init_value", ("text",)
    gather = partial(lax.gather, X, slice_sizes=(1, 2))
    yield "lax.gather", partial(gather, dimension_numbers=GATHER, mode="fill"), "start_indices", ("list",)
    yield "lax.gather", partial(gather, ROWS), "dimension_numbers", NO_INTEGERS
    yield "lax.gather", partial(gather, ROWS, GATHER), "mode", ("text", "float", "list", "dict")
    yield "lax.gather", partial(lax.gather, X, ROWS, GATHER), "slice_sizes", NO_INTEGERS
    for name in SCATTERS:
        scatter = partial(getattr(lax, name), X, ROWS, X[:2])
        yield f"lax.{name}", scatter, "dimension_numbers", NO_INTEGERS
        yield f"lax.{name}", partial(scatter, SCATTER), "mode", ("text", "float", "list", "dict")
    fields = ("offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims")
    for field in fields:
        numbers = partial(_gathered, {"offset_dims": (1,), "collapsed_slice_dims": (0,), "start_index_map": (0,)})
        yield "lax.gather", numbers, field, ("none", "float", "list", "words")
    yield from _of_slices()
    yield from _of_arrays()


def _of_arrays() -> Iterator[tuple[str, Callable[..., Any], str, tuple[str, ...]]]:
    for name in ("cumsum", "cummax", "cumlogsumexp", "reduce_precision"):
        options = {"exponent_bits": 5, "mantissa_bits": 3} if name == "reduce_precision" else {}
        yield f"lax.{name}", partial(getattr(lax, name), **options), "operand", NO_NUMBER
    for name in ("erf", "lgamma", "rsqrt", "is_finite", "population_count"):
        yield f"lax.{name}", getattr(lax, name), "x", NO_NUMBER
    yield "lax.argsort", lax.argsort, "keys", NO_NUMBER
    yield "lax.top_k", partial(lax.top_k, k=1), "operand", NO_NUMBER
    yield "lax.pad", partial(lax.pad, padding_value=0, padding_config=[(0, 0, 0)]), "operand", NO_NUMBER
    yield "lax.fft", partial(lax.fft, fft_type="FFT", fft_lengths=(2,)), "x", NO_NUMBER
    product = partial(lax.dot_general, X, dimension_numbers=(((0,), (0,)), ((), ())))
    yield "lax.dot_general", product, "rhs", NO_NUMBER
    yield "lax.ragged_dot", partial(lax.ragged_dot, X, X[None, :2]), "group_sizes", NO_NUMBER
    yield (
        "lax.padtype_to_pads",
        partial(lax.padtype_to_pads, window_shape=[3], window_strides=[1], padding="SAME"),
        "in_shape",
        ("none", "float"),
    )
    shapes = partial(lax.conv_dimension_numbers, rhs_shape=(1, 2, 3), dimension_numbers=None)
    yield "lax.conv_dimension_numbers", shapes, "lhs_shape", ("none", "float")


def _of_slices() -> Iterator[tuple[str, Callable[..., Any], str, tuple[str, ...]]]:
    yield "lax.dynamic_slice", partial(lax.dynamic_slice, X, (0, 0)), "slice_sizes", NO_INTEGERS
    yield "lax.dynamic_slice", partial(lax.dynamic_slice, X, slice_sizes=(1, 1)), "start_indices", ("float",)
    yield "lax.dynamic_update_slice", partial(lax.dynamic_update_slice, X, X[:1]), "start_indices", ("float",)
    rows = partial(lax.dynamic_slice_in_dim, X)
    yield "lax.dynamic_slice_in_dim", partial(rows, 0), "slice_size", NO_INTEGER
    yield "lax.dynamic_slice_in_dim", partial(rows, slice_size=1), "start_index", ("float",)
    yield "lax.dynamic_index_in_dim", partial(lax.dynamic_index_in_dim, X), "index", ("float",)
    for name, part in {"dynamic_update_slice_in_dim": "start_index", "dynamic_update_index_in_dim": "index"}.items():
        update = partial(getattr(lax, name), X, axis=0)
        yield f"lax.{name}", partial(update, X[:1]), part, ("float",)
        yield f"lax.{name}", partial(update, **{part: 0}), "update", ("float",)


def _gathered(numbers: dict[str, Any], **changed: Any) -> Any:
    return lax.gather(X, ROWS, lax.GatherDimensionNumbers(**{**numbers, **changed}), (1, 2))


def _constant(value: Any) -> Any:
    return nn.initializers.constant(value)(None, (2,))


def _of_nn() -> Iterator[tuple[str, Callable[..., Any], str, tuple[str, ...]]]:
    yield "nn.one_hot", partial(nn.one_hot, np.arange(3)), "num_classes", NO_INTEGER
    for name, (call, parameters) in WITH_NUMBERS.items():
        for parameter in parameters:
            yield f"nn.{name}", call, parameter, NO_NUMBER
    made, scaled = nn.initializers, partial(nn.initializers.variance_scaling, mode="fan_in", distribution="normal")
    yield "nn.initializers.variance_scaling", scaled, "scale", ("none", *NO_NUMBER)
    for name, parameter in {"uniform": "scale", "normal": "stddev", "orthogonal": "scale"}.items():
        yield f"nn.initializers.{name}", getattr(made, name), parameter, ("none", *NO_NUMBER)
    yield "nn.initializers.delta_orthogonal", made.delta_orthogonal, "scale", ("none", *NO_NUMBER)
    for parameter in ("stddev", "lower", "upper"):
        yield "nn.initializers.truncated_normal", made.truncated_normal, parameter, ("none", *NO_NUMBER)
    yield "nn.initializers.constant", _constant, "value", ("dict", "text")
    attend = partial(nn.dot_product_attention, HEADS, HEADS, HEADS)
    yield "nn.dot_product_attention", attend, "local_window_size", ("text", "float", "list", "words", "dict")
