# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/, recorded on shapes alone."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import shardwise as sw
from tests.support.paths import EXAMPLES as FOLDER

EXAMPLES = ("mlp", "gradient", "digits", "digits, uneven")


def f32(*shape: int) -> sw.ShapeDtypeStruct:
    return sw.ShapeDtypeStruct(shape, np.float32)


def traced_example(name: str) -> Any:
    """One of EXAMPLES on 4x2 devices."""
    sys.path.insert(0, str(FOLDER))
    try:
        import digits
        import quickstart
    finally:
        sys.path.remove(str(FOLDER))
    mesh = sw.Mesh({"data": 4, "model": 2})
    x, w1, w2 = f32(64, 32), f32(32, 128), f32(128, 32)
    if name == "mlp":
        return sw.jit(quickstart.mlp, mesh=mesh).trace(x, w1, w2)
    if name == "gradient":
        return sw.jit(sw.value_and_grad(quickstart.loss), mesh=mesh).trace((w1, w2), x, x)
    rows = 92 if name.endswith("uneven") else 128
    params = (f32(64, 64), f32(64), f32(64, 10), f32(10))
    return sw.jit(digits.sgd_step, mesh=mesh).trace(params, f32(rows, 64), f32(rows, 10), f32())
