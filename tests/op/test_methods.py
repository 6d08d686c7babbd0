# SPDX-License-Identifier: Apache-2.0
"""Methods: how ops keep a dim sharded that their rule would gather. The choice prices them by their collectives."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P, _core
from tests.support.partitioned import execute

MESH = sw.Mesh({"x": 4})
RNG = np.random.default_rng(5)
METHODS = {op.name: op.methods for op in _core.ir.all_ops() if op.methods}
SHARDED = "{sdy.sharding = #sdy.sharding<@mesh, [{'x'}, {}]>}".replace("'", '"')


def rows(count: int = 64, columns: int = 3) -> np.ndarray:
    return RNG.normal(size=(count, columns)).astype(np.float32)


def compiled(function: Any, *arrays: np.ndarray, out: Any = None, mesh: sw.Mesh = MESH) -> Any:
    specs = (P("x"), *(P() for _ in arrays[1:]))
    return sw.jit(function, mesh=mesh, in_shardings=specs, out_shardings=out).lower(*arrays).compile()


def assigned(propagated: str) -> str:
    return str(_core.passes.run_passes(_core.ir.parse(propagated), ["assign"]).text())


def method_in(propagated: str) -> list[str]:
    return re.findall(r'method = "([^"]*)"', assigned(propagated))


IDS = np.array([0, 17, 63, 5, -2], np.int32)
CASES = {
    "cumsum": ("totals", lambda x: np.cumsum(x, axis=0), ()),
    "argmax": ("partial results", lambda x: np.argmax(x, axis=0), ()),
    "take": ("owned rows", lambda x, ids: np.take(x, ids, axis=0), (IDS,)),
    "row": ("owned rows", lambda x, i: x[i], (np.int32(41),)),
}


@pytest.mark.parametrize("count", [64, 61, 3])
@pytest.mark.parametrize("name", CASES)
def test_a_method_is_named_and_gives_the_same_numbers(name: str, count: int) -> None:
    method, function, others = CASES[name]
    x = rows(count, 33)
    others = tuple(np.clip(other, -count, count - 1) for other in others)
    program = compiled(function, x, *others)
    np.testing.assert_allclose(program.run(x, *others), function(x, *others), rtol=1e-5, atol=1e-5)
    if count == 3:  # the last device has no row
        return
    assert method_in(program.as_text("propagated")) == [method]
    for row in program.collectives():
        # The indices of argmax move as int32 and are converted afterwards.
        assert row.cause.startswith(f"{method} of ") or row.cause in ("result 0", "operand 0 of convert"), row.cause


def test_updates_of_rows_are_the_owners() -> None:
    x, ids, updates = rows(), np.array([0, 17, 63, 17, 5], np.int32), rows(5)
    program = compiled(lambda x, ids, updates: x.at[ids].add(updates), x, ids, updates, out=P("x"))
    want = x.copy()
    np.add.at(want, ids, updates)
    np.testing.assert_allclose(program.run(x, ids, updates), want, rtol=1e-5)
    assert method_in(program.as_text("propagated")) == ["owned rows"]
    assert len(program.collectives()) == 0


def dynamic_program(count: int, size: int, updates: bool) -> str:
    mesh = "sdy.mesh @mesh = <['x'=4]>".replace("'", '"')
    big, small = f"tensor<{count}x3xf32>", f"tensor<{size}x3xf32>"
    index = "(%x, %u, %i, %j)" if updates else "(%x, %i, %j)"
    op = (
        f'"stablehlo.dynamic_update_slice"{index} : ({big}, {small}, tensor<i32>, tensor<i32>) -> {big}'
        if updates
        else f'"stablehlo.dynamic_slice"{index} <{{slice_sizes = array<i64: {size}, 3>}}>'
        f" : ({big}, tensor<i32>, tensor<i32>) -> {small}"
    )
    result = f"{big} {SHARDED}" if updates else small
    return f"""module @m {{
  {mesh}
  func.func public @main(%x: {big} {SHARDED}, %u: {small}, %i: tensor<i32>, %j: tensor<i32>) -> ({result}) {{
    %0 = {op}
    return %0 : {big if updates else small}
  }}
}}
"""


@pytest.mark.parametrize("updates", [False, True], ids=["slice", "update"])
@pytest.mark.parametrize("size", [0, 1, 3, 20])
@pytest.mark.parametrize("count", [64, 61])
def test_a_slice_across_shards_is_read_and_written_by_its_owners(count: int, size: int, updates: bool) -> None:
    """Blocks have 16 rows: slices of 20 rows are larger than a shard, those of 3 may cross into the next one."""
    module = _core.ir.parse(dynamic_program(count, size, updates))
    found = _core.passes.compile(module, module.mesh)
    x, u = rows(count), rows(size)
    for start in (-7, 0, 1, 13, 14, 15, 16, 17, 31, 45, 60, 10_000):
        at = min(max(start, 0), count - size)
        want = x.copy()
        want[at : at + size] = u
        expected = want if updates else x[at : at + size]
        for [got] in execute(found, [x, u, np.asarray(start, np.int32), np.asarray(0, np.int32)]):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("count", [64, 61])
@pytest.mark.parametrize(
    ("dtype", "start"), [("i32", 10), ("i32", 0), ("i32", -3), ("i32", 10**6), ("ui64", 2**64 - 1), ("i8", 21)]
)
def test_a_dynamic_slice_at_a_constant_start_receives_what_it_reads(dtype: str, start: int, count: int) -> None:
    mesh = 'sdy.mesh @mesh = <["x"=4]>'
    module = _core.ir.parse(f"""module {{ {mesh}
      func.func @main(%x: tensor<{count}x3xf32> {SHARDED}) -> (tensor<40x3xf32> {SHARDED}) {{
        %i = stablehlo.constant dense<{start}> : tensor<{dtype}>
        %j = stablehlo.constant dense<0> : tensor<{dtype}>
        %0 = stablehlo.dynamic_slice %x, %i, %j, sizes = [40, 3]
          : (tensor<{count}x3xf32>, tensor<{dtype}>, tensor<{dtype}>) -> tensor<40x3xf32>
        return %0 : tensor<40x3xf32>
      }} }}""")
    found = _core.passes.compile(module, module.mesh)
    x, at = rows(count), min(max(start, 0), count - 40)
    for [got] in execute(found, [x]):
        np.testing.assert_array_equal(got, x[at : at + 40])
    [row] = found.collectives()
    assert (row["kind"], row["cause"]) == ("exchange", "exchange of dynamic_slice along dim 0")


@pytest.mark.parametrize(("size", "kinds"), [(1, ["all_reduce"]), (40, ["all_gather"])])
def test_a_dynamic_slice_is_gathered_only_if_that_is_cheaper(size: int, kinds: list[str]) -> None:
    """Of 64 rows on 4 devices a gather receives 48; a reduction of the slice 1.5 times the slice."""
    module = _core.ir.parse(dynamic_program(64, size, False))
    found = _core.passes.compile(module, module.mesh).collectives()
    assert [row["kind"] for row in found] == kinds
    if size == 1:
        assert found[0]["cause"] == "owned rows of dynamic_slice"
    else:
        assert found[0]["cause"] == "operand 0 of dynamic_slice: the start along dim 0 is known only at run time"


def test_the_price_of_a_method_is_what_its_ledger_counts() -> None:
    """A cumulative sum of one row per device: totals would send the data twice, so another dim is split."""
    x = rows(4, 16)
    program = compiled(lambda x: np.cumsum(x, axis=0), x, out=P(None, "x"))
    assert [(row.kind, row.bytes) for row in program.collectives()] == [("all_to_all", 48.0)]
    np.testing.assert_allclose(program.run(x), np.cumsum(x, axis=0), rtol=1e-5)


@pytest.mark.parametrize("count", [64, 61, 3])
def test_a_sort_moves_the_axes_of_its_dim_to_a_free_dim_and_back(count: int) -> None:
    x = rows(count, 32)
    program = compiled(lambda x: np.sort(x, axis=0), x, out=P("x"))
    np.testing.assert_array_equal(program.run(x), np.sort(x, axis=0))
    assert [row.kind for row in program.collectives()] == ["all_to_all", "all_to_all"]


def test_a_sort_of_the_only_dim_gathers_it() -> None:
    x = rows(64, 1)
    program = compiled(lambda x: np.argsort(x, axis=0), x, out=P("x"))
    np.testing.assert_array_equal(program.run(x), np.argsort(x, axis=0))
    assert [(row.kind, row.cause) for row in program.collectives()] == [("all_gather", "operand 0 of sort")]


def test_top_k_gathers_the_winners_of_each_shard() -> None:
    text = dynamic_program(61, 1, False).replace("61x3", "61").replace("1x3", "2").replace(", {}]", "]")
    text = re.sub(r"%0 = .*", "%0, %1 = chlo.top_k(%x, k = 2) : tensor<61xf32> -> (tensor<2xf32>, tensor<2xi32>)", text)
    assert method_in(text) == ["winners"]


def test_a_scan_updates_its_stack_in_place() -> None:
    """The body of a loop writes one row of the shard; padding the stack would make a copy of it in every trip."""
    xs = rows(40, 8)

    def stack(c: Any, xs: Any) -> Any:
        return sw.scan(lambda c, x: (c + x, c + x), c, xs)[1]

    program = sw.jit(stack, mesh=MESH, out_shardings=P("x")).lower(np.zeros(8, np.float32), xs).compile()
    np.testing.assert_allclose(program.run(np.zeros(8, np.float32), xs), np.cumsum(xs, axis=0), rtol=1e-4, atol=1e-4)
    text = program.as_text("local")
    body = text[text.index("shardwise.scan") :]
    assert "stablehlo.pad" not in body
    assert re.search(r"dynamic_update_slice .*tensor<10x8xf32>, tensor<1x8xf32>", body)


@pytest.mark.parametrize(
    ("name", "function", "cause"),
    [
        ("reverse", lambda x: x[::-1], "the range [0, 64) crosses shards along dim 0"),
        ("concatenate", lambda x: np.concatenate([x, x]), "the range [0, 64) crosses shards along dim 0"),
    ],
)
def test_a_range_that_crosses_shards_is_the_cause_of_a_gather(name: str, function: Any, cause: str) -> None:
    """The whole result needs the whole operand, and nothing is cheaper than a gather."""
    x = rows()
    program = compiled(function, x, out=P())
    np.testing.assert_array_equal(program.run(x), function(x))
    assert {row.cause for row in program.collectives()} == {f"operand 0 of {name}: {cause}"}


@pytest.mark.parametrize(("dims", "cause"), [('[{"x"}, {}]', None), ('[{}, {"x"}]', "exchange of pad along dim 0")])
def test_a_range_that_stays_on_its_shard_is_no_cause(dims: str, cause: str | None) -> None:
    """Each device pads its own rows, so that a move to another dim has another reason."""
    text = f"""sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<16x8xf32> {SHARDED})
        -> (tensor<32x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, {dims}>}}) {{
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.pad %a, %z, low = [0, 0], high = [1, 0], interior = [1, 0]
          : (tensor<16x8xf32>, tensor<f32>) -> tensor<32x8xf32>
      return %0 : tensor<32x8xf32>
    }}"""
    program = sw.parse(text).compile()
    x = rows(16, 8)
    expected = np.zeros((32, 8), np.float32)
    expected[::2] = x
    np.testing.assert_array_equal(program(x), expected)
    assert [row.cause for row in program.collectives()] == ([cause] if cause else [])


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("slice", lambda x: x[10:40]),
        ("reverse", lambda x: x[::-1]),
        ("concatenate", lambda x: np.concatenate([x, x])),
        ("pad", lambda x: np.pad(x, ((3, 5), (0, 0)))),
    ],
)
def test_a_range_that_crosses_shards_is_exchanged(name: str, function: Any) -> None:
    x = rows()
    program = compiled(function, x)
    np.testing.assert_array_equal(program.run(x), function(x))
    assert method_in(program.as_text("propagated")) == ["exchange"]
    assert [(row.kind, row.cause) for row in program.collectives()] == [("exchange", f"exchange of {name} along dim 0")]


@pytest.mark.parametrize(
    ("function", "moved"),
    [(lambda x: x[::2], 0), (lambda x: x[1::4], 0), (lambda x: x[:61], 0), (lambda x: x[:48], 1), (lambda x: x[1:], 1)],
)
def test_a_range_inside_each_shard_moves_nothing(function: Any, moved: int) -> None:
    x = rows()
    program = compiled(function, x, out=P("x"))
    np.testing.assert_array_equal(program.run(x), function(x))
    assert len(program.collectives()) == moved


def test_rows_that_a_slice_cuts_off_are_padding() -> None:
    """The rows of the exchange are padded with zeros; after the slice, rows 61 and 62 of x are padding as well."""
    x = rows(63, 8)
    program = sw.jit(lambda x: np.sum(sw.shard(x, P("x", None))[:61], axis=0), mesh=MESH, in_shardings=P(None, "x"))
    np.testing.assert_allclose(program(x), x[:61].sum(axis=0), rtol=1e-4, atol=1e-5)


def test_each_method_is_tested_here() -> None:
    assert METHODS == {
        "chlo.top_k": ["winners"],
        "stablehlo.concatenate": ["exchange"],
        "stablehlo.convolution": ["exchange"],  # partition/windows/test_convolution_windows.py
        "stablehlo.dynamic_slice": ["owned rows", "exchange"],
        "stablehlo.dynamic_update_slice": ["owned rows"],
        "stablehlo.fft": ["another dim", "pencils"],  # partition/test_needed_bytes.py
        "stablehlo.gather": ["owned rows", "owned windows"],  # partition/test_known_places.py
        "stablehlo.pad": ["exchange"],
        "stablehlo.reduce": ["partial results", "gathered partial results"],
        "stablehlo.reduce_window": [
            "gathered totals",
            "totals",
            "chain",
            "another dim",
            "exchange",
        ],  # partition/test_objective.py
        "stablehlo.reshape": ["exchange"],  # partition/test_reshape_rows.py
        "stablehlo.reverse": ["exchange"],
        "stablehlo.scatter": ["owned rows", "owned windows", "shards as addends"],  # partition/test_owned_bits.py
        "stablehlo.select_and_scatter": ["exchange"],  # partition/test_select_and_scatter.py
        "stablehlo.slice": ["exchange"],
        "stablehlo.sort": ["another dim"],
    }


def test_an_unknown_method_in_a_text_is_an_error() -> None:
    text = assigned(sw.parse(dynamic_program(64, 1, True)).propagate().as_text())
    with pytest.raises(
        sw.ShardingError,
        match=re.escape(
            "stablehlo.dynamic_update_slice: its operands and results must be sharded as one of its methods needs "
            "them, got method magic; run assign on the program before"
        ),
    ):
        _core.passes.run_passes(
            _core.ir.parse(text.replace('method = "owned rows"', 'method = "magic"')), ["plan_reshards", "localize"]
        )


def test_assign_forgets_the_method_that_a_text_names() -> None:
    whole = dynamic_program(64, 1, True).replace(SHARDED, "")
    named = whole.replace("(%x, %u, %i, %j) :", '(%x, %u, %i, %j) {method = "owned rows"} :')
    assert named != whole
    assert assigned(named) == assigned(whole)
