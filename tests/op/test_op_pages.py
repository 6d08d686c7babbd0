# SPDX-License-Identifier: Apache-2.0
"""docs/reference/ops/ has a section for each op, and docs/collectives.md shows what programs of one op send."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

from shardwise import _core, custom_calls
from tests.op.cases import CASES
from tests.op.catalogue.elementwise import ACCEPTED, accepted_by
from tests.op.runnable_dtypes import runnable_dtypes
from tests.op.test_gradients import DIFFERENTIABLE, losses
from tests.support.counted_bytes import differences, received_in_run
from tests.support.partitioned import ONE_DEVICE, bitwise, difference, record, run, same_bits
from tests.support.paths import ROOT
from tests.support.tools import tool


def test_the_pages_are_those_that_the_tool_writes() -> None:
    stale = [path.name for path, text in tool("make_op_pages").pages().items() if path.read_text() != text]
    assert not stale, f"run python tools/make_op_pages.py: {', '.join(stale)}"


FIELDS = ("Rule", "Range", "Dtypes", "Computed by", "Gradient", "Partitioned by", "Cost of the example")
OPS = {op.name: op for op in _core.ir.all_ops()}


@cache
def sections() -> dict[str, str]:
    """The text of each section by its heading."""
    folder = tool("make_op_pages").DOCS / "reference" / "ops"
    parts = [part for page in folder.glob("*.md") for part in page.read_text().split("\n## ")[1:]]
    return dict(part.split("\n", 1) for part in parts)  # type: ignore[misc]


def facts_of(name: str) -> dict[str, str]:
    return dict(line[2:].split(": ", 1) for line in sections()[name].splitlines() if line.startswith("- "))  # type: ignore[misc]


def test_every_op_and_every_custom_call_has_a_section() -> None:
    assert sorted(sections()) == sorted([*OPS, *(f"@{target}" for target in tool("custom_call_texts").CALLS)])


def test_the_table_of_custom_calls_has_every_target_that_runs() -> None:
    """Targets are string literals of the sources, those of LAPACK with the letters of four types."""
    calls = tool("custom_call_texts").CALLS
    sources = [path.read_text() for path in (ROOT / "cpp" / "shardwise" / "ops").rglob("*.cpp")]
    literals = {text for source in sources for text in re.findall(r'"([\w.]+)"', source)}
    names = literals | {f"lapack_{letter}{stem}_ffi" for letter in "sdcz" for stem in literals}
    of_python = set(custom_calls._FUNCTIONS)  # that other tests define
    assert {name for name in names - of_python if _core.ir.is_custom_call(name)} == set(calls)


def says_something(text: str) -> bool:
    """Not empty, and "none" only with a reason of several words."""
    return bool(re.match(r"none: \w+ \w+", text) if text.startswith("none") else text.strip("` "))


RUNNABLE = [*(name for name, op in OPS.items() if op.runnable), *(f"@{t}" for t in tool("custom_call_texts").CALLS)]


@pytest.mark.parametrize("name", RUNNABLE)
def test_a_section_of_what_runs_has_every_field_or_the_reason(name: str) -> None:
    about, _, rest = sections()[name].strip().partition("\n\n")
    assert about
    assert rest.startswith("```{code-block} text\n")
    example = rest.split("\n")[1]
    assert (f"{name}(" if name.startswith("@") else name) in example
    facts = facts_of(name)
    assert not [field for field in FIELDS if field not in facts]
    assert not {field: text for field, text in facts.items() if not says_something(text)}


def test_a_field_without_a_reason_says_nothing() -> None:
    assert not any(says_something(text) for text in ("none", "none:", "none: no", "``", ""))


def test_pages_name_kernels_and_rules_where_there_are_some() -> None:
    assert OPS
    for op in OPS.values():
        facts = facts_of(op.name)
        assert facts["Computed by"].startswith("a kernel") == op.has_kernel, op
        assert facts.get("Partitioned by", "").startswith("its rule") == (
            op.has_rule and op.runnable and not op.collective
        ), op
        if op.composed:
            assert ("before propagation" in facts["Computed by"]) == (not op.has_rule), op


def operands_with_gradient(text: str) -> set[int]:
    named = re.match(r"(?:that of the ops that it runs; )?yes, with respect to operands? ([\d, and]+)", text)
    return {int(number) for number in re.findall(r"\d+", named[1])} if named else set()


@pytest.mark.parametrize("name", sorted({case.name for case in DIFFERENTIABLE} - {"stablehlo.custom_call"}))
def test_the_pages_name_the_operands_with_a_gradient(name: str) -> None:
    """No other operand has one that is not zero."""
    listed = operands_with_gradient(facts_of(name)["Gradient"])
    assert listed
    for case in DIFFERENTIABLE:
        for loss in losses(case, 3) if case.name == name else []:
            if loss.application.record is None and not loss.application.baked:
                [gradients, _] = loss.gradients()
                assert {i for i, gradient in zip(loss.wrt, gradients) if np.any(gradient != 0)} <= listed


# Custom calls of texts of JAX, beside those of LAPACK.
OF_LINEAR_ALGEBRA = ("LuDecomposition", "Qr", "Eigh", "ProductOfElementaryHouseholderReflectors")


def test_linear_algebra_of_texts_has_no_gradient_and_that_of_numpy_has() -> None:
    targets = tool("custom_call_texts").CALLS
    assert targets
    for target in targets:
        gradient = facts_of(f"@{target}")["Gradient"]
        if target.startswith("lapack_") or target in OF_LINEAR_ALGEBRA:
            assert gradient == "none: use sw.from_jax, which differentiates the JAX function"
        else:
            assert 0 in operands_with_gradient(gradient)


def test_dtypes_of_the_pages_are_those_of_the_specification() -> None:
    """The pages list what runs; tests/conformance/stablehlo/test_ops.py compares it with the random instances."""
    specified = {}
    for op in ACCEPTED:
        name = op if op.startswith("chlo.") else f"stablehlo.{op}"
        left_open = {"complex64", "complex128"} if op == "remainder" else set()
        specified[name] = set(accepted_by(op)) - left_open
    assert {name: set(runnable_dtypes(name)) for name in specified} == specified


# Their operands have no dims.
WITHOUT_DIMS = {"chlo.constant", "stablehlo.constant", "stablehlo.iota", "stablehlo.rng"}


@pytest.mark.parametrize("name", sorted({case.name for case in CASES} - WITHOUT_DIMS))
def test_the_rows_of_collectives_are_what_runs(name: str) -> None:
    """The results are right, and a device receives the bytes of the row, collective by collective."""
    examples = tool("op_examples")
    rows = list(examples.sharded_dims(examples.examples(name)))
    assert rows
    for example, operand, dim in rows:
        case, application, dtype = example.case, example.application, example.dtype
        operands = case.operands(application, dtype)
        [whole] = run(record(case, application, dtype), ONE_DEVICE, operands)
        program = examples.program_of(example, operand, dim)
        got = np.asarray(program.run(*operands))
        assert not difference(case, application, operands, got)
        assert not bitwise(case, dtype) or same_bits(got, whole)
        executable = received_in_run(program, *operands)
        assert not differences(program._compiled, executable)
        received = sum((np.asarray(counted) for counted in executable.received().values()), np.zeros(1))
        assert received.max() == examples.sharded(example, operand, dim).bytes
