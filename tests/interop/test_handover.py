# SPDX-License-Identifier: Apache-2.0
"""The hand-over to JAX, without JAX: every op has a form, scripts are short, errors say what is missing."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
from itertools import chain
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import shardwise as sw
from shardwise import P, _core
from shardwise.interop.source.library import helpers_of, names_of
from shardwise.interop.source.literals import array_text, wrapped
from shardwise.interop.source.script import script_of
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
    # A program of one device has none of these: four are inlined, and `localize` replaces the others by a select.
    named = {"sdy.named_computation", "shardwise.checkpoint", "shardwise.custom_derivative"}
    inlined = {"sdy.manual_computation", *named}
    replaced = inlined | {"sdy.replicated_to_unreduced", "sdy.sharded_to_unreduced"}
    assert running - target.emissions.keys() - target.refused.keys() == replaced
    assert target.emissions.keys() & target.refused.keys() == set()
    known = {op.name for op in _core.ir.all_ops()}
    assert (target.emissions.keys() | target.refused.keys()) <= known


@each_target
def test_helpers_are_short(target: Target) -> None:
    helpers = helpers_of(target, tuple(names_of(target)))
    assert helpers
    for text in helpers:
        assert len(text.strip().splitlines()) <= 25, text


def counts(program: Any) -> tuple[int, int, int]:
    """Ops and regions of the local program, without constants; and how many of the ops are exchanges."""
    ops = regions = exchanges = 0

    def visit(region: Any) -> None:
        nonlocal ops, regions, exchanges
        for op in region.ops:
            ops += op.name != "stablehlo.constant"
            exchanges += op.name == "shardwise.exchange"
            for inner in op.regions:
                regions += 1
                visit(inner)

    visit(program._compiled.stages["local"].main.body)
    return ops, regions, exchanges


MAIN_BEGINS = {"jax": "# What `main` runs on", "mpi4py": "def main(*args):"}


def program_lines(text: str, target: Target) -> tuple[list[str], list[str]]:
    """The lines of tables, and those of ``local`` and the functions that it calls."""
    for helper in helpers_of(target, tuple(names_of(target))):
        text = text.replace(helper, "")
    text = text[text.index("\n]\n", text.index("RESULTS = [")) : text.index(MAIN_BEGINS[target.name])]
    lines = [line for line in text.splitlines()[2:] if line.strip()]
    begin = next(i for i, line in enumerate(lines) if line.startswith(("def ", "@")))
    return lines[:begin], lines[begin:]


@each_target
@pytest.mark.parametrize("handed", PROGRAMS, ids=lambda handed: handed.name)
def test_scripts_are_short_and_formatted(handed: Handed, target: Target) -> None:
    specs = [P("x") if i == 0 else None for i in range(len(handed.arguments))]
    program = sw.jit(handed.function, mesh=MESH, in_shardings=tuple(specs)).lower(*handed.arguments).compile()
    text = program.to_source(target.name)
    compile(text, "script", "exec")
    tables, lines = program_lines(text, target)
    ops, regions, exchanges = counts(program)
    assert len(lines) <= 1.3 * ops + 4 * regions + 2, "\n".join(lines)
    # Each permute of an exchange may take a line; other tables have one each.
    permutes = sum(row.kind == "collective_permute" for row in script_of(program, target).transfers)
    assert len(tables) <= 2 + ops / 8 + 8 * exchanges + permutes, "\n".join(tables)
    assert max(map(len, text.splitlines())) <= 120
    assert "shardwise" not in text.partition("\n")[2]


@each_target
def test_an_exchange_takes_the_same_text_on_any_number_of_devices(target: Target) -> None:
    texts = []
    for count in (8, 64):
        x = np.arange(4 * count, dtype=np.float32)
        program = sw.jit(lambda x: (x[3:], np.roll(x, 2)), mesh=sw.Mesh({"x": count}), in_shardings=P("x"))
        text = program.lower(x).compile().to_source(target.name)
        assert "exchange((x,)" in text
        texts.append(re.sub(r"\s+", "", re.sub(r"\d+", "N", "".join(chain(*program_lines(text, target))))))
    assert texts[0] == texts[1]


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


def test_names_of_the_user_do_not_hide_those_of_a_script() -> None:
    """Of the parameters of loops, and of globals."""

    def f(DIMS_0: Any, ids: Any, carry: Any) -> Any:  # noqa: N803
        row = DIMS_0[1]
        end, _ = sw.scan(lambda rows, x: (rows + x * carry, rows), row, DIMS_0)
        return end, np.take(DIMS_0, ids, 0)

    arguments = np.ones((8, 2), np.float32), np.array([1, 3, 5]), np.float32(2)
    text = sw.jit(f, mesh=MESH).lower(*arguments).compile().to_source("jax")
    body = text[text.index("def local") :]
    assert body.startswith("def local(dims_0, ids, carry):")
    assert "DIMS_0 = lax.GatherDimensionNumbers" in text
    for parameters in re.findall(r"def body\((\w+), (\w+)\)", body):
        assert not any(re.search(rf"^ *{name} = ", body, re.MULTILINE) for name in parameters)


def test_an_argument_does_not_hide_a_global_of_a_script() -> None:
    """The script names ``DIMS[0]`` ``DIMS_0``."""

    def f(DIMS: Any, ids: Any) -> Any:  # noqa: N803
        return np.take(DIMS[0], ids, 0)

    text = sw.jit(f, mesh=MESH).lower([np.ones((8, 2), np.float32)], np.array([1, 3])).compile().to_source("jax")
    assert "DIMS_0 = lax.GatherDimensionNumbers" in text
    assert "def local(dims_0, ids):" in text


def test_arguments_that_python_reads_as_one_name_are_two() -> None:
    x = np.ones(8, np.float32)
    program = sw.jit(lambda x: x["\ufb01"] - x["fi"], mesh=MESH).lower({"\ufb01": x, "fi": x + 1}).compile()
    assert "def local(x_fi, x_fi_2):" in program.to_source("mpi4py")


def sums_script(specs: dict[str, P]) -> str:
    """The script of a sum over each spec; the keys are the mesh axes of 2 devices."""
    mesh = sw.Mesh(dict.fromkeys(specs, 2))
    jitted = sw.jit(lambda *xs: tuple(x.sum(0) for x in xs), mesh=mesh, in_shardings=tuple(specs.values()))
    return jitted.lower(*[np.ones((8, 3), np.float32)] * len(specs)).compile().to_source("mpi4py")


@pytest.mark.parametrize(
    ("specs", "wanted"),
    [
        (
            {"a": P("2"), "2": P(("a", "2")), "a_2": P("a_2")},
            {"ALONG_2": "('2')", "ALONG_a_2": "('a', '2')", "ALONG_a_2_2": "('a_2')"},
        ),
        (
            {"a": P("a_2"), "2": P(("a", "2")), "a_2": P("2")},
            {"ALONG_a_2": "('a_2')", "ALONG_a_2_2": "('a', '2')", "ALONG_2": "('2')"},
        ),
        (
            {"x-y": P("x-y"), "a b": P("a b"), "a_b": P("a_b")},
            {"ALONG_x_y": "('x-y')", "ALONG_a_b": "('a b')", "ALONG_a_b_2": "('a_b')"},
        ),
    ],
)
def test_each_communicator_has_a_name_of_its_own(specs: dict[str, P], wanted: dict[str, str]) -> None:
    text = sums_script(specs)
    ast.parse(text)
    assert re.findall(r"^(ALONG\w*) = along(.*)", text, re.MULTILINE) == list(wanted.items())
    assert re.findall(r"all_reduce\(t\d, (\w+), np.add\)", text) == list(wanted)


ODD_NAMES = ("é", "ü", "_", "a\\", 'a"""', "")


