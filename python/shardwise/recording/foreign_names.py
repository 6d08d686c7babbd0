# SPDX-License-Identifier: Apache-2.0
"""Attributes of NumPy and PyTorch arrays that ours do not have, with the code to write instead.

x.unsqueeze(0)    AttributeError: array: has no attribute 'unsqueeze'; use np.expand_dims(x, axis)
"""

from __future__ import annotations

from ..errors import message

__all__ = ["missing_attribute"]

_INSTEAD = {
    # PyTorch's tensors and DTensors
    "backward": "sw.grad(loss)",
    "cpu": "np.asarray(x)",
    "detach": "sw.stop_gradient(x)",
    "device_mesh": "x.sharding.mesh",
    "dim": "x.ndim",
    "double": "x.astype(np.float64)",
    "expand": "np.broadcast_to(x, shape)",
    "float": "x.astype(np.float32)",
    "full_tensor": "np.asarray(x)",
    "grad": "sw.grad(loss)",
    "half": "x.astype(np.float16)",
    "log_softmax": "x - np.log(np.exp(x).sum(axis, keepdims=True))",
    "long": "x.astype(np.int64)",
    "masked_fill": "np.where(mask, value, x)",
    "mm": "x @ y",
    "norm": "np.linalg.norm(x)",
    "numpy": "np.asarray(x)",
    "permute": "x.transpose(axes)",
    "placements": "sw.dtensor.placements(x)",
    "redistribute": "sw.dtensor.redistribute(x, mesh, placements)",
    "relu": "np.maximum(x, 0)",
    "requires_grad": "sw.grad(loss)",
    "sigmoid": "1 / (1 + np.exp(-x))",
    "t": "x.T",
    "tanh": "np.tanh(x)",
    "to": "x.astype(dtype), or sw.device_put(x, sharding)",
    "to_local": "x.addressable_shards[i].data",
    "type": "x.astype(dtype)",
    "unsqueeze": "np.expand_dims(x, axis)",
    # NumPy's arrays
    "fill": "np.full_like(x, value)",
    "flat": "x.ravel()",
    "imag": "np.imag(x)",
    "partition": "np.asarray(x) outside jit",
    "put": "x.at[index].set(values)",
    "real": "np.real(x)",
    "resize": "x.reshape(shape)",
    "sort": "np.sort(x)",
    "tobytes": "np.asarray(x).tobytes() outside jit",
}


def missing_attribute(x: object, name: str) -> AttributeError:
    """The error for an attribute that an array does not have."""
    if name in _INSTEAD:
        return AttributeError(message("array", f"has no attribute {name!r}", None, f"use {_INSTEAD[name]}"))
    return AttributeError(f"{type(x).__name__!r} object has no attribute {name!r}", name=name, obj=x)
