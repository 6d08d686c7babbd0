# SPDX-License-Identifier: Apache-2.0
"""One of two processes with two devices each, which run a program together. Arguments: the address, the process.

test_jax_processes.py starts both.
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import numpy as np

import shardwise as sw
from shardwise import P


def normalized(x: Any, w: Any) -> Any:
    y = x @ w
    return y / np.linalg.norm(y, axis=0), y[::-1], (x * 3).astype(np.float64).sum(1), x.max()


def main(address: str, process: int) -> None:
    """Print one line if all results are right."""
    jax.distributed.initialize(address, 2, process)
    x = np.arange(36, dtype=np.float32).reshape(9, 4) % 7 - 2  # 9 rows over 4 devices
    w = np.arange(24, dtype=np.float32).reshape(4, 6) % 5 + 1
    mesh = sw.Mesh({"x": 4}, device_ids=[2, 0, 3, 1])
    program = sw.jit(normalized, mesh=mesh, in_shardings=(P("x"), P(None, "x"))).lower(x, w).compile()
    function = program.to_jax()
    placed = function.put(x, w)
    assert not placed[0].is_fully_addressable
    again = function.put(jax.device_put(placed[0], jax.sharding.NamedSharding(function.mesh, jax.P())), w)
    for arguments in ((x, w), placed, again):
        results = function(*arguments)
        for got, want in zip(function.get(results), program(x, w), strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, np.asarray(want), rtol=1e-6)
    assert len(placed[0].addressable_shards) == 2
    print("all results are right in process", process)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
