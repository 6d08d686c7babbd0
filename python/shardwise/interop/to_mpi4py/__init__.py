# SPDX-License-Identifier: Apache-2.0
"""Compiled programs as scripts that run with mpi4py and NumPy, one device per rank."""

from . import (  # they fill the table
    collectives as collectives,
    control as control,
    convolutions as convolutions,
    elementwise as elementwise,
    indexing as indexing,
    linear_algebra as linear_algebra,
    movement as movement,
    reductions as reductions,
    sorting as sorting,
)
from .target import MPI4PY as MPI4PY
