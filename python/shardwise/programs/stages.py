# SPDX-License-Identifier: Apache-2.0
"""The stages of a program: traced, lowered, compiled. The names are JAX's."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
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
from ..process.processes import Place, Processes, current_processes, place_on
from ..process.traceback_filtering import entry_points, hide_frames
from ..recording.debug_prints import print_order
from ..reports.explanations import Explanation, explanation_of
from ..reports.promotions import Promotions
from ..shardings.mesh import Mesh
from ..shardings.sharding import NamedSharding
from ..trees import flatten, unflatten
from ..trees.static_leaves import shown as with_shown_leaves
from ..unpartitioned import refuse_manual_regions
from ..viz import inspected_text, program_html
from .choices import Choices, Numbers, choices_of, renumbered, rows_of
from .decisions import decisions_at, instead_of
from .module import Module, Origin, Step, check_question, core_of_text, origin_of_text, text_of_core, text_options
from .options import check_keywords, checked_options, switch, takes_options
from .placed_programs import PlacedProgram
from .program_reports import ProgramReports
from .propagation_options import PropagationKeywords, PropagationOptions
from .recorded_calls import RecordedCall

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

    __slots__ = ("_call", "_has_static_results", "_numbers", "mesh")

    def __init__(self, module: _core.ir.Module, options: PropagationOptions, mesh: Mesh, call: RecordedCall) -> None:
        super().__init__(module, options, Origin(self._with_names))
        self.mesh = mesh
        self._call = call
        self._numbers: Numbers | None = None  # of the module that was pickled, whose numbers users have seen

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled_traced, (self._core_state(), self._options, self.mesh, self._call)

    @property
    def _pinned(self) -> Choices | None:
        """The pinned choices, with the numbers of this program's own module."""
        pinned, numbers = self._call.choices, self._numbers
        return pinned if pinned is None or numbers is None else renumbered(pinned, numbers, Numbers.of(self._core))

    def _core_state(self) -> tuple[str, Numbers]:
        """The module for a pickle: its text, and the numbers that keys of choices have."""
        return text_of_core(self._core), self._numbers or Numbers.of(self._core)

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

    def _results_of(self, arrays: list[Any], shown: Callable[[int], None] | None = None) -> Any:
        """The tree of results of a run. Prints the hidden results of ``debug.print``, which follow them.

        ``shown`` is told how many calls of ``debug.print`` have printed, before each of them.
        """
        count = self.out_tree.num_leaves
        printed = iter(arrays[count:])
        for i, call in enumerate(self._call.prints):
            if shown is not None:
                shown(i)
            call.show([np.asarray(x) for x in islice(printed, len(call.values))])
        results = unflatten(self.out_tree, arrays[:count])
        return with_shown_leaves(results) if self._call.has_static_results else results

    def _results_by(self, run: Callable[[], list[Any]]) -> Any:
        """The tree of results of ``run``, whose ops may print."""
        if not self._call.prints.ops:
            return self._results_of(run())
        with print_order(self._call.prints) as lines:
            return self._results_of(run(), lines.reach)

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
        refuse_manual_regions(self._core)
        arrays = [np.asarray(leaf, aval.dtype) for leaf, aval in zip(leaves, self.in_avals)]
        arrays += [np.asarray(array) for array in self._call.hoisted]
        module = _core.passes.run_passes(self._core, ["inline_calls"])  # the executor runs no calls
        return self._results_by(lambda: _core.runtime.run_unpartitioned(module, arrays))

    def _way_to_type(self, dtype: np.dtype[Any], is_shape: bool, is_dtype: bool) -> str:
        """The fix for an argument with another shape or another dtype, ``dtype`` being the compiled one."""
        if is_shape:
            return f"compile the function for {'this shape and dtype' if is_dtype else 'this shape'}"
        return f'convert it with astype("{dtype.name}"), or compile the function for its dtype'

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
        return explanation_of(compiled, name, counterfactual, self._has_value)

    def _has_value(self, name: str) -> bool:
        try:
            self.why(name)
        except KeyError:
            return False
        return True

    @takes_options(PropagationOptions)
    def compile(
        self, mesh: Mesh | None = None, *, func: str = "main", **options: Unpack[PropagationKeywords]
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

    def __reduce__(self) -> tuple[Any, ...]:
        return Lowered, (self._traced,)

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
class Program(ProgramReports):
    """A compiled program for the devices of a mesh: call it to run it.

    ``as_text(kind)`` prints a stage, ``collectives()`` lists all communication with its causes, and ``why(name)``
    explains a sharding.
    """

    _traced: Traced

    def __init__(self, traced: Traced, options: PropagationOptions | None = None) -> None:
        if not isinstance(traced, Traced):
            raise TypeError(message("Program", "takes a traced program, as Lowered.compile() does", shown(traced)))
        self._traced = traced
        self.mesh = traced.mesh
        self._options = traced._options if options is None else options
        self._compiled = self._compile(traced._core, traced._pinned)
        if self._compiled.loses_splits():
            self.work().warn_of_lost_splits()
        self._placed: dict[Place, PlacedProgram] = {}
        self._last: tuple[Processes | None, PlacedProgram] | None = None
        if traced._call.prints.shows_tiles:
            sys.stdout.write(inspected_text(self._compiled.stages["local"]))

    def __reduce__(self) -> tuple[Any, ...]:
        """A program is pickled as what it is compiled from, and is compiled again, with the same choices.

        The variables of the function, which name values in reports, are not pickled; names of `sw.name` are.
        """
        return _unpickled_program, (self._traced, self._options, self.choices)

    def _compile(self, module: Any, choices: Choices | None) -> Any:
        """The module, compiled as the program is."""
        return _core.passes.compile(module, self.mesh._core, rows_of(choices), **self._compile_options())

    def _compile_options(self) -> dict[str, Any]:
        call = self._traced._call
        numbers = {"donated": self._donated, "captured": call.free_arguments, "free_results": call.free_results}
        texts = {name: ",".join(str(i) for i in places) for name, places in numbers.items()}
        return {**self._options.as_arguments(), **call.partition.as_arguments(), **texts}

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
        own, numbers = self._own_choices, self._traced._numbers
        return own if numbers is None else renumbered(own, Numbers.of(self._traced._core), numbers)

    @property
    def _own_choices(self) -> Choices:
        """The choices with the numbers of this program's own module, also if it was unpickled."""
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

    def why(self, name: str, *, counterfactual: bool = False, instead: Any = None) -> Explanation:
        """Explain where shardings come from, and how the ops of a line with collectives are computed.

        Each axis has its annotation and the ops in between; axes that a value lost are listed, too. For a line with
        collectives, the two best other ways to compute its ops are listed, with what the program would cost more:
        each price is that of a whole compilation with that way pinned.

        Args:
            name: one of: a name given by :func:`shardwise.name`; an argument; the variable that a result was assigned
                to, or the name of a value in a parsed text; an op, ``"dot_general"`` for all of them or
                ``"dot_general[0]"`` for the first; or a line of your source, ``"train.py:12"``.
            counterfactual: also propagate without each annotation that is involved, and report the difference.
            instead: another sharding for the value, as :func:`shard` takes it: the program is compiled with it, and
                the difference of :meth:`choice_price` is stated.

        Raises:
            KeyError: nothing in the program has this name.
            ShardingError: ``instead`` is no sharding of the value, or several values have the name.

        >>> import numpy as np, shardwise as sw
        >>> x, w = sw.ShapeDtypeStruct((32768, 8192), np.float32), sw.ShapeDtypeStruct((8192, 8192), np.float32)
        >>> shardings = {"in_shardings": (sw.P(None, "t"), sw.P("t")), "out_shardings": sw.P()}
        >>> project = sw.jit(lambda x, w: x @ w, mesh=sw.Mesh({"t": 8}), **shardings)
        >>> print(project.lower(x, w).compile().why("x", instead=sw.P("t")).instead)
        With P('t') on x instead: -261 us, -112 MiB, -1 round.
        """
        check_question(name, counterfactual)
        explained = self._traced._explain(self._compiled, name, bool(counterfactual))
        if instead is not None:
            return replace(explained, instead=instead_of(self, name, instead, explained))
        return replace(explained, decisions=decisions_at(self, name))

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
        return self._traced._results_by(lambda: self._here().run(leaves, **switches))

    def __repr__(self) -> str:
        kinds: dict[str, int] = {}
        for row in self.collectives():
            kinds[row.kind] = kinds.get(row.kind, 0) + 1
        counts = ", ".join(f"{n} {kind}" for kind, n in kinds.items()) or "no collectives"
        return f"<program of {self._compiled.stages['local'].op_count} ops on {self.mesh!r}: {counts}>"

    def _repr_html_(self) -> str:
        return program_html(self)


def _unpickled_traced(
    state: tuple[str, Numbers], options: PropagationOptions, mesh: Mesh, call: RecordedCall
) -> Traced:
    text, numbers = state
    traced = Traced(call.known_to(core_of_text(text)), options, mesh, call)
    traced._numbers = numbers
    return traced


def _unpickled_program(traced: Traced, options: PropagationOptions, choices: Choices) -> Program:
    program = Program(traced, options)
    if program.choices != choices:
        rule = "this version of shardwise must choose as the one that pickled the program"
        raise ValueError(message("unpickle", rule, "other choices", "lower and compile the function again"))
    return program
