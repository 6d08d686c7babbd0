# SPDX-License-Identifier: Apache-2.0
"""The scaling book's questions about serving: what a token takes, what the caches hold, which slice is large enough."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.estimate.llama import BOOK_16B, LLAMA3_70B, Config, decode, layout, products_of_a_layer, weights
from tests.estimate.scaling_book import Shape, at_efficiency, check, compiled, hardware

INT8 = np.dtype(np.int8)


def caches(model: Config, sequences: int, context: int, dtype: Any) -> dict[str, Shape]:
    shape = Shape((model.layers, sequences, context, model.kv_heads, model.head), dtype)
    return {"k": shape, "v": shape}


def server(
    model: Config, sequences: int, context: int, devices: int, dtype: Any, machine: Any = "tpu_v5e"
) -> sw.Program:
    """Weights and caches of one dtype, and products in bfloat16; all split along the heads and the hidden dim."""
    return compiled(
        decode, weights(model, dtype), caches(model, sequences, context, dtype), Shape((sequences,), np.int32),
        mesh=sw.Mesh({"Y": devices}), hardware=machine,
        in_shardings=(layout("Y"), P(None, None, "Y" if sequences == 1 else None, "Y" if sequences > 1 else None), P()),
    )  # fmt: skip


def test_a_token_of_llama3_70b() -> None:
    # Part 8: 32 sequences of 8192 tokens, in int8 on a v5e of 4 x 2: 17 ms, 235 tokens/s on a chip. That is the time to
    # read weights and caches at the 8.2e11 bytes/s of that part.
    machine = hardware("tpu_v5e", memory={"bandwidth": 8.2e11}, fused_attention=True)
    program = server(LLAMA3_70B, 32, 8192, 8, INT8, machine)
    reading = program.memory().argument_bytes / machine.memory_bandwidth
    check(reading, "17e-3")
    check(32 / reading / 8, "235")
    # Everything else, such as activations in memory and sums over the chips, is little.
    assert reading < program.estimate().lower < 1.2 * reading


@pytest.mark.parametrize(("dtype", "book"), [(INT8, "162e3"), (sw.bfloat16, "324e3")])
def test_caches_of_llama3_70b(dtype: Any, book: str) -> None:
    # Part 8: for each token; 5.3e9 bytes for a sequence of 32,768.
    def held(context: int) -> int:
        return server(LLAMA3_70B, 1, context, 1, dtype).memory().argument_bytes

    check(held(2) - held(1), book)
    check((held(32769) - held(1)) / np.dtype(dtype).itemsize, "5.3e9")


@pytest.mark.parametrize(("dtype", "book"), [(sw.bfloat16, 16), (INT8, 8)])
def test_smallest_slice_for_llama3_70b(dtype: Any, book: int) -> None:
    # Part 8: one sequence of 8192 tokens, on a v5e of 2 x 2, 4 x 2, 4 x 4 or 8 x 4.
    capacity = sw.hardware.load("tpu_v5e").memory_bytes
    fits = [
        chips for chips in (4, 8, 16, 32) if server(LLAMA3_70B, 1, 8192, chips, dtype).memory().peak_bytes < capacity
    ]
    assert fits[0] == book


def test_prefill_of_llama3_70b() -> None:
    # Part 8: 8192 tokens on 16 chips at 40 % of the peak, without attention: 0.91 s.
    def prefill(params: Any, tokens: Any) -> Any:
        x, _ = sw.scan(lambda x, w: (products_of_a_layer(x, w), None), params["embed"][tokens], params["layers"])
        return np.dot(x[-1:], params["out"])

    program = compiled(
        prefill, weights(LLAMA3_70B, sw.bfloat16), Shape((8192,), np.int32), mesh=sw.Mesh({"Y": 16}),
        in_shardings=(layout("Y"), P()), hardware=at_efficiency("tpu_v5e", 0.4),
    )  # fmt: skip
    check(program.estimate().compute, "0.91")


def test_parameters_and_caches_of_a_model_of_16b() -> None:
    # Part 4, question 1: the book has 16e9 from 64 · (3 · 4e3 · 16e3 + 4 · 4e3 · 4e3) + 2 · 4e3 · 32e3; a quarter of
    # the layers is attention; caches of 512 KiB for a token.
    def held(context: int) -> int:
        return server(BOOK_16B, 1, context, 1, INT8).memory().argument_bytes

    def of(names: Any) -> int:
        layers = {name: shape for name, shape in weights(BOOK_16B, INT8)["layers"].items() if name in names}
        return compiled(lambda w: w, layers, mesh=sw.Mesh({"X": 1})).memory().argument_bytes

    check(held(1), "16e9", "17.4e9")
    check(of({"q", "k", "v", "o"}) / of({"q", "k", "v", "o", "up", "gate", "down"}), "0.25")
    check(held(2) - held(1), "524e3")
