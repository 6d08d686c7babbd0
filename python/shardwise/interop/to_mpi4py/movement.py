# SPDX-License-Identifier: Apache-2.0
"""Constants, and ops that move elements, in NumPy."""

from __future__ import annotations

import numpy as np

from ..._core.ir import Op
from ..source.scope import Scope, call, listed
from ..source.target import attributes
from .target import emits

__all__: list[str] = []


@emits("stablehlo.constant")
def constant(scope: Scope, op: Op) -> str:
    return scope.constant(np.asarray(attributes(op)["value"]))


@emits("stablehlo.iota")
def iota(scope: Scope, op: Op) -> str:
    kind, dim = op.results[0].type, attributes(op)["iota_dimension"]
    text = f'np.arange({kind.shape[dim]}).astype("{kind.dtype}")'
    if len(kind.shape) == 1:
        return text
    line = tuple(n if d == dim else 1 for d, n in enumerate(kind.shape))
    return f"np.broadcast_to({text}.reshape({line}), {kind.shape})"


@emits("stablehlo.transpose")
def transpose(scope: Scope, op: Op) -> str:
    return call("np.transpose", scope(op.operands[0]), tuple(attributes(op)["permutation"]))


@emits("stablehlo.reshape")
def reshape(scope: Scope, op: Op) -> str:
    return call("np.reshape", scope(op.operands[0]), op.results[0].type.shape)


@emits("stablehlo.broadcast_in_dim")
def broadcast_in_dim(scope: Scope, op: Op) -> str:
    dims, shape = tuple(attributes(op)["broadcast_dimensions"]), op.results[0].type.shape
    own, x = op.operands[0].type.shape, scope(op.operands[0])
    ndim = len(shape)
    if list(dims) != sorted(dims):
        x = call("np.transpose", x, tuple(sorted(range(len(dims)), key=dims.__getitem__)))
    if dims != tuple(range(ndim - len(dims), ndim)):
        sizes = dict(zip(dims, own))
        x = f"np.reshape({x}, {tuple(sizes.get(d, 1) for d in range(ndim))})"
    return call("np.broadcast_to", x, shape)


@emits("stablehlo.reverse")
def reverse(scope: Scope, op: Op) -> str:
    return call("np.flip", scope(op.operands[0]), tuple(attributes(op)["dimensions"]))


@emits("stablehlo.slice")
def slice_(scope: Scope, op: Op) -> str:
    names = ("start_indices", "limit_indices", "strides")
    rows = list(zip(*(attributes(op)[name] for name in names)))
    if not rows:
        return scope(op.operands[0])
    texts = [
        ":" if (start, limit, step) == (0, size, 1) else f"{start}:{limit}" + (f":{step}" if step != 1 else "")
        for (start, limit, step), size in zip(rows, op.operands[0].type.shape)
    ]
    return f"{scope(op.operands[0])}[{', '.join(texts)}]"


@emits("stablehlo.pad")
def pad(scope: Scope, op: Op) -> str:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    rows = tuple(zip(*(attributes(op)[name] for name in names)))
    return call(scope.helper("pad"), *map(scope, op.operands), rows)


@emits("stablehlo.concatenate")
def concatenate(scope: Scope, op: Op) -> str:
    return call("np.concatenate", listed(map(scope, op.operands)), attributes(op)["dimension"])


@emits("stablehlo.dynamic_slice")
def dynamic_slice(scope: Scope, op: Op) -> str:
    x, *starts = map(scope, op.operands)
    return f"{x}[{scope.helper('window')}({x}, {listed(starts)}, {tuple(attributes(op)['slice_sizes'])})]"


@emits("stablehlo.dynamic_update_slice")
def dynamic_update_slice(scope: Scope, op: Op) -> str:
    x, update, *starts = map(scope, op.operands)
    return call(scope.helper("updated"), x, update, listed(starts))
