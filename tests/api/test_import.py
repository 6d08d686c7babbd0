# SPDX-License-Identifier: Apache-2.0
"""``import shardwise`` is quick, and a star import replaces nothing of Python's."""

from __future__ import annotations

import ast
import builtins
import inspect
import json
import subprocess
import sys
from typing import Any

import pytest

import shardwise as sw
from tools.public_api import package_names

PROGRAM = """
import json, sys, time
import {modules}
print(json.dumps([time.thread_time(), sorted(sys.modules)]))
"""
NEEDED = "numpy, optree, ml_dtypes"


def run(modules: str) -> tuple[float, set[str]]:
    # -I: no PYTHONPATH, no user site. The time of the thread that imports: a busy machine is not a slow import, and the
    # threads that OpenBLAS starts wait busily.
    program = PROGRAM.format(modules=modules)
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    seconds, loaded = json.loads(done.stdout)
    return seconds, set(loaded)


def test_import_takes_at_most_three_times_as_long_as_the_libraries_that_it_needs() -> None:
    rounds = [(run("shardwise")[0], run(NEEDED)[0]) for _ in range(7)]
    ours, needed = (min(seconds) for seconds in zip(*rounds))
    assert ours < 3 * needed


def test_import_loads_no_heavy_module() -> None:
    _, modules = run("shardwise")
    packages = {name.partition(".")[0] for name in modules}
    assert not packages & {"hashlib", "jax", "matplotlib", "pytest", "rich", "scipy", "sklearn"}
    assert not modules & {"shardwise.interop.handover", "shardwise.interop.jax_functions", "shardwise.mpi.ranks"}


def test_names_that_are_imported_later_are_listed_and_found() -> None:
    for package, name in [(sw, "from_jax"), (sw.interop, "compare"), (sw.mpi, "Ranks")]:
        assert name in dir(package)
        assert getattr(package, name) is vars(package)[name]
    with pytest.raises(AttributeError, match=r"module 'shardwise\.mpi' has no attribute 'rank'"):
        sw.mpi.rank  # noqa: B018


def test_dir_lists_no_internal_module() -> None:
    assert [name for name in dir(sw) if not name.startswith("_")] == sorted(package_names())


def test_a_star_import_shadows_no_builtin_and_no_common_name() -> None:
    namespace: dict[str, Any] = {}
    exec("from shardwise import *", namespace)
    starred = namespace.keys() - {"__builtins__"}
    assert starred == set(sw.__all__)
    libraries = {"jax", "numpy", "np", "pandas", "scipy", "tests", "torch"}
    variables = {"array", "at", "axis", "data", "dtype", "errors", "index", "key", "map", "model", "models", "name"}
    variables |= {"parse", "priority", "shape", "size", "spec", "split", "sub", "testing", "tree", "value", "x"}
    assert starred & (set(dir(builtins)) | sys.stdlib_module_names | libraries | variables) == set()


def test_names_outside_the_star_import_are_public_too() -> None:
    public = set(package_names())
    assert {"open", "name", "split", "sub", "random", "numpy", "errors", "at"} <= public - set(sw.__all__)
    assert set(sw.__all__) <= public
    assert [name for name in public if not hasattr(sw, name)] == []


def test_names_outside_the_star_import_are_exported_to_type_checkers() -> None:
    # PEP 484: `import x as x` in a typed package makes x a name of the package, as `__all__` does.
    nodes = ast.walk(ast.parse(inspect.getsource(sw)))
    aliases = [alias for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names]
    exported = {alias.name for alias in aliases if alias.asname == alias.name}
    assert exported == set(package_names()) - set(sw.__all__)
