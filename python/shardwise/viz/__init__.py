# SPDX-License-Identifier: Apache-2.0
"""Draws meshes, arrays and programs as static HTML with inline SVG, for notebooks and reports."""

from __future__ import annotations

from .arrays import array_html, sharding_html
from .functions import function_html
from .graphs import graph_svg
from .inspected import inspected_text
from .meshes import mesh_html
from .programs import choices_html, module_html, program_html

__all__ = [
    "array_html",
    "choices_html",
    "function_html",
    "graph_svg",
    "inspected_text",
    "mesh_html",
    "module_html",
    "program_html",
    "sharding_html",
]
