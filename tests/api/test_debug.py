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


# ---- loops, branches and regions ------------------------------------------------------------------------------------

LOOPS: dict[str, Callable[[Any, Any], Any]] = {
    "scan": lambda lib, x: lib.scan(lambda c, a: ((lib.print("c {} a {a}", c, a=a), c + a)[1], None), x[0], x)[0],
    "fori_loop": lambda lib, x: lib.fori_loop(0, 3, lambda i, v: (lib.print("{} {}", i, v), v + i)[1], x),
    "traced bounds": lambda lib, x: lib.fori_loop(
        0, x[2].astype("int32"), lambda i, v: (lib.print("{} {}", i, v), v + 1)[1], x
    ),
    "while_loop": lambda lib, x: lib.while_loop(
        lambda v: (lib.print("test {}", v.sum()), v.sum() < 20)[1], lambda v: (lib.print("{}", v), v * 2)[1], x
    ),
    "cond": lambda lib, x: lib.cond(
        x[0] > 0, lambda v: (lib.print("yes {}", v), v)[1], lambda v: (lib.print("no {}", v), -v)[1], x
    ),
    "switch": lambda lib, x: lib.switch(
        x[2].astype("int32"), [lambda v, k=k: (lib.print(f"{k} {{}}", v), v)[1] for k in range(3)], x
    ),
    "nested": lambda lib, x: lib.fori_loop(
        0, 2, lambda i, v: lib.fori_loop(0, 2, lambda j, u: (lib.print("{} {}", i, j), u + i * j)[1], v), x
    ),
}


class Library:
    """The functions of Shardwise, or of JAX, by one set of names."""

    def __init__(self, printer: Any, control: Any) -> None:
        self.print = printer
        self.scan, self.fori_loop, self.while_loop = control.scan, control.fori_loop, control.while_loop
        self.cond, self.switch = control.cond, control.switch


@pytest.mark.parametrize("name", LOOPS)
def test_loops_and_branches_print_what_jax_prints(name: str) -> None:
    jax = oracle("jax")
    x = np.array([0, 1, 2, 3], np.float32)
    ours, theirs = Library(sw.debug.print, sw), Library(jax.debug.print, jax.lax)

    def run_jax() -> None:
        jax.jit(lambda x: LOOPS[name](theirs, x))(x)
        jax.effects_barrier()

    expected = lines(run_jax)
    assert expected
    f = sw.jit(lambda x: LOOPS[name](ours, x), mesh=MESH, in_shardings=P("x"))
    assert lines(f, x) == expected
    assert lines(f, x) == expected
    program = f.lower(x).compile()
    assert lines(lambda: program.run(x, faithful=True, poison=True)) == expected
    assert lines(lambda: (program.memory(), program.collectives(), program.as_text())) == []
    assert lines(lambda: LOOPS[name](ours, x)) == expected  # outside jit


def test_lines_of_loops_and_of_the_top_level_are_in_program_order() -> None:
    def f(x: Any) -> Any:
        sw.debug.print("first {}", x.sum())
        x = sw.fori_loop(0, 2, lambda i, v: (sw.debug.print("loop {}", i), v + 1)[1], x)
        sw.debug.print("second {}", x.sum())
        x = sw.cond(x[0] > 0, lambda v: (sw.debug.print("branch {}", v[0]), v)[1], lambda v: v, x)
        sw.debug.print("third {}", x.sum())
        return x

    expected = ["first 3.0", "loop 0", "loop 1", "second 7.0", "branch 3.0", "third 7.0"]
    assert lines(sw.jit(f, mesh=MESH, in_shardings=P("x")), ROW) == expected
    assert lines(f, ROW) == expected


def test_a_run_that_fails_has_printed_what_came_before() -> None:
    def fails(x: np.ndarray) -> np.ndarray:
        raise RuntimeError("no")

    sw.register_custom_call("test_debug.fails", fails)

    @sw.jit(mesh=MESH)
    def f(x: Any) -> Any:
        sw.fori_loop(0, 2, lambda i, v: (sw.debug.print("loop {}", i), v + 1)[1], x)
        return sw.custom_call("test_debug.fails", sw.ShapeDtypeStruct(x.shape, x.dtype), x)

    def run() -> None:
        with contextlib.suppress(RuntimeError):
            f(ROW)

    assert lines(run) == ["loop 0", "loop 1"]


