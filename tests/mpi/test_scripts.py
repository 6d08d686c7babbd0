# SPDX-License-Identifier: Apache-2.0
"""Scripts of `to_source("mpi4py")` on 4 ranks, with mpi4py and NumPy alone."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P
from tests.interop.nearness import assert_near
from tests.interop.process.handed_programs import PROGRAMS, Handed
from tests.mpi.launch import mpirun

MESHES = [
    sw.Mesh({"x": 4}),
    sw.Mesh({"x": 2, "y": 2}),
    sw.Mesh({"x": 2, "y": 2}, device_ids=[2, 0, 3, 1]),
]
SECOND = sw.Mesh({"u": 4}, device_ids=[2, 0, 3, 1], name="second")
UNEVEN = np.arange(35, dtype=np.float32).reshape(5, 7) / 32


def compiled(handed: Handed, mesh: sw.Mesh) -> Any:
    """The program with its arguments split along different dims."""
    specs = []
    for i, x in enumerate(handed.arguments):
        dims: list[Any] = [None] * np.ndim(x)
        if dims:
            dims[(i + handed.split_dim) % len(dims)] = "x"
        specs.append(P(*dims))
    return sw.jit(handed.function, mesh=mesh, in_shardings=tuple(specs)).lower(*handed.arguments).compile()


def on_a_second_mesh(x: Any) -> Any:
    """A result that stays on the second mesh, and one that comes back."""
    y = sw.shard(np.tanh(x), sw.NamedSharding(SECOND, P(None, "u")))
    return y, sw.shard(y * 2, P("y"))


def with_crossing_cuts(x: Any, y: Any) -> Any:
    """The axis of 6 devices is cut as 3·2 by the first argument, and as 2·3 by the second one and the first result."""
    return sw.shard(x[:4, :4] + y, P(sw.sub("x", pre=1, size=2))), x.sum(0)


def crossing_cuts_program(*arguments: np.ndarray) -> Any:
    cuts = tuple(P(sw.sub("x", pre=1, size=size)) for size in (3, 2))
    return sw.jit(with_crossing_cuts, mesh=sw.Mesh({"x": 6}), in_shardings=cuts).lower(*arguments).compile()


def second_mesh_program() -> Any:
    jitted = sw.jit(on_a_second_mesh, mesh=MESHES[1], in_shardings=sw.NamedSharding(SECOND, P("u")))
    return jitted.lower(UNEVEN).compile()


LOOSER = {"factorizations": 4}  # LAPACK is another one; the error of an eigenvector grows with 1 / the eigenvalues' gap


ANY_ZERO = ("special_extremes",)  # NumPy takes either zero for a maximum or a minimum


def assert_result(name: str, got: Any, want: Any, exact: bool) -> None:
    if name in ANY_ZERO:
        np.testing.assert_array_equal(got, want)
        return
    if exact or not (got.dtype.kind == "c" or name in LOOSER):
        assert_near(got, want, exact)
        return
    # The parts of a complex product have the rounding of its magnitude.
    limit = 8 * LOOSER.get(name, 1) * np.finfo(want.dtype).eps * np.abs(want).max()
    assert np.abs(got - want).max() <= limit, name


def test_scripts_give_the_numbers_of_the_virtual_mesh(tmp_path: Path) -> None:
    expected = []
    programs = [(handed, compiled(handed, MESHES[i % len(MESHES)])) for i, handed in enumerate(PROGRAMS)]
    programs.append((Handed(on_a_second_mesh, (UNEVEN,), False, 0), second_mesh_program()))
    for handed, program in programs:
        program.to_source("mpi4py", tmp_path / f"{handed.name}.py")
        arguments = sw.tree.leaves(handed.arguments)
        (tmp_path / f"{handed.name}.args").write_bytes(pickle.dumps(arguments))
        results = [np.asarray(x) for x in sw.tree.leaves(program(*handed.arguments))]
        expected.append((handed, results))
    done = mpirun(4, ["-m", "mpi4py", "tests/mpi/script_worker.py", str(tmp_path)])
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-3000:]
    for handed, results in expected:
        found = pickle.loads((tmp_path / f"{handed.name}.out").read_bytes())
        for got, want in zip(found, results, strict=True):
            assert_result(handed.name, got, want, handed.exact)


def test_arguments_whose_cuts_do_not_nest_on_6_ranks(tmp_path: Path) -> None:
    arguments = UNEVEN, UNEVEN[:4, :4] * 2 + 1
    program = crossing_cuts_program(*arguments)
    program.to_source("mpi4py", tmp_path / "crossing.py")
    (tmp_path / "crossing.args").write_bytes(pickle.dumps(list(arguments)))
    done = mpirun(6, ["-m", "mpi4py", "tests/mpi/script_worker.py", str(tmp_path)])
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-3000:]
    found = pickle.loads((tmp_path / "crossing.out").read_bytes())
    for got, want in zip(found, program(*arguments), strict=True):
        assert_near(got, np.asarray(want), False)


WRONG_ARGUMENTS = """
for arguments in ((np.ones((4, 3), "float32"),), (np.ones((8, 3)),), (), (1, 2)):
    try:
        main(*arguments)
    except (TypeError, ValueError) as error:
        print(type(error).__name__, error)
print(main(np.ones((8, 3), "float32")))
"""


def test_a_script_checks_its_arguments_and_prints(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        sw.debug.print("sum {:.1f}", x.sum())
        return x.mean(0)

    program = sw.jit(f, mesh=sw.Mesh({"x": 2}), in_shardings=P("x")).lower(np.ones((8, 3), np.float32)).compile()
    (tmp_path / "script.py").write_text(program.to_source("mpi4py").partition("if __name__")[0] + WRONG_ARGUMENTS)
    done = mpirun(2, ["-m", "mpi4py", str(tmp_path / "script.py")])
    assert done.returncode == 0, done.stderr
    expected = [
        "ValueError main: argument x must be float32[8, 3] as compiled, got float32[4, 3]",
        "TypeError main: argument x must be float32[8, 3] as compiled, got float64[8, 3]",
        "TypeError main takes these arguments: x; got 0 arguments",
        "TypeError main takes these arguments: x; got 2 arguments",
        "[array([1., 1., 1.], dtype=float32)]",
    ]
    assert sorted(done.stdout.splitlines()) == sorted([*expected, *expected, "sum 24.0"])  # rank 0 alone prints
