# SPDX-License-Identifier: Apache-2.0
"""Arrays on a virtual mesh."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from . import _core
from .dtypes import as_dtype, dtype_name, numpy_dtype
from .errors import ShardingError, UnsupportedError, message, shown
from .methods import ArrayMethods
from .numpy._registry import checks
from .partition_spec import PartitionSpec
from .sharding import NamedSharding, shape_of

__all__ = ["Array", "ShapeDtypeStruct", "Shard"]


@dataclass(frozen=True)
class Shard:
    """What one device holds of an array: ``data`` is the unpadded block at ``index``."""

    device: int
    index: tuple[slice, ...]
    data: np.ndarray

    def __repr__(self) -> str:
        index = ", ".join(f"{s.start}:{s.stop}" for s in self.index)
        return f"Shard(device={self.device}, index=[{index}], shape={self.data.shape})"


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
        self.shape = shape_of("ShapeDtypeStruct", shape)
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


class Array(ArrayMethods):
    """An array whose blocks lie on the devices of a virtual mesh. Made by ``device_put`` and jitted functions.

    ``np.asarray(x)`` gathers it. NumPy functions on it run as small programs on the mesh and give Arrays.
    """

    __slots__ = ("_data", "_sharding", "dtype", "shape")

    __shardwise_array__ = True
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __init__(self, data: _core.runtime.ShardedArray) -> None:
        if not isinstance(data, _core.runtime.ShardedArray):
            raise TypeError(message("Array", "arrays are made by device_put and jitted functions", shown(data)))
        self._data = data  # _core.runtime.ShardedArray
        self._sharding: NamedSharding | None = None
        self.shape = tuple(data.shape)
        self.dtype = numpy_dtype(data.dtype)

    @property
    def sharding(self) -> NamedSharding:
        """How the devices hold this array."""
        if self._sharding is None:
            self._sharding = NamedSharding._wrap(self._data.sharding)
        return self._sharding

    @property
    def addressable_shards(self) -> list[Shard]:
        """The block of every device, in the mesh's row-major order; uneven dims end in short or empty blocks."""
        mesh = self.sharding.mesh
        mesh._core.expect_runnable("addressable_shards")
        slices = self._data.sharding.slices(self.shape)
        return [
            Shard(device, tuple(slice(start, start + size) for start, size in slices[i]), self._data.shard(i))
            for i, device in enumerate(mesh.device_ids)
        ]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        gathered = self._data.gather()
        if dtype is not None and np.dtype(dtype) != gathered.dtype:
            if copy is False:
                raise ValueError(
                    message("np.asarray", f"a {self.dtype.name} array as {dtype} needs a copy", "copy=False")
                )
            return gathered.astype(dtype)
        return gathered if copy is False else gathered.copy()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _eager(getattr(ufunc, method), inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _eager(func, args, kwargs)

    def __getitem__(self, index: Any) -> Any:
        return _eager(_getitem, (self, index), {})

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise UnsupportedError(
            message("indexing", "an Array is never written", None, "x.at[index].set(value) gives a new one")
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

    def __format__(self, spec: str) -> str:
        return format(np.asarray(self), spec) if spec else str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (np.asarray(self), self.sharding)

    def __copy__(self) -> Array:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Array:
        return self

    def astype(self, dtype: Any, *, copy: bool = True) -> Any:
        """The array converted to ``dtype``, on the same mesh."""
        return _eager(_astype, (self, as_dtype("astype", dtype)), {})

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
        body = np.array2string(np.asarray(self), separator=", ", prefix="Array(", threshold=50)
        return f"Array({body}, dtype={self.dtype.name})"

    def _repr_html_(self) -> str:
        from .viz.html import array_html

        return array_html(self)

    __hash__ = None


def _getitem(x: Any, index: Any) -> Any:
    return x[index]


@checks(_getitem)
def _check_getitem(x: Any, index: Any) -> None:
    from .numpy.advanced_indexing import check_getitem

    check_getitem(x, index)


def _astype(x: Any, dtype: Any) -> Any:
    return x.astype(dtype)


def _view(x: Any, dtype: Any) -> Any:
    return x.view(dtype)


def _eager(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run one NumPy call on sharded arrays as a cached one-op program on their mesh."""
    from .jit import eager_call

    return eager_call(function, args, kwargs)


def _restored(array: np.ndarray, sharding: NamedSharding) -> Array:
    """The array that was pickled."""
    return put(array, sharding.core(array.ndim))


def put(array: np.ndarray, core_sharding: _core.mesh.Sharding) -> Array:
    """A NumPy array as an :class:`Array`, sharded by an extension sharding (closed)."""
    dtype_name(array.dtype)  # DTypeError for a dtype that arrays cannot have
    native = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    core_sharding.verify(native.shape)
    core_sharding.mesh.expect_runnable("device_put")
    return Array(_core.runtime.ShardedArray.scatter(native, core_sharding))
