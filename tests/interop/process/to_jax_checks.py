# SPDX-License-Identifier: Apache-2.0
"""Programs handed over to JAX give the numbers of the virtual mesh on 8 host devices. Runs in a process of its own."""

from __future__ import annotations

from collections import Counter
from typing import Any

import jax
import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from shardwise.dtypes import numpy_dtype
from tests.interop.nearness import assert_near, exact_results
from tests.interop.process.handed_programs import PROGRAMS, Handed
from tests.partition.test_meshes import PROGRAMS as ON_MESHES
from tests.partition.windows.test_windowed_einsum import FORMS, Form, operands_of, program_of
from tests.support.run_seed import in_turn

MESHES = {
    "8": sw.Mesh({"x": 8}),
    "4x2": sw.Mesh({"x": 4, "y": 2}),
    "permuted 2x2x2": sw.Mesh({"x": 2, "y": 2, "z": 2}, device_ids=[5, 1, 7, 3, 0, 6, 4, 2]),
    "6": sw.Mesh({"x": 6}),
}
GRID = [
    pytest.param(handed, name, id=f"{handed.name}-{name}")
    for i, handed in enumerate(PROGRAMS)
    for j, name in enumerate(sorted(MESHES))
    if (i + j) % 4 in in_turn([1, 2, 3])  # three of the four meshes in turn
]


def spec_of(ndim: int, mesh: sw.Mesh, dim: int) -> Any:
    axes = [*mesh.axis_names]
    dims: list[Any] = [None] * ndim
    if ndim:
        dims[dim % ndim] = axes[0]
    if ndim > 1 and len(axes) > 1:
        dims[(dim + 1) % ndim] = tuple(axes[1:])
    return P(*dims)


def compiled(handed: Handed, mesh: sw.Mesh) -> Any:
    specs = tuple(spec_of(np.ndim(x), mesh, i + handed.split_dim) for i, x in enumerate(handed.arguments))
    return sw.jit(handed.function, mesh=mesh, in_shardings=specs).lower(*handed.arguments).compile()


@pytest.mark.parametrize(("handed", "mesh"), GRID)
def test_a_handed_over_program_gives_the_same_numbers(handed: Handed, mesh: str) -> None:
    program = compiled(handed, MESHES[mesh])
    function = program.to_jax()
    results = sw.tree.leaves(function.get(function(*handed.arguments)))
    expected = sw.tree.leaves(program(*handed.arguments))
    for got, want, exact in zip(results, expected, exact_results(program), strict=True):
        assert_near(got, want, exact or handed.exact)


# ---- the function --------------------------------------------------------------------------------------------------

MESH = MESHES["4x2"]
X = np.arange(40, dtype=np.float32).reshape(10, 4)


def doubled(x: Any) -> Any:
    return {"twice": 2 * x, "sum": x.sum()}


DOUBLED = sw.jit(doubled, mesh=MESH, in_shardings=(P("x"),)).lower(X).compile()


def test_uneven_arrays_are_padded_on_the_devices_and_cropped_by_get() -> None:
    function = DOUBLED.to_jax()
    (placed,) = function.put(X)
    assert (placed.shape, placed.sharding) == ((12, 4), function.in_shardings[0])
    results = function(placed)
    assert results["twice"].shape == (12, 4)
    assert results["twice"].sharding.is_equivalent_to(function.out_shardings["twice"], 2)
    found = function.get(results)
    np.testing.assert_array_equal(found["twice"], 2 * X)
    assert found["sum"] == X.sum()


@pytest.mark.parametrize("spec", [P("x"), P()])
def test_placed_arguments_do_not_change_with_the_arrays_they_were_made_of(spec: P) -> None:
    """JAX would share memory that begins at a multiple of 64 bytes."""
    memory = np.ones(64 + 8 * 512, np.uint8)
    x = memory[-memory.ctypes.data % 64 :][: 8 * 512].view(np.float32).reshape(64, 16)
    x[:] = np.arange(16)
    function = sw.jit(lambda x: x * 2, mesh=MESH, in_shardings=(spec,)).lower(x).compile().to_jax()
    (placed,) = function.put(x)
    result = function(x)
    x[:] = -1
    np.testing.assert_array_equal(np.asarray(placed), np.tile(np.arange(16), (64, 1)))
    np.testing.assert_array_equal(np.asarray(result), np.tile(2 * np.arange(16), (64, 1)))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_windowed_products_are_loops_of_permutes(form: Form) -> None:
    operands = operands_of(form, True, np.float32)
    jitted = program_of(form, MESHES["8"], "x", windowed_einsum="always")
    program = jitted.lower(*operands).compile()
    function = program.to_jax()
    assert_near(function.get(function(*operands)), np.asarray(program(*operands)), exact=False)
    assert "collective_permute" in function.as_text()
    assert "stablehlo.while" in function.as_text()


