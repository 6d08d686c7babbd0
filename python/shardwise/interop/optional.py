# SPDX-License-Identifier: Apache-2.0
"""JAX, imported on first use: ``import shardwise`` does not import it."""

from __future__ import annotations

from functools import cache
from typing import Any

from ..errors import UnsupportedError, message

__all__ = ["jax", "needs_jax"]

_OLDEST = (0, 8)


class _Jax:
    """The module `jax`; reading an attribute imports it."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(_imported(), name)


jax: Any = _Jax()


@cache
def _imported() -> Any:
    import jax
    import jax.experimental.multihost_utils
    import jax.export
    import jax.extend.core
    import jax.interpreters.mlir

    return jax


def needs_jax(what: str) -> None:
    """Import JAX for the operation ``what``. UnsupportedError if it is missing or too old."""
    try:
        found = _imported().__version_info__
    except ImportError:
        raise UnsupportedError(message(what, "needs JAX", "no module named jax", "pip install jax")) from None
    if found < _OLDEST:
        rule = f"needs JAX {'.'.join(map(str, _OLDEST))} or newer"
        raise UnsupportedError(message(what, rule, ".".join(map(str, found)), "pip install --upgrade jax"))
