# SPDX-License-Identifier: Apache-2.0
"""sw.hardware: built-in files equal the tables they cite, users' files are read or refused, times are monotone."""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import shardwise as sw
from shardwise.hardware import Hardware

FILES = Path(__file__).parents[2] / "cpp" / "shardwise" / "cost" / "hardware"
NAMES = sw.hardware.list()
GPUS = ("a100_40", "a100_80", "b200", "gb200_nvl72", "h100_sxm", "h200")
TPUS = ("tpu_v3", "tpu_v4", "tpu_v5e", "tpu_v5p", "tpu_v6e")


def values(name: str) -> dict[str, Any]:
    return {number.path: number.value for number in sw.hardware.load(name).numbers}


# ---- each number equals its source -----------------------------------------------------------------------------------


def test_each_file_is_listed_and_has_its_name() -> None:
    assert NAMES[0] == "default"
    assert sorted(NAMES) == sorted(path.stem for path in FILES.glob("*.json"))
    for name in NAMES:
        assert sw.hardware.load(name).name == name


@pytest.mark.parametrize("name", NAMES)
def test_each_number_has_a_source_and_a_license(name: str) -> None:
    numbers = sw.hardware.load(name).numbers
    assert len(numbers) > 5
    assert [number.path for number in numbers if not number.source or not number.license] == []


# The scaling book, text of 2025-02: pod, HBM bytes, HBM bytes/s, bf16 and int8 FLOP/s, ICI bytes/s of a link one way.
BOOK_TPUS = {
    "tpu_v4": ([16, 16, 16], 32e9, 1.2e12, 2.75e14, 2.75e14, 4.5e10),
    "tpu_v5p": ([16, 20, 28], 96e9, 2.8e12, 4.59e14, 9.18e14, 9e10),
    "tpu_v5e": ([16, 16], 16e9, 8.1e11, 1.97e14, 3.94e14, 4.5e10),
    "tpu_v6e": ([16, 16], 32e9, 1.6e12, 9.2e14, 1.84e15, 9e10),
}


@pytest.mark.parametrize("name", BOOK_TPUS)
def test_tpus_equal_the_table_of_the_scaling_book(name: str) -> None:
    found = values(name)
    keys = ("tiers.ici.shape", "memory.capacity", "memory.bandwidth", "peak_flops.matrix.bf16", "peak_flops.matrix.i8")
    assert tuple(found[key] for key in (*keys, "tiers.ici.bandwidth")) == BOOK_TPUS[name]
    assert found["tiers.ici.latency"] == 1e-6
    chips = {"tpu_v4": 4, "tpu_v5p": 4, "tpu_v5e": 8, "tpu_v6e": 8}[name]  # of a host, with 2.5e10 bytes/s
    assert found["tiers.dcn.bandwidth"] == 2.5e10 // chips


def test_rings_close_as_the_scaling_book_says() -> None:
    for name in ("tpu_v5e", "tpu_v6e"):
        assert values(name)["tiers.ici.wraparound"] == {"length": 16}


def test_rings_of_cubes_close_as_the_documentation_of_the_cloud_says() -> None:
    for name in ("tpu_v4", "tpu_v5p"):
        assert values(name)["tiers.ici.wraparound"] == {"multiple_of": 4, "every_dim": True}
        hardware = sw.hardware.load(name)
        line, ring = (
            hardware.collective_time("all_gather", 2**23, sw.Mesh({"x": x, "y": y, "z": 4}), "z")
            for x, y in [(2, 2), (4, 4)]
        )
        assert line.tiers[0].seconds == pytest.approx(2 * ring.tiers[0].seconds)
        assert (line.latency, ring.latency) == (3e-6, 2e-6)


