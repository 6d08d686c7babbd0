# SPDX-License-Identifier: Apache-2.0
"""Shardy's debug attributes, read: who put an axis on a value, and which op carried it there. Part of worker.py.

Both sides propagate the text that `numbered` makes, in which calls are inlined, every op is called n1, n2, … and
data-flow edges stand where regions hand values on. `sdy-user-priority-propagate{debug-sharding-origins=true
debug-propagation-edge-sharding=true}` then leaves

    sdy.sharding_origins = [{a = "input: 0"}]
    → {"n7 0": {"a": "argument 0"}}
    sdy.propagation_edges = #sdy.propagation_edges<[{step-4 = [{"a" = operand-0 -> [result-0]}]}]>
    → [4, "n7", "a", "operand-0", "result-0", true, "n7 0"]

with "n9" for a constraint's origin, "result 1" for that of a result of main; of an edge also whether the value that it
leads to has the axis in the end, and which it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from jaxlib.mlir import ir, passmanager

LOCATION = re.compile(r'loc\("(\w+)"\)')
OP_LINE = re.compile(r"^\s*(%\S+ = .*|\}.*|\".*): \(.*\) -> \S.*$")
STEP = re.compile(r"\{step-(\d+) = \[((?:\{[^}]*\}(?:, )?)*)\]\}")
EDGE = re.compile(r'\{("\w+"(?::\(\d+\)\d+)?) = (\w+-\d+) -> \[([^\]]*)\]\}')
PREPARE = "builtin.module(inline,symbol-dce,sdy-manual-axes-cleanup,sdy-add-data-flow-edges)"
PASSES = "builtin.module({}{{debug-sharding-origins={} debug-propagation-edge-sharding=true}})"


def numbered(text: str) -> str:
    """The text without calls and with data-flow edges, all of its ops with names of their own."""
    module = ir.Module.parse(text)
    passmanager.PassManager.parse(PREPARE).run(module.operation)
    generic = str(module.operation.get_asm(print_generic_op_form=True, use_local_scope=True))
    lines = []
    for number, line in enumerate(generic.splitlines()):
        lines.append(f'{line} loc("n{number}")' if OP_LINE.match(line) else line)
    return "\n".join(lines) + "\n"


def nested(op: Any) -> Iterator[Any]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from nested(inner.operation)


def live_names(module: Any) -> set[str]:
    """Of ops that a constraint or a result of main depends on; Shardy drops some of the others."""
    live: set[str] = set()
    todo = [op for op in nested(module.operation) if op.name in ("func.return", "sdy.sharding_constraint")]
    while todo:
        op = todo.pop()
        if name_of(op) in live:
            continue
        live.add(name_of(op))
        values = list(op.operands)
        for inner in nested(op):
            if not inner.results and inner.operation.parent.name == op.name:  # what a region hands on
                todo.append(inner)
        for value in values:
            owner = value.owner
            todo.append(owner.owner.operation if isinstance(owner, ir.Block) else owner)
    return live


def name_of(op: Any) -> str:
    found = LOCATION.fullmatch(str(op.location))
    return found[1] if found else ""


class Origins:
    """The names that Shardy gives to annotations, as those of ops, arguments and results."""

    def __init__(self, module: Any, main: Any) -> None:
        self.main = main
        self.ops = list(nested(module.operation))
        self.names: dict[str, str] = {}
        for op in self.ops:
            if "sdy.sharding_origin_name" in op.attributes:
                name = ir.StringAttr(op.attributes["sdy.sharding_origin_name"]).value
                self.names[name] = name_of(op)
                self.name_edges(name, op)

    def name_edges(self, name: str, op: Any) -> None:
        """A manual computation's annotations stand on the edges after its arguments and results."""
        if not len(op.regions):
            return
        for label, values in (("input", op.regions[0].blocks[0].arguments), ("output", op.results)):
            for i, value in enumerate(values):
                for use in value.uses:
                    if use.owner.operation.name == "sdy.data_flow_edge":
                        self.names[f"{name}_{label}: {i}"] = name_of(use.owner.operation)

    def read(self, held: Any, own: str) -> dict[str, str]:
        """Of one value, called `own`."""
        found = {}
        for entry in ir.DictAttr(held):
            origin = ir.StringAttr(entry.attr).value
            origin = own if origin == "self" else self.names.get(origin, origin)
            found[entry.name] = origin.replace("input: ", "argument ").replace("output: ", "result ")
        return found


