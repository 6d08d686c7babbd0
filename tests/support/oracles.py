# SPDX-License-Identifier: Apache-2.0
"""Other libraries that tests compare with or need."""

from __future__ import annotations

import importlib
import os
from types import ModuleType

import pytest


def oracle(name: str) -> ModuleType:
    """The module. In CI a test fails where the module is missing; elsewhere it is skipped.

    pandas = oracle("pandas")
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if "CI" in os.environ or (error.name or "").partition(".")[0] != name.partition(".")[0]:
            raise
        pytest.skip(f"{name} is not installed", allow_module_level=True)
