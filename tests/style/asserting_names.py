# SPDX-License-Identifier: Apache-2.0
"""The functions of the tests: which of them assert, and which give something to loop over.

A function of the tests asserts if each of its paths does. Names from elsewhere assert by their spelling:
`np.testing.assert_allclose`, `pytest.raises`, `subprocess.check_call`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from tests.style.assertion_flow import Flow, State, always_asserts, expressions_of

Function = ast.FunctionDef | ast.AsyncFunctionDef
Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp

OF_PYTEST = ("raises", "warns", "deprecated_call", "fail")
OF_SUBPROCESS = ("check_call", "check_output")
PREFIXES = ("assert_", "check_", "expect_")
# A class asserts when it is made or entered.
OF_CLASSES = ("__init__", "__post_init__", "__enter__", "__exit__")
# As many elements as the arguments have; of zip, product and map, each argument counts.
SAME_LENGTH = (
    "dict", "enumerate", "frozenset", "iter", "list", "map", "permutations", "product", "reversed", "set", "sorted",
    "tuple", "zip",
)  # fmt: skip
VIEWS = ("items", "values", "keys", "copy")


@dataclass
class TestModule:
    """A module of the tests."""

    __test__ = False  # no test class, whatever its name

    name: str  # tests.op.test_matrix
    tree: ast.Module
    functions: dict[str, ast.AST] = field(default_factory=dict)  # and classes
    values: dict[str, ast.expr] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)  # the name here → its path: np → numpy

    @classmethod
    def of(cls, name: str, text: str) -> TestModule:
        module = cls(name, ast.parse(text))
        for node in module.tree.body:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    module.functions[node.name] = node
                case ast.Assign(targets=[ast.Name(id=target)], value=value):
                    module.values[target] = value
                case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value):
                    module.values[target] = value
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom):
                module.imports |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
            elif isinstance(node, ast.Import):
                for a in node.names:
                    path = a.name if a.asname else a.name.partition(".")[0]
                    module.imports[a.asname or path] = path
        return module

    def path_of(self, name: str) -> str:
        """`numpy.testing.assert_equal` of `np.testing.assert_equal`; empty where the name is not imported."""
        first, dot, rest = name.partition(".")
        return f"{self.imports[first]}{dot}{rest}" if first in self.imports else ""

    def tests(self) -> Iterator[Function]:
        """The functions that pytest runs."""
        for node in self.tree.body:
            for item in node.body if isinstance(node, ast.ClassDef) and node.name.startswith("Test") else [node]:
                if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)) and item.name.startswith("test"):
                    yield item


class Names:
    """All modules of the tests."""

    def __init__(self, modules: Iterable[TestModule]) -> None:
        self.modules = {module.name: module for module in modules}
        self._asserting: dict[ast.AST, bool] = {}
        self._giving: dict[ast.AST, bool] = {}

    def definition(self, module: TestModule, name: str) -> tuple[TestModule, ast.AST] | None:
        """The function, class or value of the tests that a module means by the name."""
        if path := module.path_of(name):
            place, _, last = path.rpartition(".")
            return self.definition(self.modules[place], last) if place in self.modules else None
        found = module.functions.get(name) or module.values.get(name)
        return (module, found) if found is not None else None

    @cached_property
    def methods(self) -> dict[str, list[tuple[TestModule, ast.AST]]]:
        """The methods of the tests' classes whose names announce an assertion."""
        found: dict[str, list[tuple[TestModule, ast.AST]]] = {}
        for module in self.modules.values():
            classes = [node for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)]
            for item in (item for node in classes for item in node.body):
                if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)) and item.name.startswith(PREFIXES):
                    found.setdefault(item.name, []).append((module, item))
        return found

    def asserts(self, scope: Scope, node: ast.AST) -> bool:
        """Whether a function, a class, or the value of a name asserts; `scope` is where the node stands."""
        if node not in self._asserting:
            self._asserting[node] = False  # a function that calls itself asserts by its other statements
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._asserting[node] = always_asserts(node, scope.inner(node).asserts)
                case ast.ClassDef():
                    special = [m for m in node.body if isinstance(m, ast.FunctionDef) and m.name in OF_CLASSES]
                    self._asserting[node] = any(self.asserts(scope, method) for method in special)
                case ast.Lambda(body=body):
                    self._asserting[node] = scope.asserts(body)
                case ast.Name() | ast.Attribute():  # another name of a function
                    self._asserting[node] = scope.asserts(node)
                case ast.Call(func=func, args=args) if dotted(func).endswith("partial"):
                    self._asserting[node] = any(map(scope.asserts, args))
        return self._asserting[node]

    def gives_elements(self, scope: Scope, node: ast.AST) -> bool:
        """Whether a function returns an iterable that certainly has an element, or yields on each of its paths."""
        if node not in self._giving and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._giving[node] = False
            inner = scope.inner(node)
            if any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in own_parts(node)):
                flow = Flow(inner.yields, inner.has_elements)
                self._giving[node] = flow.block(node.body, State.OPEN) is not State.OPEN and not flow.leaks
            else:
                values = [part.value for part in own_parts(node) if isinstance(part, ast.Return)]
                self._giving[node] = bool(values) and all(v is not None and inner.has_elements(v) for v in values)
        return self._giving.get(node, False)


