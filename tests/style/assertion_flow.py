# SPDX-License-Identifier: Apache-2.0
"""The paths through a test that end without an assertion.

def test_gradient(point):            line 3: returns before any assertion
    if point.arrays is None:
        return
    assert run(point) == point.gradient

A loop of a test asserts only if it certainly runs and no iteration skips its assertions. A branch that raises is an
assertion of the other branches.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

Predicate = Callable[[ast.expr], bool]
Loop = ast.For | ast.AsyncFor | ast.While
Branches = ast.If | ast.Match | ast.Try


class State(Enum):
    """What has happened on the paths that reach a statement."""

    OPEN = "a path has no assertion"
    ASSERTED = "each path has one"
    LEFT = "all paths have left by return, break or continue"
    FAILED = "all paths have raised"


@dataclass(frozen=True)
class Leak:
    """A place where a test can end without an assertion."""

    line: int
    what: str


@dataclass
class Flow:
    """One walk over the statements of a function."""

    asserts: Predicate  # whether evaluating an expression certainly asserts
    has_elements: Predicate  # whether an iterable certainly has an element
    of_helper: bool = (
        False  # its arguments are known to its callers only: loops count as run, and asserts that narrow a type as none
    )
    leaks: list[Leak] = field(default_factory=list)
    doubtful: ast.stmt | None = None  # the last statement that asserts on some of its paths only
    _left: list[list[State]] = field(default_factory=list)  # of each loop around: the states at continue and break

    def block(self, statements: Sequence[ast.stmt], state: State) -> State:
        for statement in statements:
            if state in (State.LEFT, State.FAILED):
                break
            state = self.statement(statement, state)
        return state

    def statement(self, node: ast.stmt, state: State) -> State:
        match node:
            case ast.Assert(test=ast.Constant(value=value)):
                return state if value else State.FAILED
            case ast.Assert(test=test):
                return state if self.of_helper and narrows_a_type(test) else State.ASSERTED
            case ast.Raise() | ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="pytest"), attr="fail"))):
                return State.FAILED
            case ast.Return(value=value):
                if state is State.OPEN and not (value and self.asserts(value)):
                    self.leaks.append(Leak(node.lineno, "returns before any assertion"))
                return State.LEFT
            case ast.Break() | ast.Continue():
                self._left[-1].append(state)
                return State.LEFT
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return state
            case ast.If() | ast.Match() | ast.Try():
                return self.branches(node, state)
            case ast.For() | ast.AsyncFor() | ast.While():
                return self.loop(node, state)
            case ast.With() | ast.AsyncWith():
                end = self.block(node.body, state)
                return State.ASSERTED if any(self.asserts(item.context_expr) for item in node.items) else end
        return State.ASSERTED if any(map(self.asserts, expressions_of(node))) else state

    def branches(self, node: Branches, state: State) -> State:
        if isinstance(node, ast.If):
            state = State.ASSERTED if self.asserts(node.test) else state
            ends = [self.block(node.body, state), self.block(node.orelse, state)]
        elif isinstance(node, ast.Match):
            ends = [self.block(case.body, state) for case in node.cases]
            if not any(isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None for case in node.cases):
                ends.append(state)
        else:
            ends = [self.block(node.orelse, self.block(node.body, state))]
            ends += [self.block(handler.body, state) for handler in node.handlers]
        end = self.joined(node, ends, state)
        return self.block(node.finalbody, end) if isinstance(node, ast.Try) else end

    def joined(self, node: ast.stmt, ends: list[State], before: State) -> State:
        going = {end for end in ends if end in (State.OPEN, State.ASSERTED)}
        if not going:
            return State.LEFT if State.LEFT in ends else State.FAILED
        if State.OPEN not in going or State.FAILED in ends:
            return State.ASSERTED
        if State.ASSERTED in going and before is State.OPEN:
            self.doubtful = node
        return State.OPEN

    def loop(self, node: Loop, state: State) -> State:
        head = node.test if isinstance(node, ast.While) else node.iter
        if self.asserts(head):
            state = State.ASSERTED
        self._left.append([])
        ends = [self.block(node.body, state), *self._left[-1]]
        self._left.pop()
        end = self.joined(node, ends, state)
        if not self.certainly_runs(node):
            if end is not State.OPEN and state is State.OPEN:
                self.doubtful = node
            end = state
        return self.block(node.orelse, end)

    def certainly_runs(self, node: Loop) -> bool:
        if isinstance(node, ast.While):
            return self.of_helper or (isinstance(node.test, ast.Constant) and bool(node.test.value))
        return self.of_helper or self.has_elements(node.iter)


def narrows_a_type(test: ast.expr) -> bool:
    """`x is not None` and `isinstance(x, T)`: in a helper they are for the type checker."""
    match test:
        case ast.Compare(ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return True
        case ast.Call(func=ast.Name(id="isinstance")):
            return True
    return False


def expressions_of(node: ast.AST) -> Iterator[ast.expr]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, (ast.keyword, ast.FormattedValue)):
            yield child.value


def leaks(function: ast.FunctionDef | ast.AsyncFunctionDef, asserts: Predicate, has_elements: Predicate) -> list[Leak]:
    """The places where a test can end without an assertion."""
    flow = Flow(asserts, has_elements)
    if flow.block(function.body, State.OPEN) is State.OPEN:
        match flow.doubtful:
            case None:
                flow.leaks.append(Leak(function.lineno, "asserts nothing"))
            case ast.For() | ast.AsyncFor() | ast.While():
                what = "asserts only in a loop that may not run, or that may skip its assertions"
                flow.leaks.append(Leak(flow.doubtful.lineno, what))
            case _:
                flow.leaks.append(Leak(flow.doubtful.lineno, "asserts in some branches only"))
    return flow.leaks


def always_asserts(function: ast.FunctionDef | ast.AsyncFunctionDef, asserts: Predicate) -> bool:
    """Whether each path through a helper has an assertion."""
    flow = Flow(asserts, lambda iterable: True, of_helper=True)
    return flow.block(function.body, State.OPEN) in (State.ASSERTED, State.LEFT) and not flow.leaks
