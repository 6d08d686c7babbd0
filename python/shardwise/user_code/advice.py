# SPDX-License-Identifier: Apache-2.0
"""Errors for code that needs the value of a traced array, with the code to write instead.

NumPy calls only ``__array__``, ``__index__`` and ``__float__`` of a tracer. The user's expression determines the fix:

    np.arange(n)                 argument n must be static: sw.jit(f, static_argnames='n')
    np.asarray(x)                x is already an array: remove the call
    np.array([x[0], x[1]])       use np.stack([x[0], x[1]])
    table[ids]                   use np.asarray(table, like=ids)[ids]
    y[i] = x[i]                  start from y = np.zeros_like(x, shape=(4,)), and write y = y.at[i].set(x[i])
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import is_float
from ..errors import Error, TracerBoolConversionError, TracerConversionError, UnsupportedError, message
from .call_sites import UNKNOWN, CallSite, call_site, raising_instruction, running_instruction
from .functions_of_jax import error_of_jax
from .library_calls import library_error
from .static_arguments import is_traced, static_argument, static_error

if TYPE_CHECKING:
    from ..recording.tracing import Trace, Tracer

__all__ = ["bool_error", "conversion_error", "in_place_error", "restored"]

_UNKNOWN_VALUE = "this needs the value of a traced array, which is unknown during tracing"
_UNKNOWN_SIZE = "a shape must be known during tracing, and must not depend on data"
_OF_A_SIZE = "use a static upper bound, and mask with np.where"
_UNKNOWN_CONDITION = "a condition of Python's if, while, and, or must be known during tracing"
_CHOICE = "use np.where(condition, a, b), or sw.cond(condition, f, g)"
_AS_ARRAY = (np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray)
_OF_SIZES = (np.zeros, np.ones, np.empty, np.full, np.eye, np.identity, np.tri, np.arange, np.linspace, np.indices)
_TO_SIZES = ("array_split", "broadcast_to", "repeat", "reshape", "resize", "split", "tile")  # of np, or methods
_OF_BOOLS: dict[Any, str] = {max: "np.maximum", min: "np.minimum", any: "np.any", all: "np.all"}
_CASTS = (float, int, complex)
_WAYS_OUT = {
    "format": "print it with sw.debug.print, or return it from the jitted function",
    "hash": "use np.where, or an array in place of the dict or the set",
    "index": "use shapes, numbers or static arguments",
    "item": "use the array itself, or return the value from the jitted function",
    "np.asarray": "use functions that take traced arrays, or return the value from the jitted function",
    "float": "use astype(float), or return the value from the jitted function",
    "int": "use astype(int), or return the value from the jitted function",
}
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_UPDATES: dict[type[ast.operator], str] = {ast.Add: "add", ast.Mult: "multiply"}


def conversion_error(x: Tracer, what: str) -> TracerConversionError:
    """The error of a conversion that needs the value of a tracer: ``float``, ``np.asarray``, ``index``."""
    site = call_site()
    error = _conversion_error(x, what, site)
    x._trace.refused = error, running_instruction()
    return error


def _conversion_error(x: Tracer, what: str, site: CallSite | None) -> TracerConversionError:
    if x._trace.user_call.eager:
        rule = "this needs a NumPy array or a number"
        return TracerConversionError(message(_subject(site, what), rule, repr(x), "pass np.asarray(a)"))
    in_library = library_error(x, site)
    if in_library is not None:
        return TracerConversionError(in_library)
    found = None if site is None else _of_expression(x, what, site) or _of_size(x, what, site)
    if found is None and _needs_python(x, what):
        found = static_error(x, _subject(site, what), site)
    if found is not None:
        return found
    way_out = _WAYS_OUT.get(what, "return the value from the jitted function")
    return TracerConversionError(message(_subject(site, what), _UNKNOWN_VALUE, repr(x), way_out))


def _needs_python(x: Tracer, what: str) -> bool:
    """Whether to suggest a static argument. Not for rates or weights: each value would compile another program."""
    return what in ("index", "hash") or (what == "np.asarray" and x.dtype.kind in "iub")


def bool_error(x: Tracer) -> TracerConversionError:
    """The error of a tracer in a condition."""
    site = call_site()
    node = None if site is None else site.node
    subject = _subject(site, "bool")
    compared = None if site is None or node is None else _compared_with_none(site, node)
    if compared is not None:
        return TracerBoolConversionError(*compared.args)
    in_library = None if x._trace.user_call.eager else library_error(x, site)
    if in_library is not None:
        return TracerBoolConversionError(in_library)
    function = site.value(node.func) if site is not None and isinstance(node, ast.Call) else UNKNOWN
    instead = next((f"use {instead}" for known, instead in _OF_BOOLS.items() if function is known), "")
    if not instead and site is not None and not isinstance(node, ast.Call) and _ends_a_loop(site):
        instead = "use sw.while_loop(condition, body, x), or a fixed number of steps with np.where(condition, a, b)"
    static = None if x._trace.user_call.eager or instead else static_argument(x, site)
    if static is None:
        return TracerBoolConversionError(message(subject, _UNKNOWN_CONDITION, repr(x), instead or _CHOICE))
    if static.discrete:
        text = message(subject, f"{static.what} {static.rule}: {static.how}, or {_CHOICE}")
    else:
        way_out = f"{_CHOICE}, or make {static.what} static: {static.how}"
        text = message(subject, _UNKNOWN_CONDITION, repr(x), way_out)
    return TracerBoolConversionError(text)


def _ends_a_loop(site: CallSite) -> bool:
    """Whether the condition belongs to a ``while``, or to an ``if`` with a ``break``."""
    statement = site.statement()
    if isinstance(statement, ast.If):
        return any(isinstance(node, ast.Break) for part in statement.body for node in ast.walk(part))
    return isinstance(statement, ast.While)


def _compared_with_none(site: CallSite, node: ast.AST) -> TracerConversionError | None:
    """The error of ``a == None``, which compares the elements of an array."""
    compare = node.operand if isinstance(node, ast.UnaryOp) else node
    if not isinstance(compare, ast.Compare) or not isinstance(compare.ops[0], (ast.Eq, ast.NotEq)):
        return None
    sides = [compare.left, compare.comparators[0]]
    others = [side for side in sides if not (isinstance(side, ast.Constant) and side.value is None)]
    if len(others) != 1:
        return None
    way_out = f"use {site.operand(others[0])} is {'not ' if isinstance(compare.ops[0], ast.NotEq) else ''}None"
    return _error(site.text(compare), "compares each element with None", way_out)


def _subject(site: CallSite | None, what: str) -> str:
    """The function that the user calls, such as ``np.arange``; the conversion if that is unknown."""
    return what if site is None or site.node is None else _shown_call(site, site.node, what)


def _shown_call(site: CallSite, node: ast.AST, what: str) -> str:
    if not isinstance(node, ast.Call):
        return "indexing" if isinstance(node, ast.Subscript) else what
    text = site.text(node.func, 32)
    return what if text == "…" or text.endswith(f".{what}") else text


# ---- the running expression -----------------------------------------------------------------------------------------


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
        return None if what == "hash" else _looked_up(x, site, node)
    if isinstance(node, ast.Call):
        return _called(x, what, site, node)
    return None


def _called(x: Tracer, what: str, site: CallSite, node: ast.Call) -> TracerConversionError | None:
    function, shown = site.value(node.func), site.text(node.func)
    if isinstance(node.func, ast.Call) and site.value(node.func.func) is np.vectorize:
        return _error("np.vectorize", "calls its function with numbers", "call f on whole arrays, or use sw.vmap(f)")
    if isinstance(node.func, ast.Attribute) and node.func.attr == "take" and what != "hash":
        return _taken(x, site, node, node.func)
    if function is UNKNOWN or not node.args:
        return None
    first = node.args[0]
    argument = site.text(first)
    if getattr(function, "__module__", "") == "math" and hasattr(np, function.__name__):
        return _error(shown, "takes numbers, not traced arrays", f"use np.{function.__name__}")
    if isinstance(function, type) and issubclass(function, (np.generic, *_CASTS)):
        return _of_size(x, what, site) or _cast(x, site, first, function, shown)
    if function is np.full and what != "index" and len(node.args) > 1:
        filled = f"np.full_like({site.text(node.args[1])}, {site.text(node.args[1])}, shape={argument})"
        return _error(shown, "a NumPy array cannot hold traced values", f"use {filled}")
    if what == "index" or not _is_numpy(function) or any(function is f for f in _OF_SIZES):
        return None
    lists = _lists_of_traced(site, node)
    if lists:
        return _stacked(site, node, lists, any(function is f for f in _AS_ARRAY))
    if any(function is f for f in _AS_ARRAY):
        if len(node.args) > 1 or any(keyword.arg == "dtype" for keyword in node.keywords):
            dtypes = [*node.args[1:2], *(keyword.value for keyword in node.keywords if keyword.arg == "dtype")]
            way_out = f"use {site.operand(first)}.astype({site.text(dtypes[0])})"
            return _error(shown, f"{argument} is already an array", way_out)
        both = f"({shown}({argument}, like={argument}) and sw.numpy.asarray({argument}) work on both)"
        return _error(shown, f"{argument} is already an array: remove the call {both}", "")
    return None


def _cast(x: Tracer, site: CallSite, first: ast.expr, function: type, shown: str) -> TracerConversionError:
    """The error of ``float(x)``, ``int(x)`` or ``np.float64(x)`` if the result is not used as a size."""
    static = static_argument(x, site)
    way_out = f"use {site.operand(first)}.astype({shown})"
    keeps_value = function in (float, complex) or (function is int and x.dtype.kind in "iub")
    if static is not None and keeps_value:
        way_out = f"use {site.text(first)} itself, or {site.operand(first)}.astype({shown})"
    if issubclass(function, (int, np.integer)):
        of_a_size = _OF_A_SIZE if static is None else f"{static.what} {static.rule}: {static.how}"
        way_out += f"; where it is a size, {of_a_size}"
    return _error(shown, _UNKNOWN_VALUE, way_out)


def _of_size(x: Tracer, what: str, site: CallSite) -> TracerConversionError | None:
    """The error of a size: ``np.zeros(n)``, ``np.zeros(int(n))``, ``x[:int(n)]``; None for any other value."""
    uses: list[tuple[ast.AST | None, ast.AST | None]] = [site.consumer()]
    if what in ("index", "int", "np.asarray"):
        uses.insert(0, (site.node, None))
    for node, argument in uses:
        if node is not None and _makes_a_shape(site, node, argument):
            subject = _shown_call(site, node, what)
            static = static_error(x, subject, site)
            if static is not None or (isinstance(node, ast.Call) and site.value(node.func) is range):
                return static
            return TracerConversionError(message(subject, _UNKNOWN_SIZE, repr(x), _OF_A_SIZE))
    return None


def _makes_a_shape(site: CallSite, node: ast.AST, argument: ast.AST | None = None) -> bool:
    """Whether a call uses the argument as a shape (any argument if it is None), or a subscript has traced bounds."""
    if isinstance(node, ast.Subscript):
        return any(isinstance(part, ast.Slice) and _holds_traced(site, part) for part in ast.walk(node.slice))
    if not isinstance(node, ast.Call):
        return False
    function, first = site.value(node.func), node.args[0] if node.args else None
    if isinstance(node.func, ast.Attribute) and node.func.attr in _TO_SIZES:
        return function is UNKNOWN or argument is None or argument is not first
    if function is np.full and argument is not None and argument is not first:
        return False
    return function is range or any(function is f for f in _OF_SIZES)


def _is_list(site: CallSite, node: ast.expr) -> bool:
    return isinstance(node, (ast.List, ast.Tuple, ast.ListComp)) or isinstance(site.value(node), (list, tuple))


def _holds_traced(site: CallSite, node: ast.AST) -> bool:
    values = [value for _, value in site.names(node)]
    values += [item for value in values if isinstance(value, (list, tuple)) for item in value]
    return any(is_traced(value) for value in values)


def _lists_of_traced(site: CallSite, node: ast.Call) -> list[ast.expr]:
    values = [*node.args, *(keyword.value for keyword in node.keywords)]
    lists = [value for value in values if _is_list(site, value)]
    return [value for value in lists if _holds_traced(site, value)] or [v for v in lists if v is node.args[0]]


def _stacked(site: CallSite, node: ast.Call, lists: list[ast.expr], to_array: bool) -> TracerConversionError:
    texts = {id(one): _stack(site, one) for one in lists}
    way_out = texts[id(lists[0])] if to_array else _with_arguments(site, node, texts)
    return _error(site.text(node.func), "a list of traced arrays must be stacked", f"use {way_out}")


def _stack(site: CallSite, node: ast.expr) -> str:
    nested = isinstance(node, (ast.List, ast.Tuple)) and any(isinstance(e, (ast.List, ast.Tuple)) for e in node.elts)
    return f"np.stack([np.stack(row) for row in {site.text(node)}])" if nested else f"np.stack({site.text(node)})"


def _with_arguments(site: CallSite, node: ast.Call, texts: dict[int, str]) -> str:
    """The source of the call with some arguments replaced."""
    shown = [texts.get(id(argument)) or site.text(argument) for argument in node.args]
    for keyword in node.keywords:
        text = texts.get(id(keyword.value)) or site.text(keyword.value)
        shown.append(f"{keyword.arg}={text}" if keyword.arg else f"**{text}")
    return f"{site.text(node.func)}({', '.join(shown)})"


def _is_numpy(function: Any) -> bool:
    module = getattr(function, "__module__", None) or ""
    return isinstance(function, np.ufunc) or module == "numpy" or module.startswith("numpy.")


def _error(subject: str, rule: str, way_out: str) -> TracerConversionError:
    return TracerConversionError(message(subject, rule, None, way_out))


# ---- constants indexed by traced arrays -----------------------------------------------------------------------------


def _looked_up(x: Tracer, site: CallSite, node: ast.Subscript) -> TracerConversionError | None:
    """The error of ``table[ids]``; None for slice bounds, and for elements that an array cannot hold."""
    value = site.value(node.value)
    if is_traced(value) or _makes_a_shape(site, node) or not _is_numeric(site, node.value):
        return None
    like = _traced_name(site, node.slice)
    table = f"np.asarray({site.text(node.value)}, like={like})"
    if _is_list(site, node.value) and _holds_traced(site, node.value):
        table = _stack(site, node.value)
    rule = f"{_kind(site, node.value)} cannot be indexed by a traced array"
    return TracerConversionError(message("indexing", rule, repr(x), f"use {table}[{site.text(node.slice)}]"))


def _taken(x: Tracer, site: CallSite, node: ast.Call, function: ast.Attribute) -> TracerConversionError | None:
    """The error of ``np.take(table, ids)`` and ``table.take(ids)``."""
    is_function = site.value(function) is np.take
    table = node.args[0] if is_function and node.args else function.value
    if is_function and not node.args:
        return None
    rest: list[ast.AST] = [part for part in (*node.args, *node.keywords) if part is not table]
    like = next((name for name in (_traced_name(site, part, "") for part in rest) if name), "x")
    lifted = f"np.asarray({site.text(table)}, like={like})"
    way_out = _with_arguments(site, node, {id(table): lifted})
    if not is_function:
        way_out = f"{lifted}.take{way_out[len(site.text(function)) :]}"
    rule = "a table of constants must be traced if its indices are"
    return TracerConversionError(message(site.text(function), rule, f"the indices {x!r}", f"use {way_out}"))


def _traced_name(site: CallSite, node: ast.AST, default: str = "x") -> str:
    return next((name for name, value in site.names(node) if is_traced(value)), default)


def _kind(site: CallSite, node: ast.expr) -> str:
    value = site.value(node)
    for literal, kind, shown in ((ast.List, list, "a list"), (ast.Tuple, tuple, "a tuple")):
        if isinstance(node, literal) or isinstance(value, kind):
            return shown
    made_by_numpy = isinstance(node, ast.Call) and _is_numpy(site.value(node.func))
    return "a NumPy array" if made_by_numpy or isinstance(value, np.ndarray) else "a NumPy array, list or tuple"


def _is_numeric(site: CallSite, node: ast.expr) -> bool:
    """Whether an array could hold this value; True for an unknown value."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return all(_is_numeric(site, element) for element in node.elts)
    if isinstance(node, (ast.Dict, ast.Lambda, ast.JoinedStr)):
        return False
    value = node.value if isinstance(node, ast.Constant) else site.value(node)
    return value is UNKNOWN or _could_be_held(value)


