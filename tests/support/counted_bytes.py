# SPDX-License-Identifier: Apache-2.0
"""The bytes that the ledger predicts, against those that a communicator counted in a run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.float64]  # by device, in logical order


def predicted(row: dict[str, Any], mesh: Any) -> Bytes:
    """By device, of one execution of a row of the ledger."""
    devices = math.prod(mesh.axis_sizes)
    if not row["device_bytes"]:
        return np.full(devices, row["bytes"])
    coordinates = dict(zip(mesh.axis_names, np.unravel_index(np.arange(devices), mesh.axis_sizes)))
    sizes = dict(zip(mesh.axis_names, mesh.axis_sizes))
    position = np.zeros(devices, dtype=np.int64)
    for axis, size in row["device_axes"]:
        position = position * size + coordinates[axis] // (sizes[axis] // size)
    return np.asarray(row["device_bytes"])[position]


def differences(compiled: Any, executable: Any) -> list[str]:
    """Differences between the bytes of the last counted run of an executable and the ledger of its program."""
    mesh = next(iter(compiled.stages["propagated"].meshes.values()))
    received = {op: np.asarray(counted) for op, counted in executable.received().items()}
    wrong = []
    for row in compiled.collectives():
        once = predicted(row, mesh)
        counted = received.pop(row["op"], np.zeros_like(once))
        if row["bound"] == "":
            holds = np.array_equal(counted, once * row["count"])
        elif row["bound"] == "at most":
            holds = bool(np.all(counted <= once * row["count"]))
        else:  # in each trip of a loop of unknown length
            trips = {int(c / o) if c % o == 0 else -1 for c, o in zip(counted, once) if o > 0}
            holds = len(trips) <= 1 and -1 not in trips and bool(np.all(counted[once == 0] == 0))
        holds = holds and once.max(initial=0) == row["bytes"] and math.isclose(once.sum(), row["sum_bytes"])
        if not holds:
            wrong.append(f"{row['kind']} {row['axes']}: predicted {row['count']} x {once}, counted {counted}")
    return wrong + [f"op {op} is not in the ledger" for op, counted in received.items() if counted.any()]


class _Counting:
    """An executable whose runs count."""

    def __init__(self, executable: Any) -> None:
        self.executable = executable

    def accepts(self, arguments: Any) -> bool:
        return bool(self.executable.accepts(arguments))

    def run(self, *args: Any, **kwargs: Any) -> Any:
        return self.executable.run(*args, **{**kwargs, "faithful": True, "count": True})


def received_in_run(program: Any, *arrays: Any) -> Any:
    """The executable of a program after a counted run."""
    here = program._here()
    executable = here.executable
    here.executable = _Counting(executable)
    program(*arrays)
    return executable
