# SPDX-License-Identifier: Apache-2.0
"""Rules of the code base that a reader relies on: layering, one registry, sizes, where each library is used."""

from __future__ import annotations

import inspect
import re

import pytest

from tests.style import exceptions as allowed
from tests.style.source_tree import (
    CORE,
    ROOT,
    cpp_files,
    cpp_functions,
    folders,
    includes,
    python_files,
    python_functions,
    relative,
)
from tools.public_api import package_names

CPP_TESTS = ROOT / "tests" / "unit"
PASSES = ("transforms", "propagation", "explanation", "shard_update", "reshard", "partition", "compiler")
# ir/op_def.h names the defaults that ops/ defines; nothing else may look up.
OP_NAME = re.compile(r'"(?:stablehlo|chlo|sdy|shardwise)\.[a-z_]+"')


@pytest.mark.parametrize(
    ("header", "places"),
    [
        ("xtensor/", r"base/xtensor_line\.h$"),
        ("nlohmann/", r"_json(_\w+)?\.cpp$"),
        ("pybind11/", r"^cpp/shardwise/bindings/"),
        ("gtest/", r"^tests/unit/"),
        ("cblas", r"_kernels\.cpp$"),
        ("sleef", r"tile/\w+\.(cpp|h)$"),
    ],
)
def test_each_library_does_its_work_in_its_place(header: str, places: str) -> None:
    users = [
        relative(path)
        for path in (*cpp_files(), *cpp_files(CPP_TESTS))
        if any(name.startswith(header) for name in includes(path))
    ]
    assert users, f"nothing uses {header}"
    assert [path for path in users if not re.search(places, path)] == []


def test_xtensor_is_included_by_kernels_and_the_copy_they_share() -> None:
    users = [relative(p) for p in cpp_files() if "shardwise/base/xtensor_line.h" in includes(p)]
    assert users
    assert [path for path in users if not path.endswith(("_kernels.cpp", "base/strided_copy.cpp"))] == []


def test_passes_name_an_op_only_to_create_it() -> None:
    # A name that is compared, looked up or switched on would be knowledge about an op that its OpDef should hold.
    wrong = []
    for path in (file for folder in PASSES for file in cpp_files(CORE / folder)):
        for number, line in enumerate(path.read_text().splitlines()):
            code = line.split("//")[0]
            if OP_NAME.search(code) and re.search(r"==|!=|name\(\)|find_op|starts_with|contains|\bcase \"", code):
                wrong.append(f"{relative(path)}:{number + 1}: {line.strip()}")
            if re.search(r"(name\(\)|def\.name) *(==|!=)", code):
                wrong.append(f"{relative(path)}:{number + 1}: {line.strip()}")
    assert not wrong


def test_ir_and_runtime_name_no_op() -> None:
    wrong = [
        f"{relative(path)}: {found}"
        for layer in ("ir", "text", "runtime", "mesh", "cost", "tile", "base")
        for path in cpp_files(CORE / layer)
        for line in path.read_text().splitlines()
        for found in OP_NAME.findall(line.split("//")[0])
        if not (path.name.startswith("custom_") or "reduce_directive" in path.name or path.name == "text_words.h")
        and found != '"shardwise.hardware"'  # a format of files
    ]
    assert not wrong


def test_op_definitions_are_in_ops_and_reach_the_registry_through_family_tables() -> None:
    users = [relative(p) for p in cpp_files(CORE) if re.search(r"OpDef k\w+\[\]|OpDef k\w+ ?[{=]", p.read_text())]
    assert [path for path in users if not path.startswith("cpp/shardwise/ops/") and not path.endswith("op_def.h")] == []


def test_no_two_headers_define_a_type_of_one_name() -> None:
    # Two types of one name make one program with two meanings of std::vector<Name>: memory is corrupted, no tool warns.
    places: dict[str, set[str]] = {}
    for path in cpp_files(CORE):
        space = re.findall(r"^namespace ([\w:]+) \{|^namespace \{", path.read_text(), re.MULTILINE)
        if path.suffix != ".h" or "" in space:
            continue
        for name in re.findall(r"^(?:struct|class) (\w+)[^;\n]*\{", path.read_text(), re.MULTILINE):
            places.setdefault(f"{space[-1]}::{name}", set()).add(relative(path))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_files_are_short() -> None:
    long = {
        relative(path): lines
        for path in (*cpp_files(), *cpp_files(CPP_TESTS), *python_files())
        if (lines := len(path.read_text().splitlines())) > 600 and relative(path) not in allowed.FILES
    }
    assert not long


def test_folders_are_small() -> None:
    large = {path: count for path, count in folders().items() if count > 45}
    assert {path: count for path, count in large.items() if path not in allowed.FOLDERS} == {}
    assert sorted(allowed.FOLDERS.keys() - large) == [], "these are small by now: take them out of exceptions.py"


def test_functions_are_short() -> None:
    long = {}
    for path in (*cpp_files(), *cpp_files(CPP_TESTS)):
        long |= {f"{relative(path)}:{name}": lines for name, lines in cpp_functions(path) if lines > 80}
    for path in python_files():
        long |= {f"{relative(path)}:{name}": lines for name, lines in python_functions(path) if lines > 80}
    assert {name: lines for name, lines in long.items() if name not in allowed.FUNCTIONS} == {}


def test_exceptions_are_few_and_reasoned() -> None:
    reasons = {**allowed.FUNCTIONS, **allowed.FILES}
    assert len(reasons) <= allowed.MAX_EXCEPTIONS
    assert all(len(reason) > 20 for reason in (*reasons.values(), *allowed.FOLDERS.values()))


def test_files_named_in_contributing_exist() -> None:
    names = re.findall(r"`([\w./]+/[\w./]*|\w+\.(?:py|h|cpp|def|md))`", (ROOT / "CONTRIBUTING.md").read_text())
    assert len(names) > 40
    made = ("build", "dist")  # by make
    folders = [path for path in ROOT.iterdir() if path.is_dir() and path.name not in made and path.name[0] != "."]
    paths = [ROOT / "CHANGELOG.md", *(path for folder in folders for path in (folder, *folder.rglob("*")))]
    known = [f"/{relative(path)}{'/' if path.is_dir() else ''}" for path in paths]
    missing = [name for name in names if not any(f"/{name}" in path for path in known)]
    assert [name for name in missing if name.split("/")[0] not in made] == []


def test_every_source_file_says_its_license() -> None:
    files = (*cpp_files(), *cpp_files(CPP_TESTS), *python_files())
    assert [relative(p) for p in files if "SPDX-License-Identifier: Apache-2.0" not in p.read_text()[:200]] == []


def test_every_public_name_has_a_docstring() -> None:
    import shardwise as sw

    missing = []
    for name in package_names():
        value = getattr(sw, name)
        if not (inspect.isclass(value) or inspect.isfunction(value) or inspect.ismodule(value)):
            continue
        if not inspect.getdoc(value):
            missing.append(name)
        if inspect.isclass(value) and value.__module__.startswith("shardwise."):
            for attribute, member in vars(value).items():
                public = not attribute.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
                if public and not inspect.getdoc(member):
                    missing.append(f"{name}.{attribute}")
    assert not missing


def test_every_op_has_a_doc_line_and_a_reason_where_it_has_no_gradient() -> None:
    from shardwise import _core

    ops = _core.ir.all_ops()
    assert len({op.name for op in ops}) == len(ops)
    assert [op.name for op in ops if not op.doc.endswith(".")] == []
    assert [op.name for op in ops if op.differentiable == bool(op.no_vjp_reason) and op.runnable] == []
