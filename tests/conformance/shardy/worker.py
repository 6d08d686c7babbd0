# SPDX-License-Identifier: Apache-2.0
"""Shardy as a process: reads a JSON list of requests a line, writes one JSON answer a line for each of them.

Some of Shardy's passes end the process on input they do not expect, so it runs here and not in the tests' process.

    {"do": "run", "text": "module …", "passes": "sdy-basic-propagate"}
    → {"arguments": ["#sdy.sharding<@mesh, …>", null], "ops": [["stablehlo.add", "…"], null], "results": […],
       "rules": […]}
    {"do": "compare", "text": "module …", "passes": "…", "ours": "module …"}    by the ops' locations, regions included
    → {"differences": [["n7 stablehlo.add", ["#sdy.sharding_per_value<…>"], null]]}
    {"do": "origins", "text": "module …", "passes": "sdy-basic-propagate", "edges_only": false}    debug_origins.py
    → {"text": "module …", "ops": […], "origins": {…}, "edges": […]}
    {"do": "parse", "text": "module …"}         in generic form, without locations and JAX's labels
    → {"text": "…"}
    {"do": "print", "text": "module …", "passes": "…"}    as the passes leave it
    → {"text": "…"}
    {"do": "lower", "name": "mlp", "locations": false}      a function of conformance/jax/programs.py, as JAX prints it
    → {"text": "…"}

Ops are numbered in the order of the text before the passes; an op that a pass removed is null. An error of the parser
or verifier is the answer {"error": "…"}.
"""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Callable
from typing import Any

import jax
from jax._src.interpreters import mlir as jax_mlir
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import stablehlo

from tests.conformance.shardy.debug_origins import origins

MARK = "test.number"
LOCATION = re.compile(r'loc\("(\w+)"\)')
_WHOLE = r"<@\w+, \[(\{\}(, )?)*\]>"
WHOLE = re.compile(rf"#sdy\.sharding{_WHOLE}|#sdy\.sharding_per_value<\[({_WHOLE}(, )?)*\]>")
ALONE = "sdy-propagation"  # not a name of Shardy's
RESHARDS = re.compile(r"func\.func\(sdy-insert-explicit-reshards\{[^}]*\}\),|sdy-insert-func-call-reshards,")
MERGER = "func.func(sdy-constant-or-scalar-merger),"
# On the way out, and in (oracle_runs.with_cases).
RENAMED = {
    "sdy.constant": "stablehlo.constant",
    "sdy.reshard": "sdy.sharding_constraint",
    "stablehlo.if": "stablehlo.case",
}
EFFECTS = tuple(
    f"stablehlo.{name}"
    for name in ("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute",
                 "cross-replica-sum", "reduce_scatter", "rng", "send", "recv", "infeed", "outfeed", "composite")
)  # fmt: skip
SHARDING_ATTRIBUTES = ("sdy.sharding", "sharding", "in_shardings", "out_shardings", "group_id")


def attribute(attributes: Any, name: str) -> str | None:
    return str(attributes[name]) if name in attributes else None


def main_function(module: Any) -> Any:
    for op in module.body.operations:
        if op.operation.name == "func.func" and ir.StringAttr(op.attributes["sym_name"]).value == "main":
            return op
    raise ValueError("the module has no function main")


def body_ops(function: Any) -> list[Any]:
    """The ops of main but for the return."""
    return [op.operation for op in function.regions[0].blocks[0].operations][:-1]


def of_dictionaries(function: Any, name: str, count: int) -> list[str | None]:
    """`sdy.sharding` in a function's arg_attrs or res_attrs."""
    if name not in function.attributes:
        return [None] * count
    return [attribute(ir.DictAttr(entry), "sdy.sharding") for entry in ir.ArrayAttr(function.attributes[name])]


def sharding_of(op: Any) -> str | None:
    return attribute(op.attributes, "sharding" if op.name == "sdy.sharding_constraint" else "sdy.sharding")


