# SPDX-License-Identifier: Apache-2.0
"""Damaged checkpoints: each flipped bit and each cut is found, and the message names the file and the way out."""

from __future__ import annotations

import json
import re
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.checkpoints.trees import assert_same

TREE = {"w": np.arange(24, dtype=np.float32).reshape(4, 6), "step": 3, "names": ("a", None)}


@pytest.fixture
def step(tmp_path: Path) -> Path:
    """The folder of a checkpoint on 4 devices; step 1 is before it."""
    sw.save(tmp_path, TREE, step=1)
    rows = sw.NamedSharding(sw.Mesh({"x": 4}), P("x"))
    sw.save(tmp_path, {**TREE, "w": sw.device_put(TREE["w"], rows)}, step=2)
    return tmp_path / "step-2"


def error_of(folder: Path, **options: Any) -> str:
    """The message of a load that must find damage; without the place in this file."""
    with pytest.raises(sw.CheckpointError) as raised:
        sw.load(folder, **options)
    return re.sub(r" \(at .*", "", str(raised.value)).replace(str(folder), "DIR")


def finds_damage(folder: Path) -> bool:
    try:
        sw.load(folder)
    except sw.CheckpointError:
        return True
    return False


def test_every_flipped_byte_is_found(step: Path) -> None:
    missed = []
    for file in sorted(step.iterdir()):
        whole = file.read_bytes()
        for i in range(len(whole)):
            bit = 1 << i % 8
            file.write_bytes(whole[:i] + bytes([whole[i] ^ bit]) + whole[i + 1 :])
            if not finds_damage(step):
                missed.append((file.name, i))
        file.write_bytes(whole)
    # Only the newline at the end can go without harm.
    end = (step / "manifest.json").stat().st_size - 1
    assert [place for place in missed if place != ("manifest.json", end)] == []
    assert not finds_damage(step)


def test_every_cut_is_found(step: Path) -> None:
    missed = []
    for file in sorted(step.iterdir()):
        whole = file.read_bytes()
        for size in range(len(whole) - 1):  # without the newline at the end, a manifest is whole
            file.write_bytes(whole[:size])
            if not finds_damage(step):
                missed.append((file.name, size))
        file.write_bytes(whole)
    assert missed == []
    (step / "blocks-0").write_bytes((step / "blocks-0").read_bytes() + b"\0")
    assert finds_damage(step)


def test_messages_name_the_file_and_the_way_out(step: Path) -> None:
    blocks, manifest = step / "blocks-0", step / "manifest.json"
    whole, text = blocks.read_bytes(), manifest.read_bytes()
    run = step.parent
    blocks.write_bytes(whole[:-1])
    cut = (
        "load: files must be as they were written, got 95 of 96 bytes in DIR/step-2/blocks-0; load another step: step=1"
    )
    assert error_of(run) == cut
    blocks.write_bytes(whole[:30] + b"!" + whole[31:])
    flipped = "load: blocks must be as they were written, got another CRC-32 for ['w'] in DIR/step-2/blocks-0"
    assert error_of(run) == f"{flipped}, which is damaged; load another step: step=1"
    blocks.unlink()
    missing = "load: all files of a checkpoint must be there, got no file DIR/blocks-0; restore the folder from a copy"
    assert error_of(step) == missing
    blocks.write_bytes(whole)
    manifest.write_bytes(text[:40])
    short = "load: the manifest must be that of a checkpoint, got DIR/step-2, which is cut short or damaged"
    assert error_of(run, step=2) == f"{short}; load another step: step=1"
    manifest.write_bytes(text.replace(b'"step": 2', b'"step": 9'))
    other = "load: the manifest must be as it was written, got another CRC-32 for DIR/step-2, which is damaged"
    assert error_of(run) == f"{other}; load another step: step=1"
    manifest.write_bytes(b'{"a": 1}')
    assert error_of(run).startswith(
        "load: the manifest must be that of a checkpoint, got another document in DIR/step-2;"
    )
    manifest.unlink()
    assert (
        error_of(run)
        == "load: a checkpoint must have a file manifest.json, got none in DIR/step-2; load another step: step=1"
    )
    assert_same(sw.load(run, step=1), TREE)


def test_a_newer_format_is_refused_and_named(step: Path) -> None:
    rewrite(step, lambda manifest: manifest.update(version=7))
    expected = "load: the format of a checkpoint must be version 1 or older, got version 7 in DIR"
    assert error_of(step) == f"{expected}; load it with a newer shardwise"


