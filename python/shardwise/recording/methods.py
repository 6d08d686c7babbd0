# SPDX-License-Identifier: Apache-2.0
"""Methods and operators that tracers and sharded arrays share. Each calls one NumPy function."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..errors import UnsupportedError, message, shown
from ..process.implementations import IMPLEMENTATIONS
from ..process.traceback_filtering import entry_point, hide_frames
from .foreign_names import missing_attribute

__all__ = ["ArrayMethods"]


def _read_only(name: str, doc: str, way_out: str) -> property:
    def refuse(self: Any, value: Any) -> NoReturn:
        raise UnsupportedError(message(name, "an array cannot be changed in place", shown(value), way_out))

    return property(attrgetter(f"_{name}"), refuse, doc=doc)


class ArrayMethods(NDArrayOperatorsMixin):
    """NumPy's operators and array methods in terms of its functions; needs ``_shape`` and ``_dtype``."""

    __slots__ = ()

    _shape: tuple[int, ...]
    _dtype: np.dtype[Any]

    if TYPE_CHECKING:

        @property
        def shape(self) -> tuple[int, ...]: ...  # noqa: D102
        @property
        def dtype(self) -> np.dtype[Any]: ...  # noqa: D102

    else:  # hidden from type checkers, which would accept every attribute, and any type of these two
        shape = _read_only("shape", "The sizes of the dims.", "x.reshape(shape) gives a new one")
        dtype = _read_only(
            "dtype",
            "The dtype of the elements, of NumPy or ml_dtypes.",
            "x.astype(dtype) gives a new one, x.view(dtype) one of the same bits",
        )

        def __getattr__(self, name: str) -> NoReturn:
            raise missing_attribute(self, name)

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements together."""
        return self.size * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def T(self) -> Any:  # noqa: N802
        """The array with its dims reversed."""
        return np.transpose(self)  # type: ignore[call-overload]

    @property
    def mT(self) -> Any:  # noqa: N802
        """The array with its last two dims swapped."""
        return np.swapaxes(self, -1, -2)  # type: ignore[call-overload]

    @property
    def at(self) -> Any:
        """Out-of-place updates, such as ``x.at[index].set(values)``, as in JAX."""
        return IMPLEMENTATIONS.at(self)

    @entry_point
    def __eq__(self, other: Any) -> Any:
        if other is None or isinstance(other, (str, bytes)):  # never equal to a number: all False, as in NumPy
            return np.zeros_like(self, dtype=np.bool_)
        return np.equal(self, other)  # type: ignore[call-overload]

    @entry_point
    def __ne__(self, other: Any) -> Any:
        if other is None or isinstance(other, (str, bytes)):
            return np.ones_like(self, dtype=np.bool_)
        return np.not_equal(self, other)  # type: ignore[call-overload]

    __hash__: Any = None

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dims")
        return self.shape[0]

    def __iter__(self) -> Any:
        if not self.shape:
            raise TypeError("iteration over an array without dims")
        return (self[i] for i in range(self.shape[0]))  # type: ignore[index]

    @entry_point
    def astype(self, dtype: Any, *, copy: bool = True) -> Any:
        """The array converted to ``dtype``."""
        return IMPLEMENTATIONS.astype(self, dtype)

    @entry_point
    def view(self, dtype: Any = None) -> Any:
        """The bits read as ``dtype``, of the same width; None for the array itself. See numpy.ndarray.view."""
        return self if dtype is None else IMPLEMENTATIONS.view(self, dtype)

    @entry_point
    def reshape(self, *shape: Any, order: str = "C") -> Any:
        """The array with another shape of the same size; one entry may be -1."""
        return np.reshape(self, shape[0] if len(shape) == 1 else shape, order=order)  # type: ignore[call-overload]

    @entry_point
    def transpose(self, *axes: Any) -> Any:
        """The array with its dims permuted."""
        order: Any = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        return np.transpose(self, order)  # type: ignore[call-overload]

    @entry_point
    def clip(self, min: Any = None, max: Any = None, out: Any = None) -> Any:
        """The elements limited to an interval; see numpy.ndarray.clip."""
        return np.clip(self, min, max, out=out)  # type: ignore[call-overload]

    @property
    def real(self) -> Any:
        """The real parts; of real numbers the array itself."""
        return np.real(self)

    @property
    def imag(self) -> Any:
        """The imaginary parts; of real numbers zeros."""
        return np.imag(self)

    def copy(self) -> Any:
        """The array itself, because it is never modified."""
        return self

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.copy()


def _forward(name: str, doc: str) -> Any:
    function = getattr(np, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return function(self, *args, **kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    method.__name__ = name
    method.__doc__ = doc
    return method


for _name, _doc in {
    "sum": "Sum of elements over ``axis``; see numpy.sum.",
    "prod": "Product of elements over ``axis``; see numpy.prod.",
    "max": "Maximum over ``axis``; see numpy.max.",
    "min": "Minimum over ``axis``; see numpy.min.",
    "cumsum": "Running sums along ``axis``; see numpy.cumsum.",
    "cumprod": "Running products along ``axis``; see numpy.cumprod.",
    "mean": "Mean over ``axis``; see numpy.mean.",
    "var": "Variance over ``axis``; see numpy.var.",
    "std": "Standard deviation over ``axis``; see numpy.std.",
    "argmax": "Index of the first maximum along ``axis``; see numpy.argmax.",
    "argmin": "Index of the first minimum along ``axis``; see numpy.argmin.",
    "all": "Whether all elements over ``axis`` are true; see numpy.all.",
    "any": "Whether any element over ``axis`` is true; see numpy.any.",
    "dot": "Product with another array; see numpy.dot.",
    "ravel": "The elements as one dim; see numpy.ravel.",
    "squeeze": "The array without dims of size 1; see numpy.squeeze.",
    "swapaxes": "The array with two dims swapped; see numpy.swapaxes.",
    "round": "The elements rounded to the nearest even; see numpy.round.",
    "conj": "The complex conjugates; see numpy.conj.",
    "conjugate": "The complex conjugates; see numpy.conjugate.",
    "diagonal": "The elements of a diagonal; see numpy.diagonal.",
    "trace": "Sum along a diagonal; see numpy.trace.",
    "repeat": "Elements repeated along an axis; see numpy.repeat.",
    "take": "Elements at indices along ``axis``; see numpy.take.",
    "compress": "Elements at a known mask along ``axis``; see numpy.compress.",
    "searchsorted": "Where values would be inserted into the sorted array; see numpy.searchsorted.",
    "argsort": "The indices that sort the array along ``axis``; see numpy.argsort.",
    "nonzero": "Not supported in traced functions; see numpy.nonzero.",
}.items():
    setattr(ArrayMethods, _name, _forward(_name, _doc))


# The operators of NDArrayOperatorsMixin, without its frames in tracebacks.


def _binary(function: Any) -> Any:
    def operator(self: Any, other: Any) -> Any:
        if getattr(other, "__array_ufunc__", function) is None:
            return NotImplemented
        try:
            return function(self, other)
        except Exception as error:
            hide_frames(error)
            raise

    return operator


def _reflected(function: Any) -> Any:
    def operator(self: Any, other: Any) -> Any:
        if getattr(other, "__array_ufunc__", function) is None:
            return NotImplemented
        try:
            return function(other, self)
        except Exception as error:
            hide_frames(error)
            raise

    return operator


def _in_place(function: Any) -> Any:
    # `x += y` binds x to a new array: nothing is written.
    def operator(self: Any, other: Any) -> Any:
        try:
            return function(self, other)
        except Exception as error:
            hide_frames(error)
            raise

    return operator


for _name, _function in {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "pow": np.power, "matmul": np.matmul, "lshift": np.left_shift, "rshift": np.right_shift,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}.items():  # fmt: skip
    setattr(ArrayMethods, f"__{_name}__", _binary(_function))
    setattr(ArrayMethods, f"__r{_name}__", _reflected(_function))
    setattr(ArrayMethods, f"__i{_name}__", _in_place(_function))


@entry_point
def _power(self: ArrayMethods, other: Any) -> Any:
    result = np.power(self, other)  # type: ignore[call-overload]
    if self.dtype == np.bool_ and type(other) is int and other == 2:
        return result.astype(_SQUARED_BOOL)
    return result


_SQUARED_BOOL = (np.ones(1, np.bool_) ** 2).dtype  # NumPy's `**` calls np.square there: int8, where np.power is int64
for _name in ("__pow__", "__ipow__"):
    setattr(ArrayMethods, _name, _power)
for _name, _function in {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "divmod": np.divmod,
}.items():  # fmt: skip
    setattr(ArrayMethods, f"__{_name}__", _binary(_function))
ArrayMethods.__rdivmod__ = _reflected(np.divmod)  # type: ignore[method-assign]
for _name in ("neg", "pos", "abs", "invert"):
    setattr(ArrayMethods, f"__{_name}__", entry_point(getattr(NDArrayOperatorsMixin, f"__{_name}__")))
ArrayMethods.flatten = ArrayMethods.ravel  # type: ignore[attr-defined]
