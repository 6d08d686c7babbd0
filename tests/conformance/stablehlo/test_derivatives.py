# SPDX-License-Identifier: Apache-2.0
"""Every differentiable op in every floating and complex dtype that it takes: vjp, second derivatives and batching.

A vjp in float64 or complex128 is compared with differences of the op itself. A vjp in another dtype is compared with
the one in float64 or complex128 of the same numbers. Complex cotangents pair as in JAX: Re(sum(cotangent * change)).
tests/op/test_gradients.py compares with NumPy's references, on shards, too; tests/conformance/jax compares with JAX.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import shardwise as sw
from shardwise import _core
from shardwise.dtypes import is_complex, is_inexact, numpy_dtype
from tests.conformance.stablehlo.ops.drawing import TABLE
from tests.op.case import Application, OpCase
from tests.op.cases import CASES, CONTROL_FLOW, OF_FUNCTIONS, OF_OTHERS_WITHOUT_KERNEL
from tests.op.dtype_values import width_of
from tests.op.inputs import extreme, plain
from tests.support.partitioned import ONE_DEVICE

DEFINITIONS = {op.name: op for op in _core.ir.all_ops()}
SIZE = 4
LIMITS = {dtype: numpy_dtype(dtype) for dtype in ("float64", "complex128")}


# Operands that are whole numbers: no derivative.
WHOLE_NUMBERS = {"chlo.polygamma": (0,), "chlo.broadcast_polygamma": (0,)}
# It has neither 0 nor negative numbers.
WITHOUT_DERIVATIVES = ("float8_e8m0fnu",)


def inexact(name: str) -> list[str]:
    """The floating and complex dtypes of an op; the specification's, as the random instances draw them."""
    dtypes = TABLE[name].dtypes if name in TABLE else ()
    if name == "stablehlo.sort":  # the comparators of its rows take real numbers
        dtypes = tuple(dtype for dtype in dtypes if dtype not in COMPLEX)
    kinds = [(dtype, numpy_dtype(dtype)) for dtype in dtypes if dtype not in WITHOUT_DERIVATIVES]
    return [name for name, dtype in kinds if is_inexact(dtype)]


def transforms(n: int, dtype: str) -> list[Application]:
    """FFTs of complex numbers; the rows of the table are of real ones."""
    rows = []
    for kind, length in (("FFT", 4), ("IFFT", 4), ("IRFFT", 6)):
        attrs = {"fft_type": _core.ir.EnumValue("stablehlo", "fft_type", kind), "fft_length": (length,)}
        rows.append(Application(((n, 4),), np.asarray, attrs, label=kind))
    return rows


def elementwise(n: int, dtype: str) -> list[Application]:
    return [Application(((n, 3),), np.asarray)]


# Control flow: test_control_flow_gradients. The cotangents of conversions: below.
NOT_TRIED = CONTROL_FLOW | OF_FUNCTIONS | OF_OTHERS_WITHOUT_KERNEL | {"stablehlo.convert"}
COMPLEX = ("complex64", "complex128")
ROWS = [
    case
    for case in (
        *CASES,
        OpCase("stablehlo.fft", COMPLEX, transforms, plain, variant="complex"),
        OpCase("chlo._asin_acos_kernel", COMPLEX, elementwise, plain, variant="complex"),
    )
    if DEFINITIONS[case.name].differentiable and case.gradient_dtype != "none" and case.name != "stablehlo.convert"
]
each_row = pytest.mark.parametrize("case", ROWS, ids=[case.id for case in ROWS])


def wide_of(dtype: str) -> str:
    return "complex128" if is_complex(numpy_dtype(dtype)) else "float64"


class Compiled:
    """A program for one device."""

    def __init__(self, module: Any) -> None:
        compiled = _core.passes.compile(module, ONE_DEVICE)
        self.shardings = compiled.argument_shardings
        self.executable = _core.runtime.Executable(compiled)

    def __call__(self, operands: list[np.ndarray]) -> list[np.ndarray]:
        shards = [_core.runtime.ShardedArray.scatter(x, held) for x, held in zip(operands, self.shardings)]
        return [x.gather() for x in self.executable.run(shards)]


