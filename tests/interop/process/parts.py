# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest that runs a part of the collected tests, so that a long file is several items of `make test-py`.

python -m pytest -p tests.interop.process.parts --part 2/5 tests/interop/process/op_checks.py
"""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", default="1/1", help="K/N: every N-th test, beginning with the K-th")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    part, count = map(int, config.getoption("--part").split("/"))
    items[:] = items[part - 1 :: count]