def test_tpu_v3_equals_the_documentation_of_the_cloud() -> None:
    # Of a chip: 123 TFLOP/s, 32 GiB, 900 GB/s. Of a pod of 1024 chips: all-reduce 340 TB/s, bisection 6.4 TB/s.
    found = values("tpu_v3")
    assert found["peak_flops.matrix.bf16"] == 123e12 / 2
    assert found["memory.capacity"] == 32 * 2**30 / 2
    assert found["memory.bandwidth"] == 900e9 / 2
    assert found["tiers.chip.size"] == 2
    assert found["tiers.ici.shape"] == [32, 32]
    assert found["tiers.ici.bandwidth"] == round(340e12 / 1024 / 4, -9) == 83e9
    assert values("tpu_v3_50")["tiers.ici.bandwidth"] == 6.4e12 / (64 * 2) == 50e9
    changed = {path for path, value in values("tpu_v3_50").items() if value != found[path]}
    assert changed == {"tiers.ici.bandwidth"}


# XLA, xla/backends/gpu/target_config/specs: cores, GHz of matrix and of vector units, multiply-adds per clock of one of
# the four matrix units of a core by dtype, bytes/s and bytes of memory.
H100_UNITS = {"f8E4M3FN": 1024, "f8E5M2": 1024, "i8": 1024, "bf16": 512, "f16": 512, "tf32": 256, "f64": 32}
B200_UNITS = {"f4E2M1FN": 4096, "f8E4M3FN": 2048, "f8E5M2": 2048, "i8": 2048, "bf16": 1024, "f16": 1024, "tf32": 512}
XLA_SPECS: dict[str, tuple[int, str, str, dict[str, int], int, int]] = {
    "h100_sxm": (132, "1.8295201", "1.98", H100_UNITS, 3352320000000, 84942979072),
    "h200": (132, "1.8295201", "1.98", H100_UNITS, 4800000000000, 151397597184),
    "b200": (148, "1.8353101", "1.965", {**B200_UNITS, "f64": 16}, 7672320000000, 191514411008),
    "gb200_nvl72": (152, "1.9259081", "2.062", {**B200_UNITS, "f64": 16}, 7928064000000, 197897748480),
}


@pytest.mark.parametrize("name", XLA_SPECS)
def test_gpus_equal_the_specs_of_xla(name: str) -> None:
    cores, matrix_clock, vector_clock, units, bandwidth, capacity = XLA_SPECS[name]
    found = values(name)
    for dtype, operations in units.items():
        clock = vector_clock if dtype == "f64" else matrix_clock
        assert found[f"peak_flops.matrix.{dtype}"] == round(cores * 4 * operations * 2 * Fraction(clock) * 10**9), dtype
    for dtype, operations in {"f32": 128 * 2, "f64": 64 * 2, "i32": 64}.items():
        assert found[f"peak_flops.vector.{dtype}"] == round(cores * operations * Fraction(vector_clock) * 10**9), dtype
    assert found["memory.bandwidth"] == bandwidth
    assert found["memory.capacity"] == capacity
    # CUDA C++ Programming Guide: 16 special functions per clock and core.
    assert found["peak_flops.transcendental.f32"] == round(cores * 16 * Fraction(vector_clock) * 10**9)


# Bytes: NVIDIA/nccl issues 1685 (4.34 GB) and 964 (688 MB); LargeWorldModel/LWM issue 60 (530.00M).
RESERVED = {"h100_sxm": 4.34e9, "a100_40": 688e6, "a100_80": 688e6, "tpu_v3": 530 * 2**20}
BASES = {"default": "h100_sxm", "tpu_v3_50": "tpu_v3"}
# GiB of a device that XLA has for programs, by its messages when they do not fit.
XLA_LEAVES = {"tpu_v3": 15.48, "tpu_v4": 30.75, "tpu_v5e": 15.75, "tpu_v5p": 95.74, "tpu_v6e": 31.25}


@pytest.mark.parametrize("name", sw.hardware.list())
def test_reserved_bytes_are_those_that_a_source_states(name: str) -> None:
    hardware = sw.hardware.load(name)
    assert hardware.reserved_bytes == RESERVED.get(BASES.get(name, name), 0)
    if name in XLA_LEAVES:
        assert (hardware.memory_bytes - hardware.reserved_bytes) / 2**30 <= XLA_LEAVES[name] + 0.005
    if name == "tpu_v3":
        assert round((hardware.memory_bytes - hardware.reserved_bytes) / 2**30, 2) == XLA_LEAVES[name]


