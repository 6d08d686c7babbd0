# SPDX-License-Identifier: Apache-2.0
"""Steps of random modules with bodies or edges: loops, branches, calls, manual regions, groups, barriers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tests.conformance.shardy.random_modules.drawing import Drawer, Step
from tests.conformance.shardy.random_modules.texts import Block, Function, Op, Value


def inside(d: Drawer, block: Block, steps: int, isolated: bool = False) -> None:
    """Draws steps into a body; what it sees from around is hidden where the body is isolated."""
    saved = d.block, d.scopes, d.isolated, d.depth
    d.block, d.scopes = block, ([list(block.arguments)] if isolated else [*d.scopes, list(block.arguments)])
    d.isolated, d.depth = d.isolated or isolated, d.depth + 1
    d.draw_steps(steps)
    d.block, d.scopes, d.isolated, d.depth = saved


def arguments(d: Drawer, types: Sequence[Value]) -> list[Value]:
    return [Value(f"%b{d.number()}", v.shape, v.dtype) for v in types]


def outputs(d: Drawer, block: Block, types: Sequence[Value]) -> list[Value]:
    """Of each type the last value of the body, or what the body brings from its arguments."""
    found = []
    own = [*block.arguments, *(v for op in block.ops for v in op.results)]
    for wanted in types:
        same = [v for v in own if (v.shape, v.dtype) == (wanted.shape, wanted.dtype)]
        found.append(same[-1] if d.maybe(0.8) else d.choose(same))
    return found


def depending(block: Block) -> list[Value]:
    """Results of the body that its arguments reach."""
    reached = {id(v) for v in block.arguments}
    found = []
    for op in block.ops:
        if any(id(v) in reached for v in op.operands):
            reached |= {id(v) for v in op.results}
            found += [v for v in op.results if not v.dtype.startswith("!")]
    return found


def carried(d: Drawer, low: int = 1) -> list[Value]:
    values = []
    for _ in range(d.rng.randint(low, 3)):
        v = d.array(0 if d.maybe(0.1) else 1, ("f32", "i32"))
        values.append(v)
    return values


def while_(d: Drawer) -> bool:
    if d.depth > 1:
        return False
    counter = d.constant((), "i32")
    values = [counter, *carried(d)]
    limit = d.constant((), "i32")
    condition = Block(arguments(d, values), fixed=True)
    truth = Value(f"%{d.number()}", (), "i1")
    attrs = "comparison_direction = #stablehlo<comparison_direction LT>"
    condition.ops.append(Op(d.number(), "stablehlo.compare", [condition.arguments[0], limit], [truth], attrs))
    condition.outputs.append(truth)
    body = Block(arguments(d, values))
    inside(d, body, d.rng.randint(1, 5))
    body.outputs = outputs(d, body, values)
    d.ops("stablehlo.while", values, [(v.shape, v.dtype) for v in values], blocks=[condition, body])
    d.feature("while")
    return True


def case(d: Drawer) -> bool:
    if d.depth > 1:
        return False
    results = carried(d)
    branches = []
    two = d.maybe(0.2)
    for _ in range(2 if two else d.rng.randint(1, 3)):
        block = Block([])
        before = [d.visible()]
        inside(d, block, d.rng.randint(1, 4))
        own = [v for op in block.ops for v in op.results]
        for wanted in results:
            same = [v for v in own if (v.shape, v.dtype) == (wanted.shape, wanted.dtype)]
            outer = [v for v in before[0] if (v.shape, v.dtype) == (wanted.shape, wanted.dtype)]
            block.outputs.append(d.choose(same) if same and d.maybe(0.8) else d.choose(outer))
        branches.append(block)
    name, kind = ("stablehlo.if", "i1") if two else ("stablehlo.case", "i32")
    d.ops(name, [d.like((), kind)], [(v.shape, v.dtype) for v in results], blocks=branches)
    d.feature("if" if two else "case")
    return True


def optimization_barrier(d: Drawer) -> bool:
    values = carried(d)
    d.ops("stablehlo.optimization_barrier", values, [(v.shape, v.dtype) for v in values])
    d.feature("optimization barriers")
    return True


def call(d: Drawer) -> bool:
    """Of a new function, or again of an old one; not in manual regions, whose axes it may use."""
    if d.depth > 1:
        return False
    functions = d.program.functions
    old = [f for f in functions[1:] if f.block.outputs]
    if old and not d.manual and d.maybe(0.4):
        function = d.choose(old)
        values = [d.like(v.shape, v.dtype) for v in function.block.arguments]
    else:
        values = carried(d)
        block = Block(arguments(d, values), terminator="func.return")
        function = Function(f"f{d.number()}", block)
        function.argument_shardings = [d.sharding(v.ndim, priorities=False) if d.maybe(0.15) else None for v in values]
        inside(d, block, d.rng.randint(1, 5), isolated=True)
        own = [*block.arguments, *(v for op in block.ops for v in op.results)]
        block.outputs = [v for v in own[-d.rng.randint(1, 2) :] if not v.dtype.startswith("!")] or own[:1]
        function.result_shardings = [
            d.sharding(v.ndim, priorities=False) if d.maybe(0.15) else None for v in block.outputs
        ]
        functions.append(function)
    types = [(v.shape, v.dtype) for v in function.block.outputs]
    d.ops("func.call", values, types, f"callee = @{function.name}")
    d.feature("calls")
    return True


def manual_sharding(d: Drawer, v: Value, axes: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """A sharding whose manual axes come first in each dim and divide it; and the local shape."""
    sizes = dict(d.mesh.axes)
    hands: list[list[str]] = [[] for _ in v.shape]
    shape = list(v.shape)
    replicated = []
    for axis in axes:
        fits = [i for i, n in enumerate(shape) if n % sizes[axis] == 0]
        if fits and d.maybe(0.7):
            i = d.choose(fits)
            hands[i].append(f'"{axis}"')
            shape[i] //= sizes[axis]
        else:
            replicated.append(axis)
    free = [name for name, _ in d.mesh.axes if name not in axes and name not in d.manual]
    dims = []
    for hand in hands:
        if free and d.maybe(0.2):
            hand.append(f'"{free.pop()}"')
        dims.append(f"{{{', '.join([*hand, '?'] if d.maybe(0.5) else hand)}}}")
    named = [f'"{name}"' for name, _ in d.mesh.axes if name in replicated]
    tail = f", replicated={{{', '.join(named)}}}" if named and d.maybe(0.6) else ""
    return f"<@mesh, [{', '.join(dims)}]{tail}>", tuple(shape)


def per_value(shardings: Sequence[str]) -> str:
    return f"#sdy.sharding_per_value<[{', '.join(shardings)}]>"


def manual_computation(d: Drawer) -> bool:
    names = [name for name, _ in d.mesh.axes if name not in d.manual]
    if d.depth > 1 or not names:
        return False
    axes = tuple(name for name in names if name in {names[i] for i in d.subset(len(names), 1, 2)})
    values = carried(d)
    ins = [manual_sharding(d, v, axes) for v in values]
    block = Block([], terminator="sdy.return")
    block.arguments = [Value(f"%b{d.number()}", shape, v.dtype) for v, (_, shape) in zip(values, ins)]
    saved = d.manual
    d.manual = (*saved, *axes)
    inside(d, block, d.rng.randint(1, 5), isolated=True)
    d.manual = saved
    own = [*block.arguments, *(v for op in block.ops for v in op.results)]
    block.outputs = own[-d.rng.randint(1, 2) :]
    sizes = dict(d.mesh.axes)
    outs, types = [], []
    for v in block.outputs:
        hands: list[list[str]] = [[] for _ in v.shape]
        shape = list(v.shape)
        replicated = []
        for axis in axes:
            if v.shape and d.maybe(0.7):
                i = d.rng.randrange(v.ndim)
                hands[i].append(f'"{axis}"')
                shape[i] *= sizes[axis]
            else:
                replicated.append(f'"{axis}"')
        dims = [f"{{{', '.join([*hand, '?'] if d.maybe(0.5) else hand)}}}" for hand in hands]
        tail = f", replicated={{{', '.join(replicated)}}}" if replicated and d.maybe(0.6) else ""
        outs.append(f"<@mesh, [{', '.join(dims)}]{tail}>")
        types.append((tuple(shape), v.dtype))
    if any(math.prod(shape) > 10**7 for shape, _ in types):
        return False
    manual = ", ".join(f'"{a}"' for a in axes)
    attrs = (
        f"in_shardings = {per_value([text for text, _ in ins])}, out_shardings = {per_value(outs)}, "
        f"manual_axes = #sdy<manual_axes{{{manual}}}>"
    )
    d.ops("sdy.manual_computation", values, types, attrs, [block])
    d.feature("manual regions")
    return True


def named_computation(d: Drawer) -> bool:
    if d.depth > 1:
        return False
    values = carried(d)
    block = Block(arguments(d, values), terminator="sdy.return")
    inside(d, block, d.rng.randint(1, 4), isolated=True)
    own = depending(block)  # Shardy cannot put an edge where a constant is the result
    block.outputs = own[-d.rng.randint(1, 2) :] or block.arguments[:1]
    attrs = f'name = "f{d.number()}"'
    if d.maybe(0.4):
        shardings = per_value([d.sharding(v.ndim, priorities=False) for v in values])
        attrs += f", in_shardings = {shardings}"
    if d.maybe(0.3):
        attrs += f", out_shardings = {per_value([d.sharding(v.ndim, priorities=False) for v in block.outputs])}"
    types = [(v.shape, v.dtype) for v in block.outputs]
    d.ops("sdy.named_computation", values, types, attrs, [block])
    d.feature("named computations")
    return True


def propagation_barrier(d: Drawer) -> bool:
    x = d.array(1)
    direction = d.choose(("NONE", "FORWARD", "BACKWARD"))
    pretty = f"sdy.propagation_barrier {{0}} allowed_direction={direction} : {x.type}"
    d.op("sdy.propagation_barrier", [x], (x.shape, x.dtype), pretty=pretty)
    d.feature("barriers")
    return True


def sharding_group(d: Drawer) -> bool:
    """Two values of one type; no value joins a second group, at which Shardy ends its process."""
    if d.isolated:
        return False
    grouped = {id(v) for op in d.program.ops() if op.name == "sdy.sharding_group" for v in op.operands}
    x = d.value(lambda v: v.ndim > 0 and id(v) not in grouped)
    if x is None:
        return False
    others = [
        v for v in d.visible() if (v.shape, v.dtype) == (x.shape, x.dtype) and v is not x and id(v) not in grouped
    ]
    number = d.number()
    for v in [x, *others[-2:]]:
        d.ops("sdy.sharding_group", [v], [], pretty=f"sdy.sharding_group {{0}} group_id={number} : {v.type}")
    d.feature("groups")
    return True


REGION_STEPS = [
    (while_, 1.0), (case, 1.0), (optimization_barrier, 0.5), (call, 0.8), (manual_computation, 0.8),
    (propagation_barrier, 0.5), (sharding_group, 0.5),
]  # fmt: skip
# Read here, and refused by Shardy's pipeline, which gives the same value two edges; to it calls are named computations.
NAMED_STEPS: list[tuple[Step, float]] = [(named_computation, 0.4)]
