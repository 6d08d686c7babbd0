# SPDX-License-Identifier: Apache-2.0
"""``Program.estimate``: the parts of a step sum up to it, and it moves with what it depends on."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import shardwise as sw
from shardwise import P
from tests.estimate.training_steps import BF16, Step

SMALL = Step(layers=3, width=256, hidden=512, tokens=2048)
STEPS = [
    SMALL,
    SMALL.but(model=2),
    SMALL.but(data=2, model=8, is_recomputed=True),
    SMALL.but(is_scanned=False),
    SMALL.but(is_scanned=False, is_recomputed=True, data=64),
    SMALL.but(data=1),
    SMALL.but(dtype=np.dtype(np.float32), layers=1),
]


def _projection(mesh: dict[str, int], hardware: Any = "h100_sxm", tokens: int = 8192) -> Any:
    x, w = sw.ShapeDtypeStruct((tokens, 8192), BF16), sw.ShapeDtypeStruct((8192, 8192), BF16)
    shardings = {"in_shardings": (P(None, "t"), P("t")), "out_shardings": P()}
    return sw.jit(lambda x, w: np.dot(x, w), mesh=sw.Mesh(mesh), hardware=hardware, **shardings).lower(x, w).compile()


@pytest.mark.parametrize("step", STEPS, ids=str)
@pytest.mark.parametrize("hardware", ["default", "h100_sxm", "tpu_v5p"])
def test_costs_of_rows_sum_up(step: Step, hardware: str) -> None:
    estimate = step.compile().estimate(hardware)
    assert sum(row.cost for row in estimate.rows) == pytest.approx(estimate.estimate, rel=1e-9)
    assert estimate.compute + estimate.exposed == pytest.approx(estimate.estimate, rel=1e-9)
    for keys in (("line",), ("op", "axis"), ("stream", "bound", "cause")):
        assert sum(group.seconds for group in estimate.by(*keys)) == pytest.approx(estimate.estimate, rel=1e-9)
    assert 0 < estimate.lower <= estimate.estimate <= estimate.upper * (1 + 1e-12)
    assert 0 < estimate.mfu <= estimate.hfu * (1 + 1e-9) <= 1


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_rows_are_those_of_the_ledger(step: Step) -> None:
    program = step.compile()
    transfers = [row for row in program.estimate("h100_sxm") if row.kind == "transfer"]
    ledger = program.collectives()
    assert sum(row.bytes * row.executions for row in transfers) == pytest.approx(ledger.total_bytes)
    assert {(row.name, row.axes, row.where, row.cause) for row in transfers} == {
        (row.kind, row.axes, row.where, row.cause) for row in ledger
    }


@pytest.mark.parametrize("data", [8, 64, 2048])
@pytest.mark.parametrize("is_recomputed", [False, True])
def test_a_scan_takes_as_long_as_its_layers(data: int, is_recomputed: bool) -> None:
    step = Step(layers=12, width=4096, hidden=16384, tokens=4096 * data, data=data, is_recomputed=is_recomputed)
    scanned, unrolled = (step.but(is_scanned=is_scanned).compile().estimate("h100_sxm") for is_scanned in (True, False))
    assert scanned.estimate == pytest.approx(unrolled.estimate, rel=0.06)
    assert scanned.hfu > 0.8


@pytest.mark.parametrize("data", [8, 64])
def test_a_scan_waits_for_the_transfers_that_its_layers_wait_for(data: int) -> None:
    step = Step(layers=12, width=4096, hidden=16384, tokens=2048 * data, data=data, model=4, is_recomputed=True)
    scanned, unrolled = (
        {group.axis: group.seconds for group in step.but(is_scanned=flag).compile().estimate("h100_sxm").by("axis")}
        for flag in (True, False)
    )
    assert scanned.keys() == unrolled.keys() == {"", "data", "model"}
    whole = sum(unrolled.values())
    for axis, seconds in scanned.items():
        assert seconds == pytest.approx(unrolled[axis], abs=0.06 * whole)


@pytest.mark.parametrize("is_scanned", [False, True])
def test_each_small_transfer_has_its_latency(is_scanned: bool) -> None:
    def norms(xs: Any) -> Any:
        if is_scanned:
            return sw.map(np.sum, xs)
        return [x.sum() for x in xs]

    rows = sw.ShapeDtypeStruct((100, 64), np.float32)
    xs, spec = (rows, P(None, "d")) if is_scanned else ([sw.ShapeDtypeStruct((64,), np.float32)] * 100, P("d"))
    options: Any = {"in_shardings": spec, "out_shardings": P(), "combine_bytes": 0}
    program = sw.jit(norms, mesh=sw.Mesh({"d": 8}), **options).lower(xs).compile()
    transfers = [row for row in program.estimate("h100_sxm") if row.kind == "transfer"]
    if sum(row.executions for row in transfers) == 100:
        assert program.estimate("h100_sxm").estimate > 100 * transfers[0].seconds
    else:  # combined into one
        assert len(transfers) == 1


def test_fsdp_hides_its_transfers_where_there_is_work() -> None:
    busy = Step(layers=8, width=4096, hidden=16384, tokens=2**17).compile().estimate("h100_sxm")
    idle = Step(layers=8, width=4096, hidden=16384, tokens=2**11).compile().estimate("h100_sxm")
    assert busy.exposed < 0.1 * busy.estimate
    assert idle.exposed > 0.4 * idle.estimate
    assert {group.stream for group in idle.by("stream")} == {"compute", "nvlink"}


def test_known_times() -> None:
    estimate = _projection({"t": 8}).estimate("h100_sxm")
    product = next(row for row in estimate if row.kind == "kernel")
    assert product.bound == "matrix"
    assert product.seconds == pytest.approx(2 * 8192**3 / 8 / 989.17e12 + 1e-6, rel=1e-3)
    (reduction,) = (row for row in estimate if row.kind == "transfer")
    assert reduction.seconds == pytest.approx(reduction.bytes / 450e9 + 6 * 0.6e-6, rel=1e-6)
    assert reduction.exposed == reduction.seconds


@pytest.mark.parametrize("field", ["tokens", "layers", "width", "hidden"])
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_more_work_never_takes_less_time(field: str, data: st.DataObject) -> None:
    step = Step(
        layers=data.draw(st.integers(1, 5)),
        width=64 * data.draw(st.integers(1, 16)),
        hidden=64 * data.draw(st.integers(1, 32)),
        tokens=64 * data.draw(st.integers(1, 200)),
        data=data.draw(st.sampled_from([1, 2, 8, 32])),
        model=data.draw(st.sampled_from([1, 2])),
        is_scanned=data.draw(st.booleans()),
        is_recomputed=data.draw(st.booleans()),
    )
    unit = 1 if field == "layers" else 64
    # The choice may change with the sizes, so that other transfers are sent: all layouts by rows here.
    more = step.but(**{field: getattr(step, field) + unit * data.draw(st.integers(1, 20))})
    before, after = (each.compile().estimate("h100_sxm") for each in (step, more))
    # The choice adds ops and transfers up; other transfers may take less where they overlap.
    is_other = _transfers(before) != _transfers(after)
    for bound in ("lower", "estimate", "upper"):
        assert is_other or getattr(after, bound) >= getattr(before, bound) * (1 - 1e-9)


def _transfers(estimate: Any) -> list[tuple[str, str, str]]:
    return [
        (row.name, row.axes, row.cause) for row in sorted(estimate, key=lambda r: r.start) if row.kind == "transfer"
    ]


_RATES = ["memory.bandwidth", "peak_flops.matrix.bf16", "tiers.0.bandwidth", "tiers.1.bandwidth"]


@settings(max_examples=25, deadline=None)
@given(
    path=st.sampled_from([*_RATES, "launch", "tiers.0.latency", "tiers.1.latency"]),
    by=st.floats(1.01, 10),
    index=st.integers(0, 4),
)
def test_better_hardware_never_takes_longer(path: str, by: float, index: int) -> None:
    program = _compiled(index)
    worse = sw.hardware.load("h100_sxm").to_dict()
    *inner, last = path.split(".")
    node = worse
    for key in inner:
        node = node[int(key)] if isinstance(node, list) else node[key]
    is_rate = path in _RATES
    node[last] = {**node[last], "value": node[last]["value"] / by if is_rate else node[last]["value"] * by}
    better, slower = program.estimate("h100_sxm"), program.estimate(sw.hardware.load({**worse, "name": "worse"}))
    assert slower.estimate >= better.estimate
    assert slower.lower >= better.lower
    assert slower.upper >= better.upper


_PROGRAMS: dict[int, Any] = {}


def _compiled(index: int) -> Any:
    if index not in _PROGRAMS:
        _PROGRAMS[index] = STEPS[index].but(data=16).compile()
    return _PROGRAMS[index]


def test_nothing_depends_on_the_number_of_devices() -> None:
    few, many = (Step(layers=100, width=8192, hidden=32768, tokens=2**20, data=data).compile() for data in (16, 4096))
    assert few.op_count == many.op_count
    assert len(few.estimate("h100_sxm")) == len(many.estimate("h100_sxm"))


def test_loops_of_unknown_length_and_branches() -> None:
    def f(x: Any, n: Any) -> Any:
        _, y = sw.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, np.tanh(c[1])), (np.int32(0), x))
        return sw.cond(n > 3, np.exp, np.sin, y)

    shapes = sw.ShapeDtypeStruct((1024, 1024), np.float32), sw.ShapeDtypeStruct((), np.int32)
    estimate = sw.jit(f, mesh=sw.Mesh({"x": 2}), in_shardings=(P("x"), P())).lower(*shapes).compile().estimate()
    rows = {row.name: row for row in estimate}
    assert (rows["tanh"].executions, rows["exponential"].executions, rows["sine"].executions) == (16, 0.5, 0.5)
    assert any("16 trips" in text for text in estimate.assumptions)
    assert any("branch" in text for text in estimate.assumptions)
    assert sum(row.cost for row in estimate) == pytest.approx(estimate.estimate)


def test_an_estimate_without_work() -> None:
    estimate = (
        sw.jit(lambda x: x, mesh=sw.Mesh({"x": 2})).lower(sw.ShapeDtypeStruct((4,), np.float32)).compile().estimate()
    )
    assert (estimate.lower, estimate.estimate, estimate.upper, estimate.mfu, estimate.hfu) == (0, 0, 0, 0, 0)
    assert estimate.tokens_per_second(8) == estimate.tokens_per_second(np.int64(8)) == float("inf")
    assert "0 ps" in repr(estimate)


def test_views() -> None:
    estimate = _projection({"t": 8}).estimate()
    assert estimate.hardware.name == "h100_sxm"  # of jit(hardware=)
    document = json.loads(estimate.to_json())
    assert document["estimate"] == estimate.estimate
    assert len(document["rows"]) == len(estimate)
    assert len(estimate.to_pandas()) == len(estimate)
    assert "dot_general" in repr(estimate)
    assert "dot_general" in estimate._repr_html_()
    assert "h100_sxm" in estimate.summary()
    assert [row.name for row in estimate.largest(1)] == ["all_reduce"]
    for part in (estimate[:1], estimate.largest(1)):
        assert (part.estimate, part.exposed, part.compute) == (estimate.estimate, estimate.exposed, estimate.compute)
        assert part.hfu == estimate.hfu
        assert part.by("op")[0].share < 1
    long = STEPS[3].but(layers=30).compile().estimate()
    assert "by where" in repr(long)
    assert repr(long).endswith(".rows has every row; .by(…) groups by other columns")


def test_seconds_are_the_estimate() -> None:
    estimate = SMALL.compile().estimate("h100_sxm")
    assert float(estimate) == estimate.seconds == estimate.estimate


@pytest.mark.parametrize("is_scanned", [False, True])
def test_gradients_of_scanned_layers_are_sent_behind_the_loop(is_scanned: bool) -> None:
    def loss(weights: Any, x: Any) -> Any:
        if is_scanned:
            x, _ = sw.scan(lambda h, w: (np.tanh(h @ w), None), x, weights)
        for w in [] if is_scanned else weights:
            x = np.tanh(x @ w)
        return (x * x).sum()

    w, stacked = (sw.ShapeDtypeStruct(shape, np.float32) for shape in ((2048, 2048), (6, 2048, 2048)))
    x = sw.ShapeDtypeStruct((16384, 2048), np.float32)
    options = {"mesh": sw.Mesh({"data": 8}), "in_shardings": (P(), P("data")), "out_shardings": P()}
    weights = stacked if is_scanned else [w] * 6
    estimate = sw.jit(sw.grad(loss), **options).lower(weights, x).compile().estimate("h100_sxm")
    sent = sum(row.total for row in estimate.rows if row.kind == "transfer")
    assert (estimate.exposed > 0.9 * sent) == is_scanned
    assert any("scanned layers" in text for text in estimate.assumptions) == is_scanned


@pytest.mark.parametrize(("tokens", "count"), [(65536, 16), (4096, 1)])
def test_gradients_of_scanned_layers_are_sent_in_trips_that_take_longer(tokens: int, count: int) -> None:
    """What a trip sends is then hidden, for as many bytes; few tokens leave it for one reduction after the loop."""

    def loss(weights: Any, x: Any) -> Any:
        x, _ = sw.scan(lambda h, w: (h + np.dot(np.tanh(np.dot(h, w[0])), w[1]), None), x, weights)
        return (x.astype(np.float32) ** 2).sum()

    shapes = [
        sw.ShapeDtypeStruct(shape, sw.bfloat16) for shape in ((16, 4096, 16384), (16, 16384, 4096), (tokens, 4096))
    ]
    options = {"mesh": sw.Mesh({"data": 8}), "in_shardings": (P(), P("data")), "out_shardings": P()}
    program = sw.jit(sw.grad(loss), hardware="h100_sxm", **options).lower(tuple(shapes[:2]), shapes[2]).compile()
    assert [(row.kind, row.count) for row in program.collectives()] == [("all_reduce", count)] * 2
    assert program.collectives().total_bytes == 2 * 16 * 4096 * 16384 * 2 * 2 * 7 / 8
    estimate = program.estimate()
    sent = sum(row.total for row in estimate.rows if row.kind == "transfer")
    assert estimate.exposed < 0.1 * sent if count > 1 else estimate.exposed > 0.9 * sent


def test_errors() -> None:
    program = _projection({"t": 8})
    with pytest.raises(ValueError, match="estimate: hardware must be a built-in name") as caught:
        program.estimate("h1000")
    assert not isinstance(caught.value, sw.Error)
    assert str(caught.value).count(" (at ") == 1
    with pytest.raises(TypeError, match="estimate: hardware must be"):
        program.estimate(3)
    with pytest.raises(ValueError, match="by: keys must be of"):
        program.estimate().by("lines")
    with pytest.raises(TypeError, match="diff: takes another estimate"):
        program.estimate().diff(program.collectives())
    with pytest.raises(ValueError, match="by: keys must be of"):
        program.estimate().by(["line"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="tokens must be a number"):
        program.estimate().tokens_per_second("many")
    for tokens in (-1, float("nan")):
        with pytest.raises(ValueError, match="tokens must be at least 0"):
            program.estimate().tokens_per_second(tokens)
    for count in (-1, "all"):
        with pytest.raises(TypeError, match="largest: count must be an integer of at least 0"):
            program.estimate().largest(count)  # type: ignore[arg-type]
    node = sw.hardware.load("h100_sxm").to_dict()
    node = sw.hardware.load({**node, "name": "node", "tiers": node["tiers"][:1]})
    with pytest.raises(sw.MeshError, match="node"):
        _projection({"t": 16}).estimate(node)


def _training(weight: Any, is_wide: bool = False) -> Any:
    def step(w: Any, x: Any) -> Any:
        x = x.astype(np.float64) if is_wide else x
        h = np.dot(x, w.astype(x.dtype))
        return (w - 0.1 * np.dot(x.T, h)).astype(np.float32)

    shapes = sw.ShapeDtypeStruct((4096, 4096), np.float32), sw.ShapeDtypeStruct((8192, 4096), np.float32)
    shardings = {"in_shardings": (weight, P("d")), "out_shardings": weight}
    return sw.jit(step, mesh=sw.Mesh({"d": 8}), **shardings).lower(*shapes).compile()


def test_planted_regressions_are_named() -> None:
    good, hardware = _training(P("d")), "h100_sxm"
    before = good.estimate(hardware)
    sw.testing.assert_time(good, seconds_max=before.estimate, hardware=hardware)
    sw.testing.assert_memory(good, bytes_max=good.memory().peak_bytes)
    assert not before.diff(_training(P("d")).estimate(hardware))

    wide = _training(P("d"), is_wide=True)
    difference = before.diff(wide.estimate(hardware), by="line")
    assert difference[0].delta > 0
    assert "test_estimate.py" in difference[0].where
    with pytest.raises(AssertionError, match=r"a step takes .* above"):
        sw.testing.assert_time(wide, seconds_max=1.05 * before.estimate, hardware=hardware)

    replicated = _training(P())
    difference = before.diff(replicated.estimate(hardware))
    assert [row.name for row in difference if row.change == "+"] == ["all_reduce"]
    with pytest.raises(AssertionError, match=r"a device needs .* above"):
        sw.testing.assert_memory(replicated, bytes_max=good.memory().peak_bytes)


def test_a_lost_donation_fails_assert_memory() -> None:
    def update(weights: Any, gradients: Any) -> Any:
        return [w - g for w, g in zip(weights, gradients)]

    shapes = [sw.ShapeDtypeStruct((1024, 1024), np.float32)] * 4
    mesh = sw.Mesh({"d": 8})
    kept, donated = (
        sw.jit(update, mesh=mesh, in_shardings=P("d"), **donation).lower(shapes, shapes).compile()
        for donation in ({}, {"donate_argnums": (0,)})
    )
    sw.testing.assert_memory(donated, bytes_max=donated.memory().peak_bytes)
    with pytest.raises(AssertionError, match="a device needs"):
        sw.testing.assert_memory(kept, bytes_max=donated.memory().peak_bytes)
