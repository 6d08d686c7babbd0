# SPDX-License-Identifier: Apache-2.0
"""The manifest of a checkpoint: JSON with the tree, its leaves, and where the blocks of each array are.

The last member is the CRC-32 of the text before it, so a damaged manifest is found, too. Everything that is read is
checked: a manifest names no file outside of its folder, and no array that is larger than its blocks.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from ..dtypes import is_dtype_name, numpy_dtype
from ..errors import CheckpointError, message
from .chunks import chunk_count
from .structure import decoded_value

__all__ = ["ArrayEntry", "Manifest", "block_sizes", "block_starts", "blocks_file", "manifest_bytes", "read_manifest"]

FORMAT = "shardwise checkpoint"
VERSION = 1
_SEAL = re.compile(rb',\n"crc32": (\d{1,10})}\n?')
_FILE = re.compile(r"blocks-(0|[1-9]\d{0,8})")
_MOST_DIMS = 64  # NumPy's


class ArrayEntry(NamedTuple):
    """An array of a checkpoint: a grid of blocks of one shape, of which the last ones of a dim may be shorter.

    ``blocks`` has, for each block in row-major order, the number of its file, the offset there, and the CRC-32 of each
    of its chunks.
    """

    dtype: str
    shape: tuple[int, ...]
    block: tuple[int, ...]
    blocks: list[tuple[int, int, list[int]]]

    def grid(self) -> tuple[int, ...]:
        """The number of blocks along each dim."""
        return tuple(-(-size // part) for size, part in zip(self.shape, self.block))


class Manifest(NamedTuple):
    """A checked manifest."""

    step: int
    tree: Any  # see structure.py
    leaves: list[dict[str, Any]]
    meshes: list[Any]
    files: dict[int, int]  # the size of each file
    chunk_bytes: int


def blocks_file(number: int) -> str:
    """The name of the file with the blocks that one rank wrote."""
    return f"blocks-{number}"


def manifest_bytes(manifest: Manifest) -> bytes:
    """The text of a manifest, in ASCII."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "step": manifest.step,
        "files": {blocks_file(number): size for number, size in manifest.files.items()},
        "chunk_bytes": manifest.chunk_bytes,
        "meshes": manifest.meshes,
        "tree": manifest.tree,
    }
    members = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in document.items()]
    leaves = ",\n".join(json.dumps(leaf) for leaf in manifest.leaves)
    members.append(f'"leaves": [\n{leaves}\n]')
    text = ("{" + ",\n".join(members)).encode("ascii")
    return text + b',\n"crc32": %d}\n' % zlib.crc32(text)


def read_manifest(what: str, data: bytes, path: Path, way_out: str) -> Manifest:
    """Parse and check a manifest. Raises CheckpointError for what no save has written."""
    seal = _SEAL.search(data, max(0, len(data) - 32))
    document = _document(data)
    version = document.get("version") if document is not None and document.get("format") == FORMAT else None
    if isinstance(version, int) and version > VERSION:
        rule = f"the format of a checkpoint must be version {VERSION} or older"
        raise CheckpointError(message(what, rule, f"version {version} in {path}", "load it with a newer shardwise"))
    if document is None or version != VERSION or seal is None or seal.end() != len(data):
        got = f"{path}, which is cut short or damaged" if document is None else f"another document in {path}"
        raise CheckpointError(message(what, "the manifest must be that of a checkpoint", got, way_out))
    if zlib.crc32(data[: seal.start()]) != int(seal[1]):
        got = f"another CRC-32 for {path}, which is damaged"
        raise CheckpointError(message(what, "the manifest must be as it was written", got, way_out))
    try:
        return _checked(document)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        got = f"{type(error).__name__} {error} in {path}"
        raise CheckpointError(message(what, "the manifest must describe a checkpoint", got, way_out)) from None


def _document(data: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _checked(document: dict[str, Any]) -> Manifest:
    files: dict[int, int] = {}
    for name, size in document["files"].items():
        match = _FILE.fullmatch(name)
        if match is None:
            raise ValueError(f"file name {name!r}")
        files[int(match[1])] = _size(size)
    chunk_bytes = _size(document["chunk_bytes"])
    if chunk_bytes < 1:
        raise ValueError("chunks without bytes")
    leaves = [_leaf(leaf, files, chunk_bytes) for leaf in document["leaves"]]
    meshes = document["meshes"]
    if not isinstance(meshes, list):
        raise TypeError("meshes that are no list")
    for leaf in leaves:
        if "mesh" in leaf and not (_size(leaf["mesh"]) < len(meshes) and isinstance(leaf["sharding"], str)):
            raise ValueError(f"mesh {leaf['mesh']}")
    return Manifest(_size(document["step"]), document["tree"], leaves, meshes, files, chunk_bytes)


def _leaf(leaf: dict[str, Any], files: dict[int, int], chunk_bytes: int) -> dict[str, Any]:
    if not isinstance(leaf["name"], str) or not isinstance(leaf["kind"], str):
        raise TypeError("a leaf without a name or a kind")
    if leaf["kind"] == "value":
        decoded_value(leaf["value"])
        return {"name": leaf["name"], "kind": "value", "value": leaf["value"]}
    shape, block = ([_size(size) for size in leaf[key]] for key in ("shape", "block"))
    if len(shape) != len(block) or len(shape) > _MOST_DIMS or not all(block) or not is_dtype_name(leaf["dtype"]):
        raise ValueError(f"array {leaf['name']}")
    blocks = [(_size(file), _size(offset), [_size(crc) for crc in crcs]) for file, offset, crcs in leaf["blocks"]]
    entry = ArrayEntry(leaf["dtype"], tuple(shape), tuple(block), blocks)
    _check_blocks(entry, files, chunk_bytes)
    return {**leaf, "array": entry}


def _check_blocks(entry: ArrayEntry, files: dict[int, int], chunk_bytes: int) -> None:
    """The blocks must be all of the array, and lie in their files."""
    grid, itemsize = entry.grid(), numpy_dtype(entry.dtype).itemsize
    if math.prod(grid) != len(entry.blocks):
        raise ValueError(f"{len(entry.blocks)} blocks for a grid of {list(grid)}")
    for number, (file, offset, crcs) in enumerate(entry.blocks):
        sizes = block_sizes(entry, number)
        if offset + math.prod(sizes) * itemsize > files[file]:
            raise ValueError(f"a block beyond the end of {blocks_file(file)}")
        if len(crcs) != chunk_count(sizes, itemsize, chunk_bytes):
            raise ValueError(f"{len(crcs)} chunks of a block of {sizes}")


def block_starts(entry: ArrayEntry, number: int) -> list[int]:
    """Where a block of the grid begins in the array."""
    starts = []
    for count, part in zip(reversed(entry.grid()), reversed(entry.block)):
        number, place = divmod(number, count)
        starts.append(place * part)
    return starts[::-1]


def block_sizes(entry: ArrayEntry, number: int) -> list[int]:
    """The shape of a block of the grid."""
    return [min(part, size - start) for start, size, part in zip(block_starts(entry, number), entry.shape, entry.block)]


def _size(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError(f"number {value!r}")
    return value