def run(text: str, passes: str) -> dict[str, Any]:
    module = ir.Module.parse(text)
    ops = body_ops(main_function(module))
    count = len(ops)
    for i, op in enumerate(ops):
        op.attributes[MARK] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), i)
    del ops
    if passes:
        passmanager.PassManager.parse(f"builtin.module({passes})").run(module.operation)
    function = main_function(module)
    rows: list[Any] = [None] * count
    rules: list[Any] = [None] * count
    for op in body_ops(function):
        if MARK not in op.attributes:
            continue
        i = ir.IntegerAttr(op.attributes[MARK]).value
        rows[i] = [op.name, sharding_of(op)]
        rules[i] = attribute(op.attributes, "sdy.sharding_rule")
        del op.attributes[MARK]
    kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    return {
        "arguments": of_dictionaries(function, "arg_attrs", len(kind.inputs)),
        "ops": rows,
        "results": of_dictionaries(function, "res_attrs", len(kind.results)),
        "rules": rules,
    }


# ---- modules whose ops have names: loc("n7") ------------------------------------------------------------------------


def values_of(op: Any) -> str:
    """All that an op says about shardings, its own attributes of that kind included."""
    said = {name: told(op.attributes[name]) for name in SHARDING_ATTRIBUTES if name in op.attributes}
    return ", ".join(f"{name} = {text}" for name, text in said.items() if text)


def told(held: Any) -> str:
    """The attribute's text; nothing for closed dims without axes, which say no more than no attribute."""
    text = str(held)
    return "" if WHOLE.fullmatch(text) else text


class Liveness:
    """The ops of a module that main's results are made of, or ops with an effect."""

    def __init__(self, module: Any) -> None:
        functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
        self._functions = {ir.StringAttr(op.attributes["sym_name"]).value: op for op in functions}
        self._live: set[Any] = set()
        self._visit(self._functions["main"])
        self._calls: dict[str, list[Any]] = {}
        effects: list[Any] = []
        for function in functions:
            self._collect(function, effects)
        for op in effects:
            self._visit_with_parents(op)

    def __contains__(self, op: Any) -> bool:
        return op in self._live

    def _collect(self, op: Any, effects: list[Any]) -> None:
        if op.name in EFFECTS:
            effects.append(op)
        if op.name == "func.call":
            self._calls.setdefault(ir.FlatSymbolRefAttr(op.attributes["callee"]).value, []).append(op)
        for region in op.regions:
            for block in region.blocks:
                for inner in block.operations:
                    self._collect(inner.operation, effects)

    def _visit_with_parents(self, op: Any) -> None:
        while op is not None and op not in self._live:
            self._visit(op)
            if op.name == "func.func":
                for call in self._calls.get(ir.StringAttr(op.attributes["sym_name"]).value, ()):
                    self._visit_with_parents(call)
                return
            op = op.parent

    def _visit(self, op: Any) -> None:
        """The op's results are wanted: so are what its regions return and what its operands come from."""
        if op in self._live:
            return
        self._live.add(op)
        if op.name == "func.call":
            self._visit(self._functions[ir.FlatSymbolRefAttr(op.attributes["callee"]).value])
        for region in op.regions:
            for block in region.blocks:
                self._visit(block.operations[len(block.operations) - 1].operation)
        for operand in op.operands:
            if not isinstance(operand.owner, ir.Block):
                self._visit(operand.owner)


def said_by(copies: list[Any], live: Callable[[], Liveness]) -> list[str]:
    """By an op or its copies: what agrees counts once, and live copies count alone."""
    said = {values_of(op) for op in copies}
    if len(said) > 1:
        said = {values_of(op) for op in copies if op in live()} or said
    return sorted(said)


def named_rows(module: Any) -> dict[str, list[str]]:
    """Per name of an op, argument or result, what is said there."""
    copies: dict[str, list[Any]] = {}
    rows: dict[str, list[str]] = {}

    def visit(op: Any) -> None:
        for region in op.regions:
            for block in region.blocks:
                for inner in block.operations:
                    visit(inner.operation)
        name = LOCATION.fullmatch(str(op.location))
        if name is not None and op.results:
            copies.setdefault(f"{name[1]} {RENAMED.get(op.name, op.name)}", []).append(op)

    for op in module.body.operations:
        if op.operation.name != "func.func":
            continue
        visit(op.operation)
        function = ir.StringAttr(op.attributes["sym_name"]).value
        if function != "main":
            continue
        kind = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
        for label, lists, count in (
            ("argument", "arg_attrs", len(kind.inputs)),
            ("result", "res_attrs", len(kind.results)),
        ):
            for i, held in enumerate(of_dictionaries(op, lists, count)):
                rows[f"{label} {i}"] = [told(held or "")]
    live = functools.cache(lambda: Liveness(module))
    return rows | {name: said_by(found, live) for name, found in copies.items()}


