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
    "argpartition": "np.argsort(x)",
    "choose": "np.choose(x, choices)",
    "dump": "np.save(file, np.asarray(x)) outside jit",
    "fill": "np.full_like(x, value)",
    "flat": "x.ravel()",
    "getfield": "x.view(dtype)",
    "imag": "np.imag(x)",
    "itemset": "x.at[index].set(value)",
    "partition": "np.sort(x)",
    "put": "x.at[index].set(values)",
    "real": "np.real(x)",
    "resize": "x.reshape(shape)",
    "setfield": "x.at[index].set(values)",
    "sort": "np.sort(x)",
    "tofile": "np.save(file, np.asarray(x)) outside jit",
    **{name: f"np.asarray(x).{name}() outside jit" for name in ("byteswap", "dumps", "tobytes", "tolist", "tostring")},
    # Memory that a traced array does not have; one of NumPy's is never written
    **{name: f"np.asarray(x).{name} outside jit" for name in ("base", "ctypes", "data", "flags", "strides")},
    "setflags": "np.asarray(x).copy() for an array that can be written",
    # JAX's arrays
    "addressable_data": "x.addressable_shards[i].data",
    "copy_to_host_async": "sw.device_get(x)",
    "devices": "x.sharding.mesh",
    "global_shards": "x.addressable_shards",
    "on_device_size_in_bytes": "x.nbytes",
    "unsafe_buffer_pointer": "np.asarray(x).ctypes outside jit",
}


def missing_attribute(x: object, name: str) -> AttributeError:
    """The error for an attribute that an array does not have."""
    if name in _INSTEAD:
        return AttributeError(message("array", f"has no attribute {name!r}", None, f"use {_INSTEAD[name]}"))
    return AttributeError(f"{type(x).__name__!r} object has no attribute {name!r}", name=name, obj=x)
