# SPDX-License-Identifier: Apache-2.0
"""Sharding rules of users: from einsum's notation to Shardy's attribute, and what propagation makes of them."""

from __future__ import annotations

from typing import Any

import pytest

import shardwise as sw
from tests.conformance.shardy.client import LEVELS, ShardyOracle, differences, shardings_of

Shapes = list[tuple[int, ...]]
# Rule, special factors and sizes, shapes of operands and results.
RULES: list[tuple[str, dict[str, Any], Shapes, Shapes]] = [
    ("i j, j k -> i k", {"reduction": "j"}, [(8, 4), (4, 16)], [(8, 16)]),
    ("... i j, ... j k -> ... i k", {"reduction": "j"}, [(8, 4), (4, 16)], [(8, 16)]),
    ("... i j, ... j k -> ... i k", {"reduction": ("j",)}, [(2, 3, 8, 4), (2, 3, 4, 16)], [(2, 3, 8, 16)]),
    ("...1 i, ... j -> ... i", {}, [(5, 8), (2, 4)], [(2, 8)]),
    ("b (h d), d e -> b h e", {"reduction": "d", "h": 4, "d": 8}, [(2, 32), (8, 16)], [(2, 4, 16)]),
    ("(a b) c -> a (b c)", {"a": 2, "b": 3, "c": 4}, [(6, 4)], [(2, 12)]),
    ("i j -> j i", {"need_replication": "i"}, [(8, 4)], [(4, 8)]),
    ("i j -> i j", {"permutation": ["i", "j"]}, [(8, 4)], [(8, 4)]),
    ("i -> i", {"permutation": "i"}, [(8,)], [(5,)]),
    ("i j, -> i j", {}, [(8, 4), ()], [(8, 4)]),
    ("i j ->", {"reduction": "i j"}, [(8, 4)], [()]),
    (" ".join(f"f{n}" for n in range(20)) + " -> f19", {"reduction": "f3 f18"}, [(2,) * 20], [(2,)]),
]


def as_jax_writes(rule: str, words: dict[str, Any], operands: Shapes, results: Shapes) -> str:
    from jax._src.custom_partitioning_sharding_rule import sdy_sharding_rule_to_mlir, str_to_sdy_sharding_rule
    from jax._src.interpreters import mlir as jax_mlir
    from jaxlib.mlir import ir

    kinds = {}
    for kind in ("reduction", "need_replication", "permutation"):
        names = words.get(kind, ())
        kinds[f"{kind}_factors"] = tuple(names.split() if isinstance(names, str) else names)
    # JAX wants no size of a factor that is a whole dim somewhere.
    whole = {word for side in rule.replace("->", ",").split(",") for word in side.split("(")[0].split()}
    whole |= {word for piece in rule.split(")")[1:] for word in piece.split("(")[0].replace(",", " ").split()}
    sizes = {f: n for f, n in words.items() if isinstance(n, int) and f not in whole}
    with jax_mlir.make_ir_context() as context, ir.Location.unknown(context):
        tensor = lambda shape: ir.RankedTensorType.get(shape, ir.F32Type.get())  # noqa: E731
        made = str_to_sdy_sharding_rule(rule, **kinds, **sizes)
        return str(sdy_sharding_rule_to_mlir(made, [*map(tensor, operands)], [*map(tensor, results)]))


@pytest.mark.parametrize(("rule", "words", "operands", "results"), RULES, ids=[row[0][:40] for row in RULES])
def test_a_rule_is_what_jax_makes_of_it(rule: str, words: dict[str, Any], operands: Shapes, results: Shapes) -> None:
    assert sw.sharding_rule(rule, **words).text(operands, results) == as_jax_writes(rule, words, operands, results)


def test_a_blocked_factor_is_listed() -> None:
    text = sw.sharding_rule("i j -> i j", blocked="j").text([(8, 4)], [(8, 4)])
    assert text == "#sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4} blocked_propagation={j}, custom>"


def test_the_last_size_in_brackets_follows_and_ones_are_left_out() -> None:
    rule = sw.sharding_rule("(h d) -> h d", h=4)
    assert rule.text([(32,)], [(4, 8)]) == "#sdy.op_sharding_rule<([ij])->([i, j]) {i=4, j=8}, custom>"
    assert rule.text([(4,)], [(4, 1)]) == "#sdy.op_sharding_rule<([i])->([i, j]) {i=4, j=1}, custom>"


def test_rules_compare_by_what_they_say() -> None:
    assert sw.sharding_rule("i -> i") == sw.sharding_rule("i -> i")
    assert sw.sharding_rule("i -> i") != sw.sharding_rule("i -> i", permutation="i")
    assert hash(sw.sharding_rule("i ->", reduction="i")) == hash(sw.sharding_rule("i ->", reduction=("i",)))
    assert repr(sw.sharding_rule("(i j) -> i j", i=2)) == "sharding_rule('(i j) -> i j', i=2)"


