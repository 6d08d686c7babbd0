# SPDX-License-Identifier: Apache-2.0
"""What to write instead, where Python or NumPy asks a traced array for its value.

NumPy reaches a tracer through ``__array__``, ``__index__`` and ``__float__`` alone, so the user's expression decides:

    np.arange(n)                 argument n must be static: sw.jit(f, static_argnames='n')
    np.asarray(x)                x is already an array: remove the call
    np.array([x[0], x[1]])       use np.stack([x[0], x[1]])
    y[i] = x[i]                  start from y = np.zeros_like(x, shape=(4,)), and write y = y.at[i].set(x[i])
"""

from __future__ import annotations

import ast
import inspect
import os
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from .call_sites import HIDDEN, UNKNOWN, CallSite, call_site
from .dtypes import is_float
from .errors import TracerBoolConversionError, TracerConversionError, UnsupportedError, composed, message
from .library_calls import library_error

if TYPE_CHECKING:
    from .tracing import Trace, Tracer

__all__ = ["STATIC_FIELD", "bool_error", "conversion_error", "in_place_error", "restored", "static_error"]

STATIC_FIELD = "make the field static, in a dataclass with field(metadata={'static': True})"
_UNKNOWN_VALUE = "this needs the value of a traced array, which is unknown during tracing"
_UNKNOWN_SIZE = "a shape must be known during tracing, and must not depend on data"
_AS_ARRAY = (np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray)
_OF_SIZES = (np.zeros, np.ones, np.empty, np.full, np.eye, np.identity, np.tri, np.arange, np.linspace, np.indices)
_OF_BOOLS: dict[Any, str] = {max: "np.maximum", min: "np.minimum", any: "np.any", all: "np.all"}
_CASTS = (float, int, complex)
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_UPDATES: dict[type[ast.operator], str] = {ast.Add: "add", ast.Mult: "multiply"}


def conversion_error(x: Tracer, what: str) -> TracerConversionError:
    """The error of a tracer whose value is needed, by a conversion: ``float``, ``np.asarray``, ``index``."""
    site = call_site()
    error = _conversion_error(x, what, site)
    x._trace.refused = error
    return error


def _conversion_error(x: Tracer, what: str, site: CallSite | None) -> TracerConversionError:
    if x._trace.eager:
        rule = "this needs a NumPy array or a number"
        return TracerConversionError(message(_subject(site, what), rule, repr(x), "pass np.asarray(a)"))
    in_library = library_error(x, site)
    if in_library is not None:
        return TracerConversionError(in_library)
    found = None if site is None else _of_expression(x, what, site)
    if found is None:
        found = static_error(x, _subject(site, what), site)
    if found is not None:
        return found
    if site is not None and isinstance(site.node, ast.Call) and any(site.value(site.node.func) is f for f in _OF_SIZES):
        way_out = "use a static size, and mask with np.where"
        return TracerConversionError(message(_subject(site, what), _UNKNOWN_SIZE, repr(x), way_out))
    way_out = {
        "format": "print it with sw.debug.print, or return it from the jitted function",
        "index": "use shapes, numbers or static arguments",
        "np.asarray": "use functions that take traced arrays, or return the value from the jitted function",
        "float": "use astype(float), or return the value from the jitted function",
        "int": "use astype(int), or return the value from the jitted function",
    }.get(what, "return the value from the jitted function")
    return TracerConversionError(message(_subject(site, what), _UNKNOWN_VALUE, repr(x), way_out))


