# SPDX-License-Identifier: Apache-2.0
"""The lines of a section of the reference of ops: rule, range, dtypes, kernel, gradient, partitioning and cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import Any

from custom_call_texts import Call
from op_examples import SIZE, Example
from op_texts import OF_PARTITIONED_PROGRAMS, OF_RESHARDED_PROGRAMS, TEXTS
from text_examples import (
    TextExample,
    arguments_with_gradient,
    can_batch,
    depends_on,
    example_of,
    filled,
    sent_with_split_batch,
    text_dtypes,
    text_examples,
)

import shardwise as sw
from shardwise.dtypes import is_complex, is_float, is_integer, numpy_dtype
from tests.op.cases import CASES
from tests.op.dtype_values import ALL_DTYPES
from tests.op.runnable_dtypes import runnable_dtypes
from tests.support.partitioned import record

KINDS_OF_DTYPES = {
    "integers": [dtype for dtype in ALL_DTYPES if is_integer(numpy_dtype(dtype))],
    "floats": [dtype for dtype in ALL_DTYPES if is_float(numpy_dtype(dtype))],
    "complex": [dtype for dtype in ALL_DTYPES if is_complex(numpy_dtype(dtype))],
}
LINES_OF_DTYPES = "\n".join(
    fill(f"- {kind}: {', '.join(members)}", 120, subsequent_indent="  ") for kind, members in KINDS_OF_DTYPES.items()
)

CUSTOM_CALL = "stablehlo.custom_call"
OF_TARGET = "as its target has it: [Custom calls](custom_calls.md)"
# Why ops that have a rule have none in their example, or have no rule although propagation sees them.
WITHOUT_RULE = {
    "sdy.reshard": "propagation does not cross it: the result has the sharding that it states",
    "sdy.sharding_group": "it has no result; propagation shards the values of a group alike",
    "sdy.manual_computation": "operands and results have the shardings that it states",
    "stablehlo.optimization_barrier": "each result has the sharding of its operand (a data-flow edge), as in Shardy",
    "stablehlo.partition_id": "a number has no dims",
    "stablehlo.replica_id": "a number has no dims",
    "stablehlo.create_token": "a token has no dims",
    "stablehlo.after_all": "a token has no dims",
}
Facts = tuple[str, list[tuple[str, str]]]  # the statement of the example and the lines


def op_facts(op: Any, shown: Sequence[Example]) -> Facts:
    """The lines of an op."""
    found: Sequence[Example | TextExample] = shown or text_examples(op.name)
    return (found[0].statement if found else ""), list(_op_lines(op, found))


def _op_lines(op: Any, shown: Sequence[Example | TextExample]) -> Iterator[tuple[str, str]]:
    for example in shown[:1]:
        rule = example.rule
        yield "Rule", f"`{rule}`" if rule else f"none: {_no_rule(op)}"
        if not rule or not example.ranges:
            yield "Range", "none: " + ("each dim is read at the index of its factor" if rule else "it has no rule")
        for (operand, dim), read in example.ranges.items():
            yield "Range", f"dim {dim} of operand {operand} {reading(read)}"
    if op.runnable:
        yield "Dtypes", OF_TARGET if op.name == CUSTOM_CALL else _dtypes_of(op.name)
    yield "Computed by", _computation(op)
    yield "Gradient", OF_TARGET if op.name == CUSTOM_CALL else _gradient(op, shown)
    if op.runnable:
        yield "Partitioned by", _partitioning(op)
    for example in shown[:1]:
        yield "Cost of the example", _cost(example.op)


def call_facts(call: Call) -> Facts:
    """The lines of a custom call that shardwise defines."""
    dtypes = text_dtypes(CUSTOM_CALL, call.text, call.dtypes)
    example = example_of(CUSTOM_CALL, filled(call.text, "float32" if "float32" in dtypes else dtypes[0]))
    rule = dict(example.module.sharding_rules())[CUSTOM_CALL]
    try:
        gradient = _operands_with_gradient([example])
    except sw.Error as error:
        gradient = f"none: {str(error).partition('; ')[2].partition(' (at ')[0]}"
    problem = can_batch(example.module)
    sent = sent_with_split_batch(example.module)
    assert not problem, (example.statement, problem)
    assert not sent, (example.statement, sent)
    facts = [
        ("Rule", f"`{rule}`" if rule else "none: propagation does not cross it, as in Shardy"),
        ("Range", "none: each dim is read at the index of its factor" if rule else "none: it has no rule"),
        ("Dtypes", _dtypes(dtypes)),
        ("Computed by", call.computed),
        ("Gradient", gradient),
        ("Batched by", "a leading dim on operands and results"),
        ("Partitioned by", f"{call.partitioned}; a split batch sends nothing"),
        ("Cost of the example", _cost(example.op)),
    ]
    return example.statement, facts


# ---- lines ----------------------------------------------------------------------------------------------------------


def _no_rule(op: Any) -> str:
    if op.name in WITHOUT_RULE:
        return WITHOUT_RULE[op.name]
    if op.name in OF_PARTITIONED_PROGRAMS or op.name in OF_RESHARDED_PROGRAMS:
        return "the partitioner makes it after propagation"
    if op.composed and not op.has_rule:
        return "other ops replace it before propagation"
    if op.control_flow:
        return "propagation goes through its regions"
    if op.call or op.inline:
        return "propagation goes through the ops that it runs"
    assert op.name in TEXTS or op.refusal, f"{op.name} has no rule and no reason"
    return "it is refused" if op.refusal else "in a manual computation, the program itself places the data"


def reading(read: dict[str, Any]) -> str:
    """Where a dim is read, in words."""
    index = {1: "i", -1: "-i"}.get(read["scale"], f"{read['scale']}*i")
    offset = f" + {read['offset']}" if read["offset"] > 0 else f" - {-read['offset']}" if read["offset"] < 0 else ""
    place = f"is read at {index}{offset}"
    if read["window"] > 1:
        place += f" and the next {read['window'] - 1}" + (f", {read['dilation']} apart" if read["dilation"] > 1 else "")
    if read["holes"] > 1:
        place += f", with {read['holes'] - 1} holes after each element"
    if read["start"] >= 0:
        place += f", from the start that operand {read['start']} gives"
    outside = {"scalar": "the padding value", "neutral": "the neutral element", "absent": "another operand's element"}
    return place + (f"; outside is {outside[read['outside']]}" if read["outside"] in outside else "")


def _dtypes_of(name: str) -> str:
    found = text_dtypes(name, TEXTS[name]) if name in TEXTS else runnable_dtypes(name)
    return _dtypes(found) or "none: a token has no elements"


def _dtypes(taken: list[str]) -> str:
    """Whole kinds of dtypes by their names, kinds that lack a few with these, single dtypes else."""
    if taken == ALL_DTYPES:
        return "all"
    shown = ["bool"] * ("bool" in taken)
    for kind, members in KINDS_OF_DTYPES.items():
        own = [dtype for dtype in members if dtype in taken]
        missing = [dtype for dtype in members if dtype not in taken]
        if own and len(missing) <= len(members) // 4:
            shown.append(kind + f" (not {', '.join(missing)})" * bool(missing))
        else:
            shown += own
    return ", ".join(shown)


def _computation(op: Any) -> str:
    if op.composed:
        return f"other ops, which replace it {'after' if op.has_rule else 'before'} propagation"
    if op.refusal:
        reason, way_out = op.refusal
        return f"nothing, because {reason}; {way_out}"
    if op.control_flow:
        return "the ops of its regions"
    if op.call:
        return "the ops of its function"
    if not op.has_kernel:
        return "its region, which takes its place before propagation"
    return "a kernel, the identity" if op.annotation else "a kernel"


def _partitioning(op: Any) -> str:
    if op.collective and op.name.startswith(("sdy.", "shardwise.")):
        return "nothing: it is a step of a partitioned program"
    if op.name in OF_PARTITIONED_PROGRAMS:
        return "nothing: it is an op of the program of one device"
    ways = ["its rule"] * op.has_rule + [f"the method *{method}*" for method in op.methods]
    if ways:
        return ", ".join(ways)
    if op.composed:
        return "the ops that replace it"
    if op.control_flow or op.call or op.inline or not op.has_kernel:
        return "the ops that it runs"
    return "nothing: each device computes all of it"


def _cost(op: Any) -> str:
    flops, moved = op.cost
    return f"{flops:,.0f} flops; {moved:,.0f} bytes are read and written"


# ---- gradients ------------------------------------------------------------------------------------------------------


def _gradient(op: Any, shown: Sequence[Example | TextExample]) -> str:
    if op.no_vjp_reason:
        return f"none: {op.no_vjp_reason}"
    if op.refusal or not op.runnable:
        return "none: it is refused"
    own = _operands_with_gradient([*_variants(op.name)] or shown)
    if op.control_flow or op.inline or op.call:
        return f"that of the ops that it runs; {own}"
    return f"that of the ops that replace it; {own}" if op.composed and not op.differentiable else own


def _variants(name: str) -> Iterator[TextExample]:
    """Every application of the op in the table of cases, with real and with complex numbers."""
    for case in CASES:
        if case.name != name:
            continue
        others = ["complex64"] if "complex64" in runnable_dtypes(name) else []
        for dtype in [case.gradient_dtype, *others]:
            for application in case.applications(SIZE, dtype if dtype in case.dtypes else case.dtypes[0]):
                try:
                    module = record(case, application, dtype)
                except sw.Error:  # an application of real numbers only
                    continue
                yield TextExample(_last(module, name), module)


def _last(module: Any, name: str) -> Any:
    return next(op for op in reversed(module.main.body.ops) if op.name == name)


def _operands_with_gradient(shown: Sequence[Example | TextExample]) -> str:
    flows: dict[int, bool] = {}
    floats, limits = 0, []
    for example in shown:
        try:
            found = arguments_with_gradient(example.module)
        except sw.Error as error:
            if len(shown) == 1:
                raise
            limits.append(str(error).partition(": ")[2].partition(", got ")[0])
            continue
        floats = max(floats, len(found))
        for operand, arguments in _arguments_of_operands(example).items():
            if arguments & set(found):
                flows[operand] = flows.get(operand, False) or any(found.get(argument) for argument in arguments)
    with_gradient = [i for i, flow in sorted(flows.items()) if flow]
    without = [i for i, flow in sorted(flows.items()) if not flow]
    if not flows and floats and any(list(example.op.regions) for example in shown):
        return "yes, with respect to the values that its regions use"
    if not with_gradient:
        return "none: no operand is a float"
    named = f"yes, with respect to {_listed(with_gradient)}"
    named += f"; that of {_listed(without)} is zero" if without else ""
    return "; ".join([named, *dict.fromkeys(limits)])


def _arguments_of_operands(example: Example | TextExample) -> dict[int, set[int]]:
    """The arguments of the program from which each operand of the op is computed; in a region, the region's."""
    main = example.module.main.body
    bodies = [main, *(region for op in main.ops for region in op.regions)]
    return {
        i: {place for body in bodies for place, x in enumerate(body.arguments) if depends_on(operand, {x.number})}
        for i, operand in enumerate(example.op.operands)
    }


def _listed(operands: Sequence[int]) -> str:
    if len(operands) == 1:
        return f"operand {operands[0]}"
    return "operands " + ", ".join(map(str, operands[:-1])) + f" and {operands[-1]}"
