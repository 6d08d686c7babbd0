# SPDX-License-Identifier: Apache-2.0
"""Scripts of `to_source` give the numbers of the program, without shardwise."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.interop.nearness import assert_near
from tests.interop.process.handed_programs import PROGRAMS, Handed
from tests.interop.process.to_jax_checks import MESHES, MIXED, X, compiled
from tests.partition.test_meshes import PROGRAMS as ON_MESHES
from tests.support.run_seed import in_turn, rounds

NAMES = sorted(MESHES)


@pytest.mark.parametrize("handed", in_turn(PROGRAMS), ids=lambda handed: handed.name)
def test_a_script_gives_the_same_numbers(handed: Handed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = compiled(handed, MESHES[NAMES[(PROGRAMS.index(handed) + rounds()) % len(NAMES)]])
    expected = [np.asarray(x) for x in sw.tree.leaves(program(*handed.arguments))]
    file = tmp_path / "script.py"
    program.to_source("jax", file)
    monkeypatch.setitem(sys.modules, "shardwise", None)
    script: dict[str, Any] = runpy.run_path(str(file))
    results = script["main"](*jax.tree.leaves(handed.arguments))
    assert not jax.config.jax_enable_x64  # it is left as it was
    for got, want in zip(results, expected, strict=True):
        assert_near(got, want, handed.exact)


@pytest.mark.parametrize("name", ["other ids", "two meshes in an op", "split in 3 on 2x3"])
def test_a_script_with_results_on_a_second_mesh(name: str, tmp_path: Path) -> None:
    mesh, function, arrays = ON_MESHES[name]
    program = sw.jit(function, mesh=mesh).lower(*arrays).compile()
    file = tmp_path / "script.py"
    program.to_source("jax", file)
    for got, want in zip(runpy.run_path(str(file))["main"](*arrays), sw.tree.leaves(program(*arrays))):
        assert_near(got, want, False)


def test_a_script_with_arguments_on_a_second_mesh(tmp_path: Path) -> None:
    there = sw.NamedSharding(MIXED, P("v", "u"))
    program = sw.jit(np.tanh, mesh=MESHES["4x2"], in_shardings=there, out_shardings=there).lower(X).compile()
    program.to_source("jax", tmp_path / "script.py")
    (got,) = runpy.run_path(str(tmp_path / "script.py"))["main"](X)
    assert_near(got, np.tanh(X), False)


def script_of(program: Any) -> dict[str, Any]:
    """The names that the script of a program defines."""
    names: dict[str, Any] = {"__name__": "script"}
    exec(compile(program.to_source("jax"), "script", "exec"), names)
    return names


def precisions(lowered: Any) -> list[str]:
    return re.findall(r"dot_general .*?precision = \[(.*?)\]", lowered.as_text())


def test_products_have_the_precision_of_to_jax() -> None:
    """By default, TPUs and GPUs round the operands of products."""
    x, w = np.ones((16, 8), np.float32), np.ones((8, 4), np.float32)
    program = sw.jit(lambda x, w: np.tanh(x @ w) @ w.T, mesh=MESHES["8"], in_shardings=P("x")).lower(x, w).compile()
    lowered = script_of(program)["run"].trace(x, w).lower(lowering_platforms=("tpu",))
    function = program.to_jax()
    with jax.default_matmul_precision("highest"):
        expected = function._run.trace(x, w).lower(lowering_platforms=("tpu",))
    assert precisions(lowered) == precisions(expected) == ["HIGHEST, HIGHEST"] * 2


def mean_program() -> Any:
    x, rate = np.ones((16, 3), np.float32), np.float32(2)
    jitted = sw.jit(lambda x, rate: x.mean(0) * rate, mesh=MESHES["8"], in_shardings=(P("x"), None))
    return jitted.lower(x, rate).compile()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            (np.ones((32, 3), np.float32), np.float32(2)),
            ValueError,
            "argument x must be float32[16, 3] as compiled, got float32[32, 3]",
        ),
        (
            (np.ones((8, 3), np.float32), np.float32(2)),
            ValueError,
            "argument x must be float32[16, 3] as compiled, got float32[8, 3]",
        ),
        (
            (np.ones((16, 3)), np.float32(2)),
            TypeError,
            "argument x must be float32[16, 3] as compiled, got float64[16, 3]",
        ),
        (
            (np.ones((16, 3), np.float32), np.int32(2)),
            TypeError,
            "argument rate must be float32[] as compiled, got int32[]",
        ),
        ((np.ones((16, 3), np.float32),), TypeError, "takes these arguments: x, rate; got 1 arguments"),
        (
            (np.ones((16, 3), np.float32), np.float32(2), 1),
            TypeError,
            "takes these arguments: x, rate; got 3 arguments",
        ),
    ],
    ids=["more rows", "fewer rows", "a wider array", "another scalar", "too few", "too many"],
)
def test_a_script_names_a_wrong_argument(arguments: Any, error: type[Exception], message: str) -> None:
    main = script_of(mean_program())["main"]
    with pytest.raises(error, match=re.escape(message)):
        main(*arguments)


def test_a_script_is_traced_once() -> None:
    names = script_of(mean_program())
    calls, local = [], names["local"]
    names["local"] = lambda *args: calls.append(1) or local(*args)
    x = np.arange(48, dtype=np.float32).reshape(16, 3)
    for scale in (1, 2.0, np.float32(3)):
        np.testing.assert_allclose(names["main"](x * 2, scale)[0], x.mean(0) * 2 * scale, rtol=1e-6)
    assert len(calls) == 1


def test_a_script_with_too_few_devices_says_how_many_it_needs() -> None:
    program = sw.jit(lambda x: x + 1, mesh=sw.Mesh({"x": 16})).lower(np.ones(16, np.float32)).compile()
    message = (
        "this program needs 16 devices, got 8; set XLA_FLAGS=--xla_force_host_platform_device_count=16 for host devices"
    )
    with pytest.raises(RuntimeError, match=re.escape(message)):
        script_of(program)


def test_a_script_prints(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        sw.debug.print("{} of {y}, {:.2f}", {"rows": x[:2], "n": 3}, x.sum(), y=x[0])
        sw.debug.print("it's done {}", "here")
        return x * 2

    x = np.arange(16, dtype=np.float32)
    program = sw.jit(f, mesh=MESHES["8"], in_shardings=P("x")).lower(x).compile()
    program(x)
    expected = capsys.readouterr().out
    results = script_of(program)["main"](x)
    assert capsys.readouterr().out == expected
    assert "120.00" in expected
    assert [y.tolist() for y in results] == [(x * 2).tolist()]
