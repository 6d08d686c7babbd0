# SPDX-License-Identifier: Apache-2.0
"""What optimizers require of the leaves of their trees and of their states, and the errors that name both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtypes import is_complex, is_inexact
from ..errors import DTypeError, ShapeError, described, message
from ..trees import leaf_names

__all__ = [
    "expect_numbers",
    "expect_real",
    "expect_shapes",
    "expect_state",
    "expect_to_fit",
    "expect_updates",
    "wrong_state",
]

_NEW_STATE = "call init(params), or load it with like=init(params)"


def expect_numbers(what: str, tree: Any, number: int, leaves: tuple[Any, ...]) -> None:
    """Raise unless the leaves in one place of several trees are floats or complex numbers of one shape.

    A hyperparameter in the dtype of an integer would be 0, and a leaf of another shape would be broadcast.

    Args:
        what: the public function.
        tree: the first tree.
        number: the place, counted in leaves.
        leaves: the leaf there of each tree.
    """
    for leaf in leaves:
        if not is_inexact(leaf.dtype):
            way_out = "give it set_to_zero with multi_transform"
            got = _in_place(described(leaf), tree, number)
            raise DTypeError(message(what, "leaves must be floats or complex numbers", got, way_out))
    expect_shapes(what, tree, number, leaves)


def expect_shapes(what: str, tree: Any, number: int, leaves: tuple[Any, ...]) -> None:
    """Raise ShapeError unless the leaves in one place of several trees have one shape, and DTypeError for no arrays."""
    for leaf in leaves:
        if leaf.dtype.kind == "O":
            got = _in_place("None" if leaf.shape == () and leaf.item() is None else described(leaf), tree, number)
            raise DTypeError(message(what, "leaves must be arrays of numbers", got))
    for leaf in leaves[1:]:
        if tuple(leaf.shape) != tuple(leaves[0].shape):
            shapes = f"{list(leaves[0].shape)} and {list(leaf.shape)}"
            rule = "a leaf must have the same shape in all trees"
            raise ShapeError(message(what, rule, _in_place(shapes, tree, number)))


def expect_updates(what: str, tree: Any, number: int, leaves: tuple[Any, Any]) -> None:
    """Raise unless a parameter can hold its sum with an update: no broadcasting, and no part of a number is lost."""
    param, update = leaves
    expect_shapes(what, tree, number, leaves)
    loses = "fraction" if not is_inexact(param.dtype) and is_inexact(update.dtype) else ""
    loses = "imaginary part" if is_complex(update.dtype) and not is_complex(param.dtype) else loses
    if loses:
        rule = f"a parameter must hold the {loses} of its update"
        got = _in_place(f"{described(update)} for a parameter of {param.dtype}", tree, number)
        way_out = "give it set_to_zero with multi_transform" if loses == "fraction" else "pass the real part"
        raise DTypeError(message(what, rule, got, way_out))


def expect_real(what: str, tree: Any, number: int, leaves: tuple[Any, ...]) -> None:
    """As :func:`expect_numbers`, for what needs an order of the elements."""
    expect_numbers(what, tree, number, leaves)
    if is_complex(leaves[0].dtype):
        got, way_out = _in_place(described(leaves[0]), tree, number), "use clip_by_global_norm or clip_by_block_rms"
        raise DTypeError(message(what, "leaves must be real", got, way_out))


def expect_to_fit(dtype: Any) -> Callable[..., None]:
    """As :func:`expect_numbers`; complex leaves must not lose their imaginary part in this dtype, if it is not None."""

    def expect(what: str, tree: Any, number: int, leaves: tuple[Any, ...]) -> None:
        expect_numbers(what, tree, number, leaves)
        leaf = leaves[0]
        if dtype is not None and is_complex(leaf.dtype) and not is_complex(np.dtype(dtype)):
            got = _in_place(f"{np.dtype(dtype)} for {described(leaf)}", tree, number)
            way_out = f"pass {leaf.dtype}, or None for that of each leaf"
            raise DTypeError(message(what, "a complex leaf needs a complex dtype", got, way_out))

    return expect


def _in_place(text: str, tree: Any, number: int) -> str:
    name = leaf_names(tree)[number]
    return f"{text} for tree{name}" if name else text


def expect_state(what: str, kind: Any, state: Any) -> Any:
    """The state, if it is of this kind, a class of named tuples, or of Optax's class of that name. Raises TypeError."""
    fields = getattr(type(state), "_fields", None)
    if kind._fields:
        fits = fields == kind._fields or (
            type(state).__name__ == kind.__name__ and {*kind._fields} <= {*(fields or ())}
        )
    else:
        fits = isinstance(state, tuple) and not state
    if not fits:
        raise wrong_state(what, f"the {kind.__name__}", state)
    return state


def wrong_state(what: str, expected: str, state: Any) -> TypeError:
    """The error of a state that another optimizer made, of none, and of a dict that was loaded without ``like``."""
    if isinstance(state, dict):
        got = f"a dict with the keys {', '.join(map(repr, state))}" if state else "an empty dict"
    elif hasattr(type(state), "_fields"):
        got = f"the named tuple {type(state).__name__}"
    else:
        got = f"a tuple of {len(state)}" if isinstance(state, tuple) else "None" if state is None else described(state)
    return TypeError(message(what, f"the state must be {expected} that its init made", got, _NEW_STATE))
