# SPDX-License-Identifier: Apache-2.0
"""The basic layers of a Transformer, as NumPy functions with dicts of arrays as parameters.

Letters in shapes: G groups (sequences), S tokens of a group, M width, H hidden units, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import nn
from ..annotations import replicate, shard, split
from ..errors import ShapeError, described
from ..shardings.sharding import PartitionSpec
from .checks import check_floats, check_forms, check_ids, check_mask
from .configs import Axes, AxisNames, axes_of, called_with, check_number, is_not_negative, message

__all__ = ["cross_entropy", "embedding", "feed_forward", "layer_norm", "one_hot", "softmax"]


def split_dim(x: Any, dim: int, axes: AxisNames) -> Any:
    """Split dim ``dim`` of ``x`` over ``axes``; None adds no annotation."""
    return x if axes is None else split(x, dim, axes)


def replicate_weight(x: Any, axes: Axes) -> Any:
    """Replicate a non-expert weight, if the model is annotated."""
    return replicate(x) if axes.annotated else x


def shard_weight(x: Any, axes: Axes, *dims: AxisNames) -> Any:
    """Shard a weight over these axes, with all dims closed, if the model is annotated."""
    if not axes.annotated:
        return x
    with called_with("axes"):
        return shard(x, PartitionSpec(*dims))


def as_operand(weight: Any, x: Any) -> Any:
    """A weight as an operand of a product with ``x``, in the dtype of ``x``.

    This is where a precision policy takes effect: weights stay float32 for norms and updates, and their products with
    bfloat16 activations read bfloat16. Annotate the operand, not the weight: what an annotation gathers, and the
    gradient that it reduces, then are narrow, too.
    """
    return weight if weight.dtype == x.dtype else weight.astype(x.dtype)


def number_like(value: float, x: Any) -> Any:
    """A number in the dtype of ``x``. NumPy makes a float32 of bfloat16 and a Python float."""
    return np.asarray(value).astype(x.dtype)


def at_least_float32(x: Any) -> Any:
    """``x``, or its float32 copy if its dtype is narrower."""
    return x if x.dtype.itemsize >= 4 else x.astype(np.float32)


def einsum(subscripts: str, *operands: Any) -> Any:
    """``np.einsum`` by matrix products where NumPy supports them, in the dtype of the operands.

    NumPy's einsum supports bfloat16 in some products only, and returns float32. Narrow arrays are
    multiplied in float32.
    """
    dtype = np.result_type(*(operand.dtype for operand in operands))
    if dtype.itemsize < 4 and all(isinstance(operand, np.ndarray) for operand in operands):
        operands = tuple(at_least_float32(operand) for operand in operands)
    product = np.einsum(subscripts, *operands, optimize=True)
    return product if product.dtype == dtype else product.astype(dtype)


def one_hot(indices: Any, size: int) -> Any:
    """One-hot encode indices: bool, with a new last dim of ``size``. An index out of range gives a row of False.

    >>> one_hot(np.array([2, 0, 5]), 3).astype(int)
    array([[0, 0, 1],
           [1, 0, 0],
           [0, 0, 0]])
    """
    dtype = indices.dtype
    if dtype.kind in "iu" and size - 1 > np.iinfo(dtype).max:
        dtype = np.dtype(np.int32)  # a narrower one would count from its least number again
    return indices[..., None] == np.arange(size, dtype=dtype, like=indices)


def softmax(x: Any) -> Any:
    """Softmax over the last dim: ``exp(x) / sum(exp(x))``, without overflow.

    >>> softmax(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """
    exponential = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return exponential / np.sum(exponential, axis=-1, keepdims=True)


def dropout(key: Any, x: Any, rate: float) -> Any:
    """:func:`shardwise.nn.dropout`; without a key, ``x`` as it is."""
    return x if key is None else nn.dropout(x, key, rate)


def layer_norm(params: dict[str, Any], x: Any, *, axes: Axes | AxisNames = None, epsilon: float = 1e-6) -> Any:
    """Layer normalization: subtract the mean of each token, divide by its deviation, then scale and shift.

    Args:
        params: ``scale`` and ``bias``, both (M,).
        x: (..., M), floating. Dtypes below float32 are normalized in float32.
        axes: if given, the parameters are replicated.
        epsilon: added to the variance.

    Returns:
        The shape and dtype of ``x``.
    """
    check_forms("layer_norm", params, {"scale": "M", "bias": "M"}, M=x.shape[-1])
    check_number("layer_norm", "epsilon", epsilon, "must not be negative", is_not_negative)
    axes = axes_of(axes)
    wide = at_least_float32(x)
    centred = wide - np.mean(wide, axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    normalised = centred / np.sqrt(variance + epsilon)
    output = normalised * replicate_weight(params["scale"], axes) + replicate_weight(params["bias"], axes)
    return output if wide is x else output.astype(x.dtype)


def feed_forward(params: dict[str, Any], x: Any, *, axes: Axes | AxisNames = None) -> Any:
    """A feed-forward layer: ``relu(x @ wi) @ wo``.

    Args:
        params: ``wi`` (M, H) and ``wo`` (H, M).
        x: (G, S, M).
        axes: ``hidden`` splits H. Otherwise, the weights are replicated.
    """
    check_floats("feed_forward", "x", x, "GSM")
    check_forms("feed_forward", params, {"wi": "MH", "wo": "HM"}, M=x.shape[-1])
    axes = axes_of(axes)
    wi = shard_weight(as_operand(params["wi"], x), axes, None, axes.hidden)
    wo = shard_weight(as_operand(params["wo"], x), axes, axes.hidden, None)
    hidden = np.maximum(einsum("gsm,mh->gsh", x, wi), 0)
    return einsum("gsh,hm->gsm", hidden, wo)


def embedding(params: dict[str, Any], tokens: Any, *, positions: Any = None, axes: Axes | AxisNames = None) -> Any:
    """Embed tokens and their positions: ``table[tokens] + positions``.

    Args:
        params: ``table`` (V, M) and ``positions`` (at least S, M).
        tokens: (G, S), integers below V.
        positions: (G, S), integers: the place of each token in its sequence. None: 0, 1, … for each sequence.
        axes: ``groups`` splits the result, and the table is replicated.
    """
    check_forms("embedding", params, {"table": "VM", "positions": "SM"})
    rows, most = params["table"].shape[0], params["positions"].shape[0]
    check_ids("embedding", "tokens", tokens, "GS", rows)
    if positions is None and tokens.shape[1] > most:
        raise ShapeError(message("embedding", f"tokens must have at most {most} columns", described(tokens)))
    axes = axes_of(axes)
    table, places = replicate_weight(params["table"], axes), replicate_weight(params["positions"], axes)
    tokens = split_dim(tokens, 0, axes.groups)
    added = places[: tokens.shape[1]] if positions is None else _rows(places, positions)
    return split_dim(_rows(table, tokens) + added, 0, axes.groups)


def _rows(table: Any, indices: Any) -> Any:
    """``table[indices]``. ``np.take`` of a NumPy array asks traced indices for their values."""
    if isinstance(table, np.ndarray) and not isinstance(indices, np.ndarray):
        table = np.asarray(table, like=indices)
    return np.take(table, indices, axis=0)


def cross_entropy(logits: Any, targets: Any, *, mask: Any = None, smoothing: float = 0.0) -> Any:
    """Cross-entropy: the mean over all tokens of ``-log softmax(logits)[target]``.

    Args:
        logits: (..., V), floating. Dtypes below float32 are computed in float32.
        targets: (...), integers below V.
        mask: (...), bool: the tokens that count, without padding. None: all.
        smoothing: the share of the target distribution that is spread over the whole vocabulary (label smoothing).

    Source: Szegedy et al. 2016, section 7, for the smoothing.

    >>> round(float(cross_entropy(np.zeros((2, 3, 256)), np.zeros((2, 3), np.int64))), 3)  # log 256
    5.545
    """
    check_floats("cross_entropy", "logits", logits)
    check_mask("cross_entropy", mask, "(...)", logits.shape[:-1])
    if tuple(getattr(targets, "shape", ())) != tuple(logits.shape[:-1]):
        rule = f"targets must be (...) = {tuple(logits.shape[:-1])}"
        raise ShapeError(message("cross_entropy", rule, described(targets)))
    check_ids("cross_entropy", "targets", targets, "", logits.shape[-1], mask)
    check_number("cross_entropy", "smoothing", smoothing, "must be from 0 to below 1", lambda x: 0 <= x < 1)
    logits = at_least_float32(logits)
    shifted = logits - np.max(logits, axis=-1, keepdims=True)
    log_normaliser = np.log(np.sum(np.exp(shifted), axis=-1))
    chosen = np.sum(np.where(one_hot(targets, logits.shape[-1]), shifted, 0), axis=-1)
    if smoothing:
        chosen = (1 - smoothing) * chosen + smoothing * np.mean(shifted, axis=-1)
    losses = log_normaliser - chosen
    if mask is None:
        return np.mean(losses)
    return np.sum(np.where(mask, losses, 0)) / np.maximum(np.sum(mask, dtype=np.int32), 1).astype(losses.dtype)
