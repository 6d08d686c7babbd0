# SPDX-License-Identifier: Apache-2.0
"""Draws programs by class, and checks them: numbers, warnings, places of reports, and the text of the same program."""

from __future__ import annotations

import contextlib
import os
import random
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

import shardwise as sw
from tests.conformance.transformed import kits
from tests.conformance.transformed.kits import (
    BY_FORWARD,
    CONSTRUCTS,
    FORWARD,
    KITS,
    PLAIN,
    TRANSFORMS,
    USES,
    WRAPPERS,
    Extras,
    function_of,
)

PACKAGE = os.path.join(os.path.dirname(sw.__file__), "")
IN_SPECS = (None, ("x", None), (None, "y"))
TOLERANCE = 2e-4


@dataclass(frozen=True)
class Case:
    """A program: how it is written, and the shardings of its arguments."""

    kit: str
    construct: Any
    wrapper: Any
    use: Any
    transform: Any
    in_specs: tuple[Any, Any]
    extras: Extras

    def __str__(self) -> str:
        parts = (self.construct, self.wrapper, self.use, self.transform)
        names = ", ".join(part.__name__ for part in parts)
        return f"{self.kit}: {names}, arguments {self.in_specs}, {self.extras}"

    def function(self, kit: kits.Kit) -> Any:
        return function_of(kit, self.construct, self.wrapper, self.use, self.transform, self.extras)

    def exists(self) -> bool:
        """Whether JAX, or for NumPy shardwise, has this combination."""
        if self.construct is kits.repeated and self.transform not in FORWARD:
            return False
        if self.construct is kits.ruled and self.transform in BY_FORWARD:
            return False
        if self.kit == "mixed" and self.transform in BY_FORWARD and self.construct is kits.repeated:
            return False  # sw.jvp linearizes a function of JAX by its reverse gradient, which this loop has not
        if self.construct is kits.out_sharded and not _is_traced_by_jax(self):
            return False
        by_vmap = self.wrapper is kits.in_vmap or self.construct is kits.mapped
        return self.kit != "shardwise" or not (by_vmap and self.transform is not kits.value)  # docs/jax.md


