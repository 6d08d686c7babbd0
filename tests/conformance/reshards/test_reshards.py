# SPDX-License-Identifier: Apache-2.0
"""A sample of the pairs that ``python -m tests.conformance.reshards`` tries."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from shardwise import _core
from tests.conformance.reshards.__main__ import measure
from tests.conformance.reshards.pairs import KINDS, Pair, bound, draw


@pytest.mark.parametrize("kind", KINDS)
def test_devices_get_their_tiles_and_receive_what_they_lack(kind: str) -> None:
    rng = random.Random(11)
    outcomes = [measure(draw(rng, kind), repetitions=1) for _ in range(150)]
    assert [f"{outcome.wrong}: {outcome.pair}" for outcome in outcomes if outcome.wrong] == []
    if kind in ("uneven", "crossing"):
        assert math.exp(np.mean([math.log(outcome.ratio) for outcome in outcomes])) <= 1.02


def test_the_bound_is_what_a_device_lacks() -> None:
    """Three of 12 columns instead of four of 12 rows: a device that keeps nothing lacks all of its tile."""
    x, y = ("x", 1, 3), ("y", 1, 4)
    assert bound(Pair("", (("x", 3), ("y", 4)), (12, 12), [[x], [y]], [[y], [x]])) == 12
    assert bound(Pair("", (("x", 3), ("y", 4)), (12, 12), [[x], []], [[], [x]])) == 48 - 16


def test_plans_do_not_depend_on_the_number_of_devices() -> None:
    """A dim of 3 rows in each shard but one, on up to a million devices."""
    found = set()
    for devices in (1 << 4, 1 << 12, 1 << 20):
        mesh = _core.mesh.Mesh("mesh", [("x", devices), ("y", 4)])
        before = _core.mesh.Sharding.make(mesh, [(["x"], False, None), (["y"], False, None)])
        after = _core.mesh.Sharding.make(mesh, [(["x", "y"], False, None), ([], False, None)])
        plan = _core.passes.plan_reshard((3 * devices - 1, 8), 4, before, after)
        found.add((tuple(plan["moves"]), plan["bytes"]))
    assert len(found) == 1