@dataclass
class Scope:
    """Where an expression stands: a function, in a function or in a module."""

    names: Names
    module: TestModule
    function: Function | None = None
    outer: Scope | None = None

    def inner(self, function: Function) -> Scope:
        return Scope(self.names, self.module, function, self)

    @cached_property
    def functions(self) -> dict[str, ast.AST]:
        """The functions and classes that are defined in the function."""
        found: dict[str, ast.AST] = {}
        for part in own_parts(self.function) if self.function else ():
            match part:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    found[part.name] = part
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as value):
                    found[name] = value
        return found

    @cached_property
    def values(self) -> dict[str, list[ast.expr | None]]:
        """What each local name may be; None is what no expression of the test tells."""
        found: dict[str, list[ast.expr | None]] = {}
        if self.function is None:
            return found
        stored = [p.id for p in own_parts(self.function) if isinstance(p, ast.Name) and isinstance(p.ctx, ast.Store)]
        for part in own_parts(self.function):
            match part:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    found.setdefault(name, []).append(value)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    found.setdefault(name, []).append(value)
        for name in stored:
            if len(found.get(name, ())) < stored.count(name):  # by a loop, by unpacking, by +=
                found.setdefault(name, []).append(None)
        for name, listed in self.parameters.items():
            found.setdefault(name, []).extend(listed or [None])
        return found

    @cached_property
    def parameters(self) -> dict[str, list[ast.expr]]:
        """The values of each parameter, where a table of the module lists them; else it has none."""
        if self.function is None:
            return {}
        arguments = self.function.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        return {name: values_of_parameter(self, name) for name in names}

    def definition(self, name: str) -> tuple[Scope, ast.AST] | None:
        """The function, class or value of a module, or the function of a test, that a name means here."""
        if name in self.functions:
            return self, self.functions[name]
        if name in self.parameters and not self.parameters[name]:  # perhaps a fixture of the module
            fixture = self.module.functions.get(name)
            return (Scope(self.names, self.module), fixture) if fixture is not None else None
        if name in self.values:
            return None
        if self.outer:
            return self.outer.definition(name)
        found = self.names.definition(self.module, name)
        return (Scope(self.names, found[0]), found[1]) if found else None

    # ---- assertions ---------------------------------------------------------------------------------------------

    def asserts(self, node: ast.expr) -> bool:
        """Whether evaluating the expression certainly asserts, or hands on a function that does."""
        match node:
            case ast.Lambda(body=body):
                return self.asserts(body)
            case ast.IfExp():
                return self.asserts(node.test) or (self.asserts(node.body) and self.asserts(node.orelse))
            case ast.BoolOp():
                return self.asserts(node.values[0])
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                elements = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
                return self.asserts(node.generators[0].iter) or (
                    self.certainly_loops(node) and any(map(self.asserts, elements))
                )
            case ast.Name() | ast.Attribute() if name := dotted(node):
                return self.name_asserts(name)
            case ast.Call(func=ast.Attribute(attr=attr, value=value)) if attr in self.names.methods:
                if not self.module.path_of(dotted(value)):
                    scopes = ((Scope(self.names, module), method) for module, method in self.names.methods[attr])
                    return any(self.names.asserts(*each) for each in scopes)
            case ast.Call(func=func, keywords=keywords) if dotted(func).endswith("run"):
                if any(k.arg == "check" and isinstance(k.value, ast.Constant) and k.value.value for k in keywords):
                    return True
        return any(map(self.asserts, expressions_of(node)))

    def name_asserts(self, name: str) -> bool:
        if listed := self.parameters.get(name):
            return all(map(Scope(self.names, self.module).asserts, listed))
        if found := self.definition(name):
            return self.names.asserts(*found)
        place, _, last = self.module.path_of(name).rpartition(".")
        if place == "pytest":
            return last in OF_PYTEST
        if name.rpartition(".")[2].startswith("assert_"):
            return True
        return bool(place) and (last.startswith(PREFIXES) or (place == "subprocess" and last in OF_SUBPROCESS))

    def yields(self, node: ast.expr) -> bool:
        match node:
            case ast.Yield():
                return True
            case ast.YieldFrom(value=value):
                return self.has_elements(value)
        return any(map(self.yields, expressions_of(node)))

    # ---- loops --------------------------------------------------------------------------------------------------

    def certainly_loops(self, node: Comprehension) -> bool:
        return all(self.has_elements(g.iter) and not g.ifs for g in node.generators)

    def has_elements(self, node: ast.expr) -> bool:
        """Whether the iterable certainly has an element."""
        match node:
            case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
                return any(not isinstance(e, ast.Starred) or self.has_elements(e.value) for e in elements)
            case ast.Dict(keys=keys, values=values):
                return any(key is not None or self.has_elements(value) for key, value in zip(keys, values))
            case ast.Constant(value=str() | bytes() as value):
                return len(value) > 0
            case ast.BinOp(left=left, op=ast.Add() | ast.BitOr(), right=right):
                return self.has_elements(left) or self.has_elements(right)
            case ast.BinOp(left=left, op=ast.Mult(), right=ast.Constant(value=int() as times)):
                return times > 0 and self.has_elements(left)
            case ast.IfExp(body=body, orelse=orelse):
                return self.has_elements(body) and self.has_elements(orelse)
            case ast.BoolOp(op=ast.Or(), values=values):
                return self.has_elements(values[-1])
            case ast.Name() | ast.Attribute():
                return self.name_has_elements(dotted(node))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self.certainly_loops(node)
            case ast.Call():
                return self.call_has_elements(node)
        return False

    def name_has_elements(self, name: str) -> bool:
        if name in self.values:
            values, self.values[name] = self.values[name], [None]  # `x = x + more`: the other values decide
            found = all(value is not None and self.has_elements(value) for value in values)
            self.values[name] = values
            return found
        if self.outer:
            return self.outer.name_has_elements(name)
        value = self.definition(name)
        return value is not None and isinstance(value[1], ast.expr) and value[0].has_elements(value[1])

    def call_has_elements(self, node: ast.Call) -> bool:
        name = dotted(node.func)
        if name in ("range", "np.ndindex"):
            if len(node.args) == 1 and isinstance(node.args[0], ast.Call) and dotted(node.args[0].func) == "len":
                return self.has_elements(node.args[0].args[0])
            known = all(isinstance(argument, ast.Constant) for argument in node.args)
            numbers = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            return known and (len(range(*numbers)) > 0 if name == "range" else all(numbers))
        if found := self.definition(name) if name else None:
            return self.names.gives_elements(*found)
        if isinstance(node.func, ast.Attribute) and node.func.attr in VIEWS and not node.args:
            return self.has_elements(node.func.value)
        if name.rpartition(".")[2] not in SAME_LENGTH or not node.args:
            return False
        iterables = node.args[1:] if name.endswith("map") else node.args
        known = [self.has_elements(iterable) for iterable in iterables]
        strict = any(k.arg == "strict" and isinstance(k.value, ast.Constant) and k.value.value for k in node.keywords)
        return any(known) if strict else all(known)


