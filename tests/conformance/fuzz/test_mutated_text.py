# SPDX-License-Identifier: Apache-2.0
"""Program text with pieces changed, dropped or swapped is read, or refused with its place; it never crashes."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from shardwise import _core
from tests.support.mesh_strategies import meshes
from tests.support.partitioned import execute
from tests.support.random_programs import Program, programs

TOKEN = re.compile(r'\d+|"[^"]*"|%\w+|[a-zA-Z_.]+|\S')
NUMBERS = ("0", "1", "2", "3", "-1", "7", str(2**31), str(2**63 - 1), "1" + "0" * 25)
SCRAPS = ('"', "<", "}", "[", "?", "x", "tensor<", "%0", "dense<", "0x")


def mutated(text: str, rng: random.Random) -> str:
    for _ in range(rng.randint(1, 3)):
        tokens = list(TOKEN.finditer(text))
        at, other = rng.choice(tokens), rng.choice(tokens)
        numbers = NUMBERS if at.group().isdigit() else SCRAPS
        new = rng.choice([other.group(), "", rng.choice(numbers), at.group() + other.group(), rng.choice(SCRAPS)])
        text = text[: at.start()] + new + text[at.end() :]
    return text


@given(meshes().flatmap(programs), st.integers(0, 2**32))
def test_mutated_programs_are_read_or_refused(program: Program, seed: int) -> None:
    rng = random.Random(seed)
    module = program.record()
    compiled = _core.passes.compile(module, program.mesh)
    texts = [module.text(), module.text(generic=True), compiled.stages["local"].text()]
    for text in texts * 4:
        check_mutated(mutated(text, rng), None if text is texts[2] else program)


def check_mutated(text: str, program: Program | None) -> None:
    """It is refused with line and column, or read, and then compiled for the mesh of the program."""
    try:
        module = _core.ir.parse(text)
    except _core.error.ParseError as error:
        place = error.line, error.column
        assert min(place) >= 1
        return
    module.verify()
    assert module.text()
    if program is not None:
        compile_or_refuse(module, program)


def compile_or_refuse(module: Any, program: Program) -> None:
    """What is wrong with a program that could be read is the user's, not "a bug in shardwise"."""
    refused = None
    try:
        for stage in _core.passes.compile(module, program.mesh).stages.values():
            assert stage.text()
    except _core.error.Error as error:
        refused = error
    assert not isinstance(refused, _core.error.InternalError), refused


@pytest.mark.parametrize("text", ["module", "\0", "module {", "{}" * 1000, "(" * 10_000, "module @m {" * 2000])
def test_no_program_at_all_is_refused(text: str) -> None:
    with pytest.raises(_core.error.ParseError):
        _core.ir.parse(text)


HUGE = 2**63 - 1


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (
            f"stablehlo.pad %x, %c, low = [{HUGE}], high = [9], interior = [0]",
            "padding must add less than 2^56 elements",
        ),
        (
            f"stablehlo.pad %x, %c, low = [0], high = [0], interior = [{HUGE}]",
            "padding must add less than 2^56 elements",
        ),
        (f"stablehlo.pad %x, %c, low = [{2**55}], high = [{2**55}], interior = [0]", "less than 2^56 elements"),
    ],
)
def test_sizes_that_cannot_be_added_up_are_refused(op: str, message: str) -> None:
    text = f"""func.func @main(%x: tensor<4xf32>, %c: tensor<f32>) -> tensor<4xf32> {{
  %0 = {op} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}}"""
    with pytest.raises(_core.error.ParseError, match=re.escape(message)):
        _core.ir.parse(text)


def test_a_stride_beyond_the_end_is_one_element() -> None:
    text = f"""func.func @main(%x: tensor<4xf32>) -> tensor<1xf32> {{
  %0 = stablehlo.slice %x [1:4:{HUGE}] : (tensor<4xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}}"""
    mesh = _core.mesh.Mesh("mesh", [("x", 2)])
    x = np.arange(4, dtype=np.float32)
    for (found,) in execute(_core.passes.compile(_core.ir.parse(text), mesh), [x]):
        np.testing.assert_array_equal(found, x[1:2])
