# SPDX-License-Identifier: Apache-2.0
"""Files of safetensors: one flat dict of arrays, as libraries exchange weights. Through the package safetensors."""

from __future__ import annotations

import errno
import json
import math
import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ..array_leaves import numbers_of
from ..dtypes import dtype_name, numpy_dtype, way_to_numbers
from ..errors import CheckpointError, DTypeError, UnsupportedError, described, message, shown
from ..interop.optional import needs_safetensors
from ..process.traceback_filtering import entry_point
from ..recording.tracing import Tracer, current_trace
from ..trees import flatten, leaf_paths
from .files import explained_errors, rename, sync_file, sync_folder
from .folders import checked_path, make_folder
from .orbax_checkpoints import plain_keys
from .placing import checked_mesh, placed_tree
from .structure import named_leaf, named_trees
from .team import Team

__all__ = ["load_safetensors", "save_safetensors"]

_DTYPES = {
    "BOOL": "bool", "I8": "int8", "U8": "uint8", "I16": "int16", "U16": "uint16", "I32": "int32", "U32": "uint32",
    "I64": "int64", "U64": "uint64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "C64": "complex64", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
}  # fmt: skip
_RESERVED = "__metadata__"  # of the header


@entry_point
def load_safetensors(path: Any, mesh: Any = None, shardings: Any = None) -> dict[str, Any]:
    """Load the arrays of a safetensors file. It needs the package ``safetensors``.

    Each process reads only the parts that its devices need.

    Args:
        path: the file.
        mesh: the mesh of specs and text in ``shardings``; without ``shardings``, all arrays are replicated on it.
            Default: the default mesh, for specs and text.
        shardings: one sharding for all arrays, or a dict with one for each name, as for :func:`load`; None in the dict
            for a NumPy array. Default: replicated on ``mesh``, or NumPy arrays without one.

    Returns:
        A dict of the arrays by their names.

    Raises:
        UnsupportedError: the package is not installed, or the call is in a traced function. OSError: no such file, or
        no regular one. CheckpointError: the file is damaged, or has a dtype that programs cannot hold. ShardingError,
        MeshError: a sharding does not fit.
    """
    what = "load_safetensors"
    file = checked_path(what, path)
    mesh = checked_mesh(what, mesh)
    package = needs_safetensors(what)
    with explained_errors(what, file):
        _expect_regular(what, file)
        os.close(os.open(file, os.O_RDONLY))  # the package names no file that is missing
        views = _views(what, package, file)
        return dict(placed_tree(what, views, [], None, mesh, mesh if shardings is None else shardings))


def _expect_regular(what: str, file: Path) -> None:
    """Raise OSError for a folder, a device, a FIFO and a socket, also behind a symbolic link."""
    try:
        mode = os.stat(file).st_mode
    except (FileNotFoundError, NotADirectoryError):  # errors of what follows
        return
    if stat.S_ISDIR(mode):
        error = IsADirectoryError(message(what, "path must be a file", f"the folder {file}", "name a file in it"))
        error.errno = errno.EISDIR
        raise error
    if not stat.S_ISREG(mode):
        kinds = {stat.S_IFIFO: "FIFO", stat.S_IFSOCK: "socket"}
        got = f"the {kinds.get(stat.S_IFMT(mode), 'device')} {file}"
        other = OSError(message(what, "path must be a regular file", got, "pass another path"))
        other.errno = errno.EINVAL
        raise other


def _views(what: str, package: Any, file: Path) -> dict[str, np.ndarray]:
    """Views of the mapped file. The package checks its header."""
    try:
        with package.safe_open(file, framework="np") as opened:
            types = {name: opened.get_slice(name).get_dtype() for name in opened.keys()}  # noqa: SIM118 - it is no dict
    except package.SafetensorError as error:
        raise CheckpointError(message(what, "path must be a safetensors file", f"{error} in {file}")) from None
    for name, kind in types.items():
        if kind not in _DTYPES:
            rule = f"dtypes must be of {', '.join(_DTYPES)}"
            raise CheckpointError(message(what, rule, f"{kind} for {shown(name)} in {file}"))
    with open(file, "rb") as opened_file:
        size = int.from_bytes(opened_file.read(8), "little")
        header = json.loads(opened_file.read(size))
    found = {}
    for name, kind in types.items():
        shape, begin = tuple(header[name]["shape"]), 8 + size + header[name]["data_offsets"][0]
        dtype = numpy_dtype(_DTYPES[kind])
        is_empty = not math.prod(shape)  # which cannot be mapped
        found[name] = np.empty(shape, dtype) if is_empty else np.memmap(file, dtype, "r", begin, shape).view(np.ndarray)
    return found


