# SPDX-License-Identifier: Apache-2.0
"""Recording: NumPy calls on tracers become ops of a graph.

A :class:`Tracer` has a shape, a dtype and a value of a graph, but no numbers. NumPy's own protocols
(``__array_ufunc__``, ``__array_function__``) dispatch ``np.*`` functions and operators to it, so unmodified NumPy code
is recorded. :mod:`shardwise.numpy` implements each NumPy function.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import numpy as np

from .. import _core
from ..dtypes import dtype_name, is_dtype, numpy_dtype, refuse_subclass
from ..errors import (
    DTypeError,
    MeshError,
    ShardingError,
    TracerBoolConversionError,
    TracerConversionError,
    UnsupportedError,
    message,
)
from ..process.implementations import IMPLEMENTATIONS
from ..process.traceback_filtering import hide_frames
from ..shardings.mesh import Mesh, begin_trace, default_mesh, end_trace
from ..user_code.advice import bool_error, conversion_error, restored
from ..user_code.call_sites import Instruction
from ..user_code.discarded import user_calls
from .debug_prints import DebugPrints
from .methods import ArrayMethods

__all__ = ["BatchAxis", "GivenDerivatives", "Limit", "Trace", "Tracer", "UserCall", "WeakTracer", "current_trace"]

# A closed-over array with more elements becomes a hidden argument; others become constants.
_MAX_CONSTANT_ELEMENTS = 16


class Tracer(ArrayMethods):
    """A value of a program during tracing: its shape and dtype are known, its elements are not.

    NumPy functions, operators, indexing and the usual array methods take tracers and return tracers. Code that needs
    a number (``if``, ``float()``, ``np.asarray``) raises a TracerConversionError.
    """

    __slots__ = ("_dtype", "_shape", "_trace", "_value")

    _trace: Trace
    _value: int

    def __init__(self, trace: Trace, value: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._trace = trace
        self._value = value
        self._shape = shape
        self._dtype = dtype

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        try:
            return IMPLEMENTATIONS.apply_ufunc(ufunc, method, inputs, kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        try:
            return IMPLEMENTATIONS.apply_function(func, args, kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    def __getitem__(self, index: Any) -> Any:
        try:
            return IMPLEMENTATIONS.getitem(self, index)
        except Exception as error:
            hide_frames(error)
            raise

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise UnsupportedError(
            message(
                "indexing",
                "a traced array cannot be written in place",
                None,
                "x.at[index].set(value) gives a new one",
            )
        )

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise _value_error(self, "np.asarray")

    def __bool__(self) -> NoReturn:
        if self._trace is not current_trace():
            raise TracerBoolConversionError(_escaped(self))
        raise bool_error(self)

    def __float__(self) -> NoReturn:
        raise _value_error(self, "float")

    def __int__(self) -> NoReturn:
        raise _value_error(self, "int")

    def __complex__(self) -> NoReturn:
        raise _value_error(self, "complex")

    def __index__(self) -> NoReturn:
        raise _value_error(self, "index")

    def __round__(self, ndigits: int | None = None) -> Any:
        rounded: Any = np.round(self, ndigits or 0)
        return rounded.astype(np.int64) if ndigits is None else rounded

    def item(self, *args: Any) -> NoReturn:
        """Raises TracerConversionError: a traced array has no numbers yet."""
        raise _value_error(self, "item")

    def tolist(self) -> NoReturn:
        """Raises TracerConversionError: a traced array has no numbers yet."""
        raise _value_error(self, "tolist")

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        way_out = f'use sw.debug.print("{{:{spec}}}", x)'
        raise TracerConversionError(message("format", "a traced array has no numbers yet", repr(self), way_out))

    def __repr__(self) -> str:
        kind = "Array" if self._trace.user_call.eager else "Tracer"
        return f"{kind}<{self.dtype.name}[{','.join(map(str, self.shape))}]>"

    def __hash__(self) -> int:
        raise _value_error(self, "hash")


class WeakTracer(Tracer):
    """A traced Python number. As in NumPy, it takes the dtype of the other operand."""

    __slots__ = ("weak",)

    weak: type[int] | type[float] | type[complex]

    @classmethod
    def of(cls, x: Tracer, weak: type[int] | type[float] | type[complex]) -> WeakTracer:
        """The scalar ``x`` as a number of this Python type."""
        tracer = cls(x._trace, x._value, x.shape, x.dtype)
        tracer.weak = weak
        return tracer

    def strong(self) -> Tracer:
        """The same scalar with a fixed dtype."""
        return Tracer(self._trace, self._value, self.shape, self.dtype)


def refuse_escaped(x: Tracer) -> NoReturn:
    """Raise UnsupportedError for a tracer that is used outside the program it belongs to."""
    raise UnsupportedError(_escaped(x))


def _escaped(x: Tracer) -> str:
    rule = "a traced value must not leave the function that recorded it"
    return message("trace", rule, repr(x), "return it instead")


def _value_error(x: Tracer, what: str) -> TracerConversionError:
    return conversion_error(x, what) if x._trace is current_trace() else TracerConversionError(_escaped(x))


class Limit(NamedTuple):
    """A range that a Python int argument must be in, because of an op that uses it."""

    value: int  # the argument, as a value of the program
    low: int
    high: int
    error: type[Exception]
    must_hold: str
    way_out: str

    def check(self, number: int) -> None:
        """Raise the error for a number outside [low, high]."""
        if not self.low <= number <= self.high:
            raise self.error(message("call", self.must_hold, number, self.way_out))


@dataclass(frozen=True)
class UserCall:
    """The call in the user's code that a program implements; errors describe it.

    Attributes:
        function: the user's function.
        eager: one NumPy call on Arrays outside jit, where errors must not mention tracers.
        transform: the argument names of a transform, such as ``grad``, that is called outside jit.
        what: the public function that the user called; errors begin with it.
        needs_mesh: whether a program without a mesh is an error. Otherwise it runs on one device.
    """

    function: Any = None
    eager: bool = False
    transform: tuple[str, ...] | None = None
    what: str = "jit"
    needs_mesh: bool = True


class Hoisted(NamedTuple):
    """An array that a program closes over, as a hidden argument of the program."""

    source: Any  # kept alive, because its id is the key
    held: Any  # the elements at the first use, read-only; the Array itself
    tracer: Tracer


class HoistedArrays:
    """The larger arrays that a program closes over. Equal ones are one hidden argument, however they get there."""

    __slots__ = ("_alike", "_by_id", "arrays")

    def __init__(self) -> None:
        self.arrays: list[Any] = []  # in the order of the hidden arguments
        self._by_id: dict[int, Hoisted] = {}
        self._alike: dict[Any, list[Hoisted]] = {}  # by what equal arrays have in common

    def find(self, source: Any, array: np.ndarray) -> Tracer | None:
        """The hidden argument with the elements of ``array``, which are those of ``source`` now."""
        known = self._by_id.get(id(source))
        # False after a write between two uses.
        if known is not None and _same_bytes(known.held, array):
            return known.tracer
        return next(
            (each.tracer for each in self._alike.get(_sample(array), ()) if _same_bytes(each.held, array)), None
        )

    def find_sharded(self, source: Any) -> Tracer | None:
        """The hidden argument of an Array, or of an equal one with the same sharding."""
        known = self._by_id.get(id(source))
        if known is not None:
            return known.tracer
        alike = self._alike.get(_kind(source), ())
        # Ranks would have to gather it to compare.
        if not alike or not source._data.is_whole_here:
            return None
        array = np.asarray(source)
        return next((each.tracer for each in alike if _same_bytes(np.asarray(each.held), array)), None)

    def add(self, source: Any, held: Any, tracer: Tracer) -> Tracer:
        """Add ``source``, or its new elements after a write. Returns ``tracer``."""
        hoisted = self._by_id[id(source)] = Hoisted(source, held, tracer)
        key = _sample(held) if isinstance(held, np.ndarray) else _kind(held)
        self._alike.setdefault(key, []).append(hoisted)
        self.arrays.append(held)
        return tracer


_SAMPLES = 64  # elements of an array that its key has


def _sample(array: np.ndarray) -> Any:
    """What equal arrays have in common: shape, dtype, and the bytes of some elements."""
    step = max(array.size // _SAMPLES, 1)
    return array.shape, array.dtype, array.flat[::step].tobytes()


def _kind(array: Any) -> Any:
    """What equal Arrays with the same sharding have in common."""
    return array.shape, array.dtype, array._data.sharding


class BatchAxis(NamedTuple):
    """The axis that a vmap names, while its function is recorded: a mesh of its own, and the number of the example."""

    mesh: Any  # of the extension
    size: int
    example: Tracer


@dataclass
class Annotations:
    """What a program knows of its values, beyond their types.

    Attributes:
        written: the calls of the user that make an annotation, by its result. Not those of shardings of jitted
            functions, and not annotations that gradients, batching and texts make.
        groups: the shape of the values of each sharding group.
        foreign_types: what functions of another library see of the type of a value.
        batch_axes: the axes of the enclosing vmaps that name one.
    """

    written: dict[int, tuple[Instruction, ...]] = field(default_factory=dict)
    groups: dict[int, tuple[int, ...]] = field(default_factory=dict)
    foreign_types: dict[int, Any] = field(default_factory=dict)
    batch_axes: dict[str, BatchAxis] = field(default_factory=dict)


class GivenDerivatives:
    """Functions of a program that come with their own derivatives, by number.

    A function of JAX has a ``name``, a ``text`` in StableHLO, and a ``derivative`` with the functions ``forward`` and
    ``backward``. A function of the user's has ``recorded``, which records its derivative into the program.
    """

    __slots__ = ("_functions",)

    def __init__(self) -> None:
        self._functions: list[Any] = []

    def add(self, function: Any) -> int:
        """The number of a function, for the attribute of its ``shardwise.custom_derivative``."""
        self._functions.append(function)
        return len(self._functions) - 1

    def __call__(self, number: int) -> Any:
        """The derivative of a function, in the forms that ``Trace.core.vjp`` reads."""
        function = self._functions[number]
        if hasattr(function, "recorded"):
            return function.recorded()
        given = function.derivative
        programs = [(part.name, self.add(part), part.text) for part in (given.forward, given.backward)]
        return programs[0], programs[1], given.has_gradient, given.has_cotangent

    def of_forward_mode(self, number: int) -> Any:
        """The same where the derivative must be linear; UnsupportedError for a function with a reverse rule alone."""
        function = self._functions[number]
        if getattr(function, "is_reverse_only", False):
            function.refuse_forward_mode()
        return self(number)


class Trace:
    """One program being recorded: the graph, its mesh, and the arrays that it closes over."""

    __slots__ = (
        "annotations", "arguments", "core", "derivatives", "hoisted", "limits", "manual_axes", "mesh",
        "prints", "propagation", "refused", "user_call",
    )  # fmt: skip

    def __init__(self, name: str, mesh: Mesh | None, user_call: UserCall = UserCall()) -> None:
        self.core = _core.ir.Trace(name)
        self.user_call = user_call
        self.mesh = mesh
        self.arguments: dict[int, str] = {}  # value → argument name
        # the last conversion error, and the user's instruction that caused it
        self.refused: tuple[TracerConversionError, Instruction | None] | None = None
        self.hoisted = HoistedArrays()
        self.limits: dict[Limit, None] = {}  # checked by each call, in order
        self.annotations = Annotations()
        self.manual_axes: tuple[str, ...] = ()  # of the enclosing manual regions
        self.propagation: dict[str, Any] = {}  # jit's options of propagation
        self.prints = DebugPrints()  # in program order
        self.derivatives = GivenDerivatives()

    def require_mesh(self, what: str, own: Mesh | None = None) -> Mesh:
        """The program's mesh; ``own``, the mesh of an annotation, becomes it if there is none. Raises ShardingError."""
        if self.mesh is None:
            self.mesh = own or default_mesh()
        if self.mesh is None:
            raise ShardingError(
                message(what, "an annotation needs a mesh", None, "pass mesh= to jit, or call set_mesh first")
            )
        return self.mesh

    def argument(self, shape: Sequence[int], dtype: Any, name: str = "", sharding: Any = None) -> Tracer:
        """Add an argument to the program."""
        dtype = np.dtype(dtype)
        value = self.core.argument(tuple(shape), dtype_name(dtype), name, sharding)
        if name:
            self.arguments[value] = name
        return Tracer(self, value, tuple(shape), dtype)

    def emit(
        self,
        op: str,
        operands: Sequence[Tracer],
        attrs: dict[str, Any] | None = None,
        shape: tuple[int, ...] | None = None,
        dtype: np.dtype[Any] | None = None,
        region_op: str | None = None,
    ) -> Tracer:
        """Record one op. ``shape`` and ``dtype`` declare the result if the operands do not determine it."""
        value, shape, name = self.core.emit(
            op,
            [x._value for x in operands],
            attrs,
            shape,
            None if dtype is None else dtype_name(dtype),
            region_op,
        )
        return Tracer(self, value, shape, numpy_dtype(name))

    def emit_op(
        self,
        op: str,
        operands: Sequence[Tracer],
        attrs: dict[str, Any] | None = None,
        types: Sequence[tuple[tuple[int, ...], str]] = (),
        regions: Sequence[int] = (),
    ) -> list[Tracer]:
        """Record one op with any number of results. ``types`` declares them if the op does not determine them."""
        rows = self.core.emit_op(op, [x._value for x in operands], attrs, types, list(regions))
        return [Tracer(self, value, shape, numpy_dtype(name)) for value, shape, name in rows]

    def constant(self, array: np.ndarray) -> Tracer:
        """Record a constant. A splat (all strides 0) is stored as one element."""
        value, shape, name = self.core.constant(array)
        return Tracer(self, value, shape, numpy_dtype(name))

    def lift(self, x: Any) -> Tracer:
        """Convert ``x`` to a tracer of this program.

        Small arrays become constants, and so does ``np.zeros`` of any size; other large ones are hidden arguments.
        """
        if isinstance(x, Tracer):
            if x._trace is not self:
                refuse_escaped(x)
            return x
        if hasattr(x, "__shardwise_array__"):
            return self._lift_sharded(x)
        refuse_subclass(x)
        array = x if isinstance(x, np.ndarray) else np.asarray(x)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        if not is_dtype(array.dtype):
            raise DTypeError(message("trace", "an array must have a numeric dtype", array.dtype))
        if array.size <= _MAX_CONSTANT_ELEMENTS:
            return self.constant(array)
        repeated = _as_repeated(array)
        if repeated is not None:
            return self.constant(repeated)
        known = self.hoisted.find(x, array)
        if known is not None:
            return known
        snapshot = array.copy()
        snapshot.flags.writeable = False
        return self.hoisted.add(x, snapshot, self.argument(array.shape, array.dtype))

    def _lift_sharded(self, x: Any) -> Tracer:
        """A closed-over Array: a hidden argument that keeps its sharding, or a constant if it has none to keep."""
        if x.size <= _MAX_CONSTANT_ELEMENTS and x.sharding.is_fully_replicated:
            return self.constant(np.asarray(x))
        known = self.hoisted.find_sharded(x)
        if known is not None:
            return known
        if self.mesh is None:
            self.mesh = x.sharding.mesh
        if x.sharding.mesh != self.mesh:
            raise MeshError(
                message(
                    self.user_call.what,
                    f"all arrays of a program must be on its mesh, {self.mesh!r}",
                    f"a closed-over Array on {x.sharding.mesh!r}",
                    "move it with device_put",
                )
            )
        return self.hoisted.add(x, x, self.argument(x.shape, x.dtype, "", x._data.sharding))

    def limit(
        self, x: WeakTracer, limits: tuple[int, int], error: type[Exception], must_hold: str, way_out: str
    ) -> None:
        """Make each call check ``x`` if it is a Python int argument. Computed values are not checked."""
        self.limits[Limit(x._value, *limits, error, must_hold, way_out)] = None

    def constrain(self, x: Tracer, sharding: Any, is_written: bool = True, cause: str = "") -> Tracer:
        """``x`` with a user's sharding (an sdy.sharding_constraint).

        ``is_written``: the user calls an annotation, whose result must be used. ``cause``: its name in the ledger.
        """
        taken = {name for axes, _, _ in sharding.dims for name, _, _ in axes}
        taken |= {name for name, _, _ in (*sharding.replicated_axes, *sharding.unreduced)}
        for axis in self.manual_axes:
            if axis in taken:
                raise ShardingError(
                    message("annotation", "must not use an axis of a manual region around it", repr(axis))
                )
        if self.manual_axes and self.mesh is not None and sharding.mesh != self.mesh._core:
            rule = f"inside a manual region, must be on the program's mesh, {self.mesh!r}"
            raise MeshError(message("annotation", rule, sharding.mesh.text(), "annotate the value outside"))
        value = self.core.constrain(x._value, sharding, cause)
        if is_written:
            self.annotations.written[value] = user_calls()
        return Tracer(self, value, x.shape, x.dtype)

    def name_gradients(self, gradients: Sequence[int], of: Sequence[str], op_count: int) -> None:
        """Name the ops recorded after the first ``op_count`` that make gradients of the values called ``of``."""
        self.core.name_gradients(gradients, [f"gradient of {name}" for name in of], op_count)

    def set_name(self, x: Tracer, name: str) -> None:
        """Name a value in program text and reports."""
        self.core.set_name(x._value, name)


