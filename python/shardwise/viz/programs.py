# SPDX-License-Identifier: Apache-2.0
"""A program as the text of one device, with its collectives marked."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from ..reports.collective_rows import COLLECTIVE_KINDS
from .svg import code

if TYPE_CHECKING:
    from ..stages import Program

__all__ = ["program_html"]

_COLLECTIVE = re.compile(rf"shardwise\.(?:{'|'.join(COLLECTIVE_KINDS)})\b")


def program_html(program: Program) -> str:
    """A program's collectives, and the text of one device's program with the lines of collectives marked."""
    lines = []
    for line in program.as_text("local").splitlines():
        text = escape(line)
        if _COLLECTIVE.search(line):
            text = f'<mark style="background:hsl(40 90% 50% / 0.35);color:inherit">{text}</mark>'
        lines.append(text)
    return (
        f"<div>{code(repr(program))}{program.collectives()._repr_html_()}"
        f"<details open><summary>program of one device</summary><pre>{chr(10).join(lines)}</pre></details></div>"
    )
