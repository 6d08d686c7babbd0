# SPDX-License-Identifier: Apache-2.0
"""Every docstring's example does what it shows, and every public name has a docstring."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import Any

import pytest

import shardwise as sw
from tools.public_api import package_names


def _modules() -> list[str]:
    found = ["shardwise"]
    for info in pkgutil.walk_packages(sw.__path__, "shardwise."):
        if not info.name.startswith("shardwise._core"):
            found.append(info.name)
    return sorted(found)


MODULES = _modules()


def names_of(module: ModuleType) -> list[str]:
    return package_names() if module is sw else list(getattr(module, "__all__", ()))


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_do_what_they_show(name: str) -> None:
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_the_package_itself_has_examples() -> None:
    finder = doctest.DocTestFinder()
    count = sum(len(test.examples) for name in MODULES for test in finder.find(importlib.import_module(name)))
    assert count > 40


@pytest.mark.parametrize("name", MODULES)
def test_every_module_has_a_docstring_and_names_that_exist(name: str) -> None:
    module = importlib.import_module(name)
    assert (module.__doc__ or "").strip()
    for public in names_of(module):
        assert hasattr(module, public)


def _members(owner: Any) -> list[tuple[str, Any]]:
    return [
        (name, value)
        for name, value in vars(owner).items()
        if not name.startswith("_") and (inspect.isroutine(value) or isinstance(value, (property, classmethod)))
    ]


def _undocumented(module: ModuleType) -> list[str]:
    missing = []
    for name in names_of(module):
        value = getattr(module, name)
        if not (inspect.isclass(value) or inspect.isroutine(value)):
            continue
        if not inspect.getdoc(value):
            missing.append(name)
        if inspect.isclass(value) and value.__module__ != "numpy":  # np.finfo and np.float32 are NumPy's to document
            missing += [f"{name}.{member}" for member, x in _members(value) if not inspect.getdoc(x)]
    return missing


@pytest.mark.parametrize("name", [name for name in MODULES if hasattr(importlib.import_module(name), "__all__")])
def test_every_public_name_has_a_docstring(name: str) -> None:
    assert _undocumented(importlib.import_module(name)) == []
