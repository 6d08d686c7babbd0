# SPDX-License-Identifier: Apache-2.0
"""The table from NumPy's functions to their traced forms; each module fills in its own with ``@implements``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

__all__ = ["FUNCTIONS", "function_name", "implements"]

_F = TypeVar("_F", bound=Callable[..., Any])

FUNCTIONS: dict[Any, Callable[..., Any]] = {}


def implements(*names: str) -> Callable[[_F], _F]:
    """Make the decorated function the traced form of these NumPy functions, where this NumPy has them.

    The decorated function has NumPy's parameters; an option without traced form is a parameter that it refuses.
    """

    def register(function: _F) -> _F:
        for name in names:
            found: Any = np
            for part in name.split("."):
                found = getattr(found, part, None)
            if found is not None:
                FUNCTIONS[found] = function
        return function

    return register


def function_name(function: Any) -> str:
    """What users call it: ``np.linalg.norm``."""
    module = getattr(function, "__module__", None) or "numpy"
    module = module.replace("numpy", "np", 1) if module.startswith("numpy") else module
    return f"{module}.{getattr(function, '__name__', function)}"
