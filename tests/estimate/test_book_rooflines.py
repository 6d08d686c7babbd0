# SPDX-License-Identifier: Apache-2.0
"""The scaling book's questions about one device: its peaks, and from which size on a product keeps them busy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.estimate.scaling_book import Shape, bf16, cases, check, compiled, hardware, largest

ONE = sw.Mesh({"X": 1})
INT8, FP8, F16 = np.dtype(np.int8), ml_dtypes.float8_e4m3fn, np.float16
# The book has 2.25e15 and 8e12 for a B200; the built-in file has the numbers of XLA's file.
BOOK_B200 = hardware("b200", peak_flops={"matrix": {"bf16": 2.25e15, "f16": 2.25e15}}, memory={"bandwidth": 8e12})
# "VMEM bandwidth is around 22 times that of HBM."
V5E_VMEM = hardware("tpu_v5e", memory={"bandwidth": 22 * 8.1e11})


def product(x: Any, w: Any) -> Any:
    return np.einsum("bd,df->bf", x, w)


def widened_product(x: Any, w: Any) -> Any:
    return np.einsum("bd,df->bf", x, w.astype(x.dtype))


NARROW, TALL = Shape((64, 4096), F16), Shape((512, 4096), F16)
WEIGHTS = Shape((4096, 8192), F16)
GIANT = Shape((2**17, 2**17), np.int8)
WIDE = 2**20  # "B is small beside D and F"
# The largest batch at which a product waits for memory: what it asks, machine, dtypes of activations and weights, D, F.
BATCHES = [
    ("part 1, matrix multiplication", "tpu_v5e", sw.bfloat16, sw.bfloat16, WIDE, WIDE, "240", None),
    ("part 1, question 1", "tpu_v5e", INT8, INT8, WIDE, WIDE, "240", None),
    ("part 1, question 2", "tpu_v5e", sw.bfloat16, INT8, WIDE, WIDE, "120", None),
    ("part 1, question 5", "h100_sxm", sw.bfloat16, sw.bfloat16, WIDE, WIDE, "295", None),
    ("GPUs, quiz 1, question 3, B200", BOOK_B200, F16, F16, WIDE, WIDE, "281", None),
    ("GPUs, quiz 1, question 3, H100 fp8", "h100_sxm", FP8, FP8, WIDE, WIDE, "295", None),
    # The book's rule, with numbers of two digits: (6.7e7 + 2e4 B) / 8.1e11 < 1.3e8 B / 3.94e14. With all: 262.7.
    ("part 2, question 4", "tpu_v5e", INT8, INT8, 4096, 16384, "271", "263"),
    ("part 2, question 4, out of VMEM", V5E_VMEM, INT8, INT8, 4096, 16384, "11", None),
]


@pytest.mark.parametrize(("machine", "activations", "weights", "d", "f", "book", "derived"), cases(BATCHES))
def test_smallest_batch_that_computes(
    machine: Any, activations: Any, weights: Any, d: int, f: int, book: str, derived: str | None
) -> None:
    function = product if activations == weights else widened_product

    def waits_for_memory(batch: int) -> bool:
        program = compiled(function, Shape((batch, d), activations), Shape((d, f), weights), mesh=ONE)
        (row,) = program.estimate(machine).rows
        return row.bound != "matrix"

    check(largest(1, 1000, waits_for_memory), book, derived)


# Seconds of an op on one device: what it asks, machine, function, operands, the book's seconds.
OPS = [
    ("GPUs, quiz 1, question 7", "h100_sxm", np.add, [Shape((2**30,), np.float32)] * 2, "3.84e-3", None),
    ("question 7, small", "h100_sxm", np.add, [Shape((65536,), np.float32)] * 2, "0.23e-6", None),
    ("GPUs, quiz 1, question 4", BOOK_B200, product, [NARROW, WEIGHTS], "8.6e-6", None),
    ("question 4, B = 512", BOOK_B200, product, [TALL, WEIGHTS], "15e-6", None),
    # The book takes 16 GiB for 16e9 bytes, and rounds down.
    ("part 2, question 6", "tpu_v5e", widened_product, [bf16(8, 2**17), GIANT], "19e-3", "21.2e-3"),
]  # fmt: skip


@pytest.mark.parametrize(("machine", "function", "operands", "book", "derived"), cases(OPS))
def test_time_of_an_op(machine: Any, function: Any, operands: list[Shape], book: str, derived: str | None) -> None:
    # `lower` is the roofline; the estimate also has the launch of a kernel.
    check(compiled(function, *operands, mesh=ONE).estimate(machine).lower, book, derived)


def test_products_of_a_large_matrix_and_a_few_rows() -> None:
    # Part 2, question 6: 2.7e11 operations in 1.3 ms; the book rounds 1.396 down.
    program = compiled(widened_product, bf16(8, 2**17), GIANT, mesh=ONE)
    (row,) = program.estimate("tpu_v5e").rows
    check(row.flops, "2.7e11")
    check(row.parts["matrix"], "1.3e-3", "1.396e-3")


def test_a_matrix_for_each_row_has_constant_intensity() -> None:
    # Part 1, question 4: int8[B, D] · int8[B, D, F] has 2 operations for each byte, whatever B is.
    for batch in (64, 4096):
        operands = Shape((batch, 1024), np.int8), Shape((batch, 1024, 1024), np.int8)
        program = compiled(lambda x, w: np.einsum("bd,bdf->bf", x, w), *operands, mesh=ONE)
        (row,) = program.estimate("tpu_v5e").rows
        check(row.flops / row.bytes, "2.00")
        assert row.bound == "memory"


# Peaks alone: what it asks, a number of the machine, the book's.
def pod(name: str) -> tuple[sw.hardware.Hardware, int]:
    machine = sw.hardware.load(name)
    return machine, machine.tiers[0].size or 0


def intensity(machine: Any, dtype: Any) -> float:
    loaded = sw.hardware.load(machine)
    return loaded.peak("matrix", dtype) / loaded.memory_bandwidth


def test_what_a_pod_has() -> None:
    # Part 2, question 2.
    v5e, chips = pod("tpu_v5e")
    check(chips * v5e.peak("matrix", "bf16"), "5.1e16")
    check(chips * v5e.memory_bytes, "4e12")
    v5p, chips = pod("tpu_v5p")
    check(chips * v5p.peak("matrix", "bf16"), "4e18")
    check(chips * v5p.memory_bytes, "860e12")


def test_intensity_of_machines() -> None:
    check(intensity("h100_sxm", "float16"), "295")  # GPUs, quiz 1, question 3
    check(intensity("h100_sxm", FP8), "590")
    check(intensity(BOOK_B200, "float16"), "281")
    # Part 2, question 3: weights on the host, behind PCIe. The book leaves the activations out, which a program has.
    check(intensity(hardware("tpu_v6e", memory={"bandwidth": 1.5e10, "capacity": 512e9}), "bfloat16"), "61e3")


def test_operations_of_the_vector_unit() -> None:
    check(sw.hardware.load("tpu_v5p").peak("vector", "float32"), "1.4e13")  # part 2, appendix A


def test_loading_the_weights_of_a_large_model() -> None:
    # Part 2, question 1: 200e9 parameters in bfloat16 on 32 chips of TPU v4, for one token.
    program = compiled(
        product, bf16(1, 400_000), bf16(400_000, 500_000), mesh=sw.Mesh({"X": 32}), in_shardings=(P(), P(None, "X"))
    )
    estimate = program.estimate("tpu_v4")
    assert estimate.rows[0].bound == "memory"
    check(estimate.compute, "10e-3")


def test_operations_of_a_product_of_many_dims() -> None:
    # Part 4, question 3: A[I,J,K,L] · B[I,J,M,N,O], summed over I and J, has 2·I·J·K·L·M·N·O.
    program = compiled(
        lambda a, b: np.einsum("ijkl,ijmno->klmno", a, b), bf16(2, 3, 5, 7), bf16(2, 3, 11, 13, 17), mesh=ONE
    )
    check(program.work().flops, "1021020")


def test_operations_where_an_axis_has_copies() -> None:
    # Part 4, question 2: A[B_X, D_Y] · W[D_Y, F] on X = 4, Y = 8, Z = 4. All of Z computes the same, so that a device
    # does 2BDF / XY, and the pod Z times 2BDF.
    shardings = (P("X", "Y"), P("Y"))
    program = compiled(
        product, bf16(1024, 4096), bf16(4096, 8192), mesh=sw.Mesh({"X": 4, "Y": 8, "Z": 4}), in_shardings=shardings,
        out_shardings=P("X"), objective="bytes",
    )  # fmt: skip
    check(program.work().flops, "2147483648")
    check(program.work().ratio, "4.0")


def test_sequence_at_which_attention_has_as_many_operations_as_its_projections() -> None:
    # Part 4, question 5: T = 2D.
    heads, width = 4, 128

    def projections(x: Any, weights: Any) -> Any:
        return [np.einsum("btd,dnh->btnh", x, w) for w in weights]

    def attention(q: Any, k: Any, v: Any) -> Any:
        return np.einsum("bnts,bsnh->btnh", np.einsum("btnh,bsnh->bnts", q, k), v)

    def has_fewer(t: int) -> bool:
        d = heads * width
        x, head = bf16(1, t, d), bf16(1, t, heads, width)
        projected = compiled(projections, x, [bf16(d, heads, width)] * 4, mesh=ONE)
        return compiled(attention, head, head, head, mesh=ONE).work().flops < projected.work().flops

    check(largest(2, 8192, has_fewer) + 1, "1024")


def test_intensity_of_attention_to_a_long_context() -> None:
    # Part 4, question 4: while generating, G operations for each byte, the queries that share a head of keys.
    queries, keys = bf16(4, 8, 8, 128), bf16(4, 8192, 8, 128)

    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = np.einsum("bkgh,bskh->bkgs", q, k)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        return np.einsum("bkgs,bskh->bkgh", scores / scores.sum(-1, keepdims=True), v)

    estimate = compiled(attention, queries, keys, keys, mesh=ONE).estimate("h100_sxm")
    (row,) = estimate.rows
    assert row.is_attention
    assert row.bound == "memory"
    check(row.products * estimate.hardware.peak("matrix", "bfloat16") / row.bytes, "8.0")
