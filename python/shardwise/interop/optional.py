# SPDX-License-Identifier: Apache-2.0
"""JAX and libraries for files, imported on first use: ``import shardwise`` does not import them."""

from __future__ import annotations

from functools import cache
from typing import Any

from ..errors import UnsupportedError, message

__all__ = ["EXPORTING_JAXLIB", "jax", "needs_jax", "needs_jaxlib", "needs_orbax", "needs_safetensors"]

_OLDEST = (0, 8)
# The oldest jaxlib that compiles the attribute `replica_group_mesh_axes` of StableHLO, which exported texts have.
EXPORTING_JAXLIB = (0, 10, 1)


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
    _check_version(what, "JAX", found, _OLDEST)


def needs_jaxlib(what: str, oldest: tuple[int, ...]) -> None:
    """Import JAX for the operation ``what``. UnsupportedError if it is missing, or if it or its jaxlib is too old."""
    needs_jax(what)
    from jaxlib import version

    _check_version(what, "jaxlib", version.__version_info__, oldest)


def _check_version(what: str, library: str, found: tuple[int, ...], oldest: tuple[int, ...]) -> None:
    if found < oldest:
        rule = f"needs {library} {'.'.join(map(str, oldest))} or newer"
        raise UnsupportedError(message(what, rule, ".".join(map(str, found)), "pip install --upgrade jax"))


def needs_orbax(what: str) -> Any:
    """Import Orbax for the operation ``what``. UnsupportedError if it is missing."""
    needs_jax(what)
    try:
        import orbax.checkpoint as found
    except ImportError:
        got, way_out = "no module named orbax.checkpoint", "pip install orbax-checkpoint"
        raise UnsupportedError(message(what, "needs Orbax", got, way_out)) from None
    return found


def needs_safetensors(what: str) -> Any:
    """Import safetensors for the operation ``what``. UnsupportedError if it is missing."""
    try:
        import safetensors
    except ImportError:
        got, way_out = "no module named safetensors", "pip install safetensors"
        raise UnsupportedError(message(what, "needs safetensors", got, way_out)) from None
    return safetensors