MISTAKES: list[tuple[str, dict[str, Any], str]] = [
    ("i j", {}, "a rule must be operands -> results, got 'i j'; write it like"),
    ("i -> j -> k", {}, "a rule must be operands -> results"),
    ("i+j -> i", {}, r"a dim must be a factor such as i, several in brackets such as \(i j\), or ..., got '\+'"),
    ("1 -> 1", {}, "a dim must be a factor such as i"),
    ("i ... -> i", {}, "... must be the first of a tensor, got 'i ...'"),
    ("i i -> i", {}, "a factor must be used once in a tensor, got 'i' in 'i i'"),
    ("(i) -> i", {}, r"brackets must hold two factors or more, got \(i\); write the factor alone"),
    ("(i 2) -> i", {}, "brackets must hold names of factors, got '2'"),
    ("((i j) k) -> i", {}, "a dim must be a factor such as i"),
    ("i -> i", {"reduction": "k"}, "reduction must name factors of 'i -> i', got 'k'"),
    ("i -> i", {"k": 4}, "sizes must name factors of 'i -> i', got 'k'"),
    ("i -> i", {"i": 0}, "the size of a factor must be an integer of at least 1, got i=0"),
    ("i -> i", {"reduction": "i"}, "a factor that is reduced must not be in a result, got 'i'"),
    ("i j -> j", {"reduction": "i", "permutation": "i"}, "a factor must be of one kind of .* got 'i' in two"),
    ("i j -> j", {"reduction": "i i"}, "reduction must name a factor once, got 'i i'"),
    ("i j -> j", {"reduction": (1,)}, r"reduction must be names of factors, got \(1,\)"),
]


@pytest.mark.parametrize(("rule", "words", "says"), MISTAKES, ids=[f"{row[0]} {row[1]}" for row in MISTAKES])
def test_what_is_no_rule_is_refused(rule: str, words: dict[str, Any], says: str) -> None:
    with pytest.raises(sw.ShardingError, match=says):
        sw.sharding_rule(rule, **words)


MISFITS: list[tuple[str, dict[str, Any], Shapes, Shapes, str]] = [
    ("i j -> i", {}, [(8, 4), (4,)], [(8,)], "'i j -> i' must have as many operands as the op, got 1 for 2"),
    ("i j -> i", {}, [(8, 4)], [], "'i j -> i' must have as many results as the op, got 1 for 0"),
    ("i j -> i", {}, [(8,)], [(8,)], r"'i j' must have an entry for each dim, got shape \(8,\)"),
    (
        "i -> i",
        {},
        [(8, 4)],
        [(8,)],
        "'i' must have an entry for each dim, got shape .* ... matches any number of dims",
    ),
    ("... i -> ...", {}, [(2, 8)], [(2, 3)], "... must match as many dims in each tensor, got 1 and 2"),
    ("... i -> ...", {}, [(2, 8)], [(3,)], "... must match dims of the same sizes, got 2 and 3"),
    ("(i j) -> i", {}, [(8,)], [(3,)], r"the factors of \(i j\) must multiply to the size of the dim, got 3 for 8"),
    ("(i j) -> (j i)", {}, [(8,)], [(8,)], r"all factors of \(i j\) but one must have a known size, got none for i, j"),
    ("(i j) -> i", {"i": 2, "j": 3}, [(8,)], [(2,)], r"the factors of \(i j\) must multiply .* got 6 for 8"),
    ("(i j) -> i", {"i": 2}, [(8,)], [(4,)], "a dim must have the size of its factor 'i', got 4, and i=2"),
]


@pytest.mark.parametrize(
    ("rule", "words", "operands", "results", "says"), MISFITS, ids=[row[4][:40] for row in MISFITS]
)
def test_shapes_that_do_not_fit_are_refused(
    rule: str, words: dict[str, Any], operands: Shapes, results: Shapes, says: str
) -> None:
    with pytest.raises(sw.ShardingError, match=says):
        sw.sharding_rule(rule, **words).text(operands, results)


# ---- on ops ---------------------------------------------------------------------------------------------------------

