# SPDX-License-Identifier: Apache-2.0
"""Mistakes in calls of several functions that share code: the message begins with the function that was called."""

from __future__ import annotations

import numpy as np

import shardwise as sw
from shardwise import P, dtensor
from shardwise.dtensor import Partial, Replicate, Shard
from tests.errors.mistakes import MESH, X, row

ON_MESH = sw.device_put(np.arange(8.0), MESH)


@row(sw.ShardingError, r"^shard: a spec for 1 dims must have at most 1 entries, got P\(None, 'data'\)")
def shard_of_an_array_by_too_many_entries() -> None:
    sw.shard(ON_MESH, P(None, "data"))


@row(sw.ShardingError, r'^shard: an axis must be of mesh @mesh, got "x"; use one of "data", "model"')
def shard_of_an_array_by_another_axis() -> None:
    sw.shard(ON_MESH, P("x"))


@row(sw.ShardingError, r'^split: an axis must be of mesh @mesh, got "y"; use one of "data", "model"')
def split_of_an_array_by_another_axis() -> None:
    sw.split(ON_MESH, 0, "y")


@row(sw.ShardingError, r"^device_put: a spec for 1 dims must have at most 1 entries, got P\(None, 'data'\)")
def device_put_by_too_many_entries() -> None:
    sw.device_put(np.arange(8.0), sw.NamedSharding(MESH, P(None, "data")))


@row(sw.ShardingError, r'^device_put: an axis must be of mesh @mesh, got "x"; use one of "data", "model"')
def device_put_by_another_axis() -> None:
    sw.device_put(ON_MESH, P("x"))


@row(sw.DTypeError, r"^device_put: every leaf must be an array of numbers, got str 'a' for x; ")
def device_put_of_text() -> None:
    sw.device_put("a", MESH)


@row(sw.ShardingError, r"^distribute_tensor: a tensor outside of a traced function cannot be Partial, got \[Partial")
def distribute_partially() -> None:
    dtensor.distribute_tensor(X, MESH, [Partial(), Replicate()])


@row(sw.ShapeError, r"^redistribute: dim of Shard must be an integer in \[-1, 1\), got 3")
def redistribute_along_another_dim() -> None:
    dtensor.redistribute(ON_MESH, MESH, [Shard(3), Replicate()])


@row(sw.ShardingError, r"^redistribute: placements must be one for each of the 2 dims of .*, got \[Shard\(dim=0\)\]")
def redistribute_along_some_axes() -> None:
    dtensor.redistribute(ON_MESH, MESH, [Shard(0)])


@row(sw.DTypeError, r"^distribute_tensor: every leaf must be an array of numbers, got str 'a' for x; ")
def distribute_text() -> None:
    dtensor.distribute_tensor("a", MESH)


@row(sw.MeshError, r"^from_local: no mesh given; pass device_mesh, or call set_mesh first")
def from_local_without_a_mesh() -> None:
    dtensor.from_local([X])


@row(
    sw.DTypeError,
    r"^value_and_grad: an argument to differentiate by must be floating, got int64\[3\] for x; convert it",
)
def value_and_gradient_of_integers() -> None:
    sw.value_and_grad(lambda x: (x**2).sum())(np.arange(3))


@row(sw.ShapeError, r"^value_and_grad: the function must return a scalar, got shape \(3,\); reduce it")
def value_and_gradient_of_an_array() -> None:
    sw.value_and_grad(lambda x: x * 2)(np.arange(3.0))


@row(sw.ShapeError, r"^value_and_grad: argnums must be in \[-1, 1\), the positional arguments, got 2")
def value_and_gradient_by_a_missing_argument() -> None:
    sw.value_and_grad(lambda x: x.sum(), argnums=2)(np.arange(3.0))


@row(sw.DTypeError, r"^grad: an output must be an array, got str 'a' for result")
def gradient_with_text_beside_it() -> None:
    sw.grad(lambda x: (x.sum(), "a"), has_aux=True)(np.arange(3.0))


@row(sw.DTypeError, r"^eval_shape: argument x must be an array of numbers, got str 'a'; bind it with functools.partial")
def shape_for_text() -> None:
    sw.eval_shape(lambda x: x * 2, "a")


@row(sw.DTypeError, r"^eval_shape: an output must be an array, got str 'a' for result; ")
def shape_of_text() -> None:
    sw.eval_shape(lambda x: "a", X)


@row(sw.ShardingError, r"^shard_map: axis_names must be of the mesh, and not manual already, got 'z'; use one of")
def shard_map_along_another_axis() -> None:
    sw.shard_map(lambda x: x, mesh=MESH, in_specs=P(), out_specs=P(), axis_names={"z"})(X)


@row(TypeError, r"^shard_map: takes a function, got 3")
def shard_map_of_a_number() -> None:
    sw.shard_map(3, mesh=MESH, in_specs=P(), out_specs=P())  # type: ignore[arg-type]


@row(sw.MeshError, r"^shard_map: mesh must be a Mesh, got 3")
def shard_map_on_a_number() -> None:
    sw.shard_map(lambda x: x, mesh=3, in_specs=P(), out_specs=P())  # type: ignore[arg-type]


@row(sw.DTypeError, r"^shard_map: an output must be an array, got str 'a' for result; ")
def shard_map_to_text() -> None:
    sw.shard_map(lambda x: "a", mesh=MESH, in_specs=P(), out_specs=P())(X)
