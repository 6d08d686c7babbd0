# SPDX-License-Identifier: Apache-2.0
"""A compiled program as a Python script that needs JAX and NumPy alone."""

from __future__ import annotations

import ast
import base64
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ...dtypes import numpy_dtype
from ...errors import UnsupportedError, message
from ...stages import Program
from .collectives import refs_used
from .literals import axes_text, wrapped
from .mesh_axes import MeshAxes
from .scope import Scope, Shared, Transfer, listed

__all__ = ["Border", "Script", "helpers_of", "script_of"]


@dataclass(frozen=True)
class Border:
    """An argument or a result of the program.

    Attributes:
        shape: the user's.
        padded: the shape of the JAX array, a multiple of the number of shards in each dim.
        spec: the refined axes of each dim.
    """

    shape: tuple[int, ...]
    padded: tuple[int, ...]
    dtype: np.dtype[Any]
    spec: tuple[tuple[str, ...], ...]

    @property
    def text(self) -> str:
        """The spec as ``P(…)``."""
        dims = [axes_text(axes) if axes else "None" for axes in self.spec]
        while dims and dims[-1] == "None":
            dims.pop()
        return f"P({', '.join(dims)})"


@dataclass(frozen=True)
class Script:
    """A script, and what it has of the program.

    Attributes:
        head, body: the definitions before and of ``local``, the program of one device.
        constants: the larger constants, by name.
        inputs, outputs: hidden ones included.
        needs_x64: whether it has values of 64 bits, which JAX narrows unless x64 is enabled.
    """

    body: str
    head: str
    name: str
    constants: dict[str, np.ndarray]
    axes: MeshAxes
    inputs: list[Border]
    outputs: list[Border]
    arguments: list[str]
    hidden: list[np.ndarray]  # the arrays that the program closes over, its last arguments
    visible: tuple[int, int]  # the number of arguments and results of the user
    transfers: list[Transfer]
    needs_x64: bool

    @property
    def stored(self) -> dict[str, np.ndarray]:
        """All arrays of the script, by name."""
        return {**self.constants, **{f"hidden{i}": array for i, array in enumerate(self.hidden)}}

    def runnable(self) -> str:
        """The definitions without the constants, for a process that has them."""
        return f"{self.head}\n\n{self.body}"

    def whole(self, title: str, file: str | None) -> str:
        """The script; ``file``: the name of the file beside it that holds the constants."""
        main = _MAIN_X64 if self.needs_x64 else ""
        count = self.axes.mesh.size
        order = list(self.axes.mesh.device_ids or range(count))
        devices = "np.array(jax.devices()[:COUNT])".replace("COUNT", str(count))
        devices += "" if order == list(range(count)) else f"[{order}]"
        rows = [f"    {listed(repr(x) for x in (b.shape, b.padded, b.dtype.name))}," for b in self.inputs]
        results = [f"    {b.shape}," for b in self.outputs[: self.visible[1]]]
        hidden = [f"hidden{i}" for i in range(len(self.hidden))]
        passed = "".join(f', CONSTANTS["{name}"]' for name in hidden)
        return "\n".join(
            [
                f'"""{title}"""',
                "",
                *(["from pathlib import Path", ""] if file is not None else []),
                *(["import base64", ""] if file is None and self.stored else []),
                self.head,
                *self._constants(file),
                main + "INPUTS = [  # shape, shape on the devices, dtype\n" + "\n".join(rows) + "\n]",
                "RESULTS = [\n" + "\n".join(results) + "\n]",
                "",
                "",
                self.body,
                "",
                "",
                _MAIN.replace("DEVICES", devices).replace("PASSED", passed).replace("ARGUMENTS", str(self.visible[0])),
            ]
        )

    def _constants(self, file: str | None) -> list[str]:
        constants = self.stored
        if not constants:
            return []
        if file is not None:
            view = "".join(
                f'\nCONSTANTS["{name}"] = CONSTANTS["{name}"].view(jnp.{array.dtype.name})'
                for name, array in constants.items()
                if array.dtype.isbuiltin != 1
            )
            return [f'CONSTANTS = dict(np.load(Path(__file__).with_name("{file}"))){view}']
        return ["CONSTANTS = {", *[f'    "{name}": {_embedded(array)},' for name, array in constants.items()], "}"]


_MAIN_X64 = 'jax.config.update("jax_enable_x64", True)\n'
_MAIN = '''def main(*args):
    """The results for NumPy arguments, on the devices of this process."""
    mesh = jax.sharding.Mesh(DEVICES.reshape(tuple(SIZES.values())), ALL)
    placed = []
    for x, spec, (shape, padded, dtype) in zip([*argsPASSED], IN_SPECS, INPUTS):
        x = np.pad(np.asarray(x, dtype), [(0, p - n) for n, p in zip(shape, padded)])
        placed.append(jax.device_put(x, jax.sharding.NamedSharding(mesh, spec)))
    run = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=IN_SPECS, out_specs=OUT_SPECS, check_vma=False))
    results = run(*placed)
    return [np.asarray(y)[tuple(map(slice, shape))] for y, shape in zip(results, RESULTS)]


if __name__ == "__main__":
    for result in main(*[np.ones(shape, dtype) for shape, _, dtype in INPUTS[: ARGUMENTS]]):
        print(result)
'''


def _embedded(array: np.ndarray) -> str:
    data = base64.b85encode(array.tobytes()).decode()
    kind = f'"{array.dtype.name}"' if array.dtype.isbuiltin == 1 else f"jnp.{array.dtype.name}"
    return f'np.frombuffer(base64.b85decode("{data}"), {kind}).reshape({array.shape})'


