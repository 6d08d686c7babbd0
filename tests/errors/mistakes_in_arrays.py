# SPDX-License-Identifier: Apache-2.0
"""Mistakes with Arrays outside jit, and with np.matrix."""

from __future__ import annotations

import numpy as np

import shardwise as sw
from tests.errors.mistakes import MESH, N, X, on_mesh, row
from tests.errors.mistakes_in_tracing import says

# ---- Arrays outside jit ---------------------------------------------------------------------------------------------

HELD = sw.device_put(X, sw.NamedSharding(MESH, sw.P("data")))
PLACES = sw.device_put(np.arange(8), sw.NamedSharding(MESH, sw.P("data")))


@says(sw.UnsupportedError, "np.partition is not supported on sharded arrays; call it on np.asarray(a)")
def partition_of_an_array() -> None:
    np.partition(HELD, 2)


@says(sw.UnsupportedError, "np.nonzero is not supported on sharded arrays; call it on np.asarray(a)")
def nonzero_of_an_array() -> None:
    np.nonzero(HELD)


@says(sw.UnsupportedError, "np.put is not supported on sharded arrays; sw.at(x, index).set(values) returns a new array")
def put_into_an_array() -> None:
    np.put(HELD, 0, 1)


@says(
    sw.UnsupportedError,
    "np.add.at is not supported on sharded arrays; "
    "call it on np.asarray(a); sw.at(x, index).add(values) returns a new array",
)
def add_at_an_array() -> None:
    np.add.at(np.zeros(8), PLACES, 1)


@says(
    sw.UnsupportedError,
    "np.add.reduceat is not supported on sharded arrays; call it on np.asarray(a); supported are reduce of add, "
    "multiply, maximum, minimum, logical_and, logical_or, and accumulate of add, multiply, maximum, minimum",
)
def reduceat_of_an_array() -> None:
    np.add.reduceat(HELD, [0])


@says(
    sw.UnsupportedError,
    "np.subtract.accumulate is not supported on sharded arrays; call it on np.asarray(a); "
    "supported are accumulate of add, multiply, maximum, minimum, bitwise_and, bitwise_or, bitwise_xor, logical_and, "
    "logical_or, logical_xor, logaddexp, logaddexp2, fmax, fmin",
)
def accumulate_of_an_array() -> None:
    np.subtract.accumulate(HELD)


@says(
    sw.UnsupportedError,
    "np.add: where= is not supported on sharded arrays, got where=bool[8, 6]; use np.where(mask, np.add(a, b), other)",
)
def where_of_an_array() -> None:
    np.add(HELD, HELD, where=N > 0)


@says(
    sw.DTypeError,
    "view: the dtype must have the width of the array's, got Array<float32[8,6]> as int16; "
    "use astype, or take it apart with >> and &",
)
def view_of_an_array() -> None:
    HELD.view(np.int16)


@says(AttributeError, "array: has no attribute 'to_local'; use x.addressable_shards[i].data")
def method_of_dtensor() -> None:
    HELD.to_local()


@row(AttributeError, "^'Array' object has no attribute 'unknown'$", located=False)
def unknown_attribute() -> None:
    HELD.unknown  # noqa: B018


# ---- np.matrix ------------------------------------------------------------------------------------------------------

MATRIX = X.view(np.matrix)  # whose constructor warns
NO_MATRIX = "array: must not be a np.matrix, whose * is a matrix product; pass np.asarray(x), and write @ for products"


@says(sw.DTypeError, NO_MATRIX)
def matrix_as_an_argument() -> None:
    on_mesh(lambda x: x * x)(MATRIX)


@says(sw.DTypeError, NO_MATRIX)
def matrix_that_is_closed_over() -> None:
    on_mesh(lambda x: x * MATRIX)(X)


@says(sw.DTypeError, NO_MATRIX)
def matrix_that_is_placed() -> None:
    sw.device_put(MATRIX, MESH)


@says(sw.DTypeError, NO_MATRIX)
def matrix_beside_an_array() -> None:
    HELD + MATRIX


@says(sw.DTypeError, NO_MATRIX)
def gradient_by_a_matrix() -> None:
    sw.grad(on_mesh(lambda x: x.sum()))(MATRIX)


@says(AttributeError, "array: has no attribute 'flags'; use np.asarray(x).flags outside jit")
def flags_of_an_array() -> None:
    HELD.flags  # noqa: B018


@says(
    sw.UnsupportedError,
    "assert_matches_unpartitioned: a manual region (sw.manual, sw.shard_map) has no unpartitioned meaning, got one, "
    "whose function computes on the shards of a mesh; compare the result of sw.jit(f) with NumPy code of your own",
)
def comparison_of_a_manual_region() -> None:
    mesh = HELD.sharding.mesh
    region = sw.shard_map(np.sin, mesh=mesh, in_specs=sw.P(), out_specs=sw.P())
    sw.testing.assert_matches_unpartitioned(region, np.ones(4, np.float32), mesh=mesh)
