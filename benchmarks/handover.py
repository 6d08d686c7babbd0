# SPDX-License-Identifier: Apache-2.0
"""Time per step of handed-over programs beside the same step written by hand for the engine.

    python -m benchmarks.handover --ranks 2 4 [--no-jax] [--no-mpi]

JAX: benchmarks/handover_jax.py. MPI: the digits step (data parallel over the ranks) beside mpi4py and NumPy, with an
Allreduce for each gradient or one for all, in the same processes, ten steps of each in turn; the fastest step of the
slowest rank. All ranks begin each step together. Both also run on the rows of one rank alone, which shows how much of a
step is communication. The parent starts the ranks; rank 0 writes a JSON file for each number of ranks. Limits that are
not met are printed last.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from typing import Any

import numpy as np

import shardwise as sw
from benchmarks.handover_jax import show_jax
from benchmarks.report import RESULTS, interleaved, table, write
from tools.mpirun import ENVIRONMENT, command

CLASSES = 10
STEPS = 10  # one after the other, as in a training loop
LIMIT = 1.1  # a step, to one by hand


def loss(params: Any, x: Any, labels: Any) -> Any:
    w1, b1, w2, b2 = params
    x = sw.split(x, 0, "data")
    logits = np.maximum(x @ w1 + b1, 0) @ w2 + b2
    logits = logits - sw.stop_gradient(np.max(logits, axis=1, keepdims=True))  # as by hand: it changes no gradient
    return np.mean(np.log(np.sum(np.exp(logits), axis=1)) - np.sum(logits * labels, axis=1))


def step(params: Any, x: Any, labels: Any) -> Any:
    value, gradients = sw.value_and_grad(loss)(params, x, labels)
    return value, tuple(p - np.float32(0.2) * g for p, g in zip(params, gradients))


def step_by_hand(comm: Any, params: Any, x: np.ndarray, labels: np.ndarray, packed: bool) -> Any:
    """The same step of the rows of this rank: an Allreduce of the loss and of each gradient, or one of all, packed."""
    w1, b1, w2, b2 = params
    rows = len(x) // comm.Get_size()
    own = slice(comm.Get_rank() * rows, (comm.Get_rank() + 1) * rows)
    x, labels, count = x[own], labels[own], np.float32(len(x))
    hidden = x @ w1 + b1
    h = np.maximum(hidden, 0)
    logits = h @ w2 + b2
    logits = logits - np.max(logits, axis=1, keepdims=True)
    exp = np.exp(logits)
    total = np.sum(exp, axis=1, keepdims=True)
    value = np.sum(np.log(total[:, 0]) - np.sum(logits * labels, axis=1)) / count
    d_logits = (exp / total - labels) / count
    d_hidden = (d_logits @ w2.T) * (hidden > 0)
    gradients = (x.T @ d_hidden, d_hidden.sum(0), h.T @ d_logits, d_logits.sum(0))
    parts = [np.asarray(value, np.float32), *gradients]
    given = [np.concatenate([part.ravel() for part in parts])] if packed else list(map(np.ascontiguousarray, parts))
    summed = [np.empty_like(each) for each in given]
    for own_sum, whole_sum in zip(given, summed):
        comm.Allreduce(own_sum, whole_sum)
    if packed:
        ends = np.cumsum([0, *[part.size for part in parts]])
        summed = [summed[0][a:b].reshape(part.shape) for a, b, part in zip(ends, ends[1:], parts)]
    return summed[0], tuple(p - np.float32(0.2) * g for p, g in zip(params, summed[1:]))


def measure(rounds: int) -> None:
    """What each rank runs."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    ranks = sw.mpi.communicator()
    mesh = sw.Mesh({"data": ranks.size})
    rows = []
    for batch, hidden in ((128, 64), (1024, 512)):
        rng = np.random.default_rng(0)
        x = rng.standard_normal((batch, 64)).astype(np.float32)
        labels = np.eye(CLASSES, dtype=np.float32)[rng.integers(0, CLASSES, batch)]
        shapes = ((64, hidden), (hidden,), (hidden, CLASSES), (CLASSES,))
        params = tuple((rng.standard_normal(shape) / 8).astype(np.float32) for shape in shapes)
        program = sw.jit(step, mesh=mesh).lower(params, x, labels).compile()
        placed = [sw.device_put(p, mesh) for p in params]
        data = [sw.device_put(a, sw.NamedSharding(mesh, sw.P("data"))) for a in (x, labels)]

        def ours(program: Any = program, placed: Any = tuple(placed), data: Any = data) -> None:
            program(placed, *data)

        def by_hand(params: Any = params, x: Any = x, labels: Any = labels) -> None:
            step_by_hand(comm, params, x, labels, packed=False)

        def packed(params: Any = params, x: Any = x, labels: Any = labels) -> None:
            step_by_hand(comm, params, x, labels, packed=True)

        rows_here = slice(0, batch // ranks.size)
        part = (x[rows_here], labels[rows_here])
        with sw.mpi.local():
            one = sw.Mesh({"data": 1})
            alone = sw.jit(step, mesh=one).lower(params, *part).compile()
            own = [tuple(sw.device_put(p, one) for p in params), *(sw.device_put(a, one) for a in part)]

        def ours_alone(program: Any = alone, own: Any = own) -> None:
            with sw.mpi.local():
                program(*own)

        def by_hand_alone(params: Any = params, part: Any = part) -> None:
            step_by_hand(MPI.COMM_SELF, params, *part, packed=False)

        value, _ = program(tuple(placed), *data)
        expected, _ = step_by_hand(comm, params, x, labels, packed=False)
        assert np.allclose(float(value), expected, rtol=1e-4)
        actions = {"ours": ours, "by hand": by_hand, "packed by hand": packed}
        actions |= {"ours alone": ours_alone, "by hand alone": by_hand_alone}
        # Together: the first step with a collective would otherwise wait for the ranks that were slower alone.
        seconds = interleaved(actions, rounds, before=comm.Barrier, in_a_row=STEPS)
        best = {name: comm.allreduce(min(each), MPI.MAX) * 1e3 for name, each in seconds.items()}
        rows.append({"ranks": ranks.size, "batch": batch, "hidden": hidden, **best})
    if ranks.rank == 0:
        show(rows)


def show(rows: list[dict[str, Any]]) -> None:
    columns = (*rows[0], "ratio to by hand")
    cells = [[*row.values(), row["ours"] / row["by hand"]] for row in rows]
    table("digits step on MPI ranks, fastest, ms", columns, cells)
    write(file_of(rows[0]["ranks"]), rows)


def file_of(ranks: int) -> str:
    """The name of the JSON file of a number of ranks."""
    return f"handover_mpi_{ranks}"


def problems_of(ranks: int) -> list[str]:
    """The limits that the rows of a number of ranks do not meet."""
    rows = json.loads((RESULTS / f"{file_of(ranks)}.json").read_text())["rows"]
    found = {f"batch {row['batch']}, hidden {row['hidden']}": row["ours"] / row["by hand"] for row in rows}
    return [f"MPI: {ranks} ranks, {k}: {v:.3g}x of by hand, above {LIMIT}" for k, v in found.items() if v > LIMIT]


def start(ranks: int, rounds: int) -> None:
    arguments = ["-m", "benchmarks.handover", "--rank", "--rounds", str(rounds)]
    # Both sides use the rank's share of the processors.
    share = {"OPENBLAS_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // ranks))}
    subprocess.run(command(ranks, arguments), env={**os.environ, **ENVIRONMENT, **share}, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--no-jax", action="store_true")
    parser.add_argument("--no-mpi", action="store_true")
    parser.add_argument("--rank", action="store_true", help="run as one of the ranks")
    options = parser.parse_args()
    if options.rank:
        measure(options.rounds)
        return
    problems = [] if options.no_jax else show_jax()
    for ranks in [] if options.no_mpi else options.ranks:
        start(ranks, options.rounds)
        problems += problems_of(ranks)
    for problem in problems:
        print("NOT MET:", problem)
    raise SystemExit(1 if problems else 0)


if __name__ == "__main__":
    main()
