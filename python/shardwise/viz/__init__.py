# SPDX-License-Identifier: Apache-2.0
"""Draws meshes, arrays and programs as static HTML with inline SVG, for notebooks and reports."""

from __future__ import annotations

from .arrays import array_html
from .graphs import graph_svg
from .meshes import mesh_html
from .programs import program_html

__all__ = ["array_html", "graph_svg", "mesh_html", "program_html"]
