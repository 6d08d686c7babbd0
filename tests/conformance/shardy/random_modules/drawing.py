# SPDX-License-Identifier: Apache-2.0
"""Draws random modules: meshes, shardings, and steps from steps.py, special_steps.py and region_steps.py.

One random number generator makes all choices, so that a seed is a program.

    random_module(random.Random("7:12")).text()
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

from tests.conformance.shardy.random_modules.texts import Block, Function, ModuleText, Op, Shape, Value, live_values
from tests.support.mesh_strategies import divisors, merge_neighbours

AXES = "abcd"
SIZES = (1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9, 10, 11, 12)  # of mesh axes
DIMS = (1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9, 12, 16, 16, 24, 32, 48, 64)
DTYPES = ("f32", "f32", "f32", "i32", "i32", "i1")
PRIORITY = re.compile(r"\}p\d")
Ref = tuple[str, int, int]  # of an axis of a mesh: name, what is more major, size
Step = Callable[["Drawer"], bool]


class DrawnMesh:
    def __init__(self, rng: random.Random) -> None:
        count = rng.choice((1, 2, 2, 2, 3, 3, 4))
        self.axes = [(name, rng.choice(SIZES)) for name in AXES[:count]]
        devices = math.prod(size for _, size in self.axes)
        ids = ""
        if devices <= 64 and rng.random() < 0.15:
            order = list(range(devices))
            rng.shuffle(order)
            if order != sorted(order):
                ids = f", device_ids={order}"
        self.text = f"@mesh = <[{', '.join(f'{chr(34)}{n}{chr(34)}={s}' for n, s in self.axes)}]{ids}>"

    def ref_text(self, ref: Ref) -> str:
        name, pre, size = ref
        return f'"{name}"' if size == dict(self.axes)[name] else f'"{name}":({pre}){size}'

    def digits(self, rng: random.Random, without: Sequence[str] = ()) -> list[Ref]:
        """One split of each axis into digits, in any order; mostly whole axes."""
        refs: list[Ref] = []
        for name, size in self.axes:
            if name in without or (size == 1 and rng.random() < 0.7):
                continue
            pre = 1
            whole = rng.random() < 0.6
            while pre < size:
                k = size // pre if whole else rng.choice(divisors(size // pre)[1:])
                refs.append((name, pre, k))
                pre *= k
            if size == 1:
                refs.append((name, 1, 1))
        rng.shuffle(refs)
        return refs


class Drawer:
    """The program so far, and the block that the next op goes to."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.mesh = DrawnMesh(rng)
        self.program = ModuleText([self.mesh.text])
        self.block = Block([])
        self.program.functions.append(Function("main", self.block))
        self.scopes: list[list[Value]] = [[]]  # visible values, innermost last; an isolated region hides the others
        self.isolated = False
        self.manual: tuple[str, ...] = ()  # axes that regions around have taken
        self.depth = 0
        self.annotate = 0.06  # how often an op's results get a sharding
        self._number = 0
        self.budget = 0
        self.steps: Sequence[tuple[Step, float]] = ()

    # ---- choices ----

    def choose(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.random() * len(options))]

    def maybe(self, probability: float) -> bool:
        return self.rng.random() < probability

    def dim(self) -> int:
        return int(self.choose(DIMS))

    def shape(self, ndim: int) -> Shape:
        return tuple(self.dim() for _ in range(ndim))

    def subset(self, count: int, low: int = 0, high: int | None = None) -> list[int]:
        """Some of range(count), in order."""
        high = count if high is None else min(high, count)
        return sorted(self.rng.sample(range(count), self.rng.randint(min(low, high), high)))

    def feature(self, name: str) -> None:
        self.program.features[name] += 1

    # ---- shardings ----

    def sharding(self, ndim: int, closed: bool | None = None, priorities: bool = True, extras: bool = True) -> str:
        """`<@mesh, [{"a", ?}, {}]>`; any legal sharding."""
        hands: list[list[Ref]] = [[] for _ in range(ndim)]
        replicated: list[Ref] = []
        for ref in self.mesh.digits(self.rng, self.manual):
            place = self.rng.randint(0, ndim + 1)
            if place < ndim:
                hands[place].append(ref)
            elif extras and self.maybe(0.4):
                replicated.append(ref)
        with_priorities = priorities and self.maybe(0.15)
        dims = []
        for hand in hands:
            is_open = self.maybe(0.5) if closed is None else not closed
            axes = [self.mesh.ref_text(ref) for ref in merge_neighbours(self.mesh, hand)]
            priority = ""
            if with_priorities and (axes or is_open) and self.maybe(0.6):
                priority = f"p{self.rng.randint(0, 2)}"
                self.feature("priorities")
            if any(":" in axis for axis in axes):
                self.feature("sub-axes")
            self.feature("open dims" if is_open else "closed dims")
            dims.append(f"{{{', '.join(axes + ['?'] * is_open)}}}{priority}")
        tail = ""
        if replicated:
            order = [name for name, _ in self.mesh.axes]
            replicated.sort(key=lambda ref: (order.index(ref[0]), ref[1]))
            merged = merge_neighbours(self.mesh, replicated)
            tail = f", replicated={{{', '.join(self.mesh.ref_text(ref) for ref in merged)}}}"
            self.feature("replicated axes")
        return f"<@mesh, [{', '.join(dims)}]{tail}>"

    # ---- values ----

    def number(self) -> int:
        self._number += 1
        return self._number

    def visible(self) -> list[Value]:
        return [v for scope in self.scopes for v in scope]

    def value(self, test: Callable[[Value], bool] = lambda v: True) -> Value | None:
        """A visible value, mostly a recent one."""
        candidates = [v for v in self.visible() if not v.dtype.startswith("!") and test(v)]
        if not candidates:
            return None
        n = len(candidates)
        return candidates[max(int(self.rng.random() * n), int(self.rng.random() * n))]

    def array(self, low: int = 1, dtypes: Sequence[str] = ("f32", "i32"), high: int = 4) -> Value:
        """A value of so many dims."""
        found = self.value(lambda v: low <= v.ndim <= high and v.dtype in dtypes)
        if found is not None and self.maybe(0.95):
            return found
        return self.fresh(self.shape(self.rng.randint(low, min(high, 3) if high >= low else low)), self.choose(dtypes))

    def like(self, shape: Shape, dtype: str) -> Value:
        found = self.value(lambda v: v.shape == shape and v.dtype == dtype)
        return found if found is not None and self.maybe(0.85) else self.fresh(shape, dtype)

    def fresh(self, shape: Shape, dtype: str) -> Value:
        """An argument of main, or a constant."""
        if self.isolated or (not shape and self.maybe(0.5)) or self.maybe(0.25):
            return self.constant(shape, dtype)
        return self.argument(shape, dtype)

    def argument(self, shape: Shape, dtype: str) -> Value:
        """A new one of main."""
        value = Value(f"%a{self.number()}", shape, dtype)
        main = self.program.main
        main.block.arguments.append(value)
        held = self.sharding(len(shape)) if self.maybe(0.35) else None
        main.argument_shardings.append(held)
        self.scopes[0].append(value)
        return value

    def constant(self, shape: Shape, dtype: str) -> Value:
        if shape and dtype in ("f32", "i32") and self.maybe(0.3):
            dim = self.rng.randrange(len(shape))
            return self.op("stablehlo.iota", [], (shape, dtype), f"iota_dimension = {dim} : i64")
        text = "(1.0, 0.0)" if dtype.startswith("complex") else {"i1": "true", "f32": "1.0"}.get(dtype)
        text = text or ("1" if dtype.lstrip("u").startswith("i") else "1.0")
        value = Value("", shape, dtype)
        return self.op("stablehlo.constant", [], (shape, dtype), f"value = dense<{text}> : {value.type}")

    # ---- ops ----

    def ops(
        self,
        name: str,
        operands: Sequence[Value],
        types: Sequence[tuple[Shape, str]],
        attrs: str = "",
        blocks: Sequence[Block] = (),
        pretty: str = "",
        regions: Sequence[str] = (),
    ) -> list[Value]:
        number = self.number()
        single = len(types) == 1
        results = [
            Value(f"%{number}" if single else f"%{number}#{i}", tuple(shape), dtype)
            for i, (shape, dtype) in enumerate(types)
        ]
        op = Op(number, name, list(operands), results, attrs, list(blocks), pretty=pretty, regions=list(regions))
        if results and not pretty and self.maybe(self.annotate) and not name.startswith("sdy."):
            op.shardings = [self.sharding(v.ndim) for v in results]
            self.feature("annotated ops")
        self.block.ops.append(op)
        self.scopes[-1].extend(results)
        return results

    def op(self, name: str, operands: Sequence[Value], kind: tuple[Shape, str], attrs: str = "", **more: Any) -> Value:
        return self.ops(name, operands, [kind], attrs, **more)[0]

    def body(self, name: str, dtypes: Sequence[str], attrs: str = "", result: str | None = None) -> Block:
        """The region of a reduction: `name` of each pair of scalars."""
        first = [Value(f"%l{self.number()}", (), d) for d in dtypes]
        second = [Value(f"%r{self.number()}", (), d) for d in dtypes]
        block = Block([*first, *second], fixed=True)
        for x, y in zip(first, second):
            value = Value(f"%{self.number()}", (), result or x.dtype)
            block.ops.append(Op(self.number(), name, [x, y], [value], attrs))
            block.outputs.append(value)
        return block

    def draw_steps(self, count: int) -> None:
        """So many steps; one that finds nothing to work on counts."""
        functions = [step for step, _ in self.steps]
        weights = [weight for _, weight in self.steps]
        for step in self.rng.choices(functions, weights, k=count):
            step(self)


