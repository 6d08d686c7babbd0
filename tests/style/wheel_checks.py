# SPDX-License-Identifier: Apache-2.0
"""What the wheels in dist/ must be. `make wheel` runs this file by its name; plain pytest does not collect it."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from tests.style.source_tree import ROOT

WHEELS = sorted((ROOT / "dist").glob("*.whl"))
each_wheel = pytest.mark.parametrize("wheel", WHEELS, ids=lambda path: path.name)

# Functions that call hypot, on several threads, with special values. A wheel calls the old version of hypot, and the
# numbers must be the same.
NUMBERS = """
import hashlib, itertools
import numpy as np
import shardwise as sw
special = [0.0, -0.0, 1.0, -1.0, 5e-324, 2.3e-308, 1.7e308, -1.7e308, np.inf, -np.inf, np.nan]
drawn = np.random.Generator(np.random.PCG64(7)).integers(0, 2**64, (2, 1 << 17), np.uint64).view(np.float64)
pairs = np.concatenate([np.array(list(itertools.product(special, special))).T, drawn], axis=1)
z = np.empty(pairs.shape[1], np.complex128)
z.real, z.imag = pairs
with np.errstate(all="ignore"):
    narrow = z.astype(np.complex64)
for x in (z, narrow):
    for function in (np.sign, np.sqrt, np.log):
        result = np.asarray(sw.jit(function, mesh=sw.Mesh({"d": 1}))(x))
        print(function.__name__, x.dtype, hashlib.sha256(result.tobytes()).hexdigest())
"""


def python_of(wheel: Path) -> str:
    """The version in the wheel's name: ``3.11`` of ``cp311``."""
    major, minor = re.search(r"-cp(\d)(\d+)-cp\1\2-", wheel.name).groups()  # type: ignore[union-attr]
    return f"{major}.{minor}"


def output(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT / "build").stdout


def test_there_is_a_wheel() -> None:
    assert WHEELS


@each_wheel
def test_the_wheel_installs_where_glibc_is_2_34(wheel: Path) -> None:
    shown = " ".join(output(ROOT / ".venv" / "bin" / "auditwheel", "show", wheel).split())
    assert 'consistent with the following platform tag: "manylinux_2_34_x86_64"' in shown
    assert "manylinux_2_34_x86_64" in wheel.name


@each_wheel
def test_the_wheel_holds_the_package_and_what_it_links(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        metadata = message_from_bytes(archive.read(next(n for n in names if n.endswith("/METADATA"))))
    extensions = [name for name in names if re.fullmatch(r"shardwise/_core\.[\w-]+\.so", name)]
    version = python_of(wheel).replace(".", "")
    assert extensions == [f"shardwise/_core.cpython-{version}-x86_64-linux-gnu.so"]
    package = ROOT / "python"
    sources = {
        str(p.relative_to(package)) for p in (package / "shardwise").rglob("*.py*") if "__pycache__" not in p.parts
    }
    assert {name for name in names if name.startswith("shardwise/")} - sources <= {*extensions, "shardwise/py.typed"}
    assert sources <= set(names)
    bundled = {re.sub(r"[-.].*", "", name.rpartition("/")[2]) for name in names if name.startswith("shardwise.libs/")}
    assert bundled == {"libsleef", "libgfortran", "libquadmath"}
    assert SpecifierSet(metadata["Requires-Python"]).contains(python_of(wheel))
    assert f"Programming Language :: Python :: {python_of(wheel)}" in metadata.get_all("Classifier", [])


@each_wheel
def test_the_wheel_computes_the_numbers_of_this_build(wheel: Path) -> None:
    installed = ROOT / "build" / "wheels" / python_of(wheel) / "run" / "bin" / "python"
    ours = output(sys.executable, "-c", NUMBERS)
    assert len(ours.splitlines()) == 6
    assert output(installed, "-c", NUMBERS) == ours
