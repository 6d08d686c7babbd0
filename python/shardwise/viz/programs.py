# SPDX-License-Identifier: Apache-2.0
"""Programs and the choices of the partitioner as folded text, with collectives and annotations marked."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from ..reports.collective_rows import COLLECTIVE_KINDS
from ..svg import MARK, code, folded
from .graphs import graph_svg, is_drawn

if TYPE_CHECKING:
    from ..programs.choices import Choices
    from ..programs.module import Module
    from ..programs.stages import Program

__all__ = ["choices_html", "module_html", "program_html"]

_MARKED = re.compile(rf"shardwise\.(?:{'|'.join(COLLECTIVE_KINDS)})\b|sdy\.sharding_constraint\b")


def program_html(program: Program) -> str:
    """A program's collectives, its graph if it is small, and the text of one device with collectives marked."""
    graph = graph_svg(program) if is_drawn(program) else ""
    text = folded("program of one device", program.as_text("local"), 'print(program.as_text("local"))', _marked)
    return f"<div>{code(repr(program))}{program.collectives()._repr_html_()}{graph}{text}</div>"


def _marked(line: str) -> str:
    """A line of a program; collectives and annotations are marked."""
    text = escape(line)
    return f'<mark style="background:{MARK};color:inherit">{text}</mark>' if _MARKED.search(line) else text


def module_html(module: Module) -> str:
    """A program before it is partitioned: its text, with annotations marked."""
    return f"<div>{code(repr(module))}{folded('program', module.as_text(), 'print(….as_text())', _marked)}</div>"


def choices_html(choices: Choices) -> str:
    """The decisions of the partitioner, equal ones together."""
    counts = f"{len(choices.ops)} ops, {len(choices.plans)} reshards"
    return f"<div>{folded(f'choices: {counts}', str(choices), 'print(choices)')}</div>"
