# SPDX-License-Identifier: Apache-2.0
"""The user's expression that is running, for errors that quote it: `np.arange(n)`, `y[i] = x[i]`, `acc += x`.

This runs only for errors: it parses the source again and looks names up in the user's frame. Without source (``exec``),
the expression is unknown, and the error is less specific.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import sys
from collections.abc import Iterator
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import Any

from .._core import ir as _ir
from ..process.traceback_filtering import HIDDEN

__all__ = [
    "UNKNOWN", "CallSite", "Instruction", "call_site", "called_at", "local_of", "node_at", "raising_instruction",
    "running_instruction", "site_of", "source_tree",
]  # fmt: skip

Instruction = tuple[CodeType, int]  # code and offset: unique even if a line has several calls

UNKNOWN: Any = object()  # the value of an expression that is not a name
_NAMES = (ast.Name, ast.Attribute)
_PASSING = (ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Tuple, ast.List, ast.keyword, ast.Slice)  # from a number to its use


class CallSite:
    """The expression or statement that the nearest frame of the user is running.

    ``node`` is None if it is unknown. It is a Call, a Subscript (its context tells loads from stores), an
    AugAssign, or another node whose evaluation asked for a value.
    """

    __slots__ = ("_source", "_tree", "frame", "node")

    def __init__(self, frame: FrameType, node: ast.AST | None, source: str, tree: ast.Module | None) -> None:
        self.frame = frame
        self._source = source
        self._tree = tree
        self.node = node

    def text(self, node: ast.AST | None = None, limit: int = 60) -> str:
        """The source of a node in one line; "…" if it is longer than ``limit``."""
        node = self.node if node is None else node
        found = ast.get_source_segment(self._source, node) if isinstance(node, (ast.expr, ast.stmt)) else None
        if found is None:
            return "…"
        found = " ".join(found.split())
        return found if len(found) <= limit else "…"

    def operand(self, node: ast.expr) -> str:
        """The source of a node as an operand, to which ``.method()`` can be added."""
        found = self.text(node)
        return found if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) else f"({found})"

    def value(self, node: ast.AST) -> Any:
        """The value of a name, or of a module attribute. UNKNOWN for other expressions, so that no code runs."""
        if isinstance(node, ast.Name):
            frame = self.frame
            for names in (frame.f_locals, frame.f_globals, vars(builtins)):
                if node.id in names:
                    return names[node.id]
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            if isinstance(owner, ModuleType):
                return getattr(owner, node.attr, UNKNOWN)
        return UNKNOWN

    def names(self, node: ast.AST) -> Iterator[tuple[str, Any]]:
        """The names in a node that have a value in the frame."""
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                value = self.value(part)
                if value is not UNKNOWN:
                    yield part.id, value

    def consumer(self) -> tuple[ast.AST | None, ast.AST | None]:
        """The call or slice that uses the running expression, and the argument or bounds that it is."""
        if self._tree is None or self.node is None:
            return None, None
        parents = {child: parent for parent in ast.walk(self._tree) for child in ast.iter_child_nodes(parent)}
        node, parent, is_bound = self.node, parents.get(self.node), False
        while isinstance(parent, _PASSING):
            is_bound |= isinstance(parent, ast.Slice)
            node, parent = parent, parents.get(parent)
        is_argument = isinstance(parent, ast.Call) and node is not parent.func
        return (parent, node) if is_argument or (isinstance(parent, ast.Subscript) and is_bound) else (None, None)

    def computed_at(self, file: str, line: int) -> ast.AST | None:
        """The expression that computed a value on a line: the running one, or the right side of an assignment."""
        if file != self.frame.f_code.co_filename:
            return None
        if line == self.frame.f_lineno:
            return self.node
        statement = self.statement(line)
        return statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)) else None

    def statement(self, line: int | None = None) -> ast.stmt | None:
        """The innermost statement on a line; by default, the running one."""
        tree = self._tree
        running = self.node if line is None and isinstance(self.node, (ast.expr, ast.stmt)) else None
        line = self.frame.f_lineno if line is None else line
        found = None
        for node in ast.walk(tree) if tree is not None else ():
            if not isinstance(node, ast.stmt) or not node.lineno <= line <= (node.end_lineno or node.lineno):
                continue
            if running is None or _holds(node, running):
                found = node  # from the outside in
        return found


def _holds(outer: ast.stmt, inner: ast.expr | ast.stmt) -> bool:
    begins = (outer.lineno, outer.col_offset) <= (inner.lineno, inner.col_offset)
    return begins and _end(inner) <= _end(outer)


def _end(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def call_site() -> CallSite | None:
    """The expression of the user that is running; None without a frame of the user."""
    frame = _user_frame()
    return None if frame is None else site_of(frame)


def site_of(frame: FrameType, offset: int | None = None) -> CallSite:
    """The expression that a frame is running, or that of the instruction at ``offset``."""
    source = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    tree = source_tree(frame.f_code.co_filename)
    node = None if tree is None else node_at(tree, frame.f_code, frame.f_lasti if offset is None else offset)
    return CallSite(frame, node, source, tree)


def _user_frame() -> FrameType | None:
    """The frame whose line errors name; if there is none, the nearest one outside of shardwise and NumPy."""
    place = _ir.current_location()
    frame: FrameType | None = sys._getframe(1)
    nearest = None
    while frame is not None and (frame.f_code.co_filename, frame.f_lineno) != place:
        if nearest is None and not frame.f_code.co_filename.startswith(HIDDEN):
            nearest = frame
        frame = frame.f_back
    return frame or nearest


def running_instruction() -> Instruction | None:
    """The instruction that the nearest frame outside of shardwise and NumPy is running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(HIDDEN):
        frame = frame.f_back
    return None if frame is None else (frame.f_code, frame.f_lasti)