def draw(seed: int, index: int) -> Case:
    """Each construct comes in turn, in each kit; the rest is random."""
    rng = random.Random(f"{seed}:{index}")
    kit = ("shardwise", "jax", "mixed")[index % 3]
    construct = CONSTRUCTS[kit][(seed + index // 3) % len(CONSTRUCTS[kit])]
    while True:
        case = Case(
            kit,
            construct,
            rng.choice(WRAPPERS),
            rng.choice(USES),
            rng.choice(TRANSFORMS),
            (rng.choice(IN_SPECS), rng.choice(IN_SPECS)),
            Extras(closes=rng.random() < 0.4, discards=rng.random() < 0.25),
        )
        if case.exists():
            return case


def _is_traced_by_jax(case: Case) -> bool:
    """Whether JAX takes the program on explicit axes, whose shardings are types.

    A constraint asserts the sharding that is there, and a carry that gains a sharding has another type.
    """
    with _context(case):
        try:
            jax.eval_shape(case.function(KITS["jax"]), *arguments())
        except Exception:
            return False
    return True


def arguments() -> tuple[np.ndarray, np.ndarray]:
    """Two (8, 4) arrays of distinct numbers."""
    rng = np.random.default_rng(7)
    x, k = rng.permutation(64).reshape(2, 8, 4) / 32 - 0.97
    return x.astype(np.float32), k.astype(np.float32)


@dataclass(frozen=True)
class Checked:
    """A case, and what is wrong with it, if anything."""

    case: Case
    wrong: str = ""
    bytes: float = 0


def check(case: Case) -> Checked:
    """Run the program as a whole, and compare it with the plain one in JAX."""
    given = arguments()
    expected = [np.asarray(x) for x in jax.tree.leaves(jax.jit(case.function(PLAIN))(*given))]
    wrong = []
    with _context(case), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", sw.ShardingWarning)
        try:
            compiled = _compiled(case)
            warned = [each for each in caught if each.category is sw.ShardingWarning]
            wrong += _warning_faults(case, warned, compiled.work())
            found = jax.tree.leaves(compiled(*given), is_leaf=lambda x: isinstance(x, sw.Array))
            wrong += _differences(found, expected)
            wrong += [f"the ledger names {row.location}" for row in compiled.collectives() if _is_ours(row.location)]
            wrong += _copies(case, compiled) if case.extras.closes else []
            if case.kit == "jax":
                wrong += [f"as text: {text}" for text in _differences(_results_of_text(case), expected)]
        except Exception as error:
            return Checked(case, f"{type(error).__name__}: {error}")
    return Checked(case, "; ".join(dict.fromkeys(wrong)), compiled.collectives().total_bytes)


def _warning_faults(case: Case, caught: list[warnings.WarningMessage], work: Any) -> list[str]:
    """A discarded annotation has one warning, at its line, and so has each lost split; all others are wrong."""
    line = kits.discard.__code__.co_firstlineno + 2
    right = [each for each in caught if (each.filename, each.lineno) == (kits.__file__, line)]
    lost = [each for each in caught if each not in right and str(each.message).startswith("work: ")]
    repeated = {(row.cause_file, row.cause_line) for row in work if row.cause_file and row.ratio > 1}
    faults = [
        f"a warning at {each.filename}:{each.lineno}: {each.message}" for each in caught if each not in right + lost
    ]
    faults += [f"nothing repeats: {each.message}" for each in lost if (each.filename, each.lineno) not in repeated]
    if len(lost) != sum("which 'x' splits" in text or "which 'y' splits" in text for text in work.warnings):
        faults.append(f"{len(lost)} warnings of lost splits, work() has {work.warnings}")
    if len(right) > case.extras.discards:
        faults.append(f"{len(right)} warnings of a discarded annotation")
    # JAX drops what a loop or a branch does not use when it differentiates it.
    if case.extras.discards and not right and (case.kit == "shardwise" or case.transform is kits.value):
        faults.append("no warning of a discarded annotation")
    return faults


def _copies(case: Case, compiled: sw.Program) -> list[str]:
    """What the program holds of the arrays that it closes over, where it is not one of each."""
    arguments = [row for row in compiled.memory() if row.op == "argument"]
    held = len(compiled._traced._call.hoisted)
    faults = [] if (held, len(arguments)) == (1, 3) else [f"{held} arrays are held, memory() has {len(arguments)}"]
    texts = {"local": compiled.as_text("local")}
    texts |= {target: compiled.to_source(target) for target in ("jax", "mpi4py")}
    for name, text in texts.items():
        count = text.count(kits.SMALL_TEXTS[name])
        # The added values have no derivative.
        if count > 1 or (count == 0 and case.transform is kits.value):
            faults.append(f"the constant is {count} times in {name}")
    scripts = (texts[target] for target in ("jax", "mpi4py"))
    return faults + [f"a script holds {held}" for script in scripts if (held := _hidden(script)) != {"hidden_0"}]


def _hidden(script: str) -> set[str]:
    return set(re.findall(r"hidden_\d+", script))


@contextlib.contextmanager
def _context(case: Case) -> Iterator[None]:
    explicit = case.kit == "jax" and case.construct is kits.out_sharded
    with jax.set_mesh(kits.explicit_mesh()) if explicit else contextlib.nullcontext():
        yield


def _compiled(case: Case) -> sw.Program:
    function = case.function(KITS[case.kit])
    whole = sw.from_jax(function) if case.kit == "jax" else function
    specs = tuple(None if spec is None else sw.P(*spec) for spec in case.in_specs)
    shardings = {} if specs == (None, None) else {"in_shardings": specs}
    return sw.jit(whole, mesh=kits.sw_mesh(), **shardings).lower(*arguments()).compile()


def _results_of_text(case: Case) -> list[Any]:
    text = jax.jit(case.function(KITS[case.kit]), keep_unused=True).lower(*arguments()).as_text()
    results = sw.parse(text).compile().run(*arguments())
    return list(results) if isinstance(results, tuple) else [results]


def _differences(found: list[Any], expected: list[np.ndarray]) -> list[str]:
    if len(found) != len(expected):
        return [f"{len(found)} results instead of {len(expected)}"]
    texts = []
    for i, (x, right) in enumerate(zip(found, expected)):
        x = np.asarray(x)
        if x.shape != right.shape:
            texts.append(f"result {i} has shape {x.shape} instead of {right.shape}")
        elif not np.allclose(x, right, rtol=TOLERANCE, atol=TOLERANCE * max(1.0, float(np.max(np.abs(right))))):
            texts.append(f"result {i} differs by {np.max(np.abs(x - right)):.3g}")
    return texts


def _is_ours(location: str) -> bool:
    return os.path.abspath(re.sub(r":\d+$", "", location)).startswith(PACKAGE)
