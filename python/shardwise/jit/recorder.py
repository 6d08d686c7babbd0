# SPDX-License-Identifier: Apache-2.0
"""Traces one call of a jitted function into a program."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, islice, takewhile
from typing import Any

from ..array import ShapeDtypeStruct
from ..array_leaves import as_weak, aval_of, lifted_results, sharding_of
from ..errors import MeshError, ShardingError, message, sentence
from ..host_random import warning_of_draws
from ..process.foreign import foreign_type_of, native
from ..process.processes import current_processes
from ..programs.stages import RecordedCall, Traced
from ..recording.tracing import Trace, Tracer, UserCall, recording
from ..shardings.mesh import Mesh, default_mesh, get_mesh
from ..shardings.other_meshes import only_slices
from ..shardings.sharding import sharding_on
from ..trees import leaf_names, specs_per_leaf, unflatten
from ..trees.argument_names import display_name
from ..user_code.discarded import discarding_call, warn_of_discarded
from .call import Call
from .options import CheckedOptions

__all__ = ["Recorder"]


@dataclass(frozen=True)
class Arrival:
    """How an argument arrives: in ``sharding``, from which the program moves it to ``given``, that of in_shardings.

    Without ``given``, the call slices the array where ``sharding`` needs it, or propagation decides.
    """

    sharding: Any = None
    given: Any = None

    def laid_out(self, trace: Trace, x: Tracer, name: str) -> Tracer:
        """What the function reads: the argument in the sharding that in_shardings gives it."""
        if self.given is None:
            return x
        return trace.constrain(x, self.given, is_written=False, cause=f"in_shardings of {name}")


@dataclass(frozen=True)
class Recorder:
    """Traces one function with the options of its jit."""

    fun: Callable[..., Any]
    options: CheckedOptions
    user_call: UserCall

    def known_mesh(self, call: Call) -> Mesh | None:
        """The mesh of a call, by its options, its arguments or :func:`set_mesh`. MeshError if they name several."""
        candidates = list(self.options.meshes)
        for leaf in call.leaves:
            sharding = sharding_of(leaf)
            if sharding is not None:
                candidates.append(sharding.mesh)
        if not candidates:
            return get_mesh()
        mesh = candidates[0]
        for other in candidates[1:]:
            if other.size != mesh.size:
                rule = f"all arguments and shardings must be on meshes over the same devices, those of {mesh!r}"
                raise MeshError(message(self.user_call.what, rule, repr(other), "move arrays with device_put"))
        return mesh

    def in_specs(self, call: Call) -> list[Any]:
        """The entry of in_shardings for each leaf; None for arguments that can only be passed by name.

        Arguments that the call passes by name, but that have a position, have the entry of their position.
        """
        specs: list[Any] = [None] * len(call.leaves)
        if self.options.in_shardings is None:
            return specs
        args = call.dynamic_args
        names = call.names_at_positions(self.fun, self.options.static.positions)[len(args) :]
        by_name = list(takewhile(call.dynamic_kwargs.__contains__, names))
        if type(self.options.in_shardings) is tuple:  # it may be for those by position alone
            del by_name[max(len(self.options.in_shardings) - len(args), 0) :]
        given = (*args, *[call.dynamic_kwargs[name] for name in by_name])
        try:
            wanted = iter(specs_per_leaf(self.options.in_shardings, given, "jit: in_shardings"))
        except ShardingError:
            self._expect_all_arguments(call)
            raise
        ends = list(accumulate(call.leaf_counts(), initial=0))
        order = [*range(len(args)), *(len(args) + sorted(call.dynamic_kwargs).index(name) for name in by_name)]
        for i in order:
            specs[ends[i] : ends[i + 1]] = islice(wanted, ends[i + 1] - ends[i])
        return specs

    def _expect_all_arguments(self, call: Call) -> None:
        """Raise TypeError, as Python, if the call lacks an argument: then its shardings cannot fit either."""
        args, kwargs = call.rebuild(call.leaves)
        try:
            signature = inspect.signature(self.fun)
        except (TypeError, ValueError):
            return
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(sentence(f"{display_name(self.fun)}() {error}")) from None

    def traced(self, call: Call, mesh: Mesh | None) -> Traced:
        """Record the function for a call."""
        if any(spec is not None for spec in self.in_specs(call)):
            mesh = mesh or default_mesh()
            if mesh is None:
                raise self._no_mesh()
        names = call.names(self.fun)
        avals = self._avals(self.user_call.what, call, names)
        arrivals = self._arrivals(call, mesh, avals, names)
        trace, tracers, result = self._record(call, mesh, avals, names, arrivals)
        with recording(trace):
            outputs, out_tree = lifted_results(trace, self.user_call.what, result)
        mesh = trace.mesh or default_mesh()  # by now, the mesh of the first annotation if none was given
        if mesh is None:
            if self.user_call.needs_mesh:
                raise self._no_mesh()
            processes = current_processes()
            mesh = Mesh({"device": 1 if processes is None else processes.size})  # each rank needs a device
        printed = [value for call in trace.prints for value in call.values]
        _warn_of_discarded(trace, [x._value for x in outputs] + printed)
        out_specs = specs_per_leaf(self.options.out_shardings, result, "jit: out_shardings")
        places = [f"jit: out_shardings of result{path}" for path in leaf_names(result)]
        out_shardings = [sharding_on(mesh, spec, x.ndim, to) for spec, x, to in zip(out_specs, outputs, places)]
        module = trace.core.finish([x._value for x in outputs] + printed, out_shardings)
        indices = {x._value: i for i, x in enumerate(tracers)}
        limits = [(indices[limit.value], limit) for limit in trace.limits if limit.value in indices]
        recorded = RecordedCall(
            in_tree=call.tree,
            in_avals=avals,
            in_names=names,
            out_tree=out_tree,
            hoisted=trace.hoisted.arrays,
            limits=limits,
            function=display_name(self.fun),
            donated=call.leaves_of(self.options.donated),
            prints=trace.prints,
            choices=self.options.choices,
            partition=self.options.partition,
            unplaced=tuple(i for i, spec in enumerate(out_specs) if spec is None),
        )
        traced = Traced(recorded.known_to(module), self.options.propagation, mesh, recorded)
        for op, rule in self.options.rules.items():
            traced = traced.with_sharding_rule(op, rule)
        return traced

    def result_shapes(self, call: Call) -> Any:
        """Shape and dtype of every result."""
        names = call.names(self.fun)
        avals = self._avals("eval_shape", call, names)
        trace, _, result = self._record(call, self.known_mesh(call), avals, names, [Arrival()] * len(avals))
        with recording(trace):
            outputs, tree = lifted_results(trace, "eval_shape", result)
        return unflatten(tree, [ShapeDtypeStruct(x.shape, x.dtype) for x in outputs])

    def _no_mesh(self) -> MeshError:
        way_out = "pass mesh= to jit, sharded arrays, or call set_mesh first"
        return MeshError(message(self.user_call.what, "no mesh given", None, way_out))

    def _avals(self, what: str, call: Call, names: list[str]) -> list[ShapeDtypeStruct]:
        function = display_name(self.fun)
        return [aval_of(what, native(leaf), name, function) for leaf, name in zip(call.leaves, names)]

    def _record(
        self, call: Call, mesh: Mesh | None, avals: list[ShapeDtypeStruct], names: list[str], arrivals: list[Arrival]
    ) -> tuple[Trace, list[Tracer], Any]:
        """Trace the function: the recorded program, its arguments, and the result."""
        user_call = self.user_call
        trace = Trace(getattr(self.fun, "__name__", "f"), mesh, user_call)
        trace.propagation = {
            **vars(self.options.propagation),
            **vars(self.options.partition),
            "sharding_rules": self.options.rules,
            "choices": self.options.choices,
        }
        with recording(trace):
            tracers = [
                trace.argument(aval.shape, aval.dtype, name, arrival.sharding)
                for aval, arrival, name in zip(avals, arrivals, names)
            ]
            inputs = [arrival.laid_out(trace, x, name) for x, arrival, name in zip(tracers, arrivals, names)]
            for x, leaf in zip(inputs, call.leaves):
                foreign_type = foreign_type_of(leaf)
                if foreign_type is not None:
                    trace.annotations.foreign_types[x._value] = foreign_type
            if user_call.transform is not None:
                names = list(user_call.transform)
            trace.arguments = {x._value: name for x, name in zip((*tracers, *inputs), (*names, *names)) if name}
            args, kwargs = call.rebuild([as_weak(x, leaf) for x, leaf in zip(inputs, call.leaves)])
            with warning_of_draws(user_call.function, call.static_values()):
                return trace, tracers, self.fun(*args, **kwargs)

    def _arrivals(
        self, call: Call, mesh: Mesh | None, avals: list[ShapeDtypeStruct], names: list[str]
    ) -> list[Arrival]:
        if mesh is None:
            return [Arrival()] * len(avals)
        return [
            _arrival(mesh, spec, aval, f"jit: in_shardings of {name}")
            for spec, aval, name in zip(self.in_specs(call), avals, names)
        ]


def _arrival(mesh: Mesh, spec: Any, aval: ShapeDtypeStruct, what: str) -> Arrival:
    given = sharding_on(mesh, spec, aval.ndim, what)
    arrived = sharding_on(mesh, aval.sharding, aval.ndim, what)
    if given is None or arrived is None:
        return Arrival(arrived if given is None else given)
    return Arrival(given) if only_slices(arrived, given, aval.shape) else Arrival(arrived, given)


def _warn_of_discarded(trace: Trace, outputs: list[int]) -> None:
    """Warn of annotations that the user wrote and discarded: they constrain nothing."""
    written = trace.annotations.written
    discarded: dict[Any, None] = {}
    for calls, (of_result, of_annotated) in zip(written.values(), trace.core.count_reads(list(written), outputs)):
        i = discarding_call(calls) if of_result == 0 else None
        # In a function that ends in an annotation and whose whole result is dropped, nothing else reads the value.
        if i is not None and (i == 0 or of_annotated > 1):
            discarded[calls[i]] = None
    for instruction in discarded:
        warn_of_discarded(instruction, "annotation", "x = sw.split(x, …)")
