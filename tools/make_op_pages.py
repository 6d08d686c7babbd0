# SPDX-License-Identifier: Apache-2.0
"""Write the reference of ops, docs/reference/ops/, and docs/collectives.md.

Both follow from the registry of ops and the table of op cases: what they show is computed. A test compares the pages.

    python tools/make_op_pages.py
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from op_examples import DEVICES, Example, Sharded, examples, sharded, sharded_dims

from shardwise import _core
from shardwise.dtypes import is_complex, is_float, is_integer, numpy_dtype
from tests.op.dtype_values import ALL_DTYPES
from tests.op.runnable_dtypes import runnable_dtypes

DOCS = Path(__file__).resolve().parents[1] / "docs"
FOLDER = DOCS / "reference" / "ops"
DIALECTS = {
    "stablehlo": "The ops of StableHLO. Names, operands, attributes and meaning are those of its specification.",
    "chlo": "The ops of CHLO: math functions and other ops that StableHLO does not have.",
    "func": "Calls of functions of the module.",
    "sdy": "The ops of Shardy: annotations, collectives on global values, and ops that guide propagation.",
    "shardwise": "The ops of local programs: collectives of one device's program, and random bits.",
}
SPECIFICATION = "https://openxla.org/stablehlo/spec#"
NOT_SPECIFIED = {  # ops of the dialect without a section there
    "broadcast",
    "create_token",
    "cross-replica-sum",
    "dot",
    "einsum",
    "real_dynamic_slice",
    "torch_index_select",
    "unary_einsum",
}

KINDS_OF_DTYPES = {
    "integers": [dtype for dtype in ALL_DTYPES if is_integer(numpy_dtype(dtype))],
    "floats": [dtype for dtype in ALL_DTYPES if is_float(numpy_dtype(dtype))],
    "complex": [dtype for dtype in ALL_DTYPES if is_complex(numpy_dtype(dtype))],
}
LINES_OF_DTYPES = "\n".join(
    fill(f"- {kind}: {', '.join(members)}", 120, subsequent_indent="  ") for kind, members in KINDS_OF_DTYPES.items()
)

HEAD_OF_OPS = f"""# Ops

Each op has a section: what it does, an example with its sharding rule, and how it is computed, differentiated and
partitioned. A rule lists the factors of each dim, as in Shardy. A *range* says where a dim is read if not at the index
of its factor. A *method* is another way to partition an op, which is taken where it sends less.
[Collectives of each op](../../collectives.md) lists what is sent. `python tools/make_op_pages.py` writes these pages.

*Dtypes* are those that an op runs in; each of the {len(ALL_DTYPES)} is tried. Indices, predicates and sizes have
dtypes of their own. *All* means bool and these:

{LINES_OF_DTYPES}

```{{toctree}}
:maxdepth: 1

"""

HEAD_OF_REFUSALS = """# Refused programs

A program with one of these is an error that names the op, its line and the reason. What is refused when the program is
compiled can be read, propagated and printed. A name with `@` is the target of a `stablehlo.custom_call`.

| refused | when | reason | instead |
| --- | --- | --- | --- |
"""

HEAD_OF_COLLECTIVES = f"""# Collectives of each op

This page shows what each op sends if one dim of one operand is sharded over {DEVICES} devices and nothing else is
annotated: propagation shards the result. Dims of less than {DEVICES} elements are tried if no example has a larger one.

- The *factor* of the dim is that of the op's rule, with its kind if the rule does not pass it through, and with the
  range that is read if it is not the whole dim.
- The *method* is how the op is computed, or each op that replaces it: by its rule, or by a method of its own.
- Bytes are those that one device receives.
- The *cause* names what moves: an *operand* is moved before the op, and a *result* is moved afterwards, because
  propagation wants it elsewhere.

`python tools/make_op_pages.py` writes this page from the programs that it compiles; a test compares it.

"""


def pages() -> dict[Path, str]:
    """The text of each page."""
    definitions = sorted(_core.ir.all_ops(), key=lambda op: op.name)
    shown = {op.name: examples(op.name) for op in definitions}
    made = {
        FOLDER / "index.md": HEAD_OF_OPS + "\n".join([*DIALECTS, "refused"]) + "\n```\n",
        FOLDER / "refused.md": _refusals(),
    }
    for dialect, about in DIALECTS.items():
        sections = [_section(op, shown[op.name]) for op in definitions if op.name.startswith(f"{dialect}.")]
        made[FOLDER / f"{dialect}.md"] = "\n".join([f"# {dialect}\n\n{about}\n", *sections])
    made[DOCS / "collectives.md"] = HEAD_OF_COLLECTIVES + _collectives(shown)
    return made