@pytest.mark.parametrize(
    ("name", "bandwidth", "capacity"), [("a100_40", 1555.2, 42331013120), ("a100_80", 2039.04, 85100068864)]
)
def test_a100_equals_calculon_xla_and_the_datasheet(name: str, bandwidth: float, capacity: int) -> None:
    found = values(name)
    assert (found["memory.bandwidth"], found["memory.capacity"]) == (bandwidth * 1e9, capacity)  # XLA
    matrix = {key.rpartition(".")[2]: value / 1e12 for key, value in found.items() if ".matrix." in key}
    # Calculon: 312 TFLOP/s of float16, 78 of vectors, network of 25 GB/s; NVIDIA's datasheet: the others.
    assert matrix == {"i8": 624, "bf16": 312, "f16": 312, "tf32": 156, "f64": 19.49184, "f32": 19.49184}
    assert found["peak_flops.vector.f16"] == 78e12
    assert found["peak_flops.vector.f32"] == 108 * 64 * 2 * 1.41e9
    assert found["tiers.infiniband.bandwidth"] == 25e9


def test_links_of_gpus_equal_the_tables_of_the_scaling_book() -> None:
    # Egress of a GPU, GPUs of a node, egress of a node.
    table = {"h100_sxm": (450e9, 8, 400e9), "h200": (450e9, 8, 400e9), "b200": (900e9, 8, 400e9)}
    for name, (gpu, size, node) in {**table, "gb200_nvl72": (900e9, 72, 3600e9)}.items():
        found = values(name)
        assert (found["tiers.nvlink.bandwidth"], found["tiers.nvlink.size"]) == (gpu, size)
        assert found["tiers.infiniband.bandwidth"] == node / size
    assert values("a100_80")["tiers.nvlink.bandwidth"] == 300e9
    for name in GPUS:  # NCCL, tuning.cc: 0.6 and 2.7 us for a hop of a ring; XLA: 1 us for a launch
        found = values(name)
        assert (found["tiers.nvlink.latency"], found["tiers.infiniband.latency"]) == (6e-7, 2.7e-6)
        assert found["launch"] == 1e-6


def test_float32_products() -> None:
    for name in GPUS:  # on the vector unit, if their precision is not DEFAULT
        found = values(name)
        assert found["peak_flops.matrix.f32"] == found["peak_flops.vector.f32"]
        assert sw.hardware.load(name).default_dot == "tf32"
        assert sw.hardware.load(name).fused_attention
    for name in TPUS:  # six products of bfloat16
        found = values(name)
        assert found["peak_flops.matrix.f32"] == found["peak_flops.matrix.bf16"] // 6
        assert sw.hardware.load(name).default_dot == "bf16"


def test_default_is_an_h100_without_launch_and_latency() -> None:
    found, h100 = values("default"), values("h100_sxm")
    rates = {path for path in h100 if path.startswith(("peak_flops", "memory"))}
    assert {path: found[path] for path in rates} == {path: h100[path] for path in rates}
    assert found["launch"] == 0
    node, network = sw.hardware.load("default").tiers
    assert (node.size, node.bandwidth, node.latency) == (8, 450e9, 0)
    assert (network.size, network.bandwidth, network.latency) == (None, 50e9, 0)


# ---- reading -------------------------------------------------------------------------------------------------------


def file_of(**parts: Any) -> dict[str, Any]:
    return {"format": "shardwise.hardware", "version": 1, "name": "mine", "base": "h100_sxm", **parts}


def test_a_file_states_what_differs_from_its_base(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(file_of(memory={"capacity": 4e10}, launch=5e-6)))
    mine, h100 = sw.hardware.load(path), sw.hardware.load("h100_sxm")
    assert mine == sw.hardware.load(str(path))
    assert mine.memory_bytes == 40_000_000_000
    assert mine.memory_bandwidth == h100.memory_bandwidth
    assert mine.launch == 5e-6
    assert mine.tiers == h100.tiers
    assert mine.name == "mine"