def dotted(node: ast.expr) -> str:
    """`np.testing.assert_equal` of a chain of attributes; empty for anything else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr) if base := dotted(value):
            return f"{base}.{attr}"
    return ""


def own_parts(function: Function) -> Iterator[ast.AST]:
    """The parts of a function without those of functions and classes in it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        part = waiting.pop()
        yield part
        if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(part)


def values_of_parameter(scope: Scope, name: str) -> list[ast.expr]:
    """The values of a parametrized argument, if a table of the module lists them."""
    for mark in scope.function.decorator_list if scope.function else ():
        match mark:
            case ast.Call(func=func, args=[names, table, *_]) if dotted(func) == "pytest.mark.parametrize":
                together = isinstance(names, (ast.Tuple, ast.List))
                listed = [ast.literal_eval(n) for n in (names.elts if together else [names])]
                if isinstance(table, ast.Name):
                    table = scope.module.values.get(table.id, table)
                if name in listed and isinstance(table, (ast.List, ast.Tuple)):
                    rows = [row_of(row, together) for row in table.elts]
                    return [row[listed.index(name)] for row in rows if row] if all(rows) else []
    return []


def row_of(row: ast.expr, together: bool) -> list[ast.expr]:
    """The values of one row of a table: of several arguments together, or of one."""
    if isinstance(row, ast.Call) and dotted(row.func) == "pytest.param":
        return row.args
    if not together:
        return [row]
    return row.elts if isinstance(row, (ast.Tuple, ast.List)) else []
