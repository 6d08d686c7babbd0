# SPDX-License-Identifier: Apache-2.0
"""The scaling book's questions about links: gathers, reductions, exchanges, and products that wait for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.estimate.scaling_book import Shape, bf16, cases, check, compiled, hardware, largest, waits_for_links

# The pod's dims close to rings only at a length of 16; the book first computes as if an axis of 4 did, too.
CLOSED_V5E = hardware(
    "tpu_v5e",
    tiers=[{"name": "ici", "topology": "torus", "shape": [16, 16], "bandwidth": 4.5e10, "latency": 1e-6}],
)
GRID = {"X": 8, "Y": 4}
CUBE = {"X": 4, "Y": 4, "Z": 4}
SQUARE = {"X": 4, "Y": 4}
LARGE = Shape((1_800_000, 2_000_000), np.int8)  # 3.6e12 bytes: B in the book's B / (8 · 450e9) s
NODES = {"X": 16, "Y": 16}

# A reshard: what it asks, machine, mesh, shape, sharding before and after, the book's seconds, and what its rule gives
# with the (n - 1) / n that it leaves out.
RESHARDS = [
    ("part 3, pop quiz 2", CLOSED_V5E, GRID, bf16(2048, 8192), P("Y"), P(), "377e-6", "280e-6"),
    ("pop quiz 2, the dim is open", "tpu_v5e", GRID, bf16(2048, 8192), P("Y"), P(), "560e-6", None),
    ("pop quiz 2, small", "tpu_v5e", GRID, bf16(256, 256), P("Y"), P(), "3e-6", None),
    ("question 2, over X", "tpu_v4", CUBE, bf16(1024, 4096), P("X", "Y"), P(None, "Y"), "23e-6", "17.5e-6"),
    ("question 2, over Y", "tpu_v4", CUBE, bf16(1024, 4096), P("X", "Y"), P("X"), "23e-6", "17.5e-6"),
    ("question 2, over X and Y", "tpu_v4", CUBE, bf16(1024, 4096), P("X", "Y"), P(), "46e-6", "43.7e-6"),
    ("question 2, sums over Z", "tpu_v4", CUBE, bf16(1024, 4096), P(unreduced=("Z",)), P(), "190e-6", "140e-6"),
    ("question 3", "tpu_v4", CUBE, bf16(128), P("X"), P(), "2e-6", None),
    # The book takes 15 of 16 GiB for 15e9 bytes.
    ("part 2, question 6", "tpu_v5e", SQUARE, Shape((2**17, 2**17), np.int8), P("X", "Y"), P(), "167e-3", "179e-3"),
    ("GPUs, quiz 2, question 3", "h100_sxm", {"X": 8}, bf16(4096, 65536), P("X"), P(), "1.04e-3", None),
    ("GPUs, pop quiz 1", "h100_sxm", {"X": 8}, bf16(1024, 16384), P("X"), P(), "65e-6", None),
    ("GPUs, all-to-all in a node", "h100_sxm", {"X": 8}, LARGE, P("X"), P(None, "X"), "1", "0.875"),
    # B · (2 - 1) / (2² · 400e9)
    ("GPUs, all-to-all of two nodes", "h100_sxm", {"X": 16}, LARGE, P("X"), P(None, "X"), "2.25", None),
    # 2 · 8192 · 32768 bytes · 31 / (32 · 400e9): the book has the formula and a curve.
    ("GPUs, pop quiz 3", "h100_sxm", {"X": 32, "Y": 8}, bf16(8192, 32768), P("X", "Y"), P(None, "Y"), "1.30e-3", None),
    # 2 · 8192 · 32768 bytes / (16 · 50e9)
    ("pop quiz 3, two nodes", "h100_sxm", NODES, bf16(8192, 32768), P("X", "Y"), P(None, "Y"), "671e-6", "629e-6"),
]  # fmt: skip


@pytest.mark.parametrize(("machine", "sizes", "shape", "before", "after", "book", "derived"), cases(RESHARDS))
def test_a_reshard(
    machine: Any, sizes: dict[str, int], shape: Shape, before: P, after: P, book: str, derived: str | None
) -> None:
    program = compiled(lambda x: x, shape, mesh=sw.Mesh(sizes), in_shardings=before, out_shardings=after)
    (row,) = program.estimate(machine).rows
    check(max(row.parts.values()), book, derived)  # the book takes the larger of bytes and latency; we add them


@pytest.mark.parametrize(("devices", "book"), [(16, "514e9"), (256, "413e9")])
def test_bandwidth_of_a_gather_beyond_a_node(devices: int, book: str) -> None:
    # GPUs, quiz 4, question 5, and "cross-node collectives": nodes and their network work at the same time. That is the
    # lower bound; the estimate has one after the other.
    shape = bf16(2**18, 2**17)
    program = compiled(lambda x: x, shape, mesh=sw.Mesh({"X": devices}), in_shardings=P("X"), out_shardings=P())
    check(2**36 / program.estimate("h100_sxm").lower, book)


def test_an_all_to_all_is_a_quarter_of_a_gather() -> None:
    # Part 3, question 10: in a ring of both directions. 4 · 15 / 16, since the gather has (n - 1) / n and it has not.
    seconds = []
    for after in (P(), P(None, "X")):
        program = compiled(
            lambda x: x, bf16(2**14, 2**14), mesh=sw.Mesh({"X": 16, "Y": 16}), in_shardings=P("X"), out_shardings=after
        )
        (row,) = program.estimate("tpu_v5e").rows
        seconds.append(row.parts["ici"])
    check(seconds[0] / seconds[1], "4", "3.75")


def test_first_byte_from_corner_to_corner() -> None:
    # Part 2, question 5: six hops of 1 us, without wraparound.
    program = compiled(
        lambda x: x[::-1, ::-1], bf16(32, 4 * 128 * 8192), mesh=sw.Mesh({"X": 4, "Y": 4}), in_shardings=P("X", "Y"),
        out_shardings=P("X", "Y"),
    )  # fmt: skip
    (row,) = program.estimate("tpu_v5e").rows
    check(row.parts["latency"], "6e-6")


def product(x: Any, y: Any) -> Any:
    return np.einsum("bd,df->bf", x, y)


def partial_products(x: Any, y: Any) -> Any:
    """Each device of X multiplies what it has; sums follow. The partitioner is asked, since it knows faster ways."""
    return sw.shard(product(x, y), P(unreduced=("X",)))


def test_two_chips_share_a_product() -> None:
    # Part 1, "network communication rooflines": partial sums over one link of 4.5e10 bytes/s; D > 8755.
    def waits(d: int) -> bool:
        program = compiled(
            partial_products, bf16(8192, 2 * d), bf16(2 * d, 8192), mesh=sw.Mesh({"X": 2}),
            in_shardings=(P(None, "X"), P("X")), out_shardings=P(), hardware="tpu_v5e",
        )  # fmt: skip
        return waits_for_links(program.estimate())

    check(2 * largest(512, 16384, waits), "8755")


def test_sum_of_products_or_gather_of_weights() -> None:
    # Part 3, question 4: a product with weights that are split along the sum. An all_reduce of the result takes less
    # time than the whole product if D > 2 · 2550, of which 15 / 16 in a ring of 16.
    mesh = sw.Mesh({"X": 16, "Y": 20, "Z": 28})

    def gather_is_faster(d: int) -> bool:
        arguments = bf16(8192, 16 * d), bf16(16 * d, 65536)
        split = compiled(
            partial_products, *arguments, mesh=mesh, in_shardings=(P(None, "X"), P("X")), out_shardings=P(),
            hardware="tpu_v5p",
        )  # fmt: skip
        whole = compiled(product, *arguments, mesh=mesh, in_shardings=P(), out_shardings=P(), hardware="tpu_v5p")
        sums = sum(row.seconds for row in split.estimate().rows if row.kind == "transfer")
        return sums > whole.estimate().compute

    check(16 * largest(16, 1024, gather_is_faster), "5100", "4781")


def test_reduce_the_result_or_gather_an_operand() -> None:
    # Part 3, question 9: gathering A[N, M] moves M / K times the bytes of reducing A · B[M, K], here 8.
    mesh = sw.Mesh({"X": 8})
    operands = bf16(4096, 8192), bf16(8192, 1024)
    gathered = compiled(lambda a: a, operands[0], mesh=mesh, in_shardings=P(None, "X"), out_shardings=P())
    reduced = compiled(
        partial_products, *operands, mesh=mesh, in_shardings=(P(None, "X"), P("X")), out_shardings=P("X")
    )
    assert reduced.collectives().by_kind() == {"reduce_scatter": 1}
    check(gathered.collectives().rows[0].bytes / reduced.collectives().rows[0].bytes, "8.0")


def test_copies_of_an_array_that_is_split_along_one_of_three_axes() -> None:
    # Part 3, question 1: Y and Z hold copies.
    shape = bf16(1024, 1024)
    program = compiled(lambda x: x + x, shape, mesh=sw.Mesh({"X": 4, "Y": 8, "Z": 2}), in_shardings=P("X"))
    one_copy = compiled(lambda x: x + x, shape, mesh=sw.Mesh({"X": 1})).memory().argument_bytes
    check(64 * program.memory().argument_bytes / one_copy, "16.0")
