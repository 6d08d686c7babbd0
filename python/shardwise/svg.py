# SPDX-License-Identifier: Apache-2.0
"""Static HTML with inline SVG: no scripts, no outside files, readable on light and on dark pages.

Text and lines take the page's own colour (``currentColor``); areas are translucent, one hue per tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape

__all__ = ["MARK", "TITLE", "arrow", "code", "figure", "folded", "hue", "label", "rect", "svg", "text_at"]

Point = tuple[float, float]

TITLE = 18  # the height of a line of text above a picture
MARK = "hsl(40 90% 50% / 0.35)"  # behind a collective
_CHARACTER = 6.3  # the width of a digit of a label
_LINE = 11  # the height of a label
_OPEN_LINES = 40  # of a text that is not folded
_MOST_CODE = 400  # characters of a caption
_MOST_TEXT = 100_000  # characters of a text in a notebook
_MOST_IN_LINE = 400


def hue(index: int, count: int) -> str:
    """The colour of area ``index`` of ``count``."""
    # Golden-angle steps keep the hues of neighbours apart, however many there are.
    return f"hsl({(index * 137.508) % 360 if count > 1 else 210:.0f} 70% 50% / 0.3)"


def rect(x: float, y: float, width: float, height: float, fill: str, tooltip: str) -> str:
    """A rectangle with a tooltip."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}" stroke="currentColor" '
        f'stroke-opacity="0.6"><title>{escape(tooltip)}</title></rect>'
    )


def text_at(x: float, y: float, text: str, anchor: str = "middle") -> str:
    """A line of text, vertically centred at ``y``."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" dominant-baseline="middle">{escape(text)}</text>'


def label(x: float, y: float, width: float, height: float, *texts: str) -> list[str]:
    """The first text that fits into an area of this size, at its middle; nothing if none fits."""
    fitting = [text for text in texts if text and width >= _CHARACTER * len(text) and height >= _LINE]
    return [text_at(x + width / 2, y + height / 2, text) for text in fitting[:1]]


def arrow(start: Point, leave: Point, arrive: Point, end: Point) -> str:
    """An arrow along a Bézier curve with these control points; it arrives downwards or from the left."""
    points = " ".join(f"{x:.1f} {y:.1f}" for x, y in (leave, arrive, end))
    x, y = end
    back, aside = (0, 5), (3, 0)
    if arrive[0] != x:
        back, aside = (5, 0), (0, 3)
    tips = [(x - back[0] + side * aside[0], y - back[1] + side * aside[1]) for side in (-1, 1)]
    head = " L".join(f"{a:.1f} {b:.1f}" for a, b in (tips[0], end, tips[1]))
    return (
        f'<g fill="none" stroke="currentColor" stroke-opacity="0.6">'
        f'<path d="M{start[0]:.1f} {start[1]:.1f} C{points}"/><path d="M{head}"/></g>'
    )


def svg(width: float, height: float, parts: Iterable[str], label: str) -> str:
    """A picture of these parts, with a label for screen readers."""
    body = "".join(parts)
    return (
        f'<svg role="img" aria-label="{escape(label)}" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" style="font:11px sans-serif;margin:4px" fill="currentColor">'
        f"{body}</svg>"
    )


def figure(caption: str, panels: Sequence[str], note: str = "") -> str:
    """Panels side by side, below ``caption``, which is HTML; the note stands below them."""
    tail = f'<div style="opacity:0.7">{escape(note)}</div>' if note else ""
    row = f'<div style="display:flex;flex-wrap:wrap">{"".join(panels)}</div>'
    return f'<div><div style="margin:4px">{caption}</div>{row}{tail}</div>'


def folded(title: str, text: str, rest: str, mark: Callable[[str], str] = escape) -> str:
    """A program's text: open if it is short, else folded. Of a very long one the first lines are shown.

    Args:
        title: the line that folds it.
        text: the lines.
        rest: how to get all lines.
        mark: turns a line into HTML.
    """
    lines = text.splitlines()
    shown: list[str] = []
    free = _MOST_TEXT
    for line in lines:
        free -= min(len(line), _MOST_IN_LINE)
        if free < 0:
            shown.append(escape(f"… {len(lines) - len(shown)} more lines: {rest}"))
            break
        shown.append(mark(line if len(line) <= _MOST_IN_LINE else f"{line[:_MOST_IN_LINE]}…"))
    state = " open" if len(lines) <= _OPEN_LINES else ""
    count = "" if state else f", {len(lines)} lines"
    return f"<details{state}><summary>{escape(title + count)}</summary><pre>{chr(10).join(shown)}</pre></details>"


def code(text: str) -> str:
    """Text in the font of code: the beginning of a long one, such as a mesh of many device ids."""
    return f"<code>{escape(text if len(text) <= _MOST_CODE else f'{text[:_MOST_CODE]}…')}</code>"