def bool_error(x: Tracer) -> TracerConversionError:
    """The error of a tracer that is used as a condition."""
    site = call_site()
    node = None if site is None else site.node
    subject = _subject(site, "bool")
    function = site.value(node.func) if site is not None and isinstance(node, ast.Call) else UNKNOWN
    condition = not isinstance(node, ast.Call) or function is bool
    instead = next((f"use {instead}" for known, instead in _OF_BOOLS.items() if function is known), "")
    if condition:
        instead = "use np.where(condition, a, b)"
    if not x._trace.eager:
        in_library = library_error(x, site)
        if in_library is not None:
            return TracerBoolConversionError(in_library)
        found = static_error(x, subject, site, f", or {instead}" if instead else "")
        if found is not None:
            return TracerBoolConversionError(*found.args)
    way_out = "use np.where(condition, a, b), or make the argument static" if condition or not instead else instead
    if condition and site is not None and _ends_a_loop(site):
        way_out = "run the loop outside jit, or a fixed number of steps with np.where(condition, a, b)"
    rule = "a condition of Python's if, while, and, or must be known during tracing"
    return TracerBoolConversionError(message(subject, rule, repr(x), way_out))


def _ends_a_loop(site: CallSite) -> bool:
    """Whether the condition is that of a ``while``, or of an ``if`` with a ``break``."""
    statement = site.statement()
    if isinstance(statement, ast.If):
        return any(isinstance(node, ast.Break) for part in statement.body for node in ast.walk(part))
    return isinstance(statement, ast.While)


def static_error(
    x: Tracer, subject: str, site: CallSite | None = None, further: str = ""
) -> TracerConversionError | None:
    """The error of a number that must be static; None where ``x`` is no argument and comes from none."""
    name = _argument_behind(x, site or call_site(), 8)
    if name is None:
        return None
    return TracerConversionError(message(subject, _must_be_static(x._trace, name) + further))


def _subject(site: CallSite | None, what: str) -> str:
    """What the user calls: ``np.arange``; the conversion where that is not known."""
    node = None if site is None else site.node
    if site is None or not isinstance(node, ast.Call):
        return "indexing" if isinstance(node, ast.Subscript) else what
    text = site.text(node.func, 32)
    return what if text == "…" or text.endswith(f".{what}") else text


def _must_be_static(trace: Trace, name: str) -> str:
    function = trace.function
    try:
        parameters: Any = inspect.signature(function).parameters
    except (TypeError, ValueError):
        parameters = {}
    shown = getattr(function, "__name__", "f")
    shown = shown if shown.isidentifier() else "f"
    numbered = re.fullmatch(r"arg(\d+)", name)
    if trace.transform:
        return f"argument {name} must be static: put the transform into sw.jit, with static_argnames={name!r}"
    if name not in parameters and numbered:
        return f"argument {numbered[1]} must be static: sw.jit({shown}, static_argnums={numbered[1]})"
    if not name.isidentifier():
        if re.search(r"\.\w+$", name):
            return f"{name} must be static: {STATIC_FIELD}"
        leaf = re.findall(r"\w+", name)[-1]
        leaf = leaf if leaf.isidentifier() else "n"
        own = f"make it an argument of its own, and sw.jit({shown}, static_argnames={leaf!r})"
        return f"{name} must be static, and not part of an argument of arrays: {own}"
    return f"argument {name} must be static: sw.jit({shown}, static_argnames={name!r})"


def _is_traced(value: Any) -> bool:
    return hasattr(type(value), "_trace")


def _argument_behind(x: Tracer, site: CallSite | None, depth: int) -> str | None:
    """The name of the scalar argument that ``x`` is, or that the line which made it names."""
    if x.shape != ():
        return None
    name: str | None = x._trace.arguments.get(x._value)
    if name is not None or site is None or depth == 0:
        return name
    file, line = x._trace.core.location(x._value)
    node = site.computed_at(file, line)
    for _, value in site.names(node) if node is not None else ():
        if _is_traced(value) and value is not x and value._trace is x._trace and value.shape == ():
            found = _argument_behind(value, site, depth - 1)
            if found is not None:
                return found
    return None


# ---- what the expression is -----------------------------------------------------------------------------------------