def _could_be_held(value: Any) -> bool:
    if isinstance(value, (list, tuple, range)):
        return all(map(_could_be_held, value))
    return is_traced(value) or isinstance(value, (int, float, np.generic, np.ndarray))


# ---- writes into NumPy arrays ---------------------------------------------------------------------------------------

_CANNOT_HOLD = "a NumPy array cannot hold traced values"


def _stored(x: Tracer, site: CallSite, node: ast.Subscript) -> TracerConversionError | None:
    statement, array = site.statement(), site.value(node.value)
    if isinstance(statement, ast.AugAssign) and statement.target is node:
        return _error(*_added_in_place(site, statement))
    if not isinstance(statement, ast.Assign) or not (array is UNKNOWN or isinstance(array, np.ndarray)):
        return None
    value = site.text(statement.value)
    way_out = _functional_update(site, node, array, f"set({value})", [statement.value, node.slice])
    return _error(f"{site.text(node)} = {value}", _CANNOT_HOLD, way_out)


def _functional_update(site: CallSite, target: ast.Subscript, array: Any, update: str, places: list[ast.expr]) -> str:
    base, index = site.text(target.value), site.text(target.slice)
    traced = [(name, value) for place in places for name, value in site.names(place) if is_traced(value)]
    like, value = traced[0] if traced else ("x", None)
    is_zero = isinstance(array, np.ndarray) and not array.any()
    start = f"np.zeros_like({like}, shape={array.shape})" if is_zero else f"np.asarray({base}, like={like})"
    if is_zero and value is not None and is_float(array.dtype) and not is_float(value.dtype):  # of ids: c[ids] = 0.5
        start = f"np.zeros_like({like}, shape={array.shape}, dtype=np.{array.dtype})"
    return f"start from {base} = {start}, and write {base} = {base}.at[{index}].{update}"


