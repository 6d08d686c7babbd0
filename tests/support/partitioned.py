# SPDX-License-Identifier: Apache-2.0
"""Running an op or a program under chosen shardings without the tracing front end, and comparing what comes out.

    module = record(case, application, "float32", [sharding, None])
    outputs = run(module, mesh, operands, faithful=True)

Padding is always poisoned: what an op must not read holds NaN or other garbage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from shardwise import _core
from tests.op.cases import Application, OpCase
from tests.op.inputs import Shape, dtype_of
from tests.op.references import Array, is_float, wide
from tests.support.counted_bytes import differences

Axes = tuple[Any, ...]  # axis names and (name, pre, size)
ONE_DEVICE = _core.mesh.Mesh("one", [("all", 1)])


@dataclass(frozen=True)
class Scenario:
    """A mesh, an interesting dim size, and the axes that shard a dim in turn; `others` shard the dims beside it."""

    name: str
    axes_of_mesh: tuple[tuple[str, int], ...]
    size: int
    axes: Axes
    device_ids: tuple[int, ...] = ()
    others: Axes = ()

    def mesh(self) -> Any:
        return _core.mesh.Mesh("mesh", list(self.axes_of_mesh), list(self.device_ids))


SCENARIOS = [
    Scenario("divisible", (("x", 8),), 8, ("x",)),
    Scenario("7 over 8", (("x", 8),), 7, ("x",)),
    Scenario("17 over 8", (("x", 8),), 17, ("x",)),
    Scenario("1 over 8", (("x", 8),), 1, ("x",)),
    Scenario("empty middle shards", (("x", 2), ("y", 4)), 5, ("y", "x")),
    Scenario("several axes", (("a", 2), ("b", 2), ("c", 3)), 17, ("c", "a"), others=("b",)),
    Scenario("sub-axes", (("x", 8),), 7, (("x", 2, 2),), others=(("x", 1, 2),)),
    Scenario("swapped sub-axes", (("x", 8), ("y", 3)), 10, (("x", 4, 2), "y", ("x", 1, 2))),
    Scenario("permuted devices", (("x", 4), ("y", 2)), 6, ("y", "x"), (3, 1, 4, 0, 7, 5, 2, 6)),
    Scenario("size 1", (("x", 2), ("y", 3)), 1, ("y",), others=("x",)),
    Scenario("size 0", (("x", 2), ("y", 3)), 0, ("y",), others=("x",)),
]


def sharding(mesh: Any, dims: Sequence[Axes], open_dims: bool = False) -> Any:
    return _core.mesh.Sharding.make(mesh, [(list(axes), open_dims, None) for axes in dims])


def assignments(scenario: Scenario, application: Application, result_shape: Shape) -> list[tuple[list[Any], Any]]:
    """Each dim of each operand in turn, the operands against each other, and each dim of the result."""
    mesh = scenario.mesh()

    def on_dim(ndim: int, dim: int) -> Any:
        beside = (dim + 1) % ndim if ndim > 1 and scenario.others else None
        return sharding(
            mesh, [scenario.axes if d == dim else scenario.others if d == beside else () for d in range(ndim)]
        )

    shapes = application.shapes
    rows: list[tuple[list[Any], Any]] = []
    for i, shape in enumerate(shapes):
        for dim in range(len(shape)):
            rows.append(([on_dim(len(shape), dim) if j == i else None for j in range(len(shapes))], None))
    if sum(len(shape) > 0 for shape in shapes) > 1:
        crossed = [on_dim(len(shape), i % len(shape)) if shape else None for i, shape in enumerate(shapes)]
        rows.append((crossed, None))
    for dim in range(len(result_shape)):
        rows.append(([None] * len(shapes), on_dim(len(result_shape), dim)))
    return rows or [([None] * len(shapes), None)]


def record(
    case: OpCase, application: Application, dtype: str, shardings: Sequence[Any] = (), result_sharding: Any = None
) -> Any:
    """A program of one op."""
    trace = _core.ir.Trace("case")
    values = [
        trace.argument(shape, application.operand_dtype(i, dtype), "", shardings[i] if shardings else None)
        for i, shape in enumerate(application.shapes)
    ]
    result = case.emit(trace, values, application, dtype)
    return trace.finish([result], [result_sharding])


def run(module: Any, mesh: Any, operands: Sequence[Array], faithful: bool = False) -> list[Array]:
    return execute(_core.passes.compile(module, mesh), operands, (faithful,))[0]


def execute(compiled: Any, operands: Sequence[Array], modes: Sequence[bool] = (False, True)) -> list[list[Array]]:
    """The results of a compiled program in each mode: every shard once, and (True) every device.

    The bytes that a device receives are counted where every device runs, and must be those of the ledger.
    """
    executable = _core.runtime.Executable(compiled)
    arguments = [
        _core.runtime.ShardedArray.scatter(array, held, poison=True)
        for array, held in zip(operands, compiled.argument_shardings)
    ]
    results = [executable.run(arguments, faithful=mode, poison=True, count=mode) for mode in modes]
    wrong = differences(compiled, executable) if any(modes) else []
    assert not wrong, "\n".join(wrong)
    return [[x.gather() for x in outputs] for outputs in results]


# ---- comparing ------------------------------------------------------------------------------------------------------


def same_bits(a: Array, b: Array) -> bool:
    return (
        a.dtype == b.dtype
        and a.shape == b.shape
        and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
    )


def same_values(a: Array, b: Array) -> bool:
    """Equal with the signs of zeros; every NaN equals every other."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if not is_float(a.dtype):
        return bool(np.array_equal(a, b))
    both_nan = np.isnan(a) & np.isnan(b)
    return bool(np.all(both_nan | ((a == b) & (np.signbit(a) == np.signbit(b)))))


