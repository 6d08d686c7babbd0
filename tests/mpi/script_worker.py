# SPDX-License-Identifier: Apache-2.0
"""Runs scripts of `to_source("mpi4py")` on ranks where shardwise cannot be imported.

    mpirun -n 4 python -m mpi4py tests/mpi/script_worker.py FOLDER

FOLDER/NAME.py is a script and FOLDER/NAME.args its pickled arguments. Rank 0 writes the results to FOLDER/NAME.out.
"""

from __future__ import annotations

import pickle
import runpy
import sys
from pathlib import Path

from mpi4py import MPI

if __name__ == "__main__":
    sys.modules["shardwise"] = None  # type: ignore[assignment]
    for file in sorted(Path(sys.argv[1]).glob("*.py")):
        print(file.stem, flush=True)  # the last line names the script that fails
        arguments = pickle.loads(file.with_suffix(".args").read_bytes())
        results = runpy.run_path(str(file))["main"](*arguments)
        if MPI.COMM_WORLD.rank == 0:
            file.with_suffix(".out").write_bytes(pickle.dumps(results))
