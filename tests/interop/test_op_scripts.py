# SPDX-License-Identifier: Apache-2.0
"""Scripts of `to_source("mpi4py")` for single ops, on one rank, give the numbers of the virtual mesh."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import shardwise as sw
from shardwise import _core
from shardwise.dtypes import numpy_dtype
from tests.interop.nearness import assert_near, exact_results
from tests.mpi.launch import mpirun
from tests.op.case import Application, OpCase
from tests.op.cases import CASES
from tests.op.dtype_values import all_patterns, random_bits
from tests.support.partitioned import difference
from tools.mpirun import ENVIRONMENT

MESH = sw.Mesh({"x": 1})
Arrays = list[np.ndarray]


class Row(NamedTuple):
    """A compiled program with its arguments."""

    name: str
    program: Any
    arguments: Arrays

    @property
    def expected(self) -> Arrays:
        """The results on the virtual mesh."""
        return [np.asarray(x) for x in sw.tree.leaves(self.program(*self.arguments))]


def script_results(rows: Sequence[Row], folder: Path) -> list[Arrays]:
    """The results of the script of each row. All run in one process, which cannot import shardwise."""
    for row in rows:
        row.program.to_source("mpi4py", folder / f"{row.name}.py")
        (folder / f"{row.name}.args").write_bytes(pickle.dumps(row.arguments))
    done = mpirun(1, ["-m", "mpi4py", "tests/mpi/script_worker.py", str(folder)], 240)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-3000:]
    return [pickle.loads((folder / f"{row.name}.out").read_bytes()) for row in rows]


# ---- the table of ops ----------------------------------------------------------------------------------------------

NO_GENERATOR = "NumPy has no generator with these bits; draw them with sw.random"
REFUSED = {  # rows that scripts refuse by design, and a part of the error
    "rng-normal": NO_GENERATOR,
    "rng-uniform": NO_GENERATOR,
    "rng_bit_generator-philox": NO_GENERATOR,
    "rng_bit_generator-three_fry": NO_GENERATOR,
}


def applications_of(case: OpCase, dtype: str) -> list[Application]:
    """The applications of a case whose varied dims have 7 elements; in its first dtype, also 1 and 0."""
    sizes = (7, 1, 0) if dtype == case.dtypes[0] else (7,)
    return [application for n in sizes for application in case.applications(n, dtype)]


def row_of_case(case: OpCase, dtype: str) -> Row:
    """One program of all applications of a case."""
    trace = _core.ir.Trace("case")
    arguments, results = [], []
    for application in applications_of(case, dtype):
        arguments += case.operands(application, dtype)
        dtypes = [application.operand_dtype(i, dtype) for i in range(len(application.shapes))]
        values = [trace.argument(shape, kind, "", None) for shape, kind in zip(application.shapes, dtypes)]
        results.append(case.emit(trace, values, application, dtype))
    module = trace.finish(results, [None] * len(results))
    return Row(f"{case.id}-{dtype}", sw.parse(module.text()).compile(MESH), arguments)


def is_right(case: OpCase, application: Application, dtype: str, got: Any, want: Any, exact: bool) -> bool:
    """Whether a result is that of the virtual mesh, or as near to NumPy's reference as results of the op must be."""
    if any(name in case.id for name in ("clamp", "maximum", "minimum")):  # NumPy takes either zero
        return got.dtype == want.dtype and np.array_equal(got, want, equal_nan=got.dtype.kind in "fV")
    try:
        with np.errstate(invalid="ignore"):
            assert_near(got, want, exact)
    except AssertionError:
        return not difference(case, application, case.operands(application, dtype), got)
    return True


@pytest.mark.parametrize("part", range(2))
def test_a_script_of_each_op(part: int, tmp_path: Path) -> None:
    cells = [(case, dtype) for case in CASES[part::2] for dtype in case.dtypes if case.id not in REFUSED]
    rows = [row_of_case(*cell) for cell in cells]
    wrong = []
    for (case, dtype), row, found in zip(cells, rows, script_results(rows, tmp_path)):
        results = zip(found, row.expected, exact_results(row.program), strict=True)
        for application, (got, want, exact) in zip(applications_of(case, dtype), results, strict=True):
            if not is_right(case, application, dtype, got, want, exact):
                wrong.append(f"{row.name}, {application.label or application.shapes}: got\n{got}\nnot\n{want}")
    assert not wrong, f"{len(wrong)} failures:\n" + "\n".join(wrong[:5])


