# SPDX-License-Identifier: Apache-2.0
"""Generators of what the catalogue draws for one device only: collectives, transfers to a host, custom calls."""

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
    dim,
    dims,
    fixed,
    tensor,
)

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


# ---- effects and calls ---------------------------------------------------------------------------------


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


def matrices(rng: Rng) -> Shape:
    n = dim(rng)
    return (*dims(rng, 0, 2), n, n)


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


# ---- the table ------------------------------------------------------------------------------------------------------

FOUR = tensor((4,))
GENERATORS: dict[str, Generator] = {
    "stablehlo.all_reduce": all_reduce,
    "stablehlo.all_gather": all_gather,
    "stablehlo.reduce_scatter": reduce_scatter,
    "stablehlo.all_to_all": all_to_all,
    "stablehlo.collective_permute": in_groups(
        "stablehlo.collective_permute", "source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>"
    ),
    "stablehlo.collective_broadcast": in_groups("stablehlo.collective_broadcast"),
    "stablehlo.cross-replica-sum": in_groups("stablehlo.cross-replica-sum"),
    "stablehlo.after_all": after_all,
    "stablehlo.create_token": fixed("stablehlo.create_token", (), (TOKEN,)),
    "stablehlo.infeed": transfer("stablehlo.infeed", False, 'infeed_config = "x"'),
    "stablehlo.outfeed": transfer("stablehlo.outfeed", True, 'outfeed_config = "x"'),
    "stablehlo.send": transfer(
        "stablehlo.send",
        True,
        "channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>, is_host_transfer = true",
    ),
    "stablehlo.recv": transfer(
        "stablehlo.recv",
        False,
        "channel_handle = #stablehlo.channel_handle<handle = 5, type = 3>, is_host_transfer = true",
    ),
    "stablehlo.custom_call": custom_call,
    "stablehlo.composite": fixed(
        "stablehlo.composite",
        (FOUR,),
        (FOUR,),
        'composite_attributes = {n = 1 : i32}, decomposition = @decomposition, name = "my.op", version = 1 : i32',
    ),
}
