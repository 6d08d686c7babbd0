# SPDX-License-Identifier: Apache-2.0
"""The scaling book's questions about training: from which batch on links keep up, how long it takes, what it holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from shardwise.reports import MemoryReport
from tests.estimate.llama import LLAMA2_13B, LLAMA3_70B, Config, feed_forward, layout, loss, weights
from tests.estimate.scaling_book import (
    Shape,
    at_efficiency,
    bf16,
    cases,
    check,
    compiled,
    hardware,
    largest,
    waits_for_links,
)

POD = {"X": 16, "Y": 20, "Z": 28}  # of TPU v5p
ALL = ("X", "Y", "Z")
D, F = 16384, 65536  # so large that latencies and launches do not count
BOOK_B200 = hardware("b200", peak_flops={"matrix": {"bf16": 2.25e15}}, memory={"bandwidth": 8e12})

# ---- data parallelism ------------------------------------------------------------------------------------------------


def gradients(x: Any, hidden: Any, d_out: Any, w_in: Any, w_out: Any) -> Any:
    """The backward pass of x · w_in · w_out: of both weights, and of x. A dim of experts may come first."""
    d_hidden = np.einsum("...bd,...fd->...bf", d_out, w_out)
    return (
        np.einsum("...bd,...bf->...df", x, d_hidden),
        np.einsum("...bf,...bd->...fd", hidden, d_out),
        np.einsum("...bf,...df->...bd", d_hidden, w_in),
    )


def reduced_gradients(axes: Any, model: Any = None) -> Any:
    """As above; gradients are summed after the products, over the axes of the batch, whatever else would be faster.

    Args:
        model: the axis of the hidden dim, in tensor parallelism.
    """

    def run(*args: Any) -> Any:
        d_in, d_out, d_x = gradients(*args)
        return sw.shard(d_in, P(None, model, unreduced=axes)), sw.shard(d_out, P(model, unreduced=axes)), d_x

    return run


# Tokens per device: what it asks, machine, mesh, axes of the batch, the book's, and that with (n - 1) / n.
BATCHES = [
    ("part 5, one axis", "tpu_v5p", POD, ("Z",), "2550", "2459"),  # 27 / 28
    ("part 5, three axes", "tpu_v5p", POD, ALL, "850", None),
    ("GPUs, within a node", "h100_sxm", {"X": 8}, ("X",), "2200", "1923"),  # 7 / 8
    ("GPUs, beyond a node", "h100_sxm", {"X": 1024}, ("X",), "2475", None),
    ("GPUs, quiz 5, question 1", BOOK_B200, {"X": 1024}, ("X",), "5625", None),
]


@pytest.mark.parametrize(("machine", "sizes", "axes", "book", "derived"), cases(BATCHES))
def test_data_parallelism(
    machine: Any, sizes: dict[str, int], axes: tuple[str, ...], book: str, derived: str | None
) -> None:
    mesh = sw.Mesh(sizes)
    groups = int(np.prod([sizes[axis] for axis in axes]))

    def waits(tokens: int) -> bool:
        batch = tokens * groups
        program = compiled(
            reduced_gradients(axes), bf16(batch, D), bf16(batch, F), bf16(batch, D), bf16(D, F), bf16(F, D), mesh=mesh,
            in_shardings=(P(axes), P(axes), P(axes), P(), P()), out_shardings=(P(), P(), P(axes)), hardware=machine,
        )  # fmt: skip
        return waits_for_links(program.estimate())

    check(largest(100, 10_000, waits), book, derived)


@pytest.mark.parametrize(
    ("nodes", "stages", "book"),
    [(2, 1, "1237"), (64, 8, "309")],
    ids=["GPUs, two nodes", "GPUs, quiz 5, question 2"],
)
def test_data_parallelism_of_nodes(nodes: int, stages: int, book: str) -> None:
    # The weights are split over the 8 GPUs of a node. With 8 stages of a pipeline, a node has an eighth of the layers.
    mesh = sw.Mesh({"X": nodes, "Y": 8})

    def waits(tokens: int) -> bool:  # of each GPU
        batch = tokens * stages * nodes * 8
        rows, columns = P("X"), P("X", "Y")
        program = compiled(
            reduced_gradients("X", "Y"), bf16(batch, D), bf16(batch, F), bf16(batch, D), bf16(D, F), bf16(F, D),
            mesh=mesh, in_shardings=(rows, columns, rows, P(None, "Y"), P("Y")),
            out_shardings=(P(None, "Y"), P("Y"), rows), hardware="h100_sxm",
        )  # fmt: skip
        return waits_for_links(program.estimate(), "infiniband")

    check(largest(100, 10_000, waits), book)


def test_data_parallelism_of_experts() -> None:
    # GPUs, "MoE models": of 128 experts, each token goes to 4, so that 128 / 4 times the tokens are needed.
    mesh = sw.Mesh({"X": 1024})

    def waits(tokens: int) -> bool:  # of each expert, on a device
        batch = (128, tokens * 1024)
        rows = P(None, "X")
        program = compiled(
            reduced_gradients("X"), bf16(*batch, D), bf16(*batch, F), bf16(*batch, D), bf16(128, D, F), bf16(128, F, D),
            mesh=mesh, in_shardings=(rows, rows, rows, P(), P()), out_shardings=(P(), P(), rows), hardware="h100_sxm",
        )  # fmt: skip
        return waits_for_links(program.estimate())

    check(largest(100, 10_000, waits) * 128 / 4, "79200")


def test_data_parallelism_across_slices() -> None:
    # Part 5, "scaling between pods": weights and batch are split over the chips of a slice, so that its size does not
    # matter; here 64 slices of 4 x 4 x 4. 4.59e14 / 6.25e9 is 73,440; the texts have 76,000, 75,000 and 71,360, from a
    # peak of 4.5e14 or 4.46e14 and a pod of 8,000.
    ici, dcn = sw.hardware.load("tpu_v5p").to_dict()["tiers"]
    machine = hardware("tpu_v5p", tiers=[{**ici, "shape": [4, 4, 4]}, dcn])
    mesh, rows = sw.Mesh({"slice": 64, "X": 64}), P(("slice", "X"))

    def waits(tokens: int) -> bool:  # of each chip
        batch = tokens * 64 * 64
        program = compiled(
            reduced_gradients(("slice", "X")), bf16(batch, D), bf16(batch, F), bf16(batch, D), bf16(D, F), bf16(F, D),
            mesh=mesh, in_shardings=(rows, rows, rows, P(), P()), out_shardings=(P("X"), P("X"), rows),
            hardware=machine,
        )  # fmt: skip
        return waits_for_links(program.estimate())

    check(largest(500, 2000, waits) * 64, "76e3", "73440")


# ---- tensor parallelism, FSDP, and both ------------------------------------------------------------------------------


def block(x: Any, w_in: Any, w_out: Any) -> Any:
    return np.einsum("bf,fd->bd", np.einsum("bd,df->bf", x, w_in), w_out)


def tensor_parallel_block(axes: Any) -> Any:
    """As above; activations are gathered before, and reduced after."""
    return lambda x, w_in, w_out: sw.shard(block(sw.shard(x, P()), w_in, w_out), P(unreduced=axes))


# F / Y, times the number of axes: what it asks, machine, mesh, axes, the book's, and that with (n - 1) / n.
HIDDEN = [
    ("part 5, one axis", "tpu_v5p", POD, ("Z",), "2550", "2459"),  # 27 / 28
    ("part 5, two axes", "tpu_v5p", POD, ("X", "Y"), "2550", None),
    ("part 5, three axes", "tpu_v5p", POD, ALL, "2550", None),
    ("GPUs, within a node", "h100_sxm", {"X": 8}, ("X",), "2200", "1923"),  # 7 / 8
    ("GPUs, quiz 5, question 1", BOOK_B200, {"X": 8}, ("X",), "2500", "2188"),  # 7 / 8
]


@pytest.mark.parametrize(("machine", "sizes", "axes", "book", "derived"), cases(HIDDEN))
def test_tensor_parallelism(
    machine: Any, sizes: dict[str, int], axes: tuple[str, ...], book: str, derived: str | None
) -> None:
    mesh = sw.Mesh(sizes)
    devices = int(np.prod([sizes[axis] for axis in axes]))
    tokens = 8192 if devices < 100 else 65536  # few beside F, so that activations move; many beside latencies

    def waits(hidden: int) -> bool:  # on a device
        width, whole = 8960, hidden * devices
        program = compiled(
            tensor_parallel_block(axes), bf16(tokens, width), bf16(width, whole), bf16(whole, width), mesh=mesh,
            in_shardings=(P(None, axes), P(None, axes), P(axes)), out_shardings=P(None, axes), hardware=machine,
        )  # fmt: skip
        assert program.collectives().by_kind() == {"all_gather": 1, "reduce_scatter": 1}
        return waits_for_links(program.estimate())

    check(largest(100, 4000, waits) * len(axes), book, derived)


def forward(x: Any, layers: Any) -> Any:
    # Few tokens would otherwise move in place of the weights.
    gathered = lambda w: [sw.shard(each, P()) for each in w]  # noqa: E731
    return sw.scan(lambda x, w: (sw.shard(block(x, *gathered(w)), P(ALL)), None), x, layers)[0]


def test_fully_sharded_data_parallelism() -> None:
    # Part 5, FSDP: the forward pass gathers its weights over three axes.
    width, hidden = 8960, 4 * 8960

    def waits(tokens: int) -> bool:
        program = compiled(
            forward, bf16(tokens * 8960, width), (bf16(8, width, hidden), bf16(8, hidden, width)), mesh=sw.Mesh(POD),
            in_shardings=(P(ALL), (P(None, ALL), P(None, None, ALL))), out_shardings=P(ALL), hardware="tpu_v5p",
        )  # fmt: skip
        assert program.collectives().by_kind() == {"all_gather": 16}
        return waits_for_links(program.estimate())

    check(largest(100, 4000, waits), "850")


def test_most_of_the_mesh_for_fsdp_and_some_for_tensor_parallelism() -> None:
    # Part 6: X = sqrt(2 B N / F) = 1618 of 8960 chips, so 2048 for FSDP, and 4 for tensor parallelism.
    width, hidden, tokens = 8960, 28672, 4_193_280
    seconds = {}
    for model in (1, 2, 4, 8, 16):

        def layer(x: Any, w: Any) -> Any:
            gathered = sw.shard(w[0], P(None, "Y")), sw.shard(w[1], P("Y"))
            whole = sw.shard(x, P("X"))
            return sw.shard(block(whole, *gathered), P("X", "Y")), None

        program = compiled(
            lambda x, w: sw.scan(layer, x, w)[0], bf16(tokens, width), (bf16(8, width, hidden), bf16(8, hidden, width)),
            mesh=sw.Mesh({"X": 8960 // model, "Y": model}), hardware="tpu_v5p",
            in_shardings=(P("X", "Y"), (P(None, "X", "Y"), P(None, "Y", "X"))), out_shardings=P("X", "Y"),
        )  # fmt: skip
        seconds[model] = sum(row.parts.get("ici", 0) * row.executions for row in program.estimate().rows)
        assert set(program.collectives().by_kind()) <= {"all_gather", "reduce_scatter"}
    assert min(seconds, key=seconds.__getitem__) == 4


# ---- whole models ----------------------------------------------------------------------------------------------------


def training_step(
    model: Config, tokens: int, sizes: dict[str, int], machine: Any, model_axes: Any = None
) -> sw.Program:
    """A step with weights and gradients split over all devices, and the batch over those of the other axes."""
    data_axes = tuple(axis for axis in sizes if axis != model_axes)
    specs = layout(model_axes, data_axes)

    def step(params: Any, tokens: Any) -> Any:
        return sw.value_and_grad(loss)(params, tokens, P(data_axes))

    return compiled(
        step, weights(model, sw.bfloat16), Shape((tokens,), np.int32), mesh=sw.Mesh(sizes),
        in_shardings=(specs, P(data_axes)), out_shardings=(P(), specs), hardware=machine,
    )  # fmt: skip


def test_parameters_and_operations_of_llama3_70b() -> None:
    # Part 6: 70.4e9 parameters; 6 operations for each of them and of 15e12 tokens.
    program = training_step(LLAMA3_70B, 1024, {"X": 1}, "tpu_v5p")
    check(program.memory().argument_bytes / 2, "70.4e9")
    check(program.work().flops / 1024 * 15e12, "6.3e24")


# Days for 15e12 tokens: what it asks, machine, share of the peak, mesh, tokens of a step, the book's.
DAYS = [
    ("part 6, a pod", "tpu_v5p", 0.40, {"X": 2240, "Y": 4}, 4_194_304, "44"),
    ("GPUs, quiz 5, question 2", "h100_sxm", 0.45, {"X": 512, "Y": 8}, 4_194_304, "40"),
]


@pytest.mark.parametrize(("machine", "share", "sizes", "tokens", "book"), cases(DAYS))
def test_days_of_training(machine: str, share: float, sizes: dict[str, int], tokens: int, book: str) -> None:
    # "Assuming that we are compute-bound."
    estimate = training_step(LLAMA3_70B, tokens, sizes, at_efficiency(machine, share), "Y").estimate()
    check(15e12 / tokens * estimate.compute / 86400, book)


def test_step_of_llama2_13b() -> None:
    # Part 5, question 3: 3e6 tokens on 4096 chips at 40 %, by the operations alone.
    estimate = training_step(LLAMA2_13B, 3_000_000, {"X": 1024, "Y": 4}, at_efficiency("tpu_v5p", 0.4), "Y").estimate()
    check(estimate.compute, "3e-1")


LARGE_SLICE = {"X": 16, "Y": 16, "Z": 16}
TOO_SMALL_BATCHES = [
    ("part 6: 468 tokens of 850", LLAMA3_70B, 4_194_304, POD),
    ("part 5, question 3: 3e6 tokens of 3.48e6", LLAMA2_13B, 3_000_000, LARGE_SLICE),
]


@pytest.mark.parametrize(("model", "tokens", "sizes"), cases(TOO_SMALL_BATCHES))
def test_fsdp_alone_waits_for_links(model: Config, tokens: int, sizes: dict[str, int]) -> None:
    assert waits_for_links(training_step(model, tokens, sizes, "tpu_v5p").estimate())


# ---- memory ----------------------------------------------------------------------------------------------------------


def four_of_a_layer(x: Any, w: Any) -> Any:
    """What a layer keeps: the input of each block, and what attention and the feed-forward block add."""
    mixed = np.dot(np.dot(x, w["q"]), w["o"])
    added = feed_forward(x + mixed, w)
    return x + mixed + added, (x, mixed, x + mixed, added)


def three_products_of_a_layer(x: Any, w: Any) -> Any:
    """What a layer keeps: the results of the three large products."""
    gate, up = np.dot(x, w["gate"]), np.dot(x, w["up"])
    down = np.dot(gate * up, w["down"])
    return x + down, (gate, up, down)


def training_memory(model: Config, layer: Any, tokens: int, devices: int) -> MemoryReport:
    """A device's parameters in bfloat16 and both moments in float32, the arguments; what layers keep is the result."""

    def run(params: Any, first: Any, second: Any, tokens: Any) -> Any:
        return sw.scan(layer, params["embed"][tokens], params["layers"])[1]

    moments = weights(model, np.float32)
    specs = layout(data_axes="X")
    return compiled(
        run, weights(model, sw.bfloat16), moments, moments, Shape((tokens,), np.int32), mesh=sw.Mesh({"X": devices}),
        in_shardings=(specs, specs, specs, P("X")), out_shardings=P(None, "X"),
    ).memory()  # fmt: skip


