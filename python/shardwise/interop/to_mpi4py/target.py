# SPDX-License-Identifier: Apache-2.0
"""mpi4py and NumPy as a target of programs: one device per rank."""

from __future__ import annotations

from pathlib import Path

from ..source.literals import wrapped
from ..source.scope import listed
from ..source.script import Border, Script
from ..source.target import Target

__all__ = ["MPI4PY", "emits"]

_MAIN = '''def main(*args):
    """The results for NumPy arguments, the same on all ranks."""
    PASSED
    own = []
    for x, axes, (_, shape, padded, _) in zip(arguments, IN_AXES, INPUTS):
        x = np.pad(x, [(0, p - n) for n, p in zip(shape, padded)]) if shape else x
OWN_TILE
        for dim, names in enumerate(axes):
            x = np.split(x, along(*names).size, dim)[along(*names).rank] if names else x
        own.append(x)
    with np.errstate(all="ignore"):
        results = list(local(*own))
    for i, (axes, shape) in enumerate(zip(OUT_AXES, RESULTS)):
ALL_TILES
        for dim, names in enumerate(axes):
            results[i] = np.concatenate(along(*names).allgather(results[i]), dim) if names else results[i]
        results[i] = np.asarray(results[i])[(*map(slice, shape), ...)]
PRINTED


if __name__ == "__main__":
    for result in main(*[np.ones(shape, dtype) for _, shape, _, dtype in ARGUMENTS]):
        if COMM.rank == 0:
            print(result)
'''


def _axes(borders: list[Border]) -> str:
    return listed([repr(border.spec) for border in borders])


def _head(script: Script) -> str:
    count = script.axes.mesh.size
    order = list(script.axes.mesh.device_ids or range(count))
    is_plain = order == list(range(count))
    lines = [
        *(["import ml_dtypes  # dtypes for NumPy"] if script.is_extended else []),
        "import numpy as np",
        "from mpi4py import MPI",
        "",
        f"SIZES = {script.axes.sizes}",
        "ALL = tuple(SIZES)",
        *wrapped(f"IN_AXES = {_axes(script.inputs)}", ""),
        *wrapped(f"OUT_AXES = {_axes(script.outputs)}", ""),
        "COMM = MPI.COMM_WORLD  # one device per rank" + ("" if is_plain else ", in the order of the mesh"),
        f"if COMM.size != {count}:",
        f'    raise SystemExit(f"this program needs mpirun -n {count}, got {{COMM.size}} ranks")',
        *([] if is_plain else [f"COMM = COMM.Split(0, {order}.index(COMM.rank))"]),
    ]
    return "\n".join(lines)


# For arguments and results on another mesh.
_OWN_TILE = """        if len(own) in IN_PLACES:
            own.append(tile_of(x, IN_PLACES[len(own)][COMM.rank]))
            continue
"""
_ALL_TILES = """        if i in OUT_PLACES:
            results[i] = of_tiles(COMM.allgather(results[i]), OUT_PLACES[i])[tuple(map(slice, shape))]
            continue
"""


def _main(script: Script) -> str:
    text = _MAIN.replace("PASSED", script.passed).replace("ARGUMENTS", script.visible_inputs)
    printed = ["if COMM.rank == 0:", *(f"    {line}" for line in script.prints)] if script.prints else []
    returned = f"results[:{script.visible[1]}]" if script.prints else "results"
    text = text.replace("PRINTED", "\n".join(f"    {line}" for line in [*printed, f"return {returned}"]))
    text = text.replace("OWN_TILE\n", _OWN_TILE if script.has_other_meshes(script.inputs) else "")
    return text.replace("ALL_TILES\n", _ALL_TILES if script.has_other_meshes(script.outputs) else "")


_FOLDER = Path(__file__).parent
_NO_GENERATOR = "NumPy has no generator with these bits; draw them with sw.random"
MPI4PY = Target(
    name="mpi4py",
    caller="to_source",
    library="NumPy",
    dtypes="ml_dtypes",
    full="np.full",
    arrays="NumPy's arrays are",
    always=("along", "checked"),
    helpers=(
        _FOLDER / "helpers.py",
        _FOLDER / "linear_algebra_helpers.py",
        _FOLDER.parent / "source" / "helpers.py",
    ),
    head=_head,
    main=_main,
    refused={
        "stablehlo.rng_bit_generator": _NO_GENERATOR,
        "shardwise.random_bits": _NO_GENERATOR,
        "stablehlo.select_and_scatter": "NumPy has no function for it",
    },
    way_out="run the program on MPI ranks with shardwise.mpi",
)
emits = MPI4PY.emits