def unit_in_last_place(value: Array, dtype: Any) -> Array:
    info = ml_dtypes.finfo(dtype)
    magnitude = np.maximum(np.abs(value.astype(np.longdouble)), np.longdouble(info.smallest_normal))
    return np.exp2(np.floor(np.log2(magnitude)) - info.nmant)


def tolerance(case: OpCase, application: Application, operands: Sequence[Array], want: Array, dtype: Any) -> Array:
    """How far a float result may be from the exact one; the promises of the design."""
    eps = float(ml_dtypes.finfo(dtype).eps)
    if case.kind == "ulps":
        return case.ulps * unit_in_last_place(want, dtype)
    if case.kind == "magnitude":
        return case.ulps * eps * np.maximum(np.abs(want), np.abs(want).max(initial=1))
    if case.kind == "sum":
        return 8 * eps * application.reference(*(np.abs(wide(x)) if is_float(x.dtype) else x for x in operands))
    if case.kind == "product":
        return (8 + operands[0].size) * eps * np.abs(want)
    if case.kind == "rows":  # one rounding for each factor, and each term
        return (8 + operands[0].size) * eps * application.reference(*(np.abs(wide(x)) for x in operands))
    lhs, rhs = (wide(x) for x in operands)
    squares = application.reference(lhs**2, np.ones_like(rhs)) * application.reference(np.ones_like(lhs), rhs**2)
    return 8 * eps * np.sqrt(squares)


def difference(case: OpCase, application: Application, operands: Sequence[Array], got: Array) -> str:
    """Why `got` is not what NumPy gives; empty when it is."""
    with np.errstate(all="ignore"):
        want = np.asarray(application.reference(*operands))
        if got.shape != want.shape:
            return f"shape {got.shape}, NumPy {want.shape}"
        if case.kind == "exact" or not is_float(got.dtype):
            return "" if same_values(got, want) else f"got\n{got!r}\nNumPy\n{want!r}"
        allowed = tolerance(case, application, operands, want, got.dtype)
        rounded = np.abs(wide(got) - wide(want)) <= allowed
        good = rounded | (np.isnan(got) & np.isnan(want)) | (got == want)
    if np.all(good):
        return ""
    bad = tuple(np.argwhere(~good)[0])
    return f"at {bad} got {got[bad]!r}, NumPy {want[bad]!r}, allowed ±{float(allowed[bad]):.3g} (dtype {got.dtype})"


def bitwise(case: OpCase, dtype: str) -> bool:
    """Whether partitioning must not change a bit."""
    return case.kind in ("exact", "ulps") or not is_float(dtype_of(dtype))
