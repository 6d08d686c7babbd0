# SPDX-License-Identifier: Apache-2.0
"""Pictures of meshes, arrays and programs: static HTML with inline SVG, for notebooks and reports."""

from __future__ import annotations

from .html import array_html, mesh_html, program_html

__all__ = ["array_html", "mesh_html", "program_html"]
