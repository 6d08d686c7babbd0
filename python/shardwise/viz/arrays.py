# SPDX-License-Identifier: Apache-2.0
"""An array as rectangles, one per tile, with the devices that hold each."""

from __future__ import annotations

import itertools
from html import escape
from typing import TYPE_CHECKING

from .svg import MOST_PANELS, TITLE, code, figure, hue, rect, svg, text_at

if TYPE_CHECKING:
    from ..array import Array

__all__ = ["array_html", "empty_devices", "holders", "ranges"]

_PANEL = 180  # the longer side of a drawn array

Tile = tuple[tuple[int, int], ...]  # (start, size) per dim


def array_html(array: Array) -> str:
    """The values of a sharded array, and its tiles with the devices that hold each: rectangles for 1 and 2 dims.

    An array of more dims is drawn as panels, one per block of the leading dims. Devices without elements are named.
    """
    tiles_of = holders(array)
    hues = {tile: hue(i, len(tiles_of)) for i, tile in enumerate(tiles_of)}
    blocks: dict[Tile, list[Tile]] = {}
    for tile in tiles_of:
        blocks.setdefault(tile[:-2], []).append(tile)
    panels = [
        _array_panel(array.shape, lead, tiles, tiles_of, hues)
        for lead, tiles in itertools.islice(blocks.items(), MOST_PANELS)
    ]
    sharding = array.sharding
    kind = f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
    caption = f"{code(kind)} sharded {code(sharding.text(array.ndim))} on {code(repr(sharding.mesh))}"
    notes = []
    if len(blocks) > MOST_PANELS:
        notes.append(f"{MOST_PANELS} of {len(blocks)} blocks of the leading dims drawn")
    if empty := empty_devices(array):
        notes.append(f"empty: {'device' if len(empty) == 1 else 'devices'} {ranges(empty)}")
    values = f'<pre style="margin:4px">{escape(repr(array))}</pre>'
    return f"<div>{values}{figure(caption, panels, '; '.join(notes))}</div>"


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
    parts = [text_at(2, TITLE / 2, f"[{title}, …]", "start")] if title else []
    top = TITLE if title else 2
    for tile in tiles:
        (row, row_count), (column, column_count) = ((0, 1), (0, 1), *tile)[-2:]
        x, y = 2 + column / columns * width, top + row / rows * height
        box = column_count / columns * width, row_count / rows * height
        devices = ranges(tiles_of[tile])
        index = ", ".join(f"{start}:{start + size}" for start, size in tile)
        parts.append(rect(x, y, *box, hues[tile], f"[{index}] on devices {devices}"))
        if box[0] >= 7 * len(devices) and box[1] >= 12:
            parts.append(text_at(x + box[0] / 2, y + box[1] / 2, devices))
    return svg(width + 4, top + height + 2, parts, f"tiles {title}")


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
