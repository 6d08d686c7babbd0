# SPDX-License-Identifier: Apache-2.0
"""Print requirements of pyproject.toml, one a line: what to build with, what to run with, and the named extras.

Usage: pip_requirements.py EXTRA...   where the word build-system stands for the build requirements.
pip cannot install "the dependencies without the package"; with this the slow downloads happen once, not in each build.
"""

import pathlib
import sys

if sys.version_info >= (3, 11):
    import tomllib
else:  # pip brings its own reader
    from pip._vendor import tomli as tomllib


def requirements(names: list[str]) -> list[str]:
    """The run-time requirements of the package, then those of each named extra."""
    root = pathlib.Path(__file__).resolve().parent.parent
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    lines: list[str] = list(settings["project"]["dependencies"])
    for name in names:
        if name == "build-system":
            lines += settings["build-system"]["requires"]
        else:
            lines += settings["project"]["optional-dependencies"][name]
    return lines


if __name__ == "__main__":
    print("\n".join(requirements(sys.argv[1:])))
