# SPDX-License-Identifier: Apache-2.0
"""The lock files in requirements/ pin what pyproject.toml asks for; `make lock` writes them."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from shardwise.interop import optional
from tests.support.paths import ROOT
from tools.lock_requirements import LOCKS, requirements

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PYTHONS = [c.rsplit(" ", 1)[1] for c in SETTINGS["project"]["classifiers"] if re.search(r":: 3\.\d+$", c)]


def environment(python: str) -> dict[str, str]:
    return {"python_version": python, "python_full_version": f"{python}.9", "sys_platform": "linux"}


def pins(lock: str, python: str) -> dict[str, str]:
    """Name → version of what `pip install -r` of a lock file installs on Linux under a version of Python."""
    lines = (ROOT / "requirements" / lock).read_text(encoding="utf-8").splitlines()
    found = [Requirement(line) for line in lines if line and not line.startswith("#")]
    chosen = [r for r in found if r.marker is None or r.marker.evaluate(environment(python))]
    versions = {canonicalize_name(r.name): str(r.specifier).removeprefix("==") for r in chosen}
    assert len(versions) == len(chosen), "a package is pinned twice"
    return versions


def unsatisfied(lines: list[str], versions: dict[str, str], python: str) -> list[str]:
    wrong = []
    for line in lines:
        wanted = Requirement(line)
        if wanted.marker is None or wanted.marker.evaluate(environment(python)):
            version = versions.get(canonicalize_name(wanted.name))
            if version is None or not wanted.specifier.contains(version, prereleases=True):
                wrong.append(f"{line}: {version} on Python {python}")
    return wrong


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("lock", ["test", "demo"])
def test_a_lock_satisfies_pyproject(lock: str, python: str) -> None:
    assert unsatisfied(requirements(LOCKS[lock]), pins(f"{lock}.txt", python), python) == [], "run `make lock`"


@pytest.mark.parametrize("python", PYTHONS)
def test_the_demo_installs_a_part_of_what_tests_install(python: str) -> None:
    demo = pins("demo.txt", python)
    assert demo.items() <= pins("test.txt", python).items()
    assert "jax" not in demo, "the demo needs no JAX: it is its largest download"


def test_the_oldest_versions_are_the_lower_bounds() -> None:
    jax = Version(".".join(map(str, optional._OLDEST)))
    bounds = {"jax": jax, "jaxlib": jax}
    for requirement in map(Requirement, SETTINGS["project"]["dependencies"]):
        (bound,) = requirement.specifier
        assert bound.operator == ">="
        bounds[canonicalize_name(requirement.name)] = Version(bound.version)
    assert {name: Version(version) for name, version in pins("oldest.in", PYTHONS[0]).items()} == bounds


@pytest.mark.parametrize(
    ("lock", "python"), [("oldest", PYTHONS[0]), *(("newest", f"3.{minor}") for minor in (12, 13, 14))]
)
def test_a_lock_of_other_versions_satisfies_pyproject(lock: str, python: str) -> None:
    own, versions = pins(f"{lock}.in", python), pins(f"{lock}.txt", python)
    assert own.items() <= versions.items()
    kept = [line for line in requirements(LOCKS[lock]) if canonicalize_name(Requirement(line).name) not in own]
    assert unsatisfied([*kept, *SETTINGS["project"]["dependencies"]], versions, python) == [], "run `make lock`"


def test_the_newest_jax_is_newer_than_that_of_the_tests() -> None:
    newest, own = pins("newest.in", "3.13"), pins("test.txt", "3.13")
    assert newest.keys() == {"jax", "jaxlib"}
    assert all(Version(version) > Version(own[name]) for name, version in newest.items())


def test_an_unsatisfied_requirement_is_found() -> None:
    lines = ["numpy>=2.1", "rich", "scipy>=3; python_version < '3.11'"]
    assert unsatisfied(lines, {"numpy": "2.0.0"}, "3.12") == [
        "numpy>=2.1: 2.0.0 on Python 3.12",
        "rich: None on Python 3.12",
    ]


def test_all_claimed_pythons_are_supported() -> None:
    assert PYTHONS[0] == "3.11"
    assert all(SpecifierSet(SETTINGS["project"]["requires-python"]).contains(python) for python in PYTHONS)
