# SPDX-License-Identifier: Apache-2.0
"""``jit``: a NumPy function as one SPMD program for the devices of a mesh."""

from .call import core_sharding, lifted_results, names_of_leaves, numbers_of
from .eager import eager_call, jitted_with, run_as_program
from .function import JitFunction, eval_shape, jit

__all__ = [
    "JitFunction",
    "core_sharding",
    "eager_call",
    "eval_shape",
    "jit",
    "jitted_with",
    "lifted_results",
    "names_of_leaves",
    "numbers_of",
    "run_as_program",
]