@pytest.mark.parametrize("name", NAMES)
def test_a_dict_is_read_back(name: str) -> None:
    hardware = sw.hardware.load(name)
    again = sw.hardware.load(json.loads(json.dumps(hardware.to_dict())))
    assert again == hardware
    assert hash(again) == hash(hardware)
    assert again.numbers == hardware.numbers


def itself() -> dict[str, Any]:
    document = file_of()
    document["memory"] = {"capacity": document}
    return document


def nested(depth: int) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for _ in range(depth):
        document = {"a": document}
    return document


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (file_of(launch=-1), sw.ParseError, "hardware.load: launch must be a number of seconds of at least 0, got -1"),
        (file_of(launch=1e308), sw.ParseError, "hardware.load: launch must be below 4.6e6 seconds, got 1e+308"),
        (file_of(launch=1e-13), sw.ParseError, "hardware.load: launch must be 0 or at least 1e-12, got 1e-13"),
        (file_of(base="h101"), sw.ParseError, 'hardware.load: base must be the name of a built-in file, got "h101"'),
        (file_of(tiers=[]), sw.ParseError, "hardware.load: tiers must have a tier at least"),
        (file_of(name=3), sw.ParseError, "hardware.load: name must be a string, got number"),
        (file_of(memory={"capacity": {}}), sw.ParseError, 'hardware.load: memory.capacity must have "value"'),
        ({}, sw.ParseError, 'hardware.load: the document must have "format"'),
        (file_of(launch=float("nan")), ValueError, "hardware.load: launch must be finite, got nan"),
        (file_of(tiers=[{"a": -np.inf}]), ValueError, "hardware.load: tiers[0].a must be finite, got -inf"),
        (file_of(launch=object()), TypeError, "hardware.load: launch must be a value that JSON supports, got object"),
        (file_of(name=b"x"), TypeError, "hardware.load: name must be a value that JSON supports, got bytes b'x'"),
        (file_of(launch=1j), TypeError, "hardware.load: launch must be a value that JSON supports, got complex 1j"),
        (file_of(launch=10**5000), ValueError, "hardware.load: launch must fit in 64 bits, got an integer of more"),
        (file_of(name="\udc80"), ValueError, "hardware.load: name must be text that UTF-8 supports, got '\\udc80'"),
        (file_of(memory={3: 1}), TypeError, "hardware.load: memory must have strings as keys, got int 3"),
        (file_of(memory={"\udc80": 1}), ValueError, "hardware.load: memory must have keys that UTF-8 supports"),
        (itself(), ValueError, "hardware.load: memory.capacity must not contain itself"),
        (nested(100_000), ValueError, "a.a must be nested at most 64 deep"),
        ("H100", FileNotFoundError, "got 'H100'; did you mean 'h100_sxm'? sw.hardware.list() returns the names"),
        ("TPU-v5e", FileNotFoundError, "got 'TPU-v5e'; did you mean 'tpu_v5e'? sw.hardware.list() returns the names"),
        ("none/such.json", FileNotFoundError, "the path of a file, got 'none/such.json'; there is no such file"),
        ("h100.json", FileNotFoundError, "the path of a file, got 'h100.json'; there is no such file"),
        (
            "\udc80",
            FileNotFoundError,
            "must be a built-in name or the path of a file, got '\\\\udc80'; sw.hardware.list()",
        ),
        ("a\0b", FileNotFoundError, "must be a built-in name or the path of a file, got 'a\\x00b'"),
        ("/dev", IsADirectoryError, "the path of a file, got '/dev'; this is a directory"),
        ("/dev/null", ValueError, "the path of a file, got '/dev/null'; this is a device or a pipe"),
        (3, TypeError, "hardware.load: takes a name, a path or a dict, got int 3"),
        ("", FileNotFoundError, "must be a built-in name or the path of a file, got ''; sw.hardware.list() returns"),
    ],
)
def test_an_error_names_what_must_hold(source: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)) as caught:
        sw.hardware.load(source)
    assert len(str(caught.value)) < 500
    assert not re.match(r"\d+:\d+: ", str(caught.value)), "a dict has no lines"
    assert re.search(rf"\(at [^() ]*{Path(__file__).name}:\d+\)$", str(caught.value))


