# SPDX-License-Identifier: Apache-2.0
"""The table of op cases: what every op of the registry computes, on which shapes and dtypes it is tried.

A row is an :class:`OpCase`. It gives :class:`Application`\\ s for an interesting dim size ``n`` (7, 17, 1, 0, ...),
each of which is the op on concrete shapes with a NumPy reference. ``test_matrix``, ``test_rule_truth`` and
``test_gradients`` all read this one table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from shardwise import _core
from tests.op import references as ref
from tests.op.case import ALL, FLOATS, INTEGERS, NUMBERS, SIGNED, Application, OpCase
from tests.op.composed_cases import COMPOSED, sizes_of_complex, sizes_of_spectra
from tests.op.convolution_cases import CONVOLUTIONS
from tests.op.dtype_values import width_of
from tests.op.indexing_cases import INDEXING
from tests.op.inputs import Shape, dtype_of, extreme, near_one, plain, within
from tests.op.linalg_cases import LINALG
from tests.op.pooling_cases import POOLING
from tests.op.random_cases import RANDOM
from tests.op.reduction_cases import SEVERAL
from tests.op.references import Array, Reference, is_float
from tests.op.sort_cases import SORTS
from tests.op.window_cases import WINDOWS

EnumValue = _core.ir.EnumValue
Struct = _core.ir.Struct


# ---- elementwise ----------------------------------------------------------------------------------------------------


def _pointwise(count: int, reference: Reference) -> Callable[[int, str], list[Application]]:
    return lambda n, dtype: [Application(((n, 3),) * count, reference)]


def unary_exact(name: str, reference: Reference, dtypes: tuple[str, ...], **options: Any) -> OpCase:
    return OpCase(name, dtypes, _pointwise(1, ref.in_float32(reference)), extreme, **options)


def unary_ulps(name: str, reference: Reference, domain: tuple[float, float], ulps: float = 2) -> OpCase:
    return OpCase(name, FLOATS, _pointwise(1, reference), within(*domain), "ulps", ulps)


def binary_exact(name: str, reference: Reference, dtypes: tuple[str, ...], **options: Any) -> OpCase:
    return OpCase(name, dtypes, _pointwise(2, ref.in_float32(reference)), extreme, **options)


def _power(n: int, dtype: str) -> list[Application]:
    reference = ref.in_long_double(np.power) if is_float(dtype_of(dtype)) else ref.integer_power
    return [Application(((n, 3), (n, 3)), reference)]


def _compare(n: int, dtype: str) -> list[Application]:
    kind = "FLOAT" if is_float(dtype_of(dtype)) else "SIGNED" if dtype_of(dtype).kind == "i" else "UNSIGNED"
    rows = []
    for direction, function in ref.COMPARISONS.items():
        attrs = {"comparison_direction": EnumValue("stablehlo", "comparison_direction", direction)}
        rows.append(Application(((n, 3), (n, 3)), function, attrs, label=direction))
    typed = {**rows[2].attrs, "compare_type": EnumValue("stablehlo", "comparison_type", kind)}
    rows.append(Application(((n, 3), (n, 3)), np.less, typed, label=f"LT {kind}"))
    if kind == "FLOAT":
        total = {**rows[4].attrs, "compare_type": EnumValue("stablehlo", "comparison_type", "TOTALORDER")}

        def greater(x: Array, y: Array) -> Array:
            return ref.total_order_key(x) > ref.total_order_key(y)

        rows.append(Application(((n, 3), (n, 3)), greater, total, label="GT TOTALORDER"))
    return rows


def _select(n: int, dtype: str) -> list[Application]:
    return [
        Application(((n, 3),) * 3, np.where, dtypes=("bool",), label="tensor"),
        Application(((), (n, 3), (n, 3)), np.where, dtypes=("bool",), label="scalar"),
    ]


def _clamp(n: int, dtype: str) -> list[Application]:
    clamp = ref.in_float32(ref.clamp)
    low, high = np.asarray(1, dtype_of(dtype)), np.asarray(3, dtype_of(dtype))
    lows, highs = np.full((n, 3), low), np.full((n, 3), high)
    return [
        Application(((), (n, 3), ()), clamp, fixed={0: low, 2: high}, label="scalars"),
        Application(((n, 3),) * 3, clamp, fixed={0: lows, 2: highs}, label="tensors"),
        Application(((n, 3),) * 3, clamp, differentiable=False, label="bounds in any order"),
    ]


def _convert(n: int, dtype: str) -> list[Application]:
    targets = ALL if dtype in ("float32", "int32") else ("float32", "int8", "uint64", "float16", "bool")
    return [
        Application(((n, 3),), partial(ref.convert, dtype=dtype_of(to)), result_dtype=to, label=to) for to in targets
    ]


def _bitcast(n: int, dtype: str) -> list[Application]:
    width = width_of(dtype)
    rows = []
    for to in (*ALL, *({dtype} - set(ALL))):
        other = width_of(to)
        if "bool" in (dtype, to) or (other != width and dtype not in ("float32", "int16")):
            continue
        if other == width:
            shape, result = (n, 3), (n, 3)
        elif other < width:
            shape, result = (n, 3), (n, 3, width // other)
        else:
            shape, result = (n, 3, other // width), (n, 3)
        view = partial(ref.bitcast, dtype=dtype_of(to))
        rows.append(Application((shape,), view, result_shape=result, result_dtype=to, label=to))
    return rows


def _reduce_precision(n: int, dtype: str) -> list[Application]:
    formats = {"float64": [(11, 52)], "float16": [(5, 2), (5, 10)], "bfloat16": [(5, 2), (8, 7)]}
    return [
        Application(
            ((n, 3),),
            partial(ref.reduce_precision, exponent_bits=e, mantissa_bits=m),
            {"exponent_bits": np.int32(e), "mantissa_bits": np.int32(m)},
            label=f"e{e}m{m}",
        )
        for e, m in formats.get(dtype, [(5, 10), (8, 7), (5, 2), (8, 23)])
    ]


L = ref.in_long_double


UNARY = [
    unary_exact("stablehlo.real", np.real, FLOATS),
    unary_exact("stablehlo.imag", np.zeros_like, FLOATS),
    unary_exact("stablehlo.abs", np.abs, FLOATS + SIGNED),
    unary_exact("stablehlo.negate", np.negative, NUMBERS),
    unary_exact("stablehlo.sign", ref.sign, FLOATS + SIGNED),
    unary_exact("stablehlo.ceil", np.ceil, FLOATS),
    unary_exact("stablehlo.floor", np.floor, FLOATS),
    unary_exact("stablehlo.round_nearest_afz", ref.round_nearest_afz, FLOATS),
    unary_exact("stablehlo.round_nearest_even", np.rint, FLOATS),
    unary_exact("stablehlo.is_finite", np.isfinite, FLOATS),
    unary_exact("stablehlo.not", np.invert, (*INTEGERS, "bool")),
    unary_exact("stablehlo.popcnt", ref.popcnt, INTEGERS),
    unary_exact("stablehlo.count_leading_zeros", ref.count_leading_zeros, INTEGERS),
    unary_exact("chlo.square", lambda x: x * x, NUMBERS),
    OpCase("stablehlo.sqrt", FLOATS, _pointwise(1, ref.in_float32(np.sqrt)), within(0, 9)),
    unary_ulps("stablehlo.rsqrt", L(lambda x: 1 / np.sqrt(x)), (0.01, 9)),
    unary_ulps("stablehlo.cbrt", L(np.cbrt), (-9, 9)),
    unary_ulps("stablehlo.exponential", L(np.exp), (-9, 9)),
    unary_ulps("stablehlo.exponential_minus_one", L(np.expm1), (-3, 3)),
    unary_ulps("stablehlo.log", L(np.log), (0.01, 9)),
    unary_ulps("stablehlo.log_plus_one", L(np.log1p), (-0.9, 3)),
    unary_ulps("stablehlo.logistic", L(lambda x: 1 / (1 + np.exp(-x))), (-9, 9), 4),
    unary_ulps("stablehlo.sine", L(np.sin), (-9, 9)),
    unary_ulps("stablehlo.cosine", L(np.cos), (-9, 9)),
    unary_ulps("stablehlo.tan", L(np.tan), (-1.4, 1.4)),
    unary_ulps("stablehlo.tanh", L(np.tanh), (-4, 4)),
    unary_ulps("chlo.sinh", L(np.sinh), (-4, 4)),
    unary_ulps("chlo.cosh", L(np.cosh), (-4, 4)),
    unary_ulps("chlo.asin", L(np.arcsin), (-1, 1)),
    unary_ulps("chlo.acos", L(np.arccos), (-1, 1)),
    unary_ulps("chlo.atan", L(np.arctan), (-9, 9)),
    unary_ulps("chlo.asinh", L(np.arcsinh), (-9, 9)),
    unary_ulps("chlo.acosh", L(np.arccosh), (1.01, 9)),
    unary_ulps("chlo.atanh", L(np.arctanh), (-0.95, 0.95)),
    unary_ulps("chlo.erf", ref.from_math(math.erf), (-3, 3)),
    unary_ulps("chlo.erfc", ref.from_math(math.erfc), (-3, 5), 4),
    OpCase(
        "chlo.lgamma",
        FLOATS,
        _pointwise(1, ref.from_math(math.lgamma)),
        within(-4, 20),
        "magnitude",
        2,
        gradient_draw=within(0.5, 6),
    ),
    OpCase("stablehlo.convert", ALL, _convert, extreme, gradient_dtype="float32"),
    OpCase("stablehlo.bitcast_convert", ALL[:-1], _bitcast, extreme),
    OpCase("stablehlo.reduce_precision", FLOATS, _reduce_precision, extreme),
]

BINARY = [
    OpCase("stablehlo.fft", ("float32", "float64"), sizes_of_spectra, plain, "magnitude", 8),
    OpCase("stablehlo.complex", ("float32", "float64"), sizes_of_complex, plain, "ulps", 2),
    binary_exact("stablehlo.add", np.add, ALL),
    binary_exact("stablehlo.subtract", np.subtract, NUMBERS),
    binary_exact("stablehlo.multiply", np.multiply, ALL),
    binary_exact("stablehlo.divide", ref.divide, NUMBERS, gradient_draw=within(0.5, 3)),
    binary_exact("stablehlo.remainder", ref.remainder, NUMBERS, gradient_draw=within(0.5, 3)),
    OpCase("stablehlo.power", NUMBERS, _power, within(0.1, 3), "ulps", 2),
    OpCase("stablehlo.atan2", FLOATS, _pointwise(2, L(np.arctan2)), plain, "ulps", 2),
    binary_exact("stablehlo.maximum", ref.maximum, ALL),
    binary_exact("stablehlo.minimum", ref.minimum, ALL),
    binary_exact("stablehlo.and", np.bitwise_and, (*INTEGERS, "bool")),
    binary_exact("stablehlo.or", np.bitwise_or, (*INTEGERS, "bool")),
    binary_exact("stablehlo.xor", np.bitwise_xor, (*INTEGERS, "bool")),
    binary_exact("stablehlo.shift_left", ref.shift_left, INTEGERS),
    binary_exact("stablehlo.shift_right_arithmetic", ref.shift_right_arithmetic, INTEGERS),
    binary_exact("stablehlo.shift_right_logical", ref.shift_right_logical, INTEGERS),
    OpCase("stablehlo.compare", ALL, _compare, extreme),
    OpCase("stablehlo.select", ALL, _select, extreme),
    OpCase("stablehlo.clamp", NUMBERS, _clamp, extreme),
]


# ---- layout ---------------------------------------------------------------------------------------------------------


def _transpose(n: int, dtype: str) -> list[Application]:
    return [
        Application((shape,), lambda x, order=order: x.transpose(order), {"permutation": order}, label=str(order))
        for shape, order in [((n, 4), (1, 0)), ((2, n, 3), (2, 0, 1)), ((n, 3), (0, 1))]
    ]


def _reshape(n: int, dtype: str) -> list[Application]:
    pairs: list[tuple[Shape, Shape]] = [
        ((n, 6), (6 * n,)),
        ((n, 6), (n, 2, 3)),
        ((4 * n,), (n, 4)),
        ((4 * n,), (4, n)),
        ((4, n), (n, 4)),
        ((4, 3 * n), (6, 2 * n)),
        ((n, 1, 3), (1, n, 3)),
        ((2, n, 4), (2 * n, 4)),
    ]
    return [
        Application(
            (a,), lambda x, b=b: x.reshape(b), result_shape=b, at=lambda s: lambda x: x.reshape(s), label=f"{a} {b}"
        )
        for a, b in pairs
    ]


def _optimization_barrier(n: int, dtype: str) -> list[Application]:
    return [Application(((n, 3),), lambda x: x), Application(((2, n),), lambda x: x)]


def _broadcast(n: int, dtype: str) -> list[Application]:
    rows: list[tuple[Shape, Shape, Shape]] = [
        ((n,), (3, n), (1,)),
        ((n, 1), (n, 4), (0, 1)),
        ((1, 3), (n, 3), (0, 1)),
        ((), (n, 3), ()),
        ((3, n), (n, 2, 3), (2, 0)),
    ]
    return [
        Application(
            (a,),
            ref.broadcast_in_dim(b, dims),
            {"broadcast_dimensions": dims},
            result_shape=b,
            at=lambda s, dims=dims: ref.broadcast_in_dim(s, dims),
            label=f"{a} {b}",
        )
        for a, b, dims in rows
    ]


def _reverse(n: int, dtype: str) -> list[Application]:
    return [
        Application(((n, 4),), lambda x, dims=dims: np.flip(x, dims), {"dimensions": dims}, label=str(dims))
        for dims in [(0,), (1,), (0, 1)]
    ]


LAYOUT = [
    OpCase("stablehlo.transpose", ALL, _transpose, plain),
    OpCase("stablehlo.optimization_barrier", ALL, _optimization_barrier, plain),
    OpCase("stablehlo.reshape", ALL, _reshape, plain),
    OpCase("stablehlo.broadcast_in_dim", ALL, _broadcast, plain),
    OpCase("stablehlo.reverse", ALL, _reverse, plain),
]


# ---- slicing --------------------------------------------------------------------------------------------------------


def _slice(n: int, dtype: str) -> list[Application]:
    rows: list[tuple[Shape, Shape, Shape]] = [
        ((min(1, n), 0), (n, 5), (1, 1)),
        ((0, 1), (n, 4), (1, 2)),
        ((0, 0), (n, 5), (3, 1)),
        ((n // 2, 2), (n - n // 4, 5), (1, 1)),
        ((0, 3), (n, 3), (1, 1)),
    ]

    def at(start: Shape, limit: Shape, strides: Shape) -> Callable[[Shape], Reference]:
        def local(shape: Shape) -> Reference:
            def apply(x: Array) -> Array:
                whole = [
                    a == 0 and c == 1 and s == x.shape[d] for d, (a, c, s) in enumerate(zip(start, strides, shape))
                ]
                ends = [x.shape[d] if w else b for d, (w, b) in enumerate(zip(whole, limit))]
                return ref.slice_by(start, ends, strides)(x)

            return apply

        return local

    return [
        Application(
            ((n, 5),),
            ref.slice_by(start, limit, strides),
            {"start_indices": start, "limit_indices": limit, "strides": strides},
            at=at(start, limit, strides),
            label=f"{start}:{limit}:{strides}",
        )
        for start, limit, strides in rows
    ]


def _pad(n: int, dtype: str) -> list[Application]:
    cut = 1 if n > 1 else 0
    rows: list[tuple[Shape, Shape, Shape]] = [
        ((1, 0), (2, 0), (0, 0)),
        ((0, 2), (0, 1), (0, 0)),
        ((0, 0), (0, 0), (2, 0)),
        ((-cut, 0), (cut, -1), (0, 1)),
        ((2, -1), (-cut, 0), (1, 0)),
        ((0, 0), (0, 0), (0, 0)),
    ]
    return [
        Application(
            ((n, 3), ()),
            partial(ref.pad, low=low, high=high, interior=interior),
            {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior},
            label=f"{low}{high}{interior}",
        )
        for low, high, interior in rows
    ]


def _concatenate(n: int, dtype: str) -> list[Application]:
    rows: list[tuple[tuple[Shape, ...], int]] = [
        (((n, 3), (2, 3)), 0),
        (((n, 3), (n, 2), (n, 1)), 1),
        (((n, 3), (n, 3)), 0),
        (((n, 3),), 0),
    ]
    return [
        Application(shapes, lambda *xs, dim=dim: np.concatenate(xs, dim), {"dimension": dim}, label=str(dim))
        for shapes, dim in rows
    ]


def _starts(dtype: str, *values: int) -> dict[int, Array]:
    return {i: np.asarray(v, dtype) for i, v in enumerate(values)}


def _dynamic_slice(n: int, dtype: str) -> list[Application]:
    rows = [((n - n // 2, 5), (2, 0), "int32"), ((n, 2), (0, 9), "int64"), ((n - n // 3, 4), (-3, -1), "int8")]
    return [
        Application(
            ((n, 5), (), ()),
            ref.dynamic_slice(sizes),
            {"slice_sizes": sizes},
            dtypes=(None, index, index),
            fixed={k + 1: v for k, v in _starts(index, *starts).items()},
            at=lambda shape: ref.dynamic_slice(shape),
            label=f"{sizes}{starts}",
        )
        for sizes, starts, index in rows
    ]


def _dynamic_update_slice(n: int, dtype: str) -> list[Application]:
    rows: list[tuple[Shape, Shape, str]] = [
        ((min(2, n), 5), (n // 2, 0), "int32"),
        ((n, 2), (0, 1), "int64"),
        ((n - n // 2, 3), (100, 200), "uint8"),
        ((min(1, n), 1), (-5, -5), "int8"),
    ]
    return [
        Application(
            ((n, 5), update, (), ()),
            ref.dynamic_update_slice,
            dtypes=(None, None, index, index),
            fixed={k + 2: v for k, v in _starts(index, *starts).items()},
            has_local=False,
            label=f"{update}{starts}",
        )
        for update, starts, index in rows
    ]


SLICING = [
    OpCase("stablehlo.slice", ALL, _slice, plain),
    OpCase("stablehlo.pad", ALL, _pad, plain),
    OpCase("stablehlo.concatenate", ALL, _concatenate, plain),
    OpCase("stablehlo.dynamic_slice", ALL, _dynamic_slice, plain),
    OpCase("stablehlo.dynamic_update_slice", ALL, _dynamic_update_slice, plain),
]


# ---- dot and reduce -------------------------------------------------------------------------------------------------

Pair = tuple[Shape, Shape]


def _dot_application(
    lhs: Shape, rhs: Shape, batching: Pair, contracting: Pair, wider: str | None = None
) -> Application:
    fields = {
        "lhs_batching_dimensions": batching[0],
        "rhs_batching_dimensions": batching[1],
        "lhs_contracting_dimensions": contracting[0],
        "rhs_contracting_dimensions": contracting[1],
    }
    reference = partial(ref.dot_general, batching=batching, contracting=contracting)
    free = [lhs[d] for d in batching[0]]
    free += [size for d, size in enumerate(lhs) if d not in batching[0] + contracting[0]]
    free += [size for d, size in enumerate(rhs) if d not in batching[1] + contracting[1]]
    return Application(
        (lhs, rhs),
        reference,
        {"dot_dimension_numbers": Struct("stablehlo.dot", {k: v for k, v in fields.items() if v})},
        result_shape=tuple(free) if wider else None,
        result_dtype=wider,
        label=f"{batching}{contracting}{wider}",
    )


def _dot(n: int, dtype: str) -> list[Application]:
    rows = [
        _dot_application((n, 4), (4, 5), ((), ()), ((1,), (0,))),
        _dot_application((3, n), (n, 5), ((), ()), ((1,), (0,))),
        _dot_application((n, 2, 3), (n, 3, 4), ((0,), (0,)), ((2,), (1,))),
        _dot_application((2, 3, n), (4, n, 2), ((0,), (2,)), ((2,), (1,))),
        _dot_application((3, 4), (n, 4), ((), ()), ((1,), (1,))),
        _dot_application((n, 2, 3), (3, n, 4), ((), ()), ((0, 2), (1, 0))),
        _dot_application((n,), (3,), ((), ()), ((), ())),
        _dot_application((n,), (n,), ((), ()), ((0,), (0,))),
    ]
    wider = {"bfloat16": "float32", "float16": "float32", "int8": "int32", "float32": "float64"}.get(dtype)
    if wider in ("float32", "float64"):
        rows.append(_dot_application((3, n), (n, 5), ((), ()), ((1,), (0,)), wider))
    return rows


def _reduce(reducer: str) -> Callable[[int, str], list[Application]]:
    def applications(n: int, dtype: str) -> list[Application]:
        rows: list[tuple[Shape, Shape]] = [((n, 4), (0,)), ((n, 4), (1,)), ((n, 3), (0, 1)), ((3, n, 2), (1,))]
        return [
            Application(
                (shape, ()),
                partial(ref.REDUCTIONS[reducer], dims=dims),
                {"dimensions": dims},
                region=f"stablehlo.{reducer}",
                label=f"{shape}{dims}",
            )
            for shape, dims in rows
        ]

    return applications


def _reduction(reducer: str, dtypes: tuple[str, ...], draw: Any, kind: str, **options: Any) -> OpCase:
    return OpCase("stablehlo.reduce", dtypes, _reduce(reducer), draw, kind, variant=reducer, combine=reducer, **options)


DOT_AND_REDUCE = [
    OpCase("stablehlo.dot_general", ALL, _dot, plain, "dot", combine="add"),
    _reduction("add", ALL, plain, "sum"),
    _reduction("multiply", ALL, near_one, "product"),
    _reduction("maximum", ALL, extreme, "exact", gradient_draw=plain),
    _reduction("minimum", ALL, extreme, "exact", gradient_draw=plain),
    _reduction("and", (*INTEGERS, "bool"), plain, "exact"),
    _reduction("or", (*INTEGERS, "bool"), plain, "exact"),
]


# ---- create ---------------------------------------------------------------------------------------------------------


def _iota(n: int, dtype: str) -> list[Application]:
    return [
        Application(
            (),
            partial(ref.iota, shape, dim, dtype_of(dtype)),
            {"iota_dimension": dim},
            result_shape=shape,
            result_dtype=dtype,
            has_local=False,
            label=f"{shape}{dim}",
        )
        for shape, dim in [((n, 3), 0), ((n, 3), 1), ((2, n), 1)]
    ]


def _constant(n: int, dtype: str) -> list[Application]:
    rng = np.random.default_rng(n)
    values = [plain((n, 3), dtype, rng), np.full((n, 3), 3, dtype_of(dtype)), plain((), dtype, rng)]
    return [
        Application((), lambda value=value: value, {"value": value}, has_local=False, label=f"{i}")
        for i, value in enumerate(values)
    ]


CREATE = [
    OpCase("stablehlo.iota", NUMBERS, _iota, plain),
    OpCase("stablehlo.constant", ALL, _constant, plain),
]

CASES: list[OpCase] = (
    UNARY
    + BINARY
    + LAYOUT
    + SLICING
    + DOT_AND_REDUCE
    + SEVERAL
    + WINDOWS
    + SORTS
    + RANDOM
    + CONVOLUTIONS
    + POOLING
    + INDEXING
    + CREATE
    + LINALG
    + COMPOSED
)

# Ops that have no row: they say how values are placed, not what they are. The programs of test_random_programs and
# every resharding in test_matrix run them.
PLACEMENT_DIALECTS = ("sdy.", "shardwise.")
# Ops that refer to functions of the module, which a trace does not have: test_composites and test_calls.
OF_FUNCTIONS = {"func.call", "stablehlo.composite"}
# Ops made of ops that have no kernel: test_convolution, test_scans.
# Ops of one device in a manual region, and tokens: test_manual_regions.
OF_DEVICES = {
    "shardwise.match_varying",
    "shardwise.vary",
    "stablehlo.after_all",
    "stablehlo.all_gather",
    "stablehlo.all_reduce",
    "stablehlo.all_to_all",
    "stablehlo.collective_broadcast",
    "stablehlo.collective_permute",
    "stablehlo.create_token",
    "stablehlo.cross-replica-sum",
    "stablehlo.partition_id",
    "stablehlo.reduce_scatter",
    "stablehlo.replica_id",
}
OF_OTHERS_WITHOUT_KERNEL = {"stablehlo.dynamic_conv", "chlo.scan"} | OF_DEVICES
# Ops whose regions are programs: test_control_flow.
CONTROL_FLOW = {"stablehlo.while", "stablehlo.case", "stablehlo.if"}


def registry_ops() -> list[_core.ir.OpDefinition]:
    """The ops that must have a row: those that run."""
    others = OF_FUNCTIONS | CONTROL_FLOW | OF_OTHERS_WITHOUT_KERNEL
    return [
        op
        for op in _core.ir.all_ops()
        if op.runnable and not op.name.startswith(PLACEMENT_DIALECTS) and op.name not in others
    ]