def function_entries(main: Any, lists: str, name: str) -> Iterator[tuple[int, Any]]:
    if lists not in main.attributes:
        return
    for i, entry in enumerate(ir.ArrayAttr(main.attributes[lists])):
        if name in ir.DictAttr(entry):
            yield i, ir.DictAttr(entry)[name]


def all_origins(module: Any, main: Any) -> dict[str, dict[str, str]]:
    reader = Origins(module, main)
    found = {f"argument {i}": reader.read(held, f"argument {i}")
             for i, held in function_entries(main, "arg_attrs", "sdy.sharding_origins")}  # fmt: skip
    for op in reader.ops:
        if op.name == "func.func" or "sdy.sharding_origins" not in op.attributes:
            continue
        held = op.attributes["sdy.sharding_origins"]
        lists = [held] if isinstance(held, ir.DictAttr) else list(ir.ArrayAttr(held))
        for i, entry in enumerate(lists):
            found[f"{name_of(op)} {i}"] = reader.read(entry, name_of(op))
    return found


class Shardings:
    """Of values, in the end, and their names."""

    def __init__(self, main: Any) -> None:
        self.entries = dict(function_entries(main, "arg_attrs", "sdy.sharding"))

    def name(self, value: Any) -> str:
        if isinstance(value.owner, ir.Block):
            index = ir.BlockArgument(value).arg_number
            return f"argument {index}" if value.owner.owner.name == "func.func" else ""
        return f"{name_of(value.owner)} {ir.OpResult(value).result_number}"

    def sharding(self, value: Any) -> str:
        if isinstance(value.owner, ir.Block):
            is_main = value.owner.owner.name == "func.func"
            return str(self.entries.get(ir.BlockArgument(value).arg_number, "")) if is_main else ""
        attributes = value.owner.attributes
        if "sharding" in attributes:
            return str(attributes["sharding"])
        if "sdy.sharding" not in attributes:
            return ""
        lists = re.findall(r"<@\w+, \[[^\]]*\][^>]*>", str(attributes["sdy.sharding"]))
        index = ir.OpResult(value).result_number
        return str(lists[index]) if index < len(lists) else ""

    def has(self, value: Any, axis: str) -> bool:
        return re.search(re.escape(axis) + r"(?!:)", self.sharding(value).partition("replicated")[0]) is not None


def edges_of(op: Any, name: str, shardings: Shardings) -> Iterator[list[Any]]:
    ends = {f"operand-{i}": v for i, v in enumerate(op.operands)} | {f"result-{i}": v for i, v in enumerate(op.results)}
    for step, body in STEP.findall(str(op.attributes[name])):
        for axis, source, targets in EDGE.findall(body):
            for target in targets.split(", "):
                known = target in ends  # not so for the sources of an edge past the first
                held = not known or shardings.has(ends[target], axis)
                yield [
                    int(step),
                    name_of(op),
                    axis,
                    source,
                    target,
                    held,
                    shardings.name(ends[target]) if known else "",
                ]


def all_edges(module: Any, main: Any) -> list[list[Any]]:
    """In the order of Shardy's steps; what passes between main's results and the values returned is of "result 0"."""
    edges, shardings = [], Shardings(main)
    for op in nested(module.operation):
        if "sdy.propagation_edges" in op.attributes:
            edges += list(edges_of(op, "sdy.propagation_edges", shardings))
    for i, held in function_entries(main, "res_attrs", "sdy.propagation_edges"):
        for step, body in STEP.findall(str(held)):
            for axis, source, targets in EDGE.findall(body):
                edges += [[int(step), f"result {i}", axis, source, t, True, ""] for t in targets.split(", ")]
    return sorted(edges, key=lambda edge: int(edge[0]))


def origins(text: str, passes: str, edges_only: bool) -> dict[str, Any]:
    """What Shardy says, and the text that it says it about."""
    prepared = numbered(text)
    module = ir.Module.parse(prepared)
    manager = passmanager.PassManager.parse(PASSES.format(passes, "false" if edges_only else "true"))
    manager.enable_verifier(False)  # Shardy refuses its own notes on edges with several sources, as those of a while
    manager.run(module.operation)
    functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    main = next(op for op in functions if ir.StringAttr(op.attributes["sym_name"]).value == "main")
    live = live_names(ir.Module.parse(prepared))
    names = [name_of(op) for op in nested(module.operation) if name_of(op) in live]
    return {"text": prepared, "ops": names, "origins": all_origins(module, main), "edges": all_edges(module, main)}
