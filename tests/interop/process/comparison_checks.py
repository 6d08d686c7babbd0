# SPDX-License-Identifier: Apache-2.0
"""The collectives of handed-over programs are those of the HLO after SPMD partitioning, in kind, count and bytes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import shardwise as sw
from shardwise import P
from shardwise.interop.comparison import compiled_texts, sent
from shardwise.interop.hlo import collectives_of, instructions_of, op_class
from tests.interop.process.handed_programs import PROGRAMS, Handed
from tests.interop.process.to_jax_checks import MESHES, compiled, text_with_calls
from tests.support.run_seed import in_turn

NAMES = ("mlp", "uneven_product", "extremes", "integer_sums", "narrow_floats", "gradients", "resharded", "exchanges")
MESH = MESHES["4x2"]


@pytest.mark.parametrize("handed", in_turn([x for x in PROGRAMS if x.name in NAMES]), ids=lambda handed: handed.name)
def test_the_ledger_is_that_of_the_partitioned_hlo(handed: Handed) -> None:
    program = compiled(handed, MESH)
    report = sw.interop.compare(program, program.to_jax(), *handed.arguments, runs=1)
    assert report.ours.rows == program.collectives().rows
    assert report.handed is not None
    handed, found = sent(report.handed), sent(report.theirs)
    assert found - handed == Counter(), f"{found}\n{report.handed}"
    assert report.same_collectives() or handed.name == "exchanges"  # two of its permutes are the same, XLA drops one


def test_collectives_of_functions_and_loops_count_as_often_as_they_run() -> None:
    function = sw.parse(text_with_calls(3)).compile().to_jax()
    found = collectives_of(compiled_texts(function.lower())[0])
    assert sent(found) == sent(function.collectives()) == {("all_gather", 216.0): 6, ("all_reduce", 40.0): 12}
    assert sorted({row.count for row in found}) == [1, 3]


def layer(x: Any, w: Any) -> Any:
    return (x @ w).sum(0)


def test_times_bytes_and_counts_of_both_sides() -> None:
    x, w = np.ones((64, 32), np.float32), np.ones((32, 16), np.float32)
    program = sw.jit(layer, mesh=MESH, in_shardings=(P("x"), P(None, "y"))).lower(x, w).compile()
    report = sw.interop.compare(program, program.to_jax(), x, w)
    rows = {row.name: row for row in report}
    assert next(iter(rows)) == "all_reduce"
    assert rows["all_reduce"].where == f"{__file__}:{layer.__code__.co_firstlineno + 1}"
    for side in (rows["all_reduce"].ours, rows["all_reduce"].theirs):
        assert (side.count, side.bytes) == (1, 4 * (8 + 2 * 2))
        assert side.seconds > 0
    assert rows["dot"].ours.bytes == 4 * 16 * 8
    assert rows["dot"].ours.count == rows["dot"].theirs.count == 1
    assert rows["dot"].theirs.seconds > 0
    text = repr(report)
    assert text.splitlines()[0].split()[0] == "name"
    assert "handed_text" not in text
    assert text.endswith("received per device: 48 B here, 48 B in JAX")
    assert report.to_dict()["rows"][0]["ours"]["count"] == 1


def product_and_sums(x: Any, w: Any) -> Any:
    y = x @ w
    first = y.prod(0)
    second, third = y.sum(0), (y * y).sum(0)
    return first, second, third


def test_each_collective_of_the_program_has_a_row_with_its_own_times() -> None:
    x, w = np.full((64, 32), 0.1, np.float32), np.full((32, 16), 0.3, np.float32)
    program = sw.jit(product_and_sums, mesh=MESH, in_shardings=(P("x"), P(None, "y"))).lower(x, w).compile()
    report = sw.interop.compare(program, program.to_jax(), x, w)
    assert report.ours.rows == program.collectives().rows
    rows = list(report)[: len(report.ours)]
    assert [(row.name, row.where, row.ours.bytes) for row in rows] == [
        (row.kind, row.location, row.total_bytes) for row in report.ours
    ]
    assert all(row.ours.seconds > 0 and row.theirs.seconds > 0 for row in rows)
    by_line = {row.where.rpartition(":")[2]: row for row in rows}
    line = product_and_sums.__code__.co_firstlineno
    product = by_line[str(line + 2)]
    assert product.handed_text == "1 all_to_all, 24 B + 1 all_gather, 24 B"
    assert (product.theirs.count, product.theirs.bytes) == (2, 48)
    assert by_line[str(line + 3)].handed_text == ""
    assert [row.name for row in report][len(rows)] == "dot"  # JAX has no other collectives
    assert report.same_collectives()
    total = sum(row.theirs.bytes for row in rows)
    ours = sum(row.total_bytes for row in report.ours)
    assert (
        report.summary() == f"received per device: {ours:.0f} B here, {total:.0f} B handed over, {total:.0f} B in JAX"
    )
    assert "  handed_text  " in repr(report)
    assert [row["kind"] for row in report.to_dict()["rows"][rows.index(product)]["handed"]] == [
        "all_to_all", "all_gather",
    ]  # fmt: skip


def test_a_program_of_jax_must_be_that_of_the_program() -> None:
    x = np.ones((8, 4), np.float32)
    first, second = (sw.jit(f, mesh=MESH, in_shardings=P("x")).lower(x).compile() for f in (np.prod, np.sum))
    with pytest.raises(
        ValueError, match=r"^compare: the JAX program must be made of the program, got <JAX program on "
    ):
        sw.interop.compare(first, second.to_jax(), x)


def test_collectives_that_only_jax_has_are_rows() -> None:
    x = np.ones((8, 8), np.float32)
    program = sw.jit(lambda x: x + 1, mesh=MESH, in_shardings=P("x")).lower(x).compile()
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
    split, whole = NamedSharding(mesh, PartitionSpec("x")), NamedSharding(mesh, PartitionSpec())
    report = sw.interop.compare(program, jax.jit(lambda x: x + 1, in_shardings=split, out_shardings=whole), x, runs=1)
    assert report.handed is None
    assert not report.same_collectives()
    first = report[0]
    assert (first.name, first.where, first.ours.count, first.theirs.count) == ("all_gather", "", 0, 1)
    assert first.theirs.seconds > 0


def test_a_function_that_xla_partitions() -> None:
    x, w = np.ones((64, 32), np.float32), np.ones((32, 16), np.float32)
    program = sw.jit(layer, mesh=MESH, in_shardings=(P("x"), P(None, "y"))).lower(x, w).compile()
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
    specs = (PartitionSpec("x"), PartitionSpec(None, "y"))
    function = jax.jit(layer, in_shardings=tuple(NamedSharding(mesh, spec) for spec in specs))
    report = sw.interop.compare(program, function, x, w, runs=1)
    assert sum(row.bytes for row in report.theirs) >= sum(row.bytes for row in report.ours) == 48


def scaled(x: Any, *, scale: Any, shift: Any) -> Any:
    return x * scale + shift, (x - shift).sum(0)


@pytest.mark.parametrize("is_placed", [False, True], ids=["of NumPy", "placed"])
def test_donated_and_keyword_arguments(is_placed: bool) -> None:
    """10 rows on 4 devices are padded to 12; the caller's arrays stay alive."""
    x, scale, shift = np.ones((10, 8), np.float32), np.float32(2), np.ones(8, np.float32)
    jitted = sw.jit(scaled, mesh=MESH, in_shardings=(P("x"),), donate_argnames=("x", "shift"))
    program = jitted.lower(x, scale=scale, shift=shift).compile()
    function = program.to_jax()
    args, kwargs = function.put(x, scale=scale, shift=shift) if is_placed else ((x,), {"scale": scale, "shift": shift})
    report = sw.interop.compare(program, function, *args, **kwargs, runs=2)
    assert report.same_collectives()
    assert report[0].name == "all_reduce"
    assert report[0].theirs.seconds > 0
    if is_placed:
        assert not args[0].is_deleted()
    for got, want in zip(function.get(function(*args, **kwargs)), scaled(x, scale=scale, shift=shift)):
        np.testing.assert_array_equal(got, want)
    if is_placed:
        assert args[0].is_deleted()


