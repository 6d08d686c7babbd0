# SPDX-License-Identifier: Apache-2.0
"""Random keys of JAX (`jax.random.key`), which are no arrays of numbers, as arguments and results of programs.

To Shardwise, a key is a tree with one leaf, its data: uint32, of shape (2,) for threefry. A traced function that is
given a key sees a :class:`RandomKey`, and passes it to functions from JAX, which see the key. A `jax.ShapeDtypeStruct`
of keys is the same tree, of shapes. In trees of shardings, a key has one :class:`LeafSharding`.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from ..array import Array, ShapeDtypeStruct
from ..process.foreign import DescribedNode, ForeignNode
from ..trees.registry import register_pytree_node

__all__ = [
    "LeafSharding",
    "RandomKey",
    "described_key",
    "is_key_or_its_shape",
    "is_random_key",
    "is_shape_of_key",
    "key_node",
    "random_key_of",
    "without_keys",
]

_NO_PATH = ""  # errors and reports name the key, not its data


class RandomKey:
    """A random key of JAX in a traced function.

    Attributes:
        data: the tracer of its data.
        impl: the name of its generator, such as ``"threefry2x32"``.
    """

    def __init__(self, data: Any, impl: str) -> None:
        self.data = data
        self.impl = impl

    def __repr__(self) -> str:
        return f"RandomKey({self.data!r}, impl={self.impl!r})"

    @staticmethod
    def restored(data: Any, impl: str) -> Any:
        """A key of JAX with this data, if JAX is loaded; else a :class:`RandomKey`."""
        return _KeyStructure(impl).unflatten([data])


class LeafSharding:
    """The `NamedSharding` of a leaf of a program, with the dims of the leaf."""

    def __init__(self, sharding: Any, ndim: int) -> None:
        self.sharding = sharding
        self.ndim = ndim

    def of_keys(self) -> LeafSharding:
        """That of the keys whose data this leaf is: all dims but the last one."""
        jax = sys.modules["jax"]
        spec = jax.sharding.PartitionSpec(*tuple(self.sharding.spec)[: self.ndim - 1])
        return LeafSharding(jax.sharding.NamedSharding(self.sharding.mesh, spec), self.ndim - 1)


class _KeyStructure(NamedTuple):
    """The static part of a key: the name of its generator."""

    impl: str

    def unflatten(self, children: list[Any]) -> Any:
        """A key of JAX for arrays, and for what JAX traces; else a :class:`RandomKey`."""
        (data,) = children
        if isinstance(data, LeafSharding):
            return data.of_keys()
        jax = sys.modules.get("jax")
        if jax is not None and isinstance(data, (np.ndarray, Array, jax.Array)):
            return jax.random.wrap_key_data(np.asarray(data) if isinstance(data, Array) else data, impl=self.impl)
        return RandomKey(data, self.impl)


register_pytree_node(
    RandomKey,
    lambda key: ((key.data,), key.impl),
    lambda impl, children: _KeyStructure(impl).unflatten(list(children)),
    lambda key: (((_NO_PATH, key.data),), key.impl),
)


def is_random_key(x: Any) -> bool:
    """Whether ``x`` is an array of random keys of JAX."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, jax.Array) and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)


def random_key_of(x: Any) -> RandomKey | None:
    """A random key of JAX as data and the name of its generator; None for anything else."""
    if isinstance(x, RandomKey):
        return x
    if not is_random_key(x):
        return None
    jax = sys.modules["jax"]
    return RandomKey(jax.random.key_data(x), str(jax.random.key_impl(x)))


def is_shape_of_key(x: Any) -> bool:
    """Whether ``x`` is the `jax.ShapeDtypeStruct` of random keys."""
    jax = sys.modules.get("jax")
    return (
        jax is not None and isinstance(x, jax.ShapeDtypeStruct) and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)
    )


def is_key_or_its_shape(x: Any) -> bool:
    """Whether ``x`` is an array of random keys, or the shape of one."""
    return is_random_key(x) or is_shape_of_key(x)


def described_key(x: Any) -> DescribedNode | None:
    """The key that a `jax.ShapeDtypeStruct` describes; None for anything else.

    A program that is lowered for it takes keys, so its tree is that of a key.
    """
    if not is_shape_of_key(x):
        return None
    jax = sys.modules["jax"]
    names = []

    def data_of(key: Any) -> Any:
        names.append(str(jax.random.key_impl(key)))  # takes only keys
        return jax.random.key_data(key)

    data = jax.eval_shape(data_of, x)
    with jax.ensure_compile_time_eval():
        example = jax.random.key(0, impl=names[0])
    return DescribedNode(example, [ShapeDtypeStruct(data.shape, data.dtype, sharding=x.sharding)])


def key_node(x: Any) -> ForeignNode | None:
    """A key of JAX as a node of a tree; None for anything else.

    Trees know nodes by their class, and what JAX traces has one class for keys and numbers: these keys are leaves.
    """
    jax = sys.modules.get("jax")
    if jax is None or isinstance(x, jax.core.Tracer) or not is_random_key(x):
        return None
    return ForeignNode([jax.random.key_data(x)], [_NO_PATH], _KeyStructure(str(jax.random.key_impl(x))))


def without_keys(tree: Any) -> Any:
    """A tree of JAX with a :class:`RandomKey` in place of each key."""
    jax = sys.modules["jax"]
    _register_in_jax()
    return jax.tree.map(
        lambda x: RandomKey(jax.random.key_data(x), str(jax.random.key_impl(x))) if is_random_key(x) else x, tree
    )


_registered = False


def _register_in_jax() -> None:
    global _registered
    if not _registered:
        _registered = True
        sys.modules["jax"].tree_util.register_pytree_node(
            RandomKey, lambda key: ((key.data,), key.impl), lambda impl, children: RandomKey(children[0], impl)
        )
