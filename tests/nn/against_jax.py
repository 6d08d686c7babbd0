# SPDX-License-Identifier: Apache-2.0
"""Functions of `sw.nn` beside JAX functions: plain, as `sw.Array`, traced on even and uneven meshes, and gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P
from tests.support.oracles import oracle

__all__ = ["JAX", "MESH", "QUICK", "check", "check_gradient", "near", "of_jax", "traced", "weighted"]

JAX: Any = oracle("jax")
MESH = sw.Mesh({"x": 3, "y": 2})  # dims of 4 and 5 are uneven over 3
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}  # to compile
RTOL = {"float64": 1e-12, "float32": 2e-5, "bfloat16": 4e-2, "float16": 4e-3}


def check(ours: Callable[..., Any], theirs: Any, *args: Any, is_elementwise: bool = False, **tolerances: float) -> None:
    """Both functions give the same results of NumPy arrays, in the same dtypes. Each argument is sharded.

    ``theirs`` may be a list of the results. Elementwise functions have the same program for any sharding, and are
    traced once.
    """
    expected = theirs if isinstance(theirs, list) else of_jax(theirs, args)
    plain = ours(*args)
    assert all(isinstance(leaf, (np.ndarray, np.generic)) for leaf in leaves(plain))
    near(plain, expected, **tolerances)
    placed = [sw.device_put(x, sw.NamedSharding(MESH, placements([x])[-1][0])) for x in args]
    found = ours(*placed)
    assert all(isinstance(leaf, sw.Array) for leaf in leaves(found))
    near(found, expected, **tolerances)
    for specs in placements(args)[-1:] if is_elementwise else placements(args):
        near(traced(ours, specs)(*args), expected, **tolerances)


def check_gradient(
    ours: Callable[..., Any], theirs: Any, *args: Any, is_elementwise: bool = False, **tolerances: float
) -> None:
    """The gradients of a weighted sum of the results by each argument are the same, sharded along one dim and two."""
    positions = tuple(range(len(args)))
    expected = theirs if isinstance(theirs, list) else of_jax(JAX.grad(weighted(theirs), argnums=positions), args)
    for specs in placements(args)[-1:] if is_elementwise else placements(args)[1:2] + placements(args)[-1:]:
        near(traced(sw.grad(weighted(ours), argnums=positions), specs)(*args), expected, **tolerances)


def weighted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A scalar that depends on each element of the first result."""

    def of(*args: Any) -> Any:
        values = leaves(function(*args))[0]
        return (values * weights_of(values.shape).astype(values.dtype)).sum()

    return of


def traced(function: Callable[..., Any], specs: Sequence[P]) -> Callable[..., Any]:
    return sw.jit(lambda *xs: function(*(sw.shard(x, s) for x, s in zip(xs, specs))), mesh=MESH)


def placements(args: Sequence[Any]) -> list[list[P]]:
    """Specs of the arguments: none sharded; one dim of each (uneven, too); and two dims over both axes."""
    ndims = [np.ndim(x) for x in args]
    one = [[P(*("x" if k == n - 1 - d else None for k in range(n))) for n in ndims] for d in range(max(ndims))]
    both = [P(*("y", "x")[:n]) for n in ndims]
    return [[P() for _ in args], *one, both]


def of_jax(function: Callable[..., Any], args: Sequence[Any]) -> list[Any]:
    """Results as NumPy arrays; 64-bit arguments keep their width."""
    with JAX.enable_x64(any(np.asarray(x).dtype.itemsize == 8 for x in args)):
        return [np.asarray(leaf) for leaf in leaves(JAX.jit(function, compiler_options=QUICK)(*args))]


def weights_of(shape: tuple[int, ...]) -> np.ndarray:
    return np.cos(1.0 + np.arange(np.prod(shape, dtype=int))).reshape(shape)


def leaves(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (tuple, list)) else [x]


def near(found: Any, expected: Sequence[Any], rtol: float | None = None, atol: float | None = None) -> None:
    assert len(leaves(found)) == len(expected)
    for one, other in zip(leaves(found), expected):
        assert one.dtype == other.dtype
        close = RTOL.get(other.dtype.name, 0.0) if rtol is None else rtol
        wide = np.float64 if other.dtype.kind in "fV" else other.dtype
        one, other = np.asarray(one).astype(wide), np.asarray(other).astype(wide)
        np.testing.assert_allclose(one, other, rtol=close, atol=close / 10 if atol is None else atol)
