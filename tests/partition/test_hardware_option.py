# SPDX-License-Identifier: Apache-2.0
"""`jit(hardware=)`: the hardware that prices are of is kept with the choices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"x": 4})
X = np.ones((8, 4), np.float32)


def compiled(**options: Any) -> sw.Program:
    return sw.jit(lambda x: x.sum(0), mesh=MESH, in_shardings=P("x"), **options).lower(X).compile()


def own() -> dict[str, Any]:
    return {**sw.hardware.load("h100_sxm").to_dict(), "name": "own", "launch": 5e-6}


def test_the_default_is_named() -> None:
    assert compiled().choices.options.hardware == sw.hardware.load("default")
    assert json.loads(compiled().choices.to_json())["hardware"] == "default"
    assert "hardware=Hardware('default': " in repr(compiled().choices)


@pytest.mark.parametrize("name", sw.hardware.list())
def test_every_built_in_hardware_is_recorded(name: str) -> None:
    by_name, by_object = compiled(hardware=name), compiled(hardware=sw.hardware.load(name))
    assert by_name.choices == by_object.choices
    kept = sw.Choices.from_json(by_name.choices.to_json())
    assert kept == by_name.choices
    assert kept.options.hardware.name == name
    assert compiled(choices=kept).choices == kept


def test_hardware_of_a_file_is_kept_whole(tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_text(json.dumps(own()))
    program = compiled(hardware=path)
    assert program.choices.options.hardware.launch == 5e-6
    assert json.loads(program.choices.to_json())["hardware"]["launch"] == 5e-6
    assert sw.Choices.from_json(program.choices.to_json()) == program.choices == compiled(hardware=own()).choices


def test_choices_have_one_hardware() -> None:
    choices = compiled(hardware="a100_80").choices
    assert compiled(choices=choices, hardware="a100_80").choices == choices
    with pytest.raises(sw.ShardingError, match=r"^jit: hardware must be that of the choices, Hardware\('a100"):
        compiled(choices=choices, hardware="h100_sxm")


def test_a_nested_function_has_the_hardware_of_the_whole_program() -> None:
    inner = sw.jit(np.tanh, hardware="tpu_v4")
    outer = {"mesh": MESH, "in_shardings": P("x")}
    assert sw.jit(lambda x: inner(x) + 1, hardware="tpu_v4", **outer).lower(X).compile()
    with pytest.raises(sw.ShardingError, match="a nested function must not have another hardware than the program"):
        sw.jit(lambda x: inner(x) + 1, **outer).lower(X)


def test_wrong_hardware_is_refused() -> None:
    rule = r"^jit: hardware must be a built-in name or the path of a file, got 'h200x'"
    with pytest.raises(ValueError, match=rule) as caught:
        sw.jit(np.sin, hardware="h200x")
    assert not isinstance(caught.value, sw.Error)  # no error of a sharding
    with pytest.raises(TypeError, match=r"^jit: hardware must be that of hardware\.load, a name or a path, got int 3"):
        sw.jit(np.sin, hardware=3)  # type: ignore[arg-type]
    with pytest.raises(sw.ParseError, match=r"^jit: hardware: the document must have"):
        sw.jit(np.sin, hardware={"name": "nothing"})  # type: ignore[arg-type]


def test_programs_of_two_hardwares_are_cached_apart() -> None:
    shardings = {"mesh": MESH, "in_shardings": P("x")}
    functions = {name: sw.jit(lambda x: x.sum(0), hardware=name, **shardings) for name in ("h200", "b200")}
    for _ in range(2):
        for name, function in functions.items():
            assert function.lower(X).compile().choices.options.hardware.name == name
