# SPDX-License-Identifier: Apache-2.0
"""One program text in other spacings that MLIR's lexer does not tell apart.

>>> spread('tensor<4xf32> {a = "x y"}', "\\n")
'tensor\\n<\\n4\\nx\\nf32\\n>\\n{\\na\\n=\\n"x y"\\n}'
>>> tight('%0 = stablehlo.add %a, %b : tensor<4xf32>')
'%0=stablehlo.add %a,%b:tensor<4xf32>'
"""

from __future__ import annotations

import re

# A dialect's name keeps the '<' after it, and a minus its number: there MLIR allows no space.
_TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"'
    r'|@"(?:[^"\\\n]|\\.)*"'
    r"|[%^@#!](?:\d+|[A-Za-z_$.][\w$.-]*)<?"
    r"|->"
    r"|-?0x[0-9A-Fa-f]+"
    r"|-?\d+\.\d*(?:[eE][+-]?\d+)?"
    r"|-?\d+"
    r"|[A-Za-z_][\w$.]*"
    r"|[^\s\w]"
)


def tokens(text: str) -> list[str]:
    """The tokens of a text, its comments dropped; dims are taken apart."""
    found: list[str] = []
    for match in _TOKEN.finditer(re.sub(r'^((?:[^"\n]|"(?:[^"\\\n]|\\.)*")*?)//.*$', r"\1", text, flags=re.MULTILINE)):
        token = match[0]
        behind_dim = found and re.fullmatch(r"\d+|\?", found[-1]) and text[match.start() - 1] == found[-1][-1]
        if behind_dim and re.fullmatch(r"x(\d+x)*[a-z]\w*", token):
            found += re.findall(r"\d+|x(?=\d)|x(?=[a-z]\w*$)|(?<=x)[a-z]\w*$", token)
        else:
            found.append(token)
    return found


def spread(text: str, space: str) -> str:
    """Every two tokens with ``space`` between them."""
    return space.join(tokens(text))


def tight(text: str) -> str:
    """No space beside punctuation."""
    parts = re.split(r'("(?:[^"\\\n]|\\.)*")', text)
    return "".join(part if i % 2 else re.sub(r" *([,:=(){}\[\]<>]) *", r"\1", part) for i, part in enumerate(parts))
