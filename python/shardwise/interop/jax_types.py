# SPDX-License-Identifier: Apache-2.0
"""What functions of JAX see of an argument's type beyond shape and dtype, by `jax.typeof`.

    jax.typeof(a)        'float32[8@x,1]': axis x of the mesh is Explicit, and splits dim 0
    jax.typeof(b)        'float32<host>[8,1]': the array is in the memory of the host
    jax.typeof(c)        '~float32[]': the dtype of another operand wins

JAX is not imported: an array of JAX exists only where it is loaded.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

__all__ = ["PLAIN", "JaxType", "explicit_sharding", "type_of_jax"]


class JaxType(NamedTuple):
    """What `jax.typeof` shows of a leaf beyond shape and dtype.

    Attributes:
        weak: whether the type is weak.
        sharding: the sharding if it has explicit axes or another memory than the device's; else None.
        lost_in: the transform of Shardwise that changed the value, so that the type is unknown; "" for none.
    """

    weak: bool = False
    sharding: Any = None
    lost_in: str = ""

    def lost(self, transform: str) -> JaxType:
        """The type of a part of the value, which ``transform`` made."""
        return self if self.sharding is None else self._replace(lost_in=transform)


PLAIN = JaxType()


def type_of_jax(leaf: Any) -> JaxType | None:
    """The type of an array of JAX, or of a `jax.ShapeDtypeStruct`; None if it is plain, or ``leaf`` is neither."""
    jax = sys.modules.get("jax")
    if jax is None or not isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct)):
        return None
    weak = bool(getattr(leaf, "weak_type", False))
    sharding = leaf.sharding
    own = explicit_sharding(sharding)
    if own is None and _is_elsewhere(leaf, sharding):
        own = sharding
    return None if not weak and own is None else JaxType(weak, own)


def explicit_sharding(sharding: Any) -> Any:
    """The sharding if it is on a mesh with explicit axes, which are part of the type; else None."""
    types = getattr(getattr(sharding, "mesh", None), "axis_types", None) or ()
    return sharding if any(getattr(kind, "name", "") == "Explicit" for kind in types) else None


def _is_elsewhere(leaf: Any, sharding: Any) -> bool:
    """Whether an array is in another memory than that of its devices."""
    jax = sys.modules["jax"]
    if sharding is None or getattr(sharding, "memory_kind", None) is None:
        return False
    space = getattr(jax.typeof(leaf), "memory_space", None)  # not in the oldest version
    return space is not None and space != jax.memory.Space.Device