def test_the_ops_that_scripts_refuse() -> None:
    assert REFUSED.keys() <= {case.id for case in CASES}
    for case in CASES:
        if case.id in REFUSED:
            with pytest.raises(sw.UnsupportedError, match=rf"^to_source: every op must have .*: {REFUSED[case.id]}"):
                row_of_case(case, case.dtypes[0]).program.to_source("mpi4py")


# ---- dtypes and numbers that the table does not have ---------------------------------------------------------------


def row_of_op(name: str, *arrays: np.ndarray, to: str = "", **attributes: Any) -> Row:
    """A row of one op; ``to``: the dtype of its result, where the op does not imply it."""
    trace = _core.ir.Trace("op")
    values = [trace.argument(x.shape, x.dtype.name, "", None) for x in arrays]
    result = trace.emit(name, values, attributes or None, arrays[0].shape if to else None, to or None)[0]
    program = sw.parse(trace.finish([result], [None]).text()).compile(MESH)
    parts = [name, arrays[0].dtype.name, to, *map(str, attributes.values())]
    return Row("-".join(filter(None, parts)), program, [*arrays])


def row_of_function(name: str, function: Callable[..., Any], *arrays: np.ndarray) -> Row:
    return Row(f"{name}-{arrays[0].dtype.name}", sw.jit(function, mesh=MESH).lower(*arrays).compile(), [*arrays])


RNG = np.random.default_rng(3)
BYTES = ("float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3b11fnuz", "float8_e5m2", "float8_e4m3fn", "float8_e8m0fnu",
         "float4_e2m1fn")  # fmt: skip
SMALL = ("int2", "int4", "uint2", "uint4")
ENDS = np.array([np.nan, np.inf, -np.inf, 1e-40, -1e-40, 3e38, 300.7, -1.5, 0.0, -0.0, 7.9, -9], np.float32)


def pairs(dtype: str) -> Arrays:
    """All pairs of the numbers of a small dtype."""
    x = all_patterns(dtype)
    return [np.repeat(x, len(x)), np.tile(x, len(x))]


def rows_of_precision() -> list[Row]:
    """`reduce_precision` of random bits, subnormal numbers among them."""
    rows = []
    for dtype, bits in (("float32", (8, 5)), ("float64", (11, 8)), ("float16", (5, 3)), ("bfloat16", (8, 4))):
        with np.errstate(over="ignore", invalid="ignore"):
            x = np.concatenate([random_bits((200,), dtype, RNG), ENDS.astype(numpy_dtype(dtype))])
        for exponent in bits:
            for mantissa in (10, 2):
                given = {"exponent_bits": np.int32(exponent), "mantissa_bits": np.int32(mantissa)}
                rows.append(row_of_op("stablehlo.reduce_precision", x, **given))
    return rows


def rows_of_small_integers() -> list[Row]:
    """NumPy computes most functions of integers of less than a byte in int8."""
    rows = []
    for dtype in SMALL:
        both = pairs(dtype)
        one = [f"stablehlo.{name}" for name in ("negate", "not", "count_leading_zeros", "popcnt")]
        two = [f"stablehlo.{name}" for name in ("divide", "maximum", "xor", "shift_left", "shift_right_logical",
                                                "shift_right_arithmetic", "power", "remainder")]  # fmt: skip
        rows += [row_of_op(name, both[0]) for name in one] + [row_of_op(name, *both) for name in two]
        rows += [
            row_of_op("stablehlo.convert", x, to=dtype)
            for x in (ENDS, ENDS.astype(np.float64), ENDS.astype(np.complex64))
        ]
        rows.append(row_of_function("product", np.matmul, both[0].reshape(-1, 4), both[0][:4].reshape(4, 1)))
    return rows


