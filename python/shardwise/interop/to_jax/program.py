# SPDX-License-Identifier: Apache-2.0
"""A compiled program as a jitted function of JAX."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import DTypeError, MeshError, ShapeError, ShardingError, described, message
from ...mesh import Mesh
from ...reports.ledger import CollectiveRow, Ledger
from ...stages import Program
from ...traceback_filtering import entry_points
from ...trees import flatten, unflatten
from ..jax_arrays import expect_alive
from ..optional import jax
from ..source.literals import identifier
from ..source.mesh_axes import MeshAxes
from ..source.script import Border, Script
from .statements import functions_of

__all__ = ["JaxProgram", "jax_mesh", "named_sharding"]


def jax_mesh(axes: MeshAxes, what: str, devices: Sequence[Any] | None, mesh: Any) -> Any:
    """JAX's mesh for a program, over the given devices or the given mesh. MeshError if there are too few."""
    count = axes.mesh.size
    if mesh is not None:
        if not isinstance(mesh, (jax.sharding.Mesh, jax.sharding.AbstractMesh)):
            raise TypeError(message(what, "mesh must be a jax.sharding.Mesh", described(mesh)))
        if isinstance(mesh, jax.sharding.AbstractMesh):
            return jax.sharding.AbstractMesh(tuple(axes.sizes.values()), axes.all)
        given = np.asarray(mesh.devices).reshape(-1)
        if len(given) != count:
            rule = f"mesh must have the {count} devices of the program's mesh, {Mesh._wrap(axes.mesh)!r}"
            raise MeshError(
                message(what, rule, f"{len(given)}: {dict(mesh.shape)}", "compile the program for this mesh")
            )
        return jax.sharding.Mesh(given.reshape(tuple(axes.sizes.values())), axes.all)
    found = list(jax.devices() if devices is None else _checked_devices(what, devices))
    if len(found) < count:
        kind = found[0].platform if found else "no"
        rule = f"needs {count} devices, as many as {Mesh._wrap(axes.mesh)!r}"
        way_out = f"compile the program for a mesh of {len(found)}"
        if kind == "cpu":
            way_out = f"set XLA_FLAGS=--xla_force_host_platform_device_count={count} before Python starts, or {way_out}"
        raise MeshError(message(what, rule, f"{len(found)} ({kind})", way_out))
    order = axes.mesh.device_ids or range(count)
    picked = np.empty(count, object)
    picked[:] = [found[i] for i in order]
    return jax.sharding.Mesh(picked.reshape(tuple(axes.sizes.values())), axes.all)


def _checked_devices(what: str, devices: Any) -> Sequence[Any]:
    found = list(devices) if isinstance(devices, (Sequence, np.ndarray)) else None
    if found is None or not all(isinstance(device, jax.Device) for device in found):
        raise TypeError(
            message(what, "devices must be a sequence of JAX's devices", described(devices), "pass jax.devices()")
        )
    return found


def named_sharding(mesh: Any, spec: Sequence[Sequence[str]]) -> Any:
    """A `NamedSharding` of the refined axes of each dim."""
    dims = [None if not axes else axes[0] if len(axes) == 1 else tuple(axes) for axes in spec]
    while dims and dims[-1] is None:
        dims.pop()
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*dims))


@contextmanager
def _settings(mesh: Any, needs_x64: bool) -> Iterator[None]:
    """The program's mesh and, for values of 64 bits, x64, whatever the caller has set."""
    with ExitStack() as stack:
        if needs_x64:
            stack.enter_context(jax.enable_x64(True))
        is_abstract = isinstance(mesh, jax.sharding.AbstractMesh)
        stack.enter_context(jax.sharding.use_abstract_mesh(mesh) if is_abstract else jax.set_mesh(mesh))
        stack.enter_context(jax.default_matmul_precision("highest"))
        yield


