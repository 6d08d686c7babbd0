# SPDX-License-Identifier: Apache-2.0
"""A sample of the random instances of ``python -m tests.conformance.stablehlo.ops``, and what the tool relies on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from shardwise import _core
from shardwise.dtypes import as_wide, is_float, numpy_dtype
from tests.conformance.stablehlo.ops import kept as kept_instances
from tests.conformance.stablehlo.ops.check import check
from tests.conformance.stablehlo.ops.comparing import same_bits
from tests.conformance.stablehlo.ops.drawing import TABLE, drawn
from tests.conformance.stablehlo.ops.kept import kept
from tests.conformance.stablehlo.ops.mechanisms import MECHANISMS
from tests.conformance.stablehlo.ops.partitioned import partitioned_text
from tests.conformance.stablehlo.ops.xla import Xla, mixed
from tests.op.cases import CASES
from tests.op.dtype_values import ALL_DTYPES, COMPLEX, NARROW_FLOATS, NARROW_INTEGERS
from tests.op.runnable_dtypes import runnable_dtypes

SIX_BITS = ("float6_e2m3fn", "float6_e3m2fn")
BELOW_16_BITS = tuple(NARROW_FLOATS)
REAL = tuple(d for d in ALL_DTYPES if d not in COMPLEX)
FLOATS = tuple(d for d in ALL_DTYPES if is_float(numpy_dtype(d)))
OPEN_ZERO = "its sums begin with a zero, which the dtype lacks"
NEIGHBOURS = (
    "XLA computes float4 in float32, which has other neighbours, and makes NaN of the zero of fnuz dtypes; "
    "tests/op/test_narrow_next_after.py tries every pair of numbers"
)
# The dtypes that run and are not compared with XLA, and why.
NOT_DRAWN = {
    **dict.fromkeys(
        (
            "stablehlo.convolution", "stablehlo.dot", "stablehlo.dot_general", "stablehlo.einsum", "chlo.ragged_dot",
            "stablehlo.select_and_scatter",
        ),
        (OPEN_ZERO, ("float8_e8m0fnu",)),
    ),
    "stablehlo.unary_einsum": (OPEN_ZERO + "; XLA has no product with a constant bool", ("bool", "float8_e8m0fnu")),
    "stablehlo.bitcast_convert": ("XLA has no float6; its bitcasts have no complex numbers", SIX_BITS + tuple(COMPLEX)),
    "chlo.bessel_i1e": ("XLA has it from 16 bits", BELOW_16_BITS),
    "chlo.next_after": (NEIGHBOURS, tuple(d for d in BELOW_16_BITS if d not in SIX_BITS)),
    "chlo.broadcast_next_after": (NEIGHBOURS, tuple(d for d in BELOW_16_BITS if d not in SIX_BITS)),
    "chlo.constant_like": ("the text has no complex value of the attribute", tuple(COMPLEX)),
    "stablehlo.rng": ("drawn in the dtypes of JAX's calls", tuple(set(REAL) - set(TABLE["stablehlo.rng"].dtypes))),
    "stablehlo.rng_bit_generator": ("drawn in the integers of JAX's calls", (*FLOATS, *NARROW_INTEGERS)),
    **dict.fromkeys(
        ("stablehlo.cholesky", "stablehlo.triangular_solve"),
        ("XLA rounds each step, so that few digits are right", BELOW_16_BITS),
    ),
    "stablehlo.map": ("XLA rounds once for two ops", BELOW_16_BITS),
}  # fmt: skip
SAMPLE = 7  # instances of each op: 1,000 in all


@pytest.fixture(scope="module")
def xla() -> Iterator[Xla]:
    process = Xla()
    yield process
    process.close()


def test_random_instances_equal_xla_whole_and_partitioned(xla: Xla) -> None:
    instances = [drawn(op, seed) for op in sorted(TABLE) for seed in range(SAMPLE)]
    failures = [f"{o.instance.name}: {text}" for o in check(instances, xla) for text in o.failures]
    assert len(instances) >= 1000
    assert not failures, "\n\n".join(failures)


def test_instances_that_found_errors(xla: Xla) -> None:
    """NaN of bfloat16 keep their bits; a sum of float8_e8m0fnu has no zero that another device could add; the sum of
    one -0 is -0; an einsum of bytes adds in the dtype of its result."""
    instances = kept()
    assert {"stablehlo.select", "stablehlo.sort", "stablehlo.scatter", "stablehlo.all_reduce", "stablehlo.einsum"} <= {
        x.op for x in instances
    }
    assert {o.instance.name: o.failures for o in check(instances, xla)} == {x.name: [] for x in instances}


def test_only_its_own_mechanism_explains_an_example(xla: Xla) -> None:
    outcomes = check([mechanism.example() for mechanism in MECHANISMS], xla)
    found = {mechanism.name: (o.mechanisms, o.failures) for mechanism, o in zip(MECHANISMS, outcomes)}
    assert found == {mechanism.name: ({mechanism.name}, []) for mechanism in MECHANISMS}
    assert len(MECHANISMS) <= 25


def test_every_op_that_runs_is_drawn_in_every_dtype() -> None:
    ops = {op.name for op in _core.ir.all_ops() if op.runnable and op.name.startswith(("stablehlo.", "chlo."))}
    assert {row.partition("@")[0] for row in TABLE} == ops
    tried = {op: set(runnable_dtypes(op)) - set(TABLE[op].dtypes) for op in sorted(ops & {case.name for case in CASES})}
    assert {op: left for op, left in tried.items() if left} == {op: set(left) for op, (_, left) in NOT_DRAWN.items()}


@pytest.mark.parametrize(("op", "share"), [("dot_general", 0.3), ("convolution", 0.2), ("dynamic_conv", 0.2)])
def test_operands_and_results_of_contractions_have_dtypes_of_their_own(op: str, share: float) -> None:
    instances = [drawn(f"stablehlo.{op}", seed) for seed in range(150)]
    assert sum(mixed(x) for x in instances) >= share * len(instances)
    operands = {tuple(x.dtype.name for x in instance.arguments) for instance in instances}
    assert (len({pair for pair in operands if pair[0] != pair[1]}) > 40) == (op == "dot_general")


# For each op: patterns that the texts of 150 instances must match, and the least number of different properties.
ATTRIBUTES: dict[str, tuple[int, tuple[str, ...]]] = {
    "stablehlo.convolution": (140, (
        r"batch_group_count = 2", r"feature_group_count = [23]", r"lhs_dilation = array<i64: [^>]*2",
        r"rhs_dilation = array<i64: [^>]*2", r"window_strides = array<i64: [^>]*3", r"window_reversal = [^>]*true",
        r"padding = dense<\[[^>]*-1", r"conv<\[[b0f12, ]*2[b0f12, ]*\]x", r"tensor<(\d+x)*0x",
    )),
    "stablehlo.dot_general": (60, (r"lhs_batching_dimensions = \[\d", r"lhs_contracting_dimensions = \[\d, ", r"<0x")),
    "stablehlo.gather": (120, (
        r"operand_batching_dims = \[\d", r"collapsed_slice_dims = \[\d", r"start_index_map = \[\]",
        r"start_index_map = \[\d, ", r"index_vector_dim = 2", r"indices_are_sorted", r"slice_sizes = array<i64: [^>]*0",
    )),
    "stablehlo.scatter": (120, (
        r"input_batching_dims = \[\d", r"inserted_window_dims = \[\d", r"scatter_dims_to_operand_dims = \[\]",
        r"stablehlo.add", r"stablehlo.minimum", r"stablehlo.maximum", r"stablehlo.return\\?\"\(%v\)",
    )),
    "stablehlo.sort": (100, (
        r"stablehlo.real", r"compare LT", r"compare GT", r"compare LE", r"compare GE", r"stablehlo.not", r"%u3:",
        r"%f0", r"TOTALORDER",
    )),
    "stablehlo.reduce_window": (120, (
        r"base_dilations = array<i64: [^>]*2", r"window_dilations = array<i64: [^>]*2", r"padding = dense<\[[^>]*-1",
        r"stablehlo.add", r"stablehlo.multiply", r"stablehlo.maximum", r"stablehlo.minimum",
    )),
    "stablehlo.pad": (120, (r"low = array<i64: [^>]*-", r"high = array<i64: [^>]*-", r"interior_padding = [^>]*[12]")),
    "stablehlo.fft": (50, (r"type FFT", r"type IFFT", r"type RFFT", r"type IRFFT", r"37")),
    "chlo.ragged_dot": (5, (
        r"rhs_group_dimensions = \[0\]", r"lhs_ragged_dimensions = \[0\]", r"lhs_ragged_dimensions = \[1\]",
        r"lhs_ragged_dimensions = \[2\]", r"lhs_batching_dimensions = \[0\]",
    )),
    "stablehlo.custom_call@syevd": (30, (r"mode = 86", r"mode = 78", r"uplo = 76", r"uplo = 85", r"cheevd", r"ssyevd")),
    "stablehlo.custom_call@trsm": (80, (r"side = 76", r"side = 82", r"trans_x = 67", r"diag = 85", r"ztrsm", r"<0x")),
    "stablehlo.custom_call@gesdd": (30, (r"mode = 65", r"mode = 83", r"mode = 78", r"<5x\d", r"<7x\d", r"<2x3x\d")),
}  # fmt: skip


@pytest.mark.parametrize("op", ATTRIBUTES)
def test_attributes_are_diverse(op: str) -> None:
    instances = [drawn(op, seed) for seed in range(150)]
    different, patterns = ATTRIBUTES[op]
    texts = [x.text() for x in instances]
    missing = [pattern for pattern in patterns if not any(re.search(pattern, text) for text in texts)]
    assert not missing
    # Properties and regions, without the types of the operands.
    assert len({x.body.rpartition(" : (")[0] for x in instances}) >= different


@pytest.mark.parametrize("op", ["dot_general", "convolution", "einsum", "dot"])
def test_contractions_have_corners(op: str) -> None:
    numbers = [drawn(f"stablehlo.{op}", seed) for seed in range(200)]
    floats = [as_wide(x) for instance in numbers for x in instance.arguments if is_float(x.dtype)]
    assert sum(not np.isfinite(x).all() for x in floats) >= 3


@pytest.mark.parametrize("op", ["add", "gather", "reduce_window", "convolution"])
def test_a_seed_always_draws_the_same_instance(op: str) -> None:
    first, second = (drawn(f"stablehlo.{op}", 5) for _ in range(2))
    assert first.text() == second.text()
    assert all(a.tobytes() == b.tobytes() for a, b in zip(first.arguments, second.arguments))


def test_kept_instances_are_those_that_were_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_instances, "FOLDER", tmp_path)
    instances = [drawn(op, 5) for op in ("chlo.ragged_dot", "stablehlo.composite", "stablehlo.sort")]
    for instance in instances:
        kept_instances.keep(instance)
    for instance, again in zip(instances, kept_instances.kept(), strict=True):
        assert again.text() == instance.text()
        assert again.partitioned == partitioned_text(instance)
        assert again.for_xla == instance.for_xla
        assert all(same_bits(a, b).all() for a, b in zip(again.arguments, instance.arguments))


def test_a_wrong_result_is_found(xla: Xla) -> None:
    """The instance that XLA gets has another body."""
    instance = drawn("stablehlo.add", 6)
    wrong = instance.with_dtypes({})
    object.__setattr__(wrong, "for_xla", instance.body.replace("stablehlo.add", "stablehlo.multiply"))
    object.__setattr__(
        wrong, "arguments", tuple(np.full(x.shape, 3, numpy_dtype(instance.dtype)) for x in wrong.arguments)
    )
    (outcome,) = check([wrong], xla)
    assert outcome.failures
    assert "XLA gives" in outcome.failures[0]
