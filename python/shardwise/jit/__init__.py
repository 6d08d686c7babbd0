# SPDX-License-Identifier: Apache-2.0
"""``jit``: a NumPy function as one SPMD program for the devices of a mesh."""

from .eager import eager_call
from .function import JitFunction, eval_shape, jit
from .standalone import jitted_with, run_as_program

__all__ = ["JitFunction", "eager_call", "eval_shape", "jit", "jitted_with", "run_as_program"]
