# SPDX-License-Identifier: Apache-2.0
"""Errors of the collectives of sw.lax name the wrong argument; test_called_names.py checks how they begin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.errors.calls_of_collectives import calls_of_collectives

MESH = sw.Mesh({"x": 2, "y": 4})
X = np.arange(32, dtype=np.float32).reshape(8, 4)


@pytest.mark.parametrize(("name", "fault", "parameter", "body"), [*calls_of_collectives()])
def test_a_message_of_a_collective_names_the_parameter(
    name: str, fault: str, parameter: str, body: Callable[[Any], Any]
) -> None:
    region = sw.shard_map(body, mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    with pytest.raises((TypeError, ValueError)) as caught:
        sw.jit(region, mesh=MESH)(X)
    assert parameter in str(caught.value).split(", got")[0]
