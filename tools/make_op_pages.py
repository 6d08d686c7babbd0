# SPDX-License-Identifier: Apache-2.0
"""Write the reference of ops, docs/reference/ops/, and docs/collectives.md.

Both are computed from the registry of ops, the table of op cases and the programs of op_texts.py and
custom_call_texts.py. A test compares the pages with the output of this tool.

    python tools/make_op_pages.py
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from custom_call_texts import CALLS
from op_examples import DEVICES, Example, Sharded, examples, sharded, sharded_dims
from op_facts import LINES_OF_DTYPES, call_facts, op_facts, reading

from shardwise import _core
from tests.op.dtype_values import ALL_DTYPES

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

HEAD_OF_OPS = f"""# Ops

Each op has a section: what it does, an example with its sharding rule, and how it is computed, differentiated and
partitioned. [Collectives of each op](../../collectives.md) lists what each op sends. `python tools/make_op_pages.py`
writes these pages, and a test fails where a section lacks one of these lines or the reason why it has none.

- *Rule*: the factors of each dim, as in Shardy.
- *Range*: where a dim is read, if not at the index of its factor.
- *Dtypes*: those that the op runs in; each of the {len(ALL_DTYPES)} is tried. Indices, predicates and sizes have
  dtypes of their own. *All* means bool and the dtypes below.
- *Gradient*: the operands of floats and complex numbers to which a cotangent flows.
- *Partitioned by*: the rule, or a *method*, which is another way to partition the op. The partitioner uses it if it
  sends fewer bytes.
- *Cost of the example*: what the partitioner counts for one device.

{LINES_OF_DTYPES}

```{{toctree}}
:maxdepth: 1

"""

HEAD_OF_CUSTOM_CALLS = """# Custom calls

These are the targets of `stablehlo.custom_call` that run. Any other target is an error when the program is compiled;
[Custom calls](../../custom_calls.md) shows how to register one. Dims before those of a matrix are a batch. A call
without a rule takes part in no propagation, as in Shardy; the partitioner still splits its batch.

"""

HEAD_OF_REFUSALS = """# Refused programs

A program with one of these ops is an error that names the op, its line and the reason. Programs that are refused when
they are compiled can still be read, propagated and printed. A name with `@` is the target of a `stablehlo.custom_call`.

| refused | when | reason | instead |
| --- | --- | --- | --- |
"""

HEAD_OF_COLLECTIVES = f"""# Collectives of each op

This page shows what each op sends if one dim of one operand is sharded over {DEVICES} devices and nothing else is
annotated; propagation shards the result. Look here when an op communicates more than you expected, or before you choose
the dim to shard. The examples shard a dim of at least {DEVICES} elements where the op has one.

- *Factor*: the factor of the sharded dim in the op's sharding rule. Its kind follows unless it is pass-through, and its
  range unless the op reads the whole dim.
- *Method*: how the op is partitioned, by its sharding rule or by a method of its own. Ops that are decomposed list the
  methods of the ops that replace them.
- *Bytes*: what one device receives.
- *Cause*: what moves. An *operand* moves before the op. A *result* moves after it, because propagation gave it another
  sharding than the op produces.

`python tools/make_op_pages.py` writes this page from programs that it compiles; a test compares them.

"""

# The methods of ops: how each handles a dim that the rule cannot keep sharded, on n devices with one tile each.
METHODS = {
    "another dim": "The axes move to a dim that the op does not need whole, by an all_to_all, and back "
    "if the result needs them there: (n - 1)/n of the tile each way.",
    "chain": "Each device waits for the combined rows of the devices before it, and sends its own "
    "on: one row in n - 1 steps.",
    "exchange": "Each device receives the rows that its part of the result reads and that it does not "
    "have, and no others.",
    "gathered partial results": "Each device reduces its rows, gathers the results of all devices, and reduces these.",
    "gathered totals": "Each device combines its rows, gathers the totals of all devices, and combines those "
    "before its own: n - 1 rows.",
    "owned rows": "Indices are whole. Each device reads or writes the rows that it has; what is read is added up.",
    "owned windows": "As owned rows, for windows of which a device may have a part: it clips the window to its rows.",
    "partial results": "Each device reduces its rows; an exchange gives each device a part of the results to combine.",
    "pencils": "A transform of several dims: whole dims first, then the axes move to them, and the other dims follow.",
    "shards as addends": "Each device scatters its updates into its own part of a sum, which is reduced or scattered.",
    "totals": "As gathered totals, but an all_to_all splits the totals, so that each is combined once.",
    "winners": "Each device takes its largest elements, gathers those of all devices, and takes the largest of them.",
}


def pages() -> dict[Path, str]:
    """The text of each page."""
    definitions = sorted(_core.ir.all_ops(), key=lambda op: op.name)
    shown = {op.name: examples(op.name) for op in definitions}
    made = {
        FOLDER / "index.md": HEAD_OF_OPS + "\n".join([*DIALECTS, "custom_calls", "refused"]) + "\n```\n",
        FOLDER / "custom_calls.md": _custom_calls(),
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


# ---- custom calls ---------------------------------------------------------------------------------------------------


def _custom_calls() -> str:
    sections = []
    for target, call in CALLS.items():
        sections.append(_lines(f"@{target}", call.about, *call_facts(call)))
    return HEAD_OF_CUSTOM_CALLS + "\n".join(sections)


def _section(op: Any, shown: list[Example]) -> str:
    about = _sentence(op.doc) + _specification(op.name)
    return _lines(op.name, about, *op_facts(op, shown))


def _lines(heading: str, about: str, statement: str, facts: list[tuple[str, str]]) -> str:
    lines = [f"## {heading}", "", about, ""]
    if statement:
        lines += ["```{code-block} text", statement, "```", ""]
    return "\n".join([*lines, *(f"- {title}: {text}" for title, text in facts)]) + "\n"


def _sentence(doc: str) -> str:
    return doc if doc.endswith(".") else doc + "."


def _specification(name: str) -> str:
    dialect, _, op = name.partition(".")
    specified = dialect == "stablehlo" and op not in NOT_SPECIFIED
    return f" [Specification]({SPECIFICATION}{op})" if specified else ""


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
    return "\n".join([*lines, "", silence, "", ", ".join(silent) + ".", "", *_methods()])


def _methods() -> list[str]:
    """The section on methods. KeyError for a method that METHODS does not describe."""
    users: dict[str, list[str]] = {}
    for op in sorted(_core.ir.all_ops(), key=lambda op: op.name):
        for method in op.methods:
            users.setdefault(method, []).append(f"`{op.name}`")
    rows = [f"| {name} | {METHODS[name]} | {', '.join(users[name])} |" for name in sorted(users)]
    about = "Each is priced like the rule, by what it sends and computes; the cheapest is taken."
    return ["## Methods", "", about, "", "| method | what devices do | ops |", "| --- | --- | --- |", *rows, ""]


def _collective_row(name: str, example: Example, row: Sharded) -> str:
    shapes = ", ".join("x".join(map(str, shape)) or "scalar" for shape in example.application.shapes)
    counts = Counter(row.collectives)
    kinds = ", ".join(kind if count == 1 else f"{count} {kind}" for kind, count in counts.items())
    where = f"operand {row.operand}, dim {row.dim} → `{row.result}`"
    factor, kind = example.factor(row.operand, row.dim)
    read = example.ranges.get((row.operand, row.dim))
    about = ", ".join(filter(None, (f"`{factor}`" if factor else "none", kind, reading(read) if read else "")))
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
