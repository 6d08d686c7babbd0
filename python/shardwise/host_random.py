# SPDX-License-Identifier: Apache-2.0
"""Warns if a traced function draws from ``np.random``: it draws once, and every call uses the same numbers.

    train.py:7: TracingWarning: np.random: draws once, during tracing, so that each call has the same numbers;
    use sw.random.normal with a key

The check compares the states of all generators that the function can reach (globals, closures, attributes of modules
and objects) before and after tracing. If one changed, or the function names ``default_rng``, it finds the line in the
bytecode.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from .errors import TracingWarning, warn
from .user_code.draw_sites import DrawSite, draw_sites, function_of, generators, makers

__all__ = ["warning_of_draws"]

_MAX_FUNCTIONS = 300
# Below sw.random in the order of modules, so its names stand here; a test compares them.
_ALSO_OWN = {"beta", "binomial", "chisquare", "choice", "dirichlet", "exponential", "f", "gamma", "geometric", "gumbel"}
_ALSO_OWN |= {"laplace", "logistic", "lognormal", "multinomial", "multivariate_normal", "normal", "pareto"}
_ALSO_OWN |= {
    "bernoulli",
    "cauchy",
    "permutation",
    "poisson",
    "randint",
    "rayleigh",
    "shuffle",
    "t",
    "triangular",
    "uniform",
    "wald",
}
_OWN = {"integers": "randint", "rand": "uniform", "randn": "normal", "random": "uniform", "standard_normal": "normal"}
_OWN |= {"standard_cauchy": "cauchy", "standard_exponential": "exponential", "standard_gamma": "gamma"}
_OWN |= {"permuted": "shuffle", "random_sample": "uniform", "standard_t": "t"}


class _Reached(NamedTuple):
    generators: list[Any]
    makes: bool  # it names a function that makes a generator


@contextmanager
def warning_of_draws(fun: Callable[..., Any], static: tuple[Any, ...] = ()) -> Iterator[None]:
    """Context manager: warn if ``np.random`` draws while ``fun`` is traced with these static arguments."""
    reached = _reached([fun, *static])
    if reached is None:
        yield
        return
    before = list(map(_state, reached.generators))
    shared = [generator for generator in reached.generators if _is_named_by_another_thread(generator)]
    try:
        yield
    finally:
        states = zip(reached.generators, before)
        changed = [generator for generator, state in states if _state(generator) != state]
        if changed or reached.makes:
            for file, line, name in _lines(fun, changed, shared):
                _warn_of_draw(file, line, name)


def _lines(fun: Callable[..., Any], changed: list[Any], shared: list[Any]) -> dict[tuple[str, int, str], None]:
    """File, line and method name of each draw from a changed generator, and of each new generator.

    A changed generator that no line of the function draws from is drawn from in a way that the bytecode does not show,
    at the function's first line; or by another thread that names it, as the `shared` ones are, and then nowhere.
    """
    sites = draw_sites(fun)
    # A new generator leaves no evidence, so a site under a condition may not have run.
    found = [site for site in sites if site.makes and site.is_certain]
    for generator in changed:
        own = [site for site in sites if site.generator is not None and _bits(site.generator) is _bits(generator)]
        own = own or [site for site in sites if site.generator is None and not site.makes]
        if own:
            found.append(min(own, key=lambda site: not site.is_certain))
        elif generator not in shared and not _is_named_by_another_thread(generator):
            function, _ = function_of(fun)
            if function is not None:
                code = function.__code__
                found.append(DrawSite(generator, "", code.co_filename, code.co_firstlineno, True, False))
    return {(site.file, site.line, site.name): None for site in found}


def _is_named_by_another_thread(generator: Any) -> bool:
    """Whether a function that another thread is in has the generator as a local, or names it."""
    frames = sys._current_frames()
    del frames[threading.get_ident()]
    while frames:
        outer = {}
        for thread, frame in frames.items():
            names = set(frame.f_code.co_names)
            values = [*frame.f_locals.values(), *(frame.f_globals[n] for n in names if n in frame.f_globals)]
            values += [member for base in values for member in _attributes(base, names)]
            if any(_draws_from(value, generator) for value in values):
                return True
            if frame.f_back is not None:
                outer[thread] = frame.f_back
        frames = outer
    return False


def _draws_from(value: Any, generator: Any) -> bool:
    if isinstance(value, MethodType):
        value = value.__self__
    if value is np or value is np.random:
        return generator is np.random.mtrand._rand
    return isinstance(value, generators()) and _bits(value) is _bits(generator)


def _warn_of_draw(file: str, line: int, name: str) -> None:
    name = _OWN.get(name, name)
    own = f"sw.random.{name}" if name in _ALSO_OWN else "sw.random"
    rule = "draws once, during tracing, so that each call has the same numbers"
    warn("np.random", rule, None, f"use {own} with a key", category=TracingWarning, place=(file, line))


def _state(generator: Any) -> Any:
    return _comparable(_bits(generator).state)


def _comparable(state: Any) -> Any:
    if isinstance(state, dict):
        return tuple(map(_comparable, state.values()))
    return state.tobytes() if isinstance(state, np.ndarray) else state


def _bits(generator: Any) -> Any:
    return getattr(generator, "bit_generator", None) or getattr(generator, "_bit_generator", generator)


def _reached(roots: list[Any]) -> _Reached | None:
    """The generators that these functions can reach by name; None if there are none."""
    todo, found = list(roots), list[Any]()
    seen: dict[Any, Any] = {}  # by identity; kept alive, so that ids stay unique
    todo += [member for root in roots for member in _attributes(root, set())]
    reached = makes = False
    maker_names = {maker.__name__ for maker in makers()}
    while todo and len(seen) < _MAX_FUNCTIONS:
        value = todo.pop()
        key = (id(value.__self__), id(value.__func__)) if isinstance(value, MethodType) else id(value)
        if key in seen:
            continue
        seen[key] = value
        if isinstance(value, generators()):
            found.append(value)
        reached = reached or _is_random(value)
        if isinstance(value, partial):
            todo += [*value.args, *value.keywords.values()]
        function, owner = function_of(value)
        if function is not None:
            names, values = _names_of(function.__code__), list(_named_values(function))
            makes = makes or not maker_names.isdisjoint(names)
            reached = reached or "numpy.random" in names  # imported inside
            reached = reached or ("random" in names and any(value is np for value in values))
            todo += values
            todo += [member for base in (*values, owner) for member in _attributes(base, names)]
    of_numpy = [np.random.mtrand._rand] if reached else []
    return _Reached([*of_numpy, *found], makes) if reached or found else None


def _is_random(value: Any) -> bool:
    """Whether a value is ``np.random``, ``default_rng``, or a function such as ``np.random.normal``."""
    if value is np.random or any(value is maker for maker in makers()):
        return True
    return isinstance(value, MethodType) and isinstance(value.__self__, generators())


def _names_of(code: CodeType) -> set[str]:
    """The names of globals and attributes in a function's code and in its nested functions."""
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
    """The members of a module or of a user's object that the code names."""
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
