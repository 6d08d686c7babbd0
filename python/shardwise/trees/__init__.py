# SPDX-License-Identifier: Apache-2.0
"""Trees of arguments and results, flattened by optree. :mod:`shardwise.tree` is the public form of these functions."""

from .flattening import (
    broadcast,
    broadcast_prefix,
    flatten,
    leaf_names,
    leaf_paths,
    native_specs,
    specs_per_leaf,
    unflatten,
)

__all__ = [
    "broadcast",
    "broadcast_prefix",
    "flatten",
    "leaf_names",
    "leaf_paths",
    "native_specs",
    "specs_per_leaf",
    "unflatten",
]
