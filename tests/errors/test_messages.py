# SPDX-License-Identifier: Apache-2.0
"""Every mistake a user can make, and the message it gives: the exact class, the values, the way out, the user's line.

The rows are in the files mistakes_in_*.py. A message must match the row's pattern and end with a line of its program.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

import shardwise as sw
from tests.errors import (
    mistakes_in_arrays,  # noqa: F401 - adds its rows
    mistakes_in_calls,  # noqa: F401
    mistakes_in_compositions,  # noqa: F401
    mistakes_in_control_flow,  # noqa: F401
    mistakes_in_functions,  # noqa: F401
    mistakes_in_indexing,  # noqa: F401
    mistakes_in_models,  # noqa: F401
    mistakes_in_names,  # noqa: F401
    mistakes_in_numbers,  # noqa: F401
    mistakes_in_options,  # noqa: F401
    mistakes_in_programs,  # noqa: F401
    mistakes_in_reports,  # noqa: F401
    mistakes_in_shardings,  # noqa: F401
    mistakes_in_tracing,  # noqa: F401
    mistakes_in_trees,  # noqa: F401
)
from tests.errors.mistakes import ROWS, Row


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.program.__name__)
def test_message_says_what_where_and_the_way_out(row: Row) -> None:
    with pytest.raises(row.error) as caught:
        row.program()
    error = caught.value
    assert type(error) is row.error, f"{type(error)}: {error}"
    text = str(error)
    assert re.search(row.pattern, text, re.DOTALL), text
    assert len(text) < 1500, text
    if not row.located:
        return
    place = re.search(r"\(at (program text|\S+):(\d+)\)\W*$", text)
    assert place, text
    # The op of a text without a file name has the line of the text.
    if place[1] == "program text":
        return
    assert place[1] == row.program.__code__.co_filename, text
    assert int(place[2]) in lines_of(row.program), text


def lines_of(program: Any) -> set[int]:
    """Lines of a function and of those in it."""
    codes, lines = [program.__code__], set()
    while codes:
        code = codes.pop()
        lines |= {line for _, _, line in code.co_lines() if line is not None}
        codes += [const for const in code.co_consts if hasattr(const, "co_lines")]
    return lines


def test_errors_of_users_are_builtin_errors_too() -> None:
    """What a user of NumPy or JAX would catch."""
    assert ROWS
    for row in ROWS:
        builtin = (ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError)
        assert issubclass(row.error, builtin), row.error
        assert not issubclass(row.error, sw.InternalError)


def test_parse_error_has_line_and_column() -> None:
    with pytest.raises(sw.ParseError) as caught:
        sw.parse("module {\n  func.func @main() {\n  %0 = stablehlo.foo %1\n}")
    assert (caught.value.line, caught.value.column) == (3, 8)
