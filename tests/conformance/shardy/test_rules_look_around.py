# SPDX-License-Identifier: Apache-2.0
"""Rules that look at the ops around an op: Shardy's, and results do not depend on them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import shardwise as sw
from shardwise import _core
from tests.conformance.shardy.client import ShardyOracle, canonical_rule
from tests.conformance.shardy.rule_instances.every_op import CONSERVATIVE_RULES, RULES
from tests.support.partitioned import run

SLICE = "stablehlo.slice %x [2:6, 0:6] : (tensor<8x6xf32>) -> tensor<4x6xf32>"
NEGATE = "stablehlo.negate %y : tensor<4x6xf32>"
START = {
    "constant": "stablehlo.constant dense<{n}> : tensor<i32>",
    "chlo": '"chlo.constant"() <{{value = dense<{n}> : tensor<i32>}}> : () -> tensor<i32>',
    "computed": "stablehlo.add %s, %s : tensor<i32>",
}


def joined(makers: tuple[str, ...], dim: int) -> str:
    made = [f"  %{i} = {maker}" for i, maker in enumerate(makers) if maker]
    names = ", ".join(f"%{i}" if maker else "%y" for i, maker in enumerate(makers))
    shape = [4, 6]
    shape[dim] *= len(makers)
    kind = f"tensor<{shape[0]}x{shape[1]}xf32>"
    types = ", ".join(["tensor<4x6xf32>"] * len(makers))
    return "\n".join([
        f"func.func @main(%x: tensor<8x6xf32>, %y: tensor<4x6xf32>) -> {kind} {{", *made,
        f"  %r = stablehlo.concatenate {names}, dim = {dim} : ({types}) -> {kind}", f"  return %r : {kind}", "}",
    ])  # fmt: skip


def rolled(*parts: str) -> str:
    """A concatenation of two values, of slices of them, and of a slice of a slice."""
    sizes = {"x": 8, "y": 8, "sx": 4, "tx": 4, "sy": 4, "ssx": 2}
    shape = sum(sizes[part] for part in parts)
    types = ", ".join(f"tensor<{sizes[part]}x6xf32>" for part in parts)
    return f"""func.func @main(%x: tensor<8x6xf32>, %y: tensor<8x6xf32>) -> tensor<{shape}x6xf32> {{
  %sx = stablehlo.slice %x [0:4, 0:6] : (tensor<8x6xf32>) -> tensor<4x6xf32>
  %tx = stablehlo.slice %x [2:6, 0:6] : (tensor<8x6xf32>) -> tensor<4x6xf32>
  %sy = stablehlo.slice %y [0:4, 0:6] : (tensor<8x6xf32>) -> tensor<4x6xf32>
  %ssx = stablehlo.slice %sx [0:2, 0:6] : (tensor<4x6xf32>) -> tensor<2x6xf32>
  %r = stablehlo.concatenate {", ".join("%" + part for part in parts)}, dim = 0 : ({types}) -> tensor<{shape}x6xf32>
  return %r : tensor<{shape}x6xf32>
}}"""


def updated(starts: tuple[str, ...]) -> str:
    made = [f"  %{i} = {START[kind].format(n=i + 1)}" for i, kind in enumerate(starts) if kind in START]
    names = ", ".join(f"%{i}" if kind in START else "%s" for i, kind in enumerate(starts))
    types = "(tensor<8x6xf32>, tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<8x6xf32>"
    return "\n".join([
        "func.func @main(%x: tensor<8x6xf32>, %u: tensor<4x3xf32>, %s: tensor<i32>) -> tensor<8x6xf32> {", *made,
        f"  %r = stablehlo.dynamic_update_slice %x, %u, {names} : {types}", "  return %r : tensor<8x6xf32>", "}",
    ])  # fmt: skip


TEXTS = [joined(makers, dim) for makers in itertools.product((SLICE, NEGATE, ""), repeat=2) for dim in (0, 1)]
TEXTS += [joined((SLICE,), 0), joined((SLICE, SLICE, SLICE), 0)]
TEXTS += [rolled(*parts) for parts in itertools.product(("x", "y", "sx", "tx", "sy", "ssx"), repeat=2)]
TEXTS += [rolled(*parts) for parts in (("x", "sx", "tx"), ("x", "sx", "sy"), ("sx", "ssx", "sx"), ("x", "x", "ssx"))]
TEXTS += [updated(starts) for starts in itertools.product(("constant", "chlo", "computed", "argument"), repeat=2)]


@pytest.mark.parametrize("conservative", [False, True])
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_rules_are_shardys(shardy: ShardyOracle, text: str, conservative: bool) -> None:
    theirs = shardy.run(text, CONSERVATIVE_RULES if conservative else RULES)["rules"][-1]
    ours = _core.ir.parse(text).sharding_rules(conservative)[-1][1]
    assert canonical_rule(ours) == canonical_rule(theirs)


def combined(*users: str) -> str:
    """Two equal calls that make 64-bit words; the first one's word goes to the users."""
    lines = [f"  %u{i}:2 = stablehlo.rng_bit_generator %s, algorithm = DEFAULT : (tensor<2xui64>) -> "
             "(tensor<2xui64>, tensor<8xui32>)" if user == "generator" else
             f"  %u{i} = stablehlo.add %s, %t : tensor<2xui64>" for i, user in enumerate(users)]  # fmt: skip
    call = "stablehlo.custom_call @X64Combine(%x, %y) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui64>"
    return "\n".join([
        "func.func @main(%x: tensor<2xui32>, %y: tensor<2xui32>, %p: tensor<i1>) -> tensor<2xui64> {",
        f"  %s = {call}", f"  %t = {call}", *lines, "  return %t : tensor<2xui64>", "}",
    ])  # fmt: skip


