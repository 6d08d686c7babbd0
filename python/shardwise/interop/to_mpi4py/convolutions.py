# SPDX-License-Identifier: Apache-2.0
"""Convolutions and Fourier transforms in NumPy."""

from __future__ import annotations

import numpy as np

from ..._core.ir import Op
from ...dtypes import numpy_dtype
from ..source.convolutions import specs_of
from ..source.narrow_dtypes import is_narrow_float
from ..source.scope import Scope, call
from ..source.target import attributes
from .target import emits

__all__: list[str] = []


@emits("stablehlo.convolution")
def convolution(scope: Scope, op: Op) -> str:
    own = attributes(op)
    specs = specs_of(own["dimension_numbers"].fields[""])
    ndim = len(op.operands[0].type.shape)
    ones = (1,) * (ndim - 2)
    dtype = op.results[0].type.dtype
    accumulated = "float32" if is_narrow_float(dtype) else dtype
    texts = []
    for operand, spec in zip(op.operands, specs):
        text = scope(operand)
        text = text if operand.type.dtype == accumulated else f'{text}.astype("{accumulated}")'
        texts.append(text if spec == tuple(range(ndim)) else call("np.transpose", text, spec))
    turned = tuple(d + 2 for d, is_reversed in enumerate(own.get("window_reversal", ())) if is_reversed)
    if turned:
        texts[1] = call("np.flip", texts[1], turned)
    given = own.get("padding")
    padding = np.zeros((ndim - 2, 2), int) if given is None else np.asarray(given).reshape(ndim - 2, 2)
    base = tuple(own.get("lhs_dilation", ones))
    rows = tuple((int(low), int(high), step - 1) for (low, high), step in zip(padding, base))
    options = {
        "strides": (tuple(own.get("window_strides", ones)), ones),
        "dilation": (tuple(own.get("rhs_dilation", ones)), ones),
        "groups": (own.get("feature_group_count", 1), 1),
        "batch_groups": (own.get("batch_group_count", 1), 1),
    }
    given_options = [f"{name}={value}" for name, (value, default) in options.items() if value != default]
    text = call(scope.helper("convolution"), *texts, rows, *given_options)
    back = tuple(int(d) for d in np.argsort(specs[2]))
    text = text if back == tuple(range(ndim)) else call("np.transpose", text, back)
    return text if accumulated == dtype else f'{text}.astype("{numpy_dtype(dtype).name}")'


@emits("stablehlo.fft")
def fft(scope: Scope, op: Op) -> str:
    own = attributes(op)
    name, lengths = own["fft_type"].value.lower(), tuple(own["fft_length"])
    axes = tuple(range(-len(lengths), 0))
    return f'np.fft.{name}n({scope(op.operands[0])}, {lengths}, {axes}).astype("{op.results[0].type.dtype}")'
