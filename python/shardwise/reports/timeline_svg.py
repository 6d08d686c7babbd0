# SPDX-License-Identifier: Apache-2.0
"""The picture of a quantity over a run: an area, and a line for its limit."""

from __future__ import annotations

from collections.abc import Sequence

from ..svg import hue, svg, text_at

__all__ = ["timeline_svg"]

_WIDTH, _HEIGHT, _TOP = 640.0, 160.0, 18.0
_MOST_POINTS = 640  # one for each pixel


def timeline_svg(values: Sequence[float], limit: float | None, label: str, peak_text: str, limit_text: str = "") -> str:
    """The values as an area over their order; "" without values.

    Args:
        values: not negative.
        limit: where a line is drawn; None for none.
        label: what the picture shows, for screen readers.
        peak_text: the label of the highest value.
        limit_text: that of the limit.
    """
    if not values:
        return ""
    highest = max([*values, limit or 0]) or 1
    drawn = _thinned(values)

    def height(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP) * (1 - value / highest)

    step = _WIDTH / len(drawn)
    corners = [f"M0 {_HEIGHT:.1f}"]
    for i, value in enumerate(drawn):
        corners.append(f"L{i * step:.1f} {height(value):.1f} L{(i + 1) * step:.1f} {height(value):.1f}")
    area = f'<path d="{" ".join(corners)} L{_WIDTH:.1f} {_HEIGHT:.1f} Z" fill="{hue(0, 1)}" stroke="currentColor"/>'
    peak = drawn.index(max(drawn))
    anchor = "start" if peak < len(drawn) / 2 else "end"
    parts = [area, text_at(peak * step, height(max(drawn)) - 8, peak_text, anchor)]
    if limit is not None:
        y = height(limit)
        parts.append(f'<path d="M0 {y:.1f} H{_WIDTH:.1f}" stroke="currentColor" stroke-dasharray="4 3" fill="none"/>')
        parts.append(text_at(_WIDTH, y + 8, limit_text, "end"))
    return svg(_WIDTH, _HEIGHT, parts, label)


def _thinned(values: Sequence[float]) -> list[float]:
    """The highest of each few neighbours, so that no peak is lost."""
    together = -(-len(values) // _MOST_POINTS)
    return [max(values[i : i + together]) for i in range(0, len(values), together)]