def _refusals() -> str:
    rows = []
    for name, reason, way_out, is_read in _core.ir.refusals():
        op, space, condition = name.partition(" ")
        rows.append((f"`{op}`{space}{condition}", "read" if is_read else "compiled", reason, way_out))
    return HEAD_OF_REFUSALS + "".join(f"| {' | '.join(row)} |\n" for row in rows)


# ---- a section of the reference -------------------------------------------------------------------------------------


def _section(op: Any, shown: list[Example]) -> str:
    lines = [f"## {op.name}", "", _sentence(op.doc) + _specification(op.name), ""]
    for example in shown[:1]:
        lines += ["```{code-block} text", example.statement, "```", ""]
    lines += [f"- {title}: {text}" for title, text in _facts(op, shown)]
    return "\n".join(lines) + "\n"


def _sentence(doc: str) -> str:
    return doc if doc.endswith(".") else doc + "."


def _specification(name: str) -> str:
    dialect, _, op = name.partition(".")
    specified = dialect == "stablehlo" and op not in NOT_SPECIFIED
    return f" [Specification]({SPECIFICATION}{op})" if specified else ""


def _facts(op: Any, shown: list[Example]) -> Iterator[tuple[str, str]]:
    for example in shown[:1]:
        yield "Rule", f"`{example.rule}`"
        for (operand, dim), read in example.ranges.items():
            yield "Range", f"dim {dim} of operand {operand} {_reading(read)}"
    dtypes = _dtypes(runnable_dtypes(op.name))
    if dtypes:
        yield "Dtypes", dtypes
    yield "Computed by", _computation(op)
    yield "Gradient", _gradient(op)
    is_local = op.name.startswith("shardwise.") and not op.has_rule  # the partitioner makes it
    if op.runnable and not op.collective and not is_local:
        yield "Partitioned by", _partitioning(op)
    for example in shown[:1]:
        flops, moved = example.op.cost
        yield "Cost of the example", f"{flops:,.0f} flops; {moved:,.0f} bytes are read and written"


def _reading(read: dict[str, Any]) -> str:
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
    ways = ["its rule"] * op.has_rule + [f"the method *{method}*" for method in op.methods]
    if ways:
        return ", ".join(ways)
    if op.composed:
        return "the ops that replace it"
    if op.control_flow or op.call or op.inline or not op.has_kernel:
        return "the ops that it runs"
    return "nothing: each device computes all of it"


def _gradient(op: Any) -> str:
    if op.differentiable:
        return "yes"
    if op.no_vjp_reason:
        return f"none: {op.no_vjp_reason}"
    return "that of the ops that it is made of" if op.composed else "none"


# ---- collectives ----------------------------------------------------------------------------------------------------


def _collectives(shown: dict[str, list[Example]]) -> str:
    silent: list[str] = []
    rows: list[str] = []
    for name, found in shown.items():
        tried = [(example, sharded(example, operand, dim)) for example, operand, dim in sharded_dims(found)]
        moving = [(example, row) for example, row in tried if row.collectives]
        if found and not moving:
            silent.append(f"`{name}`")
        rows += dict.fromkeys(_collective_row(name, example, row) for example, row in moving)
    head = "| op | shapes | sharded | factor | method | collectives | bytes | cause |"
    lines = [head, "| --- | --- | --- | --- | --- | --- | --- | --- |", *rows]
    silence = "These ops send nothing, whichever dim of several elements is sharded:"
    return "\n".join([*lines, "", silence, "", ", ".join(silent) + ".", ""])


def _collective_row(name: str, example: Example, row: Sharded) -> str:
    shapes = ", ".join("x".join(map(str, shape)) or "scalar" for shape in example.application.shapes)
    counts = Counter(row.collectives)
    kinds = ", ".join(kind if count == 1 else f"{count} {kind}" for kind, count in counts.items())
    where = f"operand {row.operand}, dim {row.dim} → `{row.result}`"
    factor, kind = example.factor(row.operand, row.dim)
    read = example.ranges.get((row.operand, row.dim))
    about = ", ".join(filter(None, (f"`{factor}`" if factor else "none", kind, _reading(read) if read else "")))
    methods = ", ".join(row.methods)
    return (
        f"| `{name}` | {shapes} | {where} | {about} | {methods} | {kinds} | {row.bytes:g} | {', '.join(row.causes)} |"
    )


def main() -> None:
    """Write the pages."""
    for path, text in pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(f"written: {path.relative_to(DOCS.parent)}")


if __name__ == "__main__":
    main()
