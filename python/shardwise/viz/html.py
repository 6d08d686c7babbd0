# SPDX-License-Identifier: Apache-2.0
"""Static HTML with inline SVG: no scripts, no outside files, readable on light and on dark pages.

Text and lines take the page's own colour (``currentColor``); areas are translucent, one hue per tile. What is too big
to draw is cut, and the picture says so.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from ..reports import COLLECTIVE_KINDS

if TYPE_CHECKING:
    from ..array import Array
    from ..mesh import Mesh
    from ..stages import Program

__all__ = ["array_html", "mesh_html", "program_html"]

_CELL_WIDTH, _CELL_HEIGHT, _TITLE = 44, 28, 18
_MOST_CELLS = 16  # along one side of a grid
_MOST_PANELS = 8
_PANEL = 180  # the longer side of a drawn array
_COLLECTIVE = re.compile(rf"shardwise\.(?:{'|'.join(COLLECTIVE_KINDS)})\b")


def _hue(index: int, count: int) -> str:
    # Golden-angle steps keep the hues of neighbours apart, however many there are.
    return f"hsl({(index * 137.508) % 360 if count > 1 else 210:.0f} 70% 50% / 0.3)"


def _rect(x: float, y: float, width: float, height: float, fill: str, tooltip: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}" stroke="currentColor" '
        f'stroke-opacity="0.6"><title>{escape(tooltip)}</title></rect>'
    )


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" dominant-baseline="middle">{escape(text)}</text>'


def _svg(width: float, height: float, parts: Iterable[str], label: str) -> str:
    body = "".join(parts)
    return (
        f'<svg role="img" aria-label="{escape(label)}" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" style="font:11px sans-serif;margin:4px" fill="currentColor">'
        f"{body}</svg>"
    )


def _figure(caption: str, panels: Sequence[str], note: str = "") -> str:
    """``caption`` is HTML."""
    tail = f'<div style="opacity:0.7">{escape(note)}</div>' if note else ""
    row = f'<div style="display:flex;flex-wrap:wrap">{"".join(panels)}</div>'
    return f'<div><div style="margin:4px">{caption}</div>{row}{tail}</div>'


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


# ---- meshes ---------------------------------------------------------------------------------------------------------


def mesh_html(mesh: Mesh) -> str:
    """The devices of a mesh as grids: the last axis from left to right, the one before downwards, others as panels.

    A side of more than 16 devices, and panels after the eighth, are cut.
    """
    sizes, names = mesh.axis_sizes, mesh.axis_names
    rows, columns = (1, 1, *sizes)[-2:]
    leading = [range(min(size, _MOST_PANELS)) for size in sizes[:-2]]  # no more panels of any axis can be drawn
    outer = list(itertools.islice(itertools.product(*leading), _MOST_PANELS))
    panels = []
    for coordinates in outer:
        title = ", ".join(f"{name}={c}" for name, c in zip(names, coordinates))
        first = 0
        for size, c in zip(sizes, coordinates):
            first = first * size + c
        panels.append(_mesh_panel(mesh, first * rows * columns, rows, columns, title))
    shown = len(outer) * min(rows, _MOST_CELLS) * min(columns, _MOST_CELLS)
    note = f"{shown} of {mesh.size} devices drawn" if shown < mesh.size else ""
    return _figure(_code(repr(mesh)), panels, note)


def _mesh_panel(mesh: Mesh, first: int, rows: int, columns: int, title: str) -> str:
    top, left = _TITLE * (2 if title else 1), 60 if len(mesh.axis_names) > 1 else 4
    drawn_rows, drawn_columns = min(rows, _MOST_CELLS), min(columns, _MOST_CELLS)
    parts = [_text(left, _TITLE / 2, title, "start")] if title else []
    if mesh.axis_names:
        parts.append(_text(left, top - _TITLE / 2, f"{mesh.axis_names[-1]} →", "start"))
    if len(mesh.axis_names) > 1:
        parts.append(_text(left - 6, top + _CELL_HEIGHT / 2, f"{mesh.axis_names[-2]} ↓", "end"))
    for i, j in itertools.product(range(drawn_rows), range(drawn_columns)):
        index = first + i * columns + j
        device = mesh._core.device_at(index)
        x, y = left + j * _CELL_WIDTH, top + i * _CELL_HEIGHT
        tooltip = f"device {device} at row-major position {index}"
        parts.append(_rect(x, y, _CELL_WIDTH, _CELL_HEIGHT, _hue(0, 1), tooltip))
        parts.append(_text(x + _CELL_WIDTH / 2, y + _CELL_HEIGHT / 2, str(device)))
    return _svg(left + drawn_columns * _CELL_WIDTH + 4, top + drawn_rows * _CELL_HEIGHT + 4, parts, f"mesh {title}")


# ---- arrays ---------------------------------------------------------------------------------------------------------

Tile = tuple[tuple[int, int], ...]  # (start, size) per dim


def array_html(array: Array) -> str:
    """The values of a sharded array, and its tiles with the devices that hold each: rectangles for 1 and 2 dims.

    An array of more dims is drawn as panels, one per block of the leading dims. Devices without elements are named.
    """
    tiles_of = holders(array)
    hues = {tile: _hue(i, len(tiles_of)) for i, tile in enumerate(tiles_of)}
    blocks: dict[Tile, list[Tile]] = {}
    for tile in tiles_of:
        blocks.setdefault(tile[:-2], []).append(tile)
    panels = [
        _array_panel(array.shape, lead, tiles, tiles_of, hues)
        for lead, tiles in itertools.islice(blocks.items(), _MOST_PANELS)
    ]
    sharding = array.sharding
    kind = f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
    caption = f"{_code(kind)} sharded {_code(sharding.text(array.ndim))} on {_code(repr(sharding.mesh))}"
    notes = []
    if len(blocks) > _MOST_PANELS:
        notes.append(f"{_MOST_PANELS} of {len(blocks)} blocks of the leading dims drawn")
    if empty := empty_devices(array):
        notes.append(f"empty: {'device' if len(empty) == 1 else 'devices'} {ranges(empty)}")
    values = f'<pre style="margin:4px">{escape(repr(array))}</pre>'
    return f"<div>{values}{_figure(caption, panels, '; '.join(notes))}</div>"


def _tiles(array: Array) -> list[tuple[int, Tile]]:
    """Every device of the mesh and its tile."""
    slices = array._data.sharding.slices(array.shape)
    tiles = [tuple((int(start), int(size)) for start, size in dims) for dims in slices]
    return list(zip(array.sharding.mesh.device_ids, tiles))


def holders(array: Array) -> dict[Tile, list[int]]:
    """The tiles that are not empty, and the devices that hold them, in row-major order of the tiles."""
    found: dict[Tile, list[int]] = {}
    for device, tile in _tiles(array):
        if all(size for _, size in tile):
            found.setdefault(tile, []).append(device)
    return dict(sorted(found.items()))


def empty_devices(array: Array) -> list[int]:
    """The devices that hold no element, as the last ones along an uneven dim."""
    return [device for device, tile in _tiles(array) if not all(size for _, size in tile)]


def _array_panel(
    shape: tuple[int, ...], lead: Tile, tiles: list[Tile], tiles_of: dict[Tile, list[int]], hues: dict[Tile, str]
) -> str:
    rows, columns = (1, 1, *shape)[-2:]
    scale = _PANEL / max(rows, columns, 1)
    # A very flat array is still drawn tall enough to be labelled.
    width, height = max(columns * scale, 40.0), max(rows * scale, 24.0)
    title = ", ".join(f"{start}:{start + size}" for start, size in lead)
    parts = [_text(2, _TITLE / 2, f"[{title}, …]", "start")] if title else []
    top = _TITLE if title else 2
    for tile in tiles:
        (row, row_count), (column, column_count) = ((0, 1), (0, 1), *tile)[-2:]
        x, y = 2 + column / columns * width, top + row / rows * height
        box = column_count / columns * width, row_count / rows * height
        devices = ranges(tiles_of[tile])
        index = ", ".join(f"{start}:{start + size}" for start, size in tile)
        parts.append(_rect(x, y, *box, hues[tile], f"[{index}] on devices {devices}"))
        if box[0] >= 7 * len(devices) and box[1] >= 12:
            parts.append(_text(x + box[0] / 2, y + box[1] / 2, devices))
    return _svg(width + 4, top + height + 2, parts, f"tiles {title}")


def ranges(numbers: list[int]) -> str:
    """Numbers with runs joined: ``0-3,6``.

    >>> ranges([0, 1, 2, 3, 6])
    '0-3,6'
    """
    runs: list[list[int]] = []
    for n in sorted(numbers):
        if runs and runs[-1][-1] == n - 1:
            runs[-1] = [runs[-1][0], n]
        else:
            runs.append([n, n])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


# ---- programs -------------------------------------------------------------------------------------------------------


def program_html(program: Program) -> str:
    """A program's collectives, and the text of one device's program with the lines of collectives marked."""
    lines = []
    for line in program.as_text("local").splitlines():
        text = escape(line)
        if _COLLECTIVE.search(line):
            text = f'<mark style="background:hsl(40 90% 50% / 0.35);color:inherit">{text}</mark>'
        lines.append(text)
    return (
        f"<div>{_code(repr(program))}{program.collectives()._repr_html_()}"
        f"<details open><summary>program of one device</summary><pre>{chr(10).join(lines)}</pre></details></div>"
    )
