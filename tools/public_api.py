# SPDX-License-Identifier: Apache-2.0
"""The public names of shardwise, read from the package, for the API reference and the tables of NumPy functions.

In a page, the blocks ``{public} annotations placement``, ``{numpy-functions}`` and ``{switches}`` are placeholders;
:func:`expand` replaces them by generated Markdown. This module is a Sphinx extension, and keeps no list of names.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import shardwise as sw

_INIT = ast.parse(inspect.getsource(sw))


def public_modules() -> list[str]:
    """Submodules that users import from the package: ``random``, ``testing``, ``layouts``, …"""
    imports = [node for node in _INIT.body if isinstance(node, ast.ImportFrom) and node.level == 1 and not node.module]
    names = [alias.asname or alias.name for node in imports for alias in node.names]
    return sorted(name for name in names if not name.startswith("_"))


def top_level_names() -> list[str]:
    """Functions, classes and values of the package itself, also those that ``__all__`` leaves out.

    Names that are imported at their first use are below ``if _TYPE_CHECKING:``.
    """
    nodes = list(ast.walk(_INIT))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module]
    names = {alias.asname or alias.name for node in imports for alias in node.names} | set(sw.__all__)
    return sorted(name for name in names - set(public_modules()) if not name.startswith("_"))


def package_names() -> list[str]:
    """Every public name of the package itself: :func:`top_level_names` and :func:`public_modules`."""
    return sorted([*top_level_names(), *public_modules()])


def module_names(module: str) -> list[str]:
    """The public names of ``shardwise.MODULE``."""
    return list(importlib.import_module(f"shardwise.{module}").__all__)


def public_names() -> list[str]:
    """Every public name in full, ``shardwise.jit``, once; without NumPy's own functions in ``shardwise.numpy``."""
    names = [f"shardwise.{name}" for name in top_level_names()]
    for module in public_modules():
        owner = importlib.import_module(f"shardwise.{module}")
        own = [name for name in module_names(module) if getattr(sw, name, None) is not getattr(owner, name)]
        names += [f"shardwise.{module}.{name}" for name in own if module != "numpy"]
    return names


def home_of(name: str) -> str:
    """The module below ``shardwise`` whose ``__all__`` has a top-level name: ``placement``, ``numpy.updates``."""
    value = getattr(sw, name)
    for path in sorted(sys.modules):
        module = sys.modules[path]
        is_public = path.startswith("shardwise.") and name in getattr(module, "__all__", ())
        if is_public and getattr(module, name) is value:
            return path.removeprefix("shardwise.")
    return ""


# ---- API reference ---------------------------------------------------------------------------------------------------


_INHERITED = "   :inherited-members:\n"


def _has_hidden_base(value: type) -> bool:
    """Whether a part of a class is in a class of ours that is not public, as the reports of a program are."""
    bases = value.__mro__[1:-1]
    return bool(bases) and all(
        base.__module__.startswith("shardwise.") and getattr(sw, base.__name__, None) is not base for base in bases
    )


def _directive(qualified: str, value: Any) -> str:
    if inspect.isclass(value) and value.__module__.startswith("shardwise"):  # sw.bfloat16 is ml_dtypes'
        return f".. autoclass:: {qualified}\n   :members:\n{_INHERITED if _has_hidden_base(value) else ''}"
    if inspect.isroutine(value):
        return f".. autofunction:: {qualified}\n"
    return f".. autodata:: {qualified}\n   :no-value:\n"


def reference(modules: str) -> str:
    """Markdown that documents the public names of these modules: top-level ones, then those of public submodules.

    NumPy's own functions in ``shardwise.numpy`` are in :func:`numpy_tables`.
    """
    lines = []
    for module in modules.split():
        names = [name for name in top_level_names() if f"{home_of(name)}.".startswith(f"{module}.")]
        lines += [_directive(f"shardwise.{name}", getattr(sw, name)) for name in names]
        if module in public_modules() and module != "numpy":
            owner = importlib.import_module(f"shardwise.{module}")
            own = [name for name in owner.__all__ if getattr(sw, name, None) is not getattr(owner, name)]
            lines += [_directive(f"shardwise.{module}.{name}", getattr(owner, name)) for name in own]
    return "```{eval-rst}\n" + "\n".join(lines) + "```\n" if lines else ""


