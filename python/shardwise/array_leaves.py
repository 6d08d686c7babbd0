# SPDX-License-Identifier: Apache-2.0
"""The leaves of trees of arguments and results: which are arrays of numbers, and their shapes and dtypes."""

from __future__ import annotations

import re
from dataclasses import is_dataclass
from typing import Any

import numpy as np

from .array import Array, ShapeDtypeStruct
from .dtypes import is_dtype, refuse_subclass, way_to_numbers
from .errors import DTypeError, described, message
from .process.foreign import native
from .recording.tracing import Trace, Tracer, WeakTracer, refuse_escaped
from .shardings.sharding import NamedSharding
from .trees import flatten, leaf_names
from .user_code.static_arguments import static_field

__all__ = ["as_weak", "aval_of", "lifted_arguments", "lifted_results", "numbers_of", "sharding_of"]


def numbers_of(leaf: Any) -> np.ndarray | None:
    """Convert a leaf to a numeric array of a supported dtype; None if that is not possible."""
    refuse_subclass(leaf)
    array = np.asarray(leaf)
    return array if is_dtype(array.dtype) else None


def sharding_of(leaf: Any) -> NamedSharding | None:
    """The sharding of an array, also of one of JAX's; None for any other leaf."""
    sharding = native(getattr(leaf, "sharding", None))
    return sharding if isinstance(sharding, NamedSharding) else None


def aval_of(what: str, leaf: Any, name: str, function: str) -> ShapeDtypeStruct:
    """Shape, dtype and sharding of the argument leaf ``name``; DTypeError if it is not an array of numbers.

    ``what`` is the public function that was called, and ``function`` the name of the user's.
    """
    if isinstance(leaf, ShapeDtypeStruct):
        return leaf
    if isinstance(leaf, Tracer):
        refuse_escaped(leaf)
    if isinstance(leaf, Array):
        return ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
    array = numbers_of(leaf)
    if array is None:
        rule = f"argument {name} must be an array of numbers"
        raise DTypeError(message(what, rule, described(leaf), _way_out(what, leaf, name, function)))
    return ShapeDtypeStruct(array.shape, array.dtype, sharding=sharding_of(leaf))


def _way_out(what: str, leaf: Any, name: str, function: str) -> str:
    """The error's advice for a non-array argument: how to pass it to a program."""
    convert = way_to_numbers(leaf)
    if convert is not None:
        return convert
    parameter = re.split(r"[.\[]", name, maxsplit=1)[0]
    register = ""
    if is_dataclass(leaf) and not isinstance(leaf, type):
        register = f", or register it as a tree of arrays: @sw.register_dataclass above {type(leaf).__name__}"
    elif type(leaf).__module__ != "builtins" and not callable(leaf):
        register = ", or register its class as a tree of arrays: sw.register_pytree_node"
    unnamed = re.fullmatch(r"arg(\d+)", name)
    if name == "self" and what == "jit":  # of a decorated method
        return f"make it static, above the method: @sw.jit(static_argnums=0){register}"
    if what == "eval_shape" and (unnamed or parameter == name):
        bound = "a lambda" if unnamed else f"functools.partial({function}, {name}=…)"
        return f"bind it with {bound}{register}"
    if unnamed:
        return f"make it static: sw.jit({function}, static_argnums={unnamed[1]}){register}"
    if parameter == name:
        return f"make it static: sw.jit({function}, static_argnames={name!r}){register}"
    if re.search(r"\.\w+$", name):
        return f"{static_field()}{register}"
    return f"take it out of {parameter}, or pass it as a separate static argument{register}"


def as_weak(x: Tracer, leaf: Any) -> Tracer:
    """The tracer of an argument; a Python number stays weakly typed."""
    return WeakTracer.of(x, type(leaf)) if type(leaf) in (int, float, complex) else x


def lifted_results(trace: Trace, what: str, result: Any) -> tuple[list[Tracer], Any]:
    """The traced leaves of a function's result, and its structure. DTypeError for leaves that are not arrays."""
    way_out = "return arrays, and anything else outside the function"
    return _lifted(trace, what, result, ("result", "an output must be an array", way_out))


def lifted_arguments(trace: Trace, what: str, name: str, argument: Any) -> tuple[list[Tracer], Any]:
    """The traced leaves of an argument, and its structure. DTypeError for leaves that are not arrays."""
    return _lifted(trace, what, argument, (name, f"{name} must be a tree of arrays", ""))


def _lifted(trace: Trace, what: str, tree: Any, texts: tuple[str, str, str]) -> tuple[list[Tracer], Any]:
    name, rule, way_out = texts
    leaves, structure = flatten(tree)
    for i, leaf in enumerate(leaves):
        if not isinstance(leaf, (Tracer, Array)) and numbers_of(leaf) is None:
            got = f"{described(leaf)} for {name}{leaf_names(tree)[i]}"
            raise DTypeError(message(what, rule, got, way_to_numbers(leaf) or way_out))
    return [trace.lift(leaf) for leaf in leaves], structure
