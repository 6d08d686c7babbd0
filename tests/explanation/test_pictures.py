# SPDX-License-Identifier: Apache-2.0
"""Pictures and texts of few and of very many devices: one rule for all of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from math import prod
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import NamedSharding, P

MOST_BYTES = 200_000
LEAST_SIDE = 3.0  # pixels of an area with a stroke
DIGIT = 6.2  # pixels of a digit of 11px sans
MESHES = [
    {"x": 8}, {"x": 17}, {"x": 512}, {"x": 4096}, {"x": 100_000}, {"a": 2, "x": 8, "y": 8},
    {"pod": 16, "data": 64, "model": 16}, {"a": 4, "b": 50, "x": 5, "y": 10},
]  # fmt: skip


def id_of(axes: dict[str, int]) -> str:
    return "x".join(map(str, axes.values()))


class Drawn(HTMLParser):
    """The rectangles of each picture, and the labels in them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.pictures: list[tuple[list[tuple[float, ...]], list[tuple[float, float, str]]]] = []
        self._label: tuple[float, float] | None = None
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        values = dict(attrs)
        if tag == "svg":
            self.pictures.append(([], []))
        if tag == "rect":
            self.pictures[-1][0].append(tuple(float(values[name]) for name in ("x", "y", "width", "height")))
        if tag == "text":
            self._label = (
                (float(values["x"]), float(values["y"])) if values.get("text-anchor", "middle") == "middle" else None
            )

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, text: str) -> None:
        if self.open[-1:] == ["text"] and self._label is not None:
            self.pictures[-1][1].append((*self._label, text))


def check(html: str) -> int:
    """That a picture is readable. Returns the number of its rectangles."""
    assert len(html.encode()) <= MOST_BYTES
    drawn = Drawn(html)
    for areas, labels in drawn.pictures:
        assert min((min(area[2:]) for area in areas), default=LEAST_SIDE) >= LEAST_SIDE
        for x, y, text in labels:
            around = [a for a in areas if a[0] <= x <= a[0] + a[2] and a[1] <= y <= a[1] + a[3]]
            assert around, text
            assert min(width for _, _, width, _ in around) >= DIGIT * len(text)
    return sum(len(areas) for areas, _ in drawn.pictures)


@pytest.mark.parametrize("axes", MESHES, ids=id_of)
def test_meshes(axes: dict[str, int]) -> None:
    html = sw.Mesh(axes)._repr_html_()
    assert 1 <= check(html) <= 256
    assert ("each area is" in html) == (max(list(axes.values())[-2:]) > 16)


@pytest.mark.parametrize("axes", MESHES, ids=id_of)
def test_arrays_with_each_dim_split(axes: dict[str, int]) -> None:
    mesh = sw.Mesh(axes)
    names = tuple(axes)
    specs = {P(*names): tuple(2 * size for size in axes.values()), P(None, names): (3, mesh.size), P(): (8,)}
    for spec, shape in specs.items():
        array = sw.device_put(np.zeros(shape, np.int8), NamedSharding(mesh, spec))
        assert 1 <= check(array._repr_html_()) <= 256


@pytest.mark.parametrize("axes", MESHES, ids=id_of)
def test_shardings_are_drawn_as_tiles(axes: dict[str, int]) -> None:
    mesh = sw.Mesh(axes)
    for spec in (P(), P(tuple(axes)), P(None, *axes), P(sw.open(*axes))):
        html = NamedSharding(mesh, spec)._repr_html_()
        assert 1 <= check(html) <= 256
    assert "0-7" in NamedSharding(sw.Mesh({"x": 8}), P())._repr_html_()
    huge = NamedSharding(sw.Mesh({"x": 2**30}), P("x"))
    assert "1073741824 tiles" in huge._repr_html_()
    assert "unreduced over x" in NamedSharding(sw.Mesh({"x": 8}), P(unreduced="x"))._repr_html_()


@pytest.mark.parametrize("axes", MESHES, ids=id_of)
def test_printed_tiles(axes: dict[str, int], capsys: pytest.CaptureFixture[str]) -> None:
    mesh = sw.Mesh(axes)
    shape = tuple(2 * size for size in axes.values())
    sw.debug.visualize_array_sharding(sw.device_put(np.zeros(shape, np.int8), NamedSharding(mesh, P(*axes))))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 34
    assert max(map(len, lines)) <= 120
    counted = re.findall(r" in (\d+) tiles", "\n".join(lines))
    if counted:
        assert sum(map(int, counted)) + sum("[" in line and " in " not in line for line in lines[1:]) == mesh.size


