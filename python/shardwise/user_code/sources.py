# SPDX-License-Identifier: Apache-2.0
"""Resolves a code object and a bytecode offset to a file, line, column and variable names.

Recording an op stores only the code object and the offset. A location is resolved when it is read.

    h = np.tanh(x)      # CALL at offset 24, then STORE_FAST h: the value is called "h"
"""

from __future__ import annotations

import dis
import sys
from bisect import bisect_right
from types import CodeType

from .stored_names import stored_names

__all__ = ["resolve"]

_MAX_TABLES = 4096

# Keyed by identity, because code objects of different files may be equal. The entry keeps its code object alive.
_tables: dict[int, tuple[CodeType, _Table]] = {}


class _Table:
    """The instructions of one code object: where each begins, its line and column, and the names it is stored to."""

    __slots__ = ("_instructions", "_targets", "columns", "lines", "offsets")

    def __init__(self, code: CodeType) -> None:
        self._instructions = list(dis.get_instructions(code))
        self._targets: dict[int, str] = {}
        self.offsets = [instruction.offset for instruction in self._instructions]
        self.lines, self.columns = _positions(code, self.offsets)

    def targets(self, i: int) -> str:
        """The names that the result of instruction ``i`` is stored to."""
        if i not in self._targets:
            self._targets[i] = stored_names(self._instructions, i + 1)
        return self._targets[i]


def _positions(code: CodeType, offsets: list[int]) -> tuple[list[int], list[int]]:
    units = list(code.co_positions())  # one entry per code unit of two bytes
    found = [units[offset // 2] for offset in offsets]
    return [line or code.co_firstlineno for line, *_ in found], [(c or 0) + 1 for _, _, c, _ in found]


def resolve(code: CodeType, offset: int) -> tuple[str, int, int, str]:
    """The source of the instruction at ``offset`` (bytes) of ``code``.

    Returns:
        File, line and column (both from 1), and the variables that the instruction's result is stored to, as an
        assignment has them: ``"h"``, ``"g = h"``, ``"a, b"``; "" without any. An offset inside an instruction's inline
        cache counts as the instruction.

    Source: CPython's ``co_positions`` (PEP 657) and ``co_lines`` (PEP 626).

    >>> code = compile("y = f(x)", "train.py", "exec")
    >>> import dis
    >>> call = next(i.offset for i in dis.get_instructions(code) if i.opname.startswith("CALL"))
    >>> resolve(code, call)[::3]
    ('train.py', 'y')
    """
    known = _tables.get(id(code))
    if known is None:
        if len(_tables) >= _MAX_TABLES:
            _tables.clear()
        known = _tables[id(code)] = (code, _Table(code))
    table = known[1]
    i = max(bisect_right(table.offsets, offset) - 1, 0)
    return shown_file(code.co_filename), table.lines[i], table.columns[i], table.targets(i)


def shown_file(file: str) -> str:
    """``Cell In[2]`` for the file name that IPython gives a cell; any other file name unchanged.

    The number is that of the cell's last execution, as in IPython's own tracebacks.

    >>> shown_file("train.py")
    'train.py'
    """
    ipython = sys.modules.get("IPython")  # not imported here: cells exist only if IPython is running
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    name = getattr(getattr(shell, "compile", None), "format_code_name", None)
    label = name(file) if name is not None else None
    return file if label is None else " ".join(label)
