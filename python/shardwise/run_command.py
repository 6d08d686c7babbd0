# SPDX-License-Identifier: Apache-2.0
"""``shardwise run``: the arguments of a program from ``.npy`` and ``.npz`` files, and its results as text or files.

shardwise run mlp.mlir --arg x.npy --arg w=weights.npy --mesh data=4,model=2 --out results
shardwise run mlp.mlir --dry-run --json
"""

from __future__ import annotations

import argparse
import json
import os
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from .array import Array
from .errors import MeshError, message
from .programs.stages import Program
from .shardings.mesh import Mesh

__all__ = ["ArgumentFileError", "ArgumentsError", "mesh_of_text", "plan_of", "results_of_run"]

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


def plan_of(program: Program, as_json: bool) -> str:
    """The collectives and the peak memory of a program, which follow from its shapes, as text or JSON."""
    ledger, memory = program.collectives(), program.memory()
    if as_json:
        return json.dumps({"collectives": ledger.to_dict(), "memory": memory.to_dict()}) + "\n"
    return f"{ledger!r}\n\n{memory!r}\n"


def results_of_run(program: Program, options: argparse.Namespace) -> str:
    """Run a program. Returns the text or JSON of its results, or of the files they went to, and its ledger.

    Args:
        program: a compiled text.
        options: ``arg``, a file for each argument, ``x.npy`` by position or ``x=x.npy`` by name; of ``.npz``, all its
            arrays; ``out``, where to write ``result_0.npy``, …, or None to show the results instead; ``json``.
    """
    positional, named = _loaded(options.arg)
    try:
        program._traced._leaves_of_call(tuple(positional), named)
    except TypeError as error:
        raise ArgumentsError(str(error)) from None
    results = program(*positional, **named)
    arrays = [np.asarray(one) for one in ([results] if isinstance(results, Array) else results)]
    paths = [None] * len(arrays) if options.out is None else _written(arrays, options.out)
    if options.json:
        rows = [_record(array, path) for array, path in zip(arrays, paths)]
        return json.dumps({"results": rows, "collectives": program.collectives().to_dict()}) + "\n"
    lines = []
    for i, (array, path) in enumerate(zip(arrays, paths)):
        head = f"result {i}: {_type_text(array)}"
        lines += [head, np.array2string(array)] if path is None else [f"{head} in {path}"]
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


def _record(array: np.ndarray, path: str | None) -> dict[str, Any]:
    """A result as values that JSON supports: its elements, or the file that has them."""
    kind = {"dtype": array.dtype.name, "shape": list(array.shape)}
    if path is not None:
        return {**kind, "file": path}
    parts = [array.real, array.imag] if array.dtype.kind == "c" else [array]
    lists = [(part if part.dtype.kind in "biuf" else part.astype(np.float64)).tolist() for part in parts]
    return {**kind, "values": lists[0]} if len(lists) == 1 else {**kind, "real": lists[0], "imag": lists[1]}


def _written(arrays: Sequence[np.ndarray], folder: str) -> list[str]:
    """Write the results to files; their paths."""
    paths = [os.path.join(folder, f"result_{i}.npy") for i in range(len(arrays))]
    try:
        os.makedirs(folder, exist_ok=True)
        for array, path in zip(arrays, paths):
            np.save(path, array)
    except OSError as error:
        raise ArgumentFileError(f"{error.filename or folder}: error: {error.strerror or error}") from None
    return paths
