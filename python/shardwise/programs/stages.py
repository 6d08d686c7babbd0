# SPDX-License-Identifier: Apache-2.0
"""The stages of a program: traced, lowered, compiled. The names are JAX's."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Unpack

import numpy as np

from .. import _core
from .._core.runtime import enter_call, leave_call
from ..array import ShapeDtypeStruct
from ..dtypes import numpy_dtype
from ..errors import MeshError, ShapeError, UnsupportedError, is_one_of, message, shown
from ..process.foreign import native
from ..process.implementations import IMPLEMENTATIONS
from ..process.processes import ALONE, Place, Processes, current_processes, place_on
from ..process.traceback_filtering import entry_points, hide_frames
from ..recording.debug_prints import DebugPrint
from ..recording.tracing import Limit
from ..reports.explanations import Explanation, explanation_of
from ..reports.ledger import Ledger, ledger_of
from ..reports.memory import MemoryReport, memory_of
from ..reports.promotions import Promotions
from ..shardings.mesh import Mesh
from ..shardings.sharding import NamedSharding
from ..trees import flatten, unflatten
from ..trees.registry import path_of
from ..viz import program_html
from .choices import Choices, choices_of, rows_of
from .module import Module, Origin, Step, check_question, origin_of_text, text_options
from .options import check_keywords, checked_options, switch, takes_options
from .partition_options import DEFAULT_OPTIONS, PartitionOptions
from .placed_programs import PlacedProgram
from .propagation_options import PropagationKeywords, PropagationOptions

__all__ = ["Lowered", "Program", "RecordedCall", "Traced"]

_KINDS = ("global", "propagated", "resharded", "local", "export")


def checked_target(mesh: Any, func: Any) -> Mesh | None:
    """Check the arguments of ``compile``. Returns the mesh.

    Raises:
        MeshError: not a mesh. TypeError: ``func`` is not a name.
    """
    mesh = native(mesh)
    if mesh is not None and not isinstance(mesh, Mesh):
        raise MeshError(message("compile", "mesh must be a Mesh", shown(mesh)))
    if not isinstance(func, str):
        raise TypeError(message("compile", "func must be the name of a function", shown(func)))
    return mesh


@dataclass(frozen=True)
class RecordedCall:
    """The arguments and results of a traced call, and how the program is to be partitioned.

    Attributes:
        in_tree: the structure of the arguments.
        in_avals, in_names: shape, dtype and sharding, and the name, of each of their leaves.
        out_tree: the structure of the results.
        hoisted: the arrays that the function closes over, which are the last arguments of the program.
        limits: the ranges of leaves that are Python ints, by their place.
        function: the name of the function, for messages.
        donated: the leaves that the call donates.
        prints: of ``debug.print``. Their results follow those of ``out_tree``.
        choices: pinned ones, or None.
        partition: the options of the partitioner.
    """

    in_tree: Any
    in_avals: Sequence[ShapeDtypeStruct]
    in_names: Sequence[str]
    out_tree: Any
    hoisted: Sequence[Any] = ()
    limits: Sequence[tuple[int, Limit]] = ()
    function: str = ""
    donated: tuple[int, ...] = ()
    prints: Sequence[DebugPrint] = ()
    choices: Choices | None = None
    partition: PartitionOptions = DEFAULT_OPTIONS


@entry_points
class Traced(Module):
    """A traced function: the global program before partitioning. It has all methods of :class:`Module`.

    So it can be propagated and explained before it is compiled, a manual region included:

    >>> import shardwise as sw
    >>> mesh = sw.Mesh({"x": 2, "y": 4})
    >>> square = sw.manual(lambda part: part * part, mesh, sw.P("x"), sw.P("x"), axes={"x"})
    >>> traced = sw.jit(square, mesh=mesh).trace(np.zeros((8, 4), np.float32))
    >>> traced.why("manual_computation").values[0].sharding
    '[{"x"}, {}]'
    >>> traced.propagate()
    <module of 1 ops>
    """

    __slots__ = ("_call", "mesh")

    def __init__(self, module: _core.ir.Module, options: PropagationOptions, mesh: Mesh, call: RecordedCall) -> None:
        super().__init__(module, options, Origin(self._with_names))
        self.mesh = mesh
        self._call = call

    def _changed(self, step: Step) -> Traced:
        return Traced(step(self._core), self._options, self.mesh, self._call)

    @property
    def in_tree(self) -> Any:
        """The structure of the arguments."""
        return self._call.in_tree

    @property
    def in_avals(self) -> Sequence[ShapeDtypeStruct]:
        """Shape, dtype and sharding of each leaf of the arguments."""
        return self._call.in_avals

    @property
    def in_names(self) -> Sequence[str]:
        """The name of each leaf of the arguments, such as ``params['w']``."""
        return self._call.in_names

    @property
    def out_tree(self) -> Any:
        """The structure of the results."""
        return self._call.out_tree

    @property
    def out_info(self) -> Any:
        """The shapes and dtypes of the results, as a tree of :class:`ShapeDtypeStruct`."""
        types = self._core.result_types[: self.out_tree.num_leaves]
        return unflatten(
            self.out_tree,
            [ShapeDtypeStruct(type.shape, numpy_dtype(type.dtype)) for type in types],
        )

    def _results_of(self, arrays: list[Any]) -> Any:
        """The tree of results of a run. Prints the hidden results of ``debug.print``, which follow them."""
        count = self.out_tree.num_leaves
        printed = iter(arrays[count:])
        for call in self._call.prints:
            call.show([np.asarray(x) for x in islice(printed, len(call.values))])
        return unflatten(self.out_tree, arrays[:count])

    def lower(self) -> Lowered:
        """Lower the program: the next stage, ready to be compiled."""
        return Lowered(self)

    @property
    def _coarsest_floats(self) -> list[str | None]:
        """For each result leaf, the float dtype with the fewest significand bits among the values after it."""
        return list(self._core.coarsest_floats)

    def _check_limits(self, leaves: list[Any]) -> None:
        """Raise the error of a Python int argument that an op which uses it cannot hold."""
        for i, limit in self._call.limits:
            limit.check(int(leaves[i]))

    def _run_unpartitioned(self, leaves: list[Any]) -> Any:
        """The results for these argument leaves on one device, without annotations, as a tree of NumPy arrays."""
        self._check_limits(leaves)
        arrays = [np.asarray(leaf, aval.dtype) for leaf, aval in zip(leaves, self.in_avals)]
        arrays += [np.asarray(array) for array in self._call.hoisted]
        return self._results_of(_core.runtime.run_unpartitioned(self._core, arrays))

    _wrong_type = "compile the function for these shapes"  # the fix for an argument of another type

    def _leaves_of_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The argument leaves of a call of the compiled program."""
        leaves, tree = flatten((args, kwargs))
        if tree != self.in_tree:
            raise ShapeError(
                message(
                    "call",
                    "arguments must have the tree of the compiled program",
                    str(tree),
                    f"it was compiled for {self.in_tree}; static arguments are part of it and left out",
                )
            )
        return leaves

    def _explain(self, compiled: Any, name: str, counterfactual: bool) -> Explanation:
        """What ``why`` of the compiled program answers."""
        return explanation_of(compiled, name, counterfactual)

    @takes_options(PropagationOptions)
    def compile(
        self,
        mesh: Mesh | None = None,
        *,
        func: str = "main",
        **options: Unpack[PropagationKeywords],
    ) -> Program:
        """Compile the program, as ``lower().compile()``. ``mesh`` and ``func`` can only be those of the program.

        Raises:
            MeshError: another mesh than that of the program. UnsupportedError: another function than ``"main"``.
        """
        check_keywords("compile", options, PropagationOptions)
        mesh = checked_target(mesh, func)
        if mesh is not None and mesh != self.mesh:
            rule = f"the mesh must be that of the traced program, {self.mesh!r}"
            raise MeshError(message("compile", rule, repr(mesh), "trace the function on this mesh"))
        if func != "main":
            raise UnsupportedError(message("compile", "a traced program has one function, main", repr(func)))
        return Program(self, checked_options("compile", self._options, **options))

    def _with_names(self, name: str) -> Any:
        """Recorded values have names from the source; names of the program text are added on request."""
        return origin_of_text(self.as_text(locations=True)).first(name) if name.startswith(("%", "@")) else self._core

    def __repr__(self) -> str:
        return f"<traced program of {self._core.op_count} ops for {self.mesh!r}>"