def referenced_names(text: str) -> set[str]:
    """The public names that a page of the reference documents, as in ``shardwise.jit``."""
    expanded = expand(text)
    return set(re.findall(r"^\.\. auto\w+:: shardwise\.(\S+)", expanded, re.MULTILINE))


# ---- NumPy functions -------------------------------------------------------------------------------------------------


def numpy_functions() -> Iterator[tuple[str, str, Any, Callable[..., Any] | None]]:
    """(module, name, NumPy's function, ours) of every function in the registry; ours is None for elementwise ufuncs."""
    registry = importlib.import_module("shardwise.numpy._registry")
    elementwise = importlib.import_module("shardwise.numpy.elementwise")
    linalg = importlib.import_module("shardwise.numpy.linalg")
    for ufunc in elementwise.RULES:
        yield "elementwise", ufunc.__name__, ufunc, None
    for ufunc in linalg.UFUNCS:
        yield "linalg", ufunc.__name__, ufunc, None
    for function, ours in registry.FUNCTIONS.items():
        yield ours.__module__.rpartition(".")[2], registry.function_name(function).removeprefix("np."), function, ours


def refused_parameters(function: Any, ours: Callable[..., Any]) -> list[str]:
    """Parameters of NumPy's function that ours refuses, or does not have."""
    own = inspect.signature(ours).parameters
    try:
        theirs = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # NumPy functions written in C
        theirs = list(own)
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in own.values())
    missing = [] if takes_any else [name for name in theirs if name not in own and name not in ("args", "kwargs")]
    positional = sum(p.kind is p.POSITIONAL_ONLY or p.kind is p.POSITIONAL_OR_KEYWORD for p in own.values())
    renamed = set(theirs[:positional]) if "like" not in own else set()
    refused = [name for name in _refusals(ours, set()) if name in own]
    return [*refused, *(name for name in missing if name not in renamed and name != "like")]


def _refusals(function: Callable[..., Any], seen: set[Any]) -> list[str]:
    """Names of the keywords of each call of ``refuse`` in a function, and in the private functions that it calls."""
    seen.add(function)
    tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(inspect.unwrap(function))))
    found: dict[str, None] = {}
    tests = [node.left for node in ast.walk(tree) if isinstance(node, ast.Compare)]
    partly_supported = {left.id for left in tests if isinstance(left, ast.Name)}  # as in `if order == "F"`
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "refuse":
                found |= {name.arg: None for name in node.keywords if name.arg and name.arg not in partly_supported}
            helper = function.__globals__.get(node.func.id)
            if inspect.isfunction(helper) and helper.__module__ == function.__module__ and helper not in seen:
                found |= dict.fromkeys(_refusals(helper, seen))
    return list(found)


def _summary(name: str, function: Any, ours: Callable[..., Any] | None) -> str:
    """The first line of our docstring, or NumPy's where ours only names the function."""
    doc = (inspect.getdoc(ours) or "").partition("\n\n")[0].replace("\n", " ") if ours else ""
    note = re.sub(r"^``numpy\.[\w.]+(\([^`]*\))?``[:;,.]?\s*", "", doc)
    if note and note == doc:
        return doc
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")  # the first is often the signature
    theirs = next((text for text in paragraphs if text and not re.match(r"[\w.]+\(", text)), "").replace("\n", " ")
    return f"{theirs} {note[:1].upper()}{note[1:]}".strip()


def _aliases(name: str, function: Any) -> list[str]:
    """The name, and the other public names of the same function: ``absolute`` is also ``abs``."""
    owner = importlib.import_module("shardwise.numpy")
    return [name, *(alias for alias in owner.__all__ if alias != name and getattr(owner, alias) is function)]


_TITLES = {
    "choosing": "Choosing by conditions",
    "counting": "Counting and histograms",
    "lifting": "Constructors",
    "linalg": "Products and linear algebra",
    "nan_reductions": "Reductions that ignore NaN",
    "numerical": "Numerical functions",
    "numpy": "Conversion",
}


