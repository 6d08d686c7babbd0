# SPDX-License-Identifier: Apache-2.0
"""`jit(memory_limit=)`: what does not fit is gathered or computed again; results keep their bits."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.estimate.megatron import NODE, RUNS, SELENE, _shapes, layer
from tests.memory_limit.programs import MESH, MODELS, Model


def bits(tree: Any) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in sw.tree.leaves(tree)]


@pytest.mark.parametrize("model", MODELS, ids=[model.name for model in MODELS])
def test_programs_stay_within_their_limit_and_compute_the_same_bits(model: Model) -> None:
    program = model.jitted().lower(*model.arguments).compile()
    peak = program.memory().peak_bytes
    expected = bits(model.jitted()(*model.arguments))
    for share in (0.95, 0.8, model.least):
        limit = int(peak * share)
        limited = model.jitted(memory_limit=limit)
        made = limited.lower(*model.arguments).compile()
        report = made.rematerialized()
        assert made.memory().peak_bytes <= report.after_bytes <= limit < report.before_bytes
        assert report.seconds > 0
        assert bits(limited(*model.arguments)) == expected


@pytest.mark.parametrize("model", MODELS, ids=[model.name for model in MODELS])
def test_a_limit_below_what_is_possible_names_the_smallest_peak(model: Model) -> None:
    with pytest.raises(sw.errors.OutOfMemoryError, match=r"memory_limit, .* got a peak of") as caught:
        model.jitted(memory_limit=5000).lower(*model.arguments).compile()
    found = re.search(r"a peak of (\d+) (\w+) at least, (\d+) \2 without", str(caught.value))
    assert found is not None
    assert 0 < int(found[1]) <= int(found[3])


def test_a_program_that_fits_stays_as_it_is() -> None:
    model = MODELS[0]
    program = model.jitted().lower(*model.arguments).compile()
    limited = model.jitted(memory_limit=program.memory().peak_bytes).lower(*model.arguments).compile()
    assert limited.as_text() == program.as_text()
    assert not limited.rematerialized().rows
    with pytest.raises(ValueError, match="rematerialized: needs a memory limit"):
        program.rematerialized()


@pytest.mark.parametrize("model", MODELS, ids=[model.name for model in MODELS])
def test_a_program_without_a_limit_knows_what_one_would_drop(model: Model) -> None:
    program = model.jitted().lower(*model.arguments).compile()
    limit = int(program.memory().peak_bytes * 0.8)
    limited = model.jitted(memory_limit=limit).lower(*model.arguments).compile()
    ladder = program.memory(limit=limit).ladder
    assert ladder == program.rematerialized(limit) == limited.rematerialized()
    assert (ladder.after_bytes, ladder.kept) == (limited.rematerialized().after_bytes, limited.rematerialized().kept)
    assert f"+{ladder.summary().rpartition('+')[2]}" in program.memory(limit=limit).summary()
    assert program.memory(limit=program.memory().peak_bytes).ladder is None
    assert program.as_text() == model.jitted().lower(*model.arguments).compile().as_text()


@pytest.mark.parametrize("model", MODELS, ids=[model.name for model in MODELS])
def test_the_smallest_peak_can_be_kept_and_no_limit_finds_less(model: Model) -> None:
    program = model.jitted().lower(*model.arguments).compile()
    report = program.rematerialized(5000)
    assert not report.fits
    assert not report.rows
    smallest = report.after_bytes
    assert program.rematerialized(smallest).fits
    # Found by bisection between the limit and the peak.
    found = [program.rematerialized(smallest * eighths // 8).after_bytes for eighths in range(1, 8)]
    assert min(found) >= smallest - (report.before_bytes - 5000) // 16


def test_a_long_ladder_prints_in_groups() -> None:
    step, shapes = _fsdp(40)
    program = step.lower(*shapes).compile()
    report = program.rematerialized(program.memory().peak_bytes - 30 * 2048 * 2048 * 4)
    assert len(report) > 24
    groups = report.group_by()
    assert sum(group.count for group in groups) == len(report)
    assert sum(group.bytes for group in groups) == sum(row.bytes for row in report)
    assert sum(group.seconds for group in groups) == pytest.approx(report.seconds)
    assert str(report).startswith(str(groups))
    assert str(report).splitlines()[1].split() == ["where", "op", "type", "how", "count", "bytes", "seconds"]
    with pytest.raises(ValueError, match="group_by: keys must be of where, op"):
        report.group_by("seconds")


def _fsdp(count: int) -> tuple[Any, tuple[Any, ...]]:
    """Layers whose weights are sharded, and gathered for use."""

    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            x = np.tanh(x @ sw.shard(w, P()))
        return (x * x).sum()

    def step(weights: Any, x: Any) -> Any:
        gradients = sw.grad(loss)(weights, sw.split(x, 0, "d"))
        return [sw.shard(w - np.float32(0.1) * g, P("d")) for w, g in zip(weights, gradients)]

    shapes = [sw.ShapeDtypeStruct((2048, 2048), np.float32)] * count, sw.ShapeDtypeStruct((65536, 2048), np.float32)
    return sw.jit(step, mesh=MESH, in_shardings=([P("d")] * count, P("d"))), shapes


def _gathers(program: sw.Program) -> int:
    return sum(row.count for row in program.collectives() if row.kind == "all_gather")


def test_gathered_weights_are_gathered_again() -> None:
    step, shapes = _fsdp(8)
    program = step.lower(*shapes).compile()
    weight = 2048 * 2048 * 4
    # The first layer's weight is not needed for a gradient.
    assert _gathers(program) == 8
    limit = program.memory().peak_bytes - 4 * weight
    limited = sw.jit(step.__wrapped__, mesh=MESH, in_shardings=([P("d")] * 8, P("d")), memory_limit=limit)
    made = limited.lower(*shapes).compile()
    gathered = [row for row in made.rematerialized() if row.how == "gathered again"]
    assert 12 <= _gathers(made) == 8 + len(gathered) <= 15
    assert all(row.bytes == weight for row in gathered)
    assert made.memory().peak_bytes <= limit


def test_selective_recomputation_is_found_under_its_limit() -> None:
    """Korthikanti et al.: the scores of attention are large and cheap, so that they go first."""
    run = RUNS[0]
    (x, weights, masks), (x_spec, weight_specs, mask_specs) = _shapes(run)
    layers = 12

    def stacked(tree: Any) -> Any:
        return {name: sw.ShapeDtypeStruct((layers, *leaf.shape), leaf.dtype) for name, leaf in tree.items()}

    def along(specs: Any) -> Any:
        return {name: P(None, *spec) for name, spec in specs.items()}

    def loss(x: Any, weights: Any, masks: Any) -> Any:
        made, _ = sw.scan(lambda x, w: (layer(x, w[0], w[1], False), None), x, (weights, masks))
        return (made.astype(np.float32) ** 2).sum()

    step, shapes = sw.grad(loss, argnums=1), (x, stacked(weights), stacked(masks))
    specs = {"mesh": NODE, "in_shardings": (x_spec, along(weight_specs), along(mask_specs)), "hardware": SELENE}
    program = sw.jit(step, **specs).lower(*shapes).compile()
    peak, estimate = program.memory().peak_bytes, program.estimate().estimate
    scores = layers * 4 * run.heads // 8 * 2048 * 2048 * 2
    made = sw.jit(step, **specs, memory_limit=peak - scores).lower(*shapes).compile()
    assert made.memory().peak_bytes <= peak - scores
    first = made.rematerialized()[0]
    assert (first.value, first.how, first.bytes) == ("scores", "computed again", scores)
    # One percent of time, where full recomputation takes a third more.
    assert estimate < made.estimate().estimate < 1.02 * estimate


def test_donated_arguments_count_as_memory_that_is_free() -> None:
    def step(x: Any, y: Any) -> Any:
        return np.tanh(x) @ np.ones((64, 64), np.float32) + y

    shapes = (sw.ShapeDtypeStruct((8192, 64), np.float32),) * 2
    options = {"mesh": MESH, "in_shardings": (P("d"), P("d"))}
    peaks = [
        sw.jit(step, **options, donate_argnums=donated).lower(*shapes).compile().memory().peak_bytes
        for donated in ((), (0, 1))
    ]
    assert peaks[1] < peaks[0]
    made = sw.jit(step, **options, donate_argnums=(0, 1), memory_limit=peaks[1]).lower(*shapes).compile()
    assert not made.rematerialized().rows


def test_limits_are_sizes_or_hardware() -> None:
    model = MODELS[0]

    def limit_of(given: Any) -> int:
        report = model.jitted(memory_limit=given).lower(*model.arguments).compile().rematerialized()
        return int(report.limit)

    assert limit_of("80GB") == 80 * 10**9
    assert limit_of("1.5 GiB") == 3 * 2**29
    assert limit_of(2**30) == 2**30
    hardware = sw.hardware.load("h100_sxm")
    assert limit_of(hardware) == limit_of("h100_sxm") == hardware.memory_bytes - hardware.reserved_bytes
    with pytest.raises(sw.errors.OutOfMemoryError, match="memory_limit, 1 bytes"):
        limit_of(0)
    with pytest.raises(ValueError, match="jit: limit must be a number of bytes that is not negative, got -1"):
        model.jitted(memory_limit=-1)
    with pytest.raises(ValueError, match="jit: a limit of memory must be a size"):
        model.jitted(memory_limit="much")
    with pytest.raises(TypeError, match="jit: hardware must be"):
        model.jitted(memory_limit=[1])


def test_the_report_adds_up_and_the_limit_is_kept_with_the_choices() -> None:
    model = MODELS[1]
    peak = model.jitted().lower(*model.arguments).compile().memory().peak_bytes
    program = model.jitted(memory_limit=int(peak * 0.8)).lower(*model.arguments).compile()
    report = program.rematerialized()
    assert report.seconds == pytest.approx(sum(row.seconds for row in report))
    assert report.to_dict()["rows"][0] == report[0].to_dict()
    assert all(row.line > 0 and row.file.endswith("programs.py") for row in report)
    assert program.choices.options.memory_limit == int(peak * 0.8)
    again = pickle.loads(pickle.dumps(program))
    assert again.as_text() == program.as_text()
    pinned = model.jitted(memory_limit=int(peak * 0.8), choices=program.choices).lower(*model.arguments).compile()
    assert pinned.as_text() == program.as_text()
