# SPDX-License-Identifier: Apache-2.0
"""Folders of the repository that tests read."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # workers start here: python -m tests.conformance.jax.random.worker
EXAMPLES = ROOT / "examples"
GOLDEN = ROOT / "tests" / "golden"
