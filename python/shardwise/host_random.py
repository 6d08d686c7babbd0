# SPDX-License-Identifier: Apache-2.0
"""Warn where ``np.random`` draws inside a traced function: it draws once, and every call has the same numbers.

    train.py:7: TracingWarning: np.random: draws once, during tracing, so that each call has the same numbers;
    use sw.random.normal with a key

Python's trace function finds the lines, in this thread alone: it compares the states of the generators between them. It
is costly, so it runs only for functions whose names reach ``np.random`` or a generator: through globals, closures, and
attributes of modules and objects.
"""

from __future__ import annotations

import linecache
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from . import random as own_random
from .call_sites import HIDDEN
from .errors import TracingWarning, composed

__all__ = ["warning_of_draws"]

_GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator)
_MAX_FUNCTIONS = 300
_MADE = re.compile(r"\b(default_rng|RandomState|Generator)\(")  # a generator inside draws the same on each trace
_OWN = {"integers": "randint", "rand": "uniform", "randn": "normal", "random": "uniform", "standard_normal": "normal"}
_registry: dict[Any, Any] = {}  # what the filters of warnings need, to warn once per line


@contextmanager
def warning_of_draws(fun: Callable[..., Any], static: tuple[Any, ...] = ()) -> Iterator[None]:
    """Warn of the draws of ``np.random`` inside, while ``fun`` is traced with these static arguments."""
    generators = _reached_generators([fun, *static])
    if generators is None:
        yield
        return
    draws = _Draws(generators)
    outer = sys.gettrace()
    if outer is None:  # else a debugger's: its lines are not ours to take
        sys.settrace(draws.on_event)
    try:
        yield
    finally:
        if outer is None:
            sys.settrace(None)
    function, _ = _function_of(fun)
    if function is not None:
        draws.place = (function.__code__.co_filename, function.__code__.co_firstlineno)
        draws.compare()
    for file, line in draws.places:
        _warn(file, line)


def _warn(file: str, line: int) -> None:
    called = [_OWN.get(name, name) for name in re.findall(r"\b(\w+)\(", linecache.getline(file, line))]
    known = [f"sw.random.{name}" for name in called if name in own_random.__all__]
    own = known[0] if known else "sw.random"
    rule = "draws once, during tracing, so that each call has the same numbers"
    text = composed("np.random", rule, None, f"use {own} with a key", "", 0)
    warnings.warn_explicit(text, TracingWarning, file, line, registry=_registry)


class _Draws:
    """The lines of the user on which a generator's state changes, or a generator is made."""

    def __init__(self, generators: list[Any]) -> None:
        self.places: dict[tuple[str, int], None] = {}
        self.place = ("", 0)  # what runs between two events
        self._generators = generators
        self._states = self._read()

    def _read(self) -> list[Any]:
        return [_comparable(_bits(generator).state) for generator in self._generators]

    def compare(self) -> None:
        """Take note of a draw since the last event."""
        states = self._read()
        if states != self._states:
            self._states = states
            self.places.setdefault(self.place)

    def on_event(self, frame: FrameType, event: str, _: Any) -> Any:
        """For ``sys.settrace``: before each line of the user's functions, and where they begin and end."""
        if frame.f_code.co_filename.startswith(HIDDEN):
            return None
        self.compare()
        if event == "return":
            frame = frame.f_back or frame
        self.place = (frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and _MADE.search(linecache.getline(*self.place)):
            self.places.setdefault(self.place)
        return self.on_event


def _comparable(state: Any) -> Any:
    if isinstance(state, dict):
        return tuple(map(_comparable, state.values()))
    return state.tobytes() if isinstance(state, np.ndarray) else state


def _bits(generator: Any) -> Any:
    return getattr(generator, "bit_generator", None) or getattr(generator, "_bit_generator", generator)


def _reached_generators(roots: list[Any]) -> list[Any] | None:
    """The generators that the names of these functions lead to, with NumPy's own; None where they reach none."""
    todo, found = list(roots), list[Any]()
    seen: dict[Any, Any] = {}  # by identity; kept alive, so that no id has two meanings
    todo += [member for root in roots for member in _attributes(root, set())]
    reached = False
    while todo and len(seen) < _MAX_FUNCTIONS:
        value = todo.pop()
        key = (id(value.__self__), id(value.__func__)) if isinstance(value, MethodType) else id(value)
        if key in seen:
            continue
        seen[key] = value
        if isinstance(value, _GENERATORS):
            found.append(value)
        reached = reached or _is_random(value)
        if isinstance(value, partial):
            todo += [*value.args, *value.keywords.values()]
        function, owner = _function_of(value)
        if function is not None:
            names, values = _names_of(function.__code__), list(_named_values(function))
            reached = reached or ("random" in names and any(value is np for value in values))
            todo += values
            todo += [member for base in (*values, owner) for member in _attributes(base, names)]
    return [np.random.mtrand._rand, *found] if reached or found else None


def _is_random(value: Any) -> bool:
    """Whether a value is ``np.random``, ``default_rng``, or a function such as ``np.random.normal``."""
    if value is np.random or value is np.random.default_rng:
        return True
    return isinstance(value, MethodType) and isinstance(value.__self__, _GENERATORS)


def _function_of(value: Any) -> tuple[FunctionType | None, Any]:
    """The Python function behind a value that is called, and the object that it is bound to."""
    owner = None
    for _ in range(8):
        if isinstance(value, FunctionType):
            break
        if isinstance(value, MethodType):
            owner, value = value.__self__, value.__func__
        elif isinstance(value, partial):
            value = value.func
        else:
            value = getattr(value, "__dict__", {}).get("__wrapped__")
    if not isinstance(value, FunctionType) or (value.__module__ or "").split(".")[0] in ("numpy", "shardwise"):
        return None, None
    return value, owner


def _names_of(code: CodeType) -> set[str]:
    """The globals and attributes that a function's code names, with those of the functions in it."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names_of(constant)
    return names


def _named_values(function: FunctionType) -> Iterator[Any]:
    for name in _names_of(function.__code__):
        if name in function.__globals__:
            yield function.__globals__[name]
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # assigned later
            continue
    yield from function.__defaults__ or ()
    if "numpy" in function.__code__.co_names and "numpy" not in function.__globals__:  # imported inside
        yield np


def _attributes(base: Any, names: set[str]) -> Iterator[Any]:
    """What the code may get from a module, or from an object of the user: methods and members that it names."""
    if base is None or isinstance(base, (FunctionType, type, str, int, float, np.ndarray)):
        return
    if isinstance(base, ModuleType):
        if base.__name__.split(".")[0] not in ("numpy", "shardwise"):
            yield from (vars(base)[name] for name in names if name in vars(base))
        return
    members = getattr(base, "__dict__", {})
    for name in (*names, "__call__"):
        if name in members:
            yield members[name]
        elif isinstance(getattr(type(base), name, None), FunctionType):
            yield MethodType(getattr(type(base), name), base)
