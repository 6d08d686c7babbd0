# SPDX-License-Identifier: Apache-2.0
"""Reports of where floats become wider."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import shardwise as sw

MESH = sw.Mesh({"x": 2})
X = np.ones((4, 2), np.float32)
HALF = np.ones((4, 2), sw.bfloat16)


def promotions(function: Callable[..., Any], *args: Any) -> Any:
    return sw.jit(function, mesh=MESH).trace(*args).promotions()


def summary(report: Any) -> list[tuple[Any, ...]]:
    return [(row.op, row.operands, row.result, row.cause) for row in report]


def train(x: Any, rate: Any) -> Any:
    y = x * 2
    z = np.tanh(y) * rate
    w = z + x
    return w.astype(np.float32)


def test_the_first_row_is_where_float64_came_in() -> None:
    report = promotions(train, X, np.float64(0.1))
    line = train.__code__.co_firstlineno
    assert summary(report) == [
        ("multiply", ("float32[4,2]", "float64[]"), "float64[4,2]", "argument rate"),
        ("add", ("float64[4,2]", "float32[4,2]"), "float64[4,2]", "multiply"),
    ]
    assert [row.cause_at for row in report] == ["", f"{__file__}:{line + 2}"]
    assert repr(report).splitlines()[2].endswith(f"test_promotions.py:{line + 2}")
    assert [row.line - line for row in report] == [2, 3]
    assert all(row.file == __file__ and not row.explicit for row in report)


def test_a_program_without_promotions_has_none() -> None:
    report = promotions(train, X, np.float32(0.1))
    assert not report
    assert repr(report) == "no promotions to a wider float"
    assert report._repr_html_() == "<p>no promotions to a wider float</p>"
    assert promotions(lambda x: x * 0.1 + 1, X).rows == ()  # Python numbers are weakly typed


def test_the_report_is_that_of_every_stage() -> None:
    traced = sw.jit(train, mesh=MESH).trace(X, np.float64(1))
    expected = traced.promotions()
    assert traced.lower().promotions() == expected
    assert traced.lower().compile().promotions() == expected
    again = sw.parse(traced.as_text(locations=True)).promotions()
    assert [(row.op, row.line) for row in again] == [(row.op, row.line) for row in expected]


@pytest.mark.parametrize(
    ("function", "args", "rows"),
    [
        (lambda x: x * np.float64(2), (X,),
         [("multiply", ("float32[4,2]", "float64[4,2]"), "float64[4,2]", "constant")]),
        (lambda x: np.ones(2) + x, (X,), [("add", ("float64[2]", "float32[4,2]"), "float64[4,2]", "constant")]),
        (lambda x: np.where(x > 0, x, np.float64(1)), (X,),
         [("select", ("bool[4,2]", "float32[4,2]", "float64[4,2]"), "float64[4,2]", "constant")]),
        (lambda x, h: x @ h.T, (X, HALF),
         [("dot_general", ("float32[4,2]", "bfloat16[2,4]"), "float32[4,4]", "argument x")]),
        (lambda h, f: h + f, (HALF, X.astype(np.float16)),
         [("add", ("bfloat16[4,2]", "float16[4,2]"), "float32[4,2]", "")]),
        (lambda x: x.astype(np.float64), (X,), [("astype", ("float32[4,2]",), "float64[4,2]", "explicit conversion")]),
        (lambda x: x.astype(sw.bfloat16), (X,), []),
        (lambda h: h.mean(), (HALF,), []),  # the sum is in float32, the result is not
        (lambda x, n: x * n, (X, np.arange(2)), [("multiply", ("float32[4,2]", "int64[2]"), "float64[4,2]", "")]),
    ],
)  # fmt: skip
def test_what_promotes(function: Any, args: tuple[Any, ...], rows: list[tuple[Any, ...]]) -> None:
    assert summary(promotions(function, *args)) == rows


def test_a_conversion_of_the_user_is_apart_from_promotions() -> None:
    def f(x: Any) -> Any:
        y = x.astype(np.float64)
        return y + x

    report = promotions(f, X)
    assert [(row.op, row.explicit) for row in report] == [("astype", True), ("add", False)]
    assert report.summary() == "2 promotions to a wider float, 1 of them explicit"


def test_chained_calls_of_one_line_are_apart() -> None:
    report = promotions(lambda x: x.astype(np.float64).sum(), X)
    assert [(row.op, row.explicit) for row in report] == [("astype", True)]


def test_the_layers_of_a_loop_are_one_row() -> None:
    def f(x: Any, scale: Any) -> Any:
        for _ in range(3):
            x = (x * scale).astype(np.float32)
        return x

    (row,) = report = promotions(f, X, np.float64(1))
    assert (row.op, row.count) == ("multiply", 3)
    assert report.summary() == "3 promotions to a wider float"


def test_conversions_of_a_text_without_locations_are_explicit() -> None:
    text = """func.func @main(%a: tensor<4xf32>, %b: tensor<4xf64>) -> tensor<4xf64> {
      %0 = stablehlo.convert %a : (tensor<4xf32>) -> tensor<4xf64>
      %1 = stablehlo.add %0, %b : tensor<4xf64>
      return %1 : tensor<4xf64>
    }"""
    (row,) = sw.parse(text).promotions()
    assert (row.op, row.operands, row.explicit, row.location) == ("astype", ("float32[4]",), True, "program text:2")


def test_gradients_of_a_conversion_are_no_promotions() -> None:
    def loss(x: Any) -> Any:
        low = x.astype(sw.bfloat16)
        return (low * low).sum().astype(np.float32)

    report = promotions(sw.grad(loss), X)
    assert [(row.op, row.line) for row in report] == [("astype", loss.__code__.co_firstlineno + 2)]


def test_gradients_of_a_promotion_keep_it() -> None:
    def loss(h: Any, f: Any) -> Any:
        return (h * f).sum()

    report = promotions(sw.grad(loss, argnums=(0, 1)), HALF, X.astype(np.float16))
    assert summary(report) == [("multiply", ("bfloat16[4,2]", "float16[4,2]"), "float32[4,2]", "")]


def test_the_report_is_text_table_html_and_data() -> None:
    def f(x: Any, scale: Any) -> Any:
        return x * scale

    report = promotions(f, X, np.float64(1))
    where = repr(report).splitlines()[1].split()[0]
    assert where.endswith(f"test_promotions.py:{f.__code__.co_firstlineno + 1}")
    width = len(where)
    assert repr(report) == (
        f"{'where':{width}}  op        operands                 result        count  cause\n"
        f"{where}  multiply  float32[4,2], float64[]  float64[4,2]      1  argument scale\n"
        "1 promotion to a wider float"
    )
    assert json.loads(report.to_json())["promotions"] == [
        {
            "op": "multiply", "operands": ["float32[4,2]", "float64[]"], "result": "float64[4,2]",
            "cause": "argument scale", "cause_at": "", "explicit": False, "file": __file__,
            "line": f.__code__.co_firstlineno + 1, "count": 1,
        }
    ]  # fmt: skip
    console = Console(width=160, file=io.StringIO())
    console.print(report)
    assert "argument scale" in console.file.getvalue()
    assert "<td>argument scale</td>" in report._repr_html_()
    assert report.to_pandas()["result"].tolist() == ["float64[4,2]"]
