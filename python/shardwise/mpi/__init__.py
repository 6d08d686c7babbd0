# SPDX-License-Identifier: Apache-2.0
"""Programs on the ranks of an MPI job: the same program, the same numbers, bit by bit, as on the virtual mesh.

``mpirun -n 4 python -m shardwise.mpi script.py`` runs a script unchanged. A script can also set up the ranks itself:

    import shardwise as sw

    ranks = sw.mpi.communicator()  # from here on, meshes are spread over the ranks
    mesh = sw.Mesh({"data": 4, "model": 2})  # 8 devices: two per rank on 4 ranks

All ranks run the same script. Each owns some devices of every mesh; kernels and results are those of the virtual mesh.
The package ``mpi4py`` and an MPI library are needed only when :func:`communicator` is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..process.lazy_names import lazy_names

if TYPE_CHECKING:
    from .agreement import RankMismatchError
    from .joining import communicator, local
    from .ranks import Ranks

__all__ = ["RankMismatchError", "Ranks", "communicator", "local"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {"RankMismatchError": ".agreement", "Ranks": ".ranks", "communicator": ".joining", "local": ".joining"},
)
