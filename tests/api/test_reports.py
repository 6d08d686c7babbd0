# SPDX-License-Identifier: Apache-2.0
"""Ledgers, explanations, source lines, assertions and pictures."""

from __future__ import annotations

import io
import json
import re
import sys
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import shardwise as sw
from shardwise import P
from shardwise.reports import CollectiveRow, Ledger
from shardwise.reports.explanations import Explanation
from shardwise.reports.ledger import ledger_of
from shardwise.testing import assert_collectives, assert_matches_unpartitioned
from shardwise.user_code import sources
from shardwise.viz import array_html, graph_svg, mesh_html, program_html

MESH = sw.Mesh({"data": 4, "model": 2})
ROW: dict[str, Any] = {
    "kind": "all_reduce", "axes": '{"model"}', "group_size": 2, "bytes": 8192.0, "shape": [32, 64], "dtype": "float32",
    "count": 3, "file": "train.py", "line": 31, "cause": "reduction in dot_general", "name": "h",
    "of a later version": 1,
}  # fmt: skip
STEP = {"name": "stablehlo.tanh", "location": "train.py:10", "from": "operand 0 dim 0", "to": "result 0 dim 0",
        "factor": "i", "round": 2, "priority": 1, "value": ""}  # fmt: skip
AXIS: dict[str, Any] = {
    "axis": '"data"', "dim": 0, "origin": "argument 0", "location": "train.py:8", "name": "x", "path": [STEP],
}  # fmt: skip
LOST: dict[str, Any] = {
    "axis": '"model"', "dim": 1, "op": "dot_general", "location": "train.py:9", "reason": "dim is closed",
    "rule": "closed dims take no further axes", "winner": [],
    "closed_by": {"origin": "argument 0", "location": "train.py:8", "name": "x"}, "value": "",
}  # fmt: skip
VALUE: dict[str, Any] = {
    "name": "h", "file": "train.py", "line": 10, "type": "tensor<16x64xf32>", "sharding": '[{"data"}, {}]',
    "axes": [AXIS], "lost": [LOST], "suggestion": "",
    "to_change": None, "op": "stablehlo.tanh", "index": 0, "strategy": "aggressive",
    "conservative": False, "called_at": [], "counterfactuals": None,
}  # fmt: skip
WITHOUT: dict[str, Any] = {
    "origin": "argument 0", "location": "train.py:8", "name": "x", "sharding": "[{}, {}]", "others": 3, "why_not": "",
}  # fmt: skip
KEPT = {**WITHOUT, "sharding": "", "others": 0, "why_not": "the value exists only because of it"}


