# SPDX-License-Identifier: Apache-2.0
"""What users call: jit, arrays, NumPy functions, gradients, random numbers, trees, reports, the command line."""
