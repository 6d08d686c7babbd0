# SPDX-License-Identifier: Apache-2.0
"""An array as rectangles, one per tile, with the devices that hold each."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby
from math import prod
from typing import TYPE_CHECKING

from .._core.mesh import MOST_DEVICES_TO_RUN
from ..svg import TITLE, code, figure, hue, label, rect, svg, text_at
from .areas import MOST_AREAS, Area, Tile, Tiles, drawn_panels, group_sizes, ranges

if TYPE_CHECKING:
    from ..array import Array
    from ..shardings.sharding import NamedSharding

__all__ = ["array_html", "sharding_html", "tiles_of"]

_PANEL = 180  # the longer side of a drawn array
_LEAST = 5.0  # the shorter side of an area
_FLAT = 40.0, 24.0  # the least width and height of a drawn array, for labels


def array_html(array: Array) -> str:
    """The values of a sharded array, and its tiles with the devices that hold each: rectangles for 1 and 2 dims.

    An array of more dims is drawn as panels, one per block of the leading dims. Many tiles are drawn as areas of
    neighbours (areas.py). Devices without elements are named.
    """
    sharding = array.sharding
    kind = f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
    caption = f"{code(kind)} sharded {code(sharding.text(array.ndim))} on {code(repr(sharding.mesh))}"
    values = f'<pre style="margin:4px">{escape(repr(array))}</pre>'
    return f"<div>{values}{_figure(caption, array.shape, tiles_of(array), [])}</div>"


def sharding_html(sharding: NamedSharding) -> str:
    """A sharding as the tiles that it cuts an array into, one rectangle each, with the devices that hold it."""
    core = sharding.core(len(sharding.spec))
    counts = tuple(prod(size for _, _, size in axes) for axes, _, _ in core.dims)
    notes = []
    if core.unreduced:
        axes = ", ".join(name for name, _, _ in core.unreduced)
        notes.append(f"unreduced over {axes}: each device has one addend")
    tiles = " × ".join(map(str, counts)) or "1"
    caption = f"{code(core.dims_text())} on {code(repr(sharding.mesh))}, {tiles} {'tile' if tiles == '1' else 'tiles'}"
    if sharding.mesh.size > MOST_DEVICES_TO_RUN:
        return figure(caption, [], "; ".join([*notes, "too many devices to list"]))
    return _figure(caption, counts, Tiles(core, sharding.mesh.device_ids, counts), notes)


def tiles_of(array: Array) -> Tiles:
    """The tiles of an array, with the devices that hold each."""
    return Tiles(array._data.sharding, array.sharding.mesh.device_ids, array.shape)


def _figure(caption: str, shape: Sequence[int], tiles: Tiles, notes: list[str]) -> str:
    """The tiles of an array, in one panel for each block of the leading dims."""
    *lead, _, _ = (1, 1, *tiles.counts)
    blocks = prod(lead)
    inner = tiles.counts[-2:]
    shown = drawn_panels(blocks, prod(inner))
    group = group_sizes(inner, MOST_AREAS // max(shown, 1))
    per_panel = prod(-(-count // size) for count, size in zip(inner, group))
    areas = tiles.areas([1] * (len(tiles.counts) - len(inner)) + group, shown * per_panel)
    hues = {id(area): hue(i, len(areas)) for i, area in enumerate(areas)}
    panels = [_panel(shape, list(block), hues) for _, block in groupby(areas, lambda area: area.index[:-2])]
    if shown < blocks:
        notes.append(f"{shown} of {blocks:,} blocks of the leading dims drawn")
    if max(group, default=1) > 1:
        notes.append(f"each area is {' × '.join(map(str, group))} of {prod(tiles.counts):,} tiles")
    if tiles.empty:
        notes.append(f"empty: {'device' if len(tiles.empty) == 1 else 'devices'} {ranges(tiles.empty)}")
    return figure(caption, panels, "; ".join(notes))


def _panel(shape: Sequence[int], areas: list[Area], hues: dict[int, str]) -> str:
    """The areas of one block of the leading dims."""
    spans = [((0, 1), (0, 1), *area.index)[-2:] for area in areas]
    scale = _PANEL / max(*(1, 1, *shape)[-2:], 1)
    down = _places([row for row, _ in spans], scale, _FLAT[1])
    across = _places([column for _, column in spans], scale, _FLAT[0])
    lead: Tile = areas[0].index[:-2]
    title = ", ".join(f"{start}:{start + size}" for start, size in lead)
    parts = [text_at(2, TITLE / 2, f"[{title}, …]", "start")] if title else []
    top = TITLE if title else 2
    for area, (row, column) in zip(areas, spans):
        (y, height), (x, width) = down[row], across[column]
        devices = ranges(area.devices)
        parts.append(rect(2 + x, top + y, width, height, hues[id(area)], f"{area.text} on devices {devices}"))
        parts += label(2 + x, top + y, width, height, devices)
    width, height = (max(start + size for start, size in places.values()) for places in (across, down))
    return svg(width + 4, top + height + 2, parts, f"tiles {title}")


def _places(spans: list[tuple[int, int]], scale: float, least: float) -> dict[tuple[int, int], tuple[float, float]]:
    """Where each span of elements is drawn along one side, and how long: no area is too small to be seen."""
    unique = sorted(set(spans))
    scale = max(scale, least / sum(size for _, size in unique))
    places, at = {}, 0.0
    for span in unique:
        length = max(span[1] * scale, _LEAST)
        places[span] = at, length
        at += length
    return places
