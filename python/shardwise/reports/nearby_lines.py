# SPDX-License-Identifier: Apache-2.0
"""The lines of a program near one that it lacks, for the error of ``why("train.py:9999")``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

__all__ = ["lines_near"]

_MOST = 3  # lines, or files, in a message
_LONGEST = 255  # characters of a file name
_LINE = re.compile(r"(.+?)(?::|, line )(\d+)")


def lines_near(module: Any, name: str) -> str:
    """What an error says of ``name``, a line that the module lacks: the nearest lines that it has.

    Returns:
        ``"train.py has no values at line 30; the nearest are at lines 28 and 31"``; ``""`` if ``name`` is no line.
    """
    found = _LINE.fullmatch(name)
    places = _places(module) if found is not None and len(name) <= _LONGEST else set()
    if found is None or not places:
        return ""
    wanted = int(found[2])
    lines = sorted({line for file, line in places if _is_same(file, found[1])}, key=lambda line: abs(line - wanted))
    if not lines:
        files = sorted({os.path.basename(file) for file, _ in places})
        return f"the program has no values in {found[1]}; it has some in {_listed(files)}"
    near = [str(line) for line in sorted(lines[:_MOST])]
    verb = "are at lines" if len(near) > 1 else "is at line"
    return f"{found[1]} has no values at line {wanted}; the nearest {verb} {_listed(near)}"


def _places(module: Any) -> set[tuple[str, int]]:
    values = [value for function in module.functions for value in function.body.arguments]
    locations = [each.location for each in (*module.ops, *values)]
    return {(location.file, location.line) for location in locations if location.file}


def _is_same(path: str, file: str) -> bool:
    return path == file or path.endswith(f"/{file}")


def _listed(words: Iterable[str]) -> str:
    shown = [*words]
    shown = [*shown[:_MOST], f"{len(shown) - _MOST} more"] if len(shown) > _MOST else shown
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