def test_lowered_text_has_the_collectives_of_the_ledger() -> None:
    function = DOUBLED.to_jax()
    assert function.as_text().count("stablehlo.all_reduce") == 1
    assert function.collectives().by_kind() == {"all_reduce": 1} == DOUBLED.collectives().by_kind()
    assert "all-reduce" in function.lower().compile().as_text()


def test_a_product_is_an_all_to_all_and_an_all_gather() -> None:
    program = sw.jit(lambda x: x.prod(0), mesh=MESH, in_shardings=(P("x"),)).lower(X[:8, :3]).compile()
    ledger = program.to_jax().collectives()
    assert [(row.kind, row.group_size, row.bytes) for row in ledger] == [
        ("all_to_all", 4, 12.0),
        ("all_gather", 4, 12.0),
    ]
    assert program.collectives().by_kind() == {"all_reduce": 1}


def test_bytes_of_the_ledger_are_those_of_the_text_for_a_gather() -> None:
    program = sw.jit(lambda x: x[::-1], mesh=MESH, in_shardings=(P("x"),), out_shardings=P()).lower(X[:8]).compile()
    rows = program.to_jax().collectives().rows
    assert sum(row.bytes for row in rows) == sum(row.bytes for row in program.collectives().rows)


def test_an_exchange_is_permutes_of_boxes_and_a_tree_of_them_where_many_receive_one() -> None:
    x = X[:8]
    rows = {
        "one neighbor sends a row": (lambda x: x[1:], [("collective_permute", 16.0)]),
        "another has the whole tile": (lambda x: x[::-1], [("collective_permute", 32.0)]),
        "one device has it": (lambda x: x[0] + 0, [("collective_permute", 16.0)] * 2),
    }
    for name, (function, wanted) in rows.items():
        program = sw.jit(function, mesh=sw.Mesh({"x": 4}), in_shardings=(P("x"),)).lower(x).compile()
        ledger = program.to_jax().collectives()
        assert [(row.kind, row.bytes) for row in ledger] == wanted, name
        function = program.to_jax()
        np.testing.assert_array_equal(function.get(function(x)), np.asarray(program(x)))


def layer(x: Any, w: Any) -> Any:
    y = jax.numpy.tanh(x @ w)
    mean = y.mean(-1, keepdims=True)
    return x + (y - mean) * jax.lax.rsqrt(((y - mean) ** 2).mean(-1, keepdims=True) + 1)


def text_with_calls(count: int) -> str:
    """A function that is called several times, and in a loop, as JAX prints it, with the weights split."""
    one = jax.jit(layer)

    def run(x: Any, w: Any) -> Any:
        for _ in range(count):
            x = one(x, w)
        return jax.lax.fori_loop(0, 3, lambda i, x: one(x, w), x)

    x, w = jax.ShapeDtypeStruct((6, 12), np.float32), jax.ShapeDtypeStruct((12, 12), np.float32)
    text = jax.jit(run).lower(x, w).as_text()
    sharded = '%arg1: tensor<12x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}'
    return text.replace("{\n", '{\n  sdy.mesh @mesh = <["x"=4]>\n', 1).replace("%arg1: tensor<12x12xf32>", sharded, 1)