def propagation_alone() -> str:
    """`sdy-propagation-pipeline` without its two steps that insert reshards, after calls and before a few ops: that is
    no longer propagation (here it is the work of the pass assign). Nor are equal constants merged: names would go."""
    whole = str(passmanager.PassManager.parse("builtin.module(sdy-propagation-pipeline)"))
    passes, count = RESHARDS.subn("", whole.removeprefix("builtin.module(").removesuffix(")"))
    assert count == 2, whole
    assert MERGER in passes, whole
    return passes.replace(MERGER, "").replace("sdy-save-module,", "").replace("module-dump-directory= ", "")


def compare(text: str, passes: str, ours: str) -> dict[str, Any]:
    """Where the shardings that `passes` leave differ from those of the text `ours`: [name, ours, theirs].

    What Shardy dropped because nothing uses it is not compared, nor the reshards that it added.
    """
    module = ir.Module.parse(text)
    given = named_rows(module)
    if passes == ALONE:
        passes = propagation_alone()
    passmanager.PassManager.parse(f"builtin.module({passes})").run(module.operation)
    theirs = {name: row for name, row in named_rows(module).items() if name in given}
    if not ours:
        return {"rows": theirs}
    try:
        found = named_rows(ir.Module.parse(ours))
    except ir.MLIRError as error:
        return {"misprinted": str(error)}
    names = sorted(theirs, key=lambda name: (len(name.split()[0]), name))
    return {"differences": [[n, found.get(n), theirs[n]] for n in names if found.get(n) != theirs[n]]}


def drop_labels(module: Any) -> None:
    """JAX's notes to itself: how many partitions, where in a tree a result goes, the mesh in StableHLO's words."""
    for name in list(module.operation.attributes):
        if name.startswith("mhlo."):
            del module.operation.attributes[name]
    for op in module.body.operations:
        if "stablehlo.mesh" in op.attributes:
            del op.attributes["stablehlo.mesh"]
        for lists in ("arg_attrs", "res_attrs"):
            if lists not in op.attributes:
                continue
            entries = [
                {e.name: e.attr for e in entry if not e.name.startswith(("jax.", "mhlo."))}
                for entry in map(ir.DictAttr, ir.ArrayAttr(op.attributes[lists]))
            ]
            del op.attributes[lists]
            if any(entries):
                op.attributes[lists] = ir.ArrayAttr.get([ir.DictAttr.get(entry) for entry in entries])


def generic_text(text: str) -> str:
    """A spelling of the module in which values are numbered in order."""
    module = ir.Module.parse(text)
    drop_labels(module)
    if not module.operation.verify():
        raise ValueError("the module does not verify")
    return str(module.operation.get_asm(print_generic_op_form=True, use_local_scope=True))


def lower(name: str, locations: bool) -> str:
    from tests.conformance.jax import programs

    return programs.lower(name, locations)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    if request["do"] == "run":
        return run(request["text"], request["passes"])
    if request["do"] == "print":
        module = ir.Module.parse(request["text"])
        passmanager.PassManager.parse(f"builtin.module({request['passes']})").run(module.operation)
        return {"text": str(module)}
    if request["do"] == "compare":
        return compare(request["text"], request["passes"], request["ours"])
    if request["do"] == "origins":
        return origins(request["text"], request["passes"], request["edges_only"])
    if request["do"] == "parse":
        return {"text": generic_text(request["text"])}
    return {"text": lower(request["name"], request["locations"])}


def serve() -> None:
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 8)
    stablehlo.register_stablehlo_passes()
    context = jax_mlir.make_ir_context()
    with context, ir.Location.unknown(context):
        for line in sys.stdin:
            for request in json.loads(line):
                context.allow_unregistered_dialects = request.get("unregistered", False)
                try:
                    reply = answer(request)
                except Exception as error:
                    reply = {"error": f"{type(error).__name__}: {error}"}
                print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    serve()
