# SPDX-License-Identifier: Apache-2.0
"""The exported text is StableHLO that jaxlib compiles and runs; its length does not depend on the devices."""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import pytest
from jaxlib import xla_client

import shardwise as sw
from shardwise import P
from shardwise.interop.to_jax.export import _axes_text as axes_text
from tests.interop.nearness import assert_near, exact_results
from tests.interop.process.handed_programs import PROGRAMS, Handed
from tests.interop.process.to_jax_checks import MESHES, compiled
from tests.support.exports import exports
from tests.support.run_seed import in_turn

NAMES = ("mlp", "movement", "integer_sums", "extremes", "scanned", "gradients", "resharded", "mixture_of_experts")


def run(text: str, function: Any, arguments: tuple[Any, ...]) -> list[np.ndarray]:
    """Compile a text for the devices of a handed-over function, and run it on its arguments."""
    devices = tuple(function.mesh.devices.flat)
    options = xla_client.CompileOptions()
    options.num_partitions = len(devices)
    build = options.executable_build_options
    build.num_partitions, build.use_spmd_partitioning, build.use_shardy_partitioner = len(devices), True, True
    build.device_assignment = xla_client.DeviceAssignment.create(np.array([[d.id for d in devices]]))
    executable = devices[0].client.compile_and_load(text, xla_client.DeviceList(devices), options)
    placed = [*jax.tree.leaves(function.put(*arguments))]
    found = executable.execute_sharded(placed).disassemble_into_single_device_arrays()
    results = []
    for shards, border in zip(found, function._script.outputs):
        sharding = jax.sharding.NamedSharding(function.mesh, jax.sharding.PartitionSpec(*border.spec))
        whole = jax.make_array_from_single_device_arrays(border.padded, sharding, shards)
        results.append(np.asarray(whole)[tuple(map(slice, border.shape))])
    return results


@pytest.mark.parametrize("handed", in_turn([x for x in PROGRAMS if x.name in NAMES]), ids=lambda handed: handed.name)
@exports
def test_jaxlib_runs_the_text(handed: Handed) -> None:
    program = compiled(handed, MESHES["permuted 2x2x2" if handed.split_dim else "4x2"])
    text = program.as_text("export")
    assert text.count("sdy.manual_computation") == 1
    assert "shardwise" not in text
    assert "dense" not in "".join(re.findall(r"replica_groups = (\S+)", text))
    assert text.startswith(f"module @jit_{handed.name} ")
    found = run(text, program.to_jax(), handed.arguments)
    expected = sw.tree.leaves(program(*handed.arguments))
    for got, want, exact in zip(found, expected, exact_results(program), strict=True):
        assert_near(got, np.asarray(want), exact or handed.exact)


def exported(devices: int) -> str:
    def f(x: Any, w: Any) -> Any:
        y = np.tanh(x @ w)
        return y.sum(0), sw.shard(y, P(None, "x")), y.prod(0)

    x = sw.ShapeDtypeStruct((2 * devices, 8), np.float32)
    w = sw.ShapeDtypeStruct((8, 4 * devices), np.float32)
    mesh = sw.Mesh({"x": devices, "y": 2})
    return sw.jit(f, mesh=mesh, in_shardings=(P("x"), None)).lower(x, w).compile().as_text("export")


@exports
def test_the_text_does_not_grow_with_the_devices_and_needs_none() -> None:
    small, large = exported(4), exported(512)
    assert len(small.splitlines()) == len(large.splitlines())
    assert len(large) < 1.1 * len(small)
    axes = re.findall(r"axes = \[(#stablehlo\.axis_ref.*?)\]", large)
    assert set(axes) == {'#stablehlo.axis_ref<name = "x">'}
    assert "replica_group_mesh_axes" in exported(2)


def test_groups_along_no_axes_are_found_in_one_pass() -> None:
    """With 8 axes there are 110,000 lists of axes to try."""
    sizes = dict.fromkeys("abcdefgh", 2)
    grid = np.arange(256).reshape([2] * 8)
    found = axes_text(sizes, grid.transpose(0, 2, 3, 4, 6, 7, 5, 1).reshape(-1, 4).tolist())
    assert re.findall(r'"(\w)"', found) == ["f", "b"]
    assert axes_text(sizes, [[*range(255, -1, -1)]]) == ""
    assert axes_text(sizes, [[0, 1], *grid.reshape(-1, 2)[:0:-1].tolist()]) == ""
    assert axes_text(sizes, [[i] for i in range(256)]) == ""


