# SPDX-License-Identifier: Apache-2.0
"""A table of functions that arrays and modules call and that higher modules define. It is filled once, during import.

    IMPLEMENTATIONS.apply_ufunc(np.tanh, "__call__", (x,), {})      shardwise.numpy records the op

Array methods cannot import :mod:`shardwise.numpy` or :mod:`shardwise.jit`, which import arrays, and modules cannot
import the compiler's stages. The modules that define these functions register them here with :func:`provides`; a module
that few programs need is imported at the first call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["IMPLEMENTATIONS", "Implementations", "provides"]

_F = TypeVar("_F", bound=Callable[..., Any])


class _Unset:
    """The placeholder of an operation until its module is imported."""

    __slots__ = ("_operation",)

    def __init__(self, operation: str) -> None:
        self._operation = operation

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"implementations: {self._operation} is not set; import shardwise as a whole")


class _Later(_Unset):
    """The placeholder of an operation whose module is imported at the first call."""

    __slots__ = ("_load", "_table")

    def __init__(self, operation: str, table: Implementations, load: Callable[[], object]) -> None:
        super().__init__(operation)
        self._table = table
        self._load = load

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._load()
        function: Callable[..., Any] = getattr(self._table, self._operation)
        return super().__call__() if function is self else function(*args, **kwargs)


class Implementations:
    """One function per operation, each set once. Calling an unset function is an error."""

    apply_ufunc: Callable[..., Any]  # (ufunc, method, inputs, kwargs): the __array_ufunc__ of tracers
    apply_function: Callable[..., Any]  # (function, args, kwargs): the __array_function__ of tracers
    getitem: Callable[..., Any]  # (tracer, index)
    astype: Callable[..., Any]  # (tracer, dtype)
    view: Callable[..., Any]  # (tracer, dtype)
    at: Callable[..., Any]  # (array): x.at, for tracers and Arrays
    compile_module: Callable[..., Any]  # (module, mesh, function name, options): Module.compile
    to_jax: Callable[..., Any]  # (program, devices, mesh): Program.to_jax
    export_text: Callable[..., Any]  # (program, locations, generic): Program.as_text("export")
    to_source: Callable[..., Any]  # (program, target, path): Program.to_source
    jax_shardings: Callable[..., Any]  # (program, devices, mesh): Program.jax_shardings
    checkpoint_policy: Callable[..., Any]  # (report): Program.checkpoint_policy
    eager_call: Callable[..., Any]  # (function, args, kwargs): one NumPy call on Arrays

    def __init__(self) -> None:
        for operation in Implementations.__annotations__:
            setattr(self, operation, _Unset(operation))

    def provide(self, operation: str, function: Callable[..., Any]) -> None:
        """Set an operation. Raises RuntimeError if there is none of this name, or if it is set already."""
        if not isinstance(getattr(self, operation, None), _Unset):
            rule = "is set already" if hasattr(self, operation) else "is not an operation of arrays"
            raise RuntimeError(f"implementations: {operation} {rule}")
        setattr(self, operation, function)

    def provide_later(self, operation: str, load: Callable[[], object]) -> None:
        """Call ``load`` when the operation is first called; it imports the module that provides it."""
        self.provide(operation, _Later(operation, self, load))


IMPLEMENTATIONS = Implementations()


def provides(operation: str) -> Callable[[_F], _F]:
    """Make the decorated function or class the implementation of an operation of arrays."""

    def register(function: _F) -> _F:
        IMPLEMENTATIONS.provide(operation, function)
        return function

    return register