def rewrite(step: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the manifest, and give it the right CRC-32."""
    file = step / "manifest.json"
    document = json.loads(file.read_bytes())
    document.pop("crc32")
    change(document)
    text = json.dumps(document).encode()[:-1]
    file.write_bytes(text + b',\n"crc32": %d}\n' % zlib.crc32(text))


def leaf(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in manifest["leaves"] if each["name"] == "['w']")
    return found


CRAFTED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a file elsewhere": lambda m: m.update(files={"../blocks-0": 96}),
    "an absolute file": lambda m: m.update(files={"/etc/passwd": 96}),
    "no files": lambda m: m.update(files={}),
    "a negative size": lambda m: m.update(files={"blocks-0": -1}),
    "a huge array": lambda m: leaf(m).update(shape=[2**40, 6]),
    "a huge array of huge blocks": lambda m: leaf(m).update(shape=[2**40, 6], block=[2**38, 6]),
    "no chunks": lambda m: leaf(m).update(blocks=[[0, 0, []]] * 4),
    "a block beyond the end": lambda m: leaf(m)["blocks"][3].__setitem__(1, 90),
    "a missing block": lambda m: leaf(m)["blocks"].pop(),
    "blocks of size 0": lambda m: leaf(m).update(block=[0, 6]),
    "an unknown dtype": lambda m: leaf(m).update(dtype="object"),
    "a dtype that is no text": lambda m: leaf(m).update(dtype=["float32"]),
    "dims that are no list": lambda m: leaf(m).update(shape=3),
    "fractions": lambda m: leaf(m).update(shape=[4.0, 6]),
    "an unknown mesh": lambda m: leaf(m).update(mesh=5),
    "a sharding that is no text": lambda m: leaf(m).update(sharding=[]),
    "a sharding of other axes": lambda m: leaf(m).update(sharding='[{"q"}, {}]'),
    "a sharding of other dims": lambda m: leaf(m).update(sharding='[{"x"}]'),
    "a sharding cut short": lambda m: leaf(m).update(sharding='[{"x'),
    "a mesh that is none": lambda m: m.update(meshes=[3]),
    "a mesh without devices": lambda m: m["meshes"][0]["axes"][0].update(size=0),
    "meshes that are no list": lambda m: m.update(meshes={"0": 1}),
    "a leaf that is no leaf": lambda m: m.update(leaves=[3]),
    "no leaves": lambda m: m.pop("leaves"),
    "an unknown value": lambda m: m["leaves"][0].update(kind="value", value={"pickle": "x"}),
    "a tree without its leaves": lambda m: m.update(tree={"list": [0, 99]}),
    "an unknown node": lambda m: m.update(tree={"set": [0]}),
    "a node of two kinds": lambda m: m.update(tree={"list": [], "tuple": []}),
    "a tree that is a number too many": lambda m: m.update(tree=0.5),
    "chunks of no bytes": lambda m: m.update(chunk_bytes=0),
    "another format": lambda m: m.update(format="numpy"),
    "a version that is no number": lambda m: m.update(version="1"),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_manifest_is_refused(step: Path, name: str) -> None:
    rewrite(step, CRAFTED[name])
    assert error_of(step).startswith("load: ")


@pytest.mark.parametrize(
    "text", [b"", b"[" * 100_000, b"\xff\xfe", b"null", b'{"format": "shardwise checkpoint"}', b"1" * 9000]
)
def test_other_documents_are_refused(step: Path, text: bytes) -> None:
    (step / "manifest.json").write_bytes(text)
    assert error_of(step).startswith("load: the manifest must be that of a checkpoint, got ")


def test_a_tree_that_is_nested_too_deep_is_refused(step: Path) -> None:
    tree: Any = None
    for _ in range(100):
        tree = {"list": [tree]}
    rewrite(step, lambda manifest: manifest.update(tree=tree))
    assert sw.load(step) is not None
    deep = (b'{"list": [' * 5000) + b"null" + (b"]}" * 5000)
    text = b'{"format": "shardwise checkpoint", "version": 1, "step": 0, "files": {}, "chunk_bytes": 1, "meshes": [], '
    text += b'"tree": ' + deep + b', "leaves": []'
    (step / "manifest.json").write_bytes(text + b',\n"crc32": %d}\n' % zlib.crc32(text))
    assert error_of(step).startswith("load: the manifest must ")


def test_a_folder_of_another_step_loads_by_its_own_path(step: Path) -> None:
    shutil.copytree(step, step.parent / "copy")
    assert_same(sw.load(step.parent / "copy", like=TREE), TREE)
