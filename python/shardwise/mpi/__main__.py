# SPDX-License-Identifier: Apache-2.0
"""Run a script on the ranks of an MPI job: ``mpirun -n 4 python -m shardwise.mpi script.py``."""

from __future__ import annotations

import argparse
import os
import runpy
import sys

from .. import mpi
from ..shardings.mesh import Mesh, set_mesh, use_as_last_resort


def _mesh(parser: argparse.ArgumentParser, text: str) -> Mesh:
    sizes = [part.partition("=")[::2] for part in text.split(",")]
    if not all(name and size.isdigit() for name, size in sizes):
        parser.error(f"--mesh must be like data=4,model=2, got {text!r}")
    return Mesh({name: int(size) for name, size in sizes})


def _print_only_on(rank: int, ranks: mpi.Ranks, parser: argparse.ArgumentParser) -> None:
    if not 0 <= rank < ranks.size:
        rule = f"--stdout must be a rank from 0 to {ranks.size - 1}"
        parser.error(f"{rule}, because the number of ranks is {ranks.size}, got {rank}")
    if rank != ranks.rank:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - it stays open until the end


def main() -> None:
    """Parse the command line, set up the ranks, and run the script or module as ``__main__``."""
    parser = argparse.ArgumentParser(
        prog="mpirun -n RANKS python -m shardwise.mpi",
        description="Run a script unchanged on the ranks of an MPI job. Its meshes are spread over the ranks, whose "
        "number must divide the devices of each mesh.",
    )
    parser.add_argument("--stdout", type=int, metavar="RANK", help="print the standard output of this rank only")
    parser.add_argument(
        "--mesh",
        metavar="AXIS=SIZE,...",
        help="the default mesh, for scripts that set none (data=RANKS, unless an annotation names a mesh)",
    )
    parser.add_argument("-m", dest="module", action="store_true", help="the script is a module name")
    parser.add_argument("script", help="a Python script, or a module after -m")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    options = parser.parse_args()
    try:
        ranks = mpi.communicator()
    except ImportError as error:
        parser.exit(1, f"{error}\n")
    if options.stdout is not None:
        _print_only_on(options.stdout, ranks, parser)
    if options.mesh is not None:
        set_mesh(_mesh(parser, options.mesh))
    use_as_last_resort(Mesh({"data": ranks.size}))
    sys.argv = [options.script, *options.args]
    if options.module:
        runpy.run_module(options.script, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(options.script))
        runpy.run_path(options.script, run_name="__main__")


if __name__ == "__main__":
    main()
