# SPDX-License-Identifier: Apache-2.0
"""The functions of a script as JAX traces them: each statement is code of its own, at the line of the user's program.

    hidden = lax.tanh(t1)      of train.py:12, is compiled as line 12 of train.py

So the tracebacks, profiles and HLO of JAX name the user's lines. JAX also searches the lines of a code object for each
op that it lowers: a thousand ops take 23 ms instead of 34 ms.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ..source.scope import Line
from ..source.script import Script

__all__ = ["functions_of"]

_SCRIPT = "<to_jax>"  # the file of lines that are not written for an op
_Names = dict[str, Any]
_Statement = Callable[[_Names], Any]  # adds its names


def functions_of(script: Script) -> _Names:
    """All names that a script defines, with its functions."""
    names: _Names = {"CONSTANTS": script.constants}
    exec(compile("\n".join([script.head, *script.definitions]), _SCRIPT, "exec"), names)
    for node in ast.parse("\n".join(script.local)).body:
        _statement(node, script.local)(names)
    return names


def _statement(node: ast.stmt, lines: Sequence[str]) -> _Statement:
    if isinstance(node, ast.FunctionDef):
        return _definition(node, lines)
    return _run(_compiled(ast.Module([node], []), node.lineno, lines, "exec"))


def _run(code: Any) -> _Statement:
    return lambda names: exec(code, names)


def _definition(node: ast.FunctionDef, lines: Sequence[str]) -> _Statement:
    """Define a function that returns in its last statement only."""
    *body, last = node.body
    assert isinstance(last, ast.Return)
    parameters = [argument.arg for argument in node.args.args]
    statements = [_statement(each, lines) for each in body]
    result = _compiled(ast.Expression(last.value or ast.Constant(None)), last.lineno, lines, "eval")
    decorators = [_compiled(ast.Expression(each), each.lineno, lines, "eval") for each in node.decorator_list]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(name, kind) for name in parameters])

    def define(names: _Names) -> None:
        def function(*arguments: Any) -> Any:
            own = {**names, **dict(zip(parameters, arguments))}
            for statement in statements:
                statement(own)
            return eval(result, own)

        function.__name__ = node.name
        function.__signature__ = signature  # type: ignore[attr-defined]
        names[node.name] = function
        for code in reversed(decorators):
            names[node.name] = eval(code, names)(names[node.name])

    return define


def _compiled(tree: ast.Module | ast.Expression, number: int, lines: Sequence[str], mode: str) -> Any:
    """The code of line ``number``, as a line of the user's program."""
    line = lines[number - 1]
    place = line.op.location if isinstance(line, Line) and line.op is not None else None
    file, number = (place.file, place.line) if place is not None and place.file else (_SCRIPT, number)
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.stmt, ast.arg, ast.keyword)):
            node.lineno = node.end_lineno = max(number, 1)
            node.col_offset = node.end_col_offset = 0
    return compile(tree, file, mode)
