# SPDX-License-Identifier: Apache-2.0
"""Write docs/shardy_differences.md from the table that the comparisons with Shardy use.

The table is `MECHANISMS` in tests/conformance/shardy/mechanisms.py. Tests check each row against jaxlib, and the page.
"""

from __future__ import annotations

import contextlib
import io
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.conformance.shardy.mechanisms import MECHANISMS, Mechanism

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "shardy_differences.md"
HEAD = """# Differences from Shardy

Propagation gives every value the sharding that Shardy gives it. Tests compare random programs and random ops with the
Shardy in jaxlib, value by value. Each difference that they find is one of the mechanisms on this page. They are
intentional, because Shardy's result would be wrong or Shardy has no rule.

The comparison works in two steps. First, the sharding rules of random ops must equal Shardy's, except for the first
group of mechanisms. Then whole programs are compared, with Shardy using our rules for the ops of that group. A
program that still differs is minimized, and the minimal program must show a mechanism of the second group. Any other
difference fails a test.

Three differences are not about propagation:

- By default, Shardwise keeps uneven shardings of arguments and results. `strict_divisible=True` shrinks them like
  Shardy; the comparisons use it.
- The Shardy in jaxlib does not have the reductions `unreduced=max{...}` and `unreduced=min{...}`.
- The Shardy in jaxlib crashes on some programs, so there is nothing to compare with.

`python tools/make_differences.py` writes this page from the table that the comparisons use. Tests run every example
in both Shardy and Shardwise.

```python
import shardwise as sw

def rules(text):
    for name, rule in sw.parse(text).sharding_rules():
        print(name, rule)
```
"""
SECTIONS = (
    (
        "Rules of single ops",
        "For these ops, Shardy has no sharding rule, or one that is wrong.",
        lambda m: m.rule,
    ),
    (
        "Whole programs",
        "These programs differ although every op has the same rule in both.",
        lambda m: not m.rule,
    ),
)


def table(rows: Sequence[Mechanism]) -> str:
    """The table at the top of a section."""
    lines = ["| mechanism | Shardy | Shardwise |", "|---|---|---|"]
    lines += [f"| {m.name} | {f'`{m.shardy}`' if m.shardy else 'no rule'} | `{m.ours}` |" for m in rows]
    return "\n".join(lines) + "\n"


def shown(code: str) -> str:
    """A block of code with its output."""
    out = io.StringIO()
    namespace: dict[str, Any] = {}
    with contextlib.redirect_stdout(out):
        exec(HEAD.partition("```python\n")[2].partition("```")[0] + code, namespace)
    return f"```python\n{code}```\n\n```text\n{out.getvalue()}```\n"


def call(text: str, whole: bool) -> str:
    """Code that parses the text, and prints its rules or the propagated program."""
    return f'text = """{text}"""\n' + ("print(sw.parse(text).propagate())\n" if whole else "rules(text)\n")


def section(mechanism: Mechanism) -> str:
    """The reason, and a program with both results."""
    if mechanism.rule:
        theirs = f"Shardy's rule is `{mechanism.shardy}`." if mechanism.shardy else "Shardy has no rule."
    else:
        theirs = f"Shardy's result contains `{mechanism.shardy}`."
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