def _of_expression(x: Tracer, what: str, site: CallSite) -> TracerConversionError | None:
    node = site.node
    if isinstance(node, ast.Subscript):
        if isinstance(node.ctx, ast.Store):
            return _stored(x, site, node)
        joined = {id(np.r_): "np.concatenate([{}])", id(np.c_): "np.column_stack([{}])"}.get(id(site.value(node.value)))
        if joined is not None:
            return _error(
                site.text(node.value), "takes no traced arrays", f"use {joined.format(site.text(node.slice))}"
            )
    if isinstance(node, ast.Call):
        return _called(x, what, site, node)
    return None


def _called(x: Tracer, what: str, site: CallSite, node: ast.Call) -> TracerConversionError | None:
    function, shown = site.value(node.func), site.text(node.func)
    if isinstance(node.func, ast.Call) and site.value(node.func.func) is np.vectorize:
        return _error("np.vectorize", "calls its function with numbers", "call f on whole arrays, or use sw.vmap(f)")
    if function is UNKNOWN or not node.args:
        return None
    first = node.args[0]
    argument = site.text(first)
    if getattr(function, "__module__", "") == "math" and hasattr(np, function.__name__):
        return _error(shown, "takes numbers, not traced arrays", f"use np.{function.__name__}")
    if isinstance(function, type) and issubclass(function, (np.generic, *_CASTS)):
        if function in _CASTS and _argument_behind(x, site, 8) is not None:
            return None
        sizes = ", or a static argument where it is a size" if function is int else ""
        return _error(shown, _UNKNOWN_VALUE, f"use {argument}.astype({shown}){sizes}")
    if function is np.full and what != "index" and len(node.args) > 1:
        filled = f"np.full_like({site.text(node.args[1])}, {site.text(node.args[1])}, shape={argument})"
        return _error(shown, "a NumPy array cannot hold traced values", f"use {filled}")
    if what == "index" or not _is_numpy(function) or any(function is f for f in _OF_SIZES):
        return None
    if isinstance(first, (ast.List, ast.Tuple, ast.ListComp)) or isinstance(site.value(first), (list, tuple)):
        return _list_of_traced(site, node, any(function is f for f in _AS_ARRAY))
    if any(function is f for f in _AS_ARRAY):
        if len(node.args) > 1 or any(keyword.arg == "dtype" for keyword in node.keywords):
            dtypes = [*node.args[1:2], *(keyword.value for keyword in node.keywords if keyword.arg == "dtype")]
            return _error(shown, f"{argument} is already an array", f"use {argument}.astype({site.text(dtypes[0])})")
        both = f"({shown}({argument}, like={argument}) and sw.numpy.asarray({argument}) work on both)"
        return _error(shown, f"{argument} is already an array: remove the call {both}", "")
    return None


def _list_of_traced(site: CallSite, node: ast.Call, to_array: bool) -> TracerConversionError:
    shown, first = site.text(node.func), node.args[0]
    nested = isinstance(first, (ast.List, ast.Tuple)) and any(isinstance(e, (ast.List, ast.Tuple)) for e in first.elts)
    stacked = f"np.stack([np.stack(row) for row in {site.text(first)}])" if nested else f"np.stack({site.text(first)})"
    if not to_array:
        rest = [site.text(argument) for argument in node.args[1:]]
        rest += [f"{k.arg}={site.text(k.value)}" if k.arg else f"**{site.text(k.value)}" for k in node.keywords]
        stacked = f"{shown}({', '.join([stacked, *rest])})"
    return _error(shown, "a list of traced arrays must be stacked", f"use {stacked}")


def _is_numpy(function: Any) -> bool:
    module = getattr(function, "__module__", None) or ""
    return isinstance(function, np.ufunc) or module == "numpy" or module.startswith("numpy.")


def _error(subject: str, rule: str, way_out: str) -> TracerConversionError:
    return TracerConversionError(message(subject, rule, None, way_out))


# ---- writes into NumPy arrays ---------------------------------------------------------------------------------------

_CANNOT_HOLD = "a NumPy array cannot hold traced values"


