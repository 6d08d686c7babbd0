# SPDX-License-Identifier: Apache-2.0
"""Random StableHLO modules as data: written in MLIR's generic form, and made smaller while a property holds.

Each op has a location ("n7"), which passes keep: it says which op of a program after a pass came from which op before.
Nothing here knows Shardwise or Shardy; what is drawn is in steps.py and its neighbours.

    program = random_module(random.Random(7))        # drawing.py
    program.text()
    smaller(program, lambda p: differs(p.text()))
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Shape = tuple[int, ...]


def tensor(shape: Shape, dtype: str) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{dtype}>"


@dataclass(eq=False)
class Value:
    name: str
    shape: Shape
    dtype: str

    @property
    def type(self) -> str:
        return self.dtype if self.dtype.startswith("!") else tensor(self.shape, self.dtype)

    @property
    def ndim(self) -> int:
        return len(self.shape)


@dataclass(eq=False)
class Block:
    arguments: list[Value]
    ops: list[Op] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    terminator: str = "stablehlo.return"
    fixed: bool = False  # a region that belongs to its op, such as the body of a reduction


@dataclass(eq=False)
class Op:
    """`attrs` is the text between <{ and }>; `pretty` writes the op in another form, with {0}, {1}, … for operands."""

    number: int
    name: str
    operands: list[Value]
    results: list[Value]
    attrs: str = ""
    blocks: list[Block] = field(default_factory=list)
    shardings: list[str] | None = None  # per result
    pretty: str = ""
    extra: str = ""  # discardable attributes
    regions: list[str] = field(default_factory=list)  # bodies that are text already

    def lines(self, indent: str) -> Iterator[str]:
        end = f' loc("n{self.number}")'
        if self.pretty:
            yield indent + self.head() + self.pretty.format(*(v.name for v in self.operands)) + end
            return
        head = f'{indent}{self.head()}"{self.name}"({", ".join(v.name for v in self.operands)})'
        if self.attrs:
            head += f" <{{{self.attrs}}}>"
        if self.blocks:
            yield head + " ({"
            for i, block in enumerate(self.blocks):
                if i:
                    yield indent + "}, {"
                yield from block_lines(block, indent + "  ")
            head = indent + "})"
        elif self.regions:
            head += f" ({', '.join(self.regions)})"
        discardable = [self.extra] if self.extra else []
        if self.shardings is not None:
            discardable.append(f"sdy.sharding = #sdy.sharding_per_value<[{', '.join(self.shardings)}]>")
        if discardable:
            head += f" {{{', '.join(discardable)}}}"
        types = ", ".join(v.type for v in self.results)
        yield f"{head} : ({', '.join(v.type for v in self.operands)}) -> ({types}){end}"

    def head(self) -> str:
        if not self.results:
            return ""
        if len(self.results) == 1:
            return f"{self.results[0].name} = "
        return f"{self.results[0].name.partition('#')[0]}:{len(self.results)} = "


def block_lines(block: Block, indent: str) -> Iterator[str]:
    if block.arguments:
        yield f"{indent[:-2]}^bb0({', '.join(f'{v.name}: {v.type}' for v in block.arguments)}):"
    yield from body_lines(block, indent)


def body_lines(block: Block, indent: str) -> Iterator[str]:
    for op in block.ops:
        yield from op.lines(indent)
    names, types = ", ".join(v.name for v in block.outputs), ", ".join(v.type for v in block.outputs)
    yield f'{indent}"{block.terminator}"({names}) : ({types}) -> ()'


@dataclass(eq=False)
class Function:
    name: str
    block: Block
    argument_shardings: list[str | None] = field(default_factory=list)
    result_shardings: list[str | None] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        def attribute(text: str | None) -> str:
            return f" {{sdy.sharding = #sdy.sharding{text}}}" if text else ""

        arguments = ", ".join(
            f"{v.name}: {v.type}{attribute(s)}" for v, s in zip(self.block.arguments, self.argument_shardings)
        )
        results = ", ".join(f"{v.type}{attribute(s)}" for v, s in zip(self.block.outputs, self.result_shardings))
        visibility = "" if self.name == "main" else "private "
        yield f"  func.func {visibility}@{self.name}({arguments}) -> ({results}) {{"
        yield from body_lines(self.block, "    ")
        yield "  }"


@dataclass(eq=False)
class ModuleText:
    meshes: list[str]  # '@mesh = <["x"=2]>'
    functions: list[Function] = field(default_factory=list)
    features: Counter[str] = field(default_factory=Counter)

    @property
    def main(self) -> Function:
        return self.functions[0]

    def text(self) -> str:
        lines = ["module {", *(f"  sdy.mesh {mesh}" for mesh in self.meshes)]
        for function in self.functions:
            lines += function.lines()
        return "\n".join([*lines, "}"]) + "\n"

    def blocks(self) -> Iterator[Block]:
        for function in self.functions:
            yield from nested_blocks(function.block)

    def ops(self) -> Iterator[Op]:
        for block in self.blocks():
            yield from block.ops


def nested_blocks(block: Block) -> Iterator[Block]:
    yield block
    for op in block.ops:
        for inner in op.blocks:
            yield from nested_blocks(inner)


# ---- smaller programs with the same property -------------------------------------------------------------------------


def live_values(program: ModuleText) -> set[int]:
    """Values that main's results depend on, bodies and called functions included."""
    live: set[int] = set()

    def visit(block: Block, outputs: list[Value]) -> None:
        live.update(id(v) for v in outputs)
        for op in reversed(block.ops):
            if not any(id(v) in live for v in op.results):
                continue
            live.update(id(v) for v in op.operands)
            for inner in op.blocks:
                visit(inner, inner.outputs)
            if op.name == "func.call":
                called = next(f for f in program.functions if f"@{f.name}" == op.attrs.split()[-1])
                visit(called.block, called.block.outputs)

    visit(program.main.block, program.main.block.outputs)
    return live