@entry_point
def save_safetensors(path: Any, tree: Any, metadata: Mapping[str, str] | None = None) -> None:
    """Save the arrays of a tree as a safetensors file, which appears whole. It needs the package ``safetensors``.

    The names are the keys on the way to a leaf, with dots between them: ``layers.0.w``. With several MPI ranks, all of
    them call it: they gather each :class:`Array`, and rank 0 writes the file.

    Args:
        path: the file; it is replaced if it exists, and the folders above it are made if they do not. A symbolic link
            stays, and the file that it points to is replaced.
        tree: a tree of arrays of dtypes that the format has, and NumPy scalars. The file has no other values.
        metadata: texts for the header of the file.

    Raises:
        UnsupportedError: the package is not installed, or the call is in a traced function.
        DTypeError: a leaf that the format cannot hold, two leaves of one name, or a leaf ``__metadata__``, which is the
        format's name for ``metadata``. OSError: as for :func:`save`, or ``path`` is a folder, a device, a FIFO or a
        socket. TypeError: ``metadata`` that is not a dict of texts. A file that was there before stays as it was.
    """
    what = "save_safetensors"
    file = checked_path(what, path)
    if current_trace() is not None:
        way_out = "return the values, and save them outside"
        raise UnsupportedError(message(what, "must not be called in a traced function", None, way_out))
    is_dict = metadata is None or isinstance(metadata, Mapping)
    texts = dict(metadata) if is_dict and metadata is not None else None
    if not is_dict or not all(isinstance(text, str) for pair in (texts or {}).items() for text in pair):
        raise TypeError(message(what, "metadata must be a dict of texts", shown(metadata)))
    package = needs_safetensors(what)
    arrays = _named_arrays(what, tree)
    team = Team(what, file, f"{what} of {file}")
    with team.waiting():
        team.together(lambda: _write(what, package, file, arrays, texts) if team.rank == 0 else None)


def _named_arrays(what: str, tree: Any) -> dict[str, np.ndarray]:
    """The leaves by their names, gathered and row-major."""
    found: dict[str, np.ndarray] = {}
    with named_trees(what):
        paths, leaves = leaf_paths(tree), flatten(tree)[0]
    for path, leaf in zip(paths, leaves):
        name = ".".join(plain_keys(path))
        is_array = hasattr(leaf, "dtype") and not isinstance(leaf, Tracer)
        with named_leaf(what, f"leaf {shown(name)}"):
            array = numbers_of(leaf) if is_array else None
        if array is None or dtype_name(array.dtype) not in _DTYPES.values():
            rule = f"leaves must be arrays of {', '.join(_DTYPES.values())}"
            way_out = "convert it with astype, take it out, or use sw.save"
            if array is None:
                way_out = way_to_numbers(leaf) or way_out
            raise DTypeError(message(what, rule, f"{described(leaf)} for {shown(name)}", way_out))
        if name == _RESERVED:
            rule, way_out = f"no leaf may have the format's own name {_RESERVED!r}", "rename it, or pass metadata="
            raise DTypeError(message(what, rule, described(leaf), way_out))
        if name in found:
            raise DTypeError(message(what, "each leaf must have a name of its own", f"two leaves {shown(name)}"))
        found[name] = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
    return found


def _write(
    what: str, package: Any, file: Path, arrays: Mapping[str, np.ndarray], metadata: dict[str, str] | None
) -> None:
    """Write beside the file, and give it its name when it is on the disk."""
    _expect_regular(what, file)
    file = Path(os.path.realpath(file))  # a link stays, and what it points to is replaced
    make_folder(file.parent)
    draft = file.with_name(f".{secrets.token_hex(8)}.tmp")
    tensors = {
        name: package.TensorSpec(dtype=x.dtype.name, shape=x.shape, data_ptr=x.ctypes.data, data_len=x.nbytes)
        for name, x in arrays.items()
    }
    try:
        try:
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            package.serialize_file(tensors, draft, metadata=metadata)
        except package.SafetensorError as error:
            raise OSError(None, str(error), os.fspath(file)) from None
        fd = os.open(draft, os.O_RDWR)
        try:
            sync_file(fd)
        finally:
            os.close(fd)
        rename(draft, file)
        sync_folder(file.parent)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(draft)
        if isinstance(error, OSError) and error.filename is not None:  # the draft's, which nobody knows
            raise OSError(error.errno, error.strerror, os.fspath(file)) from None
        raise
