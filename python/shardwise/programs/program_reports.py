# SPDX-License-Identifier: Apache-2.0
"""What a compiled program reports of itself: collectives, work, time and memory. Nothing runs for it."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from .. import _core
from ..errors import message, shown
from ..hardware import Hardware
from ..process.implementations import IMPLEMENTATIONS
from ..process.processes import ALONE, Place
from ..reports.estimate import Estimate, estimate_of
from ..reports.ledger import Ledger, ledger_of
from ..reports.memory import MemoryReport, memory_of
from ..reports.price import Price
from ..reports.rematerialization import Rematerialization, rematerialization_of
from ..reports.shard_update import ShardUpdateReport, shard_update_of
from ..reports.trace_events import LiveBytes, StepSpan
from ..reports.trace_memory import TimedOps, live_bytes
from ..reports.work import WorkReport, work_of
from ..shardings.mesh import Mesh
from ..trees.registry import path_of
from .hardware_options import checked_hardware, checked_limit
from .options import switch
from .partition_options import MOST_BYTES, PartitionOptions
from .placed_programs import PlacedProgram

__all__ = ["ProgramReports"]


class ProgramReports:
    """The reports of :class:`Program`, which has the rest."""

    mesh: Mesh
    _compiled: Any  # _core.passes.CompileUnit
    _traced: Any  # Traced

    @abstractmethod
    def _on(self, place: Place) -> PlacedProgram:
        """The program on the devices of a process."""

    def collectives(self) -> Ledger:
        """Every collective that sends something: kind, axes, bytes received per device, count, source line and cause.

        >>> import numpy as np
        >>> import shardwise as sw
        >>> function = sw.jit(lambda x: x[::2], mesh=sw.Mesh({"x": 4}), in_shardings=sw.P("x"), out_shardings=sw.P("x"))
        >>> function.lower(np.arange(16)).compile().collectives().rows  # each device has its rows already
        ()
        """
        return Ledger([row for row in self._all_collectives() if row.bytes])

    def _all_collectives(self) -> Ledger:
        """Also those that send nothing, as the local program has them."""
        return ledger_of(list(self._rows_of_collectives()))

    def _rows_of_collectives(self) -> Iterator[dict[str, Any]]:
        for row in self._compiled.collectives():
            combined = [{**part, "cause": self._cause(part["cause"])} for part in row["combined"]]
            yield {**row, "cause": self._cause(row["cause"]), "combined": combined}

    def _cause(self, cause: str) -> str:
        """The cause of a collective, with the tree path of a result: ``result[1]['w']``."""
        number = re.fullmatch(r"result (\d+)", cause)
        if number is None:
            return cause
        accessors = dict(enumerate(self._traced.out_tree.accessors()))  # without the hidden results of debug.print
        path = "".join(map(str, path_of(accessors.get(int(number[1]), ()))))
        return f"result{path}" if path and path != f"[{number[1]}]" else cause

    def choice_price(self) -> Price:
        """What the partitioner's decisions cost: a device's operations, memory and transfers, one after the other.

        It is what ``jit(objective="time")`` minimises, on the hardware of ``jit(hardware=)``, without launches and
        overlap: a measure of decisions, and no estimate of a step. Loops count with their trips, a loop of unknown
        length with 16, and each branch with an equal share.

        >>> import numpy as np, shardwise as sw
        >>> x, w = sw.ShapeDtypeStruct((1024, 8192), np.float32), sw.ShapeDtypeStruct((8192, 8192), np.float32)
        >>> shardings = {"in_shardings": (sw.P(None, "t"), sw.P("t")), "out_shardings": sw.P()}
        >>> project = sw.jit(lambda x, w: x @ w, mesh=sw.Mesh({"t": 8}), **shardings)
        >>> program = project.lower(x, w).compile()
        >>> program.collectives().by_kind(), str(program.choice_price())
        ({'all_reduce': 1}, '165 us, 56 MiB, 2 rounds, 17.2 Gflop')
        """
        return Price(*self._compiled.choice_price())

    def shard_update(self) -> ShardUpdateReport:
        """How ``jit(shard_update=)`` lays out each weight and each state of its optimizer, or why it leaves one whole.

        Without the option, and for a function without weight updates, there are no rows.

        >>> import numpy as np, shardwise as sw
        >>> def step(w, x):
        ...     return w - 0.1 * sw.grad(lambda w: np.mean(np.tanh(x @ w) ** 2))(w)
        >>> train = sw.jit(step, mesh=sw.Mesh({"data": 8}), in_shardings=(None, sw.P("data")), shard_update="data")
        >>> w, x = sw.ShapeDtypeStruct((64, 32), np.float32), sw.ShapeDtypeStruct((128, 64), np.float32)
        >>> program = train.lower(w, x).compile()
        >>> program.shard_update().named("w").layout, program.collectives().by_kind()
        ('[{"data"}, {}]', {'all_gather': 1, 'reduce_scatter': 1})
        """
        return shard_update_of(self._compiled.shard_update)

    def work(self) -> WorkReport:
        """The operations of one device, by source line, beside its share: who repeats what others compute.

        It counts the operations of the program as it is partitioned, in all executions, as :meth:`choice_price` does.
        Lines that repeat more than a tenth of all work have a warning with what to split.
        What ``jit(memory_limit=)`` computes again is no part of it, but of :meth:`rematerialized` and
        :attr:`Estimate.hfu`.

        >>> import numpy as np, shardwise as sw
        >>> x, w = sw.ShapeDtypeStruct((512, 64), np.float32), sw.ShapeDtypeStruct((64, 64), np.float32)
        >>> program = sw.jit(lambda x, w: x @ w, mesh=sw.Mesh({"t": 8}), in_shardings=sw.P()).lower(x, w).compile()
        >>> program.work().ratio
        8.0
        """
        return work_of(self._compiled.work(), self.mesh.shape, self.mesh.size)

    def estimate(self, hardware: Any = None) -> Estimate:
        """How long a step takes on one device, what takes it, and how sure that is.

        The kernels of a device compute one after the other; beside them, each tier of links does one transfer after
        the other. ``estimate`` is the length of that schedule. ``lower`` is the longest chain of ops and transfers that
        wait for each other, or the busiest stream; ``upper`` has nothing at the same time.
        :attr:`Estimate.assumptions` names what is taken for granted.

        Args:
            hardware: a :class:`shardwise.hardware.Hardware`, its name, or a path. Default: that of ``jit(hardware=)``.

        Raises:
            ValueError: no built-in name and no file. MeshError: the hardware joins fewer devices than the mesh has.

        >>> import numpy as np, shardwise as sw
        >>> import ml_dtypes
        >>> x, w = (sw.ShapeDtypeStruct((8192, 8192), ml_dtypes.bfloat16) for _ in range(2))
        >>> shardings = {"in_shardings": (sw.P(None, "t"), sw.P("t")), "out_shardings": sw.P()}
        >>> project = sw.jit(lambda x, w: np.dot(x, w), mesh=sw.Mesh({"t": 8}), **shardings)
        >>> project.lower(x, w).compile().estimate("h100_sxm").by("op")
        666 us (lower 665 us, upper 666 us) on h100_sxm, MFU 20.9%, exposed transfers 526 us, by name, largest first:
        name         seconds  share  compute  exposed  transfer
        all_reduce    526 us  79.0%            526 us    526 us
        dot_general   140 us  21.0%   140 us
        """
        chosen: Hardware = self._hardware if hardware is None else checked_hardware("estimate", hardware)
        found = _core.analysis.estimate(self._compiled.stages["local"], chosen._core)
        collectives = {row["op"]: row for row in self._rows_of_collectives()}
        products, again = _core.analysis.model_products(self._compiled.stages["global"], chosen._core)
        return estimate_of(found, collectives, chosen, self.mesh.size, products - again, self._live_bytes)

    def _live_bytes(self, timed: Sequence[TimedOps], spans: Sequence[StepSpan], seconds: float) -> LiveBytes:
        moments = self._rehearsed()[-1]
        return live_bytes(moments, self._compiled.stages["local"], timed, spans, seconds)

    @property
    def _hardware(self) -> Hardware:
        options: PartitionOptions = self._traced._call.partition
        return options.hardware

    def memory(self, *, virtual: bool = False, limit: Any = None) -> MemoryReport:
        """The peak memory of a run, by value and source line. Nothing runs: arguments may be as large as you like.

        The executor rehearses its plan with buffers that are only addresses, so reuse of dead buffers, views and loops
        count as they do in a run. Arguments that ``jit`` donates may be freed; all others live until the end.

        Args:
            virtual: the buffers of all devices of the virtual mesh in this process, where devices that hold the same
                bytes share one; the default is one device of a real mesh, which holds its own shards.
            limit: what a device has: bytes, ``"80GB"``, ``"16GiB"``, or a :class:`shardwise.hardware.Hardware` or its
                name, without its reserved bytes. The report then says whether the program fits, and if it does not,
                its ``ladder`` what ``jit(memory_limit=)`` would compute again.

        Raises:
            ValueError: a negative limit, one for all devices together, or neither a size nor hardware.

        >>> import numpy as np, shardwise as sw
        >>> x = sw.ShapeDtypeStruct((1 << 20, 256), np.float32)
        >>> step = sw.jit(lambda x: np.exp(sw.split(x, 0, 4)) @ np.ones((256, 8), np.float32), mesh=sw.Mesh({"x": 4}))
        >>> step.lower(x).compile().memory().summary()
        'peak 520 MiB per device; arguments 256 MiB, results 8 MiB'
        """
        alive = self._rehearsed(switch("memory", "virtual", virtual, False))
        if virtual and limit is not None:
            way_out = "leave out virtual= or limit="
            raise ValueError(
                message("memory", "limit is of one device, and virtual=True of all", shown(limit), way_out)
            )
        devices = self.mesh.size if virtual else 1
        given = None if limit is None else checked_limit("memory", limit)
        ladder = None if given is None or alive[0] <= given else self.rematerialized(given)
        return memory_of(alive, self._compiled.stages["local"], devices, given, ladder)

    def rematerialized(self, limit: Any = None) -> Rematerialization:
        """What is gathered or computed again to stay within a memory limit, and what that costs.

        Of the values that are alive at the peak, those are dropped that take the least time for the memory that they
        free; a value of a scan's body in all its trips. A stack that scans read row by row is gathered or converted in
        their trips, where that takes less time. Placements stay, and copies have the same bits. Where that is not
        enough, products run as loops (``jit(windowed_einsum=)``). The report is empty where the program fits anyway.

        Args:
            limit: what a device has, as in :meth:`memory`. The report is what ``jit(memory_limit=)`` would compute
                again. Default: the limit with which the program was compiled.

        Raises:
            ValueError: no limit, and the program was compiled without one, or neither a size nor hardware.

        >>> import numpy as np, shardwise as sw
        >>> def loss(x, w):
        ...     y = np.tanh(x @ w)
        ...     return (np.tanh(y @ w) * y).sum()
        >>> x, w = sw.ShapeDtypeStruct((8192, 512), np.float32), sw.ShapeDtypeStruct((512, 512), np.float32)
        >>> options = {"mesh": sw.Mesh({"d": 8}), "in_shardings": (sw.P("d"), sw.P())}
        >>> program = sw.jit(sw.grad(loss, argnums=1), **options).lower(x, w).compile()
        >>> program.rematerialized("11MiB").summary()
        'limit 11 MiB: peak 11 MiB instead of 12 MiB, +3.13 us'
        >>> program.rematerialized("4MiB").fits
        False
        """
        if limit is not None:
            given = min(checked_limit("rematerialized", limit), MOST_BYTES)
            return rematerialization_of(*self._compiled.repeated_within(given))
        found = self._compiled.repeated()
        if found is None:
            way_out = 'pass one, as in rematerialized("80GB"), or compile the program with jit(memory_limit=)'
            raise ValueError(message("rematerialized", "needs a memory limit", None, way_out))
        return rematerialization_of(*found)

    def checkpoint_policy(self, limit: Any = None) -> Any:
        """What stays in memory within a limit, as a policy of `jax.checkpoint`.

        The policy keeps what :meth:`rematerialized` keeps at the peak, and nothing else. It knows values by the op that
        makes them and by the type of the whole tensor; where some of them are dropped, all are.

        Args:
            limit: as in :meth:`rematerialized`.

        Returns:
            A callable for ``jax.checkpoint(function, policy=policy)``. ``policy.kept`` has the pairs of op and type;
            it is None, and everything is kept, where the program fits.

        Raises:
            ValueError: no limit, or one that cannot be kept.
            UnsupportedError: JAX is missing or too old.
        """
        report = self.rematerialized(limit)
        if not report.fits:
            rule = "the program must fit by computing values again"
            raise ValueError(message("checkpoint_policy", rule, report.summary()))
        return IMPLEMENTATIONS.checkpoint_policy(report)

    def _rehearsed(self, virtual: bool = False) -> tuple[Any, ...]:
        """Of a rehearsed run: bytes at the peak, of arguments and of results, values at the peak, and moments."""
        return self._on(ALONE).executable.memory(not virtual, self._donated)

    @property
    def _donated(self) -> list[int]:
        """The numbers of the arguments that the run may free."""
        return [i for i in self._traced._call.donated if i < len(self._traced.in_avals)]
