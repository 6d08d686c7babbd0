# SPDX-License-Identifier: Apache-2.0
"""Convolutions and Fourier transforms in `jax.lax`."""

from __future__ import annotations

import numpy as np

from ..._core.ir import Op
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
    lhs, rhs = map(scope, op.operands)
    spatial = specs[1][2:]
    reversed_dims = tuple(d for d, turned in zip(spatial, own.get("window_reversal", ())) if turned)
    if reversed_dims:
        rhs = call("lax.rev", rhs, reversed_dims)
    given = own.get("padding")
    padding = np.zeros((ndim - 2, 2), int) if given is None else np.asarray(given).reshape(ndim - 2, 2)
    dtype = op.results[0].type.dtype
    accumulated = "float32" if is_narrow_float(dtype) else dtype
    options = {
        "lhs_dilation": tuple(own.get("lhs_dilation", ones)),
        "rhs_dilation": tuple(own.get("rhs_dilation", ones)),
        "dimension_numbers": scope.table("DIMS", call("lax.ConvDimensionNumbers", *specs)),
        "feature_group_count": own.get("feature_group_count", 1),
        "batch_group_count": own.get("batch_group_count", 1),
    }
    texts = [f"{name}={value}" for name, value in options.items() if value not in (1, ones)]
    if any(x.type.dtype != accumulated for x in op.operands):
        texts.append(f'preferred_element_type="{accumulated}"')
    strides = tuple(own.get("window_strides", ones))
    pairs = tuple((int(low), int(high)) for low, high in padding)
    text = call("lax.conv_general_dilated", lhs, rhs, strides, pairs, *texts)
    return text if accumulated == dtype else f'{text}.astype("{dtype}")'


@emits("stablehlo.fft")
def fft(scope: Scope, op: Op) -> str:
    own = attributes(op)
    return call("lax.fft", scope(op.operands[0]), f'"{own["fft_type"].value}"', tuple(own["fft_length"]))