def random_module(
    rng: random.Random, steps: Sequence[tuple[Step, float]], count: tuple[int, int] = (3, 14)
) -> ModuleText:
    drawer = Drawer(rng)
    drawer.steps = steps
    for _ in range(rng.randint(1, 3)):
        drawer.fresh(drawer.shape(rng.randint(1, 3)), drawer.choose(DTYPES))
    drawer.draw_steps(rng.randint(*count))
    main = drawer.program.main
    values = [v for v in drawer.scopes[0] if not v.dtype.startswith("!")]
    last = values[-3:]
    others = rng.sample(values, min(len(values), rng.randint(0, 2)))
    for v in dict.fromkeys([*last, *others]):
        main.block.outputs.append(v)
        main.result_shardings.append(drawer.sharding(v.ndim) if drawer.maybe(0.25) else None)
    main.block.terminator = "func.return"
    drop_priorities_of_dead_ops(drawer.program)
    return drawer.program


def drop_priorities_of_dead_ops(program: ModuleText) -> None:
    """Shardy ends its process on most of them, and on constants whose copies it uses instead."""
    live = live_values(program)
    for op in program.ops():
        if not op.operands or not any(id(v) in live for v in op.results):
            op.attrs = PRIORITY.sub("}", op.attrs)
            op.shardings = [PRIORITY.sub("}", text) for text in op.shardings] if op.shardings else None
