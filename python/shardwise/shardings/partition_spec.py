# SPDX-License-Identifier: Apache-2.0
"""Partition specs: the annotation of the dims of one array, independent of a mesh.

A dim is None, an axis, or a tuple of axes, major to minor; :func:`sub` names some digits of an axis, :func:`open`
leaves a dim to propagation, :func:`priority` defers a dim.

>>> P(("x", "y"), None, open(sub("z", pre=2, size=4)), priority("w", 1), replicated={"v"}, unreduced={"u"})
P(('x', 'y'), None, open(sub('z', pre=2, size=4)), priority('w', 1), replicated={'v'}, unreduced={'u'})
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Union

from ..errors import ShardingError, is_integer, is_one_of, message
from ..process.foreign import native
from ..process.traceback_filtering import entry_point, entry_points

__all__ = ["Axis", "OpenDim", "P", "PartitionSpec", "PriorityDim", "SubAxis", "open", "priority", "sub"]

Axis = Union[str, "SubAxis"]
_Dim = Union[Axis, Sequence[Axis], "OpenDim", "PriorityDim", None]
_Axes = Union[str, "SubAxis", Iterable[Axis]]


class SubAxis:
    """Some digits of an axis: ``sub("x", pre=2, size=4)`` is Shardy's ``"x":(2)4``."""

    __slots__ = ("name", "pre", "size")

    def __init__(self, name: str, pre: int, size: int) -> None:
        self.name, self.pre, self.size = name, pre, size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SubAxis) and (self.name, self.pre, self.size) == (other.name, other.pre, other.size)

    def __hash__(self) -> int:
        return hash((self.name, self.pre, self.size))

    def __repr__(self) -> str:
        return f"sub({self.name!r}, pre={self.pre}, size={self.size})"


@entry_point
def sub(name: str, *, pre: int, size: int) -> SubAxis:
    """A sub-axis of axis ``name``: the part of size ``size`` that follows a major part of size ``pre``.

    The axis size must be a multiple of ``pre * size``. This is checked when the sub-axis is used on a mesh.

    Raises:
        ShardingError: the name is not a string, or the numbers are not integers in [1, 2^63).

    >>> sub("x", pre=1, size=2), sub("x", pre=2, size=4)  # two sub-axes of an axis of size 8
    (sub('x', pre=1, size=2), sub('x', pre=2, size=4))
    """
    if not isinstance(name, str):
        raise ShardingError(message("sub", "the name of an axis must be text", repr(name)))
    for what, number in (("pre", pre), ("size", size)):
        if not is_integer(number, 1) or number >= 2**63:
            raise ShardingError(message("sub", f"{what} must be an integer in [1, 2^63)", repr(number)))
    return SubAxis(name, int(pre), int(size))


class OpenDim:
    """An open dim of a spec, to which propagation may add axes; made by :func:`open`."""

    __slots__ = ("axes",)

    def __init__(self, axes: tuple[Axis, ...]) -> None:
        self.axes = axes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpenDim) and self.axes == other.axes

    def __hash__(self) -> int:
        return hash(("open", self.axes))

    def __repr__(self) -> str:
        return f"open({', '.join(map(repr, self.axes))})"


@entry_point
def open(*axes: Axis | Sequence[Axis]) -> OpenDim:
    """An open dim of a spec: it is split over ``axes``, and propagation may add more (Shardy's ``{"x", ?}``).

    ``open()`` leaves the dim to propagation, like JAX's ``P.UNCONSTRAINED``.

    Raises:
        ShardingError: an argument is not an axis.

    >>> P(open("x"), open())
    P(open('x'), open())
    """
    flat = tuple(axis for entry in axes for axis in (entry if isinstance(entry, (tuple, list)) else (entry,)))
    return OpenDim(_checked_axes("open", flat, axes))


class PriorityDim:
    """A dim of a spec with a priority; made by :func:`priority`."""

    __slots__ = ("dim", "priority")

    def __init__(self, dim: Any, priority: int) -> None:
        self.dim, self.priority = dim, priority

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PriorityDim) and (self.dim, self.priority) == (other.dim, other.priority)

    def __hash__(self) -> int:
        return hash(("priority", self.dim, self.priority))

    def __repr__(self) -> str:
        return f"priority({self.dim!r}, {self.priority})"


@entry_point
def priority(axes: Axis | Sequence[Axis] | OpenDim, priority: int) -> PriorityDim:
    """Defer a dim of a spec: it propagates after all dims of smaller priorities (Shardy's ``{"x"}p1``).

    Priority 0 comes first, and is the default. Until its turn, the dim has no axes, and its axes are reserved on this
    array.

    Raises:
        ShardingError: the priority is not an integer in [0, 2^63), or the dim is closed and has no axes.

    >>> P(priority("x", 1), priority(open("y"), 2))
    P(priority('x', 1), priority(open('y'), 2))
    """
    if not is_integer(priority, 0) or priority >= 2**63:
        raise ShardingError(message("priority", "a priority must be an integer in [0, 2^63)", repr(priority)))
    dim = _one_form("priority", axes)
    if isinstance(dim, PriorityDim):
        raise ShardingError(message("priority", "a dim must have one priority", repr(axes)))
    if dim is None:
        way_out = "name axes, or use open()"
        raise ShardingError(message("priority", "a dim must have axes or be open", repr(axes), way_out))
    return PriorityDim(dim, int(priority))


_REDUCERS = ("sum", "prod", "max", "min", "and", "or")