def test_a_long_name_is_shortened() -> None:
    with pytest.raises(FileNotFoundError, match=r"got 'x{60}\.\.\.x{60}'") as caught:
        sw.hardware.load("x" * 100_000)
    assert len(str(caught.value)) < 300


def test_what_names_a_file_may_be_bytes_or_a_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(file_of()))
    mine = sw.hardware.load(path)
    assert mine == sw.hardware.load(os.fsencode(path)) == sw.hardware.load(str(path))
    assert sw.hardware.load(mine) is mine
    odd = tmp_path / os.fsdecode(b"\xff.json")
    odd.write_bytes(b"{}")
    with pytest.raises(sw.ParseError, match=re.escape('\\udcff.json: the document must have "format"')):
        sw.hardware.load(odd)


def test_an_error_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    for text, message in [
        (b'{"format": ', "1:12: "),
        (b"\xff\xfe", "1:1: "),
        (b"[" * 100_000, "1:65: "),
        (b"[" * 100_000, "brackets must be nested at most 64 deep"),
        (b" " * (2**24 + 1), "must have at most 16 MiB"),
        (json.dumps(file_of(tiers=[{"name": "a"}])).encode(), 'tiers[0] must have "topology"'),
        (json.dumps(file_of(launch=-1), indent=1).encode(), "6:2: "),
    ]:
        path.write_bytes(text)
        with pytest.raises(sw.ParseError, match=re.escape(message)) as caught:
            sw.hardware.load(path)
        assert str(path)[-40:] in str(caught.value)


# The time is linear in the keys; comparing each with all others takes 11 s.
def test_many_keys_are_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    sources = {f"source_{i}": {"title": "x", "license": "y"} for i in range(32_000)}
    path.write_text(json.dumps(file_of(sources=sources)))
    start = time.perf_counter()
    assert sw.hardware.load(path).name == "mine"
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize("name", ["default", "tpu_v4"])
def test_copies_are_equal(name: str) -> None:
    hardware = sw.hardware.load(name)
    own = sw.hardware.load({**hardware.to_dict(), "name": "own", "launch": 3e-6})
    for each in (hardware, own):
        copies = (copy.copy(each), copy.deepcopy(each), pickle.loads(pickle.dumps(each)))
        assert all(again == each and hash(again) == hash(each) for again in copies)
    assert pickle.loads(pickle.dumps(hardware)).is_built_in


def test_a_key_that_null_removes_stays_removed() -> None:
    mine = sw.hardware.load(file_of(launch=None))
    assert mine.launch == 0
    assert sw.hardware.load(mine.to_dict()) == mine


def test_hardware_is_loaded_not_made() -> None:
    with pytest.raises(TypeError, match=re.escape('sw.hardware.load("h100_sxm") reads one')):
        Hardware()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.data())
def test_any_value_anywhere_is_read_or_refused_with_its_place(data: st.DataObject) -> None:
    document = json.loads(json.dumps(sw.hardware.load(data.draw(st.sampled_from(NAMES))).to_dict()))
    node: Any = document
    while True:
        key = data.draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
        if not isinstance(node[key], (dict, list)) or not node[key] or data.draw(st.booleans()):
            node[key] = data.draw(json_values)
            break
        node = node[key]
    try:
        hardware = sw.hardware.load(document)
    except ValueError as error:
        refusal = str(error)
    else:
        refusal = "hardware.load: "
        assert hardware.numbers
        assert repr(hardware)
    assert refusal.startswith("hardware.load: ")


# ---- what it says --------------------------------------------------------------------------------------------------


