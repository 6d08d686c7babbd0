# SPDX-License-Identifier: Apache-2.0
"""Functions of neural networks under the names of `jax.nn`, Flax and Optax.

They are NumPy functions: plain arrays give plain arrays, `sw.Array` and traced arrays stay sharded. Parameters are
arguments; there are no classes and no state. Floats keep their dtype, Python numbers take it, and integers become
float64.

>>> import numpy as np
>>> import shardwise as sw
>>> mesh = sw.Mesh({"model": 4})
>>> probabilities = sw.jit(sw.nn.softmax, mesh=mesh, in_shardings=sw.P(None, "model"))
>>> np.asarray(probabilities(np.zeros((2, 4))))
array([[0.25, 0.25, 0.25, 0.25],
       [0.25, 0.25, 0.25, 0.25]])
"""

from __future__ import annotations

from . import initializers
from .activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    identity,
    leaky_relu,
    log1mexp,
    log_sigmoid,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softplus,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    swish,
    tanh,
)
from .attention import dot_product_attention
from .losses import (
    cosine_similarity,
    huber_loss,
    l2_loss,
    log_cosh,
    sigmoid_binary_cross_entropy,
    softmax_cross_entropy,
    softmax_cross_entropy_with_integer_labels,
    squared_error,
)
from .normalization import batch_norm, dropout, layer_norm, rms_norm, standardize
from .pooling import avg_pool, max_pool, min_pool
from .softmax import log_softmax, logmeanexp, logsumexp, one_hot, softmax

__all__ = [
    "avg_pool",
    "batch_norm",
    "celu",
    "cosine_similarity",
    "dot_product_attention",
    "dropout",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "huber_loss",
    "identity",
    "initializers",
    "l2_loss",
    "layer_norm",
    "leaky_relu",
    "log1mexp",
    "log_cosh",
    "log_sigmoid",
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "max_pool",
    "min_pool",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "rms_norm",
    "selu",
    "sigmoid",
    "sigmoid_binary_cross_entropy",
    "silu",
    "soft_sign",
    "softmax",
    "softmax_cross_entropy",
    "softmax_cross_entropy_with_integer_labels",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squared_error",
    "squareplus",
    "standardize",
    "swish",
    "tanh",
]
