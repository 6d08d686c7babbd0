# SPDX-License-Identifier: Apache-2.0
"""The functions that arrays call and that are defined in layers above them: a table, filled once during import.

    IMPLEMENTATIONS.apply_ufunc(np.tanh, "__call__", (x,), {})      shardwise.numpy records the op

A method of an array cannot import :mod:`shardwise.numpy` or :mod:`shardwise.jit`, which are written in terms of arrays.
The modules that define these functions enter them here with :func:`provides`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

__all__ = ["IMPLEMENTATIONS", "Implementations", "provides"]

_F = TypeVar("_F", bound=Callable[..., Any])


class Implementations:
    """One function per operation. Each is set once; an error if it is read before, or set again."""

    apply_ufunc: Callable[..., Any]  # (ufunc, method, inputs, kwargs): the __array_ufunc__ of tracers
    apply_function: Callable[..., Any]  # (function, args, kwargs): the __array_function__ of tracers
    getitem: Callable[..., Any]  # (tracer, index)
    astype: Callable[..., Any]  # (tracer, dtype)
    view: Callable[..., Any]  # (tracer, dtype)
    at: Callable[..., Any]  # (array): x.at, for tracers and Arrays
    eager_call: Callable[..., Any]  # (function, args, kwargs): one NumPy call on Arrays

    def __setattr__(self, name: str, function: Any) -> None:
        if name not in Implementations.__annotations__:
            raise AttributeError(f"implementations: no operation is called {name!r}")
        if name in vars(self):
            raise RuntimeError(f"implementations: {name} is set already")
        super().__setattr__(name, function)

    if not TYPE_CHECKING:  # a type checker would take every name for known

        def __getattr__(self, name: str) -> NoReturn:
            if name in Implementations.__annotations__:
                raise RuntimeError(f"implementations: {name} is not set; import shardwise as a whole")
            raise AttributeError(f"implementations: no operation is called {name!r}")


IMPLEMENTATIONS = Implementations()


def provides(operation: str) -> Callable[[_F], _F]:
    """Make the decorated function or class the implementation of an operation of arrays."""

    def register(function: _F) -> _F:
        setattr(IMPLEMENTATIONS, operation, function)
        return function

    return register