def test_repr_and_html_show_rates_and_sources() -> None:
    h100 = sw.hardware.load("h100_sxm")
    memory = "memory 3.35 TB/s and 79.11 GiB"
    assert repr(h100) == (f"Hardware('h100_sxm': bf16 989 TFLOP/s, {memory}, nvlink 8 x 450 GB/s, infiniband 50 GB/s)")
    html = h100._repr_html_()
    assert "memory.bandwidth" in html
    assert "Apache-2.0" in html


def test_peaks_of_dtypes_that_a_file_does_not_list() -> None:
    a100, v4 = sw.hardware.load("a100_80"), sw.hardware.load("tpu_v4")
    assert a100.peak("matrix", "float8_e5m2") == a100.peak("matrix", "float16")
    assert v4.peak("vector", "float64") == v4.peak("vector", "float32") // 2
    assert v4.peak("transcendental", "float32") == v4.peak("vector", "float32")
    assert v4.peak("matrix", "int4") == v4.peak("matrix", "int8")
    h100 = sw.hardware.load("h100_sxm")
    assert h100.peak("vector", "int64") == h100.peak("vector", "int32") / 2
    assert h100.peak("matrix", "complex64") == h100.peak("matrix", "float32")
    with pytest.raises(
        ValueError, match=r"Hardware\.peak: unit must be matrix, vector or transcendental, got 'tensor'"
    ):
        a100.peak("tensor", "float32")
    with pytest.raises(sw.DTypeError, match="dtype must be a NumPy dtype"):
        a100.peak("matrix", "half-precision")


def test_peaks_by_the_rows_of_the_file() -> None:
    h100 = sw.hardware.load("h100_sxm")
    for path, value in values("h100_sxm").items():
        if path.startswith("peak_flops."):
            _, unit, row = path.split(".")
            assert h100.peak(unit, row) == value
    assert h100.peak("matrix", "bf16") == h100.peak("matrix", "bfloat16")
    assert h100.peak("matrix", "i8") == h100.peak("matrix", "int8")  # as in the file, not as in NumPy
    for unit, name in [("vector", "tf32"), ("matrix", "TF32"), ("matrix", "\udc80"), ("matrix", "")]:
        with pytest.raises(sw.DTypeError, match=r"Hardware\.peak: dtype must be a NumPy dtype"):
            h100.peak(unit, name)


MESH = sw.Mesh({"x": 8, "y": 4})


def test_times_are_numbers_of_seconds() -> None:
    h100 = sw.hardware.load("h100_sxm")
    inside, across = (h100.collective_time("all_gather", 2**24, MESH, axis) for axis in ("y", "x"))
    assert float(inside) == inside.seconds
    assert inside < across
    assert across >= inside
    assert inside <= inside.seconds
    assert across > 1e-6
    assert max([inside, across, inside]) is across
    both = sum([inside, across], start=inside + across)
    assert float(both) == pytest.approx(2 * (inside.seconds + across.seconds))
    assert sum([inside]) is inside
    both = inside + across
    assert float(both) == pytest.approx(inside.seconds + across.seconds)
    assert [tier.name for tier in both.tiers] == ["nvlink", "infiniband"]
    assert both.tiers[0].bytes == inside.tiers[0].bytes + across.tiers[0].bytes
    wrong: list[Callable[[Any], Any]] = [lambda time: time + 1, lambda time: time < "1", lambda time: "1" + time]
    for operation in wrong:
        with pytest.raises(TypeError):
            operation(inside)


# A dim of the torus that four groups share is slower than the other dim, and than both together by their rates.
def test_a_larger_group_gathers_no_faster() -> None:
    v5e, mesh = sw.hardware.load("tpu_v5e"), sw.Mesh({"x": 4, "y1": 2, "y2": 2, "z": 4})
    fast, slow, both = (v5e.collective_time("all_gather", 2**24, mesh, axes) for axes in ("y1", "y2", ["y1", "y2"]))
    assert fast < slow < both
    assert slow.tiers[0].seconds == both.tiers[0].seconds == both.overlapped - both.latency
    assert slow.tiers[0].seconds == pytest.approx(4 * 2**24 / 45e9)


