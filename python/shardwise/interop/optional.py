# SPDX-License-Identifier: Apache-2.0
"""Imports modules of this package that need an optional library, on first use."""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import UnsupportedError, message

__all__ = ["needs_jax"]

OLDEST_JAX = (0, 8)


def needs_jax(what: str, module: str) -> Any:
    """Import a module of this package that imports JAX. UnsupportedError if JAX is missing or too old."""
    oldest = ".".join(map(str, OLDEST_JAX))
    try:
        jax = importlib.import_module("jax")
    except ImportError:
        raise UnsupportedError(message(what, "needs JAX", "no module named jax", "pip install jax")) from None
    if jax.__version_info__ < OLDEST_JAX:
        way_out = "pip install --upgrade jax"
        raise UnsupportedError(message(what, f"needs JAX {oldest} or newer", jax.__version__, way_out))
    return importlib.import_module(f".{module}", __package__)
