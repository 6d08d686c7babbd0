# SPDX-License-Identifier: Apache-2.0
"""Examples of ops that are given as texts, and which operands of an op have a gradient."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from op_texts import OF_PARTITIONED_PROGRAMS, OF_RESHARDED_PROGRAMS, TEXTS

import shardwise as sw
from shardwise import _core
from shardwise.dtypes import is_inexact, numpy_dtype
from tests.op.dtype_values import ALL_DTYPES, mlir_name

LONG_LISTS = re.compile(r"dense<\[.{40,}?\]>")
# The element type of an argument that must be real, or complex, where the dtype under test is not.
REAL = {"complex64": "f32", "complex128": "f64"}
COMPLEX = {"float64": "complex<f64>", "complex128": "complex<f64>"}


class TextExample(NamedTuple):
    """An op in a module: the program that was read, or one that the partitioner made of it."""

    op: Any
    module: Any

    @property
    def statement(self) -> str:
        """The op's lines in the text, without its regions."""
        lines = self.module.text().splitlines()
        named = {"stablehlo.custom_call": f"@{self.op.attributes.get('call_target_name')}("}
        own = re.compile(rf"(?<![\w.]){re.escape(named.get(self.op.name, self.op.name))}(?!\w)")
        begin = next(i for i, line in enumerate(lines) if own.search(line) and not line.strip().startswith("func.func"))
        first = LONG_LISTS.sub("dense<…>", lines[begin].strip())
        indent = lines[begin][: len(lines[begin]) - len(lines[begin].lstrip())]
        if lines[begin + 1].startswith(f"{indent}cond"):
            return f"{first} cond {{ … }} do {{ … }}"
        if not first.endswith("{"):
            return first
        last = next(line for line in lines[begin + 1 :] if line.startswith((f"{indent}}})", f"{indent}}} :")))
        return f"{first} … {last.strip()}"

    @property
    def rule(self) -> str:
        """The sharding rule; empty if there is none."""
        found = dict(self.module.sharding_rules()).get(self.op.name, "")
        return found if self.op.definition.has_rule else ""

    @property
    def ranges(self) -> dict[tuple[int, int], dict[str, Any]]:
        """By operand and dim, the range that is read if it is not the whole dim."""
        return dict(dict(self.module.ranges).get(self.op.name, {}))


def filled(text: str, dtype: str) -> str:
    """The program for a dtype."""
    own = mlir_name(dtype)
    for letter, by in (("t", own), ("r", REAL.get(dtype, own)), ("c", COMPLEX.get(dtype, "complex<f32>"))):
        text = text.replace(f"{{{letter}}}", by)
    return text


def _ops_of(region: Any) -> Iterator[Any]:
    for op in region.ops:
        yield op
        for inner in op.regions:
            yield from _ops_of(inner)


def _found(name: str, modules: Sequence[Any]) -> TextExample | None:
    for module in modules:
        for function in module.functions:
            for op in _ops_of(function.body):
                if op.name == name:
                    return TextExample(op, module)
    return None


def example_of(name: str, text: str) -> TextExample:
    """The op in the program, or in what the partitioner makes of it."""
    module = sw.parse(text)
    modules = [module._core]
    if name in OF_PARTITIONED_PROGRAMS:
        modules = list(_compiled(module)._compiled.stages.values())
    example = _found(name, modules)
    assert example is not None, f"the program of {name} does not have it"
    return example


def _compiled(module: sw.Module) -> sw.Program:
    return module.compile() if module._core.meshes else module.compile(sw.Mesh({"x": 1}))


def text_examples(name: str) -> list[TextExample]:
    """The example of an op of TEXTS."""
    if name not in TEXTS:
        return []
    dtype = "uint32" if name == "shardwise.random_bits" else "float32"
    return [example_of(name, filled(TEXTS[name], dtype))]


@cache
def text_dtypes(name: str, text: str, tried: tuple[str, ...] = ()) -> list[str]:
    """The dtypes of the op for which a program with it compiles and runs on every device."""
    found = [_own_dtype(name, text, dtype) for dtype in tried or ALL_DTYPES if _runs(name, filled(text, dtype))]
    return [dtype for dtype in ALL_DTYPES if dtype in found]


