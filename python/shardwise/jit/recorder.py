# SPDX-License-Identifier: Apache-2.0
"""Traces one call of a jitted function into a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..array import ShapeDtypeStruct
from ..array_leaves import as_weak, aval_of, lifted_results, sharding_of
from ..errors import MeshError, ShardingError, composed, message
from ..host_random import warning_of_draws
from ..programs.stages import RecordedCall, Traced
from ..recording.tracing import Trace, Tracer, UserCall, recording
from ..shardings.mesh import Mesh, default_mesh, get_mesh
from ..shardings.sharding import sharding_on
from ..trees import leaf_names, specs_per_leaf, unflatten
from ..trees.argument_names import display_name
from .call import Call
from .options import CheckedOptions

__all__ = ["Recorder"]


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
                raise MeshError(message("jit", rule, repr(other), "move arrays with device_put"))
        return mesh

    def in_specs(self, call: Call) -> list[Any]:
        """The entry of in_shardings for each leaf; None for keyword arguments."""
        specs: list[Any] = [None] * len(call.leaves)
        if self.options.in_shardings is not None:
            wanted = specs_per_leaf(self.options.in_shardings, call.dynamic_args, "in_shardings")
            specs[: len(wanted)] = wanted
        return specs

    def traced(self, call: Call, mesh: Mesh | None) -> Traced:
        """Record the function for a call."""
        if self.user_call.transform is not None or any(spec is not None for spec in self.in_specs(call)):
            mesh = mesh or default_mesh()
            if mesh is None:
                raise self._no_mesh()
        names = call.names(self.fun)
        avals = self._avals(call, names)
        shardings = self._argument_shardings(call, mesh, avals, names)
        trace, tracers, result = self._record(call, mesh, avals, names, shardings)
        with recording(trace):
            outputs, out_tree = lifted_results(trace, "jit", result)
        mesh = trace.mesh or default_mesh()  # by now, the mesh of the first annotation if none was given
        if mesh is None:
            raise self._no_mesh()
        printed = [value for call in trace.prints for value in call.values]
        _check_constraints(trace, [x._value for x in outputs] + printed)
        out_specs = specs_per_leaf(self.options.out_shardings, result, "out_shardings")
        places = [f"out_shardings of result{path}" for path in leaf_names(result)]
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
        )
        traced = Traced(module, self.options.propagation, mesh, recorded)
        for op, rule in self.options.rules.items():
            traced = traced.with_sharding_rule(op, rule)
        return traced

    def result_shapes(self, call: Call) -> Any:
        """Shape and dtype of every result."""
        names = call.names(self.fun)
        avals = self._avals(call, names)
        trace, _, result = self._record(call, self.known_mesh(call), avals, names, [None] * len(avals))
        with recording(trace):
            outputs, tree = lifted_results(trace, "eval_shape", result)
        return unflatten(tree, [ShapeDtypeStruct(x.shape, x.dtype) for x in outputs])

    def _no_mesh(self) -> MeshError:
        if self.user_call.transform is not None:
            way_out = "use it in sw.jit(…, mesh=mesh), pass sharded arrays, or call set_mesh first"
            return MeshError(message("grad or vmap outside jit", "no mesh given", None, way_out))
        return MeshError(
            message("jit", "no mesh given", None, "pass mesh= to jit, sharded arrays, or call set_mesh first")
        )

    def _avals(self, call: Call, names: list[str]) -> list[ShapeDtypeStruct]:
        function = display_name(self.fun)
        return [aval_of(leaf, name, function) for leaf, name in zip(call.leaves, names)]

    def _record(
        self, call: Call, mesh: Mesh | None, avals: list[ShapeDtypeStruct], names: list[str], shardings: list[Any]
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
                trace.argument(aval.shape, aval.dtype, name, sharding)
                for aval, sharding, name in zip(avals, shardings, names)
            ]
            if user_call.transform is not None:
                trace.arguments = {x._value: name for x, name in zip(tracers, user_call.transform)}
            args, kwargs = call.rebuild([as_weak(x, leaf) for x, leaf in zip(tracers, call.leaves)])
            with warning_of_draws(user_call.function, call.static_values()):
                return trace, tracers, self.fun(*args, **kwargs)

    def _argument_shardings(
        self, call: Call, mesh: Mesh | None, avals: list[ShapeDtypeStruct], names: list[str]
    ) -> list[Any]:
        if mesh is None:
            return [None] * len(avals)
        specs = self.in_specs(call)
        return [
            sharding_on(mesh, aval.sharding if spec is None else spec, aval.ndim, f"in_shardings of {name}")
            for spec, aval, name in zip(specs, avals, names)
        ]


def _check_constraints(trace: Trace, outputs: list[int]) -> None:
    unused = trace.core.unused_constraints(outputs)
    unused = [row for row in unused if row[0] not in trace.annotations.implied]
    if unused:
        _, file, line = unused[0]
        rule, got = "its result must be used", "an annotation whose result nothing uses"
        way_out = "write x = sw.split(x, …) and use x from there on"
        raise ShardingError(composed("annotation", rule, got, way_out, file, line))
