# SPDX-License-Identifier: Apache-2.0
"""Programs that only move elements: arrays of random bit patterns of every dtype, which must arrive bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from shardwise import _core
from shardwise.dtypes import numpy_dtype
from tests.op.dtype_values import ALL_DTYPES, COMPLEX, random_bits, width_of
from tests.op.indexing_references import Numbers
from tests.op.references import Array
from tests.support import random_control_flow
from tests.support.draws import Draws
from tests.support.random_programs import Drawer

Struct = _core.ir.Struct
REAL = [dtype for dtype in ALL_DTYPES if dtype != "bool" and dtype not in COMPLEX]


class BitsDrawer(Drawer):
    """Draws steps that move the elements of arrays of two dtypes."""

    moves_only = True

    def __init__(self, draws: Draws, mesh: Any, others: Sequence[Any] = ()) -> None:
        dtypes = [draws.pick(ALL_DTYPES) for _ in range(2)]
        # A sum changes the bits of NaN, so no annotation asks for one.
        super().__init__(draws, mesh, [dtypes[0], *dtypes], unreduced=False, others=others)
        self.program.is_exact = False
        numbers = self.rng.integers(0, 4, (self.integer(1, 6),)).astype(np.int32)
        self.program.argument(numbers, self.sharding(numbers))

    def array(self, shape: tuple[int, ...], dtype: str) -> Array:
        return random_bits(shape, dtype, self.rng) if dtype != "bool" else np.asarray(self.rng.random(shape) < 0.5)

    def keep_small(self, i: int) -> int:
        return i

    def body_operand(self) -> int | None:
        return self.value(lambda x: x.ndim > 0)

    def index_operand(self) -> int | None:
        return 0

    def select(self) -> int | None:
        i = self.value()
        assert i is not None
        x, j = self.array_of(i), self.like(i)
        mask = self.array(x.shape, "bool")
        result = np.where(mask, x, self.array_of(j)).astype(x.dtype)
        return self.program.op("stablehlo.select", [self.constant(mask), i, j], result)

    def bitcast(self) -> int | None:
        i = self.value(lambda x: x.dtype != np.bool_ and x.dtype.kind != "c")
        if i is None:
            return None
        x = self.array_of(i)
        to = self.pick([to for to in REAL if width_of(to) == width_of(x.dtype.name)])
        result = np.ascontiguousarray(x).reshape(-1).view(numpy_dtype(to)).reshape(x.shape)
        return self.program.op("stablehlo.bitcast_convert", [i], result, declare=True)

    def indices(self, count: int, size: int) -> int:
        return self.constant(self.rng.integers(0, size, (count,)).astype(np.int32))

    def index_select(self) -> int | None:
        i = self.value(lambda x: x.ndim > 0 and x.size > 0)
        if i is None:
            return None
        x = self.array_of(i)
        dim = self.integer(0, x.ndim - 1)
        rows = self.indices(self.pick((1, 2, 5, 8)), x.shape[dim])
        result = np.take(x, self.array_of(rows), dim)
        return self.program.op(
            "stablehlo.torch_index_select", [i, rows], result, {"dim": dim, "batch_dims": 0}, declare=True
        )

    def gather(self) -> int | None:
        i = self.value(lambda x: x.ndim > 0 and x.size > 0)
        if i is None:
            return None
        x = self.array_of(i)
        rows = self.indices(self.pick((1, 3, 6)), x.shape[0])
        numbers = Numbers(tuple(range(1, x.ndim)), (0,), (), (), (0,), 1).gather()
        attrs = {"dimension_numbers": Struct("stablehlo.gather", numbers), "slice_sizes": (1, *x.shape[1:])}
        rows = self.program.op("stablehlo.reshape", [rows], self.array_of(rows)[:, None], declare=True)
        return self.program.op("stablehlo.gather", [i, rows], np.take(x, self.array_of(rows)[:, 0], 0), attrs)

    steps: ClassVar[list[Any]] = [
        Drawer.transpose, Drawer.reshape, Drawer.broadcast, Drawer.reverse, Drawer.slice, Drawer.slice, Drawer.pad,
        Drawer.concatenate, Drawer.concatenate, Drawer.dynamic_slice, Drawer.dynamic_update_slice, select, bitcast,
        index_select, gather, random_control_flow.branch, random_control_flow.loop,
    ]  # fmt: skip