@entry_points
class Lowered(Module):
    """A program that is ready to be compiled for its mesh. It has all methods of :class:`Module`."""

    __slots__ = ("_traced",)

    def __init__(self, traced: Traced) -> None:
        if not isinstance(traced, Traced):
            raise TypeError(message("Lowered", "takes a traced program, as Traced.lower() does", shown(traced)))
        super().__init__(traced._core, traced._options, traced._origin)
        self._traced = traced

    def _changed(self, step: Step) -> Lowered:
        return Lowered(self._traced._changed(step))

    @takes_options(PropagationOptions)
    def compile(
        self,
        mesh: Mesh | None = None,
        *,
        func: str = "main",
        **options: Unpack[PropagationKeywords],
    ) -> Program:
        """Compile the program: propagate shardings, insert collectives, and make the program of one device.

        Arguments and errors are those of :meth:`Traced.compile`.
        """
        return self._traced.compile(mesh, func=func, **options)

    def __repr__(self) -> str:
        return f"<lowered program of {self._core.op_count} ops for {self._traced.mesh!r}>"


@entry_points
class Program:
    """A compiled program for the devices of a mesh: call it to run it.

    ``as_text(kind)`` prints a stage, ``collectives()`` lists all communication with its causes, and ``why(name)``
    explains a sharding.
    """

    def __init__(self, traced: Traced, options: PropagationOptions | None = None) -> None:
        if not isinstance(traced, Traced):
            raise TypeError(message("Program", "takes a traced program, as Lowered.compile() does", shown(traced)))
        self._traced = traced
        self.mesh = traced.mesh
        how = traced._options if options is None else options
        choices = rows_of(traced._call.choices)
        self._compiled = _core.passes.compile(
            traced._core,
            traced.mesh._core,
            choices,
            **how.as_arguments(),
            **traced._call.partition.as_arguments(),
        )
        self._placed: dict[Place, PlacedProgram] = {}
        self._last: tuple[Processes | None, PlacedProgram] | None = None

    @property
    def seconds(self) -> dict[str, float]:
        """The time of each compiler pass in seconds."""
        return dict(self._compiled.seconds)

    @property
    def counters(self) -> dict[str, int]:
        """Counts of the compiler passes, such as op visits and plans of reshards."""
        return dict(self._compiled.counters)

    @property
    def choices(self) -> Choices:
        """How each op is computed and each reshard is done; ``jit(choices=...)`` pins them."""
        return choices_of(self._compiled.choices(), self._traced._call.partition)

    @property
    def op_count(self) -> int:
        """The number of ops in the program of one device."""
        local: _core.ir.Module = self._compiled.stages["local"]
        return local.op_count

    @property
    def input_shardings(self) -> list[NamedSharding]:
        """The shardings of all argument leaves, in order."""
        return [NamedSharding._wrap(s) for s in self._compiled.argument_shardings[: len(self._traced.in_avals)]]

    @property
    def output_shardings(self) -> Any:
        """The shardings of the results, as the tree of the results."""
        tree = self._traced.out_tree
        shardings = self._compiled.result_shardings[: tree.num_leaves]
        return unflatten(tree, [NamedSharding._wrap(s) for s in shardings])

    def as_text(self, kind: str = "local", *, locations: bool = False, generic: bool = False) -> str:
        """The text of the program at a stage.

        Args:
            kind: ``"global"`` (StableHLO), ``"propagated"`` (with every value's sharding), ``"resharded"`` (with
                collectives on global types), ``"local"`` (one device's program), or ``"export"`` (one
                ``sdy.manual_computation`` of StableHLO alone, for other compilers; JAX must be installed).
            locations: append ``loc(...)`` with the user's lines.
            generic: MLIR's generic form instead of StableHLO's pretty forms.

        Raises:
            UnsupportedError: ``"export"``, and JAX is missing or too old.
        """
        if not is_one_of(kind, _KINDS):
            raise ValueError(message("as_text", f"kind must be one of {', '.join(_KINDS)}", repr(kind)))
        if kind == "export":
            text: str = IMPLEMENTATIONS.export_text(self, **text_options(locations, generic))
            return text
        stage: _core.ir.Module = self._compiled.stages[kind]
        return stage.text(**text_options(locations, generic))

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
        return ledger_of([{**row, "cause": self._cause(row["cause"])} for row in self._compiled.collectives()])

    def _cause(self, cause: str) -> str:
        """The cause of a collective, with the tree path of a result: ``result[1]['w']``."""
        number = re.fullmatch(r"result (\d+)", cause)
        if number is None:
            return cause
        accessors = dict(enumerate(self._traced.out_tree.accessors()))  # without the hidden results of debug.print
        path = "".join(map(str, path_of(accessors.get(int(number[1]), ()))))
        return f"result{path}" if path and path != f"[{number[1]}]" else cause

    def to_jax(self, devices: Sequence[Any] | None = None, mesh: Any = None) -> Any:
        """The same program as a jitted function of JAX, with the same collectives, for GPUs, TPUs and host devices.

        Args:
            devices: JAX's devices, by device id of this program's mesh. Default: `jax.devices()`.
            mesh: instead, a `jax.sharding.Mesh` with as many devices as this program's mesh, in its order.

        Returns:
            A function of the arguments of the program, NumPy arrays or JAX arrays, with ``put``, ``get``,
            ``in_shardings``, ``out_shardings``, ``lower``, ``as_text`` and ``collectives``.

        Raises:
            MeshError: too few devices.
            UnsupportedError: JAX is missing or too old, or the program has an op that JAX cannot run.

        Values of 64 bits keep their width, whether x64 is enabled in JAX or not.
        """
        return IMPLEMENTATIONS.to_jax(self, devices, mesh)

    def to_source(self, target: str = "jax", path: str | os.PathLike[str] | None = None) -> str:
        """The same program as a short script that runs without Shardwise.

        Args:
            target: ``"jax"``, which needs JAX and NumPy, or ``"mpi4py"``, which needs mpi4py, NumPy and one rank of an
                MPI job per device: ``mpirun -n 8 python script.py``.
            path: also write the script to this file, and large constants beside it, to a file with the suffix
                ``.npz``. Default: they are part of the text, with at most 4 KiB in all.

        Returns:
            The script. Its ``main(*args)`` takes and returns NumPy arrays, on all ranks the same, and ``local`` is the
            program of one device.

        Raises:
            ValueError: another target, or too many constants for a script without a file beside it.
            UnsupportedError: the program has an op that the target cannot run.
        """
        text: str = IMPLEMENTATIONS.to_source(self, target, path)
        return text

    def jax_shardings(self, devices: Sequence[Any] | None = None, mesh: Any = None) -> Any:
        """The shardings of arguments and results for `jax.jit`: ``jax.jit(f, **prog.jax_shardings()._asdict())``.

        Args:
            devices: as in :meth:`to_jax`.
            mesh: as in :meth:`to_jax`, or a `jax.sharding.AbstractMesh` if there are no devices.

        Returns:
            ``in_shardings``, a tuple of trees, and ``out_shardings``, a tree of `NamedSharding`.
        """
        return IMPLEMENTATIONS.jax_shardings(self, devices, mesh)

    def memory(self, *, virtual: bool = False) -> MemoryReport:
        """The peak memory of a run, by value and source line. Nothing runs: arguments may be as large as you like.

        The executor rehearses its plan with buffers that are only addresses, so reuse of dead buffers, views and loops
        count as they do in a run. Arguments that ``jit`` donates may be freed; all others live until the end.

        Args:
            virtual: the buffers of all devices of the virtual mesh in this process, where devices that hold the same
                bytes share one; the default is one device of a real mesh, which holds its own shards.

        >>> import numpy as np, shardwise as sw
        >>> x = sw.ShapeDtypeStruct((1 << 20, 256), np.float32)
        >>> step = sw.jit(lambda x: np.exp(sw.split(x, 0, 4)) @ np.ones((256, 8), np.float32), mesh=sw.Mesh({"x": 4}))
        >>> step.lower(x).compile().memory().summary()
        'peak 520 MiB per device; arguments 256 MiB, results 8 MiB'
        """
        donated = [i for i in self._traced._call.donated if i < len(self._traced.in_avals)]
        alive = self._on(ALONE).executable.memory(not switch("memory", "virtual", virtual, False), donated)
        peak_bytes, argument_bytes, result_bytes, values = alive
        return memory_of(values, peak_bytes, argument_bytes, result_bytes, self.mesh.size if virtual else 1)

    def _on(self, place: Place) -> PlacedProgram:
        """The program on the devices of a process, ready to be called."""
        placed = self._placed.get(place)
        if placed is None:
            placed = self._placed[place] = PlacedProgram(self._compiled, self._traced, place)
        return placed

    def _here(self) -> PlacedProgram:
        processes = current_processes()
        if self._last is None or self._last[0] is not processes:
            self.mesh._core.expect_runnable("run")
            self._last = processes, self._on(place_on(self.mesh._core))
        return self._last[1]

    def promotions(self) -> Promotions:
        """Where floats become wider in the recorded program, as :meth:`Module.promotions`."""
        return self._traced.promotions()

    def why(self, name: str, *, counterfactual: bool = False) -> Explanation:
        """Explain where shardings come from: each axis with its annotation and the ops in between, and lost axes.

        Args:
            name: one of: a name given by :func:`shardwise.name`; an argument; the variable that a result was assigned
                to, or the name of a value in a parsed text; an op, ``"dot_general"`` for all of them or
                ``"dot_general[0]"`` for the first; or a line of your source, ``"train.py:12"``.
            counterfactual: also propagate without each annotation that is involved, and report the difference.

        Raises:
            KeyError: nothing in the program has this name.
        """
        check_question(name, counterfactual)
        return self._traced._explain(self._compiled, name, bool(counterfactual))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program on the virtual mesh. Arguments must have the traced tree, shapes and dtypes."""
        enter_call()
        try:
            return self._call_flat(self._traced._leaves_of_call(args, kwargs))
        except Exception as error:
            hide_frames(error)
            raise
        finally:
            leave_call()

    def run(self, *args: Any, faithful: bool = False, poison: bool = False, **kwargs: Any) -> Any:
        """Run with options: ``faithful`` computes every device separately, ``poison`` fills padding with NaN."""
        options = {"faithful": faithful, "poison": poison}
        switches = {name: switch("run", name, value, False) for name, value in options.items()}
        enter_call()
        try:
            return self._call_flat(self._traced._leaves_of_call(args, kwargs), **switches)
        finally:
            leave_call()

    def _timed(self, *args: Any, **kwargs: Any) -> list[dict[str, Any]]:
        """Run the program; returns the time of each op."""
        self._call_flat(self._traced._leaves_of_call(args, kwargs), trace=True)
        rows: list[dict[str, Any]] = self._here().executable.trace()
        return rows

    def _call_flat(self, leaves: list[Any], **switches: bool) -> Any:
        return self._traced._results_of(self._here().run(leaves, **switches))

    def __repr__(self) -> str:
        kinds: dict[str, int] = {}
        for row in self.collectives():
            kinds[row.kind] = kinds.get(row.kind, 0) + 1
        counts = ", ".join(f"{n} {kind}" for kind, n in kinds.items()) or "no collectives"
        return f"<program of {self._compiled.stages['local'].op_count} ops on {self.mesh!r}: {counts}>"

    def _repr_html_(self) -> str:
        return program_html(self)
