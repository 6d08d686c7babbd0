# SPDX-License-Identifier: Apache-2.0
"""A traceback holds the user's frames only; ``SHARDWISE_TRACEBACK=full`` shows the others, too."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from shardwise.process import traceback_filtering

MESH = sw.Mesh({"x": 2})
X = np.ones((4, 3), np.float32)
ROWS = sw.device_put(X, sw.NamedSharding(MESH, P("x")))


def product(x: Any) -> Any:
    return x @ x


def total(x: Any) -> Any:
    return np.sum(product(x))


def take(x: Any) -> Any:
    return x[7]


def concatenate(x: Any) -> Any:
    return np.concatenate([x, np.ones(5)])


def raise_key_error(x: Any) -> Any:
    raise KeyError("user's")


def frames_of(error: BaseException) -> list[str]:
    """The functions in a traceback after that of this test file's caller."""
    return [frame.f_code.co_name for frame, _ in traceback.walk_tb(error.__traceback__)][1:]


@pytest.mark.parametrize(
    ("call", "frames"),
    [
        (lambda: sw.jit(product, mesh=MESH)(X), ["<lambda>", "product"]),
        (lambda: sw.jit(total, mesh=MESH)(X), ["<lambda>", "total", "product"]),
        (lambda: sw.jit(total, mesh=MESH).trace(X), ["<lambda>", "total", "product"]),
        (lambda: sw.jit(total, mesh=MESH).lower(X), ["<lambda>", "total", "product"]),
        (lambda: sw.jit(sw.jit(total), mesh=MESH)(X), ["<lambda>", "total", "product"]),
        (lambda: sw.jit(take, mesh=MESH)(X), ["<lambda>", "take"]),
        (lambda: sw.jit(concatenate, mesh=MESH)(X), ["<lambda>", "concatenate"]),
        (lambda: sw.jit(raise_key_error, mesh=MESH)(X), ["<lambda>", "raise_key_error"]),
        (lambda: sw.jit(sw.grad(total), mesh=MESH)(X), ["<lambda>", "total", "product"]),
        (lambda: sw.grad(total)(ROWS), ["<lambda>", "total", "product"]),
        (lambda: sw.jit(sw.vmap(take), mesh=MESH)(X), ["<lambda>", "take"]),
        (lambda: sw.jit(sw.manual(take, MESH, P("x"), P("x")), mesh=MESH)(X), ["<lambda>", "take"]),
        (lambda: ROWS + np.ones(5), ["<lambda>"]),
        (lambda: np.ones(5) + ROWS, ["<lambda>"]),
        (lambda: np.ones(5) > ROWS, ["<lambda>"]),
        (lambda: np.ones(5) == ROWS, ["<lambda>"]),
        (lambda: ROWS.__iadd__(np.ones(5)), ["<lambda>"]),
        (lambda: concatenate(ROWS), ["<lambda>", "concatenate"]),
        (lambda: take(ROWS), ["<lambda>", "take"]),
        (lambda: ROWS.reshape(5), ["<lambda>"]),
        (lambda: ROWS.sum(axis=7), ["<lambda>"]),
        (lambda: sw.jit(product, mesh=MESH).lower(X.T[:, :3]).compile()(np.ones(9)), ["<lambda>"]),
        (lambda: sw.Mesh({"x": -1}), ["<lambda>"]),
        (lambda: sw.make_mesh((2,), ("x", "y")), ["<lambda>"]),
        (lambda: sw.NamedSharding(MESH, 3), ["<lambda>"]),  # type: ignore[arg-type]
        (lambda: P(3), ["<lambda>"]),  # type: ignore[arg-type]
        (lambda: sw.split(ROWS, 9, "x"), ["<lambda>"]),
        (lambda: sw.device_put(X, 3), ["<lambda>"]),
        (lambda: sw.jit(3), ["<lambda>"]),  # type: ignore[call-overload]
        (lambda: sw.parse("module {"), ["<lambda>"]),
        (lambda: sw.random.split(3), ["<lambda>"]),
        (lambda: sw.ShapeDtypeStruct((-1,), np.float32), ["<lambda>"]),
    ],
)
def test_traceback_has_the_users_frames_only(call: Callable[[], Any], frames: list[str]) -> None:
    with pytest.raises(Exception, match=r".") as caught:
        call()
    assert frames_of(caught.value) == frames


def test_models_are_programs_to_read() -> None:
    model = sw.models.__file__
    assert not model.startswith(tuple(traceback_filtering.HIDDEN))


def test_causes_are_kept_and_filtered() -> None:
    def f(x: Any) -> Any:
        try:
            total(x)
        except sw.ShapeError as error:
            raise ValueError("mine") from error

    with pytest.raises(ValueError, match="mine") as caught:
        sw.jit(f, mesh=MESH)(X)
    cause = caught.value.__cause__
    assert type(cause) is sw.ShapeError
    assert caught.value.__context__ is cause
    assert frames_of(caught.value) == ["f"]
    assert frames_of(cause) == ["total", "product"]


def test_an_exception_that_the_caller_handles_is_not_changed() -> None:
    with pytest.raises(np.linalg.LinAlgError) as outer:
        np.linalg.inv(np.zeros((2, 3)))
    before = frames_of(outer.value)

    def while_handling() -> Any:
        try:
            raise outer.value
        except np.linalg.LinAlgError:
            return sw.jit(total, mesh=MESH)(X)

    with pytest.raises(sw.ShapeError) as caught:
        while_handling()
    assert caught.value.__context__ is outer.value
    assert frames_of(outer.value)[-len(before) :] == before
    assert "inv" in before


def test_an_internal_error_keeps_every_frame() -> None:
    def f(x: Any) -> Any:
        raise sw.InternalError("a bug")

    with pytest.raises(sw.InternalError) as caught:
        sw.jit(f, mesh=MESH)(X)
    frames = frames_of(caught.value)
    assert frames[-1] == "f"
    assert {"__call__", "_program", "traced"} < set(frames)


def test_an_error_whose_context_is_an_internal_error_keeps_every_frame() -> None:
    def f(x: Any) -> Any:
        try:
            raise sw.InternalError("a bug")
        except sw.InternalError:
            raise KeyError("user's")  # noqa: B904

    with pytest.raises(KeyError) as caught:
        sw.jit(f, mesh=MESH)(X)
    assert "traced" in frames_of(caught.value)


SCRIPT = """
import numpy as np, shardwise as sw
def f(x):
    return x @ x
sw.jit(f, mesh=sw.Mesh({"x": 2}))(np.ones((4, 3)))
"""


def run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(script)]
    environ = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environ)


def test_the_interpreter_prints_two_frames_or_all() -> None:
    brief = run(SCRIPT).stderr
    assert [line for line in brief.splitlines() if line.startswith("  File")] == [
        '  File "<string>", line 5, in <module>',
        '  File "<string>", line 4, in f',
    ]
    full = run(SCRIPT, SHARDWISE_TRACEBACK="full").stderr
    assert os.path.join("shardwise", "jit", "function.py") in full
    assert full.splitlines()[-1] == brief.splitlines()[-1]


def test_an_unknown_value_of_the_switch_is_an_error() -> None:
    done = run(SCRIPT, SHARDWISE_TRACEBACK="on")
    assert done.returncode == 1
    assert 'SHARDWISE_TRACEBACK: must be "full" or empty, got "on"; correct or unset it' in done.stderr
