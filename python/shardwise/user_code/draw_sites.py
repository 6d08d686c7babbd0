# SPDX-License-Identifier: Apache-2.0
"""Finds the lines of a function, and of functions that it calls, that draw from or make NumPy generators.

No user code runs: this reads the bytecode, and looks up chains such as ``np.random.rand``, ``RNG.normal`` and
``self.rng.uniform`` in globals, closures, bound objects and the ``__dict__`` of objects. For a chain that begins with
an unknown value, such as ``rng.normal`` for an argument ``rng``, the method name decides.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from functools import cache, partial
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

__all__ = ["DrawSite", "draw_sites", "function_of", "generators", "makers"]

_MAX_FUNCTIONS = 300
_UNKNOWN: Any = object()
_TRANSPARENT = frozenset(("CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL", "RESUME"))
_ENDS = ("RETURN", "RAISE", "RERAISE")


# NumPy loads np.random at its first use: the first trace does that, not the import of Shardwise.


@cache
def generators() -> tuple[type, ...]:
    """The classes of NumPy's generators."""
    return np.random.Generator, np.random.RandomState, np.random.BitGenerator


@cache
def makers() -> tuple[Any, ...]:
    """The functions that make a generator."""
    return np.random.default_rng, np.random.RandomState, np.random.Generator


@cache
def _methods() -> frozenset[str]:
    return frozenset(
        name
        for cls in (np.random.Generator, np.random.RandomState)
        for name in dir(cls)
        if not name.startswith("_") and callable(getattr(cls, name)) and not hasattr(np.ndarray, name)
    )


class DrawSite(NamedTuple):
    """A line that names a method of a generator, or a function that makes one."""

    generator: Any  # None if it is unknown, or made here
    name: str
    file: str
    line: int
    is_certain: bool  # no condition decides whether it runs
    makes: bool


class _Visit(NamedTuple):
    code: CodeType
    known: dict[str, Any]  # locals and closure
    names: dict[str, Any]  # globals
    is_certain: bool


def draw_sites(fun: Callable[..., Any]) -> list[DrawSite]:
    """The sites of ``fun`` in the order of its lines, then those of the functions that it names."""
    sites, seen = list[DrawSite](), dict[Any, Any]()
    todo: list[tuple[Any, bool]] = [(fun, True)]
    while todo and len(seen) < _MAX_FUNCTIONS:
        value, is_certain = todo.pop(0)
        visit = _visit_of(value, is_certain)
        if visit is None or (visit.code, id(getattr(value, "__self__", None))) in seen:
            continue
        seen[visit.code, id(getattr(value, "__self__", None))] = value  # kept alive
        todo += _scan(visit, sites)
    return sites


def function_of(value: Any) -> tuple[FunctionType | None, Any]:
    """The user's Python function behind a called value, and the object that it is bound to."""
    owner = None
    for _ in range(8):
        if isinstance(value, FunctionType):
            break
        if isinstance(value, MethodType):
            owner, value = value.__self__, value.__func__
        elif isinstance(value, partial):
            value = value.func
        elif _wrapped(value) is not None:
            value = _wrapped(value)
        elif callable(value):
            owner, value = value, type(value).__call__
        else:
            break
    if not isinstance(value, FunctionType) or (value.__module__ or "").split(".")[0] in ("numpy", "shardwise"):
        return None, None
    return value, owner


def _wrapped(value: Any) -> Any:
    return getattr(value, "__dict__", {}).get("__wrapped__")


def _visit_of(value: Any, is_certain: bool) -> _Visit | None:
    function, owner = function_of(value)
    if function is None:
        return None
    code = function.__code__
    parameters = code.co_varnames[: code.co_argcount]
    defaults = function.__defaults__ or ()
    known = dict(zip(parameters[len(parameters) - len(defaults) :], defaults))
    known.update(function.__kwdefaults__ or {})
    if isinstance(value, partial):
        known.update(zip(parameters[owner is not None :], value.args))
        known.update(value.keywords)
    if owner is not None and parameters:
        known[parameters[0]] = owner
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        try:
            known[name] = cell.cell_contents
        except ValueError:  # assigned later
            continue
    return _Visit(code, known, function.__globals__, is_certain)