class Program:
    """The op on arguments of one dtype, its result, and its vjp."""

    def __init__(
        self,
        case: OpCase,
        application: Application,
        dtype: str,
        operands: list[np.ndarray],
        weights: np.ndarray | None = None,
    ) -> None:
        self.operands = operands
        self.symmetric = case.name == "stablehlo.cholesky"  # it is a function of Hermitian matrices
        constants = application.fixed if application.baked else {}
        constants = {*constants, *WHOLE_NUMBERS.get(case.name, ())}
        self.wrt = [i for i, x in enumerate(operands) if is_inexact(x.dtype) and i not in constants]
        trace, values, result = self.recorded(case, application, dtype)
        self.forward = Compiled(trace.finish([result]))
        self.value = self.forward(operands)[0]
        rng = np.random.default_rng(1)
        self.weights = rng.uniform(0.5, 1.5, self.value.shape)
        if width_of(dtype) < 8:  # the least numbers are not much smaller
            self.weights *= 2
        if is_complex(self.value.dtype):
            self.weights = self.weights + 1j * rng.uniform(-1, 1, self.value.shape)
        self.weights = np.asarray(self.weights if weights is None else weights).astype(self.value.dtype)
        trace, values, result = self.recorded(case, application, dtype)
        seed = trace.constant(self.weights)[0]
        gradients = trace.vjp([result], [seed], [values[i] for i in self.wrt])
        self.backward = Compiled(trace.finish(gradients))

    def recorded(self, case: OpCase, application: Application, dtype: str) -> tuple[Any, list[int], int]:
        trace = _core.ir.Trace("op")
        values = [trace.argument(x.shape, x.dtype.name, "") for x in self.operands]
        return trace, values, case.emit(trace, values, application, dtype)

    def gradients(self, operands: list[np.ndarray] | None = None) -> list[np.ndarray]:
        return self.backward(self.operands if operands is None else operands)

    def moved(self, direction: list[np.ndarray], step: float) -> list[np.ndarray]:
        return [np.asarray(x + step * d) if d.any() else x for x, d in zip(self.operands, direction)]

    def direction(self, rng: np.random.Generator) -> list[np.ndarray]:
        """Of the floating operands; 0 for the others."""
        found = []
        for i, x in enumerate(self.operands):
            d = rng.uniform(-1, 1, x.shape)
            if is_complex(x.dtype):
                d = d + 1j * rng.uniform(-1, 1, x.shape)
            if self.symmetric:
                d = (d + np.conj(np.swapaxes(d, -1, -2))) / 2
            found.append(np.asarray(d if i in self.wrt else np.zeros(x.shape)))
        return found


def paired(a: np.ndarray, b: np.ndarray) -> Any:
    return np.sum(np.real(a * b))


def drawn(case: OpCase, application: Application, dtype: str) -> list[np.ndarray]:
    """Numbers away from kinks, which `dtype` holds."""
    draw = case.gradient_draw or (plain if case.draw is extreme else case.draw)
    operands = case.operands(application, "float64", draw)
    rng = np.random.default_rng(3)
    found = []
    for i, x in enumerate(operands):
        to = numpy_dtype(application.operand_dtype(i, dtype))
        if i not in application.fixed and is_complex(to):
            x = x + rng.uniform(-0.05, 0.05, x.shape) + 1j * rng.uniform(-0.5, 0.5, x.shape)  # no equal real parts
            x = x + np.conj(np.swapaxes(x, -1, -2)) if case.name == "stablehlo.cholesky" else x
        found.append(x if i in application.fixed else np.asarray(x, to))
    return found