PROGRAM = """module {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {"y", ?}]>}, \
%arg1: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>
    %1 = stablehlo.dot_general %0, %arg1, contracting_dims = [1] x [0] : \
(tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %2 = stablehlo.add %1, %0 : tensor<8x8xf32>
    return %2 : tensor<8x8xf32>
  }
}
"""
ON_OPS: list[tuple[str, str, dict[str, Any]]] = [
    ("stablehlo.add", "i j, i k -> i k", {}),
    ("stablehlo.add", "i j, k l -> m n", {}),
    ("stablehlo.add", "i j, j i -> i j", {}),
    ("stablehlo.add", "i j, i j -> i j", {"blocked": "j"}),
    ("stablehlo.add", "i j, i j -> i j", {"need_replication": "i", "permutation": "j"}),
    ("stablehlo.dot_general", "i j, k j -> i k", {"reduction": "j"}),
    ("stablehlo.dot_general", "(a i) j, j k -> (a i) k", {"reduction": "j", "a": 2}),
]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("op", "rule", "words"), ON_OPS, ids=[f"{row[1]} {row[2]}" for row in ON_OPS])
def test_propagation_follows_the_rule_of_the_text(
    op: str,
    rule: str,
    words: dict[str, Any],
    level: str,
    shardy: ShardyOracle,
) -> None:
    module = sw.parse(PROGRAM).with_sharding_rule(op, sw.sharding_rule(rule, **words))
    text = str(module)
    for spelling in (text, text.replace(", custom>", ">")):
        core = sw._core.passes.run_passes(sw.parse(spelling)._core, [LEVELS[level]])
        ours = shardings_of(shardy.run(core.text()))
        assert not differences(ours, shardings_of(shardy.run(spelling, level)))


def test_the_text_keeps_the_rule(shardy: ShardyOracle) -> None:
    module = sw.parse(PROGRAM).with_sharding_rule("stablehlo.add", "i j, i k -> i k")
    text = str(module)
    assert text.count("#sdy.op_sharding_rule<([i, j], [i, k])->([i, k]) {i=8, j=8, k=8}, custom>") == 2
    assert sw.parse(text) == module
    assert str(sw.parse(text)) == text
    assert shardy.parse(text) == shardy.parse(module.as_text(generic=True))
    assert module != sw.parse(PROGRAM)


def test_one_of_several_ops_gets_the_rule() -> None:
    module = sw.parse(PROGRAM).with_sharding_rule("stablehlo.add", "i j, i k -> i k", index=1)
    lines = str(module).splitlines()
    assert [i for i, line in enumerate(lines) if "sharding_rule" in line] == [5]


def test_a_custom_call_is_named_by_its_target(shardy: ShardyOracle) -> None:
    text = """module {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {"y", ?}]>}, \
%arg1: tensor<4x16xf32>) -> tensor<8x16xf32> {
    %0 = stablehlo.custom_call @my_dot(%arg0, %arg1) : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
"""
    module = sw.parse(text).with_sharding_rule("my_dot", "i j, j k -> i k")
    ours = shardings_of(shardy.run(sw._core.passes.run_passes(module._core, ["propagate_user_priority"]).text()))
    theirs = shardings_of(shardy.run(str(module), "sdy-user-priority-propagate"))
    assert not differences(ours, theirs)
    assert ours["argument 1"] == '#sdy.sharding<@mesh, [{"y", ?}, {?}]>'


def test_a_rule_changes_shardings_and_no_numbers() -> None:
    """The op's own rule says how it is split; a false one of a user leads to reshards only."""
    import numpy as np

    module = sw.parse(PROGRAM).with_sharding_rule("stablehlo.dot_general", "i j, i k -> k j")
    compiled = sw._core.passes.compile(module._core, sw.Mesh({"x": 2, "y": 2})._core)
    a = np.arange(64, dtype=np.float32).reshape(8, 8) / 64
    b = a.T.copy()
    held = [
        sw._core.runtime.ShardedArray.scatter(x, sharding) for x, sharding in zip((a, b), compiled.argument_shardings)
    ]
    (result,) = sw._core.runtime.Executable(compiled).run(held)
    np.testing.assert_allclose(result.gather(), (a + b) @ b + (a + b), rtol=1e-5)


@pytest.mark.parametrize(
    ("op", "rule", "index", "says"),
    [
        (
            "stablehlo.sine",
            "i -> i",
            None,
            "an op must be one of the program, got 'stablehlo.sine'; it has stablehlo.add",
        ),
        ("stablehlo.add", "i -> i", 2, "an op must be one of the program, got 'stablehlo.add', index 2"),
        ("stablehlo.add", "i j, i j -> i j", -1, "an op must be one of the program"),
        ("", "i j, i j -> i j", None, "an op must be one of the program, got ''; it has stablehlo.add"),
        ("[0]", "i j, i j -> i j", None, r"an op must be one of the program, got '\[0\]'; it has stablehlo.add"),
        ("", "i j, i j -> i j", 0, "an op must be one of the program, got '', index 0"),
        ("stablehlo.add", "i -> i", None, "'i -> i' must have as many operands as the op, got 1 for 2"),
    ],
)
def test_a_rule_for_no_op_is_refused(op: str, rule: str, index: int | None, says: str) -> None:
    with pytest.raises(sw.ShardingError, match=says):
        sw.parse(PROGRAM).with_sharding_rule(op, rule, index=index)
