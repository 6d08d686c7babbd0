# SPDX-License-Identifier: Apache-2.0
"""`jit(memory_limit=)`: what does not fit is gathered or computed again; results keep their bits."""

from __future__ import annotations

import inspect
import pickle
import re
from collections.abc import Callable
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
        limit = max(1, int(peak * share))
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
    found = re.search(r"a peak of ([\d.]+ \w+) at least, ([\d.]+ \w+) without", str(caught.value))
    assert found is not None
    smallest, whole = map(_bytes_of, found.groups())
    assert 0 < smallest <= whole


def _bytes_of(text: str) -> float:
    number, unit = text.split()
    return float(number) * {"bytes": 1, "KiB": 2**10, "MiB": 2**20}[unit]


def _checkpointed(weights: Any, x: Any) -> Any:
    body = sw.checkpoint(lambda x, w: np.tanh(np.tanh(x @ w) @ w))
    return np.mean(sw.scan(lambda x, w: (body(x, w), None), x, weights)[0] ** 2)


def _with_dropout(weights: Any, x: Any) -> Any:
    for i, w in enumerate(weights):
        x = np.tanh(x @ w)
        kept = sw.random.bernoulli(sw.random.fold_in(sw.random.key(0), i), 0.9, x.shape)
        x = np.where(kept, x / np.float32(0.9), np.float32(0))
    return np.mean(x**2)


