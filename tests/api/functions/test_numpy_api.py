# SPDX-License-Identifier: Apache-2.0
"""NumPy functions on traced values mean what NumPy says: shapes and dtypes exactly, elements up to rounding."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import shardwise as sw
import shardwise.numpy as snp
from shardwise import P
from tests.api.functions.numpy_cases import Case, all_cases, data

CASES = all_cases()
MESHES = {"1": sw.Mesh({"data": 1, "model": 1}), "4x2": sw.Mesh({"data": 4, "model": 2})}
# NumPy warns about the divisions by zero that the table asks for.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def assert_same(result: Any, expected: Any) -> None:
    if isinstance(expected, (list, tuple)):
        assert len(result) == len(expected)
        for one, other in zip(result, expected):
            assert_same(one, other)
        return
    result, expected = np.asarray(result), np.asarray(expected)
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(result, expected)
        return
    eps = float(ml_dtypes.finfo(expected.dtype).eps)
    wide = expected.astype(np.float64)
    scale = float(np.max(np.abs(np.where(np.isfinite(wide), wide, 0)), initial=0))
    np.testing.assert_allclose(result.astype(np.float64), wide, rtol=32 * eps, atol=8 * eps * scale)


@pytest.mark.parametrize("mesh", MESHES.values(), ids=MESHES)
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_function_matches_numpy(case: Case, mesh: sw.Mesh) -> None:
    expected = case.function(*case.arrays)
    specs = tuple(P(*("data", "model")[: array.ndim]) for array in case.arrays)
    result = sw.jit(case.function, mesh=mesh, in_shardings=specs)(*case.arrays)
    assert_same(result, expected)


def trace(function: Any, *arrays: np.ndarray) -> Any:
    return sw.jit(function, mesh=MESHES["4x2"]).trace(*arrays)


def test_sharded_arrays_take_numpy_functions_outside_jit() -> None:
    x = data((8, 6))
    placed = sw.device_put(x, sw.NamedSharding(MESHES["4x2"], P("data", "model")))
    assert_same(np.sum(np.tanh(placed) + x, axis=0), np.sum(np.tanh(x) + x, axis=0))
    assert_same(placed[1:, None, ::-1], x[1:, None, ::-1])


def test_public_functions_are_numpys() -> None:
    assert snp.tanh is np.tanh
    assert snp.concatenate is np.concatenate
    assert {"sum", "einsum", "where", "zeros", "pi", "astype", "true_divide"} <= set(snp.__all__)
    assert [name for name in snp.__all__ if not hasattr(snp, name)] == []


def test_dtypes_have_the_names_of_the_array_api_standard() -> None:
    """A function that takes its namespace as an argument finds them in both."""
    for name, dtype in np.__array_namespace_info__().dtypes().items():
        assert getattr(snp, name) is dtype.type is getattr(np, name)
    for name in ("dtype", "finfo", "iinfo", "isdtype"):
        assert getattr(snp, name) is getattr(np, name)

    def counted(xp: Any, x: Any) -> Any:
        return xp.zeros(4, xp.float32) + x.astype(xp.int16)

    x = np.arange(4)
    found = sw.jit(lambda x: counted(snp, x), mesh=sw.Mesh({"x": 2}))(x)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, counted(np, x))


def test_scalar_constants_hold_one_element() -> None:
    text = trace(lambda x: x + 1.5, np.zeros((64, 64), np.float32)).as_text()
    assert "dense<1.500000e+00> : tensor<64x64xf32>" in text


def test_arrays_of_the_other_byte_order_keep_their_numbers() -> None:
    for size in (3, 30):
        other = np.arange(size, dtype=np.dtype(np.float32).newbyteorder())
        result = sw.jit(lambda x, y=other: x + y, mesh=MESHES["4x2"])(np.zeros(size, np.float32))
        assert_same(result, np.arange(size, dtype=np.float32))


def test_matmul_is_one_op() -> None:
    text = trace(lambda x, w: np.einsum("bm,mh->bh", x, w), data((8, 4)), data((4, 6))).as_text()
    assert text.count("stablehlo.") == text.count("stablehlo.dot_general") == 1


class Refusal:
    """A call that must fail, the exception, and parts of its text."""

    def __init__(self, call: Any, error: type[Exception], *parts: str) -> None:
        self.call, self.error, self.parts = call, error, parts


REFUSALS = {
    "partition": Refusal(
        lambda x: np.partition(x, 2),
        sw.UnsupportedError,
        "np.partition is not supported in traced functions; call it on np.asarray(x) outside jit (at",
    ),
    "near": Refusal(
        lambda x: np.nanmedian(x), sw.UnsupportedError, "np.nanmedian is not supported in traced functions"
    ),
    "ufunc": Refusal(lambda x: np.spacing(x), sw.UnsupportedError, "np.spacing is not supported in traced functions"),
    "out": Refusal(
        lambda x: np.add(x, 1, out=np.zeros((8, 4))),
        sw.UnsupportedError,
        "np.add: out= is not supported in traced functions, got out=float64[8, 4]; use what the function returns",
    ),
    "sum-out": Refusal(
        lambda x: np.sum(x, axis=0, out=np.zeros(4)),
        sw.UnsupportedError,
        "np.sum: out= is not supported in traced functions, got out=float64[4]",
    ),
    "where": Refusal(
        lambda x: np.add(x, 1, where=np.ones((8, 4), bool)), sw.UnsupportedError, "got where=bool[8, 4]; use np.where"
    ),
    "sum-where": Refusal(lambda x: np.sum(x, where=x), sw.DTypeError, "np.sum: where must be of bools, got float32"),
    "sum-where-shape": Refusal(
        lambda x: np.sum(x, where=np.ones((2, 8, 4), bool)),
        sw.ShapeError,
        "np.sum: where must broadcast to the array's shape, got (2, 8, 4) for (8, 4); broadcast the array",
    ),
    "max-where": Refusal(
        lambda x: np.max(x, where=x > 0),
        ValueError,
        "np.max: a reduction with where= needs a value to start with; give initial= (at",
    ),
    "order": Refusal(lambda x: np.reshape(x, (4, 8), order="A"), sw.UnsupportedError, "order="),
    "casting": Refusal(lambda x: np.add(x, 1, casting="no"), sw.UnsupportedError, "casting="),
    "accumulate": Refusal(lambda x: np.subtract.accumulate(x), sw.UnsupportedError, "np.subtract.accumulate", "of add"),
    "accumulate-out": Refusal(
        lambda x: np.add.accumulate(x, out=np.zeros((8, 4))), sw.UnsupportedError, "np.add.accumulate: out= is not"
    ),
    "accumulate-number": Refusal(lambda x: np.maximum.accumulate(x[0, 0]), sw.ShapeError, "at least one dim"),
    "cumsum-axis": Refusal(lambda x: np.cumsum(x, 2), sw.ShapeError, "np.cumsum", "must be in [-2, 2), got 2"),
    "reduceat": Refusal(lambda x: np.add.reduceat(x, [0]), sw.UnsupportedError, "np.add.reduceat", "reduce of add"),
    "outer": Refusal(lambda x: np.multiply.outer(x, x), sw.UnsupportedError, "np.multiply.outer"),
    "shapes": Refusal(
        lambda x: x + np.ones(3), sw.ShapeError, "np.add: shapes must broadcast to one, got (8, 4) and (3,)"
    ),
    "matmul": Refusal(lambda x: x @ x, sw.ShapeError, "np.matmul", "got 4 and 8 of shapes (8, 4) and (8, 4)"),
    "einsum": Refusal(lambda x: np.einsum("ij,jk", x, x), sw.ShapeError, "np.einsum", "4 and 8"),
    "einsum-count": Refusal(lambda x: np.einsum("ij,jk", x), sw.ShapeError, "one list of labels per operand"),
    "einsum-output": Refusal(lambda x: np.einsum("ij->k", x), sw.ShapeError, "each label of the output"),
    "reshape": Refusal(lambda x: np.reshape(x, (5, 7)), sw.ShapeError, "got (8, 4) to (5, 7)"),
    "axis": Refusal(lambda x: np.sum(x, axis=2), sw.ShapeError, "must be in [-2, 2), got 2"),
    "axis-twice": Refusal(lambda x: np.sum(x, axis=(0, -2)), sw.ShapeError, "axes must differ"),
    "concatenate": Refusal(lambda x: np.concatenate([x, x[:, 1:]]), sw.ShapeError, "(8, 4) and (8, 3)"),
    "split": Refusal(lambda x: np.split(x, 3), sw.ShapeError, "np.array_split"),
    "max-empty": Refusal(lambda x: np.max(x[:0]), sw.ShapeError, "initial="),
    "argmax-empty": Refusal(lambda x: np.argmax(x[:0], axis=0), sw.ShapeError, "an element to find", "shape (0, 4)"),
    "argmin-axis": Refusal(lambda x: np.argmin(x, axis=2), sw.ShapeError, "np.argmin", "must be in [-2, 2), got 2"),
    "argmax-axes": Refusal(lambda x: np.argmax(x, axis=(0, 1)), TypeError, "np.argmax", "must be an integer"),
    "argmax-out": Refusal(
        lambda x: np.argmax(x, axis=0, out=np.zeros(4, np.intp)), sw.UnsupportedError, "np.argmax: out= is not"
    ),
    "negative": Refusal(lambda x: -(x > 0), sw.DTypeError, "np.negative: has no meaning for these dtypes, got bool"),
    "complex": Refusal(lambda x: x.astype(np.clongdouble), sw.DTypeError, "complex256"),
    "index": Refusal(lambda x: x[8], IndexError, "dim 0 of size 8", "got 8"),
    "indices": Refusal(lambda x: x[0, 0, 0], IndexError, "at most as many indices"),
    "mask": Refusal(lambda x: x[x > 0], sw.UnsupportedError, "np.where(mask, x, 0)"),
    "array-index": Refusal(lambda x: x[x], IndexError, "an array index must hold integers"),
    "where-one": Refusal(lambda x: np.where(x), sw.UnsupportedError, "shape that depends on the data"),
    "overflow": Refusal(lambda x: x.astype(np.uint8) + 300, OverflowError, "a number must fit uint8, got 300"),
    "repeats": Refusal(lambda x: np.repeat(x[:, 0], x[:, 0].astype(int)), sw.TracerConversionError, "np.repeat"),
    "pad": Refusal(lambda x: np.pad(x, 1, mode="linear_ramp"), sw.UnsupportedError, "constant, edge"),
    "norm": Refusal(lambda x: np.linalg.norm(x, 3), ValueError, "a matrix's order must be 1, 2, inf, these negative"),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_refusal_names_the_reason_and_the_line(refusal: Refusal) -> None:
    with pytest.raises(refusal.error) as caught:
        trace(refusal.call, data((8, 4)))
    text = str(caught.value)
    for part in refusal.parts:
        assert part in text
    assert f"(at {__file__}:{refusal.call.__code__.co_firstlineno})" in text


def test_program_names_the_users_line_and_variable() -> None:
    def f(x: Any) -> Any:
        h = np.tanh(x)
        return h * 2

    program = sw.jit(f, mesh=MESHES["4x2"], in_shardings=P("data")).lower(data((8, 4))).compile()
    explanation = program.why("h")
    assert explanation.values[0].file == __file__
    assert explanation.values[0].line == f.__code__.co_firstlineno + 1


BOUNDS: dict[str, Any] = {
    "floats": lambda x: np.clip(x, 0.0, 1.0),
    "low": lambda x: np.clip(x, 0.0, None),
    "high": lambda x: np.clip(x, None, 1.0),
    "integers": lambda x: np.clip(x, 0, 1),
    "float32": lambda x: np.clip(x, np.float32(0), 1.0),
    "float64": lambda x: np.clip(x, 0, np.float64(1)),
    "itself": lambda x: np.clip(x, x, 1.0),
}


@pytest.mark.parametrize("dtype", [sw.bfloat16, np.float16, np.float32, np.int8, np.uint8], ids=str)
@pytest.mark.parametrize("name", BOUNDS)
def test_clip_has_numpys_dtype(name: str, dtype: Any) -> None:
    x = np.array([0, 1, 3], dtype)
    got = sw.jit(BOUNDS[name], mesh=sw.Mesh({"x": 2}))(x)
    want = BOUNDS[name](x)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("dtype", [sw.bfloat16, np.float16, np.float32, np.float64], ids=str)
@pytest.mark.parametrize("function", [np.nan_to_num, lambda x: np.nan_to_num(x, nan=1.5, posinf=2.5), np.round])
def test_what_keeps_its_dtype_keeps_bfloat16(function: Any, dtype: Any) -> None:
    x = np.array([0.25, np.nan, np.inf, -np.inf, 3.0], dtype)
    got = sw.jit(function, mesh=sw.Mesh({"x": 2}))(x)
    assert got.dtype == x.dtype
    is_narrow = x.dtype == sw.bfloat16  # in which NumPy's nan_to_num finds no NaN
    limit = np.float64(ml_dtypes.finfo(x.dtype).max)
    want = function(x)
    if is_narrow and function is not np.round:
        want = np.clip(function(x.astype(np.float32)), -limit, limit)
    np.testing.assert_array_equal(np.asarray(got).astype(np.float64), np.asarray(want).astype(np.float64))


def test_rounding_to_decimals_keeps_bfloat16() -> None:
    x = np.array([0.25, 1.375, 3.0], sw.bfloat16)
    got = sw.jit(lambda x: np.round(x, 1), mesh=sw.Mesh({"x": 2}))(x)
    assert got.dtype == np.round(x, 1).dtype == sw.bfloat16
    np.testing.assert_allclose(np.asarray(got, np.float32), np.round(x, 1).astype(np.float32), rtol=2**-7)
