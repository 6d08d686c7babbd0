# SPDX-License-Identifier: Apache-2.0
"""Writes the lock files in requirements/ from pyproject.toml. `make lock` runs it.

Usage: lock_requirements.py [--upgrade]   without --upgrade, versions change only where pyproject.toml asks for others

    requirements/test.txt     all that building, tests, examples and docs need
    requirements/demo.txt     what `make demo` needs: a subset of test.txt, of the same versions
    requirements/oldest.txt   as test.txt, with the oldest supported versions of oldest.in, for the oldest Python alone
    requirements/newest.txt   as test.txt, with the newest JAX, of newest.in, for the Pythons that it has
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "requirements"
EVERYTHING = ["build", "test", "examples", "docs"]
LOCKS = {"test": EVERYTHING, "demo": ["build", "demo"], "oldest": EVERYTHING, "newest": EVERYTHING}
OLDEST_PYTHON = {"newest": "3.12"}  # else that of pyproject.toml
HEADER = """\
# SPDX-License-Identifier: Apache-2.0
# Written by `make lock` from pyproject.toml; `pip install --no-deps -r {file}` installs exactly this.
"""


def requirements(names: list[str]) -> list[str]:
    """The requirements of the package and of its build, then those of the dependency groups and extras ``names``."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = settings["project"]["optional-dependencies"] | settings["dependency-groups"]
    lines: list[str] = [*settings["project"]["dependencies"], *settings["build-system"]["requires"]]
    for name in names:
        lines += extras[name]
    return lines


def with_pins(lines: list[str], pins: list[str]) -> list[str]:
    """``lines``, where those of pinned packages are replaced by ``pins``."""

    def name(line: str) -> str:
        return re.split(r"[^\w.-]", line)[0].replace("_", "-").lower()

    pinned = {name(pin) for pin in pins}
    return [*(line for line in lines if name(line) not in pinned), *pins]


def lock(name: str, options: list[str]) -> None:
    """Resolve the requirements of one lock file with uv, and write it."""
    lines = requirements(LOCKS[name])
    scope = ["--universal"]  # for all supported versions of Python
    if name == "oldest":
        scope = ["--python-platform", "linux"]
    pinned = FOLDER / f"{name}.in"
    if pinned.exists():
        pins = pinned.read_text(encoding="utf-8").splitlines()
        lines = with_pins(lines, [pin for pin in pins if not pin.startswith("#")])
    if name == "demo":  # test.txt was written before: its versions bind
        options = [*options, "--constraint", "requirements/test.txt"]
    path = FOLDER / f"{name}.txt"
    command = [
        sys.executable,
        "-m",
        "uv",
        "pip",
        "compile",
        "--quiet",
        "--python-version",
        OLDEST_PYTHON.get(name, "3.11"),
    ]
    command += ["--no-header", "--no-annotate", "--output-file", str(path), *scope, *options, "-"]
    subprocess.run(command, input="\n".join(lines), text=True, check=True, cwd=ROOT)
    written = path.read_text(encoding="utf-8")
    path.write_text(HEADER.format(file=path.relative_to(ROOT)) + written, encoding="utf-8")


if __name__ == "__main__":
    for each in LOCKS:
        lock(each, sys.argv[1:])
