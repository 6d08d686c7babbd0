# SPDX-License-Identifier: Apache-2.0
"""Draws programs of families, and tells what is wrong with one."""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .programs import Program

Families = Mapping[str, Callable[[random.Random], Program]]


def drawn(families: Families, family: str, seed: str, index: int) -> Program:
    return families[family](random.Random(f"{seed}:{family}:{index}"))


def difference(found: Any, expected: np.ndarray, tolerance: float) -> str:
    found = np.asarray(found)
    if tolerance:
        return "" if np.allclose(found, expected, rtol=tolerance, atol=tolerance) else "wrong numbers"
    if np.array_equal(found, expected, equal_nan=True):
        return ""
    return f"wrong numbers: {np.argwhere(found != expected)[:3].tolist()}"


def fault(program: Program) -> str:
    """What is wrong with it, or ""."""
    compiled = program.compiled()
    found = compiled(*program.arguments)
    sent = compiled.collectives().total_bytes
    results = found if isinstance(program.expected, tuple) else (found,)
    expected = program.expected if isinstance(program.expected, tuple) else (program.expected,)
    for result, wanted in zip(results, expected, strict=True):
        if wrong := difference(result, wanted, program.tolerance):
            return wrong
    return f"{sent:g} bytes, above {program.bound:g}\n{compiled.collectives()}" if sent > program.bound else ""


def run(families: Families, description: str | None) -> int:
    """The command line of a tool that tries programs of each family; 1 if one is wrong or sends more."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--programs", type=int, default=50, help="of each family")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--show", help="print one program: FAMILY:INDEX")
    options = parser.parse_args()
    if options.show:
        family, _, index = options.show.partition(":")
        program = drawn(families, family, options.seed, int(index))
        print(program.name, program.given, program.mesh, program.compiled().as_text("global"), fault(program), sep="\n")
        return 0
    count = 0
    for family in families:
        for index in range(options.programs):
            program = drawn(families, family, options.seed, index)
            if wrong := fault(program):
                count += 1
                print(f"--seed {options.seed} --show '{family}:{index}': {program.name} on {program.mesh}: {wrong}")
    print(f"{options.programs * len(families)} programs, {count} wrong")
    return 1 if count else 0
