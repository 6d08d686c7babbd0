# SPDX-License-Identifier: Apache-2.0
"""Random instances of every op, as text, whose sharding rules are compared with Shardy's.

One generator per op: sizes 0 and 1 included, attributes drawn. ``compare(oracle, count, seed)`` gives a row per op, for
benchmarks; tests run a few of each.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from shardwise import _core
from tests.conformance.shardy.client import OracleDiedError, ShardyOracle
from tests.conformance.shardy.mechanisms import RULES, call_of_instance, judge
from tests.conformance.shardy.rule_instances.calls import (
    after_all,
    all_gather,
    all_reduce,
    all_to_all,
    batch_norm,
    cholesky,
    custom_call,
    fft,
    get_size,
    in_groups,
    map_op,
    random_bits,
    random_numbers,
    reduce_scatter,
    scan,
    set_size,
    sort,
    top_k,
    transfer,
    triangular_solve,
)
from tests.conformance.shardy.rule_instances.contractions import (
    convolution,
    dot,
    dot_general,
    einsum,
    gather,
    ragged_dot,
    reduce,
    reduce_window,
    scatter,
    select_and_scatter,
    unary_einsum,
)
from tests.conformance.shardy.rule_instances.elementwise import (
    BROADCAST,
    CHLO_REAL,
    CHLO_SMOOTH,
    ROUNDED,
    SMOOTH,
    bitcast_convert,
    broadcast,
    broadcast_in_dim,
    broadcasting,
    clamp,
    compare,
    complex_abs,
    concatenate,
    constant,
    constant_like,
    convert,
    dynamic_slice,
    dynamic_update_slice,
    iota,
    make_complex,
    pad,
    part,
    reduce_precision,
    reshape,
    reverse,
    select,
    slice_op,
    transpose,
)
from tests.conformance.shardy.rule_instances.instance import (
    ALL_TYPES,
    ANY_FLOAT,
    FLOAT_TYPES,
    INTEGER_TYPES,
    LOGIC_TYPES,
    NUMBER_TYPES,
    TOKEN,
    Generator,
    Instance,
    elementwise,
    fixed,
    module_text,
    tensor,
)

CONSERVATIVE_RULES = "func.func(sdy-populate-op-sharding-rules{conservative-propagation=true})"

COMPARE_LESS = "comparison_direction = #chlo<comparison_direction LT>"
FOUR = tensor((4,))
I64_1, I64_2 = tensor((1,), "i64"), tensor((2,), "i64")

GENERATORS: dict[str, Generator] = {
    **{f"stablehlo.{n}": elementwise(f"stablehlo.{n}", 1, ANY_FLOAT) for n in SMOOTH.split()},
    **{f"stablehlo.{n}": elementwise(f"stablehlo.{n}", 1, FLOAT_TYPES) for n in ROUNDED.split()},
    **{f"chlo.{n}": elementwise(f"chlo.{n}", 1, ANY_FLOAT) for n in CHLO_SMOOTH.split()},
    **{f"chlo.{n}": elementwise(f"chlo.{n}", 1, FLOAT_TYPES) for n in CHLO_REAL.split()},
    **{f"chlo.{n}": elementwise(f"chlo.{n}", 1, FLOAT_TYPES, "i1") for n in ("is_inf", "is_neg_inf", "is_pos_inf")},
    **{f"chlo.{n}": elementwise(f"chlo.{n}", 2, FLOAT_TYPES) for n in ("next_after", "polygamma", "zeta")},
    **{f"chlo.broadcast_{n}": broadcasting(f"chlo.broadcast_{n}", NUMBER_TYPES) for n in BROADCAST.split()},
    **{f"chlo.broadcast_{n}": broadcasting(f"chlo.broadcast_{n}", LOGIC_TYPES) for n in ("and", "or", "xor")},
    **{f"chlo.broadcast_{n}": broadcasting(f"chlo.broadcast_{n}", FLOAT_TYPES) for n in ("polygamma", "zeta")},
    **{f"stablehlo.batch_norm_{n}": batch_norm(n) for n in ("inference", "training", "grad")},
    **{
        f"stablehlo.{n}": elementwise(f"stablehlo.{n}", 2, ALL_TYPES) for n in ["add", "multiply", "maximum", "minimum"]
    },
    **{
        f"stablehlo.{n}": elementwise(f"stablehlo.{n}", 2, NUMBER_TYPES)
        for n in ["subtract", "divide", "remainder", "power"]
    },
    **{f"stablehlo.{n}": elementwise(f"stablehlo.{n}", 2, LOGIC_TYPES) for n in ("and", "or", "xor")},
    **{
        f"stablehlo.{n}": elementwise(f"stablehlo.{n}", 2, INTEGER_TYPES)
        for n in ("shift_left", "shift_right_arithmetic", "shift_right_logical")
    },
    **{f"stablehlo.{n}": elementwise(f"stablehlo.{n}", 1, INTEGER_TYPES) for n in ("popcnt", "count_leading_zeros")},
    "stablehlo.abs": complex_abs,
    "stablehlo.negate": elementwise("stablehlo.negate", 1, NUMBER_TYPES),
    "stablehlo.sign": elementwise("stablehlo.sign", 1, (*ANY_FLOAT, "i32", "i4")),
    "stablehlo.not": elementwise("stablehlo.not", 1, LOGIC_TYPES),
    "stablehlo.is_finite": elementwise("stablehlo.is_finite", 1, FLOAT_TYPES, "i1"),
    "stablehlo.atan2": elementwise("stablehlo.atan2", 2, ANY_FLOAT),
    "stablehlo.compare": compare,
    "stablehlo.select": select,
    "stablehlo.clamp": clamp,
    "stablehlo.convert": convert,
    "stablehlo.bitcast_convert": bitcast_convert,
    "stablehlo.reduce_precision": reduce_precision,
    "stablehlo.complex": make_complex("stablehlo.complex"),
    "stablehlo.real": part("stablehlo.real"),
    "stablehlo.imag": part("stablehlo.imag"),
    "chlo._asin_acos_kernel": elementwise("chlo._asin_acos_kernel", 1, ("complex<f32>", "complex<f64>")),
    "chlo.mulhi": elementwise("chlo.mulhi", 2, INTEGER_TYPES),
    "chlo.constant": constant("chlo.constant"),
    "chlo.constant_like": constant_like,
    "chlo.broadcast_compare": broadcasting("chlo.broadcast_compare", NUMBER_TYPES, COMPARE_LESS, "i1"),
    "chlo.broadcast_complex": broadcasting("chlo.broadcast_complex", ("f32",), "", "complex<f32>"),
    "chlo.broadcast_select": broadcasting("chlo.broadcast_select", ALL_TYPES),
    "chlo.ragged_dot": ragged_dot,
    "chlo.scan": scan,
    "chlo.top_k": top_k,
    "stablehlo.constant": constant("stablehlo.constant"),
    "stablehlo.iota": iota,
    "stablehlo.transpose": transpose,
    "stablehlo.reshape": reshape,
    "stablehlo.broadcast_in_dim": broadcast_in_dim,
    "stablehlo.broadcast": broadcast,
    "stablehlo.reverse": reverse,
    "stablehlo.slice": slice_op,
    "stablehlo.pad": pad,
    "stablehlo.concatenate": concatenate,
    "stablehlo.dynamic_slice": dynamic_slice,
    "stablehlo.dynamic_update_slice": dynamic_update_slice,
    "stablehlo.dot_general": dot_general,
    "stablehlo.dot": dot,
    "stablehlo.einsum": einsum,
    "stablehlo.unary_einsum": unary_einsum,
    "stablehlo.reduce": reduce,
    "stablehlo.reduce_window": reduce_window,
    "stablehlo.select_and_scatter": select_and_scatter,
    "stablehlo.convolution": convolution,
    "stablehlo.gather": gather,
    "stablehlo.scatter": scatter,
    "stablehlo.sort": sort,
    "stablehlo.cholesky": cholesky,
    "stablehlo.triangular_solve": triangular_solve,
    "stablehlo.fft": fft,
    "stablehlo.all_reduce": all_reduce,
    "stablehlo.all_gather": all_gather,
    "stablehlo.reduce_scatter": reduce_scatter,
    "stablehlo.all_to_all": all_to_all,
    "stablehlo.collective_permute": in_groups(
        "stablehlo.collective_permute", "source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>"
    ),
    "stablehlo.collective_broadcast": in_groups("stablehlo.collective_broadcast"),
    "stablehlo.cross-replica-sum": in_groups("stablehlo.cross-replica-sum"),
    "stablehlo.partition_id": fixed("stablehlo.partition_id", (), (tensor((), "ui32"),)),
    "stablehlo.replica_id": fixed("stablehlo.replica_id", (), (tensor((), "ui32"),)),
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
    "stablehlo.rng": random_numbers,
    "stablehlo.rng_bit_generator": random_bits,
    "stablehlo.custom_call": custom_call,
    "stablehlo.map": map_op,
    "stablehlo.composite": fixed(
        "stablehlo.composite",
        (FOUR,),
        (FOUR,),
        'composite_attributes = {n = 1 : i32}, decomposition = @decomposition, name = "my.op", version = 1 : i32',
    ),
    "stablehlo.get_dimension_size": get_size,
    "stablehlo.set_dimension_size": set_size,
    "stablehlo.dynamic_broadcast_in_dim": fixed(
        "stablehlo.dynamic_broadcast_in_dim", (FOUR, I64_2), (tensor((3, 4)),), "broadcast_dimensions = array<i64: 1>"
    ),
    "stablehlo.dynamic_conv": fixed(
        "stablehlo.dynamic_conv",
        (tensor((2, 4, 3)), tensor((2, 3, 5)), tensor((1, 2), "i64")),
        (tensor((2, 3, 5)),),
        "batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, "
        "feature_group_count = 1 : i64",
    ),
    "stablehlo.dynamic_gather": fixed(
        "stablehlo.dynamic_gather",
        (tensor((4, 8)), tensor((3, 1), "i32"), I64_2),
        (tensor((3, 8)),),
        "dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
        "index_vector_dim = 1>",
    ),
    "stablehlo.dynamic_iota": fixed("stablehlo.dynamic_iota", (I64_1,), (FOUR,), "iota_dimension = 0 : i64"),
    "stablehlo.dynamic_pad": fixed("stablehlo.dynamic_pad", (FOUR, tensor(()), I64_1, I64_1, I64_1), (tensor((6,)),)),
    "stablehlo.dynamic_reshape": fixed("stablehlo.dynamic_reshape", (FOUR, I64_2), (tensor((2, 2)),)),
    "stablehlo.real_dynamic_slice": fixed("stablehlo.real_dynamic_slice", (FOUR, I64_1, I64_1, I64_1), (tensor((2,)),)),
    "stablehlo.torch_index_select": fixed(
        "stablehlo.torch_index_select",
        (tensor((4, 8)), tensor((5,), "i32")),
        (tensor((5, 8)),),
        "dim = 0 : i64, batch_dims = 0 : i64",
    ),
}


# ---- the comparison ------------------------------------------------------------------------------------------------


@dataclass
class Row:
    op: str
    instances: int = 0
    equal: int = 0
    by_mechanism: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    died: int = 0


def instances_of(op: str, count: int, seed: int) -> list[Instance]:
    rng = random.Random(f"{op} {seed}")
    return [GENERATORS[op](rng) for _ in range(count)]


def compare_op(oracle: ShardyOracle, op: str, count: int, seed: int, conservative: bool = False) -> Row:
    """Halves a module that ends Shardy's process until the instance that does is alone."""
    row = Row(op)
    pending: list[list[Instance]] = [instances_of(op, count, seed)]
    while pending:
        batch = pending.pop()
        try:
            passes = CONSERVATIVE_RULES if conservative else RULES
            theirs = oracle.run(module_text(batch), passes)["rules"]
        except OracleDiedError:
            if len(batch) == 1:
                row.died += 1
            else:
                pending += [batch[: len(batch) // 2], batch[len(batch) // 2 :]]
            continue
        ours = _core.ir.parse(module_text(batch)).sharding_rules(conservative)
        for instance, (_, our), their in zip(batch, ours, theirs, strict=True):
            row.instances += 1
            verdict = judge(call_of_instance(instance), our, their)
            if verdict is None:
                row.equal += 1
            elif verdict:
                row.by_mechanism[verdict] = row.by_mechanism.get(verdict, 0) + 1
            else:
                row.wrong.append(f"{instance.text(0, 0)}\n    {our}\n    Shardy {their}")
    return row


def compare(oracle: ShardyOracle, count: int, seed: int, conservative: bool = False) -> Iterator[Row]:
    for op in GENERATORS:
        yield compare_op(oracle, op, count, seed, conservative)