@entry_points
class JaxProgram:
    """A program as a jitted function over `jax.Array`s; made by :meth:`Program.to_jax`.

    Call it with the arguments of the program: NumPy arrays, or JAX arrays from :meth:`put`. Results are JAX arrays.
    Along a dim that its devices do not divide, the JAX array is padded; :meth:`get` returns the user's shape.

    Attributes:
        mesh: JAX's mesh. An axis of which the program uses parts is several axes there.
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
        self._run = jax.jit(local, donate_argnums=self._traced._donation[1])
        self._hidden: list[Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program on the devices. Arguments must have the traced tree, shapes and dtypes."""
        leaves = self._traced._leaves_of_call(args, kwargs)
        with _settings(self.mesh, self._script.needs_x64):
            if self._hidden is None:
                count = len(leaves)
                rows = zip(self._script.hidden, self._script.inputs[count:], self._inputs[count:])
                self._hidden = [self._placed(array, border, sharding) for array, border, sharding in rows]
            placed = [*self._arguments(leaves, strict=True), *self._hidden]
            results = list(self._run(*map(self._as_inside, placed, self._script.inputs)))
            for i in self._traced._donation[1]:
                if placed[i] is leaves[i] and self._script.inputs[i].other is not None:
                    placed[i].delete()  # its memory was donated under another sharding
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
        with _settings(self.mesh, self._script.needs_x64):
            placed = self._arguments(leaves, strict=False)
        positional, named = unflatten(self._traced.in_tree, placed)
        return (positional, named) if named else positional

    def get(self, results: Any) -> Any:
        """The results of a call as NumPy arrays of the user's shapes.

        With several processes, all of them must call it: they gather the parts, and each one returns whole arrays. The
        parts of one process alone are the ``addressable_shards`` of the results.
        """
        leaves, tree = flatten(results)
        borders = self._script.outputs[: self._script.visible[1]]
        if len(leaves) != len(borders):
            rule = f"takes the {len(borders)} results of a call"
            raise ShapeError(message("get", rule, f"{len(leaves)} arrays"))
        return unflatten(tree, [self._cropped(x, border) for x, border in zip(leaves, borders)])

    def lower(self) -> Any:
        """JAX's lowered program, a `jax.stages.Lowered`, for arguments of the compiled shapes."""
        with _settings(self.mesh, self._script.needs_x64):
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
        alike: dict[str, Any] = {"device_axes": (), "device_bytes": (), "bound": ""}
        count = self._program.mesh.size
        found = []
        for x in self._script.transfers:
            sent: dict[str, Any] = {
                "kind": x.kind,
                "group_size": x.group,
                "bytes": x.bytes,
                "sum_bytes": x.bytes * count,
            }
            found.append((x.source, replace(rows[x.source], **sent, **alike)))
        return found

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
        return x if border.other is None else _relabelled(x, border.inside, self._inside(border))

    def _as_outside(self, x: Any, border: Border, sharding: Any) -> Any:
        return x if border.other is None else _relabelled(x, border.padded, sharding)

    # ---- arguments and results -----------------------------------------------------------------------------------

    def _arguments(self, leaves: list[Any], strict: bool) -> list[Any]:
        for i, limit in self._traced._limits:
            limit.check(int(leaves[i]))
        rows = zip(leaves, self._script.inputs, self._inputs, self._traced.in_names)
        return [self._argument(leaf, border, sharding, name, strict) for leaf, border, sharding, name in rows]

    def _argument(self, leaf: Any, border: Border, sharding: Any, name: str, strict: bool) -> Any:
        if isinstance(leaf, jax.core.Tracer):
            return leaf
        if isinstance(leaf, jax.Array):
            expect_alive("to_jax", leaf, name)
        if (isinstance(leaf, jax.Array) and len(leaf.sharding.device_set) > 1) or _is_placed(leaf, border, sharding):
            return self._own(leaf, border, sharding, name, strict)
        array = np.asarray(leaf)
        if array.shape != border.shape or array.dtype != border.dtype:
            wrong = ShapeError if array.shape != border.shape else DTypeError
            rule = f"argument {name} must be {border.dtype.name}{list(border.shape)} as compiled"
            way_out = "compile the function for these shapes"
            raise wrong(message("to_jax", rule, f"{array.dtype.name}{list(array.shape)}", way_out))
        return self._placed(array, border, sharding)

    def _own(self, leaf: Any, border: Border, sharding: Any, name: str, strict: bool) -> Any:
        """A JAX array on several devices."""
        if leaf.dtype != border.dtype or leaf.shape not in (border.padded, border.shape):
            rule = f"argument {name} must be {border.dtype.name}{list(border.padded)} on the devices"
            raise ShapeError(message("to_jax", rule, described(leaf), "place it with put(…)"))
        if leaf.shape == border.padded and leaf.sharding.is_equivalent_to(sharding, leaf.ndim):
            return leaf
        if strict:
            rule = f"argument {name} must have the sharding of the program, {sharding.spec}"
            way_out = "place it with put(…), which moves it"
            raise ShardingError(message("to_jax", rule, getattr(leaf.sharding, "spec", leaf.sharding), way_out))
        if leaf.shape == border.padded:
            return jax.device_put(leaf, sharding)
        return self._placed(self._whole(leaf), border, sharding)

    def _placed(self, array: np.ndarray, border: Border, sharding: Any) -> Any:
        parts: dict[tuple[tuple[int, int], ...], np.ndarray] = {}

        def part(index: tuple[slice, ...]) -> np.ndarray:
            ranges = tuple([dim.indices(n)[:2] for dim, n in zip(index, border.padded)])
            if ranges not in parts:
                parts[ranges] = _copied(array, ranges)
            return parts[ranges]

        return jax.make_array_from_callback(border.padded, sharding, part)

    def _whole(self, x: Any) -> np.ndarray:
        """An array in NumPy; all processes call it for one that is in parts on several of them."""
        if not isinstance(x, jax.Array) or x.is_fully_addressable or x.is_fully_replicated:
            return np.asarray(x)
        with _settings(self.mesh, self._script.needs_x64):
            return np.asarray(jax.experimental.multihost_utils.process_allgather(x, tiled=True))

    def _cropped(self, x: Any, border: Border) -> np.ndarray:
        array = self._whole(x)
        return array if array.shape == border.shape else array[tuple(map(slice, border.shape))]

    def __repr__(self) -> str:
        return f"<JAX program on {dict(self.mesh.shape)}>"


def _relabelled(x: Any, shape: tuple[int, ...], sharding: Any) -> Any:
    """The same tile on each device as another array; nothing moves."""
    tiles = {shard.device: shard.data for shard in x.addressable_shards}
    own = [tiles[device] for device in sharding.addressable_devices_indices_map(shape)]
    return jax.make_array_from_single_device_arrays(shape, sharding, own)


def _is_placed(leaf: Any, border: Border, sharding: Any) -> bool:
    if not isinstance(leaf, jax.Array) or leaf.shape != border.padded or leaf.dtype != border.dtype:
        return False
    return bool(leaf.sharding.is_equivalent_to(sharding, leaf.ndim))


def _copied(array: np.ndarray, ranges: Sequence[tuple[int, int]]) -> np.ndarray:
    """A copy of a part, with zeros after the end of the array. JAX may use its memory as long as it needs the part."""
    own = array[tuple(slice(min(a, n), min(b, n)) for (a, b), n in zip(ranges, array.shape))]
    missing = [(0, b - a - n) for (a, b), n in zip(ranges, own.shape)]
    return np.pad(own, missing) if any(high for _, high in missing) else np.array(own)
