# SPDX-License-Identifier: Apache-2.0
"""The order of the Python modules: what each may import, and that no import hides in a function or goes in a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.style.source_tree import ROOT

PACKAGE = "shardwise"
EXTENSION = "_core"
FOLDER = ROOT / "python" / PACKAGE

# From the ground up: a module imports only what stands before it, in its own line or in a line above. A package is one
# entry; inside a package the files must not form a circle. Modules that are imported at their first use count as well.
# Imports under `if TYPE_CHECKING:` are below.
LAYERS = {
    "the process": ["process"],
    "errors": ["errors", "flags"],
    "the user's source, and errors that quote it": ["dtypes", "user_code"],
    "reports, as plain data": ["svg", "reports", "viz"],
    "meshes and shardings": ["shardings", "layouts", "hardware_files", "calibrating", "hardware"],
    "trees of arrays": ["trees", "tree", "unpartitioned", "finite_differences"],
    "recording": ["recording"],
    "NumPy's functions on traced values": ["numpy", "host_random"],
    "arrays on a mesh": ["array", "array_leaves", "debug"],
    "compiled functions": ["programs", "jit"],
    "transforms, annotations and placement": [
        "annotations",
        "custom_calls",
        "placement",
        "from_shards",
        "vmap",
        "derivatives",
        "grad",
        "manual",
        "control_flow",
        "lax",
        "random",
        "nn",
    ],
    "written with the public functions": ["dtensor", "optim", "models", "testing", "mpi"],
    "programs from and to other libraries": ["interop"],
    "files of arrays": ["checkpoints"],
    "the package and its command line": ["", "run_command", "cli", "__main__"],
}
# The types that a module names in annotations though their module stands after it.
TYPES_FROM_ABOVE = {
    "user_code.static_arguments": {"recording", "recording.tracing"},
    "user_code.library_calls": {"recording", "recording.tracing"},
    "user_code.advice": {"recording", "recording.tracing"},
    "viz.meshes": {"shardings", "shardings.mesh"},
    "viz.arrays": {"array", "shardings", "shardings.sharding"},
    "viz.functions": {"jit", "jit.function"},
    "viz.programs": {"programs", "programs.choices", "programs.module", "programs.stages"},
    "viz.graphs": {"programs", "programs.stages"},
}
ORDER = list(chain.from_iterable(LAYERS.values()))


class Import(NamedTuple):
    module: str  # "numpy.indexing"; "" for the package itself
    line: int
    in_function: bool
    for_types: bool


def module_files(folder: Path = FOLDER) -> dict[str, Path]:
    names = {path: list(path.relative_to(folder).with_suffix("").parts) for path in sorted(folder.rglob("*.py"))}
    return {".".join(parts[:-1] if parts[-1] == "__init__" else parts): path for path, parts in names.items()}


def imports(name: str, path: Path, modules: Mapping[str, Path]) -> Iterator[Import]:
    """What a file imports of the package, but for the extension.

    ``numpy.indexing.expanded`` is the file ``numpy.indexing``. From outside ``numpy`` it runs ``numpy/__init__``, too.
    """
    own = name if path.name == "__init__.py" else name.rpartition(".")[0]
    tree = ast.parse(path.read_text())
    for node, home in _lazy_homes(tree):
        yield Import(f"{own}{home}".strip("."), node.lineno, False, False)
    for node, in_function, for_types in _import_nodes(tree, False, False):
        for full in _imported(node, own):
            parts = full.split(".")
            files = [prefix for i in range(len(parts) + 1) if (prefix := ".".join(parts[:i])) in modules]
            packages = [file for file in files[1:-1] if not f"{own}.".startswith(f"{file}.")]
            for target in [] if parts[0] == EXTENSION else [*packages, files[-1]]:
                yield Import(target, node.lineno, in_function, for_types)


def _lazy_homes(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    """The modules that ``lazy_names`` and ``lazy_module`` import later: ``.handover``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).strip("_") in ("lazy_names", "lazy_module"):
            values = [
                leaf.value for argument in node.args for leaf in ast.walk(argument) if isinstance(leaf, ast.Constant)
            ]
            homes = {value for value in values if isinstance(value, str) and value.startswith(".")}
            yield from ((node, home) for home in sorted(homes))