@exports
def test_an_argument_that_nothing_reads_is_in_the_signature() -> None:
    x, y = np.ones((5, 3), np.float32), np.ones(7, np.float32)
    program = sw.jit(lambda x, y: x * 2, mesh=MESHES["8"], in_shardings=(P("x"), P("x"))).lower(x, y).compile()
    text = program.as_text("export")
    (signature,) = re.findall(r"func.func public @main\((.*)\) -> ", text)
    assert re.findall(r"%arg\d: (tensor<\S+>)", signature) == ["tensor<8x3xf32>", "tensor<8xf32>"]
    (twice,) = run(text, program.to_jax(), (x, y))
    np.testing.assert_array_equal(twice, x * 2)


@exports
def test_an_argument_or_a_result_on_another_mesh_is_refused() -> None:
    """Its rows would follow the order of the devices: jaxlib would compute other numbers from the same array."""
    x = np.arange(48, dtype=np.float32).reshape(8, 6)
    other = sw.NamedSharding(sw.Mesh({"a": 8}, device_ids=list(range(7, -1, -1)), name="other"), P("a"))
    mesh = MESHES["8"]
    for fun, name in (
        (lambda x: sw.split(sw.shard(x, other) + 1, 0, "x"), "x"),
        (lambda x: sw.shard(sw.split(x, 0, "x") + 1, other), "result 0"),
    ):
        program = sw.jit(fun, mesh=mesh).lower(x).compile()
        np.testing.assert_array_equal(program.to_jax()(x), x + 1)
        with pytest.raises(sw.UnsupportedError, match=f"must be on the program's mesh, .*, got {name} on another mesh"):
            program.as_text("export")


@exports
def test_a_closed_over_array_along_other_cuts_is_refused() -> None:
    x = np.arange(96, dtype=np.float32).reshape(12, 8)
    mesh, halves, thirds = sw.Mesh({"x": 6}), sw.sub("x", pre=1, size=2), sw.sub("x", pre=1, size=3)
    table = sw.device_put(x, sw.NamedSharding(mesh, P(thirds)))
    jitted = sw.jit(lambda x: (x * 2, table + 1), mesh=mesh, in_shardings=P(halves), out_shardings=(P(halves), P()))
    program = jitted.lower(x).compile()
    np.testing.assert_array_equal(program.to_jax()(x)[1], x + 1)
    with pytest.raises(sw.UnsupportedError, match="got a closed-over array on another mesh, or along other cuts"):
        program.as_text("export")


@exports
def test_odd_names_of_axes_do_not_crash_xla() -> None:
    """XLA aborts where the name of an axis is not ASCII or has a backslash."""
    x = np.arange(48, dtype=np.float32).reshape(8, 6)
    for name in ("é", "a\\b", 'a"b', ""):
        jitted = sw.jit(lambda x: (x.sum(0), x * 2), mesh=sw.Mesh({name: 4, "_": 2}), in_shardings=P(name, "_"))
        program = jitted.lower(x).compile()
        text, function = program.as_text("export"), program.to_jax()
        assert f'axes = [#stablehlo.axis_ref<name = "{function.mesh.axis_names[0]}">]' in text
        mine = jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), (name, "_"))
        for total, twice in (run(text, function, (x,)), function.get(function(x)), program.to_jax(mesh=mine)(x)):
            np.testing.assert_array_equal(total, x.sum(0))
            np.testing.assert_array_equal(twice, x * 2)


@exports
def test_ops_have_the_lines_of_the_user() -> None:
    def step(x: Any, w: Any) -> Any:
        hidden = np.tanh(x @ w)
        largest = hidden.max(0)
        return sw.fori_loop(0, 3, lambda i, c: np.cos(c), largest)

    x, w = np.ones((8, 4), np.float32), np.ones((4, 6), np.float32)
    program = sw.jit(step, mesh=MESHES["4x2"], in_shardings=(P("x"), None)).lower(x, w).compile()
    text = program.as_text("export", locations=True)
    first = step.__code__.co_firstlineno

    def places(op: str) -> set[str]:
        return {place for line in text.splitlines() if f" {op} " in line for place in re.findall(r"loc\((.*)\)$", line)}

    assert places("stablehlo.dot_general") == {f'"{__file__}":{first + 1}:0'}
    assert places("stablehlo.tanh") == {f'"{__file__}":{first + 1}:0'}
    assert places("stablehlo.cosine") == {f'"{__file__}":{first + 3}:0'}
    reduces = [line for line in text.splitlines() if "stablehlo.all_reduce" in line]
    assert len(reduces) == 1  # the helper that keeps NaN calls it
    assert f":{first + 2}:0" in text
    assert "<to_jax>" not in text
    assert "loc(" not in program.as_text("export")
    run(text, program.to_jax(), (x, w))
