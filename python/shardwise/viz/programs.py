# SPDX-License-Identifier: Apache-2.0
"""A program as the text of one device, with its collectives marked."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from ..reports.collective_rows import COLLECTIVE_KINDS
from .graphs import graph_svg, is_drawn
from .svg import MARK, code

if TYPE_CHECKING:
    from ..programs.stages import Program

__all__ = ["program_html"]

_COLLECTIVE = re.compile(rf"shardwise\.(?:{'|'.join(COLLECTIVE_KINDS)})\b")


def program_html(program: Program) -> str:
    """A program's collectives, its graph if it is small, and the text of one device with collectives marked."""
    lines = []
    for line in program.as_text("local").splitlines():
        text = escape(line)
        if _COLLECTIVE.search(line):
            text = f'<mark style="background:{MARK};color:inherit">{text}</mark>'
        lines.append(text)
    graph = graph_svg(program) if is_drawn(program) else ""
    return (
        f"<div>{code(repr(program))}{program.collectives()._repr_html_()}{graph}"
        f"<details open><summary>program of one device</summary><pre>{chr(10).join(lines)}</pre></details></div>"
    )
