# SPDX-License-Identifier: Apache-2.0
"""What C++ files include: folders that their folder links, no file in a circle, and of ops only what families share."""

from __future__ import annotations

import re
from pathlib import Path

from tests.style.source_tree import CORE, ROOT, anonymous_functions, cpp_files, includes, relative

# A family that uses another one's code beyond what builds ops.
FAMILIES = {
    ("slicing/dynamic_slicing_batch", "indexing/indexing"): "batches a slice as a gather, an update as a scatter",
    ("slicing/dynamic_slicing_batch", "indexing/index_values"): "clamps the starts of that scatter",
    ("window/reduce_window_kernels", "slicing/slicing"): "pads its operand by the kernel of pad",
    ("linalg/linalg_vjp", "contraction/dot_general"): "multiplies matrices",
    ("sharding/manual_computation_verify", "control/control"): "looks into the functions that a region calls",
}
SHARED = ("build", "families", "partitioning", "shared")  # families.h only declares tables


def linked_folders() -> dict[str, set[str]]:
    """For each folder of cpp/shardwise all that it links, directly or not: cpp/CMakeLists.txt is the one list."""
    text = (ROOT / "cpp" / "CMakeLists.txt").read_text()
    lists = {
        m[1]: re.findall(r"shardwise_(\w+)", m[2])
        for m in re.finditer(r"^shardwise_library\((\w+)([^)]*)\)", text, re.M)
    }
    extension = re.search(r"target_link_libraries\(_core PRIVATE ([^)]*)\)", text)
    assert extension is not None
    lists["bindings"] = re.findall(r"shardwise_(\w+)", extension[1])
    closed: dict[str, set[str]] = {}
    for folder, direct in lists.items():  # a folder stands behind those that it links
        closed[folder] = set(direct).union(*(closed[name] for name in direct))
    return closed


def test_folders_include_only_what_they_link() -> None:
    linked = linked_folders()
    assert set(linked) == {path.name for path in CORE.iterdir() if path.is_dir()}
    wrong = []
    for path in cpp_files(CORE):
        folder = path.relative_to(CORE).parts[0]
        for name in includes(path):
            parts = name.split("/")
            if parts[0] == "shardwise" and parts[1] != folder and parts[1] not in linked[folder]:
                wrong.append(f"{relative(path)} includes {name}")
    assert not wrong


def include_graph(root: Path) -> dict[str, list[str]]:
    """For each stem (a header with its source) the stems that it includes."""
    graph: dict[str, list[str]] = {}
    for path in cpp_files(root):
        stem = str(path.relative_to(root).with_suffix(""))
        found = [name.removeprefix("shardwise/").removesuffix(".h") for name in includes(path) if name.endswith(".h")]
        graph.setdefault(stem, []).extend(name for name in found if name != stem)
    return {stem: [name for name in found if name in graph] for stem, found in graph.items()}


def find_circle(graph: dict[str, list[str]]) -> list[str] | None:
    """The first circle of a depth-first walk: [a, b, …, a]."""
    done: set[str] = set()
    for start in sorted(graph):
        path: list[str] = []
        stack = [(start, iter(graph[start]))] if start not in done else []
        while stack:
            stem, rest = stack[-1]
            if len(path) < len(stack):
                path.append(stem)
            following = next(rest, None)
            if following is None:
                done.add(stem)
                stack.pop()
                path.pop()
            elif following in path:
                return [*path[path.index(following) :], following]
            elif following not in done:
                stack.append((following, iter(graph[following])))
    return None


def test_a_circle_is_found(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "c"), ("c", "a")):
        (tmp_path / f"{name}.h").write_text(f"int {name}();\n")
        (tmp_path / f"{name}.cpp").write_text(f'#include "shardwise/{name}.h"\n#include "shardwise/{other}.h"\n')
    assert find_circle(include_graph(tmp_path)) == ["a", "b", "c", "a"]
    (tmp_path / "c.cpp").write_text('#include "shardwise/c.h"\n')
    assert find_circle(include_graph(tmp_path)) is None


def test_no_files_include_each_other_in_a_circle() -> None:
    circle = find_circle(include_graph(CORE))
    assert circle is None, " -> ".join(circle)


def test_families_of_ops_include_only_what_they_share() -> None:
    wrong = []
    unused = set(FAMILIES)
    for stem, found in include_graph(CORE).items():
        if stem.count("/") < 2 or not stem.startswith("ops/"):  # ops/registry lists all families
            continue
        family = stem.split("/")[1]
        for name in found:
            other = name.split("/")[1] if name.startswith("ops/") else family
            pair = (stem.removeprefix("ops/"), name.removeprefix("ops/"))
            unused.discard(pair)
            if family not in SHARED and other not in (family, *SHARED) and pair not in FAMILIES:
                wrong.append(f"{stem} includes {name}")
            if family == "shared" and other != "shared":
                wrong.append(f"{stem} includes {name}")
            if family == "build" and other not in SHARED:
                wrong.append(f"{stem} includes {name}")
    assert not wrong
    assert not unused


def test_files_of_a_batch_share_no_name() -> None:
    """The files of a folder are one batch: two functions of one name would be overloads by accident."""
    files: dict[tuple[Path, str], list[str]] = {}
    for path in cpp_files(CORE):
        for name in anonymous_functions(path) if path.suffix == ".cpp" else ():
            files.setdefault((path.parent, name), []).append(path.name)
    assert len(files) > 1000
    assert {f"{relative(folder)}: {name}": found for (folder, name), found in files.items() if len(found) > 1} == {}


def test_no_folder_is_crowded() -> None:
    folders = {path.parent for path in cpp_files(CORE)}
    counts = {relative(folder): sum(path.is_file() for path in folder.iterdir()) for folder in folders}
    assert {folder: count for folder, count in counts.items() if count > 45} == {}


def test_comments_name_files_that_exist() -> None:
    folders = "|".join(sorted(path.name for path in CORE.iterdir() if path.is_dir()))
    named = re.compile(rf"(?<![\w/])(?:{folders})/[\w/]+\.(?:h|cpp|def)\b")
    files = [*cpp_files(CORE), CORE.parent / "CMakeLists.txt"]
    dead = [
        f"{relative(path)} names {name}"
        for path in files
        for name in named.findall(path.read_text())
        if not (CORE / name).exists()
    ]
    assert not dead
