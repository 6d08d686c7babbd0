# SPDX-License-Identifier: Apache-2.0
"""Writes the lock files in requirements/ from pyproject.toml, for all supported Python versions. `make lock` runs it.

Usage: lock_requirements.py [--upgrade]   without --upgrade, versions change only where pyproject.toml asks for others

    requirements/test.txt     all that building, tests, examples and docs need
    requirements/demo.txt     what `make demo` needs: a subset of test.txt, of the same versions
    requirements/oldest.txt   as test.txt, with the oldest supported versions of oldest.in
"""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "requirements"
EVERYTHING = ["build", "test", "examples", "docs"]
LOCKS = {"test": EVERYTHING, "demo": ["build", "demo"], "oldest": EVERYTHING}
# After test.txt, so that its versions bind.
OPTIONS = {
    "demo": ["--constraint", "requirements/test.txt"],
    "oldest": ["--constraint", "requirements/oldest.in", "--override", "requirements/oldest.in"],
}
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


def lock(name: str, options: list[str]) -> None:
    """Resolve the requirements of one lock file with uv, and write it."""
    path = FOLDER / f"{name}.txt"
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11"]
    command += ["--no-header", "--no-annotate", "--output-file", str(path), *options, "-"]
    text = "\n".join(requirements(LOCKS[name]))
    subprocess.run([*command, *OPTIONS.get(name, [])], input=text, text=True, check=True, cwd=ROOT)
    pins = path.read_text(encoding="utf-8")
    path.write_text(HEADER.format(file=path.relative_to(ROOT)) + pins, encoding="utf-8")


if __name__ == "__main__":
    for each in LOCKS:
        lock(each, sys.argv[1:])
