# SPDX-License-Identifier: Apache-2.0
"""Finds the argument that must be static if Python needs a traced integer, size or flag.

x.reshape(n, -1)             argument n must be static: sw.jit(f, static_argnames='n')
x.reshape(shape)             argument shape must be static: sw.jit(f, static_argnames='shape')
np.zeros(config["width"])    config['width'] must be static, and not part of an argument of arrays: ...
"""

from __future__ import annotations

import inspect
import re
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import TracerConversionError, message
from .call_sites import CallSite, call_site, local_of

if TYPE_CHECKING:
    from ..recording.tracing import Trace, Tracer

__all__ = ["Static", "is_traced", "static_argument", "static_error", "static_field"]

_MOST_LINES = 8  # followed from a value to the argument that it depends on


def static_field() -> str:
    """The advice for a field of an argument that must be static."""
    in_dataclass = "make the field static, in a dataclass with field(metadata={'static': True})"
    if "equinox" in sys.modules:
        in_module = "in an Equinox module, pass params of params, static = eqx.partition(model, eqx.is_array)"
        return f"{in_dataclass}, or, {in_module}"
    return in_dataclass


class Static(NamedTuple):
    """The argument that a traced number is, or depends on."""

    what: str  # "argument n"
    rule: str
    how: str  # "sw.jit(f, static_argnames='n')"
    discrete: bool  # an integer or a bool: few values, each with its own program


def is_traced(value: Any) -> bool:
    """Whether this is a tracer of Shardwise. Those of JAX have a trace, too."""
    return hasattr(type(value), "_trace") and type(value).__module__.startswith("shardwise.")


def static_error(x: Tracer, subject: str, site: CallSite | None = None) -> TracerConversionError | None:
    """The error of a number that must be static; None if ``x`` depends on no argument."""
    found = static_argument(x, site or call_site())
    if found is None:
        return None
    return TracerConversionError(message(subject, f"{found.what} {found.rule}: {found.how}"))


def static_argument(x: Tracer, site: CallSite | None) -> Static | None:
    """The scalar argument that ``x`` is, or that its source line names."""
    argument = _argument_behind(x, site, _MOST_LINES)
    if argument is None:
        return None
    name = argument._trace.arguments[argument._value]
    what, rule, how = _static(x._trace, name)
    return Static(what, rule, how, argument.dtype.kind in "iub")


def _static(trace: Trace, name: str) -> tuple[str, str, str]:
    function = trace.user_call.function
    try:
        parameters: Any = inspect.signature(function).parameters
    except (TypeError, ValueError):
        parameters = {}
    shown = getattr(function, "__name__", "f")
    shown = shown if shown.isidentifier() else "f"
    numbered = re.fullmatch(r"arg(\d+)", name)
    rule = "must be static"
    whole, kind = _whole_argument(trace, name)
    if trace.user_call.transform is not None:
        return f"argument {whole}", rule, f"put the transform into sw.jit, with static_argnames={whole!r}"
    if name not in parameters and numbered:
        return f"argument {numbered[1]}", rule, f"sw.jit({shown}, static_argnums={numbered[1]})"
    if whole.isidentifier():
        hashable = ", and pass a tuple, since a list is not hashable" if kind is list else ""
        return f"argument {whole}", rule, f"sw.jit({shown}, static_argnames={whole!r}){hashable}"
    if re.search(r"\.\w+$", name):
        return name, rule, static_field()
    named = [word for word in re.findall(r"\w+", name)[1:] if word.isidentifier()]
    leaf = named[-1] if named else "n"
    own = f"pass it as a separate argument, such as {leaf}, and sw.jit({shown}, static_argnames={leaf!r})"
    return name, f"{rule}, and not part of an argument of arrays", own


def _whole_argument(trace: Trace, name: str) -> tuple[str, type | None]:
    """``shape`` and its type for ``shape[0]``, where all of it is a tuple or a list of integers; else ``name``."""
    element = re.fullmatch(r"(\w+)\[\d+\]", name)
    if element is None:
        return name, None
    whole = local_of(trace.user_call.function, element[1])
    kind = type(whole)
    if kind not in (tuple, list) or not all(
        _is_integer(trace, item, f"{element[1]}[{i}]") for i, item in enumerate(whole)
    ):
        return name, None
    return element[1], kind


def _is_integer(trace: Trace, item: Any, name: str) -> bool:
    is_argument = is_traced(item) and item._trace is trace and trace.arguments.get(item._value) == name
    return is_argument and item.shape == () and item.dtype.kind == "i"


def _argument_behind(x: Tracer, site: CallSite | None, depth: int) -> Tracer | None:
    if x.shape != ():
        return None
    if x._value in x._trace.arguments:
        return x
    if site is None or depth == 0:
        return None
    file, line = x._trace.core.location(x._value)
    node = site.computed_at(file, line)
    for _, value in site.names(node) if node is not None else ():
        if is_traced(value) and value is not x and value._trace is x._trace and value.shape == ():
            found = _argument_behind(value, site, depth - 1)
            if found is not None:
                return found
    return None