def test_a_function_that_jax_calls_several_times_is_one_function_here_and_there() -> None:
    program = sw.parse(text_with_calls(4)).compile()
    local = program._compiled.stages["local"]
    assert [function.name for function in local.functions] == ["main", "layer"]
    random = np.random.default_rng(0)
    x, w = random.standard_normal((6, 12), np.float32), random.standard_normal((12, 12), np.float32) / 3
    want = np.asarray(x)
    for _ in range(7):
        want = np.asarray(layer(want, w))
    function = program.to_jax()
    np.testing.assert_allclose(np.asarray(program(x, w)), want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(function.get(function(x, w)), want, rtol=1e-5, atol=1e-5)
    text = function.as_text()
    assert (text.count("func.func private @fn_layer"), text.count("call @fn_layer")) == (1, 5)
    assert {row.count for row in program.collectives()} == {7}
    sent = [(row.kind, row.count) for row in function.collectives()]
    assert sent == [(row.kind, row.count) for row in program.collectives()]


def test_values_of_64_bits_stay_so_without_x64() -> None:
    assert not jax.config.jax_enable_x64
    x = np.arange(8, dtype=np.float64) / 3
    program = sw.jit(lambda x: (x + 1, np.argmax(x)), mesh=MESH, in_shardings=(P("x"),)).lower(x).compile()
    function = program.to_jax()
    first, second = function(x)
    assert (first.dtype, second.dtype) == (np.float64, np.int64)
    np.testing.assert_array_equal(np.asarray(first), x + 1)
    assert jax.numpy.ones(2, np.float32).dtype == np.float32
    assert not jax.config.jax_enable_x64


def test_another_mesh_of_the_caller_does_not_matter() -> None:
    function = DOUBLED.to_jax()
    with jax.set_mesh(jax.make_mesh((8,), ("other",))):
        assert np.asarray(function(X)["sum"]) == X.sum()


def test_devices_are_given_by_id_and_meshes_in_order() -> None:
    devices = jax.devices()
    mesh = sw.Mesh({"x": 4}, device_ids=[3, 1, 0, 2])
    program = sw.jit(lambda x: x + 1, mesh=mesh, in_shardings=(P("x"),)).lower(X[:8]).compile()
    by_ids = program.to_jax(devices=devices[4:])
    assert [d.id for d in by_ids.mesh.devices.flat] == [7, 5, 4, 6]
    given = program.to_jax(mesh=jax.sharding.Mesh(np.array(devices[2:6]), ("any",)))
    assert [d.id for d in given.mesh.devices.flat] == [2, 3, 4, 5]
    np.testing.assert_array_equal(np.asarray(given(X[:8])), X[:8] + 1)


def test_sub_axes_are_axes_of_a_refined_mesh() -> None:
    mesh = sw.Mesh({"x": 8})
    specs = (P(sw.sub("x", pre=1, size=2), sw.sub("x", pre=4, size=2)),)
    program = sw.jit(lambda x: (x.sum(0), x.T @ x), mesh=mesh, in_shardings=specs).lower(X[:8]).compile()
    function = program.to_jax()
    assert dict(function.mesh.shape) == {"x_0": 2, "x_1": 2, "x_2": 2}
    for got, want in zip(function.get(function(X[:8])), program(X[:8])):
        np.testing.assert_allclose(got, np.asarray(want), rtol=1e-6)


def test_cuts_that_do_not_nest_are_axes_of_another_mesh() -> None:
    """6 as 3·2, in uneven tiles, and as 2·3: one argument of each kind, and a result of the second kind."""
    mesh = sw.Mesh({"x": 6})
    thirds, halves = sw.sub("x", pre=1, size=3), sw.sub("x", pre=1, size=2)
    x, y = X[:7], X[:4, :4] * 2 + 1
    program = sw.jit(
        lambda x, y: (sw.shard(x[:4, :4] + y, P(halves)), x.sum(0)), mesh=mesh, in_shardings=(P(thirds), P(halves))
    )
    compiled = program.lower(x, y).compile()
    function = compiled.to_jax()
    assert [dict(each.mesh.shape) for each in function.in_shardings] == [{"x_0": 3, "x_1": 2}, {"x_0": 2, "x_1": 3}]
    assert [spec.spec for spec in function.in_shardings] == [jax.sharding.PartitionSpec("x_0")] * 2
    placed = function.put(x, y)
    assert [shard.data.shape for shard in placed[1].addressable_shards] == [(2, 4)] * 6
    for got, want in zip(function.get(function(*placed)), compiled(x, y), strict=True):
        np.testing.assert_allclose(got, np.asarray(want), rtol=1e-6)
    for got, want in zip(function.get(function(x, y)), (x[:4, :4] + y, x.sum(0)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_closed_over_arrays_and_keyword_arguments() -> None:
    table = np.arange(60, dtype=np.float32).reshape(6, 10)
    program = sw.jit(lambda x, shift: table @ x + shift, mesh=MESH).lower(X, shift=np.float32(2)).compile()
    function = program.to_jax()
    np.testing.assert_allclose(function.get(function(X, shift=np.float32(2))), table @ X + 2, rtol=1e-6)


def test_debug_prints_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        sw.debug.print("sum {}", x.sum())
        return x + 1

    program = sw.jit(f, mesh=MESH, in_shardings=(P("x"),)).lower(X[:8]).compile()
    function = program.to_jax()
    function(X[:8])
    assert capsys.readouterr().out == "sum 496.0\n"


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2"])
def test_a_maximum_has_the_bits_of_nan_and_zero(dtype: str) -> None:
    x = np.array([-0.0, 0.0, np.nan, 1.0, -0.0, -1.0, -0.0, -np.nan]).astype(np.dtype(dtype)).reshape(4, 2)
    program = sw.jit(lambda x: (x.max(0), x.min(0), x[2:3].max(0)), mesh=sw.Mesh({"x": 4}), in_shardings=(P("x"),))
    function = program.lower(x).compile().to_jax()
    for got, want in zip(function.get(function(x)), program(x)):
        assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


def test_what_sorts_after_a_minimum_finds_nan_where_it_is() -> None:
    x = np.array([[1, np.nan, 3, 4], [5, 6, 2, 8]], np.float32)
    largest = sw.from_jax(lambda x: jax.lax.top_k(jax.numpy.min(x, 0), 2))
    program = sw.jit(largest, mesh=sw.Mesh({"x": 2}), in_shardings=(P("x"),))
    function = program.lower(x).compile().to_jax()
    for got, want in zip(function.get(function(x)), program(x)):
        np.testing.assert_array_equal(got, np.asarray(want))


def test_subnormals_and_payloads_survive_movement_of_narrow_floats() -> None:
    bits = np.array([0x0001, 0x8000, 0x7FC1, 0x3F80, 0xFF80, 0x0080, 0x7F81, 0x0002], np.uint16)
    x = bits.view(sw.bfloat16)
    program = sw.jit(lambda x: x[::-1], mesh=sw.Mesh({"x": 4}), in_shardings=(P("x"),))
    function = program.lower(x).compile().to_jax()
    found = np.asarray(function.get(function(x)))
    np.testing.assert_array_equal(found.view(np.uint16), bits[::-1])


def test_the_ledger_says_that_the_trips_of_a_loop_are_unknown() -> None:
    def f(x: Any, n: Any) -> Any:
        return sw.fori_loop(0, n, lambda i, y: sw.shard(y @ y, P("x")), x)

    arguments = np.ones((8, 8), np.float32), np.int32(3)
    program = sw.jit(f, mesh=sw.Mesh({"x": 4}), in_shardings=(P("x"), None)).lower(*arguments).compile()
    ours, theirs = program.collectives(), program.to_jax().collectives()
    assert [row.bound for row in ours] == [row.bound for row in theirs]
    assert "per trip" in [row.bound for row in theirs]


# ---- initial values of reductions ------------------------------------------------------------------------------------

WINDOW = "window_dimensions = array<i64: 3, 1>, padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>"
COMBINERS = {"add": 2.5, "multiply": -1.5, "maximum": 0.75, "minimum": -0.25}


def reduction(op: str, is_window: bool, init: str) -> str:
    """A reduction of %x whose initial value is the argument or a constant."""
    value = "" if init == "%init" else f"%value = stablehlo.constant dense<{init}> : tensor<f32>\n"
    name, options = ("reduce_window", WINDOW) if is_window else ("reduce", "dimensions = array<i64: 0>")
    result = "12x4" if is_window else "4"
    return f"""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%x: tensor<12x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}, %init: tensor<f32>)
    -> tensor<{result}xf32> {{
  {value}%r = "stablehlo.{name}"(%x, {"%init" if init == "%init" else "%value"}) <{{{options}}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.{op} %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }}) : (tensor<12x4xf32>, tensor<f32>) -> tensor<{result}xf32>
  return %r : tensor<{result}xf32>
}}"""


@pytest.mark.parametrize("is_window", [False, True], ids=["reduce", "reduce_window"])
@pytest.mark.parametrize("is_constant", [False, True], ids=["argument", "constant"])
@pytest.mark.parametrize("op", COMBINERS)
def test_an_initial_value_that_is_not_neutral_is_combined_once(op: str, is_constant: bool, is_window: bool) -> None:
    """XLA may leave it out, and each device or each step of a window would combine it again."""
    x = np.random.default_rng(5).uniform(-2, 2, (12, 4)).astype(np.float32)
    init = np.float32(COMBINERS[op])
    program = sw.parse(reduction(op, is_window, str(init) if is_constant else "%init")).compile()
    function = program.to_jax()
    found = function.get(function(x, init))
    combine = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}[op]
    border = np.full((1, 4), init)
    rows = np.concatenate([border, x, border]) if is_window else x
    windows = [rows[i : i + 3] for i in range(12)] if is_window else [rows]
    want = np.array([combine(combine.reduce(each, 0), init) for each in windows])
    np.testing.assert_allclose(found, want if is_window else want[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.asarray(program(x, init)), want if is_window else want[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["int2", "uint4", "int4", "float4_e2m1fn"])
def test_values_of_less_than_a_byte_move(name: str) -> None:
    x = np.array([0, 1, 0, 1, 1, 0, 1, 1]).astype(numpy_dtype(name))

    program = sw.jit(lambda x: (x[::-1], sw.shard(x, P())), mesh=sw.Mesh({"x": 4}), in_shardings=(P("x"),))
    function = program.lower(x).compile().to_jax()
    for got, want in zip(function.get(function(x)), (x[::-1], x)):
        np.testing.assert_array_equal(got, want)


# ---- several meshes over the same devices --------------------------------------------------------------------------

SHUFFLED = sw.Mesh({"u": 4, "v": 2}, device_ids=[3, 0, 6, 1, 7, 4, 2, 5], name="shuffled")
TURNED = sw.Mesh({"a": 3, "b": 2}, name="turned")


def on_two_meshes(there: sw.NamedSharding, mine: P) -> Any:
    def function(x: Any) -> Any:
        y = sw.shard(np.tanh(sw.shard(x, there)) * 2, there)
        y = sw.shard(y - np.mean(y, axis=0) + np.cumsum(y, axis=1) + y[::-1], there)
        return sw.shard(y, mine) + sw.shard(x, mine), sw.shard(np.argmax(y, 0), P())

    return function


@pytest.mark.parametrize(
    ("mesh", "there", "mine"),
    in_turn([
        ("4x2", sw.NamedSharding(SHUFFLED, P("u", "v")), P("y", "x")),
        ("permuted 2x2x2", sw.NamedSharding(SHUFFLED, P("v")), P("x", "z")),
        ("6", sw.NamedSharding(sw.Mesh({"u": 6}, [4, 1, 5, 0, 2, 3], name="mixed"), P("u")), P(None, "x")),
        ("2x3", sw.NamedSharding(TURNED, P("b", "a")), P("y", "x")),
    ]),
)  # fmt: skip
def test_a_second_mesh_over_the_same_devices(mesh: str, there: sw.NamedSharding, mine: P) -> None:
    """Its collectives take groups of devices, its axis_index a table, and a change of mesh permutes."""
    x = np.random.default_rng(2).standard_normal((13, 7)).astype(np.float32)
    on = {**MESHES, "2x3": sw.Mesh({"x": 2, "y": 3})}[mesh]
    program = sw.jit(on_two_meshes(there, mine), mesh=on, in_shardings=P("x")).lower(x).compile()
    assert "from_mesh" in program.as_text("local")
    function = program.to_jax()
    results = function.get(function(x))
    for got, want, exact in zip(
        sw.tree.leaves(results), sw.tree.leaves(program(x)), exact_results(program), strict=True
    ):
        assert_near(got, want, exact)


def doubled_twice(x: Any, there: sw.NamedSharding) -> Any:
    """In a loop, whose carry stays there."""
    return sw.fori_loop(0, 2, lambda _, y: sw.shard(y * 2, there), sw.shard(x, there))


def test_tiles_that_nest_change_their_mesh_in_permutations() -> None:
    """A tile for a tile of the same shape: one permutation, in which each device that lacks its tile receives it."""
    x = np.arange(64, dtype=np.float32).reshape(16, 4)
    for there in (P(("u", "v")), P("u"), P("v")):
        mine = P({2: "y", 4: "x", 8: ("x", "y")}[np.prod([SHUFFLED.shape[a] for a in np.ravel(there[0])])])
        to = sw.NamedSharding(SHUFFLED, there)
        changed = sw.jit(lambda x: sw.shard(doubled_twice(x, to), mine), mesh=MESH, in_shardings=mine)  # noqa: B023
        function = changed.lower(x).compile().to_jax()
        rows = function.collectives().rows
        assert [row.kind for row in rows] == ["collective_permute"] * 2
        np.testing.assert_array_equal(function.get(function(x)), x * 4)


def device_order(sharding: Any) -> list[int]:
    return [device.id for device in sharding.mesh.devices.flat]


@pytest.mark.parametrize("name", in_turn(list(ON_MESHES)))
def test_results_on_a_second_mesh(name: str) -> None:
    """The jitted function has one mesh; its results are labelled with theirs, and nothing moves."""
    mesh, function, arrays = ON_MESHES[name]
    program = sw.jit(function, mesh=mesh).lower(*arrays).compile()
    handed = program.to_jax()
    results = handed(*arrays)
    expected = sw.tree.leaves(program(*arrays))
    terms = float(np.abs(arrays[0]).sum(0).max()) if name == "a gradient" else 0.0  # 1 - tanh(y)**2 cancels
    rows = zip(
        sw.tree.leaves(handed.get(results)), sw.tree.leaves(results), expected, exact_results(program), strict=True
    )
    for got, found, want, exact in rows:
        assert_near(got, want, exact, terms)
        largest = max(terms, float(np.abs(np.asarray(want)).max()))
        assert device_order(found.sharding) == list(want.sharding.mesh.device_ids or range(want.sharding.mesh.size))
        tiles = {shard.device: shard.data for shard in want.addressable_shards}
        for shard in found.addressable_shards:
            own = tuple(map(slice, tiles[shard.device.id].shape))
            assert_near(np.asarray(shard.data)[own], tiles[shard.device.id], exact, largest)


MIXED = sw.Mesh({"u": 2, "v": 4}, device_ids=[3, 0, 6, 1, 7, 4, 2, 5], name="mixed")


def test_arguments_on_a_second_mesh() -> None:
    there, back = sw.NamedSharding(MIXED, P("v", "u")), sw.NamedSharding(MIXED, P("u"))
    program = sw.jit(
        lambda x, y: (x + y, sw.shard(x * 2, back)),
        mesh=MESH,
        in_shardings=(there, P("x")),
        out_shardings=(there, back),
    )
    compiled = program.lower(X, X).compile()
    function = compiled.to_jax()
    placed = function.put(X, X)
    assert placed[0].shape == (12, 4)
    assert [device_order(x.sharding) for x in placed] == [[3, 0, 6, 1, 7, 4, 2, 5], list(range(8))]
    for arguments in (placed, (X, X)):
        for got, want in zip(function.get(function(*arguments)), (X + X, X * 2)):
            np.testing.assert_array_equal(got, want)
    first, _ = function(*placed)
    np.testing.assert_array_equal(function.get(function(first, X))[0], X * 3)
    with pytest.raises(sw.ShardingError, match="argument x must have the sharding of the program"):
        function(placed[1], placed[1])


# ---- exchanges as few permutes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "to", "given", "wanted"),
    in_turn([
        ((24,), (3, 8), P("x"), P(None, "x")), ((3, 8), (24,), P(None, "x"), P("x")),
        ((120,), (5, 24), P("x"), P(None, "x")), ((5, 24), (120,), P(None, "x"), P("x")),
        ((12, 8), (96,), P(None, "x"), P("x")), ((4, 3, 16), (4, 48), P(None, None, "x"), P(None, "x")),
    ]),
    ids=str,
)  # fmt: skip
def test_a_merging_reshape_is_few_permutes(shape: Any, to: Any, given: Any, wanted: Any) -> None:
    """Rows of the same blocks travel together."""
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    jitted = sw.jit(lambda x: x.reshape(to), mesh=MESHES["8"], in_shardings=given, out_shardings=wanted)
    program = jitted.lower(x).compile()
    function = program.to_jax()
    np.testing.assert_array_equal(function.get(function(x)), x.reshape(to))
    rows = function.collectives().rows
    assert len(rows) <= 16
    assert function.collectives().total_bytes <= 1.5 * program.collectives().total_bytes


def test_replicas_of_nested_tiles_send_in_permutations() -> None:
    """On 4x2, P("x") to P("y", ...) has replicas that would all send from one device in the receiver's place."""
    mesh = sw.Mesh({"x": 4, "y": 2})
    for given, wanted in ((P("x"), P(None, "x")), (P("y"), P("x")), (P("x", "y"), P("y", "x")), (P("x"), P("y", "x"))):
        x = np.arange(64, dtype=np.float32).reshape(8, 8)
        program = sw.jit(lambda x: x, mesh=mesh, in_shardings=given, out_shardings=wanted).lower(x).compile()
        function = program.to_jax()
        np.testing.assert_array_equal(function.get(function(x)), x)
        assert function.collectives().total_bytes == program.collectives().total_bytes, (given, wanted)


# ---- bytes of exchanges ----------------------------------------------------------------------------------------------

COLUMNS = P(None, "x")


@pytest.mark.parametrize(
    ("shape", "sent", "needed"),
    [((10, 10), {"collective_permute": 4 * 16}, 64), ((20, 16), {"all_to_all": 7 * 24}, 160)],
)
def test_an_exchange_has_the_form_with_the_fewest_bytes(shape: Any, sent: dict[str, int], needed: int) -> None:
    """5 devices with 2 rows each take 4 permutes, where an all-to-all has a box for each of 8 devices."""
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    program = sw.jit(lambda x: x, mesh=MESHES["8"], in_shardings=P("x"), out_shardings=COLUMNS).lower(x).compile()
    function = program.to_jax()
    np.testing.assert_array_equal(function.get(function(x)), x)
    assert program.collectives().total_bytes == needed
    ledger = function.collectives()
    assert dict.fromkeys(ledger.by_kind(), ledger.total_bytes) == sent


@pytest.mark.parametrize(
    ("mesh", "shape", "given", "wanted"),
    in_turn([
        ("8", (49, 50), P("x"), COLUMNS),
        ("8", (25, 17), COLUMNS, P("x")),
        ("4x2", (50, 49), P("x"), P("y")),
        ("4x2", (50, 49), P("x"), P(None, ("x", "y"))),
        ("permuted 2x2x2", (13, 29), P("x"), P(None, ("y", "z"))),
    ]),
)  # fmt: skip
def test_bytes_of_an_uneven_exchange_are_those_of_the_hlo(mesh: str, shape: Any, given: P, wanted: P) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    program = sw.jit(lambda x: x, mesh=MESHES[mesh], in_shardings=given, out_shardings=wanted).lower(x).compile()
    function = program.to_jax()
    np.testing.assert_array_equal(function.get(function(x)), x)
    report = sw.interop.compare(program, function, x)
    ledger = function.collectives()
    assert ledger.by_kind() == Counter(row.kind for row in report.theirs)
    assert ledger.total_bytes == sum(row.bytes for row in report.theirs)
    assert ledger.total_bytes <= 1.5 * program.collectives().total_bytes


@pytest.mark.parametrize("dtype", in_turn(["int4", "float4_e2m1fn", "bfloat16", "float64"]))
def test_an_all_to_all_of_padded_boxes_keeps_bits(dtype: str) -> None:
    """Of values of less than a byte, of narrow floats, and of those that x64 would narrow."""
    x = (np.arange(49 * 50).reshape(49, 50) % 5 - 2).astype(np.float32).astype(numpy_dtype(dtype))
    program = sw.jit(lambda x: x, mesh=MESHES["8"], in_shardings=P("x"), out_shardings=COLUMNS).lower(x).compile()
    function = program.to_jax()
    assert [row.kind for row in function.collectives()] == ["all_to_all"]
    np.testing.assert_array_equal(function.get(function(x)), x)


def test_a_maximum_of_one_element_and_its_index_starts_at_the_initial_values() -> None:
    """XLA takes a reduction of one element for a reshape, also where several arrays are reduced together."""
    program = sw.parse("""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%x: tensor<1x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>})
    -> (tensor<8xf32>, tensor<8xi32>) {
  %i = stablehlo.iota dim = 0 : tensor<1x8xi32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %seven = stablehlo.constant dense<7> : tensor<i32>
  %r:2 = "stablehlo.reduce"(%x, %i, %one, %seven) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
    %p = stablehlo.compare GE, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %v = stablehlo.select %p, %a, %c : tensor<i1>, tensor<f32>
    %k = stablehlo.select %p, %b, %d : tensor<i1>, tensor<i32>
    stablehlo.return %v, %k : tensor<f32>, tensor<i32>
  }) : (tensor<1x8xf32>, tensor<1x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xi32>)
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xi32>
}""").compile()
    x = np.array([[-3, 2, 0.5, 4, -1, 7, 0, 1.5]], np.float32)
    function = program.to_jax()
    values, places = function.get(function(x))
    np.testing.assert_array_equal(values, np.maximum(x[0], 1))
    np.testing.assert_array_equal(places, np.where(x[0] > 1, 0, 7))
