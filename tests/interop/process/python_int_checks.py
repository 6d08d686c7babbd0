# SPDX-License-Identifier: Apache-2.0
"""Python ints that are arguments of a program must be in the range of the dtype that it uses them in, also in JAX."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from shardwise.unpartitioned import unpartitioned

MESH = sw.Mesh({"x": 4})
V = np.arange(8, dtype=np.int8)
PROGRAM = sw.jit(lambda v, k: v + k, mesh=MESH, in_shardings=(P("x"), None)).lower(V, 3).compile()
TOO_LARGE = "call: a Python int must fit int8, the dtype that the program uses it in, got 1000; convert the array"


def test_each_call_checks_the_range() -> None:
    function = PROGRAM.to_jax()
    np.testing.assert_array_equal(function.get(function(V, -7)), V - 7)
    for call in (PROGRAM, function, function.put):
        with pytest.raises(OverflowError, match=TOO_LARGE):
            call(V, 1000)


def test_a_gradient_without_partitioning_checks_the_range() -> None:
    def gradient(k: int) -> Any:
        with unpartitioned(MESH):
            return sw.grad(lambda x, v, k: (x * (v + k)).sum())(np.ones(8, np.float32), V, k)

    np.testing.assert_array_equal(gradient(3), V + 3)
    with pytest.raises(OverflowError, match=TOO_LARGE):
        gradient(1000)


def test_a_call_that_jax_traces_checks_the_range() -> None:
    function = PROGRAM.to_jax()
    with jax.enable_x64(True):
        np.testing.assert_array_equal(jax.jit(lambda v: function(v, -7))(V), V - 7)
        with pytest.raises(OverflowError, match=TOO_LARGE):
            jax.jit(lambda v: function(v, 1000))(V)
        static = jax.jit(function, static_argnums=1)
        np.testing.assert_array_equal(static(V, 100), V + 100)
        with pytest.raises(OverflowError, match=TOO_LARGE):
            static(V, 1000)


@pytest.mark.parametrize("transform", [jax.jit, lambda f: jax.vmap(f, in_axes=(None, 0))], ids=["jit", "vmap"])
def test_an_int_that_jax_traces_is_refused(transform: Any) -> None:
    message = (
        "to_jax: argument k must be a Python int, whose range is checked, got a traced int64[{}]; "
        "close over it, or make it static in jax.jit"
    )
    with jax.enable_x64(True), pytest.raises(sw.UnsupportedError, match=re.escape(message.format(""))):
        transform(PROGRAM.to_jax())(V, 1000 if transform is jax.jit else np.array([1, 1000]))


@pytest.mark.parametrize("target", ["jax", "mpi4py"])
def test_a_script_checks_each_range_once(target: str) -> None:
    def f(v: Any, k: Any) -> Any:
        return v[0] + k["n"], v[0] * k["n"], v[1] + k["n"], v[0] ** k["n"]

    arguments = (V, V.astype(np.uint16)), {"n": 3}
    text = sw.jit(f, mesh=MESH).lower(*arguments).compile().to_source(target)
    found = re.findall(r"    if not (.*) <= int\(arguments\[2\]\) <= (.*):\n +raise (\w+)\((.*)\)\n", text)
    assert [row[:3] for row in found] == [
        ("-128", "127", "OverflowError"),
        ("0", "65535", "OverflowError"),
        ("0", "9223372036854775807", "ValueError"),
    ]
    assert found[0][3] == "\"main: argument k['n'] must be from -128 to 127\""


def test_a_script_for_jax_checks_the_range(tmp_path: Path) -> None:
    names: dict[str, Any] = {"__name__": "script"}
    exec(compile(PROGRAM.to_source("jax"), "script", "exec"), names)
    np.testing.assert_array_equal(names["main"](V, 100)[0], V + 100)
    with pytest.raises(OverflowError, match=r"^main: argument k must be from -128 to 127$"):
        names["main"](V, 1000)
    with pytest.raises(TypeError, match=r"^main: argument k must be int64\[\] as compiled, got float64\[\]$"):
        names["main"](V, 2.5)


def test_a_script_raises_the_builtin_error_of_a_limit() -> None:
    """Without x64, JAX keeps no int64; the error of the program is a `DTypeError`."""
    program = sw.jit(sw.from_jax(lambda v, k: v * k), mesh=MESH).lower(np.ones(2, np.float32), 3).compile()
    line = 'raise TypeError("main: argument k must be from -2147483648 to 2147483647")'.replace('"', "'")
    assert line in program.to_source("mpi4py")