def dot(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    x = sw.shard(x, P("data", "model"))
    h = x @ w
    return np.tanh(h)


def dot_program() -> sw.Program:
    return sw.jit(dot, mesh=MESH).lower(np.ones((8, 4), np.float32), np.ones((4, 6), np.float32)).compile()


# ---- ledgers --------------------------------------------------------------------------------------------------------


def test_ledger_is_data_text_table_and_html() -> None:
    ledger = ledger_of([ROW, {**ROW, "kind": "all_gather", "bytes": 100.0, "count": 1}])
    assert ledger.total_bytes == 3 * 8192 + 100
    assert ledger.by_kind() == {"all_reduce": 3, "all_gather": 1}
    assert ledger[0].shape == (32, 64)
    assert ledger[1:] == Ledger([ledger[1]])
    assert json.loads(ledger.to_json())["collectives"][0]["cause"] == "reduction in dot_general"
    assert repr(ledger) == (
        "kind        axes       devices  bytes  count  type            where        cause\n"
        'all_reduce  {"model"}        2  8 KiB      3  float32[32,64]  train.py:31  reduction in dot_general\n'
        'all_gather  {"model"}        2  100 B      1  float32[32,64]  train.py:31  reduction in dot_general\n'
        "2 collectives, 24.1 KiB received per device"
    )
    console = Console(width=160, file=io.StringIO())
    console.print(ledger)
    assert "train.py:31" in console.file.getvalue()
    assert "{&quot;model&quot;}" in ledger._repr_html_()


def test_empty_ledger_says_so() -> None:
    assert repr(ledger_of([])) == "no collectives"
    assert ledger_of([])._repr_html_() == "<p>no collectives</p>"


def test_row_without_a_line_has_no_location() -> None:
    assert CollectiveRow("all_gather", "", 2, 1.0, (), "int8").location == ""


# ---- explanations ---------------------------------------------------------------------------------------------------


def test_explanation_reads_like_prose() -> None:
    taken = {**LOST, "closed_by": None, "winner": [AXIS], "rule": "round 0 goes before round 2"}
    value = {**VALUE, "lost": [LOST, taken], "conservative": True, "counterfactuals": [WITHOUT]}
    assert repr(Explanation.of("h", [value])) == (
        'h (train.py:10) is tensor<16x64xf32>, sharded [{"data"}, {}] by conservative aggressive propagation.\n'
        '  dim 0 is split over "data": it comes from argument 0 at train.py:8\n'
        "    through stablehlo.tanh (train.py:10): operand 0 dim 0 → result 0 dim 0, factor i, round 2, "
        "in the turn of priority 1\n"
        '  dim 1 did not get "model" from dot_general at train.py:9: dim is closed\n'
        "    annotated on argument 0 at train.py:8\n"
        "    rule: closed dims take no further axes\n"
        '  dim 1 did not get "model" from dot_general at train.py:9: dim is closed\n'
        '    it lost to "data" on dim 0, from argument 0 at train.py:8\n'
        "    rule: round 0 goes before round 2\n"
        "  without argument 0 at train.py:8 it would be sharded [{}, {}]; 3 other values would change"
    )


def test_explanation_of_an_ambiguous_name_lists_its_lines() -> None:
    text = repr(Explanation.of("h", [VALUE, {**VALUE, "line": 20, "axes": [], "lost": []}]))
    assert text.startswith("2 values are called h, at train.py:10, train.py:20:\n")
    assert text.endswith("Nothing splits it: every device holds all of it.")


def test_explanation_of_a_line_names_its_ops() -> None:
    text = repr(Explanation.of("train.py:10", [VALUE, {**VALUE, "name": "", "op": "stablehlo.add"}]))
    assert text.startswith("2 values of train.py:10, at train.py:10:\nh (train.py:10) is ")
    assert "\nresult 0 of stablehlo.add (train.py:10) is " in text


def test_explanation_is_data() -> None:
    explanation = Explanation.of("h", [VALUE])
    assert json.loads(explanation.to_json()) == {
        "name": "h",
        "values": [{**VALUE, "kept": [], "manual_axes": [], "device_type": "", "region_at": "", "differs": False}],
        "decisions": [],
        "instead": None,
    }
    (value,) = Explanation.of("h", [{**VALUE, "counterfactuals": [WITHOUT, KEPT]}]).to_dict()["values"]
    assert value["counterfactuals"] == [
        {
            "without": {"origin": "argument 0", "location": "train.py:8", "name": "x"},
            "sharding": "[{}, {}]",
            "others": 3,
        }
    ]
    (kept,) = value["kept"]
    assert list(kept) == [value["counterfactuals"][0]["without"], "the value exists only because of it"]


def test_explanation_is_a_tree_and_html() -> None:
    explanation = Explanation.of("h", [{**VALUE, "counterfactuals": [KEPT]}])
    console = Console(width=160, file=io.StringIO())
    console.print(explanation)
    assert "│   └── through stablehlo.tanh (train.py:10)" in console.file.getvalue()
    text = explanation._repr_html_()
    assert text.startswith("<p><b>h (train.py:10) is tensor&lt;16x64xf32&gt;")
    assert "<ul><li>dim 0 is split over &quot;data&quot;: it comes from argument 0 at train.py:8<ul><li>through" in text
    assert text.count("<ul>") == text.count("</ul>") == 3
    assert text.count("<li>") == text.count("</li>")
    assert "The annotation on argument 0 at train.py:8 cannot be removed: the value exists only because of it." in text
    assert "No annotation decides it" in repr(Explanation.of("h", [{**VALUE, "counterfactuals": []}]))


def test_program_explains_a_value_and_its_collectives() -> None:
    program = dot_program()
    ledger = program.collectives()
    assert [row.kind for row in ledger] == ["all_reduce"]
    assert ledger[0].axes == '{"model"}'
    assert ledger[0].file == __file__
    assert ledger[0].line == dot.__code__.co_firstlineno + 2
    assert '"data"' in repr(program.why("h"))
    with pytest.raises(KeyError, match="no value of the program is called 'g'"):
        program.why("g")


def test_reports_call_arguments_by_their_names() -> None:
    def step(x: Any, params: Any) -> Any:
        h = x @ params["w"]
        return np.tanh(h)

    arrays = np.ones((8, 4), np.float32), {"w": np.ones((4, 6), np.float32)}
    program = sw.jit(step, mesh=MESH, in_shardings=(P("data"), {"w": P(None, "model")})).lower(*arrays).compile()
    origins = [axis.origin for axis in program.why("h").values[0].axes]
    assert origins == ["argument x", "argument params['w']"]
    assert "it comes from argument params['w'] at " in repr(program.why("h"))
    pending = sw.jit(lambda terms: np.tanh(terms), mesh=MESH, in_shardings='[{}], unreduced={"data"}')
    ledger = pending.lower(np.ones(8, np.float32)).compile().collectives()
    assert [row.cause for row in ledger] == ["argument terms"]


def test_results_in_trees_are_called_by_their_paths() -> None:
    def step(x: Any, params: Any) -> Any:
        return x, {"w": [params * 2]}

    shardings = {"in_shardings": (None, P("data")), "out_shardings": (None, P())}
    program = sw.jit(step, mesh=MESH, **shardings).lower(np.ones(8), np.ones(8)).compile()
    assert [row.cause for row in program.collectives()] == ["result[1]['w'][0]"]
    pair = sw.jit(lambda x: (x, x * 2), mesh=MESH, in_shardings=P("data"), out_shardings=(None, P()))
    assert [row.cause for row in pair.lower(np.ones(8)).compile().collectives()] == ["result 1"]


def test_a_tree_of_arguments_is_explained_leaf_by_leaf() -> None:
    def step(x: Any, params: Any) -> Any:
        return x @ params["w"]["kernel"] + params["w"]["bias"] + params["scale"] + np.float32(1)

    arrays = {"w": {"kernel": np.ones((4, 6)), "bias": np.ones(6)}, "scale": np.ones(())}
    program = sw.jit(step, mesh=MESH, in_shardings=(P("data"), P())).lower(np.ones((8, 4)), arrays).compile()
    explained = program.why("params")
    assert [value.name for value in explained.values] == [
        "params['scale']", "params['w']['bias']", "params['w']['kernel']",
    ]  # fmt: skip
    assert repr(explained).startswith("3 values of params, at ")
    assert [value.name for value in program.why("params['w']").values] == explained_names(program, "params['w']")
    for name in ("para", "params['w", "stablehlo", "params['w']['kernel'][0]"):
        with pytest.raises(KeyError, match="no value of the program is called"):
            program.why(name)


def explained_names(program: sw.Program, prefix: str) -> list[str]:
    return [value.name for value in program.why("params").values if value.name.startswith(prefix)]


@pytest.mark.parametrize("name", ["all_reduce", "all_gather[0]"])
def test_a_collective_is_asked_for_by_its_line(name: str) -> None:
    expected = (
        f"why: values have reasons, and {name} is a collective; ask for the line of its row in "
        "program.collectives(), as FILE:LINE"
    )
    with pytest.raises(KeyError, match=re.escape(expected)):
        dot_program().why(name)


def test_an_unknown_path_is_printed_without_escapes() -> None:
    with pytest.raises(KeyError) as caught:
        dot_program().why("h['w']")
    assert "\\" not in str(caught.value)
    assert "no value of the program is called h['w']" in str(caught.value)


def test_variable_names_the_result_of_a_call_not_its_parts() -> None:
    def f(x: Any) -> Any:
        v = np.var(x, axis=1)
        return v + 1

    program = sw.jit(f, mesh=MESH, in_shardings=P("data")).lower(np.ones((8, 4), np.float32)).compile()
    assert [value.type for value in program.why("v").values] == ["tensor<8xf32>"]


# ---- source lines ---------------------------------------------------------------------------------------------------


def source_here() -> tuple[str, int, int, str]:
    frame = sys._getframe(1)
    return sources.resolve(frame.f_code, frame.f_lasti)


def test_source_names_the_variable_that_takes_the_result() -> None:
    a = source_here()
    b = c = source_here()
    (d := source_here())
    e = [source_here()][0]
    assert [x[3] for x in (a, b, d, e)] == ["a", "b = c", "d", ""]
    assert (a[0], b[1] - a[1], c) == (__file__, 1, b)


def test_each_leaf_of_an_unpacked_result_has_its_name() -> None:
    def f(x: Any, y: Any) -> Any:
        a, b = np.split(x, 2)
        first = second = np.tanh(a)
        p, q = x * 2, np.sin(y)
        (values, ids), r = sw.lax.top_k(y, 2), np.cos(y)
        return first, second, b, p + 1, q + 1, values + 1, ids, r + 1

    x = np.ones((8, 4), np.float32)
    program = sw.jit(f, mesh=MESH, in_shardings=(P("data"), P())).lower(x, x).compile()
    ops = {
        "a": "stablehlo.slice", "b": "stablehlo.slice", "first": "stablehlo.tanh", "second": "stablehlo.tanh",
        "p": "stablehlo.multiply", "q": "stablehlo.sine", "r": "stablehlo.cosine",
    }  # fmt: skip
    for name, op in ops.items():
        (value,) = program.why(name).values
        assert value.op == op
    (first,), (second,) = program.why("values").values, program.why("ids").values
    assert (first.type, second.type) == ("tensor<8x2xf32>", "tensor<8x2xi32>")
    assert program.why("a").values != program.why("b").values


def test_of_a_leaf_that_is_left_alone_all_names_are_shown() -> None:
    """Which of the two halves it is, is not known: the other one is not computed."""

    def f(x: Any) -> Any:
        a, b = np.split(x, 2)  # noqa: RUF059
        return b + 1

    program = sw.jit(f, mesh=MESH, in_shardings=P("data")).lower(np.ones((8, 4), np.float32)).compile()
    assert [value.name for value in program.why("b").values] == ["a, b"]
    assert program.why("a").values == program.why("b").values


def test_variables_are_followed_on_the_stack() -> None:
    a, b = source_here(), 1
    c, d, e, f = 1, source_here(), 2, source_here()
    parts: list[Any] = [0]
    parts[0], _, column, names = source_here()
    assert [x[3] for x in (a, d, f)] == ["a", "d", "f"]
    assert (b, c, e, parts[0]) == (1, 1, 2, __file__)
    assert (column > 1, names) == (True, "_, _, column, names")


def test_a_line_of_many_values_is_summarized() -> None:
    def layers(w: Any, x: Any) -> Any:
        for _ in range(12):
            x = np.tanh(x @ w)
        return (x * x).sum()

    x, w = sw.ShapeDtypeStruct((64, 32), np.float32), sw.ShapeDtypeStruct((32, 32), np.float32)
    program = sw.jit(sw.grad(layers), mesh=MESH, in_shardings=(P(), P("data"))).lower(w, x).compile()
    line = next(row.where for row in program.collectives() if row.bytes > 100)
    explained = program.why(line)
    text = repr(explained)
    assert len(explained.values) > 50
    assert len(text.splitlines()) < 100
    assert "more for the same reasons" in text
    assert "more values: .values has all of them" in text
    assert len(explained.to_dict()["values"]) == len(explained.values)
    assert text.count("is computed") <= 4


# ---- assertions -----------------------------------------------------------------------------------------------------


def test_assert_collectives_prints_the_ledger() -> None:
    program = dot_program()
    assert_collectives(program, all_reduce=1, all_gather=0, bytes_max=1000)
    with pytest.raises(AssertionError, match=r"1 all_reduce where 0 must be:\nkind +axes"):
        assert_collectives(program, all_reduce=0)
    with pytest.raises(AssertionError) as refused:
        assert_collectives(program, bytes_max=1)
    assert str(refused.value) == (
        f"the program has 48 B received per device where at most 1 B must be:\n{program.collectives()!r}"
    )
    with pytest.raises(TypeError, match="a kind must be one of all_reduce"):
        assert_collectives(program, allreduce=0)


def test_assert_matches_unpartitioned_accepts_uneven_sums() -> None:
    x = np.random.default_rng(0).standard_normal((17, 5)).astype(np.float32)
    program = assert_matches_unpartitioned(lambda x: {"sum": x.sum(0), "T": x.T}, x, mesh=MESH, in_shardings=P("data"))
    assert isinstance(program, sw.Program)


def test_assert_matches_unpartitioned_names_the_worst_element() -> None:
    def different(x: Any) -> Any:
        return x * (1 if isinstance(x, np.ndarray) else 2)

    with pytest.raises(
        AssertionError, match=r"7 of 8 elements that do not; the worst is 14 at \[7\] where NumPy has 7"
    ):
        assert_matches_unpartitioned(different, np.arange(8), mesh=MESH)
    with pytest.raises(AssertionError, match=r"got 7 of 8 elements"):
        assert_matches_unpartitioned(different, np.arange(8.0), mesh=MESH)
    assert_matches_unpartitioned(different, np.arange(8.0), mesh=MESH, rtol=1.0)


def test_assert_matches_unpartitioned_compares_dtypes() -> None:
    def wider(x: Any) -> Any:
        return x if isinstance(x, np.ndarray) else x.astype(np.float64)

    with pytest.raises(AssertionError, match=r"result is float64\[4\], NumPy gives float32\[4\]"):
        assert_matches_unpartitioned(wider, np.ones(4, np.float32), mesh=MESH)


# ---- pictures -------------------------------------------------------------------------------------------------------


class Balanced(HTMLParser):
    """Checks that every tag is closed, and collects the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, text: str) -> None:
        self.text.append(text)


@pytest.mark.parametrize(
    "axes", [{"x": 1}, {"x": 4}, {"x": 4, "y": 2}, {"a": 2, "x": 4, "y": 2}, {"x": 2048, "y": 512}]
)
def test_mesh_picture_shows_devices(axes: dict[str, int]) -> None:
    mesh = sw.Mesh(axes)
    html = mesh_html(mesh)
    text = Balanced(html).text
    assert repr(mesh) in text
    assert html.count("<rect") == min(mesh.size, 256)
    assert ("each area is 128 × 32 of 1,048,576 devices" in text) == (mesh.size > 256)
    assert mesh._repr_html_() == html


def test_mesh_picture_shows_given_device_ids() -> None:
    text = Balanced(mesh_html(sw.Mesh({"x": 3}, device_ids=[2, 0, 1]))).text
    assert [t for t in text if t.isdigit()] == ["2", "0", "1"]


@pytest.mark.parametrize(
    ("shape", "spec", "tiles"),
    [
        ((), P(), 1), ((17,), P("data"), 4), ((8, 6), P("data", "model"), 8), ((8, 6), P(None, ("model", "data")), 6),
        ((4, 6, 3), P("data", "model"), 8), ((2, 2, 4, 6), P("model", None, "data"), 8),
        ((0, 3), P("data"), 0), ((1, 3), P("data"), 1),
    ],
)  # fmt: skip
def test_array_picture_shows_tiles(shape: tuple[int, ...], spec: P, tiles: int) -> None:
    array = sw.device_put(np.zeros(shape), sw.NamedSharding(MESH, spec))
    html = array_html(array)
    assert html.count("<rect") == tiles
    assert "script" not in html
    assert repr(array) in Balanced(html).text
    titles = re.findall("<title>(.*?)</title>", html)
    assert len(set(titles)) == tiles
    Balanced(html)


def test_an_array_as_a_cell_result_shows_values_tiles_and_empty_devices() -> None:
    array = sw.device_put(np.arange(5, dtype=np.int32), sw.NamedSharding(sw.Mesh({"data": 4}), P("data")))
    html = array._repr_html_()
    text = Balanced(html).text
    assert text[0] == "Array([0, 1, 2, 3, 4], dtype=int32)"
    assert "int32[5]" in text
    assert re.findall("<title>(.*?)</title>", html) == [
        "[0:2] on devices 0", "[2:4] on devices 1", "[4:5] on devices 2",
    ]  # fmt: skip
    assert text[-1] == "empty: device 3"
    two = sw.device_put(np.zeros((1, 3)), sw.NamedSharding(MESH, P("data")))
    assert Balanced(two._repr_html_()).text[-1] == "empty: devices 2-7"
    assert "empty" not in sw.device_put(np.zeros(8), sw.NamedSharding(MESH, P("data")))._repr_html_()


def test_a_large_array_shows_the_values_at_its_borders() -> None:
    array = sw.device_put(np.arange(1000.0), sw.NamedSharding(MESH, P("data")))
    (values,) = [text for text in Balanced(array._repr_html_()).text if text.startswith("Array(")]
    assert values == "Array([  0.,   1.,   2., ..., 997., 998., 999.], dtype=float64)"


def test_many_blocks_and_empty_devices_are_both_noted() -> None:
    array = sw.device_put(np.zeros((9, 2, 2)), sw.NamedSharding(sw.Mesh({"x": 12}), P("x")))
    assert Balanced(array._repr_html_()).text[-1] == "8 of 9 blocks of the leading dims drawn; empty: devices 9-11"


def test_program_picture_marks_collectives() -> None:
    program = dot_program()
    html = program_html(program)
    text = "".join(Balanced(html).text)
    assert html.count("<mark") == 1
    assert "all_reduce" in text
    assert program.as_text("local").splitlines()[0] in text


def texts_of(program: sw.Program) -> list[str]:
    return Balanced(re.sub("<title>.*?</title>", "", graph_svg(program))).text


def test_a_graph_shows_values_with_their_tiles_and_marks_collectives() -> None:
    program = dot_program()
    text = texts_of(program)
    (row,) = program.collectives()
    assert row.axes in text
    assert f"{int(row.bytes)} B received per device" in text
    assert text.count("all_reduce") == 1
    assert text.index("dot_general") < text.index("all_reduce")
    assert graph_svg(program) in program_html(program)


def test_a_graph_gives_each_collective_its_own_bytes_after_a_loop() -> None:
    def looped(x: Any) -> Any:
        return sw.fori_loop(0, 3, lambda _, x: x - x.sum(axis=0), sw.split(x, 0, "data")).sum()

    program = sw.jit(looped, mesh=MESH).lower(np.ones((8, 6), np.float32)).compile()
    inner, outer = program.collectives()
    assert inner.bytes > outer.bytes
    text = texts_of(program)
    assert text.count("all_reduce") == 1
    assert text[text.index("all_reduce") + 2] == f"{int(outer.bytes)} B received per device"


@pytest.mark.parametrize(
    ("axes", "shape", "spec", "tiles", "labels"),
    [
        ({"x": 4}, (8,), P("x"), 4, ["0", "1", "2", "3"]),
        ({"x": 4, "y": 2}, (8, 6), P("x", "y"), 8, ["0", "1", "2", "3", "4", "5", "6", "7"]),
        ({"x": 4, "y": 2}, (8, 6), P(None, "y"), 2, ["0,2,4,6", "1,3,5,7"]),
        ({"x": 4, "y": 2}, (8, 6, 2), P("x"), 4, ["0-1", "2-3", "4-5", "6-7"]),
        ({"x": 1}, (), P(), 1, ["0"]),
        ({"x": 512}, (1024,), P("x"), 1, ["512 tiles"]),
        ({"x": 8, "y": 512}, (64,), P("x"), 8, []),
    ],
)  # fmt: skip
def test_a_graph_names_the_devices_of_tiles(
    axes: dict[str, int], shape: tuple[int, ...], spec: P, tiles: int, labels: list[str]
) -> None:
    x = sw.ShapeDtypeStruct(shape, np.float32)
    program = sw.jit(lambda x: x, mesh=sw.Mesh(axes), in_shardings=spec).lower(x).compile()
    assert graph_svg(program).count("<rect") == tiles
    *found, name, _, _ = texts_of(program)
    assert (found, name) == (labels, "x")


def test_a_large_program_has_no_graph() -> None:
    def chain(x: Any) -> Any:
        for _ in range(30):
            x = np.tanh(x)
        return x

    program = sw.jit(chain, mesh=MESH).lower(np.ones(8, np.float32)).compile()
    assert "<svg" not in program_html(program)
