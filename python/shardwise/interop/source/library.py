# SPDX-License-Identifier: Apache-2.0
"""The helpers of targets: functions whose text scripts copy."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from .target import Target

__all__ = ["helpers_of", "names_of"]


def _text_of(source: str, node: ast.FunctionDef) -> str:
    decorators = [f"@{ast.get_source_segment(source, decorator)}\n" for decorator in node.decorator_list]
    return "".join([*decorators, str(ast.get_source_segment(source, node))])


@cache
def _library(files: tuple[Path, ...]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """The functions of some files: text, and the functions that each calls."""
    sources = [file.read_text(encoding="utf-8") for file in files]
    functions = {
        node.name: (node, _text_of(source, node))
        for source in sources
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef)
    }
    found = {}
    for name, (node, text) in functions.items():
        names = [x for x in ast.walk(node) if isinstance(x, ast.Name)]
        own = {x.id for x in names if isinstance(x.ctx, ast.Store)} | {
            x.arg for x in ast.walk(node) if isinstance(x, ast.arg)
        }
        called = {x.id for x in names} & functions.keys() - own - {name}
        found[name] = (text, tuple(sorted(called)))
    return found


def names_of(target: Target) -> frozenset[str]:
    """The names of all helpers of a target."""
    return frozenset(_library(target.helpers))


def helpers_of(target: Target, wanted: tuple[str, ...]) -> list[str]:
    """The text of helpers of a target, and of those that they call."""
    library, needed, open_names = _library(target.helpers), set(), list(wanted)
    while open_names:
        name = open_names.pop()
        if name not in needed:
            needed.add(name)
            open_names += library[name][1]
    return [f"{library[name][0]}\n\n" for name in library if name in needed]
