# SPDX-License-Identifier: Apache-2.0
"""Arrays of JAX, which is not imported: an array exists only where it is loaded."""

from __future__ import annotations

import sys
from typing import Any

from ..foreign import native
from ..sharding import NamedSharding

__all__ = ["is_jax_array", "sharding_of"]


def is_jax_array(x: Any) -> bool:
    """Whether ``x`` is a `jax.Array`."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, jax.Array)


def sharding_of(x: Any) -> NamedSharding | None:
    """The sharding of a JAX array if it names axes; None for one on a single device, or replicated without a mesh."""
    sharding = native(x.sharding)
    return sharding if isinstance(sharding, NamedSharding) else None
