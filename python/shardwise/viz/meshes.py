# SPDX-License-Identifier: Apache-2.0
"""A mesh as grids of devices."""

from __future__ import annotations

import itertools
from math import prod
from typing import TYPE_CHECKING

from ..svg import TITLE, code, figure, hue, label, rect, svg, text_at
from .areas import MOST_AREAS, drawn_panels, group_sizes, groups_of, ranges

if TYPE_CHECKING:
    from ..shardings.mesh import Mesh

__all__ = ["mesh_html"]

_CELL_WIDTH, _CELL_HEIGHT = 44, 28
_WIDE_CELL = 64  # of several devices
_MOST_IDS = 64  # of devices in a tooltip

Span = tuple[int, int]  # the first coordinate along an axis, and how many


def mesh_html(mesh: Mesh) -> str:
    """The devices of a mesh as grids: the last axis from left to right, the one before downwards, others as panels.

    Many devices are drawn as areas of neighbours (areas.py); notes name their size and how many panels are drawn.
    """
    sizes, names = mesh.axis_sizes, mesh.axis_names
    rows, columns = (1, 1, *sizes)[-2:]
    panels = prod(sizes[:-2])
    shown = drawn_panels(panels, rows * columns)
    group = group_sizes([rows, columns], MOST_AREAS // shown)
    grid = [groups_of(count, size) for count, size in zip((rows, columns), group)]
    drawn = []
    leading = [range(min(size, shown)) for size in sizes[:-2]]  # no more panels of any axis can be drawn
    for coordinates in itertools.islice(itertools.product(*leading), shown):
        title = ", ".join(f"{name}={c}" for name, c in zip(names, coordinates))
        first = 0
        for size, c in zip(sizes, coordinates):
            first = first * size + c
        drawn.append(_panel(mesh, first * rows * columns, columns, grid, title))
    notes = [f"{shown} of {panels:,} panels drawn"] if shown < panels else []
    if max(group) > 1:
        notes.append(f"each area is {group[0]} × {group[1]} of {mesh.size:,} devices")
    return figure(code(repr(mesh)), drawn, "; ".join(notes))


def _panel(mesh: Mesh, first: int, columns: int, grid: list[list[Span]], title: str) -> str:
    """One grid: the rows and columns of areas, of which the position ``first`` of the mesh is the first."""
    top, left = TITLE * (2 if title else 1), 60 if len(mesh.axis_names) > 1 else 4
    is_grouped = any(count > 1 for spans in grid for _, count in spans)
    width = _WIDE_CELL if is_grouped else _CELL_WIDTH
    parts = [text_at(left, TITLE / 2, title, "start")] if title else []
    if mesh.axis_names:
        parts.append(text_at(left, top - TITLE / 2, f"{mesh.axis_names[-1]} →", "start"))
    if len(mesh.axis_names) > 1:
        parts.append(text_at(left - 6, top + _CELL_HEIGHT / 2, f"{mesh.axis_names[-2]} ↓", "end"))
    for (i, row), (j, column) in itertools.product(enumerate(grid[0]), enumerate(grid[1])):
        x, y = left + j * width, top + i * _CELL_HEIGHT
        texts, tooltip = _described(mesh, first, columns, row, column)
        parts.append(rect(x, y, width, _CELL_HEIGHT, hue(0, 1), tooltip))
        parts += label(x, y, width, _CELL_HEIGHT, *texts)
    return svg(left + len(grid[1]) * width + 4, top + len(grid[0]) * _CELL_HEIGHT + 4, parts, f"mesh {title}")


def _described(mesh: Mesh, first: int, columns: int, row: Span, column: Span) -> tuple[list[str], str]:
    """The labels of an area, the best first, and its tooltip."""
    start, count = first + row[0] * columns + column[0], row[1] * column[1]
    if count == 1:
        device = mesh._core.device_at(start)
        return [str(device)], f"device {device} at row-major position {start}"
    shape = f"{row[1]}×{column[1]}"
    spans = ", ".join(
        f"{name}={low}-{low + size - 1}" if size > 1 else f"{name}={low}"
        for name, (low, size) in zip(mesh.axis_names[-2:], (row, column)[-len(mesh.axis_names[-2:]) :])
    )
    if count > _MOST_IDS:
        return [shape], f"{count:,} devices: {spans}"
    positions = [start + i * columns + j for i in range(row[1]) for j in range(column[1])]
    devices = ranges([mesh._core.device_at(position) for position in positions])
    return [devices, shape], f"devices {devices}: {spans}"
