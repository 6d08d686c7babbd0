# SPDX-License-Identifier: Apache-2.0
"""Worked examples of propagation: texts whose comments say what every value gets.

texts/worked/*.mlir hold them. A line `// ---- PLACE: WHAT` begins each one, PLACE being the section that describes it.
`// passes: sdy-basic-propagate` chooses a level (else the whole of propagation), `// conservative` that way of it.

    %x: tensor<8xf32> {sdy.sharding = …}) -> tensor<8xf32> {      // => [{"a"}]      an argument, on a line of its own
    %0 = stablehlo.tanh %x : tensor<8xf32>                        // => [{"a"}]      an op's results, also in regions
    return %0 : tensor<8xf32>                                     // => [{"a"}]      the results of main

Several shardings of one op are parted by ` ; `, copies of it that differ by ` | `; `-` has no axes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shardwise import _core
from tests.conformance.shardy.client import ShardyOracle
from tests.conformance.shardy.oracle_runs import PASSES, PIPELINE

FOLDER = Path(__file__).resolve().parent / "texts" / "worked"
BEGIN = "// ---- "
DIRECTIVE = re.compile("// (passes): (.*)")
EXPECTED = re.compile(r"^(.*?)\s*// => (.*)$")
ARGUMENT = re.compile(r"\s*%\w+: (tensor|!stablehlo)")
SHARDING = re.compile(r"<@\w+, (\[[^\]]*\](?:, (?:replicated|unreduced)=\{[^}]*\})*)>")


@dataclass
class Example:
    """One text, and what is said of its values: {"n7": …, "argument 0": …, "results": …}."""

    place: str
    file: str
    text: str = ""
    passes: str = PIPELINE
    expected: dict[str, str] = field(default_factory=dict)


def read_examples(path: Path) -> list[Example]:
    found: list[Example] = []
    arguments, in_main = 0, True
    for number, line in enumerate(path.read_text().splitlines()):
        directive = DIRECTIVE.match(line)
        if line.startswith(BEGIN):
            found.append(Example(line.removeprefix(BEGIN), path.stem))
            arguments, in_main = 0, True
        elif directive:
            setattr(found[-1], directive[1].replace(" ", "_"), directive[2])
        elif found:
            in_main = in_main and not line.startswith("func.func private")
            said = EXPECTED.match(line)
            code = said[1] if said else line
            is_argument = in_main and ARGUMENT.match(code) is not None
            if said and is_argument:
                found[-1].expected[f"argument {arguments}"] = said[2]
            elif said and in_main and code.lstrip().startswith("return "):
                found[-1].expected["results"] = said[2]
            elif said:
                found[-1].expected[f"n{number}"] = said[2]
                code += f' loc("n{number}")'
            arguments += is_argument
            found[-1].text += code + "\n"
    return found


EXAMPLES = [example for path in sorted(FOLDER.glob("*.mlir")) for example in read_examples(path)]


def values(rows: dict[str, list[str]]) -> dict[str, str]:
    """What is found, as it is expected: one entry per name."""
    found: dict[str, str] = {}
    results: list[str] = []
    for name, said in rows.items():
        text = " | ".join(sorted(" ; ".join(SHARDING.findall(one)) or "-" for one in said))
        if name.startswith("result "):
            results.append(text)
        else:
            found[name if name.startswith("argument ") else name.split()[0]] = text
    if results:
        found["results"] = " ; ".join(results)
    return found


def rows_of(oracle: ShardyOracle, text: str, passes: str) -> dict[str, str]:
    (reply,) = oracle.ask_all([{"do": "compare", "text": text, "passes": passes, "ours": ""}])
    assert "rows" in reply, reply
    return values(reply["rows"])


def shardy_gives(oracle: ShardyOracle, example: Example) -> dict[str, str]:
    return rows_of(oracle, example.text, example.passes)


def we_give(oracle: ShardyOracle, example: Example) -> dict[str, str]:
    """Read back by MLIR, so that both are seen by the same eyes."""
    module: Any = _core.ir.parse(example.text)
    left = _core.passes.run_passes(module, [PASSES[example.passes]], strict_divisible=True)
    return rows_of(oracle, left.text(locations=True), "")
