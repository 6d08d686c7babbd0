# SPDX-License-Identifier: Apache-2.0
"""What a user can get wrong or do at once: an error that says so, or the right result; never a crash."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import _core

MESH = sw.Mesh({"x": 2, "y": 3})
THREADS = 4


def layer(x: Any, w: Any) -> Any:
    hidden = sw.shard(np.tanh(x @ w), sw.P("x", None))
    return (hidden.T @ hidden).sum(axis=0) + np.float32(1)


def in_threads(run: Callable[[], Any]) -> list[Any]:
    """What ``run`` returns in each of several threads that start together."""
    barrier = threading.Barrier(THREADS)

    def start(_: int) -> Any:
        barrier.wait()
        return run()

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(start, range(THREADS)))


def traced_layer() -> Any:
    x = sw.ShapeDtypeStruct((8, 12), np.float32)
    w = sw.ShapeDtypeStruct((12, 6), np.float32)
    return sw.jit(layer, mesh=MESH, in_shardings=(sw.P("x", None), sw.P(None, "y"))).trace(x, w)


def test_threads_that_compile_one_program_get_one_program() -> None:
    texts = set()
    for _ in range(60):
        traced = traced_layer()
        texts.update(in_threads(lambda traced=traced: traced.lower().compile().as_text("local", locations=True)))
    assert len(texts) == 1


def test_threads_that_run_compile_and_read_one_program_agree() -> None:
    x = np.arange(96, dtype=np.float32).reshape(8, 12) / 96
    w = np.ones((12, 6), np.float32)
    wanted: Any = None
    for _ in range(10):
        program = traced_layer().lower().compile()
        stages = program._compiled.stages

        def work(program: Any = program, stages: Any = stages) -> Any:
            plain = np.asarray(program(x, w))
            _core.passes.compile(stages["global"], MESH._core).stages["local"].text()
            faithful = np.asarray(program.run(x, w, faithful=True))
            program.collectives()
            program.why("hidden")
            stages["global"].sharding_rules()
            return plain, faithful

        results = in_threads(work)
        assert len(results) == THREADS
        for plain, faithful in results:
            wanted = plain if wanted is None else wanted
            np.testing.assert_array_equal(plain, wanted)
            np.testing.assert_allclose(faithful, wanted, rtol=1e-5)


def recorded(mesh: sw.Mesh) -> Any:
    trace = _core.ir.Trace("f")
    sharding = sw.NamedSharding(mesh, sw.P("x", None)).core(2)
    x = trace.argument((4, 6), "float32", "x", sharding)
    value = trace.emit("stablehlo.add", [x, x])[0]
    return trace.finish([value])


def test_a_program_compiles_for_a_mesh_over_the_devices_of_its_shardings_only() -> None:
    other = sw.Mesh({"a": 4}, name="other")
    with pytest.raises(sw.MeshError, match=r'"x"=2, "y"=3.*got <\["a"=4\]>'):
        _core.passes.compile(recorded(MESH), other._core)
    for mesh in (sw.Mesh({"x": 2, "y": 3}, name="other"), sw.Mesh({"a": 6}, name="other")):
        _core.passes.compile(recorded(MESH), mesh._core)


def test_a_program_without_shardings_runs_on_any_mesh() -> None:
    text = """
      sdy.mesh @declared = <["a"=2]>
      func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %0 = stablehlo.add %x, %x : tensor<4xf32>
        return %0 : tensor<4xf32>
      }"""
    compiled = _core.passes.compile(_core.ir.parse(text), MESH._core)
    x = _core.runtime.ShardedArray.scatter(np.arange(4, dtype=np.float32), compiled.argument_shardings[0])
    (result,) = _core.runtime.Executable(compiled).run([x])
    np.testing.assert_array_equal(result.gather(), [0, 2, 4, 6])


def test_a_mesh_that_is_declared_and_not_used_does_not_matter() -> None:
    text = recorded(MESH).text().replace("sdy.mesh", 'sdy.mesh @unused = <["a"=2]>\n  sdy.mesh', 1)
    compiled = _core.passes.compile(_core.ir.parse(text), MESH._core)
    assert "@unused, " not in compiled.stages["propagated"].text()


def test_a_partitioned_program_is_not_partitioned_again() -> None:
    program = traced_layer().lower().compile()
    local = _core.ir.parse(program.as_text("local", locations=True))
    with pytest.raises(
        sw.ShardingError, match=r"must not have been through localize, got a program at stage local; .*test_robustness"
    ):
        _core.passes.compile(local, MESH._core)


def test_a_result_is_not_left_unreduced() -> None:
    sharding = sw.NamedSharding(MESH, '[{"x"}], unreduced={"y"}')
    function = sw.jit(lambda x: x + x, mesh=MESH, out_shardings=sharding)
    with pytest.raises(sw.ShardingError, match=r"result cannot be left unreduced, got .*drop unreduced="):
        function(np.arange(4.0))


def test_an_array_is_not_left_unreduced() -> None:
    sharding = sw.NamedSharding(MESH, '[{"x"}], unreduced={"y"}')
    for array in (np.arange(4.0), sw.device_put(np.arange(4.0), sw.NamedSharding(MESH, sw.P("x")))):
        with pytest.raises(sw.ShardingError, match=r"array cannot be left unreduced, got .*drop unreduced="):
            sw.device_put(array, sharding)


def test_an_argument_may_be_unreduced() -> None:
    sharding = sw.NamedSharding(MESH, '[{"x"}], unreduced={"y"}')
    function = sw.jit(lambda x: x + x, mesh=MESH, in_shardings=sharding)
    x = np.arange(4.0)
    for argument in (x, sw.device_put(x, sw.NamedSharding(MESH, sw.P("x")))):
        np.testing.assert_array_equal(function(argument), x + x)


def run_script(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | environment,
    )


def test_each_program_is_dumped_to_a_folder_of_its_own(tmp_path: Path) -> None:
    script = """
        import numpy as np, shardwise as sw
        def f(x): return x + x
        def g(x): return x * x
        for function in (f, g):
            sw.jit(function, mesh=sw.Mesh({"x": 2}))(np.arange(4.0))
    """
    done = run_script(script, SHARDWISE_DUMP_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0001_jit_f", "0002_jit_g"]
    names = [path.name for path in sorted((tmp_path / "0001_jit_f").iterdir())]
    assert names[0] == "00_trace.mlir"
    assert names[1:] == [f"{i:02}_{name}.mlir" for i, name in enumerate(_core.passes.pass_names(), 1)]
    assert "stablehlo.multiply" in (tmp_path / "0002_jit_g" / "00_trace.mlir").read_text()


def test_the_steps_of_a_pass_are_dumped_and_timed_with_the_detailed_log(tmp_path: Path) -> None:
    script = """
        import numpy as np, shardwise as sw
        program = sw.jit(lambda x: x + x, mesh=sw.Mesh({"x": 2})).lower(np.arange(4.0)).compile()
        steps = program._compiled.step_seconds
        assert list(steps) == ["propagate"]
        assert abs(sum(steps["propagate"].values()) - program.seconds["propagate"]) < 1e-6
    """
    done = run_script(script, SHARDWISE_DUMP_DIR=str(tmp_path), SHARDWISE_LOG="2", SHARDWISE_VERIFY="1")
    assert done.returncode == 0, done.stderr
    (folder,) = tmp_path.iterdir()
    steps = sorted(path for path in folder.iterdir() if path.name.startswith("04_propagate_"))
    assert [path.name[:16] for path in steps] == [f"04_propagate_{i:02}_" for i in range(1, len(steps) + 1)]
    assert {"04_propagate_04_split_constants.mlir", "04_propagate_14_close_shardings.mlir"} <= {p.name for p in steps}
    assert (folder / "04_propagate.mlir").read_text() == steps[-1].read_text()
    assert "[?]" not in steps[-1].read_text()
    for path in steps:
        name = path.stem.partition("propagate_")[2][3:]
        assert re.search(rf"^shardwise:   {name} +[0-9.]+ ms +1 ops$", done.stderr, re.MULTILINE), done.stderr
        sw.parse(path.read_text())


def test_a_folder_for_dumps_that_cannot_be_is_an_error_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    script = """
        import numpy as np, shardwise as sw
        try:
            sw.jit(lambda x: x + x, mesh=sw.Mesh({"x": 2}))(np.arange(4.0))
        except sw.errors.Error as error:
            print(type(error).__name__, error)
    """
    done = run_script(script, SHARDWISE_DUMP_DIR=str(tmp_path / "file" / "dumps"))
    assert done.stdout.startswith("Error SHARDWISE_DUMP_DIR: its files must be writable"), done


def test_a_signal_stops_a_long_op() -> None:
    def total(x: Any) -> Any:
        return np.broadcast_to(x, (10**6, 10**6)).sum()

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    one = np.ones((1, 1), np.float32)
    program = sw.jit(total, mesh=MESH).lower(one).compile()
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        start = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            program(one)
        assert time.perf_counter() - start < 20  # of some ten minutes
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_signal_stops_a_run_between_two_ops() -> None:
    def powers(x: Any) -> Any:
        for _ in range(200):
            x = x @ x
        return x

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    x = np.zeros((400, 400))
    program = sw.jit(powers, mesh=MESH).lower(x).compile()
    program(x)
    start = time.perf_counter()
    program(x)
    whole = time.perf_counter() - start
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        start = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, whole / 4)
        with pytest.raises(KeyboardInterrupt):
            program(x)
        assert time.perf_counter() - start < whole * 0.75
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
