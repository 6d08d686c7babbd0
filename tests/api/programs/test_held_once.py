# SPDX-License-Identifier: Apache-2.0
"""An array that a program closes over is one buffer: however often it is used, whatever wraps it, equal ones too."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import NamedSharding, P
from shardwise.testing import assert_matches_unpartitioned

MESH = sw.Mesh({"x": 4})
X = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
CLOSED = np.cos(np.arange(64, dtype=np.float32)).reshape(8, 8)
Use = Callable[[Any], Any]  # of a traced value with the array


def same() -> np.ndarray:
    return CLOSED


COPIES: dict[str, Callable[[], np.ndarray]] = {
    "the same object": same,
    "a copy": lambda: CLOSED.copy(),
    "in another order in memory": lambda: np.asfortranarray(CLOSED),
    "with other bytes": lambda: CLOSED.astype(">f4"),
    "from a list": lambda: np.array(CLOSED.tolist(), np.float32),
    "a view": lambda: np.broadcast_to(CLOSED, (2, 8, 8))[1],
}

# Each wraps a function of one array, which may close over others.
WRAPPERS: dict[str, Callable[[Use], Use]] = {
    "nothing": lambda f: f,
    "jit": lambda f: sw.jit(f),
    "jit in jit": lambda f: sw.jit(sw.jit(f)),
    "vmap": lambda f: lambda x: sw.vmap(f)(np.stack([x, x])).sum(axis=0),
    "grad": lambda f: sw.grad(lambda x: f(x).sum()),
    "value_and_grad": lambda f: lambda x: sw.value_and_grad(lambda x: f(x).sum())(x)[1],
    "checkpoint": lambda f: sw.checkpoint(f),
    "gradient of checkpoint": lambda f: sw.grad(lambda x: np.sin(sw.checkpoint(f)(x)).sum()),
    "scan": lambda f: lambda x: sw.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
    "gradient of scan": lambda f: sw.grad(
        lambda x: np.sum(sw.scan(lambda c, _: (np.sin(f(c)), None), x, None, length=2)[0])
    ),
    "fori_loop": lambda f: lambda x: sw.fori_loop(0, 2, lambda _, c: f(c), x),
    "cond": lambda f: lambda x: sw.cond(x[0, 0] > 0, f, lambda x: f(x) * 2, x),
    "shard_map": lambda f: sw.shard_map(f, mesh=MESH, in_specs=P(None, None), out_specs=P(None, None)),
    "partial": lambda f: functools.partial(lambda scale, x: f(x) * scale, np.float32(2)),
}


def program(f: Use) -> sw.Program:
    return sw.jit(f, mesh=MESH, in_shardings=P("x")).lower(X).compile()


def held(compiled: sw.Program) -> int:
    """How many arrays the program closes over: in the program, in memory, in texts and in scripts they are the same."""
    count = len(compiled._traced._call.hoisted)
    assert compiled.as_text("global").count("%arg") >= count
    signature = compiled.as_text("local").split("@main(")[1].split(") -> ")[0]
    assert signature.count("tensor<") == 1 + count
    sizes = [row.bytes for row in compiled.memory() if row.op == "argument"]
    assert len(sizes) == 1 + count
    assert compiled.memory().argument_bytes == sum(sizes)
    for target in ("jax", "mpi4py"):
        assert len(set(re.findall(r"hidden_\d+", compiled.to_source(target)))) == count
    return count


@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.parametrize("uses", [1, 3])
@pytest.mark.parametrize("copy", ["the same object", "a copy"])
def test_an_array_is_held_once(name: str, uses: int, copy: str) -> None:
    def f(x: Any) -> Any:
        for _ in range(uses):
            x = np.tanh(x @ COPIES[copy]()) + COPIES[copy]()
        return x

    def outer(x: Any) -> Any:
        return WRAPPERS[name](f)(x) - same()

    assert held(program(outer)) == 1


@pytest.mark.parametrize("first", COPIES)
@pytest.mark.parametrize("second", COPIES)
def test_equal_arrays_are_one(first: str, second: str) -> None:
    def f(x: Any) -> Any:
        return (x + COPIES[first]()) * COPIES[second]()

    compiled = program(f)
    assert held(compiled) == 1
    np.testing.assert_allclose(np.asarray(compiled(X)), (X + CLOSED) * CLOSED, rtol=1e-6)


FIRST = np.where(np.arange(64).reshape(8, 8) == 0, np.float32(-1), np.float32(0))
DIFFERENT: dict[str, Callable[[], np.ndarray]] = {
    "another element": lambda: np.where(np.arange(64).reshape(8, 8) == 37, 0, CLOSED),
    "another dtype": lambda: CLOSED.astype(np.float64),
    "another shape": lambda: CLOSED.reshape(1, 8, 8),
    "another sign of zero": lambda: -FIRST,
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_arrays_are_two(name: str) -> None:
    base = abs(FIRST) if "zero" in name else CLOSED

    def f(x: Any) -> Any:
        return (x + base) * DIFFERENT[name]()

    compiled = program(f)
    assert len(compiled._traced._call.hoisted) == 2
    np.testing.assert_allclose(np.asarray(compiled(X)), (X + base) * DIFFERENT[name](), rtol=1e-6)


def test_a_write_between_two_uses_counts() -> None:
    array = CLOSED.copy()

    def f(x: Any) -> Any:
        array[:] = CLOSED
        y = x + array
        array[3, 3] = 7
        return y * array + CLOSED

    assert held(program(f)) == 2
    assert_matches_unpartitioned(f, X, mesh=MESH)


def test_arrays_on_the_mesh_are_held_once() -> None:
    rows, again = (sw.device_put(CLOSED, NamedSharding(MESH, P("x"))) for _ in range(2))
    columns = sw.device_put(CLOSED, NamedSharding(MESH, P(None, "x")))
    assert held(program(lambda x: (x + rows) * rows)) == 1
    assert held(program(lambda x: (x + rows) * again)) == 1
    assert held(program(lambda x: (x + rows) * columns)) == 2  # each keeps its sharding


@pytest.mark.parametrize("uses", [1, 3])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda f: f,
        lambda f: lambda x: sw.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
        lambda f: sw.grad(lambda x: f(x).sum()),
        lambda f: sw.checkpoint(f),
    ],
    ids=["nothing", "scan", "grad", "checkpoint"],
)
def test_small_constants_are_held_once(uses: int, wrap: Callable[[Use], Use]) -> None:
    small = np.arange(8, dtype=np.float32) + 0.25

    def f(x: Any) -> Any:
        for _ in range(uses):
            x = np.sin(x * small.copy())
        return x

    compiled = program(lambda x: wrap(f)(x) + small)
    assert compiled.as_text("local").count("dense<[") == 1
    for target in ("jax", "mpi4py"):
        assert compiled.to_source(target).count("7.25") == 1


def test_equal_constants_of_branches_are_held_once() -> None:
    """Larger ones, which only texts have, are stored beside the scripts."""
    numbers = ", ".join(str(i + 0.25) for i in range(32))
    constant = f"stablehlo.constant dense<[{numbers}]> : tensor<32xf32>"
    text = f"""
func.func @main(%p: tensor<i1>, %x: tensor<32xf32>) -> tensor<32xf32> {{
  %y = "stablehlo.if"(%p) ({{
    %c = {constant}
    %a = stablehlo.add %x, %c : tensor<32xf32>
    stablehlo.return %a : tensor<32xf32>
  }}, {{
    %c = {constant}
    %a = stablehlo.multiply %x, %c : tensor<32xf32>
    stablehlo.return %a : tensor<32xf32>
  }}) : (tensor<i1>) -> tensor<32xf32>
  %c = {constant}
  %z = stablehlo.subtract %y, %c : tensor<32xf32>
  return %z : tensor<32xf32>
}}
"""
    compiled = sw.parse(text).compile(MESH)
    assert compiled.as_text("local").count("1.250000e+00") == 1
    for target in ("jax", "mpi4py"):
        assert set(re.findall(r'CONSTANTS\["(\w+)"\]', compiled.to_source(target))) == {"c0"}