def test_times_follow_axes_sub_axes_and_device_ids() -> None:
    h100 = sw.hardware.load("h100_sxm")

    def tiers(axes: Any, mesh: sw.Mesh = MESH) -> list[str]:
        return [tier.name for tier in h100.collective_time("all_gather", 1024, mesh, axes).tiers]

    assert tiers("y") == tiers(["y"]) == ["nvlink"]
    assert tiers("x") == ["nvlink", "infiniband"]
    assert tiers([sw.sub("x", pre=1, size=4)]) == ["infiniband"]
    assert tiers([]) == []
    swapped = sw.Mesh({"x": 8, "y": 4}, device_ids=[y * 8 + x for x in range(8) for y in range(4)])
    assert tiers("x", swapped) == ["nvlink"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("gather", 1, MESH, "x"), ValueError, "kind must be all_gather, reduce_scatter"),
        (("all_gather", -1, MESH, "x"), ValueError, "nbytes must be an integer of at least 0 and below 2^63, got -1"),
        (("all_gather", 2**63, MESH, "x"), ValueError, "nbytes must be an integer of at least 0 and below 2^63"),
        (("all_gather", 1.5, MESH, "x"), ValueError, "nbytes must be an integer of at least 0 and below 2^63, got 1.5"),
        (("all_gather", 1, "mesh", "x"), TypeError, "mesh must be a Mesh"),
        (("all_gather", 1, MESH, None), TypeError, "axes must be a mesh axis, or several, got NoneType None"),
        (("all_gather", 1, MESH, 5), TypeError, "axes must be a mesh axis, or several"),
        (("all_gather", 1, MESH, [3]), TypeError, "axes must be names of mesh axes"),
        (("all_gather", 1, MESH, "z"), sw.ShardingError, "z"),
        (("all_gather", 1, MESH, ["x", "x"]), sw.ShardingError, "axes must not overlap"),
    ],
)
def test_a_wrong_argument_is_named(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        sw.hardware.load("default").collective_time(*arguments)


def test_a_mesh_larger_than_the_tiers_is_refused() -> None:
    node = sw.hardware.load(file_of(tiers=[{"name": "n", "topology": "switch", "size": 8, "bandwidth": 1e11}]))
    with pytest.raises(sw.MeshError, match="its tiers of links join at most 8 devices, got 32 devices of @mesh"):
        node.collective_time("all_gather", 1, MESH, "x")


KINDS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "collective_permute", "exchange", "shift", "chain")
sizes = st.integers(0, 2**62)


@given(st.sampled_from(NAMES), st.sampled_from(KINDS), st.integers(1, 2**31), st.integers(1, 2**31), sizes, sizes)
def test_more_bytes_never_take_less_time(name: str, kind: str, x: int, y: int, nbytes: int, more: int) -> None:
    hardware, mesh = sw.hardware.load(name), sw.Mesh({"x": x, "y": y})
    compared = 0
    for axes in (["x"], ["y"], ["x", "y"]):
        try:
            longer = hardware.collective_time(kind, max(nbytes, more), mesh, axes)
        except OverflowError:
            continue
        compared += 1
        time = hardware.collective_time(kind, min(nbytes, more), mesh, axes)
        assert 0 <= time.overlapped <= time.seconds * (1 + 1e-9)
        assert time.seconds <= longer.seconds
        assert all(tier.bytes < 2**62 for tier in longer.tiers)
    assert compared == 3 or max(nbytes, more, 1) * x * y >= 2**40


@pytest.mark.parametrize("nbytes", [2**61, 2**62, 2**63 - 1])
def test_what_does_not_fit_is_refused(nbytes: int) -> None:
    mesh = sw.Mesh({"x": 8})
    rule = "collective_time: what a device receives must be below 2^62 bytes, and take less than 2^62 ps (53 days)"
    with pytest.raises(OverflowError, match=re.escape(f"{rule}, got all_gather of {nbytes} bytes")):
        sw.hardware.load("h100_sxm").collective_time("all_gather", nbytes, mesh, "x")
    sw.hardware.load("h100_sxm").collective_time("all_gather", 2**55, mesh, "x")
