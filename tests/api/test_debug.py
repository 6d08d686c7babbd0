# SPDX-License-Identifier: Apache-2.0
"""``sw.debug``: values of traced functions are printed when the program runs."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from shardwise.testing import assert_matches_unpartitioned
from tests.support.oracles import oracle

MESH = sw.Mesh({"x": 2, "y": 2})
X = np.arange(6, dtype=np.float32).reshape(3, 2)
ROW = np.array([1, 2], np.float32)


def lines(function: Callable[..., Any], *args: Any) -> list[str]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        function(*args)
    return out.getvalue().splitlines()


# ---- when -----------------------------------------------------------------------------------------------------------


def test_a_traced_value_is_printed_by_every_run() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        sw.debug.print("y = {y}, sum {:.2f}, {}", y.sum(), "text", y=y)
        return y + 1

    jitted = sw.jit(f, mesh=MESH, in_shardings=P("x"))
    text = "y = [0. 2. 4. 6.], sum 12.00, text"
    arguments = np.arange(4.0), np.arange(4.0) + 1
    assert lines(jitted, arguments[0]) == [text]
    assert lines(jitted, arguments[0]) == [text]
    assert lines(jitted, arguments[1]) == ["y = [2. 4. 6. 8.], sum 20.00, text"]
    assert lines(jitted.lower, arguments[0]) == []
    program = jitted.lower(arguments[0]).compile()
    assert lines(program, arguments[0]) == [text]
    assert lines(lambda: program.run(arguments[0], faithful=True, poison=True)) == [text]


def test_outside_jit_it_prints_at_once() -> None:
    assert lines(sw.debug.print, "nothing") == ["nothing"]
    assert lines(sw.debug.print, "{} {}", ROW, 3) == ["[1. 2.] 3"]
    array = sw.device_put(ROW, sw.NamedSharding(MESH, P("x")))
    assert lines(lambda: sw.debug.print("{a} {n:.1f}", a=array, n=array.sum())) == ["[1. 2.] 3.0"]


def test_a_program_may_only_print() -> None:
    found = []
    only = sw.jit(lambda x: sw.debug.print("{}", x), mesh=MESH)
    assert lines(lambda: found.append(only(ROW))) == ["[1. 2.]"]
    assert found == [None]


def test_prints_are_in_program_order() -> None:
    inner = sw.jit(lambda x: (sw.debug.print("inner {}", x), x + 1)[1])

    @sw.jit(mesh=MESH)
    def outer(x: Any) -> Any:
        sw.debug.print("before {}", x)
        y = inner(x)
        sw.debug.print("after {}, a text alone, {}", y, 7, ordered=True)
        sw.debug.print("the end")
        return y

    assert lines(outer, ROW) == ["before [1. 2.]", "inner [1. 2.]", "after [2. 3.], a text alone, 7", "the end"]


def test_trees_fields_and_braces_are_those_of_format() -> None:
    @sw.jit(mesh=MESH)
    def f(x: Any) -> Any:
        sw.debug.print("{d[a]} {d} {{}} {x.shape} {x[0]} {0!r:>33}", x, d={"a": x, "b": (x.sum(), None)}, x=x)
        return x

    assert lines(f, ROW) == [
        "[1. 2.] {'a': array([1., 2.], dtype=float32), 'b': (array(3., dtype=float32), None)} {} (2,) 1.0 "
        "   array([1., 2.], dtype=float32)"
    ]


def test_what_is_known_while_tracing_is_printed_as_it_was_then() -> None:
    known = np.zeros(2)

    @sw.jit(mesh=MESH)
    def f(x: Any) -> Any:
        sw.debug.print("{} {}", known, sw.device_put(ROW, sw.NamedSharding(MESH, P("x"))))
        known[:] = 7
        return x

    assert lines(f, ROW) == ["[0. 0.] [1. 2.]"]


# ---- what the program is --------------------------------------------------------------------------------------------


def test_printed_values_are_no_results() -> None:
    def f(x: Any) -> Any:
        y = sw.split(x * 3, 0, "x")
        sw.debug.print("{y} {z}", y=y, z=np.tanh(y) * 0)  # nothing else uses them
        return {"out": x + 1}

    def plain(x: Any) -> Any:
        return {"out": x + 1}

    specs: dict[str, Any] = {"in_shardings": P("x"), "out_shardings": {"out": P("y")}}
    traced = sw.jit(f, mesh=MESH, **specs).trace(ROW)
    assert traced.out_info == {"out": sw.ShapeDtypeStruct((2,), np.float32)}
    program = traced.lower().compile()
    assert program.output_shardings == {"out": sw.NamedSharding(MESH, P("y"))}
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        results = program.run(ROW)
    assert list(results) == ["out"]
    assert out.getvalue() == "[3. 6.] [0. 0.]\n"
    unprinted = sw.jit(plain, mesh=MESH, **specs).lower(ROW).compile()
    assert not program.collectives().diff(unprinted.collectives(), by="kind")


def test_printing_a_sharded_value_communicates_nothing() -> None:
    def f(x: Any) -> Any:
        h = np.tanh(x)
        sw.debug.print("{}", h)
        return h * 2

    program = sw.jit(f, mesh=MESH, in_shardings=P("x", "y")).lower(np.zeros((4, 4), np.float32)).compile()
    assert program.collectives().rows == ()
    assert program.output_shardings.spec == P("x", "y")


def test_a_function_that_prints_is_compared_with_numpy() -> None:
    def f(x: Any) -> Any:
        sw.debug.print("{}", x.sum())
        return {"a": x * 2}

    expected = ["3.0"] * 5  # plain NumPy, and four runs of the program
    assert lines(lambda: assert_matches_unpartitioned(f, ROW, mesh=MESH, in_shardings=P("x"))) == expected


# ---- transforms -----------------------------------------------------------------------------------------------------


def test_grad_prints_the_value_once_and_differentiates_as_without() -> None:
    def loss(w: Any, x: Any) -> Any:
        y = x * w
        sw.debug.print("y {y} loss {}", (y * y).sum(), y=y)
        return (y * y).sum()

    found = []
    assert lines(lambda: found.append(sw.jit(sw.grad(loss), mesh=MESH)(ROW, ROW))) == ["y [1. 4.] loss 17.0"]
    np.testing.assert_array_equal(np.asarray(found[0]), 2 * ROW**3)
    assert lines(sw.jit(sw.grad(lambda w: sw.grad(loss)(w, w).sum()), mesh=MESH), ROW) == ["y [1. 4.] loss 17.0"]


def test_vmap_prints_every_example() -> None:
    def f(x: Any, w: Any) -> Any:
        sw.debug.print("x {x} w {w}", x=x, w=w)
        sw.debug.print("shared {}", w)
        sw.debug.print("sum {:.1f} of {}", x.sum(), "row")
        return x * w

    expected = ["x [0. 1.] w [1. 2.]", "x [2. 3.] w [1. 2.]", "x [4. 5.] w [1. 2.]", "shared [1. 2.]"]
    expected += ["sum 1.0 of row", "sum 5.0 of row", "sum 9.0 of row"]
    assert lines(sw.jit(sw.vmap(f, in_axes=(0, None)), mesh=MESH), X, ROW) == expected


def test_vmaps_in_each_other_print_the_outermost_example_first() -> None:
    def f(x: Any, w: Any) -> Any:
        sw.debug.print("{} {}", x, w)
        return x * w

    rows = sw.vmap(sw.vmap(f, in_axes=(None, 0)), in_axes=(0, None))
    assert lines(sw.jit(rows, mesh=MESH), ROW, ROW * 10) == ["1.0 10.0", "1.0 20.0", "2.0 10.0", "2.0 20.0"]


TRANSFORMED: list[Callable[[Any, Any], Callable[..., Any]]] = [
    lambda m, f: m.jit(m.vmap(f, in_axes=(0, None))),
    lambda m, f: m.jit(m.vmap(f, in_axes=(None, 0))),
    lambda m, f: m.jit(m.vmap(m.vmap(f, in_axes=(None, 0)), in_axes=(0, None))),
    lambda m, f: m.jit(m.vmap(m.vmap(f, in_axes=(0, None)), in_axes=(None, 0))),
    lambda m, f: m.jit(m.vmap(m.grad(lambda x, w: f(x, w).sum()), in_axes=(0, None))),
    lambda m, f: m.jit(m.grad(lambda x, w: m.vmap(f, in_axes=(0, None))(x, w).sum(), argnums=(0, 1))),
]


@pytest.mark.parametrize("transformed", TRANSFORMED)
def test_transforms_print_the_lines_of_jax(transformed: Callable[[Any, Any], Callable[..., Any]]) -> None:
    jax = oracle("jax")

    def f(debug: Any) -> Callable[..., Any]:
        def traced(x: Any, w: Any) -> Any:
            debug.print("x {x} w {w}", x=x, w=w)
            debug.print("shared {} {}", w, 1)
            return x * w

        return traced

    sw.set_mesh(MESH)
    try:
        found = lines(transformed(sw, f(sw.debug)), X, X[:2])
    finally:
        sw.set_mesh(None)

    def theirs() -> None:
        transformed(jax, f(jax.debug))(X, X[:2])
        jax.effects_barrier()

    assert sorted(found) == sorted(lines(theirs))  # JAX keeps no order among examples
    assert found


def test_a_print_in_a_function_that_raised_is_forgotten_by_vmap() -> None:
    def fails(x: Any) -> Any:
        sw.debug.print("lost {}", x)
        raise RuntimeError

    @sw.jit(mesh=MESH)
    def f(x: Any) -> Any:
        with contextlib.suppress(RuntimeError):
            sw.vmap(fails)(x)
        sw.debug.print("kept {}", x)
        return x

    assert lines(f, ROW) == ["kept [1. 2.]"]


# ---- tiles ----------------------------------------------------------------------------------------------------------


def test_tiles_are_printed() -> None:
    array = sw.device_put(np.zeros((4, 3)), sw.NamedSharding(MESH, P("x", "y")))
    assert lines(sw.debug.visualize_array_sharding, array) == [
        'float64[4,3] sharded [{"x"}, {"y"}]',
        "[0:2, 0:2]  devices 0",
        "[0:2, 2:3]  devices 1",
        "[2:4, 0:2]  devices 2",
        "[2:4, 2:3]  devices 3",
    ]
    one = sw.device_put(np.zeros(1), sw.NamedSharding(MESH, P("x")))
    assert lines(sw.debug.visualize_array_sharding, one)[1:] == ["[0:1]  devices 0-1", "empty  devices 2-3"]
