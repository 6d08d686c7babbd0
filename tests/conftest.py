# SPDX-License-Identifier: Apache-2.0
"""Settings of all Python tests."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

from tests.conformance.shardy.client import shardy  # noqa: F401 - a fixture

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
settings.register_profile("quick", settings.get_profile("fixed"), phases=[Phase.explicit, Phase.generate])
settings.load_profile(os.environ.get("SHARDWISE_HYPOTHESIS", "fixed"))
