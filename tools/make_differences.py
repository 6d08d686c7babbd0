# SPDX-License-Identifier: Apache-2.0
"""Writes docs/shardy_differences.md from the table that the comparisons with Shardy use.

The table is `MECHANISMS` in tests/python/mechanisms.py. Tests prove each row against jaxlib, and that the page is what
this writes.
"""

from __future__ import annotations

import contextlib
import io
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))

from mechanisms import MECHANISMS, Mechanism

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "shardy_differences.md"
HEAD = """# Where shardings are not Shardy's

Propagation gives each value the sharding that Shardy gives it: random programs and random ops are compared with the
Shardy in jaxlib, value by value. Where they differ, the difference is one of the mechanisms on this page. Most are on
purpose: Shardy is wrong there, or says nothing. In the last one Shardy is right.

The rules of random ops must be Shardy's but for the mechanisms of rules. Programs are compared with our rule on the ops
of these, with a case in place of an if, and with Shardy's own rule on all other ops. A program that still differs is
made smaller until nothing can go, and what is left must be one of the mechanisms of whole programs; any other
difference fails a test.

Three things are no differences of propagation. By default the shardings of uneven arguments and results are kept, and
`strict_divisible=True` shrinks them as Shardy does; comparisons use it. `unreduced=max{...}` and `min` are not known to
the Shardy in jaxlib. And on some texts it ends its process; then there is nothing to compare with.

The page is written by `python tools/make_differences.py` from the table that those comparisons use. A test runs every
example in Shardy, and another one in Shardwise.

```python
import shardwise as sw

def rules(text):
    for name, rule in sw.parse(text).sharding_rules():
        print(name, rule)
```
"""
SECTIONS = (
    (
        "Where Shardy has no rule, or a wrong one",
        "These are differences of the rule of one op, and of nothing else.",
        lambda m: m.rule and not m.shardy_knows_more,
    ),
    (
        "Where whole programs differ",
        "These are found in programs, with the same rule on each of their ops.",
        lambda m: not m.rule,
    ),
    (
        "Where Shardy knows more",
        "Here Shardy is right, and we are weaker: a rule of Shardy looks at the ops behind its own.",
        lambda m: m.shardy_knows_more,
    ),
)


def table(rows: Sequence[Mechanism]) -> str:
    """Of one section."""
    lines = ["| what | what Shardy does | what happens here |", "|---|---|---|"]
    lines += [f"| {m.name} | {f'`{m.shardy}`' if m.shardy else 'no rule'} | `{m.ours}` |" for m in rows]
    return "\n".join(lines) + "\n"


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


def section(mechanism: Mechanism) -> str:
    """The reason, and a program with what both make of it."""
    if mechanism.rule:
        theirs = f"Shardy's rule is `{mechanism.shardy}`." if mechanism.shardy else "Shardy has no rule."
    else:
        theirs = f"What Shardy leaves has `{mechanism.shardy}`."
    code = call("\n" + mechanism.text.strip("\n") + "\n", whole=not mechanism.rule)
    return f"\n### {mechanism.name}\n\n{textwrap.fill(mechanism.why, 118)}\n\n{shown(code)}\n{theirs}\n"


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, text, belongs in SECTIONS:
        rows = [m for m in MECHANISMS if belongs(m)]
        parts.append(f"\n## {title}\n\n{textwrap.fill(text, 118)}\n\n{table(rows)}")
        parts += [section(m) for m in rows]
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"written: {PAGE.relative_to(ROOT)}")
