# SPDX-License-Identifier: Apache-2.0
"""Programs handed over to JAX give the numbers of the virtual mesh, on 64 host devices.

python -m tests.conformance.jax.handover [--programs 500] [--seed 0] [--ops NAME ...] [--cells 100] [--no-matrix]
    [--no-models] [--no-collectives]

The ledger of each random program must also have the collectives of the HLO after SPMD partitioning, by kind, bytes and
executions, unless --no-collectives is given; XLA may have dropped some. So must that of the models (handed_models.py).

Random programs must agree in every bit; the table of ops (with --cells, a random sample of ops, dtypes and scenarios)
within the tolerances of the design, where XLA:CPU flushes subnormals to zero and contracts products and sums. Its
approximations of some functions have fewer digits, and a contracted product changes a sum whose terms cancel: there
the results must be those that JAX computes for whole operands on one device, and half of their digits must be right.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=64 " + os.environ.get("XLA_FLAGS", "")

import ml_dtypes
import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings

import shardwise as sw
from shardwise.interop.comparison import compiled_texts, sent
from shardwise.interop.hlo import collectives_of
from tests.conformance.jax.handed_models import Model, models
from tests.conformance.results import table, write
from tests.interop.nearness import assert_near, exact_results
from tests.op.case import Application
from tests.op.cases import CASES, OpCase
from tests.op.references import is_float, wide
from tests.partition.test_random_programs import PROGRAMS
from tests.support.partitioned import (
    SCENARIOS,
    assignments,
    difference,
    record,
    run,
    same_values,
    unit_in_last_place,
)
from tests.support.random_programs import Program

__all__ = ["handed_over", "op_failures"]

_ULPS = 8
_EPS = 2.0**-23
# XLA drops the branches that a constant index does not choose, what a select by a constant does not take (the median of
# an odd number), and a gather of a reshaped array beside one of the array.
_DROPPED = ("branches on ", "sorts on ", "factorizations on ")


def other_collectives(function: Any, may_drop: bool = False) -> str:
    """The collectives that only the HLO or only the ledger has; "" if there are none.

    ``may_drop``: XLA may have dropped some of the ledger, equal ones and those whose results nothing uses.
    """
    found = sent(collectives_of(compiled_texts(function.lower())[0]))
    ledger = function.collectives()
    ours = sent(ledger)
    for key in sent(row for row in ledger if row.bound == "per trip"):  # XLA may compute how often a loop runs
        found[key] = min(found[key], ours[key])
    missing = Counter[tuple[str, float]]() if may_drop else ours - found
    return f"{found - ours} in the HLO, {ours - found} in the ledger" if found - ours or missing else ""


def handed_over(
    module: Any, mesh: Any, arguments: list[np.ndarray], check: Callable[[Any], None] = lambda function: None
) -> list[np.ndarray]:
    """The results of a recorded program in JAX."""
    program = sw.parse(module.text()).compile(sw.Mesh._wrap(mesh))
    function = program.to_jax()
    check(function)
    results = function.get(function(*arguments))
    return list(results) if isinstance(results, tuple) else [results]


def program_failure(program: Program, collectives: bool) -> str:
    """What differs in a random program; "" if nothing does, and the refusal of an op that JAX lacks."""
    differences: list[str] = []
    check = (
        (lambda function: differences.append(other_collectives(function, True)))
        if collectives
        else lambda function: None
    )
    try:
        got = handed_over(program.record(), program.mesh, program.arguments, check)
    except sw.UnsupportedError as error:
        return f"refused: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:400]}\n{program!r}"
    for i, (found, want) in enumerate(zip(got, program.expected)):
        if found.dtype != want.dtype or not np.array_equal(found, want):
            return f"output {i}:\n{found!r}\nNumPy\n{want!r}\n{program!r}"
    return "".join(f"{text}\n{program!r}" for text in differences if text)


def near(found: np.ndarray, want: np.ndarray) -> bool:
    """Within some units in the last place; subnormals are zero."""
    if not is_float(found.dtype):
        return False
    with np.errstate(all="ignore"):
        unit = unit_in_last_place(wide(want), want.dtype)
        gap = np.abs(wide(found) - wide(want))
        return bool(np.all((gap <= _ULPS * unit) | (found == want) | (np.isnan(found) & np.isnan(want))))


def half_right(found: np.ndarray, want: np.ndarray) -> bool:
    """Whether half of the digits are right."""
    with np.errstate(all="ignore"):
        limit = np.sqrt(float(ml_dtypes.finfo(found.dtype).eps)) * np.abs(wide(want))
        return bool(np.all((np.abs(wide(found) - wide(want)) <= limit) | (np.isnan(found) & np.isnan(want))))


def approximated(case: OpCase, application: Application, dtype: str, operands: Any, got: Any, ours: Any) -> bool:
    """Whether the result is as inexact as that of the op for whole operands on one device."""
    module = record(case, application, dtype)
    text = module.text()
    is_contracted = "stablehlo.multiply" in text and "stablehlo.add" in text
    may_differ = case.kind == "ulps" or is_contracted
    if not may_differ or not is_float(got.dtype) or not half_right(got, ours):
        return False
    return near(got, handed_over(module, sw.Mesh({"x": 1})._core, operands)[0])


def op_failures(case: OpCase, dtype: str, scenarios: Sequence[int], turn: int = 0) -> list[str]:
    """What differs for an op and dtype in these of SCENARIOS, with the operands sharded in one way in turn in each."""
    failures = []
    for i in scenarios:
        scenario = SCENARIOS[i]
        mesh = scenario.mesh()
        for application in case.applications(scenario.size, dtype):
            operands = case.operands(application, dtype)
            where = f"{case.id} {dtype} {application.label or application.shapes}, {scenario.name}"
            whole = np.asarray(application.reference(*operands))
            choices = assignments(scenario, application, whole.shape)
            shardings, result = choices[(i + turn) % len(choices)]
            module = record(case, application, dtype, shardings, result)
            try:
                (got,) = handed_over(module, mesh, operands)
            except sw.UnsupportedError as error:
                failures.append(f"{where}: refused: {error}")
                continue
            except Exception as error:
                failures.append(f"{where}: {type(error).__name__}: {str(error)[:300]}")
                continue
            reason = difference(case, application, operands, got)
            if reason:
                ours = run(module, mesh, operands)[0]
                is_right = same_values(got, ours) or near(got, ours)
                reason = "" if is_right or approximated(case, application, dtype, operands, got, ours) else reason
            if reason:
                failures.append(f"{where}, arguments {shardings}, result {result}: {reason}")
    return failures


def random_programs(count: int, start: int, collectives: bool) -> list[str]:
    failures: list[str] = []
    seen = [0]

    @seed(start)
    @settings(max_examples=count, database=None, deadline=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(PROGRAMS)
    def check(program: Program) -> None:
        seen[0] += 1
        reason = program_failure(program, collectives)
        if reason:
            failures.append(reason)
            print(f"program {seen[0]}: {reason}", flush=True)

    run_all: Callable[[], None] = check
    run_all()
    print(f"{seen[0]} programs, {len(failures)} failures")
    return failures


def magnitudes(program: Any, model: Model, expected: list[Any]) -> list[float]:
    """For each result, how far a relative change of 1 of all arguments moves it: the size of the terms that cancel."""
    random = np.random.default_rng(0)

    def moved(x: Any) -> Any:
        if getattr(x, "dtype", None) not in (np.float32, np.complex64):
            return x
        signs = random.choice([-1.0, 1.0], (2, *np.shape(x)))
        factors = 1 + _EPS * signs
        return (np.real(x) * factors[0] + (1j * np.imag(x) * factors[1] if np.iscomplexobj(x) else 0)).astype(x.dtype)

    found = sw.tree.leaves(program(*sw.tree.map(moved, model.arguments)))
    pairs = [[np.asarray(x).astype(np.complex128) for x in pair] for pair in zip(found, expected)]
    distances = [np.abs(x - y) for x, y in pairs]
    return [float(np.nan_to_num(each, posinf=0).max(initial=0)) / _EPS for each in distances]


def model_failure(model: Model) -> str:
    """What differs in a model; "" if nothing does."""
    try:
        program = model.compiled()
        function = program.to_jax()
        found = sw.tree.leaves(function.get(function(*model.arguments)))
        expected = sw.tree.leaves(program(*model.arguments))
        rows = zip(found, expected, exact_results(program), magnitudes(program, model, expected), strict=True)
        for got, want, exact, terms in rows:
            assert_near(got, np.asarray(want), exact or bool(model.exact), terms)
        return other_collectives(function, model.name.startswith(_DROPPED))
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:400]}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ops", nargs="*", default=[])
    parser.add_argument("--cells", type=int, help="so many of the ops in a dtype and a scenario, at random")
    parser.add_argument("--no-matrix", action="store_true")
    parser.add_argument("--no-models", action="store_true")
    parser.add_argument("--no-collectives", action="store_true")
    given_options = parser.parse_args()
    failures: list[str] = []
    if given_options.programs:
        failures += random_programs(given_options.programs, given_options.seed, not given_options.no_collectives)
    for model in [] if given_options.no_models else models():
        reason = model_failure(model)
        if reason:
            failures.append(f"{model.name}: {reason}")
            print(failures[-1], flush=True)
    cases = [case for case in CASES if not given_options.ops or case.id in given_options.ops]
    cells = [(case, dtype, i) for case in cases for dtype in case.dtypes for i in range(len(SCENARIOS))]
    if given_options.cells is not None:
        cells = random.Random(given_options.seed).sample(cells, given_options.cells)
    counts = Counter[tuple[str, str]]()
    for case, dtype, i in [] if given_options.no_matrix else cells:
        found = op_failures(case, dtype, [i], given_options.seed)
        for line in found[:2]:
            print(line, flush=True)
        counts[case.id, dtype] += len(found)
        failures += found
    rows = [(*key, count) for key, count in counts.items()]
    table("ops that differ", ("op", "dtype", "failures"), [row for row in rows if row[2]])
    write("handover", {"failures": failures, "ops": rows})
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