def test_each_device_is_in_one_area() -> None:
    mesh = sw.Mesh({"x": 512})
    array = sw.device_put(np.zeros((1024, 3)), NamedSharding(mesh, P("x")))
    titles = re.findall("<title>(.*?)</title>", array._repr_html_())
    assert titles[0] == "[0:64, 0:3] in 32 tiles on devices 0-31"
    assert titles[-1] == "[960:1024, 0:3] in 32 tiles on devices 480-511"
    assert len(titles) == 16
    cells = re.findall("<title>(.*?)</title>", mesh._repr_html_())
    assert cells[1] == "devices 32-63: x=32-63"


def test_a_mesh_of_device_ids_names_them() -> None:
    ids = list(reversed(range(32)))
    assert "devices 30-31: x=0-1" in sw.Mesh({"x": 32}, ids)._repr_html_()
    many = sw.Mesh({"x": 4096}, list(reversed(range(4096))))
    assert check(many._repr_html_()) == 16


def step(x: Any, w: Any) -> Any:
    return np.tanh(x @ w) @ w


def program(devices: int) -> sw.Program:
    shapes = (
        sw.ShapeDtypeStruct((2 * devices, devices), np.float32),
        sw.ShapeDtypeStruct((devices, devices), np.float32),
    )
    return sw.jit(step, mesh=sw.Mesh({"x": devices}), in_shardings=(P("x"), P(None, "x"))).lower(*shapes).compile()


@pytest.mark.parametrize("devices", [8, 512, 4096, 100_000])
def test_programs(devices: int) -> None:
    compiled = program(devices)
    assert check(compiled._repr_html_()) > 1
    views: list[Callable[[], str]] = [
        compiled.collectives()._repr_html_, compiled.memory()._repr_html_, compiled.work()._repr_html_,
        compiled.choices._repr_html_, compiled.why("x")._repr_html_, compiled._traced._repr_html_,
        compiled._traced.lower()._repr_html_, compiled.as_text, lambda: repr(compiled),
    ]  # fmt: skip
    for view in views:
        text = view()
        assert 0 < len(text) <= MOST_BYTES
        if text.startswith("<div"):
            check(text)


def test_stages_and_functions_have_pictures() -> None:
    function = sw.jit(step, mesh=sw.Mesh({"x": 8}), in_shardings=(P("x"), P(None, "x")), static_argnums=())
    html = function._repr_html_()
    assert check(html) == 8
    assert "step&gt; (x: Any, w: Any)" in html.replace("&#x27;", "")
    assert "in_shardings" in html
    assert "static_argnums" not in html
    x = np.ones((8, 8), np.float32)
    lowered = function.lower(x, x)
    assert "stablehlo.dot_general" in lowered._repr_html_()
    assert "stablehlo.dot_general" in lowered.compile().choices._repr_html_()
    assert "lambda" in sw.jit(lambda x: x)._repr_html_()


def test_annotations_are_marked_in_a_lowered_program() -> None:
    function = sw.jit(lambda x: sw.split(x, 0, "x") * 2, mesh=sw.Mesh({"x": 8}))
    (marked,) = re.findall("<mark.*?</mark>", function.lower(np.ones(8))._repr_html_())
    assert "sdy.sharding_constraint" in marked


def deep(x: Any, layers: int) -> Any:
    for _ in range(layers):
        x = np.tanh(x) * 2
    return x


@pytest.mark.parametrize(("layers", "is_open"), [(3, True), (100, False), (1200, False)])
def test_long_texts_are_folded_and_very_long_ones_cut(layers: int, is_open: bool) -> None:
    function = sw.jit(deep, mesh=sw.Mesh({"x": 4}), in_shardings=(P("x"),), static_argnums=1)
    lowered = function.lower(np.ones(8, np.float32), layers)
    for html in (lowered._repr_html_(), lowered.compile()._repr_html_()):
        assert ("<details open>" in html) == is_open
        assert html.count("<details") == 1
        assert ("more lines: print(" in html) == (layers == 1200)
        check(html)


def test_long_tables_are_folded() -> None:
    shapes = [sw.ShapeDtypeStruct((8, 8), np.float32)] * 60

    def f(x: Any, *ws: Any) -> Any:
        for w in ws:
            x = np.tanh(x @ w)
        return x

    compiled = sw.jit(f, mesh=sw.Mesh({"x": 4}), in_shardings=(P(), *[P("x")] * 60)).lower(shapes[0], *shapes).compile()
    for report in (compiled.collectives(), compiled.memory()):
        assert len(report) > 24
        assert "<details>" in report._repr_html_()
    assert prod(compiled.mesh.axis_sizes) == 4
