# SPDX-License-Identifier: Apache-2.0
"""JAX as a target of programs."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

from ..source.literals import wrapped
from ..source.script import Border, Script
from ..source.target import Target

__all__ = ["JAX", "emits"]

_MAIN = '''# What `main` runs on: the mesh, and `local` jitted for all of its devices.
DEVICES = jax.devices()[:COUNT]
if len(DEVICES) < COUNT:
    flag = "XLA_FLAGS=--xla_force_host_platform_device_count=COUNT"
    raise RuntimeError(f"this program needs COUNT devices, got {len(DEVICES)}; set {flag} for host devices")
MESH = jax.sharding.Mesh(np.array(DEVICES)ORDER.reshape(tuple(SIZES.values())), ALL)


@jax.jit
def run(*args):
    """The padded results on all devices. GPUs and TPUs would round the operands of products by default."""
    with jax.default_matmul_precision("highest"):
        return jax.shard_map(local, mesh=MESH, in_specs=IN_SPECS, out_specs=OUT_SPECS, check_vma=False)(*args)


def main(*args):
    """The results for NumPy arguments, on the devices of this process."""
    PASSED
    placed = []
    for x, spec, (_, shape, padded, _) in zip(arguments, IN_SPECS, INPUTS):
        x = np.pad(x, [(0, p - n) for n, p in zip(shape, padded)]) if shape else x
IN_TILES
        placed.append(jax.device_put(x, jax.sharding.NamedSharding(MESH, spec)))
    results = list(map(np.asarray, run(*placed)))
OUT_TILES
PRINTED


if __name__ == "__main__":
    for result in main(*[np.ones(shape, dtype) for _, shape, _, dtype in ARGUMENTS]):
        print(result)
'''
_CROPPED = "[y[(*map(slice, shape), ...)] for y, shape in zip(results, RESULTS)]"


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
    is_plain = order == list(range(count))
    text = _MAIN.replace("[:COUNT]", f"[:{count}]").replace("COUNT", str(count))
    text = text.replace("np.array(DEVICES)ORDER", "np.array(DEVICES)" if is_plain else f"np.array(DEVICES)[{order}]")
    text = text.replace("PASSED", script.passed).replace("ARGUMENTS", script.visible_inputs)
    if script.prints:
        printed = [f"results = {_CROPPED}", *script.prints, f"return results[:{script.visible[1]}]"]
    else:
        printed = [f"return {_CROPPED}"]
    text = text.replace("PRINTED", "\n".join(f"    {line}" for line in printed))
    text = text.replace("IN_TILES\n", _IN_TILES if script.has_other_meshes(script.inputs) else "")
    text = text.replace("OUT_TILES\n", _OUT_TILES if script.has_other_meshes(script.outputs) else "")
    if not script.needs_x64:
        return text
    head, start, rest = text.partition("    placed = []\n")
    body, end, tail = (start + rest).partition("\n\n\n")
    return f"{head}    with jax.enable_x64(True):\n{indent(body, '    ')}{end}{tail}"


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
        _FOLDER / "exchange_helpers.py",
        _FOLDER / "linear_algebra_helpers.py",
        _FOLDER.parent / "source" / "helpers.py",
    ),
    missing_dtypes=("float6_e2m3fn", "float6_e3m2fn"),
    always=("checked",),
    head=_head,
    main=_main,
    refused={
        "stablehlo.select_and_scatter": "JAX has no public function for it",
    },
    way_out="run the program with sw.jit, or on MPI ranks with shardwise.mpi",
)
emits = JAX.emits