@pytest.mark.parametrize("conservative", [False, True])
@pytest.mark.parametrize("users", [(), ("add",), ("generator",), ("add", "generator"), ("generator", "generator")])
def test_a_word_for_a_random_generator_is_whole(
    shardy: ShardyOracle, users: tuple[str, ...], conservative: bool
) -> None:
    text = combined(*users)
    theirs = shardy.run(text, CONSERVATIVE_RULES if conservative else RULES)["rules"][:2]
    ours = [rule for _, rule in _core.ir.parse(text).sharding_rules(conservative)[:2]]
    assert list(map(canonical_rule, ours)) == list(map(canonical_rule, theirs))
    whole = "([i], [i])->([i]) {i=2} need_replication={i} blocked_propagation={i}"
    assert ours == [whole if "generator" in users else "([i], [i])->([i]) {i=2}", "([i], [i])->([i]) {i=2}"]


def test_equal_ops_of_one_program_may_have_different_rules() -> None:
    other = "stablehlo.concatenate %y, %y, dim = 0 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>"
    text = joined((SLICE, SLICE), 0).replace("  return", f"  %t = {other}\n  return")
    rules = [rule for name, rule in _core.ir.parse(text).sharding_rules() if name == "stablehlo.concatenate"]
    assert [rule.partition("} ")[2] for rule in rules] == ["permutation={i}", "need_replication={i}"]


@pytest.mark.parametrize("devices", [2, 3, 4])
@pytest.mark.parametrize("dim", [0, 1])
def test_results_do_not_depend_on_the_rule(devices: int, dim: int) -> None:
    x = np.arange(48, dtype=np.float32).reshape(8, 6)
    u = -np.arange(1, 13, dtype=np.float32).reshape(4, 3)
    spec = [None, None]
    spec[dim] = "d"

    def roll(x: np.ndarray) -> np.ndarray:
        x = sw.shard(x, sw.P(*spec))
        return sw.shard(np.concatenate([x[5:], x[:5], x[2:4]], 0), sw.P(*spec))

    mesh = sw.Mesh({"d": devices})
    np.testing.assert_array_equal(np.asarray(sw.jit(roll, mesh=mesh)(x)), np.concatenate([x[5:], x[:5], x[2:4]], 0))
    sharding = ", ".join('{"d"}' if name else "{}" for name in spec)
    text = f'sdy.mesh @mesh = <["d"={devices}]>\n' + updated(("constant", "constant")).replace(
        "%u: tensor<4x3xf32>", f"%u: tensor<4x3xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{sharding}]>}}"
    )
    expected = x.copy()
    expected[1:5, 2:5] = u
    (result,) = run(_core.ir.parse(text), mesh._core, [x, u, np.array(0, np.int32)])
    np.testing.assert_array_equal(result, expected)
