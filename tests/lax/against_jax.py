# SPDX-License-Identifier: Apache-2.0
"""Calls of `sw.lax` beside the same calls of `jax.lax`: plain, as `sw.Array`, traced, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P
from tests.support.oracles import oracle

__all__ = ["JAX", "MESH", "check", "check_gradient", "placements"]

JAX: Any = oracle("jax")
MESH = sw.Mesh({"x": 4, "y": 2})


def placements(x: np.ndarray) -> list[Any]:
    """Specs that shard the dims of an array, uneven ones too: none, each dim alone, and the first over both axes."""
    one = [P(*("x" if k == d else None for k in range(x.ndim))) for d in range(x.ndim)]
    return [P(), *one, *([P(("x", "y"))] if x.ndim else [])]


def check(name: str, *args: Any, rtol: float = 0.0, atol: float = 0.0, **options: Any) -> None:
    """The function called ``name`` gives JAX's results for arrays of every kind. The first argument is sharded."""
    ours, theirs = getattr(sw.lax, name), getattr(JAX.lax, name)
    with JAX.enable_x64(True):
        expected = leaves(theirs(*[as_jax(x) for x in args], **options))
    plain = ours(*args, **options)
    assert all(isinstance(leaf, np.ndarray) for leaf in leaves(plain))
    compare(plain, expected, rtol, atol)
    first, *rest = args
    if not isinstance(first, np.ndarray):
        return
    for spec in placements(first):
        run = sw.jit(lambda x, s=spec: ours(sw.shard(x, s), *rest, **options), mesh=MESH)
        compare(run(first), expected, rtol, atol)


def check_gradient(name: str, *args: Any, rtol: float = 1e-10, **options: Any) -> None:
    """The gradient of a weighted sum of the results, in float64, equals JAX's."""
    ours, theirs = getattr(sw.lax, name), getattr(JAX.lax, name)
    first, *rest = args

    def loss(function: Callable[..., Any], library: Any) -> Callable[[Any], Any]:
        def of(x: Any) -> Any:
            found = function(x, *rest, **options)
            values = found[0] if isinstance(found, (tuple, list)) else found
            return (values * weights_of(values.shape)).sum()

        return of

    with JAX.enable_x64(True):
        expected = np.asarray(JAX.grad(loss(theirs, JAX.numpy))(JAX.numpy.asarray(first)))
    for spec in placements(first):
        run = sw.jit(lambda x, s=spec: sw.grad(loss(ours, np))(sw.shard(x, s)), mesh=MESH)
        np.testing.assert_allclose(run(first), expected, rtol=rtol, atol=rtol)


def weights_of(shape: tuple[int, ...]) -> np.ndarray:
    return np.cos(1.0 + np.arange(np.prod(shape, dtype=int))).reshape(shape)


def as_jax(x: Any) -> Any:
    if isinstance(x, (tuple, list)) and any(isinstance(part, np.ndarray) for part in x):
        return type(x)(as_jax(part) for part in x)
    return JAX.numpy.asarray(x) if isinstance(x, (np.ndarray, np.generic)) else x


def leaves(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (tuple, list)) else [x]


def compare(found: Any, expected: list[Any], rtol: float, atol: float) -> None:
    assert len(leaves(found)) == len(expected)
    for one, other in zip(leaves(found), expected):
        assert one.dtype == other.dtype
        wide = np.float64 if np.dtype(one.dtype).kind in "fV" else one.dtype
        np.testing.assert_allclose(np.asarray(one).astype(wide), np.asarray(other).astype(wide), rtol=rtol, atol=atol)
