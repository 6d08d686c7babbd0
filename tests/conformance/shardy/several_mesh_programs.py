# SPDX-License-Identifier: Apache-2.0
"""Random programs whose shardings are of several meshes, some of them written out; every value is returned."""

from __future__ import annotations

import random

MESHES = """
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  sdy.mesh @twin = <["x"=2, "y"=2]>
  sdy.mesh @turned = <["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>
  sdy.mesh @wide = <["x"=2, "y"=4]>
  sdy.mesh @ones = <["x"=2, "u"=1, "y"=2]>
  sdy.mesh @single = <[], device_ids=[1]>
  sdy.mesh @empty = <[]>"""
AXES = {
    "@mesh": ["x", "y"],
    "@twin": ["x", "y"],
    "@turned": ["x", "y"],
    "@wide": ["x", "y"],
    "@ones": ["x", "u", "y"],
    "@empty": [],
    'mesh<["x"=2, "y"=2]>': ["x", "y"],
    'mesh<["z"=8]>': ["z"],
}
KIND = "tensor<8x8xf32>"


class Generator:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.inline = self.random.random() < 0.4

    def sharding(self) -> str:
        if self.random.random() < 0.08:
            return "@single, []"
        mesh = self.random.choice([mesh for mesh in AXES if self.inline or mesh[0] == "@"])
        axes = self.random.sample(AXES[mesh], len(AXES[mesh]))
        return f"{mesh}, [{self.dim(axes)}, {self.dim(axes)}]"

    def dim(self, axes: list[str]) -> str:
        entries = [f'"{axes.pop()}"' for _ in range(self.random.choice([0, 0, 1, 1, 2])) if axes]
        if self.random.random() < 0.7:
            entries.append("?")
        priority = f"p{self.random.randint(0, 2)}" if entries and self.random.random() < 0.2 else ""
        return "{" + ", ".join(entries) + "}" + priority

    def annotated(self, chance: float) -> str:
        if self.random.random() >= chance:
            return KIND
        return f"{KIND} {{sdy.sharding = #sdy.sharding<{self.sharding()}>}}"

    def op(self, values: list[str]) -> str:
        a, b = self.random.choice(values), self.random.choice(values)
        held = ""
        if self.random.random() < 0.15:
            held = f" {{sdy.sharding = #sdy.sharding_per_value<[<{self.sharding()}>]>}}"
        lines = [
            f"stablehlo.add {a}, {b}{held} : {KIND}",
            f"stablehlo.abs {a}{held} : {KIND}",
            f"stablehlo.dot_general {a}, {b}, contracting_dims = [1] x [0]{held} : ({KIND}, {KIND}) -> {KIND}",
            f"stablehlo.transpose {a}, dims = [1, 0]{held} : ({KIND}) -> {KIND}",
            f"sdy.sharding_constraint {a} <{self.sharding()}> : {KIND}",
        ]
        return self.random.choices(lines, [50, 20, 15, 8, 7])[0]

    def program(self) -> str:
        values = [f"%arg{i}" for i in range(self.random.randint(1, 3))]
        arguments = [f"{value}: {self.annotated(0.5)}" for value in values]
        lines = []
        for number in range(self.random.randint(2, 8)):
            lines.append(f"    %{number} = {self.op(values)}")
            values.append(f"%{number}")
        results = ", ".join(self.annotated(0.2) for _ in values)
        returned = f"    return {', '.join(values)} : {', '.join(KIND for _ in values)}"
        head = f"  func.func @main({', '.join(arguments)}) -> ({results}) {{"
        return "\n".join([f"module {{{MESHES}", head, *lines, returned, "  }", "}", ""])


def random_program(seed: int) -> str:
    return Generator(seed).program()