@pytest.mark.parametrize(
    ("loss", "shapes", "spec"),
    [(_checkpointed, ((6, 32, 32), (64, 32)), P(None, "d")), (_with_dropout, ((4, 64, 64), (512, 64)), P())],
    ids=["checkpointed", "dropout"],
)
def test_a_limit_finds_what_smaller_limits_find(loss: Any, shapes: Any, spec: P) -> None:
    def step(weights: Any, x: Any) -> Any:
        return weights - np.float32(0.1) * sw.grad(loss)(weights, x)

    arguments = [sw.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
    options: Any = {"mesh": sw.Mesh({"d": 4}), "in_shardings": (spec, P("d")), "out_shardings": spec}
    peak = sw.jit(step, **options).lower(*arguments).compile().memory().peak_bytes
    peaks: dict[int, int] = {}
    named = []
    for share in (*np.arange(1.0, 0.4, -0.03), 0.0):
        limit = max(1, int(peak * share))
        try:
            peaks[limit] = sw.jit(step, **options, memory_limit=limit).lower(*arguments).compile().memory().peak_bytes
        except sw.OutOfMemoryError as error:
            named.append(_bytes_of(str(error).partition("a peak of ")[2].partition(" at least")[0]))
            assert limit < min(peaks.values())
    # Some steps depend on the limit.
    assert max(named) <= 1.05 * min(peaks.values())


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
        limit_of(1)
    for none in (0, 0.5, "0GB"):
        with pytest.raises(ValueError, match=f"jit: memory_limit must be positive, got {none!r}; pass None for no"):
            model.jitted(memory_limit=none)
    with pytest.raises(ValueError, match="jit: limit must be a number of bytes that is not negative, got -1"):
        model.jitted(memory_limit=-1)
    with pytest.raises(ValueError, match="jit: a limit of memory must be a size"):
        model.jitted(memory_limit="much")
    for given in ([1], True, b"80GB", object()):
        with pytest.raises(
            TypeError, match="jit: a limit of memory must be a size, such as '80GB' or '16GiB', or hardware"
        ):
            model.jitted(memory_limit=given)
    assert limit_of(2**80) == 2**62


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


def _laid_out(weights: Any, how: str) -> Any:
    """Whole stacks in front of a scan: gathered, or converted and gathered."""
    if how == "gathered":
        return sw.tree.map(sw.replicate, weights)
    if how == "converted":
        return sw.tree.map(lambda w: sw.replicate(w.astype(np.float32)), weights)
    return weights


def _stacked_step(how: str, devices: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    mesh, dtype = sw.Mesh({"d": devices}), np.float64 if how == "converted" else np.float32

    def loss(weights: Any, x: Any) -> Any:
        def body(h: Any, w: Any) -> Any:
            return h + np.tanh(np.tanh(h @ w[0]) @ w[1]), None

        return (sw.scan(body, x, _laid_out(weights, how))[0] ** 2).sum()

    def accumulated(weights: Any, xs: Any) -> Any:
        def one(total: Any, x: Any) -> Any:
            value, gradients = sw.value_and_grad(loss)(weights, x)
            return sw.tree.map(lambda a, b: a + b, total, gradients), value

        totals, values = sw.scan(one, sw.tree.map(np.zeros_like, weights), xs)
        return values.sum(), totals

    gradients_of = accumulated if how == "accumulated" else sw.value_and_grad(loss)

    def step(weights: Any, momentum: Any, x: Any) -> Any:
        value, gradients = gradients_of(weights, x)
        momentum = sw.tree.map(lambda m, g: np.float32(0.9) * m + g, momentum, gradients)
        return value, sw.tree.map(lambda w, m: w - m.astype(w.dtype) / 16, weights, momentum), momentum

    def jitted(**more: Any) -> Any:
        if how in ("shard_update", "accumulated"):
            rows = P(None, "d") if how == "accumulated" else P("d")
            return sw.jit(step, mesh=mesh, in_shardings=(None, None, rows), shard_update="d", **more)
        split = (P(None, "d"), P(None, "d"))
        shardings = {"in_shardings": (split, split, P("d")), "out_shardings": (None, split, split)}
        return sw.jit(step, mesh=mesh, **shardings, **more)

    random = np.random.default_rng(devices)
    weights = tuple((random.normal(size=(6, *shape)) / 8).astype(dtype) for shape in ((48, 96), (96, 48)))
    batches = (3,) if how == "accumulated" else ()
    x = random.normal(size=(*batches, 2 * devices, 48)).astype(np.float32)
    return jitted, (weights, tuple(np.zeros(w.shape, dtype) for w in weights), x)


@pytest.mark.parametrize("how", ["gathered", "converted", "shard_update", "accumulated"])
@pytest.mark.parametrize("devices", [4, 5, 7])
def test_stacks_that_are_made_as_a_whole_are_made_row_by_row(how: str, devices: int) -> None:
    jitted, arguments = _stacked_step(how, devices)
    plain = jitted().lower(*arguments).compile()
    limit = int(plain.memory().peak_bytes * 0.75)
    limited = jitted(memory_limit=limit)
    made = limited.lower(*arguments).compile()
    assert made.memory().peak_bytes <= limit
    rows = [row for row in made.rematerialized() if row.how == "row by row"]
    assert {row.op for row in rows} == {"shardwise.all_gather"}
    whole = [value for value in plain.memory().largest() if value.category == "gathered" and value.type[8] == "6"]
    assert 0 < len(rows) <= 2
    assert whole
    # The forward and the backward scan gather a row each in the place of one gather for both.
    assert made.collectives().total_bytes > plain.collectives().total_bytes
    assert bits(limited(*arguments)) == bits(jitted()(*arguments))


def test_a_large_step_with_split_updates_holds_few_layers_of_its_weights() -> None:
    """70 GiB of stacked weights, each layer 0.9 GiB: what a device has beside two layers fits in 24 GB."""
    layers, width, hidden = 80, 8192, 28672
    shapes = ((layers, width, hidden), (layers, hidden, width))
    weights = tuple(sw.ShapeDtypeStruct(shape, sw.bfloat16) for shape in shapes)
    x = sw.ShapeDtypeStruct((512 * 4096, width), sw.bfloat16)
    adam = sw.optim.adam(1e-3)

    @sw.checkpoint
    def layer(h: Any, w: Any) -> Any:
        return h + np.dot(np.tanh(np.dot(h, w[0])), w[1])

    def step(weights: Any, state: Any, x: Any) -> Any:
        def loss(weights: Any) -> Any:
            return sw.scan(lambda h, w: (layer(h, w), None), x, weights)[0].astype(np.float32).sum()

        updates, state = adam.update(sw.grad(loss)(weights), state, weights)
        return sw.optim.apply_updates(weights, updates), state

    def compiled(**more: Any) -> sw.Program:
        options: Any = {"in_shardings": (None, None, P("data")), "donate_argnums": (0, 1), "shard_update": "data"}
        jitted = sw.jit(step, mesh=sw.Mesh({"data": 512}), **options, **more)
        return jitted.lower(weights, adam.init(weights), x).compile()

    plain, limited = compiled(), compiled(memory_limit="24GB")
    assert plain.memory().peak_bytes > 70 * 2**30
    assert limited.memory().peak_bytes < 24e9
    assert {row.how for row in limited.rematerialized()} == {"row by row"}
    # Gathers in trips run beside the products, where they run once and where they run twice.
    assert limited.estimate("h100_sxm").estimate < 1.01 * plain.estimate("h100_sxm").estimate


def test_the_signature_of_jit_shows_what_options_take() -> None:
    shown = {name: str(p.annotation) for name, p in inspect.signature(sw.jit).parameters.items()}
    assert shown["memory_limit"] == "int | str | Hardware | os.PathLike[str] | None"
    assert shown["shard_update"] == "Axis | Sequence[Axis] | None"
    assert not [name for name, text in shown.items() if "None | None" in text]
