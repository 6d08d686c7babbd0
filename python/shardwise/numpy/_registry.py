# SPDX-License-Identifier: Apache-2.0
"""Maps NumPy's functions to our implementations. Each module registers its own with ``@implements``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

__all__ = ["CHECKS", "FUNCTIONS", "checks", "function_name", "implements"]

_F = TypeVar("_F", bound=Callable[..., Any])

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
CHECKS: dict[Any, Callable[..., Any]] = {}  # checks of calls on sharded arrays


def implements(*names: str) -> Callable[[_F], _F]:
    """Register the decorated function as the implementation of these NumPy functions, if this NumPy has them.

    The decorated function has NumPy's parameters, and raises an error for options that are not supported.
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


def checks(function: Any) -> Callable[[_F], _F]:
    """Register a check: it gets the arguments of each call of ``function`` whose arguments are all concrete."""

    def register(check: _F) -> _F:
        CHECKS[getattr(np, function) if isinstance(function, str) else function] = check
        return check

    return register


def function_name(function: Any) -> str:
    """The name in user code: ``np.linalg.norm``."""
    module = getattr(function, "__module__", None) or "numpy"
    module = module.replace("numpy", "np", 1) if module.startswith("numpy") else module
    return f"{module}.{getattr(function, '__name__', function)}"