def _stored(x: Tracer, site: CallSite, node: ast.Subscript) -> TracerConversionError | None:
    statement, array = site.statement(), site.value(node.value)
    if array is not UNKNOWN and not isinstance(array, np.ndarray):
        return None
    if not isinstance(statement, (ast.Assign, ast.AugAssign)):
        return None
    target, value = site.text(node), site.text(statement.value)
    symbol, update = "", f"set({value})"
    if isinstance(statement, ast.AugAssign):  # where an index comes twice, NumPy counts it once: no add
        symbol = _OPERATORS[type(statement.op)]
        update = f"set({target} {symbol} {value})"
    way_out = _functional_update(site, node, array, update, [statement.value, node.slice])
    return _error(f"{target} {symbol}= {value}", _CANNOT_HOLD, way_out)


def _functional_update(site: CallSite, target: ast.Subscript, array: Any, update: str, places: list[ast.expr]) -> str:
    base, index = site.text(target.value), site.text(target.slice)
    traced = [(name, value) for place in places for name, value in site.names(place) if _is_traced(value)]
    like, value = traced[0] if traced else ("x", None)
    is_zero = isinstance(array, np.ndarray) and not array.any()
    start = f"np.zeros_like({like}, shape={array.shape})" if is_zero else f"np.asarray({base}, like={like})"
    if is_zero and value is not None and is_float(array.dtype) and not is_float(value.dtype):  # of ids: c[ids] = 0.5
        start = f"np.zeros_like({like}, shape={array.shape}, dtype=np.{array.dtype})"
    return f"start from {base} = {start}, and write {base} = {base}.at[{index}].{update}"


def in_place_error(out: Any) -> UnsupportedError | None:
    """The error of ``acc += x`` for a NumPy array ``acc``; None where the user wrote ``out=``."""
    site = call_site()
    node = None if site is None else site.node
    if site is None or not isinstance(node, ast.AugAssign) or not isinstance(out, np.ndarray):
        return None
    symbol = _OPERATORS[type(node.op)]
    target, value = site.text(node.target), site.text(node.value)
    way_out = f"write {target} = {target} {symbol} {value}"
    if isinstance(node.target, ast.Subscript):
        method = _UPDATES.get(type(node.op))
        update = f"set({target} {symbol} {value})" if method is None else f"{method}({value})"
        array = site.value(node.target.value)
        way_out = _functional_update(site, node.target, array, update, [node.value, node.target.slice])
    return UnsupportedError(message(f"{target} {symbol}= {value}", _CANNOT_HOLD, None, way_out))


# ---- NumPy's own errors ---------------------------------------------------------------------------------------------


def restored(trace: Trace, error: BaseException | None) -> Exception | None:
    """The error that a tracer raised, where NumPy replaced it by one of its own: ``np.zeros(n)``, ``y[0] = x[0]``.

    Also an error for a function of JAX that met a tracer, since JAX names none of our functions.
    """
    if type(error) is TypeError and "shardwise.tracing.Tracer'>" in str(error) and "jax" in str(error).lower():
        return _error_of_jax(error)
    if type(error) is ValueError and isinstance(error.__cause__, TracerConversionError):
        return error.__cause__
    if type(error) is TypeError and trace.refused is not None and "got 'Tracer<" in str(error):
        return trace.refused
    return None


def _error_of_jax(error: TypeError) -> UnsupportedError:
    """The error of ``jnp.tanh(x)`` for a tracer, at the user's line."""
    place, step = ("", 0), error.__traceback__
    while step is not None and f"{os.sep}jax{os.sep}_src{os.sep}" not in step.tb_frame.f_code.co_filename:
        if not step.tb_frame.f_code.co_filename.startswith(HIDDEN):
            place = step.tb_frame.f_code.co_filename, step.tb_lineno
        step = step.tb_next
    rule, way_out = "takes no traced arrays of Shardwise", "use NumPy's function, such as np.tanh(x)"
    return UnsupportedError(composed("a function of JAX", rule, None, way_out, *place))
