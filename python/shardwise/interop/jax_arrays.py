# SPDX-License-Identifier: Apache-2.0
"""Arrays of JAX, which is not imported: an array exists only where it is loaded."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..array import ShapeDtypeStruct
from ..dtypes import is_dtype
from ..errors import DeletedArrayError, message
from ..process.foreign import native
from ..shardings.sharding import NamedSharding

__all__ = ["expect_alive", "is_jax_array", "is_numeric", "sharding_of"]


def is_jax_array(x: Any) -> bool:
    """Whether ``x`` is a `jax.Array`."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, jax.Array)


def expect_alive(what: str, x: Any, name: str) -> None:
    """Raise DeletedArrayError if the `jax.Array` of an argument was deleted or donated: JAX may crash on it."""
    if x.is_deleted():
        rule = f"argument {name} must not be deleted"
        way_out = "use the results of the call that it was donated to"
        raise DeletedArrayError(message(what, rule, "an array that was donated before", way_out))


def sharding_of(x: Any) -> NamedSharding | None:
    """The sharding of a JAX array if it names axes; None for one on a single device, or replicated without a mesh."""
    sharding = native(x.sharding)
    return sharding if isinstance(sharding, NamedSharding) else None


def is_numeric(leaf: Any) -> bool:
    """Whether a leaf of an argument is, describes or can be an array of numbers."""
    if isinstance(leaf, (np.ndarray, np.generic)):
        return is_dtype(leaf.dtype)
    cls = type(native(leaf))
    return (
        issubclass(cls, (bool, int, float, complex, ShapeDtypeStruct))
        or hasattr(cls, "shape")
        or hasattr(cls, "__array__")
    )
