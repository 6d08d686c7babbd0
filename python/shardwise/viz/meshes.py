# SPDX-License-Identifier: Apache-2.0
"""A mesh as grids of devices."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from .svg import MOST_PANELS, TITLE, code, figure, hue, rect, svg, text_at

if TYPE_CHECKING:
    from ..shardings.mesh import Mesh

__all__ = ["mesh_html"]

_CELL_WIDTH, _CELL_HEIGHT = 44, 28
_MOST_CELLS = 16  # along one side of a grid


def mesh_html(mesh: Mesh) -> str:
    """The devices of a mesh as grids: the last axis from left to right, the one before downwards, others as panels.

    Sides are cut after 16 devices, and panels after the eighth.
    """
    sizes, names = mesh.axis_sizes, mesh.axis_names
    rows, columns = (1, 1, *sizes)[-2:]
    leading = [range(min(size, MOST_PANELS)) for size in sizes[:-2]]  # no more panels of any axis can be drawn
    outer = list(itertools.islice(itertools.product(*leading), MOST_PANELS))
    panels = []
    for coordinates in outer:
        title = ", ".join(f"{name}={c}" for name, c in zip(names, coordinates))
        first = 0
        for size, c in zip(sizes, coordinates):
            first = first * size + c
        panels.append(_mesh_panel(mesh, first * rows * columns, rows, columns, title))
    shown = len(outer) * min(rows, _MOST_CELLS) * min(columns, _MOST_CELLS)
    note = f"{shown} of {mesh.size} devices drawn" if shown < mesh.size else ""
    return figure(code(repr(mesh)), panels, note)


def _mesh_panel(mesh: Mesh, first: int, rows: int, columns: int, title: str) -> str:
    top, left = TITLE * (2 if title else 1), 60 if len(mesh.axis_names) > 1 else 4
    drawn_rows, drawn_columns = min(rows, _MOST_CELLS), min(columns, _MOST_CELLS)
    parts = [text_at(left, TITLE / 2, title, "start")] if title else []
    if mesh.axis_names:
        parts.append(text_at(left, top - TITLE / 2, f"{mesh.axis_names[-1]} →", "start"))
    if len(mesh.axis_names) > 1:
        parts.append(text_at(left - 6, top + _CELL_HEIGHT / 2, f"{mesh.axis_names[-2]} ↓", "end"))
    for i, j in itertools.product(range(drawn_rows), range(drawn_columns)):
        index = first + i * columns + j
        device = mesh._core.device_at(index)
        x, y = left + j * _CELL_WIDTH, top + i * _CELL_HEIGHT
        tooltip = f"device {device} at row-major position {index}"
        parts.append(rect(x, y, _CELL_WIDTH, _CELL_HEIGHT, hue(0, 1), tooltip))
        parts.append(text_at(x + _CELL_WIDTH / 2, y + _CELL_HEIGHT / 2, str(device)))
    return svg(left + drawn_columns * _CELL_WIDTH + 4, top + drawn_rows * _CELL_HEIGHT + 4, parts, f"mesh {title}")
