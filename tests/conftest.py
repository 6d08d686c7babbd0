# SPDX-License-Identifier: Apache-2.0
"""Settings of all Python tests."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.conformance.shardy.client import shardy  # noqa: F401 - a fixture
from tests.support.run_seed import is_whole, run_seed

# The same examples each time, so that a red test means a change and not luck. SHARDWISE_HYPOTHESIS=explore
# looks further; =quick stops at the first failure without looking for a smaller one.
settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    database=None,
)
settings.register_profile("explore", settings.get_profile("fixed"), derandomize=False, max_examples=2000)
settings.register_profile("explore_third", settings.get_profile("explore"), max_examples=667)
settings.register_profile("turn", settings.get_profile("explore"), max_examples=20)  # under sanitizers
settings.register_profile("quick", settings.get_profile("fixed"), phases=[Phase.explicit, Phase.generate])
settings.load_profile(os.environ.get("SHARDWISE_HYPOTHESIS", "fixed"))

# Workers of pytest-xdist and the processes that tests start have the seed of this process.
os.environ.setdefault("SHARDWISE_SEED", str(run_seed()))

FIRST = "test_jax_processes.py"  # its items take longest; at the end, one worker would run them while others idle


def pytest_report_header() -> str:
    return f"seed: {run_seed()}, {'whole tables' if is_whole() else 'tables in turn'} (tests/support/run_seed.py)"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name != FIRST)
