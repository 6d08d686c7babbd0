# SPDX-License-Identifier: Apache-2.0
"""Compiles programs that were read as text, and binds their arguments by position or by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import methodcaller
from typing import Any

import numpy as np

from .. import _core
from ..array import ShapeDtypeStruct
from ..dtypes import integer_range, is_complex, is_float, is_inexact, is_integer, numpy_dtype
from ..errors import UnsupportedError, message
from ..process.implementations import provides
from ..reports.explanations import Explanation
from ..shardings.mesh import Mesh, default_mesh
from ..trees import flatten
from .choices import Numbers
from .module import Module, Step, origin_of_text
from .propagation_options import PropagationOptions
from .stages import Program, RecordedCall, Traced, checked_target

__all__ = ["compiled_module"]

_MISSING: Any = object()  # in place of an argument


@dataclass(frozen=True)
class Parameter:
    """An argument of a function in a parsed program.

    Attributes:
        name: its name for callers and in errors: the one in ``loc("x")``, or else the one in the text, without ``%``.
        text_name: the name in the text.
    """

    name: str
    text_name: str


class TextTraced(Traced):
    """A program that was read as text, in the form that :class:`Program` compiles."""

    __slots__ = ("function", "parameters")

    def _way_to_type(self, dtype: np.dtype[Any], is_shape: bool, is_dtype: bool) -> str:
        return "pass an array of the type in the text" if is_shape else f'convert it with astype("{dtype.name}")'

    def __init__(self, module: Module, options: PropagationOptions, mesh: Mesh) -> None:
        core = module._core
        named = (module._origin or origin_of_text(core.text(locations=True))).module("%")
        self.function = core.main.name
        self.parameters = _parameters(core.main, named.main)
        takes, returns = len(self.parameters), len(core.result_types)
        in_tree = flatten(((0,) * takes, {}))[1]
        out_tree = flatten(0 if returns == 1 else (0,) * returns)[1]
        names = [parameter.name for parameter in self.parameters]
        super().__init__(core, options, mesh, RecordedCall(in_tree, [], names, out_tree))
        self._origin = module._origin

    def __reduce__(self) -> tuple[Any, ...]:
        module = Module(self._core, self._options, self._origin)
        numbers = self._numbers or Numbers.of(self._core)
        return _unpickled, (module, self._options, self.mesh, self._call, numbers)

    def _changed(self, step: Step) -> TextTraced:
        origin = self._origin and self._origin.then(step)
        return TextTraced(Module(step(self._core), self._options, origin), self._options, self.mesh)

    def read_types(self) -> None:
        """Read the types of the arguments of a program that compiles: dtypes without kernels have no NumPy dtype."""
        avals = [ShapeDtypeStruct(type.shape, numpy_dtype(type.dtype)) for type in self._core.argument_types]
        self._call = replace(self._call, in_avals=avals)

    def _explain(self, compiled: Any, name: str, counterfactual: bool) -> Explanation:
        # The compiled program has no names of the text, so its propagation runs again on one that has them.
        return self._why_compiled(name, counterfactual, self._options)

    def _leaves_of_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        given: list[Any] = [*args[: len(self.parameters)], *[_MISSING] * (len(self.parameters) - len(args))]
        for name, value in kwargs.items():
            at = self._index_of(name)
            if given[at] is not _MISSING:
                raise TypeError(message("call", f"argument {name} must be given once", "it by position and by name"))
            given[at] = value
        missing = [i for i, value in enumerate(given) if value is _MISSING]
        if missing or len(args) > len(given):
            takes = f"@{self.function} takes {self._described(range(len(given)))}"
            got = f"{len(args) + len(kwargs)} arguments" if len(args) + len(kwargs) != 1 else "1 argument"
            way_out = f"also pass {self._described(missing)}" if missing else ""
            raise TypeError(message("call", takes, got, way_out))
        return [_lifted(value, aval) for value, aval in zip(given, self.in_avals)]

    def _index_of(self, name: str) -> int:
        for i, parameter in enumerate(self.parameters):
            if name == parameter.name:
                return i
        for i, parameter in enumerate(self.parameters):
            if name == parameter.text_name:
                return i
        known = ", ".join(parameter.name for parameter in self.parameters) or "none"
        raise TypeError(message("call", f"an argument of @{self.function} must be one of {known}", repr(name)))

    def _described(self, indices: Any) -> str:
        types = [(self.parameters[i].name, self.in_avals[i]) for i in indices]
        return ", ".join(f"{name}: {aval.dtype.name}{list(aval.shape)}" for name, aval in types) or "no arguments"


def _parameters(main: _core.ir.Function, named: _core.ir.Function) -> list[Parameter]:
    """The arguments of a function, with the names in ``loc(...)`` and, in ``named``, those in the text."""
    parameters = []
    for given, argument in zip(main.body.arguments, named.body.arguments):
        text_name = argument.name.rpartition("%")[2]
        parameters.append(Parameter(given.name or text_name, text_name))
    return parameters


def _lifted(value: Any, aval: ShapeDtypeStruct) -> Any:
    """Give an argument the dtype of the text where NumPy would not: Python numbers, dtypes of ml_dtypes in files."""
    if isinstance(value, np.ndarray) and value.dtype.type is np.void and aval.dtype.isbuiltin == 2:
        return (
            value.view(aval.dtype) if value.dtype.itemsize == aval.dtype.itemsize else value
        )  # np.save writes no name
    if aval.shape or isinstance(value, np.generic) or not isinstance(value, (bool, int, float, complex)):
        return value
    dtype = aval.dtype
    if isinstance(value, bool):
        fits = dtype.kind == "b"
    elif isinstance(value, int):
        low, high = integer_range(dtype) if is_integer(dtype) else (1, 0)
        fits = is_inexact(dtype) or low <= value <= high
    else:
        fits = is_complex(dtype) or (is_float(dtype) and isinstance(value, float))
    if not fits:
        return value
    return np.asarray(value, aval.dtype)


def _unpickled(
    module: Module, options: PropagationOptions, mesh: Mesh, call: RecordedCall, numbers: Numbers
) -> TextTraced:
    traced = TextTraced(module, options, mesh)
    traced._call, traced._numbers = call, numbers
    return traced


@provides("compile_module")
def compiled_module(module: Module, mesh: Mesh | None, func: str, how: PropagationOptions) -> Program:
    """Compile a function of a parsed program. Implements :meth:`Module.compile`."""
    mesh = checked_target(mesh, func)
    name = _function_named(module._core, func)
    entered = Module._changed(module, methodcaller("with_entry", name))
    own = entered._core.program_mesh
    if own is not None and not own.name:  # sdy.sharding<mesh<["x"=2]>, …>
        entered = entered.apply("lift_inlined_meshes")
        own = entered._core.program_mesh
    default = Mesh._wrap(own) if own is not None else default_mesh() or Mesh({"device": 1})
    traced = TextTraced(entered, how, default if mesh is None else mesh)
    program = Program(traced)
    traced.read_types()
    return program


def _function_named(core: _core.ir.Module, func: str) -> str:
    name = func.removeprefix("@")
    names = [function.name for function in core.functions]
    if name in names or (name == "main" and len(names) == 1):
        return names[0] if len(names) == 1 else name
    if not names:
        return core.main.name  # raises the error of a program without functions
    rule = "func must be a function of the program"
    raise UnsupportedError(message("compile", rule, repr(func), f"it has {', '.join(_listed(names))}"))


def _listed(names: list[str]) -> Iterator[str]:
    most = 8
    yield from names[:most]
    if len(names) > most:
        yield f"and {len(names) - most} more"
