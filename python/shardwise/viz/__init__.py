# SPDX-License-Identifier: Apache-2.0
"""Pictures of meshes, arrays and programs: static HTML with inline SVG, for notebooks and reports."""

from __future__ import annotations

from .arrays import array_html
from .meshes import mesh_html
from .programs import program_html

__all__ = ["array_html", "mesh_html", "program_html"]
