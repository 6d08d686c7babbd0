# SPDX-License-Identifier: Apache-2.0
"""Tests of exported texts also run with a jaxlib that is too old to read them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import pytest

import shardwise as sw
from shardwise.interop.optional import EXPORTING_JAXLIB
from tests.support.oracles import oracle


def refusal(version: str) -> str:
    """A pattern of the message of ``as_text("export")`` with a version of jaxlib that is too old."""
    oldest = ".".join(map(str, EXPORTING_JAXLIB))
    text = f'as_text("export"): needs jaxlib {oldest} or newer, got {version}; pip install --upgrade jax (at '
    return re.escape(text)


def exports(test: Callable[..., None]) -> Callable[..., None]:
    """A test that exports a program. Where jaxlib is too old, it passes if the export is refused for that reason."""

    @functools.wraps(test)
    def checked(*args: Any, **kwargs: Any) -> None:
        version = oracle("jaxlib.version")
        if version.__version_info__ >= EXPORTING_JAXLIB:
            test(*args, **kwargs)
            return
        # A test that expects an error of another text fails with an AssertionError, which quotes the refusal.
        with pytest.raises((sw.UnsupportedError, AssertionError), match=refusal(version.__version__)):
            test(*args, **kwargs)

    return checked
