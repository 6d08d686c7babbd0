# SPDX-License-Identifier: Apache-2.0
"""An annotation that the user's code discards has a warning; one that is only in derived or dropped code has none."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"x": 4, "y": 2})
X = np.arange(96, dtype=np.float32).reshape(12, 8) / 96


def helper(x: Any) -> Any:
    return sw.split(x, 0, "x")


def block(x: Any) -> Any:
    h = np.tanh(x)
    return sw.split(h, 0, "x"), h.sum()


def statement(x: Any) -> Any:
    sw.split(x, 0, "x")
    return x * 2


def unread_variable(x: Any) -> Any:
    y = sw.shard(x, P("x"))  # noqa: F841
    return x * 2


def read_before_only(x: Any) -> Any:
    y = x * 2
    x = sw.replicate(x)
    return y


def unread_element(x: Any) -> Any:
    x, y = x * 2, sw.split(x, 1, "y")  # noqa: F841
    return x


def another_element(x: Any) -> Any:
    return (sw.split(x, 0, "x"), x * 2)[1]


def branch_of_an_expression(x: Any) -> Any:
    sw.split(x, 0, "x") if x.ndim == 2 else x
    return x * 2


def of_a_helper(x: Any) -> Any:
    helper(x)
    return x * 2


def of_a_map(x: Any) -> Any:
    sw.tree.map(lambda leaf: sw.split(leaf, 0, "x"), {"x": x})
    return x * 2


def of_a_tree(x: Any) -> Any:
    sw.with_sharding_constraint([x, x], P("x"))
    return x * 2


def in_a_loop_of_python(x: Any) -> Any:
    for _ in range(2):
        sw.split(x, 0, "x")
    return x * 2


DISCARDED = (
    statement, unread_variable, read_before_only, unread_element, another_element, branch_of_an_expression, of_a_helper,
    of_a_map, of_a_tree, in_a_loop_of_python,
)  # fmt: skip


def scanned(f: Any) -> Any:
    return lambda x: sw.scan(lambda c, _: (f(c), None), x, None, length=2)[0]


def chosen(f: Any) -> Any:
    return lambda x: sw.cond(x[0, 0] < 1, f, lambda x: x + 1, x)


def looped(f: Any) -> Any:
    return lambda x: sw.fori_loop(0, 2, lambda i, c: f(c), x)


CONTEXTS: dict[str, Callable[[Any], Any]] = {
    "alone": lambda f: f,
    "jit": lambda f: sw.jit(f),
    "grad": lambda f: sw.grad(lambda x: f(x).sum()),
    "value_and_grad": lambda f: lambda x: sw.value_and_grad(lambda x: f(x).sum())(x)[1],
    "checkpoint": sw.checkpoint,
    "grad of checkpoint": lambda f: sw.grad(lambda x: sw.checkpoint(f)(x).sum()),
    "vmap": lambda f: lambda x: sw.vmap(f)(np.stack([x, x])),
    "scan": scanned,
    "grad of scan": lambda f: sw.grad(lambda x: scanned(f)(x).sum()),
    "cond": chosen,
    "grad of cond": lambda f: sw.grad(lambda x: chosen(f)(x).sum()),
    "loop": looped,
}


def line_of(function: Any, text: str) -> int:
    """The line of the function that holds the text."""
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def warned(function: Any) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sw.jit(function, mesh=MESH).trace(X)
    return caught


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("discarded", DISCARDED, ids=lambda f: f.__name__)
def test_a_discarded_annotation_has_one_warning_at_its_line(discarded: Any, context: str) -> None:
    [warning] = warned(CONTEXTS[context](discarded))
    assert warning.category is sw.ShardingWarning
    assert str(warning.message) == (
        "annotation: its result must be used, got an annotation whose result nothing uses; "
        "write x = sw.split(x, …) and use x from there on"
    )
    text = {of_a_helper: "helper(x)", of_a_tree: "sw.with_sharding_constraint"}.get(discarded, "sw.")
    assert (warning.filename, warning.lineno) == (__file__, line_of(discarded, text))


@pytest.mark.parametrize("discarded", DISCARDED, ids=lambda f: f.__name__)
def test_the_program_runs(discarded: Any) -> None:
    with pytest.warns(sw.ShardingWarning):
        np.testing.assert_array_equal(sw.jit(discarded, mesh=MESH)(X), X * 2)


# ---- kept, or in code that is derived or dropped ---------------------------------------------------------------------


def dropped_by_its_caller(x: Any) -> Any:
    _, total = block(x)
    return x * total


def dropped_with_its_function(x: Any) -> Any:
    block(x)
    helper(np.tanh(x))
    return x * 2


def shape_only(x: Any) -> Any:
    y = sw.split(x, 0, "x")
    return x * y.shape[0]


def read_in_the_next_trip(x: Any) -> Any:
    y, total = x, np.float32(0)
    for _ in range(2):
        total = total + y.sum()
        y = sw.split(np.sin(x), 0, "x")
    return x * total


def in_a_list(x: Any) -> Any:
    kept = []
    kept.append(sw.split(x, 0, "x"))
    return x * len(kept)


def read_in_a_closure(x: Any) -> Any:
    y = sw.split(x, 0, "x")
    later = lambda: y * 2  # noqa: E731
    return x * (2 if callable(later) else 1)


def whole_tree(x: Any) -> Any:
    first, _ = sw.with_sharding_constraint((x, x + 1), P("x"))
    return first * 2


def dropped_body(x: Any) -> Any:
    sw.checkpoint(block)(x)
    sw.cond(x[0, 0] < 1, helper, np.tanh, x)
    sw.scan(lambda c, row: (helper(c), sw.split(row, 0, "y")), x, x)
    sw.vmap(helper)(np.stack([x, x]))
    sw.jit(helper, in_shardings=P(None, "y"), out_shardings=P("x"))(x)
    opened = lambda x: sw.shard(x, P(None, sw.open()))  # noqa: E731
    sw.shard_map(opened, mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})(x)
    return x * 2


def dropped_aux(x: Any) -> Any:
    def loss(x: Any) -> Any:
        h = np.tanh(x)
        return (h**2).sum(), {"h": sw.split(h, 0, "x"), "x": helper(x)}

    gradient, _ = sw.grad(loss, has_aux=True)(x)
    (_, _), other = sw.value_and_grad(loss, has_aux=True)(x)
    return gradient + other


def dropped_value(x: Any) -> Any:
    return sw.value_and_grad(lambda x: sw.replicate((x**2).sum()))(x)[1]


def unused_arguments(x: Any) -> Any:
    inner = sw.jit(lambda a, b: (a * 2, b), in_shardings=(P("x"), P()), out_shardings=(P("x"), P("x")))
    return inner(x, x)[0]


KEPT = (
    dropped_by_its_caller, dropped_with_its_function, shape_only, read_in_the_next_trip, in_a_list, read_in_a_closure,
    whole_tree, dropped_body, dropped_aux, dropped_value, unused_arguments,
)  # fmt: skip
NOT_AROUND = ("value_and_grad", "vmap", "grad of scan", "grad of cond")
NOT_MAPPED = (dropped_body, dropped_aux, dropped_value)  # gradients of gradients of reductions are another matter


@pytest.mark.parametrize(
    ("context", "kept"),
    [
        (context, kept)
        for context in CONTEXTS
        for kept in KEPT
        if context not in NOT_AROUND and not (context.startswith("grad") and kept in NOT_MAPPED)
    ],
)
def test_annotations_that_derived_or_dropped_code_holds_have_no_warning(context: str, kept: Any) -> None:
    function = CONTEXTS[context](kept)
    assert warned(function) == []
    whole = sw.jit(function, mesh=sw.Mesh({"x": 1, "y": 1}))(X) if kept is not dropped_body else None
    found = sw.jit(function, mesh=MESH)(X)
    if whole is not None:
        np.testing.assert_allclose(found, whole, rtol=1e-5)


def test_the_gradient_of_a_checkpoint_that_ends_in_an_annotation() -> None:
    x, w = X[:8, :4], np.ones((4, 4), np.float32)
    layer = sw.checkpoint(lambda x, w: sw.split(np.tanh(x @ w), 0, "x"))
    assert warned(lambda x: sw.grad(lambda w: layer(x[:8, :4], w).sum())(w)) == []
    gradient = sw.jit(sw.grad(lambda w: layer(x, w).sum()), mesh=MESH)(w)
    np.testing.assert_allclose(gradient, x.T @ (1 - np.tanh(x @ w) ** 2), rtol=1e-5)


def test_code_without_source_is_judged_by_its_bytecode() -> None:
    names: dict[str, Any] = {"sw": sw}
    source = "def f(x):\n    sw.split(x, 0, 'x')\n    return x * 2\ndef g(x):\n    return x * 2, sw.split(x, 0, 'x')"
    exec(source, names)
    assert [warning.lineno for warning in warned(names["f"])] == [2]
    assert warned(lambda x: names["g"](x)[0]) == []


def test_a_discarded_annotation_warns_once_for_each_line() -> None:
    def f(x: Any) -> Any:
        sw.split(x, 0, "x")
        sw.split(x, 1, "y")
        return x

    assert len(warned(f)) == 2
