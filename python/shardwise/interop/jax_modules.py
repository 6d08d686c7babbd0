# SPDX-License-Identifier: Apache-2.0
"""Modules of Equinox and of Flax nnx as arguments, results and functions of JAX.

A leaf of an argument that is neither an array nor a number is static, as for `equinox.filter_jit`: an activation
function in a module, a string in a dict. In a module of Equinox, and for a function that Equinox has transformed,
Python numbers are static, too, such as the rate of a Dropout.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..errors import UnsupportedError, composed
from ..trees.static_leaves import StaticLeaf, hidden, shown
from .jax_arrays import is_numeric
from .jax_errors import users_place
from .jaxprs import source_of
from .optional import jax
from .random_keys import is_key_or_its_shape

__all__ = ["Variables", "hidden_arguments", "hidden_results", "is_static_leaf", "shown_leaves"]


def is_static_leaf(leaf: Any) -> bool:
    """Whether a leaf is neither an array nor a number, nor an array of JAX's random keys or of Python objects."""
    return not (is_numeric(leaf) or isinstance(leaf, (np.ndarray, np.generic)) or is_key_or_its_shape(leaf))


def hidden_arguments(fun: Callable[..., Any], tree: Any) -> Any:
    """Arguments of ``fun`` with their static leaves as parts of the structure."""
    module = _equinox_module()
    if module is not None and isinstance(_called(fun), module):
        return hidden(tree, _is_static_in_module, is_key_or_its_shape)
    return hidden(_with_hidden_modules(tree, module), is_static_leaf, is_key_or_its_shape)


def hidden_results(tree: Any) -> Any:
    """Results with the static leaves of modules of Equinox as parts of the structure, for JAX."""
    _register_static_leaf()
    return _with_hidden_modules(tree, _equinox_module())


def shown_leaves(tree: Any) -> Any:
    """A tree with its static leaves in their places."""
    return shown(tree, is_key_or_its_shape)


def _with_hidden_modules(tree: Any, module: type | None) -> Any:
    if module is None:
        return tree
    # JAX's flatten leaves random keys and traced values of JAX alone.
    leaves, structure = jax.tree.flatten(tree, is_leaf=lambda x: isinstance(x, module))
    if not any(isinstance(leaf, module) for leaf in leaves):
        return tree
    return jax.tree.unflatten(structure, [_hidden_module(x) if isinstance(x, module) else x for x in leaves])


def _hidden_module(module: Any) -> Any:
    _register_static_leaf()
    leaves, structure = jax.tree.flatten(module)
    return jax.tree.unflatten(structure, [StaticLeaf(x) if _is_static_in_module(x) else x for x in leaves])


def _is_static_in_module(leaf: Any) -> bool:
    is_number = isinstance(leaf, (bool, int, float, complex)) and not isinstance(leaf, np.generic)
    return is_number or is_static_leaf(leaf)


_registered: set[type] = set()


def _register_static_leaf() -> None:
    if StaticLeaf not in _registered:
        jax.tree_util.register_pytree_node(StaticLeaf, lambda leaf: ((), leaf), lambda leaf, _: leaf)
        _registered.add(StaticLeaf)


def _equinox_module() -> type | None:
    """The class of Equinox's modules, of which its transformed functions are, too; None if Equinox is not loaded."""
    found: type | None = getattr(sys.modules.get("equinox"), "Module", None)
    return found


def _called(fun: Any) -> Any:
    """The function behind partials and bound methods."""
    while True:
        if isinstance(fun, partial):
            fun = fun.func
        elif isinstance(fun, types.MethodType):
            fun = fun.__func__
        else:
            return fun


class Variables:
    """The variables of modules of Flax nnx in the arguments of a call.

    A function may update them in place. JAX gives it copies, so that an update would be lost.
    """

    def __init__(self, fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self._fun = fun
        self._rows = _variables_of((args, kwargs))
        if self._rows:
            self._leaves, self._tree = jax.tree.flatten((args, kwargs))

    def check(self) -> None:
        """Raise UnsupportedError if the call has given a variable another value."""
        if any(
            value is not before for _, variable, values in self._rows for value, before in _paired(variable, values)
        ):
            for path, variable in self._updated():
                rule = "a function must not update the variables of a module in place"
                way_out = "pass graphdef, state = nnx.split(model), and return nnx.state of the updated model"
                got = f"an update of {type(variable).__name__} {path}"
                raise UnsupportedError(composed("from_jax", rule, got, way_out, *users_place()))

    def _updated(self) -> Iterator[tuple[str, Any]]:
        """The variables that a call updates. Functions of `nnx.jit` also assign the values that they were given."""
        is_array = [isinstance(leaf, jax.Array) for leaf in self._leaves]
        rows: list[tuple[str, Any]] = []

        def values(*arrays: Any) -> Any:
            given = iter(arrays)
            leaves = [next(given) if own else leaf for own, leaf in zip(is_array, self._leaves)]
            args, kwargs = jax.tree.unflatten(self._tree, leaves)
            found = _variables_of((args, kwargs))
            self._fun(*args, **kwargs)
            pairs = [(path, x, pair) for path, x, before in found for pair in _paired(x, before)]
            rows[:] = [(path, x) for path, x, _ in pairs]
            return [pair for _, _, pair in pairs]

        jaxpr = jax.make_jaxpr(values)(*[x for x, own in zip(self._leaves, is_array) if own]).jaxpr
        after, before = jaxpr.outvars[::2], jaxpr.outvars[1::2]
        for row, new, old in zip(rows, after, before):
            if source_of(jaxpr, new) is not source_of(jaxpr, old):
                yield row


def _variables_of(tree: Any) -> list[tuple[str, Any, list[Any]]]:
    """The path, the variable, and the leaves of its value, of each variable in a tree."""
    variable = getattr(sys.modules.get("flax.nnx"), "Variable", None)
    if variable is None:
        return []
    rows = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda x: isinstance(x, variable))[0]
    return [(jax.tree_util.keystr(path), x, _values_of(x)) for path, x in rows if isinstance(x, variable)]


def _values_of(variable: Any) -> list[Any]:
    return list(jax.tree.leaves(variable.get_value()))


def _paired(variable: Any, before: list[Any]) -> list[tuple[Any, Any]]:
    """The leaves of the value of a variable, each with the one that it had before."""
    return list(zip(_values_of(variable), before))
