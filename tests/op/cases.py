# SPDX-License-Identifier: Apache-2.0
"""The table of op cases: what every op of the registry computes, on which shapes and dtypes it is tried.

A row is an :class:`OpCase` of ``tests/op/catalogue``. It gives :class:`Application`\\ s for an interesting dim size
``n`` (7, 17, 1, 0, ...), each of which is the op on concrete shapes with a NumPy reference. ``test_matrix``,
``test_rule_truth`` and ``test_gradients`` all read this one table.
"""

from __future__ import annotations

from shardwise import _core
from tests.op.case import Application, OpCase
from tests.op.catalogue import CASES, collectives

__all__ = ["CASES", "COMPOSED", "Application", "OpCase", "registry_ops"]

DEFINITIONS = {op.name: op for op in _core.ir.all_ops()}
COMPOSED = [case for case in CASES if DEFINITIONS[case.name].composed]  # of ops that other ops make up

# Ops without a case: they place values and compute nothing. The programs of test_random_programs and
# every resharding in test_matrix run them.
PLACEMENT_DIALECTS = ("sdy.", "shardwise.")
# Ops that refer to functions of the module, which a trace does not have: test_composites and test_calls.
OF_FUNCTIONS = {"func.call", "stablehlo.composite"}
# Ops of one device in a manual region, and tokens: test_manual_regions.
OF_DEVICES = {*collectives.DRAWS, "shardwise.match_varying", "shardwise.vary"}
# Ops made of ops that have no kernel: test_convolution, test_scans.
OF_OTHERS_WITHOUT_KERNEL = {"stablehlo.dynamic_conv", "chlo.scan"} | OF_DEVICES
# Ops whose regions are programs: test_control_flow.
CONTROL_FLOW = {"stablehlo.while", "stablehlo.case", "stablehlo.if"}


def registry_ops() -> list[_core.ir.OpDefinition]:
    """The ops that must have a case: those that run."""
    others = OF_FUNCTIONS | CONTROL_FLOW | OF_OTHERS_WITHOUT_KERNEL
    return [
        op
        for op in _core.ir.all_ops()
        if op.runnable and not op.name.startswith(PLACEMENT_DIALECTS) and op.name not in others
    ]
