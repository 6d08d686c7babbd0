# SPDX-License-Identifier: Apache-2.0
"""Rows for ops that other ops make up: contractions, batch norms, dynamic shapes, CHLO ops that broadcast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import special

from shardwise import _core
from tests.op import references as ref
from tests.op.batch_norm_cases import BATCH_NORMS
from tests.op.case import ALL, FLOATS, INTEGERS, NUMBERS, Application, OpCase
from tests.op.indexing_cases import indices
from tests.op.indexing_references import Numbers, gather
from tests.op.inputs import Shape, dtype_of, extreme, plain, within
from tests.op.references import Array, Reference, is_float, wide

EnumValue = _core.ir.EnumValue
Struct = _core.ir.Struct

# ---- contractions ---------------------------------------------------------------------------------------------------


def _dot(n: int, dtype: str) -> list[Application]:
    shapes: list[tuple[Shape, Shape]] = [
        ((n, 4), (4, 5)),
        ((3, n), (n, 5)),
        ((n,), (n, 3)),
        ((3, n), (n,)),
        ((n,), (n,)),
    ]
    return [
        Application(pair, partial(ref.dot_general, contracting=((len(pair[0]) - 1,), (0,))), label=str(pair))
        for pair in shapes
    ]


def _einsum(equation: str) -> Reference:
    def computed(*operands: Array) -> Array:
        dtype = operands[0].dtype
        if dtype == np.bool_:
            return np.einsum(equation, *(x.astype(np.int64) for x in operands)) > 0
        if is_float(dtype):
            return np.einsum(equation, *map(wide, operands))
        return np.einsum(equation, *operands)

    return computed


def _einsum_rows(rows: Sequence[tuple[tuple[Shape, ...], str]]) -> list[Application]:
    return [Application(shapes, _einsum(text), {"einsum_config": text}, label=text) for shapes, text in rows]


def _binary_einsum(n: int, dtype: str) -> list[Application]:
    return _einsum_rows(
        [
            (((n, 4), (4, 5)), "ij,jk->ik"),
            (((2, n, 3), (3, n, 4)), "bij,jik->kbi"),
            (((n, 3), (4, 2)), "ij,kl->il"),
            (((n, n, 2), (n, 3)), "iij,ik->kj"),
            (((n,), (n,)), "i,i->"),
            (((n,), (3,)), "i,j->ji"),
        ]
    )


def _unary_einsum(n: int, dtype: str) -> list[Application]:
    return _einsum_rows(
        [
            (((n, 3),), "ij->ji"),
            (((n, 3, 2),), "ijk->kj"),
            (((n, n),), "ii->i"),
            (((2, n, n),), "bii->b"),
            (((n, 2, n, n),), "iaii->ai"),
        ]
    )


def _ragged_dot(n: int, dtype: str) -> list[Application]:
    counts = np.array([n // 3, 0, n - n // 3], np.int32)
    group = np.repeat(np.arange(3), counts)

    def by_rows(x: Array, w: Array, _: Array) -> Array:
        return np.einsum("mk,mkn->mn", wide(x), wide(w)[group])

    def by_groups(x: Array, y: Array, _: Array) -> Array:
        return np.stack([np.einsum("km,kn->mn", wide(x)[group == g], wide(y)[group == g]) for g in range(3)])

    lists = {"lhs_contracting_dimensions": (1,), "rhs_contracting_dimensions": (1,), "lhs_ragged_dimensions": (0,)}
    rows: list[tuple[Shape, Shape, Reference, dict[str, Any]]] = [
        ((n, 4), (3, 4, 5), by_rows, {**lists, "rhs_group_dimensions": (0,)}),
        ((n, 2), (n, 5), by_groups, {**lists, "lhs_contracting_dimensions": (0,), "rhs_contracting_dimensions": (0,)}),
    ]
    return [
        Application(
            (lhs, rhs, (3,)), reference, {"ragged_dot_dimension_numbers": Struct("chlo.ragged_dot", fields)},
            dtypes=(None, None, "int32"), fixed={2: counts}, has_local=False, label=f"{lhs}{rhs}",
        )
        for lhs, rhs, reference, fields in rows
    ]  # fmt: skip


# ---- movement -------------------------------------------------------------------------------------------------------


def _broadcast(n: int, dtype: str) -> list[Application]:
    rows: list[tuple[Shape, Shape]] = [((n,), (3,)), ((3,), (n, 2)), ((), (n,)), ((2, n), ())]
    return [
        Application(
            (shape,),
            lambda x, sizes=sizes: np.broadcast_to(x, sizes + x.shape),
            {"broadcast_sizes": sizes},
            at=lambda part: lambda x: np.broadcast_to(x, (*part[: len(part) - x.ndim], *x.shape)),
            label=f"{shape}{sizes}",
        )
        for shape, sizes in rows
    ]


def _select_application(operand: Shape, index: Shape, dim: int, batch: int, dtype: str) -> Application:
    added = len(index) - batch - 1
    others = [d for d in range(len(operand)) if d >= batch and d != dim]
    numbers = Numbers(
        tuple(d if d < dim else d + added for d in others),
        (dim,), tuple(range(batch)), tuple(range(batch)), (dim,), len(index),
    )  # fmt: skip
    slices = tuple(min(1, size) if d < batch or d == dim else size for d, size in enumerate(operand))
    return Application(
        (operand, index),
        gather(numbers, slices),
        {"dim": dim, "batch_dims": batch},
        dtypes=(None, dtype),
        fixed={1: indices(index, dtype, operand[dim], "select")},
        label=f"{operand}{index}{dim}{batch}",
    )


def _torch_index_select(n: int, dtype: str) -> list[Application]:
    some = 5 if n else 0
    return [
        _select_application((n, 3), (some,), 0, 0, "int32"),
        _select_application((3, n), (2, some), 1, 0, "int64"),
        _select_application((n, 4, 2), (n, 3), 1, 1, "int32"),
        _select_application((4, n), (n,), 0, 0, "uint8"),
    ]


def _constants(*values: Sequence[int]) -> dict[int, Array]:
    return {i: np.asarray(v, np.int64) for i, v in enumerate(values)}


def _behind(first: int, *values: Sequence[int]) -> tuple[tuple[Shape, ...], dict[int, Array], tuple[Any, ...]]:
    """Constant operands past the first ones: shapes, the constants, dtypes."""
    fixed = {first + i: x for i, x in _constants(*values).items()}
    return tuple(x.shape for x in fixed.values()), fixed, (*(None,) * first, *("int64",) * len(values))


def _dynamic_broadcast(n: int, dtype: str) -> list[Application]:
    rows: list[tuple[Shape, Shape, Shape]] = [((n,), (3, n), (1,)), ((n, 1), (n, 4), (0, 1)), ((), (n, 3), ())]
    found = []
    for shape, to, dims in rows:
        shapes, fixed, dtypes = _behind(1, to)
        found.append(
            Application(
                (shape, *shapes),
                lambda x, _, to=to, dims=dims: ref.broadcast_in_dim(to, dims)(x),
                {"broadcast_dimensions": dims},
                result_shape=to, dtypes=dtypes, fixed=fixed, baked=True, label=f"{shape}{to}",
            )
        )  # fmt: skip
    return found


def _dynamic_reshape(n: int, dtype: str) -> list[Application]:
    rows: list[tuple[Shape, Shape]] = [((n, 6), (6 * n,)), ((4 * n,), (4, n))]
    found = []
    for shape, to in rows:
        shapes, fixed, dtypes = _behind(1, to)
        found.append(
            Application(
                (shape, *shapes), lambda x, _, to=to: x.reshape(to),
                result_shape=to, dtypes=dtypes, fixed=fixed, baked=True, label=f"{shape}{to}",
            )
        )  # fmt: skip
    return found


def _dynamic_iota(n: int, dtype: str) -> list[Application]:
    found = []
    for shape, dim in [((n, 3), 0), ((2, n), 1)]:
        shapes, fixed, _ = _behind(0, shape)
        found.append(
            Application(
                shapes, lambda _, shape=shape, dim=dim: ref.iota(shape, dim, dtype_of(dtype)),
                {"iota_dimension": dim}, result_shape=shape, result_dtype=dtype,
                dtypes=("int64",), fixed=fixed, baked=True, label=f"{shape}{dim}",
            )
        )  # fmt: skip
    return found


def _dynamic_pad(n: int, dtype: str) -> list[Application]:
    rows: list[tuple[Shape, Shape, Shape]] = [
        ((1, 0), (2, 0), (0, 0)), ((0, 2), (0, 1), (0, 0)), ((0, -1), (0, 0), (2, 0)),
    ]  # fmt: skip
    found = []
    for low, high, interior in rows:
        shapes, fixed, dtypes = _behind(2, low, high, interior)

        def padded(x: Array, value: Array, *_: Array, of: Any = (low, high, interior)) -> Array:
            return ref.pad(x, value, *of)

        size = tuple(s + a + b + max(s - 1, 0) * c for s, a, b, c in zip((n, 3), low, high, interior))
        found.append(
            Application(
                ((n, 3), (), *shapes), padded,
                result_shape=size, dtypes=dtypes, fixed=fixed, baked=True, label=f"{low}{high}{interior}",
            )
        )  # fmt: skip
    return found


def _real_dynamic_slice(n: int, dtype: str) -> list[Application]:
    rows: list[tuple[Shape, Shape, Shape]] = [((min(1, n), 0), (n, 5), (1, 1)), ((0, 1), (n, 4), (2, 2))]
    found = []
    for start, limit, strides in rows:
        shapes, fixed, dtypes = _behind(1, start, limit, strides)

        def part(x: Array, *_: Array, of: Any = (start, limit, strides)) -> Array:
            return ref.slice_by(*of)(x)

        size = tuple(-(-(b - a) // c) for a, b, c in zip(start, limit, strides))
        found.append(
            Application(
                ((n, 5), *shapes), part,
                result_shape=size, dtypes=dtypes, fixed=fixed, baked=True, label=f"{start}{limit}{strides}",
            )
        )  # fmt: skip
    return found


def _dynamic_gather(n: int, dtype: str) -> list[Application]:
    found = []
    some = 5 if n else 0
    rows: list[tuple[Shape, Shape, Shape, Numbers]] = [
        ((n, 3), (some, 1), (min(n, 1), 3), Numbers((1,), (0,), (), (), (0,), 1)),
        ((5, n), (3, 1), (2, n), Numbers((0, 2), (), (), (), (0,), 1)),
    ]
    for operand, index, sizes, numbers in rows:
        shapes, fixed, _ = _behind(2, sizes)
        out = tuple(gather(numbers, sizes)(np.zeros(operand), np.zeros(index, np.int64)).shape)
        found.append(
            Application(
                (operand, index, *shapes),
                lambda x, i, _, sizes=sizes, numbers=numbers: gather(numbers, sizes)(x, i),
                {"dimension_numbers": Struct("stablehlo.gather", numbers.gather())},
                result_shape=out, dtypes=(None, "int32", "int64"),
                fixed={1: indices(index, "int32", operand[0], "dynamic"), **fixed}, baked=True, label=f"{operand}",
            )
        )  # fmt: skip
    return found


def _get_dimension_size(n: int, dtype: str) -> list[Application]:
    return [
        Application(
            ((n, 3),), lambda x, dim=dim: np.asarray(x.shape[dim], np.int32), {"dimension": dim}, label=str(dim)
        )
        for dim in (0, 1)
    ]


# ---- regions --------------------------------------------------------------------------------------------------------


def _map(n: int, dtype: str) -> list[Application]:
    attrs = {"dimensions": (0, 1)}
    factor = np.asarray(3, dtype_of(dtype))

    def record(trace: Any, operands: Sequence[int]) -> int:
        region = int(trace.begin_region())
        x, y = (trace.region_argument((), dtype) for _ in operands)
        scaled = trace.emit("stablehlo.multiply", [y, trace.constant(factor)[0]])[0]
        trace.end_region([trace.emit("stablehlo.add", [x, scaled])[0]])
        return int(trace.emit_op("stablehlo.map", list(operands), attrs, regions=[region])[0][0])

    def rounded(x: Array, y: Array) -> Array:
        product = ref.in_float32(np.multiply)(y, factor)
        return ref.in_float32(np.add)(x, product)

    return [Application(((n, 3), (n, 3)), rounded, attrs, record=record)]


# ---- CHLO -----------------------------------------------------------------------------------------------------------


def _broadcasting(count: int, reference: Reference, attrs: dict[str, Any] | None = None) -> Any:
    """Equal shapes, sizes of 1, fewer dims with and without broadcast_dimensions."""

    def applications(n: int, dtype: str) -> list[Application]:
        shapes: list[tuple[tuple[Shape, Shape], Shape | None]] = [
            (((n, 3), (n, 3)), None),
            (((n, 3), (3,)), (1,)),
            (((n,), (n, 2)), (0,)),
            (((), (n, 3)), None),
        ]
        if n > 1:
            shapes.append((((n, 1), (1, 3)), None))
        found = []
        for (a, b), dims in shapes:
            given = dict(attrs or {})
            if dims is not None:
                given["broadcast_dimensions"] = dims
            at = Alignment(dims)
            operands = ((n, 3), a, b) if count == 3 else (a, b)
            if count == 3 and len(np.broadcast_shapes(*(at.shape(s, 2) for s in (a, b)))) != 2:
                continue
            if count == 3:
                operands = (tuple(np.broadcast_shapes(at.shape(a, 2), at.shape(b, 2))), a, b)
            found.append(
                Application(
                    operands, at.aligned(reference), given,
                    dtypes=("bool",) if count == 3 else (), label=f"{a}{b}{dims}",
                )
            )  # fmt: skip
        return found

    return applications


class Alignment:
    """Where the dims of an operand with fewer dims go: to the given ones, else to the last."""

    def __init__(self, dims: Shape | None) -> None:
        self.dims = dims

    def shape(self, shape: Shape, ndim: int) -> Shape:
        if self.dims is None or len(shape) == ndim or len(shape) != len(self.dims):
            return (1,) * (ndim - len(shape)) + tuple(shape)
        return tuple(shape[self.dims.index(d)] if d in self.dims else 1 for d in range(ndim))

    def aligned(self, reference: Reference) -> Reference:
        def computed(*operands: Array) -> Array:
            ndim = max(x.ndim for x in operands)
            shaped = [x.reshape(self.shape(x.shape, ndim)) for x in operands]
            return reference(*np.broadcast_arrays(*shaped))

        return computed


def _broadcast_case(
    name: str, reference: Reference, dtypes: tuple[str, ...], draw: Any = extreme, kind: str = "exact", **options: Any
) -> OpCase:
    attrs = options.pop("attrs", None)
    exact = ref.in_float32(reference) if kind == "exact" and reference is not _next_after else reference
    return OpCase(
        f"chlo.broadcast_{name}",
        dtypes,
        _broadcasting(options.pop("count", 2), exact, attrs),
        draw,
        kind,
        options.pop("ulps", 2),
        **options,
    )


def _recorded_size(name: str, application: Application) -> Application:
    """Complex numbers from two operands, and how large they are: a float, as references are."""

    def record(trace: Any, operands: Sequence[int]) -> int:
        return int(trace.emit("stablehlo.abs", [trace.emit(name, list(operands), application.attrs or None)[0]])[0])

    return replace(application, record=record)


def sizes_of_complex(n: int, dtype: str) -> list[Application]:
    return [_recorded_size("stablehlo.complex", Application(((n, 3),) * 2, ref.in_long_double(np.hypot)))]


def _asin_acos_kernel(n: int, dtype: str) -> list[Application]:
    """Of a complex number whose parts are equal, its real part."""

    def reference(x: Array) -> Array:
        z = ref.wide(x) * np.clongdouble(1 + 1j)
        return np.asarray(np.real(np.sqrt(1 - z) * np.sqrt(1 + z)))

    def record(trace: Any, operands: Sequence[int]) -> int:
        z = trace.emit("stablehlo.complex", [operands[0], operands[0]])[0]
        return int(trace.emit("stablehlo.real", [trace.emit("chlo._asin_acos_kernel", [z])[0]])[0])

    return [Application(((n, 3),), reference, record=record)]


def sizes_of_spectra(n: int, dtype: str) -> list[Application]:
    """How large the numbers of a transform of real numbers are."""
    attrs = {"fft_type": EnumValue("stablehlo", "fft_type", "RFFT"), "fft_length": (6,)}

    def record(trace: Any, operands: Sequence[int]) -> int:
        return int(trace.emit("stablehlo.abs", [trace.emit("stablehlo.fft", list(operands), attrs)[0]])[0])

    rows = [Application(((n, 6),), lambda x: np.asarray(np.abs(np.fft.rfft(ref.wide(x)))), attrs, record=record)]
    return [*rows, _size_of_complex_spectrum(n)]


def _size_of_complex_spectrum(n: int) -> Application:
    """How large the numbers of a transform of complex numbers are; their imaginary parts are cosines."""
    attrs = {"fft_type": EnumValue("stablehlo", "fft_type", "FFT"), "fft_length": (6,)}

    def reference(x: Array) -> Array:
        wide = ref.wide(x)
        return np.asarray(np.abs(np.fft.fft(wide + 1j * np.cos(wide))))

    def record(trace: Any, operands: Sequence[int]) -> int:
        imaginary = trace.emit("stablehlo.cosine", list(operands))[0]
        z = trace.emit("stablehlo.complex", [operands[0], imaginary])[0]
        return int(trace.emit("stablehlo.abs", [trace.emit("stablehlo.fft", [z], attrs)[0]])[0])

    return Application(((n, 6),), reference, attrs, record=record, label="FFT")


def _sizes_of_broadcasts(n: int, dtype: str) -> list[Application]:
    rows = _broadcasting(2, ref.in_long_double(np.hypot), None)(n, dtype)
    return [_recorded_size("chlo.broadcast_complex", row) for row in rows]


def _power(x: Array, y: Array) -> Array:
    return (ref.in_long_double(np.power) if is_float(x.dtype) else ref.integer_power)(x, y)


LESS = {"comparison_direction": EnumValue("chlo", "comparison_direction", "LT")}
LOGIC = (*INTEGERS, "bool")
SMOOTH_DRAW = {"gradient_draw": within(0.5, 3)}


def _in_float64(function: Reference) -> Reference:
    return lambda *operands: np.asarray(function(*(x.astype(np.float32 if x.dtype.itemsize == 2 else x.dtype)
                                                   .astype(np.float64) for x in operands)))  # fmt: skip


def _next_after(x: Array, y: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.where(x == y, y, np.nextafter(x, y))  # NumPy's float16 steps from -0 to +0


def _polygamma(order: Array, x: Array) -> Array:
    return special.polygamma(np.rint(order), x)


def _whole(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """Positive whole numbers, which are both orders and operands of polygamma."""
    return rng.integers(1, 6, shape).astype(np.float32).astype(dtype_of(dtype))


BROADCASTS = [
    _broadcast_case("add", np.add, ALL),
    _broadcast_case("subtract", np.subtract, NUMBERS),
    _broadcast_case("multiply", np.multiply, ALL),
    _broadcast_case("divide", ref.divide, NUMBERS, **SMOOTH_DRAW),
    _broadcast_case("remainder", ref.remainder, NUMBERS, **SMOOTH_DRAW),
    _broadcast_case("power", _power, NUMBERS, within(0.1, 3), "ulps"),
    _broadcast_case("atan2", ref.in_long_double(np.arctan2), FLOATS, plain, "ulps"),
    _broadcast_case("maximum", ref.maximum, ALL),
    _broadcast_case("minimum", ref.minimum, ALL),
    _broadcast_case("and", np.bitwise_and, LOGIC),
    _broadcast_case("or", np.bitwise_or, LOGIC),
    _broadcast_case("xor", np.bitwise_xor, LOGIC),
    _broadcast_case("shift_left", ref.shift_left, INTEGERS),
    _broadcast_case("shift_right_arithmetic", ref.shift_right_arithmetic, INTEGERS),
    _broadcast_case("shift_right_logical", ref.shift_right_logical, INTEGERS),
    _broadcast_case("compare", np.less, ALL, attrs=LESS),
    _broadcast_case("select", np.where, ALL, count=3),
    _broadcast_case("next_after", _next_after, FLOATS),
    _broadcast_case("polygamma", _in_float64(_polygamma), FLOATS, _whole, "magnitude", ulps=16),
    _broadcast_case("zeta", _in_float64(special.zeta), FLOATS, within(1.5, 5), "magnitude", ulps=16),
]


def _one(reference: Reference) -> Callable[[int, str], list[Application]]:
    return lambda n, dtype: [Application(((n, 3),), reference)]


def _chlo_constant(n: int, dtype: str) -> list[Application]:
    value = plain((n, 3), dtype, np.random.default_rng(n))
    return [Application((), lambda: value, {"value": value}, has_local=False)]


def _constant_like(n: int, dtype: str) -> list[Application]:
    to = dtype_of(dtype)
    value = 2.5 if is_float(to) else True if to == np.bool_ else 1
    return [
        Application(((n, 3),), lambda x: np.full(x.shape, value, to), {"value": value}, result_shape=(n, 3),
                    result_dtype=dtype)
    ]  # fmt: skip


def _two(reference: Reference) -> Callable[[int, str], list[Application]]:
    return lambda n, dtype: [Application(((n, 3), (n, 3)), reference)]


def _high_half(x: Array, y: Array) -> Array:
    bits = 8 * x.dtype.itemsize
    products = [int(a) * int(b) >> bits for a, b in zip(x.ravel(), y.ravel())]
    return np.array(products, np.uint64 if x.dtype == np.uint64 else np.int64).astype(x.dtype).reshape(x.shape)


def _set_dimension_size(n: int, dtype: str) -> list[Application]:
    found = []
    for dim, size in enumerate((n, 3)):
        fixed = {1: np.asarray(size, np.int32)}
        found.append(
            Application(
                ((n, 3), ()), lambda x, _: x, {"dimension": dim},
                dtypes=(None, "int32"), fixed=fixed, baked=True, label=str(dim),
            )
        )  # fmt: skip
    return found


SPECIAL = [
    OpCase("chlo.erf_inv", FLOATS, _one(_in_float64(special.erfinv)), within(-0.98, 0.98), "ulps", 8),
    OpCase("chlo.bessel_i1e", FLOATS, _one(_in_float64(special.i1e)), within(-20, 20), "ulps", 8),
    OpCase("chlo.digamma", FLOATS, _one(_in_float64(special.digamma)), within(0.2, 20), "magnitude", 16),
    OpCase("chlo.polygamma", FLOATS, _two(_in_float64(_polygamma)), _whole, "magnitude", 16),
    OpCase("chlo.zeta", FLOATS, _two(_in_float64(special.zeta)), within(1.5, 5), "magnitude", 16),
    OpCase("chlo.next_after", FLOATS, _two(_next_after), extreme),
    OpCase("chlo.mulhi", INTEGERS, _two(_high_half), extreme),
]  # fmt: skip

CHLO = [
    OpCase("chlo.broadcast_complex", ("float32", "float64"), _sizes_of_broadcasts, plain, "ulps", 2),
    OpCase("chlo._asin_acos_kernel", ("float64",), _asin_acos_kernel, within(-0.9, 0.9), "ulps", 4),
    OpCase("chlo.tan", FLOATS, _one(ref.in_long_double(np.tan)), within(-1.4, 1.4), "ulps", 2),
    OpCase("chlo.conj", FLOATS, _one(lambda x: x), extreme),
    OpCase("chlo.is_inf", FLOATS, _one(np.isinf), extreme),
    OpCase("chlo.is_pos_inf", FLOATS, _one(lambda x: x == np.inf), extreme),
    OpCase("chlo.is_neg_inf", FLOATS, _one(lambda x: x == -np.inf), extreme),
    OpCase("chlo.constant", ALL, _chlo_constant, plain),
    OpCase("chlo.constant_like", ("float32", "float64", "int32", "bool"), _constant_like, plain),
]

COMPOSED = [
    OpCase("stablehlo.dot", ALL, _dot, plain, "dot", combine="add"),
    OpCase("stablehlo.einsum", ALL, _binary_einsum, plain, "dot", combine="add"),
    OpCase("stablehlo.unary_einsum", ALL, _unary_einsum, plain, "sum", combine="add"),
    OpCase("chlo.ragged_dot", FLOATS, _ragged_dot, plain, "magnitude", 16, combine="add"),
    OpCase("stablehlo.broadcast", ALL, _broadcast, plain),
    OpCase("stablehlo.torch_index_select", ALL, _torch_index_select, extreme),
    OpCase("stablehlo.dynamic_broadcast_in_dim", ALL, _dynamic_broadcast, plain),
    OpCase("stablehlo.dynamic_reshape", ALL, _dynamic_reshape, plain),
    OpCase("stablehlo.dynamic_iota", NUMBERS, _dynamic_iota, plain),
    OpCase("stablehlo.dynamic_pad", ALL, _dynamic_pad, plain),
    OpCase("stablehlo.real_dynamic_slice", ALL, _real_dynamic_slice, plain),
    OpCase("stablehlo.dynamic_gather", ALL, _dynamic_gather, extreme),
    OpCase("stablehlo.get_dimension_size", ALL, _get_dimension_size, plain),
    OpCase("stablehlo.set_dimension_size", ALL, _set_dimension_size, plain),
    OpCase("stablehlo.map", NUMBERS, _map, plain),
    *BATCH_NORMS,
    *BROADCASTS,
    *CHLO,
    *SPECIAL,
]
