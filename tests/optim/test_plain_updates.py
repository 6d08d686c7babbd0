# SPDX-License-Identifier: Apache-2.0
"""The step without shard_update may add the weight to the sum over devices: it differs by the rounding of that sum.

Where gradients are summed first, as in tests/optim/test_shard_update.py, both have the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.optim.update_models import MODELS, optimizers, step_of

DEVICES = 8
MESH = sw.Mesh({"data": DEVICES})


def addends(model: Any, params: Any, x: Any, y: Any) -> Any:
    """What each device adds to the sum of a gradient: that of its rows, over the number of devices."""
    rows = [sw.tree.map(lambda leaf, i=i: np.split(leaf, DEVICES)[i], (x, y)) for i in range(DEVICES)]
    grads = [sw.jit(sw.grad(model.loss), mesh=sw.Mesh({"one": 1}))(params, *part) for part in rows]
    return sw.tree.map(lambda *parts: np.stack([np.asarray(part) for part in parts]) / np.float32(DEVICES), *grads)


def after_step(model: Any, optimizer: Any, summed_over: Any = None, **options: Any) -> Any:
    params, (x, y) = model.params(), model.data()
    step = step_of(model.loss, optimizer, summed_over)
    jitted = sw.jit(step, mesh=MESH, in_shardings=(None, None, P("data"), P("data")), **options)
    return jitted(params, optimizer.init(params), x, y)[0]


@pytest.mark.parametrize("name", ["sgd", "momentum"])
@pytest.mark.parametrize("model", MODELS)
def test_the_plain_step_differs_by_half_an_ulp_of_the_largest_addend_for_each_device(name: str, model: str) -> None:
    chosen, optimizer = MODELS[model], optimizers()[name]
    plain, split = after_step(chosen, optimizer), after_step(chosen, optimizer, shard_update="data")
    summed = after_step(chosen, optimizer, ("data",))
    params = chosen.params()
    parts = addends(chosen, params, *chosen.data())
    distances, same = {}, []
    for leaf, before in params.items():
        found = [np.asarray(new[leaf]) for new in (plain, split, summed)]
        same.append(np.array_equal(found[1], found[2]) and not np.array_equal(found[0], before))
        largest = max(np.abs(before).max(), np.float32(0.1) * np.abs(parts[leaf]).max())
        distances[leaf] = float(np.max(np.abs(found[0] - found[1])) / np.spacing(largest))
    assert same == [True] * len(chosen.shapes)
    assert max(distances.values()) <= DEVICES / 2, distances
