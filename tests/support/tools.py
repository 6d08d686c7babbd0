# SPDX-License-Identifier: Apache-2.0
"""The scripts of tools/ as modules."""

from __future__ import annotations

import importlib.util
from typing import Any

from tests.support.paths import ROOT


def tool(name: str) -> Any:
    """The script ``tools/NAME.py``, imported."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