def test_arguments_that_a_function_of_jax_donates() -> None:
    x, scale = np.ones((8, 8), np.float32), np.float32(2)
    program = sw.jit(lambda x, scale: x * scale, mesh=MESH, in_shardings=(P("x"),)).lower(x, scale=scale).compile()
    split = NamedSharding(jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y")), PartitionSpec("x"))
    placed = jax.device_put(x, split)
    function = jax.jit(lambda x, scale: x * scale, donate_argnums=0)
    report = sw.interop.compare(program, function, placed, scale=scale, runs=2)
    assert report.same_collectives()
    assert not placed.is_deleted()
    function(placed, scale=scale)
    assert placed.is_deleted()


def test_what_cannot_be_compared() -> None:
    x = np.ones(8, np.float32)
    program = sw.jit(lambda x: x + 1, mesh=MESH).lower(x).compile()
    with pytest.raises(TypeError, match=r"^compare: takes a compiled program, got 3; call \.compile\(\) first \(at "):
        sw.interop.compare(3, np.sin, x)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^compare: takes a jitted function of JAX, got .*; pass jax\.jit\(function\)"):
        sw.interop.compare(program, np.sin, x)
    with pytest.raises(ValueError, match=r"^compare: runs must be a positive integer, got 0 \(at "):
        sw.interop.compare(program, program.to_jax(), x, runs=0)


HLO = """HloModule m

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  ROOT %add.1 = f32[] add(%a, %a)
}

%fused (p: f32[8,4]) -> f32[4,8] {
  %p = f32[8,4]{1,0} parameter(0)
  ROOT %t = f32[4,8]{1,0} transpose(%p), dimensions={1,0}
}

ENTRY %main (x: f32[8,4]) -> f32[4,8] {
  %x = f32[8,4]{1,0} parameter(0)
  %r = f32[8,4]{1,0} all-reduce(%x), replica_groups=[2,4]<=[8], to_apply=%sum
  %g = (bf16[2]{0}, bf16[16]{0}) all-gather-start(%h), replica_groups={{0,1,2,3,4,5,6,7}}, dimensions={0}
  %s = s32[3]{0} reduce-scatter(%i), replica_groups={{0,1,2,3},{4,5,6,7}}, to_apply=%sum
  %n = s8[4]{0} reduce-scatter(%i), replica_groups=mesh['a'=8,'b'=3] {'a':(1)2,'b'}, to_apply=%sum
  %e = (u8[5]{0}, u8[5]{0}) all-to-all(%j, %k), replica_groups={{0,1},{2,3},{4,5},{6,7}}
  %c = pred[6]{0} collective-permute(%q), source_target_pairs={{0,1}}
  ROOT %f = f32[4,8]{1,0} fusion(%r), kind=kLoop, calls=%fused
}
"""


def test_hlo_is_read_in_all_its_spellings() -> None:
    found = [(row.kind, row.group_size, row.bytes, row.dtype) for row in collectives_of(HLO)]
    assert found == [
        ("all_reduce", 4, 4.0 * (32 + 2 * 8), "float32"),
        ("all_gather", 8, 28.0, "bfloat16"),
        ("reduce_scatter", 4, 36.0, "int32"),
        ("reduce_scatter", 6, 20.0, "int8"),
        ("all_to_all", 2, 5.0, "uint8"),
        ("collective_permute", 0, 6.0, "bool"),
    ]
    own = [(row.name, row.op_class) for row in instructions_of(HLO)]
    assert own[-1] == ("f", "movement")
    assert len(own) == 7


LOOP = """HloModule m

%body (p: (s32[], f32[4])) -> (s32[], f32[4]) {
  %p = (s32[], f32[4]{0}) parameter(0)
  %r = f32[4]{0} all-reduce(%p#1), replica_groups={{0,1}}, to_apply=%sum
  ROOT %t = (s32[], f32[4]{0}) tuple(%p#0, %r)
}

%condition (q: (s32[], f32[4])) -> pred[] {
  %q = (s32[], f32[4]{0}) parameter(0)
COUNTER  %limit = s32[] constant(9)
  ROOT %lt = pred[] compare(%i, %limit), direction=LT
}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %first = s32[] constant(2)
  %carried = (s32[], f32[4]{0}) tuple(%first, %x)
  %loop = (s32[], f32[4]{0}) while(%carried), condition=%condition, body=%body
  ROOT %result = f32[4]{0} get-tuple-element(%loop), index=1
}
"""


@pytest.mark.parametrize(
    ("counter", "name", "trips"),
    [
        ("  %i = s32[] get-tuple-element(%q), index=0\n", "%i", 7),
        ("", "%q#0", 7),
        ("", "%q#1", 1),
        ("  %i = s32[] negate(%q#0)\n", "%i", 1),
    ],
)
def test_trips_of_a_loop(counter: str, name: str, trips: int) -> None:
    """jaxlib 0.12 prints an element of a tuple where it is read."""
    (row,) = collectives_of(LOOP.replace("COUNTER", counter).replace("compare(%i", f"compare({name}"))
    assert (row.kind, row.count) == ("all_reduce", trips)


def test_classes_of_hlo() -> None:
    classes = {"dot": {"dot", "add"}, "reduce": {"reduce", "exponential"}, "elementwise": {"add", "broadcast"}}
    classes |= {"other": {"custom-call"}, "movement": {"slice", "parameter"}}
    assert {name: op_class(opcodes) for name, opcodes in classes.items()} == {name: name for name in classes}
    assert op_class({"fft"}) == op_class({"parameter"}) == "other"


def test_a_program_from_the_cache_of_jax_has_no_hlo_to_compare(tmp_path: Path) -> None:
    x, w = np.ones((64, 32), np.float32), np.ones((32, 16), np.float32)
    program = sw.jit(layer, mesh=MESH, in_shardings=(P("x"), P(None, "y"))).lower(x, w).compile()
    options = {
        "jax_compilation_cache_dir": str(tmp_path),
        "jax_persistent_cache_min_entry_size_bytes": -1,
        "jax_persistent_cache_min_compile_time_secs": 0.0,
    }
    before = {name: getattr(jax.config, name) for name in options}
    try:
        for name, value in options.items():
            jax.config.update(name, value)
        jax.clear_caches()
        assert compiled_texts(program.to_jax().lower())
        assert any(tmp_path.iterdir())
        jax.clear_caches()
        with pytest.raises(sw.UnsupportedError, match=r"jax_enable_compilation_cache"):
            compiled_texts(program.to_jax().lower())
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        jax.clear_caches()
