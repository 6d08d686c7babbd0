# SPDX-License-Identifier: Apache-2.0
"""Writes the type stubs of the extension: ``python tools/make_stubs.py [FOLDER]`` (default: ``python``).

pybind11-stubgen reads the extension. This script adds what ``mypy --strict`` needs: elements of bare containers are
``Any``, ``__eq__`` takes any object, and the exceptions are defined here instead of imported, although their module is
``shardwise``.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import sys
from pathlib import Path

import pybind11_stubgen

HEADER = "# Written by `make stubs`; do not edit.\n"
GENERIC = {"tuple": "tuple[typing.Any, ...]", "list": "list[typing.Any]", "dict": "dict[typing.Any, typing.Any]"}

# False for an object of another class.
_EQUALITY = re.compile(r"def __eq__\(self, arg0: \w+\) -> bool:")


def with_elements(text: str) -> str:
    """``text`` with ``-> list:`` as ``-> list[typing.Any]:``, and with ``__eq__`` of all objects."""
    complete = re.sub(r"(?<=[ \[])(tuple|list|dict)(?=[:,)\] ]|$)", lambda m: GENERIC[m[1]], text, flags=re.MULTILINE)
    complete = complete.replace("**kwargs)", "**kwargs: typing.Any)")
    if "typing.Any" in complete and "import typing" not in complete:
        complete = complete.replace("__all__", "import typing\n__all__", 1)
    complete = _EQUALITY.sub("def __eq__(self, other: object) -> bool:", complete)
    # Set on each instance, where a reader of the class does not see them.
    return re.sub(r'(class ParseError\(.*\):\n    """\n.*\n    """\n)', r"\1    line: int\n    column: int\n", complete)


def main(folder: str = "python") -> None:
    """Write ``FOLDER/shardwise/_core/*.pyi``."""
    error = importlib.import_module("shardwise._core.error")
    kinds = [vars(error)[name] for name in dir(error) if isinstance(vars(error)[name], type)]
    modules = [kind.__module__ for kind in kinds]
    for kind in kinds:
        kind.__module__ = error.__name__
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            pybind11_stubgen.main(["shardwise._core", "-o", folder, "--exit-code"])
    finally:
        for kind, module in zip(kinds, modules):
            kind.__module__ = module
    for path in sorted((Path(folder) / "shardwise" / "_core").glob("*.pyi")):
        path.write_text(HEADER + with_elements(path.read_text()))


if __name__ == "__main__":
    main(*sys.argv[1:])
