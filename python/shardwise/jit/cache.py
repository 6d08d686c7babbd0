# SPDX-License-Identifier: Apache-2.0
"""The compiled programs of a jitted function, and their cache keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..array import Array, ShapeDtypeStruct
from ..array_leaves import sharding_of
from ..dtypes import refuse_subclass
from ..errors import message
from ..layouts import current_layout
from ..process.foreign import foreign_type_of
from ..programs.stages import Program
from ..recording.tracing import Tracer, refuse_escaped
from ..shardings.mesh import Mesh
from ..trees.registry import typed
from .call import NO_STATIC, Call

__all__ = ["ProgramCache", "static_leaf_key"]


class ProgramCache:
    """The compiled programs of one function, keyed by all properties of a call that a program depends on."""

    __slots__ = ("_programs",)

    def __init__(self) -> None:
        self._programs: dict[Any, Program] = {}

    def program(self, call: Call, mesh: Mesh | None, compiled: Callable[[Call, Mesh | None], Program]) -> Program:
        """The program for a call; ``compiled`` compiles it on a cache miss.

        Raises:
            TypeError: a static argument is not hashable.
        """
        try:
            leaf_keys = tuple([leaf_key(leaf) for leaf in call.leaves])
            key = (call.tree, leaf_keys, static_key(call), mesh, current_layout())
            program = self._programs.get(key)
        except TypeError as error:
            if "unhashable" not in str(error):
                raise
            raise TypeError(message("jit", "static arguments must be hashable", str(error))) from None
        if program is None:
            program = self._programs[key] = compiled(call, mesh)
        return program

    def clear(self) -> None:
        """Forget all programs."""
        self._programs.clear()


def static_key(call: Call) -> Any:
    """The static values with their types: ``1``, ``1.0`` and ``True`` are equal, but not the same program."""
    if call.static is NO_STATIC:
        return NO_STATIC
    return tuple([tuple([(name, typed(value)) for name, value in group]) for group in call.static])


def leaf_key(leaf: Any) -> Any:
    """The part of the cache key for an argument leaf."""
    if isinstance(leaf, np.ndarray):
        if type(leaf) is not np.ndarray:
            refuse_subclass(leaf)
        return leaf.shape, leaf.dtype
    if isinstance(leaf, Array):
        return leaf.shape, leaf.dtype, leaf._data.sharding
    if isinstance(leaf, ShapeDtypeStruct):
        return leaf.shape, leaf.dtype, leaf.sharding
    if isinstance(leaf, Tracer):
        refuse_escaped(leaf)
    array = np.asarray(leaf)
    if type(leaf) in (int, float):
        return array.shape, array.dtype, type(leaf)
    more = sharding_of(leaf), foreign_type_of(leaf)
    return (array.shape, array.dtype) if more == (None, None) else (array.shape, array.dtype, *more)


def static_leaf_key(leaf: Any) -> Any:
    """The part of a cache key for a static leaf: its type and value."""
    if isinstance(leaf, (np.ndarray, np.generic)):
        return type(leaf), leaf.dtype, leaf.shape, leaf.tobytes()
    if isinstance(leaf, slice):
        return slice, *map(static_leaf_key, (leaf.start, leaf.stop, leaf.step))
    try:
        hash(leaf)
    except TypeError:
        return type(leaf), repr(leaf)
    return typed(leaf)