def test_memory_of_llama3_70b() -> None:
    # Part 6, with 4 saved arrays a layer: 21.6 TB for 4e6 tokens, so at least 225 chips; on each of the pod, 2.4 GB.
    def held(devices: int) -> int:
        memory = training_memory(LLAMA3_70B, four_of_a_layer, 4_000_000, devices)
        return memory.argument_bytes + memory.result_bytes

    capacity = sw.hardware.load("tpu_v5p").memory_bytes
    check(held(1), "21.6e12")
    check(largest(1, 1000, lambda devices: held(devices) > capacity) + 1, "225")
    check(held(8960), "2.4e9")


def test_memory_of_llama2_13b() -> None:
    # Part 5, questions 2 and 3.
    memory = training_memory(LLAMA2_13B, three_products_of_a_layer, 16_000_000, 1)
    check(memory.argument_bytes, "130e9")
    check(memory.result_bytes, "42e12")
    assert memory.argument_bytes > sw.hardware.load("tpu_v5p").memory_bytes  # no data parallelism alone
    small = training_memory(LLAMA2_13B, three_products_of_a_layer, 3_000_000, 4096)
    check(4096 * (small.argument_bytes + small.result_bytes), "8e12")


def test_gpus_that_hold_llama3_70b() -> None:
    # GPUs, quiz 5, question 2: weights and moments need 9 GPUs of 80 GB; split over 8, they do not fit.
    def state(devices: int) -> int:
        return training_memory(LLAMA3_70B, four_of_a_layer, devices, devices).argument_bytes

    capacity = sw.hardware.load("h100_sxm").memory_bytes
    check(largest(1, 100, lambda devices: state(devices) > capacity) + 1, "9")
    check(state(8), "87.5e9")
