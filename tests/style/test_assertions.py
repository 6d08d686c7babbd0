# SPDX-License-Identifier: Apache-2.0
"""No test of the repository ends without an assertion, and what finds such tests finds them."""

from __future__ import annotations

import textwrap

import pytest
from _pytest.outcomes import Skipped

from tests.style import assertions, cpp_assertions
from tests.style.asserting_names import Names, TestModule
from tests.support.oracles import oracle

HELPERS = """
import pytest

TABLE = [1, 2]

def expect_equal(a, b):
    assert a == b

def run(x):
    assert x is not None
    return [x, x]

def compare_if(x):
    if x:
        assert x > 0

def each(xs):
    for x in xs:
        yield x
"""


def found_in(test: str) -> list[str]:
    """What is found in the body of a test, whose arguments are `x` and `xs`."""
    head = (
        "import numpy as np, pytest, subprocess\nfrom tests.helpers import TABLE, compare_if, each, expect_equal, run\n"
    )
    source = head + "def test_it(x, xs):\n" + textwrap.indent(textwrap.dedent(test), "    ")
    modules = [TestModule.of("tests.helpers", HELPERS), TestModule.of("tests.test_it", source)]
    return [finding.partition(" test_it ")[2] for finding in assertions.findings_of(modules[1], Names(modules))]


LOOP = "asserts only in a loop that may not run, or that may skip its assertions"
BRANCHES = "asserts in some branches only"
RETURNS = "returns before any assertion"
NOTHING = "asserts nothing"


@pytest.mark.parametrize(
    ("test", "what"),
    [
        ("x + 1", NOTHING),
        ("run(x)", NOTHING),  # its assertion is for the type checker
        ("compare_if(x)", NOTHING),
        ("assert True", NOTHING),
        ("subprocess.run(['true'], check=False)", NOTHING),
        ("def check(): assert x", NOTHING),
        ("if x is None:\n    return\nassert x", RETURNS),
        ("try:\n    x()\nexcept ValueError:\n    return\nassert x", RETURNS),
        ("with open(x) as file:\n    if not file:\n        return\n    assert x", RETURNS),
        ("if x:\n    assert x", BRANCHES),
        ("match x:\n    case 1:\n        assert xs", BRANCHES),
        ("try:\n    assert x\nexcept ValueError:\n    pass", BRANCHES),
        ("for y in xs:\n    assert y", LOOP),
        ("while x:\n    assert xs", LOOP),
        ("for y in []:\n    assert y", LOOP),
        ("for a, b in zip(xs, TABLE):\n    assert a == b", LOOP),
        ("for y in TABLE:\n    if y == x:\n        continue\n    assert y", LOOP),
        ("for y in [z for z in TABLE if z]:\n    assert y", LOOP),
        ("for y in each(xs):\n    assert y", LOOP),
        ("[expect_equal(y, 1) for y in xs]", NOTHING),
    ],
)
def test_a_test_that_cannot_fail_is_found(test: str, what: str) -> None:
    assert found_in(test) == [what]


@pytest.mark.parametrize(
    "test",
    [
        "assert x",
        "expect_equal(x, 1)",
        "np.testing.assert_array_equal(x, 1)",
        "subprocess.run(['true'], check=True)",
        "with pytest.raises(ValueError):\n    x()",
        "if x is None:\n    assert xs\n    return\nassert x",
        "if x:\n    assert xs\nelse:\n    raise ValueError",
        "if x != 1:\n    pytest.fail('no')",
        "try:\n    x()\nexcept ValueError as error:\n    assert error\nelse:\n    pytest.fail('no')",
        "for y in TABLE:\n    assert y",
        "for a, b in zip(xs, TABLE, strict=True):\n    assert a == b",
        "for i, y in enumerate(sorted(TABLE) + xs):\n    assert y",
        "for y in range(3):\n    assert y",
        "for y in run(x):\n    assert y",
        "ys = [x, *xs]\nfor y in ys:\n    assert y",
        "assert xs\nfor y in xs:\n    if y:\n        return",
        "[expect_equal(y, 1) for y in TABLE]",
        "def check():\n    assert x\ncheck()",
        "def given(y):\n    assert y\nxs.map(given)",
        "while True:\n    assert x\n    break",
    ],
)
def test_a_test_that_can_fail_is_not_found(test: str) -> None:
    assert found_in(test) == []