def in_place_error(out: Any) -> UnsupportedError | None:
    """The error of ``acc += x`` for a NumPy array ``acc``; None if the user passed ``out=``."""
    site = call_site()
    node = None if site is None else site.node
    if site is None or not isinstance(node, ast.AugAssign) or not isinstance(out, np.ndarray):
        return None
    subject, rule, way_out = _added_in_place(site, node)
    return UnsupportedError(message(subject, rule, None, way_out))


def _added_in_place(site: CallSite, node: ast.AugAssign) -> tuple[str, str, str]:
    """Subject, requirement and fix for ``acc += x`` and ``acc[i] += x``."""
    symbol = _OPERATORS[type(node.op)]
    target, value = site.text(node.target), site.text(node.value)
    way_out = f"write {target} = {target} {symbol} {value}"
    if isinstance(node.target, ast.Subscript):
        several = any(is_traced(value) and value.shape != () for _, value in site.names(node.target.slice))
        method = None if several else _UPDATES.get(type(node.op))  # NumPy counts an index that comes twice once
        update = f"set({target} {symbol} {value})" if method is None else f"{method}({value})"
        array = site.value(node.target.value)
        way_out = _functional_update(site, node.target, array, update, [node.value, node.target.slice])
    return f"{target} {symbol}= {value}", _CANNOT_HOLD, way_out


# ---- NumPy's own errors ---------------------------------------------------------------------------------------------


def restored(trace: Trace, error: BaseException | None) -> Exception | None:
    """The tracer's own error, if NumPy replaced it by another one: ``np.zeros(n)``, ``y[0] = x[0]``.

    Also the error for a JAX function that was called with a tracer.
    """
    of_jax = error_of_jax(error) if isinstance(error, Exception) and not isinstance(error, Error) else None
    if of_jax is not None:
        return of_jax
    if error is None or trace.refused is None:
        return None
    refused, instruction = trace.refused
    # NumPy's C code may drop an error without a trace, but it raises its own at the same instruction of the user.
    is_numpys = type(error) in (TypeError, ValueError, IndexError)
    return refused if is_numpys and raising_instruction(error.__traceback__) == instruction else None
