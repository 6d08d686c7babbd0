# SPDX-License-Identifier: Apache-2.0
"""A compiled program on the devices of one process: what its calls need is made once, and a call checks little."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..array import Array, ShapeDtypeStruct, put
from ..dtypes import numpy_dtype
from ..errors import DTypeError, ShapeError, ShardingError, message
from ..process.processes import ALONE, Finish, Place, place_on
from ..shardings.mesh import Mesh
from ..shardings.other_meshes import check_same_devices, on_program_mesh, only_slices
from ..shardings.sharding import NamedSharding

if TYPE_CHECKING:
    from .stages import Traced

__all__ = ["PlacedProgram"]


class PlacedProgram:
    """A compiled program on the devices of ``place``."""

    __slots__ = (
        "_argument_shardings", "_hidden", "_identity", "_mesh", "_place", "_places", "_results", "_traced", "_what",
        "executable",
    )  # fmt: skip

    def __init__(self, compiled: _core.passes.CompileUnit, traced: Traced, place: Place) -> None:
        self.executable = _core.runtime.Executable(compiled, place.devices)
        self._traced = traced
        self._place = place
        self._mesh = traced.mesh._core
        self._argument_shardings = compiled.argument_shardings
        self._hidden: list[Any] | None = None  # the closed-over arrays, from the first run on
        self._results = [(tuple(type.shape), numpy_dtype(type.dtype)) for type in traced._core.result_types]
        self._places: list[Place] | None = None  # of the results, from the first run on
        self._what = f"the program of {traced._call.function}"
        self._identity = b""
        if place.communicator is not None:
            import hashlib  # only for ranks: OpenSSL would slow down the import of shardwise

            text: str = compiled.stages["local"].text()
            texts = [text, *[sharding.text() for sharding in self._argument_shardings]]
            self._identity = hashlib.blake2b("\n".join(texts).encode(), digest_size=16).digest()

    def run(self, leaves: list[Any], **switches: bool) -> list[Array]:
        """The results for these argument leaves."""
        traced, place, executable = self._traced, self._place, self.executable
        options: dict[str, Any] = switches
        arguments: list[Any] = [leaf._data if isinstance(leaf, Array) else None for leaf in leaves]
        given: list[Any] = []  # leaves that may be NumPy arrays
        if not executable.accepts(arguments):
            arguments, options = self._arguments(leaves, switches)
            given = leaves
        traced._check_limits(leaves)
        finish = self._begin(given)
        if self._hidden is None:
            rest = self._argument_shardings[len(traced.in_avals) :]
            self._hidden = [_placed(array, sharding, place) for array, sharding in zip(traced._call.hoisted, rest)]
        function, donations = traced._call.function, traced._call.donated
        donated = [i for i in donations if isinstance(leaves[i], Array)]
        for i in donated:  # before the run, which may write them
            leaves[i]._delete(f"donated to {function}", f"use what {function} returned, or do not donate it")
        arguments += self._hidden
        results = executable.run(arguments, donated=donated, processes=place.communicator, **options)
        finish()
        if self._places is None:
            self._places = [self._place_of(x.sharding) for x in results]
        return [Array._of(x, place, *type) for x, place, type in zip(results, self._places, self._results)]

    def _place_of(self, sharding: _core.mesh.Sharding) -> Place:
        """Where an argument or a result is, on another mesh than the program's, too.

        Devices of a rank that has several are at no position of another mesh: each rank has the whole array.
        """
        if self._place.communicator is None or sharding.mesh == self._mesh:
            return self._place
        there = place_on(sharding.mesh)
        return there if len(there.devices.owned(sharding.mesh)) == 1 else ALONE

    def _begin(self, leaves: list[Any]) -> Finish:
        """Make sure that all processes run this program on the same arrays. Each takes its part of a NumPy array."""
        if self._place.communicator is None:
            return ALONE.begin("", b"", {})
        names = self._traced.in_names
        given = {name: np.asarray(leaf) for name, leaf in zip(names, leaves) if not isinstance(leaf, Array)}
        if self._hidden is None:
            given |= {f"closed-over array {i}": np.asarray(x) for i, x in enumerate(self._traced._call.hoisted)}
        return self._place.begin(self._what, self._identity, given, self.executable)

    def _arguments(self, leaves: list[Any], switches: dict[str, bool]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of the executable, and the switches of its run."""
        poison = switches.get("poison", False)
        rows = zip(leaves, self._traced.in_avals, self._traced.in_names, self._argument_shardings)
        arguments = [self._argument(i, *row, poison) for i, row in enumerate(rows)]
        borrowed = [i for i, leaf in enumerate(leaves) if not isinstance(leaf, Array)]
        return arguments, {**switches, "borrowed": borrowed}

    def _argument(self, index: int, leaf: Any, aval: ShapeDtypeStruct, name: str, sharding: Any, poison: bool) -> Any:
        if isinstance(leaf, ShapeDtypeStruct):
            raise ShapeError(
                message("call", "a program runs on arrays", f"{leaf!r} for {name}", "pass arrays, or only compile it")
            )
        array = leaf if isinstance(leaf, Array) else np.asarray(leaf)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        if array.shape != aval.shape or array.dtype != aval.dtype:
            is_shape = array.shape != aval.shape
            rule = f"argument {name} must be {aval.dtype.name}{list(aval.shape)} as compiled"
            got = f"{array.dtype.name}{list(array.shape)}"
            way_out = self._traced._way_to_type(aval.dtype, is_shape, array.dtype != aval.dtype)
            raise (ShapeError if is_shape else DTypeError)(message("call", rule, got, way_out))
        if isinstance(array, Array):
            self._expect_sharding(index, array, name, sharding)
            return _placed(array, sharding, self._place_of(sharding))
        scatter = _core.runtime.ShardedArray.scatter
        return scatter(array, sharding, poison=poison, borrow=True, devices=self._place_of(sharding).devices)

    def _expect_sharding(self, index: int, array: Array, name: str, wanted: Any) -> None:
        """Raise ShardingError if a device would have to receive data, which no ledger counts; as in JAX."""
        arrived = array._data.sharding
        mesh = self._traced.mesh
        if array._data.devices == ALONE.devices and self._place.communicator is not None:
            return  # each rank has the whole array
        check_same_devices(f"call of argument {name}", mesh, Mesh._wrap(arrived.mesh))
        if not only_slices(on_program_mesh(mesh, arrived), wanted, array.shape):
            rule = f"argument {name} must be sharded as compiled, {_described(wanted, mesh)}"
            way_out = f"pass sw.reshard({name}, program.input_shardings[{index}]), or call the jitted function"
            raise ShardingError(message("call", rule, _described(arrived, mesh), way_out))


def _described(sharding: Any, mesh: Mesh) -> str:
    named = NamedSharding._wrap(sharding)
    return repr(named.spec if named.mesh == mesh else named)


def _placed(array: Any, sharding: Any, place: Place) -> Any:
    """The extension's array of a NumPy array or an Array, sharded as a program wants it."""
    if not isinstance(array, Array):
        return put(array, sharding)._data
    is_here = array._data.devices in (place.devices, ALONE.devices)
    return array._data if is_here and array._data.sharding == sharding else array._moved(sharding, place, True)
