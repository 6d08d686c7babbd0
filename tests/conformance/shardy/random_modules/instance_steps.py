# SPDX-License-Identifier: Apache-2.0
"""A step of random modules for every op there is: an instance of rule_instances on values of the program."""

from __future__ import annotations

import re

from tests.conformance.shardy.random_modules.drawing import Drawer, Step
from tests.conformance.shardy.rule_instances.every_op import GENERATORS
from tests.conformance.shardy.rule_instances.instance import Instance

SHAPED = re.compile(r"tensor<((?:\d+x)*)([a-zA-Z]\w*(?:<\w+>)?)>")
# Ops that other steps draw, on values that fit together; and those whose operands are no plain tensors.
ELSEWHERE = {"stablehlo.constant", "stablehlo.iota"}
# Functions of the module; and normal distributions, which `simplify` makes of chlo.erf_inv, where Shardy has no rule.
EXCLUDED = re.compile("@|NORMAL")
ATTEMPTS = 20


def types_of(texts: tuple[str, ...]) -> list[tuple[tuple[int, ...], str]] | None:
    """Shapes and element types; None where one is no tensor, or has no elements."""
    types = []
    for text in texts:
        found = SHAPED.fullmatch(text)
        if found is None:
            return None
        shape = tuple(int(n) for n in found[1].split("x")[:-1])
        if 0 in shape:
            return None
        types.append((shape, found[2]))
    return types


def instance_of(d: Drawer, name: str) -> Instance | None:
    for _ in range(ATTEMPTS):
        instance = GENERATORS[name](d.rng)
        if EXCLUDED.search(instance.attributes):
            continue
        if types_of(instance.operands) is not None and types_of(instance.results):
            return instance
    return None


def takes_shapes(name: str) -> bool:
    """Shapes are among its operands: constants would have to fit its types."""
    return name == "stablehlo.rng" or (
        "dynamic_" in name and name not in ("stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice")
    )


def step_of(name: str) -> Step:
    def step(d: Drawer) -> bool:
        instance = instance_of(d, name)
        if instance is None:
            return False
        if d.isolated and takes_shapes(name):
            return False
        value = d.argument if takes_shapes(name) else d.like
        operands = [value(shape, dtype) for shape, dtype in types_of(instance.operands) or ()]
        d.ops(name, operands, types_of(instance.results) or [], instance.attributes, regions=instance.regions)
        return True

    return step


INSTANCE_STEPS: list[tuple[Step, float]] = [(step_of(name), 0.4) for name in GENERATORS if name not in ELSEWHERE]
