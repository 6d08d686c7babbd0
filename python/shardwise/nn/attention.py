# SPDX-License-Identifier: Apache-2.0
"""Attention by scaled dot products.

Letters in shapes: B sequences, T queries of each, S keys and values, N query heads, K key/value heads, H head size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dtypes import is_float
from ..errors import DTypeError, ShapeError, message, shown
from ._arguments import as_array, inexact, like, number, public, wide
from .softmax import softmax_of

__all__ = ["dot_product_attention"]

_NAME = "nn.dot_product_attention"


@public
def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: int | tuple[int, int] | None = None,
) -> Any:
    """``softmax(query @ key.T * scale + bias) @ value`` for each sequence and each head.

    Args:
        query: (B, T, N, H) or (T, N, H), floating.
        key: (B, S, K, H) or (S, K, H), of the same dtype. K divides N: each key/value head serves N / K query heads.
        value: as ``key``.
        bias: (B, N, T, S), or sizes of 1, or fewer dims; added to the logits.
        mask: bools, as ``bias``: where False, a query does not see a key.
        scale: a number; None for ``1 / sqrt(H)``.
        is_causal: query t sees keys up to t only.
        query_seq_lengths: (B,) integers: the results of later queries are 0.
        key_value_seq_lengths: (B,) integers: later keys are not seen.
        local_window_size: query t sees keys from t - left to t + right; one number stands for both.

    Returns:
        The shape and dtype of ``query``. Logits and softmax are computed in float32 at least. (JAX computes the
        softmax of float64 in float32; here it stays float64.) A query that sees no key gives the mean of all values.

    Raises:
        ShapeError: the shapes do not fit each other.
        DTypeError: the dtypes differ, are not floating, or ``mask`` is not of bools.

    Layout: split sequences, queries or heads need no communication (heads: if K is split as N is, or whole). Along
    split keys, three all_reduces, of two row statistics and of the results; where these are small, the split may move
    to another dim instead.

    Source: `jax.nn.dot_product_attention`; Vaswani et al. 2017, section 3.2; Ainslie et al., "GQA", 2023.

    >>> rows = np.eye(3)[:, None]  # (S, K, H) = (3, 1, 3)
    >>> dot_product_attention(rows, rows, rows, is_causal=True, scale=0.0)[:, 0].round(2)
    array([[1.  , 0.  , 0.  ],
           [0.5 , 0.5 , 0.  ],
           [0.33, 0.33, 0.33]])
    """
    given = [as_array(_NAME, x, name) for name, x in {"query": query, "key": key, "value": value}.items()]
    output_shape = tuple(given[0].shape)
    query, key, value = (_with_four_dims(x) for x in given)
    _check(query, key, value)
    batch, targets, heads, size = query.shape
    sources, groups = key.shape[1], key.shape[2]
    lengths = [
        _lengths(name, given, batch)
        for name, given in (("query", query_seq_lengths), ("key_value", key_value_seq_lengths))
    ]
    places = [np.arange(count, dtype=np.int32, like=query) for count in (targets, sources)]
    seen = _seen(_rows("mask", mask, query, key), places, is_causal, local_window_size, lengths)
    added = _rows("bias", bias, query, key)

    # One key/value head for each query head needs no further dim: BTNH,BSNH->BNTS, else BTKGH,BSKH->BKGTS.
    each = heads // groups if groups else 1
    logits = _product("bqhd,bkhd->bhqk", "bqhgd,bkhd->bhgqk", _grouped(wide(query), 2, groups, each), wide(key), each)
    factor = like(size**-0.5 if size else 1.0, logits) if scale is None else number(_NAME, "scale", scale, logits)
    logits = logits * factor
    if added is not None:
        logits = (logits + _grouped(added, 1, groups, each)).astype(logits.dtype)
    if seen is not None:
        lowest = -0.7 * float(np.finfo(np.float32).max)
        logits = np.where(_grouped(seen, 1, groups, each), logits, like(lowest, logits))
    shares = softmax_of(logits, (len(logits.shape) - 1,)).astype(key.dtype)
    found = _product("bhqk,bkhd->bqhd", "bhgqk,bkhd->bqhgd", wide(shares), wide(value), each).astype(key.dtype)
    found = found.reshape(query.shape)
    if lengths[0] is not None:
        inside = places[0][None, :] < lengths[0][:, None]
        found = np.where(inside[:, :, None, None], found, like(0, found))
    return found.reshape(output_shape)


def _product(alone: str, grouped: str, a: Any, b: Any, each: int) -> Any:
    return np.einsum(alone if each == 1 else grouped, a, b, optimize=True)


def _grouped(x: Any, dim: int, groups: int, each: int) -> Any:
    """Split the heads, dim ``dim``, into groups, one for each key/value head. A dim of size 1 becomes two."""
    if each == 1:
        return x
    sizes = (1, 1) if x.shape[dim] == 1 and groups * each > 1 else (groups, each)
    return x.reshape(*x.shape[:dim], *sizes, *x.shape[dim + 1 :])


def _with_four_dims(x: Any) -> Any:
    return x.reshape(*(1,) * (4 - len(x.shape)), *x.shape) if len(x.shape) < 4 else x


def _check(query: Any, key: Any, value: Any) -> None:
    dtypes = {x.dtype for x in (query, key, value)}
    if len(dtypes) != 1 or not is_float(query.dtype):
        got = ", ".join(str(x.dtype) for x in (query, key, value))
        raise DTypeError(message(_NAME, "query, key and value must have one floating dtype", got, "convert them"))
    got = ", ".join(str(tuple(x.shape)) for x in (query, key, value))
    fits = len(query.shape) == len(key.shape) == 4 and tuple(key.shape) == tuple(value.shape)
    if not fits or query.shape[0] != key.shape[0] or query.shape[3] != key.shape[3]:
        rule = "query must be (B, T, N, H), and key and value (B, S, K, H)"
        raise ShapeError(message(_NAME, rule, got, "reshape or transpose them"))
    heads, groups = query.shape[2], key.shape[2]
    if heads % groups if groups else heads:
        rule = "the number of query heads must be a multiple of that of the key/value heads"
        raise ShapeError(message(_NAME, rule, f"{heads} and {groups}"))


def _rows(name: str, given: Any, query: Any, key: Any) -> Any:
    """A bias or a mask as (B or 1, N or 1, T or 1, S or 1), or None."""
    if given is None:
        return None
    x = as_array(_NAME, given, name)
    if name == "mask" and x.dtype != bool:
        raise DTypeError(message(_NAME, "mask must be of bools", str(x.dtype), "compare it with 0"))
    x = x if name == "mask" else inexact(_NAME, x, name)
    shape = (query.shape[0], query.shape[2], query.shape[1], key.shape[1])
    found = _with_four_dims(x)
    if len(found.shape) != 4 or any(a not in (1, b) for a, b in zip(found.shape, shape)):
        rule = f"{name} must broadcast to (B, N, T, S) = {tuple(shape)}"
        raise ShapeError(message(_NAME, rule, f"shape {tuple(x.shape)}", "reshape it"))
    return found


def _lengths(name: str, given: Any, batch: int) -> Any:
    if given is None:
        return None
    x = as_array(_NAME, given, f"{name}_seq_lengths")
    if x.dtype.kind not in "iu":
        raise DTypeError(message(_NAME, f"{name}_seq_lengths must be integers", str(x.dtype), "convert them"))
    if tuple(x.shape) != (batch,):
        raise ShapeError(message(_NAME, f"{name}_seq_lengths must have shape ({batch},)", f"{tuple(x.shape)}"))
    return x


def _seen(mask: Any, places: list[Any], is_causal: bool, window: Any, lengths: list[Any]) -> Any:
    """Which query sees which key, as bools that broadcast to (B, N, T, S), or None if each sees all."""
    at, to = places[0][:, None], places[1][None, :]
    parts = [] if mask is None else [mask]
    if is_causal:
        parts.append((at >= to)[None, None])
    if window is not None:
        left, right = window if isinstance(window, (tuple, list)) and len(window) == 2 else (window, window)
        if not all(isinstance(reach, (int, np.integer)) for reach in (left, right)):
            raise TypeError(message(_NAME, "local_window_size must be one integer or two", shown(window)))
        parts.append(((at <= to + left) & (at >= to - right))[None, None])
    for place, length in zip((at, to), lengths):
        if length is not None:
            parts.append(place[None, None] < length[:, None, None, None])
    if not parts:
        return None
    seen = parts[0]
    for part in parts[1:]:
        seen = np.logical_and(seen, part)
    return seen
