# SPDX-License-Identifier: Apache-2.0
"""Files of safetensors, and checkpoints that Orbax wrote."""

from __future__ import annotations

import errno
import os
import re
import sys
import warnings
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from shardwise.process.processes import use_processes
from tests.checkpoints.fake_ranks import OneRank
from tests.checkpoints.trees import assert_same, assert_shards, bits, of_dtype
from tests.support.oracles import oracle

jax = oracle("jax")
safetensors = oracle("safetensors")
safetensors_numpy = oracle("safetensors.numpy")

MESH = sw.Mesh({"x": 3})
ROWS = sw.NamedSharding(MESH, P("x"))
HELD = [
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e4m3fnuz", "float8_e5m2fnuz",
]  # fmt: skip


def error_of(kind: type[Exception], call: Callable[[], Any]) -> str:
    """The message, without the place in this file."""
    with pytest.raises(kind) as raised:
        call()
    return re.sub(r" \(at .*", "", str(raised.value))


# ---- safetensors ----------------------------------------------------------------------------------------------------


def test_safetensors_keep_every_dtype_of_the_format(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    tree = {name: of_dtype(name, (5, 4)) for name in HELD}
    sw.save_safetensors(file, tree)
    assert_same(sw.load_safetensors(file), tree)
    assert list(tmp_path.iterdir()) == [file]


def test_safetensors_are_those_of_the_package(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    w = sw.device_put(x, ROWS)
    sw.save_safetensors(file, {"layers": [{"w": w, "b": x[:, ::-1]}], "scale": np.float64(2)}, {"format": "np"})
    found = safetensors_numpy.load_file(file)
    assert_same(found, {"layers.0.w": x, "layers.0.b": x[:, ::-1], "scale": np.array(2.0)})
    with safetensors.safe_open(file, "np") as opened:
        assert opened.metadata() == {"format": "np"}
    safetensors_numpy.save_file({"a": x, "empty": x[:0], "ü.b": x.astype(np.int8)}, file)
    assert_same(sw.load_safetensors(file), {"a": x, "empty": x[:0], "ü.b": x.astype(np.int8)})


def test_safetensors_load_on_a_mesh(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    x = np.arange(35, dtype=np.float32).reshape(7, 5).astype(ml_dtypes.bfloat16)
    sw.save_safetensors(file, {"w": x, "b": x[0], "n": x})
    loaded = sw.load_safetensors(file, MESH, {"w": P("x", None), "b": ROWS, "n": None})
    assert_shards(loaded["w"], x)
    assert_shards(loaded["b"], x[0])
    assert [loaded[name].sharding for name in "wb"] == [sw.NamedSharding(MESH, P("x", None)), ROWS]
    assert bits(loaded["n"]) == bits(x)
    loaded["n"][:] = 0  # no view of the file
    assert bits(sw.load_safetensors(file)["n"]) == bits(x)
    assert [len(shard.data) for shard in sw.load_safetensors(file, shardings=ROWS)["w"].addressable_shards] == [3, 3, 1]


def test_a_mesh_alone_replicates(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    sw.save_safetensors(file, {"w": x, "n": np.int8(3)})
    loaded = sw.load_safetensors(file, mesh=MESH)
    assert {name: leaf.sharding for name, leaf in loaded.items()} == dict.fromkeys("nw", sw.NamedSharding(MESH, P()))
    assert_same(loaded, {"w": sw.device_put(x, MESH), "n": sw.device_put(np.array(3, np.int8), MESH)})


def test_folders_above_a_safetensors_file_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for file in (tmp_path / "a" / "b" / "x.safetensors", Path("c") / "x", Path("x")):
        sw.save_safetensors(file, {"w": np.arange(3)})
        assert_same(sw.load_safetensors(file), {"w": np.arange(3)})


def test_what_is_no_regular_file_is_neither_replaced_nor_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to(tmp_path / "fifo")
    device = Path(os.devnull)
    for path, kind in ((tmp_path / "fifo", "FIFO"), (tmp_path / "link", "FIFO"), (device, "device")):
        for what, call in (
            ("save_safetensors", lambda path=path: sw.save_safetensors(path, {"a": np.ones(2)})),
            ("load_safetensors", lambda path=path: sw.load_safetensors(path)),
        ):
            got = error_of(OSError, call)
            assert got == f"{what}: path must be a regular file, got the {kind} {path}; pass another path"
    assert (tmp_path / "fifo").is_fifo()
    assert device.is_char_device()


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "folder" / "v1", tmp_path / "newest"
    link.symlink_to(target)  # which does not exist yet
    for x in (np.arange(3), np.arange(5)):
        sw.save_safetensors(link, {"a": x})
        assert link.is_symlink()
        assert_same(sw.load_safetensors(target), {"a": x})
    assert list(target.parent.iterdir()) == [target]


def test_a_leaf_with_the_name_of_the_header_keeps_the_old_file(tmp_path: Path) -> None:
    """The package would write a file that no reader opens."""
    file, one = tmp_path / "model.safetensors", np.ones(2, np.float32)
    sw.save_safetensors(file, {"a": one})
    for metadata in (None, {"a": "b"}):
        got = error_of(
            sw.DTypeError,
            lambda m=metadata: sw.save_safetensors(file, {"__metadata__": one, "b": one}, m),  # type: ignore[misc]
        )
        assert got == (
            "save_safetensors: no leaf may have the format's own name '__metadata__', got float32[2]; rename it, or "
            "pass metadata="
        )
    assert_same(sw.load_safetensors(file), {"a": one})
    sw.save_safetensors(file, {"layer": {"__metadata__": one}})  # only the whole name is the format's
    assert_same(sw.load_safetensors(file), {"layer.__metadata__": one})


def test_errors_of_files_name_the_path_of_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the draft's, which is written first and has a random name."""
    file, one = tmp_path / "model.safetensors", np.ones(2, np.float32)
    (tmp_path / "folder").mkdir()
    got = f"path must be a file, got the folder {tmp_path}/folder; name a file in it"
    calls = {
        "save_safetensors": lambda: sw.save_safetensors(tmp_path / "folder", {"a": one}),
        "load_safetensors": lambda: sw.load_safetensors(tmp_path / "folder"),
    }
    for name, call in calls.items():
        assert error_of(IsADirectoryError, call) == f"{name}: {got}"
    sw.save_safetensors(file, {"a": one})
    got = error_of(OSError, lambda: sw.save_safetensors(file / "x", {"a": one}))
    assert got == f"save_safetensors: path must be a folder, got File exists for {file}; pass another path"
    real = os.open

    def refused(path: Any, *options: Any) -> int:
        if os.fspath(path).endswith(".tmp"):
            raise PermissionError(errno.EACCES, "Permission denied", os.fspath(path))
        return real(path, *options)

    monkeypatch.setattr(os, "open", refused)
    got = error_of(PermissionError, lambda: sw.save_safetensors(file, {"a": np.zeros(3)}))
    assert got.startswith("save_safetensors: the folder must be accessible to this user, got Permission denied for ")
    assert f"for {file};" in got
    assert_same(sw.load_safetensors(file), {"a": one})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "model.safetensors"]


def test_only_the_first_rank_writes_a_safetensors_file(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    with use_processes(OneRank(0, 2)):
        sw.save_safetensors(file, {"w": np.arange(3)})
    assert_same(sw.load_safetensors(file), {"w": np.arange(3)})


def test_messages_of_safetensors(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    one = np.ones(2, np.float32)
    dtypes = ", ".join(sw.checkpoints.safetensors_files._DTYPES.values())
    way_out = "convert it with astype, take it out, or use sw.save"
    got = error_of(sw.DTypeError, lambda: sw.save_safetensors(file, {"a": {"step": 3}}))
    assert got == f"save_safetensors: leaves must be arrays of {dtypes}, got int 3 for 'a.step'; {way_out}"
    got = error_of(sw.DTypeError, lambda: sw.save_safetensors(file, [np.ones(2, np.complex128)]))
    assert got == f"save_safetensors: leaves must be arrays of {dtypes}, got complex128[2] for '0'; {way_out}"
    got = error_of(sw.DTypeError, lambda: sw.save_safetensors(file, {"a": {"b": one}, "a.b": one}))
    assert got == "save_safetensors: each leaf must have a name of its own, got two leaves 'a.b'"
    got = error_of(TypeError, lambda: sw.save_safetensors(file, {"a": one}, {"a": 1}))  # type: ignore[dict-item]
    assert got == "save_safetensors: metadata must be a dict of texts, got {'a': 1}"
    got = error_of(FileNotFoundError, lambda: sw.load_safetensors(file))
    assert got == f"load_safetensors: the files must be accessible, got No such file or directory for {file}"
    file.write_bytes(b"no header")
    got = error_of(sw.CheckpointError, lambda: sw.load_safetensors(file))
    assert got.startswith("load_safetensors: path must be a safetensors file, got ")
    sw.save_safetensors(file, {"a": one})
    got = error_of(sw.MeshError, lambda: sw.load_safetensors(file, shardings=P("x")))
    assert got == "load_safetensors: a spec needs a mesh, got P('x') for tree['a']; pass mesh=, or a NamedSharding"
    assert list(tmp_path.iterdir()) == [file]


# ---- Orbax ----------------------------------------------------------------------------------------------------------

Moments = namedtuple("Moments", ["mu", "nu"])


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A checkpoint of Orbax, as one folder and as a step of a manager, and what it has."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        orbax = oracle("orbax.checkpoint")

    folder = tmp_path_factory.mktemp("orbax")
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    tree = {
        "w": jax.numpy.asarray(x, jax.numpy.bfloat16),
        "opt": Moments(x, (x[0],)),
        "step": 7,
        "rate": 0.5,
        "none": None,
        "e": {},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with orbax.PyTreeCheckpointer() as checkpointer:
            checkpointer.save(folder / "one", tree)
        with orbax.CheckpointManager(folder / "run") as manager:
            manager.save(3, args=orbax.args.StandardSave({"w": tree["w"]}))
    return folder, tree


def test_orbax_loads_with_and_without_like(written: tuple[Path, dict[str, Any]]) -> None:
    folder, tree = written
    w, x = np.asarray(tree["w"]), tree["opt"].mu
    plain = {"w": w, "opt": {"mu": x, "nu": [x[0]]}, "step": 7, "rate": 0.5, "none": None, "e": {}}
    assert_same(sw.load_orbax(folder / "one"), plain)
    like = {**plain, "w": sw.device_put(w, ROWS), "opt": Moments(0 * x, (sw.ShapeDtypeStruct((3,), np.float32),))}
    loaded = sw.load_orbax(folder / "one", like=like)
    assert_same(loaded, {**like, "opt": Moments(x, (x[0],))})
    assert_shards(loaded["w"], w)
    assert_same(sw.load_orbax(folder / "run" / "3", shardings={"w": ROWS}), {"w": sw.device_put(w, ROWS)})
    replicated = sw.load_orbax(folder / "one", mesh=MESH)
    assert replicated["w"].sharding == sw.NamedSharding(MESH, P())
    assert_same(
        replicated,
        {
            **sw.device_put({k: plain[k] for k in ("w", "opt")}, MESH),
            **{k: plain[k] for k in ("step", "rate", "none", "e")},
        },
    )


def test_what_orbax_wrote_becomes_a_checkpoint(written: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    loaded = sw.load_orbax(written[0] / "one")
    sw.save(tmp_path, loaded)
    assert_same(sw.load(tmp_path), loaded)


def test_messages_of_orbax(written: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, _ = written
    got = error_of(FileNotFoundError, lambda: sw.load_orbax(folder / "run"))
    assert got == f"load_orbax: path must be a checkpoint of Orbax, got {folder}/run; pass the folder of a step"
    got = error_of(FileNotFoundError, lambda: sw.load_orbax(tmp_path))
    assert got == f"load_orbax: path must be a checkpoint of Orbax, got {tmp_path}; load it with sw.load"
    got = error_of(FileNotFoundError, lambda: sw.load_orbax(tmp_path / "none"))
    assert got == f"load_orbax: the files must be accessible, got No such file or directory for {tmp_path}/none"
    got = error_of(sw.CheckpointError, lambda: sw.load_orbax(folder / "run" / "3", like={"w": np.zeros(3)}))
    assert got.startswith(
        "load_orbax: like must have the leaves of the checkpoint, got of another type: ['w'] bfloat16[4, 3]"
    )
    (tmp_path / "_METADATA").write_text("{")
    got = error_of(sw.CheckpointError, lambda: sw.load_orbax(tmp_path))
    assert got.startswith("load_orbax: Orbax must be able to read the checkpoint, got ")


@pytest.mark.parametrize(
    ("module", "package", "call"),
    [
        ("safetensors", "safetensors", lambda: sw.load_safetensors("x")),
        ("safetensors", "safetensors", lambda: sw.save_safetensors("x", {})),
        ("orbax.checkpoint", "orbax-checkpoint", lambda: sw.load_orbax("x")),
    ],
)
def test_a_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch, module: str, package: str, call: Callable[[], Any]
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    got = error_of(sw.UnsupportedError, call)
    assert got.endswith(f", got no module named {module}; pip install {package}")
