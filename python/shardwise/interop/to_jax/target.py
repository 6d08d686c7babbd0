# SPDX-License-Identifier: Apache-2.0
"""JAX as a target of programs."""

from __future__ import annotations

from pathlib import Path

from ..source.literals import wrapped
from ..source.script import Border, Script
from ..source.target import Target

__all__ = ["JAX", "emits"]

_MAIN = '''def main(*args):
    """The results for NumPy arguments, on the devices of this process."""
    mesh = jax.sharding.Mesh(DEVICES.reshape(tuple(SIZES.values())), ALL)
    placed = []
    for x, spec, (shape, padded, dtype) in zip([PASSED], IN_SPECS, INPUTS):
        x = np.asarray(x, dtype)
        x = np.pad(x, [(0, p - n) for n, p in zip(shape, padded)]) if shape else x
IN_TILES
        placed.append(jax.device_put(x, jax.sharding.NamedSharding(mesh, spec)))
    run = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=IN_SPECS, out_specs=OUT_SPECS, check_vma=False))
    results = list(map(np.asarray, run(*placed)))
OUT_TILES
    return [y[tuple(map(slice, shape))] for y, shape in zip(results, RESULTS)]


if __name__ == "__main__":
    for result in main(*[np.ones(shape, dtype) for shape, _, dtype in INPUTS[: ARGUMENTS]]):
        print(result)
'''


# For arguments and results on another mesh: inside of the program, tiles follow each other in the order of the devices.
_IN_TILES = """        if len(placed) in IN_PLACES:
            x = np.concatenate([tile_of(x, places) for places in IN_PLACES[len(placed)]])
"""
_OUT_TILES = """    for i, places in OUT_PLACES.items():
        results[i] = of_tiles(np.split(results[i], len(places)), places)
"""


def _specs(borders: list[Border]) -> str:
    return f"({''.join(f'{border.text}, ' for border in borders).rstrip(' ')})"


def _head(script: Script) -> str:
    lines = [
        "import jax",
        "import jax.numpy as jnp",
        "import numpy as np",
        "from jax import lax",
        "from jax.sharding import PartitionSpec as P",
        "",
        f"SIZES = {script.axes.sizes}",
        "ALL = tuple(SIZES)",
        *wrapped(f"IN_SPECS = {_specs(script.inputs)}", ""),
        *wrapped(f"OUT_SPECS = {_specs(script.outputs)}", ""),
    ]
    return "\n".join(lines)


def _main(script: Script) -> str:
    count = script.axes.mesh.size
    order = list(script.axes.mesh.device_ids or range(count))
    devices = f"np.array(jax.devices()[:{count}])"
    devices += "" if order == list(range(count)) else f"[{order}]"
    text = _MAIN.replace("DEVICES", devices).replace("PASSED", script.passed)
    text = text.replace("ARGUMENTS", str(script.visible[0]))
    text = text.replace("IN_TILES\n", _IN_TILES if script.has_other_meshes(script.inputs) else "")
    text = text.replace("OUT_TILES\n", _OUT_TILES if script.has_other_meshes(script.outputs) else "")
    if not script.needs_x64:
        return text
    return text.replace("    mesh = ", '    jax.config.update("jax_enable_x64", True)\n    mesh = ', 1)


_FOLDER = Path(__file__).parent
JAX = Target(
    name="jax",
    caller="to_jax",
    library="jax.lax",
    dtypes="jnp",
    full="lax.full",
    arrays="JAX's arrays are",
    helpers=(
        _FOLDER / "helpers.py",
        _FOLDER / "linear_algebra_helpers.py",
        _FOLDER.parent / "source" / "helpers.py",
    ),
    missing_dtypes=("float6_e2m3fn", "float6_e3m2fn"),
    always=(),
    head=_head,
    main=_main,
    refused={
        "stablehlo.select_and_scatter": "JAX has no public function for it",
    },
    way_out="run the program with sw.jit, or on MPI ranks with shardwise.mpi",
)
emits = JAX.emits