def test_each_device_of_a_manual_region_prints_its_shard() -> None:
    def body(x: Any, w: Any) -> Any:
        sw.debug.print("shard {} of {}", x, w)
        return sw.fori_loop(0, 2, lambda i, v: (sw.debug.print("{} {}", i, v), v + 1)[1], x)

    mesh = sw.Mesh({"x": 2})
    f = sw.jit(sw.shard_map(body, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x")), mesh=mesh)
    expected = ["shard [1.] of 7", "shard [2.] of 7", "0 [1.]", "0 [2.]", "1 [2.]", "1 [3.]"]
    assert lines(f, ROW, np.int32(7)) == expected
    program = f.lower(ROW, np.int32(7)).compile()
    assert lines(lambda: program.run(ROW, np.int32(7), faithful=True)) == expected


def test_equal_shards_print_once_where_some_axes_are_not_manual() -> None:
    def body(x: Any, w: Any) -> Any:
        sw.debug.print("{}", w)
        sw.debug.print("{}", x)
        return x

    f = sw.shard_map(body, mesh=MESH, in_specs=(P("x"), P()), out_specs=P("x"), axis_names={"x"})
    assert lines(f, ROW, np.int32(7)) == ["7", "[1.]", "[2.]"]


def test_transforms_of_loops_print_each_trip() -> None:
    def f(x: Any, w: Any) -> Any:
        def body(i: Any, v: Any) -> Any:
            sw.debug.print("{} {} {}", i, v, w)
            return v * 2

        return sw.fori_loop(0, 2, body, x)

    expected = ["0 1.0 5", "0 2.0 5", "1 2.0 5", "1 4.0 5"]
    assert lines(sw.vmap(f, in_axes=(0, None)), ROW, np.int32(5)) == expected
    assert lines(sw.grad(f), 1.5, np.int32(5)) == ["0 1.5 5", "1 3.0 5"]
    nested = sw.vmap(sw.vmap(f, in_axes=(None, 0)), in_axes=(0, None))
    both = [f"{i} {x * 2**i} {w}" for i in range(2) for x in ROW for w in (5, 6)]
    assert lines(nested, ROW, np.array([5, 6])) == both


def test_a_script_refuses_a_print_in_a_loop() -> None:
    @sw.jit(mesh=MESH)
    def f(x: Any) -> Any:
        return sw.fori_loop(0, 2, lambda i, v: (sw.debug.print("{}", i), v)[1], x)

    with pytest.raises(sw.UnsupportedError, match=r"prints only in shardwise, .*; return the value, and print it"):
        f.lower(ROW).compile().to_source("mpi4py")


# ---- tiles of traced values -----------------------------------------------------------------------------------------


def test_tiles_of_a_traced_value_are_printed_when_its_program_is_compiled() -> None:
    @sw.jit(mesh=MESH, in_shardings=P("x"))
    def f(x: Any) -> Any:
        sw.debug.visualize_array_sharding(x * 2)
        return x

    tiles = ['float32[5,2] sharded [{"x"}, {}]', "[0:3, 0:2]  devices 0-1", "[3:5, 0:2]  devices 2-3"]
    x = np.zeros((5, 2), np.float32)
    assert lines(f.lower, x) == []
    assert lines(f, x) == tiles
    assert lines(f, x) == []  # compiled before
    assert lines(lambda: f.lower(x).compile()) == tiles


def test_tiles_are_printed_in_loops_and_manual_regions() -> None:
    def body(x: Any) -> Any:
        sw.debug.visualize_array_sharding(x)
        return x

    expected = ["float32[2] sharded [{}]", "[0:2]  devices 0-3"]
    assert lines(sw.shard_map(body, mesh=MESH, in_specs=P("x"), out_specs=P("x")), np.zeros(4, np.float32)) == expected
    partial = sw.shard_map(body, mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    split = sw.jit(lambda x: partial(sw.shard(x, P(("x", "y")))), mesh=MESH)
    expected = ['float32[2] sharded [{"y"}]', "[0:1]  devices 0,2", "[1:2]  devices 1,3"]
    assert lines(split, np.zeros(4, np.float32)) == expected
    loop = sw.jit(lambda x: sw.fori_loop(0, 3, lambda i, v: body(v) + 1, x), mesh=MESH, in_shardings=P("y"))
    expected = ['float32[4] sharded [{"y"}]', "[0:2]  devices 0,2", "[2:4]  devices 1,3"]
    assert lines(loop, np.zeros(4, np.float32)) == expected


def test_other_values_have_no_tiles() -> None:
    with pytest.raises(TypeError, match="visualize_array_sharding: takes an Array or a traced value, got ndarray"):
        sw.debug.visualize_array_sharding(ROW)