def _as_repeated(array: np.ndarray) -> np.ndarray | None:
    """The array with strides 0 if all its elements have the same bytes: a constant that no device has to store.

    >>> _as_repeated(np.ones((2, 3))).strides
    (0, 0)
    """
    first = array[(slice(0, 1),) * array.ndim].copy()
    repeated: np.ndarray = np.ndarray(array.shape, array.dtype, first, 0, (0,) * array.ndim)
    if not any(array.strides):
        return repeated
    if not array.flags.forc or len({*_chunks(_sample(array)[2], array.itemsize)}) > 1:
        return None
    data, size = array.ravel(order="K").view(np.uint8), array.itemsize
    start, most = size, 1 << 12  # most arrays differ early
    while start < data.size:
        end = min(start + most, data.size)
        if not np.array_equal(data[start:end], data[start - size : end - size]):
            return None
        start, most = end, min(2 * most, 1 << 22)
    return repeated


def _chunks(data: bytes, size: int) -> Iterator[bytes]:
    return (data[i : i + size] for i in range(0, len(data), size))


def _same_bytes(a: np.ndarray, b: np.ndarray) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    first, second = (np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (a, b))
    return bool(np.array_equal(first, second))


class _Stack(threading.local):
    def __init__(self) -> None:
        self.traces: list[Trace] = []


_stack = _Stack()


def current_trace() -> Trace | None:
    """The innermost program that this thread is recording."""
    return _stack.traces[-1] if _stack.traces else None


class recording:  # noqa: N801
    """Context manager: the given trace is the current one inside."""

    __slots__ = ("_trace",)

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __enter__(self) -> Trace:
        begin_trace()
        _stack.traces.append(self._trace)
        return self._trace

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        _stack.traces.pop()
        end_trace()
        original = restored(self._trace, error)
        if original is not None and error is not None:
            raise original.with_traceback(error.__traceback__) from None
