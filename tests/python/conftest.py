# SPDX-License-Identifier: Apache-2.0
"""Settings of all Python tests."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# The same examples each time, so that a red test means a change and not luck; SHARDWISE_EXPLORE=1 looks further.
settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    database=None,
)
settings.register_profile("explore", parent=settings.get_profile("fixed"), derandomize=False, max_examples=2000)
settings.load_profile("explore" if os.environ.get("SHARDWISE_EXPLORE") else "fixed")
