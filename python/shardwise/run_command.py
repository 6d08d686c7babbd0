# SPDX-License-Identifier: Apache-2.0
"""``shardwise run``: the arguments of a program from ``.npy`` and ``.npz`` files, and its results as text or files.

shardwise run mlp.mlir --arg x.npy --arg w=weights.npy --mesh data=4,model=2 --out results
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from .array import Array
from .errors import MeshError, message
from .programs.stages import Program
from .shardings.mesh import Mesh

__all__ = ["ArgumentFileError", "ArgumentsError", "mesh_of_text", "results_of_run"]

Arguments = tuple[list[Any], dict[str, Any]]  # by position, by name
_UNNAMED = "arr_"  # the names of np.savez for arrays without a name: arr_0, arr_1, …


class ArgumentFileError(Exception):
    """A file of arguments or results that cannot be read or written, as ``FILE: error: …``."""


class ArgumentsError(Exception):
    """Missing, unknown or repeated arguments of a program."""


def mesh_of_text(text: str) -> Mesh:
    """The mesh of ``data=4,model=2``.

    Raises:
        MeshError: another text, or a wrong size.

    >>> mesh_of_text("data=4,model=2")
    Mesh('data': 4, 'model': 2)
    """
    axes: dict[str, int] = {}
    for part in text.split(","):
        name, _, size = (word.strip() for word in part.partition("="))
        if not name or not size.isdecimal() or name in axes:
            raise MeshError(message("--mesh", "must be NAME=SIZE,… with different names", repr(text)))
        axes[name] = int(size)
    return Mesh(axes)


def results_of_run(program: Program, given: Sequence[str], folder: str | None) -> str:
    """Run a program. Returns the text of its results, or of the files they went to, and its ledger.

    Args:
        program: a compiled text.
        given: a file for each argument, ``x.npy`` by position or ``x=x.npy`` by name; of ``.npz``, all its arrays.
        folder: where to write ``result_0.npy``, …; None shows the results instead.
    """
    positional, named = _loaded(given)
    try:
        program._traced._leaves_of_call(tuple(positional), named)
    except TypeError as error:
        raise ArgumentsError(str(error)) from None
    results = program(*positional, **named)
    arrays = [np.asarray(one) for one in ([results] if isinstance(results, Array) else results)]
    lines = _shown(arrays) if folder is None else _written(arrays, folder)
    return "\n".join([*lines, repr(program.collectives()), ""])


def _loaded(given: Sequence[str]) -> Arguments:
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for text in given:
        name, path = _name_and_path(text)
        loaded = _load(path)
        if isinstance(loaded, np.ndarray):
            rows = [(name, loaded)]
        elif name:
            raise ArgumentFileError(f"{path}: error: an .npz file has names for its arrays; leave out {name}=")
        else:
            rows = [("" if key.removeprefix(_UNNAMED).isdecimal() else key, array) for key, array in loaded.items()]
        for key, array in rows:
            if key in named:
                raise ArgumentFileError(f"{path}: error: argument {key} is given twice")
            if key:
                named[key] = array
            else:
                positional.append(array)
    return positional, named


def _name_and_path(text: str) -> tuple[str, str]:
    """Split ``NAME=FILE`` at the first ``=`` that a file follows: both may contain others. No name: ("", path)."""
    words = text.split("=")
    splits = [("", text)] + [("=".join(words[:i]), "=".join(words[i:])) for i in range(1, len(words))]
    found = [split for split in splits if os.path.exists(split[1])]
    return (found or splits[1:] or splits)[0]


def _load(path: str) -> Any:
    """An array, or the arrays of an .npz file by name."""
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            return dict(loaded)
    except OSError as error:
        raise ArgumentFileError(f"{path}: error: {error.strerror or error}") from None
    except (ValueError, EOFError, zipfile.BadZipFile):
        raise ArgumentFileError(f"{path}: error: it must be an .npy or .npz file without objects") from None


def _type_text(array: np.ndarray) -> str:
    return f"{array.dtype.name}[{','.join(map(str, array.shape))}]"


def _shown(arrays: Sequence[np.ndarray]) -> list[str]:
    lines = []
    for i, array in enumerate(arrays):
        lines += [f"result {i}: {_type_text(array)}", np.array2string(array)]
    return lines


def _written(arrays: Sequence[np.ndarray], folder: str) -> list[str]:
    lines = []
    try:
        os.makedirs(folder, exist_ok=True)
        for i, array in enumerate(arrays):
            path = os.path.join(folder, f"result_{i}.npy")
            np.save(path, array)
            lines.append(f"result {i}: {_type_text(array)} in {path}")
    except OSError as error:
        raise ArgumentFileError(f"{error.filename or folder}: error: {error.strerror or error}") from None
    return lines