def numpy_tables() -> str:
    """One Markdown table per module: function, what it computes, parameters that are not supported."""
    rows: dict[str, dict[str, str]] = {}
    for module, name, function, ours in numpy_functions():
        refused = ", ".join(f"`{parameter}`" for parameter in refused_parameters(function, ours)) if ours else ""
        summary = _summary(name, function, ours).replace("|", "\\|").replace("``", "`")
        names = ", ".join(f"`np.{alias}`" for alias in _aliases(name, function))
        rows.setdefault(module, {})[name] = f"| {names} | {summary} | {refused or '–'} |"
    parts = []
    for module in sorted(rows):
        title = _TITLES.get(module, module.replace("_", " ").capitalize())
        head = f"### {title}\n\n| function | what it computes | unsupported parameters |\n|---|---|---|\n"
        parts.append(head + "\n".join(rows[module][name] for name in sorted(rows[module])) + "\n")
    table = "\n".join(parts)
    rest = ", ".join(f"`np.{name}`" for name in module_names("numpy") if f"`np.{name}`" not in table)
    return f"{table}\n### Constants\n\n{rest}\n"


# ---- in pages --------------------------------------------------------------------------------------------------------

_DIRECTIVE = re.compile(r"^```\{(public|numpy-functions|switches|gradient-conventions)\} ?(.*)\n```$", re.MULTILINE)
_SETTINGS = Path(__file__).resolve().parents[1] / "cpp" / "shardwise" / "base" / "settings.cpp"


def switches() -> str:
    """The environment variables that the compiled code reads, from their table in the source."""
    rows = re.findall(r'\{"(SHARDWISE_\w+)", "(.*?)", "(.*?)"\}', _SETTINGS.read_text())
    lines = [f"| `{name}` | {default or 'unset'} | {text} |" for name, default, text in rows]
    return "| variable | default | effect |\n|---|---|---|\n" + "\n".join(lines) + "\n"


def gradient_conventions() -> str:
    """The differences from JAX's gradients, from the table that the tests use."""
    sys.path.insert(0, str(_SETTINGS.parents[3]))
    conventions = importlib.import_module("tests.conformance.jax.gradient_conventions").CONVENTIONS
    variants = [[name.removesuffix("-static").replace("-", ".") for name in each.names] for each in conventions]
    names = [", ".join(f"`np.{name}`" for name in dict.fromkeys(group)) or "all" for group in variants]
    rows = [f"| {functions} | {each.reason} |" for functions, each in zip(names, conventions)]
    return "| functions | difference from JAX |\n|---|---|\n" + "\n".join(rows) + "\n"


def expand(text: str) -> str:
    """The text of a page with generated Markdown in place of its placeholders."""
    made: dict[str, Callable[[str], str]] = {
        "public": reference,
        "numpy-functions": lambda _: numpy_tables(),
        "switches": lambda _: switches(),
        "gradient-conventions": lambda _: gradient_conventions(),
    }
    return _DIRECTIVE.sub(lambda found: made[found[1]](found[2]), text)


def _on_source_read(app: Any, name: str, source: list[str]) -> None:
    source[0] = expand(source[0])


_NEXT_ERROR = re.compile(r"(?<=\.) (?=[A-Z]\w+(?:, [A-Z]\w+)*: )")


def one_error_per_line(lines: list[str]) -> list[str]:
    """A docstring whose section *Raises* has one line for each error: ``A: when. B: when.`` are two lines."""
    found: list[str] = []
    inside = False
    for line in lines:
        inside = line.startswith("    ") if inside and line else line == "Raises:"
        entry, *others = _NEXT_ERROR.split(line) if inside else [line]
        found += [entry, *(f"    {other}" for other in others)]
    return found


def _on_docstring(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    lines[:] = one_error_per_line(lines)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", _on_source_read)
    app.connect("autodoc-process-docstring", _on_docstring, priority=400)  # before Napoleon, which reads the sections
    return {"parallel_read_safe": True, "parallel_write_safe": True}