def script_of(program: Program) -> Script:
    """Emit a compiled program."""
    module = program._compiled.stages["local"]
    body = module.main.body
    mesh = program.mesh._core
    borders = [*body.arguments, *body.results]
    used = [ref for value in borders if value.placement is not None for refs, _ in value.placement.dims for ref in refs]
    axes = MeshAxes.of(mesh, used, refs_used(module, mesh))
    shared = Shared(module, axes)
    traced = program._traced
    inputs = [
        _border(axes, value, shape, dtype, f"argument {name}")
        for value, (shape, dtype, name) in zip(body.arguments, _argument_types(program))
    ]
    types = traced._core.result_types
    outputs = [
        _border(axes, value, tuple(kind.shape), numpy_dtype(kind.dtype), f"result {i}")
        for i, (value, kind) in enumerate(zip(body.results, types))
    ]
    scope = Scope(shared)
    names = [name for _, _, name in _argument_types(program)]
    arguments = [scope.argument(value, name) for value, name in zip(body.arguments, names)]
    returned = scope.region(body)
    hidden = [np.asarray(array) for array in traced._hoisted]
    local = [f"def local({', '.join(arguments)}):", *scope.lines, *wrapped(f"return ({returned},)", "    ")]
    if not outputs:
        local[-1] = "    return ()"
    head = _head(shared, inputs, outputs)
    called = [line for lines in shared.functions.values() for line in lines]
    text = "\n".join([*helpers_of(tuple(shared.helpers)), *called, *local])
    count = (len(traced.in_avals), traced.out_tree.num_leaves)
    wide = any(value.type.dtype in _WIDE for value in _values(module)) or any(b.dtype.name in _WIDE for b in inputs)
    return Script(
        text,
        head,
        _name(program),
        shared.constants,
        axes,
        inputs,
        outputs,
        arguments,
        hidden,
        count,
        shared.transfers,
        wide,
    )


def _name(program: Program) -> str:
    text = program.as_text("global").split(maxsplit=2)[1]
    return text.removeprefix("@").removeprefix("jit_") if text.startswith("@") else "main"


_WIDE = ("float64", "int64", "uint64", "complex128")


def _values(module: Any) -> list[Any]:
    return [value for op in module.ops for value in op.results]


def _argument_types(program: Program) -> list[tuple[tuple[int, ...], np.dtype[Any], str]]:
    traced = program._traced
    rows = [(aval.shape, aval.dtype, name) for aval, name in zip(traced.in_avals, traced.in_names)]
    return rows + [(array.shape, array.dtype, f"hidden_{i}") for i, array in enumerate(traced._hoisted)]


def _border(axes: MeshAxes, value: Any, shape: tuple[int, ...], dtype: np.dtype[Any], what: str) -> Border:
    placement = value.placement
    if placement is None:
        return Border(shape, shape, dtype, ((),) * len(shape))
    if placement.unreduced:
        rule = f"{what} must be reduced, as JAX's arrays are"
        raise UnsupportedError(message("to_jax", rule, repr(placement), "leave unreduced= out of its annotation"))
    if not axes.is_main(placement.mesh):
        rule = f"{what} must be on the mesh of the program, since one jit of JAX has one mesh"
        raise UnsupportedError(message("to_jax", rule, repr(placement), "annotate it on the program's mesh"))
    dims = [refs for refs, _ in placement.dims]
    spec = tuple(axes.spec(dims, what))
    padded = tuple(n * int(np.prod([axes.sizes[axis] for axis in own])) for n, own in zip(value.type.shape, spec))
    return Border(shape, padded, dtype, spec)


def _head(shared: Shared, inputs: list[Border], outputs: list[Border]) -> str:
    tables = [f"{name} = {text}" for text, name in shared.tables.items()]
    uses_math = any("math." in text for text in helpers_of(tuple(shared.helpers)))
    imports = ["import math", ""] if uses_math else []
    lines = [
        *imports,
        "import jax",
        "import jax.numpy as jnp",
        "import numpy as np",
        "from jax import lax",
        "from jax.sharding import PartitionSpec as P",
        "",
        f"SIZES = {shared.axes.sizes}",
        "ALL = tuple(SIZES)",
        *wrapped(f"IN_SPECS = ({''.join(f'{b.text}, ' for b in inputs).rstrip(' ')})", ""),
        *wrapped(f"OUT_SPECS = ({''.join(f'{b.text}, ' for b in outputs).rstrip(' ')})", ""),
        *tables,
    ]
    return "\n".join(lines)


@cache
def _library() -> dict[str, tuple[str, tuple[str, ...]]]:
    """The functions of helpers.py: text, and the functions that each calls."""
    source = Path(__file__).with_name("helpers.py").read_text()
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    names = {node.name for node in functions}
    found = {}
    for node in functions:
        called = {x.id for x in ast.walk(node) if isinstance(x, ast.Name)} & names - {node.name}
        found[node.name] = (str(ast.get_source_segment(source, node)), tuple(sorted(called)))
    return found


def helpers_of(wanted: tuple[str, ...]) -> list[str]:
    """The text of functions of helpers.py, and of those that they call."""
    library, needed, open_names = _library(), set(), list(wanted)
    while open_names:
        name = open_names.pop()
        if name not in needed:
            needed.add(name)
            open_names += library[name][1]
    return [f"{library[name][0]}\n\n" for name in library if name in needed]
