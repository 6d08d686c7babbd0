# SPDX-License-Identifier: Apache-2.0
"""The contract of an op grows by facts about ops, not by flags for one engine, and knows no other system's rules."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from shardwise.programs.propagation_options import PropagationOptions
from tests.style.source_tree import CORE, ROOT, cpp_files, python_files, relative

FACTOR = ["size", "kind", "reducer", "blocked"]
RANGE = ["scale", "offset", "window", "dilation", "holes", "start", "outside"]
TRAITS = [
    "elementwise",
    "commutative",
    "constant_like",
    "side_effect",
    "constraint",
    "reshard",
    "data_flow_edge",
    "barrier",
    "sharding_group",
    "movement",
    "shares_memory",
    "collective",
]


def fields_of(header: Path, struct: str) -> list[str]:
    """The data members of a struct without functions."""
    found = re.search(rf"^struct {struct} \{{\n(.*?)^\}};", header.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None, f"{struct} is not in {relative(header)}"
    return re.findall(r"^  [\w:]+ (\w+)(?: = [^;]*)?;", found[1], re.MULTILINE)


def readers(trait: str) -> list[str]:
    """Files that read a trait of an op, apart from the definitions of ops."""
    reads = re.compile(rf"\btraits(?:\(\))?\.{trait}\b")
    files = [path for path in cpp_files(CORE) if CORE / "ops" not in path.parents and path.stem != "op_def"]
    return [relative(path) for path in files if reads.search(path.read_text())]


def test_a_factor_says_what_sharding_it_means() -> None:
    assert fields_of(CORE / "ir" / "rule" / "sharding_rule.h", "Factor") == FACTOR


def readers_in_ranges(field: str) -> list[str]:
    """Files that read a field of a range. Bindings show it only."""
    own = CORE / "ir" / "rule" / "range.cpp"
    reads = re.compile(rf"\brange(?:->|\.){field}\b")
    files = [path for path in cpp_files(CORE) if CORE / "bindings" not in path.parents]
    found = [relative(path) for path in files if path != own and reads.search(path.read_text())]
    of_methods = re.findall(r"^\w+ Range::.*?^}", own.read_text(), re.MULTILINE | re.DOTALL)
    header = re.search(r"bool is_static\(\) const \{.*\}", (CORE / "ir" / "rule" / "range.h").read_text())
    assert of_methods
    assert header is not None
    methods = [relative(own)] if re.search(rf"\b{field}\b", "".join(of_methods) + header[0]) else []
    return [*found, *methods]


def test_the_fields_of_a_range_are_these() -> None:
    assert fields_of(CORE / "ir" / "rule" / "range.h", "Range") == RANGE


@pytest.mark.parametrize("field", RANGE)
def test_a_field_of_a_range_has_several_readers(field: str) -> None:
    assert len(readers_in_ranges(field)) >= 2, readers_in_ranges(field)


NAMED = re.compile(r'name(?:\(\))? ?[=!]= ?"(?:stablehlo|chlo|func|sdy|shardwise)\.')
COMPARED = re.compile(r"\b(?:verify|vjp|batch|prepare|decompose|infer|partition|fold|effect) ?[=!]= ?(?!nullptr|0)\w+")


def test_passes_ask_the_definition_of_an_op() -> None:
    # Its regions, traits and functions answer, so that a new op needs no change of a pass.
    free = {CORE / "ops", CORE / "text", CORE / "propagation" / "shardy"}
    passes = [path for path in cpp_files(CORE) if not free & set(path.parents) and path.name != "op_def.h"]
    found = {
        relative(path): [*NAMED.findall(text), *COMPARED.findall(text)] for path in passes if (text := path.read_text())
    }
    assert {path: names for path, names in found.items() if names} == {}


def test_passes_take_loops_apart_with_loop_parts() -> None:
    # Which region of a loop is the body is known to the op, to its text and to ops/control/loop_parts.cpp.
    by_number = re.compile(r"\bregions(?:\([^()]*\))?\[1\]")
    passes = [path for path in cpp_files(CORE) if not {CORE / "ops", CORE / "text"} & set(path.parents)]
    assert [relative(path) for path in passes if by_number.search(path.read_text())] == []


def test_the_traits_are_these() -> None:
    assert fields_of(CORE / "ir" / "op_def.h", "Traits") == TRAITS


@pytest.mark.parametrize("trait", TRAITS)
def test_a_trait_has_several_readers(trait: str) -> None:
    # A fact with one reader belongs to that reader, or is a field of OpDef for its engine.
    assert len(readers(trait)) >= 2, readers(trait)


def test_ops_do_not_know_how_shardy_propagates() -> None:
    # The sdy dialect is Shardy's, so its ops name it as their source.
    named = [relative(path) for path in cpp_files(CORE / "ops") if re.search(r"\bShardy\b", path.read_text())]
    assert [path for path in named if not re.search(r"ops/sharding/|shardy_collectives", path)] == []


def test_options_of_propagation_are_listed_twice() -> None:
    # Once for C++ and once for Python: signatures, docstrings, the command line and the bindings follow from the lists.
    names = [option.name for option in fields(PropagationOptions) if option.name != "strategy"]
    files = [*cpp_files(CORE), *(path for path in python_files() if ROOT / "python" in path.parents)]
    lists = [relative(path) for path in files if all(name in path.read_text() for name in names)]
    assert sorted(lists) == ["cpp/shardwise/ir/compile_options.h", "python/shardwise/programs/propagation_options.py"]


@pytest.mark.parametrize(("option", "most"), [("strict_divisible", 4), ("objective", 6)])
def test_an_option_is_in_few_files(option: str, most: int) -> None:
    files = [*cpp_files(CORE), *(path for path in python_files() if ROOT / "python" in path.parents)]
    named = [relative(path) for path in files if re.search(rf"\b{option}_?\b", path.read_text())]
    assert len(named) <= most, named
