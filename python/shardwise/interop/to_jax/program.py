# SPDX-License-Identifier: Apache-2.0
"""A compiled program as a jitted function of JAX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import ShapeError, UnsupportedError, described, message
from ...process.traceback_filtering import entry_points
from ...programs.stages import Program
from ...reports.ledger import CollectiveRow, Ledger
from ...trees import flatten, unflatten
from ..optional import jax
from ..source.literals import identifier
from ..source.script import Border, Script
from .meshes import jax_mesh, named_sharding, settings
from .placing import argument, expect_donated_once, placed, relabelled, whole
from .statements import functions_of
from .traced_calls import cropped_in_jax, expect_traceable, is_traced, padded_in_jax, without_derivative

__all__ = ["JaxProgram", "jax_mesh", "named_sharding"]


@entry_points
class JaxProgram:
    """A program as a jitted function over `jax.Array`s; made by :meth:`Program.to_jax`.

    Call it with the arguments of the program: NumPy arrays, or JAX arrays from :meth:`put`. Results are JAX arrays.
    Along a dim that its devices do not divide, the JAX array is padded; :meth:`get` returns the user's shape.

    Attributes:
        mesh: JAX's mesh. It has an axis for each sub-axis that the program uses.
        in_shardings, out_shardings: a `NamedSharding` for each argument leaf and each result, as the program's trees.
    """

    def __init__(self, program: Program, script: Script, devices: Sequence[Any] | None, mesh: Any) -> None:
        self._program = program
        self._script = script
        self._traced = program._traced
        self.mesh = jax_mesh(script.axes, "to_jax", devices, mesh)
        self._inputs = [self._outside(border) for border in script.inputs]
        self._outputs = outputs = [self._outside(border) for border in script.outputs]
        arguments, results = script.visible
        self.in_shardings = unflatten(self._traced.in_tree, self._inputs[:arguments])[0]
        self.out_shardings = unflatten(self._traced.out_tree, outputs[:results])
        names = functions_of(script)
        names["local"].__name__ = identifier(script.name)
        specs = {"in_specs": names["IN_SPECS"], "out_specs": names["OUT_SPECS"]}
        local = jax.shard_map(names["local"], mesh=self.mesh, **specs, check_vma=False)
        # An argument that nothing reads stays, so that the exported text has the signature of the program.
        self._run = jax.jit(local, donate_argnums=self._traced._call.donated, keep_unused=True)
        self._hidden: list[Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program on the devices. Arguments must have the traced tree, shapes and dtypes.

        Inside of `jax.jit`, `jax.vmap` and other transformations, arguments and results have the user's shapes.
        """
        leaves = self._traced._leaves_of_call(args, kwargs)
        if is_traced(leaves):
            return self._call_traced(leaves)
        donated = self._traced._call.donated
        with settings(self.mesh, self._script.needs_x64):
            own = [*self._arguments(leaves, strict=True), *self._hidden_arrays()]
            expect_donated_once(own, donated, self._traced.in_names)
            results = list(self._run(*map(self._as_inside, own, self._script.inputs)))
            for i in donated:
                if own[i] is leaves[i]:
                    own[i].delete()  # JAX keeps one that no result can take the memory of
        return self._tree_of(list(map(self._as_outside, results, self._script.outputs, self._outputs)))

    def _tree_of(self, results: list[Any]) -> Any:
        """The tree of results; prints what ``debug.print`` shows."""
        count = self._script.visible[1]
        shown_values = [self._cropped(x, border) for x, border in zip(results[count:], self._script.outputs[count:])]
        return self._traced._results_of([*results[:count], *shown_values])

    def put(self, *args: Any, **kwargs: Any) -> Any:
        """Place arguments on the devices, each with its own sharding; returns the positional ones as a tuple.

        Call the program with them: ``fn(*fn.put(x, w))``. A process places the parts of its own devices.
        """
        leaves = self._traced._leaves_of_call(args, kwargs)
        with settings(self.mesh, self._script.needs_x64):
            own = self._arguments(leaves, strict=False)
        positional, named = unflatten(self._traced.in_tree, own)
        return (positional, named) if named else positional

    def get(self, results: Any) -> Any:
        """The results of a call as NumPy arrays of the user's shapes.

        With several processes, all of them must call it: they gather the parts, and each one returns whole arrays. The
        ``addressable_shards`` of the results are the parts of this process.
        """
        leaves, tree = flatten(results)
        borders = self._script.outputs[: self._script.visible[1]]
        if len(leaves) != len(borders):
            rule = f"takes the {len(borders)} results of a call"
            raise ShapeError(message("get", rule, f"{len(leaves)} arrays"))
        for i, (x, border) in enumerate(zip(leaves, borders)):
            if np.shape(x) not in (border.shape, border.padded):
                padded = "" if border.padded == border.shape else f", {list(border.padded)} on the devices"
                rule = f"result {i} must have the shape {list(border.shape)}{padded}"
                raise ShapeError(message("get", rule, described(x), "pass what a call returned"))
        return unflatten(tree, [self._cropped(x, border) for x, border in zip(leaves, borders)])

    def lower(self) -> Any:
        """JAX's lowered program, a `jax.stages.Lowered`, for arguments of the compiled shapes."""
        with settings(self.mesh, self._script.needs_x64):
            avals = [
                jax.ShapeDtypeStruct(border.inside, border.dtype, sharding=self._inside(border))
                for border in self._script.inputs
            ]
            platforms = ("cpu",) if isinstance(self.mesh, jax.sharding.AbstractMesh) else None
            return self._run.trace(*avals).lower(lowering_platforms=platforms)

    def as_text(self) -> str:
        """The StableHLO of JAX's program."""
        return str(self.lower().as_text())

    def collectives(self) -> Ledger:
        """What this program sends: the ledger of :meth:`Program.collectives`, with the collectives that JAX has.

        A product over devices, for example, is an all_to_all and an all_gather here.
        """
        return Ledger([row for _, row in self._transfers()])

    def _transfers(self) -> list[tuple[int, CollectiveRow]]:
        """The rows of :meth:`collectives`, each with the place of its collective in the local program."""
        rows = self._program._all_collectives().rows
        alike: dict[str, Any] = {"device_axes": (), "device_bytes": ()}
        count = self._program.mesh.size
        found = []
        for x in self._script.transfers:
            row = rows[x.source].separate()[x.operand]
            sent: dict[str, Any] = {
                "kind": x.kind,
                "group_size": x.group,
                "bytes": x.bytes,
                "sum_bytes": x.bytes * count,
            }
            found.append((x.source, replace(row, **sent, **alike)))
        return found

    def _on_host(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments for the program itself: JAX arrays in NumPy, without their padding."""
        leaves = self._traced._leaves_of_call(args, kwargs)
        own = [
            self._cropped(leaf, border) if isinstance(leaf, jax.Array) else leaf
            for leaf, border in zip(leaves, self._script.inputs)
        ]
        positional, named = unflatten(self._traced.in_tree, own)
        return positional, named

    def _is_of(self, program: Program) -> bool:
        """Whether it was made of this program, or of an equal one."""
        return self._program is program or self._program.as_text("local") == program.as_text("local")

    # ---- values on another mesh over the same devices --------------------------------------------------------------

    def _outside(self, border: Border) -> Any:
        """The sharding of an argument or a result for the user."""
        other = border.other
        if other is None or isinstance(self.mesh, jax.sharding.AbstractMesh):
            return self._inside(border)
        devices = self.mesh.devices.reshape(-1)[np.argsort(self._script.axes.places(other.mesh))]
        return named_sharding(jax.sharding.Mesh(devices.reshape(tuple(other.sizes.values())), other.all), border.spec)

    def _inside(self, border: Border) -> Any:
        """Its sharding in the jitted function, which has one mesh."""
        spec = border.spec if border.other is None else [self.mesh.axis_names]
        return named_sharding(self.mesh, spec)

    def _as_inside(self, x: Any, border: Border) -> Any:
        return x if border.other is None else relabelled(x, border.inside, self._inside(border))

    def _as_outside(self, x: Any, border: Border, sharding: Any) -> Any:
        return x if border.other is None else relabelled(x, border.padded, sharding)

    # ---- arguments and results -----------------------------------------------------------------------------------

    def _arguments(self, leaves: list[Any], strict: bool) -> list[Any]:
        self._traced._check_limits(leaves)
        rows = zip(leaves, self._script.inputs, self._inputs, self._traced.in_names)
        return [argument(leaf, border, sharding, name, strict) for leaf, border, sharding, name in rows]

    def _hidden_arrays(self) -> list[Any]:
        """The arrays that the program closes over, on the devices."""
        if self._hidden is None:
            count = len(self._traced.in_names)
            rows = zip(self._script.hidden, self._script.inputs[count:], self._inputs[count:])
            self._hidden = [placed(array, border, sharding) for array, border, sharding in rows]
        return self._hidden

    def _call_traced(self, leaves: list[Any]) -> Any:
        """The results of a call that JAX traces, in the shapes of the user."""
        expect_traceable(self._script, self._traced.in_names)
        self._expect_limited_untraced(leaves)
        self._traced._check_limits(leaves)
        with settings(self.mesh, self._script.needs_x64, is_traced=True):
            with jax.ensure_compile_time_eval():
                hidden = self._hidden_arrays()
            own = map(padded_in_jax, leaves, self._script.inputs, self._traced.in_names)
            results = without_derivative(self._run)(*own, *hidden)
            return self._traced._results_of(list(map(cropped_in_jax, results, self._script.outputs)))

    def _expect_limited_untraced(self, leaves: list[Any]) -> None:
        """Raise UnsupportedError if JAX traces an argument that has a limit: its number is unknown until it runs."""
        for i, _ in self._traced._call.limits:
            if isinstance(leaves[i], jax.core.Tracer):
                rule = f"argument {self._traced.in_names[i]} must be a Python int, whose range is checked"
                way_out = "close over it, or make it static in jax.jit"
                raise UnsupportedError(message("to_jax", rule, f"a traced {described(leaves[i])}", way_out))

    def _cropped(self, x: Any, border: Border) -> np.ndarray:
        array = whole(x, self.mesh, self._script.needs_x64)
        return array if array.shape == border.shape else array[tuple(map(slice, border.shape))]

    def __repr__(self) -> str:
        return f"<JAX program on {dict(self.mesh.shape)}>"