def test_odd_names_of_axes_stay_apart_in_ascii() -> None:
    text = sums_script({name: P(name) for name in ODD_NAMES})
    ast.parse(text)
    names = re.findall(r"^ALONG\w* = along\('(.*)'\)", text, re.MULTILINE)
    assert names == ["__", "___", "_", "a_", "a___", "____"]
    assert len(set(re.findall(r"^ALONG\w*", text, re.MULTILINE))) == len(ODD_NAMES)


@each_target
def test_functions_of_many_arguments_have_lines_of_bounded_length(target: Target) -> None:
    def f(parameters: Any, x: Any) -> Any:
        for weight in parameters.values():
            x = np.tanh(x @ weight)
        return x

    parameters = {f"weight_of_layer_{i}": np.ones((4, 4), np.float32) for i in range(20)}
    text = sw.jit(f, mesh=MESH).lower(parameters, np.ones((8, 4), np.float32)).compile().to_source(target.name)
    assert "def local(\n    parameters_weight_of_layer_0, " in text
    assert max(map(len, text.splitlines())) <= 120
    ast.parse(text)


def test_large_constants_are_beside_the_script(tmp_path: Any) -> None:
    table = np.arange(600, dtype=np.float32).reshape(20, 30)
    program = sw.jit(lambda x: x @ table, mesh=MESH).lower(np.ones((4, 20), np.float32)).compile()
    text = program.to_source("jax", tmp_path / "program.py")
    assert (tmp_path / "program.py").read_text() == text
    np.testing.assert_array_equal(np.load(tmp_path / "program.npz")["hidden0"], table)
    assert len(text) < 5000
    alone = program.to_source("jax")
    assert "b85decode" in alone
    assert max(map(len, alone.splitlines())) <= 120