def _imported(node: ast.Import | ast.ImportFrom, own: str) -> list[str]:
    """The modules and names of a statement below the package: ``numpy.indexing.expanded``; none of other packages."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif node.level == 0:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    else:
        parts = [PACKAGE, *own.split(".")] if own else [PACKAGE]
        base = ".".join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])
        names = [f"{base}.{alias.name}" for alias in node.names]
    return [name.removeprefix(PACKAGE).removeprefix(".") for name in names if name.split(".")[0] == PACKAGE]


def _import_nodes(
    node: ast.AST, in_function: bool, for_types: bool
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child, in_function, for_types
        is_function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        is_check = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        yield from _import_nodes(child, in_function or is_function, for_types or is_check)


def circles(arrows: Mapping[str, set[str]]) -> list[list[str]]:
    """Circles that share no module, each from a module back to itself: ``["a", "b", "a"]``."""
    found: list[list[str]] = []
    for start in sorted(arrows):
        path = _way(start, arrows)
        if path and not any(set(path) & set(other) for other in found):
            found.append(path)
    return found


def _way(start: str, arrows: Mapping[str, set[str]]) -> list[str]:
    """The shortest way from a module back to itself; empty if there is none."""
    paths, visited = [[start]], set[str]()
    while paths:
        path = paths.pop(0)
        for target in sorted(arrows.get(path[-1], ())):
            if target == start:
                return [*path, target]
            if target not in visited:
                visited.add(target)
                paths.append([*path, target])
    return []


FILES = module_files()
IMPORTS = {name: list(imports(name, path, FILES)) for name, path in FILES.items()}
ARROWS = {name: {each.module for each in found if not each.for_types} for name, found in IMPORTS.items()}


def test_no_function_imports_a_module_of_the_package() -> None:
    wrong = [
        f"{FILES[name].relative_to(ROOT)}:{i.line}" for name, each in IMPORTS.items() for i in each if i.in_function
    ]
    assert not wrong, "move the function to the layer where it belongs, or enter it in process/implementations.py"


def test_no_files_import_each_other_in_a_circle() -> None:
    assert [" → ".join(circle) for circle in circles(ARROWS)] == []


def entry(module: str) -> str:
    return module.partition(".")[0]


def comes_after(module: str, other: str) -> bool:
    return ORDER.index(entry(module)) > ORDER.index(entry(other))


def test_every_module_has_its_place_in_the_order() -> None:
    assert sorted(ORDER) == sorted({entry(name) for name in FILES})


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_module_imports_only_what_stands_before_it(name: str) -> None:
    assert sorted(target for target in ARROWS[name] if comes_after(target, name)) == []


def test_few_modules_name_types_of_later_ones() -> None:
    above = {
        name: {i.module for i in each if i.for_types and comes_after(i.module, name)} for name, each in IMPORTS.items()
    }
    assert {name: targets for name, targets in above.items() if targets} == TYPES_FROM_ABOVE


def test_nothing_imports_a_module_by_its_name_as_text() -> None:
    users = [
        name for name, path in FILES.items() if "importlib" in path.read_text() or "__import__" in path.read_text()
    ]
    assert users == ["process.lazy_names"]


def test_the_reader_of_imports_finds_each_kind(tmp_path: Path) -> None:
    for folder in ("deep", "late"):
        (tmp_path / folder).mkdir()
    sources = {
        "__init__.py": "from .a import f\n__version__ = '1'",
        "a.py": "from . import __version__, _core\nfrom .deep.b import g\nimport json",
        "c.py": "def f():\n    from .a import f\nif TYPE_CHECKING:\n    from . import deep",
        "deep/__init__.py": "from . import b",
        "deep/b.py": "import shardwise.c\nfrom ..a import f\nfrom . import g",
        "late/__init__.py": "__getattr__ = lazy_names(__name__, {'f': '.d', 'g': '.e', 'h': '.d'})",
        "late/d.py": "load = lazy_module('shardwise.late', '.e')",
        "late/e.py": "",
    }
    for file, text in sources.items():
        (tmp_path / file).write_text(text)
    files = module_files(tmp_path)
    found = {name: [tuple(i) for i in imports(name, path, files)] for name, path in files.items()}
    assert found == {
        "": [("a", 1, False, False)],
        "a": [("", 1, False, False), ("deep", 2, False, False), ("deep.b", 2, False, False)],
        "c": [("a", 2, True, False), ("deep", 4, False, True)],
        "deep": [("deep.b", 1, False, False)],
        "deep.b": [("c", 1, False, False), ("a", 2, False, False), ("deep", 3, False, False)],
        "late": [("late.d", 1, False, False), ("late.e", 1, False, False)],
        "late.d": [("late.e", 1, False, False)],
        "late.e": [],
    }


def test_a_circle_is_found_by_its_shortest_way() -> None:
    arrows = {"": {"a"}, "a": {"b", "c"}, "b": {"c"}, "c": {"a"}, "d": {"d", "a"}, "e": {"d"}}
    assert circles(arrows) == [["a", "c", "a"], ["d", "d"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