def test_a_parametrized_check_asserts_where_each_of_its_values_does() -> None:
    head = "import pytest\ndef full(x):\n    assert x\ndef empty(x):\n    pass\n"
    test = "@pytest.mark.parametrize('check', [{}])\ndef test_it(check):\n    check(1)\n"
    for values, count in (("full", 0), ("full, empty", 1)):
        module = TestModule.of("tests.test_it", head + test.format(values))
        assert len(list(assertions.findings_of(module, Names([module])))) == count


@pytest.mark.parametrize(
    "line",
    [
        "pytest.importorskip('jax')",
        "pytest.skip('no')",
        "has_it = pytest.mark.skipif(True, reason='no')",
        "from pytest import skip\nskip('no')",
        "import unittest\n@unittest.skip('no')\ndef test_it(): ...",
    ],
)
def test_a_skip_is_found(line: str) -> None:
    found = list(assertions.skips_of(TestModule.of("tests.test_it", f"import pytest\n{line}\n")))
    assert len(found) == 1
    assert "use oracle(NAME)" in found[0]


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("run(3);", ["Dims.Are asserts nothing"]),
        ('run("EXPECT_EQ"); // EXPECT_EQ', ["Dims.Are asserts nothing"]),
        ("made(3);", ["Dims.Are asserts nothing"]),
        ("if (x) return;\n  EXPECT_EQ(x, 1);", ["Dims.Are returns before any assertion"]),
        ("GTEST_SKIP();\n  EXPECT_EQ(x, 1);", ["GTEST_SKIP is for AVX-512 only"]),
        ("if (!has_avx512()) GTEST_SKIP();\n  EXPECT_EQ(x, 1);", []),
        ("EXPECT_EQ(x, 1);\n  if (x) return;", []),
        ("if (x) EXPECT_EQ(x, 1);", ["Dims.Are asserts under conditions only"]),
        ("for (int x : xs) {\n    if (x) {\n      twice(x);\n    }\n  }", ["Dims.Are asserts under conditions only"]),
        ("for (int x : xs) {\n    if (x) run(x);\n    twice(x);\n  }", []),
        ("twice(3);", []),
    ],
)
def test_cpp_tests_that_cannot_fail_are_found(body: str, what: list[str]) -> None:
    header = (
        "inline void once(int x) { EXPECT_EQ(x, 3); }\ninline int made(int x) {\n  EXPECT_GT(x, 0);\n  return x;\n}\n"
    )
    source = '#include "base/once.h"\nvoid twice(int x) {\n  once(x);\n}\n'
    files = {
        "tests/unit/base/once.h": header,
        "tests/unit/base/dims_test.cpp": source + f"TEST(Dims, Are) {{\n  {body}\n}}\n",
    }
    assert [finding.partition(": ")[2] for finding in cpp_assertions.findings(files)] == what


def test_every_test_of_the_repository_can_fail() -> None:
    assert assertions.findings() == []


def test_a_table_without_rows_is_an_error(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.getini("empty_parameter_set_mark") == "fail_at_collect"


def test_exceptions_exist_and_have_reasons() -> None:
    assert all((assertions.ROOT / path).exists() and len(why) > 20 for path, why in assertions.MAY_SKIP.items())
    assert len(assertions.MAY_SKIP) <= 3


def test_a_missing_oracle_fails_in_ci_and_is_skipped_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    assert oracle("json").dumps({}) == "{}"
    monkeypatch.setenv("CI", "true")
    with pytest.raises(ModuleNotFoundError):
        oracle("no_such_module")
    monkeypatch.delenv("CI")
    with pytest.raises(Skipped):
        oracle("no_such_module.part")