def uses(program: ModuleText) -> set[int]:
    used = {id(v) for block in program.blocks() for v in block.outputs}
    return used | {id(v) for op in program.ops() for v in op.operands}


def _drop_op(program: ModuleText, index: int) -> bool:
    """The op goes; what used its results gets new arguments of main where main's body holds it."""
    places = [(block, op) for block in program.blocks() if not block.fixed for op in block.ops]
    if index >= len(places):
        return False
    block, op = places[-1 - index]
    used = uses(program)
    wanted = [v for v in op.results if id(v) in used]
    if wanted and block is not program.main.block:
        same = [next((w for w in op.operands if (w.shape, w.dtype) == (v.shape, v.dtype)), None) for v in wanted]
        if None in same:
            return False
        replaced = {id(v): w for v, w in zip(wanted, same) if w is not None}
        for other in program.blocks():
            other.outputs = [replaced.get(id(v), v) for v in other.outputs]
        for user in program.ops():
            user.operands = [replaced.get(id(v), v) for v in user.operands]
        block.ops.remove(op)
        return True
    for v in wanted:
        v.name = f"%s{op.number}_{op.results.index(v)}"
        program.main.block.arguments.append(v)
        program.main.argument_shardings.append(op.shardings[op.results.index(v)] if op.shardings else None)
    block.ops.remove(op)
    return True


def _drop_argument(program: ModuleText, index: int) -> bool:
    arguments = program.main.block.arguments
    if index >= len(arguments) or id(arguments[index]) in uses(program):
        return False
    del arguments[index], program.main.argument_shardings[index]
    return True


def _drop_output(program: ModuleText, index: int) -> bool:
    if index >= len(program.main.block.outputs):
        return False
    del program.main.block.outputs[index], program.main.result_shardings[index]
    return True


def _drop_sharding(program: ModuleText, index: int) -> bool:
    main = program.main
    for held in (main.argument_shardings, main.result_shardings):
        if index < len(held):
            if held[index] is None:
                return False
            held[index] = None
            return True
        index -= len(held)
    annotated = [op for op in program.ops() if op.shardings]
    if index < len(annotated):
        annotated[index].shardings = None
        return True
    return False


CHANGES = (_drop_output, _drop_op, _drop_argument, _drop_sharding)


def _drop_functions(program: ModuleText) -> None:
    called = {op.extra for op in program.ops()} | {op.attrs for op in program.ops()}
    program.functions = [
        f for f in program.functions if f.name == "main" or any(f"@{f.name}" in text for text in called)
    ]


def smaller(program: ModuleText, holds: Callable[[ModuleText], bool], attempts: int = 400) -> ModuleText:
    """The program with everything dropped that the property does not need."""
    progress = True
    while progress and attempts > 0:
        progress = False
        for change in CHANGES:
            index = 0
            while index < 200 and attempts > 0:
                candidate = copy.deepcopy(program)
                if not change(candidate, index):
                    index += 1
                    if index > _candidates(program):
                        break
                    continue
                _drop_functions(candidate)
                attempts -= 1
                if holds(candidate):
                    program, progress = candidate, True
                else:
                    index += 1
    return program


def _candidates(program: ModuleText) -> int:
    return sum(1 for _ in program.ops()) + 2 * len(program.main.block.arguments) + len(program.main.block.outputs)