def _scan(visit: _Visit, sites: list[DrawSite]) -> list[tuple[Any, bool]]:
    """Add the sites of one code object and its nested functions. Returns the other values that it names."""
    code, known, line = visit.code, dict(visit.known), visit.code.co_firstlineno
    named, inner = list[tuple[Any, bool]](), list[tuple[CodeType, bool]]()
    value, module = _UNKNOWN, _UNKNOWN
    conditional_until, returned = 0, False
    for instruction in dis.get_instructions(code):
        started: Any = getattr(instruction, "line_number", instruction.starts_line)
        line = started or line
        op, argument = instruction.opname, instruction.argval
        is_certain = visit.is_certain and not returned and instruction.offset >= conditional_until
        if "JUMP" in op and isinstance(argument, int):
            conditional_until = max(conditional_until, argument)
        returned = returned or op.startswith(_ENDS)
        if op in _TRANSPARENT:
            continue
        if op in ("STORE_FAST", "STORE_DEREF", "STORE_FAST_LOAD_FAST"):
            known[argument[0] if isinstance(argument, tuple) else argument] = value
        before, value = value, _loaded(op, argument, value, module, known, visit.names)
        if op == "IMPORT_NAME":
            module = value
        if isinstance(argument, CodeType):
            inner.append((argument, is_certain))
        is_attribute = op in ("LOAD_ATTR", "LOAD_METHOD")
        site = _site_of(value, argument if is_attribute and before is _UNKNOWN else "")
        if site is not None:
            sites.append(DrawSite(*site[:2], code.co_filename, line, is_certain, site[2]))
        elif value is not _UNKNOWN:
            named.append((value, is_certain))
    for part, is_certain in inner:
        free = {name: known[name] for name in part.co_freevars if name in known}
        named += _scan(_Visit(part, free, visit.names, is_certain), sites)
    return named


def _loaded(op: str, argument: Any, value: Any, module: Any, known: dict[str, Any], names: dict[str, Any]) -> Any:
    """The value that an instruction loads; ``value`` is the one that the previous instruction loaded."""
    if op in ("LOAD_GLOBAL", "LOAD_NAME"):
        return names.get(argument, _UNKNOWN)
    if op.startswith(("LOAD_FAST", "LOAD_DEREF", "STORE_FAST_LOAD_FAST")):
        return known.get(argument[-1] if isinstance(argument, tuple) else argument, _UNKNOWN)
    if op in ("LOAD_ATTR", "LOAD_METHOD"):
        return _attribute(value, argument)
    if op == "IMPORT_NAME":
        imported = sys.modules.get(argument, _UNKNOWN)
        return imported if value is not None else sys.modules.get(argument.partition(".")[0], _UNKNOWN)
    if op == "IMPORT_FROM":
        return _attribute(module, argument)
    return argument if op == "LOAD_CONST" and argument is None else _UNKNOWN


def _attribute(base: Any, name: str) -> Any:
    """Look up an attribute without running user code: in a module, in ``__dict__``, or as a method."""
    if isinstance(base, generators()):
        return getattr(base, name, _UNKNOWN)
    members = getattr(base, "__dict__", {})
    if name in members:
        return members[name]
    method = getattr(type(base), name, None)
    return MethodType(method, base) if isinstance(method, FunctionType) else _UNKNOWN


def _site_of(value: Any, name: str) -> tuple[Any, str, bool] | None:
    """The generator, the method's name, and whether it makes a generator; None if this is no draw."""
    if any(value is maker for maker in makers()):
        return None, value.__name__, True
    owner = getattr(value, "__self__", None) if value is not _UNKNOWN else None
    if isinstance(owner, generators()):
        return owner, value.__name__, False
    return (None, name, False) if name in _methods() else None
