# SPDX-License-Identifier: Apache-2.0
"""Linear functions that a derivative leaves behind: what `vjp` and `linearize` return.

Such a function is a part of a program, and the values that this part reads. It is a tree whose leaves are these values,
so that a jitted function may return it, and a later program call it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import _core
from ..array_leaves import lifted_results
from ..errors import MeshError, ShapeError, headed, message
from ..jit import JitFunction, run_as_program
from ..process.traceback_filtering import entry_point
from ..recording.tracing import Trace, Tracer, current_trace
from ..shardings.mesh import Mesh
from ..trees.registry import register_pytree_node
from .variables import Types, leaves_like

__all__ = ["LinearFunction", "LinearPart", "recorded"]


@dataclass(eq=False)
class LinearPart:
    """A region of a recorded program, which takes the values that it captured and then its arguments.

    Attributes:
        what: the public function that made it.
        kind: what its arguments are, "cotangent" or "tangent".
        trace: the program.
        region: the number of the region in it.
        inputs: the types of the arguments.
        outputs: the types of the results.
        is_unary: whether it takes one argument with the tree of ``inputs``, in place of its parts.
        names: what the results are called in reports.
    """

    what: str
    kind: str
    trace: Trace
    region: int
    inputs: Types
    outputs: Types
    is_unary: bool
    names: list[str]
    programs: dict[Any, JitFunction] = field(default_factory=dict)
    _text: str | None = None

    def append(self, trace: Trace, captured: Sequence[Tracer], arguments: Sequence[Tracer]) -> list[int]:
        """Append its ops to a program."""
        region = self.region
        if trace is not self.trace:
            region = trace.core.import_text(self._text_in(trace))
        op_count = trace.core.op_count
        results: list[int] = trace.core.append_region(region, [x._value for x in (*captured, *arguments)])
        trace.core.name_gradients(results, self.names, op_count)
        return results

    def _text_in(self, trace: Trace) -> str:
        if self._text is None:
            self._text = self.trace.core.program_of(self.region).text(locations=True)
        found = _core.ir.parse(self._text).program_mesh if "<@" in self._text else None
        mesh = None if found is None else Mesh._wrap(found)
        if mesh is not None and trace.mesh is None:
            trace.mesh = mesh
        elif mesh is not None and mesh != trace.mesh:
            rule = f"a function that {self.what} returned must be called on the mesh that it was made on, {mesh!r}"
            raise MeshError(message(self.what, rule, repr(trace.mesh), "move the arrays with device_put"))
        return self._text


class LinearFunction:
    """A linear function of trees of arrays. Each call runs the part of the program that depends on its arguments."""

    def __init__(self, part: LinearPart, captured: Sequence[Any]) -> None:
        self._part = part
        self._captured = tuple(captured)

    @entry_point
    def __call__(self, *args: Any) -> Any:
        """The derivative along ``args``: tangents of the arguments, or a cotangent of the value."""
        part = self._part
        if part.is_unary and len(args) != 1:
            raise ShapeError(message(part.what, f"its function takes one {part.kind}", f"{len(args)} arguments"))
        floats = leaves_like(part.what, args[0] if part.is_unary else args, part.inputs, part.kind)
        trace = current_trace()
        if trace is None:
            fun = _Named(part.what)
            made = run_as_program(part.what, _call, fun, part.programs, (self, tuple(floats)), {})
        else:
            made = _append(trace, self, floats)
        return part.outputs.filled(made)

    def __repr__(self) -> str:
        return f"<linear function of {self._part.what}>"


def recorded(
    what: str, fun: Callable[..., Any], record: Callable[[Trace, tuple[Any, ...]], Any], primals: tuple[Any, ...]
) -> Any:
    """``record(trace, primals)`` in the current program, or in one of its own outside of jit."""

    def in_program(*args: Any) -> Any:
        inner = current_trace()
        assert inner is not None
        return record(inner, args)

    trace = current_trace()
    if trace is not None:
        return record(trace, primals)
    programs: dict[Any, JitFunction] = {}
    return run_as_program(what, in_program, fun, programs, primals, {})


class _Named:
    """What a program of its own is called."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, function: Any, arguments: Any) -> Any:
        return function(*arguments)


def _call(function: LinearFunction, arguments: tuple[Any, ...]) -> list[Tracer]:
    trace = current_trace()
    assert trace is not None
    return _append(trace, function, arguments)


def _append(trace: Trace, function: LinearFunction, arguments: Sequence[Any]) -> list[Tracer]:
    part = function._part
    captured, _ = lifted_results(trace, part.what, list(function._captured))
    lifted = [trace.lift(x) for x in arguments]
    with headed(part.what):
        results = part.append(trace, captured, lifted)
    types = zip(part.outputs.shapes, part.outputs.dtypes, part.outputs.are_floats)
    floats = [(shape, dtype) for shape, dtype, is_float in types if is_float]
    return [Tracer(trace, value, shape, dtype) for value, (shape, dtype) in zip(results, floats)]


def _flattened(function: LinearFunction) -> tuple[tuple[Any, ...], LinearPart]:
    return function._captured, function._part


register_pytree_node(LinearFunction, _flattened, LinearFunction)