@each_target
def test_a_script_without_a_path_has_few_constants(target: Target) -> None:
    table = np.arange(10_000, dtype=np.float32).reshape(100, 100)
    program = sw.jit(lambda x: x @ table, mesh=MESH).lower(np.ones((4, 100), np.float32)).compile()
    message = (
        "to_source: without path=, the constants of a script must have at most 4096 bytes, got 40000, the largest in "
    )
    message += "float32[100, 100]; pass path=, which writes them to an .npz file beside the script"
    with pytest.raises(ValueError, match=re.escape(message)):
        program.to_source(target.name)


@each_target
def test_a_print_that_a_script_cannot_repeat_is_refused_with_its_line(target: Target) -> None:
    def row(x: Any) -> Any:
        y = x * 2
        sw.debug.print("row {}", y)
        return y + 1

    program = sw.jit(lambda x: sw.vmap(row)(x), mesh=MESH, in_shardings=P("x")).lower(np.ones((8, 2))).compile()
    line = row.__code__.co_firstlineno + 1
    rule = "debug.print must not be in vmap, and its arguments must be arrays, numbers, strings and trees of them"
    message = f"to_source: {rule}, got 'row {{}}'; return the value instead of printing it (at {__file__}:{line})"
    with pytest.raises(sw.UnsupportedError, match=re.escape(message)):
        program.to_source(target.name)


@pytest.mark.parametrize(
    "array",
    [
        np.eye(4, dtype=np.complex64) * (0.1 - 2j),
        np.array([-0.0, complex(1, -0.0), complex(-0.0, 3), complex(2, np.inf)]),
        np.arange(16).reshape(2, 8) + 123456789,
        np.array([0x7FC00000, 0xFFC00000, 0xFFFFFFFF, 0x7FC00001], np.uint32).view(np.float32),
        np.array([0xFFFF, 0x7FC0, 0xFFC0], np.uint16).view(sw.bfloat16),
        np.array([0xFF, 0x7F], np.uint8).view(ml_dtypes.float8_e4m3fn),
        np.array([0xFFFFFFFF, 0x3F800000, 0, 0x7FC00000], np.uint32).view(np.complex64),
    ],
    ids=["complex", "zeros with a sign", "integers", "NaN", "narrow NaN", "NaN of 8 bits", "complex NaN"],
)
def test_a_constant_is_written_in_all_bits(array: np.ndarray) -> None:
    text = array_text(array, "ml_dtypes")
    lines = wrapped(f"x = {text}  # file.py:3", "    ")
    assert max(map(len, lines)) <= 120
    for code in (text, "\n".join(lines).partition("=")[2]):
        found = eval(code.strip(), {"np": np, "ml_dtypes": ml_dtypes})
        assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())


@pytest.mark.parametrize(
    "line",
    [
        f"OUT_SPECS = ({'P(' + ', '.join(repr('axis' * 9) for _ in range(4)) + ')'},)",
        f"x = f([{', '.join(map(str, range(60)))}], {{'a, (b': ({'1, ' * 40})}}, '# not a comment')  # file.py:3",
        f"x = [[{', '.join(map(str, range(60)))}]]",
    ],
    ids=["a tuple of one item", "text with brackets", "brackets around one item"],
)
def test_a_wrapped_line_has_the_same_value(line: str) -> None:
    lines = wrapped(line, "    ")
    assert len(lines) > 1
    assert max(map(len, lines)) <= 120
    assert ast.dump(ast.parse(textwrap.dedent("\n".join(lines)))) == ast.dump(ast.parse(line))
    assert ("  # file.py:3" in lines[0]) == line.endswith("# file.py:3")


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
