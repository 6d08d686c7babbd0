# SPDX-License-Identifier: Apache-2.0
"""Runs texts on XLA's CPU backend, in its own process.

python -m tests.conformance.jax.composed_worker FOLDER

FOLDER holds programs.json, a list of texts, and operands.npz, operand k of program i under "i_k". Writes results.npz,
the first result of program i under "i", and refused.json, what XLA says of each program that it does not compile.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jax
import numpy as np
from jax._src.lib import xla_client


def main(folder: Path) -> None:
    jax.config.update("jax_enable_x64", True)
    devices = jax.devices("cpu")[:1]
    client = devices[0].client
    operands = np.load(folder / "operands.npz")
    results, refused = {}, {}
    for i, text in enumerate(json.loads((folder / "programs.json").read_text())):
        arrays = []
        while f"{i}_{len(arrays)}" in operands:
            arrays.append(jax.device_put(operands[f"{i}_{len(arrays)}"], devices[0]))
        try:
            program = client.compile_and_load(text, xla_client.DeviceList(tuple(devices)), xla_client.CompileOptions())
        except Exception as error:
            refused[i] = str(error)
            continue
        found = program.execute_sharded(arrays).disassemble_into_single_device_arrays()
        results[str(i)] = np.asarray(found[0][0])
    np.savez(folder / "results.npz", **results)
    (folder / "refused.json").write_text(json.dumps(refused))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
