# SPDX-License-Identifier: Apache-2.0
"""The hand-over to JAX, without JAX: every op has a form, scripts are short, errors say what is missing."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P, _core
from shardwise.interop.source.library import helpers_of, names_of
from shardwise.interop.source.literals import array_text, wrapped
from shardwise.interop.source.target import Target
from shardwise.interop.to_jax import JAX
from shardwise.interop.to_mpi4py import MPI4PY
from tests.interop.process.handed_programs import PROGRAMS, Handed
from tests.support.paths import ROOT

MESH = sw.Mesh({"x": 4, "y": 2})


TARGETS = (JAX, MPI4PY)
each_target = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)


@each_target
def test_every_op_that_runs_has_an_emission_or_a_reason(target: Target) -> None:
    running = {op.name for op in _core.ir.all_ops() if op.runnable and not op.composed}
    # A program of one device has none of these: two are inlined, and `localize` replaces the others by a select.
    inlined = {"sdy.manual_computation", "sdy.named_computation"}
    replaced = inlined | {"sdy.replicated_to_unreduced", "sdy.sharded_to_unreduced"}
    assert running - target.emissions.keys() - target.refused.keys() == replaced
    assert target.emissions.keys() & target.refused.keys() == set()
    known = {op.name for op in _core.ir.all_ops()}
    assert (target.emissions.keys() | target.refused.keys()) <= known


@each_target
def test_helpers_are_short(target: Target) -> None:
    for text in helpers_of(target, tuple(names_of(target))):
        assert len(text.strip().splitlines()) <= 25, text


def counts(program: Any) -> tuple[int, int]:
    """Ops and regions of the local program, without those of inlined combiners."""
    ops = regions = 0

    def visit(region: Any) -> None:
        nonlocal ops, regions
        for op in region.ops:
            ops += 1
            for inner in op.regions:
                regions += 1
                visit(inner)

    visit(program._compiled.stages["local"].main.body)
    return ops, regions


@each_target
@pytest.mark.parametrize("handed", PROGRAMS, ids=lambda handed: handed.name)
def test_scripts_are_short_and_formatted(handed: Handed, target: Target) -> None:
    specs = [P("x") if i == 0 else None for i in range(len(handed.arguments))]
    program = sw.jit(handed.function, mesh=MESH, in_shardings=tuple(specs)).lower(*handed.arguments).compile()
    text = program.to_source(target.name)
    compile(text, "script", "exec")
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("def local("))
    end = lines.index("def main(*args):")
    ops, regions = counts(program)
    assert end - start - 3 <= 1.3 * ops + 4 * regions + 2, text
    assert max(map(len, lines[start:end])) <= 120
    assert "shardwise" not in text.partition("\n")[2]


def test_a_script_for_mpi_is_read_like_the_program() -> None:
    x, w = np.ones((8, 4), np.float32), np.ones((4, 6), np.float32)

    def layer(x: Any, w: Any) -> Any:
        hidden = np.tanh(x @ w)
        return hidden.sum(0)

    program = sw.jit(layer, mesh=sw.Mesh({"data": 4}), in_shardings=(P("data"), None)).lower(x, w).compile()
    text = program.to_source("mpi4py")
    line = layer.__code__.co_firstlineno
    assert (
        text[text.index("ALONG_data") : text.index("def main")].rstrip()
        == f"""ALONG_data = along('data')


def local(x, w):
    t1 = x @ w  # test_handover.py:{line + 1}
    hidden = np.tanh(t1)
    t3 = hidden.sum(0)  # test_handover.py:{line + 2}
    t4 = all_reduce(t3, ALONG_data, np.add)
    return (t4,)"""
    )
    assert text.startswith('"""layer on 4 devices, {\'data\': 4}; made by shardwise."""\n')


@each_target
def test_the_script_of_a_lambda_has_a_title(target: Target) -> None:
    program = sw.jit(lambda x: x + 1, mesh=MESH, in_shardings=(P("x"),)).lower(np.ones(8, np.float32)).compile()
    assert program.to_source(target.name).startswith('"""lambda on 8 devices, ')


def test_names_of_the_user_do_not_hide_helpers() -> None:
    def f(x: Any) -> Any:
        fold = x + 1
        all_reduce = fold.sum(0)
        return all_reduce * 2

    program = sw.jit(f, mesh=MESH, in_shardings=(P("x"),)).lower(np.ones((8, 2), np.float32)).compile()
    text = program.to_source("mpi4py")
    assert "all_reduce_2 = " in text
    assert "fold_2 = " in text


def test_large_constants_are_beside_the_script(tmp_path: Any) -> None:
    table = np.arange(600, dtype=np.float32).reshape(20, 30)
    program = sw.jit(lambda x: x @ table, mesh=MESH).lower(np.ones((4, 20), np.float32)).compile()
    text = program.to_source("jax", tmp_path / "program.py")
    assert (tmp_path / "program.py").read_text() == text
    np.testing.assert_array_equal(np.load(tmp_path / "program.npz")["hidden0"], table)
    assert len(text) < 4000
    assert "b85decode" in program.to_source("jax")


@pytest.mark.parametrize(
    "array",
    [
        np.eye(4, dtype=np.complex64) * (0.1 - 2j),
        np.array([-0.0, complex(1, -0.0), complex(-0.0, 3), complex(2, np.inf)]),
        np.arange(16).reshape(2, 8) + 123456789,
    ],
    ids=["complex", "zeros with a sign", "integers"],
)
def test_a_constant_is_written_in_all_bits(array: np.ndarray) -> None:
    text = array_text(array, "ml_dtypes")
    lines = wrapped(f"x = {text}  # file.py:3", "    ")
    assert max(map(len, lines)) <= 120
    for code in (text, "\n".join(lines).partition("=")[2]):
        found = eval(code.strip(), {"np": np})
        assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_a_process_without_jax_is_told_what_to_install() -> None:
    program = """
import sys
sys.modules["jax"] = None
import numpy as np, shardwise as sw
program = sw.jit(lambda x: x + 1, mesh=sw.Mesh({"x": 2})).lower(np.ones(4)).compile()
calls = [lambda: sw.from_jax(np.sin), program.to_jax, program.jax_shardings, lambda: sw.annotate_jax(np.sin, program)]
calls.append(lambda: program.as_text("export"))
for call in calls:
    try:
        call()
    except sw.UnsupportedError as error:
        print(str(error).partition(" (at")[0])
print(program.to_source("jax").count("lax"))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    *errors, lax = done.stdout.splitlines()
    names = ("from_jax", "to_jax", "jax_shardings", "annotate_jax", 'as_text("export")')
    assert errors == [f"{name}: needs JAX, got no module named jax; pip install jax" for name in names]
    assert int(lax) > 0
