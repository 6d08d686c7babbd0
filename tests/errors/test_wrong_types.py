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
from functools import partial
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import numpy as np
import pytest

import shardwise as sw
import shardwise.dtensor
import shardwise.random
import shardwise.testing
from tools.public_api import package_names

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
# A subject, such as `np.take: `.
OWN = re.compile(r"[^:\n]{1,80}: ")
# Names a function that the user did not call, such as `_update() got an unexpected keyword argument`.
PRIVATE = re.compile(r"(?<!\w)_(?!_)\w+\(\)")
# Python's and NumPy's own texts, where an argument is passed on as it is to the function of that name.
OF_PYTHON = {
    "sw.tree.reduce": re.compile(r"^reduce\(\) of empty (sequence|iterable) with no initial value$"),
    "Array().item": re.compile(
        r"cannot be interpreted as an integer|only integer scalar arrays|is out of bounds for|an integer is required|"
        r"int too large to convert"
    ),
    "at()": re.compile(  # an update of a NumPy array is NumPy's
        r"^float\(\) argument must be a string or a real number, not|^array is not broadcastable to correct shape$|"
        r"^could not broadcast input array from shape"
    ),
    "Array().reshape": re.compile(r"^only integer scalar arrays can be converted to a scalar index$"),
}
SIGNATURE = re.compile(r"missing \d+ required|positional argument|unexpected keyword|multiple values")


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some functions write files, and a text is a path."""
    monkeypatch.chdir(tmp_path)


def instances() -> dict[str, Any]:
    step = sw.jit(lambda x: x, mesh=MESH, in_shardings=sw.P("x"))
    traced = step.trace(X)
    program = traced.lower().compile()
    return {
        "Mesh()": MESH, "P()": sw.P("x"), "NamedSharding()": sw.NamedSharding(MESH, sw.P("x")),
        "Array()": sw.device_put(X, MESH), "jit()": step, "Traced()": traced, "Lowered()": traced.lower(),
        "Program()": program, "collectives()": program.collectives(), "Module()": sw.parse(traced.as_text()),
        "ShapeDtypeStruct()": sw.ShapeDtypeStruct((4,), np.float32), "sharding_rule()": sw.sharding_rule("i j -> i"),
        "at()": sw.at(X, 1), "at(Array)": sw.at(sw.device_put(X, MESH), 1),
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
        for name in package_names() if module is sw else module.__all__:
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


def complaint(name: str, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> str:
    """What is wrong with the error of this call of a public name; nothing for a good one, and for none."""
    signal.alarm(SECONDS)
    try:
        function(*args, **options)
    except (sw.Error, TypeError, ValueError, IndexError, KeyError, OverflowError, OSError) as error:
        text = str(error)
        allowed = OF_PYTHON.get(name) or OF_PYTHON.get(name.partition(".")[0])
        if allowed and not isinstance(error, sw.Error) and allowed.search(text):
            return ""
        good = SIGNATURE.search(text) or isinstance(error, sw.Error) or OWN.match(text)
        return "" if good and text and not RAW.search(text) and not PRIVATE.search(text) else _described(error)
    except BaseException as error:
        return _described(error)
    finally:
        signal.alarm(0)
    return ""


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("name", PUBLIC)
@pytest.mark.usefixtures("clock")
def test_wrong_types_are_refused_in_our_words(name: str) -> None:
    complaints: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for args, options in calls(PUBLIC[name]):
            if text := complaint(name, PUBLIC[name], args, options):
                complaints.setdefault(text, f"{name}(*{args!r}, **{options!r})")
    sw.set_mesh(None)
    assert not complaints, "\n".join(f"{call}\n    {text}" for text, call in complaints.items())


def test_the_sweep_calls_all_that_is_public() -> None:
    for name in ("sw.Mesh", "sw.parse", "sw.device_put", "sw.jit", "sw.random.key", "sw.dtensor.spec", "Mesh().text",
                 "Program().why", "Program().run", "Module().propagate", "Array().reshape", "jit().lower"):  # fmt: skip
        assert name in PUBLIC
    assert len(PUBLIC) > 120


def _drawn(sampler: Callable[..., Any], n: Any) -> Any:
    return sampler(RIGHT[2], shape=(2, n))


def sizes() -> dict[str, Callable[[Any], Any]]:
    """Calls that take an integer: a size, a count, a dim, a seed or a position. Shapes have it as their last size."""
    key, x, sharding = RIGHT[2], sw.device_put(X, MESH), sw.NamedSharding(MESH, sw.P("x"))
    placed: list[Any] = [sw.dtensor.Shard(0), sw.dtensor.Replicate()]
    ledger = instances()["collectives()"]
    table: dict[str, Callable[[Any], Any]] = {
        "Mesh": lambda n: sw.Mesh({"x": n}),
        "Mesh(device_ids)": lambda n: sw.Mesh({"x": 2}, device_ids=[n, 0]),
        "make_mesh": lambda n: sw.make_mesh((n,), ("x",)),
        "init_device_mesh": lambda n: sw.dtensor.init_device_mesh("cpu", (n,), mesh_dim_names=("x",)),
        "dtensor.spec": lambda n: sw.dtensor.spec(MESH, placed, n),
        "dtensor.Shard": lambda n: sw.dtensor.spec(MESH, [sw.dtensor.Shard(n), placed[1]], 3),
        "ShapeDtypeStruct": lambda n: sw.ShapeDtypeStruct((2, n), np.float32),
        "ShapeDtypeStruct(n)": lambda n: sw.ShapeDtypeStruct(n, np.float32),
        "NamedSharding.core": sharding.core,
        "NamedSharding.shard_shape": lambda n: sharding.shard_shape((2, n)),
        "NamedSharding.devices_indices_map": lambda n: sharding.devices_indices_map((2, n)),
        "NamedSharding.is_equivalent_to": lambda n: sharding.is_equivalent_to(sharding, n),
        "priority": lambda n: sw.priority("x", n),
        "sharding_group": lambda n: sw.sharding_group([X], n),
        "sharding_rule": lambda n: sw.sharding_rule("(i k) j -> i", i=n),
        "split(dim)": lambda n: sw.split(np.zeros((1, 1, 1)), n, "x"),
        "split(partitions)": lambda n: sw.jit(lambda x: sw.split(x, 0, n), mesh=MESH).trace(X),
        "grad(argnums)": lambda n: sw.grad(lambda x, y, z: z.sum(), argnums=n),
        "jit(static_argnums)": lambda n: sw.jit(lambda x, y, z: x, static_argnums=n),
        "collectives.largest": ledger.largest,
        "random.key": sw.random.key,
        "random.fold_in": lambda n: sw.random.fold_in(key, n),
        "random.split": lambda n: sw.random.split(key, n),
        "random.choice": lambda n: sw.random.choice(key, n),
        "random.choice(shape)": lambda n: sw.random.choice(key, 4, (2, n)),
        "random.randint(shape)": lambda n: sw.random.randint(key, (2, n), 0, 9),
    }
    for name in ("bernoulli", "bits", "exponential", "gumbel", "normal", "uniform"):
        table[f"random.{name}(shape)"] = partial(_drawn, getattr(sw.random, name))
    for name in ("repeat", "reshape", "sum", "squeeze"):
        table[f"Array.{name}"] = getattr(x.reshape(4, 2, 1), name)
    return table


# These calls also accept: bools as NumPy's, None as the default, an array in place of its length.
ACCEPTED: dict[str, tuple[Any, ...]] = {
    "Array.repeat": (True,), "Array.reshape": (True,), "Array.sum": (True, None), "Array.squeeze": (None,),
    "jit(static_argnums)": (None,), "sharding_group": (None,), "random.choice": ((2.0,),),
}  # fmt: skip


@pytest.mark.parametrize("name", sizes())
@pytest.mark.usefixtures("clock")
def test_bools_floats_and_text_are_no_integers(name: str) -> None:
    function = sizes()[name]
    right = {"Array.reshape": 8, "Mesh(device_ids)": 1}.get(name, 2)
    function(right)  # the call is right but for its integer
    wrongs = [w for w in (True, 2.5, 2.0, "2", (2.0,), None) if repr(w) not in map(repr, ACCEPTED.get(name, ()))]
    assert len(wrongs) >= 4
    for wrong in wrongs:
        with pytest.raises((TypeError, ValueError, IndexError)):
            function(wrong)
        assert complaint(name, function, (wrong,), {}) == "", wrong


def test_the_sweep_sees_raw_texts() -> None:
    mesh = sw.Mesh({"x": 2})._core

    def _private(x: Any) -> Any: ...

    def update(x: Any) -> Any:
        return _private(x, unknown=1)  # type: ignore[call-arg]

    raw: tuple[Callable[[Any], Any], ...] = (
        mesh.device_at,
        lambda _: [].nothing,  # type: ignore[attr-defined]
        lambda x: x < {},
        lambda x: [][x],
        range,
        update,
    )
    for function in raw:
        assert complaint("raw", function, ("n",), {}), function
    assert complaint("sw.parse", sw.parse, (5,), {}) == ""
