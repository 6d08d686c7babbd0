# SPDX-License-Identifier: Apache-2.0
"""Writes docs/shardy_differences.md from the tables that the comparisons with Shardy use.

The tables are `MECHANISMS` in tests/python/oracle_mechanisms.py (programs) and rule_mechanisms.py (single ops). Tests
prove each row against jaxlib, and that the page is what this writes.
"""

from __future__ import annotations

import contextlib
import io
import sys
import textwrap
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))

import oracle_mechanisms
import rule_mechanisms
from rule_instance import module_text

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "shardy_differences.md"
HEAD = """# Where shardings are not Shardy's

Propagation gives each value the sharding that Shardy gives it: random programs and random ops are compared with the
Shardy in jaxlib, value by value. Where they differ on purpose, the difference is one of the mechanisms on this page.
There is no other: a program that differs is made smaller until nothing can go, and what is left must be one of these.

Three things are no differences of propagation. By default the shardings of uneven arguments and results are kept, and
`strict_divisible=True` shrinks them as Shardy does; comparisons use it. `unreduced=max{...}` and `min` are not known to
the Shardy in jaxlib. And on some texts it ends its process; then there is nothing to compare with.

The page is written by `python tools/make_differences.py` from the tables that those comparisons use. A test runs every
example in Shardy, and another one in Shardwise.

```python
import shardwise as sw

def rules(text):
    for name, rule in sw.parse(text).sharding_rules():
        print(name, rule)
```

## All of them

"""
PROGRAMS = """
## In programs

Each is found in whole programs, with regions and several ops.
"""
OPS = """
## In the rules of single ops

Random instances of every op are compared by the rules alone. Some of the differences above show up again, some only
here, because no sharding can tell them.
"""


def table(title: str, rows: list[tuple[str, str]]) -> str:
    """Rows of a name and two cells."""
    lines = [f"| {title} | what Shardy does | what happens here |", "|---|---|---|"]
    return "\n".join(lines + [f"| {name} | {both} |" for name, both in rows]) + "\n"


def shown(code: str) -> str:
    """The program with what it prints."""
    out = io.StringIO()
    namespace: dict[str, Any] = {}
    with contextlib.redirect_stdout(out):
        exec(HEAD.partition("```python\n")[2].partition("```")[0] + code, namespace)
    return f"```python\n{code}```\n\n```text\n{out.getvalue()}```\n"


def call(text: str, whole: bool) -> str:
    """A program that reads the text and prints what Shardwise makes of it."""
    return f'text = """{text}"""\n' + ("print(sw.parse(text).propagate())\n" if whole else "rules(text)\n")


def program_section(mechanism: oracle_mechanisms.Mechanism) -> str:
    """Of one whole program."""
    of_rule = mechanism.passes == oracle_mechanisms.RULES
    says = "Shardy's rule" if of_rule else "What Shardy leaves"
    theirs = "no rule" if mechanism.shardy == "[None]" else f"`{mechanism.shardy.removesuffix('>')}`"
    code = call("\n" + mechanism.text.strip("\n") + "\n", whole=not of_rule)
    return f"\n### {mechanism.name}\n\n{textwrap.fill(mechanism.why, 118)}\n\n{shown(code)}\n{says} has {theirs}.\n"


def op_section(mechanism: rule_mechanisms.Mechanism) -> str:
    """Of one op on arguments."""
    theirs = "Shardy has no rule." if mechanism.shardy is None else f"Shardy's rule is `{mechanism.shardy}`."
    code = call("\n" + module_text([mechanism.shown_by]), whole=False)
    return f"\n### {mechanism.name} (one op)\n\n{textwrap.fill(mechanism.why, 118)}\n\n{shown(code)}\n{theirs}\n"


def cell(text: str) -> str:
    """Without the end of an attribute."""
    return f"`{text.removesuffix('>')}`"


def page() -> str:
    """The whole page."""
    programs = [
        (m.name, f"{'no rule' if m.shardy == '[None]' else cell(m.shardy)} | {cell(m.ours)}")
        for m in oracle_mechanisms.MECHANISMS
    ]
    ops = [
        (m.name, f"{'no rule' if m.shardy is None else cell(m.shardy)} | {cell(m.ours)}")
        for m in rule_mechanisms.MECHANISMS
    ]
    parts = [HEAD, table("in programs", programs), "\n", table("in rules of ops", ops), PROGRAMS]
    parts += [program_section(m) for m in oracle_mechanisms.MECHANISMS]
    parts += [OPS, *(op_section(m) for m in rule_mechanisms.MECHANISMS)]
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"written: {PAGE.relative_to(ROOT)}")
