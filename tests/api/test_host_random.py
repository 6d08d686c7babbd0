# SPDX-License-Identifier: Apache-2.0
"""np.random in a traced function draws once, during tracing: a warning names the line, however it is reached."""

from __future__ import annotations

import inspect
import sys
import threading
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.random import normal

import shardwise as sw
from shardwise import host_random

MESH = sw.Mesh({"d": 2})
X = np.ones(4)
RNG = np.random.default_rng(0)


class Noise:
    def __init__(self) -> None:
        self.rng = np.random.RandomState(0)

    def add(self, x: Any) -> Any:
        return x + self.rng.rand(4)  # here

    def __call__(self, x: Any) -> Any:
        return self.add(x)


NOISE = Noise()


def helper(x: Any) -> Any:
    y = x * 2
    return y + np.random.rand(4)  # here


def scaled(rng: Any, x: Any) -> Any:
    return x * rng.uniform(size=4)  # here


def with_a_function_of_numpy(x: Any) -> Any:
    return x + np.random.normal(size=4)  # here


def with_an_imported_function(x: Any) -> Any:
    return x + normal(size=4)  # here


def with_a_generator_of_the_module(x: Any) -> Any:
    y = x + 1
    return y + RNG.normal(size=4)  # here


def with_a_generator_of_its_own(x: Any) -> Any:
    rng = np.random.default_rng(0)  # here
    return x + rng.normal(size=4)


def with_a_helper(x: Any) -> Any:
    return helper(x)


def with_an_object(x: Any) -> Any:
    return NOISE(x)


def with_an_import(x: Any) -> Any:
    from numpy import random

    return x + random.rand(4)  # here


def with_an_import_of_the_module(x: Any) -> Any:
    import numpy.random as npr

    return x + npr.rand(4)  # here


def inside_a_gradient(x: Any) -> Any:
    return sw.grad(lambda y: (y * np.random.rand(4)).sum())(x)  # here


DRAWING: dict[str, tuple[Callable[..., Any], Any, str]] = {
    "function": (with_a_function_of_numpy, with_a_function_of_numpy, "sw.random.normal"),
    "imported": (with_an_imported_function, with_an_imported_function, "sw.random.normal"),
    "generator": (with_a_generator_of_the_module, with_a_generator_of_the_module, "sw.random.normal"),
    "own generator": (with_a_generator_of_its_own, with_a_generator_of_its_own, "sw.random"),
    "helper": (with_a_helper, helper, "sw.random.uniform"),
    "method": (NOISE.add, Noise.add, "sw.random.uniform"),
    "instance": (NOISE, Noise.add, "sw.random.uniform"),
    "object": (with_an_object, Noise.add, "sw.random.uniform"),
    "partial": (partial(scaled, RNG), scaled, "sw.random.uniform"),
    "import": (with_an_import, with_an_import, "sw.random.uniform"),
    "import of the module": (with_an_import_of_the_module, with_an_import_of_the_module, "sw.random.uniform"),
    "gradient": (inside_a_gradient, inside_a_gradient, "sw.random.uniform"),
    "jitted helper": (sw.jit(helper, mesh=MESH), helper, "sw.random.uniform"),
}


def line_of(function: Any) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if line.endswith("# here\n"))


