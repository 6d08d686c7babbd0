# SPDX-License-Identifier: Apache-2.0
"""Files that were cut off, or lost a byte: program text, JSON and sharding text are read, or refused in good time.

Nothing ends the process, whatever the bytes; what is read is a program that verifies and prints.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import shardwise as sw
from shardwise import _core
from tests.support.example_programs import traced_example

COUNT = 1200  # per kind of file
SECONDS = 2.0  # for one file, on a busy machine
MESH = sw.Mesh({"x": 4, "y": 2}, [3, 1, 2, 0, 7, 6, 5, 4])
BYTES = [*b'"<>{}[]()%@#:,?=-.0179exE \n\\', 0, 0xFF, 0xC3]


@cache
def programs() -> list[str]:
    stages = traced_example("gradient").lower().compile()._compiled.stages
    texts = [stages[stage].text(**form) for stage in stages for form in ({}, {"generic": True}, {"locations": True})]
    return [text.replace("/work", "w") for text in texts]


@cache
def program_files() -> list[str]:
    return [sw.parse(text).to_json() for text in programs()[:4]]


def mesh_files() -> list[str]:
    return [MESH.to_json()]


def sharding_files() -> list[str]:
    return [_core.mesh.Sharding.parse(MESH._core, text).to_json() for text in sharding_texts()[:2]]


def sharding_texts() -> list[str]:
    return ['[{"x":(1)2, ?}p1, {}], replicated={"y"}', '[{"y", "x":(2)2}, {?}], unreduced=max{"x":(1)2}', "[]"]


def read_program(text: str) -> None:
    check_program(sw.parse(text))


def read_program_file(text: str) -> None:
    check_program(sw.Module.from_json(text))


def check_program(module: sw.Module) -> None:
    module.verify()
    assert sw.parse(module.as_text()) == module


def read_sharding(text: str) -> None:
    assert _core.mesh.Sharding.parse(MESH._core, text).text()


FILES: dict[str, tuple[Callable[[], list[str]], Callable[[str], Any]]] = {
    "program": (programs, read_program),
    "program JSON": (program_files, read_program_file),
    "mesh JSON": (mesh_files, sw.Mesh.from_json),
    "sharding JSON": (sharding_files, _core.mesh.Sharding.from_json),
    "sharding text": (sharding_texts, read_sharding),
}


def broken(text: str, rng: random.Random) -> str:
    data = bytearray(text.encode())
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(5):
            case 0:
                del data[at:]
            case 1:
                del data[at : at + rng.choice((1, 2, 30))]
            case 2:
                data[at : at + 1] = bytes([rng.choice(BYTES)])
            case 3:
                data[at:at] = bytes([rng.choice(BYTES)]) * rng.choice((1, 1, 3, 300))
            case _:
                other = rng.randrange(len(data) + 1)
                data[at:at] = data[other : other + rng.choice((1, 5, 60))]
    return data.decode(errors="replace") if rng.randrange(8) else data.decode("latin-1")


@pytest.mark.parametrize("kind", FILES)
def test_broken_files_are_read_or_refused(kind: str) -> None:
    texts, read = FILES[kind]
    rng = random.Random(kind)
    refused = 0
    for i in range(COUNT):
        text = broken(rng.choice(texts()), rng)
        start = time.perf_counter()
        refused += not accepts(read, text)
        assert time.perf_counter() - start < SECONDS, (i, text)
    assert COUNT / 4 < refused < COUNT


def accepts(read: Callable[[str], Any], text: str) -> bool:
    error: Exception | None = None
    try:
        read(text)
    except sw.Error as found:
        error = found
    except Exception as found:
        raise AssertionError(f"{type(found).__name__}: {found}\n{text}") from found
    assert not isinstance(error, sw.InternalError), f"{error}\n{text}"
    return error is None


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":['])
@pytest.mark.parametrize("kind", [kind for kind in FILES if kind.endswith("JSON")])
def test_deeply_nested_json_is_refused(kind: str, opening: str) -> None:
    read = FILES[kind][1]
    closing = "".join({"[": "]", "{": "}"}.get(c, "") for c in reversed(opening))
    nested = opening * 100_000 + "0" + closing * 100_000
    keys = ("format", "version", "axes", "mesh")
    for text in (nested, opening * 100_000, *(f'{{"{key}": {nested}}}' for key in keys)):
        with pytest.raises(sw.ParseError):
            read(text)