def raising_instruction(traceback: TracebackType | None) -> Instruction | None:
    """The innermost instruction of the user in a traceback."""
    found = None
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(HIDDEN):
            found = traceback.tb_frame.f_code, traceback.tb_lasti
        traceback = traceback.tb_next
    return found


def local_of(function: Any, name: str) -> Any:
    """The value of a local variable of the running ``function``; UNKNOWN if it is not running."""
    function = inspect.unwrap(function) if callable(function) else None
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return UNKNOWN if frame is None else frame.f_locals.get(name, UNKNOWN)


def called_at(file: str, line: int, column: int) -> str:
    """What the call that begins at a line and column of a file calls: ``np.linalg.qr``.

    "" where no call begins there, or several do, as in ``x.reshape(4).cumsum()``; columns count from 1.
    """
    tree = source_tree(file) if line else None
    calls = [
        node
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.Call) and (node.lineno, node.col_offset) == (line, column - 1)
    ]
    return ast.unparse(calls[0].func) if len(calls) == 1 and isinstance(calls[0].func, _NAMES) else ""


_MAX_TREES = 4
_trees: dict[str, tuple[list[str], ast.Module | None]] = {}  # the lines as linecache has them, and their tree


def source_tree(file: str) -> ast.Module | None:
    """The parsed source of a file; None without source."""
    lines = linecache.getlines(file)
    known = _trees.get(file)
    if known is not None and known[0] is lines:  # linecache makes a new list if it reads a file again
        return known[1]
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        tree = None
    if len(_trees) >= _MAX_TREES:
        _trees.clear()
    _trees[file] = (lines, tree)
    return tree


def node_at(tree: ast.Module, code: CodeType, offset: int) -> ast.AST | None:
    """The expression or statement of an instruction; None if the source has none there."""
    line, end_line, column, end_column = list(code.co_positions())[offset // 2]
    if line is None:
        return None
    nodes = [n for n in ast.walk(tree) if isinstance(n, (ast.expr, ast.stmt)) and n.lineno <= line]
    ending = [n for n in nodes if (n.end_lineno, n.end_col_offset) == (end_line, end_column)]
    exact = [n for n in ending if (n.lineno, n.col_offset) == (line, column) and not isinstance(n, ast.Expr)]
    # The instruction of a method call that spans lines begins at the method's name.
    calls = [n for n in ending if isinstance(n, ast.Call)]
    return exact[0] if exact else calls[-1] if calls else None
