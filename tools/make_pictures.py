# SPDX-License-Identifier: Apache-2.0
"""Write the pictures of the pages, docs/_static/pictures/*.svg, from programs that it compiles.

Each picture is made of the views that notebooks show: grids of meshes, tiles of arrays, graphs of programs. They have a
light background of their own, so that they are readable on light and on dark pages. A test compares the files.

    python tools/make_pictures.py
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
import pages

import shardwise as sw
from shardwise import P
from shardwise.viz import array_html, graph_svg, mesh_html

FOLDER = pages.DOCS / "_static" / "pictures"
_GAP, _CAPTION = 12, 22  # around a panel, and above it
_SVG = re.compile(
    r'<svg role="img"(?P<rest> aria-label="[^"]*" width="(?P<width>\d+)" height="(?P<height>\d+)".*?</svg>)', re.DOTALL
)


def picture(*panels: tuple[str, str]) -> str:
    """One SVG file of panels side by side: each a caption, and HTML whose first picture it takes."""
    parts, x, height = [], _GAP, 0
    for caption, html in panels:
        found = _SVG.search(html)
        assert found, f"no picture in {html[:80]}"
        parts.append(f'<text x="{x}" y="{_GAP + 8}" font-weight="bold">{caption}</text>')
        parts.append(f'<svg x="{x}" y="{_GAP + _CAPTION}"{found["rest"]}')
        x += int(found["width"]) + 2 * _GAP
        height = max(height, int(found["height"]))
    width, height = x - _GAP, height + _CAPTION + 2 * _GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'color="#222" fill="#222" font-family="sans-serif" font-size="12">'
        f'<rect width="{width}" height="{height}" rx="6" fill="#fcfcfc"/>{"".join(parts)}</svg>\n'
    )


def shape(*sizes: int) -> sw.ShapeDtypeStruct:
    """An array of float32 without data."""
    return sw.ShapeDtypeStruct(sizes, np.float32)


def page(name: str, *blocks: int) -> dict[str, Any]:
    """The names that these blocks of a page define, so that a picture shows the page's own program."""
    found = pages.blocks_of((pages.DOCS / f"{name}.md").read_text())
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(None):
        for block in blocks:
            exec(compile(found[block].code, f"{name}.py", "exec"), names)
    return names


def program() -> str:
    """README, the landing page and the quickstart: the network, and the devices that hold its tiles."""
    quickstart = page("quickstart", 0)
    compiled = quickstart["mlp"].lower(shape(64, 32), shape(32, 128), shape(128, 32)).compile()
    return picture(("one program, for each of the 8 devices", graph_svg(compiled)))


def tiles() -> str:
    """The quickstart: the mesh, and the tiles of two arrays."""
    mesh = sw.Mesh({"data": 4, "model": 2})
    panels = [("the mesh", mesh_html(mesh))]
    for name, sizes, spec in (("x", (64, 32), P("data")), ("w1", (32, 128), P(None, "model"))):
        array = sw.device_put(np.zeros(sizes, np.float32), sw.NamedSharding(mesh, spec))
        panels.append((f"{name}: {spec}", array_html(array)))
    return picture(*panels)


def propagation() -> str:
    """How shardings propagate: the block of the page, of which two arguments are annotated."""
    compiled = sw.parse(page("propagation", 0, 1)["block"]).compile()
    return picture(("x and w1 are annotated; propagation infers the rest", graph_svg(compiled)))


def moe() -> str:
    """MoE: tokens travel to their experts and back."""

    def experts(x: Any, dispatch: Any, combine: Any, wi: Any, wo: Any) -> Any:
        to_experts = sw.split(np.einsum("gsec,gsm->egcm", dispatch, x), 0, "x")
        hidden = np.maximum(np.einsum("egcm,emh->egch", to_experts, wi), 0)
        from_experts = sw.split(np.einsum("egch,ehm->gecm", hidden, wo), 0, "x")
        return np.einsum("gsec,gecm->gsm", combine, from_experts)

    masks = shape(8, 16, 8, 4)
    function = sw.jit(experts, mesh=sw.Mesh({"x": 8}), in_shardings=P("x"))
    compiled = function.lower(shape(8, 16, 16), masks, masks, shape(8, 16, 32), shape(8, 32, 16)).compile()
    return picture(
        ("tokens to experts and back: x and masks are split by group, wi and wo by expert", graph_svg(compiled))
    )


def zero() -> str:
    """ZeRO: a data-parallel step whose momentum is split."""

    def step(w: Any, momentum: Any, x: Any) -> Any:
        momentum = 0.9 * momentum + sw.grad(lambda w: np.sum((x @ w) ** 2))(w)
        return w - 0.1 * momentum, momentum

    spec = P("data")
    mesh = sw.Mesh({"data": 4})
    function = sw.jit(step, mesh=mesh, in_shardings=(P(), spec, spec), out_shardings=(P(), spec))
    compiled = function.lower(shape(64, 32), shape(64, 32), shape(256, 64)).compile()
    return picture(("ZeRO-1: w is whole on each of 4 devices, and the momentum is split", graph_svg(compiled)))


def split_update() -> str:
    """Where the training page splits an update: a step of one weight with momentum, without and with the switch."""

    def step(w: Any, momentum: Any, x: Any) -> Any:
        momentum = 0.9 * momentum + sw.grad(lambda w: np.sum((x @ w) ** 2))(w)
        return w - 0.1 * momentum, momentum

    def graph(**options: Any) -> str:
        function = sw.jit(step, mesh=sw.Mesh({"data": 4}), in_shardings=(None, None, P("data")), **options)
        return graph_svg(function.lower(shape(64, 32), shape(64, 32), shape(256, 64)).compile())

    return picture(("data parallel", graph()), ('shard_update="data"', graph(shard_update="data")))


def layouts() -> str:
    """Which layout is chosen: the product of the page, for few tokens and for many."""
    compiled = page("which_layout", 0)["compiled"]
    few, many = (graph_svg(compiled(tokens)) for tokens in (4096, 32768))
    return picture(("4096 tokens: parts of the sum", few), ("32768 tokens: rows", many))


PICTURES: dict[str, Callable[[], str]] = {
    "program": program, "tiles": tiles, "propagation": propagation, "moe": moe, "zero": zero,
    "split_update": split_update, "layouts": layouts,
}  # fmt: skip


def main() -> None:
    """Write every picture."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw())


if __name__ == "__main__":
    main()
