# SPDX-License-Identifier: Apache-2.0
"""Section 5 of GShard: what it measured on TPU v3, as ratios and shares, from shapes and a hardware file alone.

Times did not survive, and the rate of a link follows from two published numbers that disagree: 83 GB/s from that of
all-reduces (tpu_v3), 50 GB/s from the bisection of a pod (tpu_v3_50). An all-to-all fills the bisection, and shares of
time are those of the second file. With the first one, three of them are outside of their tolerances; the tests have
what they are. Other networks must not have the paper's numbers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from shardwise.reports import Estimate, EstimateRow
from tests.estimate import gshard
from tests.estimate.gshard import Layers
from tests.estimate.scaling_book import compiled

CORES = [2**i for i in range(4, 12)]  # partitions of figure 9
MIB = 2**20
V3, V3_50 = sw.hardware.load("tpu_v3"), sw.hardware.load("tpu_v3_50")


def network(bandwidth: float, changes: dict[str, Any] | None = None, **tier: Any) -> sw.hardware.Hardware:
    """A TPU v3 with other links between chips, and maybe other changes."""
    chip = {"name": "chip", "topology": "switch", "size": 2, "bandwidth": 4.5e11}
    link = {"name": "ici", "bandwidth": bandwidth, "latency": 1e-6}
    head = {"format": "shardwise.hardware", "version": 1, "name": tier["topology"], "base": "tpu_v3"}
    return sw.hardware.load({**head, "tiers": [chip, {**link, **tier}], **(changes or {})})


def others(bandwidth: float) -> dict[str, sw.hardware.Hardware]:
    return {
        "ring": network(bandwidth, topology="ring", size=1024),
        "star": network(4 * bandwidth, topology="switch"),
        # Dims are rings only where they are those of the whole pod.
        "open slices": network(bandwidth, topology="torus", shape=[32, 32], wraparound={"length": 32}),
    }


OTHERS = others(8.3e10)
OTHERS_50 = others(5e10)


# ---- collectives: section 5.3 ----------------------------------------------------------------------------------------


def transfer(cores: int, function: Callable[[Any], Any], shape: tuple[int, ...], before: P, after: P) -> sw.Program:
    """One collective among some cores."""
    struct = sw.ShapeDtypeStruct(shape, np.float32)
    mesh = sw.Mesh({"core": cores})
    program = compiled(function, struct, mesh=mesh, in_shardings=before, out_shardings=after)
    assert len(program.collectives().rows) == 1
    return program


def all_to_all(cores: int, size: int, hardware: Any) -> float:
    """Seconds in which each core sends ``size`` bytes, a part to each."""
    shape = (cores, size // 4)
    return transfer(cores, lambda x: x, shape, P("core"), P(None, "core")).estimate(hardware).estimate


def growth(hardware: Any, size: int = 8 * MIB) -> float:
    return all_to_all(2048, size, hardware) / all_to_all(16, size, hardware)


def exponent(values: list[float]) -> float:
    """Of the power of the number of cores that fits best."""
    return float(np.polyfit(np.log(CORES), np.log(values), 1)[0])


@pytest.mark.parametrize("hardware", [V3, V3_50], ids=str)
def test_an_all_to_all_grows_with_the_side_of_the_torus(hardware: Any) -> None:
    # V1: 9 times, for 8 and for 32 MB of each partition.
    ratios = [growth(hardware, size) for size in (8 * MIB, 32 * MIB)]
    assert all(7 <= ratio <= 11.5 for ratio in ratios)
    assert ratios[0] == pytest.approx(ratios[1], rel=0.05)
    seconds = [all_to_all(cores, 32 * MIB, hardware) for cores in CORES]
    assert exponent(seconds) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("other", OTHERS)
def test_an_all_to_all_grows_otherwise_in_other_networks(other: str) -> None:
    assert not 7 <= growth(OTHERS[other]) <= 11.5


@pytest.mark.parametrize(("size", "whole"), [(8 * MIB, 1.80), (32 * MIB, 1.25)])
def test_an_all_reduce_does_not_depend_on_the_number_of_partitions(size: int, whole: float) -> None:
    # V3: at most 1.3. What 8 MB take in links depends on the partitions less than that; with a microsecond for each of
    # the 64 links from end to end and back, which the file has from the scaling book, it is 1.8.
    rows = [
        transfer(cores, lambda x: x, (size // 4,), P(unreduced=("core",)), P()).estimate(V3).rows[0] for cores in CORES
    ]
    links = [row.seconds - row.parts["latency"] for row in rows]
    assert max(links) / min(links) <= 1.3
    assert max(row.seconds for row in rows) / min(row.seconds for row in rows) == pytest.approx(whole, abs=0.01)


def test_a_gather_grows_with_the_partitions_and_a_permute_does_not() -> None:
    # V4, with shards of 8 MB.
    gathered, shifted = [], []
    for cores in CORES:
        shape = (cores, 2 * MIB)
        gather = transfer(cores, lambda x: x, shape, P("core"), P())
        shift = transfer(cores, lambda x: np.pad(x[:-1], ((1, 0), (0, 0))), shape, P("core"), P("core"))
        assert gather.collectives().by_kind() == {"all_gather": 1}
        assert shift.collectives().by_kind() == {"collective_permute": 1}
        assert gather.collectives().rows[0].bytes == (cores - 1) * 8 * MIB
        assert shift.collectives().rows[0].bytes == 8 * MIB
        gathered.append(gather.estimate(V3).estimate)
        shifted.append(max(row.seconds for row in shift.estimate(V3).rows if row.kind == "transfer"))
    assert exponent(gathered) == pytest.approx(1, abs=0.05)
    assert exponent(shifted) == pytest.approx(0, abs=0.05)


# ---- a layer of experts and its neighbor: section 5.2 ----------------------------------------------------------------


@cache
def program(cores: int) -> sw.Program:
    return Layers(cores).compiled()


@cache
def estimate(cores: int, hardware: sw.hardware.Hardware = V3_50) -> Estimate:
    return program(cores).estimate(hardware)


def kernels(found: Estimate, *functions: Any) -> list[EstimateRow]:
    """Those of some functions."""
    lines: set[int] = set()
    for function in functions:
        source, first = inspect.getsourcelines(function)
        lines.update(range(first, first + len(source)))
    return [row for row in found.rows if row.kind == "kernel" and row.file == gshard.__file__ and row.line in lines]


def transfers(found: Estimate) -> float:
    """Seconds of dispatch and combine."""
    return sum(row.total for row in found.rows if row.kind == "transfer")


def growth_of_step(hardware: Any, low: int = 128) -> float:
    return estimate(2048, hardware).estimate / estimate(low, hardware).estimate


def test_dispatch_and_combine_are_an_all_to_all_each() -> None:
    for cores in (128, 512, 2048):
        assert program(cores).collectives().by_kind() == {"all_to_all": 2}
        received = 4 * 2 * 2048 * 1024 * (cores - 1) // cores  # two slots of each token, in float32
        assert [row.bytes for row in program(cores).collectives().rows] == [received] * 2


def test_dispatch_grows_with_the_side_of_the_torus() -> None:
    # V2: 3.75 times.
    def ratio(hardware: Any) -> float:
        return transfers(estimate(2048, hardware)) / transfers(estimate(128, hardware))

    assert all(3.4 <= ratio(hardware) <= 4.3 for hardware in (V3, V3_50))
    assert not any(3.4 <= ratio(other) <= 4.3 for other in OTHERS.values())


def test_share_of_dispatch_and_combine() -> None:
    # V5: 16 % with 128 experts, and 36 % with 2048.
    def shares(hardware: Any) -> list[float]:
        found = [estimate(cores, hardware) for cores in (128, 2048)]
        return [transfers(one) / one.estimate for one in found]

    def are_in_tolerance(small: float, large: float) -> bool:
        return 0.11 <= small <= 0.20 and 0.28 <= large <= 0.42

    assert are_in_tolerance(*shares(V3_50))
    assert not any(are_in_tolerance(*shares(other)) for other in OTHERS_50.values())
    assert shares(V3) == pytest.approx([0.105, 0.296], abs=0.002)  # the first one should be 0.11


def test_growth_of_the_time() -> None:
    # V6: 1.7 times.
    assert 1.5 <= growth_of_step(V3_50) <= 1.9
    assert growth_of_step(V3) == pytest.approx(1.42, abs=0.01)  # should be 1.5
    assert not any(1.5 <= growth_of_step(other) <= 1.9 for other in OTHERS_50.values())


def test_share_of_the_roofline() -> None:
    # V7: more than 70 % with 128 experts, and 48 % with 2048. The roofline has the peaks, and what may enter a chip
    # over its four links, wherever it comes from.
    def shares(link: float, hardware: Any) -> list[float]:
        roofline = network(4 * link, {"efficiency": None}, topology="switch")
        small, large = (program(cores).estimate(roofline).lower for cores in (128, 2048))
        assert 1 < large / small <= 1.25
        return [small / estimate(128, hardware).estimate, large / estimate(2048, hardware).estimate]

    small, large = shares(5e10, V3_50)
    assert 0.65 <= small <= 0.85
    assert 0.40 <= large <= 0.55
    assert shares(8.3e10, V3) == pytest.approx([0.782, 0.625], abs=0.002)  # the second one should be 0.55


def test_products_reach_what_the_file_says() -> None:
    # V8: more than 85 % of the peak, in networks and projections.
    (share,) = (number for number in V3.numbers if number.path.startswith("efficiency"))
    assert "GShard" in share.source
    rows = kernels(estimate(2048), Layers.forward, Layers.attention, gshard.feed_forward)
    assert len(rows) == 12
    for row in rows:
        assert row.bound == "matrix"
        assert row.products / row.seconds == pytest.approx(0.85)


@pytest.mark.parametrize("length", [64, 128, 256, 512])
def test_attention_waits_for_memory(length: int) -> None:
    # V9: more than 30 % of the peak.
    found = Layers(128, length=length).compiled().estimate(V3)
    rows = kernels(found, gshard.attended)
    assert len(rows) == 4
    assert {row.bound for row in rows} == {"memory"}


def test_products_of_the_gate() -> None:
    # V10: about twice from 128 to 2048, with the products before and after the experts.
    parts = gshard.gates_of, gshard.dispatched, gshard.combined
    small, large = (kernels(estimate(cores), *parts) for cores in (128, 2048))
    assert len(small) == len(large) == 3
    # Products of 2 N M E + 8 N S M operations.
    flops = [2 * 2048 * 1024 * cores + 8 * 2048 * 2048 * 1024 for cores in (128, 2048)]
    products = [sum(row.products for row in rows) for rows in (small, large)]
    assert products[1] / products[0] == pytest.approx(flops[1] / flops[0], rel=0.01)
    assert 1.2 <= sum(row.seconds for row in large) / sum(row.seconds for row in small) <= 2.5


def test_choices_of_the_gate_grow_with_the_experts() -> None:
    # V11: nothing to speak of with 128 experts, and less than 10 % with 2048.
    small, large = (kernels(estimate(cores), gshard.choices) for cores in (128, 2048))
    assert sum(row.bytes for row in large) / sum(row.bytes for row in small) == pytest.approx(16, abs=1)
    assert sum(row.cost for row in small) / estimate(128).estimate < 0.01
    assert 0.02 < sum(row.cost for row in large) / estimate(2048).estimate < 0.10


# ---- tables 2 and 3 --------------------------------------------------------------------------------------------------

# Experts of a layer, as many as cores; layers; 1e9 weights; steps/s; tokens of a batch; core years and days of 1e12
# tokens.
TRAINED = [
    (2048, 36, 600, 0.72, 4e6, 22.4, 4.0), (2048, 12, 200, 2.15, 4e6, 7.5, 1.4), (512, 36, 150, 1.05, 1e6, 15.5, 11.0),
    (512, 12, 50, 3.28, 1e6, 4.9, 3.5), (128, 36, 37, 0.67, 1e6, 6.1, 17.3), (128, 12, 12.5, 2.16, 1e6, 1.9, 5.4),
]  # fmt: skip


@pytest.mark.parametrize(("cores", "layers", "weights", "rate", "batch", "years", "days"), TRAINED)
def test_arithmetic_of_the_tables(
    cores: int, layers: int, weights: float, rate: float, batch: float, years: float, days: float
) -> None:
    found = 1e12 / (batch * rate) / 86400
    assert found == pytest.approx(days, abs=0.06)
    assert cores * found / 365.25 == pytest.approx(years, rel=0.015)
    # Half of the layers have experts; what the table names is rounded down.
    experts = sum(
        int(np.prod(x.shape)) for name, x in Layers(cores).weights()["experts"].items() if name in ("wi", "wo")
    )
    assert experts == 2 * 1024 * 8192 * cores
    assert weights <= experts * layers // 2 / 1e9 <= 1.05 * weights


@pytest.mark.parametrize(("large", "small"), [(TRAINED[0], TRAINED[2]), (TRAINED[1], TRAINED[3])])
def test_cost_of_a_token(large: tuple[float, ...], small: tuple[float, ...]) -> None:
    # 1.46 and 1.53 times from 512 to 2048 experts, where a core has as many tokens. These are whole steps.
    costs = [cores / (rate * batch) for cores, _, _, rate, batch, _, _ in (large, small)]
    assert growth_of_step(V3_50, 512) == pytest.approx(costs[0] / costs[1], rel=0.2)


# ---- devices in an order that fits the network -----------------------------------------------------------------------


def test_the_order_of_devices_decides_which_axis_is_inside() -> None:
    # 2 x 4 devices in nodes of four: the axis of partial sums should be inside, whichever has the second place.
    nodes = network(5e10, topology="fat_tree").to_dict()
    nodes["tiers"][0]["size"] = 4
    hardware = sw.hardware.load({**nodes, "name": "nodes of four"})

    def seconds(axes: dict[str, int], ids: np.ndarray) -> float:
        product = sw.jit(
            lambda x, w: sw.shard(np.dot(x, w), P("data", unreduced=("model",))),
            mesh=sw.Mesh(axes, device_ids=[int(i) for i in ids.flat]), hardware=hardware,
            in_shardings=(P("data", "model"), P("model")), out_shardings=P("data"),
        )  # fmt: skip
        x, w = (sw.ShapeDtypeStruct((8192, 8192), np.float32) for _ in range(2))
        multiplied = product.lower(x, w).compile()
        assert multiplied.collectives().by_kind() == {"all_reduce": 1}
        return transfers(multiplied.estimate())

    inside = np.arange(8).reshape(2, 4)  # of [data, model]
    across = np.arange(8).reshape(4, 2).T
    good, bad = (seconds({"data": 2, "model": 4}, ids) for ids in (inside, across))
    assert good < 0.5 * bad
    for ids, expected in ((inside.T, good), (across.T, bad)):
        assert seconds({"model": 4, "data": 2}, ids) == pytest.approx(expected)
