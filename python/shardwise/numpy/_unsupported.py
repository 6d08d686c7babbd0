# SPDX-License-Identifier: Apache-2.0
"""Errors for NumPy functions and options that are not supported, with the code to write instead.

>>> near_names("cumsun", ["cumsum", "cumprod", "sum"])
['cumsum']
>>> near_names("delete", ["degrees", "delete"])
[]
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..errors import UnsupportedError, sentence, shown
from ..recording.tracing import current_trace

__all__ = [
    "masked",
    "missing_name",
    "near_names",
    "unsupported_function",
    "unsupported_method",
    "unsupported_option",
]

_PLACES = "use np.where(condition, a, b): the number of places depends on the data"
_EAGER = "on sharded arrays"
_INSTEAD = dict.fromkeys(("argwhere", "flatnonzero", "nonzero"), _PLACES)
_UPDATES = dict.fromkeys(("put", "put_along_axis"), "sw.at(x, index).set(values) returns a new array")
_UPDATES |= dict.fromkeys(("copyto", "place", "putmask"), "np.where(mask, values, x) returns a new array")
_UPDATES["fill_diagonal"] = "sw.at(x, np.diag_indices(n)).set(values) returns a new array"
_INSTEAD |= {"apply_along_axis": "use sw.vmap(f)"}
_OPTIONS = {
    "casting": "convert the operands with astype",
    "copy": "use what the function returns",
    "device": "leave it out, and place the array with sw.device_put",
    "dtype": "convert the operand with astype",
    "initial": "combine it with the result",
    "mean": "subtract it, and use np.mean of the squares",
    "out": "use what the function returns",
    "subok": "leave it out: there are no subclasses here",
}


def near_names(name: str, names: Iterable[str]) -> list[str]:
    """Names spelled almost like ``name``: same beginning, about the same length, but not ``name`` itself."""
    alike = [n for n in names if n != name and n[:3] == name[:3] and abs(len(n) - len(name)) <= 2]
    return difflib.get_close_matches(name, alike, n=2, cutoff=0.8) if len(name) > 4 else []


def _where() -> str:
    trace = current_trace()
    return _EAGER if trace is None or trace.user_call.eager else "in traced functions"


def unsupported_function(name: str, supported: Iterable[str]) -> UnsupportedError:
    """The error of an unsupported NumPy function, such as ``np.partition``."""
    short = name.removeprefix("np.")
    eager = _where() == _EAGER
    near = near_names(short, supported)
    way_out = "call it on np.asarray(a)" if eager else "call it on np.asarray(x) outside jit"
    if short in _UPDATES or not eager:
        way_out = _UPDATES.get(short) or _INSTEAD.get(short) or way_out
    if near:
        way_out += f", or use np.{' or np.'.join(near)}"
    return UnsupportedError(sentence(f"{name} is not supported {_where()}", way_out))


def missing_name(name: str, supported: Iterable[str]) -> AttributeError:
    """The error of an attribute that ``shardwise.numpy`` lacks, such as ``snp.partition`` or ``snp.linspce``."""
    plain = f"module 'shardwise.numpy' has no attribute {name!r}"
    if name.startswith("_"):  # looked up by Python's own modules
        return AttributeError(plain)
    near = near_names(name, supported)
    way_out = f"use snp.{' or snp.'.join(near)}" if near else ""
    if callable(getattr(np, name, None)):
        way_out = _UPDATES.get(name) or _INSTEAD.get(name) or "call numpy's on np.asarray(x) outside jit"
        plain = f"shardwise.numpy: np.{name} is not supported"
    return AttributeError(sentence(plain, way_out), name=name)


def unsupported_method(name: str, way_out: str) -> UnsupportedError:
    """The error of an unsupported ufunc method, such as ``np.add.reduceat``."""
    if _where() == _EAGER:
        way_out = f"call it on np.asarray(a); {way_out}"
    return UnsupportedError(sentence(f"{name} is not supported {_where()}", way_out))


def unsupported_option(function: str, name: str, value: Any, way_out: str | None = None) -> UnsupportedError:
    """The error of an unsupported option, such as ``out=``."""
    if way_out is None:
        way_out = _order(value) if name == "order" else _OPTIONS.get(name, "leave it out")
    text = f"{function}: {name}= is not supported {_where()}, got {name}={shown(value)}"
    return UnsupportedError(sentence(text, way_out))


def _order(value: Any) -> str:
    return "use order='C': arrays here have no order in memory" if value in ("A", "K", "F") else "use order='C'"


def masked(ufunc: np.ufunc, out: Any) -> str:
    """The code to write in place of ``np.add(a, b, where=mask)``."""
    names = ", ".join("abc"[: ufunc.nin])
    return f"use np.where(mask, np.{ufunc.__name__}({names}), {'other' if out is None else 'out'})"
