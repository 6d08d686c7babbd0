# SPDX-License-Identifier: Apache-2.0
"""A jitted function: its parameters, the options of its jit, and its mesh."""

from __future__ import annotations

from html import escape
from inspect import signature
from typing import TYPE_CHECKING, Any

from ..svg import code
from .meshes import mesh_html

if TYPE_CHECKING:
    from ..jit.function import JitFunction

__all__ = ["function_html"]


def function_html(function: JitFunction, options: dict[str, Any]) -> str:
    """A jitted function: its parameters, the options that the user gave to ``jit``, and the mesh that it is for."""
    given = {name: value for name, value in options.items() if name != "mesh"}
    rows = "".join(f"<tr><td>{escape(name)}</td><td>{code(repr(value))}</td></tr>" for name, value in given.items())
    table = f"<table><tbody>{rows}</tbody></table>" if rows else ""
    picture = mesh_html(options["mesh"]) if "mesh" in options else ""
    return f"<div>{code(f'{function!r} {_parameters(function)}'.rstrip())}{table}{picture}</div>"


def _parameters(function: JitFunction) -> str:
    try:
        return str(signature(function._plain_function))
    except (TypeError, ValueError):  # of a function without one
        return ""
