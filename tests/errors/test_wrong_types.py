# SPDX-License-Identifier: Apache-2.0
"""Every public function, class and method with arguments of wrong types: an error in our words, never one of the
extension, and never one of Python about an attribute or operator that the user has not written.
"""

from __future__ import annotations

import inspect
import re
import signal
import warnings
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any

import numpy as np
import pytest

import shardwise as sw
import shardwise.dtensor
import shardwise.random
import shardwise.testing

SECONDS = 20  # for one call
MOST_ARGUMENTS = 4
MESH = sw.Mesh({"x": 2, "y": 2})
X = np.zeros((4, 2), np.float32)
WRONG: tuple[Any, ...] = (
    None, 3, 2.5, "n", object(), [], {}, np.zeros(2), lambda: 1, -1, 2**70, (1, "x"), True,
)  # fmt: skip
RIGHT: tuple[Any, ...] = (X, MESH, sw.random.key(0), lambda x: x)  # what a first argument may be

# Texts of the extension, addresses, and of Python about code that is not the user's.
RAW = re.compile(
    r"pybind11|incompatible (function|constructor) arguments|Unable to cast|std::|json\.exception|SWIG|0x[0-9a-f]{6}|"
    r"_core\.|a bug in shardwise|has no attribute|object is not iterable|has no len\(\)|not supported between|"
    r"truth value of an array|unsupported operand|object is not (callable|subscriptable)|Cannot interpret"
)
SIGNATURE = re.compile(r"missing \d+ required|positional argument|unexpected keyword|multiple values")


def instances() -> dict[str, Any]:
    step = sw.jit(lambda x: x, mesh=MESH, in_shardings=sw.P("x"))
    traced = step.trace(X)
    program = traced.lower().compile()
    return {
        "Mesh()": MESH, "P()": sw.P("x"), "NamedSharding()": sw.NamedSharding(MESH, sw.P("x")),
        "Array()": sw.device_put(X, MESH), "jit()": step, "Traced()": traced, "Lowered()": traced.lower(),
        "Program()": program, "collectives()": program.collectives(), "Module()": sw.parse(traced.as_text()),
        "ShapeDtypeStruct()": sw.ShapeDtypeStruct((4,), np.float32), "sharding_rule()": sw.sharding_rule("i j -> i"),
    }  # fmt: skip


def is_ours(function: Any) -> bool:
    """No class of errors, and not inherited from the standard library, such as the methods of a sequence."""
    if isinstance(function, type) and issubclass(function, BaseException):
        return False
    return str(getattr(function, "__module__", "")).startswith("shardwise")


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    modules: dict[str, ModuleType] = {
        "sw": sw, "sw.dtensor": shardwise.dtensor, "sw.random": shardwise.random, "sw.testing": shardwise.testing,
        "sw.layouts": sw.layouts, "sw.tree": sw.tree, "sw.debug": sw.debug,
    }  # fmt: skip
    for prefix, module in modules.items():
        for name in (*module.__all__, *getattr(module, "_NOT_STARRED", ())):
            if callable(value := getattr(module, name)) and is_ours(value):
                yield f"{prefix}.{name}", value
    for prefix, value in instances().items():
        for name in dir(value):
            if not name.startswith("_") and callable(method := getattr(value, name)) and is_ours(method):
                yield f"{prefix}.{name}", method


PUBLIC = dict(public())


def calls(function: Callable[..., Any]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """With wrong values alone, with a right one before them, and with one wrong option."""
    parameters = list(inspect.signature(function).parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    count = len(positional) + 2 * any(p.kind is p.VAR_POSITIONAL for p in parameters)
    named = [p.name for p in parameters[1:] if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    for wrong in WRONG:
        for n in range(1, min(count, MOST_ARGUMENTS) + 1):
            yield (wrong,) * n, {}
        for right in RIGHT:
            for n in range(1, min(count, MOST_ARGUMENTS)):
                yield (right, *(wrong,) * n), {}
            for name in named:
                yield (right,), {name: wrong}


class OutOfTimeError(Exception):
    """A call that takes longer than any refusal may."""


@pytest.fixture
def clock() -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise OutOfTimeError

    before = signal.signal(signal.SIGALRM, stop)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def complaint(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> str:
    """What is wrong with the error of this call; nothing for a good one, and for none."""
    signal.alarm(SECONDS)
    try:
        function(*args, **options)
    except (sw.Error, TypeError, ValueError, IndexError, KeyError, OverflowError) as error:
        text = str(error)
        plain = type(error) in (IndexError, TypeError, OverflowError)
        own = isinstance(error, sw.Error) or re.match(r"[^:]+: ", text) or plain
        good = SIGNATURE.search(text) or (text and not RAW.search(text) and own)
        return "" if good else f"{type(error).__name__}: {text}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    return ""


@pytest.mark.parametrize("name", PUBLIC)
@pytest.mark.usefixtures("clock")
def test_wrong_types_are_refused_in_our_words(name: str) -> None:
    complaints: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for args, options in calls(PUBLIC[name]):
            if text := complaint(PUBLIC[name], args, options):
                complaints.setdefault(text, f"{name}(*{args!r}, **{options!r})")
    sw.set_mesh(None)
    assert not complaints, "\n".join(f"{call}\n    {text}" for text, call in complaints.items())


def test_the_sweep_calls_all_that_is_public() -> None:
    for name in ("sw.Mesh", "sw.parse", "sw.device_put", "sw.jit", "sw.random.key", "sw.dtensor.spec", "Mesh().text",
                 "Program().why", "Program().run", "Module().propagate", "Array().reshape", "jit().lower"):  # fmt: skip
        assert name in PUBLIC
    assert len(PUBLIC) > 120


def test_the_sweep_sees_raw_texts() -> None:
    mesh = sw.Mesh({"x": 2})._core
    for function in (mesh.device_at, lambda _: [].nothing, lambda x: x < {}):  # type: ignore[attr-defined]
        assert complaint(function, ("n",), {}), function
    assert complaint(sw.parse, (5,), {}) == ""