@entry_points
class PartitionSpec:
    """The axes that split each dim: None, an axis, a tuple of axes (major to minor), :func:`open` or :func:`priority`.

    As in JAX, a spec may be shorter than the array's ndim; the remaining dims are not split. Specs are immutable and
    hashable, and they are leaves of trees, not tuples. ``P`` is an alias.

    Args:
        dims: one entry per dim.
        replicated: axes that propagation must not use for this array.
        unreduced: axes over which a reduction is pending: each device along them holds one addend of the array.
        reducer: the pending reduction: ``"sum"``, ``"prod"``, ``"max"``, ``"min"``, ``"and"`` or ``"or"``.

    Raises:
        ShardingError: an invalid entry.

    Source: `jax.sharding.PartitionSpec`, and Shardy's `TensorSharding` for the features that JAX does not have.

    >>> P("data", None, ("x", "y"), ("z",))
    P('data', None, ('x', 'y'), 'z')
    >>> P("data", unreduced={"model"}, reducer="max")
    P('data', unreduced={'model'}, reducer='max')
    """

    __slots__ = ("_dims", "_reducer", "_replicated", "_unreduced")

    UNCONSTRAINED: Final = OpenDim(())

    def __init__(self, *dims: _Dim, replicated: _Axes = (), unreduced: _Axes = (), reducer: str = "sum") -> None:
        self._dims = tuple(_one_form("P", dim) for dim in dims)
        self._replicated = _axis_set("replicated", replicated)
        self._unreduced = _axis_set("unreduced", unreduced)
        if not is_one_of(reducer, _REDUCERS):
            raise ShardingError(message("P", f"reducer must be one of {', '.join(_REDUCERS)}", repr(reducer)))
        if reducer != "sum" and not self._unreduced:
            raise ShardingError(message("P", "a reducer needs unreduced axes", repr(reducer), "name them: unreduced="))
        self._reducer = reducer

    @property
    def replicated(self) -> tuple[Axis, ...]:
        """Axes that must not shard the array."""
        return self._replicated

    @property
    def unreduced(self) -> tuple[Axis, ...]:
        """Axes over which a reduction is pending."""
        return self._unreduced

    @property
    def reducer(self) -> str:
        """The reduction that is pending along the unreduced axes."""
        return self._reducer

    def __iter__(self) -> Iterator[Any]:
        return iter(self._dims)

    def __len__(self) -> int:
        return len(self._dims)

    def __getitem__(self, index: int) -> Any:
        return self._dims[index]

    def __add__(self, other: Any) -> PartitionSpec:
        """The dims of both, in this order, as in JAX; ``other`` is a spec or a tuple of dims."""
        spec = PartitionSpec(*other) if type(other) is tuple else other
        if not isinstance(spec, PartitionSpec):
            return NotImplemented
        reducers = {each._reducer for each in (self, spec) if each._unreduced} or {"sum"}
        if len(reducers) > 1:
            raise ShardingError(message("P", "both specs must have one reducer", f"{self!r} + {spec!r}"))
        replicated, unreduced = self._replicated + spec._replicated, self._unreduced + spec._unreduced
        return PartitionSpec(
            *self._dims, *spec._dims, replicated=replicated, unreduced=unreduced, reducer=reducers.pop()
        )

    def __radd__(self, other: Any) -> PartitionSpec:
        return PartitionSpec(*other) + self if type(other) is tuple else NotImplemented

    def key(self) -> tuple[Any, ...]:
        """The key of specs that are equal on arrays of one shape: without trailing None entries."""
        dims = self._dims
        while dims and dims[-1] is None:
            dims = dims[:-1]
        return dims, self._replicated, self._unreduced, self._reducer

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionSpec) and (self._dims, self.key()) == (other._dims, other.key())

    def __hash__(self) -> int:
        return hash((self._dims, self.key()))

    def __repr__(self) -> str:
        parts = [repr(dim) for dim in self._dims]
        for name, axes in (("replicated", self._replicated), ("unreduced", self._unreduced)):
            if axes:
                parts.append(f"{name}={{{', '.join(map(repr, axes))}}}")
        if self._reducer != "sum":
            parts.append(f"reducer={self._reducer!r}")
        return f"P({', '.join(parts)})"


P = PartitionSpec


def _checked_axes(what: str, axes: Iterable[Any], got: Any) -> tuple[Axis, ...]:
    checked = tuple(axes)
    for axis in checked:
        if not isinstance(axis, (str, SubAxis)):
            raise ShardingError(
                message(what, "a dim must be None, an axis name, a tuple of names, or open(...)", repr(got))
            )
    return checked


def _one_form(what: str, dim: Any) -> Any:
    """Normalize a dim: None, an axis, a tuple of axes, or the result of :func:`open` or :func:`priority`."""
    if dim is None or isinstance(dim, (OpenDim, PriorityDim)):
        return dim
    if not isinstance(dim, (str, tuple)):
        dim = native(dim)
        if isinstance(dim, OpenDim):  # JAX's UNCONSTRAINED
            return dim
    axes = _checked_axes(what, dim if isinstance(dim, (tuple, list)) else (dim,), dim)
    return None if not axes else axes[0] if len(axes) == 1 else axes


def _axis_set(what: str, axes: Any) -> tuple[Axis, ...]:
    is_set = isinstance(axes, Iterable) and not isinstance(axes, str)
    entries = tuple(axes) if is_set else (axes,)
    if not all(isinstance(axis, (str, SubAxis)) for axis in entries):
        raise ShardingError(message("P", f"{what} must be an axis name or a set of them", repr(axes)))
    return tuple(sorted(set(entries), key=lambda axis: (axis, 0) if isinstance(axis, str) else (axis.name, axis.pre)))