def _own_dtype(name: str, text: str, dtype: str) -> str:
    """The dtype of the program, if the op has a value of it, or else the op's."""
    op = example_of(name, filled(text, dtype)).op
    inner = [x for region in op.regions for each in _ops_of(region) for x in each.results]
    found = [x.type.dtype for x in (*op.operands, *op.results, *inner)]
    return dtype if dtype in found else found[0]


def _runs(name: str, text: str) -> bool:
    try:
        if name in OF_RESHARDED_PROGRAMS:
            _core.passes.run_passes(_core.ir.parse(text), ["localize"])  # sw.parse takes programs before plan_reshards
            return True
        program = _compiled(sw.parse(text))
        if name in OF_PARTITIONED_PROGRAMS and _found(name, list(program._compiled.stages.values())) is None:
            return False
        with np.errstate(all="ignore"):
            program.run(*[np.ones(x.shape, x.dtype) for x in program._traced.in_avals], faithful=True)
    except sw.Error:
        return False
    return True


# ---- gradients ------------------------------------------------------------------------------------------------------


def depends_on(value: Any, on: set[int]) -> bool:
    """Whether a value is computed from one with these numbers."""
    waiting, seen = [value], set()
    while waiting:
        value = waiting.pop()
        if value.number in on:
            return True
        op = value.defining_op
        if value.number in seen or op is None:
            continue
        seen.add(value.number)
        waiting += [*op.operands, *(x for region in op.regions for inner in _ops_of(region) for x in inner.operands)]
    return False


def _is_inexact(kind: Any) -> bool:
    return kind.dtype in ALL_DTYPES and is_inexact(numpy_dtype(kind.dtype))


def arguments_with_gradient(module: Any) -> dict[int, bool]:
    """For each float argument of a program, whether its gradient depends on the cotangents of the results."""
    trace = _core.ir.Trace("gradient")
    arguments = [trace.argument(kind.shape, kind.dtype, "") for kind in module.argument_types]
    types = [(kind.shape, kind.dtype) for kind in module.result_types]
    region = trace.import_text(module.text())
    results = trace.emit_op("sdy.named_computation", arguments, {"name": "f"}, types, [region])
    outputs = [(made[0], kind) for made, kind in zip(results, module.result_types) if _is_inexact(kind)]
    seeds = [trace.argument(kind.shape, kind.dtype, "") for _, kind in outputs]
    wrt = [i for i, kind in enumerate(module.argument_types) if _is_inexact(kind)]
    gradients = trace.vjp([value for value, _ in outputs], seeds, [arguments[i] for i in wrt])
    body = trace.finish(gradients).main.body
    numbers = {value.number for value in body.arguments[len(arguments) :]}
    return {i: depends_on(gradient, numbers) for i, gradient in zip(wrt, body.results)}


def can_batch(module: Any, size: int = 3) -> str:
    """Empty if the program takes a leading dim on its first argument, or else the error."""
    trace = _core.ir.Trace("batch")
    region = trace.import_text(module.text())
    arguments = [
        trace.argument((size, *kind.shape) if i == 0 else kind.shape, kind.dtype, "")
        for i, kind in enumerate(module.argument_types)
    ]
    try:
        trace.batch(region, arguments, [i == 0 for i in range(len(arguments))], size)
    except sw.Error as error:
        return str(error)
    return ""


def sent_with_split_batch(module: Any, devices: int = 4) -> float:
    """The bytes that a program sends if dim 0 of every argument and result of more than one dim is sharded."""
    mesh = _core.mesh.Mesh("mesh", [("x", devices)])

    def split(kind: Any) -> Any:
        return _core.mesh.Sharding.make(mesh, [(["x"] if i == 0 else [], False, None) for i in range(len(kind.shape))])

    trace = _core.ir.Trace("split")
    arguments = [trace.argument(kind.shape, kind.dtype, "", split(kind)) for kind in module.argument_types]
    types = [(kind.shape, kind.dtype) for kind in module.result_types]
    region = trace.import_text(module.text())
    results = trace.emit_op("sdy.named_computation", arguments, {"name": "f"}, types, [region])
    program = trace.finish([made[0] for made in results], [split(kind) for kind in module.result_types])
    return float(sw.parse(program.text()).compile().collectives().total_bytes)
