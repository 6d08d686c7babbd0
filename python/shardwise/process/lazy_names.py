# SPDX-License-Identifier: Apache-2.0
"""Modules that are imported when they are first used (PEP 562).

    __getattr__, __dir__ = lazy_names(__name__, {"from_jax": ".jax_functions"})    # interop.from_jax imports the module

Only what few programs use is imported like this: a program on the virtual mesh never needs the hand-over to JAX.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from types import ModuleType
from typing import Any

__all__ = ["lazy_module", "lazy_names"]


def lazy_module(package: str, home: str) -> Callable[[], ModuleType]:
    """A function that imports the module ``home``, relative to the package."""
    return lambda: importlib.import_module(home, package)


def lazy_names(
    package: str, homes: Mapping[str, str], submodules: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package with these names, each with the module that defines it.

    ``dir`` lists these submodules and no others, so that completion offers what users may use.
    """
    namespace = vars(sys.modules[package])

    def value_of(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        namespace[name] = value = getattr(lazy_module(package, homes[name])(), name)
        return value  # Python finds it in the namespace from now on

    def names() -> list[str]:
        modules = {name for name, value in namespace.items() if isinstance(value, ModuleType)}
        return sorted({*namespace, *homes} - modules | {*submodules})

    return value_of, names
