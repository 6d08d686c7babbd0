# SPDX-License-Identifier: Apache-2.0
"""trace, lower, compile: what each stage tells, and how a compiled program is called."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import shardwise as sw
from shardwise import NamedSharding, P

MESH = sw.Mesh({"x": 4, "y": 2})
X = np.arange(24, dtype=np.float32).reshape(6, 4)
W = np.ones((4, 6), np.float32)
KINDS = ["global", "propagated", "resharded", "local"]


def model(params: Any, x: Any, shift: Any = None) -> Any:
    h = x @ params["w"]
    if shift is not None:
        h = h + shift
    h = np.tanh(h)
    return {"out": sw.shard(sw.name(h * 2, "doubled"), P("x")), "sum": h.sum()}


JITTED = sw.jit(model, mesh=MESH, in_shardings=({"w": P(None, "y")}, P("x")))
TRACED = JITTED.trace({"w": W}, X, shift=np.float32(2))
PROGRAM = TRACED.lower().compile()


def call(program: sw.Program, **options: Any) -> Any:
    return program.run({"w": W}, X, shift=np.float32(2), **options)


# ---- traced and lowered ---------------------------------------------------------------------------------------------


def test_a_traced_function_tells_its_mesh_arguments_and_results() -> None:
    assert TRACED.mesh == MESH
    assert [(a.shape, a.dtype) for a in TRACED.in_avals] == [((4, 6), "float32"), ((6, 4), "float32"), ((), "float32")]
    assert TRACED.out_info == {
        "out": sw.ShapeDtypeStruct((6, 6), np.float32),
        "sum": sw.ShapeDtypeStruct((), np.float32),
    }
    assert TRACED.as_text() == TRACED.lower().as_text() == PROGRAM.as_text("global")
    assert re.fullmatch(r"<traced program of \d+ ops for Mesh\('x': 4, 'y': 2\)>", repr(TRACED))
    assert repr(TRACED.lower()) == repr(TRACED).replace("traced", "lowered")


def test_out_info_knows_every_dtype() -> None:
    names = ["bool", "int8", "uint64", "float16", "bfloat16", "float64"]
    xs = [np.zeros(2, sw.bfloat16 if name == "bfloat16" else name) for name in names]
    assert [s.dtype.name for s in sw.jit(lambda *xs: xs, mesh=MESH).trace(*xs).out_info] == names


def test_shapes_without_data_can_be_compiled_but_not_run() -> None:
    huge = sw.ShapeDtypeStruct((1 << 20, 1 << 20), np.float32, sharding=NamedSharding(MESH, P("x", "y")))
    traced = sw.jit(lambda x: x @ x).trace(huge)
    assert traced.out_info == sw.ShapeDtypeStruct(huge.shape, np.float32)
    program = traced.lower().compile()
    assert program.input_shardings == [huge.sharding]
    assert "tensor<262144x524288xf32>" in program.as_text("local")
    with pytest.raises(sw.ShapeError, match="a program runs on arrays"):
        program(huge)
    with pytest.raises(sw.ShapeError, match="a program runs on arrays"):
        sw.jit(lambda x: x, mesh=MESH)(sw.ShapeDtypeStruct((2,), np.int8))


# ---- text -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"generic": True}, {"locations": True}, {"generic": True, "locations": True}])
def test_every_stage_prints_and_reads_back(kind: str, options: dict[str, bool]) -> None:
    text = PROGRAM.as_text(kind, **options)
    module = sw.parse(text)
    assert module.as_text(**options) == text
    assert ("test_stages.py" in text) == options.get("locations", False)


def test_stages_show_what_their_pass_adds() -> None:
    assert PROGRAM.as_text() == PROGRAM.as_text("local")
    assert '"shardwise.' not in PROGRAM.as_text("resharded")
    assert "shardwise.all_reduce" in PROGRAM.as_text("local")
    assert "sdy.sharding" in PROGRAM.as_text("propagated")
    assert "tensor<2x3xf32>" in PROGRAM.as_text("local")


def test_another_kind_of_text_is_refused() -> None:
    with pytest.raises(ValueError, match="kind must be one of global, propagated, resharded, local, export, got 'hlo'"):
        PROGRAM.as_text("hlo")


# ---- reports --------------------------------------------------------------------------------------------------------


def test_shardings_of_arguments_and_results() -> None:
    assert [s.spec for s in PROGRAM.input_shardings] == [P(None, "y"), P("x", None), P()]
    assert PROGRAM.output_shardings == {"out": NamedSharding(MESH, P("x")), "sum": NamedSharding(MESH, P())}


def test_hidden_arguments_are_not_among_the_input_shardings() -> None:
    program = sw.jit(lambda x: x + X * 2, mesh=MESH).lower(X).compile()
    assert len(program.input_shardings) == 1


def test_collectives_tell_kind_axes_bytes_and_line() -> None:
    ledger = PROGRAM.collectives()
    assert ledger.by_kind() == {"all_gather": 1, "all_reduce": 1}
    gather = next(row for row in ledger if row.kind == "all_gather")
    assert (gather.group_size, gather.bytes, gather.shape, gather.dtype) == (2, 24, (2, 3), "float32")
    assert gather.file.endswith("test_stages.py")
    assert gather.line == model.__code__.co_firstlineno + 5


@pytest.mark.parametrize(
    ("name", "type_", "sharding", "count"),
    [
        ("x", "tensor<6x4xf32>", '[{"x"}, {}]', 1),
        ("params['w']", "tensor<4x6xf32>", '[{}, {"y"}]', 1),
        ("shift", "tensor<f32>", "[]", 1),
        ("doubled", "tensor<6x6xf32>", '[{"x"}, {}]', 1),
        ("h", "tensor<6x6xf32>", '[{"x"}, {"y"}]', 3),
    ],
)
def test_why_explains_arguments_given_names_and_variables(name: str, type_: str, sharding: str, count: int) -> None:
    explanation = PROGRAM.why(name)
    assert len(explanation.values) == count
    assert {(v.type, v.sharding) for v in explanation.values} == {(type_, sharding)}
    assert name in repr(explanation)
    if count > 1:
        lines = [v.line for v in explanation.values]
        assert lines == sorted(set(lines))
        assert f"{count} values are called {name}, at " in repr(explanation)


def test_why_tells_what_lost_and_what_closed_it() -> None:
    (value,) = PROGRAM.why("doubled").values
    assert [lost.axis for lost in value.lost] == ['"y"']
    assert "closes the dim" in value.lost[0].reason


@pytest.mark.parametrize(("name", "near"), [("doubldd", "doubled"), ("shft", "shift"), ("parms", "params")])
def test_why_of_an_unknown_name_suggests_others(name: str, near: str) -> None:
    with pytest.raises(KeyError) as caught:
        PROGRAM.why(name)
    assert f"no value of the program is called '{name}'; did you mean" in caught.value.args[0]
    assert near in caught.value.args[0]


def test_why_of_a_name_like_no_other_suggests_nothing() -> None:
    with pytest.raises(KeyError) as caught:
        PROGRAM.why("qqqqqqqq")
    assert "did you mean" not in caught.value.args[0]


def test_variables_of_unpacked_and_nested_functions_are_found() -> None:
    def inner(a: Any) -> Any:
        product = a * 2
        return product  # noqa: RET504

    def f(x: Any, *rest: Any, **named: Any) -> Any:
        total = inner(x) + rest[0]
        return total + named["k"]

    program = sw.jit(f, mesh=MESH).lower(X, X, k=X).compile()
    for name in ("x", "k", "product", "total"):
        assert program.why(name).values[0].type == "tensor<6x4xf32>"


def test_every_pass_is_timed_and_counted() -> None:
    to_propagate = {"inline_calls", "simplify", "propagate", "legalize"}
    to_local = {"assign", "plan_reshards", "localize", "optimize_collectives", "form_scans", "window_einsums"}
    to_local |= {"rematerialize", "gathers_in_trips", "combine_collectives"}
    assert set(PROGRAM.seconds) >= to_propagate | to_local
    assert all(0 <= s < 10 for s in PROGRAM.seconds.values())
    assert PROGRAM.counters["propagate.visits"] > 0
    again = TRACED.lower().compile()

    def counted(program: sw.Program) -> dict[str, int]:  # plans are kept: only the first compilation makes new ones
        return {name: count for name, count in program.counters.items() if not name.endswith(".new_plans")}

    assert counted(again) == counted(PROGRAM)
    assert TRACED.lower().compile().counters == TRACED.lower().compile().counters  # one right after the other
    assert again.as_text() == PROGRAM.as_text()
    PROGRAM.counters.clear()
    assert PROGRAM.counters


# ---- pictures -------------------------------------------------------------------------------------------------------

VOID = {"br", "rect", "line", "path", "circle", "hr", "img"}


class Checked(HTMLParser):
    """Every tag that opens closes, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.count = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert tag != "script"
        self.count += 1
        if tag not in VOID or not (self.get_starttag_text() or "").endswith("/>"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.count += 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


THINGS: dict[str, Callable[[], Any]] = {
    "mesh": lambda: MESH,
    "mesh of one axis": lambda: sw.Mesh({"x": 3}, [2, 1, 0]),
    "mesh of three axes": lambda: sw.Mesh({"a": 2, "b": 2, "c": 2}),
    "mesh of no axis": lambda: sw.Mesh({}),
    "large mesh": lambda: sw.Mesh({"x": 4096, "y": 16}),
    "mesh with an odd name": lambda: sw.Mesh({'<b>"&': 2}),
    "array": lambda: call(PROGRAM)["out"],
    "scalar": lambda: call(PROGRAM)["sum"],
    "empty array": lambda: sw.device_put(np.zeros((0, 3)), MESH),
    "array of four dims": lambda: sw.device_put(np.zeros((2, 3, 4, 5)), NamedSharding(MESH, P(None, "y", "x"))),
    "program": lambda: PROGRAM,
    "program without collectives": lambda: sw.jit(lambda x: x, mesh=MESH).lower(X).compile(),
    "ledger": lambda: PROGRAM.collectives(),
    "explanation": lambda: PROGRAM.why("h"),
}


@pytest.mark.parametrize("thing", THINGS.values(), ids=THINGS)
def test_what_a_notebook_shows_is_valid_static_html(thing: Callable[[], Any]) -> None:
    parser = Checked()
    parser.feed(thing()._repr_html_())
    parser.close()
    assert parser.open == []
    assert parser.count > 0


@pytest.mark.parametrize("thing", THINGS.values(), ids=THINGS)
def test_everything_has_a_short_repr_and_prints_with_rich(thing: Callable[[], Any]) -> None:
    value = thing()
    assert 0 < len(repr(value)) < 4000
    console = Console(width=100, file=io.StringIO())
    console.print(value)
    assert console.file.getvalue().strip()  # type: ignore[attr-defined]


def test_the_repr_of_a_program_counts_its_collectives() -> None:
    assert repr(PROGRAM).endswith("ops on Mesh('x': 4, 'y': 2): 1 all_gather, 1 all_reduce>")
    assert "no collectives" in repr(sw.jit(lambda x: x, mesh=MESH).lower(X).compile())


# ---- calling --------------------------------------------------------------------------------------------------------


def test_a_program_is_called_with_the_traced_tree() -> None:
    expected = np.tanh(X @ W + 2)
    for result in (PROGRAM({"w": W}, X, shift=np.float32(2)), call(PROGRAM)):
        np.testing.assert_allclose(result["out"], expected * 2, rtol=1e-6)
        np.testing.assert_allclose(result["sum"], expected.sum(), rtol=1e-5)


@pytest.mark.parametrize("faithful", [False, True])
@pytest.mark.parametrize("poison", [False, True])
def test_every_way_to_run_gives_the_same_bits(faithful: bool, poison: bool) -> None:
    program = (
        sw.jit(lambda x: (np.exp(x).T, np.max(x, 0), x[1:]), mesh=MESH, in_shardings=P("x", "y")).lower(X[:5]).compile()
    )
    results = program.run(X[:5], faithful=faithful, poison=poison)
    assert len(results) == 3
    for result, expected in zip(results, program(X[:5]), strict=True):
        np.testing.assert_array_equal(result, expected)
        assert result.sharding == expected.sharding


@pytest.mark.parametrize(
    ("args", "kwargs", "kind", "text"),
    [
        (({"w": W}, X), {}, sw.ShapeError, "must have the tree of the compiled program"),
        (({"w": W},), {"shift": np.float32(2)}, sw.ShapeError, "must have the tree"),
        (({"v": W}, X), {"shift": np.float32(2)}, sw.ShapeError, "must have the tree"),
        (([W], X), {"shift": np.float32(2)}, sw.ShapeError, "must have the tree"),
        (({"w": W}, X, np.float32(2)), {}, sw.ShapeError, "must have the tree"),
        (
            ({"w": W}, X[:3]),
            {"shift": np.float32(2)},
            sw.ShapeError,
            r"float32\[6, 4\] as compiled, got float32\[3, 4\]",
        ),
        (({"w": W}, X), {"shift": 2.0}, sw.DTypeError, r"float32\[\] as compiled, got float64\[\]"),
        (({"w": W}, X.astype(int)), {"shift": np.float32(2)}, sw.DTypeError, "got int64"),
        (({"w": W}, "text"), {"shift": np.float32(2)}, sw.Error, "as compiled"),
    ],
)
def test_arguments_that_do_not_fit_the_program_are_refused(args: Any, kwargs: Any, kind: Any, text: str) -> None:
    for run in (PROGRAM, PROGRAM.run):
        with pytest.raises(kind, match=text):
            run(*args, **kwargs)


def test_an_array_on_another_mesh_is_moved_by_device_put_alone() -> None:
    other = sw.device_put(X, sw.Mesh({"z": 2}))
    program = sw.jit(lambda x: x + 1, mesh=MESH).lower(X).compile()
    with pytest.raises(sw.MeshError, match=r"^call of argument x: the mesh must be over the 8 devices"):
        program(other)
    result = program(sw.device_put(other, program.input_shardings[0]))
    assert result.sharding.mesh == MESH
    np.testing.assert_array_equal(result, X + 1)


def test_static_arguments_are_left_out_of_a_compiled_call() -> None:
    program = sw.jit(lambda x, n: x * n, mesh=MESH, static_argnums=1).lower(X, 3).compile()
    np.testing.assert_array_equal(program(X), X * 3)
    with pytest.raises(sw.ShapeError, match="static arguments are part of it"):
        program(X, 3)
