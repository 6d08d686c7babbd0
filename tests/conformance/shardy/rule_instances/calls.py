# SPDX-License-Identifier: Apache-2.0
"""Generators of sorts, linear algebra, collectives, effects and calls."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.conformance.shardy.rule_instances.instance import (
    TOKEN,
    Generator,
    Instance,
    Rng,
    Shape,
    combiner,
    comparator,
    dim,
    dims,
    flag,
    ints,
    tensor,
)

# ---- sort, linear algebra, normalisation ----------------------------------------------------------------------------


def sort(rng: Rng) -> Instance:
    shape = dims(rng, 1)
    dtypes = [rng.choice(["f32", "i32", "bf16", "f8E5M2"]) for _ in range(rng.randint(1, 3))]
    types = tuple(tensor(shape, dtype) for dtype in dtypes)
    dimension = rng.randrange(-len(shape), len(shape))
    attributes = f"dimension = {dimension} : i64, is_stable = {flag(rng)}"
    return Instance("stablehlo.sort", types, types, attributes, (comparator(dtypes),))


def top_k(rng: Rng) -> Instance:
    shape = dims(rng, 1)
    k = rng.randint(0, shape[-1])
    results = tensor((*shape[:-1], k)), tensor((*shape[:-1], k), "i32")
    return Instance("chlo.top_k", (tensor(shape),), results, f"k = {k} : i64")


def matrices(rng: Rng) -> Shape:
    n = dim(rng)
    return (*dims(rng, 0, 2), n, n)


def cholesky(rng: Rng) -> Instance:
    t = tensor(matrices(rng), rng.choice(["f32", "complex<f64>"]))
    return Instance("stablehlo.cholesky", (t,), (t,), f"lower = {flag(rng)}" if rng.random() < 0.7 else "")


def triangular_solve(rng: Rng) -> Instance:
    a = matrices(rng)
    left = rng.random() < 0.5
    b = (*a[:-2], a[-1], dim(rng)) if left else (*a[:-2], dim(rng), a[-1])
    transpose_a = rng.choice(["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
    attributes = f"left_side = {str(left).lower()}, lower = {flag(rng)}, unit_diagonal = {flag(rng)}, "
    attributes += f"transpose_a = #stablehlo<transpose {transpose_a}>"
    return Instance("stablehlo.triangular_solve", (tensor(a), tensor(b)), (tensor(b),), attributes)


def fft(rng: Rng) -> Instance:
    kind = rng.choice(["FFT", "IFFT", "RFFT", "IRFFT"])
    length = dims(rng, 1, 3, smallest=2)
    batch = dims(rng, 0, 2)
    whole = batch + length
    half = (*whole[:-1], length[-1] // 2 + 1)
    operand = tensor(whole) if kind == "RFFT" else tensor(half if kind == "IRFFT" else whole, "complex<f32>")
    result = tensor(whole) if kind == "IRFFT" else tensor(half if kind == "RFFT" else whole, "complex<f32>")
    attributes = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {ints(length)}"
    return Instance("stablehlo.fft", (operand,), (result,), attributes)


def batch_norm(op: str) -> Generator:
    def draw(rng: Rng) -> Instance:
        shape = dims(rng, 1)
        feature = rng.randrange(len(shape))
        data, row = tensor(shape), tensor((shape[feature],))
        attributes = f"epsilon = 1.000000e-01 : f32, feature_index = {feature} : i64"
        if op == "inference":
            return Instance(f"stablehlo.batch_norm_{op}", (data, row, row, row, row), (data,), attributes)
        operands = (data, row, row) if op == "training" else (data, row, row, row, data)
        return Instance(f"stablehlo.batch_norm_{op}", operands, (data, row, row), attributes)

    return draw


# ---- collectives ----------------------------------------------------------------------------------------------------

GROUPS = "replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"


def in_groups(op: str, attributes: str = GROUPS) -> Generator:
    def draw(rng: Rng) -> Instance:
        t = tensor(dims(rng))
        return Instance(op, (t,), (t,), attributes)

    return draw


def all_reduce(rng: Rng) -> Instance:
    shape = dims(rng)
    types = (tensor(shape),) * rng.randint(1, 3)
    if rng.random() < 0.2:
        types = tensor(shape), tensor([dim(rng) for _ in shape])
    return Instance("stablehlo.all_reduce", types, types, GROUPS, (combiner(),))


def all_gather(rng: Rng) -> Instance:
    shape = dims(rng, 1, smallest=1)
    d = rng.randrange(len(shape))
    result = tuple(2 * size if i == d else size for i, size in enumerate(shape))
    count = rng.randint(1, 2)
    attributes = f"all_gather_dim = {d} : i64, {GROUPS}"
    if rng.random() < 0.5:
        attributes += ", channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids"
    return Instance("stablehlo.all_gather", (tensor(shape),) * count, (tensor(result),) * count, attributes)


def reduce_scatter(rng: Rng) -> Instance:
    shape = dims(rng, 1, smallest=1)
    d = rng.randrange(len(shape))
    whole = tuple(2 * size if i == d else size for i, size in enumerate(shape))
    attributes = f"scatter_dimension = {d} : i64, {GROUPS}"
    return Instance("stablehlo.reduce_scatter", (tensor(whole),), (tensor(shape),), attributes, (combiner(),))


def all_to_all(rng: Rng) -> Instance:
    shape = list(dims(rng, 1, 4, smallest=1))
    split, concat = rng.randrange(len(shape)), rng.randrange(len(shape))
    result = list(shape)
    shape[split] *= 2
    result = list(shape)
    result[split] //= 2
    result[concat] *= 2
    attributes = f"split_dimension = {split} : i64, concat_dimension = {concat} : i64, split_count = 2 : i64, {GROUPS}"
    count = rng.randint(1, 2)
    return Instance("stablehlo.all_to_all", (tensor(shape),) * count, (tensor(result),) * count, attributes)


# ---- effects, random numbers, calls ---------------------------------------------------------------------------------


def after_all(rng: Rng) -> Instance:
    return Instance("stablehlo.after_all", (TOKEN,) * rng.randint(0, 3), (TOKEN,))


def transfer(op: str, sends: bool, attributes: str) -> Generator:
    def draw(rng: Rng) -> Instance:
        values = tuple(tensor(dims(rng)) for _ in range(rng.randint(1, 2)))
        layout = ""
        if op == "stablehlo.infeed":
            ranks = [len(re.findall("x", value)) for value in values]
            layout = ", layout = [" + ", ".join(str(list(range(rank))) for rank in ranks) + "]"
        operands, results = ((*values, TOKEN), (TOKEN,)) if sends else ((TOKEN,), (*values, TOKEN))
        return Instance(op, operands, results, attributes + layout)

    return draw


def random_bits(rng: Rng) -> Instance:
    algorithm = rng.choice(["DEFAULT", "THREE_FRY", "PHILOX"])
    state = tensor((3,) if algorithm == "PHILOX" else (2,), "ui64")
    output = tensor(dims(rng), rng.choice(["ui32", "ui64", "f32"]))
    attributes = f"rng_algorithm = #stablehlo<rng_algorithm {algorithm}>"
    return Instance("stablehlo.rng_bit_generator", (state,), (state, output), attributes)


def random_numbers(rng: Rng) -> Instance:
    shape = dims(rng)
    operands = tensor(()), tensor(()), tensor((len(shape),), "i64")
    attributes = "rng_distribution = #stablehlo<rng_distribution UNIFORM>"
    return Instance("stablehlo.rng", operands, (tensor(shape),), attributes)


POINTWISE_TARGETS = (
    "annotate_device_placement", "InspectSharding", "LayoutConstraint", "mhlo.erf", "MoveToDevice", "MoveToHost",
    "X64SplitHigh", "X64SplitLow", "xla.megascale.provide_metadata", "_SPMDInternalOp_MultiPad",
    "_SPMDInternalOp_RotateRight", "_SPMDInternalOp_MultiRotate", "_SPMDInternalOp_MultiSlice", "_SPMDInternalOp_Wrap",
)  # fmt: skip
MIXING_TARGETS = (
    "Cholesky", "CompactWyHelper", "InvertDiagBlocksLowerTriangular", "InvertDiagBlocksUpperTriangular",
)  # fmt: skip
APPROXIMATE_TARGETS = ("ApproxTopK", "PartialReduce")
SILENT_TARGETS = ("sdy_testonly", "tpu_custom_call", "xla_python_cpu_callback", "xla.debug.Log", "unheard_of")


def custom_call(rng: Rng) -> Instance:
    kind = rng.choice(["pointwise", "mixing", "Eigh", "Qr", "householder", "topk", "approx", "combine", "silent"])
    if kind in ("pointwise", "mixing"):
        t = tensor(dims(rng) if kind == "pointwise" else matrices(rng))
        target, operands, results = (
            rng.choice(POINTWISE_TARGETS if kind == "pointwise" else MIXING_TARGETS),
            (t,),
            (t,),
        )
    elif kind in ("Eigh", "Qr"):
        m = matrices(rng) if kind == "Eigh" else (*dims(rng, 0, 2), dim(rng, 1), dim(rng, 1))
        rows = m[-1] if kind == "Eigh" else min(m[-2:])
        target = kind if kind == "Eigh" else rng.choice(["Qr", "QrDecompositionBlock"])
        operands, results = (tensor(m),), (tensor(m), tensor((*m[:-2], rows)))
    elif kind == "householder":
        m = (*dims(rng, 0, 2), dim(rng, 1), dim(rng, 1))
        target = "ProductOfElementaryHouseholderReflectors"
        operands, results = (tensor(m), tensor((*m[:-2], min(m[-2:])))), (tensor(m),)
    elif kind == "topk":
        shape = dims(rng, 1)
        few = (*shape[:-1], rng.randint(0, shape[-1]))
        target, operands, results = "mhlo.topk", (tensor(shape),), (tensor(few), tensor(few, "i32"))
    elif kind == "approx":
        shape = dims(rng, 1, 3, smallest=2)
        few = (*shape[:-1], rng.randint(1, shape[-1]))
        target = rng.choice(APPROXIMATE_TARGETS)
        operands = tensor(shape), tensor(shape, "i32"), tensor(()), tensor((), "i32")
        results = tensor(few), tensor(few, "i32")
    elif kind == "combine":
        shape = dims(rng)
        target, operands, results = "X64Combine", (tensor(shape, "ui32"),) * 2, (tensor(shape, "ui64"),)
    else:
        target = rng.choice(SILENT_TARGETS)
        operands = tuple(tensor(dims(rng)) for _ in range(rng.randint(0, 3)))
        results = tuple(tensor(dims(rng)) for _ in range(rng.randint(0, 3)))
    attributes = f'call_target_name = "{target}"'
    attributes += rng.choice(
        ["", ", has_side_effect = true", ", api_version = 2 : i32, backend_config = \"x\"",
         ", api_version = 4 : i32, backend_config = {uplo = 76 : ui8, flag = true, scale = 1.500000e+00 : f32}"]
    )  # fmt: skip
    if rng.random() < 0.3:

        def layouts(types: Sequence[str]) -> str:
            ranks = [kind_text.count("x") for kind_text in types]
            one = [
                f"dense<{list(range(rank))[::-1] if rank else ''}> : tensor<{rank}xindex>".replace("[0]", "0")
                for rank in ranks
            ]
            return "[" + ", ".join(one) + "]"

        attributes += f", operand_layouts = {layouts(operands)}, result_layouts = {layouts(results)}"
    return Instance("stablehlo.custom_call", operands, results, attributes)


def map_op(rng: Rng) -> Instance:
    t = tensor(dims(rng))
    ndim = t.count("x")
    attributes = f"dimensions = {ints(range(ndim))}"
    return Instance("stablehlo.map", (t, t), (t,), attributes, (combiner("multiply"),))


def scan(rng: Rng) -> Instance:
    shape = dims(rng, 1, 3)
    row = tensor(shape[1:])
    body = f'{{\n^bb0(%x: {row}, %c: {row}):\n  "stablehlo.return"(%x, %c) : ({row}, {row}) -> ()\n}}'
    attributes = "dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>"
    return Instance("chlo.scan", (tensor(shape), row), (tensor(shape), row), attributes, (body,))


def set_size(rng: Rng) -> Instance:
    t = tensor(dims(rng, 1))
    return Instance("stablehlo.set_dimension_size", (t, tensor((), "i32")), (t,), "dimension = 0 : i64")


def get_size(rng: Rng) -> Instance:
    return Instance(
        "stablehlo.get_dimension_size", (tensor(dims(rng, 1)),), (tensor((), "i32"),), "dimension = 0 : i64"
    )