def applications(case: OpCase, dtype: str) -> list[Application]:
    try:
        rows = case.applications(SIZE, dtype)
    except (ValueError, TypeError):  # NumPy's reference has no limits of this dtype
        return []
    return [row for row in rows if row.differentiable]


def program(
    case: OpCase, row: Application, dtype: str, operands: list[np.ndarray], weights: np.ndarray | None = None
) -> Program | None:
    """None if the op does not take the dtype in this row, or has no floating operand and result."""
    try:
        made = Program(case, row, dtype, operands, weights)
    except (sw.DTypeError, sw.UnsupportedError):
        return None
    return made if is_inexact(made.value.dtype) and made.wrt else None


def tried(case: OpCase) -> Iterator[tuple[str, Program, Program]]:
    """One application for each dtype, a different one for each: the program in it, and in float64 or complex128."""
    for k, dtype in enumerate(inexact(case.name)):
        to = wide_of(dtype)
        wide_rows = {row.label: row for row in applications(case, to)}
        rows = [(row, wide_rows.get(row.label, row)) for row in applications(case, dtype)]
        for narrow, wide in rows[k % len(rows) :] + rows[: k % len(rows)] if rows else ():
            operands = drawn(case, narrow, dtype)
            made = program(case, narrow, dtype, operands)
            if made is None:
                continue
            same = [x.astype(numpy_dtype(to)) if x.dtype == numpy_dtype(dtype) else x for x in operands]
            wider = made if dtype == to else program(case, wide, to, same, made.weights)
            assert wider is not None, f"{case.id} {dtype}"
            yield dtype, made, wider
            break


def check_differences(made: Program, where: str) -> None:
    gradients = made.gradients()
    direction = made.direction(np.random.default_rng(2))
    h = 1e-6
    ends = [made.forward(made.moved(direction, sign * h))[0] for sign in (1, -1)]
    want = paired(made.weights, (ends[0] - ends[1]) / (2 * h))
    parts = [paired(g, direction[i]) for g, i in zip(gradients, made.wrt)]
    scale = 1 + sum(np.sum(np.abs(g * direction[i])) for g, i in zip(gradients, made.wrt))
    assert abs(sum(parts) - want) <= 1e-6 * scale, f"{where}: vjp {sum(parts)}, difference {want}"


def check_narrow(made: Program, wide: Program, dtype: str, where: str) -> None:
    limits = numpy_dtype(dtype)
    info = ml_dtypes.finfo(limits)
    largest = float(info.max)
    for got, want, i in zip(made.gradients(), wide.gradients(), made.wrt):
        assert (got.shape, got.dtype) == (made.operands[i].shape, made.operands[i].dtype), where
        kept = np.isfinite(want) & (np.abs(want) < largest / 8)
        if largest < 1000:  # squares in the formulas overflow
            kept &= np.isfinite(got.astype(want.dtype))
        found, want = (np.where(kept, x, 0).astype(want.dtype) for x in (got, want))
        assert is_near(found, want, limits), f"{where}: {found} and in {want.dtype} {want}"
        if is_decisive(want, limits):
            assert not is_near(-found, want, limits), where
            assert not is_near(0 * found, want, limits), where


def is_near(found: np.ndarray, want: np.ndarray, dtype: np.dtype[Any]) -> bool:
    """Whether roundings to `dtype` explain the difference; below 8 bits, whether the direction is right."""
    info = ml_dtypes.finfo(dtype)
    if width_of(dtype.name) < 8:
        return not is_decisive(want, dtype) or paired(np.conj(want), found) > 0
    share, spacing = min(8 * float(info.eps), 0.75), float(info.smallest_subnormal)
    return bool(np.linalg.norm(found - want) <= share * np.linalg.norm(want) + spacing * np.sqrt(want.size))


def is_decisive(want: np.ndarray, dtype: np.dtype[Any]) -> bool:
    """Whether the numbers are so far from the least ones of `dtype` that zeros and negated numbers are not near."""
    spacing = float(ml_dtypes.finfo(dtype).smallest_subnormal)
    if width_of(dtype.name) < 8:
        return bool(np.max(np.abs(want), initial=0) >= 2 * spacing)
    return bool(np.linalg.norm(want) > 8 * spacing * np.sqrt(want.size))