def warnings_of(call: Callable[[], Any]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return caught


@pytest.mark.parametrize("name", DRAWING)
def test_a_draw_is_warned_of_at_its_line(name: str) -> None:
    function, source, instead = DRAWING[name]
    caught = warnings_of(lambda: sw.jit(function, mesh=MESH)(X))
    assert [w.category for w in caught] == [sw.TracingWarning]
    assert (caught[0].filename, caught[0].lineno) == (__file__, line_of(source))
    assert str(caught[0].message) == (
        f"np.random: draws once, during tracing, so that each call has the same numbers; use {instead} with a key"
    )


def test_a_transform_outside_jit() -> None:
    placed = sw.device_put(X, MESH)
    caught = warnings_of(lambda: sw.grad(lambda x: helper(x).sum())(placed))
    assert [w.lineno for w in caught] == [line_of(helper)]


def test_static_generator() -> None:
    jitted = sw.jit(scaled, mesh=MESH, static_argnames="rng")
    caught = warnings_of(lambda: jitted(np.random.default_rng(0), X))
    assert [w.lineno for w in caught] == [line_of(scaled)]


def test_a_line_is_warned_of_once() -> None:
    jitted = sw.jit(helper, mesh=MESH)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        jitted(X)
        jitted(X.astype(np.float32))  # traced again
    assert len(caught) == 1


def test_no_warning_without_a_draw() -> None:
    def unused(x: Any, noisy: bool) -> Any:
        return x + np.random.rand(4) if noisy else x + sw.random.normal(sw.random.key(0), (4,))

    assert not warnings_of(lambda: sw.jit(unused, mesh=MESH, static_argnums=1)(X, False))
    assert not warnings_of(lambda: sw.jit(lambda x: np.tanh(x), mesh=MESH)(X))


def test_a_second_call_draws_nothing_and_does_not_warn() -> None:
    jitted = sw.jit(helper, mesh=MESH)
    warnings_of(lambda: jitted(X))
    assert not warnings_of(lambda: jitted(X))


def test_draws_of_another_thread_are_not_taken_for_the_functions() -> None:
    rng, stop = np.random.default_rng(1), threading.Event()
    thread = threading.Thread(target=lambda: [rng.normal() for _ in iter(stop.is_set, True)])
    thread.start()
    try:
        assert not warnings_of(lambda: sw.jit(lambda x: np.tanh(x) + 1, mesh=MESH)(X))
    finally:
        stop.set()
        thread.join()


def test_a_generator_that_another_thread_draws_from() -> None:
    rng, stop = np.random.default_rng(1), threading.Event()
    thread = threading.Thread(target=lambda: [rng.normal() for _ in iter(stop.is_set, True)])

    def named(x: Any) -> Any:
        for _ in range(2000):
            x = x + (rng is not None)
        return x

    thread.start()
    try:
        assert not warnings_of(lambda: sw.jit(named, mesh=MESH)(X))
    finally:
        stop.set()
        thread.join()


def hidden(x: Any) -> Any:  # here
    return x + getattr(RNG, "nor" + "mal")(size=4)


def test_a_draw_that_no_line_shows_is_one_of_the_function() -> None:
    """Threads that do not name the generator, such as those of a notebook, are no reason to be silent."""
    stop = threading.Event()
    threads = [threading.Thread(target=stop.wait) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        assert [w.lineno for w in warnings_of(lambda: sw.jit(hidden, mesh=MESH)(X))] == [line_of(hidden)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_generator_under_a_condition_that_does_not_hold() -> None:
    def seeded(x: Any, seed: int | None = None) -> Any:
        if seed is not None:
            x = x + np.random.default_rng(seed).normal(size=4)
        return x

    assert not warnings_of(lambda: sw.jit(seeded, mesh=MESH)(X))


def test_of_two_draws_the_one_that_always_runs() -> None:
    def one_of_two(x: Any, noisy: bool = False) -> Any:
        if noisy:
            x = x + RNG.uniform(size=4)
        return x * RNG.normal(size=4)  # here

    caught = warnings_of(lambda: sw.jit(one_of_two, mesh=MESH)(X))
    assert [w.lineno for w in caught] == [line_of(one_of_two)]


def test_a_draw_that_no_line_shows() -> None:
    draw = {"rand": np.random.rand}

    def hidden(x: Any) -> Any:
        return x + draw["rand"](4) * bool(np.random)

    caught = warnings_of(lambda: sw.jit(hidden, mesh=MESH)(X))
    assert [w.lineno for w in caught] == [hidden.__code__.co_firstlineno]


def test_tracing_runs_without_a_trace_function() -> None:
    found = []

    def traced(x: Any) -> Any:
        found.append(sys.gettrace())
        return x + RNG.normal(size=4)

    before = sys.gettrace()
    warnings_of(lambda: sw.jit(traced, mesh=MESH)(X))
    assert found == [before]


def test_a_debugger_keeps_its_trace_function() -> None:
    def debugger(frame: Any, event: str, arg: Any) -> None:
        return None

    before = sys.gettrace()
    sys.settrace(debugger)
    try:
        caught = warnings_of(lambda: sw.jit(helper, mesh=MESH)(X))
        assert sys.gettrace() is debugger
    finally:
        sys.settrace(before)
    assert [w.lineno for w in caught] == [line_of(helper)]


def test_the_names_that_warnings_suggest_are_those_of_sw_random() -> None:
    names = {*dir(np.random.Generator), *dir(np.random.RandomState), "bernoulli", "cauchy", "randint", "t"}
    assert {*sw.random.__all__} & names == host_random._ALSO_OWN
    assert {*host_random._OWN.values()} <= host_random._ALSO_OWN
