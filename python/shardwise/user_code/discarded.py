# SPDX-License-Identifier: Apache-2.0
"""Whether the user's code discards what a call returns.

    sw.split(x, 0, "x")                 discarded: a statement of its own
    y = sw.split(x, 0, "x")             discarded if nothing reads y from there on
    (sw.split(x, 0, "x"), 2 * x)[1]     discarded: another element is taken
    return x, sw.split(x, 0, "x")       kept: the caller may drop it

A call that a function returns as it is, is judged where the user calls that function. This parses sources, so it runs
only for calls whose results are unused.
"""

from __future__ import annotations

import ast
import dis
import sys
from collections.abc import Sequence
from enum import Enum, auto
from types import FrameType

import optree

from ..errors import warn
from ..process.traceback_filtering import HIDDEN, PACKAGE
from .call_sites import Instruction, node_at, source_tree
from .sources import resolve

__all__ = ["discarding_call", "user_calls", "warn_of_discarded"]

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_MAPS = (*(f"{PACKAGE}{name}" for name in ("tree.py", "trees")), str(optree.__path__[0]))  # they return what they call


class _Fate(Enum):
    DISCARDED = auto()
    RETURNED = auto()  # by the function around the call
    KEPT = auto()


def user_calls() -> tuple[Instruction, ...]:
    """The calls of the user that are running, innermost first, up to the function that called the user's code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(HIDDEN):
        frame = frame.f_back
    calls = []
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(HIDDEN):
            calls.append((frame.f_code, frame.f_lasti))
        elif not file.startswith(_MAPS):
            break
        frame = frame.f_back
    return tuple(calls)


def discarding_call(calls: Sequence[Instruction]) -> int | None:
    """The position of the call whose result is discarded, in calls of which each returns what the one before returns.

    None if the result is kept somewhere, or passed to a function that is not the user's.
    """
    for i, (code, offset) in enumerate(calls):
        fate = _fate((code, offset))
        if fate is not _Fate.RETURNED:
            return i if fate is _Fate.DISCARDED else None
    return None


def warn_of_discarded(call: Instruction, annotation: str, way_out: str) -> None:
    """Warn at the line of a call that it discards an annotation."""
    file, line, _, _ = resolve(*call)
    rule, got = "its result must be used", "an annotation whose result nothing uses"
    warn(annotation, rule, got, f"write {way_out} and use x from there on", place=(file, line))


def _fate(call: Instruction) -> _Fate:
    code, offset = call
    tree = source_tree(code.co_filename)
    node = None if tree is None else node_at(tree, code, offset)
    if tree is None or node is None:
        return _fate_without_source(call)
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    return _fate_of(node, parents)


def _fate_without_source(call: Instruction) -> _Fate:
    code, offset = call
    following = next((each.opname for each in dis.get_instructions(code) if each.offset > offset), "")
    return {"POP_TOP": _Fate.DISCARDED, "RETURN_VALUE": _Fate.RETURNED}.get(following, _Fate.KEPT)


def _fate_of(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> _Fate:
    parent = parents.get(node)
    while (isinstance(parent, ast.IfExp) and node is not parent.test) or _is_picked(node, parent, parents):
        node = parent if isinstance(parent, ast.IfExp) else parents[parents[node]]
        parent = parents.get(node)
    if isinstance(parent, ast.Expr):
        return _Fate.DISCARDED
    if isinstance(parent, (ast.Return, ast.Lambda)):
        return _Fate.RETURNED
    if isinstance(parent, (ast.Tuple, ast.List)) and isinstance(node, ast.expr):
        around = parents.get(parent)
        if _index_of(around, parent) is not None:  # of another element, since it is not picked
            return _Fate.DISCARDED
        if isinstance(around, ast.Assign) and len(around.targets) == 1:
            return _stored(_target_of(around.targets[0], parent.elts.index(node), len(parent.elts)), around, parents)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        return _stored(parent.targets[0], parent, parents)
    if isinstance(parent, ast.AnnAssign):
        return _stored(parent.target, parent, parents)
    return _Fate.KEPT


def _index_of(subscript: ast.AST | None, display: ast.AST) -> int | None:
    """The constant index that a subscript takes of a tuple or list display."""
    if not isinstance(subscript, ast.Subscript) or subscript.value is not display:
        return None
    try:
        index = ast.literal_eval(subscript.slice)
    except ValueError:
        return None
    return index if type(index) is int else None


def _is_picked(node: ast.AST, parent: ast.AST | None, parents: dict[ast.AST, ast.AST]) -> bool:
    if not isinstance(parent, (ast.Tuple, ast.List)) or not isinstance(node, ast.expr):
        return False
    index = _index_of(parents.get(parent), parent)
    return index is not None and index % len(parent.elts) == parent.elts.index(node)


def _target_of(target: ast.expr, i: int, count: int) -> ast.expr | None:
    """The target of element i of the assigned tuple."""
    if not isinstance(target, (ast.Tuple, ast.List)) or len(target.elts) != count:
        return None
    return None if any(isinstance(each, ast.Starred) for each in target.elts) else target.elts[i]


def _stored(target: ast.expr | None, statement: ast.stmt, parents: dict[ast.AST, ast.AST]) -> _Fate:
    """Discarded in a local variable that nothing reads afterwards."""
    if not isinstance(target, ast.Name):
        return _Fate.KEPT
    repeated: ast.AST = statement  # the outermost loop around the statement: its next trip reads the variable, too
    scope = parents.get(statement)
    while scope is not None and not isinstance(scope, _SCOPES):
        repeated = scope if isinstance(scope, _LOOPS) else repeated
        scope = parents.get(scope)
    if scope is None:  # a global
        return _Fate.KEPT
    inside = set(ast.walk(repeated)) if isinstance(repeated, _LOOPS) else set()
    for node in ast.walk(scope):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and target.id in node.names:
            return _Fate.KEPT
        is_update = isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
        read = node.target if is_update else node  # type: ignore[attr-defined]
        if not isinstance(read, ast.Name) or read.id != target.id or not (is_update or isinstance(read.ctx, ast.Load)):
            continue
        if node in inside or (read.lineno, read.col_offset) > (statement.end_lineno, statement.end_col_offset):
            return _Fate.KEPT
    return _Fate.DISCARDED