def second_derivatives(made: Program, case: OpCase, row: Application, dtype: str) -> None:
    """The vjp of sum(gradient * direction) against differences of the gradients."""
    direction = made.direction(np.random.default_rng(6))
    trace, values, result = made.recorded(case, row, dtype)
    seed = trace.constant(made.weights)[0]
    wrt = [values[i] for i in made.wrt]
    first = trace.vjp([result], [seed], wrt)
    seeds = [trace.constant(np.asarray(direction[i], made.operands[i].dtype))[0] for i in made.wrt]
    second = Compiled(trace.finish(trace.vjp(first, seeds, wrt)))(made.operands)
    other = made.direction(np.random.default_rng(7))
    h = 1e-5
    ends = [made.gradients(made.moved(other, sign * h)) for sign in (1, -1)]
    want = sum(paired(direction[i], (a - b) / (2 * h)) for i, a, b in zip(made.wrt, *ends))
    found = sum(paired(g, other[i]) for i, g in zip(made.wrt, second))
    scale = 1 + sum(np.sum(np.abs(g * other[i])) for i, g in zip(made.wrt, second))
    assert abs(found - want) <= 1e-5 * scale, f"{case.id} {dtype}: {found}, difference {want}"


@pytest.mark.parametrize("name", sorted({case.name for case in ROWS}))
def test_vjp_in_every_dtype(name: str) -> None:
    """The rows of an op together try all dtypes of the op."""
    found = set()
    for case in ROWS:
        for dtype, made, wide in tried(case) if case.name == name else ():
            found.add(dtype)
            if made is wide:
                check_differences(made, f"{case.id} {dtype}")
            else:
                check_narrow(made, wide, dtype, f"{case.id} {dtype}")
    assert found >= set(inexact(name))


@pytest.mark.parametrize("dtype", inexact("stablehlo.convert"))
def test_the_cotangent_of_a_conversion_is_converted_back(dtype: str) -> None:
    x = plain((4,), "float64", np.random.default_rng(4)).astype(numpy_dtype(dtype))
    targets = inexact("stablehlo.convert")
    assert targets
    for to in targets:
        weights = plain((4,), "float64", np.random.default_rng(5)).astype(numpy_dtype(to))
        trace = _core.ir.Trace("convert")
        value = trace.argument((4,), dtype, "")
        result, _, _ = trace.emit("stablehlo.convert", [value], None, (4,), to)
        seed = trace.constant(weights)[0]
        (found,) = Compiled(trace.finish(trace.vjp([result], [seed], [value])))([x])
        real = weights if is_complex(x.dtype) else weights.real
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(found, real.astype(x.dtype))


# Their operands are booleans and integers, or their dtype is complex64.
WITHOUT_SECOND_DERIVATIVES = {
    "reduce-and", "reduce-or", "reduce_window-and-prefix", "reduce_window-and-windows", "reduce_window-or-prefix",
    "reduce_window-or-windows", "scatter-and", "scatter-or", "_asin_acos_kernel",
}  # fmt: skip


@each_row
def test_second_derivatives(case: OpCase) -> None:
    tried = 0
    for dtype in LIMITS.keys() & set(inexact(case.name)):
        for row in applications(case, dtype)[:1]:
            made = program(case, row, dtype, drawn(case, row, dtype))
            if made is not None:
                second_derivatives(made, case, row, dtype)
                tried += 1
    assert (tried == 0) == (case.id in WITHOUT_SECOND_DERIVATIVES)


def test_every_differentiable_op_is_tried() -> None:
    differentiable = {name for name, op in DEFINITIONS.items() if op.differentiable and name in TABLE}
    assert differentiable - {case.name for case in ROWS} == NOT_TRIED & set(TABLE)
