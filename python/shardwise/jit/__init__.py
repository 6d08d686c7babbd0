# SPDX-License-Identifier: Apache-2.0
"""``jit``: a NumPy function as one SPMD program for the devices of a mesh."""

from .call import parameter_names
from .eager import eager_call, jitted_with, run_as_program
from .function import JitFunction, jit

__all__ = ["JitFunction", "eager_call", "jit", "jitted_with", "parameter_names", "run_as_program"]
