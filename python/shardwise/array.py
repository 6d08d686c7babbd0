# SPDX-License-Identifier: Apache-2.0
"""Arrays on a virtual mesh."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from . import _core
from ._core.runtime import enter_call, leave_call
from .dtypes import as_dtype, dtype_name, numpy_dtype
from .errors import DeletedArrayError, DTypeError, Error, ShardingError, UnsupportedError, message, shown
from .numpy._registry import checks
from .numpy.indexing import without_masks
from .numpy.subscripts import check_getitem
from .process.foreign import native
from .process.implementations import IMPLEMENTATIONS
from .process.processes import ALONE, Place, place_on
from .process.traceback_filtering import entry_point, entry_points, hide_frames
from .recording.methods import ArrayMethods
from .shardings.partition_spec import PartitionSpec
from .shardings.sharding import NamedSharding, shape_of
from .trees import flatten, unflatten
from .viz import array_html

__all__ = ["Array", "ShapeDtypeStruct", "Shard", "block_until_ready", "device_get"]


@dataclass(frozen=True, eq=False)  # equal if identical: arrays have no equality that is true or false
class Shard:
    """The shard of an array on one device: ``data`` is the unpadded block at ``index``."""

    device: int
    index: tuple[slice, ...]
    data: np.ndarray

    def __repr__(self) -> str:
        index = ", ".join(f"{s.start}:{s.stop}" for s in self.index)
        return f"Shard(device={self.device}, index=[{index}], shape={self.data.shape})"


@entry_points
class ShapeDtypeStruct:
    """A shape and a dtype in place of an array, for tracing without data, as in JAX.

    Args:
        shape: the global shape.
        dtype: a NumPy dtype.
        sharding: how the argument will be sharded: a :class:`NamedSharding`, or a spec or text on the program's mesh;
            None leaves it to propagation.
    """

    __slots__ = ("dtype", "shape", "sharding")

    def __init__(self, shape: int | Sequence[int], dtype: Any, *, sharding: Any = None) -> None:
        if dtype is None:
            raise DTypeError(message("ShapeDtypeStruct", "dtype must be given", "None", "write np.float32"))
        self.shape = shape_of("ShapeDtypeStruct", _sizes(shape))
        sharding = native(sharding)
        if sharding is not None and not isinstance(sharding, (NamedSharding, PartitionSpec, str)):
            rule = "sharding must be a NamedSharding, P(...), text or None"
            raise ShardingError(message("ShapeDtypeStruct", rule, repr(sharding)))
        self.dtype = numpy_dtype(dtype_name(as_dtype("ShapeDtypeStruct", dtype)))
        self.sharding = sharding

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a shape without dims")
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and (self.shape, self.dtype, self.sharding) == (
            other.shape,
            other.dtype,
            other.sharding,
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.sharding))

    def __repr__(self) -> str:
        sharding = "" if self.sharding is None else f", sharding={self.sharding}"
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{sharding})"


class _Deleted:
    """The data of a deleted array: every access raises DeletedArrayError."""

    __slots__ = ("_got", "_way_out")

    def __init__(self, got: str, way_out: str) -> None:
        self._got = got
        self._way_out = way_out

    def __getattr__(self, name: str) -> NoReturn:
        raise DeletedArrayError(message("array", "a deleted array has no elements", self._got, self._way_out))


def _sizes(shape: Any) -> tuple[int, ...]:
    """Normalize a size or a sequence of sizes to a tuple. TypeError unless all are integers; bools are not."""
    sizes = (shape,) if hasattr(shape, "__index__") and np.ndim(shape) == 0 else shape
    if isinstance(sizes, (str, Set)):
        raise TypeError(message("ShapeDtypeStruct", "shape must be a sequence of integers", repr(shape)))
    try:
        numbers = tuple([operator.index(size) for size in sizes])
        if not any(isinstance(size, bool) for size in sizes):
            return numbers
    except TypeError as error:
        if isinstance(error, Error):  # the size is traced
            raise
    raise TypeError(message("ShapeDtypeStruct", "sizes must be integers", repr(shape)))


class Array(ArrayMethods):
    """An array that is sharded over the devices of a virtual mesh. Made by ``device_put`` and jitted functions.

    ``np.asarray(x)`` gathers it. NumPy functions on it run as small programs on the mesh and return Arrays.
    """

    __slots__ = ("_data", "_dtype", "_place", "_shape", "_sharding")

    __shardwise_array__ = True
    _data: Any  # a _core.runtime.ShardedArray, or _Deleted

    def __init__(self, data: _core.runtime.ShardedArray, place: Place = ALONE) -> None:
        if not isinstance(data, _core.runtime.ShardedArray):
            raise TypeError(message("Array", "arrays are made by device_put and jitted functions", shown(data)))
        self._data = data
        self._place = place
        self._sharding: NamedSharding | None = None
        self._shape = tuple(data.shape)
        self._dtype = numpy_dtype(data.dtype)

    @classmethod
    def _of(cls, data: _core.runtime.ShardedArray, place: Place, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array whose shape and dtype are known, such as the result of a compiled program."""
        array = cls.__new__(cls)
        array._data, array._place, array._sharding, array._shape, array._dtype = data, place, None, shape, dtype
        return array

    @property
    def sharding(self) -> NamedSharding:
        """How the devices hold this array."""
        if self._sharding is None:
            self._sharding = NamedSharding._wrap(self._data.sharding)
        return self._sharding

    @property
    def device(self) -> NamedSharding:
        """The sharding, as JAX returns it for an array of several devices; ``device_put(y, x.device)`` takes it."""
        return self.sharding

    def devices(self) -> set[int]:
        """The ids of the devices that hold the array; in JAX the devices themselves."""
        return self.sharding.device_set

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array; as in JAX."""
        return self.sharding.is_fully_replicated

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices are virtual ones of this process; not with several MPI ranks. As in JAX."""
        return bool(self._data.devices.is_all)

    def block_until_ready(self) -> Array:
        """The array itself: programs have run when their call returns. DeletedArrayError if it is deleted."""
        self._data.sharding  # noqa: B018 - raises
        return self

    def delete(self) -> None:
        """Drop the elements now; any later use of them raises DeletedArrayError. As in JAX."""
        self._delete("deleted by .delete()", "keep it until its last use")

    def is_deleted(self) -> bool:
        """Whether the array was deleted, or donated to a jitted function."""
        return isinstance(self._data, _Deleted)

    def _delete(self, how: str, way_out: str) -> None:
        if not self.is_deleted():
            self._sharding = self.sharding  # which a deleted array keeps
            self._data = _Deleted(f"{self.dtype.name}{list(self.shape)}, {how}", way_out)

    @property
    def addressable_shards(self) -> list[Shard]:
        """The block of every device, in the mesh's row-major order; uneven dims end in short or empty blocks.

        With several MPI ranks: of every device of this rank.
        """
        mesh = self.sharding.mesh
        mesh._core.expect_runnable("addressable_shards")
        slices = self._data.sharding.slices(self.shape)
        ids = mesh.device_ids
        return [
            Shard(ids[i], tuple(slice(start, start + size) for start, size in slices[i]), self._data.shard(i))
            for i in self._data.devices.owned(mesh._core)
        ]

    def _gathered(self) -> np.ndarray:
        """The whole array. With several MPI ranks, all of them call this, unless each has it."""
        data = self._data
        gathered: np.ndarray
        if data.is_whole_here:
            gathered = data.gather(self._place.communicator)
            return gathered
        what = f"np.asarray of {self.dtype.name}{list(self.shape)}"
        finish = self._place.begin(what, data.sharding.text().encode(), {})
        gathered = data.gather(self._place.communicator)
        finish()
        return gathered

    def _moved(self, sharding: _core.mesh.Sharding, place: Place, for_call: bool = False) -> _core.runtime.ShardedArray:
        """The elements with another sharding, on the devices of ``place``."""
        data = self._data
        what = f"reshard of {self.dtype.name}{list(self.shape)}"
        finish = ALONE.begin(what, b"", {}) if data.is_whole_here else self._place.begin(what, b"", {})
        moved: _core.runtime.ShardedArray = data.reshard(sharding, for_call, self._place.communicator, place.devices)
        finish()
        return moved

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        gathered = self._gathered()
        if dtype is not None and np.dtype(dtype) != gathered.dtype:
            if copy is False:
                raise ValueError(
                    message("np.asarray", f"a {self.dtype.name} array as {dtype} needs a copy", "copy=False")
                )
            return gathered.astype(dtype)
        return gathered if copy is False else gathered.copy()

    def __dlpack__(self, **options: Any) -> Any:
        """The whole array in host memory, for ``from_dlpack`` of other libraries: a copy, as of ``np.asarray(x)``."""
        return np.asarray(self).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, int]:
        """DLPack's number of the host, and the device 0."""
        return np.empty(0).__dlpack_device__()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        try:
            return _eager(getattr(ufunc, method), inputs, kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        try:
            return _eager(func, args, kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    def __getitem__(self, index: Any) -> Any:
        try:
            return _eager(_getitem, (self, without_masks(self.shape, index)), {})
        except Exception as error:
            hide_frames(error)
            raise

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise UnsupportedError(
            message("indexing", "an Array cannot be written in place", None, "x.at[index].set(value) gives a new one")
        )

    def __bool__(self) -> bool:
        return bool(np.asarray(self))

    def __float__(self) -> float:
        return float(np.asarray(self))

    def __int__(self) -> int:
        return int(np.asarray(self))

    def __complex__(self) -> complex:
        return complex(np.asarray(self))

    def __index__(self) -> int:
        return np.asarray(self).__index__()

    def __round__(self, ndigits: int | None = None) -> Any:
        return round(self.item(), ndigits)

    def __format__(self, spec: str) -> str:
        return format(np.asarray(self), spec) if spec else str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (np.asarray(self), self.sharding)

    @entry_point
    def copy(self) -> Array:
        """An array of the same elements that outlives this one, also if this one is deleted or donated."""
        return Array._of(self._data.__copy__(), self._place, self.shape, self.dtype)

    @entry_point
    def astype(self, dtype: Any, *, copy: bool = True) -> Any:
        """The array converted to ``dtype``, on the same mesh."""
        return _eager(_astype, (self, as_dtype("astype", dtype)), {})

    @entry_point
    def view(self, dtype: Any = None) -> Any:
        """The bits read as ``dtype``, of the same width, on the same mesh; None for the array itself."""
        return self if dtype is None else _eager(_view, (self, as_dtype("view", dtype)), {})

    def item(self, *args: Any) -> Any:
        """The element as a Python number; see numpy.ndarray.item."""
        return np.asarray(self).item(*args)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return np.asarray(self).tolist()

    def __repr__(self) -> str:
        if self.is_deleted():
            return f"Array(deleted, shape={self.shape}, dtype={self.dtype.name})"
        if not self._data.is_whole_here:  # to gather it, all ranks would have to print it
            return f"Array(shape={self.shape}, dtype={self.dtype.name}, sharding={self.sharding.spec})"
        body = np.array2string(np.asarray(self), separator=", ", prefix="Array(", threshold=50)
        return f"Array({body}, dtype={self.dtype.name})"

    def _repr_html_(self) -> str:
        return array_html(self)

    __hash__ = None


def _getitem(x: Any, index: Any) -> Any:
    return x[index]


@checks(_getitem)
def _check_getitem(x: Any, index: Any) -> None:
    check_getitem(x, index)


def _astype(x: Any, dtype: Any) -> Any:
    return x.astype(dtype)


def _view(x: Any, dtype: Any) -> Any:
    return x.view(dtype)


def _eager(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run one NumPy call on sharded arrays as a cached one-op program on their mesh."""
    enter_call()
    try:
        return IMPLEMENTATIONS.eager_call(function, args, kwargs)
    finally:
        leave_call()


def _restored(array: np.ndarray, sharding: NamedSharding) -> Array:
    """The array that was pickled."""
    return put(array, sharding.core(array.ndim))


def put(array: np.ndarray, core_sharding: _core.mesh.Sharding, compared: tuple[str, str] | None = None) -> Array:
    """Shard a NumPy array by a closed sharding of the extension.

    Args:
        compared: names the operation and the array that all processes must pass alike. Without, each process may be the
            only one that calls this, or the caller has compared the array.
    """
    dtype_name(array.dtype)  # DTypeError for a dtype that arrays cannot have
    array = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    core_sharding.verify(array.shape)
    core_sharding.mesh.expect_runnable("device_put")
    place = place_on(core_sharding.mesh)
    if compared is not None and place.communicator is not None:
        what, name = compared
        place.begin(what, core_sharding.text().encode(), {name: array})()
    return Array(_core.runtime.ShardedArray.scatter(array, core_sharding, devices=place.devices), place)


@entry_point
def device_get(x: Any) -> Any:
    """Gather a tree: replace each :class:`Array`, and any object that converts to an array, by a NumPy array.

    Python numbers and other leaves are unchanged.

    Raises:
        TracerConversionError: a traced value, which has no elements yet.

    Source: `jax.device_get`.

    >>> import shardwise as sw
    >>> device_get({"w": sw.device_put(np.arange(2), sw.Mesh({"x": 2})), "step": 3})
    {'w': array([0, 1]), 'step': 3}
    """
    leaves, tree = flatten(x)
    return unflatten(tree, [np.asarray(leaf) if hasattr(leaf, "__array__") else leaf for leaf in leaves])


@entry_point
def block_until_ready(x: Any) -> Any:
    """Return the tree ``x`` unchanged. Calls return after the program has run; this exists for timing code from JAX.

    Raises:
        DeletedArrayError: a deleted Array.

    Source: `jax.block_until_ready`.
    """
    for leaf in flatten(x)[0]:
        if isinstance(leaf, Array):
            leaf.block_until_ready()
    return x