def rows_of_narrow_floats() -> list[Row]:
    """Orders of all values, with their NaN, and functions of several steps, which are rounded once."""
    rows = []
    for dtype in BYTES:
        x = RNG.permutation(all_patterns(dtype))
        rows += [row_of_function("sort", np.sort, x), row_of_function("argsort", np.argsort, x)]
        rows += [row_of_op(f"stablehlo.{name}", x) for name in ("round_nearest_afz", "logistic")]
    rows += [row_of_function("sort", np.sort, RNG.permutation(random_bits((300,), "float16", RNG)))]
    x = np.array([-1.5, 0.5, 3, 2, -2, 0.25, 1, 7], np.float32).astype(numpy_dtype("float6_e3m2fn"))
    return [
        *rows,
        row_of_function("sum", np.sum, x),
        row_of_function("product", np.matmul, x.reshape(2, 4), x.reshape(4, 2)),
    ]


def rows_of_wide_numbers() -> list[Row]:
    lgamma = np.array([1e306, -1e306, 0.0, -3.0, np.inf, -np.inf, np.nan, 0.5, 171.0])
    points = np.array([1 + 2j, -3 + 0.5j, 0.25 - 1j], np.complex64)
    rows = [
        row_of_op("chlo.lgamma", lgamma),
        row_of_op("stablehlo.cbrt", points),
        row_of_op("stablehlo.atan2", points, points[::-1]),
    ]
    shifts = np.array([200, 255, 128, 127, 1], np.uint8), np.array([1, 9, 7, 2, 0], np.uint8)
    return [*rows, row_of_op("stablehlo.shift_right_arithmetic", *shifts)]


def test_scripts_with_other_dtypes_and_numbers(tmp_path: Path) -> None:
    rows = rows_of_precision() + rows_of_small_integers() + rows_of_narrow_floats() + rows_of_wide_numbers()
    assert len({row.name for row in rows}) == len(rows)
    wrong = []
    for row, found in zip(rows, script_results(rows, tmp_path)):
        for got, want, exact in zip(found, row.expected, exact_results(row.program), strict=True):
            try:
                with np.errstate(invalid="ignore"):
                    assert_near(got, want, exact)
            except AssertionError as error:
                wrong.append(f"{row.name}: {error}")
    assert not wrong, f"{len(wrong)} failures:\n" + "\n".join(wrong[:5])


# ---- a script on its own -------------------------------------------------------------------------------------------


def run_alone(program: Any, folder: Path, more: str = "") -> str:
    """What the script of a program prints in a process that imports nothing else; ``more``: instead of its call."""
    text = program.to_source("mpi4py")
    (folder / "script.py").write_text(text.partition("if __name__")[0] + more if more else text)
    done = subprocess.run(
        [sys.executable, str(folder / "script.py")],
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_script_with_narrow_floats_inside_imports_their_dtypes(tmp_path: Path) -> None:
    def product(x: Any, w: Any) -> Any:
        return (x.astype(sw.bfloat16) @ w.astype(sw.bfloat16)).astype(np.float32)

    program = sw.jit(product, mesh=MESH).lower(np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)).compile()
    assert run_alone(program, tmp_path) == "[[3. 3.]\n [3. 3.]]\n"


def test_a_script_with_dtypes_of_numpy_imports_no_others() -> None:
    program = sw.jit(np.tanh, mesh=MESH).lower(np.ones(3, np.float32)).compile()
    assert "ml_dtypes" not in program.to_source("mpi4py")


CALLS = """
for k in (100, -129, 128, 2.5):
    try:
        print(main(np.ones(2, "int8"), k))
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
"""


def test_a_script_checks_the_range_of_a_python_int(tmp_path: Path) -> None:
    def f(v: Any, k: Any) -> Any:
        return v + k, v * k

    program = sw.jit(f, mesh=MESH).lower(np.ones(2, np.int8), 3).compile()
    assert program.to_source("mpi4py").count("raise OverflowError") == 1
    assert run_alone(program, tmp_path, CALLS).splitlines() == [
        "[array([101, 101], dtype=int8), array([100, 100], dtype=int8)]",
        "OverflowError: main: argument k must be from -128 to 127",
        "OverflowError: main: argument k must be from -128 to 127",
        "TypeError: main: argument k must be int64[] as compiled, got float64[]",
    ]
