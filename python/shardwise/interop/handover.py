# SPDX-License-Identifier: Apache-2.0
"""Programs for other engines: ``Program.to_jax``, ``Program.to_source`` and ``Program.jax_shardings``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from ..errors import MeshError, described, is_one_of, message, shown
from ..process.implementations import provides
from ..process.traceback_filtering import entry_point
from ..programs.stages import Program
from .jax_shardings import JaxShardings, annotated, shardings_of
from .optional import EXPORTING_JAXLIB, jax, needs_jax, needs_jaxlib
from .source.script import script_of
from .to_jax import JAX
from .to_jax.export import export_text
from .to_jax.program import JaxProgram
from .to_mpi4py import MPI4PY

__all__ = ["annotate_jax"]

_TARGETS = {target.name: target for target in (JAX, MPI4PY)}


@provides("to_jax")
def to_jax(program: Program, devices: Sequence[Any] | None, mesh: Any) -> JaxProgram:
    """Implements :meth:`Program.to_jax`."""
    needs_jax("to_jax")
    if isinstance(mesh, jax.sharding.AbstractMesh):
        way_out = 'pass a jax.sharding.Mesh, or read as_text("export"), which needs none'
        raise MeshError(message("to_jax", "mesh must have devices", described(mesh), way_out))
    return JaxProgram(program, script_of(program, JAX, is_read=False), devices, mesh)


@provides("export_text")
def exported(program: Program, locations: bool, generic: bool) -> str:
    """Implements ``Program.as_text("export")``."""
    needs_jaxlib('as_text("export")', EXPORTING_JAXLIB)
    return export_text(program, locations, generic)


@provides("jax_shardings")
def jax_shardings(program: Program, devices: Sequence[Any] | None, mesh: Any) -> JaxShardings:
    """Implements :meth:`Program.jax_shardings`."""
    needs_jax("jax_shardings")
    return shardings_of(program, devices, mesh)


@provides("to_source")
def to_source(program: Program, target: str, path: str | os.PathLike[str] | None) -> str:
    """Implements :meth:`Program.to_source`."""
    if not is_one_of(target, _TARGETS):
        raise ValueError(message("to_source", f"target must be {' or '.join(map(repr, _TARGETS))}", repr(target)))
    if path is not None and not isinstance(path, (str, os.PathLike)):
        raise TypeError(message("to_source", "path must be a str, a Path or None", shown(path)))
    script = script_of(program, _TARGETS[target])
    count = program.mesh.size
    title = f"{script.name} on {count} device{'' if count == 1 else 's'}, {script.axes.sizes}; made by shardwise."
    if path is None:
        return script.whole(title, None)
    file = Path(path)
    constants = script.stored
    text = script.whole(title, file.with_suffix(".npz").name if constants else None)
    file.write_text(text, encoding="utf-8")
    if constants:
        np.savez(file.with_suffix(".npz"), **cast("dict[str, Any]", constants))
    return text


@entry_point
def annotate_jax(
    fun: Callable[..., Any], program: Program, devices: Sequence[Any] | None = None, mesh: Any = None
) -> Callable[..., Any]:
    """Make a function of JAX that has the shardings of a program.

    Args:
        fun: the JAX function from which :func:`from_jax` made the program.
        program: the compiled program.
        devices: as in :meth:`Program.to_jax`.
        mesh: a `jax.sharding.Mesh`.

    Returns:
        The function with `jax.lax.with_sharding_constraint` on its arguments, its results, and the values that
        `jax.ad_checkpoint.checkpoint_name` names. XLA partitions it, unlike the function of :meth:`Program.to_jax`.

    Raises:
        UnsupportedError: JAX is missing or too old. MeshError: too few devices.
        ShardingError: a dim that its devices do not divide, for which JAX drops constraints.
    """
    if not isinstance(program, Program):
        raise TypeError(message("annotate_jax", "takes a compiled program", repr(program), "call .compile() first"))
    needs_jax("annotate_jax")
    return annotated(fun, program, devices, mesh)
