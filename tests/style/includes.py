# SPDX-License-Identifier: Apache-2.0
"""Which names a header declares, so that an include of which no name occurs is found."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tests.style.source_tree import CORE, includes

COMMENT = re.compile(r"//.*")
DECLARED = (
    r"\b(?:class|struct|enum class|concept|union)\s+(\w+)",
    r"\busing (\w+) =",
    r"#define (\w+)",
    r"\b([a-z]\w*)\(",  # functions
    r"\b(k[A-Z]\w*)\b",  # constants
)


@cache
def declared_names(header: Path) -> frozenset[str]:
    code = COMMENT.sub("", header.read_text())
    return frozenset(name for pattern in DECLARED for name in re.findall(pattern, code))


def dead_includes(path: Path) -> list[str]:
    """Our headers that a file includes although it uses no name that they declare."""
    lines = path.read_text().splitlines()
    code = "\n".join(line for line in lines if not line.startswith("#include"))
    words = set(re.findall(r"\w+", COMMENT.sub("", code)))
    own = path.stem
    return [
        name
        for name in includes(path)
        if name.startswith("shardwise/") and Path(name).stem != own and not declared_names(CORE.parent / name) & words
    ]
